"""A test that runs only some of its cases on a push runs all of its cases every week."""

import re

from notebooks import ROOT
from sampling import EVERYTHING, every_third


def test_every_third_from_each_of_three_beginnings_includes_each_case_once():
    cases = list(range(10))
    parts = [every_third(cases, first) for first in range(3)]
    assert parts == [cases] * 3 if EVERYTHING else sorted(case for part in parts for case in part) == cases


def test_the_weekly_verb_runs_every_file_that_samples():
    sampling_files = [
        path for path in ROOT.glob("tests/*/test_*.py") if re.search(r"(?m)^from sampling", path.read_text())
    ]
    assert len(sampling_files) >= 6
    recipe = (ROOT / "Makefile").read_text().split("\neverything:")[1].split("\n\n")[0]
    assert "$(SAMPLED_TESTS)" in recipe and "TRANSFORMER_LAB_EVERYTHING=1" in recipe
