"""Formulas become MathML when the book is built, so that they need no script and cause no layout shift.

latex2mathml converts the TeX. If a browser would space the result differently from TeX, ``_correct`` changes the
result. The font is STIX Two Math, reduced to the glyphs that formulas use: see fonts/README.md.
"""

import re
from base64 import b64encode
from functools import cache
from html import unescape
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from docutils import nodes
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert_to_element
from sphinx.util import logging

from book.roles import colour_formula

FONT = Path(__file__).parent / "fonts" / "stix-two-math.woff"
STYLE = "mathematics.css"
N_ARGUMENTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}
SCRIPTS = N_ARGUMENTS.keys() - {"mfrac", "mroot"}
# TeX's space around the signs that browsers space differently.
SPACE_AROUND = {":": "0.278em", "…": "0.167em", "/": "0", "∞": "0", "∅": "0"}
THIN_SPACE = "0.167em"
ACCENTS = {"^": "ˆ", "~": "˜"}
BRACES = ("⏞", "⏟")
OPENING, CLOSING = "([{|‖⌈⌊⟨", ")]}|!‖⌉⌋⟩"
CODE = "font-family: var(--pst-font-family-monospace); font-size: 0.85em"
logger = logging.getLogger(__name__)


class FormulaError(ValueError):
    """An error for a formula that cannot be typeset."""


def mathml(tex, display="inline"):
    """Return a formula as MathML, with its TeX as an annotation for copying and searching."""
    try:
        # Before \left, \! removes a space that TeX adds but a browser does not.
        root = convert_to_element(re.sub(r"\\!\s*(?=\\left\b)", "", tex), display=display)
    except Exception as error:  # the library has an exception class for each mistake, and no messages
        reason = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
        raise FormulaError(f"the formula {tex} cannot be read: {reason}") from error
    for element in root.iter():
        element.text = unescape(element.text or "")
        _require_supported(element, tex)
    for element in root.iter():
        _correct(element)
    colour_formula(root)
    semantics = Element("semantics")
    semantics.extend(root)
    SubElement(semantics, "annotation", encoding="application/x-tex").text = tex
    root[:] = [semantics]
    root.attrib |= {"alttext": tex, "class": "math"}
    return tostring(root, encoding="unicode")


def _require_supported(element, tex):
    text, variant = element.text, element.get("mathvariant", "monospace")
    if text.startswith("\\") and len(text) > 1:
        raise FormulaError(f"the formula {tex} uses {text}, a command that book/mathematics.py does not know")
    if element.tag == "mspace" and "width" not in element.attrib:
        raise FormulaError(f"the formula {tex} breaks a line outside an array: write \\begin{{array}}{{ll}}")
    if variant != "monospace":
        raise FormulaError(f"the formula {tex} has letters in {variant}, which browsers do not support")
    if missing := sorted({letter for letter in text if ord(letter) not in glyphs()}):
        raise FormulaError(f"the formula {tex} uses {' '.join(missing)}, which the font in book/fonts does not have")
    if len(element) != N_ARGUMENTS.get(element.tag, len(element)):
        raise FormulaError(f"the formula {tex} is incomplete")


@cache
def glyphs():
    """Return the code points of the font's glyphs."""
    return TTFont(FONT)["cmap"].getBestCmap().keys()


def _correct(element):
    """Change an element and its children so that a browser typesets them as TeX would."""
    if element.attrib.pop("mathvariant", None):
        element.set("style", CODE)
    if alignment := element.attrib.pop("columnalign", None):
        element.set("style", f"text-align: {alignment}")
    if element.tag == "mi" and element.text in "ΓΔΘΛΞΠΣΥΦΨΩ":
        element.set("mathvariant", "normal")
    if element.text in BRACES:
        element.set("class", "brace")
    if element.tag == "mspace":
        _correct_width(element)
    if element.tag == "mover" and element[1].text in ACCENTS:
        element[1].text = ACCENTS[element[1].text]
        element[1].set("stretchy", "false")
    if element.tag in SCRIPTS:
        for script in element[1:]:
            for sign in script.iter("mo"):
                _set_spacing(sign, "0")
        if element[-1].text == "′":
            element[-1] = _prime()
    if element.tag == "mrow" and len(element) == 1 and element[0].tag == "mo":
        _set_spacing(element[0], "0")  # in braces, {,}, a sign has the spacing of a letter
    for i, child in reversed(list(enumerate(element))):
        _add_space_in_row(element, i, child)


def _set_spacing(sign, width):
    sign.attrib |= {"lspace": width, "rspace": width}


def _correct_width(space):
    width = space.get("width").replace("negativethinmathspace", f"-{THIN_SPACE}")
    if width.startswith("-"):  # browsers support negative margins, but no negative space
        space.set("style", f"margin-inline-start: {width}")
    space.set("width", width if width[0] != "-" else "0")


def _prime():
    """Return a prime as tall as its letter; browsers would draw it as small as an index."""
    prime = Element("mpadded", voffset="-0.4em", height="0.3em")
    SubElement(SubElement(prime, "mstyle", scriptlevel="0"), "mi").text = "′"
    return prime


def _add_space_in_row(row, i, element):
    """Add the space that TeX puts between an element of a row and its neighbours."""
    before = row[i - 1] if i else None
    after = row[i + 1] if i + 1 < len(row) else None
    base = _first_leaf(element, SCRIPTS)
    if base.tag in ("mi", "mo") and len(base.text) > 1 and base.text.isalpha():
        base.tag = "mi"  # such as max: the name of a function, not an operator sign
        if row.tag in N_ARGUMENTS:  # no space between a name and its index
            return
        if after is not None and after.tag not in ("mo", "mspace") and _first_leaf(after).text not in tuple(OPENING):
            row.insert(i + 1, Element("mspace", width=THIN_SPACE))
        if before is not None and before.tag not in ("mo", "mspace", "mtext"):
            row.insert(i, Element("mspace", width=THIN_SPACE))
    elif element.tag == "mo" and element.text == "−":
        if before is None or (before.tag == "mo" and before.text not in CLOSING):
            _set_spacing(element, "0")
    elif element.text in SPACE_AROUND and "lspace" not in element.attrib:
        element.tag = "mo"
        _set_spacing(element, SPACE_AROUND[element.text])
        if element.text == "…" and before is not None and before.text == ",":
            element.set("lspace", "0")
        if element.text == "…" and after is not None and after.tag == "mo" and after.text not in f",{CLOSING}":
            element.text = "⋯"  # between operator signs, dots are centred
            _set_spacing(element, "0")


def _first_leaf(element, tags=None):
    """Return an element's first leaf; with ``tags``, descend only into elements with these tags."""
    while len(element) and (tags is None or element.tag in tags):
        element = element[0]
    return element


def parts_of(tex):
    """Split a formula at its wide spaces. A narrow page shows the parts one below the other."""
    parts = [part.strip() for part in re.split(r"(?:\\qquad(?![a-zA-Z])\s*)+", tex)]

    def is_complete(part):
        pairs = (("{", "}"), (r"\\begin\b", r"\\end\b"), (r"\\left\b", r"\\right\b"))
        return part and all(len(re.findall(left, part)) == len(re.findall(right, part)) for left, right in pairs)

    return parts if all(map(is_complete, parts)) else [tex]


def attach_punctuation(app, doctree, docname):
    """Attach punctuation to the preceding formula; otherwise, a line could begin with it, even after a word joiner."""
    for node in [*doctree.findall(nodes.math)]:
        next_text = node.next_node(descend=False, siblings=True)
        punctuation = re.match(r"[.,;:!?)’”]+", next_text) if isinstance(next_text, nodes.Text) else None
        if punctuation:
            node["marks"] = punctuation[0]
            node.parent.replace(next_text, nodes.Text(next_text[punctuation.end() :]))


def write_inline(translator, node):
    formula = _html(node, [node.astext()], "inline")
    punctuation = node.get("marks")
    translator.body.append(f'<span class="together">{formula}{punctuation}</span>' if punctuation else formula)
    raise nodes.SkipNode


def write_block(translator, node):
    translator.body.append(f'<div class="formula">{_html(node, parts_of(node.astext()), "block")}</div>\n')
    raise nodes.SkipNode


def _html(node, parts, display):
    try:
        return "".join(mathml(part, display) for part in parts)
    except FormulaError as error:
        logger.warning(str(error), location=node)
        return ""


def write_style(app):
    """Write the font into a style sheet, because a separate file would arrive late and shift the text."""
    if app.builder.format == "html":
        data = b64encode(FONT.read_bytes()).decode()
        source = f'url("data:font/woff;base64,{data}") format("woff")'
        folder = Path(app.outdir, "_static")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / STYLE).write_text(f'@font-face {{ font-family: "STIX Two Math"; src: {source}; }}\n', "utf-8")


def add_style(app, pagename, templatename, context, doctree):
    """Add the font to the pages that have formulas."""
    if doctree and (doctree.next_node(nodes.math) or doctree.next_node(nodes.math_block)):
        app.add_css_file(STYLE)


def setup(app):
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.config.html_math_renderer = "mathml"
    app.connect("builder-inited", write_style)
    app.connect("doctree-resolved", attach_punctuation)
    app.connect("html-page-context", add_style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
