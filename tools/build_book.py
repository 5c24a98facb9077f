"""Builds the book from the cached execution of each notebook; warnings are errors.

With --serve, the tool serves the book at http://localhost:8000 and rebuilds the pages that a change affects.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import build_wheel

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
PAGES = BUILD / "html"
SPHINX_OPTIONS = ["-b", "html", "-c", "book", "-d", BUILD / "doctrees", "--nitpicky", "--quiet", "chapters", PAGES]


def run(*command):
    return subprocess.call([sys.executable, "-m", *command], cwd=ROOT)


def build():
    for folder in ("html", "doctrees"):  # pages of removed chapters must not stay
        shutil.rmtree(BUILD / folder, ignore_errors=True)
    print("Building the book.", flush=True)
    if run("sphinx", "--fail-on-warning", "--keep-going", *SPHINX_OPTIONS):
        sys.exit("The build of the book failed or emitted a warning: see above.")
    build_wheel.build(PAGES)
    print(f"The book is built. Open it in a browser: {(PAGES / 'index.html').as_uri()}")


def serve():
    watch_options = [f"--watch={name}" for name in ("book", "transformer_lab", "_config.yml", "_toc.yml")]
    try:
        run("sphinx_autobuild", *watch_options, "--ignore", "*.pyc", *SPHINX_OPTIONS)
    except KeyboardInterrupt:
        print("Stopped.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true", help="serve the book, and build it again on every change")
    serve() if parser.parse_args().serve else build()


if __name__ == "__main__":
    main()
