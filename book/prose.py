"""The texts of a page in which words may become links, and the sections that contain these texts."""

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


def texts(node, without=NODES_LEFT_OUT):
    """Yield the texts of a node in which words may become links."""
    for child in list(node.children):
        if isinstance(child, nodes.Text):
            yield child
        elif not isinstance(child, without) and child.get("nb_element") != "cell_code_output":
            yield from texts(child, without)


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
    """Insert nodes, such as links, into a text; each is a triple: start and end in the text, and the node."""
    parts, end_of_last = [], 0
    for begin, end, node in spans:
        parts += [nodes.Text(text[end_of_last:begin]), node]
        end_of_last = end
    if spans:
        text.parent.replace(text, [part for part in [*parts, nodes.Text(text[end_of_last:])] if part.astext()])


def address(app, page, target, anchor):
    """Return the address of a heading, relative to a page."""
    if page == target:
        return f"#{anchor}"
    return app.builder.get_relative_uri(page, target) + (f"#{anchor}" if anchor else "")
