"""A mention of a section, a chapter, an assignment, an exercise or a note becomes a link to its heading.

The notebooks' text does not change. A mention with a word, such as *section 5.9* or *chapters 3 and 4*, must name
exactly one heading, or the build fails. A number without a word is a mention only in unambiguous forms such as
``(5.9)`` or *as in 5.9*, and only if a section has this number: other numbers may be measurements. A section of a
published paper is not a mention.
"""

import re
from dataclasses import dataclass
from functools import cache

from docutils import nodes
from sphinx.errors import ExtensionError

from book.prose import address, insert_nodes, link, sections_around, texts, title_of

# For each kind of heading, the pages that have such headings, and the form of the number in the heading.
HEADING_FORMS = (
    ("chapter", re.compile(r"\d\d_\w+"), re.compile(r"(\d+) · ")),
    ("section", re.compile(r"\d\d_\w+"), re.compile(r"(\d+\.\d+) ")),
    ("assignment", re.compile(r"assignments/\w+"), re.compile(r"Assignment (\d+) · ")),
    ("exercise", re.compile(r"assignments/\w+"), re.compile(r"(\d+\.\d+) ")),
    ("note", re.compile(r"notes"), re.compile(r"Note (\d{3}): ")),
)
NUMBER = r"(\d+(?:\.\d+)*)(?!\w|\.\d)"
NUMBER_WITH_WORD = re.compile(rf"(?i)\b(section|chapter|assignment|exercise|note)(s?)\s+{NUMBER}")
NEXT_NUMBER = re.compile(rf"(?:,?\s+(?:and|or|to)\s+|,\s+|–){NUMBER}")  # after a word in the plural
UNIT = r"(?!\s*(?:[%×·/]|per cent|times|[kMGT]i?B|[mµ]?s\b|seconds|minutes|hours|bits|bytes|[mb]illion|G?FLOP))"
NUMBER_IN_BRACKETS = re.compile(rf"(?<=\(){NUMBER}(?=\))")
NUMBER_AFTER_PHRASE = re.compile(
    r"\b(?:in|back\s+to|[Qq]uestion\s+\d+\s+of|(?:comparison|formula|functions|picture|story|tokens)\s+of)\s+"
    rf"{NUMBER}{UNIT}"
)
NUMBER_AFTER_AND = re.compile(rf"\s+and\s+{NUMBER}{UNIT}")
# Words before or after the number of a section that belongs to a different work.
CITATION_BEFORE = re.compile(r"\b(?:(?:19|20)\d\d[,:]|[Ii]ts|[Tt]heir)\s+$")
CITATION_AFTER = re.compile(r"\s+of\s+(?:its|their|the)\s+(?:paper|report)\b")


@dataclass(frozen=True)
class Mention:
    """A mention in a text: its start, its end, and what it names; a number without a word may be a measurement."""

    begin: int
    end: int
    word: str
    number: str
    is_certain: bool = True


def headings(env):
    """Return the headings that can be mentioned, as lists of (page, anchor) by word and number."""
    headings_by_number = {}
    for page in sorted(env.found_docs):
        forms = [(word, form) for word, pages, form in HEADING_FORMS if pages.fullmatch(page)]
        for section in env.get_doctree(page).findall(nodes.section) if forms else ():
            anchor = "" if isinstance(section.parent, nodes.document) else section["ids"][0]
            for word, form in forms:
                if match := form.match(title_of(section)):
                    headings_by_number.setdefault((word, match[1]), []).append((page, anchor))
    return headings_by_number


cached_headings = cache(headings)  # for each build


def mentions(text, in_references=False, is_section_cell=False):
    """Yield the mentions in a text; with ``in_references``, every mentioned section belongs to a paper."""
    if is_section_cell and re.fullmatch(NUMBER, text.strip()):
        begin = text.index(text.strip())
        yield Mention(begin, begin + len(text.strip()), "section", text.strip())
        return
    by_begin, cited_until = {}, -1
    for match in NUMBER_WITH_WORD.finditer(text):
        word, plural, _ = match.groups()
        numbers = [(match.start(), match.end(), match[3])]
        while plural and (after := NEXT_NUMBER.match(text, numbers[-1][1])) and same_depth(after[1], match[3]):
            numbers.append((after.start(1), after.end(), after[1]))
        begin, end = match.start(), numbers[-1][1]
        if word.lower() != "note" or len(match[3]) == 3:
            continues_citation = cited_until >= 0 and not re.search(r"[.?!]\s", text[cited_until:begin])
            is_in_references = in_references and word.lower() == "section" and not re.search(r"\bof\s+$", text[:begin])
            if continues_citation or is_in_references or is_citation(word, match[3], text[:begin], text[end:]):
                cited_until = end
            else:
                by_begin |= {b: Mention(b, e, word.lower(), number) for b, e, number in numbers}
    for form in (NUMBER_IN_BRACKETS, NUMBER_AFTER_PHRASE):
        for match in form.finditer(text):
            after = NUMBER_AFTER_AND.match(text, match.end()) if form is NUMBER_AFTER_PHRASE else None
            for number_match in filter(None, (match, after)):
                by_begin.setdefault(
                    number_match.start(1),
                    Mention(number_match.start(1), number_match.end(1), "section", number_match[1], is_certain=False),
                )
    yield from (by_begin[begin] for begin in sorted(by_begin))


def same_depth(number, other):
    return number.count(".") == other.count(".")


def is_citation(word, number, before, after):
    """Whether a mention names a part of a different work; sections of this course have two numbers."""
    other_form = word.lower() == "section" and number.count(".") != 1
    return other_form or bool(CITATION_BEFORE.search(before) or CITATION_AFTER.match(after))


def is_section_cell(text):
    """Whether a text is in a table column with the heading *section*."""
    entry = text.parent
    while entry and not isinstance(entry, nodes.entry):
        entry = entry.parent
    if not entry:
        return False
    row, table = entry.parent, entry.parent.parent.parent
    return any(head[0][row.index(entry)].astext() == "section" for head in table.findall(nodes.thead))


def targets(page, text, headings_by_number):
    """Yield each mention of a text with the heading that it names; raise an error unless it names exactly one."""
    in_references = any(title_of(section) == "References" for section in sections_around(text))
    for mention in mentions(str(text), in_references, is_section_cell(text)):
        named_headings = headings_by_number.get((mention.word, mention.number), [])
        if not named_headings and not mention.is_certain:
            continue
        if len(named_headings) != 1:
            words = " ".join(text[mention.begin : mention.end].split())
            names = (
                f"names {len(named_headings)} headings" if named_headings else f"names no {mention.word} of the course"
            )
            raise ExtensionError(f"{page}: the mention {words!r} {names}.")
        yield mention, named_headings[0]


def is_heading_of(text, page, heading):
    """Whether a heading is the heading of the section, or of the page, that contains a text."""
    target, anchor = heading
    section_ids = {name for section in sections_around(text) for name in section["ids"]}
    return page == target and (not anchor or anchor in section_ids)


def link_mentions(app, doctree, page):
    headings_by_number = cached_headings(app.env)
    for text in list(texts(doctree)):
        links = [
            (mention.begin, mention.end, link(text[mention.begin : mention.end], address(app, page, *heading)))
            for mention, heading in targets(page, text, headings_by_number)
            if not is_heading_of(text, page, heading)
        ]
        insert_nodes(text, links)


def setup(app):
    app.connect("doctree-resolved", link_mentions, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
