"""Small exercises between the sections: their folded answers are what PyTorch says."""

import re

import nbformat
import pytest
import torch
from torch import nn

import notebooks
import transformer_lab as tl


def raises(call):
    try:
        call()
    except RuntimeError:
        return True
    return False


def copies(x, y):
    return not tl.layout(x).shares_storage_with(y)


def strides():
    x = torch.arange(70).view(5, 1, 7, 2)
    return [x.stride(), f"+ 1·1 = {x[2, 0, 3, 1]}"]


def merges():
    x = torch.arange(24).view(4, 6).T.view(2, 3, 4)
    assert x.stride() == (3, 1, 6)
    assert not raises(lambda: x.view(6, 4)) and raises(lambda: x.view(2, 12))
    return ["`view(6, 4)`: merging the first two", "it raises", "`torch.arange(24).view(4, 6).T.view(2, 3, 4)`"]


def who_copies():
    x = torch.arange(24).view(4, 6)
    turned, cut = x.transpose(0, 1), x[:, :3]
    reshaped = x.reshape(6, 4), turned.reshape(24), cut.reshape(4, 3), cut.reshape(12)
    assert [copies(x, y) for y in reshaped] == [False, True, False, True]
    return ["The second and the fourth", turned.stride(), cut.stride()]


def sizes_of_one():
    x = torch.empty(7, 1, 5)
    return [tuple(y.shape) for y in (x.squeeze(0), x.squeeze(1)[None], x[:, None])]


def joined():
    heads = [torch.empty(1024, 64)] * 12
    assert torch.stack(heads).shape == (12, 1024, 64) and torch.cat(heads, dim=-1).shape == (1024, 768)
    return ["`torch.stack(heads)`", "`torch.cat(heads, dim=-1)`"]


def picked_and_sliced():
    x = torch.zeros(2, 3)
    y, z = x[[0]], x[0]
    y += 1
    z += 1
    return [f"{x.sum():.0f}. `y` is a copy"]


def dtypes_that_meet():
    bfloat16, half = torch.ones(2).bfloat16(), torch.ones(2).half()
    sums = bfloat16 + torch.tensor(3.0), bfloat16 + torch.ones(2), half + torch.arange(2)
    assert [x.dtype for x in sums] == [torch.bfloat16, torch.float32, torch.float16]
    return ["bfloat16, since a number without axes", "; float32, the wider", "; float16, since a float wins"]


def embedded():
    embedding = nn.Embedding(50257, 768, device="meta")
    x = embedding(torch.empty(4, 1024, dtype=torch.int64, device="meta"))
    return [tuple(x.shape), f"{embedding.weight.numel():,} numbers"]


def products():
    x, w, y = torch.empty(2, 7, 512), torch.empty(512, 64), torch.empty(2, 64, 7)
    return [tuple(z.shape) for z in (x @ w, x @ w @ y, y @ x)]


def without_the_largest():
    scores = torch.arange(2 * 8 * 7 * 9).view(2, 8, 7, 9)
    largest = scores.amax(dim=-1, keepdim=True)
    assert (scores - largest).amax(dim=-1).abs().max() == 0 and raises(lambda: scores - scores.amax(dim=-1))
    return ["`scores - scores.amax(dim=-1, keepdim=True)`", tuple(largest.shape)]


def own_place():
    query, key = torch.randn(2, 7, 3), torch.randn(2, 7, 3)
    torch.testing.assert_close(torch.einsum("bsd,bsd->bs", query, key), (query * key).sum(-1))
    return ['`torch.einsum("bsd,bsd->bs", query, key)`']


def ten_times():
    query, key = torch.randn(3, 2), torch.randn(4, 2)
    longer = key * torch.tensor([1, 1, 10, 1])[:, None]
    torch.testing.assert_close(query @ longer.T, (query @ key.T) * torch.tensor([1, 1, 10, 1]))
    cosines = [nn.functional.cosine_similarity(query[:, None], each, dim=-1) for each in (key, longer)]
    torch.testing.assert_close(*cosines)
    return ["Column 2 of the dot products becomes ten times as large. The cosines stay"]


def projected():
    linear = nn.Linear(768, 2304, device="meta")
    x = linear(torch.empty(4, 1024, 768, device="meta"))
    return [tuple(x.shape), tuple(linear.weight.shape), f"= {tl.count_parameters(linear):,}, with the biases"]


ANSWERS = {
    "01_tensor_operations": [
        strides,
        merges,
        who_copies,
        sizes_of_one,
        joined,
        picked_and_sliced,
        dtypes_that_meet,
        embedded,
    ],
    "02_matmul_broadcasting": [products, without_the_largest, own_place, ten_times, projected],
}


@pytest.mark.parametrize("stem", ANSWERS)
def test_every_folded_answer_is_what_pytorch_says(stem):
    cells = nbformat.read(notebooks.ROOT / "chapters" / f"{stem}.ipynb", 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = re.findall(r"(?s)\*\*Before you read on\.\*\*.*?<summary>Answer</summary>(.*?)</details>", text)
    assert len(found) == len(ANSWERS[stem])
    for answer, computed in zip(found, ANSWERS[stem]):
        for words in computed():
            words = f"`{words}`" if isinstance(words, tuple) else words
            assert words in answer, f"{computed.__name__}: must say {words}, says {answer.strip()}"
