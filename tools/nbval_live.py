"""A pytest plugin that makes nbval leave out notebooks that read published models if the models are not installed.

PYTHONPATH=tools python -m pytest -p nbval_live --nbval --nbval-current-env chapters
"""

from notebooks import INSTALL_MODELS, ROOT, all_notebooks, lacks_models


def pytest_ignore_collect(collection_path):
    if collection_path.suffix == ".ipynb" and lacks_models(collection_path):
        return True


def pytest_terminal_summary(terminalreporter):
    for path in filter(lacks_models, all_notebooks()):
        terminalreporter.write_line(
            f"{path.relative_to(ROOT)}: left out, since it reads published models: {INSTALL_MODELS}."
        )
