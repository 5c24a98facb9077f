"""Writes, for each page that has moved, a small page at the old address, which leads to the new address.

The small page works from disk and without scripts. A script also passes on the section's anchor, which has not changed,
since anchors contain no numbers.
"""

import json
from pathlib import Path
from posixpath import relpath

# For each old page, the new page, and a dict from anchors to pages for the sections that have moved to a third page.
MOVED = {
    "09_real_models": ("10_real_models", {}),
    **{
        f"{kind}/09_real_models": (
            f"{kind}/10_real_models",
            dict.fromkeys(
                ("rotate", "repeat-keys", "gated-feed-forward", "decoder-block", "hunt-the-mistakes-test-rotate"),
                f"{kind}/09_today",
            ),
        )
        for kind in ("assignments", "solutions")
    },
}

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>Moved: {title}</title>
<script>
const sections = {sections};
const section = location.hash.slice(1);
location.replace((Object.hasOwn(sections, section) ? sections[section] : "{new}") + location.hash);
</script>
<noscript><meta http-equiv="refresh" content="0; url={new}"></noscript>
</head>
<body>
<main>
<h1>This page has moved</h1>
<p>You will find it in {links}.</p>
</main>
</body>
</html>
"""


def page(old_page, title_of):
    """Return the HTML of the page at an old address; ``title_of`` returns the title of a page."""
    new_page, sections = MOVED[old_page]

    def address(name):
        return f"{relpath(name, Path(old_page).parent.as_posix())}.html"

    links = [
        f'<a href="{address(name)}">{title_of(name)}</a>' for name in dict.fromkeys([new_page, *sections.values()])
    ]
    return PAGE.format(
        title=title_of(new_page),
        new=address(new_page),
        sections=json.dumps({anchor: address(name) for anchor, name in sections.items()}),
        links=" and ".join(links),
    )


def write_pages(app, error):
    if error or app.builder.format != "html":
        return
    for old_page in MOVED:
        text = page(old_page, lambda name: app.env.titles[name].astext())
        Path(app.outdir, f"{old_page}.html").write_text(text, "utf-8")


def setup(app):
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True}
