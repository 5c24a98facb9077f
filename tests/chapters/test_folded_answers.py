"""The folded answers to the small questions in chapters 1 to 4, 6 and 9 to 11 agree with PyTorch."""

import math
import re

import nbformat
import pytest
import torch
from torch import nn

import notebooks
import transformer_lab as tl


def raises_runtime_error(call):
    try:
        call()
    except RuntimeError:
        return True
    return False


def share_no_storage(x, y):
    return not tl.layout(x).shares_storage_with(y)


def strides():
    x = torch.arange(70).view(5, 1, 7, 2)
    return [x.stride(), f"+ 1·1 = {x[2, 0, 3, 1]}"]


def views_that_merge_axes():
    x = torch.arange(24).view(4, 6).T.view(2, 3, 4)
    assert x.stride() == (3, 1, 6)
    assert not raises_runtime_error(lambda: x.view(6, 4)) and raises_runtime_error(lambda: x.view(2, 12))
    return [
        "`view(6, 4)` works: merging the first two",
        "`view(2, 12)` raises",
        "`torch.arange(24).view(4, 6).T.view(2, 3, 4)`",
    ]


def reshapes_that_copy():
    x = torch.arange(24).view(4, 6)
    transposed, sliced = x.transpose(0, 1), x[:, :3]
    reshaped = x.reshape(6, 4), transposed.reshape(24), sliced.reshape(4, 3), sliced.reshape(12)
    assert [share_no_storage(x, y) for y in reshaped] == [False, True, False, True]
    return ["The second and the fourth", transposed.stride(), sliced.stride()]


def sizes_of_one():
    x = torch.empty(7, 1, 5)
    return [tuple(y.shape) for y in (x.squeeze(0), x.squeeze(1)[None], x[:, None])]


def joined_heads():
    heads = [torch.empty(1024, 64)] * 12
    assert torch.stack(heads).shape == (12, 1024, 64) and torch.cat(heads, dim=-1).shape == (1024, 768)
    return ["`torch.stack(heads)`", "`torch.cat(heads, dim=-1)`"]


def picked_and_sliced_rows():
    x = torch.zeros(2, 3)
    y, z = x[[0]], x[0]
    y += 1
    z += 1
    return [f"{x.sum():.0f}. `y` is a copy"]


def dtypes_of_sums():
    bfloat16, sublayer = torch.ones(2).bfloat16(), torch.ones(2).half()
    sums = bfloat16 + torch.tensor(3.0), bfloat16 + torch.ones(2), sublayer + torch.arange(2)
    assert [x.dtype for x in sums] == [torch.bfloat16, torch.float32, torch.float16]
    return [
        "bfloat16, since a number without axes",
        "second is float32, the wider",
        "third is float16, since a float wins",
    ]


def embedded_tokens():
    embedding = nn.Embedding(50257, 768, device="meta")
    x = embedding(torch.empty(4, 1024, dtype=torch.int64, device="meta"))
    return [tuple(x.shape), f"{embedding.weight.numel():,} numbers"]


def shapes_of_products():
    x, w, y = torch.empty(2, 7, 512), torch.empty(512, 64), torch.empty(2, 64, 7)
    return [tuple(z.shape) for z in (x @ w, x @ w @ y, y @ x)]


def scores_minus_the_largest():
    scores = torch.arange(2 * 8 * 7 * 9).view(2, 8, 7, 9)
    largest = scores.amax(dim=-1, keepdim=True)
    assert (scores - largest).amax(dim=-1).abs().max() == 0 and raises_runtime_error(
        lambda: scores - scores.amax(dim=-1)
    )
    return ["`x - x.amax(dim=-1, keepdim=True)`", tuple(largest.shape)]


def weight_of_itself():
    query, key = torch.randn(2, 7, 3), torch.randn(2, 7, 3)
    torch.testing.assert_close(torch.einsum("bsd,bsd->bs", query, key), (query * key).sum(-1))
    return ['`torch.einsum("bsd,bsd->bs", query, key)`']


def changed_row():
    old, new = torch.randn(2, 4, 3)
    new[[0, 1, 3]] = old[[0, 1, 3]]
    w, weights, query = torch.randn(3, 5), torch.rand(6, 4), torch.randn(6, 3)
    assert ((new @ w) != (old @ w)).any(1).tolist() == [False, False, True, False]
    assert ((weights @ new) != (weights @ old)).any(1).all()
    assert ((query @ new.T) != (query @ old.T)).any(0).tolist() == [False, False, True, False]
    return ["In `x @ w`, only row 2", "so usually all", "only column 2"]


def projected_tokens():
    linear = nn.Linear(768, 2304, device="meta")
    x = linear(torch.empty(4, 1024, 768, device="meta"))
    return [tuple(x.shape), tuple(linear.weight.shape), f"= {tl.count_parameters(linear):,}, with the biases"]


def format_vector(x):
    """Format a vector's numbers as the answers do: with two significant digits each, separated by commas."""
    return ", ".join(f"{number:.2g}" for number in x.tolist()).replace("-", "−")


def standardized_by_hand():
    x = tl.standardize(torch.tensor([2.0, 2.0, 6.0, 6.0]), -1)
    return ["the variance is 4 and its root is 2", format_vector(x)]


def means_of_each_norm():
    x, means = torch.zeros(2, 3, 4), []
    for axes in ((0, 1), (2,), (1,)):
        means.append(x.mean(axes).numel())
    means.append(x.unflatten(-1, (2, 2)).mean((1, 3)).numel())
    assert means == [4, 6, 8, 4]
    return ["Batch norm 4", "layer norm 2 · 3 = 6", "instance norm 2 · 4 = 8", "group norm 2 · 2 = 4"]


def rms_norm_by_hand():
    x = tl.rms_norm(torch.tensor([3.0, 4.0, 0.0, 0.0]))
    return ["= 6.25 and its root is 2.5", format_vector(x)]


def silent_parts():
    x = y = torch.tensor(3.0, requires_grad=True)
    for _ in range(24):
        y = y + 0 * y
    assert y == x
    return [f"The output is the input itself, and the slope is {torch.autograd.grad(y, x)[0]:.0f}"]


def shapes_in_a_feed_forward_layer():
    part = tl.FeedForward(768, 3072)
    shapes = []
    part.linear1.register_forward_hook(lambda module, args, result: shapes.append(tuple(result.shape)))
    return [f"`{shape}`" for shape in (tuple(part(torch.zeros(2, 5, 768)).shape), *shapes)]


def smaller_step():
    return ["Try a smaller step size"]  # measured in test_chapter_06_depth


def weights_of_two_attentions():
    attention, target = tl.MultiHeadAttention(12, 3), torch.zeros(2, 7, 12)
    weights = attention.weights(target), attention.weights(target, torch.zeros(2, 5, 12))
    return [tuple(tensor.shape) for tensor in weights]


def one_layer_twelve_times():
    layer = nn.Linear(2, 2)
    stack = nn.ModuleList([layer] * 12)
    assert tl.count_parameters(stack) == tl.count_parameters(layer)
    return ["the parameters of one layer", "changes all twelve layers at once"]


def families():
    return ["Encoder-only suits the first task, decoder-only the second, and encoder–decoder the third"]


def reached_by_the_mask():
    return ["the encoder's self-attention and in the decoder's cross-attention"]  # measured in section 5.12


def shifted_target():
    target = ["`BOS`", *"528"[::-1], "`EOS`"]
    return [f"In training it receives {' '.join(target[:-1])}, with the labels {' '.join(target[1:])}."]


def weighted_values():
    value = torch.tensor([[1.0, 1, 1, 0], [0, 0, 0, 1], [2, 0, 0, 0]])
    output = torch.tensor([0.25, 0.5, 0.25]) @ value
    return [f"= ({', '.join(f'{x:g}' for x in output.tolist())})"]


def mean_of_the_values():
    output = tl.scaled_dot_product_attention(
        torch.zeros(1, 2), torch.ones(3, 2), torch.tensor([[1.0, 1], [0, 0], [2, 0]])
    )
    torch.testing.assert_close(output, torch.tensor([[1, 1 / 3]]))
    return ["/ 3 = (1, ⅓)"]


def shifted_scores():
    weights = torch.tensor([7, 7, 7 + math.log(2)]).softmax(-1)
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.25, 0.5]))
    return ["¼, ¼ and ½"]


def divided_too_far():
    ratio = 64 / 64**0.5
    return [f"√64 = {64**0.5:.0f}", f"is {ratio:.0f} times smaller", f"variance is {ratio**2:.0f} times smaller"]


def shapes_of_attention():
    query, key, value = (torch.zeros(shape) for shape in ((7, 5), (6, 5), (6, 4)))
    return [tuple((query @ key.T).shape), tuple(tl.scaled_dot_product_attention(query, key, value).shape)]


def exchanged_projections():
    return ["the plain mean, (1, ⅓)"]  # test_chapter_03.py computes this


def fastest_pair():
    angles = 5 / 10000 ** (2 * torch.arange(4) / 8)
    assert (angles == 5).tolist() == [True, False, False, False]
    return ["All other pairs turn by less"]


def layers_of_convolutions():
    positions = torch.arange(33)
    reaches = ((positions[:, None] - positions).abs() <= 2).double()
    n_layers = next(n for n in range(1, 33) if torch.linalg.matrix_power(reaches, n)[-1, 0] > 0)
    return [f"⌈2 · 32/4⌉ = {n_layers}"]


def query_of_zeros():
    value = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])  # the verb's value contains no animal
    output = tl.scaled_dot_product_attention(torch.zeros(1, 2), torch.randn(3, 2), value)[0, :2]
    torch.testing.assert_close(output, torch.full((2,), 1 / 3))
    return ["(⅓, ⅓, 0)"]


def matrices_of_gpt2():
    assert tl.GPT2.d_model // tl.GPT2.n_heads == 64
    return ["$W_Q^i$ is (768, 64)", "(12 · 64, 768) = (768, 768)"]


def split_with_a_batch():
    assert torch.zeros(2, 7, 15).view(2, 7, 3, 5).transpose(1, 2).shape == (2, 3, 7, 5)
    return ["`x.view(2, 7, 3, 5)`", "`.transpose(1, 2)`"]


def rows_of_a_head():
    first, *_, last = torch.arange(6).view(3, 2)[1].tolist()
    return [f"Rows {first} and {last}"]


def parameters_of_a_layer():
    with torch.device("meta"):
        return [f"= {tl.count_parameters(tl.MultiHeadAttention(512, 8)):,}"]


def memory_of_eight_features():
    return ["`nn.Linear(8, d_model)`"]


def induced_letter():
    return ["`K2`, the token after the twin", "the letter K"]


def layers_in_a_dict():
    module, listed = nn.Module(), nn.Module()
    module.layers, listed.layers = {"first": nn.Linear(2, 2)}, nn.ModuleDict({"first": nn.Linear(2, 2)})
    assert not list(module.parameters()) and len(list(listed.parameters())) == 2
    return ["`parameters()` finds none of the layers", "`nn.ModuleDict`"]


def keys_of_a_head():
    rows = torch.arange(3 * 768).view(3, 12, 64)[1, 2]
    return [f"rows {rows[0]} to {rows[-1]}"]


def queries_of_a_head():
    rows = torch.arange(384).view(12, 32)[3]
    return [f"Rows {rows[0]} to {rows[-1]}"]


def cost_of_a_search():
    return [f"so {384 * 10**6 // 10**6} million"]


def share_of_the_table():
    table, total = 49_152 * 576, tl.count_parameters(tl.SMOLLM2_135M)
    return [f"{table / 1e6:.1f} million of {total / 1e6:.1f} million, or {table / total:.0%}".replace("%", " per cent")]


def cache_beside_the_file():
    cache = tl.kv_cache_bytes(tl.SMOLLM2_135M, 8192)
    file = tl.count_parameters(tl.SMOLLM2_135M) * 5.8 / 8
    assert 3.7 < cache / file < 4
    return [f"{cache // 10**6} MB against {file / 1e6:.0f} MB"]


def the_same_on_every_run():
    return ["the same at any τ if the random numbers are the same"]


def tables_of_an_encoder():
    return ["An encoder has the full square", "only the diagonal is filled"]


def norms_before_and_after():
    norms = [nn.RMSNorm(2304) for _ in range(4)]
    return [f"4 · 2304 = {tl.count_parameters(nn.ModuleList(norms)):,}", "hold half as many"]


def largest_score():
    vector = torch.ones(128)
    vector[::3] = -1
    query = key = tl.rms_norm(vector, torch.full((128,), 2.0), eps=0)
    product = float(query @ key)
    assert product == pytest.approx(float(query.norm() * key.norm()))
    return [f"at most 4 · 128 = {product:.0f}", f"512/√128 = {product / 128**0.5:.1f}"]


def gated_and_wide():
    with torch.device("meta"):
        gated = tl.count_parameters(tl.FeedForward(4096, 14336, activation="silu", gated=True, bias=False))
        plain = tl.count_parameters(tl.FeedForward(4096, 4 * 4096, bias=False))
    assert gated == 10.5 * 4096**2 and plain == 8 * 4096**2
    return [f"{gated // 10**6} million instead of {plain // 10**6} million"]


def rotated_values():
    return ["depend on absolute positions again"]  # test_chapter_09_today.py computes this


def shared_heads():
    with torch.device("meta"):
        attention = tl.MultiHeadAttention(8 * 64, 8, n_kv_heads=2)
        key, _ = attention.project(torch.zeros(3, 20, 8 * 64))
    key_head = torch.arange(2).repeat_interleave(4)[5]
    return [f"⌊5 · 2/8⌋ = {key_head}", f"`key` is `{tuple(key.shape)}`"]


def grouped_as_latent():
    return ["keys and values, concatenated"]  # test_chapter_09_second.py computes this


def reached_through_windows():
    window, n_layers, n_tokens = 4, 3, 20
    steps = torch.arange(n_tokens)
    sees = (steps[:, None] >= steps) & (steps[:, None] - steps < window)
    reached = torch.linalg.matrix_power(sees.double(), n_layers)[-1].nonzero().min()
    assert reached == n_tokens - 1 - n_layers * (window - 1)
    return [f"10,000 − 12 · 511 = {10_000 - 12 * 511:,}"]


def mixture_and_dense():
    with torch.device("meta"):
        mixture = tl.MixtureOfExperts(2048, 1024, n_experts=64, n_active=8)
        dense = tl.FeedForward(2048, 8 * 1024, activation="silu", gated=True, bias=False)
    n_router = 2048 * 64
    assert tl.count_parameters(mixture) - n_router == 8 * tl.count_parameters(dense)
    return ["8 · 1,024 = 8,192", "64/8 = 8 times as many weights"]


def smaller_caches():
    return ["All but DSA"]


ANSWERS = {
    "01_tensor_operations": [
        strides,
        views_that_merge_axes,
        reshapes_that_copy,
        sizes_of_one,
        joined_heads,
        picked_and_sliced_rows,
        dtypes_of_sums,
        embedded_tokens,
    ],
    "02_matmul_broadcasting": [
        shapes_of_products,
        scores_minus_the_largest,
        weight_of_itself,
        changed_row,
        projected_tokens,
    ],
    "03_attention_lookup": [
        weighted_values,
        mean_of_the_values,
        shifted_scores,
        divided_too_far,
        shapes_of_attention,
        exchanged_projections,
        fastest_pair,
        layers_of_convolutions,
    ],
    "04_multi_head": [
        query_of_zeros,
        matrices_of_gpt2,
        split_with_a_batch,
        rows_of_a_head,
        parameters_of_a_layer,
        memory_of_eight_features,
        induced_letter,
        layers_in_a_dict,
        keys_of_a_head,
    ],
    "06_normalization": [
        standardized_by_hand,
        means_of_each_norm,
        rms_norm_by_hand,
        silent_parts,
        shapes_in_a_feed_forward_layer,
        smaller_step,
        weights_of_two_attentions,
        one_layer_twelve_times,
        families,
        reached_by_the_mask,
        shifted_target,
    ],
    "09_today": [
        norms_before_and_after,
        largest_score,
        gated_and_wide,
        rotated_values,
        shared_heads,
        grouped_as_latent,
        reached_through_windows,
        mixture_and_dense,
        smaller_caches,
    ],
    "10_real_models": [
        queries_of_a_head,
        cost_of_a_search,
        share_of_the_table,
        cache_beside_the_file,
        the_same_on_every_run,
    ],
    "11_right": [tables_of_an_encoder],
}


@pytest.mark.parametrize("stem", ANSWERS)
def test_folded_answers_agree_with_pytorch(stem):
    cells = nbformat.read(notebooks.ROOT / "chapters" / f"{stem}.ipynb", 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    answers = re.findall(r"(?s)\*\*Before you read on[.:]\*\*.*?<summary>Answer</summary>(.*?)</details>", text)
    assert len(answers) == len(ANSWERS[stem])
    for answer, compute_phrases in zip(answers, ANSWERS[stem]):
        for phrase in compute_phrases():
            phrase = f"`{phrase}`" if isinstance(phrase, tuple) else phrase
            assert phrase in answer, (
                f"{compute_phrases.__name__}: the answer must contain {phrase}, but is {answer.strip()}"
            )
