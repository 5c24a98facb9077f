"""The progress bar counts its steps, and its last text is the same in every run."""

import pytest

import transformer_lab as tl


@pytest.mark.parametrize("steps", [1, 7, 300])
def test_progress_bar_counts_and_ends_full(steps, capsys):
    assert list(tl.progress_bar(steps, "training")) == list(range(steps))
    printed, errors = capsys.readouterr()
    assert errors == ""
    assert printed.split("\r")[-1] == f"training: |{'█' * 40}| {steps} of {steps}\n"
    assert printed.count("\n") == 1  # one line, which is overwritten


def test_progress_bar_shows_an_early_stop(capsys):
    for step in tl.progress_bar(10, "training"):
        if step == 3:
            break
    assert "10 of 10" not in capsys.readouterr().out
