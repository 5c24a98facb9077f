"""Tests of sections 9.5 to 9.12 (shared keys to sparse attention) with sizes and seeds other than the chapter's."""

import math

import nbformat
import pytest
import torch
from torch import nn

import notebooks
import transformer_lab as tl
from agreement import load_transformers
from chapter_code import SEEDS, chapter_code

STEM = "09_today"


@pytest.fixture(scope="module")
def chapter():
    return chapter_code(STEM)


@pytest.fixture(scope="module")
def text():
    cells = nbformat.read(notebooks.ROOT / "chapters" / f"{STEM}.ipynb", 4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


# 9.5 Grouped-query attention


@pytest.mark.parametrize("seed", SEEDS)
def test_with_equal_caches_a_shared_head_recalls_more_than_narrow_heads(seed, chapter):
    results = {}
    for name in ("4 heads of 8", "1 head of 8", "4 heads of 2"):
        model, curve = chapter["train_recall"](chapter["FORMS"][name], seed=seed)
        results[name] = sum(curve[-20:]) / 20, model.attention.k_proj.out_features
    assert results["1 head of 8"][1] == results["4 heads of 2"][1] == 8
    assert results["1 head of 8"][0] > 0.9 and results["4 heads of 8"][0] > 0.9
    assert results["4 heads of 2"][0] < 0.8


# 9.6 Latent attention


def latent_attention_and_input(chapter, **sizes):
    torch.manual_seed(0)
    sizes = {"d_model": 12, "n_heads": 3, "d_head": 4, "d_latent": 5, "d_rotary": 2} | sizes
    layer = chapter["LatentAttention"](**sizes).double()
    nn.init.uniform_(layer.norm.weight, 0.5, 1.5)
    return layer, torch.randn(2, 6, sizes["d_model"], dtype=torch.float64)


SIZES = [{}, {"n_heads": 1}, {"d_latent": 1}, {"d_latent": 20, "d_rotary": 6}, {"n_heads": 5, "d_head": 3}]


@pytest.mark.parametrize("sizes", SIZES)
def test_the_absorbed_form_computes_the_same_as_the_expanded_form(sizes, chapter):
    layer, x = latent_attention_and_input(chapter, **sizes)
    torch.testing.assert_close(layer(x), chapter["absorbed"](layer, x))


def rotate(x, position):
    """Rotate each pair of features i and i + half, number by number."""
    half = len(x) // 2
    out = x.clone()
    for i in range(half):
        angle = position / 10000 ** (i / half)
        out[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
        out[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
    return out


@pytest.mark.parametrize("sizes", SIZES)
def test_latent_attention_matches_loops(sizes, chapter):
    layer, x = latent_attention_and_input(chapter, **sizes)
    d_head, d_rotary = layer.sizes
    expected = torch.zeros_like(x)
    for b, sequence in enumerate(x):
        cached = []
        for t, token in enumerate(sequence):
            down = layer.down_proj.weight @ token
            latent, shared = down[: layer.d_latent], down[layer.d_latent :]
            latent = latent / (latent.square().mean() + layer.norm.eps).sqrt() * layer.norm.weight
            cached.append((layer.k_proj.weight @ latent, layer.v_proj.weight @ latent, rotate(shared, t)))
        for t, token in enumerate(sequence):
            heads = []
            for h, query in enumerate((layer.q_proj.weight @ token).split(d_head + d_rotary)):
                head_slice = slice(h * d_head, (h + 1) * d_head)
                query, rotated = query[:d_head], rotate(query[d_head:], t)
                scores = torch.stack([query @ key[head_slice] + rotated @ shared for key, _, shared in cached[: t + 1]])
                weights = (scores / math.sqrt(d_head + d_rotary)).exp()
                values = torch.stack([value[head_slice] for _, value, _ in cached[: t + 1]])
                heads.append(weights @ values / weights.sum())
            expected[b, t] = layer.out_proj.weight @ torch.cat(heads)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("n_heads", [1, 3])
def test_latent_attention_matches_transformers(n_heads, chapter):
    transformers = load_transformers()
    modeling = transformers.models.deepseek_v3.modeling_deepseek_v3
    layer, x = latent_attention_and_input(chapter, n_heads=n_heads)
    d_head, d_rotary = layer.sizes
    config = transformers.DeepseekV3Config(
        hidden_size=12,
        num_attention_heads=n_heads,
        num_key_value_heads=n_heads,
        q_lora_rank=None,
        kv_lora_rank=layer.d_latent,
        qk_nope_head_dim=d_head,
        v_head_dim=d_head,
        qk_rope_head_dim=d_rotary,
        rope_interleave=False,
        rms_norm_eps=layer.norm.eps,
    )
    config._attn_implementation = "eager"
    transformers_layer = modeling.DeepseekV3Attention(config, layer_idx=0).double()
    up = torch.cat([p.weight.unflatten(0, (n_heads, d_head)) for p in (layer.k_proj, layer.v_proj)], 1)
    weights = {
        "q_proj.weight": layer.q_proj.weight,
        "kv_a_proj_with_mqa.weight": layer.down_proj.weight,
        "kv_a_layernorm.weight": layer.norm.weight,
        "kv_b_proj.weight": up.flatten(0, 1),
        "o_proj.weight": layer.out_proj.weight,
    }
    transformers_layer.load_state_dict(weights)
    positions = torch.arange(x.shape[1])[None]
    rotary_embeddings = modeling.DeepseekV3RotaryEmbedding(config)(x, positions)
    mask = torch.where(tl.causal_mask(x.shape[1]), 0.0, -math.inf).double()[None, None]
    output = transformers_layer(hidden_states=x, position_embeddings=rotary_embeddings, attention_mask=mask)[0]
    torch.testing.assert_close(layer(x), output, atol=1e-6, rtol=1e-6)  # transformers computes angles in float32


def test_grouped_queries_are_latent_attention_with_copies(chapter):
    n_heads, n_kv_heads, d_head = 6, 2, 4
    layer, x = latent_attention_and_input(
        chapter, d_model=24, n_heads=n_heads, d_head=d_head, d_latent=2 * n_kv_heads * d_head
    )
    layer.norm = nn.Identity()
    grouped_attention = tl.MultiHeadAttention(24, n_heads, n_kv_heads=n_kv_heads, bias=False).double()
    copies = torch.eye(n_kv_heads * d_head, dtype=torch.float64).unflatten(0, (n_kv_heads, d_head))
    copies = copies.repeat_interleave(n_heads // n_kv_heads, dim=0).flatten(0, 1)  # (h · d_head, h_kv · d_head)
    zeros = torch.zeros_like(copies)
    scale_correction = math.sqrt(sum(layer.sizes) / d_head)  # the scale counts the rotary features, although they are 0
    with torch.no_grad():
        queries = grouped_attention.q_proj.weight.unflatten(0, (n_heads, d_head)) * scale_correction
        layer.q_proj.weight.unflatten(0, (n_heads, -1))[:, :d_head] = queries
        layer.down_proj.weight[: layer.d_latent] = torch.cat(
            [grouped_attention.k_proj.weight, grouped_attention.v_proj.weight]
        )
        layer.down_proj.weight[layer.d_latent :] = 0
        layer.k_proj.weight.copy_(torch.cat([copies, zeros], 1))
        layer.v_proj.weight.copy_(torch.cat([zeros, copies], 1))
        layer.out_proj.weight.copy_(grouped_attention.out_proj.weight)
        torch.testing.assert_close(layer(x), grouped_attention(x, is_causal=True))


# 9.7 Windows


@pytest.mark.parametrize(
    ("windows", "n_seen"), [([3] * 4, 9), ([1, 5], 5), ([4, 6], 9), ([2, None], 40), ([None, 2], 40)]
)
def test_windows_add_up(windows, n_seen, chapter):
    assert chapter["tokens_seen"](windows) == n_seen


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("windows", "distance", "n_found"), [([4, 4], 6, 8), ([4, 4], 7, 1), ([4, None], 7, 8), ([4, None], 18, 8)]
)
def test_a_letter_is_found_where_a_path_leads_to_it(windows, distance, n_found, seed, chapter):
    assert chapter["letters_found"](windows, distance, seed=seed) == n_found


def test_a_sink_is_a_key_with_a_value_of_zero(chapter):
    torch.manual_seed(0)
    scores, value, sink = torch.randn(3, 4, 5), torch.randn(3, 5, 2), torch.randn(3)
    weights = torch.cat([sink[:, None, None].expand(3, 4, 1), scores], -1).softmax(-1)
    expected = weights @ torch.cat([torch.zeros(3, 1, 2), value], 1)
    torch.testing.assert_close(chapter["sink_weights"](scores, sink) @ value, expected)


# 9.8 Mixture of experts


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_mixture_on_the_page_computes_the_same_as_the_packages(k, chapter):
    torch.manual_seed(0)
    module, x = tl.MixtureOfExperts(6, 4, n_experts=5, n_active=k), torch.randn(9, 6)
    torch.testing.assert_close(chapter["mixture"](x, module.router, module.experts, k), module(x))


def test_a_bias_changes_the_choice_but_no_weight(chapter):
    torch.manual_seed(0)
    module, x = chapter["BiasedMixture"](6, 4, 5, 2), torch.randn(200, 6)
    unbiased_module = tl.MixtureOfExperts(6, 4, 5, 2)
    unbiased_module.load_state_dict(module.state_dict(), strict=False)
    torch.testing.assert_close(module(x), unbiased_module(x))
    module.bias[3] = 1.0
    chosen, weights = module.route(x)
    assert (chosen == 3).any(-1).all()
    probabilities = module.router(x).softmax(-1).gather(-1, chosen)
    torch.testing.assert_close(weights, probabilities / probabilities.sum(-1, keepdim=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_common_part_makes_experts_idle_and_balancing_keeps_them_busy(seed, chapter):
    errors, n_idle_experts = {}, {}
    for common in (4.0, 0.0):
        for balance in ("none", "auxiliary loss", "bias"):
            error, shares = chapter["train_mixture"](balance, common, seed=seed)
            errors[common, balance], n_idle_experts[common, balance] = error, int((shares < 0.05).sum())
    assert n_idle_experts[4.0, "none"] >= 4 and n_idle_experts[4.0, "bias"] <= 2
    assert max(n_idle_experts[4.0, "auxiliary loss"], n_idle_experts[4.0, "bias"]) < n_idle_experts[4.0, "none"]
    assert max(errors[4.0, "auxiliary loss"], errors[4.0, "bias"]) < errors[4.0, "none"]
    # for comparison: without a common part, at most one expert is idle
    assert max(n_idle_experts[0.0, balance] for balance in ("none", "auxiliary loss", "bias")) <= 1
    assert 0.75 < errors[0.0, "bias"] / errors[0.0, "none"] < 1.25


# 9.9 Sparse attention


def test_sparse_attention_with_every_token_is_attention(chapter):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 7, 4)
    full = tl.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(chapter["sparse_attention"](query, key, value, torch.randn(7, 7), 7), full)
    first = chapter["sparse_attention"](query, key, value, torch.arange(7.0).expand(7, 7), 1)
    torch.testing.assert_close(first, value)  # the last token that a query sees is its own


# Statements of the text


def test_numbers_in_the_text_agree_with_the_package(text):
    assert f"{32 * 4095 + 1:,} for the 32 layers" in text
    assert f"24 · 1,023 + 1 = {24 * 1023 + 1:,}" in text
    assert f"10,000 − 12 · 511 = {10_000 - 12 * 511:,}" in text
    assert (512 + 64) / (2 * 128) == 2.25 and "2.25 heads" in text
    assert round((576 + 512) / (192 + 128), 1) == 3.4 and "3.4 times" in text
    with torch.device("meta"):
        key, _ = tl.MultiHeadAttention(8 * 64, n_heads=8, n_kv_heads=2).project(torch.zeros(3, 20, 8 * 64))
    assert f"`key` is `{tuple(key.shape)}`" in text


def test_the_configuration_at_the_beginning_is_refused():
    with pytest.raises(ValueError, match="qwen3_5_moe"):
        tl.ModelShape.from_config({"model_type": "qwen3_5_moe", "hidden_size": 2048})
