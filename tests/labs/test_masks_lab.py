"""The mask lab works in Python and in a browser, and its arithmetic agrees with the package's and with PyTorch's."""

import itertools
import json
import math
import random

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import transformer_lab as tl
from accessibility import violations_in_both_themes
from agreement import raises
from gestures import count_animated, middle, status, swipe
from javascript import Engine, assert_close
from lab_table import LABS, LONGEST_SENTENCE, square
from transformer_lab.labs import MaskLab
from transformer_lab.labs.masks import MISTAKES, PAD, PRESETS, hashed_vector

SETTINGS = ("tokens", "source", "preset", "window", "prefix", "flipped", "mistake", "at", "given")


@pytest.fixture(scope="module")
def masks():
    return Engine(MaskLab)


def state_of(lab):
    """Return the lab's traits, as they are sent to its script."""
    state = json.loads(json.dumps({name: lab.get_state()[name] for name in (*SETTINGS, "presets", "limits")}))
    return state | {"presets": {preset["name"]: preset for preset in state["presets"]}}


def state_with_names(lab, masks):
    """Return the lab's traits, with the names of queries and keys."""
    state = state_of(lab)
    return state | masks("sideNames", state)


def random_flips(draw, lab, count):
    q_len, k_len = lab.mask.shape
    cells = list(itertools.product(range(q_len), range(k_len)))
    return [list(cell) for cell in draw.sample(cells, min(count, len(cells)))]


# The arithmetic.


@settings(max_examples=150, deadline=None, derandomize=True)
@given(word=st.text(min_size=1, max_size=16), role=st.sampled_from(("query", "key", "value")))
@example(word="the", role="query")
@example(word="😀é", role="value")
def test_hashed_vectors_agree_between_browser_and_python(word, role, masks):
    vector = hashed_vector(word, role, 4)
    assert masks("hashedVector", word, role, 4) == vector
    assert all(-2 <= x <= 2 and round(x, 1) == x for x in vector)


def test_hashed_scores_vary():
    for lab in (MaskLab(preset="everything"), MaskLab(preset="encoder"), MaskLab(preset="decoder cross")):
        assert 0.2 < lab.weights.amax(dim=-1).mean() < 0.7 and 0.5 < lab.scores.std() < 2
    lab = MaskLab("the cat and the dog", preset="everything")
    torch.testing.assert_close(lab.weights[0], lab.weights[3])  # equal words have equal queries
    torch.testing.assert_close(lab.weights[:, 0], lab.weights[:, 3])
    assert not torch.equal(lab.query, lab.key)


def test_presets_agree_with_the_package(masks):
    for seq in range(1, 13):
        sentence = " ".join(LONGEST_SENTENCE.split()[:seq])
        for length in range(1, 13):
            for preset, expected in (
                ("everything", torch.ones(seq, seq, dtype=torch.bool)),
                ("causal", tl.causal_mask(seq)),
                ("window", tl.sliding_window_mask(seq, length)),
                ("prefix", tl.prefix_mask(seq, min(length, seq))),
            ):
                lab = MaskLab(sentence, preset, window=length, prefix=length)
                assert torch.equal(lab.mask, expected)
                assert masks("compute", state_with_names(lab, masks))["mask"] == expected.tolist()


def test_presets_with_padding_agree_with_the_package(masks):
    words = LONGEST_SENTENCE.split()
    for n_real, n_padding, n_queries in ((1, 0, 3), (3, 2, 1), (4, 3, 12), (12, 0, 5), (1, 11, 2)):
        k_len = n_real + n_padding
        padded_words, query_words = words[:n_real] + [PAD] * n_padding, words[:n_queries]
        visible_keys = tl.padding_mask([n_real], k_len)[0, 0]
        for preset, tokens, source, expected in (
            ("padding", padded_words, query_words, visible_keys.expand(k_len, k_len)),
            ("both", padded_words, query_words, tl.causal_mask(k_len) & visible_keys),
            ("encoder", query_words, padded_words, visible_keys.expand(k_len, k_len)),
            ("decoder self", padded_words, query_words, tl.causal_mask(k_len) & visible_keys),
            ("decoder cross", query_words, padded_words, visible_keys.expand(n_queries, k_len)),
        ):
            lab = MaskLab(tokens, preset, source=source)
            assert torch.equal(lab.mask, expected)
            assert masks("compute", state_with_names(lab, masks))["mask"] == expected.tolist()


def test_queries_are_aligned_with_the_last_keys(masks):
    for q_len, k_len in itertools.product((1, 3, 7), repeat=2):
        for preset, options in (("causal", {}), ("window", {"window": 2}), ("prefix", {"prefix": 2})):
            lab = MaskLab(query=torch.ones(q_len, 2), key=torch.ones(k_len, 2), preset=preset, **options)
            i, j = torch.arange(q_len)[:, None] + k_len - q_len, torch.arange(k_len)
            expected = {"causal": j <= i, "window": (j <= i) & (j > i - 2), "prefix": (j <= i) | (j < 2)}[preset]
            assert torch.equal(lab.mask, expected)
            assert masks("compute", state_with_names(lab, masks))["mask"] == expected.tolist()
            assert preset != "causal" or torch.equal(expected, tl.causal_mask(q_len, k_len))


def weights_with_mistake(mistake, scores, mask, real_queries):
    """Compute, independently of the lab, the weights that result from a mistake, with additive masks in float64."""
    hidden_bias = tl.additive_mask(mask, dtype=torch.float64)
    q_len, k_len = mask.shape
    if mistake == "after softmax":
        return scores.softmax(-1) * mask
    if mistake == "inverted":
        return (scores + tl.additive_mask(~mask, dtype=torch.float64)).softmax(-1).nan_to_num(0.0)
    if mistake == "times zero":
        return (scores * mask.double()).softmax(-1)
    if mistake == "large negative":
        return torch.where(mask, scores, torch.full_like(scores, -1e9)).softmax(-1)
    if mistake == "diagonal":
        for i in range(q_len):
            if 0 <= i + k_len - q_len < k_len:
                hidden_bias[i, i + k_len - q_len] = -math.inf
    if mistake == "padded rows":
        hidden_bias[~real_queries] = -math.inf
    return (scores + hidden_bias).softmax(-1).nan_to_num(0.0)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_stage_agrees_with_the_package(masks, mistake):
    draw, generator = random.Random(2), torch.Generator().manual_seed(2)
    labs = [MaskLab(preset=preset, mistake=mistake) for preset in PRESETS]
    labs += [MaskLab(f"{PAD} {PAD} a b {PAD}", preset, mistake=mistake) for preset in ("causal", "both", "window")]
    for q_len, k_len, d_head, d_value in ((1, 1, 1, 1), (3, 7, 5, 2), (12, 4, 64, 9), (6, 6, 3, 6)):
        query, key, value = (
            torch.randn(*shape, generator=generator) * 3
            for shape in ((q_len, d_head), (k_len, d_head), (k_len, d_value))
        )
        labs.append(MaskLab(query=query, key=key, value=value, mistake=mistake))
    for lab, count in itertools.product(labs, (0, 5, 144)):
        lab.flipped = random_flips(draw, lab, count)
        actual = masks("compute", state_with_names(lab, masks))
        mask, query, key, value = lab.mask, lab.query.double(), lab.key.double(), lab.value.double()
        scores = query @ key.T / query.shape[1] ** 0.5
        query_names = lab.source if lab.preset == "encoder" else lab.tokens
        weights = weights_with_mistake(mistake, scores, mask, torch.tensor([name != PAD for name in query_names]))
        assert actual["mask"] == mask.tolist()
        assert_close(actual["scores"], scores)
        assert_close(actual["weights"], weights)
        assert_close(actual["sums"], weights.sum(-1))
        assert_close(actual["output"], weights @ value)
        assert_close(actual["correct"]["weights"], tl.attention_weights(query, key, mask))
        assert_close(actual["correct"]["output"], tl.scaled_dot_product_attention(query, key, value, mask))
        # Python computes in float32.
        assert_close(actual["scores"], lab.scores.double(), atol=1e-5)
        assert_close(actual["weights"], lab.weights.double(), atol=1e-5)
        assert_close(actual["output"], lab.output.double(), atol=1e-4)
        # The displayed weights follow from the displayed masked scores.
        masked_scores = torch.tensor([[-math.inf if x is None else x for x in row] for row in actual["masked"]])
        if mistake != "after softmax":
            assert_close(actual["weights"], masked_scores.double().softmax(-1).nan_to_num(0.0))
        assert torch.equal(masked_scores == -math.inf, ~torch.tensor(actual["visible"]))


def test_every_mistake_has_a_visible_effect():
    for mistake in MISTAKES[1:]:
        lab = MaskLab(f"{PAD} the cat {PAD}", "both", mistake=mistake)
        assert not torch.allclose(lab.weights, MaskLab(lab.tokens, "both").weights)


def test_descriptions_match_the_numbers(masks):
    lab = MaskLab(mistake="after softmax")
    state = state_with_names(lab, masks)
    actual = masks("compute", state)
    row = lab.weights[2]
    sentence = masks("rowText", state, actual, 2)
    assert sentence == row_text(lab, 2)
    weights_without_key = tl.attention_weights(lab.query, lab.key, torch.arange(6) != 4)
    assert masks("leakText", state, actual, 2) == (
        f"“sat” lost weight {1 - row.sum():.2f} to hidden keys. It must not see “the” at position 4: without this key, "
        f"“sat” would give weight {weights_without_key[2, 2]:.2f} to “sat”, not {row[2]:.2f}. "
    )
    assert masks("consequencesText", state, actual) == "Here 5 rows do not sum to one."


def row_text(lab, i):
    """Return the description of row ``i``."""
    query_names = lab.source if lab.preset == "encoder" else lab.tokens
    key_names = lab.source if lab.preset in ("encoder", "decoder cross") or lab.given else lab.tokens
    visible_keys, weights = lab.mask[i].nonzero().flatten().tolist(), lab.weights[i]
    quoted_keys = [f"“{key_names[j]}”" for j in visible_keys]
    hidden_weight = (weights * ~lab.mask[i]).sum()
    weight_text = "all" if f"{hidden_weight:.2f}" == f"{weights.sum():.2f}" else f"{hidden_weight:.2f}"
    total = f", sum {weights.sum():.2f}."
    if hidden_weight >= 0.005:
        total = f". The row sums to {weights.sum():.2f}; hidden keys have {weight_text} of this sum."
    if not visible_keys:
        explanation = "its weights and output are 0 here, by the course’s rule. A plain softmax returns NaN."
        return f"“{query_names[i]}” sees nothing: {explanation}"
    if len(visible_keys) > 6:
        count = "all" if len(visible_keys) == len(key_names) else f"{len(visible_keys)} of"
        best = max(visible_keys, key=lambda j: weights[j])
        best_text = f"“{key_names[best]}” most: weight {weights[best]:.2f}"
        return f"“{query_names[i]}” sees {count} {len(key_names)} keys, {best_text}{total}"
    key_list = " and ".join(filter(None, (", ".join(quoted_keys[:-1]), quoted_keys[-1])))
    verb, noun = "sees" if lab.mistake == "none" else "may see", "weights" if len(visible_keys) > 1 else "weight"
    return f"“{query_names[i]}” {verb} {key_list}; {noun} {', '.join(f'{weights[j]:.2f}' for j in visible_keys)}{total}"


# Typed input.


@settings(max_examples=300, deadline=None, derandomize=True)
@given(text=st.text(max_size=40) | st.text("ab .,!<pad>\n\t'“”…", max_size=40))
@example(text="The cat sat. “Why?”")
@example(text=f"a {PAD} {PAD}")
@example(text="\ufeff \x85 \x1f")
def test_tokenization_agrees_between_browser_and_python(text, masks):
    actual = masks("parseTokens", text, MaskLab().limits)
    if "error" in actual:
        assert actual.keys() == {"error"} and len(actual["error"]) > 10
        return
    assert masks("parseTokens", actual["text"], MaskLab().limits) == actual
    lab = MaskLab(actual["value"])
    assert lab.tokens == actual["value"] == MaskLab(actual["text"]).tokens
    assert masks("compute", state_with_names(lab, masks))["mask"] == lab.mask.tolist()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Type at least one word."),
        (" \n", "Type at least one word."),
        ("a " * 14, "At most 12 tokens here, not 14."),
        ("x" * 17, f"A token has at most 16 characters here; “{'x' * 16}…” has 17."),
    ],
)
def test_invalid_sentence_gets_an_error_message(masks, text, error):
    assert masks("parseTokens", text, MaskLab().limits) == {"error": error}


# The state in Python.


def test_mask_is_a_settable_bool_tensor():
    lab = MaskLab()
    assert lab.mask.dtype == torch.bool and torch.equal(lab.mask, tl.causal_mask(6))
    lab.set_state({"flipped": [[0, 5], [5, 0]], "at": [0, 5]})  # in the form that the browser sends
    expected = tl.causal_mask(6)
    expected[0, 5], expected[5, 0] = True, False
    assert torch.equal(lab.mask, expected)
    torch.testing.assert_close(lab.weights, tl.attention_weights(lab.query, lab.key, expected))
    lab.set_state({"tokens": ["the", "cat"]})
    assert torch.equal(lab.mask, tl.causal_mask(2)), "the cells of removed words are removed"
    lab.mask = torch.tensor([[True, True], [False, False]])
    assert lab.mask.tolist() == [[True, True], [False, False]] and lab.weights[1].tolist() == [0, 0]
    assert tl.scaled_dot_product_attention(lab.query, lab.key, lab.value, lab.mask).shape == (2, 2)
    lab.mask[0, 0] = False
    assert lab.mask[0, 0], "reading the mask returns a copy"


def test_mask_equal_to_a_preset_gets_its_name():
    assert MaskLab("a b c", mask=tl.causal_mask(3)).preset == "causal"
    assert MaskLab("a b c", mask=tl.sliding_window_mask(3, 2), window=2).preset == "window"
    assert MaskLab(f"a b {PAD}", mask=torch.tensor([[True, True, False]] * 3)).preset == "padding"
    lab = MaskLab("a b c", mask=torch.eye(3, dtype=torch.bool))
    assert lab.preset == "everything" and len(lab.flipped) == 6
    lab = MaskLab("a b c", "causal", mask=torch.eye(3, dtype=torch.bool))
    assert lab.preset == "causal" and len(lab.flipped) == 3


def test_own_tensors_are_used_and_not_modified():
    query = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    key, value = torch.randn(4, 5), torch.randn(4, 2)
    before = query.detach().clone()
    lab = MaskLab(query=query, key=key, value=value)
    assert query.dtype == torch.float64 and torch.equal(query, before)
    assert lab.query.dtype == torch.float32 and torch.equal(lab.key, key) and torch.equal(lab.value, value)
    assert lab.tokens == ["q0", "q1", "q2"] and lab.source == ["k0", "k1", "k2", "k3"]
    expected = tl.scaled_dot_product_attention(lab.query, key, value, tl.causal_mask(3, 4))
    torch.testing.assert_close(lab.output, expected)
    lab = MaskLab(query=[[1, 2], [3, 4]])
    assert torch.equal(lab.key, lab.query) and lab.value is None and lab.output is None
    assert lab.tokens == lab.source == ["x0", "x1"]
    lab = MaskLab(f"I am {PAD}", "both", query=torch.zeros(3, 1))
    assert lab.mask.tolist() == [[True, False, False], [True, True, False], [True, True, False]]


def test_presets_with_padding_add_padding():
    assert PAD in MaskLab(preset="padding").tokens and PAD not in MaskLab().tokens
    assert PAD in MaskLab(preset="decoder cross").source and PAD not in MaskLab(preset="decoder cross").tokens
    assert MaskLab("a b", "padding").tokens == ["a", "b"], "a given sentence is not replaced"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: MaskLab("a b."), "MaskLab(tokens=('a', 'b', '.'), preset='causal', mistake='none')"),
        (
            lambda: MaskLab(["a", "b"], mask=torch.zeros(2, 2, dtype=torch.bool), mistake="inverted"),
            "MaskLab(tokens=('a', 'b'), preset='everything', flipped=((0, 0), (0, 1), (1, 0), (1, 1)), "
            "mistake='inverted')",
        ),
        (
            lambda: MaskLab("a", "decoder cross", source="b c"),
            "MaskLab(tokens=('a',), source=('b', 'c'), preset='decoder cross', mistake='none')",
        ),
        (lambda: MaskLab("a", "encoder", source="b"), "MaskLab(source=('b',), preset='encoder', mistake='none')"),
    ],
)
def test_repr_is_reproducible(make, text):
    assert repr(make()) == repr(make()) == text


SHAPE_ERROR = "query must have shape (q_len, d_head), from (1, 1) to (12, 256), got {}"
PRESETS_FOR_OWN_TENSORS = [name for name, preset in PRESETS.items() if not preset.is_block and not preset.padding]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: MaskLab(""), ValueError, "tokens must have from 1 to 12 tokens, got 0"),
        (lambda: MaskLab("a " * 13), ValueError, "tokens must have from 1 to 12 tokens, got 13"),
        (lambda: MaskLab(source=[]), ValueError, "source must have from 1 to 12 tokens, got 0"),
        (
            lambda: MaskLab(["a b"]),
            ValueError,
            "tokens must be words of 1 to 16 characters without spaces, got 'a b'",
        ),
        (
            lambda: MaskLab("x" * 17),
            ValueError,
            f"tokens must be words of 1 to 16 characters without spaces, got '{'x' * 17}'",
        ),
        (lambda: MaskLab([1, 2]), TypeError, "tokens must be a text or a list of strings, got [1, 2]"),
        (
            lambda: MaskLab(preset="strided"),
            ValueError,
            f"preset must be one of {', '.join(map(repr, PRESETS))}, got 'strided'",
        ),
        (
            lambda: MaskLab(preset="encoder", query=[[1.0]]),
            ValueError,
            f"preset must be one of {', '.join(map(repr, PRESETS_FOR_OWN_TENSORS))}, got 'encoder'",
        ),
        (
            lambda: MaskLab(mistake="typo"),
            ValueError,
            f"mistake must be one of {', '.join(map(repr, MISTAKES))}, got 'typo'",
        ),
        (lambda: MaskLab(window=0), ValueError, "window must be from 1 to 12, got 0"),
        (lambda: MaskLab(prefix=13), ValueError, "prefix must be from 0 to 12, got 13"),
        (lambda: MaskLab(query="up"), TypeError, "query must be a tensor or sequences of numbers, got 'up'"),
        (lambda: MaskLab(query=[1.0]), ValueError, SHAPE_ERROR.format((1,))),
        (lambda: MaskLab(query=torch.zeros(13, 1)), ValueError, SHAPE_ERROR.format((13, 1))),
        (lambda: MaskLab(query=torch.zeros(1, 0)), ValueError, SHAPE_ERROR.format((1, 0))),
        (lambda: MaskLab(query=[[math.nan]]), ValueError, "query must be finite, got nan"),
        (lambda: MaskLab(query=[[1.0, 2.0]], key=[[1.0]]), ValueError, "query and key must share d_head, got 2 and 1"),
        (
            lambda: MaskLab(query=[[1.0]], key=[[1.0], [2.0]], value=[[1.0]]),
            ValueError,
            "key and value must share k_len, got 2 and 1",
        ),
        (lambda: MaskLab(key=[[1.0]]), ValueError, "key must come with a query, got key alone"),
        (lambda: MaskLab(value=[[1.0]]), ValueError, "value must come with a query, got value alone"),
        (
            lambda: MaskLab("a b", query=[[1.0]]),
            ValueError,
            "tokens must name the 1 rows of query, got 2: ('a', 'b')",
        ),
        (lambda: MaskLab("a b", mask=[[True]]), TypeError, "mask must be a tensor of bool, got list"),
        (
            lambda: MaskLab("a b", mask=torch.ones(2, 2)),
            TypeError,
            "mask must be bool, True where a query may attend, got torch.float32",
        ),
        (
            lambda: MaskLab("a b", mask=tl.causal_mask(3)),
            ValueError,
            "mask must have shape (q_len, k_len), here (2, 2), got (3, 3)",
        ),
    ],
)
def test_invalid_arguments_raise_clear_errors(make, error, text):
    raises(make, error, text)


# In a browser.


def paint(page, start, end, steps=6):
    start.scroll_into_view_if_needed()
    page.mouse.move(*middle(start))
    page.mouse.down()
    page.mouse.move(*middle(end), steps=steps)
    page.mouse.up()


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def drawn_mask(page, stage="weights"):
    """Return the drawn mask, in which hidden cells are hatched."""
    rows = page.locator(f"[data-stage={stage}]").first.evaluate("""node => [...node.querySelectorAll('[role=row]')]
        .map((row) => [...row.querySelectorAll('.tl-square')].map((cell) => !cell.classList.contains('tl-hidden')))""")
    return torch.tensor(rows)


def drawn_numbers(page, stage="weights"):
    rows = page.locator(f"[data-stage={stage}]").first.evaluate("""node => [...node.querySelectorAll('[role=row]')]
        .map((row) => [...row.querySelectorAll('.tl-square')].map((cell) => cell.textContent.replace('−', '-')))""")
    return torch.tensor([[float(text.replace("∞", "inf")) if text else 0.0 for text in row] for row in rows])


def assert_page_shows(page, lab):
    """Assert that mask, weights, sums and output on the page equal the lab's, to the displayed digits."""
    assert torch.equal(drawn_mask(page), lab.mask)
    assert torch.equal(drawn_mask(page, "masked"), lab.mask)
    torch.testing.assert_close(drawn_numbers(page), lab.weights, rtol=0, atol=0.0051)
    torch.testing.assert_close(drawn_numbers(page, "scores"), lab.scores, rtol=0, atol=0.051)
    torch.testing.assert_close(drawn_numbers(page, "output"), lab.output, rtol=0, atol=0.051)
    sums = [float(text) for text in page.locator("[data-stage=weights] .tl-sum").all_text_contents()]
    torch.testing.assert_close(torch.tensor(sums), lab.weights.sum(-1), rtol=0, atol=0.0051)


def test_the_initial_view_shows_the_numbers_of_the_lab(show):
    page = show(MaskLab())
    assert_page_shows(page, MaskLab())
    assert status(page) == row_text(MaskLab(), 2)
    assert button(page, "causal").get_attribute("aria-pressed") == "true"
    button_texts = page.locator(".tl-presets button").all_inner_texts()[: len(PRESETS)]
    assert button_texts == [preset.label for preset in sorted(PRESETS.values(), key=lambda preset: preset.is_block)]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_button_shows_its_mask_and_its_fields(show, preset):
    page = show(MaskLab())
    label = PRESETS[preset].label
    button(page, label).press("Enter")
    lab = MaskLab(preset=preset)  # the button adds padding, and so does Python's default
    assert_page_shows(page, lab)
    assert page.locator("[aria-pressed=true]").first.inner_text() == label
    fields = page.locator(".tl-field:visible label").all_text_contents()
    assert fields == {
        "encoder": ["Source sentence"],
        "decoder self": ["Target sentence"],
        "decoder cross": ["Target sentence (the queries)", "Source sentence (the keys)"],
    }.get(preset, ["Sentence"])


def test_buttons_change_the_lengths_of_window_and_prefix(show):
    page = show(MaskLab(preset="window"))
    assert not page.get_by_role("group", name="prefix").is_visible()
    button(page, "Less window").click()
    assert_page_shows(page, MaskLab(preset="window", window=2))
    button(page, "prefix").click()
    for _ in range(3):
        button(page, "More prefix").click()
    assert_page_shows(page, MaskLab(preset="prefix", prefix=5))
    assert "the first 5 tokens" in page.locator(".tl-about").inner_text()


@pytest.mark.parametrize("stage", ["scores", "masked", "weights"])
def test_click_toggles_a_cell(show, stage):
    page, lab = show(MaskLab()), MaskLab()
    square(page, 1, 4, stage).click()
    lab.flipped = [[1, 4]]
    assert_page_shows(page, lab)
    assert status(page) == row_text(lab, 1)
    assert page.locator(".tl-about").inner_text() == "Your own mask: 1 cell differs from “causal”."
    assert page.get_by_role("group", name="Mask", exact=True).locator("[aria-pressed=true]").count() == 0
    square(page, 1, 4, stage).click()
    assert_page_shows(page, MaskLab())
    assert button(page, "causal").get_attribute("aria-pressed") == "true", (
        "the button must be pressed again, since its mask is restored"
    )
    square(page, 1, 4, stage).click()
    button(page, "causal").click()
    assert_page_shows(page, MaskLab())


@pytest.mark.parametrize("steps", [1, 2, 12])
def test_drag_paints_every_cell_on_its_path(show, steps):
    page, lab = show(MaskLab(preset="everything")), MaskLab(preset="everything")
    paint(page, square(page, 1, 0), square(page, 1, 5), steps)
    paint(page, square(page, 0, 3, "masked"), square(page, 5, 3, "masked"), steps)
    lab.flipped = [[0, 3], *([1, j] for j in range(6)), *([i, 3] for i in range(2, 6))]
    assert_page_shows(page, lab)
    paint(page, square(page, 1, 1), square(page, 1, 2), steps)  # a drag that starts on a hidden cell shows cells
    lab.flipped = [cell for cell in lab.flipped if cell not in ([1, 1], [1, 2])]
    square(page, 5, 5).hover()  # the mouse button is released, so nothing is painted
    assert_page_shows(page, lab)


def test_hover_selects_a_row_without_changing_the_mask(show):
    page, lab = show(MaskLab()), MaskLab()
    for i, stage in ((4, "scores"), (1, "output"), (5, "weights")):
        square(page, i, 1, stage).hover()
        assert status(page) == row_text(lab, i)
    assert_page_shows(page, lab)


def test_cells_are_selected_and_toggled_by_keyboard(show):
    page, lab = show(MaskLab()), MaskLab()
    grid = page.locator("[role=grid][tabindex='0']")
    assert grid.count() == 1, "the tables are one stop for Tab"
    grid.focus()
    for key in (
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
        "Space",
        "End",
        "Enter",
        "ArrowDown",
        "ArrowDown",
        "ArrowDown",
    ):
        page.keyboard.press(key)
    lab.flipped = [[3, 2], [3, 5]]
    assert_page_shows(page, lab)
    assert status(page) == row_text(lab, 5)
    active = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    assert active.get_attribute("aria-label") == f"mat, mat: {lab.weights[5, 5]:.2f}"
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    assert active.get_attribute("aria-label") != square(page, 5, 0).get_attribute("aria-label") == "mat, the: hidden, 0"


@pytest.mark.parametrize("sentence", ["the cat sat on the mat", "a b c d e f g h i j k l"])
@pytest.mark.parametrize("width", [1000, 700, 360])
def test_marks_are_at_the_selected_cell(show, sentence, width):
    page = show(MaskLab(sentence))
    page.set_viewport_size({"width": width, "height": 900})
    for i, j in ((0, 4), (5, 1)):
        square(page, i, j).hover()
        for stage in page.locator(".tl-step:visible").all():
            row = stage.locator(".tl-matrix-row:not(.tl-matrix-head)").nth(i)
            assert stage.locator(".tl-at-row").bounding_box() == pytest.approx(row.bounding_box(), abs=0.5)
            if stage.get_attribute("data-stage") == "output":
                continue
            cell, name = stage.locator(f"[data-at='{i} {j}']"), stage.locator(".tl-key-name").nth(j)
            assert stage.locator(".tl-at-cell").bounding_box() == pytest.approx(cell.bounding_box(), abs=0.5)
            line, name = stage.locator(".tl-at-column").bounding_box(), name.bounding_box()
            assert line["x"] + line["width"] / 2 == pytest.approx(name["x"] + name["width"] / 2, abs=0.5)
            assert line["y"] + line["height"] == pytest.approx(name["y"] + name["height"] + 2, abs=0.5)


def test_empty_row_is_reported(show):
    page, lab = show(MaskLab("the cat sat")), MaskLab("the cat sat")
    square(page, 0, 0).click()
    lab.flipped = [[0, 0]]
    assert_page_shows(page, lab)
    assert status(page) == row_text(lab, 0)
    assert page.locator(".tl-empty:visible").all_text_contents() == ["sees nothing"]
    assert (
        "The row of “the” sees nothing. Weights cannot sum to one there: the course returns zeros, and a plain "
        "softmax returns NaN." in (page.locator(".tl-verdict-box").inner_text())
    )
    assert math.isnan(lab.scores[0].masked_fill(~lab.mask[0], -math.inf).softmax(-1)[0])
    assert page.locator(".tl-blend").first.inner_text() == "nothing"


MISTAKE_TEXTS = {
    "after softmax": ("after the softmax", "softmax, then × mask", "Here 5 rows do not sum to one."),
    "inverted": ("inverted", "seen → −∞", "get weight, up to 1.00, and 1 row is all −∞."),
    "times zero": ("scores × 0", "hidden → 0", "hidden cells get weight, up to 0."),
    "diagonal": ("diagonal too", "hidden, itself → −∞", "Here 1 row is all −∞."),
    "padded rows": ("padded rows too", "hidden, padded rows → −∞", "no query is padding. Add padding."),
    "large negative": ("−10⁹, not −∞", "hidden → −10⁹", "no row is empty. Hide a whole row."),
}


@pytest.mark.parametrize("mistake", MISTAKE_TEXTS)
def test_mistake_shows_its_consequences(show, mistake):
    page, lab = show(MaskLab()), MaskLab(mistake=mistake)
    name, formula, consequence = MISTAKE_TEXTS[mistake]
    button(page, name).click()
    assert_page_shows(page, lab)
    assert formula in page.locator(".tl-flow").inner_text()
    verdict = page.locator(".tl-verdict-box").inner_text()
    assert consequence in verdict and status(page) == row_text(lab, 2)
    hidden_weights = lab.weights[2] * ~lab.mask[2]
    if hidden_weights.any():
        word = lab.tokens[int(hidden_weights.argmax())]
        assert (
            f"“sat” gives weight {hidden_weights.max():.2f} to “{word}”" in verdict
            and "which it must not see" in verdict
        )
    n_leaks = page.locator("[data-stage=weights] .tl-hidden.tl-leak").count()
    assert n_leaks == int(((lab.weights * ~lab.mask) >= 0.005).sum())
    n_wrong_sums = page.locator("[data-stage=weights] .tl-sum.tl-alarm").count()
    assert n_wrong_sums == int(((lab.weights.sum(-1) - 1).abs() >= 0.005).sum())
    assert page.locator(".tl-blend:visible").count() == 2
    button(page, "none").click()
    assert page.locator(".tl-blend:visible").count() == 1
    assert_page_shows(page, MaskLab())
    assert page.locator(".tl-square.tl-leak").count() == 0


def test_mistakes_that_need_padding_or_an_empty_row_show_their_consequences(show):
    lab = MaskLab(preset="padding", mistake="padded rows")
    page = show(lab)
    assert_page_shows(page, lab)
    assert "Here 2 rows are all −∞." in page.locator(".tl-verdict-box").inner_text()
    square(page, 6, 0).hover()
    assert status(page).startswith("“<pad>” should see 6 keys, but all its scores are −∞")
    lab = MaskLab("a b c", mask=torch.zeros(3, 3, dtype=torch.bool), mistake="large negative")
    assert_page_shows(show(lab), lab)
    assert drawn_numbers(page).unique().tolist() == pytest.approx([0.33])
    assert "“c” gives weight 0.33 to “a”, which it must not see." in page.locator(".tl-verdict-box").inner_text()


def test_a_typed_sentence_replaces_the_tokens(show):
    page = show(MaskLab())
    field = page.get_by_label("Sentence", exact=True)
    field.fill("Dogs bite, men do not!")
    assert_page_shows(page, MaskLab("Dogs bite , men do not !"))
    assert field.input_value() == "Dogs bite, men do not!", "the typed text is not reformatted"
    square(page, 0, 2).click()
    field.fill("Dogs bite, men")
    lab = MaskLab("Dogs bite , men")
    lab.flipped = [[0, 2]]
    assert_page_shows(page, lab)
    field.fill(f"Dogs {PAD} bite")
    button(page, "padding").click()
    assert_page_shows(page, MaskLab(f"Dogs {PAD} bite", "padding"))


def test_typed_text_is_never_markup(show):
    page = show(MaskLab())
    page.get_by_label("Sentence", exact=True).fill("<b>x</b> <img/src=x>")
    assert page.locator(".tl-lab :is(b, img)").count() == 0
    assert "<img/src=x>" in page.locator(".tl-lab").inner_text()


def test_buttons_add_and_remove_padding(show):
    page = show(MaskLab("a b", "both"))
    more_button, less_button = button(page, "More padding"), button(page, "Less padding")
    assert less_button.is_disabled()
    for _ in range(10):
        more_button.click()
    assert more_button.is_disabled()
    assert_page_shows(page, MaskLab(["a", "b"] + [PAD] * 10, "both"))
    less_button.click()
    assert page.get_by_label("Sentence", exact=True).input_value() == f"a b{f' {PAD}' * 9}"
    page.get_by_label("Sentence", exact=True).fill(PAD)
    assert less_button.is_disabled(), "one token remains"
    assert_page_shows(page, MaskLab(PAD, "both"))
    button(page, "decoder: cross").click()
    more_button.click()
    source = page.get_by_label("Source sentence (the keys)", exact=True)
    assert source.input_value() == f"il gatto sedeva sul tappeto {PAD} {PAD} {PAD}", "the button pads the keys"


def test_own_tensors_are_shown_in_the_browser(show):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(*shape, generator=generator) for shape in ((3, 8), (5, 8), (5, 3)))
    lab = MaskLab(query=query, key=key, value=value)
    page = show(lab)
    assert_page_shows(page, lab)
    assert status(page) == row_text(lab, 2) and not page.locator(".tl-field").first.is_visible()
    assert "query (3, 8), key (5, 8), value (5, 3)" in page.locator(".tl-lab").inner_text()
    choices = page.locator(".tl-choice[aria-label=Mask] button").all_text_contents()
    assert tuple(choices) == lab.offered
    assert not page.get_by_role("group", name="Place in a Transformer").is_visible()
    page = show(MaskLab(query=query))
    assert page.locator("[data-stage=output]").count() == 0 and ", no value." in page.locator(".tl-lab").inner_text()
    wide_lab = MaskLab(query=query, value=torch.ones(3, 16))
    page = show(wide_lab)
    assert page.locator("[data-stage=output] .tl-square").count() == 3 * 4
    assert "(1.00, 1.00, 1.00, 1.00, …)" in page.locator(".tl-lab").inner_text()


# By finger, and on narrow pages.


def test_phone_shows_one_stage_and_finger_paints(show):
    page, lab = show(MaskLab(preset="everything"), width=360, touch=True), MaskLab(preset="everything")
    assert page.locator(".tl-step:visible").count() == 1
    for stage in ("masked", "weights"):
        button(page, stage).tap()
        assert page.locator(".tl-step:visible").get_attribute("data-stage") == stage
        assert page.locator("[role=grid][tabindex='0']:visible").count() == 1
    square(page, 0, 1).scroll_into_view_if_needed()
    top = page.evaluate("scrollY")
    (x, y), (right, _) = middle(square(page, 0, 1)), middle(square(page, 0, 5))
    swipe(page, (x, y), right - x, steps=4)
    lab.flipped = [[0, j] for j in range(1, 6)]
    assert torch.equal(drawn_mask(page), lab.mask) and page.evaluate("scrollY") == top, "painting does not scroll"
    square(page, 5, 0).tap()
    lab.flipped = [*lab.flipped, [5, 0]]
    assert torch.equal(drawn_mask(page), lab.mask) and status(page) == row_text(lab, 5)


@pytest.mark.parametrize("width", [320, 360, 480, 620, 700, 760, 1000])
def test_lab_fits_its_container(show, width):
    page = show(MaskLab(), *(state() for state in LABS["masks"].extreme_states), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    outside = page.locator(".tl-lab *").evaluate_all(
        """(nodes, edge) => nodes
        .filter((node) => node.getBoundingClientRect().right > edge && !node.closest('.tl-matrix, .tl-blend'))
        .map((node) => node.outerHTML.slice(0, 90))""",
        width - 12,
    )
    assert not outside
    if width >= 360:
        n_scrolling = page.locator(".tl-matrix:visible").evaluate_all(
            "nodes => nodes.filter((node) => node.scrollWidth > node.clientWidth + 1).length"
        )
        assert n_scrolling == 0, "up to 12 tokens are visible at once"
    assert count_animated(page) == 0


def test_rows_of_all_stages_are_aligned(show):
    page = show(MaskLab(), width=1280)
    tops = {stage: square(page, 3, 0, stage).bounding_box()["y"] for stage in ("scores", "masked", "weights", "output")}
    assert len(set(tops.values())) == 1, tops


def test_each_move_of_a_drag_takes_less_than_a_frame(show):
    page = show(MaskLab(LONGEST_SENTENCE, "everything", mistake="times zero"))
    page.locator("[data-stage=weights]").scroll_into_view_if_needed()
    centres = [middle(cell) for cell in page.locator("[data-stage=weights] .tl-square").all()]
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time, independent of other processes

    def cpu_seconds():
        metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
        return sum(metrics[name] for name in ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration"))

    page.mouse.move(*centres[0])
    page.mouse.down()
    before = cpu_seconds()
    for centre in centres[1:]:
        page.mouse.move(*centre)
    seconds_for_each_move = (cpu_seconds() - before) / len(centres[1:])
    page.mouse.up()
    session.detach()
    assert drawn_mask(page).sum() == 0, "the drag went over every cell"
    assert 0 < seconds_for_each_move < 0.016


def test_the_lab_is_accessible_on_a_phone(show):
    page = show(MaskLab(), *(state() for state in LABS["masks"].extreme_states), width=360)
    button(page, "inverted").first.click()
    assert not violations_in_both_themes(page)
