"""FLOPs and memory agree with PyTorch's FLOP counter, its saved activations and its allocations."""

from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_backward_flop_count, sdpa_flop_count

import transformer_lab as tl
from agreement import few_examples, raises
from transformer_lab.attention import HAS_GQA

fewer_examples = settings(few_examples, max_examples=20)
aten = torch.ops.aten


class Gpt2(nn.Module):
    """A decoder-only model made of this package's layers."""

    def __init__(self, shape, norm_first=True):
        super().__init__()
        self.token = nn.Embedding(shape.vocab_size, shape.d_model)
        self.position = nn.Embedding(shape.n_positions, shape.d_model)
        options = {"norm_first": norm_first, "activation": "gelu", "bias": shape.bias}
        sizes = (shape.d_model, shape.n_heads, shape.n_layers, shape.d_ff)
        self.blocks = tl.Encoder(*sizes, **options, final_norm=shape.final_norm is not False)
        self.head = nn.Linear(shape.d_model, shape.vocab_size, bias=False)
        if shape.tied:
            self.head.weight = self.token.weight

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(positions)
        return self.head(self.blocks(x, is_causal=True))


class Bert(nn.Module):
    """An encoder-only model made of this package's layers."""

    def __init__(self, shape):
        super().__init__()
        self.token = nn.Embedding(shape.vocab_size, shape.d_model)
        self.position = nn.Embedding(shape.n_positions, shape.d_model)
        self.segment = nn.Embedding(shape.n_segments, shape.d_model)
        self.norm = tl.LayerNorm(shape.d_model)
        self.blocks = tl.Encoder(shape.d_model, shape.n_heads, shape.n_layers, shape.d_ff, activation="gelu")
        self.pooler = nn.Linear(shape.d_model, shape.d_model) if shape.pooler else None

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(positions) + self.segment(torch.zeros_like(tokens))
        x = self.blocks(self.norm(x))
        return x if self.pooler is None else self.pooler(x[:, 0]).tanh()


def build_transformer(shape, norm_first=False):
    tgt_vocab = shape.vocab_size if shape.tgt_vocab_size is None else shape.tgt_vocab_size
    sizes = (shape.vocab_size, tgt_vocab, shape.d_model, shape.n_heads, shape.n_layers, shape.d_ff)
    options = {"final_norm": bool(shape.final_norm), "share_embeddings": shape.tied, "bias": shape.bias}
    return tl.Transformer(*sizes, norm_first=norm_first, **options)


def build_llama(shape, norm_first=True):
    options = {"norm": "rms", "activation": "silu", "positions": "rotary", "gated": shape.gated, "bias": shape.bias}
    options |= {"n_kv_heads": shape.n_kv_heads, "share_embeddings": shape.tied}
    sizes = (shape.vocab_size, shape.d_model, shape.n_heads, shape.n_layers, shape.d_ff)
    return tl.LanguageModel(*sizes, norm_first=norm_first, **options, final_norm=shape.final_norm is not False)


def build_model(shape):
    builders = {"gpt2": Gpt2, "bert": Bert, "llama": build_llama, "transformer": build_transformer}
    return builders[shape.family](shape)


def tokens_for(shape, seq, batch, tgt_len=None, device=None):
    """Return token ids that a model of this shape accepts."""
    lengths = [seq] if shape.family != "transformer" else [seq, seq if tgt_len is None else tgt_len]
    return [torch.zeros(batch, length, dtype=torch.long, device=device) for length in lengths]


def count_flops(call, custom_counts=None):
    counter = FlopCounterMode(display=False, custom_mapping=custom_counts)
    with counter:
        call()
    return counter.get_total_flops()


class WindowedAttention:
    """Attention that computes, with plain products, only the scores of the last ``window`` keys of each query."""

    def __init__(self, window):
        self.window = window

    def __call__(self, query, key, value, mask=None, *, enable_gqa=False, **_):
        repeats = query.shape[-3] // key.shape[-3]
        key, value = (self._visible(x.repeat_interleave(repeats, -3)) for x in (key, value))
        scores = key @ query[..., None]  # (..., seq, window, 1)
        return (scores.softmax(-2).mT @ value).squeeze(-2)

    def _visible(self, x):
        window = min(self.window, x.shape[-2])
        return nn.functional.pad(x, (0, 0, window - 1, 0)).unfold(-2, window, 1).mT


class ModernModel(nn.Module):
    """A decoder built from this package's layers, with all options of a "llama" shape that no other model in this file
    uses."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.attention, self.feed_forward = nn.ModuleList(), nn.ModuleList()
        for layer in range(shape.n_layers):
            has_window = shape.window and layer < (
                shape.n_layers if shape.n_window_layers is None else shape.n_window_layers
            )
            attend = WindowedAttention(shape.window) if has_window else plain_attention
            options = {"n_kv_heads": shape.n_kv_heads, "d_head": shape.d_head, "qk_norm": bool(shape.qk_norm)}
            attention = tl.MultiHeadAttention(shape.d_model, shape.n_heads, bias=False, attend=attend, **options)
            self.attention.append(attention)
            self.feed_forward.append(self._feed_forward())
        self.gate = nn.Linear(shape.d_model, 1, bias=False) if shape.shared_expert_gate else None
        self.head = nn.Linear(shape.d_model, shape.vocab_size, bias=False)

    def _feed_forward(self):
        shape, options = self.shape, {"activation": "silu", "gated": self.shape.gated, "bias": False}
        if not shape.n_experts:
            return tl.FeedForward(shape.d_model, shape.d_ff, **options)
        d_ff = shape.d_expert or shape.d_ff
        n_shared = (shape.d_shared_expert or 0) // d_ff
        sizes = (shape.d_model, d_ff, shape.n_experts, shape.experts_per_token)
        return tl.MixtureOfExperts(*sizes, n_shared=n_shared, **options)

    def forward(self, x):
        for attention, feed_forward in zip(self.attention, self.feed_forward):
            x = x + feed_forward(x + attention(x, is_causal=True))
            if self.gate is not None:
                x = x * self.gate(x).sigmoid()
        return self.head(x)


def plain_attention(query, key, value, mask=None, *, enable_gqa=False, **_):
    repeats = query.shape[-3] // key.shape[-3]
    key, value = (x.repeat_interleave(repeats, -3) for x in (key, value))
    return (query @ key.mT).softmax(-1) @ value


MODERN_OPTIONS = {
    "a head size of its own": {"d_head": 6},
    "norms of queries and keys": {"d_head": 6, "qk_norm": True},
    "heads that share keys": {"d_head": 6, "n_kv_heads": 2},
    "no gate": {"gated": False},
    "windows": {"window": 3},
    "windows in some layers": {"window": 3, "n_window_layers": 2, "d_head": 6, "n_kv_heads": 1},
    "a window longer than the text": {"window": 50},
    "experts": {"n_experts": 5, "experts_per_token": 2},
    "small experts": {"n_experts": 5, "experts_per_token": 3, "d_expert": 7},
    "shared experts": {"n_experts": 5, "experts_per_token": 2, "d_expert": 7, "d_shared_expert": 14},
    "a gate on the shared expert": {
        "n_experts": 4,
        "experts_per_token": 1,
        "d_shared_expert": 22,
        "shared_expert_gate": True,
    },
    "experts without a gate": {"n_experts": 4, "experts_per_token": 4, "gated": False},
}


@pytest.mark.parametrize("case", MODERN_OPTIONS)
def test_flops_of_modern_options_match_flop_counter(case):
    shape = tl.ModelShape("llama", 3, 8, 4, 22, vocab_size=13, **MODERN_OPTIONS[case])
    seq, batch = 10, 2
    model = ModernModel(shape)
    assert count_flops(lambda: model(torch.randn(batch, seq, 8))) == tl.forward_flops(shape, seq, batch)
    # This model has a head in place of the tied embedding, and no norms in the layers, since norms contain no products.
    norms = tl.parameter_breakdown(shape)["norms"] - shape.n_layers * 2 * 6 * bool(shape.qk_norm)
    gates = shape.n_layers * 8 - 8 if shape.shared_expert_gate else 0  # all layers share one gate here
    assert tl.count_parameters(model) == tl.count_parameters(shape) - norms - gates


@st.composite
def shapes_and_lengths(draw):
    """Draw a small model shape, and the lengths of a batch for a model of this shape."""
    size = st.integers(1, 7)
    family = draw(st.sampled_from(["bert", "gpt2", "llama", "transformer"]))
    n_heads, bias, lengths = draw(st.integers(1, 3)), True, {"seq": draw(size), "batch": draw(st.integers(1, 3))}
    options = {"vocab_size": draw(size), "n_positions": 7}
    if family == "bert":
        options["pooler"] = draw(st.booleans())
    else:
        options |= {"tied": draw(st.booleans()), "final_norm": draw(st.sampled_from([None, False, True]))}
        bias = draw(st.booleans())
    if family == "transformer":
        lengths["tgt_len"] = draw(st.none() | size)
        if not options["tied"]:
            options["tgt_vocab_size"] = draw(st.none() | size)
    d_head = draw(size)
    if family == "llama":  # rotary positions rotate pairs of features
        n_heads, d_head = draw(st.sampled_from([1, 2, 3, 4, 6])), 2 * d_head
        divisors = [n for n in range(1, n_heads + 1) if n_heads % n == 0]
        options |= {"n_kv_heads": draw(st.sampled_from([None, *divisors])), "gated": draw(st.booleans())}
    shape = tl.ModelShape(family, draw(st.integers(0, 2)), n_heads * d_head, n_heads, draw(size), **options, bias=bias)
    return shape, lengths


REAL_SIZES = [
    (replace(tl.GPT2, n_layers=2), {"seq": 1024, "batch": 2}),
    (replace(tl.BERT_BASE, n_layers=2), {"seq": 512, "batch": 3}),
    (replace(tl.SMOLLM2_135M, n_layers=2), {"seq": 512, "batch": 2}),
    (replace(tl.LLAMA3_8B, n_layers=1, vocab_size=1000), {"seq": 64, "batch": 1}),
    (
        tl.ModelShape("transformer", 2, 512, 8, vocab_size=370, tgt_vocab_size=410, tied=False),
        {"seq": 70, "batch": 2, "tgt_len": 50},
    ),
]


def assert_flops_match_the_counter(shape, lengths, device):
    with torch.device(device):
        model = build_model(shape)
    inputs = tokens_for(shape, **lengths, device=device)
    assert count_flops(lambda: model(*inputs)) == tl.forward_flops(shape, **lengths)
    if shape.family == "bert" and not shape.pooler and not shape.n_layers:
        return
    assert count_flops(lambda: model(*inputs).sum().backward()) == tl.training_flops(shape, **lengths)


@fewer_examples
@given(shapes_and_lengths())
def test_flops_match_flop_counter_for_any_shape(shape_and_lengths):
    with sdpa_kernel(SDPBackend.MATH):
        assert_flops_match_the_counter(*shape_and_lengths, "cpu")
    assert_flops_match_the_counter(*shape_and_lengths, "meta")


@pytest.mark.parametrize(("shape", "lengths"), REAL_SIZES, ids=lambda case: getattr(case, "family", ""))
def test_flops_match_flop_counter_at_real_sizes(shape, lengths):
    assert_flops_match_the_counter(shape, lengths, "meta")


@pytest.mark.parametrize(("shape", "lengths"), REAL_SIZES, ids=lambda case: getattr(case, "family", ""))
def test_flops_match_flop_counter_with_fused_kernels(shape, lengths):
    shape = replace(shape, d_model=24, n_heads=3, d_ff=40, vocab_size=17, tgt_vocab_size=None, n_kv_heads=None)
    attention_flops = tl.flops_breakdown(shape, **lengths)["scores and blend"]
    model, inputs = build_model(shape), tokens_for(shape, **lengths)
    forward, training = tl.forward_flops(shape, **lengths), tl.training_flops(shape, **lengths)
    custom_counts = {}
    if aten._scaled_dot_product_flash_attention_for_cpu not in flop_registry:  # up to PyTorch 2.14
        assert count_flops(lambda: model(*inputs)) == forward - attention_flops
        assert count_flops(lambda: model(*inputs).sum().backward()) == training - 3 * attention_flops
        custom_counts = {
            aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
            aten._scaled_dot_product_flash_attention_for_cpu_backward: (
                lambda grad, q, k, v, *_, **__: sdpa_backward_flop_count(grad, q, k, v)
            ),
        }
    # With the kernel's formulas registered, PyTorch counts one product more than the package: the kernel's backward
    # pass computes the scores again.
    assert count_flops(lambda: model(*inputs), custom_counts) == forward
    assert count_flops(lambda: model(*inputs).sum().backward(), custom_counts) == training + attention_flops // 2


def test_flops_of_each_component_of_gpt2():
    # The expected values are written out for 1,024 tokens through 12 layers.
    assert tl.flops_breakdown(tl.GPT2, 1024) == {
        "attention projections": 12 * 4 * 2 * 1024 * 768 * 768,
        "scores and blend": 12 * 2 * 2 * 1024 * 1024 * 768,
        "feed-forward": 12 * 2 * 2 * 1024 * 768 * 3072,
        "output head": 2 * 1024 * 768 * 50257,
    }
    assert tl.flops_breakdown(tl.BERT_BASE, 512, batch=3)["pooler"] == 3 * 2 * 768**2
    assert "output head" not in tl.flops_breakdown(tl.BERT_BASE, 512)


@pytest.mark.parametrize("shape", [tl.GPT2, tl.GPT2_XL, tl.SMOLLM2_135M])
def test_each_weight_takes_two_flops_per_token(shape):
    counts = tl.parameter_breakdown(shape)
    matrices = sum(counts[name] for name in ("token embedding", "attention weights", "feed-forward weights"))
    attention_flops = shape.n_layers * 4 * 100**2 * shape.d_model
    assert tl.forward_flops(shape, 100) == 2 * matrices * 100 + attention_flops
    assert tl.training_flops(shape, 100, batch=5) == 5 * 3 * (2 * matrices * 100 + attention_flops)


@pytest.mark.parametrize("shape", [tl.GPT2, replace(tl.BERT_BASE, d_ff=5000)])
def test_attention_dominates_from_the_length_d_ff(shape):
    d_model, d_ff = shape.d_model, shape.d_ff

    def breakdown_at(seq):
        return tl.flops_breakdown(shape, seq)

    assert breakdown_at(d_ff)["scores and blend"] == breakdown_at(d_ff)["feed-forward"]
    breakdown = breakdown_at(d_ff - 2 * d_model)
    assert breakdown["scores and blend"] + breakdown["attention projections"] == breakdown["feed-forward"]
    breakdown = breakdown_at(d_ff + 2 * d_model)
    assert breakdown["scores and blend"] == breakdown["feed-forward"] + breakdown["attention projections"]
    assert breakdown_at(d_ff - 1)["scores and blend"] < breakdown_at(d_ff - 1)["feed-forward"]


def test_attention_flops_match_those_of_its_products():
    query, key, value = (torch.zeros(3, length, 5) for length in (7, 11, 11))  # 3 heads of 5 features
    assert count_flops(lambda: query @ key.mT @ value) == tl.attention_flops(7, 15, 11)
    assert tl.attention_flops(7, 15) == tl.attention_flops(7, 15, 7)
    assert tl.attention_flops(7, 15, 0) == 0


def test_linear_attention_flops_match_those_of_its_products():
    query, key, value = (torch.zeros(3, 7, 5) for _ in range(3))
    assert count_flops(lambda: query @ (key.mT @ value)) == tl.linear_attention_flops(7, 15, 3)
    # If seq equals d_head, the order of the products does not change the FLOPs.
    assert tl.linear_attention_flops(5, 15, 3) == tl.attention_flops(5, 15)


def storage_bytes(tensors):
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}
    return sum(storages.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_weight_gradient_and_optimizer_bytes_match_torch(dtype):
    shape = tl.ModelShape("gpt2", 2, 12, 3, vocab_size=17, n_positions=9)
    model, size = Gpt2(shape).to(dtype), dtype.itemsize
    optimizer = torch.optim.AdamW(model.parameters())
    model(*tokens_for(shape, 9, 2)).sum().backward()
    optimizer.step()
    state = [(name, x) for parameter_state in optimizer.state.values() for name, x in parameter_state.items()]
    for shape_or_model in (shape, model):
        assert storage_bytes(model.parameters()) == tl.weight_bytes(shape_or_model, size)
        assert storage_bytes(p.grad for p in model.parameters()) == tl.weight_bytes(shape_or_model, size)
        assert storage_bytes(x for name, x in state if name != "step") == tl.optimizer_bytes(shape_or_model, size)
    steps = [x for name, x in state if name == "step"]
    assert len(steps) == len(list(model.parameters()))
    assert {x.untyped_storage().nbytes() for x in steps} == {4}


def measure_saved_bytes(model, call):
    """Return how many bytes autograd saves, not counting parameters and integers; also return the call's output."""
    saved = {}
    parameter_storages = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def pack(x):
        if x.is_floating_point() and x.untyped_storage().data_ptr() not in parameter_storages:
            # the reference keeps the tensor alive, so that its address is not reused
            saved[x.untyped_storage().data_ptr()] = x
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        output = call()
    return storage_bytes(saved.values()), output


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@fewer_examples
@given(shapes_and_lengths())
def test_activation_bytes_match_autograd(dtype, shape_and_lengths):
    shape, lengths = shape_and_lengths
    # PyTorch 2.4 copies shared keys, and its RMS norm saves different tensors from those of later versions
    assume(HAS_GQA or shape.family != "llama")
    model = build_model(shape).to(dtype)
    saved, _ = measure_saved_bytes(model, lambda: model(*tokens_for(shape, **lengths)))
    assert saved == tl.activation_bytes(shape, **lengths, bytes_per_value=dtype.itemsize)


@pytest.mark.parametrize("seq", [64, 200])
@pytest.mark.parametrize("norm_first", [False, True])
def test_activation_bytes_match_autograd_at_larger_sizes(seq, norm_first):
    shape = tl.ModelShape("gpt2", 3, 64, 4, vocab_size=50, n_positions=200)
    model = Gpt2(shape, norm_first)
    saved, _ = measure_saved_bytes(model, lambda: model(*tokens_for(shape, seq, 2)))
    assert saved == tl.activation_bytes(shape, seq, 2)
    shape = tl.ModelShape("transformer", 2, 64, 4, vocab_size=50, final_norm=True)
    model = build_transformer(shape, norm_first)
    saved, _ = measure_saved_bytes(model, lambda: model(*tokens_for(shape, seq, 2, 30)))
    assert saved == tl.activation_bytes(shape, seq, 2, tgt_len=30)


@pytest.mark.skipif(not HAS_GQA, reason="PyTorch 2.4 copies the keys that heads share")
@pytest.mark.parametrize("seq", [64, 200])
@pytest.mark.parametrize("norm_first", [False, True])
def test_activation_bytes_of_gqa_match_autograd_at_larger_sizes(seq, norm_first):
    shape = tl.ModelShape("llama", 3, 64, 4, vocab_size=50, n_kv_heads=2)
    model = build_llama(shape, norm_first)
    saved, _ = measure_saved_bytes(model, lambda: model(*tokens_for(shape, seq, 2)))
    assert saved == tl.activation_bytes(shape, seq, 2)


def test_activation_bytes_are_linear_in_length_and_quadratic_for_plain_attention():
    shape = tl.ModelShape("gpt2", 2, 24, 3, vocab_size=17, n_positions=128)
    assert tl.activation_bytes(shape, 128) == 2 * tl.activation_bytes(shape, 64)
    model = Gpt2(shape)
    with sdpa_kernel(SDPBackend.MATH):
        saved, _ = measure_saved_bytes(model, lambda: model(*tokens_for(shape, 128, 1)))
    assert saved >= tl.activation_bytes(shape, 128) + 2 * 3 * 128 * 127 * 4


def test_activation_bytes_of_a_layer_match_the_literature():
    # The literature counts 34·d_model bytes per token in half precision, of which 2·d_model are dropout's masks. The
    # norms and the softmax also save a few statistics.
    layers = [tl.activation_bytes(replace(tl.GPT2, n_layers=n), 1, bytes_per_value=2) for n in (1, 2)]
    assert layers[1] - layers[0] == (34 - 2) * 768 + 4 * 2 + 12 * 4


@pytest.mark.parametrize("family", ["gpt2", "llama", "transformer"])
def test_log_probability_bytes_match_the_loss(family):
    shape = tl.ModelShape(family, 1, 12, 3, vocab_size=300, n_positions=9)
    model, inputs = build_model(shape), tokens_for(shape, 9, 2)
    saved, _ = measure_saved_bytes(model, lambda: F.cross_entropy(model(*inputs).flatten(0, 1), inputs[-1].flatten()))
    memory = tl.memory_breakdown(shape, 9, 2)
    # the loss also saves one number of 4 bytes: the sum of its weights
    assert saved - 4 == memory["activations"] + memory["log-probabilities"]
    assert memory["activations"] == tl.activation_bytes(shape, 9, 2)


def test_memory_of_a_training_step():
    memory = tl.memory_breakdown(tl.GPT2, 1024, batch=2, bytes_per_value=2)
    assert list(memory) == ["weights", "gradients", "optimizer state", "activations", "log-probabilities"]
    assert memory["weights"] == memory["gradients"] == 2 * 124_439_808
    assert memory["optimizer state"] == 4 * 124_439_808
    assert memory["log-probabilities"] == 2 * 2 * 1024 * 50257
    assert "log-probabilities" not in tl.memory_breakdown(tl.BERT_BASE, 512)


def test_kv_cache_bytes_match_generation(monkeypatch):
    latest_tensors, append = {}, tl.KeyValueCache.append

    def recording_append(cache, key, value):
        latest_tensors[cache] = append(cache, key, value)
        return latest_tensors[cache]

    monkeypatch.setattr(tl.KeyValueCache, "append", recording_append)
    shape = tl.ModelShape("transformer", 3, 20, 4, vocab_size=17)
    model = build_transformer(shape)
    for steps in (1, 7, 13):
        latest_tensors.clear()
        model.generate(torch.zeros(2, 5, dtype=torch.long), bos=1, max_new_tokens=steps)
        views = [x for pair in latest_tensors.values() for x in pair]
        assert len(views) == 6
        expected = tl.kv_cache_bytes(shape, steps, batch=2)
        assert sum(x.numel() * x.element_size() for x in views) == expected
        assert expected <= storage_bytes(views) <= 2 * expected


def test_kv_cache_bytes_of_gqa_match_generation(monkeypatch):
    caches, init = [], tl.KeyValueCache.__init__

    def recording_init(cache, window=None):
        init(cache, window)
        caches.append(cache)

    monkeypatch.setattr(tl.KeyValueCache, "__init__", recording_init)
    shape = tl.ModelShape("llama", 3, 24, 6, vocab_size=17, n_kv_heads=2)
    build_llama(shape).generate(torch.zeros(2, 5, dtype=torch.long), 8)
    cached = [x[..., : cache.length, :] for cache in caches for x in cache._buffers]
    assert len(cached) == 6 and caches[0].length == 12  # the last generated token is never passed to the model
    assert sum(x.numel() * x.element_size() for x in cached) == tl.kv_cache_bytes(shape, 12, batch=2)
    assert 3 * tl.kv_cache_bytes(shape, 12) == tl.kv_cache_bytes(replace(shape, n_kv_heads=None), 12)


def test_kv_cache_bytes_of_published_models():
    # One token of Llama 3 8B in 16 bits has two vectors of 128 numbers for each of 8 heads in each of 32 layers.
    # Without shared keys, each layer has 32 such heads.
    assert tl.kv_cache_bytes(tl.LLAMA3_8B, 1, bytes_per_value=2) == 32 * 2 * 8 * 128 * 2 == 128 * 1024
    assert tl.kv_cache_bytes(replace(tl.LLAMA3_8B, n_kv_heads=None), 1, bytes_per_value=2) == 512 * 1024
    # One token of GPT-2 XL has two vectors of 1,600 half-precision numbers in each of 48 layers.
    assert tl.kv_cache_bytes(tl.GPT2_XL, 1, bytes_per_value=2) == 48 * 2 * 1600 * 2
    assert tl.kv_cache_bytes(replace(tl.GPT2, n_heads=1), 9) == tl.kv_cache_bytes(tl.GPT2, 9)
    assert tl.kv_cache_bytes(tl.BERT_BASE, 512) == 0


FUNCTIONS_OF_A_SHAPE = [
    tl.forward_flops,
    tl.training_flops,
    tl.flops_breakdown,
    tl.activation_bytes,
    tl.kv_cache_bytes,
    tl.memory_breakdown,
]


@pytest.mark.parametrize("function", FUNCTIONS_OF_A_SHAPE)
def test_errors_name_the_argument(function):
    raises(lambda: function("gpt2", 8), TypeError, "shape must be a ModelShape, got str")
    raises(lambda: function(tl.GPT2, -8), ValueError, "seq must be at least 0, got -8")
    raises(lambda: function(tl.GPT2, 8.0), TypeError, "seq must be an integer, got 8.0")
    raises(lambda: function(tl.GPT2, True), TypeError, "seq must be an integer, got True")
    raises(lambda: function(tl.GPT2, 8, -1), ValueError, "batch must be at least 0, got -1")
    if "bytes" in function.__name__ or "memory" in function.__name__:
        raises(lambda: function(tl.GPT2, 8, 1, 0), ValueError, "bytes_per_value must be at least 1, got 0")
        raises(lambda: function(tl.GPT2, 8, 1, 0.5), TypeError, "bytes_per_value must be an integer, got 0.5")
    if function is not tl.kv_cache_bytes:
        text = "tgt_len is only for family 'transformer', got family 'gpt2'"
        raises(lambda: function(tl.GPT2, 8, tgt_len=3), ValueError, text)
        shape = tl.ModelShape("transformer", 1, 4, 2, vocab_size=5)
        raises(lambda: function(shape, 8, tgt_len=-3), ValueError, "tgt_len must be at least 0, got -3")


def test_size_errors_name_the_argument():
    raises(lambda: tl.attention_flops(-1, 8), ValueError, "seq must be at least 0, got -1")
    raises(lambda: tl.attention_flops(1, 8, 2.0), TypeError, "k_len must be an integer, got 2.0")
    raises(lambda: tl.attention_flops(1, 0), ValueError, "d_model must be at least 1, got 0")
    raises(
        lambda: tl.linear_attention_flops(1, 8, 3),
        ValueError,
        "n_heads must divide d_model, got n_heads 3 and d_model 8",
    )
    raises(lambda: tl.linear_attention_flops(1, 8, 0), ValueError, "n_heads must be at least 1, got 0")
    for function in (tl.weight_bytes, tl.optimizer_bytes):
        raises(lambda f=function: f(tl.GPT2, -2), ValueError, "bytes_per_value must be at least 1, got -2")
        raises(lambda f=function: f(3), TypeError, "shape_or_module must be a ModelShape or a torch.nn.Module, got int")


def test_empty_inputs_cost_nothing():
    assert tl.forward_flops(tl.GPT2, 0) == tl.activation_bytes(tl.GPT2, 0) == tl.kv_cache_bytes(tl.GPT2, 0) == 0
    assert tl.forward_flops(tl.BERT_BASE, 0) == 0
