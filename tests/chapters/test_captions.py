"""A figure has a caption in the next cell, with the chapter's number and its own number."""

import re

import nbformat
import pytest

import notebooks

CAPTION = re.compile(r"\*\*Figure (\d+\.\d+)\.\*\* \w")


@pytest.mark.parametrize("chapter", [1, 2, 5])
def test_every_picture_is_followed_by_its_numbered_caption(chapter):
    path = next(path for path in notebooks.chapters() if path.stem.startswith(f"{chapter:02}_"))
    cells = nbformat.read(path, 4).cells
    pictures = [
        number
        for number, cell in enumerate(cells)
        if any({"image/png", "image/svg+xml"} & {*output.get("data", {})} for output in cell.get("outputs", []))
    ]
    captions = [CAPTION.match(cells[number + 1].source) for number in pictures]
    assert [caption and caption[1] for caption in captions] == [f"{chapter}.{k}" for k in range(1, len(pictures) + 1)]
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    mentioned = re.findall(r"(?<!\*)Figure (\d+\.\d+)", text)
    assert {*mentioned} <= {caption[1] for caption in captions}
