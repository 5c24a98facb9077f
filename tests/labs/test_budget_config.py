"""The budget lab reads a pasted config.json with the same results and error messages as the package."""

import copy
import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_lab as tl
from gestures import status
from javascript import Engine
from sampling import every_third
from transformer_lab.config_models import MODELS
from transformer_lab.labs import BudgetLab

FILE = Path(__file__).parents[1] / "maths" / "config_references.json"
REFERENCES = json.loads(FILE.read_text("utf-8"))["models"]
QWEN3, MIXTRAL = (REFERENCES[name]["config"] for name in ("Qwen/Qwen3-4B", "mistralai/Mixtral-8x7B-v0.1"))
MODEL_LABEL, BASE_LABEL = "A model: paste its config.json", "Compare with: another config.json"


@pytest.fixture(scope="module")
def engine():
    """Return an engine with the lab's script and with the tables and limits that Python sends to the browser."""
    engine, lab = Engine(BudgetLab), BudgetLab()
    engine._context.eval("BigInt.prototype.toJSON = function () { return this.toString(); }")
    engine._context.eval(f"globalThis.tables = withBigInts({json.dumps(lab.tables)})")
    engine._context.eval(f"globalThis.limits = {json.dumps(lab.limits)}")
    return engine


def parse(engine, text):
    return json.loads(engine._context.eval(f"JSON.stringify(parseConfig({json.dumps(text)}, tables, limits))"))


def as_json(value):
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", REFERENCES)
def test_the_lab_reads_and_counts_a_config_as_the_package_does(engine, name):
    config = REFERENCES[name]["config"]
    actual = parse(engine, json.dumps(config, indent=2))
    lab = BudgetLab(config)
    assert actual["value"] == {"shape": as_json(asdict(lab.shape)), "type": config["model_type"]}
    assert int(engine("activeParameters", asdict(lab.shape))) == tl.active_parameters(lab.shape)
    for seq, batch in ((1, 1), (77, 3), (9000, 2)):
        lab.seq, lab.batch = seq, batch
        setting = {"shape": asdict(lab.shape), "seq": seq, "batch": batch, "bytes_per_value": 4}
        costs = {key: {part: int(n) for part, n in counts.items()} for key, counts in engine("costs", setting).items()}
        expected = [lab.parameters, lab.flops, lab.training_memory, lab.generation_memory]
        assert list(costs.values()) == [{part: n for part, n in counts.items() if n} for counts in expected]
    assert sum(lab.parameters.values()) == REFERENCES[name]["parameters"]


@pytest.mark.parametrize("name", REFERENCES)
def test_the_text_of_a_link_is_short_and_describes_the_same_model(engine, name):
    config = REFERENCES[name]["config"]
    actual = parse(engine, json.dumps(config))
    assert BudgetLab(json.loads(actual["text"])).shape == BudgetLab(config).shape
    assert parse(engine, actual["text"]) == actual and len(actual["text"]) <= 1200


def error_of(config):
    with pytest.raises((ValueError, TypeError)) as error:
        BudgetLab(config)
    return re.sub(r"; did you mean .*", "", str(error.value))


WRONG_VALUES = ["3", 2.5, 3.0, True, None, -1, 0, [1], {}, [], ["x"] * 7, {"a": 1}, "a" * 70, "it's", 10**30, [[1], 2]]
UNKNOWN_KEYS = {"n_new_things": 3, "quantization_config": {"bits": 4, "a": [1, 2], "b": None, "c": "x", "d": True}}
CLASS_NAMES = ["LlamaForSequenceClassification", "LlamaForCausalLM", "BertForMaskedLM", "XModel"]


ONE_OF_EACH_TYPE = {reference["config"]["model_type"]: name for name, reference in REFERENCES.items()}.values()


@pytest.mark.parametrize("name", every_third(ONE_OF_EACH_TYPE))
def test_the_lab_refuses_a_config_with_the_packages_sentence(engine, name):
    config = REFERENCES[name]["config"]
    configs = [{**config, key: value} for key in MODELS[config["model_type"]].keys for value in WRONG_VALUES]
    configs += [{other: value for other, value in config.items() if other != key} for key in config]
    configs += [{**config, key: value} for key, value in UNKNOWN_KEYS.items()]
    configs += [{**config, "architectures": value} for value in [*CLASS_NAMES, *([head] for head in CLASS_NAMES), [3]]]
    configs += [{**config, "auto_map": value} for value in (3, {"AutoModel": "a.B"}, {"AutoConfig": "a.B"})]
    configs += [{**config, "num_attention_heads": 7}, {**config, "model_type": "new"}, {**config, "model_type": 3}]
    n_refused = 0
    for changed_config in configs:
        actual = parse(engine, json.dumps(changed_config))
        try:
            shape = BudgetLab(copy.deepcopy(changed_config)).shape
        except (ValueError, TypeError):
            assert actual["error"] == error_of(changed_config) or "in this lab" in actual["error"]
            n_refused += 1
        else:
            assert actual["value"]["shape"] == as_json(asdict(shape))
    assert n_refused >= 30


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@given(value=json_values, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_json_is_read_as_python_reads_it(engine, value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    if re.search(r"[\x7f-\x9f]", text):
        return
    parsed_json = engine._context.eval(f"JSON.stringify(parseJson({json.dumps(text)}))")
    assert integers_as_text(json.loads(parsed_json)["value"]) == integers_as_text(value), text


def integers_as_text(value):
    """Convert integers to text, since the engine returns large integers as text."""
    if isinstance(value, dict):
        return {key: integers_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [integers_as_text(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


INVALID_JSON = {
    "{": "Line 1, column 2: expected a key in double quotes, but the text ends.",
    '{"a": 1,}': "Line 1, column 9: expected a key in double quotes, found }.",
    '{"a": 1,\n "b": 2,,\n}': "Line 2, column 9: expected a key in double quotes, found ,.",
    '{"a" 1}': "Line 1, column 6: expected a colon, found 1.",
    '{"a": 1\n "b": 2}': 'Line 2, column 2: expected a comma or }, found "b".',
    "{'a': 1}": "Line 1, column 2: expected a key in double quotes, found 'a'.",
    '{"a": True}': "Line 1, column 7: expected a value, found True.",
    '{"a": 01}': "Line 1, column 7: expected a value, found 01.",
    '{"a": NaN}': "Line 1, column 7: expected a value, found NaN.",
    '{"a": "x\n"}': 'Line 1, column 7: expected a text that ends on its line, found ".',
    '{"a": [1, 2}': "Line 1, column 12: expected a comma or ], found }.",
    '{"a": 1} x': "Line 1, column 10: expected the end of the text, found x.",
    "[" * 200: "Line 1, column 101: expected at most 100 nested brackets, found [.",
    "qwen": "Line 1, column 1: expected a value, found qwen.",
}


@pytest.mark.parametrize("text", INVALID_JSON)
def test_the_error_in_broken_json_has_a_line_and_a_column(engine, text):
    assert parse(engine, text) == {"error": INVALID_JSON[text]}
    try:
        json.loads(text, parse_constant=lambda name: 1 / 0)
    except json.JSONDecodeError as error:
        line, column = map(int, re.findall(r"\d+", INVALID_JSON[text])[:2])
        if len(text) < 200:
            assert line == error.lineno and abs(column - error.colno) <= 2, (
                "Python must find the error in the same place"
            )
    except ZeroDivisionError:
        pass  # Python's parser calls `parse_constant` for NaN, which the lab rejects


def test_an_empty_field_is_no_model(engine):
    assert parse(engine, " \n") == {"value": None, "text": ""}
    assert parse(engine, "[]") == {"error": "config must be a dict, which begins with {"}


def test_limits_of_the_lab_are_reported_with_the_key(engine):
    actual = parse(engine, json.dumps({**QWEN3, "num_hidden_layers": 129}))
    assert actual == {"error": "config's num_hidden_layers must be from 1 to 128 in this lab, got 129"}


# In Python.


def test_a_dict_is_accepted_as_a_model_and_as_a_base():
    lab = BudgetLab(QWEN3, 512, base=MIXTRAL)
    assert lab.shape.d_head == 128 and lab.base == "other" and json.loads(lab.base_config) == MIXTRAL
    assert sum(lab.parameters.values()) == 4_022_468_096
    assert "activations" not in lab.training_memory and "activations" in BudgetLab().training_memory
    with pytest.raises(ValueError, match=r"config's model_type must be one of .*, got 'new'"):
        BudgetLab(base={"model_type": "new"})
    with pytest.raises(ValueError, match="config has no model_type"):
        lab.config = "{}"
    assert lab.config == ""


# In a browser.


def show_configs(show, *labs):
    page = show(*labs)
    page.locator(".tl-configs > summary").first.click()
    return page


def comparison_table(page):
    rows = page.locator(".tl-beside tbody tr").all()
    return {
        (cells := row.locator("th, td").all_inner_texts())[0]: [x.replace("\u200b", "") for x in cells[1:]]
        for row in rows
    }


def test_two_pasted_models_are_compared_side_by_side(show):
    page = show_configs(show, BudgetLab(seq=1024))
    page.get_by_label(MODEL_LABEL).fill(json.dumps(QWEN3, indent=2))
    assert status(page).startswith("This model has 4,022,468,096 parameters. A forward pass over 1,024 tokens")
    page.get_by_label(BASE_LABEL).fill(json.dumps(MIXTRAL, indent=2))
    qwen3, mixtral = BudgetLab(QWEN3, 1024), BudgetLab(MIXTRAL, 1024)
    actual = comparison_table(page)
    assert actual["parameters"] == ["4,022,468,096", "46,702,792,704", "0.086 ×"]
    assert actual["active parameters"] == ["4,022,468,096", "12,879,925,248", "0.312 ×"]
    flops, cache = [qwen3.flops, mixtral.flops], qwen3.generation_memory["key–value cache"]
    assert [text.split()[0] for text in actual["forward pass"][:2]] == [
        f"{sum(each.values()) / 1e12:#.4g}" for each in flops
    ]
    assert actual["cache"][0] == f"{cache / 1e6:.1f} MB"
    assert page.locator(".tl-beside thead th").all_inner_texts()[:2] == ["qwen3, 4.022 B", "mixtral, 46.70 B"]
    assert "A token uses" not in page.locator(".tl-costs").inner_text()
    page.get_by_label(MODEL_LABEL).fill(json.dumps(MIXTRAL))
    assert (
        "A token uses 12,879,925,248 parameters: 2 of 8 experts in each layer."
        in page.locator(".tl-costs").inner_text()
    )
    assert "Activations are not counted" in page.locator(".tl-costs").inner_text()


def test_a_link_restores_what_was_pasted(show):
    page = show_configs(show, BudgetLab())
    page.get_by_label(MODEL_LABEL).fill(json.dumps(QWEN3, indent=2))
    page.get_by_label(BASE_LABEL).fill(json.dumps(MIXTRAL))
    page.get_by_label("Layers", exact=True).press("ArrowRight")
    actual = comparison_table(page)
    deeper_shape = tl.ModelShape.from_config({**QWEN3, "num_hidden_layers": 37})
    assert actual["parameters"][0] == f"{tl.count_parameters(deeper_shape):,}"
    page.wait_for_timeout(400)  # the address changes a quarter of a second later
    page.goto(page.url)
    page.wait_for_selector("[data-lab=ready]")
    assert comparison_table(page) == actual
    assert json.loads(page.get_by_label(MODEL_LABEL).input_value())["hidden_size"] == 2560
    page.get_by_role("button", name="Reset").click()
    assert page.get_by_label(MODEL_LABEL).input_value() == page.get_by_label(BASE_LABEL).input_value() == ""
    assert comparison_table(page)["parameters"][0] == "124,439,808"


def test_errors_are_shown_beside_the_field_and_change_nothing(show):
    page = show_configs(show, BudgetLab())
    before = comparison_table(page)
    page.get_by_label(BASE_LABEL).fill('{"model_type": "qwen3",\n}')
    page.get_by_label(MODEL_LABEL).fill(json.dumps({**QWEN3, "index_topk": 2048}))
    errors = page.locator(".tl-pasted .tl-error").all_inner_texts()
    assert errors == [
        "config's index_topk is not known for model_type 'qwen3', got 2048: leave it out if it changes no count",
        "Line 2, column 1: expected a key in double quotes, found }.",
    ]
    assert comparison_table(page) == before
    page.get_by_label(MODEL_LABEL).fill("")
    page.get_by_label(BASE_LABEL).fill("")
    assert page.locator(".tl-pasted .tl-error").all_inner_texts() == ["", ""] and comparison_table(page) == before


def test_sliders_change_a_pasted_model_as_the_package_counts_it(show):
    page = show_configs(show, BudgetLab())
    config = REFERENCES["google/gemma-3-1b-pt"]["config"]
    page.get_by_label(MODEL_LABEL).fill(json.dumps(config))
    page.get_by_label("Layers, typed", exact=True).fill("52")
    shape = tl.ModelShape.from_config({**config, "num_hidden_layers": 52})
    assert comparison_table(page)["parameters"][0] == f"{tl.count_parameters(shape):,}"
    page.get_by_label("Heads, typed", exact=True).fill("5")
    shape = tl.ModelShape.from_config({**config, "num_hidden_layers": 52, "num_attention_heads": 5})
    assert comparison_table(page)["parameters"][0] == f"{tl.count_parameters(shape):,}", (
        "n_heads need not divide d_model"
    )


def test_on_a_phone_a_field_and_its_effect_fit_on_one_screen(show):
    page = show_configs(show, BudgetLab())
    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_label(MODEL_LABEL).fill(json.dumps(QWEN3))
    page.get_by_label(BASE_LABEL).fill(json.dumps(MIXTRAL))
    boxes = [page.get_by_label(MODEL_LABEL).bounding_box(), page.locator(".tl-beside").bounding_box()]
    assert boxes[1]["y"] + boxes[1]["height"] - boxes[0]["y"] <= 740
    assert page.evaluate("document.documentElement.scrollWidth") == 360
