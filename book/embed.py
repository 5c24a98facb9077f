"""Writes embed.html, a page that shows only one lab, for a frame in slides; an example is embed.html?lab=05_masks-2.

Each lab on a page has a script file with its state, which `embed.js` loads by name, because a page opened from disk
cannot fetch JSON. `lab=masks` selects the first lab of the kind `masks`.
"""

import json
import shutil
from pathlib import Path

from book.widget_state import STATE, VIEW, address_of, minify_script, split_off_files, write_files

FOLDER = "_static/embed"
LAB_PLACEHOLDER = '<div class="lab-placeholder"'
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="robots" content="noindex" />
<link rel="icon" href="_static/logo.svg" />
<title>A lab of Transformer Lab</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
.tl-lab.tl-lab { margin: 0; }
main > p { margin: 0.3rem 0.5rem; font-size: 0.8rem; text-align: right; }
</style>
</head>
<body>
<main></main>
<noscript><p>This lab needs JavaScript.</p></noscript>
<script src="_static/embed.js"></script>
</body>
</html>
"""


def kind_of(state):
    """Return the lab's kind as used in addresses, or None for a practice, which is not embedded."""
    *_, kind, _ = state.get("_anywidget_id", ". .").split(".")
    return None if kind in ("practice", " ") else kind


def write_labs(app, pagename, templatename, context, doctree):
    """Write a file for each lab on a page, and add to the page each lab's address for a frame."""
    body = context.get("body", "")
    states = [script.attributes["body"] for script in context.get("script_files", ()) if is_state(script)]
    if not states or LAB_PLACEHOLDER not in body:
        return
    data = json.loads(states[0].replace("<\\/", "</"))
    folder = Path(app.outdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    parts, count = body.split(LAB_PLACEHOLDER), 0
    for index, model in enumerate(VIEW.findall(body), 1):
        entry = data["state"][model]
        kind = kind_of(entry["state"])
        if not kind:
            continue
        count += 1
        name = f"{pagename.replace('/', '-')}-{count}"
        parts[index] = f' data-embed="{context["pathto"]("embed.html", 1)}?lab={name}"{parts[index]}'
        code = minify_script(entry["state"]["_esm"])
        code_address = address_of(f"embed/{kind}.code.js", code)
        stored_state, files = split_off_files(entry["state"], move_large_values=False)
        write_files({code_address: code, **files}, folder.parent)
        state = {**entry, "state": {**stored_state, "_esm": {"file": code_address}}}
        lab = {
            "state": {"state": {model: state}},
            "view": {"model_id": model},
            "page": f"{pagename}.html",
            "kind": kind,
        }
        (folder / f"{name}.js").write_text(f"EMBEDDED = {json.dumps(lab)};\n", "utf-8")
    context["body"] = LAB_PLACEHOLDER.join(parts)


def is_state(script):
    return getattr(script, "attributes", {}).get("type") == STATE


def write_page(app, exception):
    if exception or app.builder.name != "html":
        return
    Path(app.outdir, "embed.html").write_text(PAGE, "utf-8")
    first_file_of = {}
    for file in sorted(Path(app.outdir, FOLDER).glob("*-*.js")):
        first_file_of.setdefault(json.loads(file.read_text("utf-8")[11:-2])["kind"], file)
    for kind, file in first_file_of.items():
        shutil.copy(file, file.with_name(f"{kind}.js"))


def setup(app):
    app.connect("html-page-context", write_labs, priority=590)  # before widget_state, which moves scripts to files
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
