"""Adds, at the end of each chapter, a link to three practice questions that are drawn from all earlier chapters.

Readers thus practise the rules of earlier chapters again before they forget these rules.
"""

import re

from docutils import nodes

from transformer_lab import practice

PAGE = "practice"
CHECK_YOURSELF = re.compile(r"\d+\.\d+ Check yourself")


def link(number):
    """Return the text and the URL query of a chapter's link, or None if no earlier chapter has a practice."""
    earlier = [topic.chapter for topic in practice.topics().values() if topic.chapter < number]
    if not earlier:
        return None
    first, last = min(earlier), max(earlier)
    chapters = f"chapter {first}" if first == last else f"chapters {first} to {last}"
    return f"three questions from {chapters}", f"practice.choice=to{last}"


def add_link(app, doctree, docname):
    number = re.match(r"(\d\d)_", docname)
    text_and_query = number and link(int(number[1]))
    if not text_and_query:
        return
    link_text, query = text_and_query
    address = f"{app.builder.get_relative_uri(docname, PAGE)}?{query}"
    for section in doctree.findall(nodes.section):
        if CHECK_YOURSELF.fullmatch(section.next_node(nodes.title).astext()):
            label = nodes.strong("", "From earlier chapters.")
            practice_link = nodes.reference("", link_text, refuri=address, internal=True)
            texts = nodes.Text(" Answer "), nodes.Text(", before you forget what you learned there.")
            section += nodes.paragraph("", "", label, texts[0], practice_link, texts[1], classes=["tl-earlier"])


def setup(app):
    app.connect("doctree-resolved", add_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
