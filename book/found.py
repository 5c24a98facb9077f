"""Adds metadata for search engines and browsers: titles, addresses, a site map, structured data, and icons.

Addresses are made from the site's address, html.baseurl in _config.yml; if it is not set, pages contain no addresses.
"""

import json
import re
from html import escape
from pathlib import Path

import nbformat
from matplotlib.figure import Figure

import notebooks
from book.descriptions import FRONT_PAGE, TITLES_AND_DESCRIPTIONS
from book.social_card import address_of, draw_logo
from reading_times import stated_minutes

ICONS = {"icon-32.png": 32, "icon-180.png": 180}  # for browsers without SVG icons, and for home screens
UNLISTED_PAGES = ("record",)  # not in the site map: the reader's own page
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>\s*')  # a page's template also contains this tag


def tab_title(site, pagename, title):
    """Return the title of a page as browser tabs and result lists show it."""
    if pagename == FRONT_PAGE:
        return TITLES_AND_DESCRIPTIONS[FRONT_PAGE][0]
    if pagename not in TITLES_AND_DESCRIPTIONS:
        return f"{title} — {site}"
    long_title, number = TITLES_AND_DESCRIPTIONS[pagename][0], re.match(r"\d+", pagename)
    return f"{long_title} — {site}, chapter {int(number[0])}" if number else f"{long_title} — {site}"


def minutes_of(page):
    (path,) = (path for path in notebooks.chapters() if path.stem == page)
    return sum(stated_minutes(nbformat.read(path, 4).cells[0].source))


def course(app):
    """Return schema.org data about the course."""
    title, description = TITLES_AND_DESCRIPTIONS[FRONT_PAGE]
    hours = round(sum(minutes_of(page) for page in TITLES_AND_DESCRIPTIONS if page != FRONT_PAGE) / 60)
    return {
        "@context": "https://schema.org",
        "@type": "Course",
        "@id": address_of(app, FRONT_PAGE),
        "url": address_of(app, FRONT_PAGE),
        "name": title,
        "description": description,
        "inLanguage": "en",
        "isAccessibleForFree": True,
        "provider": {"@type": "Organization", "name": app.config.author, "url": address_of(app, FRONT_PAGE)},
        "offers": {"@type": "Offer", "category": "Free", "price": 0, "priceCurrency": "USD"},
        "hasCourseInstance": {"@type": "CourseInstance", "courseMode": "Online", "courseWorkload": f"PT{hours}H"},
        "hasPart": [{"@id": address_of(app, page)} for page in TITLES_AND_DESCRIPTIONS if page != FRONT_PAGE],
    }


def chapter(app, page):
    """Return schema.org data about a chapter, as a part of the course."""
    title, description = TITLES_AND_DESCRIPTIONS[page]
    return {
        "@context": "https://schema.org",
        "@type": "LearningResource",
        "@id": address_of(app, page),
        "url": address_of(app, page),
        "name": title,
        "description": description,
        "inLanguage": "en",
        "isAccessibleForFree": True,
        "learningResourceType": "chapter",
        "position": int(page.split("_")[0]),
        "timeRequired": f"PT{minutes_of(page)}M",
        "isPartOf": {
            "@type": "Course",
            "@id": address_of(app, FRONT_PAGE),
            "name": TITLES_AND_DESCRIPTIONS[FRONT_PAGE][0],
        },
    }


def add_tags(app, pagename, templatename, context, doctree):
    site = app.config.html_title
    title = app.env.titles[pagename].astext() if doctree else context.get("title") or "Search"
    context["tab_title"] = tab_title(site, pagename, title)
    context["pageurl"] = None  # a page without a source should not be found
    icon, large_icon = (context["pathto"](f"_static/{name}", 1) for name in ICONS)
    tags = [
        f'<link rel="icon" type="image/png" sizes="32x32" href="{icon}" />',
        f'<link rel="apple-touch-icon" href="{large_icon}" />',
    ]
    if doctree and app.config.html_baseurl:
        context["pageurl"] = address_of(app, pagename)
        if pagename in TITLES_AND_DESCRIPTIONS:
            data = course(app) if pagename == FRONT_PAGE else chapter(app, pagename)
            text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
            tags.append(f'<script type="application/ld+json">{text}</script>')
    context["metatags"] = "\n".join([VIEWPORT.sub("", context.get("metatags", "")), *tags])


def write_files(app, error):
    if error or app.builder.format != "html":
        return
    for name, size in ICONS.items():
        figure = Figure(figsize=(1, 1), dpi=size)
        figure.patch.set_alpha(0)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 84), ylim=(84, 0))
        axes.axis("off")
        draw_logo(axes, 0, 0)
        figure.savefig(Path(app.outdir, "_static", name))
    if not app.config.html_baseurl:
        return
    pages = [page for page in sorted(app.env.found_docs) if page in app.env.titles and page not in UNLISTED_PAGES]
    urls = "\n".join(f"<url><loc>{escape(address_of(app, page))}</loc></url>" for page in pages)
    Path(app.outdir, "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}\n</urlset>\n',
        "utf-8",
    )
    Path(app.outdir, "robots.txt").write_text(
        f"User-agent: *\nAllow: /\n\nSitemap: {app.config.html_baseurl}sitemap.xml\n", "utf-8"
    )


def setup(app):
    # The priority makes this handler run after the one that adds the tags of social cards, and after the 404 page's
    # handler, which changes addresses.
    app.connect("html-page-context", add_tags, priority=900)
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
