"""Pages that have moved: a small page at the old address leads to the new one.

The page works from disk and without scripts. A script also passes the section's anchor, which stays the same, since
anchors contain no numbers.
"""

import json
from pathlib import Path
from posixpath import relpath

# For each old page, the new page, and the anchors of sections that moved to a page of their own.
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
<p>You find it in {links}.</p>
</main>
</body>
</html>
"""


def page(old, title_of):
    """Return the HTML of the page at an old address; ``title_of`` returns the title of a page."""
    new, sections = MOVED[old]

    def address(name):
        return f"{relpath(name, Path(old).parent.as_posix())}.html"

    links = [f'<a href="{address(name)}">{title_of(name)}</a>' for name in dict.fromkeys([new, *sections.values()])]
    return PAGE.format(
        title=title_of(new),
        new=address(new),
        sections=json.dumps({anchor: address(name) for anchor, name in sections.items()}),
        links=" and ".join(links),
    )


def write_pages(app, error):
    if error or app.builder.format != "html":
        return
    for old in MOVED:
        text = page(old, lambda name: app.env.titles[name].astext())
        Path(app.outdir, f"{old}.html").write_text(text, "utf-8")


def setup(app):
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True}
