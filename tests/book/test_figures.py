"""A page says how large its figures are before it fetches them: photographs of plots, and drawings."""

import re
import struct
import sys
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

import transformer_lab as tl
from notebooks import ROOT

sys.path.append(str(ROOT))
from book import figures

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)


@pytest.mark.parametrize(
    ("name", "data", "size"),
    [
        ("plot.png", PNG, (640, 480)),
        ("drawing.svg", tl.drawings.paths().svg.encode(), (520, 584)),
    ],
)
def test_a_figure_says_how_large_it_is(name, data, size, tmp_path):
    (tmp_path / name).write_bytes(data)
    app = SimpleNamespace(srcdir=tmp_path, builder=SimpleNamespace(images={name: name}))
    context = {"body": f'<img alt="Words" src="../_images/{name}" />'}
    figures.add_figures(app, "page", "page.html", context, None)
    width, height = size
    assert f'<img width="{width}" height="{height}" loading="lazy" alt="Words"' in context["body"]


def test_figures_of_a_chapter_have_numbers_captions_and_links():
    image = '<img width="{}" alt="Four {}. Each has a row." src="_images/{}.png" />'
    own = "</div>\n</div>\n<p><strong>Figure 6.2.</strong> Two bars.</p>"
    between = "</div><p>See Figure 6.2 or Figure 3.1.</p>"
    body = f"{image.format(1059, 'tables', 'a')}{between}{image.format(400, 'bars', 'b')}{own}"
    page = figures.number_figures(body, 6)
    assert "<a" not in re.sub(r"<a [^>]*>(?:<img[^>]*>|[^<]*)</a>", "", page), "a link in a link"
    first, second = BeautifulSoup(page, "html.parser").select(".tl-caption")
    assert first["id"] == "figure-6-1" and first.text == "Figure 6.1. Four tables."
    assert second["id"] == "figure-6-2" and second.text == "Figure 6.2. Two bars."
    assert '<p>See <a href="#figure-6-2">Figure 6.2</a> or Figure 3.1.</p>' in page
    assert page.count('<a class="tl-enlarge tl-wide-figure" href="_images/a.png">') == 1
    assert page.count('<a class="tl-enlarge" href="_images/b.png">') == 1
    elsewhere = figures.number_figures(body)
    assert "tl-caption" not in elsewhere and elsewhere.count("tl-enlarge") == 2
