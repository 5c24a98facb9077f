"""A decoder-only language model."""

from functools import reduce

import torch
from torch.nn.functional import embedding, layer_norm, linear, log_softmax, normalize, scaled_dot_product_attention

from ..ch6_normalization.layer_norm import layer_norm as own_layer_norm
from ..common_mistakes import fixed_length
from ..exercise import exercise, family
from .block import added_in_place, block, normalized, with_pre_norm, written_out
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


def all_blocks(x, blocks, n_heads, attend):
    """Run all blocks, each on what the one before returns."""
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


@language_model.right
class RightAnswers:
    def by_recursion(tokens, weights, n_heads, attend):
        def run(x, blocks):
            return run(with_pre_norm(x, blocks[0], n_heads, attend), blocks[1:]) if blocks else x

        x = normalized(run(by_index_select(tokens, weights["table"]), weights["blocks"]), weights["norm"])
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
        return normalized(x, weights["norm"]) @ weights["table"].mT


language_model.example("an `attend` that is not softmax attention", attend=causal_linear_attention)
language_model.example("one block", n_layers=1)
language_model.example("one token", seq=1)
language_model.example("a text of 300 tokens", batch=1, seq=300, heads=2, d_head=2, n_layers=1)


@language_model.property
def the_future_is_hidden(function, tokens, weights, n_heads, attend):
    """Change the last token, and the logits before it stay."""
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % len(weights["table"])
    one, other = (function(t, weights, n_heads, attend)[:, :-1] for t in (tokens, changed))
    return torch.allclose(one, other, atol=1e-4)


def positions_of_a_fixed_table(tokens, weights, n_heads, attend):
    if tokens.shape[1] > 64:
        raise RuntimeError(f"The size of tensor a ({tokens.shape[1]}) must match the size of tensor b (64)")
    return language_model.reference(tokens, weights, n_heads, attend)


@language_model.wrong(stage="first")
class First:
    def embedded_without_positions(tokens, table):
        """The positions are missing: the tokens go in as rows of the table alone. Is your `embed` used, or
        `table[tokens]`?"""
        return table[tokens]


@language_model.wrong(stage="first", alone=True)
class FirstAlone:
    def positions_added_again(tokens, table):
        """The positions are added twice: once by `embed`, and once more. `embed` looks the tokens up *and* adds the
        positions, so that nothing is left to add."""
        x = embed.reference(tokens, table)
        return x + x - table[tokens]

    def table_and_tokens_exchanged(tokens, table):
        """`embed` got its two arguments in the wrong order: it takes the tokens first, whole numbers, and then the
        table in which they are looked up."""
        return embedding(table, tokens)


@language_model.wrong(stage="through")
class Through:
    def first_block_only(x, blocks, n_heads, attend):
        """Only one block has run: the first. A `return` inside the loop does that, or an index that stays 0."""
        return all_blocks(x, blocks[:1], n_heads, attend)

    def last_block_only(x, blocks, n_heads, attend):
        """Only the last block has an effect: each reads the embedded tokens, and its result is overwritten by the next.
        The result of one block is the input of the next."""
        return all_blocks(x, blocks[-1:], n_heads, attend)

    def blocks_backwards(x, blocks, n_heads, attend):
        """The blocks run in the wrong order, the last one first. Each has learned to read what the one before it
        writes, so the list must be gone through as it stands."""
        return all_blocks(x, blocks[::-1], n_heads, attend)

    def no_blocks(x, blocks, n_heads, attend):
        """No block has run: each token predicts from itself and its position alone, and never looks at another."""
        return x

    def normalized_after_every_block(x, blocks, n_heads, attend):
        """Something is normalized after every block, and not at the end alone. Then nothing passes through the model
        untouched: a pre-norm block leaves its sum as it is, and the model's own norm stands once, after the loop."""
        for weights in blocks:
            x = block.reference(x, weights, n_heads, attend)
            x = layer_norm(x, x.shape[-1:])
        return x


@language_model.wrong(stage="through", alone=True)
class ThroughAlone:
    def one_block_again_and_again(x, blocks, n_heads, attend):
        """The first block runs as often as there are blocks, and the others not at all. Does an index inside your loop
        stay 0?"""
        return all_blocks(x, blocks[:1] * len(blocks), n_heads, attend)

    def the_last_block_left_out(x, blocks, n_heads, attend):
        """All blocks have run but the last. Where does your loop end? `range(n)` ends at n - 1 already."""
        return all_blocks(x, blocks[:-1], n_heads, attend)

    def the_first_block_left_out(x, blocks, n_heads, attend):
        """All blocks have run but the first. Where does your loop begin? Blocks are counted from 0."""
        return all_blocks(x, blocks[1:], n_heads, attend)

    def added_around_each_block(x, blocks, n_heads, attend):
        """The result of each block is added to what went into it. A block adds its changes itself: what it returns is
        the new x, so that now the old one is in it twice."""
        for weights in blocks:
            x = x + block.reference(x, weights, n_heads, attend)
        return x

    def more_blocks_than_there_are(x, blocks, n_heads, attend):
        """The loop asks for a block that is not there: the index has run past the end of the list. What does it count
        up to, the heads perhaps? The list can also be gone through without an index."""
        return blocks[len(blocks)]

    def keys_for_blocks(x, blocks, n_heads, attend):
        """A block got a string where its dict belongs. A loop over a dict goes through its keys: which key of the
        model's dict holds the list of the blocks, and what must the loop go through?"""
        return block.reference(x, "norm1", n_heads, attend)

    def list_for_a_block(x, blocks, n_heads, attend):
        """A block got the whole list of the blocks where the dict of one belongs. Each block takes its own dict, and
        gives what it returns to the next: what goes through a list item by item?"""
        return block.reference(x, blocks, n_heads, attend)


@language_model.wrong(stage="last_norm")
class LastNorm:
    def no_last_norm(x, norm):
        """The last normalization is missing. In a pre-norm model nothing has normalized the sum that comes out of the
        last block: it has grown with every block, and the logits with it."""
        return x

    def last_norm_bare(x, norm):
        """The last normalization lacks its weight and bias: it stops at mean 0 and variance 1. The pair
        `weights["norm"]` belongs to it."""
        return layer_norm(x, x.shape[-1:])


@language_model.wrong(stage="last_norm", alone=True)
class LastNormAlone:
    def last_norm_without_eps(x, norm):
        """All numbers are nearly right: the eps of the last norm is missing or smaller than it should be. Here it is
        1e-5, as in the blocks."""
        weight, bias = norm
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True, correction=0) * weight + bias

    def an_argument_of_the_norm_missing(x, norm):
        """`layer_norm` takes four arguments, x, weight, bias and eps, and got three. Is the eps there? And is the pair
        taken apart? `weights["norm"]` is one argument; with a star before it, two."""
        return own_layer_norm.reference(x, *norm)

    def weight_and_bias_exchanged(x, norm):
        """Weight and bias of the last norm are exchanged: the normalized x was multiplied by the bias. The pair holds
        the weight first, and then the bias."""
        return normalized(x, norm[::-1])

    @family(last_norm_with_eps_of_1e_4=1e-4, last_norm_with_eps_of_1e_3=1e-3, last_norm_with_eps_of_1e_2=1e-2)
    def larger_eps(eps, x, norm):
        """The eps of the last norm is larger than it should be. Here it is 1e-5, as in the blocks. How many zeros stand
        between the point and the 1?"""
        return layer_norm(x, x.shape[-1:], *norm, eps=eps)


@language_model.wrong(stage="head")
class Head:
    def softmax_at_the_end(x, table):
        """You return probabilities. Logits are asked for: `cross_entropy` takes the softmax itself, and a second
        softmax flattens everything so much that training hardly moves."""
        return linear(x, table).softmax(-1)

    def no_head(x, table):
        """The head is missing: you return the tokens' vectors, (batch, seq, d_model). Each must be compared with every
        row of the table."""
        return x

    def log_probabilities(x, table):
        """You return log-probabilities. The loss does not mind, because their softmax is the same; but the head asked
        for is the plain product with the table, and whoever adds or scales logits afterwards gets something else."""
        return log_softmax(linear(x, table), dim=-1)

    def last_position_only(x, table):
        """You return the logits of the last position alone. That is enough to generate one token; in training every
        position predicts its next one, and all of them are asked for."""
        return linear(x[:, -1], table)

    def divided_by_root_d_model(x, table):
        """The logits are divided by √d_model. That belongs to the scores of attention; the head is the plain product
        with the table."""
        return linear(x, table) / table.shape[1] ** 0.5


@language_model.wrong(stage="head", alone=True)
class HeadAlone:
    def table_as_stored(x, table):
        """The table is not transposed for the head: it has a row for each token of the vocabulary, and a product with
        it as it is sums over these rows. Compare each vector with every row: which axis must come first?"""
        return x @ table

    def most_likely_tokens(x, table):
        """You return the most likely token at each position. The logits themselves are asked for, a number for each
        token of the vocabulary: no loss can be computed from a choice, and no gradient flows through it."""
        return linear(x, table).argmax(-1)

    def cosines_with_the_rows(x, table):
        """The logits are cosines: vectors and rows were brought to length 1 before the product. Nothing larger than 1
        comes out then, and no token can be much more likely than another. The head is the plain product with the
        table."""
        return linear(normalize(x, dim=-1), normalize(table, dim=-1))

    def sentences_in_one_row(x, table):
        """Batch and positions stand in one axis: you return (batch · seq, vocab). `cross_entropy` likes it so, but that
        is the loss's part. The model returns (batch, seq, vocab)."""
        return linear(x, table).flatten(0, 1)

    def last_position_dropped(x, table):
        """The logits of the last position are missing. The loss leaves them out, since nothing follows there; the model
        returns them all, and whoever writes on needs just these."""
        return linear(x[:, :-1], table)

    def vocabulary_in_the_middle(x, table):
        """The vocabulary stands on the second axis, (batch, vocab, seq). `cross_entropy` wants it there, but that is
        the loss's part. The model returns (batch, seq, vocab)."""
        return linear(x, table).mT

    def first_position_dropped(x, table):
        """The logits of the first position are missing. They are a guess at the second token, and count like all
        others."""
        return linear(x[:, 1:], table)


@language_model.wrong
class WrongAnswers:
    def attention_to_everything(tokens, weights, n_heads, attend):
        """The blocks attend to all tokens, the later ones too: `attend` is not what reaches the attention. A model with
        this reads the token that it has to predict, and its loss falls to nothing."""
        return language_model.reference(tokens, weights, n_heads, scaled_dot_product_attention)

    def softmax_in_every_model(tokens, weights, n_heads, attend):
        """The model attends with softmax whatever `attend` is. The project trains one model with softmax and one with
        linear attention: with this, both would be the same model. Is the `attend` that came in handed on to each
        block?"""
        return language_model.reference(tokens, weights, n_heads, causal_softmax_attention)

    def norm_before_the_blocks(tokens, weights, n_heads, attend):
        """The model's own norm stands before the blocks instead of after them. What leaves the last block must be
        normalized before the head reads it."""
        x = normalized(embed.reference(tokens, weights["table"]), weights["norm"])
        return tied_head(all_blocks(x, weights["blocks"], n_heads, attend), weights["table"])

    def own_norm_after_every_block(tokens, weights, n_heads, attend):
        """The model's own norm is inside the loop, after every block. Then nothing passes through the model
        untouched: it stands once, after the loop. Look at how far the line is indented."""
        x = embed.reference(tokens, weights["table"])
        for layer in weights["blocks"]:
            x = normalized(block.reference(x, layer, n_heads, attend), weights["norm"])
        return tied_head(x, weights["table"])

    @family(norm_of_the_last_block="norm2", first_norm_of_the_last_block="norm1")
    def norm_of_a_block(name, tokens, weights, n_heads, attend):
        """The last norm takes the weight and the bias of a block's own norm: `{}` of the last block. The model has a
        pair for itself, `weights["norm"]`. Is the name that your loop gives to each block still used after the loop?"""
        return language_model.reference(tokens, {**weights, "norm": weights["blocks"][-1][name]}, n_heads, attend)

    def dict_for_the_table(tokens, weights, n_heads, attend):
        """`embed` got the whole dict of the model where the table belongs. It needs one tensor: under which key does it
        stand?"""
        return embed.reference(tokens, weights)


@language_model.wrong(alone=True)
class WrongAnswersAlone:
    def a_norm_looked_for_in_the_model(tokens, weights, n_heads, attend):
        """There is no `"norm1"` in the dict of the whole model. Each block has one in a dict of its own, an item of the
        list `weights["blocks"]`; the pair of the last norm is `weights["norm"]`. Did a block get the whole dict?"""
        return block.reference(embed.reference(tokens, weights["table"]), weights, n_heads, attend)


fixed_length(language_model, positions_of_a_fixed_table, "a text of 300 tokens")
