#!/bin/sh
# Writes requirements.txt: every package of the one environment, pinned, for Python 3.10 and newer.
# torch's own CUDA packages are left out: its build for the machine at hand pins the ones it needs.
set -eu
cd "$(dirname "$0")/.."
torch="${1:-torch==2.13.0}"
{
    echo "# The one environment of book, tests and CI. Written by \`make lock\` from pyproject.toml."
    echo "-e ."
    echo "$torch" | .venv/bin/uv pip compile pyproject.toml --all-extras --constraint - --universal --python-version 3.10 \
        --no-header --no-annotate --quiet | grep -Ev '^(nvidia|cuda)-|^triton=='
} > requirements.txt.new
mv requirements.txt.new requirements.txt
