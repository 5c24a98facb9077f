"""Pages show the cached execution of each notebook; uncached notebooks are executed before any page is read."""

from sphinx.errors import ExtensionError

from executed import cache_folder, execute_missing


def execute(app, config):
    # When the code changes, the path of the cache changes, so that Sphinx reads every page again.
    config.nb_execution_cache_path = str(cache_folder())
    if failed := execute_missing():
        raise ExtensionError("\n\n".join(failed))


def setup(app):
    app.connect("config-inited", execute)
    return {"parallel_read_safe": True}
