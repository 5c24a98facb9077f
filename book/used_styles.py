"""Removes the theme's style rules that no element of the book can need, and custom properties that nothing reads.

The theme's style sheets include Bootstrap and many other styles, which would make up most of the bytes that a first
visit fetches before anything is shown. A rule stays if one of its selectors matches an element of a page, or an element
that a script adds; see ``markup.py``. A custom property stays if anything reads it.
"""

import re
from pathlib import Path

from book.markup import SCRIPT_OF_THE_THEME, Markup

SHEETS = (
    "basic.css",
    "copybutton.css",
    "mystnb.*.css",
    "pygments.css",
    "styles/bootstrap.css",
    "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css",
)
MARK = "/* Only what is used: book/used_styles.py */"
# The beginning of a rule, up to its brace or, for a statement, its semicolon; strings are not split.
PRELUDE = re.compile(r"""((?:[^{};"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*)([{;}])""")
READ_PROPERTY = re.compile(r"var\(\s*(--[\w-]+)|[\"'](--[\w-]+)[\"']")  # in a style, or by name in a script
TOKEN = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|.""", re.DOTALL)  # a string or a character


def rules(css):
    """Yield ``(prelude, body)`` for each rule of a style sheet, and ``(statement, None)`` for each statement."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    position = 0
    while prelude_match := PRELUDE.match(css, position):
        prelude, end = prelude_match[1].strip(), prelude_match[2]
        position = prelude_match.end()
        if end == "{":
            depth, body = 1, position
            while depth:
                match = PRELUDE.match(css, position)
                depth += {"{": 1, "}": -1, ";": 0}[match[2]]
                position = match.end()
            yield prelude, css[body : position - 1]
        elif prelude and end == ";":
            yield prelude, None


def split(text, separator):
    """Split a list of selectors or of declarations at the separators that are not in brackets or strings."""
    depth, parts = 0, [""]
    for token in TOKEN.findall(text):
        depth += (token in "([") - (token in ")]")
        if token == separator and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts if part.strip()]


def rebuild(css, change):
    """Replace each rule of a style sheet with ``change(prelude, body)``, and remove rules that have become empty."""
    css_parts = []
    for prelude, body in rules(css):
        if body is None:
            css_parts.append(f"{prelude};")
            continue
        if prelude.startswith(("@media", "@supports", "@container")):
            body = rebuild(body, change)
        else:
            prelude, body = change(prelude, body)
        if prelude and body:
            css_parts.append(f"{prelude}{{{body}}}")
    return "".join(css_parts)


def keep_used_rules(css, matches):
    """Return a style sheet without the selectors for which ``matches`` is false, and without empty rules."""

    def change(prelude, body):
        if prelude.startswith("@"):
            return prelude, body
        return ",".join(filter(matches, split(prelude, ","))), body

    return rebuild(css, change)


def keep_read_properties(css, other_text):
    """Return a style sheet with only those custom properties that the sheet or the text ``other_text`` reads."""

    def is_read(declaration):
        return not declaration.startswith("--") or declaration.split(":")[0].strip() in read_names

    def change(prelude, body):
        return prelude, ";".join(filter(is_read, split(body, ";")))

    while True:
        read_names = {name for text in (css, other_text) for names in READ_PROPERTY.findall(text) for name in names}
        shorter = rebuild(css, change)
        if shorter == css:
            return css
        css = shorter  # properties that only an omitted property has read are now unused


def markup_of(folder):
    """Return the markup of all pages in a folder and of the scripts that they load."""
    scripts = (path for path in folder.glob("_static/**/*.js") if not SCRIPT_OF_THE_THEME.search(path.name))
    return Markup(*([path.read_text("utf-8") for path in paths] for paths in (folder.rglob("*.html"), scripts)))


def remove_unused(app, exception):
    if exception or app.builder.name != "html":
        return
    out, originals = Path(app.outdir), Path(app.doctreedir, "styles")
    originals.mkdir(parents=True, exist_ok=True)
    markup, css_by_sheet = markup_of(out), {}
    for sheet in (path for pattern in SHEETS for path in out.glob(f"_static/{pattern}")):
        text, original = sheet.read_text("utf-8"), originals / sheet.name
        if not text.startswith(MARK):  # Sphinx has copied the file in this build
            original.write_text(text, "utf-8")
        css_by_sheet[sheet] = keep_used_rules(original.read_text("utf-8"), markup.matches)
    other_text = "".join(
        path.read_text("utf-8")
        for kind in ("*.html", "*.js", "*.css")
        for path in out.rglob(kind)
        if path not in css_by_sheet and "bootstrap" not in path.name
    )
    for sheet in css_by_sheet:
        css_by_sheet[sheet] = keep_read_properties(
            css_by_sheet[sheet], "".join([other_text, *(css for other, css in css_by_sheet.items() if other != sheet)])
        )
        sheet.write_text(f"{MARK}\n{css_by_sheet[sheet]}\n", "utf-8")


def setup(app):
    app.connect("build-finished", remove_unused, priority=800)  # runs after all handlers that write pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
