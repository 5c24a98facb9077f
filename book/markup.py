"""Decides whether a selector can match an element of the book's pages, now or after a script has changed a page.

The answer is *no* only if no state of a page can match: pseudo-classes, attributes, and siblings are ignored, and a
class that a script sets may be on any element.
"""

import re
from functools import cache
from typing import NamedTuple

# The scripts of Bootstrap and of the theme contain the names of many classes and ids, but set only these on pages of
# this book.
CLASSES_OF_THE_THEME = {"bs-tooltip-auto", "collapse", "collapsing", "fade", "hide", "scrolled", "show"} | {
    f"tooltip{part}" for part in ("", "-arrow", "-inner")
}
SCRIPT_OF_THE_THEME = re.compile("bootstrap|theme|all.min")
ATTRIBUTE = re.compile(r'\b(?:class|id)="([^"]*)"')
TAG = re.compile(r"""<(/?)([a-zA-Z][\w-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|path|rect|circle|line")
NO_ELEMENTS = re.compile(r"<(script|style)\b[^>]*>.*?</\1>|<!--.*?-->", re.DOTALL)
# How a script adds an element: <b>, createElement("b"); and sets a class or an id: class="x", classList.add("x").
ADDED_TAG = re.compile(r"""<([a-z]\w*)|["'`]([a-z]\w*)["'`]""")
NAME_ASSIGNMENT = re.compile(r"\b(?:class(?:Name|List)?|id)\b[^;\n]{0,120}")
STRING = re.compile(r"""["'`]([^"'`\n]*)["'`]?""")
WORD = re.compile(r"[\w-]+")
NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
NESTED_SELECTOR = re.compile(r":[\w-]+\([^()]*\)")
COMBINATOR = re.compile(r"\s*([>+~])\s*|\s+")


class Element(NamedTuple):
    """What a selector without attributes can require of an element."""

    tag: str
    names: frozenset  # classes and ids


class Markup:
    """All elements of some pages with their ancestors, and the elements and names that some scripts can add.

    Args:
        pages: texts of HTML pages
        scripts: texts of the scripts that these pages load, except the theme's scripts
    """

    def __init__(self, pages, scripts=()):
        self.ancestors = {}  # for each element, the chains of elements around it, from the root
        scripts = list(scripts)
        for page in pages:
            scripts += [match[0] for match in NO_ELEMENTS.finditer(page)]
            for *outer, element in chains(page):
                self.ancestors.setdefault(element, set()).add(tuple(outer))
        self.added_tags = {tag for script in scripts for pair in ADDED_TAG.findall(script) for tag in pair}
        self.added_names = CLASSES_OF_THE_THEME.union(*map(names_set_by, scripts))
        self.matching = cache(self.matching)

    def matching(self, compound):
        """Return the elements that a selector without combinators matches, and whether a script may add one."""
        tag = (re.match(r"[a-z]\w*", compound) or [None])[0]
        names = {name.replace("\\", "") for name in NAME.findall(compound)}
        required_names = names - self.added_names  # names that a page must already contain
        matching_elements = {
            element for element in self.ancestors if tag in (None, element.tag) and required_names <= element.names
        }
        return matching_elements, not required_names and (tag in self.added_tags if tag else bool(names))

    def matches(self, selector):
        """Whether a selector can match an element."""
        parts = COMBINATOR.split(without_states(selector))
        compounds, combinators = parts[::2], parts[1::2]
        if not all(any(self.matching(compound)) for compound in compounds):
            return False
        # Compounds before + and ~ are ignored, because a chain contains ancestors but no siblings.
        *outer, last_compound = [
            compound for compound, after in zip(compounds, [*combinators, None]) if after not in ("+", "~")
        ]
        matching_elements, is_added = self.matching(last_compound)
        outer_matches = [elements for elements, may_be_added in map(self.matching, outer) if not may_be_added]
        return is_added or any(
            is_within(chain, outer_matches) for element in matching_elements for chain in self.ancestors[element]
        )


def chains(page):
    """Return the elements of a page, each as a tuple: its ancestors, from the root down, and the element itself."""
    found_chains, stack = set(), []
    for closes, tag, attributes in TAG.findall(NO_ELEMENTS.sub("", page)):
        if closes:
            while tag in [element.tag for element in stack] and stack.pop().tag != tag:
                pass
            continue
        names = (name for value in ATTRIBUTE.findall(attributes) for name in value.split())
        element = Element(tag, frozenset(names))
        found_chains.add((*stack, element))
        if not VOID.fullmatch(tag) and not attributes.endswith("/"):
            stack.append(element)
    return found_chains


def names_set_by(script):
    """Return the words that a script may set as a class or an id."""
    return {
        word for code in NAME_ASSIGNMENT.findall(script) for text in STRING.findall(code) for word in WORD.findall(text)
    }


def without_states(selector):
    """Return a selector without pseudo-classes, pseudo-elements and attributes: ``a:hover > [x]`` becomes ``a > *``."""
    while (shorter := NESTED_SELECTOR.sub("", selector)) != selector:
        selector = shorter
    selector = re.sub(r"\[[^\]]*\]|(?<!\\)::?[\w-]+", "", selector).strip()
    selector = re.sub(r"\s*([>+~])\s*", r"\1", selector)
    return re.sub(r"(?:^|(?<=[>+~]))(?=[>+~]|$)", "*", selector)


def is_within(chain, compounds):
    """Whether a chain contains an element of each set in ``compounds``, in the order of the sets."""
    elements = iter(chain)
    return all(any(element in matching_elements for element in elements) for matching_elements in compounds)
