"""A page says how large its figures are before it fetches them: photographs of plots, and drawings."""

import struct
import sys
from types import SimpleNamespace

import pytest

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
    figures.add_sizes(app, "page", "page.html", context, None)
    width, height = size
    assert context["body"].startswith(f'<img width="{width}" height="{height}" loading="lazy" alt="Words"')
