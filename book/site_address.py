"""Applies the site's address (html.baseurl in _config.yml) to the 404 page and to buttons that need a repository."""

from urllib.parse import urlsplit


def use_address(app, config):
    # The 404 page may be shown at any address, so its links begin at the site's root.
    prefix = config.notfound_urls_prefix = urlsplit(config.html_baseurl).path or "/"
    front_page, search_page = (f"{prefix.rstrip('/')}/{page}.html" for page in ("index", "search"))
    config.notfound_context = {
        "title": "Page not found",
        "body": "<h1>Page not found</h1>\n"
        f'<p>There is no such page. Go to the <a href="{front_page}">front page</a>, '
        "or search for what you wanted:</p>\n"
        f'<form class="tl-missing" role="search" action="{search_page}" method="get">'
        '<input type="search" name="q" aria-label="Search" /> <button type="submit">Search</button></form>',
    }
    if not config.html_baseurl:  # then the repository's address is not set either
        for option in ("launch_buttons", "repository_url", "use_repository_button"):
            config.html_theme_options.pop(option, None)


def setup(app):
    app.connect("config-inited", use_address, priority=400)  # before the extension of the 404 page checks the settings
    return {"parallel_read_safe": True}
