#!/bin/sh
# Writes requirements.txt: every package of the one environment, pinned, for the Pythons that pyproject.toml allows.
# PyTorch's own CUDA packages are left out: its build for the machine at hand pins those that it needs.
set -eu
cd "$(dirname "$0")/.."
python=$(sed -nE 's/^requires-python = ">=([0-9.]+)"$/\1/p' pyproject.toml)
{
    echo "# The one environment of book, tests and CI. Written by \`make lock\` from pyproject.toml."
    echo "-e ."
    .venv/bin/uv pip compile pyproject.toml --extra book --extra test --extra bench --universal --python-version "$python" \
        --no-header --no-annotate --quiet | grep -Ev '^(nvidia|cuda)-|^triton=='
} > requirements.txt.new
mv requirements.txt.new requirements.txt
