"""Pages at old addresses, opened from disk, lead to the new pages and sections, with or without scripts."""

import re
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup

from book.moved_pages import MOVED, write_pages
from notebooks import ROOT

NEW_PAGES = {name for new, sections in MOVED.values() for name in (new, *sections.values())}
each_page = pytest.mark.parametrize("old", MOVED)


@pytest.fixture
def built_folder(tmp_path):
    """Return a folder like that of a build, with pages at the old addresses and empty pages at the new addresses."""
    for name in NEW_PAGES:
        page = tmp_path / f"{name}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"<!DOCTYPE html><title>{name}</title>", "utf-8")
    titles = {name: SimpleNamespace(astext=lambda name=name: f"Title of {name}") for name in NEW_PAGES}
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), env=SimpleNamespace(titles=titles), outdir=tmp_path)
    write_pages(app, None)
    return tmp_path


def headings(name):
    cells = nbformat.read(ROOT / "chapters" / f"{name}.ipynb", 4).cells
    return re.findall(r"(?m)^## (.+)", "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown"))


def anchor(heading):
    """Return a section's anchor, without the section's number, which may change."""
    return re.sub(r"[^a-z]+", "-", re.sub(r"^[\d.]+ ", "", heading).lower()).strip("-")


@each_page
def test_the_new_pages_exist_and_the_old_ones_do_not(old):
    new, sections = MOVED[old]
    assert not (ROOT / "chapters" / f"{old}.ipynb").exists()
    for name in (new, *sections.values()):
        assert (ROOT / "chapters" / f"{name}.ipynb").exists()
    for section, name in sections.items():
        assert section in map(anchor, headings(name)) and section not in map(anchor, headings(new))


@each_page
def test_the_old_page_links_to_the_new_ones_by_their_titles(built_folder, old):
    new, sections = MOVED[old]
    page = BeautifulSoup((built_folder / f"{old}.html").read_text("utf-8"), "html.parser")
    links = {((built_folder / old).parent / link["href"]).resolve(): link.text for link in page.select("a")}
    assert links == {built_folder / f"{name}.html": f"Title of {name}" for name in (new, *sections.values())}


@pytest.mark.parametrize("scripts", [True, False])
@each_page
def test_an_old_address_leads_to_the_new_page(browser, built_folder, old, scripts):
    new, sections = MOVED[old]
    context = browser.new_context(java_script_enabled=scripts, offline=True)
    page = context.new_page()
    for section, name in {"": new, "find-the-mistake-mend-writing": new, **sections}.items():
        page.goto(f"{(built_folder / old).as_uri()}.html" + (f"#{section}" if section else ""))
        expected = f"{name}.html" + (f"#{section}" if section else "") if scripts else f"{new}.html"
        page.wait_for_url(f"{built_folder.as_uri()}/{expected}")
    context.close()


def test_a_failed_build_writes_no_page(tmp_path):
    write_pages(SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=tmp_path), ValueError())
    write_pages(SimpleNamespace(builder=SimpleNamespace(format="latex"), outdir=tmp_path), None)
    assert list(tmp_path.iterdir()) == []
