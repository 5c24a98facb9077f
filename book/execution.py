"""The pages show the one execution of each notebook that is kept: what is not there yet runs before a page is read."""

from executed import fill, folder
from sphinx.errors import ExtensionError


def execute(app, config):
    config.nb_execution_cache_path = str(folder())  # of today's code: with another one, every page is read again
    if failed := fill():
        raise ExtensionError("\n\n".join(failed))


def setup(app):
    app.connect("config-inited", execute)
    return {"parallel_read_safe": True}
