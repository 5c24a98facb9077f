"""book/mathematics.py converts TeX to MathML."""

import sys
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
from docutils import nodes

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # book/conf.py does the same: the book's extensions are not in the package

from book.mathematics import FormulaError, attach_punctuation, mathml, parts_of  # noqa: E402

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


def elements_of(tex):
    """Return the elements of a formula in order."""
    return list(xml.fromstring(mathml(tex))[0][0])


def texts_of(tex):
    return [element.text for element in elements_of(tex)]


@pytest.mark.parametrize("tex", [r"a < b \text{ & } c", r"\frac{QK^\top}{\sqrt{d_{head}}}"])
def test_a_formula_carries_its_tex(tex):
    formula = xml.fromstring(mathml(tex))
    assert formula.get("alttext") == formula.find(f".//{NAMESPACE}annotation").text == tex


@pytest.mark.parametrize(
    ("tex", "message"),
    [
        (r"x + \sofmax y", r"uses \sofmax, a command that"),
        (r"\mathbf{xy}", "letters in bold"),
        (r"\frac{1", "is incomplete"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "breaks a line outside an array"),
        (r"a^b^c", "cannot be read: double superscripts"),
        (r"\left( x", "cannot be read"),
        ("x \N{SNOWMAN} y", "uses \N{SNOWMAN}, which the font"),
    ],
)
def test_an_error_names_the_formula(tex, message):
    with pytest.raises(FormulaError) as error:
        mathml(tex)
    assert message in str(error.value) and tex in str(error.value)


def test_signs_have_the_space_of_tex():
    assert texts_of("2 - 1") == ["2", "−", "1"]
    assert elements_of("2 - 1")[1].get("lspace") is None  # the browser's default is right
    assert elements_of("-1")[0].get("rspace") == elements_of("a = -1")[2].get("rspace") == "0"
    assert elements_of("a/b")[1].get("lspace") == "0"
    (script,) = elements_of("x_{i - 1}")
    assert script.find(f".//{NAMESPACE}mo").get("lspace") == "0"


def test_a_functions_name_has_space_except_before_a_bracket():
    tags = [element.tag.removeprefix(NAMESPACE) for element in elements_of(r"2 \ln x")]
    assert tags == ["mn", "mspace", "mi", "mspace", "mi"]
    name, space, _ = elements_of(r"\max_l s_l")
    assert [part.text for part in name] == ["max", "l"] and space.tag == f"{NAMESPACE}mspace"
    assert [element.tag.removeprefix(NAMESPACE) for element in elements_of(r"\ln(x)")][:2] == ["mi", "mo"]


def test_dots_are_low_in_a_list_and_high_between_signs():
    assert "…" in texts_of(r"a, \dots, b")
    assert "⋯" in texts_of(r"a + \dots + b")


def test_a_negative_space_is_a_margin():
    space = elements_of(r"a\!b")[1]
    assert space.get("width") == "0" and space.get("style") == "margin-inline-start: -0.167em"


def test_a_formula_is_split_at_wide_spaces_outside_braces():
    assert parts_of(r"a = b, \qquad\qquad c \quad d") == ["a = b,", r"c \quad d"]
    for tex in (r"\text{a \qquad b}", r"\left( a \qquad b \right)", r"\begin{matrix} a \qquad b \end{matrix}"):
        assert parts_of(tex) == [tex]


def test_punctuation_stays_with_its_formula():
    """Punctuation after a formula moves from the text into the formula; punctuation elsewhere does not move."""
    followed, separate, last = (nodes.math("", "x") for _ in range(3))
    text, strong = nodes.Text("), then "), nodes.strong("", "far")
    paragraph = nodes.paragraph("", "", followed, text, separate, strong, nodes.Text(", "), last)
    attach_punctuation(None, paragraph, "page")
    assert [node.get("marks") for node in (followed, separate, last)] == ["),", None, None]
    assert paragraph.astext() == "x then xfar, x"
