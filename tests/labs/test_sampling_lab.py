"""The sampling lab works in Python and in a browser, and its numbers agree with PyTorch's and the model's."""

import itertools
import json
import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from agreement import raises
from gestures import status
from javascript import ANY_TEXT, Engine, assert_close, many_examples, parse_checked
from transformer_lab import pretrained
from transformer_lab.labs import SamplingLab
from transformer_lab.labs.sampling import MAX_STORED_TOKENS, PROMPT_KEYS, PROMPTS, STEPS_PER_UNIT, stored_prompt

VOCAB = 2000


@pytest.fixture(scope="module")
def engine():
    return Engine(SamplingLab)


def probabilities_by_torch(logits, temperature, top_k=None, top_p=1, min_p=0):
    """Compute a whole vocabulary's probabilities independently of the lab, and apply the cut-offs token by token."""
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    p = (logits.double() / temperature).softmax(-1)
    best_probability = p.amax()
    if top_k is not None:
        p = p * (logits >= logits.sort(descending=True).values[top_k - 1])
        p = p / p.sum()
    if top_p < 1:
        total_above = torch.stack([p[logits > score].sum() for score in logits])  # the total of more likely tokens
        p = p * (total_above < top_p - 1e-12)
        p = p / p.sum()
    if min_p > 0:
        p = p * ((logits.double() / temperature).softmax(-1) >= min_p * best_probability)
    return p / p.sum()


def displayed_probabilities(p, logits):
    """Return the probabilities in the lab's form: the stored tokens, then all other tokens together."""
    best = logits.argsort(descending=True)[:MAX_STORED_TOKENS]
    return torch.cat([p[best], p.sum()[None] - p[best].sum()])


CUT_OFFS = [
    {},
    {"top_k": 1},
    {"top_k": 40},
    {"top_k": 300, "top_p": 0.9},
    {"top_p": 0.01},
    {"top_p": 0.5},
    {"top_p": 0.99},
    {"min_p": 0.05},
    {"min_p": 1},
    {"top_p": 0.95, "min_p": 0.01},
    {"top_k": 50, "top_p": 0.95, "min_p": 0.02},
]


@pytest.mark.parametrize("std", [0.3, 1, 4])
@pytest.mark.parametrize("cut_off", CUT_OFFS, ids=str)
def test_probabilities_are_those_of_the_whole_vocabulary(engine, monkeypatch, cut_off, std):
    logits = std * torch.randn(VOCAB, generator=torch.Generator().manual_seed(0))
    stored = stored_prompt("sea", "Random", logits, str)
    monkeypatch.setattr("transformer_lab.labs.sampling.PROMPTS", [stored])
    for temperature in (0, 0.25, 0.7, 1, 2):
        expected = probabilities_by_torch(logits, temperature, **cut_off)
        lab = SamplingLab("sea", temperature=temperature, **cut_off)
        assert_close(lab.after, displayed_probabilities(expected, logits))
        assert lab.n_kept == (expected > 0).sum()
        assert_close(lab.before, displayed_probabilities(probabilities_by_torch(logits, temperature), logits))
        settings = {"temperature": temperature, "top_k": None, "top_p": 1, "min_p": 0} | cut_off
        actual = engine("applyCuts", stored, settings, STEPS_PER_UNIT)
        assert_close(actual["after"], lab.after)
        assert_close(actual["before"], lab.before)
        assert actual["kept"] == lab.n_kept


def test_draws_are_as_frequent_as_their_probabilities(engine):
    lab = SamplingLab("colour", temperature=1.5, top_p=0.9, seed=5, draws=1000)
    assert lab.numbers.min() >= 0 and lab.numbers.max() < 1
    assert_close([engine("randomNumber", 5, place) for place in range(1000)], lab.numbers, rtol=0, atol=0)
    choice = {"after": lab.after.tolist(), "kept": lab.n_kept}
    assert [engine("drawnIndex", x, choice) for x in lab.numbers.tolist()] == lab.drawn
    counts = torch.bincount(torch.tensor(lab.drawn), minlength=len(lab.after)) / lab.draws
    std = (lab.after * (1 - lab.after) / lab.draws).sqrt()
    assert ((counts - lab.after).abs() <= 4.5 * std + 1e-3).all()
    assert SamplingLab("colour", seed=6, draws=1000).drawn != SamplingLab("colour", seed=5, draws=1000).drawn


@pytest.mark.parametrize("seed", [0, 1, 9999])
def test_numbers_of_a_seed_are_evenly_spread(seed):
    numbers = SamplingLab(seed=seed, draws=1000).numbers
    assert abs(numbers.mean().item() - 0.5) < 0.03 and len(set(numbers.tolist())) == 1000
    assert torch.histc(numbers.float(), 10, 0, 1).min() > 65


def test_a_number_near_one_draws_no_token_that_is_cut_off(engine):
    lab = SamplingLab("france", top_k=3)
    assert engine("drawnIndex", 1 - 2**-32, {"after": lab.after.tolist(), "kept": 3}) == 2
    assert engine("drawnIndex", 0, {"after": lab.after.tolist(), "kept": 3}) == 0


@pytest.mark.skipif(not pretrained.installed(), reason="the weights are not installed")
def test_the_stored_scores_are_those_of_the_model():
    from tools.store_sampling import stored_prompts

    for actual, stored_prompt_data in zip(stored_prompts(pretrained.smollm2()), PROMPTS, strict=True):
        assert (
            actual["text"] == stored_prompt_data["text"] and actual["tokens"][:10] == stored_prompt_data["tokens"][:10]
        )
        assert max(abs(a - b) for a, b in zip(actual["logits"], stored_prompt_data["logits"])) < 1e-3
        assert max(abs(a - b) for a, b in zip(actual["others"], stored_prompt_data["others"])) < 1e-3


@pytest.mark.skipif(not pretrained.installed(), reason="the weights are not installed")
def test_probabilities_are_those_that_the_model_draws_from(monkeypatch):
    model = pretrained.smollm2()
    tokens = model.tokens(PROMPTS[PROMPT_KEYS.index("sea")]["text"])
    recorded_probabilities = []

    def recording_multinomial(p, *_, **__):
        recorded_probabilities.append(p[0].double().cpu())
        return p.argmax(-1, keepdim=True)

    monkeypatch.setattr(torch, "multinomial", recording_multinomial)
    for temperature, top_k in itertools.product((0.5, 1.0, 2.0), (None, 5, 200)):
        model.model.generate(tokens, 1, temperature=temperature, top_k=top_k)
        p = recorded_probabilities.pop().sort(descending=True).values
        after = SamplingLab("sea", temperature=temperature, top_k=top_k).after
        # The stored scores come from one machine. Recomputed scores agree with them to 1e-6 on that machine, and to
        # 1e-4 on other machines.
        torch.testing.assert_close(after[:-1], p[:MAX_STORED_TOKENS], rtol=0, atol=1e-4)


def test_stored_prompts_are_small_and_complete():
    assert len(json.dumps(PROMPTS)) < 150_000
    for stored in PROMPTS:
        assert len(stored["tokens"]) == len(stored["logits"]) == MAX_STORED_TOKENS
        assert stored["logits"] == sorted(stored["logits"], reverse=True)
        assert (
            len(stored["others"])
            == len(stored["nucleus"])
            == len(stored["likely"])
            == 2 * STEPS_PER_UNIT["temperature"]
        )


# Typed input.


@many_examples
@given(text=ANY_TEXT | st.floats(0, 3).map("{:.2f}".format))
@example(text="0.30000000000000004")
@example(text="1e-9")
def test_typed_temperatures_are_parsed_or_refused_in_words(text, engine):
    result = parse_checked(engine, "parseStep", text, "Temperature", [0, 2], 20)
    if result:
        SamplingLab(temperature=result["value"])


@many_examples
@given(text=ANY_TEXT | st.integers(-2, 400).map(str))
@example(text="all")
@example(text="49,152")
def test_a_typed_top_k_is_parsed_or_refused_in_words(text, engine):
    result = engine("parseTopK", text, 300, 49_152)
    if "error" not in result:
        SamplingLab(top_k=result["value"])


# The state in Python.


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: SamplingLab("see"), ValueError, None),
        (lambda: SamplingLab(temperature="1"), TypeError, "temperature must be a number, got '1'"),
        (lambda: SamplingLab(temperature=math.nan), ValueError, "temperature must be from 0 to 2, got nan"),
        (lambda: SamplingLab(temperature=0.33), ValueError, "temperature must be a multiple of 0.05, got 0.33"),
        (lambda: SamplingLab(top_k=0), ValueError, "top_k must be from 1 to 300, got 0"),
        (lambda: SamplingLab(top_k=1000), ValueError, "top_k must be from 1 to 300, or None for all, got 1000"),
        (lambda: SamplingLab(top_k=2.0), TypeError, "top_k must be an integer, got 2.0"),
        (lambda: SamplingLab(top_p=0), ValueError, "top_p must be from 0.01 to 1, got 0"),
        (lambda: SamplingLab(min_p=-0.1), ValueError, "min_p must be from 0 to 1, got -0.1"),
        (lambda: SamplingLab(seed=10_000), ValueError, "seed must be from 0 to 9999, got 10000"),
        (lambda: SamplingLab(draws=1001), ValueError, "draws must be from 0 to 1000, got 1001"),
    ],
)
def test_invalid_arguments_raise_clear_errors(make, error, text):
    if text is None:
        with pytest.raises(error, match=r"^prompt must be one of "):
            make()
    else:
        raises(make, error, text)


def test_a_temperature_of_zero_draws_only_the_best_token():
    lab = SamplingLab("product", temperature=0, draws=20)
    assert lab.n_kept == 1 and set(lab.drawn) == {0} and lab.tokens[0] == "2"


# In a browser.


def test_typed_settings_show_what_python_computes(show):
    page = show(SamplingLab())
    page.get_by_label("Temperature, typed", exact=True).fill("0.8")
    page.get_by_label("Top-p, typed", exact=True).fill("0.9")
    lab = SamplingLab(temperature=0.8, top_p=0.9)
    assert status(page).startswith(f"{lab.n_kept} tokens of 49,152 are kept, ")
    assert status(page).endswith(f"“␣wonders” is the most likely, with {lab.after[0]:.3f}.")
    cells = page.locator(".tl-tokens tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[:2] == [f"{lab.before[1]:.3f}", f"{lab.after[1]:.3f}"]
    page.get_by_label("Top-k", exact=True).press("Home")
    assert status(page).startswith("1 token of 49,152 is kept, ")
    assert page.locator(".tl-tokens tbody tr").nth(1).inner_text().count("cut off") == 1


def test_draws_follow_from_the_seed(show):
    page = show(SamplingLab("door", temperature=2))
    page.get_by_role("button", name="Draw 100").click()
    page.get_by_role("button", name="Draw", exact=True).click()
    lab = SamplingLab("door", temperature=2, draws=101)
    token, number = lab.drawn[-1], lab.numbers[-1].item()
    label = "one of the other tokens" if token == MAX_STORED_TOKENS else f"“{lab.tokens[token].replace(' ', '␣')}”"
    assert status(page).endswith(f" Draw 101: the number {number:.4f} falls on {label}.")
    drawn_counts = [int(text) for text in page.locator(".tl-tokens tbody td:nth-last-child(2)").all_inner_texts()]
    assert sum(drawn_counts) == 101
    assert drawn_counts[:10] == [lab.drawn.count(i) for i in range(10)]
    page.get_by_role("button", name="Clear").click()
    assert "Draw" not in status(page)
