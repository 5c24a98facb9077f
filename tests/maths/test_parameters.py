"""Parameter counts agree with published numbers, and with models built from PyTorch's own layers."""

from copy import deepcopy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import transformer_lab as tl
from agreement import few_examples, raises
from transformer_lab.components import COMPONENTS
from transformer_lab.parameters import FAMILIES

# The number of parameters in the published weights, which include BERT's pooler.
PUBLISHED = {
    "BERT-base": (tl.BERT_BASE, 109_482_240),
    "BERT-large": (tl.BERT_LARGE, 335_141_888),
    "GPT-2": (tl.GPT2, 124_439_808),
    "GPT-2 medium": (tl.GPT2_MEDIUM, 354_823_168),
    "GPT-2 large": (tl.GPT2_LARGE, 774_030_080),
    "GPT-2 XL": (tl.GPT2_XL, 1_557_611_200),
    "RoBERTa-base": (tl.ModelShape("bert", 12, 768, 12, 3072, 50265, 514, n_segments=1), 124_645_632),
    "DistilBERT": (tl.ModelShape("bert", 6, 768, 12, 3072, 30522, 512, n_segments=0, pooler=False), 66_362_880),
    "SmolLM2-135M": (tl.SMOLLM2_135M, 134_515_008),
    "SmolLM2-360M": (tl.ModelShape("llama", 32, 960, 15, 2560, 49152, n_kv_heads=5), 361_821_120),
    "SmolLM2-1.7B": (tl.ModelShape("llama", 24, 2048, 32, 8192, 49152), 1_711_376_384),
    "TinyLlama-1.1B": (tl.ModelShape("llama", 22, 2048, 32, 5632, 32000, n_kv_heads=4, tied=False), 1_100_048_384),
    "Llama-2-7B": (tl.ModelShape("llama", 32, 4096, 32, 11008, 32000, tied=False), 6_738_415_616),
    "Mistral-7B": (tl.ModelShape("llama", 32, 4096, 32, 14336, 32000, n_kv_heads=8, tied=False), 7_241_732_096),
    "Llama-3-8B": (tl.LLAMA3_8B, 8_030_261_248),
    "GPT": (tl.ModelShape("gpt2", 12, 768, 12, 3072, 40478, 512, final_norm=False), 116_534_784),
}
SHAPES = [pytest.param(shape, id=name) for name, (shape, _) in PUBLISHED.items() if shape.family != "llama"]


class TorchBert(nn.Module):
    def __init__(self, shape):
        super().__init__()
        d_model = shape.d_model
        self.word_embeddings = nn.Embedding(shape.vocab_size, d_model)
        self.position_embeddings = nn.Embedding(shape.n_positions, d_model)
        self.segment_embeddings = nn.Embedding(shape.n_segments, d_model)
        self.embedding_norm = nn.LayerNorm(d_model, bias=shape.bias)
        layer = nn.TransformerEncoderLayer(d_model, shape.n_heads, shape.d_ff, activation="gelu", bias=shape.bias)
        self.encoder = nn.TransformerEncoder(layer, shape.n_layers, enable_nested_tensor=False)
        self.pooler = nn.Linear(d_model, d_model, bias=shape.bias) if shape.pooler else None


class TorchGpt2(nn.Module):
    def __init__(self, shape):
        super().__init__()
        d_model, norm = shape.d_model, None
        # The head is defined first, so a tied matrix is visited first as the head, and then as the embedding.
        self.lm_head = nn.Linear(d_model, shape.vocab_size, bias=False)
        self.wte = nn.Embedding(shape.vocab_size, d_model)
        self.wpe = nn.Embedding(shape.n_positions, d_model)
        if shape.final_norm is not False:
            norm = nn.LayerNorm(d_model, bias=shape.bias)
        layer = nn.TransformerEncoderLayer(d_model, shape.n_heads, shape.d_ff, norm_first=True, bias=shape.bias)
        self.h = nn.TransformerEncoder(layer, shape.n_layers, norm, enable_nested_tensor=False)
        if shape.tied:
            self.lm_head.weight = self.wte.weight


def build_on_meta(build, *arguments, **options):
    with torch.device("meta"):
        return build(*arguments, **options)


def build_torch_model(shape):
    return build_on_meta({"bert": TorchBert, "gpt2": TorchGpt2}[shape.family], shape)


@st.composite
def shapes(draw, family):
    size = st.integers(1, 9)
    n_heads = draw(st.integers(1, 4))
    sizes = {"vocab_size": draw(size), "n_positions": draw(size), "bias": draw(st.booleans())}
    if family == "bert":
        sizes |= {"n_segments": draw(size), "pooler": draw(st.booleans())}
    else:
        sizes |= {"tied": draw(st.booleans()), "final_norm": draw(st.sampled_from([None, False, True]))}
    if family == "transformer" and not sizes["tied"]:
        sizes["tgt_vocab_size"] = draw(st.none() | size)
    if family == "llama":
        n_kv_heads = [None, *(n for n in range(1, n_heads + 1) if n_heads % n == 0)]
        sizes |= {"n_kv_heads": draw(st.sampled_from(n_kv_heads)), "gated": draw(st.booleans())}
    d_ff = draw(st.none() | size)
    return tl.ModelShape(family, draw(st.integers(1, 3)), n_heads * draw(size), n_heads, d_ff, **sizes)


def assert_adds_up(model):
    """Assert that the components add up to all of the parameters; return the components."""
    actual = tl.parameter_breakdown(model)
    component_order = [component for component in COMPONENTS if component in actual]
    assert list(actual)[: len(component_order)] == component_order and all(
        name.startswith("other: ") for name in list(actual)[len(component_order) :]
    )
    total = sum(p.numel() for p in model.parameters())
    assert sum(actual.values()) == tl.count_parameters(model) == total
    return actual


@pytest.mark.parametrize(("shape", "published"), PUBLISHED.values(), ids=PUBLISHED)
def test_counts_match_the_published_ones(shape, published):
    assert tl.count_parameters(shape) == published
    assert sum(tl.parameter_breakdown(shape).values()) == published


@pytest.mark.parametrize("shape", SHAPES)
def test_breakdown_matches_a_model_of_torch_layers(shape):
    if not (shape.family == "bert" and shape.n_segments == 0):
        assert assert_adds_up(build_torch_model(shape)) == tl.parameter_breakdown(shape)


@few_examples
@given(shapes("bert") | shapes("gpt2"))
def test_any_shape_matches_torch_layers(shape):
    assert assert_adds_up(build_torch_model(shape)) == tl.parameter_breakdown(shape)


@settings(few_examples, max_examples=40)
@given(shapes("transformer"), st.booleans())
def test_any_shape_matches_transformer(shape, norm_first):
    model = build_on_meta(
        tl.Transformer,
        shape.vocab_size,
        shape.vocab_size if shape.tgt_vocab_size is None else shape.tgt_vocab_size,
        shape.d_model,
        shape.n_heads,
        shape.n_layers,
        shape.d_ff,
        norm_first=norm_first,
        bias=shape.bias,
        final_norm=bool(shape.final_norm),
        share_embeddings=shape.tied,
    )
    assert assert_adds_up(model) == tl.parameter_breakdown(shape)


def build_llama(shape):
    options = {"norm_first": True, "norm": "rms", "activation": "silu", "positions": "rotary", "gated": shape.gated}
    options |= {"bias": shape.bias, "n_kv_heads": shape.n_kv_heads, "share_embeddings": shape.tied}
    sizes = (shape.vocab_size, shape.d_model, shape.n_heads, shape.n_layers, shape.d_ff)
    return build_on_meta(tl.LanguageModel, *sizes, **options, final_norm=shape.final_norm is not False)


@settings(few_examples, max_examples=40)
@given(shapes("llama"))
def test_any_shape_matches_language_model(shape):
    assert assert_adds_up(build_llama(shape)) == tl.parameter_breakdown(shape)


@pytest.mark.parametrize("shape", [shape for shape, _ in PUBLISHED.values() if shape.family == "llama"], ids=repr)
def test_published_llama_shapes_match_language_model(shape):
    assert assert_adds_up(build_llama(shape)) == tl.parameter_breakdown(shape)


def test_family_sets_the_default_options():
    shape = tl.ModelShape("llama", 2, 576, 9, vocab_size=5)
    assert (shape.bias, shape.gated, shape.n_kv_heads, shape.d_ff, shape.n_positions) == (False, True, None, 1536, None)
    assert tl.ModelShape("llama", 2, 576, 9, vocab_size=5, gated=False).d_ff == 4 * 576
    assert tl.GPT2.bias is tl.BERT_BASE.bias is tl.ModelShape("transformer", 2, 8, 2, vocab_size=5).bias is True


def test_transformer_of_the_paper_has_63_million_parameters():
    # The model has two stacks of six layers and one matrix of 37,000 rows. The paper's table rounds the total to 65
    # million.
    layers = 6 * (4 * 512 * 513 + 2 * 512 * 2048 + 2048 + 512 + 4 * 512)
    layers += 6 * (8 * 512 * 513 + 2 * 512 * 2048 + 2048 + 512 + 6 * 512)
    shape = tl.ModelShape("transformer", 6, 512, 8, vocab_size=37000)
    assert tl.count_parameters(shape) == layers + 37000 * 512 == 63_082_496


def test_count_is_the_same_on_meta():
    sizes = {"src_vocab": 11, "tgt_vocab": 13, "d_model": 6, "n_heads": 3, "n_layers": 2, "d_ff": 10}
    assert assert_adds_up(tl.Transformer(**sizes)) == assert_adds_up(build_on_meta(tl.Transformer, **sizes))


@pytest.mark.parametrize("shape", SHAPES)
def test_rule_of_thumb_is_the_sum_of_three_components(shape):
    actual = tl.parameter_breakdown(shape)
    sum_of_three = sum(actual[name] for name in ("token embedding", "attention weights", "feed-forward weights"))
    assert sum_of_three == 12 * shape.n_layers * shape.d_model**2 + shape.vocab_size * shape.d_model


def test_number_of_heads_does_not_change_the_count():
    single_head = replace(tl.GPT2, n_heads=1)
    assert tl.parameter_breakdown(single_head) == tl.parameter_breakdown(tl.GPT2)


def test_tied_head_counts_once():
    untied = replace(tl.GPT2, tied=False)
    assert "output head" not in tl.parameter_breakdown(tl.GPT2)
    assert tl.parameter_breakdown(untied) == {**tl.parameter_breakdown(tl.GPT2), "output head": 50257 * 768}


def test_breakdown_of_torch_modules():
    sizes = {"num_encoder_layers": 3, "num_decoder_layers": 4, "dim_feedforward": 20, "batch_first": True}
    transformer = build_on_meta(nn.Transformer, d_model=8, nhead=2, **sizes)
    assert assert_adds_up(transformer) == {
        "attention weights": 11 * 4 * 64,
        "attention biases": 11 * 4 * 8,
        "feed-forward weights": 7 * 2 * 8 * 20,
        "feed-forward biases": 7 * 28,
        "norms": (3 * 2 + 4 * 3 + 2) * 16,
    }
    attention = build_on_meta(nn.MultiheadAttention, 8, 2, kdim=5, vdim=3)
    assert assert_adds_up(attention) == {"attention weights": 8 * (8 + 5 + 3 + 8), "attention biases": 32}


def test_breakdown_of_this_packages_modules():
    assert assert_adds_up(tl.SingleHeadAttention(8, 4, 6)) == {"attention weights": 8 * 14, "attention biases": 14}
    assert assert_adds_up(tl.MultiHeadAttention(8, 2, d_key_in=5, bias=False)) == {
        "attention weights": 8 * (8 + 5 + 8 + 8)
    }
    assert assert_adds_up(tl.FeedForward(8, 20)) == {"feed-forward weights": 320, "feed-forward biases": 28}
    assert assert_adds_up(tl.LayerNorm(8)) == {"norms": 16}
    assert assert_adds_up(nn.Sequential(tl.RMSNorm(8), nn.RMSNorm(8), nn.BatchNorm1d(8))) == {"norms": 32}
    assert assert_adds_up(tl.TokenEmbedding(11, 8)) == {"token embedding": 88}
    model = tl.Transformer.from_torch(build_on_meta(nn.Transformer, 8, 2, 1, 1, 20, batch_first=True))
    assert assert_adds_up(model) == {
        "attention weights": 768,
        "attention biases": 96,
        "feed-forward weights": 640,
        "feed-forward biases": 56,
        "norms": 5 * 16 + 2 * 16,
    }


def named_module(name, **children):
    """Return a module whose class has this name, with these children."""
    module = type(name, (nn.Module,), {})()
    for child_name, child in children.items():
        module.add_module(child_name, child)
    return module


def test_breakdown_of_modules_named_as_in_bert():
    """Classes and names are nested as in Hugging Face's BERT."""

    embeddings = named_module(
        "BertEmbeddings",
        word_embeddings=nn.Embedding(11, 8),
        position_embeddings=nn.Embedding(7, 8),
        token_type_embeddings=nn.Embedding(2, 8),
        LayerNorm=nn.LayerNorm(8),
    )
    heads = named_module("BertSelfAttention", query=nn.Linear(8, 8), key=nn.Linear(8, 8), value=nn.Linear(8, 8))
    output = named_module("BertSelfOutput", dense=nn.Linear(8, 8), LayerNorm=nn.LayerNorm(8))
    layer = named_module(
        "BertLayer",
        attention=named_module("BertAttention", self=heads, output=output),
        intermediate=named_module("BertIntermediate", dense=nn.Linear(8, 20)),
        output=named_module("BertOutput", dense=nn.Linear(20, 8), LayerNorm=nn.LayerNorm(8)),
    )
    pooler = named_module("BertPooler", dense=nn.Linear(8, 8))
    model = named_module(
        "BertModel", embeddings=embeddings, encoder=named_module("BertEncoder", layer=layer), pooler=pooler
    )
    shape = tl.ModelShape("bert", 1, 8, 2, 20, vocab_size=11, n_positions=7)
    assert assert_adds_up(model) == tl.parameter_breakdown(shape)


def test_numpy_integers_do_not_overflow():
    sizes = np.array([48, 1600, 25, 6400, 50257, 1024], dtype=np.int32)
    shape = tl.ModelShape("gpt2", *sizes)
    assert shape == tl.GPT2_XL and type(tl.count_parameters(shape)) is int
    seq = np.int32(2**20)
    assert tl.kv_cache_bytes(shape, seq, batch=np.int8(64)) == tl.kv_cache_bytes(tl.GPT2_XL, 2**20, batch=64)
    assert tl.training_flops(shape, seq) == tl.training_flops(tl.GPT2_XL, 2**20)
    assert tl.attention_flops(seq, sizes[1]) == tl.attention_flops(2**20, 1600)
    assert tl.memory_breakdown(shape, seq, batch=0)["activations"] == 0


def test_unclassified_parameters_are_counted_as_other():
    class Unclassified(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))
            self.convolution = nn.Conv1d(2, 3, 5)
            self.norm = nn.LayerNorm(4)

    assert assert_adds_up(Unclassified()) == {"norms": 8, "other: scale": 3, "other: convolution": 33}
    assert tl.parameter_breakdown(nn.Identity()) == {}
    assert tl.count_parameters(nn.Identity()) == 0


def test_unclassified_modules_are_counted_by_name_over_all_layers():
    mixer = nn.ModuleDict({"conv": nn.Conv1d(4, 4, 3), "decay": nn.ParameterList([torch.ones(4)])})
    layers = nn.ModuleList(
        nn.ModuleDict({"mixer": module, "norm": nn.LayerNorm(4)}) for module in (mixer, deepcopy(mixer))
    )
    actual = assert_adds_up(nn.ModuleDict({"layers": layers, "stem": nn.Linear(2, 4)}))
    assert actual == {
        "norms": 16,
        "other: layers.mixer.conv": 2 * (48 + 4),
        "other: layers.mixer.decay": 2 * 4,
        "other: stem": 12,
    }
    tied = nn.ModuleDict({"stem": nn.Linear(4, 7, bias=False), "token": nn.Embedding(7, 4)})
    tied["stem"].weight = tied["token"].weight
    assert assert_adds_up(tied) == {"token embedding": 28}, "a known component must come first"


def test_each_parameter_counts_once_and_buffers_do_not():
    layer = nn.Linear(3, 4)
    model = nn.Sequential(layer, nn.ReLU(), layer, nn.BatchNorm1d(4)).requires_grad_(False)
    assert assert_adds_up(model) == {"norms": 8, "other: Linear": 16}


def test_shape_can_be_replaced_compared_and_pickled():
    deeper = replace(tl.GPT2, n_layers=24)
    assert (deeper.n_layers, deeper.d_ff, tl.GPT2.n_layers) == (24, 3072, 12)
    assert replace(tl.GPT2, d_model=1536).d_ff == 3072
    assert replace(tl.GPT2, d_model=1536, d_ff=None).d_ff == 6144
    assert tl.ModelShape("gpt2", 12, 768, 12, 3072, 50257, 1024) == tl.GPT2
    assert {tl.GPT2: "kept"}[replace(tl.GPT2)] == "kept"
    bare = replace(tl.BERT_BASE, family="gpt2", pooler=None, n_segments=None)
    assert replace(bare, tied=None) == tl.ModelShape("gpt2", 12, 768, 12, None, 30522, 512)
    with pytest.raises(FrozenInstanceError):
        tl.GPT2.n_layers = 3


def llama_with(**changes):
    return replace(tl.LLAMA3_8B, **changes)


def transformer_with(**options):
    return tl.ModelShape("transformer", 2, 8, 2, 12, vocab_size=5, **options)


def test_no_option_is_ignored():
    """Each option changes the parameter count of a family that has it; a family without the option rejects it."""
    values = {
        "llama": {
            "final_norm": False,
            "gated": False,
            "n_kv_heads": 4,
            "tied": True,
            "qk_norm": True,
            "norm": "unlearned",
            "norms_per_layer": 4,
            "embedding_norm": True,
            "learned_positions": True,
            "d_head": 64,
            "bias": ("qkv",),
        },
        "transformer": {
            "final_norm": True,
            "gated": True,
            "tied": False,
            "norm": "rms",
            "embedding_norm": True,
            "n_relative": 32,
            "d_head": 5,
            "bias": ("head",),
        },
        "bert": {"n_segments": 3, "pooler": False, "d_embedding": 8, "shared_layers": True, "n_relative": 4},
    }
    builders = {"llama": llama_with, "transformer": transformer_with, "bert": lambda **o: replace(tl.BERT_BASE, **o)}
    for family, options in values.items():
        for name, value in options.items():
            assert tl.count_parameters(builders[family](**{name: value})) != tl.count_parameters(builders[family]()), (
                name
            )
    for family, options in FAMILIES.items():
        for name in sorted(set().union(*FAMILIES.values()) - set(options)):
            for value in {FAMILIES[other].get(name) for other in FAMILIES} - {None} | {1}:
                with pytest.raises(ValueError, match=f"{name} is an option of family"):
                    tl.ModelShape(family, 2, 8, 2, 12, 5, 7, **{name: value})


def test_a_gate_in_a_transformer_is_a_third_matrix():
    extra = tl.count_parameters(transformer_with(gated=True)) - tl.count_parameters(transformer_with())
    assert extra == 4 * (8 * 12 + 12)
    flops = tl.flops_breakdown(transformer_with(gated=True), 3)["feed-forward"]
    assert 2 * flops == 3 * tl.flops_breakdown(transformer_with(), 3)["feed-forward"]


def test_counts_of_all_experts_and_of_the_active_ones():
    shape = llama_with(n_experts=8, experts_per_token=2, d_expert=10, d_shared_expert=30, shared_expert_gate=True)
    actual = tl.parameter_breakdown(shape)
    assert actual["feed-forward weights"] == 32 * 3 * 4096 * (8 * 10 + 30) and actual["router"] == 32 * 4096 * 9
    assert tl.active_parameters(shape) == tl.count_parameters(shape) - 32 * 6 * 3 * 4096 * 10
    assert tl.active_parameters(tl.GPT2) == tl.count_parameters(tl.GPT2)
    raises(lambda: tl.active_parameters(3), TypeError, "shape must be a ModelShape, such as tl.GPT2, got int")
    text = "experts_per_token must be at most n_experts, got experts_per_token 9 and n_experts 8"
    raises(lambda: llama_with(n_experts=8, experts_per_token=9), ValueError, text)
    text = "n_experts requires experts_per_token, got n_experts 8 without it"
    raises(lambda: llama_with(n_experts=8), ValueError, text)
    raises(lambda: llama_with(d_expert=8), ValueError, "d_expert requires n_experts, got d_expert 8 without it")
    text = "n_window_layers requires window, got n_window_layers 8 without it"
    raises(lambda: llama_with(n_window_layers=8), ValueError, text)


def test_biases_may_be_limited_to_some_places():
    assert llama_with(bias=["feed-forward", "norms", "output", "qkv"]).bias is True
    assert llama_with(bias=[]).bias is False
    assert llama_with(bias=["head", "qkv"]).bias == ("qkv", "head")
    actual = tl.parameter_breakdown(llama_with(bias=["qkv"]))
    assert actual["attention biases"] == 32 * (4096 + 2 * 1024) and "feed-forward biases" not in actual
    text = "bias must be one of qkv, output, feed-forward, norms, head, got 'keys'"
    raises(lambda: llama_with(bias=["keys"]), ValueError, text)
    raises(lambda: llama_with(qk_norm="some"), ValueError, "qk_norm must be False, True or 'all', got 'some'")


def test_breakdown_of_modules_with_well_known_names():
    feed_forward_layers = {"c_fc": nn.Linear(8, 32), "gelu": nn.GELU(), "c_proj": nn.Linear(32, 8)}
    weights, biases = "feed-forward weights", "feed-forward biases"
    feed_forward, attention = {weights: 512, biases: 40}, {"attention weights": 256, "attention biases": 32}
    clip = named_module(
        "ResidualAttentionBlock", attn=nn.MultiheadAttention(8, 2), mlp=nn.Sequential(*feed_forward_layers.values())
    )
    assert assert_adds_up(clip) == attention | feed_forward
    block = named_module("AttentionBlock", q=nn.Linear(8, 8), net=nn.Sequential(*feed_forward_layers.values()))
    assert assert_adds_up(block) == {"attention weights": 64, "attention biases": 8} | feed_forward
    # the layout of minGPT
    assert assert_adds_up(named_module("Block", mlp=nn.ModuleDict(feed_forward_layers))) == feed_forward
    for name in ("Mlp", "FeedFoward", "SwiGLU"):
        assert assert_adds_up(named_module("Block", inner=named_module(name, **feed_forward_layers))) == feed_forward
    opt = named_module(
        "OPTDecoderLayer", self_attn=nn.MultiheadAttention(8, 2), fc1=nn.Linear(8, 32), fc2=nn.Linear(32, 8)
    )
    assert assert_adds_up(opt) == attention | feed_forward
    unknown = named_module("Linear")
    unknown.weight = nn.Parameter(torch.ones(11, 8))
    assert assert_adds_up(named_module("Model", lm_head=unknown)) == {"output head": 88}
    assert assert_adds_up(named_module("Model", decoder=nn.Linear(8, 11))) == {"output head": 99}
    assert assert_adds_up(named_module("Model", generator=named_module("Generator", proj=nn.Linear(8, 11)))) == {
        "output head": 99
    }
    vit = named_module("VisionTransformer", odd=nn.Linear(8, 2))
    vit.pos_embedding = nn.Parameter(torch.ones(5, 8))
    assert assert_adds_up(vit) == {"position embedding": 40, "other: odd": 18}


def gpt2_with(**changes):
    return lambda: replace(tl.GPT2, **changes)


def test_errors_name_the_argument():
    raises(gpt2_with(family="t5"), ValueError, "family must be one of bert, gpt2, llama, transformer, got 't5'")
    raises(gpt2_with(family=["gpt2"]), ValueError, "family must be one of bert, gpt2, llama, transformer, got ['gpt2']")
    text = "gated is an option of family 'llama' or 'transformer', got it with 'gpt2'"
    raises(gpt2_with(gated=False), ValueError, text)
    raises(gpt2_with(n_kv_heads=3), ValueError, "n_kv_heads is an option of family 'llama', got it with 'gpt2'")
    text = "n_kv_heads must divide n_heads, got n_kv_heads 5 and n_heads 32"
    raises(lambda: replace(tl.LLAMA3_8B, n_kv_heads=5), ValueError, text)
    raises(lambda: replace(tl.LLAMA3_8B, n_kv_heads=8.0), TypeError, "n_kv_heads must be an integer, got 8.0")
    raises(lambda: replace(tl.LLAMA3_8B, gated=1), TypeError, "gated must be True or False, got 1")
    raises(gpt2_with(n_layers=-1), ValueError, "n_layers must be at least 0, got -1")
    for name in ("d_model", "n_heads", "d_ff", "vocab_size", "n_positions"):
        raises(gpt2_with(**{name: 0}), ValueError, f"{name} must be at least 1, got 0")
    for name in ("n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "n_positions"):
        raises(gpt2_with(**{name: 2.5}), TypeError, f"{name} must be an integer, got 2.5")
        raises(gpt2_with(**{name: True}), TypeError, f"{name} must be an integer, got True")
    for name in ("vocab_size", "n_positions"):
        raises(gpt2_with(**{name: None}), TypeError, f"{name} must be an integer, got None")
    raises(gpt2_with(n_heads=7), ValueError, "n_heads must divide d_model, got n_heads 7 and d_model 768")
    raises(gpt2_with(bias=1), TypeError, "bias must be True or False, got 1")
    raises(gpt2_with(final_norm="no"), TypeError, "final_norm must be True or False, got 'no'")
    raises(gpt2_with(tied="yes"), TypeError, "tied must be True or False, got 'yes'")
    raises(gpt2_with(pooler=False), ValueError, "pooler is an option of family 'bert', got it with 'gpt2'")
    raises(lambda: replace(tl.BERT_BASE, n_segments=-1), ValueError, "n_segments must be at least 0, got -1")
    raises(
        gpt2_with(tgt_vocab_size=3),
        ValueError,
        "tgt_vocab_size is an option of family 'transformer', got it with 'gpt2'",
    )
    raises(
        lambda: replace(tl.BERT_BASE, tied=False),
        ValueError,
        "tied is an option of family 'gpt2' or 'llama' or 'transformer', got it with 'bert'",
    )
    raises(
        lambda: tl.ModelShape("transformer", 2, 8, 2, vocab_size=5, tgt_vocab_size=7),
        ValueError,
        "tied requires one vocabulary, got vocab_size 5 and tgt_vocab_size 7",
    )
    raises(
        lambda: tl.ModelShape("transformer", 2, 8, 2, vocab_size=5, tgt_vocab_size=0),
        ValueError,
        "tgt_vocab_size must be at least 1, got 0",
    )
    for function in (tl.count_parameters, tl.parameter_breakdown):
        raises(
            lambda function=function: function(12),
            TypeError,
            "shape_or_module must be a ModelShape or a torch.nn.Module, got int",
        )
