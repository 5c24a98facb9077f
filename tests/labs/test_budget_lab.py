"""The budget lab works in Python and in a browser, and its numbers agree with the package's."""

import re
from dataclasses import asdict, replace
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import transformer_lab as tl
from accessibility import violations_in_both_themes
from agreement import raises
from gestures import drag_slider, status
from javascript import Engine
from lab_page import as_notebook
from transformer_lab.arguments import format_value
from transformer_lab.labs import BudgetLab, MaskLab
from transformer_lab.labs.budget import BYTES_PER_VALUE, PRESETS, QUANTITIES, RANGES

LIMITS = BudgetLab().limits
MAX_EXACT_INT = 2**53  # larger integers are not exact in JavaScript
SLIDERS = ("n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "n_positions", "seq", "batch")
LABELS = {"n_layers": "Layers", "d_model": "d_model", "n_heads": "Heads", "d_ff": "d_ff", "vocab_size": "Vocabulary"}
LABELS |= {"n_positions": "Positions", "seq": "Context, seq", "batch": "Batch"}
LARGEST_LABS = {
    family: BudgetLab(tl.ModelShape(family, 128, 16_384, 128, 131_072, 262_144, 1_048_576), batch=1024)
    for family in ("bert", "gpt2", "llama")
}
# The values are odd, and most are one below a limit; JavaScript numbers would round products of such values.
UNUSUAL_LABS = {
    family: BudgetLab(tl.ModelShape(family, 127, 16_383, 3, 131_071, 262_143, 1_048_575), batch=1023)
    for family in ("bert", "gpt2", "llama")
}


def settings_of(lab):
    return {"shape": asdict(lab.shape), "seq": lab.seq, "batch": lab.batch, "bytes_per_value": lab.bytes_per_value}


def state(lab):
    config_state = {"config": lab.config, "base_config": lab.base_config}
    return {**settings_of(lab), "base": lab.base, "quantity": lab.quantity, **config_state}


def costs(lab):
    """Return the package's numbers, in the package's order."""
    generation = {"weights": tl.weight_bytes(lab.shape, lab.bytes_per_value)}
    if lab.shape.family != "bert":
        generation["key–value cache"] = tl.kv_cache_bytes(lab.shape, lab.seq, lab.batch, lab.bytes_per_value)
    return {
        "parameters": tl.parameter_breakdown(lab.shape),
        "flops": tl.flops_breakdown(lab.shape, lab.seq, lab.batch),
        "training": tl.memory_breakdown(lab.shape, lab.seq, lab.batch, lab.bytes_per_value),
        "generation": generation,
    }


def parse_counts(actual):
    """Return the engine's numbers as integers; the engine returns them as text."""
    return {quantity: {name: int(number) for name, number in counts.items()} for quantity, counts in actual.items()}


def sorted_parts(breakdowns):
    return [(quantity, *counts.items()) for quantity, counts in breakdowns.items()]


@st.composite
def labs(draw):
    """Draw a lab from the full range of each size and all options; extreme values are as likely as other values."""
    size = {name: st.integers(*bounds) for name, bounds in RANGES.items()}
    family = draw(st.sampled_from(("bert", "gpt2", "llama")))
    d_model = draw(st.one_of(st.integers(1, 192).map(lambda i: 64 * i), size["d_model"]))
    n_heads = draw(st.sampled_from([i for i in range(1, d_model + 1) if d_model % i == 0]))
    options = {"n_segments": draw(size["n_segments"]), "pooler": draw(st.booleans())}
    if family != "bert":
        options = {"tied": draw(st.booleans()), "final_norm": draw(st.sampled_from((None, True, False)))}
    if family == "llama":
        n_kv_heads = [i for i in range(1, n_heads + 1) if n_heads % i == 0]
        options |= {"gated": draw(st.booleans()), "n_kv_heads": draw(st.sampled_from(n_kv_heads))}
    sizes = {name: draw(size[name]) for name in ("d_ff", "vocab_size", "n_positions")}
    shape = tl.ModelShape(
        family, draw(size["n_layers"]), d_model, n_heads, **sizes, **options, bias=draw(st.booleans())
    )
    lab = BudgetLab(draw(st.sampled_from([shape, *(preset[3] for preset in PRESETS)])))
    lab.shape, lab.seq, lab.batch = shape, draw(size["seq"]), draw(size["batch"])
    lab.bytes_per_value = draw(st.sampled_from(BYTES_PER_VALUE))
    lab.base = draw(st.sampled_from((*(preset[0] for preset in PRESETS), "start")))
    lab.quantity = draw(st.sampled_from(QUANTITIES))
    return lab


# The arithmetic.


@pytest.fixture(scope="module")
def engine():
    engine = Engine(BudgetLab)
    engine._context.eval("BigInt.prototype.toJSON = function () { return this.toString(); }")
    return engine


def presets_and_start(engine, lab):
    return engine("withStart", lab.presets, lab.start)


def lab_context(engine, lab):
    """Return the presets, initial state and limits of a lab, as in its script."""
    return {"models": presets_and_start(engine, lab), "start": lab.start, "limits": lab.limits, "tables": {}}


@given(lab=labs())
@example(lab=LARGEST_LABS["bert"])
@example(lab=LARGEST_LABS["gpt2"])
@example(lab=LARGEST_LABS["llama"])
@example(lab=UNUSUAL_LABS["bert"])
@example(lab=UNUSUAL_LABS["gpt2"])
@example(lab=UNUSUAL_LABS["llama"])
@example(lab=BudgetLab(tl.LLAMA3_8B, bytes_per_value=2))
@example(lab=BudgetLab(tl.ModelShape("gpt2", 1, 1, 1, 1, 1, 1)))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_every_number_agrees_with_the_package_exactly(engine, lab):
    assert sorted_parts(parse_counts(engine("costs", settings_of(lab)))) == sorted_parts(costs(lab))
    shape = lab.shape
    rule_of_thumb = 12 * shape.n_layers * shape.d_model**2 + shape.vocab_size * shape.d_model
    assert int(engine("ruleOfThumb", asdict(shape))) == rule_of_thumb
    assert [lab.parameters, lab.flops, lab.training_memory, lab.generation_memory] == list(costs(lab).values())


def test_largest_counts_exceed_javascript_numbers(engine):
    for lab in UNUSUAL_LABS.values():
        actual = parse_counts(engine("costs", settings_of(lab)))
        numbers = [number for counts in actual.values() for number in counts.values()]
        assert sum(int(float(number)) != number for number in numbers) >= 3, "a rounded number would differ"
        assert sum(actual["flops"].values()) == tl.forward_flops(lab.shape, lab.seq, lab.batch) > 10_000 * MAX_EXACT_INT
        assert sum(actual["training"].values()) > MAX_EXACT_INT
        text = engine._context.eval(f"grouped({sum(actual['flops'].values())}n)")
        assert int(text.replace(",", "")) == tl.forward_flops(lab.shape, lab.seq, lab.batch)


@given(start=st.sampled_from(PRESETS), moves=st.lists(st.tuples(st.sampled_from(SLIDERS), st.floats(0, 1)), max_size=8))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_random_slider_moves_agree_with_the_package(engine, start, moves):
    lab = BudgetLab(start[3])
    current = settings_of(lab)
    for name, fraction in moves:
        choices = engine("sliderValues", name, current, lab.limits, presets_and_start(engine, lab))
        assert choices == sorted(set(choices)) and current.get(name, current["shape"].get(name)) in choices
        current = engine("changeSetting", current, name, choices[round(fraction * (len(choices) - 1))], lab.limits)
        lab.shape = tl.ModelShape(**current["shape"])  # raises an error if the shape is invalid
        lab.seq, lab.batch = current["seq"], current["batch"]
        assert sorted_parts(parse_counts(engine("costs", current))) == sorted_parts(costs(lab))
        assert lab.shape.family == start[3].family


@pytest.mark.parametrize("d_model", [1, 64, 100, 768, 1600, 12_288, 7919])
def test_heads_slider_offers_all_divisors(engine, d_model):
    current = settings_of(BudgetLab(replace(tl.GPT2, d_model=d_model, n_heads=1, d_ff=None)))
    assert engine("sliderValues", "n_heads", current, LIMITS) == [n for n in range(1, d_model + 1) if d_model % n == 0]
    factors = [d_ff / d_model for d_ff in engine("sliderValues", "d_ff", current, LIMITS)]
    assert factors == [half_units / 2 for half_units in range(1, 17) if half_units * d_model % 2 == 0]


def test_sliders_cover_the_limits_and_the_presets(engine):
    lab = BudgetLab(tl.ModelShape("bert", 7, 100, 5, 300, 1001, 77), seq=13, batch=5)
    for name in SLIDERS:
        models = presets_and_start(engine, lab)
        preset_settings = [settings_of(BudgetLab(shape)) for _, _, _, shape, *_ in PRESETS]
        choices_by_preset = [engine("sliderValues", name, preset, lab.limits, models) for preset in preset_settings]
        for choices, (_, _, _, shape, *_) in zip(choices_by_preset, PRESETS):
            required_choices = {getattr(shape, name, None) or {"seq": shape.n_positions, "batch": 1}[name]}
            if name not in ("n_heads", "d_ff"):
                required_choices |= {settings_of(lab).get(name, asdict(lab.shape).get(name)), RANGES[name][1]}
            assert required_choices <= set(choices) and choices[0] >= RANGES[name][0] and choices[-1] <= RANGES[name][1]
    assert len(engine("sliderValues", "n_layers", settings_of(lab), lab.limits)) == 128


def test_new_width_keeps_d_head_and_the_ratio_of_d_ff(engine):
    for *_, shape, _, _ in PRESETS:
        current = settings_of(BudgetLab(shape))
        for d_model in range(64, 16_385, 64):
            resized_shape = engine("changeSetting", current, "d_model", d_model, LIMITS)["shape"]
            d_ff = min(int(shape.d_ff / shape.d_model * d_model + 0.5), 131_072)
            assert (resized_shape["n_heads"], resized_shape["d_ff"]) == (d_model // 64, d_ff)
            group_size = shape.n_heads // (shape.n_kv_heads or shape.n_heads)
            if shape.n_kv_heads and resized_shape["n_heads"] % group_size == 0:
                assert resized_shape["n_kv_heads"] == resized_shape["n_heads"] // group_size
    current = settings_of(BudgetLab(tl.SMOLLM2_135M))
    for n_heads, n_kv_heads in ((3, 1), (12, 4), (18, 6), (1, 1), (2, 1), (4, 1), (16, 4), (576, 192)):
        assert engine("changeSetting", current, "n_heads", n_heads, LIMITS)["shape"]["n_kv_heads"] == n_kv_heads
    unusual_setting = settings_of(BudgetLab(replace(tl.GPT2, d_model=768, n_heads=6, d_ff=2047)))
    for d_model in (704, 832, 64, 16_384):
        resized_setting = engine("changeSetting", unusual_setting, "d_model", d_model, LIMITS)
        assert d_model % resized_setting["shape"]["n_heads"] == 0
        ratio = resized_setting["shape"]["n_heads"] / (d_model / 128)
        possible_ratios = [n / (d_model / 128) for n in range(1, d_model + 1) if d_model % n == 0]
        assert max(ratio, 1 / ratio) == min(max(possible, 1 / possible) for possible in possible_ratios)
        restored_setting = engine("changeSetting", resized_setting, "d_model", 768, LIMITS, unusual_setting["shape"])
        assert restored_setting == unusual_setting, "moving back restores the setting"


def test_browser_and_python_list_the_same_quantities(engine):
    assert tuple(engine("Object.keys", engine("eval", "QUANTITIES"))) == QUANTITIES


def test_presets_agree_with_the_package_and_published_counts():
    for preset, (key, name, code, shape, published, _) in zip(BudgetLab().presets, PRESETS, strict=True):
        assert (preset["key"], preset["name"]) == (key, name) and getattr(tl, code) is shape
        assert tl.ModelShape(**preset["setting"]["shape"]) == shape
        assert tl.count_parameters(shape) == published == preset["published"]
        assert repr(BudgetLab(shape)) == f"BudgetLab({code}, seq={shape.n_positions}, batch=1, bytes_per_value=4)"


# URLs and code


@given(lab=labs())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_state_round_trips_through_url_and_code(engine, lab):
    context = lab_context(engine, lab)
    code = engine("pythonCode", state(lab), context["models"])
    copied_lab = eval(code, {"tl": tl})
    expected = state(lab) if lab.base != "start" else {**state(lab), "base": copied_lab.base}
    assert state(copied_lab) == expected

    # On a page, options without a slider always come from a preset or the initial state.
    initial_shape = tl.ModelShape(**lab.start["shape"])
    names = ("family", "n_segments", "pooler", "tied", "final_norm", "bias", "gated")
    options = {name: getattr(initial_shape, name) for name in names}
    if initial_shape.family != lab.shape.family or initial_shape.family != "llama":
        options["n_kv_heads"] = lab.shape.n_heads if initial_shape.family == "llama" else None
    lab.shape = replace(lab.shape, **options)
    text = engine("encode", state(lab), context)
    if text is None:
        assert state(lab) == lab.start
        return
    assert re.fullmatch(r"[\w.-]+", text), "the text needs no encoding in a query"
    actual = engine("decode", text, context)["state"]
    assert actual == state(lab)


def test_url_contains_only_differences(engine):
    assert engine("encode", state(BudgetLab()), lab_context(engine, BudgetLab())) is None
    lab = BudgetLab(base="gpt2")
    context = lab_context(engine, lab)

    def encode(lab):
        return engine("encode", state(lab), context)

    assert encode(lab) is None
    lab.seq = 2048
    assert encode(lab) == "gpt2.seq-2048"
    lab.seq, lab.shape, lab.bytes_per_value = 1024, tl.GPT2_XL, 2
    assert encode(lab) == "gpt2-xl.bytes-2.against-gpt2"
    lab.base, lab.quantity = "bert-base", "flops"
    assert encode(lab) == "gpt2-xl.bytes-2.against-bert-base.show-flops"
    lab = BudgetLab(tl.SMOLLM2_135M, base="gpt2")
    lab.shape = replace(lab.shape, n_heads=18, n_kv_heads=6)
    assert encode(lab) == "smollm2-135m.n_heads-18.n_kv_heads-6.against-gpt2"
    custom_lab = BudgetLab(tl.ModelShape("gpt2", 2, 64, 2, 100, 300, 50, tied=False))
    assert custom_lab.base == "start"
    custom_lab.batch = 3
    assert engine("encode", state(custom_lab), lab_context(engine, custom_lab)) == "start.batch-3"
    actual = engine("decode", "start.batch-3", lab_context(engine, custom_lab))
    assert actual == {"state": state(custom_lab)}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "it names the model “”, which this lab does not know"),
        ("gpt5", "it names the model “gpt5”, which this lab does not know"),
        ("constructor", "it names the model “constructor”, which this lab does not know"),
        ("x" * 99, f"it names the model “{'x' * 20}”, which this lab does not know"),
        ("gpt2.", "“” is not a setting of this lab"),
        ("gpt2.layers-3", "“layers-3” is not a setting of this lab"),
        ("gpt2.family-bert", "“family-bert” is not a setting of this lab"),
        ("gpt2.toString-3", "“toString-3” is not a setting of this lab"),
        ("gpt2.bytes_per_value-2", "“bytes_per_value-2” is not a setting of this lab"),
        ("gpt2.n_layers", "“n_layers” is not a setting of this lab"),
        ("gpt2.n_layers-129", "n_layers is “129”, but must be a whole number from 1 to 128"),
        ("gpt2.n_layers-0", "n_layers is “0”, but must be a whole number from 1 to 128"),
        ("gpt2.seq--5", "seq is “-5”, but must be a whole number from 1 to 1,048,576"),
        ("gpt2.seq-1e3", "seq is “1e3”, but must be a whole number from 1 to 1,048,576"),
        ("gpt2.batch-<b>", "batch is “<b>”, but must be a whole number from 1 to 1,024"),
        ("gpt2.bytes-3", "bytes is “3”, but must be 2 or 4"),
        ("gpt2.n_heads-7", "d_model 768 is not a multiple of 7"),
        ("gpt2.d_model-100", "d_model 100 is not a multiple of 12"),
        ("gpt2.n_kv_heads-3", "“n_kv_heads-3” is not a setting of this lab"),
        ("smollm2-135m.n_kv_heads-5", "9 heads cannot share 5 key heads"),
        ("smollm2-135m.n_heads-8", "8 heads cannot share 3 key heads"),
        ("gpt2.against-gpt5", "it compares with “gpt5”, which this lab does not know"),
        ("gpt2.show-money", "it asks to show “money”, which this lab does not list"),
        ("gpt2.show-toString", "it asks to show “toString”, which this lab does not list"),
    ],
)
def test_invalid_url_gets_an_error_message(engine, text, error):
    lab = BudgetLab()
    assert engine("decode", text, lab_context(engine, lab)) == {"error": error}


# Texts.


def call_with_bigints(engine, function, *numbers):
    return engine._context.eval(f"{function}({', '.join(f'{number}n' for number in numbers)})")


def test_numbers_are_formatted_for_reading(engine):
    assert [engine("grouped", x) for x in (0, 999, 1000, 1234567)] == ["0", "999", "1,000", "1,234,567"]
    assert [call_with_bigints(engine, "signed", x) for x in (28_311_552, -1234)] == ["+28,311,552", "−1,234"]
    numbers = (7, 999, 1000, 124_439_808, 999_949_999, 999_950_000)
    assert [call_with_bigints(engine, "compact", x) for x in numbers] == [
        "7", "999", "1.000 k", "124.4 M", "999.9 M", "1.000 B",
    ]  # fmt: skip
    assert engine._context.eval('[compact(291648307200n, "FLOP"), compact(5n, "B")].join()') == "291.6 GFLOP,5 B"
    pairs = [(5, 5), (24, 12), (85, 69), (1001, 1000), (100_001, 100_000), (1, 3), (1, 2000), (5, 10**6), (0, 7)]
    assert [call_with_bigints(engine, "times", *pair) for pair in pairs] == [
        "1 ×", "2 ×", "1.23 ×", "≈ 1 ×", "≈ 1 ×", "0.333 ×", "≈ 0 ×", "≈ 0 ×", "0 ×",
    ]  # fmt: skip
    pairs = [(65536 * 3, 3), (123_456, 7), (3 * 10**9, 2), (123_456_789_012, 7)]
    assert [call_with_bigints(engine, "times", *pair) for pair in pairs] == [
        "65,536 ×",
        "17,600 ×",
        "1.50·10⁹ ×",
        "1.76·10¹⁰ ×",
    ]
    pairs = [(1, 1), (455, 1000), (994, 10**5), (1, 10**5), (0, 7), (1, 100)]
    assert [call_with_bigints(engine, "share", *pair) for pair in pairs] == [
        "100 %",
        "45.5 %",
        "0.99 %",
        "≈ 0 %",
        "0 %",
        "1.00 %",
    ]


def description_of_change(engine, before, after):
    return engine("describe", settings_of(before), settings_of(after))


def lab_with(shape, seq=None, batch=1, bytes_per_value=4, **fields):
    return BudgetLab(replace(shape, **fields), seq or shape.n_positions, batch, bytes_per_value=bytes_per_value)


def ratio_text(before, after):
    return f"{after / before:.{3 if after / before >= 0.1 else 2}g} ×" if after % before else f"{after // before:,} ×"


def test_description_of_a_change_agrees_with_the_package(engine):
    for *_, shape, _, _ in PRESETS:
        lab, bert = BudgetLab(shape), shape.family == "bert"
        count, flops = tl.count_parameters(shape), tl.forward_flops(shape, lab.seq)
        head_text = (
            "FLOPs do not change: rows are looked up, not multiplied."
            if bert
            else "The output head, which is the same matrix,"
        )

        changed_lab = lab_with(shape, n_layers=2 * shape.n_layers)
        difference = tl.count_parameters(changed_lab.shape) - count
        text = description_of_change(engine, lab, changed_lab)
        assert text.startswith(f"{2 * shape.n_layers} layers instead of {shape.n_layers}: +{difference:,} parameters, ")
        assert (
            f"{ratio_text(count, count + difference)} as many. Each layer has {difference // shape.n_layers:,};" in text
        )
        assert f"{ratio_text(flops, tl.forward_flops(changed_lab.shape, lab.seq))} the FLOPs" in text
        assert text.endswith("the FLOPs." if bert else ", and the cache 2 × the memory.")

        kv_option = {"n_kv_heads": shape.n_kv_heads and 2 * shape.n_kv_heads}
        text = description_of_change(engine, lab, lab_with(shape, n_heads=shape.n_heads * 2, **kv_option))
        assert text == (
            f"{2 * shape.n_heads} heads instead of {shape.n_heads}, 32 features in each instead of 64: no "
            "change in parameters or FLOPs. Heads divide d_model among themselves."
        )
        text = description_of_change(engine, lab_with(shape, vocab_size=10_000), lab_with(shape, vocab_size=20_000))
        assert f"20,000 instead of 10,000: +{10_000 * shape.d_model:,} parameters" in text and head_text in text
        text = description_of_change(engine, lab, lab_with(shape, n_positions=shape.n_positions - 24, seq=lab.seq))
        if shape.family == "llama":
            assert "no change in parameters, since positions are not learned" in text
        else:
            assert f"−{24 * shape.d_model:,} parameters" in text and "in the position embedding" in text

        if shape.family == "llama":  # its context is longer than those of the other families
            lab = lab_with(shape, seq=1024)
            flops = tl.forward_flops(shape, lab.seq)
        text = description_of_change(engine, lab, lab_with(shape, seq=2 * shape.d_ff))
        assert "no change in parameters" in text and text.endswith("take more FLOPs than the feed-forward layers.")
        rest_text = "its other products" if bert else "everything else"
        square_text = ratio_text(lab.seq**2, 4 * shape.d_ff**2)
        assert f"scores and blend {square_text}, {rest_text} {ratio_text(lab.seq, 2 * shape.d_ff)}." in text
        text = description_of_change(engine, lab_with(shape, seq=2 * shape.d_ff), lab)
        assert text.endswith("take no more FLOPs than the feed-forward layers.")

        changed_lab = lab_with(
            shape, seq=lab.seq, d_model=2 * shape.d_model, n_heads=2 * shape.n_heads, d_ff=2 * shape.d_ff, **kv_option
        )
        text = description_of_change(engine, lab, changed_lab)
        assert "grow with the square of d_model, 4 ×; the embeddings only with d_model itself, 2 ×." in text
        assert f"Heads keep their width of 64 features: the model now has {2 * shape.n_heads} heads." in text
        text = description_of_change(engine, lab, lab_with(shape, seq=lab.seq, batch=8))
        memory = [sum(tl.memory_breakdown(shape, lab.seq, batch).values()) for batch in (1, 8)]
        assert "scale with the batch, 8 ×" in text and text.endswith(
            f"step of training takes {ratio_text(*memory)} the memory."
        )
        assert "Weights take 0.5 × the memory" in description_of_change(
            engine, lab, lab_with(shape, seq=lab.seq, bytes_per_value=2)
        )
        text = description_of_change(engine, lab, lab_with(shape, n_layers=1, seq=3))
        assert text.startswith(f"−{count - tl.count_parameters(replace(shape, n_layers=1)):,} parameters, ")
    assert description_of_change(engine, BudgetLab(tl.BERT_BASE), BudgetLab(tl.GPT2)).startswith(
        "A different model: +14,957,568 parameters"
    )


def test_initial_description_compares_with_published_counts(engine):
    lab = BudgetLab()
    for preset, (_, name, _, shape, published, paper) in zip(presets_and_start(engine, lab), PRESETS):
        text = engine("intro", preset, preset)
        assert text.startswith(
            f"{name} has {published:,} parameters, as many as its published weights; its paper says {paper}. "
        )
        assert ("cache" in text) == (shape.family != "bert")
    unusual_lab = BudgetLab(replace(tl.GPT2, bias=False), batch=3)
    text = engine("intro", settings_of(unusual_lab), presets_and_start(engine, unusual_lab)[0])
    assert text.startswith(
        f"This model has {tl.count_parameters(unusual_lab.shape):,} parameters. A forward pass over 1,024 tokens in"
    )


# The state in Python.


def test_repr_is_stable_and_state_from_the_browser_is_kept():
    lab = BudgetLab(tl.BERT_BASE, 128)
    assert repr(lab) == "BudgetLab(BERT_BASE, seq=128, batch=1, bytes_per_value=4)" and lab.base == "start"
    sent = lab.get_state()["shape"]
    assert sent == asdict(tl.BERT_BASE)
    lab.set_state(
        {"shape": {**sent, "n_layers": 24}, "seq": 256, "batch": 2, "bytes_per_value": 2, "quantity": "flops"}
    )
    assert lab.shape == replace(tl.BERT_BASE, n_layers=24) and isinstance(lab.shape, tl.ModelShape)
    assert (lab.seq, lab.batch, lab.bytes_per_value, lab.quantity) == (256, 2, 2, "flops")
    assert repr(lab) == f"BudgetLab({lab.shape}, seq=256, batch=2, bytes_per_value=2)"
    assert lab.start == {
        **settings_of(BudgetLab(tl.BERT_BASE, 128)),
        "base": "start",
        "quantity": "parameters",
        "config": "",
        "base_config": "",
    }


def test_the_initial_base_is_a_different_preset_or_the_start():
    assert [BudgetLab().base, BudgetLab(tl.GPT2_XL).base, BudgetLab(tl.BERT_LARGE).base] == [
        *["bert-base"] * 2,
        "gpt2",
    ]
    assert [BudgetLab(tl.GPT2, 512).base, BudgetLab(batch=2).base, BudgetLab(bytes_per_value=2).base] == ["start"] * 3
    assert BudgetLab(tl.GPT2_XL, base="gpt2").base == "gpt2"
    assert BudgetLab(tl.GPT2, seq=100_000).shape.n_positions == 1024, "seq may exceed n_positions"


BASE_KEYS = ", ".join(map(repr, [*(key for key, *_ in PRESETS), "start"]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shape": "gpt2"}, TypeError, "shape must be a ModelShape, or the dict of a config.json, got str"),
        ({"shape": None}, TypeError, "shape must be a ModelShape, or the dict of a config.json, got None"),
        (
            {"shape": {"hidden_size": 768}},
            ValueError,
            "config has no model_type: the key that names the architecture, such as 'llama'",
        ),
        ({"shape": replace(tl.GPT2, n_layers=129)}, ValueError, "shape must have n_layers from 1 to 128, got 129"),
        ({"shape": replace(tl.GPT2, n_layers=0)}, ValueError, "shape must have n_layers from 1 to 128, got 0"),
        ({"shape": replace(tl.GPT2, d_model=16_392)}, ValueError, "shape must have d_model from 1 to 16384, got 16392"),
        ({"shape": replace(tl.GPT2, d_ff=131_073)}, ValueError, "shape must have d_ff from 1 to 131072, got 131073"),
        (
            {"shape": replace(tl.BERT_BASE, n_segments=65)},
            ValueError,
            "shape must have n_segments from 0 to 64, got 65",
        ),
        (
            {"shape": replace(tl.GPT2, vocab_size=300_000)},
            ValueError,
            "shape must have vocab_size from 1 to 262144, got 300000",
        ),
        (
            {"shape": replace(tl.GPT2, n_positions=1_048_577)},
            ValueError,
            "shape must have n_positions from 1 to 1048576, got 1048577",
        ),
        ({"seq": 0}, ValueError, "seq must be from 1 to 1048576, got 0"),
        ({"seq": 1_048_577}, ValueError, "seq must be from 1 to 1048576, got 1048577"),
        ({"seq": 12.5}, TypeError, "seq must be an integer, got 12.5"),
        ({"batch": -1}, ValueError, "batch must be from 1 to 1024, got -1"),
        ({"batch": True}, TypeError, "batch must be an integer, got True"),
        ({"batch": "2"}, TypeError, "batch must be an integer, got '2'"),
        ({"bytes_per_value": 3}, ValueError, "bytes_per_value must be one of 4, 2, got 3"),
        ({"bytes_per_value": 4.0}, ValueError, "bytes_per_value must be one of 4, 2, got 4.0"),
        ({"base": "gpt5"}, ValueError, f"base must be one of {BASE_KEYS}, got 'gpt5'; did you mean 'gpt2'?"),
        ({"base": tl.GPT2}, ValueError, f"base must be one of {BASE_KEYS}, got {format_value(tl.GPT2)}"),
        (
            {"quantity": "money"},
            ValueError,
            "quantity must be one of 'parameters', 'flops', 'training', 'generation', got 'money'",
        ),
    ],
)
def test_invalid_arguments_raise_clear_errors(arguments, error, message):
    raises(lambda: BudgetLab(**arguments), error, message)


def test_the_docstring_lists_every_preset_and_limit():
    doc = BudgetLab.__doc__
    assert all(f'``"{preset["key"]}"``' in doc for preset in BudgetLab().presets)
    limits = BudgetLab().limits
    names = ("n_layers", "d_model", "d_ff", "vocab_size", "n_positions", "seq", "batch")
    assert all(f"{limits[name][1]:,}" in doc for name in names)


def test_invalid_shape_from_the_browser_changes_nothing():
    lab = BudgetLab()
    before = state(lab)
    with pytest.raises(ValueError, match="n_heads must divide d_model"):
        lab.set_state({"shape": {**asdict(tl.GPT2), "n_heads": 7}})
    assert state(lab) == before


# In a browser.


@pytest.fixture
def show(show):
    """Return a function that opens labs and unfolds their tables."""

    def show_unfolded(*labs, **options):
        page = show(*labs, **options)
        unfold(page)
        return page

    return show_unfolded


def unfold(page):
    page.locator(".tl-digits").evaluate_all("nodes => nodes.forEach((node) => { node.open = true; })")


def slider(page, name, view=0):
    return page.get_by_label(LABELS[name], exact=True).nth(view)


def typed_text(page, name):
    """Return the text in the field beside a slider."""
    return page.get_by_label(f"{LABELS[name]}, typed", exact=True).input_value()


def move(page, name, value, view=0):
    """Set a slider to a value in steps, as a drag does."""
    slider(page, name, view).evaluate(
        """async (node, value) => {
            for (let i = 0; i <= Number(node.max); i++) {
                node.value = i;
                node.dispatchEvent(new Event('input'));
                await null; await null;
                const shown = node.closest('.tl-setting').querySelector('.tl-input').value;
                if (shown.replaceAll(',', '') === String(value)) break;
            }
            node.dispatchEvent(new Event('change'));
        }""",
        value,
    )


def table(page, view=0):
    """Return the current table as a dict: component → (number, change, share, ratio)."""
    rows = (
        page.locator(".tl-budget")
        .nth(view)
        .locator(".tl-account:visible tbody tr:visible")
        .evaluate_all("""rows => rows
        .map((row) => [row.children[0].childNodes[row.classList.contains('tl-total') ? 0 : 1].textContent,
            ...[...row.querySelectorAll('td span:not([aria-hidden])')].map((node) => node.textContent)])""")
    )
    return {name: tuple(cells) for name, *cells in rows}


def assert_tables(page, lab, base):
    """Assert that each of the four tables shows the package's numbers and their differences from the base."""
    buttons = {"parameters": "parameters", "flops": "FLOPs", "training": "training", "generation": "generation"}
    lab_costs, base_costs = costs(lab), costs(base)
    for quantity, button in buttons.items():
        page.get_by_role("button", name=button, exact=True).click()
        rows = table(page)
        counts = {**lab_costs[quantity], "total": sum(lab_costs[quantity].values())}
        base_counts = {**base_costs[quantity], "total": sum(base_costs[quantity].values())}
        assert rows.keys() == {**counts, **base_counts}.keys()
        for name, (number, change, *_) in rows.items():
            count, base_count = counts.get(name, 0), base_counts.get(name, 0)
            assert number == f"{count:,}"
            assert change == ("same" if count == base_count else f"{count - base_count:+,}".replace("-", "−"))
    page.get_by_role("button", name="parameters", exact=True).click()


def visible_html(page):
    """Return everything that is visible or announced by a screen reader."""
    return page.locator(".tl-lab").evaluate("""lab => {
        const copy = lab.cloneNode(true);
        for (const table of copy.querySelectorAll('.tl-scroll[hidden]')) table.remove();
        const inputs = [...lab.querySelectorAll('input, select')].map((input) => input.value);
        return `${copy.innerHTML.replace(/tl-field-\\w+-/g, '')} ${inputs}`;
    }""")


def url_query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def wait_for_url(page, text, parameter="budget"):
    """Wait until the URL contains this state of a lab or, if ``text`` is None, no state."""
    page.wait_for_function(
        "([word, text]) => new URLSearchParams(location.search).get(word) === text", arg=[parameter, text]
    )


def reopen(page, url, count=1):
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_function("count => document.querySelectorAll('[data-lab=ready]').length === count", arg=count)
    unfold(page)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset[0])
def test_every_preset_shows_published_and_computed_counts(show, preset):
    page = show(BudgetLab(base="gpt2"))
    _, name, _, shape, published, paper = preset
    page.get_by_role("button", name=name).click()
    page.get_by_label("Base of the comparison").select_option(name)
    assert status(page).startswith(f"{name} has {published:,} parameters, as many as its published weights")
    text = page.locator(".tl-published").inner_text()
    assert text == (
        f"Compared with {name}: {published:,} parameters in the published weights, {paper} in the paper; "
        f"context {shape.n_positions:,}."
    )
    pressed = page.get_by_role("group", name="Start from").locator("[aria-pressed=true]").all_inner_texts()
    assert pressed == [name] and page.get_by_label("Base of the comparison").locator(":checked").inner_text() == name
    assert_tables(page, BudgetLab(shape), BudgetLab(shape))
    rule_of_thumb = 12 * shape.n_layers * shape.d_model**2 + shape.vocab_size * shape.d_model
    difference = published - rule_of_thumb
    note = page.locator(".tl-aside").first.inner_text()
    assert f"{rule_of_thumb:,}, {abs(difference):,} too {'few' if difference > 0 else 'many'}, " in note
    assert f"{100 * abs(difference) / published:.{2 if abs(difference) / published < 0.09995 else 1}f} %" in note


def test_change_is_compared_with_the_preset(show):
    page = show(BudgetLab(base="gpt2"))
    move(page, "n_layers", 24)
    assert table(page)["attention weights"] == ("56,623,104", "+28,311,552", "27.0 %", "2 ×")
    assert table(page)["total"] == ("209,494,272", "+85,054,464", "100 %", "1.68 ×")
    assert_tables(page, lab_with(tl.GPT2, n_layers=24), BudgetLab())
    head_text = page.locator(".tl-cost-head").first.inner_text()
    assert re.sub(r"\s+", " ", head_text) == "Parameters 209.5 M +85.05 M · 1.68 ×"
    # The preset is shown as a thin bar, scaled like the main bar, and as a mark on the slider.
    width, preset_width = (
        page.locator(".tl-stack").nth(i).locator(".tl-piece:visible").evaluate_all(
            "nodes => nodes.reduce((sum, node) => sum + node.getBoundingClientRect().width, 0)"
        )
        for i in (0, 1)
    )  # fmt: skip
    assert preset_width / width == pytest.approx(124_439_808 / 209_494_272, rel=1e-3)
    assert page.locator(".tl-base-mark:visible").count() == 1
    label = page.get_by_role("img").first.get_attribute("aria-label")
    assert label.startswith("Parameters: token embedding 18.4 %, position embedding 0.38 %, attention weights 27.0 %")
    # If the base is a model of another family, components that only the base has are listed as well.
    page.get_by_label("Base of the comparison").select_option("BERT-base")
    assert_tables(page, lab_with(tl.GPT2, n_layers=24), BudgetLab(tl.BERT_BASE))
    assert table(page)["pooler"] == ("0", "−590,592", "0 %", "0 ×")
    page.get_by_role("button", name="GPT-2 XL").click()
    page.get_by_label("Base of the comparison").select_option("GPT-2 small")
    assert_tables(page, BudgetLab(tl.GPT2_XL), BudgetLab())


def test_all_sliders_at_their_ends_agree_with_the_package(show):
    page = show(BudgetLab(base="gpt2"))
    for name in SLIDERS:
        if name != "n_heads":
            slider(page, name).press("End")
    shape = tl.ModelShape("gpt2", 128, 16_384, 256, 131_072, 262_144, 1_048_576)
    assert_tables(page, BudgetLab(shape, 1_048_576, 1024), BudgetLab())
    assert page.evaluate("document.documentElement.scrollWidth") == 760
    slider(page, "d_model").press("Home")
    slider(page, "n_layers").press("Home")
    page.get_by_role("button", name="2: half").click()
    shape = replace(shape, n_layers=1, d_model=64, n_heads=1, d_ff=512)
    assert_tables(page, BudgetLab(shape, 1_048_576, 1024, bytes_per_value=2), BudgetLab())


def test_heads_slider_offers_divisors_and_changes_no_parameter(show):
    page = show(BudgetLab(base="gpt2"))
    before = table(page)
    head_counts = []
    slider(page, "n_heads").press("Home")
    for _ in range(18):
        n_heads = int(typed_text(page, "n_heads"))
        assert 768 % n_heads == 0 and table(page) == before
        head_counts.append(n_heads)
        slider(page, "n_heads").press("ArrowRight")
    assert head_counts == [n for n in range(1, 769) if 768 % n == 0]
    assert status(page).startswith("768 heads instead of 384, 1 feature in each instead of 2: no change in parameters")


def test_sliders_and_buttons_can_be_used_by_keyboard(show):
    page = show(BudgetLab(base="gpt2"))
    slider(page, "n_layers").press("ArrowRight")
    assert status(page).startswith("13 layers instead of 12: +7,087,872 parameters, 1.06 × as many.")
    page.keyboard.press("ArrowRight")
    assert status(page).startswith("14 layers instead of 13: +7,087,872")
    assert slider(page, "n_layers").get_attribute("aria-valuetext") == "14; GPT-2 small: 12"
    slider(page, "d_model").press("ArrowRight")
    assert status(page).startswith("d_model 832 instead of 768: ")
    assert slider(page, "n_heads").get_attribute("aria-valuetext") == "13 heads of 64 features; GPT-2 small: 12"
    page.get_by_role("button", name="generation").press("Enter")
    assert list(table(page)) == ["weights", "key–value cache", "total"]
    page.get_by_role("button", name="seq = 3,328").press("Enter")
    assert status(page).startswith("A context of 3,328 tokens instead of 1,024: no change in parameters")
    assert page.get_by_role("button", name="seq = 3,328").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="FLOPs", exact=True).press("Space")
    rows = table(page)
    assert rows["scores and blend"][0] == rows["feed-forward"][0]


def test_drag_is_described_from_its_start(show):
    page = show(BudgetLab(base="gpt2"))
    layer_counts = set()
    for _ in drag_slider(page, slider(page, "n_layers"), [(11 + 4 * step) / 95 for step in range(21)]):
        layers = typed_text(page, "n_layers")
        assert status(page).startswith(f"{layers} layers instead of 12: +{7_087_872 * (int(layers) - 12):,} parameters")
        layer_counts.add(layers)
    assert len(layer_counts) > 15
    page.wait_for_function(f"location.search.endsWith('n_layers-{layers}')")
    move(page, "batch", 8)
    assert status(page).startswith("8 sequences instead of 1 at a time: no change in parameters.")


def test_width_and_ratio_return_after_a_drag(show):
    page = show(BudgetLab(replace(tl.GPT2, d_ff=2047)))
    slider(page, "d_model").press("Home")
    assert typed_text(page, "d_ff") == "171" and page.get_by_text("(2.67 ×)").first.is_visible()
    move(page, "d_model", 768)
    assert typed_text(page, "d_ff") == "2,047" and page.get_by_text("(2.67 ×)").first.is_visible()
    assert page.locator(".tl-base-mark:visible").count() == 0


def test_context_beyond_n_positions_shows_a_warning(show):
    page = show(BudgetLab(base="gpt2"))
    move(page, "seq", 2048)
    warning = page.locator(".tl-warning")
    assert warning.inner_text().startswith("Context 2,048 exceeds the 1,024 positions")
    move(page, "n_positions", 2048)
    assert warning.inner_text() == ""


# The URL.


def slider_html(page):
    """Return the sliders and their fields without ids, which differ between visits."""
    return re.sub(r"tl-field-\w+-", "", page.locator(".tl-settings").inner_html())


def test_url_restores_the_state(show):
    page = show(BudgetLab(base="gpt2"))
    initial_html = visible_html(page)
    move(page, "n_layers", 24)
    move(page, "seq", 4096)
    page.get_by_role("button", name="2: half").click()
    page.get_by_role("button", name="training").click()
    wait_for_url(page, "gpt2.n_layers-24.seq-4096.bytes-2.show-training")
    shown_state = [table(page), slider_html(page), page.locator(".tl-costs").inner_html()]
    for visit in (page.reload, lambda: reopen(page, page.url)):
        visit()
        page.wait_for_selector("[data-lab=ready]")
        unfold(page)
        assert [table(page), slider_html(page), page.locator(".tl-costs").inner_html()] == shown_state
        assert status(page).startswith("Compared with GPT-2 small: +85,054,464 parameters, 1.68 × as many.")
    page.get_by_role("button", name="Reset").click()
    assert visible_html(page) == initial_html, "Reset must restore the initial state, not that of the address"
    wait_for_url(page, None)
    assert page.url.endswith("labs.html")


def test_single_difference_in_the_url_is_described(show):
    page = show(BudgetLab(base="gpt2"))
    reopen(page, f"{page.url}?budget=gpt2-xl.n_layers-24")
    assert status(page).startswith("Compared with GPT-2 XL: 24 layers instead of 48: −737,779,200 parameters")
    reopen(page, f"{page.url.split('?')[0]}?budget=bert-base")
    assert status(page).startswith("BERT-base has 109,482,240 parameters")
    assert page.get_by_label("Base of the comparison").input_value() == "bert-base"


def test_labs_of_one_page_have_separate_url_parameters(show):
    page = show(BudgetLab(base="gpt2"), BudgetLab(tl.BERT_BASE, seq=128), MaskLab())
    move(page, "n_layers", 6, 1)
    wait_for_url(page, "start.n_layers-6", "budget2")
    assert url_query(page) == {"budget2": "start.n_layers-6"}
    move(page, "batch", 8, 0)
    wait_for_url(page, "gpt2.batch-8")
    assert url_query(page) == {"budget": "gpt2.batch-8", "budget2": "start.n_layers-6"}
    reopen(page, page.url, 3)
    assert slider(page, "n_layers", 1).get_attribute("aria-valuetext") == "6; the initial state: 12"
    assert slider(page, "batch").get_attribute("aria-valuetext") == "8; GPT-2 small: 1"
    page.get_by_role("button", name="Reset").nth(1).click()
    wait_for_url(page, None, "budget2")
    assert url_query(page) == {"budget": "gpt2.batch-8"}


def test_url_state_survives_links_within_the_page(show):
    page = show(
        BudgetLab(base="gpt2"),
        change=lambda html: html.replace("<h1>", '<a href="#deep">down</a><h1>').replace(
            "</main>", '<p id="deep" style="margin-top: 200vh">deep</p></main>'
        ),
    )
    page.goto(f"{page.url}?highlight=a%20b#deep")
    page.wait_for_selector("[data-lab=ready]")
    move(page, "n_layers", 24)
    wait_for_url(page, "gpt2.n_layers-24")
    assert page.url.endswith("#deep") and url_query(page)["highlight"] == "a b"
    length = page.evaluate("history.length")
    page.evaluate("window.stayed = true")
    page.get_by_role("link", name="down").click()
    assert page.evaluate("window.stayed") and url_query(page)["budget"] == "gpt2.n_layers-24"
    page.wait_for_function("scrollY > 400")
    move(page, "n_layers", 36)
    wait_for_url(page, "gpt2.n_layers-36")
    assert page.url.endswith("#deep") and page.evaluate("history.length") == length, (
        "the lab must add no entry to the history"
    )


@pytest.mark.parametrize("text", ["gpt5", "gpt2.n_heads-7", "", "%3Cimg%20src=x%3E", "gpt2.seq-99999999999999999999"])
def test_invalid_url_is_ignored_and_reported(show, text):
    page = show(BudgetLab(base="gpt2"))
    parts = """nodes => nodes.map((node) => node.outerHTML.replace(/tl-field-\\w+-/g, ''))"""
    initial_html = page.locator(".tl-lab > :not(.tl-error)").evaluate_all(parts)
    reopen(page, f"{page.url}?budget={text}")
    alert = page.locator(".tl-lab > .tl-error")
    assert alert.is_visible() and alert.inner_text().startswith("The lab ignores part of the address: ")
    assert page.locator(".tl-lab > :not(.tl-error)").evaluate_all(parts) == initial_html
    page.wait_for_timeout(400)
    assert "budget" in page.url, "the address must stay, so that the reader can correct it"
    move(page, "n_layers", 24)
    assert alert.is_hidden()
    wait_for_url(page, "gpt2.n_layers-24")


def test_url_updates_are_debounced(show):
    page = show(BudgetLab(base="gpt2"))
    page.evaluate("""() => {
        window.writes = 0;
        const replace = history.replaceState.bind(history);
        history.replaceState = (...all) => { window.writes++; replace(...all); };
    }""")
    slider(page, "n_layers").evaluate("""async (node) => {
        for (let i = 0; i < 60; i++) {
            node.value = i;
            node.dispatchEvent(new Event('input'));
            await new Promise((resolve) => setTimeout(resolve, 4));
        }
    }""")
    wait_for_url(page, "gpt2.n_layers-60")
    assert page.evaluate("window.writes") <= 5, "browsers limit changes of the address"


def test_a_link_can_be_copied_if_the_browser_refuses_url_changes(show):
    page = show(BudgetLab(base="gpt2"))
    page.evaluate("() => { history.replaceState = () => { throw new DOMException('no', 'SecurityError'); }; }")
    page.evaluate(FAKE_CLIPBOARD)
    move(page, "n_layers", 24)
    page.wait_for_timeout(400)
    assert "budget" not in page.url
    page.get_by_role("button", name="Copy link").click()
    assert page.evaluate("window.copied").endswith("labs.html?budget=gpt2.n_layers-24")


FAKE_CLIPBOARD = """() => Object.defineProperty(navigator, "clipboard", {
    configurable: true, value: { writeText: async (text) => { window.copied = text; } },
})"""
REFUSING_CLIPBOARD = """() => Object.defineProperty(navigator, "clipboard", {
    configurable: true, value: { writeText: async () => { throw new DOMException("no", "NotAllowedError"); } },
})"""
NO_CLIPBOARD = '() => Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined })'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<section id="the-lab">', "</section>"),
        ('<section id="the-page"><div class="cell" id="the-lab">', "</div></section>"),
    ],
)
def test_copied_link_leads_to_the_lab(show, before, after):
    def wrap_in_section(html):
        return html.replace("<main>", f"<main>{before}").replace("</main>", f"{after}</main>")

    page = show(BudgetLab(base="gpt2"), change=wrap_in_section)
    page.evaluate(FAKE_CLIPBOARD)
    button = page.get_by_role("button", name="Copy link")
    button.press("Enter")
    assert page.evaluate("window.copied").endswith("labs.html#the-lab")
    move(page, "n_layers", 24)
    button.press("Enter")
    assert "The link has been copied." in page.locator(".tl-foot").inner_text()
    assert page.get_by_label("The link for this state").is_hidden()
    link = page.evaluate("window.copied")
    assert link.endswith("labs.html?budget=gpt2.n_layers-24#the-lab"), "the link already contains the new state"
    reopen(page, link)
    assert table(page)["total"][0] == "209,494,272"
    move(page, "n_layers", 12)
    assert "copied" not in page.locator(".tl-foot").inner_text()


@pytest.mark.parametrize("refusal", [REFUSING_CLIPBOARD, NO_CLIPBOARD])
def test_link_is_selectable_without_clipboard_access(show, refusal):
    page = show(BudgetLab(base="gpt2"))
    page.evaluate(refusal)
    move(page, "seq", 2048)
    page.get_by_role("button", name="Copy link").press("Enter")
    field = page.get_by_label("The link for this state")
    assert "The browser blocked copying: copy the link from this field." in page.locator(".tl-foot").inner_text()
    assert field.is_visible() and field.evaluate("node => node === document.activeElement")
    assert page.evaluate("getSelection().toString()") == field.input_value()
    assert field.input_value().endswith("?budget=gpt2.seq-2048")
    move(page, "seq", 4096)
    assert field.is_hidden(), "the link to an earlier state must be hidden"


def test_notebook_gets_code_instead_of_a_link(show):
    page = show(BudgetLab(base="gpt2"), change=as_notebook)
    url = page.url
    move(page, "n_layers", 24)
    move(page, "batch", 8)
    page.wait_for_timeout(400)
    assert page.url == url
    page.evaluate(FAKE_CLIPBOARD)
    page.get_by_role("button", name="Copy code").click()
    lab = eval(page.evaluate("window.copied"), {"tl": tl})
    assert lab.shape == replace(tl.GPT2, n_layers=24) and (lab.seq, lab.batch, lab.base) == (1024, 8, "gpt2")
    reopen(page, f"{url}?budget=gpt2.n_layers-3")
    assert table(page)["total"][1] == "same" and page.locator(".tl-lab > .tl-error").count() == 0


def test_two_views_share_url_parameters(show):
    lab = BudgetLab(base="gpt2")
    page = show(lab, lab)
    before = status(page, 1)
    move(page, "n_layers", 24)
    assert status(page) == status(page, 1) != before
    assert table(page) == table(page, 1)
    wait_for_url(page, "gpt2.n_layers-24")
    reopen(page, page.url, 2)
    assert status(page) == status(page, 1)
    page.get_by_role("button", name="Reset").nth(1).click()
    assert status(page) == status(page, 1) == before


def test_the_lab_is_accessible_after_a_copy_and_after_an_invalid_url(show):
    page = show(BudgetLab(base="gpt2"))
    page.evaluate(REFUSING_CLIPBOARD)
    page.get_by_role("button", name="Copy link").click()
    problems = violations_in_both_themes(page)
    reopen(page, f"{page.url.split('?')[0]}?budget=nothing")
    assert not problems + violations_in_both_themes(page)
