"""Test which words become links to headings and to the glossary, and what the cards of these links say."""

import sys
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx.errors import ExtensionError

from notebooks import ROOT

sys.path.append(str(ROOT))
from book import cards, mentions, terms

texts_with_mentions = pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Section 5.9 works it out.", [("Section 5.9", "section", "5.9")]),
        ("see section\n5.10.", [("section\n5.10", "section", "5.10")]),
        ("(Sections 3.2 and 3.5)", [("Sections 3.2", "section", "3.2"), ("3.5", "section", "3.5")]),
        (
            "needs: chapters 1 to 3, and 5 for",
            [("chapters 1", "chapter", "1"), ("3", "chapter", "3"), ("5", "chapter", "5")],
        ),
        ("in section 7.1, 192 weights", [("section 7.1", "section", "7.1")]),
        ("exercise 9.1 of assignment 9", [("exercise 9.1", "exercise", "9.1"), ("assignment 9", "assignment", "9")]),
        ("Notes 002 and 004 say so.", [("Notes 002", "note", "002"), ("004", "note", "004")]),
        ("a norm (9.1)", [("9.1", "section", "9.1")]),
        ("The functions in 4.2 and 4.3 multiply", [("4.2", "section", "4.2"), ("4.3", "section", "4.3")]),
        ("question 5 of 4.15 comes back to 4.10.", [("4.15", "section", "4.15"), ("4.10", "section", "4.10")]),
    ],
)
texts_without_mentions = pytest.mark.parametrize(
    "text",
    [
        "a weight of 0.95, in PyTorch 2.4, with Python 3.10",
        "the vector (1.5, 0.5) has the mean 2.5",
        "it ran in 2.5 seconds, in 3.2 GB and in 1.3 million steps",
        "Attention Is All You Need, 2017, sections 3.4, 3.5 and 5.4",
        "2017, section 3 and figure 1; section 3.4 for the shared matrix",
        "a different curve (its section 5.3), and section 2.1 of its paper",
        "the authors (2022, section 2), and an upper limit (section 3.4.3)",
        "a note 4 bars long, and the subsection 4.2",
    ],
)


@texts_with_mentions
def test_a_mention_is_found_with_its_words(text, expected):
    actual = [(text[mention.begin : mention.end], mention.kind, mention.number) for mention in mentions.mentions(text)]
    assert actual == expected


@texts_without_mentions
def test_possible_measurements_and_sections_of_papers_are_not_mentions(text):
    assert list(mentions.mentions(text)) == []


def test_in_a_list_of_papers_only_a_section_after_of_is_a_section_of_the_course():
    text = "2019: small BERTs, among them the one of section 7.14; table 1, section 3.4"
    assert [mention.number for mention in mentions.mentions(text, in_references=True)] == ["7.14"]


# In a page


def section(title, anchor, *children):
    return nodes.section("", nodes.title("", title), *children, ids=[anchor])


def document(*children):
    return nodes.document(None, None, "", *children)


def page_of(*children):
    """Return a chapter with two sections, the first of which contains ``children``."""
    top = section("5 · Masks", "masks", section("5.1 One", "one", *children), section("5.2 Two", "two"))
    return document(top)


class Environment:
    def __init__(self, pages):
        self.found_docs, self.get_doctree = set(pages), pages.__getitem__


def app_of(**pages):
    """Return a fake application with the parts of Sphinx that an extension uses: pages and their addresses."""
    builder = SimpleNamespace(get_relative_uri=lambda _, target: f"{target}.html")
    return SimpleNamespace(env=Environment(pages), builder=builder)


def links(doctree):
    return [(node.astext(), node["refuri"]) for node in doctree.findall(nodes.reference)]


def test_a_mention_leads_to_its_heading_but_not_from_its_own_section():
    text = nodes.paragraph("", "See section 5.2, section 5.1, chapter 5 and (5.2), and 5.2 of anything.")
    doctree = page_of(text, nodes.literal_block("", "section 5.2"), nodes.paragraph("", "", nodes.literal("", "5.2")))
    mentions.link_mentions(app_of(**{"05_masks": doctree}), doctree, "05_masks")
    assert links(doctree) == [("section 5.2", "#two"), ("5.2", "#two")]
    assert text.astext() == "See section 5.2, section 5.1, chapter 5 and (5.2), and 5.2 of anything."


def test_a_mention_of_a_different_page_leads_to_that_page():
    doctree = section("How", "how", nodes.paragraph("", "Chapter 5 begins with section 5.1."))
    mentions.link_mentions(app_of(**{"05_masks": page_of()}), document(doctree), "how")
    assert links(doctree) == [("Chapter 5", "05_masks.html"), ("section 5.1", "05_masks.html#one")]


def table(head, cell):
    rows = [nodes.row("", nodes.entry("", nodes.paragraph("", text))) for text in (head, cell)]
    return nodes.table("", nodes.tgroup("", nodes.thead("", rows[0]), nodes.tbody("", rows[1])))


@pytest.mark.parametrize(("head", "expected_links"), [("section", [("5.2", "#two")]), ("milliseconds", [])])
def test_a_number_in_a_table_is_a_mention_only_in_a_column_of_sections(head, expected_links):
    doctree = page_of(table(head, "5.2"))
    mentions.link_mentions(app_of(**{"05_masks": doctree}), doctree, "05_masks")
    assert links(doctree) == expected_links


@pytest.mark.parametrize(
    ("children", "message"),
    [
        (
            [nodes.paragraph("", "See section 5.99.")],
            "05_masks: the mention 'section 5.99' names no section of the course.",
        ),
        ([nodes.paragraph("", "See chapter 6.")], "05_masks: the mention 'chapter 6' names no chapter of the course."),
        ([table("section", "5.77")], "05_masks: the mention '5.77' names no section of the course."),
        (
            [nodes.paragraph("", "See section 5.1."), section("5.1 Again", "again")],
            "05_masks: the mention 'section 5.1' names 2 headings.",
        ),
    ],
)
def test_a_dead_or_ambiguous_mention_fails_the_build_with_a_sentence(children, message):
    doctree = page_of(*children)
    with pytest.raises(ExtensionError) as error:
        mentions.link_mentions(app_of(**{"05_masks": doctree}), doctree, "05_masks")
    assert str(error.value) == message


def test_a_number_alone_that_names_no_section_is_a_measurement():
    doctree = page_of(nodes.paragraph("", "The loss (5.77) falls."))
    mentions.link_mentions(app_of(**{"05_masks": doctree}), doctree, "05_masks")
    assert links(doctree) == []


# Terms

GLOSSARY = document(
    section(
        "Glossary",
        "glossary",
        section(
            "Terms",
            "terms",
            section("attention", "attention", nodes.paragraph("", "A weighted mean (3.2). It has no weights.")),
            section("attention weights", "attention-weights"),
            section("key", "key"),
            section("memory", "memory"),
            section("MoE", "moe"),
            section("query", "query"),
            section("RoPE, rotary positions", "rope"),
        ),
    ),
)


def terms_in(text):
    uses = terms.terms(app_of(glossary=GLOSSARY).env).first_uses(text, set())
    return [(text[begin:end], anchor) for begin, end, anchor in uses]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Attention, and attention again", [("Attention", "attention")]),
        (
            "Attention weights are not attention",
            [("Attention weights", "attention-weights"), ("attention", "attention")],
        ),
        ("queries and keys", [("queries", "query"), ("keys", "key")]),
        ("with the arrow keys", []),
        ("self-attention, key–value, keyboards", []),
        ("an MoE, not a moe", [("MoE", "moe")]),
        ("rotary\npositions", [("rotary\npositions", "rope")]),
        ("in memory", []),
    ],
)
def test_a_term_is_found_once_in_singular_or_plural_and_not_within_words(text, expected):
    assert terms_in(text) == expected


def test_each_section_links_its_first_use_of_a_term_and_headings_have_no_links():
    doctree = page_of(
        nodes.paragraph("", "Attention and attention."), section("Attention", "a", nodes.paragraph("", "attention"))
    )
    doctree.children[0][2] += nodes.paragraph("", "More attention.")
    terms.link_terms(app_of(glossary=GLOSSARY), doctree, "05_masks")
    assert links(doctree) == [("Attention", "glossary.html#attention"), ("attention", "glossary.html#attention")]


# Cards


def test_a_card_has_the_title_and_the_first_sentence_or_the_entry():
    first = nodes.paragraph("", "Jain et al. found that a mask of 0 and −∞ hides keys. Nothing else does.")
    pages = {"05_masks": page_of(nodes.paragraph("", "About 5 minutes"), first), "glossary": GLOSSARY}
    cards_by_page = cards.cards(app_of(**pages).env)
    assert cards_by_page["05_masks"]["one"] == ["5.1 One", "Jain et al. found that a mask of 0 and −∞ hides keys."]
    assert cards_by_page["05_masks"]["two"] == ["5.2 Two", ""]
    assert cards_by_page["05_masks"][""][0] == "5 · Masks" and cards_by_page["05_masks"][""][1].startswith(
        "Masks (causal, padding"
    )
    assert cards_by_page["glossary"]["attention"] == ["attention", "A weighted mean. It has no weights."]


def test_a_card_has_only_whole_sentences_up_to_a_limit():
    entry = section("term", "term", nodes.paragraph("", " ".join(["A sentence of thirty letters."] * 40)))
    assert cards.entry(entry).endswith("letters.") and len(cards.entry(entry)) <= cards.MAX_ENTRY
