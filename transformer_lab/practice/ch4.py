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
    keep=lambda x, n_heads: x.shape[-1] < 9,  # a row fits a phone
    question=lambda x, n_heads: (
        f"`x` is one sentence: a token in each row. `split_heads(x, n_heads={n_heads})` cuts it; "
        "what is in head 1, a token in each row?"
    ),
    given=lambda x, n_heads: write(x[0]),
    answer=Table(),
    asks=lambda heads, x, n_heads: heads[0, 1],
    words={
        "view_alone": "This is what `view` alone gives: whole tokens in reading order. Each token is cut into heads: "
        "which of its features go to head 1?",
        "every_nth_feature": "You gave the head features that do not stand side by side. Each head gets a block of "
        "neighbours.",
        "turned_and_cut_anew": "You turned tokens and features before the cut. Cut first: the features of a token "
        "still lie side by side.",
        "no_transpose": "This is token 1, cut into its heads. A head holds its features of every token.",
        "features_before_seq": "You have the right numbers, with a feature in each row. A token in each row was asked "
        "for.",
    },
)
