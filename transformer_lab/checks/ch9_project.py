"""The final project: a language model, assembled from the functions of assignments 3 to 8."""

import math
from functools import reduce

import torch
from torch.nn.functional import (
    cross_entropy,
    elu,
    embedding,
    gelu,
    layer_norm,
    linear,
    log_softmax,
    relu,
    scaled_dot_product_attention,
)

from .ch4_multi_head import merge_heads, split_heads
from .exercise import exercise


def positions(seq, d_model):
    angles = torch.arange(seq)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]


def causal_softmax_attention(query, key, value):
    _require_heads(query, key, value)
    return scaled_dot_product_attention(query, key, value, is_causal=True)


def causal_linear_attention(query, key, value):
    _require_heads(query, key, value)
    weights = ((elu(query) + 1) @ (elu(key) + 1).mT).tril()
    return weights @ value / weights.sum(dim=-1, keepdim=True)


def _require_heads(*tensors):
    """What is promised to ``attend``: three tensors with four axes."""
    for tensor in tensors:
        if tensor.ndim != 4:
            raise ValueError(f"attend takes (batch, heads, seq, d_head), got {tuple(tensor.shape)}")


def _weights(draw, d_model, d_ff):
    """One block's weights, as PyTorch stores them; norms and biases away from 1 and 0, so that leaving one out
    shows. The first bias also keeps the sums before the ReLU away from 0, where rounding would turn a gradient on or
    off."""
    bias = draw(d_ff)
    return {
        **{name: draw(d_model, d_model) / d_model**0.5 for name in ("w_q", "w_k", "w_v", "w_o")},
        "w1": draw(d_ff, d_model) / d_model**0.5,
        "b1": bias / 2 + 1.5 * bias.sign(),
        "w2": draw(d_model, d_ff) / d_ff**0.5 / 3,
        "b2": draw(d_model) / 4,
        "norm1": (1 + draw(d_model) / 4, draw(d_model) / 4),
        "norm2": (1 + draw(d_model) / 4, draw(d_model) / 4),
    }


# 1. embed


def _tokens(draw, batch=2, seq=7, vocab=11, d_model=6):
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    return tokens, draw(vocab, d_model)


def rows(tokens, table):
    return embedding(tokens, table)


def added(vectors, pattern):
    return vectors + pattern.to(vectors)


@exercise(
    inputs=_tokens,
    axes={"tokens": "batch seq", "table": "vocab d_model", "return": "batch seq d_model"},
    hints=(
        "What does attention know about the order of the tokens, if each token is a row of the table and nothing else?",
        "Look the rows up, `table[tokens]`, then add what `sinusoidal_positions` gives for the right axis of tokens.",
        "`table[…] + sinusoidal_positions(…, …)`",
    ),
)
def embed(tokens, table, *, vectors=rows, position=positions, together=added):
    """Look each token up and add its position: (batch, seq) to (batch, seq, d_model)."""
    return together(vectors(tokens, table), position(tokens.shape[1], table.shape[1]))


@embed.equivalent
def by_one_hot(tokens, table):
    chosen = torch.nn.functional.one_hot(tokens, len(table)).to(table)
    return chosen @ table + positions(tokens.shape[-1], table.shape[-1]).to(table)


@embed.equivalent
def by_index_select(tokens, table):
    vectors = table.index_select(0, tokens.flatten()).reshape(*tokens.shape, -1)
    return positions(tokens.shape[1], table.shape[1]).to(table).unsqueeze(0) + vectors


@embed.equivalent
def token_by_token(tokens, table):
    pattern = positions(tokens.shape[1], table.shape[1]).to(table)
    return torch.stack([torch.stack([table[t] + place for t, place in zip(row, pattern)]) for row in tokens])


embed.example("one token", seq=1)
embed.example("as many sentences as tokens", batch=5, seq=5)


@embed.mistake(part="together")
def no_positions(vectors, pattern):
    """The positions are missing: each token is its row of the table, wherever it stands. Attention compares vectors,
    not places: in one block, what a token gathers is the same in whatever order the tokens before it stand. What tells
    position 0 from position 1?"""
    return vectors


@embed.mistake(part="together")
def positions_multiplied(vectors, pattern):
    """The positions are multiplied with the vectors instead of added: position 0 has sin 0 = 0 in every second feature,
    so half of the first token is lost. The two are added."""
    return vectors * pattern.to(vectors)


@embed.mistake(part="together")
def positions_alone(vectors, pattern):
    """You return the positions without the tokens: every sentence of the same length looks the same. The vectors from
    the table belong to it."""
    return pattern.to(vectors).expand_as(vectors)


@embed.mistake
def positions_of_the_batch(tokens, table):
    """The positions follow the batch: all tokens of the first sentence got position 0, those of the second position 1.
    It comes from code for (seq, batch), where positions lie along the first axis. Here `seq` is the second."""
    return table[tokens] + positions(tokens.shape[0], table.shape[1])[:, None].to(table)


@embed.mistake
def positions_of_the_token(tokens, table):
    """Each token got the pattern of its number in the vocabulary, not of its place: wherever it stands, its vector is
    the same. Positions count along `seq`, whatever stands there."""
    return table[tokens] + positions(*table.shape)[tokens].to(table)


@embed.mistake
def positions_from_one(tokens, table):
    """The positions begin at 1: the first token got the pattern of position 1. Positions are counted from 0; `seq` of
    them are asked for, and none is left out."""
    return table[tokens] + positions(tokens.shape[1] + 1, table.shape[1])[1:].to(table)


@embed.mistake
def scaled_by_root_d(tokens, table):
    """The vectors are multiplied by √d_model before the positions are added. The original Transformer does that, with a
    table that was drawn smaller; here the row of the table goes in as it is."""
    return table[tokens] * table.shape[1] ** 0.5 + positions(*table[tokens].shape[1:]).to(table)


@embed.mistake
def halves_beside_each_other(tokens, table):
    """The sines stand in the first half of the features and the cosines in the second. In this course, as in the paper,
    they take turns: feature 0 a sine, feature 1 a cosine of the same angle. Is the positions' function the one of
    assignment 3?"""
    pattern = positions(tokens.shape[1], table.shape[1])
    return table[tokens] + torch.cat([pattern[:, ::2], pattern[:, 1::2]], dim=-1).to(table)


@embed.property
def order_matters(function, tokens, table):
    """A token that moves to another place changes its vector."""
    return not torch.allclose(function(tokens.flip(1), table).flip(1), function(tokens, table))


# 2. self_attention


def _attending(draw, batch=2, seq=7, heads=3, d_head=5):
    d_model = heads * d_head
    weights = _weights(draw, d_model, 2)
    return draw(batch, seq, d_model), weights, heads, causal_softmax_attention


def three_projections(x, weights):
    return tuple(linear(x, weights[name]) for name in ("w_q", "w_k", "w_v"))


def last_projection(x, weights):
    return linear(x, weights["w_o"])


@exercise(
    inputs=_attending,
    axes={"x": "batch seq d_model", "return": "batch seq d_model"},
    hints=(
        "`attend` takes and gives heads. What stands before it, and what after it, in multi-head attention?",
        "Project three times, split, `attend(query, key, value)`, merge, project. Scale and mask are `attend`'s part.",
        "`attend(*(split_heads(x @ weights[…].T, n_heads) for … in …))`, then `merge_heads(…) @ …`",
    ),
)
def self_attention(
    x,
    weights,
    n_heads,
    attend,
    *,
    projections=three_projections,
    split=split_heads.reference,
    merge=merge_heads.reference,
    combined=last_projection,
):
    """Multi-head self-attention around any ``attend(query, key, value)``: (batch, seq, d_model) in and out."""
    heads = attend(*(split(y, n_heads) for y in projections(x, weights)))
    return combined(merge(heads), weights)


@self_attention.equivalent
def by_reshape(x, weights, n_heads, attend):
    batch, seq, _ = x.shape
    q, k, v = (
        (x @ weights[name].T).reshape(batch, seq, n_heads, -1).permute(0, 2, 1, 3) for name in ("w_q", "w_k", "w_v")
    )
    return attend(q, k, v).permute(0, 2, 1, 3).reshape(batch, seq, -1) @ weights["w_o"].T


@self_attention.equivalent
def by_einsum(x, weights, n_heads, attend):
    q, k, v = (
        torch.einsum("bsd,hed->bhse", x, weights[name].unflatten(0, (n_heads, -1))) for name in ("w_q", "w_k", "w_v")
    )
    return torch.einsum("bhse,ohe->bso", attend(q, k, v), weights["w_o"].unflatten(1, (n_heads, -1)))


@self_attention.equivalent
def as_one_projection(x, weights, n_heads, attend):
    packed = torch.cat([weights[name] for name in ("w_q", "w_k", "w_v")])
    heads = linear(x, packed).unflatten(-1, (3, n_heads, -1)).permute(2, 0, 3, 1, 4)
    return linear(attend(*heads).transpose(1, 2).flatten(2), weights["w_o"])


@self_attention.probe
def _another_attention(draw):
    """an `attend` that is not softmax attention"""
    return *_attending(draw)[:3], causal_linear_attention


self_attention.example("one token", seq=1)


@self_attention.mistake(part="split")
def split_by_view_alone(x, n_heads):
    """The heads are cut as `view` cuts them, straight into (batch, heads, seq, d_head): the shape is right and the
    numbers are scrambled. Is the function that splits the one which passed its check in assignment 4?"""
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads)


@self_attention.mistake(part="merge")
def merged_without_transpose(x):
    """The heads are merged without bringing them next to the features first: the shape is right and the numbers are
    scrambled. Is the function that merges the one which passed its check in assignment 4?"""
    batch, _, seq, _ = x.shape
    return x.reshape(batch, seq, -1)


@self_attention.mistake(part="combined")
def no_last_projection(x, weights):
    """The last projection is missing: `w_o` is not used, and no feature of the output combines what two heads found."""
    return x


@self_attention.mistake(part="projections")
def weights_as_stored(x, weights):
    """The projections multiply by the weights as they are stored, (out, in): `x @ w` needs them transposed. They are
    square, so nothing complains."""
    return tuple(x @ weights[name] for name in ("w_q", "w_k", "w_v"))


@self_attention.mistake(part="combined")
def last_weight_as_stored(x, weights):
    """The last projection multiplies by `w_o` as it is stored, (out, in): `x @ w` needs it transposed. It is square, so
    nothing complains."""
    return x @ weights["w_o"]


@self_attention.mistake(part="projections")
def keys_for_values(x, weights):
    """Keys and values are exchanged. Look at the order of the names, and at the order in which `attend` takes them."""
    query, key, value = three_projections(x, weights)
    return query, value, key


@self_attention.mistake(part="projections")
def queries_for_keys(x, weights):
    """Queries and keys are exchanged: the table of scores is turned round, so that what one token asks another is
    answered the other way. Look at the order of the names, and at the order in which `attend` takes them."""
    query, key, value = three_projections(x, weights)
    return key, query, value


@self_attention.mistake(part="projections")
def input_for_all_three(x, weights):
    """The heads are cut out of the input itself: the three projections are not used, so that query, key and value of a
    token are one and the same vector. Where do `w_q`, `w_k` and `w_v` come in?"""
    return x, x, x


@self_attention.mistake
def attention_of_its_own(x, weights, n_heads, attend):
    """`attend` is not used, or not alone: this is attention to all tokens, the later ones too. Which tokens a query may
    see is `attend`'s business. A model with this reads the token that it has to predict."""
    return self_attention.reference(x, weights, n_heads, scaled_dot_product_attention)


@self_attention.mistake
def softmax_whatever_is_given(x, weights, n_heads, attend):
    """You compute causal softmax attention yourself, whatever `attend` is. The project trains one model with softmax
    and one with linear attention: with this, both would be the same model. Where do you call `attend`?"""
    return self_attention.reference(x, weights, n_heads, causal_softmax_attention)


@self_attention.mistake
def scaled_twice(x, weights, n_heads, attend):
    """The scores are divided by √d_head twice: here, and again within `attend`. Each row of weights is too even. What
    `attend` gets are queries and keys as they come out of the projections."""
    return self_attention.reference(
        x, weights, n_heads, lambda query, key, value: attend(query / query.shape[-1] ** 0.5, key, value)
    )


@self_attention.mistake
def one_head(x, weights, n_heads, attend):
    """All features are compared in one table: there is one head, whatever `n_heads` says. Split before `attend`."""
    return self_attention.reference(x, weights, 1, attend)


@self_attention.property
def later_tokens_change_nothing(function, x, weights, n_heads, attend):
    """Change the last token, and the outputs before it stay: `attend` is causal."""
    changed = torch.cat([x[:, :-1], x[:, -1:] + 1], dim=1)
    return torch.allclose(
        function(changed, weights, n_heads, attend)[:, :-1], function(x, weights, n_heads, attend)[:, :-1], atol=1e-4
    )


# 3. block


def _blocked(draw, batch=2, seq=7, heads=3, d_head=5, d_ff=11):
    d_model = heads * d_head
    return draw(batch, seq, d_model), _weights(draw, d_model, d_ff), heads, causal_softmax_attention


def normalized(x, norm):
    weight, bias = norm
    return layer_norm(x, weight.shape, weight, bias)


def two_maps(x, weights):
    return linear(relu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])


def residual(x, change):
    return x + change


@exercise(
    inputs=_blocked,
    axes={"x": "batch seq d_model", "return": "batch seq d_model"},
    hints=(
        "A pre-norm block changes its input twice. Is each change added to the input, or to the normalized input?",
        "First `x + attention(norm1(x))`, then the same with `norm2` and the feed-forward layer, on the *new* x.",
        "`x = x + self_attention(layer_norm(x, *weights[…], 1e-5), …)`, then `return x + feed_forward(…)`",
    ),
)
def block(
    x,
    weights,
    n_heads,
    attend,
    *,
    first_norm=normalized,
    attention=self_attention.reference,
    first_residual=residual,
    second_norm=normalized,
    forward=two_maps,
    second_residual=residual,
):
    """One pre-norm block: attention, then the feed-forward layer, each added to what came in."""
    x = first_residual(x, attention(first_norm(x, weights["norm1"]), weights, n_heads, attend))
    return second_residual(x, forward(second_norm(x, weights["norm2"]), weights))


@block.probe
def _small_numbers(draw):
    """numbers so small that eps counts"""
    x, *others = _blocked(draw)
    return x / 300, *others


@block.probe
def _block_with_another_attention(draw):
    """an `attend` that is not softmax attention"""
    return *_blocked(draw)[:3], causal_linear_attention


block.example("one token", seq=1)


@block.equivalent
def with_pre_norm(x, weights, n_heads, attend):
    def pre_norm(x, sublayer, norm):
        return x + sublayer(norm(x))

    x = pre_norm(x, lambda y: by_reshape(y, weights, n_heads, attend), lambda y: normalized(y, weights["norm1"]))
    return pre_norm(x, lambda y: two_maps(y, weights), lambda y: normalized(y, weights["norm2"]))


@block.equivalent
def written_out(x, weights, n_heads, attend):
    def norm(x, weight, bias):
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias

    x = by_einsum(norm(x, *weights["norm1"]), weights, n_heads, attend) + x
    hidden = (norm(x, *weights["norm2"]) @ weights["w1"].T + weights["b1"]).clamp(min=0)
    return x + (hidden @ weights["w2"].T + weights["b2"])


@block.equivalent
def added_in_place(x, weights, n_heads, attend):
    result = as_one_projection(normalized(x, weights["norm1"]), weights, n_heads, attend)
    result += x
    return torch.add(result, two_maps(normalized(result, weights["norm2"]), weights))


@block.mistake(part="first_residual")
def no_first_residual(x, change):
    """What came in is not added after the attention: a token keeps only what the attention gathered, and its own vector
    is lost. Through many blocks the signal, and the gradient, dies away."""
    return change


@block.mistake(part="second_residual")
def no_second_residual(x, change):
    """What came in is not added after the feed-forward layer. Both changes of a block are added to what they began
    with."""
    return change


@block.mistake(part="first_norm")
def first_norm_left_out(x, norm):
    """The attention gets x as it is: `norm1` is not used. In a pre-norm block each sublayer reads a normalized copy."""
    return x


@block.mistake(part="second_norm")
def second_norm_left_out(x, norm):
    """The feed-forward layer gets x as it is: `norm2` is not used. In a pre-norm block each sublayer reads a normalized
    copy."""
    return x


@block.mistake(part="first_norm")
def first_norm_bare(x, norm):
    """The first normalization lacks its weight and bias: it stops at mean 0 and variance 1. The two numbers of each
    feature are learned and belong to it."""
    return layer_norm(x, x.shape[-1:])


@block.mistake(part="forward")
def no_activation(x, weights):
    """There is no activation between the two linear maps. Two linear maps in a row are one linear map: the layer could
    be replaced by a single matrix. What stands between them?"""
    return linear(linear(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"])


@block.mistake(part="forward")
def gelu_for_relu(x, weights):
    """The activation is GELU. GPT-2 has that; here, as in assignment 6, it is ReLU, which is zero for every
    negative number."""
    return linear(gelu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])


@block.mistake(part="forward")
def no_biases(x, weights):
    """The feed-forward layer lacks both biases: `b1` and `b2` are not used. Nothing complains, since a map without them
    has the same shape."""
    return linear(relu(linear(x, weights["w1"])), weights["w2"])


@block.mistake(part="forward")
def activated_at_the_end(x, weights):
    """The ReLU stands after the second map instead of between the two: the layer can only ever add to a feature, never
    take away, and the two maps are one. What must be between them?"""
    return relu(linear(linear(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"]))


@block.mistake
def norms_exchanged(x, weights, n_heads, attend):
    """The two norms have changed places: `norm2` stands before the attention and `norm1` before the feed-forward layer.
    With fresh weights you would not notice, since both begin alike."""
    return block.reference(x, {**weights, "norm1": weights["norm2"], "norm2": weights["norm1"]}, n_heads, attend)


@block.mistake
def forward_first(x, weights, n_heads, attend):
    """The feed-forward layer runs first and the attention second. Each has its own norm, and both are added, but a
    block gathers from other tokens before it works on what it gathered."""
    x = x + two_maps(normalized(x, weights["norm2"]), weights)
    return x + self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)


@block.mistake
def no_eps(x, weights, n_heads, attend):
    """Right for ordinary numbers, and wrong for very small ones: the eps in your norms is missing or is another one.
    1e-5 is added to the variance before the root is taken. Is it 1e-5, and in both norms?"""

    def norm(x, weight, bias):
        return (x - x.mean(-1, keepdim=True)) / x.var(-1, keepdim=True, correction=0).sqrt() * weight + bias

    x = x + self_attention.reference(norm(x, *weights["norm1"]), weights, n_heads, attend)
    return x + two_maps(norm(x, *weights["norm2"]), weights)


@block.mistake
def post_norm_block(x, weights, n_heads, attend):
    """This is a post-norm block: each sum is normalized, as in the original Transformer. The project's model is
    pre-norm: the norm stands before the sublayer, and the sum goes on as it is."""
    x = normalized(x + self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
    return normalized(x + two_maps(x, weights), weights["norm2"])


@block.mistake
def both_from_the_input(x, weights, n_heads, attend):
    """Both sublayers read what came into the block. The feed-forward layer must read the result of the attention: first
    `x = x + …`, then the second line with the new x. (Some models do it side by side; this one does not.) Look at which
    x your second line reads."""
    change = self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
    return x + change + two_maps(normalized(x, weights["norm2"]), weights)


@block.mistake
def added_to_the_normalized(x, weights, n_heads, attend):
    """The changes are added to the normalized x instead of to x itself. Then nothing passes a block untouched, and the
    way through which gradients reach the first layer is gone. Keep x, and normalize a copy."""
    first = normalized(x, weights["norm1"])
    x = first + self_attention.reference(first, weights, n_heads, attend)
    second = normalized(x, weights["norm2"])
    return second + two_maps(second, weights)


@block.mistake
def old_normalized_read_again(x, weights, n_heads, attend):
    """The feed-forward layer reads what the attention read: the normalized x from before it. After the attention there
    is a new x, and `norm2` makes a new normalized copy of that. Is a line missing, or a name used twice?"""
    normed = normalized(x, weights["norm1"])
    return x + self_attention.reference(normed, weights, n_heads, attend) + two_maps(normed, weights)


@block.mistake
def the_same_norm_twice(x, weights, n_heads, attend):
    """`norm1` is used in both places. Each sublayer has a norm of its own, with its own weight and bias: a line was
    copied and not changed."""
    return block.reference(x, {**weights, "norm2": weights["norm1"]}, n_heads, attend)


# 4. language_model


def _modelled(draw, batch=2, seq=7, vocab=11, heads=4, d_head=5, n_layers=3):
    d_model = heads * d_head
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    n_layers = min(n_layers, 4)  # in more, rounding grows until it shows in float32's gradients
    weights = {
        "table": draw(vocab, d_model),
        "blocks": [_weights(draw, d_model, d_model + 1) for _ in range(n_layers)],
        "norm": (1 + draw(d_model) / 4, draw(d_model) / 4),
    }
    return tokens, weights, heads, causal_softmax_attention


def all_blocks(x, blocks, n_heads, attend):
    for weights in blocks:
        x = block.reference(x, weights, n_heads, attend)
    return x


def tied_head(x, table):
    return linear(x, table)


@exercise(
    inputs=_modelled,
    axes={"tokens": "batch seq", "return": "batch seq vocab"},
    hints=(
        "The last vector of each token must become one number for each word of the vocabulary. Which matrix has a row "
        "for each word already?",
        "Embed, run through all blocks one after the other, normalize once more, multiply by the transposed table.",
        '`x = embed(…)`, `for … in weights["blocks"]: x = block(…)`, then `layer_norm(…) @ weights["table"].T`',
    ),
)
def language_model(
    tokens,
    weights,
    n_heads,
    attend,
    *,
    first=embed.reference,
    through=all_blocks,
    last_norm=normalized,
    head=tied_head,
):
    """A decoder-only language model: (batch, seq) to logits (batch, seq, vocab), with the table as its head."""
    x = through(first(tokens, weights["table"]), weights["blocks"], n_heads, attend)
    return head(last_norm(x, weights["norm"]), weights["table"])


@language_model.equivalent
def by_recursion(tokens, weights, n_heads, attend):
    def run(x, blocks):
        return run(with_pre_norm(x, blocks[0], n_heads, attend), blocks[1:]) if blocks else x

    x = normalized(run(by_index_select(tokens, weights["table"]), weights["blocks"]), weights["norm"])
    return torch.einsum("bsd,vd->bsv", x, weights["table"])


@language_model.equivalent
def in_one_loop(tokens, weights, n_heads, attend):
    x = by_one_hot(tokens, weights["table"])
    for layer in weights["blocks"]:
        x = written_out(x, layer, n_heads, attend)
    weight, bias = weights["norm"]
    return layer_norm(x, (x.shape[-1],)) * weight @ weights["table"].T + bias @ weights["table"].T


@language_model.equivalent
def by_reduce(tokens, weights, n_heads, attend):
    x = token_by_token(tokens, weights["table"])
    x = reduce(lambda x, layer: added_in_place(x, layer, n_heads, attend), weights["blocks"], x)
    return normalized(x, weights["norm"]) @ weights["table"].mT


@language_model.probe
def _model_with_another_attention(draw):
    """an `attend` that is not softmax attention"""
    return *_modelled(draw)[:3], causal_linear_attention


language_model.example("one block", n_layers=1)
language_model.example("one token", seq=1)


@language_model.mistake(part="last_norm")
def no_last_norm(x, norm):
    """The last normalization is missing. In a pre-norm model nothing has normalized the sum that comes out of the last
    block: it has grown with every block, and the logits with it."""
    return x


@language_model.mistake(part="head")
def softmax_at_the_end(x, table):
    """You return probabilities. Logits are asked for: `cross_entropy` takes the softmax itself, and a second softmax
    flattens everything so much that training hardly moves."""
    return linear(x, table).softmax(-1)


@language_model.mistake(part="head")
def no_head(x, table):
    """The head is missing: you return the tokens' vectors, (batch, seq, d_model). Each must be compared with every row
    of the table."""
    return x


@language_model.mistake(part="head")
def log_probabilities(x, table):
    """You return log-probabilities. The loss does not mind, because their softmax is the same; but the head asked for
    is the plain product with the table, and whoever adds or scales logits afterwards gets something else."""
    return log_softmax(linear(x, table), dim=-1)


@language_model.mistake(part="through")
def first_block_only(x, blocks, n_heads, attend):
    """Only one block has run: the first. A `return` inside the loop does that, or an index that stays 0."""
    return all_blocks(x, blocks[:1], n_heads, attend)


@language_model.mistake(part="through")
def last_block_only(x, blocks, n_heads, attend):
    """Only the last block has an effect: each reads the embedded tokens, and its result is overwritten by the next. The
    result of one block is the input of the next."""
    return all_blocks(x, blocks[-1:], n_heads, attend)


@language_model.mistake(part="through")
def blocks_backwards(x, blocks, n_heads, attend):
    """The blocks run in the wrong order, the last one first. Each has learned to read what the one before it writes, so
    the list must be gone through as it stands."""
    return all_blocks(x, blocks[::-1], n_heads, attend)


@language_model.mistake(part="through")
def no_blocks(x, blocks, n_heads, attend):
    """No block has run: each token predicts from itself and its position alone, and never looks at another."""
    return x


@language_model.mistake(part="first")
def embedded_without_positions(tokens, table):
    """The positions are missing: the tokens go in as rows of the table alone. Is your `embed` used, or
    `table[tokens]`?"""
    return table[tokens]


@language_model.mistake
def attention_to_everything(tokens, weights, n_heads, attend):
    """The blocks attend to all tokens, the later ones too: `attend` is not what reaches the attention. A model with
    this reads the token that it has to predict, and its loss falls to nothing."""
    return language_model.reference(tokens, weights, n_heads, scaled_dot_product_attention)


@language_model.mistake
def softmax_in_every_model(tokens, weights, n_heads, attend):
    """The model attends with softmax whatever `attend` is. The project trains one model with softmax and one with
    linear attention: with this, both would be the same model. Is the `attend` that came in handed on to each block?"""
    return language_model.reference(tokens, weights, n_heads, causal_softmax_attention)


@language_model.mistake(part="through")
def normalized_after_every_block(x, blocks, n_heads, attend):
    """Something is normalized after every block, and not at the end alone. Then nothing passes through the model
    untouched: a pre-norm block leaves its sum as it is, and the model's own norm stands once, after the loop."""
    for weights in blocks:
        x = block.reference(x, weights, n_heads, attend)
        x = layer_norm(x, x.shape[-1:])
    return x


@language_model.mistake(part="head")
def last_position_only(x, table):
    """You return the logits of the last position alone. That is enough to generate one token; in training every
    position predicts its next one, and all of them are asked for."""
    return linear(x[:, -1], table)


@language_model.mistake
def norm_before_the_blocks(tokens, weights, n_heads, attend):
    """The model's own norm stands before the blocks instead of after them. What leaves the last block must be
    normalized before the head reads it."""
    x = normalized(embed.reference(tokens, weights["table"]), weights["norm"])
    return tied_head(all_blocks(x, weights["blocks"], n_heads, attend), weights["table"])


@language_model.property
def the_future_is_hidden(function, tokens, weights, n_heads, attend):
    """Change the last token, and the logits before it stay."""
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % len(weights["table"])
    one, other = (function(t, weights, n_heads, attend)[:, :-1] for t in (tokens, changed))
    return torch.allclose(one, other, atol=1e-4)


# 5. next_token_loss


def _predicted(draw, batch=2, seq=7, vocab=5):
    return draw(batch, seq, vocab), torch.randint(vocab, (batch, seq), generator=draw.generator)


def all_but_the_last(logits):
    return logits[:, :-1]


def all_but_the_first(tokens):
    return tokens[:, 1:]


def mean_cross_entropy(logits, targets):
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


@exercise(
    inputs=_predicted,
    axes={"logits": "batch seq vocab", "tokens": "batch seq", "return": ""},
    hints=(
        "The logits at position 3 are a guess at which token? And which position has nothing to be compared with?",
        "Leave out the last logits and the first token: then guess and answer stand at the same place. `cross_entropy` "
        "wants the classes on the second axis, so flatten batch and seq into one.",
        "`cross_entropy(logits[:, …].flatten(0, 1), tokens[:, …].flatten())`",
    ),
)
def next_token_loss(logits, tokens, *, guesses=all_but_the_last, answers=all_but_the_first, loss=mean_cross_entropy):
    """The mean cross-entropy of each position's logits against the token that comes next: one number."""
    return loss(guesses(logits), answers(tokens))


@next_token_loss.equivalent
def by_transposing(logits, tokens):
    return cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:])


@next_token_loss.equivalent
def by_gather(logits, tokens):
    chances = logits.log_softmax(-1)[:, :-1]
    return -chances.gather(-1, tokens[:, 1:, None]).mean()


@next_token_loss.equivalent
def by_loops(logits, tokens):
    batch, seq, _ = logits.shape
    losses = [logits[b, t].logsumexp(0) - logits[b, t, tokens[b, t + 1]] for b in range(batch) for t in range(seq - 1)]
    return torch.stack(losses).mean()


next_token_loss.example("two tokens", seq=2)


@next_token_loss.probe
def _large_logits(draw):
    """logits in the hundreds"""
    logits, tokens = _predicted(draw)
    return 200 * logits, tokens


@next_token_loss.mistake
def not_shifted(logits, tokens):
    """Each position is compared with its own token instead of the next. The model sees that token, so the loss falls to
    zero at once, and generation repeats the last token for ever. Guess and answer must be shifted by one."""
    return mean_cross_entropy(logits, tokens)


@next_token_loss.mistake
def shifted_backwards(logits, tokens):
    """The shift goes the wrong way: each position is compared with the token *before* it, which it can see. The loss
    falls quickly and nothing is learned. Which of the two must lose its first entry?"""
    return mean_cross_entropy(logits[:, 1:], tokens[:, :-1])


@next_token_loss.mistake
def both_without_the_first(logits, tokens):
    """Logits and tokens have both lost their *first* entry, so each position is still compared with its own token. To
    shift one against the other, they must be cut at different ends."""
    return mean_cross_entropy(logits[:, 1:], tokens[:, 1:])


@next_token_loss.mistake
def both_without_the_last(logits, tokens):
    """Logits and tokens have both lost their *last* entry, so each position is still compared with its own token. To
    shift one against the other, they must be cut at different ends."""
    return mean_cross_entropy(logits[:, :-1], tokens[:, :-1])


@next_token_loss.mistake
def rolled_round(logits, tokens):
    """The tokens are rolled round: the last position is compared with the *first* token of the same sentence. It has no
    next token, and must be left out."""
    return mean_cross_entropy(logits, tokens.roll(-1, dims=1))


@next_token_loss.mistake(part="loss")
def summed(logits, targets):
    """The losses are added up instead of averaged: twice the batch gives twice the loss, and gradients twice as large.
    The mean is asked for."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


@next_token_loss.mistake(part="loss")
def one_for_each(logits, targets):
    """You return one loss for each position. One number is asked for, their mean: `backward` needs it so."""
    return cross_entropy(logits.transpose(1, 2), targets, reduction="none")


@next_token_loss.mistake(part="loss")
def softmax_first(logits, targets):
    """A softmax was taken before `cross_entropy`, which takes one itself: with probabilities between 0 and 1 the second
    softmax is nearly even, the loss can never come near zero, and training crawls. Give it the logits."""
    return mean_cross_entropy(logits.softmax(-1), targets)


@next_token_loss.mistake(part="loss")
def the_sign_forgotten(logits, targets):
    """The loss is negative: it is the mean logarithm of the right tokens' chances, without the minus. Minimizing it
    makes the right tokens as unlikely as possible."""
    return -mean_cross_entropy(logits, targets)


@next_token_loss.mistake(part="loss")
def chance_for_loss(logits, targets):
    """This is minus the mean chance of the right tokens: the logarithm is missing. Its gradient is tiny where the model
    is badly wrong, which is where it is needed."""
    return -logits.softmax(-1).gather(-1, targets[..., None]).mean()


@next_token_loss.mistake
def batch_and_vocabulary_confused(logits, tokens):
    """The logits were reshaped instead of transposed, or along the wrong axis: the numbers that belong to one position
    are torn apart. Shape and dtype are right, so nothing complains. Flatten `batch` and `seq`, and leave `vocab`
    whole."""
    shifted = logits[:, :-1]
    return cross_entropy(shifted.reshape(len(shifted), shifted.shape[2], -1), tokens[:, 1:])


@next_token_loss.property
def even_guesses(function, logits, tokens):
    """Logits that are all equal give log(vocab), the loss of guessing."""
    loss = function(torch.zeros_like(logits), tokens)
    return loss.ndim == 0 and math.isclose(float(loss), math.log(logits.shape[-1]), rel_tol=1e-4)
