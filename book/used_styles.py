"""The theme's style sheets without the rules for classes that no page has and no script names, and what only they use.

The themes bring Bootstrap and much else: most of what a first visit would fetch before it sees anything. A rule stays
if every class and id of one of its selectors is a word of a page's markup or of a script; Bootstrap's own script names
all of Bootstrap, and counts only for what pages ask of it. A custom property stays if anything reads it.
"""

import re
from functools import partial
from pathlib import Path

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
BOOTSTRAP_CLASSES = {"collapse", "collapsing", "dropdown", "fade", "modal", "show", "tooltip"}  # of Bootstrap's script
ATTRIBUTE = re.compile(r'\b(?:class|id)="([^"]*)"')
WORD = re.compile(r"[\w-]+")
# What a rule begins with, up to its brace or, for a statement, its semicolon; strings are whole.
PRELUDE = re.compile(r"""((?:[^{};"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*)([{;}])""")
NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
READ = re.compile(r"var\(\s*(--[\w-]+)|[\"'](--[\w-]+)[\"']")  # in a style, or by name in a script
DECLARATION = re.compile(r"""(?:[^;"'(]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:[^()]|\([^()]*\))*\))+""")
NESTED_SELECTOR = re.compile(r":[\w-]+\([^()]*\)")


def words_of_pages(folder):
    """Return the classes and ids of all pages in a folder, and the words of the scripts that they load."""
    words = set(BOOTSTRAP_CLASSES) | {
        f"{part}-{name}" for part in ("tooltip", "bs-tooltip") for name in ("inner", "arrow", "auto")
    }
    for page in folder.rglob("*.html"):
        for names in ATTRIBUTE.findall(page.read_text("utf-8")):
            words.update(names.split())
    for script in folder.glob("_static/**/*.js"):
        if "bootstrap" not in script.name and "embed" not in script.parent.name:
            words.update(WORD.findall(script.read_text("utf-8")))
    return words


def rules(css):
    """Yield ``(prelude, body)`` for each rule of a style sheet, and ``(statement, None)``."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    place = 0
    while begin := PRELUDE.match(css, place):
        prelude, end = begin[1].strip(), begin[2]
        place = begin.end()
        if end == "{":
            depth, body = 1, place
            while depth:
                match = PRELUDE.match(css, place)
                depth += {"{": 1, "}": -1, ";": 0}[match[2]]
                place = match.end()
            yield prelude, css[body : place - 1]
        elif prelude and end == ";":
            yield prelude, None


def outside_brackets(selector):
    while (shorter := NESTED_SELECTOR.sub("", selector)) != selector:
        selector = shorter
    return re.sub(r"\[[^\]]*\]", "", selector)


def is_used(selector, words):
    names = NAME.findall(outside_brackets(selector))
    return all(name.replace("\\", "") in words for name in names)


def selectors(prelude):
    """Split a list of selectors at the commas that are not in brackets."""
    depth, parts = 0, [""]
    for letter in prelude:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def rebuild(css, change):
    """Return a style sheet of the rules ``change(prelude, body)``, without those of which nothing is left."""
    kept = []
    for prelude, body in rules(css):
        if body is None:
            kept.append(f"{prelude};")
            continue
        if prelude.startswith(("@media", "@supports", "@container")):
            body = rebuild(body, change)
        else:
            prelude, body = change(prelude, body)
        if prelude and body:
            kept.append(f"{prelude}{{{body}}}")
    return "".join(kept)


def only_used(css, words):
    """Return a style sheet without the selectors that need a word which is not there, and without empty rules."""

    def change(prelude, body):
        if prelude.startswith("@"):
            return prelude, body
        return ",".join(filter(partial(is_used, words=words), selectors(prelude))), body

    return rebuild(css, change)


def only_read(css, others):
    """Return a style sheet without the custom properties that neither it nor ``others``, one text, reads."""

    def is_read(declaration):
        return not declaration.startswith("--") or declaration.split(":")[0].strip() in read

    def change(prelude, body):
        declarations = filter(None, map(str.strip, DECLARATION.findall(body)))
        return prelude, ";".join(filter(is_read, declarations))

    while True:
        read = {name for text in (css, others) for names in READ.findall(text) for name in names}
        shorter = rebuild(css, change)
        if shorter == css:
            return css
        css = shorter  # what an omitted property has read may now be read by nothing


def shorten(app, exception):
    if exception or app.builder.name != "html":
        return
    out, whole = Path(app.outdir), Path(app.doctreedir, "styles")
    whole.mkdir(parents=True, exist_ok=True)
    words, used = words_of_pages(out), {}
    for sheet in (path for pattern in SHEETS for path in out.glob(f"_static/{pattern}")):
        text, original = sheet.read_text("utf-8"), whole / sheet.name
        if not text.startswith(MARK):  # Sphinx has copied it in this build
            original.write_text(text, "utf-8")
        used[sheet] = only_used(original.read_text("utf-8"), words)
    reading = "".join(
        path.read_text("utf-8")
        for kind in ("*.html", "*.js", "*.css")
        for path in out.rglob(kind)
        if path not in used and "bootstrap" not in path.name
    )
    for sheet in used:
        used[sheet] = only_read(
            used[sheet], "".join([reading, *(css for other, css in used.items() if other != sheet)])
        )
        sheet.write_text(f"{MARK}\n{used[sheet]}\n", "utf-8")


def setup(app):
    app.connect("build-finished", shorten, priority=800)  # after what writes pages
    return {"parallel_read_safe": True, "parallel_write_safe": True}
