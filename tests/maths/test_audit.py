"""The audit finds published and new mistakes, accepts repaired and other correct models, and reports wrong input."""

import contextlib
import copy
import inspect
import io
import os
import random
import subprocess
import sys
import time
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import fresh_mistakes
import later_mistakes
import transformer_lab as tl
from agreement import DEVICE
from notebooks import ROOT
from right_models import MODELS
from sampling import every_third
from transformer_lab.audit import limit
from transformer_lab.audit.__main__ import main
from transformer_lab.audit.card import LIMITS_TEXT
from transformer_lab.audit.properties import PROPERTIES
from transformer_lab.bugs import BUGS
from transformer_lab.bugs.small_model import VOCAB_SIZE, SmallModel, audit_arguments


def audit_silently(**arguments):
    """Return the report of an audit, and discard its card."""
    with contextlib.redirect_stdout(io.StringIO()):
        return tl.audit(**arguments)


def results_by_property(report):
    """Return the status and the text of each property in a report."""
    return {name: (status, text) for name, status, text in report.rows}


DETECTED_BY = fresh_mistakes.DETECTED_BY | later_mistakes.DETECTED_BY


@cache
def published_report(name, broken):
    return audit_silently(**BUGS[name].arguments(broken))


@cache
def fresh_report(mistake):
    return audit_silently(**mistake())


# Mistakes, and correct models


@pytest.mark.parametrize("name", BUGS)
def test_a_published_mistake_is_found_and_its_repaired_version_is_clean(name):
    assert BUGS[name].found_by in published_report(name, True).failed
    repaired = published_report(name, False)
    assert (repaired.failed, repaired.of("raises")) == ([], [])
    assert results_by_property(repaired)[BUGS[name].found_by][0] == "holds"


@pytest.mark.parametrize("module", (fresh_mistakes, later_mistakes), ids=lambda module: module.__name__)
def test_there_are_twenty_published_and_twice_twenty_fresh_mistakes(module):
    assert len(BUGS) == len(module.DETECTED_BY) == 20
    mistakes = [
        function
        for function in vars(module).values()
        if inspect.isfunction(function) and function.__module__ == module.__name__
    ]
    assert {function for function in mistakes if not inspect.signature(function).parameters} == set(module.DETECTED_BY)


@pytest.mark.parametrize("mistake", every_third(DETECTED_BY, 1), ids=lambda mistake: mistake.__name__)
def test_a_fresh_mistake_is_found_by_the_expected_property(mistake):
    failed = fresh_report(mistake).failed
    assert DETECTED_BY[mistake] in failed if DETECTED_BY[mistake] else not failed


@pytest.mark.parametrize("model", every_third(MODELS), ids=lambda model: model.__name__)
def test_a_right_model_raises_no_alarm(model):
    report = audit_silently(**model())
    assert [row for row in report.rows if row[1] in ("fails", "raises")] == []
    assert len(report.of("holds")) >= 8


def test_there_are_enough_right_models():
    assert len(MODELS) >= 20


class Closure(SmallModel):
    """A model whose function closes over the model's modules, so a copy of the model uses the original modules."""

    def __init__(self):
        super().__init__()
        self.feed_forward = lambda x, layer: self.feed_forwards[layer](x)


class TransposedOnLoad(SmallModel):
    """A model that transposes a square matrix when the matrix is loaded, but not when it is saved."""

    def __init__(self):
        super().__init__()
        self.register_load_state_dict_pre_hook(self.transpose)

    @staticmethod
    def transpose(module, state, *_):
        state["projections.0.query.weight"] = state["projections.0.query.weight"].T


def last_source_token_dropped(**changes):
    """Return the arguments for a translation model that drops the last token of its source."""
    model, target = (
        tl.Transformer(VOCAB_SIZE, VOCAB_SIZE, 16, 2, 1, 32).to(DEVICE),
        torch.arange(1, 11, device=DEVICE)[None],
    )
    forward = lambda model, x: model(x[:, :-1], target.expand(len(x), -1))  # noqa: E731
    return {"model": model, "vocab_size": VOCAB_SIZE, "kind": "bidirectional", "forward": forward, **changes}


OTHER_MISTAKES = {
    "a copy is on its own": lambda: audit_arguments(Closure(), long=None),
    "saved and loaded": lambda: audit_arguments(TransposedOnLoad(), long=None),
    "every source token is heard": last_source_token_dropped,
}


@pytest.mark.parametrize("name", OTHER_MISTAKES)
def test_each_of_the_other_mistakes_fails_its_own_property(name):
    assert name in audit_silently(**OTHER_MISTAKES[name]()).failed


def test_every_property_finds_a_mistake():
    detected = {bug.found_by for bug in BUGS.values()} | set(DETECTED_BY.values()) | OTHER_MISTAKES.keys()
    assert PROPERTIES.keys() <= detected
    assert len(PROPERTIES) >= 27


def test_a_property_is_short_and_asks_a_question():
    for name, function in PROPERTIES.items():
        assert inspect.getdoc(function).rstrip().endswith("?"), name
        assert len(inspect.getsource(function).splitlines()) <= 36, name


# What the card says


def test_the_card_shows_the_smallest_leak_and_what_all_leaks_have_in_common():
    text = results_by_property(published_report("inverted_mask", True))["the past does not move"][1]
    assert text.startswith("token 1 changed: output 0 moved by 0.0") and "; 45 of 45 pairs leak" in text
    assert text.endswith("is the mask the wrong way round?")
    text = results_by_property(fresh_report(fresh_mistakes.causal_mask_one_diagonal_too_high))[
        "the past does not move"
    ][1]
    # each of two layers leaks one token ahead
    assert "all up to 2 tokens ahead: does the triangle begin on the wrong diagonal?" in text
    text = results_by_property(fresh_report(fresh_mistakes.norm_over_the_sequence))["the past does not move"][1]
    assert text.endswith("is the mask missing, or is something computed over the whole sequence?")


def test_leaks_inside_blocks_are_named():
    class Blocks(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            positions = torch.arange(k_len, device=DEVICE)
            same_block = positions[k_len - q_len :, None] // 4 == positions // 4
            return super().mask(q_len, k_len, keep, documents) | same_block

    text = results_by_property(audit_silently(model=Blocks(n_layers=1), vocab_size=VOCAB_SIZE))[
        "the past does not move"
    ][1]
    assert "13 of 45 pairs leak, all inside blocks of 4 tokens" in text


def test_the_shift_of_a_loss_is_named():
    text = results_by_property(published_report("shifted_twice", True))["the loss asks for the next token"][1]
    assert text.endswith("the result equals the loss of the token after the next: are the labels shifted twice?")
    text = results_by_property(fresh_report(fresh_mistakes.loss_divided_by_all_tokens))[
        "the loss asks for the next token"
    ][1]
    assert text.endswith("; the ratio is 0.9")


def test_the_first_module_that_differs_from_the_reference_is_named():
    text = results_by_property(published_report("tile_for_repeat", True))["the same as the original"][1]
    assert (
        "the first difference is in the input of `projections.0.out`, after `projections.0.value`, which agrees" in text
    )
    model, reference = SmallModel(n_layers=4), SmallModel(n_layers=4)
    with torch.no_grad():
        reference.feed_forwards[2][0].weight[0, 0] += 1
    text = results_by_property(audit_silently(model=model, vocab_size=VOCAB_SIZE, reference=reference))[
        "the same as the original"
    ][1]
    assert "the first difference is in `feed_forwards.2.0`, after `norms.5`, which agrees" in text


def test_where_names_differ_the_layers_of_the_longest_lists_are_compared():
    class Stack(nn.Module):
        def __init__(self, name, change=0.0):
            super().__init__()
            torch.manual_seed(0)
            layers = [nn.Linear(8, 8) for _ in range(4)]
            layers[2].bias.data += change
            setattr(self, name, nn.Sequential(*layers).to(DEVICE))
            self.names = [name]

        def forward(self, x):
            return getattr(self, self.names[0])(x)

    arguments = {"model": Stack("layers"), "reference": Stack("blocks", 1.0)}
    text = results_by_property(audit_silently(**arguments, d_model=8, kind="local"))["the same as the original"][1]
    assert text.endswith("the first difference is in layer 2, after layer 1, which agrees")


def test_the_card_has_a_text_form_and_an_html_form():
    report = published_report("inverted_mask", True)
    text, html = str(report), report._repr_html_()
    headline = f"Audit of Mistake: {len(report.failed)} fail"
    assert text.startswith(headline)
    assert "✗ the past does not move: token 1" in text and "○ the window: pass `window=` and `n_layers=`" in text
    assert " ".join(LIMITS_TEXT.split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 88
    assert html.count("<details>") == 2 and f'role="group" aria-label="The a{headline[1:]}' in html
    assert "<code" in html and "`" not in html and report._ipython_display_() is None
    assert repr(report).startswith(f"<a{headline[1:]}")
    assert "verified" not in text + html


def test_an_audit_prints_its_card(capsys):
    report = tl.audit(tl.FeedForward(8).to(DEVICE), d_model=8, kind="local")
    assert capsys.readouterr().out == f"{report}\n"


# Random state and settings


def test_outputs_that_are_random_stop_the_audit():
    report = published_report("dropout_in_evaluation", True)
    assert report.failed == ["twice the same"]
    assert results_by_property(report)["rows apart"] == ("not tried", "equal inputs do not give equal outputs")
    assert results_by_property(report)["layers begin different"][0] == "holds"


def test_weights_modes_and_the_random_state_are_left_as_they_were():
    # The audit runs a copy of the first model, but runs the second model itself.
    for model in (SmallModel(dropout=0.2), Closure()):
        model.norms[0].eval()
        weights, modes = copy.deepcopy(model.state_dict()), [module.training for module in model.modules()]
        torch.manual_seed(5)
        random.seed(5)
        expected = torch.rand(3), random.random()
        torch.manual_seed(5)
        random.seed(5)
        audit_silently(**audit_arguments(model, long=None))
        assert torch.equal(torch.rand(3), expected[0]) and random.random() == expected[1]
        assert [module.training for module in model.modules()] == modes
        assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
        assert all(parameter.grad is None for parameter in model.parameters())


def test_an_adapter_that_runs_the_original_leaves_no_gradient_there():
    model = SmallModel()
    audit_silently(
        model=model, vocab_size=VOCAB_SIZE, accumulate=lambda copied, batches: model(batches[0][0]).sum().backward()
    )
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_audit_gives_the_same_rows_again():
    arguments = BUGS["left_padding"].arguments()
    assert audit_silently(**arguments).rows == published_report("left_padding", True).rows


# Properties that are switched off


def test_a_property_is_switched_off_with_a_reason():
    arguments = BUGS["left_padding"].arguments()
    name = "alone = in a padded batch, left"
    report = audit_silently(**arguments, expect={name: "positions count the padding on purpose"})
    assert report.failed == []
    assert results_by_property(report)[name] == ("not tried", "switched off: positions count the padding on purpose")
    assert results_by_property(audit_silently(**arguments, expect=[name]))[name] == ("not tried", "switched off")


def test_an_unknown_property_is_named_and_the_rest_goes_on():
    report = audit_silently(model=tl.FeedForward(8).to(DEVICE), d_model=8, kind="local", expect=["the windows"])
    assert report.notes == [
        "`expect` contains 'the windows', which is not a property of the audit; did you mean 'the window'?"
    ]
    assert "rows apart" in report.of("holds")


# Wrong input: each case produces one clear line, and the audit continues


class Wrapped(nn.Module):
    """A model that returns its outputs inside an object, such as a tuple or a dataclass."""

    def __init__(self, wrap):
        super().__init__()
        self.model, self.wrap = SmallModel(), wrap

    def forward(self, tokens):
        return self.wrap(self.model(tokens))


def test_a_model_may_return_its_output_in_a_tuple_or_a_dataclass():
    def duplicate(out):
        return out, out

    for wrap in (lambda out: (out, None), lambda out: SimpleNamespace(logits=out, loss=None), lambda out: {"out": out}):
        assert audit_silently(model=Wrapped(wrap), vocab_size=VOCAB_SIZE).failed == []
    report = audit_silently(model=Wrapped(duplicate), vocab_size=VOCAB_SIZE)
    assert results_by_property(report)["twice the same"] == (
        "raises",
        "the model must return one tensor, (batch, seq, features), got tuple with [0] (1, 10, 50), [1] (1, 10, 50): "
        "pass forward=lambda model, x: model(x)[0]",
    )
    assert results_by_property(report)["rows apart"] == ("not tried", "the model has no output")
    assert results_by_property(report)["layers begin different"][0] == "holds"
    for wrap in (lambda out: None, lambda out: out.argmax(-1), lambda out: out[0]):
        assert (
            "must return one tensor"
            in results_by_property(audit_silently(model=Wrapped(wrap), vocab_size=VOCAB_SIZE))["twice the same"][1]
        )


def test_a_model_that_cannot_be_copied_is_audited_itself():
    model = SmallModel()
    model.names = (name for name in "ab")  # a generator cannot be copied
    report = audit_silently(**audit_arguments(model, long=None))
    assert report.failed == [] and "the past does not move" in report.of("holds")
    assert report.notes[0].startswith("The model cannot be copied (TypeError: ")
    assert results_by_property(report)["saved and loaded"][0] == "not tried"


def test_a_copy_that_runs_parts_of_the_original_fails_one_property():
    report = audit_silently(**audit_arguments(Closure(), long=None))
    assert report.failed == ["a copy is on its own"]
    text = "a copy of the model runs parts of the original, such as `feed_forwards.0.0.weight`"
    assert results_by_property(report)["a copy is on its own"] == ("fails", text)


def test_a_model_without_parameters_is_audited():
    class Mean(nn.Module):
        def forward(self, x):
            return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]

    report = audit_silently(model=Mean(), d_model=4, expect=["order is seen"])
    assert report.failed == report.of("raises") == []
    assert results_by_property(report)["every parameter learns"] == (
        "not tried",
        "the model has no parameters that learn",
    )


def test_a_model_that_needs_the_other_kind_of_input_gets_a_suggestion():
    text = results_by_property(audit_silently(model=SmallModel(), d_model=32))["twice the same"][1]
    assert text.endswith("Does the model take token ids? Pass vocab_size= and not d_model=")
    text = results_by_property(audit_silently(model=tl.Encoder(16, 2, 1, 32).to(DEVICE), vocab_size=50))[
        "twice the same"
    ][1]
    assert "Pass d_model= and not vocab_size=" in text
    if DEVICE.type == "cpu":
        text = results_by_property(audit_silently(model=SmallModel(), vocab_size=5000))["twice the same"][1]
        assert text.endswith("Is vocab_size larger than the model's embedding?")


def test_a_model_that_accepts_one_length_only_is_audited_with_it():
    one_length = next(model for model in MODELS if model.__name__ == "one_length_only")
    report = audit_silently(**one_length())
    reason = "The model does not accept 10 tokens (ValueError: 16 tokens are needed)"
    assert report.notes == [f"{reason}: it is audited with 16 tokens."]
    assert results_by_property(report)["a prefix gives the same"][1].startswith(
        "the model does not accept 15 tokens: ValueError"
    )


def test_a_model_or_an_adapter_that_never_ends_is_interrupted(monkeypatch):
    def endless(*_):
        while True:
            time.sleep(0.001)

    monkeypatch.setattr(limit, "SECONDS", 0.3)
    monkeypatch.setattr(limit, "PASSES", 60)
    report = audit_silently(model=Wrapped(endless), vocab_size=VOCAB_SIZE)
    assert results_by_property(report)["twice the same"] == (
        "raises",
        "the model did not come to an end within 0.3 seconds",
    )
    assert "layers begin different" in report.of("holds")
    report = audit_silently(model=SmallModel(), vocab_size=VOCAB_SIZE, accumulate=endless)
    assert "did not come to an end" in results_by_property(report)["small batches = one big"][1]
    assert "every parameter learns" in report.of("holds")


PROPERTY_BY_ADAPTER = {
    "padded": "alone = in a padded batch, right",
    "packed": "packed = apart",
    "step": "with a cache = without",
    "loss": "the loss asks for the next token",
    "accumulate": "small batches = one big",
    "collate": "every real token is a label",
}


@pytest.mark.parametrize("name", PROPERTY_BY_ADAPTER)
def test_an_adapter_of_the_wrong_form_is_named(name):
    for wrong_adapter in (3, lambda: None):
        report = audit_silently(**audit_arguments(SmallModel(), long=None) | {name: wrong_adapter})
        status, text = results_by_property(report)[PROPERTY_BY_ADAPTER[name]]
        assert status == "raises" and text.startswith(f"{name} must be a function {name}(")
        assert report.failed == [] and "every parameter learns" in report.of("holds")


@pytest.mark.parametrize("name", ["padded", "packed", "step", "loss", "collate"])
def test_an_adapter_that_returns_the_wrong_thing_is_named(name):
    report = audit_silently(**audit_arguments(SmallModel(), long=None) | {name: lambda *_: "nothing"})
    status, text = results_by_property(report)[PROPERTY_BY_ADAPTER[name]]
    assert status == "raises" and text.startswith(f"{name} must return ")


def test_a_reference_or_branches_of_the_wrong_form_are_named():
    layer = tl.FeedForward(8).to(DEVICE)
    report = audit_silently(model=layer, d_model=8, kind="local", reference=3, branches=[nn.Linear(2, 2)])
    assert results_by_property(report)["the same as the original"][1].startswith("reference must be a module")
    assert results_by_property(report)["identity without branches"][1].startswith(
        "branches must be modules of the model"
    )


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"model": len}, TypeError, "model must be an nn.Module, got builtin_function_or_method"),
        ({"vocab_size": None}, ValueError, "one of vocab_size .* and d_model .* must be given, got none"),
        ({"d_model": 8}, ValueError, "got both"),
        ({"vocab_size": 2}, ValueError, "vocab_size must be at least 4, got 2"),
        ({"kind": "masked"}, ValueError, "kind must be one of causal, bidirectional, local, got 'masked'"),
        ({"length": 4}, ValueError, "length must be at least 8, got 4"),
        ({"long": 20}, ValueError, "long must be 0, .*, or at least 200, got 20"),
        ({"pad": 50}, ValueError, "pad must be a token below vocab_size, which is 50, got 50"),
        ({"window": 0}, ValueError, "window must be at least 1, got 0"),
        ({"branches": nn.Linear(2, 2)}, TypeError, "branches must be a list of modules"),
        ({"expect": "the window"}, TypeError, "expect must be a list of names"),
    ],
)
def test_arguments_are_checked(changes, error, text):
    with pytest.raises(error, match=text):
        tl.audit(**{"model": SmallModel(), "vocab_size": 50} | changes)


# From a shell


FACTORIES = """
import transformer_lab as tl

def right():
    return tl.FeedForward(8)

def wrong():
    return {"model": tl.Encoder(8, 2, 1, 16), "d_model": 8}
"""


def test_a_module_is_audited_from_a_shell(tmp_path):
    (tmp_path / "mine.py").write_text(FACTORIES)
    command = [sys.executable, "-m", "transformer_lab.audit", "mine:wrong"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 1 and process.stderr == ""
    assert process.stdout.startswith("Audit of Encoder: ") and "✗ the past does not move" in process.stdout


def test_the_exit_status_shows_a_failure_and_a_wrong_factory_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "factories.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["factories:right", "--d-model", "8", "--kind", "local"]) == 0
    assert main(["factories:right", "--d-model", "7", "--kind", "local"]) == 1  # the model raises an error
    messages = {
        "factories": "must be written package.module:factory",
        "factories:none": "factories:none cannot be called: module 'factories' has no attribute 'none'",
        "no_such_module:make": "No module named 'no_such_module'",
    }
    for factory, error_message in messages.items():
        with pytest.raises(SystemExit, match="2"):
            main([factory, "--d-model", "8"])
        assert error_message in capsys.readouterr().err
