"""An audit from a shell: ``python -m transformer_lab.audit package.module:factory``.

The factory takes no argument and returns a model, or a dict of the arguments of `transformer_lab.audit`, including the
model as ``"model"``. The exit status is 1 if a property fails or raises an error.
"""

import argparse
import importlib
import sys

from . import KINDS, audit


def main(arguments=None):
    """Audit the model that the factory returns; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m transformer_lab.audit", description=__doc__.partition("\n\n")[0])
    parser.add_argument("factory", metavar="package.module:factory", help="returns a model, or the audit's arguments")
    parser.add_argument("--vocab-size", type=int, help="the number of token ids that the model accepts")
    parser.add_argument("--d-model", type=int, help="the size of the vectors that the model accepts")
    parser.add_argument("--kind", choices=KINDS, help="which tokens an output may depend on")
    options = vars(parser.parse_args(arguments))
    module, colon, name = options.pop("factory").partition(":")
    if not (module and colon and name):
        parser.error("the factory must be written package.module:factory, such as my_model:make")
    try:
        audit_arguments = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        parser.error(f"{module}:{name} cannot be called: {error}")
    audit_arguments = audit_arguments if isinstance(audit_arguments, dict) else {"model": audit_arguments}
    report = audit(**audit_arguments | {key: value for key, value in options.items() if value is not None})
    return int(bool(report.failed or report.of("raises")))


if __name__ == "__main__":
    sys.exit(main())
