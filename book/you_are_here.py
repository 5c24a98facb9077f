"""Draws a small Transformer at the top of each chapter; its parts are marked or link to their chapters.

The drawing is the same as in ``WholeLab``.
"""

import re
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.errors import ExtensionError

from book import running_example

DRAWING = Path(__file__).parents[1] / "transformer_lab" / "labs" / "whole.svg"
SVG = "{http://www.w3.org/2000/svg}"

# For each part of the drawing, its name and the chapter that teaches the part.
PARTS = {
    "tokens": ("tokens", "01_tensor_operations"),
    "linear": ("linear", "02_matmul_broadcasting"),
    "embedding": ("embedding", "03_attention_lookup"),
    "positions": ("positions", "03_attention_lookup"),
    "self_attention": ("self-attention", "03_attention_lookup"),
    "softmax": ("softmax", "03_attention_lookup"),
    "cross_attention": ("cross-attention", "04_multi_head"),
    "memory": ("from encoder to decoder", "04_multi_head"),
    "masked_attention": ("masked attention", "05_masks"),
    "add_norm": ("add and norm", "06_normalization"),
    "feed_forward": ("feed-forward", "06_normalization"),
}
# The words beside marked parts; each word appears once. Words for the decoder's own parts are placed in free space.
PART_LABELS = {
    "tokens": "tokens",
    "embedding": "embedding",
    "positions": "positions",
    "self_attention": "attention",
    "masked_attention": "masked",
    "add_norm": "add & norm",
    "feed_forward": "feed-forward",
    "linear": "linear",
    "softmax": "softmax",
}
MAX_MARKS = 4  # a phone lists the marked parts only if there are at most this many
LABEL_WIDTH = 190  # space for the words beside the drawing, which is 340 wide
ATTENTION = ("self_attention", "masked_attention", "cross_attention")
# The topic of each chapter, and what is marked in the drawing: a part by its name, an arrow by the last word of its
# name, or all arrows ("arrow").
PLACES = {
    "01_tensor_operations": ("the tensor on every arrow", ("tokens", "arrow")),
    "02_matmul_broadcasting": ("linear maps", ("linear",)),
    "03_attention_lookup": (
        "attention, and where word order comes in",
        ("embedding", "positions", *ATTENTION, "softmax"),
    ),
    "04_multi_head": ("multi-head attention", (*ATTENTION, "memory")),
    "05_masks": ("masks", ("masked_attention",)),
    "06_normalization": ("norms, residuals, and the whole block", ("add_norm", "residual", "feed_forward")),
    "07_parameters": ("what each part costs", tuple(PARTS)),
    "08_linear_attention": ("a different attention", ATTENTION),
    "09_today": ("the block of today", ("positions", *ATTENTION, "add_norm", "residual", "feed_forward")),
    "10_real_models": ("all of it, with the weights of real models", (*PARTS, "residual")),
    "11_right": ("all of it, tested", (*PARTS, "residual")),
}


def require_places(app, env, names):
    for name in names:
        if re.fullmatch(r"\d\d_\w+", name) and name not in PLACES:
            raise ExtensionError(f"{name} has no place in the Transformer: add a row to PLACES in book/you_are_here.py")
        if name in PLACES and name not in running_example.TENSORS:
            raise ExtensionError(f"{name} has no tensor: add a row to TENSORS in book/running_example.py")


def part_labels(drawing):
    """Return the words for the marked parts, each with a position in the drawing: ``(word, x, y, anchor)``."""
    marked = {}
    for group in drawing.iter(f"{SVG}g"):
        if group.get("class") == "here" and group.get("data-part") in PART_LABELS:
            marked.setdefault(group.get("data-part"), group)
    if "self_attention" in marked:
        marked.pop("masked_attention", None)  # the label *attention* is enough for both parts
    for part, group in marked.items():
        block = group.find(f"{SVG}rect")
        x, y, width, height = (float(block.get(name)) for name in ("x", "y", "width", "height"))
        middle = y + height / 2 + 10
        if part == "masked_attention":
            yield PART_LABELS[part], x + width + 34, middle, "start"
        else:
            yield PART_LABELS[part], x - 10 if part in ("linear", "softmax") else -8, middle, "end"


def draw(here, address, title):
    """Return the drawing for the chapter ``here``, as HTML.

    ``address`` and ``title`` return the address and title of a chapter. For keyboards and screen readers, the drawing
    has one link for each chapter, with the names of the chapter's parts.
    """
    topic, marked = PLACES[here]
    drawing = ElementTree.parse(DRAWING).getroot()
    drawing.attrib.pop("role")  # an element with role="img" must not contain links
    drawing.remove(drawing.find(f"{SVG}title"))
    drawing.set("class", f"{drawing.get('class')} small")
    linked_chapters = set()
    for parent in list(drawing.iter(f"{SVG}g")):
        for group in parent.findall(f"{SVG}g"):
            part, flow = group.get("data-part"), group.get("data-flow", "")
            if {part, flow and "arrow", flow.split(".")[-1]} & set(marked):
                group.set("class", "here")
            name, chapter = PARTS.get(part, ("", here))
            if chapter == here:
                continue
            names = ", ".join(other for other, other_chapter in PARTS.values() if other_chapter == chapter)
            link = ElementTree.Element(f"{SVG}a", {"href": address(chapter)})
            link.set("aria-label", f"{title(chapter)}: {names}")
            if chapter in linked_chapters:
                link.attrib |= {"tabindex": "-1", "aria-hidden": "true"}
            linked_chapters.add(chapter)
            ElementTree.SubElement(link, f"{SVG}title").text = f"{name.capitalize()}: chapter {title(chapter)}"
            parent[list(parent).index(group)] = link
            link.append(group)
    labels = list(part_labels(drawing))
    for word, x, y, anchor in labels:
        attributes = {"class": "word", "x": f"{x:g}", "y": f"{y:g}", "style": f"text-anchor: {anchor}"}
        ElementTree.SubElement(drawing, f"{SVG}text", attributes).text = word
    left, top, width, height = map(float, drawing.get("viewBox").split())
    if any(anchor == "end" for *_, anchor in labels):
        left -= LABEL_WIDTH
        drawing.set("class", f"{drawing.get('class')} words-first")
    drawing.set("viewBox", f"{left:g} {top:g} {width + LABEL_WIDTH:g} {height:g}")
    ElementTree.register_namespace("", SVG[1:-1])
    label = escape(f"Where you are in the Transformer: {topic}")
    picture = ElementTree.tostring(drawing, encoding="unicode")
    marked_words = escape(", ".join("masked attention" if word == "masked" else word for word, *_ in labels))
    text_html = f"<p>You are here: <b>{escape(topic)}</b></p>"
    if len(labels) <= MAX_MARKS:
        text_html += f"<p class='marks' aria-hidden='true'>Marked: {marked_words}</p>"
    text_html += running_example.link(here, address("index"))
    return f'<nav class="tl-here" aria-label="{label}">{picture}<div>{text_html}</div></nav>'


def insert_drawing(app, doctree, docname):
    if docname not in PLACES:
        return
    html = draw(
        docname,
        lambda chapter: app.builder.get_relative_uri(docname, chapter),
        lambda chapter: app.env.titles[chapter].astext(),
    )
    title = doctree.next_node(nodes.title)
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", html, format="html"))


def setup(app):
    app.connect("env-before-read-docs", require_places)
    app.connect("doctree-resolved", insert_drawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
