"""In the hunt over whole models, the usual tests catch few bugs, and the solution's tests get all stars."""

import time

import pytest
import torch

import transformer_lab as tl
from chapter_code import chapter_code
from transformer_lab.bugs import BUGS
from transformer_lab.bugs.right import RIGHT_MODELS
from transformer_lab.bugs.small_model import audit_arguments
from transformer_lab.checks import model_hunt, observe

HUNT = tl.checks.whole_model
MISTAKES = [mistake for mistakes in model_hunt.BUGS_BY_KIND.values() for mistake in mistakes]


def compares_the_shape(model):
    assert model(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, 50)


def changes_the_last_token(model):
    tokens = torch.arange(8)[None]
    changed = tokens.clone()
    changed[:, -1] = 20
    assert torch.allclose(model(tokens)[:, :-1], model(changed)[:, :-1], atol=1e-6)


def refuses_dropout(model):
    compares_the_shape(model)
    assert model.dropout == 0


def never_calls_the_model(model):
    assert model is not None


def is_not_written(model):
    raise NotImplementedError


def test_a_hunt_has_twenty_mistakes_and_ten_right_models():
    assert len(MISTAKES) == 20 and len(RIGHT_MODELS) == 10
    assert sum(isinstance(mistake, str) for mistake in MISTAKES) == 12


@pytest.mark.parametrize("name", RIGHT_MODELS)
def test_an_audit_finds_nothing_in_a_right_model(name, capsys):
    assert tl.audit(**audit_arguments(RIGHT_MODELS[name]())).failed == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: getattr(mistake, "__name__", mistake))
def test_an_audit_finds_every_hunted_mistake(mistake, capsys):
    assert tl.audit(**audit_arguments(model_hunt._builder_of(mistake)())).failed


def test_the_usual_tests_catch_few_mistakes():
    assert (HUNT.report(compares_the_shape).caught, HUNT.report(changes_the_last_token).caught) == (0, 6)


def test_a_card_names_a_published_bug_and_counts_kinds():
    report = HUNT.report(changes_the_last_token)
    bug = BUGS["inverted_mask"]
    assert (
        f"{bug.title} ({bug.thread}, {bug.date})" in report.message and "next star, it must catch 12" in report.message
    )
    assert ("the outputs are different if a text comes in parts, with a cache", 3, 3) in report.kinds


@pytest.mark.parametrize("name", ["test_whole_model", "test_whole_model_otherwise"])
def test_the_solutions_tests_get_all_stars(name):
    report = HUNT.report(chapter_code("solutions/11_right")[name])
    assert report.stars == 3, report.message


def test_the_time_factor_multiplies_the_time_limit(monkeypatch):
    monkeypatch.setattr(observe, "TIME_LIMIT", 0.3)

    def work():
        end = time.thread_time() + 0.9
        while time.thread_time() < end:
            pass
        return "done"

    assert observe.run_guarded(observe.Timed(work), time_factor=20) == ("done", "")
    with pytest.raises(observe.TimeUp) as raised:
        observe.run_guarded(observe.Timed(work))
    assert raised.value.seconds == 0.3
    assert model_hunt.whole_model.time_factor >= 4


def test_a_test_that_refuses_a_right_model_gets_no_star():
    report = HUNT.report(refuses_dropout)
    assert (report.stars, report.refused) == (0, 1)
    assert "has dropout" in report.message


@pytest.mark.parametrize(
    ("test", "status", "message"),
    [
        (never_calls_the_model, "error", "never calls the model"),
        (is_not_written, "not attempted", ""),
        (7, "error", "Pass the test itself"),
    ],
)
def test_a_value_that_is_not_a_test_is_reported(test, status, message):
    report = HUNT.report(test)
    assert report.status == status and message in report.message


def test_a_broken_model_stays_broken_after_a_test_that_changes_it():
    def evaluates_and_trains(model):
        model.eval()
        model(torch.zeros(1, 4, dtype=torch.long))
        for p in model.parameters():
            p.data.zero_()

    before = HUNT.report(changes_the_last_token).caught
    HUNT.report(evaluates_and_trains)
    assert HUNT.report(changes_the_last_token).caught == before


def test_the_model_hunt_is_called_like_every_hunt(capsys):
    report = tl.checks.hunt(tl.checks.whole_model, changes_the_last_token)
    assert report.caught == 6 and "6 of 20 mistakes caught" in capsys.readouterr().out
    assert tl.checks.test_whole_model is tl.checks.whole_model
