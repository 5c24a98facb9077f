"""Fonts for browser tests; every machine uses the same fonts.

A reader's font may be wider or narrower than ours. Pages are tested with three families: DejaVu Sans, the widest common
family; a family as wide as Helvetica and Arial; and a narrow family. matplotlib contains DejaVu Sans, and tables of the
widths of the other two families, which are made by squeezing DejaVu Sans to these widths.
"""

from shutil import copy
from xml.etree import ElementTree as xml

from fontTools import subset
from fontTools.afmLib import AFM
from fontTools.ttLib import TTFont
from matplotlib import get_data_path

# The tables of widths of each family, regular and bold; None for DejaVu Sans, which keeps its own widths.
FAMILIES = {"wide": None, "usual": ("phvr8a", "phvb8a"), "narrow": ("phvr8an", "phvb8an")}
# Families that pages request. They are mapped to the family under test, or to DejaVu Sans Mono.
SANS = (
    "sans-serif",
    "sans",
    "system-ui",
    "ui-sans-serif",
    "Arial",
    "Helvetica",
    "Helvetica Neue",
    "Liberation Sans",
    "serif",
    "Times New Roman",
)
MONO = ("monospace", "ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Monaco", "Liberation Mono", "Courier New")
LETTERS = [*range(0x20, 0x100), *range(0x391, 0x3CA), *range(0x2010, 0x20A0), *range(0x2190, 0x2270), *map(ord, "ᵀ␣✗")]
LAYOUT = ("GPOS", "GSUB", "GDEF", "kern", "MATH", "FFTM")
EM = 2048  # units per em of DejaVu
HEIGHTS = {"ascent": 1854, "descent": -434, "lineGap": 67}  # the heights of Arial


def install(family, place):
    """Install a family in an empty folder; return the path of fontconfig settings that make it the only family."""
    shipped = f"{get_data_path()}/fonts"
    for kind in ("Mono", "Mono-Bold"):
        copy(f"{shipped}/ttf/DejaVuSans{kind}.ttf", place)
    for i, style in enumerate(("", "-Bold")):
        letters, widths = f"{shipped}/ttf/DejaVuSans{style}.ttf", FAMILIES[family]
        if widths is None:
            copy(letters, place)
        else:
            squeeze(letters, AFM(f"{shipped}/afm/{widths[i]}.afm"), f"Squeezed{style}").save(
                place / f"Squeezed{style}.ttf"
            )
    return _settings(place, "DejaVu Sans" if FAMILIES[family] is None else "Squeezed")


def squeeze(file, widths, name):
    """Return the font in this file, scaled to these widths; glyphs without a width are scaled by the mean ratio."""
    font = TTFont(file)
    for table in {*LAYOUT} & {*font.keys()}:
        del font[table]
    subsetter = subset.Subsetter(subset.Options(hinting=False, glyph_names=True))
    subsetter.populate(unicodes=LETTERS)
    subsetter.subset(font)
    glyphs, advances = font["glyf"], font["hmtx"].metrics
    new = {letter: round(widths[letter][1] * EM / 1000) for letter in widths.chars() if letter in advances}
    usual = sum(new.values()) / sum(advances[letter][0] for letter in new)
    for letter in font.getGlyphOrder():
        old = advances[letter][0]
        advance = new.get(letter, round(old * usual))
        _scale(glyphs[letter], advance / old if old else usual)
        advances[letter] = (advance, 0)
    for letter in font.getGlyphOrder():
        glyphs[letter].recalcBounds(glyphs)
        advances[letter] = (advances[letter][0], getattr(glyphs[letter], "xMin", 0))
    for key, value in HEIGHTS.items():
        setattr(font["hhea"], key, value)
    font["OS/2"].usWinAscent, font["OS/2"].usWinDescent = HEIGHTS["ascent"], -HEIGHTS["descent"]
    family, _, style = name.partition("-")
    for entry in font["name"].names:
        entry.string = {1: family, 2: style or "Regular", 4: name, 6: name, 16: family, 17: style or "Regular"}.get(
            entry.nameID, ""
        )
    return font


def _scale(glyph, factor):
    if glyph.isComposite():
        for part in glyph.components:
            part.x = round(part.x * factor)
    elif glyph.numberOfContours > 0:
        glyph.coordinates.scale((factor, 1))
        glyph.coordinates.toInt()


def _settings(place, family):
    root = xml.Element("fontconfig")
    xml.SubElement(root, "dir").text = str(place)
    xml.SubElement(root, "cachedir").text = str(place / "cache")
    answers = dict.fromkeys(SANS, family) | dict.fromkeys(MONO, "DejaVu Sans Mono")
    for font, given in answers.items():
        match = xml.SubElement(root, "match", target="pattern")
        xml.SubElement(xml.SubElement(match, "test", name="family"), "string").text = font
        edit = xml.SubElement(match, "edit", name="family", mode="assign", binding="strong")
        xml.SubElement(edit, "string").text = given
    last = xml.SubElement(xml.SubElement(root, "match", target="pattern"), "edit", name="family", mode="append_last")
    xml.SubElement(last, "string").text = family
    file = place / "fonts.conf"
    xml.ElementTree(root).write(file)
    return file
