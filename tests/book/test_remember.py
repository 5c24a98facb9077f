"""The page of the sentences to remember has each of them, with its section."""

import re
import sys

import nbformat

import notebooks
from notebooks import ROOT

sys.path.append(str(ROOT))
from book.remember import as_markdown, sentences


def test_every_sentence_of_the_chapters_is_on_the_page():
    cells = [cell.source for path in notebooks.chapters() for cell in nbformat.read(path, 4).cells]
    said = sum(len(re.findall(r"^> \*\*Remember:\*\*", source, re.MULTILINE)) for source in cells)
    found = list(sentences())
    assert len(found) == said > 50
    page = as_markdown()
    assert all(f"**[{number}]({link})** {sentence}" in page for number, link, sentence in found)
    assert page.count("\n## ") + 1 == len({link.partition("#")[0] for _, link, _ in found})
