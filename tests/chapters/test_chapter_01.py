"""Tests of what chapter 1 states about copies, gradients and devices but demonstrates in no cell."""

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile


def projected_heads(batch):
    projected = torch.zeros(batch, 10, 3 * 12 * 4)
    return [part.view(batch, 10, 12, 4).transpose(1, 2) for part in projected.split(48, dim=-1)]


def count_copies(function):
    """Return how many copies PyTorch makes while the function runs."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        function()
    return sum(event.key == "aten::copy_" for event in profiler.events())


@pytest.mark.parametrize("batch", [1, 2])
def test_a_product_copies_heads_only_if_the_batch_has_more_than_one_text(batch):
    query, key, value = projected_heads(batch)
    weights = torch.zeros(batch, 12, 10, 10)
    assert count_copies(lambda: projected_heads(batch)) == 0
    assert count_copies(lambda: query @ key.transpose(-2, -1)) == (0 if batch == 1 else 2)
    assert count_copies(lambda: weights @ value) == (0 if batch == 1 else 1)


def test_a_product_of_two_texts_copies_all_the_keys_of_gpt_2():
    key = torch.empty(2, 1024, 2304, device="meta").split(768, dim=-1)[1]
    per_head = key.view(2, 1024, 12, 64).transpose(1, 2)
    assert per_head.stride()[0] == 2_359_296 and per_head.numel() == 2 * 786_432


@pytest.mark.parametrize("batch", [1, 2])
def test_merging_the_heads_of_a_product_copies_them_once(batch):
    results = torch.zeros(batch, 12, 10, 10) @ torch.zeros(batch, 12, 10, 4)
    assert count_copies(lambda: results.transpose(1, 2).reshape(batch, 10, 48)) == 1


@pytest.mark.parametrize("batch", [1, 2])
def test_fused_attention_copies_nothing_on_a_cpu(batch):
    heads = projected_heads(batch)
    assert count_copies(lambda: F.scaled_dot_product_attention(*heads)) == 0
    results = F.scaled_dot_product_attention(*heads)
    assert count_copies(lambda: results.transpose(1, 2).reshape(batch, 10, 48)) == 0


def test_a_sum_in_a_new_tensor_keeps_what_the_backward_pass_needs():
    weight = torch.full((2,), 2.0, requires_grad=True)
    y = weight.exp()
    y = y + 1
    y.sum().backward()
    torch.testing.assert_close(weight.grad, weight.exp().detach())


def test_a_sum_refuses_two_devices_but_accepts_a_number_without_axes():
    on_meta = torch.ones(2, 2, device="meta")  # a second device that exists on every machine
    with pytest.raises(RuntimeError):
        torch.ones(2, 2) + on_meta
    assert (torch.tensor(1.0) + on_meta).device.type == "meta"
