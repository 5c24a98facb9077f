"""Finds those texts of a page in which words may become links, and the sections that contain these texts."""

from docutils import nodes
from sphinx import addnodes

# The text of headings, code, formulas, raw HTML and links is not changed.
NODES_LEFT_OUT = (
    nodes.title,
    nodes.reference,
    nodes.literal,
    nodes.math,
    nodes.FixedTextElement,
    addnodes.pending_xref,
    addnodes.desc_signature,
)


def texts(node, excluded=NODES_LEFT_OUT):
    """Yield those texts of a node in which words may become links."""
    for child in list(node.children):
        if isinstance(child, nodes.Text):
            yield child
        elif not isinstance(child, excluded) and child.get("nb_element") != "cell_code_output":
            yield from texts(child, excluded)


def sections_around(node):
    """Return the sections that contain a node, innermost first."""
    sections = []
    while node := node.parent:
        if isinstance(node, nodes.section):
            sections.append(node)
    return sections


def title_of(section):
    return section.next_node(nodes.title).astext()


def link(text, address, **attributes):
    return nodes.reference("", "", nodes.Text(text), internal=True, refuri=address, **attributes)


def insert_nodes(text, spans):
    """Replace spans of a text with nodes, such as links; a span is a triple: its start, its end, and the node."""
    parts, previous_end = [], 0
    for begin, end, node in spans:
        parts += [nodes.Text(text[previous_end:begin]), node]
        previous_end = end
    if spans:
        text.parent.replace(text, [part for part in [*parts, nodes.Text(text[previous_end:])] if part.astext()])


def address(app, page, target, anchor):
    """Return the address of a heading, relative to a page."""
    if page == target:
        return f"#{anchor}"
    return app.builder.get_relative_uri(page, target) + (f"#{anchor}" if anchor else "")
