"""Pages load only those rules of the theme that at least one page uses, and look the same as with all rules."""

import re
import sys
from pathlib import Path

import pydata_sphinx_theme
import pytest
import sphinx_book_theme
from test_book import HTML, visit  # noqa: F401

from notebooks import ROOT
from sampling import sample

sys.path.append(str(ROOT))
from book.markup import Markup
from book.used_styles import keep_read_properties, keep_used_rules

STYLE_SHEET = """
@charset "utf-8";
:root { --x: 1; }
.a, .b:not(.c) > p { color: red; }
.c { color: blue; }
@media (min-width: 10px) { .c { color: green } .d\\:e::after { content: "} .c {"; } }
@media print { #c { color: green } }
@font-face { font-family: c; }
"""


def test_a_rule_stays_if_one_of_its_selectors_is_used():
    actual = keep_used_rules(STYLE_SHEET, Markup(['<i class="b"><p></p></i><b id="d:e">']).matches)
    expected = """@charset "utf-8";:root{ --x: 1; }.b:not(.c) > p{ color: red; }
    @media (min-width: 10px){.d\\:e::after{ content: "} .c {"; }}@font-face{ font-family: c; }"""
    assert re.sub(r"\s", "", actual) == re.sub(r"\s", "", expected)


PAGE = """<nav class="bar"><ul><li class="first"><a id="home">Home</a></li></ul></nav><img class="seen"><p class="x y">
<script>const none = '<em class="late">'; list.classList.toggle("open", 1); const name = "bar";</script>"""


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (".bar #home", True),
        ("#home .bar", False),  # the order of the chain matters
        ("ul.first", False),  # no element matches both parts
        ("li.first > a:hover", True),
        ("nav > ul > li::before", True),
        (".bar + .seen", True),  # siblings are ignored
        (".seen p", False),  # an image has no end tag and contains nothing
        ("p.x.y:not(.z)", True),
        ("p.x.z", False),
        (".bar.open a", True),  # a script sets this class on any element
        (".bar.none a", False),  # in the script, `none` is only a variable
        ("em", True),  # a script may add this element
        ("em.seen", False),
        ("strong", False),
        ("[data-theme=dark] > [hidden] a", True),
        (".scrolled .bar", True),  # set by the theme's scripts
    ],
)
def test_a_selector_matches_what_a_page_has_or_a_script_adds(selector, expected):
    assert Markup([PAGE]).matches(selector) is expected


def test_a_custom_property_stays_if_anything_reads_it():
    sheet = """:root { --a: var(--b, var(--c, var(--b, url("x;y)")))); --b: 1px; --c: 2; --d: 3 }
        @media (min-width: 10px) { .e { --f: 4; } }"""
    expected = """:root{--a:var(--b, var(--c, var(--b, url("x;y)"))));--b:1px;--c:2}"""
    other_texts = ".g { color: var( --a) } style.setProperty('--c', 5)"
    assert re.sub(r":\s", ":", keep_read_properties(sheet, other_texts)) == expected
    assert keep_read_properties(sheet, "") == ""


def test_theme_styles_have_at_most_58_kB():
    sheets = list(HTML.glob("_static/styles/*.css"))
    assert sum(path.stat().st_size for path in sheets) <= 58_000


# Return the complete computed style of each element.
COMPUTED_STYLES = """() => [...document.querySelectorAll('body, body *')]
    .filter((node) => !node.closest('script, .tl-lab, math')).map((node) => {
        const style = getComputedStyle(node);
        const all = [...style].filter((name) => !name.startsWith("--")).map((name) => style.getPropertyValue(name));
        return [node.tagName, node.className.baseVal ?? node.className, all.join()];
    })"""
PAGES = ["index.html", "02_matmul_broadcasting.html", "practice.html", "search.html", "api.html", "museum.html"]
PAGES_AND_WIDTHS = [(page, width) for page in PAGES for width in (1300, 360)]
SAMPLED_PAGES_AND_WIDTHS = [("index.html", 360), ("02_matmul_broadcasting.html", 1300), ("search.html", 1300)]


@pytest.mark.parametrize(("page", "width"), sample(PAGES_AND_WIDTHS, SAMPLED_PAGES_AND_WIDTHS))
def test_no_element_lacks_a_rule_of_the_theme(visit, page, width):  # noqa: F811
    """After all rules of the largest style sheets are put back in their places, every element looks as before."""
    tab = visit((HTML / page).as_uri(), viewport={"width": width, "height": 800}, reduced_motion="reduce")
    before = tab.evaluate(COMPUTED_STYLES)
    themes = [Path(theme.__file__).parent for theme in (pydata_sphinx_theme, sphinx_book_theme)]
    for name in ("bootstrap.css", "pydata-sphinx-theme.css", "sphinx-book-theme.css"):
        full_sheet = next(path for theme in themes for path in theme.rglob(name)).read_text("utf-8")
        tab.evaluate(
            """([name, whole]) => {
                const link = document.querySelector(`link[href*="/${name}"]`);
                link.replaceWith(Object.assign(document.createElement("style"), { textContent: whole }));
            }""",
            [name, full_sheet],
        )
    tab.wait_for_timeout(300)
    after = tab.evaluate(COMPUTED_STYLES)
    assert len(before) == len(after)
    changed_elements = [
        style_before[:2] for style_before, style_after in zip(before, after) if style_before != style_after
    ]
    assert changed_elements[:5] == []
