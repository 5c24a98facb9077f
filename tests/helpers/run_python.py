"""Run code in a fresh Python process."""

import subprocess
import sys


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/").stdout
