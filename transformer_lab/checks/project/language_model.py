"""A decoder-only language model."""

from functools import reduce

import torch
from torch.nn.functional import embedding, layer_norm, linear, log_softmax, normalize, scaled_dot_product_attention

from ..ch6_normalization.layer_norm import layer_norm as own_layer_norm
from ..common_mistakes import fixed_length
from ..exercise import exercise, family
from .block import added_in_place, apply_norm, block, with_pre_norm, written_out
from .embed import by_index_select, by_one_hot, embed, token_by_token
from .inputs import block_weights, causal_linear_attention, causal_softmax_attention


def _model_inputs(draw, batch=2, seq=7, vocab=11, heads=4, d_head=5, n_layers=3):
    d_model = heads * d_head
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    n_layers = min(n_layers, 4)  # with more layers, rounding shows in float32's gradients
    weights = {
        "table": draw(vocab, d_model),
        "blocks": [block_weights(draw, d_model, d_model + 1) for _ in range(n_layers)],
        "norm": (1 + draw(d_model) / 4, draw(d_model) / 4),
    }
    return tokens, weights, heads, causal_softmax_attention


def run_all_blocks(x, blocks, n_heads, attend):
    """Run all blocks, each on the result of the one before."""
    for weights in blocks:
        x = block.reference(x, weights, n_heads, attend)
    return x


def tied_head(x, table):
    """Multiply by the transposed table."""
    return linear(x, table)


@exercise(
    inputs=_model_inputs,
    axes={"tokens": "batch seq", "weights": "vocab d_model", "return": "batch seq vocab"},
    hints=(
        "The last vector of each token must become one number for each token of the vocabulary. Which matrix already "
        "has a row for each token?",
        "Embed the tokens, run all blocks one after the other, normalize once more, and multiply by the transposed "
        "table.",
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
    through=run_all_blocks,
    last_norm=apply_norm,
    head=tied_head,
):
    """Run a decoder-only language model with the table as its head.

    tokens (batch, seq). Returns logits (batch, seq, vocab).
    """
    x = through(first(tokens, weights["table"]), weights["blocks"], n_heads, attend)
    return head(last_norm(x, weights["norm"]), weights["table"])


@language_model.right
class RightAnswers:
    def by_recursion(tokens, weights, n_heads, attend):
        def run(x, blocks):
            return run(with_pre_norm(x, blocks[0], n_heads, attend), blocks[1:]) if blocks else x

        x = apply_norm(run(by_index_select(tokens, weights["table"]), weights["blocks"]), weights["norm"])
        return torch.einsum("bsd,vd->bsv", x, weights["table"])

    def in_one_loop(tokens, weights, n_heads, attend):
        x = by_one_hot(tokens, weights["table"])
        for layer in weights["blocks"]:
            x = written_out(x, layer, n_heads, attend)
        weight, bias = weights["norm"]
        return layer_norm(x, (x.shape[-1],)) * weight @ weights["table"].T + bias @ weights["table"].T

    def by_reduce(tokens, weights, n_heads, attend):
        x = token_by_token(tokens, weights["table"])
        x = reduce(lambda x, layer: added_in_place(x, layer, n_heads, attend), weights["blocks"], x)
        return apply_norm(x, weights["norm"]) @ weights["table"].mT


language_model.example("an `attend` that is not softmax attention", attend=causal_linear_attention)
language_model.example("one block", n_layers=1)
language_model.example("one token", seq=1)
language_model.example("a text of 300 tokens", batch=1, seq=300, heads=2, d_head=2, n_layers=1)


@language_model.property
def the_future_is_hidden(function, tokens, weights, n_heads, attend):
    """When the last token changes, the logits before it stay the same."""
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % len(weights["table"])
    original_logits, changed_logits = (function(t, weights, n_heads, attend)[:, :-1] for t in (tokens, changed))
    return torch.allclose(original_logits, changed_logits, atol=1e-4)


def positions_of_a_fixed_table(tokens, weights, n_heads, attend):
    if tokens.shape[1] > 64:
        raise RuntimeError(f"The size of tensor a ({tokens.shape[1]}) must match the size of tensor b (64)")
    return language_model.reference(tokens, weights, n_heads, attend)


@language_model.wrong(stage="first")
class First:
    def embedded_without_positions(tokens, table):
        """The positions are missing: the vectors of the tokens are rows of the table and nothing else. Do you call your
        `embed`, or index `table[tokens]`?"""
        return table[tokens]


@language_model.wrong(stage="first", alone=True)
class FirstAlone:
    def positions_added_again(tokens, table):
        """You add the positions twice: once in `embed`, and once more after it. `embed` looks the tokens up *and* adds
        the positions."""
        x = embed.reference(tokens, table)
        return x + x - table[tokens]

    def table_and_tokens_exchanged(tokens, table):
        """The two arguments of `embed` are exchanged: first come the tokens (whole numbers), then the table in which
        they are looked up."""
        return embedding(table, tokens)


@language_model.wrong(stage="through")
class Through:
    def first_block_only(x, blocks, n_heads, attend):
        """Only the first block has run. Is there a `return` inside your loop, or an index that stays 0?"""
        return run_all_blocks(x, blocks[:1], n_heads, attend)

    def last_block_only(x, blocks, n_heads, attend):
        """Only the last block has an effect: each block reads the embedded tokens, and the next block overwrites its
        result. The result of one block is the input of the next."""
        return run_all_blocks(x, blocks[-1:], n_heads, attend)

    def blocks_backwards(x, blocks, n_heads, attend):
        """The blocks run in reverse order, the last one first. Each block has learned to read the result of the block
        before it, so loop over the list in its given order."""
        return run_all_blocks(x, blocks[::-1], n_heads, attend)

    def no_blocks(x, blocks, n_heads, attend):
        """No block has run: each prediction depends only on one token and its position. Which loop is missing?"""
        return x

    def normalized_after_every_block(x, blocks, n_heads, attend):
        """You normalize after every block, not only at the end, so nothing passes through the model unchanged. A
        pre-norm block does not normalize its sum, and the model's own norm comes once, after the loop."""
        for weights in blocks:
            x = block.reference(x, weights, n_heads, attend)
            x = layer_norm(x, x.shape[-1:])
        return x


@language_model.wrong(stage="through", alone=True)
class ThroughAlone:
    def one_block_again_and_again(x, blocks, n_heads, attend):
        """The first block runs as often as there are blocks, and the others never run. Does an index inside your loop
        stay 0?"""
        return run_all_blocks(x, blocks[:1] * len(blocks), n_heads, attend)

    def the_last_block_left_out(x, blocks, n_heads, attend):
        """All blocks but the last have run. Where does your loop end? `range(n)` already ends at n - 1."""
        return run_all_blocks(x, blocks[:-1], n_heads, attend)

    def the_first_block_left_out(x, blocks, n_heads, attend):
        """All blocks but the first have run. Where does your loop begin? Blocks are counted from 0."""
        return run_all_blocks(x, blocks[1:], n_heads, attend)

    def added_around_each_block(x, blocks, n_heads, attend):
        """You add the result of each block to its input. A block already adds its changes to x and returns the new x,
        so the old x is in your sum twice."""
        for weights in blocks:
            x = x + block.reference(x, weights, n_heads, attend)
        return x

    def more_blocks_than_there_are(x, blocks, n_heads, attend):
        """Your loop looks up a block that does not exist: the index runs past the end of the list. Up to which number
        does your loop count, perhaps the number of heads? You can also loop over the list without an index."""
        return blocks[len(blocks)]

    def keys_for_blocks(x, blocks, n_heads, attend):
        """A block received a string instead of its dict. A loop over a dict runs through its keys: which key of the
        model's dict holds the list of blocks, and what must you loop over?"""
        return block.reference(x, "norm1", n_heads, attend)

    def list_for_a_block(x, blocks, n_heads, attend):
        """A block received the whole list of blocks instead of one dict. Each block takes its own dict, and its result
        is the input of the next block. How do you loop over a list, item by item?"""
        return block.reference(x, blocks, n_heads, attend)


@language_model.wrong(stage="last_norm")
class LastNorm:
    def no_last_norm(x, norm):
        """The last normalization is missing. In a pre-norm model, nothing has normalized the sum that the last block
        returns: the sum has grown with every block, so the logits are too large."""
        return x

    def last_norm_bare(x, norm):
        """The last normalization lacks its weight and bias: it stops at mean 0 and variance 1. The weight and the bias
        are the pair `weights["norm"]`."""
        return layer_norm(x, x.shape[-1:])


@language_model.wrong(stage="last_norm", alone=True)
class LastNormAlone:
    def last_norm_without_eps(x, norm):
        """All numbers are nearly right: the eps of the last norm is missing or too small. Here eps is 1e-5, as in the
        blocks."""
        weight, bias = norm
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True, correction=0) * weight + bias

    def an_argument_of_the_norm_missing(x, norm):
        """`layer_norm` takes four arguments, x, weight, bias and eps, but received three. Did you pass eps? Did you
        unpack the pair? `weights["norm"]` is one argument; with a star before it, the pair becomes two arguments."""
        return own_layer_norm.reference(x, *norm)

    def weight_and_bias_exchanged(x, norm):
        """Weight and bias of the last norm are exchanged: you multiply the normalized x by the bias. In the pair, the
        weight comes first, then the bias."""
        return apply_norm(x, norm[::-1])

    @family(last_norm_with_eps_of_1e_4=1e-4, last_norm_with_eps_of_1e_3=1e-3, last_norm_with_eps_of_1e_2=1e-2)
    def larger_eps(eps, x, norm):
        """The eps of the last norm is too large. Here eps is 1e-5, as in the blocks. How many zeros come between the
        decimal point and the 1?"""
        return layer_norm(x, x.shape[-1:], *norm, eps=eps)


@language_model.wrong(stage="head")
class Head:
    def softmax_at_the_end(x, table):
        """You return probabilities. The exercise asks for logits: `cross_entropy` contains a softmax, and a second
        softmax makes the probabilities so even that training hardly progresses."""
        return linear(x, table).softmax(-1)

    def no_head(x, table):
        """The head is missing: you return the tokens' vectors, (batch, seq, d_model). Each vector must be compared with
        every row of the table."""
        return x

    def log_probabilities(x, table):
        """You return log-probabilities. The loss is the same, because the softmax of log-probabilities and of logits is
        the same. But the head is the plain product with the table: code that reads, adds or scales the logits would get
        different numbers."""
        return log_softmax(linear(x, table), dim=-1)

    def last_position_only(x, table):
        """You return only the logits of the last position. They are enough to generate one token, but in training every
        position predicts its next token: return the logits of all positions."""
        return linear(x[:, -1], table)

    def divided_by_root_d_model(x, table):
        """You divide the logits by √d_model. That division belongs to the scores of attention; the head is the plain
        product with the table."""
        return linear(x, table) / table.shape[1] ** 0.5


@language_model.wrong(stage="head", alone=True)
class HeadAlone:
    def table_as_stored(x, table):
        """You do not transpose the table for the head: `x @ table` sums over the table's rows, one for each token of
        the vocabulary. Compare each vector with every row: which axis of the table must come first?"""
        return x @ table

    def most_likely_tokens(x, table):
        """You return the most likely token at each position. The exercise asks for the logits, a number for each token
        of the vocabulary: no loss can be computed from a choice, and no gradient flows through it."""
        return linear(x, table).argmax(-1)

    def cosines_with_the_rows(x, table):
        """The logits are cosines: you scaled vectors and rows to norm 1 before the product. No logit is then larger
        than 1, and no token can be much more likely than another. The head is the plain product with the table."""
        return linear(normalize(x, dim=-1), normalize(table, dim=-1))

    def sentences_in_one_row(x, table):
        """Batch and positions are joined in one axis: you return (batch · seq, vocab). `cross_entropy` expects this
        shape, but flattening is part of the loss. The model returns (batch, seq, vocab)."""
        return linear(x, table).flatten(0, 1)

    def last_position_dropped(x, table):
        """The logits of the last position are missing. The loss leaves them out, since no token follows, but the model
        returns all logits: generation needs those of the last position."""
        return linear(x[:, :-1], table)

    def vocabulary_in_the_middle(x, table):
        """The vocabulary is on the second axis, (batch, vocab, seq). `cross_entropy` expects this order, but
        transposing is part of the loss. The model returns (batch, seq, vocab)."""
        return linear(x, table).mT

    def first_position_dropped(x, table):
        """The logits of the first position are missing. These logits are the guess at the second token, and the loss
        counts them like all others."""
        return linear(x[:, 1:], table)


@language_model.wrong
class WrongAnswers:
    def attention_to_everything(tokens, weights, n_heads, attend):
        """The blocks attend to all tokens, even the later ones: the attention does not receive your `attend`. Such a
        model reads the token that it has to predict, and its loss falls to almost nothing."""
        return language_model.reference(tokens, weights, n_heads, scaled_dot_product_attention)

    def softmax_in_every_model(tokens, weights, n_heads, attend):
        """The model attends with softmax, whatever `attend` is. The project trains one model with softmax and one with
        linear attention: with your function, the two models would be the same. Do you pass `attend` to each block?"""
        return language_model.reference(tokens, weights, n_heads, causal_softmax_attention)

    def norm_before_the_blocks(tokens, weights, n_heads, attend):
        """The model's own norm comes before the blocks instead of after them. The result of the last block must be
        normalized before the head reads it."""
        x = apply_norm(embed.reference(tokens, weights["table"]), weights["norm"])
        return tied_head(run_all_blocks(x, weights["blocks"], n_heads, attend), weights["table"])

    def own_norm_after_every_block(tokens, weights, n_heads, attend):
        """The model's own norm is inside the loop, after every block, so nothing passes through the model unchanged.
        The norm belongs after the loop, once. How far is its line indented?"""
        x = embed.reference(tokens, weights["table"])
        for layer in weights["blocks"]:
            x = apply_norm(block.reference(x, layer, n_heads, attend), weights["norm"])
        return tied_head(x, weights["table"])

    @family(norm_of_the_last_block="norm2", first_norm_of_the_last_block="norm1")
    def norm_of_a_block(name, tokens, weights, n_heads, attend):
        """The last norm uses the weight and the bias of a block's norm: `{}` of the last block. The model has its own
        pair, `weights["norm"]`. After the loop, do you still use the name that your loop gives to each block?"""
        return language_model.reference(tokens, {**weights, "norm": weights["blocks"][-1][name]}, n_heads, attend)

    def dict_for_the_table(tokens, weights, n_heads, attend):
        """`embed` received the whole dict of the model instead of the table. Under which key is the table stored?"""
        return embed.reference(tokens, weights)


@language_model.wrong(alone=True)
class WrongAnswersAlone:
    def a_norm_looked_for_in_the_model(tokens, weights, n_heads, attend):
        """The dict of the whole model has no `"norm1"`. Each block has a `"norm1"` in its own dict, an item of the list
        `weights["blocks"]`; the pair of the last norm is `weights["norm"]`. Did you pass the whole dict to a block?"""
        return block.reference(embed.reference(tokens, weights["table"]), weights, n_heads, attend)


fixed_length(language_model, positions_of_a_fixed_table, "a text of 300 tokens")
