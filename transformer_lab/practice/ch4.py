"""Chapter 4: splitting into heads, and merging them."""

import torch

from .answers import Table
from .draws import number, write
from .topic import Topic


def _numbered_tokens(draw):
    seq, heads, d_head = number(draw, 2, 4), number(draw, 2, 3), number(draw, 2, 3)
    first = number(draw, 0, 9)
    return first + torch.arange(seq * heads * d_head).view(1, seq, heads * d_head), heads


head_1 = Topic(
    title="What a head gets",
    rule="split_heads",
    inputs=_numbered_tokens,
    question=lambda x, n_heads: (
        f"`x` is one sentence: a token in each row. `split_heads(x, n_heads={n_heads})` cuts it; "
        "what is in head 1, a token in each row?"
    ),
    given=lambda x, n_heads: write(x[0]),
    answer=Table(),
    asks=lambda heads, x, n_heads: heads[0, 1],
)
