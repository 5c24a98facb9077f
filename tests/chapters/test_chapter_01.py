"""Chapter 1 says which numbers PyTorch copies when heads are cut out of one product, and when they meet in the next."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile


def heads_of(batch):
    projected = torch.zeros(batch, 10, 3 * 12 * 4)
    return [part.view(batch, 10, 12, 4).transpose(1, 2) for part in projected.split(48, dim=-1)]


def copies(function):
    """How many copies PyTorch makes while the function runs."""
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        function()
    return sum(event.key == "aten::copy_" for event in recorded.events())


@pytest.mark.parametrize("batch", [1, 2])
def test_the_product_of_heads_copies_what_it_reads_from_a_batch_of_two_on(batch):
    query, key, value = heads_of(batch)
    weights = torch.zeros(batch, 12, 10, 10)
    assert copies(lambda: heads_of(batch)) == 0
    assert copies(lambda: query @ key.transpose(-2, -1)) == (0 if batch == 1 else 2)
    assert copies(lambda: weights @ value) == (0 if batch == 1 else 1)
