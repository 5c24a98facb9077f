"""The package confirms the numbers in the text of chapter 7 that no cell prints."""

import math
import re
from dataclasses import replace

import nbformat
import pytest
import torch
from torch.nn import functional as F

import notebooks
import transformer_lab as tl
from chapter_code import chapter_code

STEM = "07_parameters"


@pytest.fixture(scope="module")
def text():
    cells = nbformat.read(notebooks.ROOT / "chapters" / f"{STEM}.ipynb", 4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def one_layer():
    layer = tl.EncoderLayer(512, 8, 2048)
    counts = tl.parameter_breakdown(layer)
    weights = counts["attention weights"] + counts["feed-forward weights"]
    other_parameters = tl.count_parameters(layer) - weights
    return [
        f"12 · 512² = {weights:,}",
        f"{other_parameters:,}, or {other_parameters / weights:.1%}".replace("%", " per cent"),
    ]


def untied_head():
    untied = tl.count_parameters(replace(tl.SMOLLM2_135M, tied=False))
    difference = untied - tl.count_parameters(tl.SMOLLM2_135M)
    assert 1 / 7 < difference / untied < 1 / 5
    return [f"one more table of {difference:,} parameters, so {untied:,} in all"]


def flops_of_a_product():
    return [f"2 · 1,024 · 768 · 3,072 = {2 * 1024 * 768 * 3072:,}"]


def utilization():
    flops = 6 * tl.count_parameters(tl.GPT2_XL) * 5000
    assert f"{flops:.1e}" == "4.7e+13"
    return [f"{flops / 1e14:.0%} of".replace("%", " per cent"), f"{1e9 / 5000:,.0f} seconds"]


def length_above_which_scores_cost_more():
    seq = 3 * tl.LLAMA3_8B.d_ff // 2
    work = tl.flops_breakdown(tl.LLAMA3_8B, seq)
    assert work["scores and blend"] == work["feed-forward"]
    return [f"above $N = 1.5\\,d_\\text{{ff}}$ = {seq:,}."]


def scores_on_meta():
    with torch.device("meta"):
        scores = tl.LanguageModel(50, 8, 2, 1, 16)(torch.zeros(2, 3, dtype=torch.long))
    assert scores.is_meta and scores.shape == (2, 3, 50)
    return ["scores on `meta`, of the right shape and without values"]


def a_third_piece():
    total, blend = torch.tensor([1.0, 2, 4, 1, 8]).sum() / 8, torch.tensor([8.0, 0, 8, 4, 0]).sum() / 8
    output = blend / total
    sums = f"the sum is {total:.0f}, the blend {blend}, and the output {output}"
    return [f"{sums}. Check without pieces: 20 / 16 = {output}."]


def memory_without_means():
    return [f"8 · 1.56 billion = {8 * tl.count_parameters(tl.GPT2_XL) / 1e9:.1f} GB"]


def texts_at_a_time():
    batch_sizes = [n for n in (1, 2, 4, 8, 16) if 40 * n / 16 + 10 <= 16]
    assert batch_sizes[-1] == 2
    return [f"take {40 * 2 / 16:.0f} GB, which makes {40 * 2 / 16 + 10:.0f} GB together", "more than 20 GB"]


def numbers_in_a_cache():
    shapes = tl.SMOLLM2_135M, tl.GPT2, replace(tl.SMOLLM2_135M, n_kv_heads=None)
    grouped, gpt2, ungrouped = (tl.kv_cache_bytes(shape, 1, bytes_per_value=1) for shape in shapes)
    return [f"= {grouped:,}, against {gpt2:,} in GPT-2", f"it would be {ungrouped:,}"]


def arithmetic_and_reading_on_a_card():
    weights = tl.weight_bytes(tl.GPT2_XL)
    time = f"reading them takes {weights / 1e12 * 1e3:.1f} ms"
    return [f"= {1e14 / 1e12:.0f} FLOPs. The weights are {weights / 1e9:.2f} GB, so {time}."]


def tokens_at_the_ridge():
    d_model, d_ff, ridge = 1600, 6400, 300
    work, weights = 4 * d_model * d_ff, 2 * 2 * d_model * d_ff  # FLOPs per token, and bytes of the weights in 16 bits
    return [f"About {ridge * weights // work}", "the intensity is $N$ instead of $N/2$"]


ANSWERS = [
    one_layer,
    untied_head,
    scores_on_meta,
    flops_of_a_product,
    utilization,
    length_above_which_scores_cost_more,
    a_third_piece,
    memory_without_means,
    texts_at_a_time,
    numbers_in_a_cache,
    arithmetic_and_reading_on_a_card,
    tokens_at_the_ridge,
]


def test_folded_answers_agree_with_the_package(text):
    answers = re.findall(r"(?s)\*\*Before you read on:\*\*.*?<summary>Answer</summary>(.*?)</details>", text)
    assert len(answers) == len(ANSWERS)
    for answer, compute_phrases in zip(answers, ANSWERS):
        for phrase in compute_phrases():
            assert phrase in answer, (
                f"{compute_phrases.__name__}: the answer must contain {phrase}, but is {answer.strip()}"
            )


def test_the_table_adds_up_the_parameters_of_the_smallest_llama(text):
    shape, counts = tl.SMOLLM2_135M, tl.parameter_breakdown(tl.SMOLLM2_135M)
    table = text[text.index("By hand for SmolLM2") : text.index("Together **134,515,008**")]
    layers = tl.count_parameters(shape) - counts["token embedding"] - shape.d_model
    for part, number in {
        "attention": counts["attention weights"] // 30,
        "feed-forward": counts["feed-forward weights"] // 30,
        "two norms": 2 * shape.d_model,
        "30 such layers": layers,
        "table, tied": counts["token embedding"],
    }.items():
        (row,) = re.findall(rf"(?m)^\| {part} \| (.+= ([\d,]+)) \|$", table)
        assert row[1] == f"{number:,}"
        product = row[0].split(" = ")[0].replace(",", "").replace("·", "*")
        assert eval(product) == number


def gelu_of_gpt2(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gpt2_scores(model, tokens, n_heads, activation):
    """Compute the scores from nothing but the model's weights and formulas."""
    weights, seq = dict(model.named_parameters()), len(tokens)
    x = weights["token.weight"][tokens] + weights["position.weight"][:seq]
    hidden_mask = torch.ones(seq, seq, dtype=torch.bool).triu(1)

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    for i in range(len(model.blocks.layers)):
        prefix = f"blocks.layers.{i}"
        y = norm(x, f"{prefix}.norm1")
        q, k, v = (
            linear(y, f"{prefix}.self_attention.{part}_proj").unflatten(-1, (n_heads, -1)).transpose(0, 1)
            for part in "qkv"
        )
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden_mask, -math.inf)
        x = x + linear((scores.softmax(-1) @ v).transpose(0, 1).flatten(1), f"{prefix}.self_attention.out_proj")
        y = activation(linear(norm(x, f"{prefix}.norm2"), f"{prefix}.feed_forward.linear1"))
        x = x + linear(y, f"{prefix}.feed_forward.linear2")
    return norm(x, "blocks.norm") @ weights["token.weight"].T


def test_the_chapters_gpt2_is_gpt2_with_the_tanh_form_of_gelu():
    shape = tl.ModelShape("gpt2", 2, 12, 3, vocab_size=17, n_positions=9)
    torch.manual_seed(0)
    model = chapter_code(STEM, sections=["7.3"])["Gpt2"](shape).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
        tokens = torch.randint(17, (9,))
        actual = model(tokens)
        torch.testing.assert_close(actual, gpt2_scores(model, tokens, 3, gelu_of_gpt2))
        assert (actual - gpt2_scores(model, tokens, 3, F.gelu)).abs().max() > 1e-4
