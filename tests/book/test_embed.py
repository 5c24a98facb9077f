"""One page, which is made for frames, can show any lab of the book without the book around it."""

import re

import pytest
from test_book import HTML, site, visit  # noqa: F401


@pytest.mark.parametrize("name", ["masks", "05_masks-1"])
def test_a_frame_has_one_lab_and_nothing_else(visit, site, name):  # noqa: F811
    page = visit(f"{site}embed.html?lab={name}", settle=None)
    page.locator("[data-lab=ready] .tl-masks").wait_for()
    assert page.locator(".tl-lab").count() == 1
    assert page.locator("main").inner_text().endswith("From Transformer Lab")
    assert page.get_by_role("link", name="Transformer Lab").get_attribute("href").startswith("0")


def test_a_frame_works_from_disk_and_says_what_is_missing(visit):  # noqa: F811
    page = visit(f"{(HTML / 'embed.html').as_uri()}?lab=lookup", settle=None)
    page.locator("[data-lab=ready] .tl-lookup").wait_for()
    page = visit((HTML / "embed.html").as_uri(), settle=None)
    assert page.locator("main").inner_text() == "The address names no lab."


def test_the_code_of_a_frame_has_the_state_of_its_lab(visit, site):  # noqa: F811
    page = visit(site + "03_attention_lookup.html", permissions=["clipboard-read", "clipboard-write"])
    lab = page.locator(".tl-lookup").nth(1)
    lab.get_by_label("Query", exact=True).fill("0.5, 1")
    lab.get_by_role("button", name="Copy embed code").click()
    code = page.evaluate("navigator.clipboard.readText()")
    source = re.fullmatch(
        r'<iframe src="([^"]+)" title=".+" width="100%" height="\d+" style="border: 0"></iframe>', code
    )
    assert source[1].startswith(f"{site}embed.html?lab=03_attention_lookup-2&amp;lookup.query=")
    frame_page = visit(source[1].replace("&amp;", "&"), settle=None)
    frame_page.locator("[data-lab=ready]").wait_for()
    assert frame_page.get_by_label("Query", exact=True).input_value() == "0.5, 1"
