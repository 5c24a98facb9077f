"""Draws random sentences from an area of the course for a blind reading, and counts features that make reading hard.

    python tools/sentences.py                                    the counts of every area
    python tools/sentences.py cards labs --sample 30 --seed 1    30 sentences of each area, each with the one before

The areas are those of ``prose.py``: chapters-1-5, chapters-6-8, chapters-9-11, assignments, pages, cards, labs, code.
"""

import argparse
import random
import re

from prose import AREAS, ROOT, files, passages

STANDING_VERB = re.compile(r"(?i)\b(stand|stands|stood|standing|lie|lies|lain|lying)\b(?!-)")
# "This" has a noun in "This bias", but not in "This makes".
VERB = r"is|are|was|were|can|may|must|will|would|do|have|(?!(?:axis|bias|class|loss|process|basis|\w+ness)\b)\w+s"
BARE_PRONOUN = re.compile(rf"(?i)\W*(it|(?:this|that|these|those|both|one)(?= (?:{VERB})\b))\b")


def sentences(area):
    """Return the sentences of an area: triples of file and place, the sentence, and the previous sentence."""
    triples = []
    for path in files(area):
        for location, text in passages(path):
            parts = split(text)
            triples += [
                (f"{path.relative_to(ROOT)}:{location}", sentence, previous)
                for previous, sentence in zip(["", *parts], parts, strict=False)
                if is_sentence(sentence)
            ]
    return triples


def split(text):
    """Return the sentences of a passage in order."""
    return re.split(r"(?<=[.?!])(?<!et al\.)[\"”)*]*\s+(?=[A-Z`*\"“(…])", text)


def is_sentence(text):
    """Whether a text begins and ends like a sentence, and has at least four words."""
    return bool(text.count(" ") > 2 and re.match(r"[A-Z`*\"“(…].*[.?!:][\"”)*`]*$", text))


def counts(texts):
    """Return how many sentences there are, their mean length, and counts of two features per 1,000 words."""
    words = sum(len(text.split()) for text in texts) or 1
    n_standing = sum(len(STANDING_VERB.findall(text)) for text in texts)
    n_bare = sum(bool(BARE_PRONOUN.match(text)) for text in texts)
    return len(texts), words / max(1, len(texts)), 1000 * n_standing / words, 1000 * n_bare / words


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("areas", nargs="*", metavar="AREA", help="default: all")
    parser.add_argument("--sample", type=int, help="how many sentences to draw from each area")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not options.sample:
        print("area            sentences  words in each  stand, lie per 1,000  it, this per 1,000")
    for area in options.areas or AREAS:
        triples = sentences(area)
        if not options.sample:
            print("{:14} {:10} {:14.1f} {:21.1f} {:19.1f}".format(area, *counts([text for _, text, _ in triples])))
            continue
        sample = random.Random(f"{area} {options.seed}").sample(triples, min(options.sample, len(triples)))
        for number, (location, sentence, previous) in enumerate(sample, 1):
            print(f"{number}. {location}\n   [{previous}]\n   {sentence}")


if __name__ == "__main__":
    main()
