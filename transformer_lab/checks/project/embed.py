"""Tokens and their positions, as vectors."""

import math

import torch
from torch.nn.functional import embedding

from ..common_mistakes import fixed_length
from ..exercise import exercise, family


def positions(seq, d_model):
    """Make the sinusoidal positions."""
    angles = torch.arange(seq)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]


def _tokens(draw, batch=2, seq=7, vocab=11, d_model=6):
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    return tokens, draw(vocab, d_model)


def rows(tokens, table):
    """Take the row of the table for each token."""
    return embedding(tokens, table)


def added(vectors, pattern):
    """Add the two."""
    return vectors + pattern.to(vectors)


@exercise(
    inputs=_tokens,
    axes={"tokens": "batch seq", "table": "vocab d_model", "return": "batch seq d_model"},
    hints=(
        "What does attention know about the order of the tokens, if each token is a row of the table and nothing else?",
        "Look up the rows, `table[tokens]`, then add what `sinusoidal_positions` returns for the right axis of tokens.",
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
embed.example("a text of 5,100 tokens", batch=1, seq=5100, vocab=5, d_model=2)
embed.example("as many sentences as tokens", batch=5, seq=5)


@embed.probe
def a_table_in_half_precision(draw):
    """a table in float16"""
    tokens, table = _tokens(draw)
    return tokens, table.half()


@embed.property
def order_matters(function, tokens, table):
    """A token that moves to another place changes its vector."""
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
        """Each token got the row before its own, and token 0 the last of the table. Tokens are counted from 0: nothing
        is to be taken off before they are looked up."""
        return table[tokens - 1]

    def the_first_token_everywhere(tokens, table):
        """Every place of a sentence has the vector of its first token. Each token is looked up, at its own place. What
        does an index such as `[:, 0]` leave of the tokens?"""
        return table[tokens[:, :1]].expand(-1, tokens.shape[1], -1)

    def the_first_sentence_everywhere(tokens, table):
        """Every sentence has the vectors of the first one. All of them are looked up, at once. What does `tokens[0]`
        leave?"""
        return table[tokens[0]].expand(len(tokens), -1, -1)


@embed.wrong(stage="vectors", alone=True)
class VectorsAlone:
    def whole_numbers_times_the_table(tokens, table):
        """`one_hot` makes whole numbers, and `@` refuses to multiply them with the table's floating point numbers.
        Bring them to the dtype of the table, or look the rows up: `table[tokens]`."""
        return torch.nn.functional.one_hot(tokens, len(table)) @ table

    def table_and_tokens_exchanged(tokens, table):
        """The two arguments of `embedding` are exchanged: first come the tokens, whole numbers, and then the table in
        which they are looked up. With brackets it is `table[tokens]`."""
        return embedding(table, tokens)

    def only_as_many_classes_as_occur(tokens, table):
        """`one_hot` was not told how many tokens there are in the vocabulary, and took the largest that occurs: unless
        that is the last of the table, the product does not fit. Hand over `len(table)`, or look the rows up:
        `table[tokens]`."""
        return torch.nn.functional.one_hot(tokens).to(table) @ table

    def columns_for_rows(tokens, table):
        """The tokens choose columns of the table, as in `table[:, tokens]` or `table.T[tokens]`: those count features,
        and most tokens lie beyond the last. A token's vector is a row. On which axis does an index without a colon
        act?"""
        return table[:, tokens]

    def rows_of_the_positions_without_the_batch(tokens, table):
        """The table is indexed with the positions 0, 1, 2, … instead of with the tokens, and there is one sentence,
        (seq, d_model), in place of the batch. What do the tokens say?"""
        return table[torch.arange(tokens.shape[1], device=tokens.device)]

    def tokens_turned(tokens, table):
        """The tokens were transposed before they were looked up: places meet sentences, and the positions do not fit.
        They come as (batch, seq), and the result has the same two axes first."""
        return table[tokens.T]

    def the_row_after(tokens, table):
        """Each token is looked up one row too late, and the last of the vocabulary lies beyond the end of the table.
        Tokens are counted from 0: nothing is to be added before they are looked up."""
        return table[tokens + 1]

    def tokens_in_floating_point(tokens, table):
        """The tokens have become floating point numbers, and an index must be whole numbers: it raises. The table's
        dtype is for what is looked up and added, not for the tokens. Which line changes theirs?"""
        return table[tokens.to(table)]

    def tokens_in_floating_point_for_embedding(tokens, table):
        """The tokens have become floating point numbers, and `embedding` looks up whole ones: it raises. The table's
        dtype is for what is looked up and added, not for the tokens. Which line changes theirs?"""
        return embedding(tokens.float(), table)

    def the_first_sentence_only(tokens, table):
        """You return one sentence, (seq, d_model), the first of the batch. Every sentence is looked up, at once. What
        does `tokens[0]` leave?"""
        return table[tokens[0]]

    def table_as_an_index(tokens, table):
        """The table stands in the brackets, and an index must be whole numbers: it raises. Which of the two is looked
        up in which?"""
        return tokens[table]

    def tokens_times_the_table(tokens, table):
        """The tokens are multiplied with the table, as if they were features: (batch, seq) and (vocab, d_model) do not
        fit, and it raises. Token 5 is not five times token 1; it is a name for a row. How is a row looked up?"""
        return tokens @ table

    def gathered(tokens, table):
        """`gather` takes single numbers of a tensor, and wants an index with as many columns as it may pick from: it
        raises. Whole rows are looked up here. What do brackets do?"""
        return table.gather(0, tokens)

    def index_select_of_two_axes(tokens, table):
        """`index_select` takes an index with one axis, and the tokens have two: it raises. Brackets take an index of
        any shape."""
        return table.index_select(0, tokens)

    def tokens_in_one_row(tokens, table):
        """The tokens were flattened to be looked up, and the rows stay in one list, (batch · seq, d_model): `seq`
        positions do not fit them. Split the axis again, or do not flatten: brackets take an index of any shape."""
        return table.index_select(0, tokens.flatten())


@embed.wrong(stage="position")
class Position:
    def positions_from_one(seq, d_model):
        """The positions begin at 1: the first token got the pattern of position 1. Positions are counted from 0; `seq`
        of them are asked for, and none is left out."""
        return positions(seq + 1, d_model)[1:]

    def the_number_itself(seq, d_model):
        """The position's number itself is added to every feature: 0 to the first token, 1 to the second. What is added
        is a pattern of sines and cosines between -1 and 1. Is the function of assignment 3 called?"""
        return torch.arange(seq, dtype=torch.float32)[:, None].expand(seq, d_model)

    def cosines_first(seq, d_model):
        """Sines and cosines have changed places: feature 0 of a position is a sine, feature 1 the cosine of the same
        angle. Is the positions' function the one of assignment 3?"""
        return positions(seq, d_model + d_model % 2).unflatten(1, (-1, 2)).flip(2).flatten(1)[:, :d_model]

    def exponent_halved(seq, d_model):
        """The angles fall too slowly from one pair of features to the next: pair i has the exponent 2i/d_model, and
        yours has i/d_model. Is the positions' function the one of assignment 3?"""
        angles = torch.arange(seq)[:, None] * torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model / 2)
        )
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]

    def counted_from_the_end(seq, d_model):
        """The positions are counted from the end: the last token got position 0. Count from the first token, so that a
        token keeps its position when others follow."""
        return positions(seq, d_model).flip(0)

    def axes_exchanged(seq, d_model):
        """The two numbers for the positions are exchanged, and the pattern was turned to fit: the sines run along the
        features. First comes the number of positions, then that of features."""
        return positions(d_model, seq).T

    def the_first_position_only(seq, d_model):
        """Every token got the pattern of position 0. The pattern has a row for each position: ask for `seq` rows, and
        use all of them."""
        return positions(1, d_model)

    def the_last_position_only(seq, d_model):
        """Every token got the pattern of the last position. The pattern has a row for each position: use all of
        them."""
        return positions(seq, d_model)[-1]

    def sines_everywhere(seq, d_model):
        """Every feature of a position is a sine: where the cosines belong, the sine of the same angle stands once more.
        Is the positions' function the one of assignment 3?"""
        return positions(seq, d_model)[:, ::2].repeat_interleave(2, dim=1)[:, :d_model]

    def cosines_first_from_one(seq, d_model):
        """Two things go wrong here. Sines and cosines have changed places: feature 0 of a position is a sine. And the
        positions begin at 1; they are counted from 0. Is the positions' function the one of assignment 3?"""
        return Position.cosines_first(seq + 1, d_model)[1:]


@embed.wrong(stage="position", alone=True)
class PositionAlone:
    def arguments_exchanged(seq, d_model):
        """The pattern's last axis is `seq`, and does not fit: the two numbers for `sinusoidal_positions` are exchanged,
        or not the right ones, or it was turned afterwards. It has a row for each position, and a column for each
        feature."""
        return positions(d_model, seq)

    @family(
        axis_added_in_the_middle=(1, "in the middle, (seq, 1, d_model)", "they run along the batch"),
        axis_added_at_the_end=(2, "at the end, (seq, d_model, 1)", "their features meet places"),
    )
    def axis_added(place, seq, d_model):
        """The positions have got an axis {}: aligned from the right, {}, and do not fit. As they come, (seq, d_model),
        they meet the last two axes of every sentence."""
        return positions(seq, d_model).unsqueeze(place)

    @family(one_position_too_few=(-1, "few", "taken off"), one_position_too_many=(1, "many", "added"))
    def another_number_of_positions(more, seq, d_model):
        """The pattern has one position too {}, and does not fit the tokens. `seq` tokens have `seq` positions, counted
        from 0. Is 1 {} somewhere?"""
        return positions(seq + more, d_model)

    def as_many_positions_as_features(seq, d_model):
        """As many positions were asked for as there are features, so they do not fit the tokens. Positions count along
        `seq`: which axis of `tokens` is that?"""
        return positions(d_model, d_model)

    def the_share_of_the_sentence(seq, d_model):
        """The position is added to every feature as a share of the sentence's length, between 0 and 1. What is added is
        a pattern of sines and cosines. Is the function of assignment 3 called?"""
        return (torch.arange(seq, dtype=torch.float32) / seq)[:, None].expand(seq, d_model)

    def positions_averaged(seq, d_model):
        """Every token got the same pattern, the average of all positions. The pattern has a row for each position: add
        each to the token that stands there."""
        return positions(seq, d_model).mean(0)


@embed.wrong(stage="together")
class Together:
    def no_positions(vectors, pattern):
        """The positions are missing: each token is its row of the table, wherever it stands. Attention compares
        vectors, not places: in one block, what a token gathers is the same in whatever order the tokens before it
        stand. What tells position 0 from position 1?"""
        return vectors

    def positions_multiplied(vectors, pattern):
        """The positions are multiplied with the vectors instead of added: position 0 has sin 0 = 0 in every second
        feature, so half of the first token is lost. The two are added."""
        return vectors * pattern.to(vectors)

    def positions_alone(vectors, pattern):
        """You return the positions without the tokens: every sentence of the same length looks the same. The vectors
        from the table belong to it."""
        return pattern.to(vectors).expand_as(vectors)

    def beside_each_other(vectors, pattern):
        """Vectors and positions stand beside each other, and the last axis is twice as long as it should be. They are
        added, feature by feature."""
        return torch.cat([vectors, pattern.to(vectors).expand_as(vectors)], dim=-1)

    def positions_subtracted(vectors, pattern):
        """The positions are subtracted instead of added. Look at the sign between the row of the table and its
        position."""
        return vectors - pattern.to(vectors)

    @family(averaged_over_the_tokens=(torch.mean, "averaged"), added_up_over_the_tokens=(torch.sum, "added up"))
    def one_vector_for_a_sentence(reduced, vectors, pattern):
        """You return one vector for a whole sentence: the tokens are {}. Each token keeps a vector of its own; the
        result is (batch, seq, d_model)."""
        return reduced(vectors + pattern.to(vectors), 1)

    def sum_normalized(vectors, pattern):
        """The sum is normalized before it is returned. `embed` only looks up and adds; the norms stand in the blocks
        and before the head."""
        return torch.nn.functional.layer_norm(vectors + pattern.to(vectors), vectors.shape[-1:])

    def dtype_of_the_positions_kept(vectors, pattern):
        """The positions come in float32, and a sum of two dtypes has the wider one: with a table in float16, the result
        is float32. It must have the table's dtype. Bring the positions to it before you add, `.to(table)`."""
        return vectors + pattern.to(vectors.device)

    def positions_as_whole_numbers(vectors, pattern):
        """Only the first token got its position: what is added to the others is 0. `.to(tokens)` does that, as it takes
        over a dtype of whole numbers and cuts sines and cosines between -1 and 1 to 0. Whose dtype should the positions
        have, and which tokens get one?"""
        return vectors + pattern.long().to(vectors.device)

    def positions_without_the_tokens(vectors, pattern):
        """You return the positions alone, (seq, d_model), without the batch and without the tokens: every sentence of
        the same length looks the same. The vectors from the table belong to it."""
        return pattern.to(vectors)

    def positions_added_twice(vectors, pattern):
        """The positions are added twice: the pattern stands in the sum with twice its size. Is it added in two lines,
        or in two functions?"""
        return vectors + 2 * pattern.to(vectors)

    def divided_by_root_d(vectors, pattern):
        """The vectors are divided by √d_model before the positions are added. That belongs to the scores of attention;
        here the row of the table goes in as it is."""
        return vectors / vectors.shape[-1] ** 0.5 + pattern.to(vectors)

    def averaged(vectors, pattern):
        """You return half of the sum: the mean of the vector and its position. The two are added, and nothing
        divides."""
        return (vectors + pattern.to(vectors)) / 2

    def flattened(vectors, pattern):
        """{The numbers are right, and} batch and seq are one axis, (batch · seq, d_model). The result has three axes:
        which line must split the first one again?"""
        return (vectors + pattern.to(vectors)).flatten(0, 1)

    def positions_scaled(vectors, pattern):
        """The positions are multiplied by √d_model before they are added. The pattern goes in as it is, with sines and
        cosines between -1 and 1; nothing is scaled."""
        return vectors + pattern.to(vectors) * vectors.shape[-1] ** 0.5

    def positions_for_the_first_sentence_only(vectors, pattern):
        """Only the first sentence got positions; the others are rows of the table and nothing else. The pattern, (seq,
        d_model), can be added to all sentences at once."""
        return torch.cat([vectors[:1] + pattern.to(vectors), vectors[1:]])

    def rows_normalized(vectors, pattern):
        """Each row of the table was divided by its norm before the position was added. Nothing is scaled here: the row
        goes in as it is."""
        return torch.nn.functional.normalize(vectors, dim=-1) + pattern.to(vectors)

    def scaled_and_without_positions(vectors, pattern):
        """The rows of the table are multiplied by √d_model, and the positions are missing. Here the rows go in as they
        are, and each token's position is added."""
        return vectors * vectors.shape[-1] ** 0.5


@embed.wrong(stage="together", alone=True)
class TogetherAlone:
    def sequence_first(vectors, pattern):
        """{The numbers are right, and} batch and seq have changed places: (seq, batch, d_model). In this course the
        batch comes first. Which line turns the axes?"""
        return (vectors + pattern.to(vectors)).transpose(0, 1)

    def everything_in_whole_numbers(vectors, pattern):
        """The sum was cut to whole numbers. The tokens are whole numbers, but what is looked up for them is not. The
        result has the table's dtype."""
        return (vectors + pattern.to(vectors)).long()

    def features_before_the_places(vectors, pattern):
        """{The numbers are right, and} the last two axes have changed places: (batch, d_model, seq). Features come
        last. Which line turns the axes?"""
        return (vectors + pattern.to(vectors)).mT

    def vectors_and_positions_apart(vectors, pattern):
        """You return two tensors, the vectors and the positions. One is asked for, in which they are added up."""
        return vectors, pattern.to(vectors)

    def behind_each_other(vectors, pattern):
        """The positions stand after the vectors as if they were more tokens, (batch, 2 · seq, d_model). They are added,
        feature by feature."""
        return torch.cat([vectors, pattern.to(vectors).expand_as(vectors)], dim=1)

    def multiplied_as_matrices(vectors, pattern):
        """Vectors and positions are multiplied as matrices, and features are added up in it: (batch, seq, seq). The two
        are added, number by number."""
        return vectors @ pattern.to(vectors).mT


@embed.wrong
class WrongAnswers:
    def positions_of_the_batch(tokens, table):
        """The positions follow the batch: all tokens of the first sentence got position 0, those of the second position
        1. It comes from code for (seq, batch), where positions lie along the first axis. Here `seq` is the second."""
        return table[tokens] + positions(tokens.shape[0], table.shape[1])[:, None].to(table)

    def positions_of_the_token(tokens, table):
        """Each token got the pattern of its number in the vocabulary, not of its place: wherever it stands, its vector
        is the same. Positions count along `seq`, whatever stands there."""
        return table[tokens] + positions(*table.shape)[tokens].to(table)

    def scaled_by_root_d(tokens, table):
        """The vectors are multiplied by √d_model before the positions are added. The original Transformer does that,
        with a table that was drawn smaller; here the row of the table goes in as it is."""
        return table[tokens] * table.shape[1] ** 0.5 + positions(*table[tokens].shape[1:]).to(table)

    def halves_beside_each_other(tokens, table):
        """The sines stand in the first half of the features and the cosines in the second. In this course, as in the
        paper, they take turns: feature 0 a sine, feature 1 a cosine of the same angle. Is the positions' function the
        one of assignment 3?"""
        pattern = positions(tokens.shape[1], table.shape[1])
        return table[tokens] + torch.cat([pattern[:, ::2], pattern[:, 1::2]], dim=-1).to(table)

    def positions_for_the_batch(tokens, table):
        """You ask for as many positions as there are sentences, not tokens: they do not fit the tokens, and a single
        sentence gets the first position everywhere. Which axis of `tokens` is `seq`?"""
        return table[tokens] + positions(tokens.shape[0], table.shape[1]).to(table)

    def positions_of_the_vocabulary(tokens, table):
        """The number of positions comes from the vocabulary and not from the sentence, so they do not fit the tokens.
        Positions count along `seq`: which axis of `tokens` is that?"""
        return table[tokens] + positions(*table.shape).to(table)

    def everything_scaled(tokens, table):
        """The sum is multiplied by √d_model. The row of the table and the pattern are added as they are; nothing is
        scaled before or after."""
        return embed.reference(tokens, table) * table.shape[1] ** 0.5

    def everything_in_float32(tokens, table):
        """The numbers {are right, and they} come in float32 whatever the dtype of the table is. The result has the
        table's dtype: which of the two must be brought to the dtype of the other?"""
        return table[tokens].float() + positions(tokens.shape[1], table.shape[1])

    def positions_run_on(tokens, table):
        """The positions run on from one sentence to the next: the second sentence does not begin at 0 again. Were batch
        and seq flattened into one axis before the positions were made? Each sentence is counted from its own first
        token."""
        pattern = positions(tokens.numel(), table.shape[1]).unflatten(0, tokens.shape)
        return table[tokens] + pattern.to(table)

    def vocabulary_for_features(tokens, table):
        """The positions got as many features as there are words in the vocabulary, and do not fit the rows of the
        table. It is (vocab, d_model): which of its sizes counts features?"""
        return table[tokens] + positions(tokens.shape[1], table.shape[0]).to(table)

    def positions_picked_by_the_token(tokens, table):
        """The tokens were looked up in the positions as well, and most of them lie beyond the end: there are `seq`
        positions and `vocab` tokens. The pattern's rows are in order already, one for each place."""
        return table[tokens] + positions(tokens.shape[1], table.shape[1])[tokens].to(table)

    def tokens_for_their_number(tokens, table):
        """The positions' function got the tokens themselves, and wants a number: how many positions there are. Which
        size of `tokens` is that?"""
        return table[tokens] + positions(tokens, table.shape[1]).to(table)

    def a_position_for_every_token_of_the_batch(tokens, table):
        """As many positions were asked for as there are tokens in the whole batch, so they do not fit a sentence. Each
        sentence is counted from its own first token: which axis of `tokens` is `seq`?"""
        return table[tokens] + positions(tokens.numel(), table.shape[1]).to(table)

    def the_tokens_number(tokens, table):
        """The token's number is added to every feature of its vector. What is added is the pattern of its place, sines
        and cosines between -1 and 1. Is the function of assignment 3 called?"""
        return table[tokens] + tokens[..., None].to(table)

    def table_itself(tokens, table):
        """You return the whole table, (vocab, d_model). The tokens say which of its rows are to be taken, and in which
        order. How is a row looked up?"""
        return table

    def table_with_positions(tokens, table):
        """You return the whole table with positions added to its rows, (vocab, d_model). The tokens say which rows are
        to be taken; the positions belong to the places where they stand."""
        return table + positions(*table.shape).to(table)

    def everything_in_float64(tokens, table):
        """The numbers {are right, and they} come in float64 whatever the dtype of the table is. The result has the
        table's dtype: which line brings float64 in?"""
        return embed.reference(tokens, table.double())

    def rows_of_the_table_for_positions(tokens, table):
        """The first rows of the table are added as if they were positions: position 0 gets the vector of token 0. What
        is added is a pattern of sines and cosines. Is the function of assignment 3 called?"""
        return table[tokens] + table[: tokens.shape[1]]

    def positions_written_into_the_table(tokens, table):
        """The positions were added to the table itself, in place: `table` is changed for the caller, and each token got
        the pattern of its number in the vocabulary. Look the tokens up first; the positions belong to the places."""
        table += positions(*table.shape).to(table)
        return table[tokens]

    def cut_from_the_table(tokens, table):
        """{The numbers are right, and} the table cannot learn from them: `.detach()`, `.data` and `torch.no_grad()` cut
        the way back to it, as does a new tensor or module made from its numbers. Look the tokens up in the table
        itself."""
        return embed.reference(tokens, table.detach())


fixed_length(embed, table_of_fixed_length, "a text of 5,100 tokens")
