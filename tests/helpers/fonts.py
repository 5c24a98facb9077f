"""Make the fonts of browser tests, so that every machine uses the same fonts.

A reader's font may be wider or narrower than ours. Pages are tested with three families: DejaVu Sans, the widest common
family; a family as wide as Helvetica and Arial; and a narrow family. matplotlib contains DejaVu Sans, and tables of
widths for the other two families. The fonts of these two families are made by squeezing DejaVu Sans to the widths in
the tables.
"""

from shutil import copy
from xml.etree import ElementTree as xml

from fontTools import subset
from fontTools.afmLib import AFM
from fontTools.ttLib import TTFont
from matplotlib import get_data_path

# Each family's tables of widths, regular and bold; None for DejaVu Sans, which keeps its own widths.
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
CODE_POINTS = [
    *range(0x20, 0x100),
    *range(0x391, 0x3CA),
    *range(0x2010, 0x20A0),
    *range(0x2190, 0x2270),
    *map(ord, "ᵀ␣✗"),
]
LAYOUT_TABLES = ("GPOS", "GSUB", "GDEF", "kern", "MATH", "FFTM")
UNITS_PER_EM = 2048  # of DejaVu
HEIGHTS = {"ascent": 1854, "descent": -434, "lineGap": 67}  # the heights of Arial


def install(family, folder):
    """Install a family in an empty folder; return the path of fontconfig settings that make it the only family."""
    matplotlib_fonts = f"{get_data_path()}/fonts"
    for style in ("Mono", "Mono-Bold"):
        copy(f"{matplotlib_fonts}/ttf/DejaVuSans{style}.ttf", folder)
    for i, style in enumerate(("", "-Bold")):
        font_file, widths = f"{matplotlib_fonts}/ttf/DejaVuSans{style}.ttf", FAMILIES[family]
        if widths is None:
            copy(font_file, folder)
        else:
            squeeze(font_file, AFM(f"{matplotlib_fonts}/afm/{widths[i]}.afm"), f"Squeezed{style}").save(
                folder / f"Squeezed{style}.ttf"
            )
    return _write_settings(folder, "DejaVu Sans" if FAMILIES[family] is None else "Squeezed")


def squeeze(file, widths, name):
    """Return the font in ``file`` scaled to ``widths``; glyphs without a width are scaled by the mean ratio."""
    font = TTFont(file)
    for table in {*LAYOUT_TABLES} & {*font.keys()}:
        del font[table]
    subsetter = subset.Subsetter(subset.Options(hinting=False, glyph_names=True))
    subsetter.populate(unicodes=CODE_POINTS)
    subsetter.subset(font)
    glyphs, advances = font["glyf"], font["hmtx"].metrics
    new_advances = {
        glyph: round(widths[glyph][1] * UNITS_PER_EM / 1000) for glyph in widths.chars() if glyph in advances
    }
    mean_ratio = sum(new_advances.values()) / sum(advances[glyph][0] for glyph in new_advances)
    for glyph in font.getGlyphOrder():
        old_advance = advances[glyph][0]
        advance = new_advances.get(glyph, round(old_advance * mean_ratio))
        _scale(glyphs[glyph], advance / old_advance if old_advance else mean_ratio)
        advances[glyph] = (advance, 0)
    for glyph in font.getGlyphOrder():
        glyphs[glyph].recalcBounds(glyphs)
        advances[glyph] = (advances[glyph][0], getattr(glyphs[glyph], "xMin", 0))
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
        for component in glyph.components:
            component.x = round(component.x * factor)
    elif glyph.numberOfContours > 0:
        glyph.coordinates.scale((factor, 1))
        glyph.coordinates.toInt()


def _write_settings(folder, family):
    root = xml.Element("fontconfig")
    xml.SubElement(root, "dir").text = str(folder)
    xml.SubElement(root, "cachedir").text = str(folder / "cache")
    substitutes = dict.fromkeys(SANS, family) | dict.fromkeys(MONO, "DejaVu Sans Mono")
    for font, substitute in substitutes.items():
        match = xml.SubElement(root, "match", target="pattern")
        xml.SubElement(xml.SubElement(match, "test", name="family"), "string").text = font
        edit = xml.SubElement(match, "edit", name="family", mode="assign", binding="strong")
        xml.SubElement(edit, "string").text = substitute
    default = xml.SubElement(xml.SubElement(root, "match", target="pattern"), "edit", name="family", mode="append_last")
    xml.SubElement(default, "string").text = family
    file = folder / "fonts.conf"
    xml.ElementTree(root).write(file)
    return file
