"""A chapter shows what the package does: when the package has changed, `make serve` runs every chapter again."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "transformer_lab"


def depend_on_package(app, page, source):
    for file in PACKAGE.rglob("*"):
        if file.suffix in (".py", ".js", ".css"):
            app.env.note_dependency(str(file))


def setup(app):
    app.connect("source-read", depend_on_package)
    return {"parallel_read_safe": True}
