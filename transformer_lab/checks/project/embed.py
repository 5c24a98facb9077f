"""Tokens and their positions, as vectors."""

import math

import torch
from torch.nn.functional import embedding

from ..common_mistakes import fixed_length
from ..exercise import exercise, family


def positions(seq, d_model):
    """Compute the sinusoidal positions."""
    angles = torch.arange(seq)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]


def _tokens_and_table(draw, batch=2, seq=7, vocab=11, d_model=6):
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    return tokens, draw(vocab, d_model)


def look_up_rows(tokens, table):
    """Look up the row of the table for each token."""
    return embedding(tokens, table)


def add_positions(vectors, pattern):
    """Add vectors and positions."""
    return vectors + pattern.to(vectors)


@exercise(
    inputs=_tokens_and_table,
    axes={"tokens": "batch seq", "table": "vocab d_model", "return": "batch seq d_model"},
    hints=(
        "What does attention know about the order of the tokens if each token is only a row of the table?",
        "Look up the rows, `table[tokens]`, then add the result of `sinusoidal_positions`. How many positions do you "
        "need: along which axis of `tokens` are the positions?",
        "`table[…] + sinusoidal_positions(…, …)`",
    ),
)
def embed(tokens, table, *, vectors=look_up_rows, position=positions, together=add_positions):
    """Look each token up and add its position. tokens (batch, seq). Returns (batch, seq, d_model)."""
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
    return torch.stack(
        [torch.stack([table[t] + position_vector for t, position_vector in zip(row, pattern)]) for row in tokens]
    )


embed.example("one token", seq=1)
embed.example("a text of 5,100 tokens", batch=1, seq=5100, vocab=5, d_model=2)
embed.example("as many sentences as tokens", batch=5, seq=5)


@embed.probe
def a_table_in_half_precision(draw):
    """a table in float16"""
    tokens, table = _tokens_and_table(draw)
    return tokens, table.half()


@embed.property
def order_matters(function, tokens, table):
    """A token that moves to a different place gets a different vector."""
    return not torch.allclose(function(tokens.flip(1), table).flip(1), function(tokens, table))


def table_of_fixed_length(tokens, table):
    pattern = positions(64, table.shape[1])[: tokens.shape[1]]
    return table[tokens] + pattern.to(table)


@embed.wrong(stage="vectors")
class Vectors:
    def rows_of_the_positions(tokens, table):
        """The table is indexed with the positions 0, 1, 2, … instead of with the tokens: every sentence gets the same
        vectors. The row of a token is `table[tokens]`."""
        return table[torch.arange(tokens.shape[1])].expand(len(tokens), -1, -1)

    def the_row_before(tokens, table):
        """Each token gets the row before its own, and token 0 gets the last row of the table. Tokens are counted from
        0: look them up without subtracting 1."""
        return table[tokens - 1]

    def the_first_token_everywhere(tokens, table):
        """Every place of a sentence has the vector of the sentence's first token. Look up the token at each place.
        Which tokens does an index such as `[:, 0]` keep?"""
        return table[tokens[:, :1]].expand(-1, tokens.shape[1], -1)

    def the_first_sentence_everywhere(tokens, table):
        """Every sentence has the vectors of the first sentence. Look up all sentences at once. Which tokens does
        `tokens[0]` keep?"""
        return table[tokens[0]].expand(len(tokens), -1, -1)


@embed.wrong(stage="vectors", alone=True)
class VectorsAlone:
    def whole_numbers_times_the_table(tokens, table):
        """`one_hot` returns whole numbers, and `@` refuses to multiply them by the table's floating-point numbers.
        Convert them to the dtype of the table, or look the rows up: `table[tokens]`."""
        return torch.nn.functional.one_hot(tokens, len(table)) @ table

    def table_and_tokens_exchanged(tokens, table):
        """The two arguments of `embedding` are exchanged: first come the tokens (whole numbers), then the table in
        which they are looked up. With brackets, write `table[tokens]`."""
        return embedding(table, tokens)

    def only_as_many_classes_as_occur(tokens, table):
        """You do not tell `one_hot` the size of the vocabulary, so it stops at the largest token that occurs. The
        shapes of the product fit only if this token is the last of the table. Pass `len(table)`, or look the rows up:
        `table[tokens]`."""
        return torch.nn.functional.one_hot(tokens).to(table) @ table

    def columns_for_rows(tokens, table):
        """The tokens select columns of the table, as in `table[:, tokens]` or `table.T[tokens]`. Columns are features,
        and many tokens exceed the number of the last feature. A token's vector is a row. On which axis does an index
        without a colon act?"""
        return table[:, tokens]

    def rows_of_the_positions_without_the_batch(tokens, table):
        """The table is indexed with the positions 0, 1, 2, … instead of with the tokens, and you return one sentence,
        (seq, d_model), instead of the batch. Where do you use the numbers in `tokens`?"""
        return table[torch.arange(tokens.shape[1], device=tokens.device)]

    def tokens_transposed(tokens, table):
        """You transpose the tokens before you look them up: the axis of the sentences lines up with that of the
        positions, and the two do not fit. The tokens come as (batch, seq), and the result has the same first two
        axes."""
        return table[tokens.T]

    def the_row_after(tokens, table):
        """Each token is looked up in the row after its own, and the last token of the vocabulary has no such row.
        Tokens are counted from 0: look them up without adding 1."""
        return table[tokens + 1]

    def tokens_in_floating_point(tokens, table):
        """The tokens have become floating-point numbers, but an index must hold whole numbers, so PyTorch raises an
        error. The table's dtype is for the vectors and the positions, not for the tokens. Which line changes the dtype
        of the tokens?"""
        return table[tokens.to(table)]

    def tokens_in_floating_point_for_embedding(tokens, table):
        """The tokens have become floating-point numbers, but `embedding` looks up whole numbers, so it raises an error.
        The table's dtype is for the vectors and the positions, not for the tokens. Which line changes the dtype of the
        tokens?"""
        return embedding(tokens.float(), table)

    def the_first_sentence_only(tokens, table):
        """You return one sentence, (seq, d_model), the first of the batch. Look up all sentences at once. Which tokens
        does `tokens[0]` keep?"""
        return table[tokens[0]]

    def table_as_an_index(tokens, table):
        """The table is the index in the brackets, but an index must hold whole numbers, so PyTorch raises an error.
        Which of the two tensors is looked up in the other?"""
        return tokens[table]

    def tokens_times_the_table(tokens, table):
        """You multiply the tokens by the table, as if they were features: (batch, seq) and (vocab, d_model) do not fit,
        and the product raises an error. Token 5 is not five times token 1; it is the number of a row. How do you look
        up a row?"""
        return tokens @ table

    def gathered(tokens, table):
        """`gather` picks single numbers, and its index must not have more columns than the table: here it raises an
        error. The exercise looks up whole rows. What does an index in brackets look up?"""
        return table.gather(0, tokens)

    def index_select_of_two_axes(tokens, table):
        """`index_select` takes an index with one axis, but the tokens have two axes, so it raises an error. Brackets
        accept an index of any shape."""
        return table.index_select(0, tokens)

    def tokens_in_one_row(tokens, table):
        """You flatten the tokens to look them up, and the rows stay in one list, (batch · seq, d_model), which does not
        fit `seq` positions. Split the axis again, or do not flatten: brackets accept an index of any shape."""
        return table.index_select(0, tokens.flatten())


@embed.wrong(stage="position")
class Position:
    def positions_from_one(seq, d_model):
        """The positions begin at 1: the first token gets the pattern of position 1. Positions are counted from 0: the
        sentence needs the first `seq` of them."""
        return positions(seq + 1, d_model)[1:]

    def the_number_itself(seq, d_model):
        """You add the position's number to every feature: 0 for the first token, 1 for the second. Add a pattern of
        sines and cosines between -1 and 1 instead. Do you call your function of assignment 3?"""
        return torch.arange(seq, dtype=torch.float32)[:, None].expand(seq, d_model)

    def cosines_first(seq, d_model):
        """Sines and cosines have changed places: feature 0 of a position must be a sine, and feature 1 the cosine of
        the same angle. Is your `sinusoidal_positions` the function of assignment 3?"""
        return positions(seq, d_model + d_model % 2).unflatten(1, (-1, 2)).flip(2).flatten(1)[:, :d_model]

    def exponent_halved(seq, d_model):
        """The angles fall too slowly from one pair of features to the next: pair i has the exponent 2i/d_model, but
        yours has i/d_model. Is your `sinusoidal_positions` the function of assignment 3?"""
        angles = torch.arange(seq)[:, None] * torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model / 2)
        )
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]

    def counted_from_the_end(seq, d_model):
        """The positions are counted from the end: the last token gets position 0. Count from the first token, so that a
        token keeps its position when other tokens follow."""
        return positions(seq, d_model).flip(0)

    def axes_exchanged(seq, d_model):
        """The two arguments of `sinusoidal_positions` are exchanged, and you transpose the pattern to fit: the
        positions run along the features. The first argument is the number of positions, and the second is the number of
        features."""
        return positions(d_model, seq).T

    def the_first_position_only(seq, d_model):
        """Every token gets the pattern of position 0. The pattern has a row for each position: compute `seq` rows, and
        use all of them."""
        return positions(1, d_model)

    def the_last_position_only(seq, d_model):
        """Every token gets the pattern of the last position. The pattern has a row for each position: use all of
        them."""
        return positions(seq, d_model)[-1]

    def sines_everywhere(seq, d_model):
        """Every feature of a position is a sine: the sine of the same angle replaces each cosine. Is your
        `sinusoidal_positions` the function of assignment 3?"""
        return positions(seq, d_model)[:, ::2].repeat_interleave(2, dim=1)[:, :d_model]

    def cosines_first_from_one(seq, d_model):
        """Two things go wrong here. Sines and cosines have changed places: feature 0 of a position must be a sine. And
        the positions begin at 1 instead of 0. Is your `sinusoidal_positions` the function of assignment 3?"""
        return Position.cosines_first(seq + 1, d_model)[1:]


@embed.wrong(stage="position", alone=True)
class PositionAlone:
    def arguments_exchanged(seq, d_model):
        """The pattern's last axis has size `seq`, which does not fit: the two arguments of `sinusoidal_positions` are
        exchanged or wrong, or you transposed the pattern afterwards. The pattern has a row for each position, and a
        column for each feature."""
        return positions(d_model, seq)

    @family(
        axis_added_in_the_middle=(1, "in the middle, (seq, 1, d_model)", "they run along the batch"),
        axis_added_at_the_end=(2, "at the end, (seq, d_model, 1)", "their features line up with places"),
    )
    def axis_added(place, seq, d_model):
        """The positions have an extra axis {}: aligned from the right, {}, and do not fit. As they come, (seq,
        d_model), they line up with the last two axes of every sentence."""
        return positions(seq, d_model).unsqueeze(place)

    @family(one_position_too_few=(-1, "few", "subtracted"), one_position_too_many=(1, "many", "added"))
    def another_number_of_positions(difference, seq, d_model):
        """The pattern has one position too {}, and does not fit the tokens. `seq` tokens have `seq` positions, counted
        from 0. Is 1 {} somewhere?"""
        return positions(seq + difference, d_model)

    def as_many_positions_as_features(seq, d_model):
        """You compute as many positions as there are features, so they do not fit the tokens. Positions count along
        `seq`: which axis of `tokens` is that?"""
        return positions(d_model, d_model)

    def the_share_of_the_sentence(seq, d_model):
        """You add the same number to every feature: the position as a share of the sentence's length, between 0 and 1.
        Add a pattern of sines and cosines instead. Do you call your function of assignment 3?"""
        return (torch.arange(seq, dtype=torch.float32) / seq)[:, None].expand(seq, d_model)

    def positions_averaged(seq, d_model):
        """Every token gets the same pattern, the mean of all positions. The pattern has a row for each position: add
        each row to the token at that position."""
        return positions(seq, d_model).mean(0)


@embed.wrong(stage="together")
class Together:
    def no_positions(vectors, pattern):
        """The positions are missing: each token's vector is its row of the table, at every place. Attention compares
        vectors, not places: in one block, a token gathers the same result whatever the order of the tokens before it.
        What distinguishes position 0 from position 1?"""
        return vectors

    def positions_multiplied(vectors, pattern):
        """You multiply the vectors by the positions instead of adding them. Position 0 has sin 0 = 0 in every other
        feature, so half of the first token is lost."""
        return vectors * pattern.to(vectors)

    def positions_alone(vectors, pattern):
        """You return the positions without the tokens: all sentences of the same length have the same result. Add the
        vectors from the table."""
        return pattern.to(vectors).expand_as(vectors)

    def beside_each_other(vectors, pattern):
        """Vectors and positions are side by side, so the last axis is twice as long as it should be. Add the two,
        feature by feature."""
        return torch.cat([vectors, pattern.to(vectors).expand_as(vectors)], dim=-1)

    def positions_subtracted(vectors, pattern):
        """The positions are subtracted instead of added. Look at the sign between the row of the table and the
        position."""
        return vectors - pattern.to(vectors)

    @family(averaged_over_the_tokens=(torch.mean, "averaged"), added_up_over_the_tokens=(torch.sum, "added up"))
    def one_vector_for_a_sentence(reduce, vectors, pattern):
        """You return one vector for a whole sentence: the tokens are {}. Each token keeps its own vector: the result is
        (batch, seq, d_model)."""
        return reduce(vectors + pattern.to(vectors), 1)

    def sum_normalized(vectors, pattern):
        """You normalize the sum before you return it. `embed` only looks up and adds; the norms are in the blocks and
        before the head."""
        return torch.nn.functional.layer_norm(vectors + pattern.to(vectors), vectors.shape[-1:])

    def dtype_of_the_positions_kept(vectors, pattern):
        """The positions have the dtype float32, and a sum of two dtypes has the wider dtype: with a table in float16,
        the result is float32. The result must have the table's dtype. Convert the positions before you add:
        `.to(table)`."""
        return vectors + pattern.to(vectors.device)

    def positions_as_whole_numbers(vectors, pattern):
        """Only the first token gets its position: you add 0 to the others. `.to(tokens)` converts to a dtype of whole
        numbers, and truncates sines and cosines between -1 and 1 to 0. Which dtype should the positions have, and which
        tokens need a position?"""
        return vectors + pattern.long().to(vectors.device)

    def positions_without_the_tokens(vectors, pattern):
        """You return the positions alone, (seq, d_model), without the batch and without the tokens: all sentences of
        the same length have the same result. Add the vectors from the table."""
        return pattern.to(vectors)

    def positions_added_twice(vectors, pattern):
        """You add the positions twice: the sum contains the doubled pattern. Do you add it in two lines, or in two
        functions?"""
        return vectors + 2 * pattern.to(vectors)

    def divided_by_root_d(vectors, pattern):
        """You divide the vectors by √d_model before you add the positions. That division belongs to the scores of
        attention; here you add the position to the row of the table as it is."""
        return vectors / vectors.shape[-1] ** 0.5 + pattern.to(vectors)

    def averaged(vectors, pattern):
        """You return half of the sum: the mean of the vector and its position. Add the two, and do not divide."""
        return (vectors + pattern.to(vectors)) / 2

    def flattened(vectors, pattern):
        """{The numbers are right, but} batch and seq are joined in one axis, (batch · seq, d_model). The result has
        three axes: which line must split the first axis again?"""
        return (vectors + pattern.to(vectors)).flatten(0, 1)

    def positions_scaled(vectors, pattern):
        """You multiply the positions by √d_model before you add them. Add the pattern as it is, with sines and cosines
        between -1 and 1."""
        return vectors + pattern.to(vectors) * vectors.shape[-1] ** 0.5

    def positions_for_the_first_sentence_only(vectors, pattern):
        """Only the first sentence gets positions; the others are rows of the table and nothing else. You can add the
        pattern, (seq, d_model), to all sentences at once."""
        return torch.cat([vectors[:1] + pattern.to(vectors), vectors[1:]])

    def rows_normalized(vectors, pattern):
        """You divide each row of the table by its norm before you add the position. Use the row as it is, without a
        scale."""
        return torch.nn.functional.normalize(vectors, dim=-1) + pattern.to(vectors)

    def scaled_and_without_positions(vectors, pattern):
        """You multiply the rows of the table by √d_model, and the positions are missing. Use the rows as they are, and
        add each token's position."""
        return vectors * vectors.shape[-1] ** 0.5


@embed.wrong(stage="together", alone=True)
class TogetherAlone:
    def sequence_first(vectors, pattern):
        """{The numbers are right, but} batch and seq have changed places: (seq, batch, d_model). In this course the
        batch comes first. Which line transposes the axes?"""
        return (vectors + pattern.to(vectors)).transpose(0, 1)

    def everything_in_whole_numbers(vectors, pattern):
        """The sum is truncated to whole numbers. The tokens are whole numbers, but their vectors are not. The result
        must have the table's dtype."""
        return (vectors + pattern.to(vectors)).long()

    def features_before_the_places(vectors, pattern):
        """{The numbers are right, but} the last two axes have changed places: (batch, d_model, seq). Features come
        last. Which line transposes the axes?"""
        return (vectors + pattern.to(vectors)).mT

    def vectors_and_positions_not_added(vectors, pattern):
        """You return two tensors, the vectors and the positions. Return one tensor, their sum."""
        return vectors, pattern.to(vectors)

    def positions_after_the_vectors(vectors, pattern):
        """The positions come after the vectors, as if they were more tokens: (batch, 2 · seq, d_model). Add the two,
        feature by feature."""
        return torch.cat([vectors, pattern.to(vectors).expand_as(vectors)], dim=1)

    def multiplied_as_matrices(vectors, pattern):
        """You multiply vectors and positions as matrices, which sums over the features: (batch, seq, seq). Add the two,
        number by number."""
        return vectors @ pattern.to(vectors).mT


@embed.wrong
class WrongAnswers:
    def positions_of_the_batch(tokens, table):
        """The positions follow the batch: all tokens of the first sentence get position 0, those of the second get
        position 1. Code for tokens in the order (seq, batch) does this, because positions then run along the first
        axis. Here `seq` is the second axis."""
        return table[tokens] + positions(tokens.shape[0], table.shape[1])[:, None].to(table)

    def positions_of_the_token(tokens, table):
        """Each token gets the pattern of its number in the vocabulary, not of its place, so it has the same vector at
        every place. Positions count along `seq`, whichever tokens are there."""
        return table[tokens] + positions(*table.shape)[tokens].to(table)

    def scaled_by_root_d(tokens, table):
        """You multiply the vectors by √d_model before you add the positions. The original Transformer does that, with
        smaller numbers in its table; here you add the position to the row of the table as it is."""
        return table[tokens] * table.shape[1] ** 0.5 + positions(*table[tokens].shape[1:]).to(table)

    def halves_beside_each_other(tokens, table):
        """The first half of the features are sines, the second half cosines. In this course, as in the paper, they
        alternate: feature 0 is a sine, feature 1 is the cosine of the same angle. Is your `sinusoidal_positions` the
        function of assignment 3?"""
        pattern = positions(tokens.shape[1], table.shape[1])
        return table[tokens] + torch.cat([pattern[:, ::2], pattern[:, 1::2]], dim=-1).to(table)

    def positions_for_the_batch(tokens, table):
        """You compute as many positions as there are sentences, not tokens. These positions do not fit the tokens, and
        in a batch of one sentence every token gets the first position. Which axis of `tokens` is `seq`?"""
        return table[tokens] + positions(tokens.shape[0], table.shape[1]).to(table)

    def positions_of_the_vocabulary(tokens, table):
        """The number of positions comes from the vocabulary instead of the sentence, so they do not fit the tokens.
        Positions count along `seq`: which axis of `tokens` is that?"""
        return table[tokens] + positions(*table.shape).to(table)

    def everything_scaled(tokens, table):
        """You multiply the sum by √d_model. Add the row of the table and the pattern as they are, without a scale."""
        return embed.reference(tokens, table) * table.shape[1] ** 0.5

    def everything_in_float32(tokens, table):
        """The numbers {are right, but they} have the dtype float32, whatever the dtype of the table is. The result must
        have the table's dtype: which tensor must you convert before you add?"""
        return table[tokens].float() + positions(tokens.shape[1], table.shape[1])

    def positions_run_on(tokens, table):
        """The positions run on from one sentence to the next: the second sentence does not begin at 0 again. Did you
        flatten batch and seq into one axis before you computed the positions? Count the positions of each sentence from
        its first token."""
        pattern = positions(tokens.numel(), table.shape[1]).unflatten(0, tokens.shape)
        return table[tokens] + pattern.to(table)

    def vocabulary_for_features(tokens, table):
        """The positions have as many features as there are tokens in the vocabulary, and do not fit the rows of the
        table. The table is (vocab, d_model): which of its sizes counts features?"""
        return table[tokens] + positions(tokens.shape[1], table.shape[0]).to(table)

    def positions_picked_by_the_token(tokens, table):
        """You look the tokens up in the positions as well, but many tokens exceed the last position: there are `seq`
        positions and `vocab` tokens. The pattern's rows are already in order, one for each place."""
        return table[tokens] + positions(tokens.shape[1], table.shape[1])[tokens].to(table)

    def tokens_for_their_number(tokens, table):
        """`sinusoidal_positions` received the tokens themselves, but it takes the number of positions. Which size of
        `tokens` is that?"""
        return table[tokens] + positions(tokens, table.shape[1]).to(table)

    def a_position_for_every_token_of_the_batch(tokens, table):
        """You compute as many positions as there are tokens in the whole batch, so they do not fit a sentence. Count
        the positions of each sentence from its first token: which axis of `tokens` is `seq`?"""
        return table[tokens] + positions(tokens.numel(), table.shape[1]).to(table)

    def the_tokens_number(tokens, table):
        """You add the token's number to every feature of its vector. Add the pattern of its place instead: sines and
        cosines between -1 and 1. Do you call your function of assignment 3?"""
        return table[tokens] + tokens[..., None].to(table)

    def table_itself(tokens, table):
        """You return the whole table, (vocab, d_model). The tokens say which rows you need, and in which order. How do
        you look up a row?"""
        return table

    def table_with_positions(tokens, table):
        """You return the whole table with positions added to its rows, (vocab, d_model). The tokens say which rows you
        need; the positions belong to the places of the tokens."""
        return table + positions(*table.shape).to(table)

    def everything_in_float64(tokens, table):
        """The numbers {are right, but they} are in float64, whatever the dtype of the table is. The result must have
        the table's dtype: which line converts to float64?"""
        return embed.reference(tokens, table.double())

    def rows_of_the_table_for_positions(tokens, table):
        """You add the first rows of the table as if they were positions: position 0 gets the vector of token 0. Add a
        pattern of sines and cosines instead. Do you call your function of assignment 3?"""
        return table[tokens] + table[: tokens.shape[1]]

    def positions_written_into_the_table(tokens, table):
        """You add the positions to the table itself, in place: this changes the caller's `table`, and each token gets
        the pattern of its number in the vocabulary. Look the tokens up first; the positions belong to the places."""
        table += positions(*table.shape).to(table)
        return table[tokens]

    def cut_from_the_table(tokens, table):
        """{The numbers are right, but} the table cannot learn from them: `.detach()`, `.data` and `torch.no_grad()` cut
        the gradient's path to the table, and so does a new tensor or module made from its numbers. Look the tokens up
        in the table itself."""
        return embed.reference(tokens, table.detach())


fixed_length(embed, table_of_fixed_length, "a text of 5,100 tokens")
