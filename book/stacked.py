"""Stacks the panels of a figure for phones, so that the letters in the panels are readable.

White bars across the whole figure separate the panels.
"""

import numpy as np
from PIL import Image

MIN_BAR = 0.006, 0.012  # minimum thickness of a separating bar, as a share of the figure's width or height
MIN_PANEL = 0.15, 0.3  # minimum size of a panel, as such a share; a smaller part is a label of the next (or last) panel
WHITE_LEVEL = 250
GAP = 12  # pixels


def panels(image):
    """Return the panels of a figure, row by row."""
    rows = _split(image, 1)
    return [panel for row in rows for panel in _split(row, 0)]


def stack(image):
    """Return the figure with its panels one below the other, or None if every row has only one panel."""
    parts = panels(image)
    width = max(part.width for part in parts)
    if width > 0.75 * image.width:
        return None
    stacked = Image.new("RGB", (width, sum(part.height for part in parts) + GAP * (len(parts) - 1)), "white")
    top = 0
    for part in parts:
        stacked.paste(part, (0, top))
        top += part.height + GAP
    return stacked


def _split(image, axis):
    """Cut a figure at its white bars: with axis 0 into columns, and with axis 1 into rows."""
    size = image.size[axis]
    white = (np.asarray(image.convert("L")) >= WHITE_LEVEL).all(axis)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~white, [False]]).astype(int))).reshape(-1, 2)
    spans = []
    for begin, end in edges.tolist():
        if spans and begin - spans[-1][1] < MIN_BAR[axis] * size:
            spans[-1][1] = end
        else:
            spans.append([begin, end])
    parts = []
    for begin, end in reversed(spans):
        if parts and end - begin < MIN_PANEL[axis] * size:
            parts[0][0] = begin
        else:
            parts.insert(0, [begin, end])
    if len(parts) > 1 and parts[-1][1] - parts[-1][0] < MIN_PANEL[axis] * size:
        parts[-2:] = [[parts[-2][0], parts[-1][1]]]
    other_size = image.size[1 - axis]
    return [image.crop((b, 0, e, other_size) if axis == 0 else (0, b, other_size, e)) for b, e in parts]
