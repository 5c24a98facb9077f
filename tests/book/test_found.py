"""Tests of the metadata for browsers and search engines; the book may have an address or no address."""

import json
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib.image
import pytest

from notebooks import ROOT

sys.path.append(str(ROOT))
from book import found
from book.descriptions import FRONT_PAGE, TITLES_AND_DESCRIPTIONS

SITE = "https://someone.github.io/lab/"


def fake_app(folder, site):
    """Return a fake application with the parts of Sphinx that the extension uses."""
    names = ["index", "05_masks", "glossary", "record", "assignments/05_masks"]
    title = SimpleNamespace(astext=lambda: "A title")
    (folder / "_static").mkdir()
    return SimpleNamespace(
        outdir=folder,
        config=SimpleNamespace(html_baseurl=site, html_title="Transformer Lab", author="We", root_doc="index"),
        builder=SimpleNamespace(format="html", get_target_uri=lambda page: f"{page}.html"),
        env=SimpleNamespace(found_docs=set(names), titles=dict.fromkeys(names, title)),
    )


def page_context(app, page):
    context = {
        "metatags": '<meta name="viewport" content="width=device-width" />\n',
        "pathto": lambda name, _: f"../{name}",
    }
    found.add_tags(app, page, "page.html", context, page in app.env.titles)
    return context


def structured_data(app, page):
    (text,) = [part.split("</script>")[0] for part in page_context(app, page)["metatags"].split('ld+json">')[1:]]
    return json.loads(text)


def test_with_an_address_there_are_a_site_map_and_a_file_for_robots(tmp_path):
    found.write_files(fake_app(tmp_path, SITE), None)
    texts = [element.text for element in ElementTree.parse(tmp_path / "sitemap.xml").getroot().iter() if element.text]
    addresses = [text for text in texts if text.strip()]
    assert addresses == [f"{SITE}05_masks.html", f"{SITE}assignments/05_masks.html", f"{SITE}glossary.html", SITE]
    assert f"Sitemap: {SITE}sitemap.xml" in (tmp_path / "robots.txt").read_text("utf-8")


def test_without_an_address_no_file_and_no_page_names_one(tmp_path):
    app_without_address = fake_app(tmp_path, "")
    found.write_files(app_without_address, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_static"]
    for page in ("index", "05_masks", "search"):
        context = page_context(app_without_address, page)
        assert context["pageurl"] is None and "ld+json" not in context["metatags"]


def test_each_icon_has_its_size_and_clear_corners(tmp_path):
    found.write_files(fake_app(tmp_path, ""), None)
    for name, size in found.ICONS.items():
        picture = matplotlib.image.imread(tmp_path / "_static" / name)
        assert picture.shape == (size, size, 4)
        assert picture[0, 0, 3] < 0.5 < picture[size // 2, size // 2, 3]


def test_each_page_has_one_address_but_a_page_without_a_source_has_none(tmp_path):
    app_with_address = fake_app(tmp_path, SITE)
    assert page_context(app_with_address, "index")["pageurl"] == SITE
    assert page_context(app_with_address, "assignments/05_masks")["pageurl"] == f"{SITE}assignments/05_masks.html"
    assert page_context(app_with_address, "search")["pageurl"] is None
    assert "viewport" not in page_context(app_with_address, "index")["metatags"]  # the theme adds this tag itself


def test_the_course_and_its_chapters_have_structured_data(tmp_path):
    app_with_address = fake_app(tmp_path, SITE)
    course, chapter = structured_data(app_with_address, "index"), structured_data(app_with_address, "05_masks")
    assert (course["@type"], chapter["@type"]) == ("Course", "LearningResource")
    assert {"name", "description", "provider", "offers"} <= course.keys()
    assert course["hasCourseInstance"]["courseWorkload"].startswith("PT")
    assert {"@id": chapter["@id"]} in course["hasPart"] and chapter["isPartOf"]["@id"] == course["@id"]
    assert chapter["timeRequired"] == "PT126M"


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("index", "Transformer Lab: an interactive course on Transformers in PyTorch"),
        ("05_masks", "Attention masks: causal, padding and window — Transformer Lab, chapter 5"),
        ("assignments/05_masks", "A title — Transformer Lab"),
        ("search", "Search — Transformer Lab"),
    ],
)
def test_a_title_says_what_the_page_is(tmp_path, page, title):
    assert page_context(fake_app(tmp_path, ""), page)["tab_title"] == title


def test_no_two_pages_share_a_title_or_a_description():
    for texts in zip(*TITLES_AND_DESCRIPTIONS.values()):
        assert len(set(texts)) == len(texts)
    assert (
        all(len(description) <= 160 for _, description in TITLES_AND_DESCRIPTIONS.values())
        and FRONT_PAGE in TITLES_AND_DESCRIPTIONS
    )
