"""How much does ``import transformer_lab`` add to ``import torch``? It should add less than 15 %.

    python benchmarks/imports.py [--pairs 9]

Each time is measured in a fresh interpreter. The two imports are measured alternately, so that a busy phase of the
machine slows both; the output is the median of the pairs' ratios.
"""

import argparse
import statistics
import subprocess
import sys

AIM = 1.15
TORCH_IMPORT, COURSE_IMPORT = "import torch", "import torch; import transformer_lab"


def measure_seconds(imports):
    code = f"import time; start = time.perf_counter(); {imports}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9)
    pairs = parser.parse_args().pairs
    measure_seconds(COURSE_IMPORT)  # the first import reads from disk and compiles
    times = [(measure_seconds(TORCH_IMPORT), measure_seconds(COURSE_IMPORT)) for _ in range(pairs)]
    torch, course = (statistics.median(column) for column in zip(*times))
    ratio = statistics.median(b / a for a, b in times)
    print(f"{'fresh interpreter':<40}{'median of ' + str(pairs):>14}")
    print(f"{TORCH_IMPORT:<40}{torch:>12.2f} s")
    print(f"{COURSE_IMPORT:<40}{course:>12.2f} s")
    print(f"{'ratio, median over pairs':<40}{ratio:>14.3f}   aim: under {AIM}: {'met' if ratio < AIM else 'missed'}")


if __name__ == "__main__":
    main()
