"""Draw the diagrams of the chapters as SVG. Each function returns a picture that notebooks display.

The diagrams are dark on white, like the figures of ``plots``, and narrow enough to be readable on a phone. Their
numbers are computed by the package's own functions. The module is part of the package so that the chapters run in
Colab.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

import torch
from torch import Tensor

from .masks import causal_mask
from .multi_head import merge_heads, split_heads
from .positions import sinusoidal_positions

WIDTH = 520
FONT_SIZE = 17  # on a page that is 360 px wide, letters are 11 px high
INK, GREY, LIGHT_GREY = "#1b1f24", "#565d66", "#8b949e"
BLUE, RED, GREEN = "#0b5cad", "#b3261e", "#1a6b35"
PALE_RED, PALE_GREEN = "#fbe3e0", "#dff2e4"
BLUE_BOX = {"fill": "#dbe9f8", "stroke": BLUE}
RED_BOX = {"fill": PALE_RED, "stroke": RED}
GREEN_BOX = {"fill": PALE_GREEN, "stroke": GREEN}


class Drawing:
    """A picture in SVG, which notebooks display.

    Parameters
    ----------
    title : str
        What the picture shows, in a few words.
    height : float
        Height of the picture; the width is always the same.
    parts : sequence of str
        SVG elements of the picture, from back to front.

    Attributes
    ----------
    svg : str
        The whole picture, as the text of an SVG file.

    Examples
    --------
    >>> Drawing("a line", 20, [line((0, 10), (100, 10))])
    Drawing('a line')
    """

    def __init__(self, title: str, height: float, parts: Sequence[str]) -> None:
        self.title = title
        size = f'width="{WIDTH}" height="{height}"'
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {size}'
        style = f'font-family="system-ui, sans-serif" font-size="{FONT_SIZE}" style="max-width: 100%; height: auto"'
        background = f'<rect {size} fill="#fff"/>'
        self.svg = "\n".join(
            [f'{opening} {style} role="img" aria-label="{escape(title)}">', background, *parts, "</svg>\n"]
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.title!r})"


# Elements of the pictures. A point is a pair (x, y); y grows downwards.


def label(point, text, *, anchor="middle", colour=INK, bold=False):
    """Return a line of text, centred vertically on the point."""
    x, y = point
    weight = ' font-weight="bold"' if bold else ""
    position = f'x="{x:.1f}" y="{y + 0.35 * FONT_SIZE:.1f}" text-anchor="{anchor}"'
    return f'<text {position} fill="{colour}"{weight}>{escape(text)}</text>'


def box(corner, size, text=(), *, fill="#fff", stroke=INK, rounded=4):
    """Return a box with centred lines of text; if there are several lines, the first is bold."""
    (x, y), (width, height) = corner, size
    frame = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{rounded}"'
    texts = [text] if isinstance(text, str) else text
    first_y = y + height / 2 - 11 * (len(texts) - 1)
    labels = [
        label((x + width / 2, first_y + 22 * i), line_text, bold=i == 0 and len(texts) > 1)
        for i, line_text in enumerate(texts)
    ]
    return "".join([f'{frame} fill="{fill}" stroke="{stroke}"/>', *labels])


def line(*points, colour=INK, width=1.5, dashed=False):
    """Return a line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="4 4"' if dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def arrow(*points, colour=INK, width=1.5):
    """Return a line through points, with an arrowhead at its end."""
    (x0, y0), (x, y) = points[-2:]
    direction = math.atan2(y - y0, x - x0)
    head_length = 6 + 2 * width
    back_corners = [
        (x - head_length * math.cos(direction + half_angle), y - head_length * math.sin(direction + half_angle))
        for half_angle in (-0.42, 0.42)
    ]
    head = " ".join(f"{px:.1f},{py:.1f}" for px, py in [(x, y), *back_corners])
    line_end = (x - 0.8 * head_length * math.cos(direction), y - 0.8 * head_length * math.sin(direction))
    return line(*points[:-1], line_end, colour=colour, width=width) + f'<polygon points="{head}" fill="{colour}"/>'


def arc(start, end, height, *, colour=INK):
    """Return a curved arrow between two points at the same height; the curve rises by ``height``."""
    (x0, y), (x1, _) = start, end
    control_y = y - height * 4 / 3
    slant = 0.15 * (x1 - x0)
    controls = f"{x0 + slant:.1f} {control_y:.1f} {x1 - slant:.1f} {control_y:.1f}"
    curve = f'<path d="M{x0:.1f} {y:.1f}C{controls} {x1:.1f} {y:.1f}"'
    tip = arrow((x1 - slant * 0.12, y - height * 0.1), end, colour=colour)
    return f'{curve} fill="none" stroke="{colour}" stroke-width="1.5"/>{tip}'


def circle(centre, radius, *, fill="#fff", stroke=INK):
    """Return a circle."""
    x, y = centre
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{stroke}"/>'


def clock_hand_end(centre, radius, angle):
    """Return the end point of a clock hand at an angle, clockwise from the top."""
    return centre[0] + radius * math.sin(angle), centre[1] - radius * math.cos(angle)


def sector(centre, radius, start, end, *, fill):
    """Return the sector of a disc that a hand sweeps clockwise between two angles, less than a full turn apart."""
    (x0, y0), (x1, y1) = clock_hand_end(centre, radius, start), clock_hand_end(centre, radius, end)
    is_large_arc = int(end - start > math.pi)
    path = f"M{centre[0]:.1f} {centre[1]:.1f}L{x0:.1f} {y0:.1f}A{radius} {radius} 0 {is_large_arc} 1 {x1:.1f} {y1:.1f}Z"
    return f'<path d="{path}" fill="{fill}"/>'


# The pictures


def storage_merges() -> Drawing:
    """Draw pairs of neighbouring axes, and whether ``view`` can merge a pair: all steps must have equal length.

    The upper half shows the axes of a contiguous tensor, the lower half the axes of its transpose.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> storage_merges()
    Drawing('which axes view may merge')
    """
    x = torch.arange(12).view(2, 3, 2)
    parts, top = [], 24
    for name, tensor in (("x", x), ("y = x.transpose(0, 1)", x.transpose(0, 1))):
        parts += [
            label((20, top), name, anchor="start", bold=True),
            label((20, top + 24), f"shape {tuple(tensor.shape)}, strides {tensor.stride()}", anchor="start"),
        ]
        top += 58
        for axis in (0, 1):
            elements, height = _draw_merge_rule(tensor, axis, top)
            parts += elements
            top += height
    return Drawing("which axes view may merge", top - 12, parts)


def _draw_merge_rule(x, axis, top):
    """Draw the rule for two neighbouring axes of ``x`` and the steps in storage; return the elements and the height."""
    outer_stride, inner_stride, size = x.stride(axis), x.stride(axis + 1), x.shape[axis + 1]
    indices = (
        x.movedim((axis, axis + 1), (-2, -1)).flatten(0, -3)[0].flatten().tolist()
    )  # the values of x are its indices in storage
    may_merge = outer_stride == size * inner_stride
    colour, verdict = (GREEN, "may merge") if may_merge else (RED, "may not merge")
    sign = "=" if may_merge else "≠"
    parts = [
        label((20, top), f"axes {axis} and {axis + 1}:  {outer_stride} {sign} {size} · {inner_stride}", anchor="start"),
        label((500, top), verdict, anchor="end", colour=colour, bold=True),
    ]
    cell_width = 40
    max_forward, max_back = (
        max((direction * (b - a) for a, b in pairwise(indices)), default=0) for direction in (1, -1)
    )
    y = top + 44 + _arc_height(max_forward)
    for index in range(x.numel()):
        style = {"fill": "#fff", "stroke": LIGHT_GREY}
        if index in indices:
            style = GREEN_BOX if may_merge else RED_BOX
        parts.append(box((20 + index * cell_width, y), (cell_width, 32), str(index), rounded=0, **style))
    for start, end in pairwise(indices):
        side, edge = (1, y) if end > start else (-1, y + 32)
        x0, x1 = (20 + (index + 0.5) * cell_width for index in (start, end))
        arc_height = side * _arc_height(abs(end - start))
        parts.append(arc((x0, edge), (x1, edge), arc_height, colour=colour))
        step = f"{end - start:+d}".replace("-", "−")
        parts.append(label(((x0 + x1) / 2, edge - arc_height - side * 11), step, colour=colour))
    return parts, y - top + 32 + (_arc_height(max_back) + 22 if max_back > 0 else 0) + 28


def _arc_height(steps):
    return 10 + 5 * steps


def dot_product() -> Drawing:
    """Draw the dot products of a query and three keys: one is positive, one is zero, and one is negative.

    The dot product is the norm of the query times the signed length of the key's projection onto the query.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> dot_product()
    Drawing('the dot product as a length')
    """
    query = torch.tensor([3.0, 0.0])
    keys = {"a": (torch.tensor([2.0, 1.0]), GREEN), "b": (torch.tensor([0.0, 2.0]), BLUE)}
    keys["c"] = torch.tensor([-2.0, 1.0]), RED
    unit, (x0, y0) = 72, (244, 176)

    def to_point(vector: Tensor, down=0):
        x, y = vector.tolist()
        return x0 + unit * x, y0 - unit * y + down

    parts = [
        line((20, y0), (500, y0), colour=LIGHT_GREY, width=1),
        arrow(to_point(0 * query), to_point(query), width=2.5),
    ]
    parts.append(label((to_point(query)[0] + 14, y0 - 20), "q", bold=True))
    for row, (name, (key, colour)) in enumerate(keys.items()):
        product, query_norm = (query @ key).item(), query.norm().item()
        projection = product / query_norm  # positive or negative
        foot = query / query_norm * projection
        angle = math.degrees(math.acos(product / query_norm / key.norm().item()))
        parts += [
            line(to_point(key), to_point(foot), colour=colour, dashed=True),
            line(to_point(0 * query, 7), to_point(foot, 7), colour=colour, width=7),
            arrow(to_point(0 * query), to_point(key), colour=colour, width=2.5),
            label((to_point(key)[0], to_point(key)[1] - 16), name, colour=colour, bold=True),
        ]
        if projection:
            parts.append(label(((x0 + to_point(foot)[0]) / 2, y0 + 28), _format_number(projection), colour=colour))
        numbers = (
            f"q · {name} = {_format_number(query_norm)} · {_format_factor(projection)} = {_format_number(product)}"
        )
        parts += [
            label((20, y0 + 74 + 27 * row), numbers, anchor="start", colour=colour, bold=True),
            label((500, y0 + 74 + 27 * row), f"angle {angle:.0f}°", anchor="end", colour=colour),
        ]
    return Drawing("the dot product as a length", y0 + 150, parts)


def _format_number(value):
    return f"{value:g}".replace("-", "−")


def _format_factor(value):
    return f"({_format_number(value)})" if value < 0 else _format_number(value)


def attention() -> Drawing:
    """Draw attention as a flow of data: from query, key and value to the output, with the shape of each tensor.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> attention()
    Drawing('attention as a flow of data')
    """
    columns, width, top = (92, 260, 428), 160, 68
    flow_x = sum(columns[:2]) / 2  # x of the downward flow that begins at query and key
    parts = [label((260, 16), "batch and heads come before these axes", colour=GREY)]
    tensors = ("query", "q_len, d_head"), ("key", "k_len, d_head"), ("value", "k_len, d_value")
    for x, text in zip(columns, tensors):
        style = GREEN_BOX if text[0] == "value" else BLUE_BOX
        parts.append(box((x - width / 2, top - 32), (width, 58), text, **style))
    top += 26
    parts += [arrow((x, top), (x, top + 24)) for x in columns[:2]]
    for text in (
        "query @ keyᵀ",
        "÷ √d_head",
        ("scores", "q_len, k_len"),
        "mask: False becomes −∞",
        "softmax over k_len",
        ("weights", "q_len, k_len"),
    ):
        style, height = ({}, 36) if isinstance(text, str) else (BLUE_BOX, 58)
        parts.append(box((columns[0] - width / 2, top + 24), (columns[1] - columns[0] + width, height), text, **style))
        top += 24 + height
        parts.append(arrow((flow_x, top), (flow_x, top + 24)))
    parts += [
        arrow((columns[2], 94), (columns[2], top + 24)),
        box((12, top + 24), (496, 36), "weights @ value"),
        arrow((260, top + 60), (260, top + 84)),
        box((260 - width / 2, top + 84), (width, 58), ("output", "q_len, d_value"), **GREEN_BOX),
    ]
    return Drawing("attention as a flow of data", top + 154, parts)


def clock_hands() -> Drawing:
    """Draw sinusoidal positions as hands of clocks: each row is a pair of features, each column a position.

    The tip of a hand is at (sine, cosine) of its angle. A step of two positions turns a hand by the same angle,
    wherever the step begins.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> clock_hands()
    Drawing('positions as the hands of clocks')
    """
    d_model, pairs, n = 32, (0, 2, 4), 6
    features = sinusoidal_positions(n, d_model, device="cpu").unflatten(1, (-1, 2))  # (seq, pairs, 2)
    left, spacing, radius = 168, 64, 27
    parts = [label((8, 22), "position", anchor="start", bold=True)]
    parts += [label((left + spacing * p, 22), str(p), bold=True) for p in range(n)]
    for row, pair in enumerate(pairs):
        centre_y = 74 + 82 * row
        sines, cosines = features[:, pair].T
        angles = torch.atan2(sines, cosines).tolist()
        rotation = math.remainder(angles[2] - angles[0], math.tau)
        parts += [
            label((8, centre_y - 22), f"{('fast', 'slower', 'slow')[row]}", anchor="start", bold=True),
            label((8, centre_y), f"features {2 * pair}, {2 * pair + 1}", anchor="start"),
            label((8, centre_y + 22), f"+2: {math.degrees(rotation):.0f}°", anchor="start", colour=GREEN),
        ]
        for p in range(n):
            centre = (left + spacing * p, centre_y)
            parts.append(circle(centre, radius, stroke=LIGHT_GREY))
            if p in (2, 5):
                parts.append(sector(centre, radius, angles[p] - rotation, angles[p], fill=PALE_GREEN))
                parts.append(
                    line(centre, clock_hand_end(centre, radius, angles[p] - rotation), colour=GREEN, dashed=True)
                )
            parts.append(arrow(centre, clock_hand_end(centre, radius, angles[p]), colour=BLUE, width=2))
    bottom = 74 + 82 * len(pairs) - 30
    for start in (0, 3):
        x0, x1 = left + spacing * start, left + spacing * (start + 2)
        parts.append(arrow((x0, bottom), (x0, bottom + 14), (x1, bottom + 14), (x1, bottom), colour=GREEN))
        parts.append(label(((x0 + x1) / 2, bottom + 30), "+2", colour=GREEN, bold=True))
    return Drawing("positions as the hands of clocks", bottom + 48, parts)


def paths() -> Drawing:
    """Draw the path of a signal from the first token to the last in an RNN, in convolutions, and in attention.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> paths()
    Drawing('paths from the first token to the last')
    """
    n, kernel_width = 7, 5
    half_width = kernel_width // 2  # how many neighbours a convolution reads on each side
    layers = math.ceil((n - 1) / half_width)
    parts, top = [], 22

    def to_point(position, y):
        return 44 + 72 * position, y

    def draw_network(title, path_length, layer_ys, edges, path):
        """Draw tokens at the first y and layers above them; ``edges`` and ``path`` connect (position, layer) pairs."""
        parts.append(label((12, top), title, anchor="start", bold=True))
        parts.append(label((508, top), path_length, anchor="end", colour=RED, bold=True))
        centres = [[to_point(position, y) for position in range(n)] for y in layer_ys]
        for (p0, l0), (p1, l1) in edges:
            parts.append(line(centres[l0][p0], centres[l1][p1], colour="#b9c0c8", width=1))
        for (p0, l0), (p1, l1) in pairwise(path):
            (x0, y0), (x1, y1) = centres[l0][p0], centres[l1][p1]
            gap = 11 / math.hypot(x1 - x0, y1 - y0)
            end = x1 - (x1 - x0) * gap, y1 - (y1 - y0) * gap
            parts.append(arrow((x0, y0), end, colour=RED, width=3))
        for layer, row in enumerate(centres):
            for position, centre in enumerate(row):
                on_path = (position, layer) in path
                parts.append(circle(centre, 9, fill=PALE_RED if on_path else "#fff", stroke=RED if on_path else GREY))

    positions = range(n)
    draw_network(
        "RNN",
        f"{n - 1} steps, one after the other",
        (top + 92, top + 36),
        [((p, 0), (p, 1)) for p in positions] + [((p, 1), (p + 1, 1)) for p in range(n - 1)],
        [(0, 0), *((p, 1) for p in positions)],
    )
    top += 136
    draw_network(
        f"convolution, width {kernel_width}",
        f"{layers} layers",
        [top + 36 + 56 * layer for layer in range(layers, -1, -1)],
        [
            ((p, layer), (q, layer + 1))
            for layer in range(layers)
            for p in positions
            for q in positions
            if abs(p - q) <= half_width
        ],
        [(min(half_width * layer, n - 1), layer) for layer in range(layers + 1)],
    )
    top += 36 + 56 * layers + 44
    draw_network(
        "self-attention",
        "1 layer",
        (top + 132, top + 36),
        [((p, 0), (q, 1)) for p in positions for q in positions],
        [(0, 0), (n - 1, 1)],
    )
    parts += [label(to_point(0, top + 160), "first"), label(to_point(n - 1, top + 160), "last")]
    return Drawing("paths from the first token to the last", top + 178, parts)


def split_and_merge() -> Drawing:
    """Draw how the features of three tokens are cut into two heads, and merged again.

    The numbers are those of :func:`split_heads` and :func:`merge_heads`: feature f of token t is 10·t + f.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> split_and_merge()
    Drawing('features cut into heads and merged again')
    """
    seq, n_heads, d_head = 3, 2, 2
    x = 10 * torch.arange(seq)[:, None] + torch.arange(n_heads * d_head)  # (seq, d_model)
    heads = split_heads(x, n_heads)  # (heads, seq, d_head)
    cell_width, cell_height = 31, 28

    def draw_table(corner, numbers):
        """Draw a matrix in which each feature has the colour of its head."""
        for i, row in enumerate(numbers.tolist()):
            for j, number in enumerate(row):
                style = (BLUE_BOX, RED_BOX)[number % 10 // d_head]
                corner_of_cell = corner[0] + cell_width * j, corner[1] + cell_height * i
                parts.append(box(corner_of_cell, (cell_width, cell_height), str(number), rounded=0, **style))

    def draw_row(y, numbers, split):
        """Draw all features of each token on the left, and the same features, cut into heads, in the middle."""
        draw_table((16, y), numbers)
        for head in range(n_heads):
            draw_table((226 + (cell_width * d_head + 12) * head, y), split[:, head])

    parts = []
    draw_row(40, x, x.unflatten(1, (n_heads, d_head)))
    draw_row(300, merge_heads(heads), heads.transpose(0, 1))
    for head, y in enumerate((118, 238)):
        parts.append(label((471, y - 16), f"head {head}", bold=True, colour=(BLUE, RED)[head]))
        draw_table((440, y), heads[head])
    parts += [
        label((78, 20), "seq, d_model", colour=GREY),
        label((294, 20), "seq, heads, d_head", colour=GREY),
        label((506, 362), "heads, seq,", anchor="end", colour=GREY),
        label((506, 384), "d_head", anchor="end", colour=GREY),
        label((183, 68), "view"),
        arrow((148, 82), (218, 82)),
        arrow((368, 82), (404, 82), (404, 160), (432, 160)),
        label((396, 146), "transpose", anchor="end"),
        label((394, 216), "each head attends on its own", anchor="end"),
        arrow((400, 216), (432, 216)),
        arrow((432, 284), (404, 284), (404, 342), (368, 342)),
        label((396, 278), "transpose", anchor="end"),
        arrow((218, 342), (148, 342)),
        label((183, 362), "reshape"),
    ]
    return Drawing("features cut into heads and merged again", 410, parts)


def block() -> Drawing:
    """Draw the block of 2017 with norms after the sums (post-norm) and with norms before the parts (pre-norm).

    The stream from the input to the output is a straight line; the parts are beside it.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> block()
    Drawing('a block, post-norm and pre-norm')
    """
    parts, sublayers = [], ("attention", "feed-forward")
    for left, name, rule in ((0, "post-norm", "norm(x + f(x))"), (260, "pre-norm", "x + f(norm(x))")):
        parts.append(label((left + 130, 20), name, bold=True))
        blocks, bottom = _block_elements(left, 60, sublayers, "norm", norm_first=name == "pre-norm")
        parts += [label((left + 54, 46), "x"), *blocks, arrow(*_stream_points(left, bottom, 34), colour=BLUE, width=3)]
        parts.append(label((left + 130, bottom + 56), rule, bold=True))
    return Drawing("a block, post-norm and pre-norm", bottom + 76, parts)


def _stream_points(left, top, height):
    """Return the end points of a piece of the stream, which runs from top to bottom."""
    return (left + 54, top), (left + 54, top + height)


def _block_elements(left, top, sublayers, norm, *, norm_first):
    """Return a block's elements (sublayers beside the stream, each with an addition and a norm), and their lower edge.

    A sublayer is given as the text of its box, one line or several.
    """
    stream, middle, width = left + 54, left + 183, 134
    elements = []
    for sublayer in sublayers:
        height = 44 if isinstance(sublayer, str) else 22 * len(sublayer) + 18
        sum_y = top + 34 + height + 34 + (54 if norm_first else 0)
        elements.append(line((stream, top), (stream, sum_y - 11), colour=BLUE, width=3))
        y = top + 14
        elements.append(line((stream, y), (middle, y), (middle, y + 6)))
        if norm_first:
            elements += [arrow((middle, y), (middle, y + 20)), box((middle - 55, y + 20), (110, 34), norm, **GREEN_BOX)]
            y += 54
        elements += [arrow((middle, y), (middle, y + 20)), box((middle - width / 2, y + 20), (width, height), sublayer)]
        elements += [arrow((middle, y + 20 + height), (middle, sum_y), (stream + 11, sum_y))]
        elements += [circle((stream, sum_y), 11, stroke=BLUE), label((stream, sum_y), "+", bold=True)]
        top = sum_y + 11
        if not norm_first:
            elements += [line(*_stream_points(left, top, 20), colour=BLUE, width=3)]
            elements += [box((stream - 52, top + 20), (104, 34), norm, **GREEN_BOX)]
            top += 54
    return elements, top


def block_today() -> Drawing:
    """Draw a model of one block as in 2017, and as in most of today's language models.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> block_today()
    Drawing('the block of 2017 and that of today')
    """
    sublayers_2017 = ("attention", "h heads of Q", "h heads of K, V"), ("feed-forward", "2 maps", "ReLU")
    sublayers_today = (
        ("attention", "h heads of Q", "h_kv of K, V", "Q, K rotated"),
        ("feed-forward", "3 maps", "SiLU, gated"),
    )
    parts, bottoms = [], []
    for left, name in ((0, "2017"), (260, "today")):
        parts += [label((left + 130, 20), name, bold=True), box((left + 2, 40), (104, 34), "tokens", **BLUE_BOX)]
        top = 74
        if name == "2017":
            sum_y = top + 28
            parts += [
                line(*_stream_points(left, top, 20), colour=BLUE, width=3),
                arrow((left + 96, sum_y), (left + 65, sum_y)),
                label((left + 102, sum_y - 11), "sines and cosines", anchor="start"),
                label((left + 102, sum_y + 11), "of the position", anchor="start"),
                circle((left + 54, sum_y), 11, stroke=BLUE),
                label((left + 54, sum_y), "+", bold=True),
            ]
            top = sum_y + 11
        else:
            parts.append(line(*_stream_points(left, top, 39), colour=BLUE, width=3))
            top += 39
        norm, sublayers = ("LayerNorm", sublayers_2017) if name == "2017" else ("RMSNorm", sublayers_today)
        blocks, bottom = _block_elements(left, top, sublayers, norm, norm_first=name == "today")
        parts += blocks
        bottoms.append(bottom)
    bottom = max(bottoms)
    for left, block_bottom in zip((0, 260), bottoms):
        parts.append(line(*_stream_points(left, block_bottom, bottom - block_bottom + 34), colour=BLUE, width=3))
        parts.append(label((left + 72, bottom + 12), "… more blocks", anchor="start", colour=GREY))
    parts += [
        box((262, bottom + 34), (104, 34), "RMSNorm", **GREEN_BOX),
        arrow(*_stream_points(0, bottom + 34, 62), colour=BLUE, width=3),
        arrow(*_stream_points(260, bottom + 68, 28), colour=BLUE, width=3),
    ]
    return Drawing("the block of 2017 and that of today", bottom + 108, parts)


def families() -> Drawing:
    """Draw the three families: encoder only, decoder only, encoder–decoder.

    Marks show where the six masks of ``torch.nn.Transformer`` act; grids show which token (row) may attend to which
    token (column).

    Returns
    -------
    Drawing

    Examples
    --------
    >>> families()
    Drawing('three families, and where six masks act')
    """
    columns = (
        (62, (("self", "1", "2"),), {"2"}, ("every", "token")),
        (186, (("self", "1", "2"),), {"1"}, ("itself and", "those before")),
        (322, (("self", "1", "2"),), {"2"}, ("the whole", "source")),
        (456, (("self", "3", "4"), ("cross", "5", "6")), {"3", "6"}, ("target so far,", "whole source")),
    )
    titles = (62, "encoder"), (186, "decoder"), (389, "encoder–decoder")
    parts = [label((x, 18), text, bold=True) for x, text in titles]
    parts += [label((x, 40), "only", bold=True) for x in (62, 186)]
    parts += [label((322, 42), "source"), label((456, 42), "target")]
    parts.append(label((260, 384), "what a token may see:", bold=True))
    for x, attentions, needed_masks, caption in columns:
        top = 56
        for name, *masks in attentions:
            parts += [
                arrow((x, top), (x, top + 24), colour=BLUE),
                *_masked_attention((x - 56, top + 24), name, masks, needed_masks),
            ]
            top += 88
        parts += [
            arrow((x, top), (x, top + 24), colour=BLUE),
            box((x - 59, top + 24), (118, 36), "feed-forward"),
        ]
        if x != 322:
            parts.append(arrow((x, top + 60), (x, 322), colour=BLUE))
        parts += [label((x, 472 + 22 * i), text) for i, text in enumerate(caption)]
    # The encoder's output is passed to each cross-attention of the decoder.
    parts.append(arrow((322, 204), (322, 248), (390, 248), (390, 190), (400, 190), colour=BLUE))
    parts += [
        label((322, 266), "memory"),
        *(label((x, 338), text) for x, text in ((62, "a class"), (186, "next token"), (456, "next token"))),
    ]
    full, causal = torch.ones(4, 4, dtype=torch.bool), causal_mask(4, device="cpu")
    for x, mask in ((62, full), (186, causal), (322, full), (430, causal), (484, full)):
        parts += _mask_grid((x - 24, 404), mask)
    rows = (
        ("src_mask", "decoder only: the future"),
        ("src_key_padding_mask", "source padding"),
        ("tgt_mask", "the future"),
        ("tgt_key_padding_mask", "target padding"),
        ("memory_mask", "nothing"),
        ("memory_key_padding_mask", "source padding"),
    )
    for i, (name, hidden) in enumerate(rows):
        y = 570 + 28 * i
        parts += _numbered_disc((20, y), str(i + 1), i in (1, 2, 5))
        parts += [label((38, y), name, anchor="start"), label((512, y), hidden, anchor="end")]
    parts += [
        label((260, 524), "the masks, and what each of them hides", bold=True),
        label((260, 546), "filled: needed if padding is at the end"),
    ]
    return Drawing("three families, and where six masks act", 732, parts)


def _masked_attention(corner, name, masks, needed_masks):
    """Return an attention box with the numbers of its masks."""
    x, y = corner
    parts = [box(corner, (112, 64)), label((x + 56, y + 18), "attention"), label((x + 8, y + 44), name, anchor="start")]
    for i, number in enumerate(masks):
        parts += _numbered_disc((x + 72 + 26 * i, y + 44), number, number in needed_masks)
    return parts


def _numbered_disc(centre, number, is_needed):
    """Return the number of a mask on a disc, which is filled if the mask is needed."""
    style = {"fill": GREEN, "stroke": GREEN} if is_needed else {"fill": "#fff", "stroke": LIGHT_GREY}
    return [circle(centre, 12, **style), label(centre, number, colour="#fff" if is_needed else INK)]


def _mask_grid(corner, mask):
    """Return a small grid of a mask; a filled cell means that a token may attend."""
    x, y = corner
    return [
        box((x + 12 * j, y + 12 * i), (12, 12), rounded=0, fill=BLUE if seen else "#fff", stroke=LIGHT_GREY)
        for i, row in enumerate(mask.tolist())
        for j, seen in enumerate(row)
    ]


def softmax_in_pieces() -> Drawing:
    """Draw how one query's output is computed from three pieces of scores, only one of which is in memory at a time.

    From piece to piece, the computation keeps three results: m, the largest score so far; the sum of exp(score - m);
    and the blend, the sum of exp(score - m) times the value. If m grows, sum and blend are multiplied by exp(m_old -
    m_new).

    Returns
    -------
    Drawing

    Examples
    --------
    >>> softmax_in_pieces()
    Drawing('softmax in three pieces')
    """
    scores, values = torch.tensor([[2.0, 1.0], [4.0, 3.0], [1.0, 4.0]]), torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    styles, colours, cell_width = (BLUE_BOX, RED_BOX, GREEN_BOX), (BLUE, RED, GREEN), 58
    parts = [label((96, 24), "scores", anchor="end"), label((96, 58), "values", anchor="end")]
    for j, (score, value) in enumerate(zip(scores.flatten().tolist(), values.flatten().tolist())):
        for y, number in ((8, score), (42, value)):
            corner = (112 + cell_width * j + 10 * (j // 2), y)
            parts.append(box(corner, (cell_width, 32), _format_number(number), rounded=0, **styles[j // 2]))
    largest, total, blend, top = -math.inf, 0.0, 0.0, 108
    for i, (piece, value) in enumerate(zip(scores, values)):
        previous, rescaling = (largest, total, blend), math.exp(largest - max(largest, piece.max().item()))
        largest = max(largest, piece.max().item())
        weights = torch.exp(piece - largest)
        total = rescaling * total + weights.sum().item()
        blend = rescaling * blend + (weights @ value).item()
        first, second = (f"{number:.2f}" for number in weights.tolist())
        previous_m = "" if i == 0 else f"{_format_number(previous[0])}, "
        equations = [
            ("m", f"max({previous_m}{', '.join(_format_number(n) for n in piece.tolist())})", _format_number(largest)),
            ("sum", f"{first} + {second}", f"{total:.2f}"),
            (
                "blend",
                f"{first} · {_format_number(value[0].item())} + {second} · {_format_number(value[1].item())}",
                f"{blend:.2f}",
            ),
        ]
        if i:
            factor = f"{rescaling:.2f}"
            equations[1:] = [
                (name, f"{factor} · {previous_value:.2f} + {new_terms}", result)
                for (name, new_terms, result), previous_value in zip(equations[1:], previous[1:])
            ]
            text = (
                f"factor for sum and blend: exp({_format_number(previous[0])} − {_format_number(largest)}) = {factor}"
            )
            parts.append(label((20, top + 22), text, anchor="start", colour=colours[i]))
        height = 98 if i else 76
        parts.append(label((20, top), f"piece {i + 1}", anchor="start", bold=True, colour=colours[i]))
        for row, (name, expression, result) in enumerate(equations):
            y = top + (44 if i else 22) + 22 * row
            parts.append(label((20, y), f"{name} = {expression}", anchor="start"))
            parts.append(label((504, y), f"= {result}", anchor="end", bold=True))
        top += height + 24
    parts += [
        line((20, top - 12), (504, top - 12), colour=LIGHT_GREY, width=1),
        label((20, top + 10), "output = blend ÷ sum", anchor="start", bold=True),
        label((504, top + 10), f"= {blend / total:.2f}", anchor="end", bold=True),
    ]
    return Drawing("softmax in three pieces", top + 30, parts)
