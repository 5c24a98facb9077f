"""Every figure of a chapter has a numbered caption in the next cell."""

import re

import nbformat
import pytest

import notebooks

CAPTION = re.compile(r"\*\*Figure (\d+\.\d+)\.\*\* \w")


@pytest.mark.parametrize("chapter", [1, 2, 5])
def test_every_picture_is_followed_by_its_numbered_caption(chapter):
    path = next(path for path in notebooks.chapters() if path.stem.startswith(f"{chapter:02}_"))
    cells = nbformat.read(path, 4).cells
    picture_cells = [
        i
        for i, cell in enumerate(cells)
        if any({"image/png", "image/svg+xml"} & {*output.get("data", {})} for output in cell.get("outputs", []))
    ]
    captions = [CAPTION.match(cells[i + 1].source) for i in picture_cells]
    expected_numbers = [f"{chapter}.{k}" for k in range(1, len(picture_cells) + 1)]
    assert [caption and caption[1] for caption in captions] == expected_numbers
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    mentioned_numbers = re.findall(r"(?<!\*)Figure (\d+\.\d+)", text)
    assert {*mentioned_numbers} <= {caption[1] for caption in captions}
