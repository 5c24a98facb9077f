"""The first use of a term in each section becomes a link to the term's entry in the glossary.

A term is found in the singular and in the plural. Words that the prose also uses in their everyday meaning are left
out; *key* and *value* become links only if the sentence names two of query, key and value close together.
"""

import re
from functools import cache

from docutils import nodes

from book.prose import NODES_LEFT_OUT, address, insert_nodes, link, sections_around, texts, title_of
from book.roles import ROLE_WORD
from routes import EVERYDAY_TERMS

GLOSSARY = "glossary"
PAGES_WITHOUT_TERMS = {"index", GLOSSARY, "references", "api"}  # the front page and reference pages
SECTIONS_WITHOUT_TERMS = {"References"}
# The course uses *kernel* in three senses. *Position*, *state* and *view* usually have their everyday meanings.
AMBIGUOUS_TERMS = EVERYDAY_TERMS | {"kernel", "position", "state", "view"}
TERMS_NEAR_ROLES = {"key", "value"}
NEAR_DISTANCE = 30  # characters
# A term does not begin or end within a word, or at a dash as in key–value or self-attention.
WORD_CHARACTER = r"[\w–-]"


def entries(env):
    """Return the glossary's terms, each with its entry's section."""
    sections = env.get_doctree(GLOSSARY).findall(nodes.section)
    term_sections = [section for section in sections if title_of(section.parent) == "Terms"]
    return {term: section for section in term_sections for term in title_of(section).split(", ")}


def pattern(term):
    """Return a regular expression for a term's singular and plural; capitals matter only in names such as MoE."""
    word = re.escape(term).replace(r"\ ", r"\s+")
    if re.search(r"[^aeiou]y$", term):
        word = f"{word[:-1]}(?:y|ies)"
    else:
        word += "(?:es)?" if term[-1] in "sx" else "s?"
    return f"(?i:{word})" if term.islower() else word


class Terms:
    """The terms of the glossary, each with the anchor of its entry, and a regular expression that finds all terms."""

    def __init__(self, anchors):
        self.anchors = {term: anchor for term, anchor in anchors.items() if term not in AMBIGUOUS_TERMS}
        self.names = sorted(self.anchors, key=len, reverse=True)  # *linear attention* before *attention*
        any_term = "|".join(f"({pattern(name)})" for name in self.names)
        self.regex = re.compile(rf"(?<!{WORD_CHARACTER})(?:{any_term})(?!{WORD_CHARACTER})")

    def first_uses(self, text, used):
        """Yield start, end and anchor of each term in a text, except terms in ``used``, and add the term to
        ``used``."""
        for match in self.regex.finditer(text):
            term = self.names[match.lastindex - 1]
            if term not in used and (term not in TERMS_NEAR_ROLES or is_near_role(text, *match.span())):
                used.add(term)
                yield match.start(), match.end(), self.anchors[term]


def is_near_role(text, begin, end):
    """Whether query, key or value occurs shortly before or after a term, in the same sentence."""
    nearby = (
        re.split(r"[.?!]\s", text[max(0, begin - NEAR_DISTANCE) : begin])[-1],
        re.split(r"[.?!]\s", text[end : end + NEAR_DISTANCE])[0],
    )
    return any(map(ROLE_WORD.search, nearby))


@cache  # for each build
def terms(env):
    return Terms({term: section["ids"][0] for term, section in entries(env).items()})


def section_of(text):
    """Return the section that contains a text, or the page's top section; None for a text before the title."""
    sections = sections_around(text)
    return sections[-2] if len(sections) > 1 else next(iter(sections), None)


def link_terms(app, doctree, page):
    if page in PAGES_WITHOUT_TERMS:
        return
    used = {}
    for text in list(texts(doctree, (*NODES_LEFT_OUT, nodes.thead))):
        section = section_of(text)
        if section and title_of(section) not in SECTIONS_WITHOUT_TERMS:
            uses = terms(app.env).first_uses(str(text), used.setdefault(section["ids"][0], set()))
            links = [
                (begin, end, link(text[begin:end], address(app, page, GLOSSARY, anchor), classes=["term"]))
                for begin, end, anchor in uses
            ]
            insert_nodes(text, links)


def setup(app):
    app.connect("doctree-resolved", link_terms, priority=700)  # after mentions and their links
    return {"parallel_read_safe": True, "parallel_write_safe": True}
