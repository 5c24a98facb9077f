"""Tests of what chapter 5 states about PyTorch's masks, with other sizes and modes, and with FlexAttention itself."""

import math
import re
import warnings
from itertools import product

import nbformat
import pytest
import torch
from torch import nn

import notebooks
import transformer_lab as tl
from chapter_code import SEEDS, chapter_code

WINDOW, TRIANGLE = ~tl.sliding_window_mask(4, 2), ~tl.causal_mask(4)  # masks with PyTorch's polarity


def hint_replaces_mask(call):
    """Return whether a call with a window mask and ``is_causal=True`` uses the triangle instead of the window."""
    with_hint, window, triangle = call(WINDOW, is_causal=True), call(WINDOW), call(TRIANGLE)
    assert not torch.allclose(window, triangle, atol=1e-3)
    is_replaced = torch.allclose(with_hint, triangle, atol=1e-5)
    torch.testing.assert_close(with_hint, triangle if is_replaced else window)
    return is_replaced


@pytest.mark.parametrize("training, gradients, weights, padding", [*product([True, False], repeat=4)])
def test_is_causal_replaces_the_mask_unless_weights_padding_or_the_fast_path_prevents_it(
    training, gradients, weights, padding
):
    attention = nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    x = torch.randn(2, 4, 8)
    padding_mask = torch.zeros(2, 4, dtype=torch.bool) if padding else None

    def call(mask, **hint):
        return attention(x, x, x, attn_mask=mask, key_padding_mask=padding_mask, need_weights=weights, **hint)[0]

    with torch.set_grad_enabled(gradients):
        assert hint_replaces_mask(call) == (not weights and not padding and (training or gradients))


@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_layer_uses_the_hint_in_training_and_the_mask_in_evaluation(training):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).train(training)
    x = torch.randn(2, 4, 8)
    with torch.set_grad_enabled(training):
        assert hint_replaces_mask(lambda mask, **hint: layer(x, src_mask=mask, **hint)) == training


def test_flex_attention_computes_from_a_rule_what_the_course_computes_from_a_mask():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")  # PyTorch 2.4 does not have it
    documents = torch.tensor([0, 0, 0, 1, 1, 2])

    def same_document_and_causal(batch, head, i, j):
        return (j <= i) & (documents[i] == documents[j])

    dense_mask = flex.create_mask(same_document_and_causal, None, None, 6, 6, device="cpu")
    torch.testing.assert_close(dense_mask[0, 0], tl.causal_mask(6) & (documents[:, None] == documents))
    query, key, value = torch.randn(3, 1, 2, 6, 8)
    block_mask = flex.create_block_mask(same_document_and_causal, None, None, 6, 6, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # flex_attention warns that it is not compiled here
        output = flex.flex_attention(query, key, value, block_mask=block_mask)
    torch.testing.assert_close(output, tl.scaled_dot_product_attention(query, key, value, dense_mask))


def test_padding_in_front_does_not_change_attention_with_a_bias_by_distance():
    query, key, value = torch.randn(3, 1, 2, 3, 8)
    output_without_padding = tl.scaled_dot_product_attention(
        query, key, value, is_causal=True, bias=tl.alibi_bias(2, 3)
    )
    padded_inputs = [torch.cat([torch.randn(1, 2, 4, 8), x], dim=-2) for x in (query, key, value)]
    mask = tl.causal_mask(7) & (torch.arange(7) >= 4)
    output_with_padding = tl.scaled_dot_product_attention(*padded_inputs, mask, bias=tl.alibi_bias(2, 7))
    torch.testing.assert_close(output_with_padding[..., 4:, :], output_without_padding)


def front_padding(seq=5, n_words=3):
    """Return a causal and a padding mask in PyTorch's form; with padding in front, the first queries see nothing."""
    return ~tl.causal_mask(seq), (torch.arange(seq) < seq - n_words)[None]


def nan_tokens(output):
    return output.isnan().any(-1)[0].tolist()


@pytest.mark.parametrize("training", [True, False])
def test_padding_in_front_makes_every_token_nan_after_two_modules(training):
    causal_mask, padding_mask = front_padding()
    modules = [nn.MultiheadAttention(8, 2, batch_first=True).train(training) for _ in range(2)]
    x, outputs = torch.randn(1, 5, 8), []
    for module in modules:
        x, _ = module(x, x, x, attn_mask=causal_mask, key_padding_mask=padding_mask)
        outputs.append(nan_tokens(x))
    assert outputs == [[True, True, False, False, False], [True] * 5]


def test_padding_in_front_breaks_an_encoder_only_in_evaluation_and_not_if_padding_sees_itself():
    causal_mask, padding_mask = front_padding()
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    stack, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(1, 5, 8)
    if torch.__version__ >= (2, 5):
        assert not any(nan_tokens(stack(x, mask=causal_mask, src_key_padding_mask=padding_mask)))
    mask_with_self = (causal_mask | padding_mask) & ~torch.eye(5, dtype=torch.bool)
    training_output = stack(x, mask=mask_with_self)
    stack.eval()
    with torch.inference_mode():
        assert all(nan_tokens(stack(x, mask=causal_mask, src_key_padding_mask=padding_mask)))
        torch.testing.assert_close(stack(x, mask=mask_with_self), training_output)
        output_without_padding = stack(x[:, 2:], mask=~tl.causal_mask(3))
    torch.testing.assert_close(training_output[:, 2:], output_without_padding)


def test_one_step_with_an_empty_sentence_ruins_every_parameter():
    module, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 4, 8)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    empty_sentence_mask = ~tl.padding_mask([4, 2, 0], 4)[:, 0, 0]
    module(x, x, x, key_padding_mask=empty_sentence_mask)[0].square().mean().backward()
    optimizer.step()
    assert not any(parameter.isfinite().all() for parameter in module.parameters())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_pytorch_refuses_masks_of_integers(dtype):
    module, x, mask = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 4, 8), torch.ones(4, 4, dtype=dtype)
    with pytest.raises(RuntimeError, match="attn_mask"):
        nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    with pytest.raises(AssertionError, match="attn_mask"):
        module(x, x, x, attn_mask=mask)


@pytest.mark.parametrize("seed", range(5))
def test_two_causal_layers_without_positions_see_the_order(seed):
    torch.manual_seed(seed)
    code = chapter_code("05_masks", sections={"5.2"})
    attention, x = tl.MultiHeadAttention(8, 2), torch.randn(1, 4, 8)
    swapped = x[:, [1, 0, 2, 3]]

    def causal(x):
        return attention(x, is_causal=True)

    def keeps_later_tokens(function):
        return code["changed_tokens"](function, x, swapped).tolist()[2:] == [0, 0]

    assert keeps_later_tokens(lambda x: code["two_layers"](attention, x)) and keeps_later_tokens(causal)
    assert not keeps_later_tokens(lambda x: code["two_layers"](causal, x))


def test_the_course_needs_one_source_mask_where_pytorch_needs_two():
    torch_model = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True)
    our_model = tl.Transformer.from_torch(torch_model)
    source, target, real = torch.randn(2, 5, 16), torch.randn(2, 4, 16), tl.padding_mask([3, 5], 5)
    padding_masks = {"src_key_padding_mask": ~real[:, 0, 0], "memory_key_padding_mask": ~real[:, 0, 0]}
    expected = torch_model(source, target, tgt_mask=~tl.causal_mask(4), **padding_masks)
    torch.testing.assert_close(our_model(source, target, real), expected, rtol=1e-4, atol=1e-5)


def hidden_first_key():
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
    documents = torch.arange(6) // 2
    return [f"{(tl.causal_mask(6) & (documents[:, None] == documents)).sum()} of 36"]


def pytorch_padding():
    assert (~tl.padding_mask([1, 2], 3)[:, 0, 0]).tolist() == [[False, True, True], [False, False, True]]
    return ["`~tl.padding_mask(lengths, seq)[:, 0, 0]`"]


def row_of_folded_axes():
    batch_and_head = torch.arange(6).view(3, 2)  # (batch, heads)
    return ["`(6, 5, 5)`", f"1 · 2 + 1 = {batch_and_head[1, 1]}"]


def scores_with_an_added_mask():
    assert torch.softmax(torch.tensor([15.0 - 10.0, 5.0]), -1).tolist() == [0.5, 0.5]
    return ["½ and ½"]


def hidden_rows():
    real = tl.padding_mask([4, 2], 4)
    weights = torch.zeros(2, 1, 4, 4).masked_fill(~(real & real.mT), -torch.inf).softmax(-1)
    assert weights.isnan().any(-1)[:, 0].nonzero().tolist() == [[1, 2], [1, 3]]
    return ["Rows 2 and 3 of the second sentence"]


def three_new_tokens():
    mask = tl.causal_mask(3, 5)
    assert mask[0].tolist() == [True, True, True, False, False]
    return ["Keys 0, 1 and 2", f"3 + 4 + 5 = {mask.sum()}"]


def summary_mask():
    return [f"`{tuple(tl.padding_mask([900, 5, 7, 9], 900).shape)}`"]


def projection_counts():
    return [f"{sum(range(101)):,} times without it, 100 times with it"]


def loss_of_eight_digits():
    return ["17 tokens", "16 predictions", f"7 · 2.30 / 16 = {7 * math.log(10) / 16:.2f}"]


ANSWERS = [
    hidden_first_key,
    causal_entries,
    padding_shape,
    three_documents,
    pytorch_padding,
    row_of_folded_axes,
    scores_with_an_added_mask,
    hidden_rows,
    three_new_tokens,
    summary_mask,
    projection_counts,
    loss_of_eight_digits,
]


def test_folded_answers_agree_with_pytorch():
    cells = nbformat.read(notebooks.ROOT / "chapters" / "05_masks.ipynb", 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    answers = re.findall(r"(?s)\*\*Before you read on:\*\*.*?<summary>Answer</summary>(.*?)</details>", text)
    assert len(answers) == len(ANSWERS)
    for answer, compute_phrases in zip(answers, ANSWERS):
        for phrase in compute_phrases():
            assert phrase in answer, (
                f"{compute_phrases.__name__}: the answer must contain {phrase}, but is {answer.strip()}"
            )


# Section 5.14: the class, and a model whose mask is broken


@pytest.fixture(scope="module")
def line_writer():
    return chapter_code("05_masks", {"everything", "writer_masks"}, sections={"5.14"})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_with_a_broken_mask_has_the_better_loss_but_writes_no_right_line(seed, line_writer):
    losses, right_line_shares = {}, {}
    for name, mask in line_writer["writer_masks"].items():
        losses[name], right_line_shares[name] = line_writer["examine"](line_writer["train_writer"](mask, seed), mask)
    causal_loss = losses.pop("the causal mask")
    assert 4 * math.log(10) / 10 < causal_loss < 1.05 and right_line_shares.pop("the causal mask") > 0.95
    assert max(losses.values()) < 0.01 and max(right_line_shares.values()) < 0.1


def test_the_class_on_the_page_is_the_course_s_module(line_writer):
    page_module = line_writer["MultiHead"](8, 2).to(tl.device())
    our_module = tl.MultiHeadAttention(8, 2).to(tl.device())
    our_module.load_state_dict(page_module.state_dict())
    x = torch.randn(3, 5, 8, device=tl.device())
    for mask in (None, tl.causal_mask(5), tl.padding_mask([5, 2, 0], 5), torch.rand(3, 2, 5, 5) < 0.3):
        mask = mask if mask is None else mask.to(x.device)
        torch.testing.assert_close(page_module(x, x, x, mask), our_module(x, mask=mask), rtol=1e-4, atol=1e-5)


def test_dropout_keeps_each_weight_on_average_but_not_the_sum_of_a_row():
    row, keep_masks = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.cartesian_prod(*[torch.arange(2.0)] * 4)
    results = row * keep_masks / (1 - 0.5)  # all 16 outcomes, which are equally likely
    torch.testing.assert_close(results.mean(0), row)
    torch.manual_seed(0)
    for sampled in (nn.functional.dropout(row, 0.5) for _ in range(50)):
        assert (results - sampled).abs().amax(-1).min() < 1e-6
    assert results.sum(-1).unique().numel() > 8
