"""Published configurations give the counts of transformers' models, and unsuitable configurations are refused."""

import json
import re
from pathlib import Path

import pytest
import torch

import transformer_lab as tl
from transformer_lab.config_models import MODELS, NEUTRAL_KEYS

REFERENCES = json.loads(Path(__file__).with_name("config_references.json").read_text("utf-8"))["models"]
ENCODERS = {"albert", "bert", "camembert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"}
ENCODER_DECODERS = {"bart", "mbart", "mt5", "t5"}
QWEN3 = REFERENCES["Qwen/Qwen3-4B"]["config"]
# These totals were counted without transformers, by formulas that were written for each model.
PARAMETERS_BY_FORMULA = {
    "google-bert/bert-base-uncased": 109_482_240,
    "albert/albert-base-v2": 11_683_584,
    "google/electra-small-discriminator": 13_483_008,
    "google-t5/t5-small": 60_506_624,
    "google/flan-t5-base": 247_577_856,
    "facebook/opt-125m": 125_239_296,
    "EleutherAI/pythia-160m": 162_322_944,
    "EleutherAI/gpt-neox-20b": 20_554_567_680,
    "microsoft/phi-2": 2_779_683_840,
    "tiiuae/falcon-7b": 6_921_720_704,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "Qwen/Qwen2-0.5B": 494_032_768,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "google/gemma-7b": 8_537_680_896,
    "google/gemma-3-270m": 268_098_176,
    "mistralai/Mistral-Small-24B-Base-2501": 23_572_403_200,
}


def model_shape(name):
    return tl.ModelShape.from_config(REFERENCES[name]["config"])


@pytest.mark.parametrize("name", REFERENCES)
def test_counts_are_those_of_the_reference(name):
    reference, shape = REFERENCES[name], model_shape(name)
    assert tl.count_parameters(shape) == reference["parameters"]
    assert sum(tl.parameter_breakdown(shape).values()) == reference["parameters"]
    assert tl.active_parameters(shape) == reference.get("active", reference["parameters"])
    if "cache_values" in reference:  # with one token, a window does not change the cache
        assert tl.kv_cache_bytes(shape, 1, bytes_per_value=2) == 2 * reference["cache_values"]


@pytest.mark.parametrize("name", PARAMETERS_BY_FORMULA)
def test_counts_are_those_of_formulas(name):
    assert tl.count_parameters(model_shape(name)) == PARAMETERS_BY_FORMULA[name]


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_names_its_source(name):
    """A source is the path of a file in a public repository, or states what the sizes were compared with."""
    source = REFERENCES[name].get("source", "")
    is_statement = source.startswith(("quoted in a public repository", "its published total"))
    assert is_statement or re.match(r"[\w.-]+/[\w.-]+, [\w./-]+\.\w+", source), source or "no source"


def test_three_totals_are_those_of_published_weights():
    published = [reference for reference in REFERENCES.values() if "published" in reference]
    assert len(published) == 3 and all(reference["published"] == reference["parameters"] for reference in published)


def test_every_model_type_has_a_reference():
    assert {reference["config"]["model_type"] for reference in REFERENCES.values()} == set(MODELS)
    assert len(MODELS) >= 25 and len(REFERENCES) >= 40


@pytest.mark.parametrize("name", REFERENCES)
def test_counts_are_those_of_transformers(name):
    """Compare the counts with those of the same model, built without storage by the installed transformers library."""
    transformers = pytest.importorskip("transformers", reason="pip install -e .[references]")
    config = dict(REFERENCES[name]["config"])
    model_type = config.pop("model_type")
    try:
        config = transformers.AutoConfig.for_model(model_type, **config)
    except ValueError:
        pytest.skip(f"this version of transformers has no {model_type}")
    auto_class = (
        transformers.AutoModelForSeq2SeqLM if model_type in ENCODER_DECODERS else transformers.AutoModelForCausalLM
    )
    with torch.device("meta"):
        model = (transformers.AutoModel if model_type in ENCODERS else auto_class).from_config(config)
    expected = tl.count_parameters(model)
    if config.tie_word_embeddings:
        # transformers 5 ties the head of T5 1.1, which contradicts its config
        expected += REFERENCES[name].get("untied_head", 0)
    assert tl.count_parameters(model_shape(name)) == expected
    assert tl.count_parameters(tl.ModelShape.from_config(config.to_dict() | REFERENCES[name]["config"])) == expected


@pytest.mark.parametrize("name", REFERENCES)
def test_an_unknown_key_is_refused(name):
    config = REFERENCES[name]["config"]
    with pytest.raises(ValueError, match=r"config's n_new_things is not known for model_type .*, got 3"):
        tl.ModelShape.from_config({**config, "n_new_things": 3})


@pytest.mark.parametrize("name", REFERENCES)
def test_no_counted_size_is_ignored(name):
    """A required size must be present, and must be an integer; twice its value must change the shape or be rejected."""
    config = REFERENCES[name]["config"]
    for key, rule in MODELS[config["model_type"]].keys.items():
        if "default" in rule or key not in config:
            continue
        incomplete = {other_key: value for other_key, value in config.items() if other_key != key}
        with pytest.raises(ValueError, match=f"config has no {key}, which model_type '{config['model_type']}' needs"):
            tl.ModelShape.from_config(incomplete)
        for wrong_value in (str(config[key]), 2.5, True, None, -1, [1]):
            with pytest.raises(ValueError, match=rf"config's {key} must be an integer, at least \d, got "):
                tl.ModelShape.from_config({**config, key: wrong_value})
        try:
            changed_shape = tl.ModelShape.from_config({**config, key: 2 * config[key]})
        except ValueError as error:
            assert key in str(error) or "layer" in str(error)
        else:
            assert changed_shape != model_shape(name)


def test_neutral_keys_change_nothing():
    shape = tl.ModelShape.from_config(QWEN3)
    for key in NEUTRAL_KEYS - set(MODELS["qwen3"].keys) - {"model_type"}:
        assert tl.ModelShape.from_config({**QWEN3, key: "anything"}) == shape


UNCOUNTABLE_CLASSES = {
    "google-bert/bert-base-uncased": ["BertForSequenceClassification"],
    "Qwen/Qwen3-4B": ["Qwen3ForSequenceClassification"],
    "mistralai/Mistral-7B-v0.1": ["MistralModel"],  # the head is not tied, so this class lacks the head's weights
    "google-t5/t5-small": ["T5EncoderModelForClassification"],
}


@pytest.mark.parametrize("name", UNCOUNTABLE_CLASSES)
def test_classes_with_other_parameters_are_refused(name):
    with pytest.raises(ValueError, match="config's architectures must be a name that ends in"):
        tl.ModelShape.from_config({**REFERENCES[name]["config"], "architectures": UNCOUNTABLE_CLASSES[name]})


def test_classes_with_the_counted_parameters_are_accepted():
    # all classes that have the parameters of bart-large
    architectures = ["BartModel", "BartForConditionalGeneration", "BartForSequenceClassification"]
    bart = REFERENCES["facebook/bart-large"]["config"]
    assert tl.ModelShape.from_config({**bart, "architectures": architectures}) == model_shape("facebook/bart-large")
    headless = {**QWEN3, "architectures": ["Qwen3Model"]}
    assert tl.ModelShape.from_config(headless) == tl.ModelShape.from_config({**QWEN3, "architectures": None})
    with pytest.raises(ValueError, match="config's architectures must be a list of names, got 'Qwen3Model'"):
        tl.ModelShape.from_config({**QWEN3, "architectures": "Qwen3Model"})


def test_custom_code_of_another_model_is_refused():
    ernie = REFERENCES["baidu/ERNIE-4.5-0.3B-PT"]["config"]
    own_code = {
        "AutoConfig": "configuration_x.XConfig",
        "AutoModelForCausalLM": "modeling_ernie4_5.Ernie4_5_ForCausalLM",
    }
    assert tl.ModelShape.from_config({**ernie, "auto_map": own_code}) == tl.ModelShape.from_config(ernie)
    foreign_code = {"AutoModelForCausalLM": "modeling_bunny.BunnyForCausalLM"}
    with pytest.raises(
        ValueError, match=r"config's auto_map.AutoModelForCausalLM must be a class of model_type 'qwen3'"
    ):
        tl.ModelShape.from_config({**QWEN3, "auto_map": foreign_code})
    with pytest.raises(ValueError, match="config's model_type must be one of"):
        tl.ModelShape.from_config({"model_type": "bunny-qwen3", "auto_map": foreign_code})


def test_pruned_heads_are_refused():
    gpt2 = REFERENCES["openai-community/gpt2"]["config"]
    assert tl.ModelShape.from_config({**gpt2, "pruned_heads": {}}) == tl.GPT2
    with pytest.raises(ValueError, match=r"config's pruned_heads must be \{\} to be counted"):
        tl.ModelShape.from_config({**gpt2, "pruned_heads": {"1": [0, 2]}})


REFUSED_CONFIGS = {
    "no model_type": ({"hidden_size": 3}, "config has no model_type"),
    "unknown": ({**QWEN3, "model_type": "deepseek_v3"}, "config's model_type must be one of .*, got 'deepseek_v3'"),
    "near": ({**QWEN3, "model_type": "qwen33"}, "got 'qwen33'; did you mean 'qwen3'"),
    "a list": ({**QWEN3, "model_type": ["qwen3"]}, "config's model_type must be one of"),
    "heads": ({**QWEN3, "num_key_value_heads": 5}, "num_key_value_heads must divide num_attention_heads"),
    "bias": ({**QWEN3, "attention_bias": "yes"}, "config's attention_bias must be true or false, got 'yes'"),
    "tied": ({**QWEN3, "tie_word_embeddings": 1}, "config's tie_word_embeddings must be true or false, got 1"),
    "quantized": ({**QWEN3, "quantization_config": {}}, "config's quantization_config is not known"),
    "layers": ({**QWEN3, "layer_types": ["linear_attention"] * 36}, "config's layer_types must be a list of"),
    "layers without windows": ({**QWEN3, "layer_types": ["sliding_attention"] * 36}, "config's use_sliding_window"),
    "number of layers": ({**QWEN3, "layer_types": ["full_attention"] * 35}, "layer_types must name 36 layers, got 35"),
}
UNCOUNTABLE_VALUES = {
    "position_embedding_type": ("google-bert/bert-base-uncased", "relative_key"),
    "is_decoder": ("google-bert/bert-base-uncased", True),
    "num_hidden_groups": ("albert/albert-base-v2", 2),
    "num_decoder_layers": ("google-t5/t5-small", 3),
    "feed_forward_proj": ("google-t5/t5-small", 3),
    "decoder_layers": ("facebook/bart-base", 3),
    "add_cross_attention": ("openai-community/gpt2", True),
    "word_embed_proj_dim": ("facebook/opt-125m", 512),
    "do_layer_norm_before": ("facebook/opt-125m", False),
    "enable_bias": ("facebook/opt-125m", False),
    "no_bias": ("mosaicml/mpt-7b", False),
    "attn_config": ("mosaicml/mpt-7b", {"qk_ln": True}),
    "qk_layernorm": ("microsoft/phi-2", True),
    "mlp_only_layers": ("Qwen/Qwen3-30B-A3B", [0]),
    "decoder_sparse_step": ("Qwen/Qwen3-30B-A3B", 2),
    "num_experts_per_tok": ("Qwen/Qwen3-30B-A3B", 129),
    "attention_types": ("EleutherAI/gpt-neo-125m", [[["global"], 3]]),
}


@pytest.mark.parametrize("case", REFUSED_CONFIGS)
def test_wrong_configurations_are_refused(case):
    config, message = REFUSED_CONFIGS[case]
    with pytest.raises(ValueError, match=message):
        tl.ModelShape.from_config(config)


@pytest.mark.parametrize("key", UNCOUNTABLE_VALUES)
def test_a_value_that_cannot_be_counted_is_refused_by_its_key(key):
    name, value = UNCOUNTABLE_VALUES[key]
    with pytest.raises(ValueError, match=key):
        tl.ModelShape.from_config({**REFERENCES[name]["config"], key: value})


@pytest.mark.parametrize("config", [None, [], "qwen3", 3])
def test_a_configuration_is_a_dict(config):
    with pytest.raises(TypeError, match=r"config must be a dict, as json.load returns it, got "):
        tl.ModelShape.from_config(config)


def test_windows_cap_the_cache_and_the_scores():
    mistral, gemma = model_shape("mistralai/Mistral-7B-v0.1"), model_shape("google/gemma-3-1b-pt")
    assert (
        tl.kv_cache_bytes(mistral, 10_000) == tl.kv_cache_bytes(mistral, 4096) == 4096 * tl.kv_cache_bytes(mistral, 1)
    )
    assert (gemma.window, gemma.n_window_layers) == (512, 22)
    bytes_per_token_and_layer = tl.kv_cache_bytes(gemma, 1) // 26
    assert tl.kv_cache_bytes(gemma, 10_000) == bytes_per_token_and_layer * (4 * 10_000 + 22 * 512)
    scores = tl.flops_breakdown(gemma, 10_000)["scores and blend"]
    assert scores == 4 * 4 * 256 * 10_000 * (4 * 10_000 + 22 * 512)
    assert model_shape("Qwen/Qwen2-7B").window is None
    windowed = {**REFERENCES["Qwen/Qwen2-7B"]["config"], "use_sliding_window": True, "max_window_layers": 20}
    assert tl.ModelShape.from_config(windowed).n_window_layers == 8


def test_flops_count_the_experts_that_a_token_uses():
    mixtral = model_shape("mistralai/Mixtral-8x7B-v0.1")
    assert tl.flops_breakdown(mixtral, 3)["feed-forward"] == 3 * 32 * 2 * 4096 * (2 * 3 * 14336 + 8)
    qwen = model_shape("Qwen/Qwen1.5-MoE-A2.7B")
    assert tl.flops_breakdown(qwen, 1)["feed-forward"] == 24 * 2 * 2048 * (3 * (4 * 1408 + 5632) + 60 + 1)
    albert = model_shape("albert/albert-base-v2")
    assert tl.flops_breakdown(albert, 3)["embedding projection"] == 2 * 3 * 128 * 768
    assert tl.flops_breakdown(albert, 3)["feed-forward"] == tl.flops_breakdown(tl.BERT_BASE, 3)["feed-forward"]


def test_activations_are_counted_only_for_this_packages_layers():
    with pytest.raises(ValueError, match="got a shape with qk_norm and d_head"):
        tl.activation_bytes(tl.ModelShape.from_config(QWEN3), 8)
    llama = model_shape("HuggingFaceTB/SmolLM2-135M")
    assert llama == tl.SMOLLM2_135M
    assert tl.activation_bytes(llama, 8) == tl.activation_bytes(tl.SMOLLM2_135M, 8)
