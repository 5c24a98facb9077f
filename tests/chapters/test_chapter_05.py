"""Chapter 5 says of PyTorch's masks what other sizes, other modes and FlexAttention itself bear out."""

import re
import warnings
from itertools import product

import nbformat
import pytest
import torch
from torch import nn

import notebooks
import transformer_lab as tl

WINDOW, TRIANGLE = ~tl.sliding_window_mask(4, 2), ~tl.causal_mask(4)  # PyTorch's polarity


def the_hint_wins(call):
    """Whether a call with a window and the hint gives the result of the triangle, and not of the window."""
    hinted, window, triangle = call(WINDOW, is_causal=True), call(WINDOW), call(TRIANGLE)
    assert not torch.allclose(window, triangle, atol=1e-3)
    wins = torch.allclose(hinted, triangle, atol=1e-5)
    torch.testing.assert_close(hinted, triangle if wins else window)
    return wins


@pytest.mark.parametrize("training, gradients, weights, padding", [*product([True, False], repeat=4)])
def test_is_causal_replaces_the_mask_without_weights_padding_and_fast_path(training, gradients, weights, padding):
    attention = nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    x = torch.randn(2, 4, 8)
    ignore = torch.zeros(2, 4, dtype=torch.bool) if padding else None

    def call(mask, **hint):
        return attention(x, x, x, attn_mask=mask, key_padding_mask=ignore, need_weights=weights, **hint)[0]

    with torch.set_grad_enabled(gradients):
        assert the_hint_wins(call) == (not weights and not padding and (training or gradients))


@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_layer_trains_under_the_hint_and_is_evaluated_under_the_mask(training):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).train(training)
    x = torch.randn(2, 4, 8)
    with torch.set_grad_enabled(training):
        assert the_hint_wins(lambda mask, **hint: layer(x, src_mask=mask, **hint)) == training


def test_flex_attention_takes_the_same_rule():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")  # not in PyTorch 2.4
    doc = torch.tensor([0, 0, 0, 1, 1, 2])

    def packed(batch, head, i, j):
        return (j <= i) & (doc[i] == doc[j])

    table = flex.create_mask(packed, None, None, 6, 6, device="cpu")
    torch.testing.assert_close(table[0, 0], tl.causal_mask(6) & (doc[:, None] == doc))
    query, key, value = torch.randn(3, 1, 2, 6, 8)
    blocks = flex.create_block_mask(packed, None, None, 6, 6, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not compiled here
        output = flex.flex_attention(query, key, value, block_mask=blocks)
    torch.testing.assert_close(output, tl.scaled_dot_product_attention(query, key, value, table))


def test_a_bias_by_distance_does_not_mind_padding_in_front():
    query, key, value = torch.randn(3, 1, 2, 3, 8)
    alone = tl.scaled_dot_product_attention(query, key, value, is_causal=True, bias=tl.alibi_bias(2, 3))
    front = [torch.cat([torch.randn(1, 2, 4, 8), x], dim=-2) for x in (query, key, value)]
    mask = tl.causal_mask(7) & (torch.arange(7) >= 4)
    padded = tl.scaled_dot_product_attention(*front, mask, bias=tl.alibi_bias(2, 7))
    torch.testing.assert_close(padded[..., 4:, :], alone)


def hide_the_first():
    weights = torch.softmax(torch.tensor([0.0, 2.0, 3.0]).log(), -1)
    torch.testing.assert_close(weights, torch.tensor([0, 2 / 5, 3 / 5]))
    return ["0, 2/5 and 3/5"]


def causal_entries():
    mask = tl.causal_mask(5)
    assert mask[2].tolist() == [True, True, True, False, False]
    return [f"= {mask.sum()}.", "sees tokens 0, 1 and 2"]


def padding_shape():
    mask = tl.padding_mask([3, 1, 2], 3)
    return [f"`{tuple(mask.shape)}`", f"`{mask[1].flatten().tolist()}`"]


def three_documents():
    doc = torch.arange(6) // 2
    return [f"{(tl.causal_mask(6) & (doc[:, None] == doc)).sum()} of 36"]


def pytorch_padding():
    assert (~tl.padding_mask([1, 2], 3)[:, 0, 0]).tolist() == [[False, True, True], [False, False, True]]
    return ["`~tl.padding_mask(lengths, seq)[:, 0, 0]`"]


def folded_row():
    tables = torch.arange(6).view(3, 2)  # (batch, heads)
    return ["`(6, 5, 5)`", f"1 · 2 + 1 = {tables[1, 1]}"]


def added_ten():
    assert torch.softmax(torch.tensor([15.0 - 10.0, 5.0]), -1).tolist() == [0.5, 0.5]
    return ["½ and ½"]


def hidden_rows():
    real = tl.padding_mask([4, 2], 4)
    weights = torch.zeros(2, 1, 4, 4).masked_fill(~(real & real.mT), -torch.inf).softmax(-1)
    assert weights.isnan().any(-1)[:, 0].nonzero().tolist() == [[1, 2], [1, 3]]
    return ["Rows 2 and 3 of the second sentence"]


def three_new():
    mask = tl.causal_mask(3, 5)
    assert mask[0].tolist() == [True, True, True, False, False]
    return ["Keys 0, 1 and 2", f"3 + 4 + 5 = {mask.sum()}"]


def summary_mask():
    return [f"`{tuple(tl.padding_mask([900, 5, 7, 9], 900).shape)}`"]


def projections():
    return [f"{sum(range(101)):,} times without it, 100 times with it"]


ANSWERS = [
    hide_the_first,
    causal_entries,
    padding_shape,
    three_documents,
    pytorch_padding,
    folded_row,
    added_ten,
    hidden_rows,
    three_new,
    summary_mask,
    projections,
]


def test_folded_answers_agree_with_pytorch():
    cells = nbformat.read(notebooks.ROOT / "chapters" / "05_masks.ipynb", 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = re.findall(r"(?s)\*\*Before you read on:\*\*.*?<summary>Answer</summary>(.*?)</details>", text)
    assert len(found) == len(ANSWERS)
    for answer, computed in zip(found, ANSWERS):
        for words in computed():
            assert words in answer, f"{computed.__name__}: must say {words}, says {answer.strip()}"
