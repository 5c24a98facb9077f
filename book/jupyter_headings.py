"""A link from one notebook to a section of another uses Jupyter's form: `index.ipynb#heading=The-lab`.

JupyterLab and Notebook 7 accept no other form of address; the book accepts this form and MyST's.
"""


def add_addresses(app, doctree):
    slugs = app.env.metadata[app.env.docname].get("myst_slugs", {})
    for slug in list(slugs.values()):
        slugs.setdefault(f"heading={slug[-1].replace(' ', '-')}", slug)


def setup(app):
    app.connect("doctree-read", add_addresses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
