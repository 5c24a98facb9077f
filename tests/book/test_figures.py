"""A page states the size of every figure, whether a plot or a drawing, before it loads the figure."""

import re
import struct
import sys
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from PIL import Image, ImageDraw

import transformer_lab as tl
from notebooks import ROOT

sys.path.append(str(ROOT))
from book import figures
from book.stacked import stack

PNG_HEADER = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 520, 480)


@pytest.mark.parametrize(
    ("name", "data", "size"),
    [
        ("plot.png", PNG_HEADER, (520, 480)),
        ("drawing.svg", tl.drawings.paths().svg.encode(), (520, 584)),
    ],
)
def test_a_page_states_the_size_of_a_figure(name, data, size, tmp_path):
    (tmp_path / name).write_bytes(data)
    app = SimpleNamespace(srcdir=tmp_path, builder=SimpleNamespace(images={name: name}))
    context = {"body": f'<img alt="Words" src="../_images/{name}" />'}
    figures.add_figures(app, "page", "page.html", context, None)
    width, height = size
    assert f'<img width="{width}" height="{height}" loading="lazy" alt="Words"' in context["body"]


def test_figures_of_a_chapter_have_numbers_captions_and_links():
    image = '<img width="{}" alt="Four {}. Each has a row." src="_images/{}.png" />'
    caption = "</div>\n</div>\n<p><strong>Figure 6.2.</strong> Two bars.</p>"
    text_between = "</div><p>See Figure 6.2 or Figure 3.1.</p>"
    body = f"{image.format(1059, 'tables', 'a')}{text_between}{image.format(400, 'bars', 'b')}{caption}"
    page = figures.number_figures(body, 6)
    assert "<a" not in re.sub(r"<a [^>]*>(?:<img[^>]*>|[^<]*)</a>", "", page), "no link may contain a link"
    first, second = BeautifulSoup(page, "html.parser").select(".tl-figure-caption")
    assert first["id"] == "figure-6-1" and first.text == "Figure 6.1. Four tables."
    assert second["id"] == "figure-6-2" and second.text == "Figure 6.2. Two bars."
    assert '<p>See <a href="#figure-6-2">Figure 6.2</a> or Figure 3.1.</p>' in page
    assert page.count('<a class="tl-enlarge tl-wide-figure" style="--width: 1059px" href="_images/a.png">') == 1
    assert page.count('<a class="tl-enlarge" href="_images/b.png">') == 1
    unnumbered_page = figures.number_figures(body)
    assert "tl-figure-caption" not in unnumbered_page and unnumbered_page.count("tl-enlarge") == 2


def drawn_panels(size, *boxes):
    image = Image.new("RGB", size, "white")
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, fill="black")
    return image


def test_panels_are_stacked_row_by_row_each_with_its_labels():
    label, first, second, bar = (5, 40, 15, 60), (30, 10, 289, 90), (320, 10, 579, 90), (590, 10, 600, 90)
    stacked = stack(drawn_panels((610, 100), label, first, second, bar))
    assert stacked.size == (285, 174)  # the label and the first panel are the widest row
    assert stacked.getpixel((5, 40)) == (0, 0, 0) and stacked.getpixel((283, 130)) == (255, 255, 255)
    grid = stack(
        drawn_panels((600, 400), (0, 0, 280, 180), (310, 0, 599, 180), (0, 210, 280, 399), (310, 210, 599, 399))
    )
    assert grid.size == (290, 2 * 181 + 2 * 190 + 3 * 12)


def test_a_figure_with_one_panel_is_not_stacked():
    assert stack(drawn_panels((600, 300), (5, 100, 15, 200), (30, 10, 590, 260), (200, 280, 400, 290))) is None


def test_a_phone_gets_the_stacked_panels(tmp_path):
    drawn_panels((600, 300), (0, 0, 280, 299), (310, 0, 599, 299)).save(tmp_path / "two.png")
    drawn_panels((600, 300), (0, 0, 599, 299)).save(tmp_path / "one.png")
    images = {"two.png": "two.png", "one.png": "one.png"}
    app = SimpleNamespace(srcdir=tmp_path, outdir=tmp_path, builder=SimpleNamespace(images=images, imagedir="_images"))
    context = {"body": '<img alt="A." src="../_images/two.png" /><img alt="B." src="../_images/one.png" />'}
    figures.add_figures(app, "page", "page.html", context, None)
    (narrow_source,) = BeautifulSoup(context["body"], "html.parser").select("picture > source")
    assert (narrow_source["srcset"], narrow_source["width"], narrow_source["height"]) == (
        "../_images/stacked-two.png",
        "290",
        "612",
    )
    with Image.open(tmp_path / "_images" / "stacked-two.png") as image:
        assert image.size == (290, 612)
