"""Writes the text of a link's card: a section's title and first sentence, or a term's entry in the glossary.

The texts of all pages are in one small script, ``cards.js``, which hover.js loads when it shows the first card.
"""

import hashlib
import re
from itertools import pairwise
from pathlib import Path

from docutils import nodes

from book.descriptions import TITLES_AND_DESCRIPTIONS
from book.mentions import headings
from book.outline import as_json
from book.search_index import visible_text
from book.terms import GLOSSARY, entries

SHORT_SENTENCE = 40  # characters; a shorter first sentence is shown with the second one
MAX_ENTRY = 300  # characters of an entry, which contains only whole sentences
SENTENCE_END = re.compile(r"(?<!\bal)(?<!\bvs)[.?!:][”’)]*(?=\s+[^\sa-z]|$)")
# A paragraph that states how long a part takes or how hard the part is; no card shows such a paragraph.
SKIPPED_PARAGRAPH = re.compile(r"About \d+ minutes|[★☆]")
SECTION_LINKS = re.compile(r" \((?:\d+\.\d+(?:, )?)+\)")  # the sections that the glossary's entries link to


def sentences(text):
    """Split a text after each of its sentences."""
    ends = [0, *(match.end() for match in SENTENCE_END.finditer(text))]
    return [text[begin:end].strip() for begin, end in pairwise(ends)]


def paragraphs(section):
    texts = (" ".join(visible_text(node).split()) for node in section.children if isinstance(node, nodes.paragraph))
    return [text for text in texts if not SKIPPED_PARAGRAPH.match(text)]


def first_sentence(section):
    """Return a section's first sentence, or more sentences if it is short; a final colon becomes a full stop."""
    shown_text = ""
    for sentence in next((candidates for text in paragraphs(section) if (candidates := sentences(text))), []):
        shown_text = f"{shown_text} {sentence}".strip()
        if len(shown_text) >= SHORT_SENTENCE:
            break
    return re.sub(r":$", ".", shown_text)


def entry(section):
    """Return as many whole sentences of a glossary entry as fit on a card, without the entry's links to sections."""
    shown_text = ""
    for sentence in sentences(SECTION_LINKS.sub("", " ".join(paragraphs(section)))):
        if shown_text and len(f"{shown_text} {sentence}") > MAX_ENTRY:
            break
        shown_text = f"{shown_text} {sentence}".strip()
    return shown_text


def cards(env):
    """Return the title and text of each card, keyed by page and anchor."""
    by_page = {}
    for pages_and_anchors in headings(env).values():
        for page, anchor in pages_and_anchors:
            doctree = env.get_doctree(page)
            section = find_section(doctree, anchor)
            title = " ".join(visible_text(section.next_node(nodes.title)).split())
            text = (
                TITLES_AND_DESCRIPTIONS[page][1]
                if page in TITLES_AND_DESCRIPTIONS and not anchor
                else first_sentence(section)
            )
            by_page.setdefault(page, {})[anchor] = [title, text]
    for section in dict.fromkeys(entries(env).values()):
        title = section.next_node(nodes.title).astext()
        by_page.setdefault(GLOSSARY, {})[section["ids"][0]] = [title, entry(section)]
    return by_page


def find_section(doctree, anchor):
    return next(node for node in doctree.findall(nodes.section) if not anchor or anchor in node["ids"])


def write_cards(app, builder):
    if builder.format != "html":
        return
    by_address = {builder.get_target_uri(page): texts for page, texts in cards(app.env).items()}
    out = Path(app.outdir, "_static")
    out.mkdir(parents=True, exist_ok=True)
    script = f"const CARDS = {as_json(by_address)};\n"
    (out / "cards.js").write_text(script, "utf-8")
    # A new version has a new address, so that a browser does not use an old cached version.
    address = f"cards.js?v={hashlib.sha256(script.encode()).hexdigest()[:8]}"
    app.add_js_file("hover.js", defer="defer", **{"data-cards": address})


def setup(app):
    app.connect("write-started", write_cards)
    return {"parallel_read_safe": True}
