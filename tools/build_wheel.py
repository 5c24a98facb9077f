"""Builds the package's wheel, reproducibly. The notebooks' first cell installs the wheel from the site.

python tools/build_wheel.py folder
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "transformer_lab")
EPOCH = "315532800"  # the modification time of every file in the wheel: 1980, the earliest that a zip can store
BUILD_CODE = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


def filename():
    """Return the wheel's file name, with the package's version: pip requires this name in the wheel's address."""
    version = re.search(r'(?m)^__version__ = "(.+?)"', (ROOT / "transformer_lab" / "__init__.py").read_text("utf-8"))[1]
    return f"transformer_lab-{version}-py3-none-any.whl"


def build(folder):
    """Build the wheel into ``folder`` with the installed setuptools, and return the wheel's path."""
    # Build in a copy, because files that a build leaves in its folder would be included in the next wheel.
    with TemporaryDirectory() as copy:
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, Path(copy, part), ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, copy)
        for path in Path(copy).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # a wheel stores file modes
        result = subprocess.run(
            [sys.executable, "-c", BUILD_CODE, Path(folder).resolve()],
            cwd=copy, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, umask=0o022, capture_output=True, text=True,
        )  # fmt: skip
    if result.returncode:
        sys.exit(f"The wheel could not be built:\n{result.stderr[-3000:]}")
    return Path(folder, filename())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="folder for the wheel")
    print(build(parser.parse_args().folder))


if __name__ == "__main__":
    main()
