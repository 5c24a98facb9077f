"""Tests of what chapter 2 states about `.T` with three axes, `bmm` and a stretched axis but demonstrates in no cell."""

import pytest
import torch


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
@pytest.mark.parametrize(
    "query, key, fits",
    [
        ((2, 7, 5), (2, 6, 5), False),  # the chapter's example: both conditions fail
        ((2, 7, 5), (2, 5, 5), False),  # k_len = d_head, and the batch axes do not broadcast
        ((5, 7, 5), (5, 6, 5), False),  # the batch axes agree, but k_len differs from d_head
        ((5, 7, 5), (5, 5, 5), True),
        ((1, 7, 5), (1, 5, 5), True),
    ],
)
def test_a_key_with_all_axes_reversed_fits_under_two_conditions(query, key, fits):
    query, key = torch.empty(query), torch.empty(key)
    if fits:
        assert (query @ key.T).shape == (5, 7, len(key))
    else:
        with pytest.raises(RuntimeError):
            query @ key.T


def test_bmm_broadcasts_nothing_and_requires_three_axes():
    a = torch.empty(2, 3, 4)
    assert torch.bmm(a, torch.empty(2, 4, 5)).shape == (2, 3, 5)
    for b in (torch.empty(1, 4, 5), torch.empty(4, 5), torch.empty(1, 2, 4, 5)):
        with pytest.raises(RuntimeError):
            torch.bmm(a, b)


def test_a_stretched_axis_has_stride_0_and_shares_its_storage():
    a = torch.tensor([[10], [20], [30]])
    expanded, _ = torch.broadcast_tensors(a, torch.arange(4))
    assert expanded.shape == (3, 4) and expanded.stride() == (1, 0)
    assert expanded.data_ptr() == a.data_ptr()


def test_a_changed_row_of_a_factor_changes_one_row_or_all_rows_or_one_column_of_the_product():
    torch.manual_seed(0)
    x, w, weights, query = torch.randn(4, 3), torch.randn(3, 5), torch.rand(6, 4), torch.randn(6, 3)

    def find_changed_entries(product):
        changed_x = x.clone()
        changed_x[2] += 1
        return (product(changed_x) - product(x)).abs() > 1e-4

    assert find_changed_entries(lambda x: x @ w).any(1).tolist() == [False, False, True, False]
    assert find_changed_entries(lambda value: weights @ value).any(1).all()
    assert find_changed_entries(lambda key: query @ key.T).any(0).tolist() == [False, False, True, False]
