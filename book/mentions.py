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

# For each kind of heading, the pages that have such headings, and the pattern of a heading's number.
HEADING_PATTERNS = (
    ("chapter", re.compile(r"\d\d_\w+"), re.compile(r"(\d+) · ")),
    ("section", re.compile(r"\d\d_\w+"), re.compile(r"(\d+\.\d+) ")),
    ("assignment", re.compile(r"assignments/\w+"), re.compile(r"Assignment (\d+) · ")),
    ("exercise", re.compile(r"assignments/\w+"), re.compile(r"(\d+\.\d+) ")),
    ("note", re.compile(r"notes"), re.compile(r"Note (\d{3}): ")),
)
NUMBER = r"(\d+(?:\.\d+)*)(?!\w|\.\d)"
NUMBER_WITH_WORD = re.compile(rf"(?i)\b(section|chapter|assignment|exercise|note)(s?)\s+{NUMBER}")
NEXT_NUMBER = re.compile(rf"(?:,?\s+(?:and|or|to)\s+|,\s+|–){NUMBER}")  # after a word in the plural
NOT_A_UNIT = r"(?!\s*(?:[%×·/]|per cent|times|[kMGT]i?B|[mµ]?s\b|seconds|minutes|hours|bits|bytes|[mb]illion|G?FLOP))"
NUMBER_IN_BRACKETS = re.compile(rf"(?<=\(){NUMBER}(?=\))")
NUMBER_AFTER_PHRASE = re.compile(
    r"\b(?:in|back\s+to|[Qq]uestion\s+\d+\s+of|(?:comparison|formula|functions|picture|story|tokens)\s+of)\s+"
    rf"{NUMBER}{NOT_A_UNIT}"
)
NUMBER_AFTER_AND = re.compile(rf"\s+and\s+{NUMBER}{NOT_A_UNIT}")
# Words that come before or after a section number if the section belongs to a work other than this course.
CITATION_BEFORE = re.compile(r"\b(?:(?:19|20)\d\d[,:]|[Ii]ts|[Tt]heir)\s+$")
CITATION_AFTER = re.compile(r"\s+of\s+(?:its|their|the)\s+(?:paper|report)\b")


@dataclass(frozen=True)
class Mention:
    """A mention in a text: its start, its end, and what it names.

    A number without a word is not certain to be a mention: it may be a measurement.
    """

    begin: int
    end: int
    kind: str
    number: str
    is_certain: bool = True


def headings(env):
    """Return the headings that can be mentioned: a dict from (kind, number) to a list of (page, anchor)."""
    headings_by_number = {}
    for page in sorted(env.found_docs):
        kinds_and_patterns = [(kind, pattern) for kind, pages, pattern in HEADING_PATTERNS if pages.fullmatch(page)]
        for section in env.get_doctree(page).findall(nodes.section) if kinds_and_patterns else ():
            anchor = "" if isinstance(section.parent, nodes.document) else section["ids"][0]
            for kind, pattern in kinds_and_patterns:
                if match := pattern.match(title_of(section)):
                    headings_by_number.setdefault((kind, match[1]), []).append((page, anchor))
    return headings_by_number


cached_headings = cache(headings)  # for each build


def mentions(text, in_references=False, in_section_column=False):
    """Yield the mentions in a text; with ``in_references``, every mentioned section belongs to a paper."""
    if in_section_column and re.fullmatch(NUMBER, text.strip()):
        begin = text.index(text.strip())
        yield Mention(begin, begin + len(text.strip()), "section", text.strip())
        return
    mentions_by_start, citation_end = {}, -1
    for match in NUMBER_WITH_WORD.finditer(text):
        kind, plural, _ = match.groups()
        numbers = [(match.start(), match.end(), match[3])]
        while (
            plural and (following := NEXT_NUMBER.match(text, numbers[-1][1])) and is_same_depth(following[1], match[3])
        ):
            numbers.append((following.start(1), following.end(), following[1]))
        begin, end = match.start(), numbers[-1][1]
        if kind.lower() != "note" or len(match[3]) == 3:
            continues_citation = citation_end >= 0 and not re.search(r"[.?!]\s", text[citation_end:begin])
            is_paper_section = in_references and kind.lower() == "section" and not re.search(r"\bof\s+$", text[:begin])
            if continues_citation or is_paper_section or is_citation(kind, match[3], text[:begin], text[end:]):
                citation_end = end
            else:
                mentions_by_start |= {b: Mention(b, e, kind.lower(), number) for b, e, number in numbers}
    for pattern in (NUMBER_IN_BRACKETS, NUMBER_AFTER_PHRASE):
        for match in pattern.finditer(text):
            following = NUMBER_AFTER_AND.match(text, match.end()) if pattern is NUMBER_AFTER_PHRASE else None
            for number_match in filter(None, (match, following)):
                mentions_by_start.setdefault(
                    number_match.start(1),
                    Mention(number_match.start(1), number_match.end(1), "section", number_match[1], is_certain=False),
                )
    yield from (mentions_by_start[begin] for begin in sorted(mentions_by_start))


def is_same_depth(number, other):
    return number.count(".") == other.count(".")


def is_citation(kind, number, before, after):
    """Whether a mention names a part of some other work."""
    # The number of a section of this course has one dot.
    has_foreign_number = kind.lower() == "section" and number.count(".") != 1
    return has_foreign_number or bool(CITATION_BEFORE.search(before) or CITATION_AFTER.match(after))


def is_in_section_column(text):
    """Whether a text is in a table column with the heading *section*."""
    entry = text.parent
    while entry and not isinstance(entry, nodes.entry):
        entry = entry.parent
    if not entry:
        return False
    row, table = entry.parent, entry.parent.parent.parent
    return any(head[0][row.index(entry)].astext() == "section" for head in table.findall(nodes.thead))


def resolved_mentions(page, text, headings_by_number):
    """Yield each mention in a text with the heading that it names; raise an error unless it names exactly one."""
    in_references = any(title_of(section) == "References" for section in sections_around(text))
    for mention in mentions(str(text), in_references, is_in_section_column(text)):
        named_headings = headings_by_number.get((mention.kind, mention.number), [])
        if not named_headings and not mention.is_certain:
            continue
        if len(named_headings) != 1:
            mention_text = " ".join(text[mention.begin : mention.end].split())
            problem = (
                f"names {len(named_headings)} headings" if named_headings else f"names no {mention.kind} of the course"
            )
            raise ExtensionError(f"{page}: the mention {mention_text!r} {problem}.")
        yield mention, named_headings[0]


def is_heading_of(text, page, heading):
    """Whether a text is in the section, or on the page, to which a heading belongs."""
    heading_page, anchor = heading
    section_ids = {name for section in sections_around(text) for name in section["ids"]}
    return page == heading_page and (not anchor or anchor in section_ids)


def link_mentions(app, doctree, page):
    headings_by_number = cached_headings(app.env)
    for text in list(texts(doctree)):
        links = [
            (mention.begin, mention.end, link(text[mention.begin : mention.end], address(app, page, *heading)))
            for mention, heading in resolved_mentions(page, text, headings_by_number)
            if not is_heading_of(text, page, heading)
        ]
        insert_nodes(text, links)


def setup(app):
    app.connect("doctree-resolved", link_mentions, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
