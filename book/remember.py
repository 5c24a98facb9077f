"""Collects the chapters' sentences to remember on one page."""

import re
from itertools import groupby

import nbformat

import notebooks
from book.api import chapter_sections

PAGE = "remember"
PLACEHOLDER = "<!-- remember -->"
QUOTE = re.compile(r"^> \*\*Remember:\*\* (.+(?:\n>.*)*)", re.MULTILINE)


def sentences():
    """Yield ``(number, link, sentence)`` for each sentence to remember, in the order of the course."""
    for number, link, text in chapter_sections():
        for quote in QUOTE.findall(text):
            sentence = re.sub(r"\n> ?", "\n", quote)
            yield number, link, sentence[0].upper() + sentence[1:]


def as_markdown():
    """Return the page's list: a heading for each chapter, and each sentence with a link to its section."""
    titles = {path.name: nbformat.read(path, 4).cells[0].source.split("\n")[0] for path in notebooks.chapters()}
    parts = []
    for chapter, group in groupby(sentences(), lambda sentence: sentence[1].partition("#")[0]):
        parts.append(f"#{titles[chapter]}")
        parts += [f"**[{number}]({link})** {sentence}" for number, link, sentence in group]
    return "\n\n".join(parts)


def write_sentences(app, docname, source):
    if docname == PAGE:
        source[0] = source[0].replace(PLACEHOLDER, as_markdown())


def setup(app):
    app.connect("source-read", write_sentences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
