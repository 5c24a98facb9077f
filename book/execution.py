"""The pages show the one execution of each notebook that is kept: what is not there yet runs before a page is read."""

from sphinx.errors import ExtensionError

from executed import cache_folder, execute_missing


def execute(app, config):
    config.nb_execution_cache_path = str(cache_folder())  # of today's code: with another one, every page is read again
    if failed := execute_missing():
        raise ExtensionError("\n\n".join(failed))


def setup(app):
    app.connect("config-inited", execute)
    return {"parallel_read_safe": True}
