"""The 404 page may be shown under any address, and takes the site's own from _config.yml (html.baseurl)."""

from urllib.parse import urlsplit


def use_address(app, config):
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path


def setup(app):
    app.connect("config-inited", use_address, priority=400)  # before it is read
    return {"parallel_read_safe": True}
