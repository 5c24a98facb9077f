"""The page of sentences to remember has every *Remember* sentence of the chapters, with a link to its section."""

import re
import sys

import nbformat

import notebooks
from notebooks import ROOT

sys.path.append(str(ROOT))
from book.remember import as_markdown, sentences


def test_every_sentence_of_the_chapters_is_on_the_page():
    cells = [cell.source for path in notebooks.chapters() for cell in nbformat.read(path, 4).cells]
    n_sentences = sum(len(re.findall(r"^> \*\*Remember:\*\*", source, re.MULTILINE)) for source in cells)
    actual = list(sentences())
    assert len(actual) == n_sentences > 50
    page = as_markdown()
    assert all(f"**[{number}]({link})** {sentence}" in page for number, link, sentence in actual)
    assert page.count("\n## ") + 1 == len({link.partition("#")[0] for _, link, _ in actual})
