"""Colours query, key and value in each paragraph or formula that names at least two of them.

A single role needs no distinction, and *value* alone usually means a number. The colours are in ``style.css``, and for
labs in ``lab.css``.
"""

import re

from docutils import nodes

from book.prose import NODES_LEFT_OUT, insert_nodes, texts

COLOURED_PAGES = re.compile(r"\d\d_\w+|glossary")
ROLES = {"query": ("query", "queries", "q"), "key": ("key", "keys", "k"), "value": ("value", "values", "v")}
ROLE_OF_WORD = {word: role for role, words in ROLES.items() for word in words}
ROLE_WORD = re.compile(r"(?i)\b(?:quer(?:y|ies)|keys?|values?)\b")
UNCOLOURED_NODES = tuple(kind for kind in NODES_LEFT_OUT if kind is not nodes.reference)


def role_of(word):
    """Return the role that a word or a formula's letter names, or None if it names no role."""
    return ROLE_OF_WORD.get(word.lower())


def colour_prose(app, doctree, page):
    if COLOURED_PAGES.fullmatch(page):
        for paragraph in doctree.findall(nodes.paragraph):
            colour(paragraph)


def colour(paragraph):
    codes = [code for code in paragraph.findall(nodes.literal) if role_of(code.astext())]
    words = ROLE_WORD.findall(paragraph.astext()) + [code.astext() for code in codes]
    if len(set(map(role_of, words))) < 2:
        return
    for text in list(texts(paragraph, UNCOLOURED_NODES)):
        link = text.parent if isinstance(text.parent, nodes.reference) else None
        if link is None or "term" in link["classes"]:
            insert_nodes(text, [(*match.span(), coloured_word(match[0])) for match in ROLE_WORD.finditer(text)])
    for code in codes:
        code["classes"].append(f"role-{role_of(code.astext())}")


def coloured_word(word):
    return nodes.inline("", word, classes=[f"role-{role_of(word)}"])


def colour_formula(root):
    """Give each letter of a MathML formula the class of its role, if the formula names at least two roles."""
    letters = [element for element in root.iter("mi") if role_of(element.text or "")]
    if len({role_of(letter.text) for letter in letters}) > 1:
        for letter in letters:
            letter.set("class", f"role-{role_of(letter.text)}")


def setup(app):
    app.connect("doctree-resolved", colour_prose, priority=710)  # after links to terms
    return {"parallel_read_safe": True, "parallel_write_safe": True}
