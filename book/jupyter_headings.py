"""A link from one notebook to a section of another names it as Jupyter does: `index.ipynb#heading=The-lab`.

JupyterLab and Notebook 7 know no other form of address; the book accepts this one and MyST's.
"""


def add_addresses(app, doctree):
    slugs = app.env.metadata[app.env.docname].get("myst_slugs", {})
    for place in list(slugs.values()):
        slugs.setdefault(f"heading={place[-1].replace(' ', '-')}", place)


def setup(app):
    app.connect("doctree-read", add_addresses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
