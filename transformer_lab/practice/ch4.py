"""Chapter 4: splitting into heads, and merging them."""

import torch

from .answers import Numbers, Table
from .draws import choose, distinct_integers, random_integer, write
from .topic import Topic, rule


def _numbered_tokens(draw):
    seq, heads, d_head = random_integer(draw, 2, 4), random_integer(draw, 2, 3), random_integer(draw, 2, 3)
    first = random_integer(draw, 0, 9)
    return first + torch.arange(seq * heads * d_head).view(1, seq, heads * d_head), heads


head_1 = Topic(
    title="What a head gets",
    rule="split_heads",
    inputs=_numbered_tokens,
    accepts=lambda x, n_heads: x.shape[-1] < 9,  # a row of this length fits on a phone
    question=lambda x, n_heads: (
        f"`split_heads(x, n_heads={n_heads})` splits `x`, one sentence with a token in each row. "
        "What does head 1 contain, with a token in each row?"
    ),
    given_text=lambda x, n_heads: write(x[0]),
    answer=Table(),
    asked_value=lambda heads, x, n_heads: heads[0, 1],
    excluded_mistakes=("heads_and_batch_exchanged_after_a_cut",),  # gives the same numbers as `view` alone
    mistake_texts={
        "view_alone": "This is what `view` alone returns: whole tokens in reading order. Each token is divided among "
        "the heads: which of its features belong to head 1?",
        "every_nth_feature": "You gave the head features that are not side by side. Each head gets a block of "
        "neighbouring features.",
        "transposed_and_reshaped": "You exchanged tokens and features before the split. Split first, while the "
        "features of a token are still side by side.",
        "no_transpose": "This is token 1, divided among the heads. A head contains a block of features of every token.",
        "features_in_place_of_heads": "Your rows contain feature 1 of every head. Head 1 contains a block of "
        "neighbouring features of every token.",
        "features_before_seq": "You have the right numbers, but with a feature in each row. The question asks for a "
        "token in each row.",
    },
)


# Merging


def _numbered_heads(draw):
    heads, seq, d_value = choose(draw, ((2, 3, 2), (2, 2, 2), (2, 4, 2)))
    first = random_integer(draw, 0, 20)
    return (first + torch.arange(heads * seq * d_value).view(heads, seq, d_value),)


@rule(inputs=_numbered_heads)
def merged_heads(x):
    """Return the heads of each token side by side."""
    return x.transpose(0, 1).flatten(1)


@merged_heads.mistake
def joined_without_a_turn(x):
    """You joined the numbers in reading order. A row contains the features of one token from all heads: look at row 0
    of each head."""
    return x.reshape(x.shape[1], -1)


@merged_heads.mistake
def features_of_heads_alternate(x):
    """You alternated between the heads, feature by feature. The features of each head stay side by side."""
    return x.permute(1, 2, 0).flatten(1)


@merged_heads.mistake
def heads_below_one_another(x):
    """You put the heads below one another. Heads belong side by side, with a row for each token."""
    return x.flatten(0, 1)


@merged_heads.mistake
def heads_in_reverse(x):
    """You put the last head first. Head 0 provides the first features of each row."""
    return x.flip(0).transpose(0, 1).flatten(1)


@merged_heads.mistake
def head_0_repeated(x):
    """You repeated head 0. Each head provides its own features."""
    return x[:1].expand_as(x).transpose(0, 1).flatten(1)


@merged_heads.mistake
def turned_inside_heads(x):
    """You exchanged tokens and features inside each head. The transpose exchanges the axes of heads and tokens."""
    return x.transpose(1, 2).reshape(x.shape[1], -1)


merged_rows = Topic(
    title="Merging the heads",
    rule=merged_heads,
    question=lambda x: (
        f"Each of {x.shape[0]} heads returns {x.shape[2]} features for each of {x.shape[1]} tokens. "
        "What does `merge_heads` return, with a token in each row?"
    ),
    given_text=lambda x: "\n".join(f"head {i}\n{write(head)}" for i, head in enumerate(x)),
    answer=Table(),
)


# Shapes on the way

_STAGES = {
    "queries": "the queries, split into heads",
    "weights": "the weights of all heads",
    "merged": "the merged heads, before the output projection",
    "one_head": "the weights of one head for one sentence",
}


def _stage_and_sizes(draw):
    batch, q_len, k_len, heads, d_head = distinct_integers(draw, 5, 2, 9)
    return choose(draw, tuple(_STAGES)), batch, q_len, k_len, heads, d_head


@rule(inputs=_stage_and_sizes)
def shape_at_stage(stage, batch, q_len, k_len, heads, d_head):
    """Return the shape at a stage."""
    return {
        "queries": (batch, heads, q_len, d_head),
        "weights": (batch, heads, q_len, k_len),
        "merged": (batch, q_len, heads * d_head),
        "one_head": (q_len, k_len),
    }[stage]


@shape_at_stage.mistake
def queries_and_keys_exchanged(stage, batch, q_len, k_len, heads, d_head):
    """You exchanged queries and keys. The rows belong to the queries."""
    return shape_at_stage.reference(stage, batch, k_len, q_len, heads, d_head)


@shape_at_stage.mistake
def heads_left_after_the_tokens(stage, batch, q_len, k_len, heads, d_head):
    """In your shape the heads still come after the tokens, as they do after the split. A transpose moves the heads
    before the tokens."""
    if stage not in ("queries", "weights"):
        return None
    return batch, q_len, heads, d_head if stage == "queries" else k_len


@shape_at_stage.mistake
def heads_forgotten(stage, batch, q_len, k_len, heads, d_head):
    """You forgot the heads. The heads have their own axis."""
    if stage == "queries":
        return batch, q_len, d_head
    return (batch, q_len, k_len) if stage == "weights" else None


@shape_at_stage.mistake
def features_not_divided(stage, batch, q_len, k_len, heads, d_head):
    """You gave each head all the features. The heads divide the features: how many does one head get?"""
    return (batch, heads, q_len, heads * d_head) if stage == "queries" else None


@shape_at_stage.mistake
def features_of_one_head(stage, batch, q_len, k_len, heads, d_head):
    """You gave the features of one head. After merging, the features of all heads are side by side."""
    return (batch, q_len, d_head) if stage == "merged" else None


@shape_at_stage.mistake
def heads_not_joined(stage, batch, q_len, k_len, heads, d_head):
    """You left heads and features as two axes. Merging combines the two axes."""
    return (batch, q_len, heads, d_head) if stage == "merged" else None


@shape_at_stage.mistake
def features_for_weights(stage, batch, q_len, k_len, heads, d_head):
    """You gave the number of features, but these are weights. A query has one weight for each key."""
    if stage == "one_head":
        return q_len, d_head
    return (batch, heads, q_len, d_head) if stage == "weights" else None


@shape_at_stage.mistake
def queries_for_all(stage, batch, q_len, k_len, heads, d_head):
    """Your shape has as many keys as queries. The number of keys is the length of the other sequence."""
    if stage == "one_head":
        return q_len, q_len
    return (batch, heads, q_len, q_len) if stage == "weights" else None


shapes_in_a_layer = Topic(
    title="Shapes in a layer",
    rule=shape_at_stage,
    question=lambda stage, batch, q_len, k_len, heads, d_head: (
        f"A layer has `d_model` = {heads * d_head} and {heads} heads; each of {batch} sentences of {q_len} tokens "
        f"attends to another sentence, of {k_len} tokens. What is the shape of {_STAGES[stage]}?"
    ),
    answer=Numbers(),
)
