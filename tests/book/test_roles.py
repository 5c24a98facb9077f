"""Query, key and value each have a colour in sentences that name at least two of the three."""

import re

import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from book.mathematics import mathml
from book.roles import colour


def roles_of(*parts):
    """Return the coloured words of a paragraph, each with its role."""
    paragraph = nodes.paragraph("", "", *parts)
    colour(paragraph)
    return [
        (node.astext(), name.removeprefix("role-"))
        for node in paragraph.findall(nodes.Element)
        for name in node.get("classes", ())
        if name.startswith("role-")
    ]


def test_every_form_of_a_word_is_coloured_but_not_a_longer_word():
    words = roles_of(nodes.Text("A query, keys; Queries have values. Keyword arguments, valued."))
    assert words == [("query", "query"), ("keys", "key"), ("Queries", "query"), ("values", "value")]


def test_names_in_code_are_coloured_but_expressions_are_not():
    assert roles_of(nodes.literal("", "query"), nodes.literal("", "key.mT"), nodes.literal("", "V")) == [
        ("query", "query"),
        ("V", "value"),
    ]


def test_one_role_alone_is_not_coloured():
    assert roles_of(nodes.Text("The values of a tensor are its value.")) == []


def test_a_link_keeps_the_colour_of_links_unless_it_leads_to_a_term():
    key = nodes.reference("", "", nodes.Text("key"), refuri="#key")
    term = nodes.reference("", "", nodes.Text("value"), refuri="#value", classes=["term"])
    assert roles_of(nodes.Text("A query, its "), key, nodes.Text(" and "), term) == [
        ("query", "query"),
        ("value", "value"),
    ]


@pytest.mark.parametrize(
    ("tex", "roles"),
    [
        (r"QK^\top V", ["query", "key", "value"]),
        (r"\frac{q \cdot k}{\sqrt d}", ["query", "key"]),
        ("k + 1", []),
    ],
)
def test_letters_of_a_formula_have_the_colours_of_the_words(tex, roles):
    letters = BeautifulSoup(mathml(tex), "html.parser").find_all("mi", class_=re.compile("role-"))
    assert [letter["class"][0].removeprefix("role-") for letter in letters] == roles
