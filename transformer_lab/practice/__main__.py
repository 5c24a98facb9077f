"""Print the cases of a topic, or a line about each topic: ``python -m transformer_lab.practice strides_of``."""

import json
import sys

from . import topics


def main(names):
    all_topics = topics()
    for name in names or all_topics:
        text = all_topics[name].table_json
        table, size = json.loads(text), len(text.encode())
        print(f"{name}: {len(table['cases'])} cases, {len(table['mistakes'])} mistakes named, {size:,} bytes")
        for case in table["cases"] if names else ():
            print("\n" + case["question"], *([case["given"]] if "given" in case else []), sep="\n")
            print("  right:", case["right"])
            for answer, mistakes in case["wrong"]:
                print("  wrong:", answer, " or ".join(table["mistakes"][i][0] for i in mistakes))
        for mistake, first, last in table["mistakes"] if names else ():
            print(f"\n{mistake}\n  {first}\n  {last}")


if __name__ == "__main__":
    main(sys.argv[1:])
