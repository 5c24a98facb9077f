"""Gives figures numbers, captions, links to the full-size pictures, and sizes, which prevent layout shifts.

A figure in a chapter has a number, as in *Figure 6.2*; its caption is the paragraph after the figure, if this paragraph
begins with the figure's number, or else the first sentence of the figure's description. Each figure is a link to its
picture, which `figures.js` opens over the page. A phone shows the panels of a wide figure one below the other.
"""

import re
from pathlib import Path
from urllib.parse import unquote

from PIL import Image
from sphinx.errors import ExtensionError

from book.stacked import stack

IMAGE = re.compile(r'<img (?=[^>]*src="[^"]*_images/(?P<name>[^"]+\.(?:png|svg))")(?![^>]*(?:width|height)=)')
DRAWING_SIZE = re.compile(rb'<svg [^>]*?width="(\d+)" height="(\d+)"')
FIGURE = re.compile(
    r'(?P<image><img [^>]*?src="(?P<source>[^"]*_images/[^"]+)"[^>]*>)'
    r"(?P<ends>(?:\s*</(?:div|details)>)*\s*)(?:<p><strong>(?P<caption>Figure \d+\.\d+)\.</strong>)?"
)
ALT = re.compile(r' alt="(?P<first_sentence>[^"]*?\.)(?: [^"]*)?"')
WIDTH = re.compile(r' width="(\d+)"')
PHONE = "(max-width: 576px)"
WIDE_FIGURE = 560  # pixels: in a wider figure, letters are too small to read on a phone
# A mention of a figure outside captions, tags and links.
MENTION = re.compile(r"(?<!<strong>)\bFigure (\d+\.\d+)\b(?![^<>]*>)(?![^<>]*</a>)")


def size_of(head):
    """Read a picture's width and height from the first bytes of its PNG or SVG file."""
    if size_match := DRAWING_SIZE.search(head):
        return int(size_match[1]), int(size_match[2])
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def number_figures(body, chapter=None, stack_panels=lambda source: None):
    """Return a page's HTML in which each figure links to its picture and, in chapters, has a number and a caption.

    ``stack_panels`` returns the address and the size of a picture with the same panels one below the other, or None.
    """
    count = 0

    def figure_link(image, source):
        width = WIDTH.search(image)
        if not width or int(width[1]) <= WIDE_FIGURE:
            return f'<a class="tl-enlarge" href="{source}">{image}</a>'
        if stacked_picture := stack_panels(source):
            address, (width, height) = stacked_picture
            source_for_phones = f'<source media="{PHONE}" srcset="{address}" width="{width}" height="{height}">'
            return f'<a class="tl-enlarge" href="{source}"><picture>{source_for_phones}{image}</picture></a>'
        return f'<a class="tl-enlarge tl-wide-figure" style="--width: {width[1]}px" href="{source}">{image}</a>'

    def number_figure(match):
        nonlocal count
        count += 1
        linked = figure_link(match["image"], match["source"])
        if not chapter:
            return linked + match[0][len(match["image"]) :]
        number = f"{chapter}.{count}"
        anchor = f"figure-{chapter}-{count}"
        name = f'<strong><a href="#{anchor}">Figure {number}.</a></strong>'
        if match["caption"]:
            if match["caption"] != f"Figure {number}":
                raise ExtensionError(f"the caption {match['caption']} belongs to the page's figure {number}")
            return f'{linked}{match["ends"]}<p class="tl-figure-caption" id="{anchor}">{name}'
        description = ALT.search(match["image"])
        caption = f" {description['first_sentence']}" if description else ""
        return f'{linked}<p class="tl-figure-caption" id="{anchor}">{name}{caption}</p>{match["ends"]}'

    body = FIGURE.sub(number_figure, body)
    numbers = {f"{chapter}.{k + 1}" for k in range(count)} if chapter else set()

    def link_mention(match):
        return f'<a href="#figure-{match[1].replace(".", "-")}">{match[0]}</a>' if match[1] in numbers else match[0]

    return MENTION.sub(link_mention, body)


def add_figures(app, pagename, templatename, context, doctree):
    sources = {name: source for source, name in app.builder.images.items()}

    def with_size(image):
        if source := sources.get(unquote(image["name"])):
            with Path(app.srcdir, source).open("rb") as file:
                width, height = size_of(file.read(400))
            return f'<img width="{width}" height="{height}" loading="lazy" '
        return image[0]

    def stack_panels(address):
        """Store a picture with stacked panels in a new file; return the file's address and the picture's size."""
        folder, _, name = unquote(address).rpartition("/")
        if not name.endswith(".png") or name not in sources:
            return None
        with Image.open(Path(app.srcdir, sources[name])) as image:
            stacked_image = stack(image)
        if stacked_image:
            path = Path(app.outdir, app.builder.imagedir, f"stacked-{name}")
            path.parent.mkdir(exist_ok=True)
            stacked_image.save(path, optimize=True)
        return stacked_image and (f"{folder}/{path.name}", stacked_image.size)

    if "body" in context:
        chapter = re.match(r"(\d\d)_", pagename)
        sized_body = IMAGE.sub(with_size, context["body"])
        context["body"] = number_figures(sized_body, int(chapter[1]) if chapter else None, stack_panels)


def setup(app):
    app.connect("html-page-context", add_figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
