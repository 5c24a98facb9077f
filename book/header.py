"""Shows the buttons above a page, such as Colab, the notebook and print, directly instead of in menus."""

BUTTONS = {
    "Colab": {"tooltip": "Run this page in Colab"},
    "Binder": {"tooltip": "Run this page in Binder, which takes some minutes to start"},
    ".ipynb": {"text": "Notebook", "icon": "fas fa-download", "tooltip": "Download this page as a notebook"},
    "": {"tooltip": "The course's repository"},
    ".pdf": {"text": None, "icon": "fas fa-print", "tooltip": "Print this page, or save it as PDF"},
}


def choose_buttons(app, pagename, templatename, context, doctree):
    buttons = [button for group in context["header_buttons"] for button in group.get("buttons", [group])]
    context["header_buttons"] = [button | BUTTONS[button["text"]] for button in buttons if button["text"] in BUTTONS]


def setup(app):
    app.connect("html-page-context", choose_buttons, priority=600)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
