"""Reduces the theme's icon font to the icons that pages show: a few kilobytes instead of 260.

The icons are from Font Awesome Free (https://fontawesome.com/license/free), a font under the SIL OFL 1.1.
"""

import io
import re
from base64 import b64encode
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from fontTools.ttLib import TTFont

THEME_FOLDER = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
# The icons of the pages' buttons. The icons that the theme's styles use are read from the styles.
ICON_NAMES = (
    "angle-left",
    "angle-right",
    "arrow-up",
    "bars",
    "circle-half-stroke",
    "download",
    "list",
    "magnifying-glass",
    "moon",
    "print",
    "sun",
    "xmark",
)
STYLE = """
@font-face {{ font-family: "Font Awesome 6 Free"; font-weight: 900; src: url("data:font/woff;base64,{font}") format("woff"); }}
:root {{ --fa-font-solid: normal 900 1em/1 "Font Awesome 6 Free"; }}
.fa-solid, .fas {{ display: inline-block; font: var(--fa-font-solid); text-rendering: auto; -webkit-font-smoothing: antialiased; }}
.fa-lg {{ font-size: 1.25em; line-height: 0.05em; vertical-align: -0.075em; }}
"""  # noqa: E501


def code_point(font_awesome_css, name):
    """Return the code point of an icon in Font Awesome's style sheet."""
    return int(re.search(rf"\.fa-{name}:before[^{{}}]*{{content:\"\\([0-9a-f]+)\"}}", font_awesome_css)[1], 16)


def subset_font(font, code_points):
    """Return the font with only the glyphs of ``code_points``, as WOFF."""
    options = subset.Options(flavor="woff", hinting=False)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=code_points)
    cutter.subset(font)
    font.flavor, out = "woff", io.BytesIO()
    font.save(out)
    return out.getvalue()


def write_icons(app):
    if app.builder.format != "html":
        return
    (folder,) = (THEME_FOLDER / "vendor" / "fontawesome").iterdir()
    font_awesome_css = (folder / "css" / "all.min.css").read_text("utf-8")
    theme_css = (THEME_FOLDER / "styles" / "pydata-sphinx-theme.css").read_text("utf-8")
    code_point_of = {name: code_point(font_awesome_css, name) for name in ICON_NAMES}
    code_points = {*code_point_of.values(), *(ord(character) for character in re.findall("[\ue000-\uf8ff]", theme_css))}
    font = b64encode(subset_font(TTFont(folder / "webfonts" / "fa-solid-900.ttf"), code_points)).decode()
    rules = [f'.fa-{name}::before {{ content: "\\{number:x}"; }}\n' for name, number in code_point_of.items()]
    out = Path(app.outdir, "_static")
    out.mkdir(parents=True, exist_ok=True)
    (out / "icons.css").write_text(STYLE.format(font=font) + "".join(rules), "utf-8")


def setup(app):
    app.connect("builder-inited", write_icons)
    return {"parallel_read_safe": True}
