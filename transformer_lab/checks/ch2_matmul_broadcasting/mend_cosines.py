"""Find the mistake: a table of cosines."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of


def _query_and_key(draw, q_len=7, k_len=6, d_head=5):
    return draw(q_len, d_head), draw(k_len, d_head)


def scale_to_unit_length(rows):
    """Divide each row by its length."""
    return rows / rows.norm(dim=-1, keepdim=True)


def table_of_products(query, key):
    """Multiply each query by each key."""
    return query @ key.T


@exercise(
    inputs=_query_and_key,
    axes={"query": "q_len d_head", "key": "k_len d_head", "return": "q_len k_len"},
    hints=(
        "The cosine of a vector with itself is 1. What is the length of each row of `query` and of `key` after the "
        "first two lines?",
        "Print the shapes of the two norms. Write each norm's shape below the shape of the tensor that is divided by "
        "this norm. Is there one number for each row, or one for each column?",
        "`key = key / key.norm(dim=…, keepdim=…)`",
    ),
)
def mend_cosines(query, key, *, queries=scale_to_unit_length, keys=scale_to_unit_length, table=table_of_products):
    """query (q_len, d_head), key (k_len, d_head) to the cosine of every query with every key: (q_len, k_len)."""
    return table(queries(query), keys(key))


mend_cosines.example("as many queries as keys", k_len=7)
mend_cosines.example("sizes that are all equal", q_len=5, k_len=5, plain=True)


@mend_cosines.probe
def the_same_vectors(draw):
    """the same vectors on both sides"""
    vectors = draw(6, 5)
    return vectors, vectors.clone()


@mend_cosines.probe
def long_and_short(draw):
    """long and short vectors"""
    return draw(7, 5) * torch.tensor([1e-2, 1, 1e2, 1, 10, 1e3, 0.1])[:, None], draw(6, 5) * 1000


mend_cosines.example("one query and one key", q_len=1, k_len=1)


@mend_cosines.right
class RightAnswers:
    def lengths_divided_out_afterwards(query, key):
        return query @ key.T / (query.norm(dim=1, keepdim=True) * key.norm(dim=1))

    def by_normalize(query, key):
        return torch.einsum("qd,kd->qk", F.normalize(query, dim=-1), F.normalize(key, dim=-1))

    def pair_after_pair(query, key):
        return F.cosine_similarity(query[:, None], key[None], dim=-1)

    def written_out(query, key):
        lengths = [(x * x).sum(-1).sqrt() for x in (query, key)]
        return (query @ key.mT) / lengths[0][:, None] / lengths[1][None, :]


def mistakes_of_queries(**mistakes):
    """Turn mistakes with the keys into the same mistakes with the queries, including their texts."""
    texts = {name: m.__doc__.replace("keys", "queries").replace("key", "query") for name, m in mistakes.items()}
    return family(**{name: (m, texts[name]) for name, m in mistakes.items()})(lambda mistake, query: mistake(query))


@mend_cosines.property
def cosine_with_itself(function, query, key):
    """A vector and itself have the cosine 1."""
    return torch.allclose(function(query, query).diagonal(), torch.ones((), dtype=query.dtype), atol=1e-4)


@mend_cosines.property
def length_does_not_count(function, query, key):
    """A key that is made longer keeps its cosines."""
    longer = key.clone()
    longer[0] *= 3
    return torch.allclose(function(query, longer), function(query, key), atol=1e-4)


@mend_cosines.property
def negated_keys_negate_the_cosines(function, query, key):
    """If the keys are negated, every cosine changes its sign."""
    return torch.allclose(function(query, -key), -function(query, key), atol=1e-4)


@mend_cosines.property
def no_cosine_above_one(function, query, key):
    """No cosine is larger than 1."""
    return bool(function(query, key).abs().max() <= 1 + 1e-5)


@mend_cosines.wrong(stage="keys")
class Keys:
    def as_given(key):
        """Your program still has the mistake of the given program. Look at the symptom first: the cosine of a vector
        with itself is not 1. Then compute by hand the length of one row of each matrix in the product: in which matrix
        is this length not 1, and by what did you divide that matrix?"""
        return key / key.norm(dim=0)

    def keepdim_left_out(key):
        """The lengths of the keys are right, one for each row, but they line up with the columns: they have lost the
        axis of the features, and shapes are aligned from the right. Here the division raises an error; with as many
        keys as features it would not. Keep the axis, with size 1."""
        return key / key.norm(dim=-1)

    def keys_as_they_are(key):
        """The keys keep their lengths: a key that is twice as long gives a result twice as large. A cosine compares
        directions only: divide the keys, as well as the queries, by their lengths."""
        return key

    def one_length_for_all_keys(key):
        """You divide all keys by one number, the length of the whole matrix: `norm()` without an axis returns one
        length for all numbers. The keys still differ in length. Each row has its own length."""
        return key / key.norm()

    def keys_by_their_sums(key):
        """You divide each key by its sum, as `normalize_rows` does. Its numbers then sum to one, but its length does
        not become 1. For a cosine the length must be 1: the root of the sum of squares."""
        return key / key.sum(dim=-1, keepdim=True)

    def root_forgotten(key):
        """You divide each key by the sum of its squares, without the root: a key of length 2 gets the length ½. The
        length is the root of that sum."""
        return key / (key * key).sum(dim=-1, keepdim=True)

    def keys_by_the_root_of_their_length(key):
        """You divide each key by the root of its length: `norm` is already the root of the sum of squares. A key of
        length 4 gets the length 2, but must get 1."""
        return key / key.norm(dim=-1, keepdim=True).sqrt()

    def keys_times_their_lengths(key):
        """You multiply the keys by their lengths instead of dividing. In `a / b * c` the `c` is a factor: write `a / (b
        * c)` to divide by both."""
        return key * key.norm(dim=-1, keepdim=True)

    def keys_by_the_sum_of_absolute_values(key):
        """You divide each key by the sum of its absolute values, as `norm` with `p=1` does. The key (3, 4) has the
        length 5, not 7. The length is the root of the sum of squares."""
        return key / key.abs().sum(dim=-1, keepdim=True)

    def keys_by_their_largest_number(key):
        """You divide each key by its largest number. This does not make its length 1: the length is the root of the sum
        of all squares."""
        return key / key.amax(dim=-1, keepdim=True)


@mend_cosines.wrong(stage="keys", alone=True)
class KeysAlone:
    def keys_by_their_largest_absolute_value(key):
        """You divide each key by its largest absolute value, which is `norm` with `p=inf`. The length of a vector is
        the root of the sum of all squares."""
        return key / key.abs().amax(dim=-1, keepdim=True)

    def keys_by_their_standard_deviation(key):
        """You divide each key by its standard deviation, which is the root of a mean of squared differences from the
        mean. The length of a vector is the root of the sum of its squares: subtract nothing, and compute no mean."""
        return key / key.std(dim=-1, keepdim=True)


@mend_cosines.wrong(stage="queries")
class Queries:
    def keepdim_left_out_of_queries(query):
        """The lengths of the queries are right, one for each row, but they line up with the columns: they have lost the
        axis of the features, and shapes are aligned from the right. In the given program that line was right, with its
        `keepdim=True`."""
        return query / query.norm(dim=-1)

    def queries_as_they_are(query):
        """The queries keep their lengths: a query that is twice as long gives a row of results twice as large. A cosine
        compares directions only: divide the queries, as well as the keys, by their lengths."""
        return query

    mistakes_shared_with_keys = mistakes_of_queries(
        one_length_for_all_queries=Keys.one_length_for_all_keys,
        root_forgotten_of_queries=Keys.root_forgotten,
        queries_by_the_root_of_their_length=Keys.keys_by_the_root_of_their_length,
        queries_times_their_lengths=Keys.keys_times_their_lengths,
        queries_by_the_sum_of_absolute_values=Keys.keys_by_the_sum_of_absolute_values,
        queries_by_their_largest_number=Keys.keys_by_their_largest_number,
        queries_by_their_largest_absolute_value=KeysAlone.keys_by_their_largest_absolute_value,
        queries_by_their_standard_deviation=KeysAlone.keys_by_their_standard_deviation,
    )


@mend_cosines.wrong(stage="table")
class Table:
    def keys_in_the_rows(query, key):
        """Your table has a row for every key and a column for every query: the transpose of the right table. The last
        line of the given program was right."""
        return key @ query.T

    def one_minus_the_cosine(query, key):
        """You return the cosine distance, which is 1 minus the cosine: for a vector and itself you return 0, but their
        cosine is 1. Leave the product as it is."""
        return 1 - query @ key.T

    def absolute_cosines(query, key):
        """You drop the signs: for a vector and its opposite you return 1, but their cosine is −1. Leave the product as
        it is."""
        return (query @ key.T).abs()

    def root_of_one_mean_square(query, key):
        """Every number is too large by a factor, the root of the number of features: for the queries or for the keys,
        you divide by the root of the *mean* of the squares, as RMS norm does. The length of a vector is the root of the
        *sum* of the squares."""
        return query @ key.T * query.shape[-1] ** 0.5

    def roots_of_two_mean_squares(query, key):
        """Every number is too large by a factor equal to the number of features: you divide by the root of the *mean*
        of the squares, as RMS norm does. The length of a vector is the root of the *sum* of the squares."""
        return query @ key.T * query.shape[-1]

    def by_the_number_of_features(query, key):
        """You also divide by the number of features, as a mean over the features does. A dot product is a sum: once
        both vectors have length 1, it is the cosine already."""
        return query @ key.T / query.shape[-1]

    def by_the_root_of_the_features(query, key):
        """You also divide by the root of the number of features, as attention does. Once both vectors have length 1,
        their dot product is the cosine already, however many features there are."""
        return query @ key.T / query.shape[-1] ** 0.5

    def softmax_of_the_cosines(query, key):
        """You apply a softmax to the cosines, so each row sums to one, like the weights of attention. The task asks for
        the cosines themselves: for a vector and itself, 1."""
        return (query @ key.T).softmax(dim=-1)

    def negative_cosines_set_to_zero(query, key):
        """You set negative cosines to 0. Vectors that point in opposite directions have the cosine −1: return all
        values between −1 and 1. Leave the product as it is."""
        return (query @ key.T).relu()

    def angles(query, key):
        """You return the angles, `acos` of the cosines: for a vector and itself you return 0, but their cosine is 1.
        The task asks for the cosine itself."""
        return (query @ key.T).acos()


@mend_cosines.wrong(stage="table", alone=True)
class TableAlone:
    def row_with_row(query, key):
        """You multiply row 0 by row 0, row 1 by row 1, and so on, element by element. With two queries and three keys
        this raises an error, and with as many keys as queries you get too few cosines. The table has one cosine for
        every query and every key: which product returns such a table?"""
        return (query * key).sum(dim=-1)

    def keys_not_transposed(query, key):
        """You do not transpose the keys in the product, so the sizes do not fit: `@` sums over the last axis of `query`
        and the first of `key`. In both tensors, this must be the axis of the features. The last line of the given
        program was right."""
        return query @ key

    def cosines_scaled_to_zero_to_one(query, key):
        """You move the cosines into the range from 0 to 1: for perpendicular vectors you return ½, but their cosine is
        0. Leave the product as it is."""
        return (1 + query @ key.T) / 2

    def signs_reversed(query, key):
        """You reverse every sign: for a vector and itself you return −1, but their cosine is 1. Look for a minus in
        your product."""
        return -(query @ key.T)

    def squared(query, key):
        """You square the products, so the signs are lost. Only the lengths need squares; the product of the two vectors
        stays as it is."""
        return (query @ key.T) ** 2

    def rows_of_the_table_scaled_to_length_one(query, key):
        """You divide the rows of the finished table by their lengths. So the result for one key depends on the other
        keys. Scale the vectors to length 1, not the table."""
        products = query @ key.T
        return products / products.norm(dim=-1, keepdim=True)

    def rows_of_the_table_summed_to_one(query, key):
        """You divide the rows of the finished table by their sums, as `normalize_rows` does. So the result for one key
        depends on the other keys. Scale the vectors to length 1, not the table."""
        products = query @ key.T
        return products / products.sum(dim=-1, keepdim=True)

    def axes_of_size_one_lost(query, key):
        """Your function is right unless there is only one query or one key: then an axis of the table is gone. A bare
        `squeeze()` removes every axis of size 1, even one that the caller needs."""
        return (query @ key.T).squeeze()

    def dot_of_matrices(query, key):
        """`torch.dot` accepts two vectors, not matrices. The table of all dot products is a matrix product. The last
        line of the given program was right."""
        return torch.dot(query, key)

    def rounded(query, key):
        """You round the cosines. Rounding is for printing; the function itself must return the cosines unrounded."""
        return (query @ key.T).round(decimals=2)

    def added_up_for_each_query(query, key):
        """You add up the cosines of each query, so you return one number for each query. The table has one cosine for
        each pair, a row for every query and a column for every key."""
        return (query @ key.T).sum(dim=-1)

    def index_of_the_best_key(query, key):
        """You return the index of the best key for each query. A search would do that next; the task asks for the whole
        table of cosines."""
        return (query @ key.T).argmax(dim=-1)

    def cosine_of_the_best_key(query, key):
        """You return the largest cosine of each query. A search would do that next; the task asks for the whole table,
        with a column for every key."""
        return (query @ key.T).amax(dim=-1)

    def keys_reshaped(query, key):
        """You cut the keys into (d_head, k_len) with `view` or `reshape` instead of transposing them: a column holds
        numbers of several keys. The last line of the given program was right."""
        return query @ key.reshape(key.shape[1], key.shape[0])


@mend_cosines.wrong
class BothMatrices:
    def both_by_the_lengths_of_columns(query, key):
        """Now you divide both matrices by the lengths of their columns. Neither matrix has rows of length 1, so the
        cosine of a vector with itself is still not 1. Which of the two lines was right in the given program?"""
        return (query / query.norm(dim=0)) @ (key / key.norm(dim=0)).T

    def wrong_line_changed(query, key):
        """You swapped the two lines: now the keys are divided by the lengths of their rows, but the queries by the
        lengths of their columns. In the given program the line of the queries was right. A row is right when its length
        is 1."""
        return (query / query.norm(dim=0)) @ (key / key.norm(dim=-1, keepdim=True)).T

    def feature_lengths_under_transposed_keys(query, key):
        """You transpose the keys and divide them by `key.norm(dim=0)`, which has one length for each feature and lines
        up with the wrong axis. A key is a column of `key.T`. Over which axis of `key` must you sum to get the length of
        a key?"""
        query = query / query.norm(dim=-1, keepdim=True)
        return query @ (key.T / key.norm(dim=0))

    def queries_by_the_lengths_of_columns_and_keys_as_they_are(query, key):
        """You divide the queries by the lengths of their columns and leave the keys as they are. In both matrices, each
        row must have length 1."""
        return (query / query.norm(dim=0)) @ key.T

    def both_by_their_sums(query, key):
        """You divide each row by its sum, as `normalize_rows` does. Its numbers then sum to one, but its length does
        not become 1. For a cosine the length must be 1: the root of the sum of squares."""
        return (query / query.sum(dim=-1, keepdim=True)) @ (key / key.sum(dim=-1, keepdim=True)).T

    def keys_by_the_lengths_of_the_queries(query, key):
        """You divide the keys by the lengths of the queries. The division raises an error, unless there are as many
        keys as queries. Divide each vector by its own length."""
        return (query / query.norm(dim=-1, keepdim=True)) @ (key / query.norm(dim=-1, keepdim=True)).T

    def queries_with_queries(query, key):
        """You compare the queries with one another: the table has as many columns as there are queries, and the keys
        are not used. Look at the two names in your product."""
        return mend_cosines.reference(query, query)

    @family(
        one_as_the_order=(
            1,
            "one number for all its rows, the sum of all its absolute values: the first argument of `norm` is the "
            "order of the norm, not the axis. The axis has to be named: `dim=1`.",
        ),
        minus_one_as_the_order=(
            -1,
            "one number for all its rows: the first argument of `norm` is the order of the norm, not the axis, and -1 "
            "is an unusual order. The axis has to be named: `dim=-1`.",
        ),
        zero_as_the_order=(
            0,
            "the number of its entries that are not zero: the first argument of `norm` is the order of the norm, not "
            "the axis. You must name the axis, which is the axis of the features: `dim=-1`.",
        ),
    )
    def axis_taken_for_the_order(order, query, key):
        """Each matrix is divided by {}"""
        return (query / query.norm(order)) @ (key / key.norm(order)).T

    def lengths_clamped_to_one(query, key):
        """Vectors that are shorter than 1 are not made longer: you divide by the length, but never by less than 1. This
        guards against a length of zero, which the docstring rules out, but a limit of 1 also changes vectors that are
        merely short."""
        query, key = (rows / rows.norm(dim=-1, keepdim=True).clamp(min=1) for rows in (query, key))
        return query @ key.T

    def correlations(query, key):
        """You subtract the mean of every vector before you compare, which gives correlations. For (1, 3) and (3, 1) you
        return −1, but their cosine is 0.6. Divide by the lengths only."""
        return mend_cosines.reference(query - query.mean(-1, keepdim=True), key - key.mean(-1, keepdim=True))


@mend_cosines.wrong
class DividedAfterwards:
    def lengths_of_the_keys_in_a_column(query, key):
        """You divide the finished table by the lengths, which is a good approach. But the lengths of the keys form a
        column, (k_len, 1), so they line up with the queries. In the table a key is a column: with which axis must its
        length line up?"""
        return query @ key.T / (query.norm(dim=-1, keepdim=True) * key.norm(dim=-1, keepdim=True))

    @with_text_of(lengths_of_the_keys_in_a_column)
    def both_lengths_in_columns_in_turn(query, key):
        return query @ key.T / query.norm(dim=-1, keepdim=True) / key.norm(dim=-1, keepdim=True)

    def both_lengths_in_rows_in_turn(query, key):
        """You divide the table by a row of the lengths of the queries, but a row of the table has an entry for each
        key. The lengths of the queries must be a column: `keepdim=True` for the queries, but not for the keys."""
        return query @ key.T / query.norm(dim=-1) / key.norm(dim=-1)

    def lengths_of_the_queries_in_a_row(query, key):
        """The lengths of the queries form a row, and the lengths of the keys form a column: unless there are as many
        queries as keys, they do not fit the table. In the table a query is a row: must the lengths of the queries be a
        row or a column?"""
        return query @ key.T / (key.norm(dim=-1)[:, None] * query.norm(dim=-1))

    def lengths_multiplied_in_one_row(query, key):
        """You multiply two rows, the lengths of the queries and the lengths of the keys. The rows fit only if they are
        equally long, or if one of them has a single entry. The table needs a product for each pair: the lengths of the
        queries in a column, and the lengths of the keys in a row."""
        return query @ key.T / (query.norm(dim=-1) * key.norm(dim=-1))

    def product_of_two_columns(query, key):
        """The lengths are two columns, and a matrix product of two columns raises an error. A column times a row is a
        table of all products: transpose the lengths of the keys."""
        return query @ key.T / (query.norm(dim=-1, keepdim=True) @ key.norm(dim=-1, keepdim=True))

    def lengths_added(query, key):
        """You divide by the sum of the two lengths, but need their product: the dot product grows with both lengths.
        Try a vector of length 3 with itself, whose cosine is 1."""
        return query @ key.T / (query.norm(dim=-1)[:, None] + key.norm(dim=-1))

    def the_longer_length_alone(query, key):
        """You divide by the larger of the two lengths. Divide the dot product by the product of both lengths."""
        return query @ key.T / torch.maximum(query.norm(dim=-1)[:, None], key.norm(dim=-1))

    def attention_scores(query, key):
        """You divide the dot products by the root of the number of features, as attention does. This divisor is the
        same for all pairs of vectors, whatever their lengths. Divide each dot product by the lengths of its own two
        vectors."""
        return query @ key.T / query.shape[-1] ** 0.5

    def table_by_its_length(query, key):
        """You divide the finished table by one number, the length of the whole table: `norm()` without an axis returns
        one length for all numbers. Each pair of vectors has its own two lengths: one for the row, and one for the
        column."""
        products = query @ key.T
        return products / products.norm()

    def divided_by_the_largest(query, key):
        """You divide the finished table by its largest number, so that no number is above 1. This hides the symptom and
        leaves the cause: for a vector and itself the result is still not 1. Rows of length 1 need no correction
        afterwards."""
        products = mend_cosines.reference(query, key, keys=Keys.as_given)
        return products / products.abs().max()

    def clamped(query, key):
        """You clamp the cosines, so that none is larger than 1. This hides the symptom and leaves the cause: the other
        numbers are as wrong as before. With rows of length 1 no number has to be clamped."""
        return mend_cosines.reference(query, key, keys=Keys.as_given).clamp(-1, 1)

    def only_the_rows_of_the_table_scaled_to_length_one(query, key):
        """You divide the rows of the table of dot products by their lengths, and leave the keys as they are. So the
        result for one key depends on the other keys. Scale the vectors to length 1, not the table."""
        products = query @ key.T
        return products / products.norm(dim=-1, keepdim=True)

    def only_the_columns_of_the_table_scaled_to_length_one(query, key):
        """You divide the columns of the table of dot products by their lengths. So the result for one query depends on
        the other queries. Scale the vectors to length 1, not the table."""
        products = query @ key.T
        return products / products.norm(dim=0)


@mend_cosines.wrong
class OtherFunctions:
    def distances(query, key):
        """You return the distances between the vectors: they are 0 for a vector and itself, and depend on the lengths.
        The cosine compares directions only, and is 1 for a vector and itself."""
        return torch.cdist(query, key)

    def row_with_row_by_cosine_similarity(query, key):
        """You compare row 0 with row 0, row 1 with row 1, and so on. With two queries and three keys this raises an
        error, and with as many keys as queries you get too few cosines. To compare every query with every key,
        `F.cosine_similarity` needs a new axis of size 1 in each tensor, at different places."""
        return F.cosine_similarity(query, key, dim=-1)

    def compared_along_the_keys(query, key):
        """You compare along the wrong axis: `dim=1` is the axis of the keys, and the features are the last axis. Your
        result has shape (q_len, d_head), with a column for every feature."""
        return F.cosine_similarity(query[:, None], key[None], dim=1)

    def single_vectors_along_axis_one(query, key):
        """`F.cosine_similarity` compares along axis 1 unless you pass a different `dim`, but single vectors have only
        axis 0: hence the `IndexError`. Pass the axis of the features."""
        return torch.stack([torch.stack([F.cosine_similarity(q, k) for k in key]) for q in query])

    @with_text_of(TableAlone.keys_not_transposed)
    def products_of_the_tables_as_they_are(query, key):
        return query @ key
