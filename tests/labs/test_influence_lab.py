"""The influence lab stores its models' tables, derives its verdicts from them, and measures a reader's own model."""

import math
from itertools import chain

import pytest
import torch
from torch import nn

import transformer_lab as tl
from javascript import Engine
from transformer_lab.bugs import BUGS
from transformer_lab.labs.influence import INPUTS, LETTERS, MODELS, VERDICTS, InfluenceLab

EARLIER_OUTPUTS = torch.ones(8, 8).tril(-1).bool()  # pairs (token, output) whose output comes before the token


def influence_table(letter, row="one", loud=False):
    return InfluenceLab(models=letter, row=row, loud=loud).table


def test_the_stored_tables_are_those_of_the_models():
    from tools.store_influence import stored_models

    for actual, expected in zip(stored_models(), MODELS, strict=True):
        assert {k: v for k, v in actual.items() if k != "tables"} == {
            k: v for k, v in expected.items() if k != "tables"
        }
        for name, rows in actual["tables"].items():
            for x, y in zip(chain(*rows), chain(*expected["tables"][name]), strict=True):
                assert (x is None) == (y is None) and (x is None or math.isclose(x, y, rel_tol=0.02)), name


def test_each_verdict_follows_from_the_tables():
    """If an output moves although it must not, the model reads the future, padding or another document."""
    for model in MODELS:
        letter, verdict, claim = model["letter"], model["verdict"], model["claim"]
        tables = {(row, loud): influence_table(letter, row, loud) for row in INPUTS for loud in (False, True)}
        must_not_move = EARLIER_OUTPUTS if claim.startswith("causal") else torch.zeros(8, 8).bool()
        if "prefix" in claim:
            must_not_move = must_not_move & ~(torch.arange(8) < 3)[:, None]
        sees_the_future = any((tables["one", loud][must_not_move] > 0).any() for loud in (False, True))
        assert sees_the_future == (verdict == "future"), letter
        if verdict in ("right", "padding", "documents", "nan", "window"):
            assert tables["padded", False].isnan().any() == (verdict == "nan"), letter
        if verdict in ("right", "documents"):
            crosses_documents = (tables["two", False][:4, 4:] > 0).any() or (tables["two", False][4:, :4] > 0).any()
            assert crosses_documents == (verdict == "documents"), letter
        if verdict in ("right", "padding"):
            assert (tables["padded", False][:3, 3:] > 0).any() == (verdict == "padding"), letter
        if "window" in claim:
            farthest = max(i - j for j, i in (tables["one", False] > 0).nonzero().tolist())
            assert farthest == (3 if verdict == "window" else 2), letter


def test_every_verdict_is_right_for_some_model_and_bugs_have_their_threads():
    assert {model["verdict"] for model in MODELS} == VERDICTS.keys()
    assert len(LETTERS) == 16 and sum(model["verdict"] == "right" for model in MODELS) >= 4
    threads = {model["thread"] for model in MODELS}
    assert sum(bug.thread in threads for bug in BUGS.values()) == 5


def test_a_readers_own_model_is_measured_and_not_changed():
    torch.manual_seed(0)
    model = tl.LanguageModel(20, 16, 2, 1, 32)
    before = torch.random.get_rng_state()
    lab = InfluenceLab(model, vocab_size=20)
    assert model.training and torch.equal(torch.random.get_rng_state(), before)
    assert not (lab.table[EARLIER_OUTPUTS] > 0).any() and (lab.table[~EARLIER_OUTPUTS] > 0).all()


class ReturnsTuple(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("gpt2", {}, "model must be an nn.Module, got str"),
        (nn.Embedding(9, 4), {}, "vocab_size must be given"),
        (nn.Embedding(9, 4), {"vocab_size": 1}, "vocab_size must be at least 2"),
        (ReturnsTuple(), {"vocab_size": 9}, "model must return one tensor"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(model, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        InfluenceLab(model, **options)


def test_sentences_describe_which_outputs_move():
    rows = [[0.0] * 8 for _ in range(8)]
    rows[3] = [0, 0, 0.5, 1.25, 0, 0, 0.001, 0]
    rows[6] = [None] * 8
    engine = Engine(InfluenceLab)
    assert engine("influenceText", rows, 0, "one") == "Token 0 is replaced: no output moves."
    assert engine("influenceText", rows, 3, "one") == (
        "Token 3 is replaced: outputs 2, 3 and 6 move, output 3 farthest, by 1.25 times the outputs’ standard "
        "deviation. Output 2 comes before the token."
    )
    assert engine("influenceText", rows, 6, "padded").endswith("every output is NaN, before and after the change.")
    assert engine("moveText", 0.001) == "<0.01"
