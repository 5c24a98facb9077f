"""Passes Jupyter Book's two files, _config.yml and _toc.yml, to Sphinx."""

import sys
from pathlib import Path

from jupyter_book.config import get_final_config

root = Path(__file__).parents[1]
sys.path += [str(root), str(root / "tools")]  # for the extensions book.* in _config.yml and their imports
settings, _ = get_final_config(
    user_yaml=root / "_config.yml",
    cli_config={"external_toc_path": str(root / "_toc.yml"), "latex_individualpages": False},
)
globals().update(settings)
