"""Lint reports some words and accepts others."""

import pytest

import plain_words


@pytest.mark.parametrize(
    "text, word",
    [
        ("It is wrong in silence.", "in silence"),
        ("The sums stand under the columns.", "stand"),
        ("Asked for are bytes.", "Asked for are"),
        ("The mean is asked for.", "is asked for"),
        ("It takes another axis than the last.", "another axis than"),
        ("You take the mask apart.", "take the mask apart"),
        ("The layer copies by itself.", "by itself"),
        ("Checks that recognise mistakes.", "recognise"),
    ],
)
def test_a_word_is_reported_with_a_better_one(text, word):
    ((word_found, instead),) = plain_words.complaints(text)
    assert word_found == word and instead


@pytest.mark.parametrize(
    "text",
    [
        "Nothing stands out, and `n` stands for a number.",
        "A program asks a table of 3 rows for row 3.",
        "The weights of a row sum to one over the keys.",
        "The code says `in silence` and ``stand``, and links to [stands](stands.md).",
        "Another layer understands the standard.",
    ],
)
def test_other_uses_and_code_are_accepted(text):
    assert plain_words.complaints(text) == []
