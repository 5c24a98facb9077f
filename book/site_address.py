"""What the pages take from the site's own address, html.baseurl in _config.yml, and what they leave out without one."""

from urllib.parse import urlsplit


def use_address(app, config):
    # The 404 page may be shown under any address, so its links begin at the site's.
    prefix = config.notfound_urls_prefix = urlsplit(config.html_baseurl).path or "/"
    start, search = (f"{prefix.rstrip('/')}/{page}.html" for page in ("index", "search"))
    config.notfound_context = {
        "title": "Page not found",
        "body": "<h1>Page not found</h1>\n"
        f'<p>There is no such page. Go to the <a href="{start}">front page</a>, or <a href="{search}">search</a>.</p>',
    }
    if not config.html_baseurl:  # then there is no repository either for a button to lead to
        for option in ("launch_buttons", "repository_url", "use_repository_button"):
            config.html_theme_options.pop(option, None)


def setup(app):
    app.connect("config-inited", use_address, priority=400)  # before it is read
    return {"parallel_read_safe": True}
