"""Unpacking PyTorch's packed weights."""

import torch

from ..agree import agree
from ..exercise import exercise, family


def _packed_weight(draw, d_model=5):
    return (draw(3 * d_model, d_model),)


@exercise(
    inputs=_packed_weight,
    axes={"in_proj_weight": "3·d_model d_model", "return": "d_model d_model, d_model d_model, d_model d_model"},
    hints=(
        "The weight of a linear map is stored as (out, in). Three such weights were stacked: along which of the two "
        "axes, and in which order?",
        "The first axis has 3 · d_model rows. `chunk` cuts an axis into equal parts.",
        "`w_q, w_k, w_v = in_proj_weight.…(3, dim=…)`",
    ),
)
def unpack_projection(in_proj_weight):
    """Cut the packed weight, (3 · d_model, d_model), into the weights of queries, keys and values, which have shape
    (d_model, d_model)."""
    return in_proj_weight.chunk(3, dim=0)


@unpack_projection.right
class RightAnswers:
    def by_rows(in_proj_weight):
        d_model = in_proj_weight.shape[1]
        return tuple(in_proj_weight[start : start + d_model] for start in (0, d_model, 2 * d_model))

    def by_view(in_proj_weight):
        return list(in_proj_weight.reshape(3, -1, in_proj_weight.shape[1]))

    def by_unbind(in_proj_weight):
        return in_proj_weight.unflatten(0, (3, -1)).unbind()

    def copied(in_proj_weight):
        rows = torch.arange(len(in_proj_weight)).chunk(3)
        return tuple(in_proj_weight[indices].clone() for indices in rows)

    def by_split(in_proj_weight):
        return in_proj_weight.split(in_proj_weight.shape[1])


unpack_projection.example("24 features", d_model=24, plain=True)  # for 2, 3, 4, 6, 8 or 12 heads


@unpack_projection.property
def parts_stack_to_the_packed_weight(function, in_proj_weight):
    """The three weights, stacked again, are the packed weight."""
    return torch.equal(torch.cat(tuple(function(in_proj_weight))), in_proj_weight)


def _by_heads(in_proj_weight, n_heads):
    """Return the three weights as if the rows were grouped by heads: queries, keys and values of the first head, then
    those of the next."""
    return [part.flatten(0, 1) for part in in_proj_weight.unflatten(0, (n_heads, 3, -1)).unbind(1)]


def _is_grouped_by_heads(probe, got, expected):
    """Whether the answer reads the rows as grouped by heads, for some number of heads."""
    (weight,) = probe.arguments
    divisors = (n for n in range(2, weight.shape[1] + 1) if weight.shape[1] % n == 0)
    return got.error is None and any(agree(got.value, _by_heads(weight, n)) for n in divisors)


@unpack_projection.wrong
class Orders:
    @family(
        keys_first=(
            (1, 0, 2),
            "The three weights are in the wrong order. PyTorch packs the queries' weight first, then the keys', then "
            "the values'. Your order is keys, queries, values, so attention exchanges queries and keys.",
        ),
        order_reversed=(
            (2, 1, 0),
            "The three weights are in reverse order: values', keys', queries'. PyTorch packs the queries' weight "
            "first.",
        ),
        values_before_keys=(
            (0, 2, 1),
            "The keys' and the values' weights are exchanged: PyTorch packs queries, keys, values, in this order.",
        ),
        three_times_the_first=(
            (0, 0, 0),
            "All three parts are the queries' weight, the rows at the top. Perhaps a slice was copied and not changed. "
            "At which rows do the keys' and the values' rows begin?",
        ),
        values_from_the_keys_rows=(
            (0, 1, 1),
            "The third part holds the same rows as the second, the keys' rows. The values' rows begin where the keys' "
            "rows end, at 2 · d_model. Was a line copied and not changed?",
        ),
        values_missing=(
            (0, 1),
            "You return two parts, the queries' and the keys' weights. The third is missing: the rows from 2 · d_model "
            "on, which make the values.",
        ),
        queries_missing=(
            (1, 2),
            "You return two parts, the keys' and the values' weights. The first is missing: the rows up to d_model, "
            "which make the queries.",
        ),
        keys_and_values_missing=(
            (0,),
            "You return a tuple of one part, the queries' weight. The keys' and the values' weights are missing: the "
            "rows from d_model on. How many of the parts does your index or your slice keep?",
        ),
    )
    def in_this_order(order, in_proj_weight):
        parts = in_proj_weight.chunk(3)
        return tuple(parts[index] for index in order)

    @family(values_first=((2, 0, 1), "values, queries, keys"), queries_last=((1, 2, 0), "keys, values, queries"))
    def parts_in_wrong_order(order, in_proj_weight):
        """The three weights come out in the order {}. PyTorch packs the queries' weight first, then the keys', then the
        values'. Look at the order of your names, or of your slices."""
        parts = in_proj_weight.chunk(3)
        return tuple(parts[index] for index in order)

    @family(queries_alone=0, keys_alone=1, values_alone=2)
    def one_alone(index, in_proj_weight):
        """You return one of the three weights, and the other two are missing. Is there an index such as `[0]` after
        `chunk` or `split`, or does a `return` end a loop in its first iteration? `w_q, w_k, w_v = unpack_projection(…)`
        should assign one weight to each name."""
        return in_proj_weight.chunk(3)[index]


@unpack_projection.wrong
class Rows:
    def every_third_row(in_proj_weight):
        """Each of your weights consists of every third row. But the rows are stacked in blocks: first all rows of the
        queries' weight, then all rows of the keys' weight, then all rows of the values' weight."""
        return tuple(in_proj_weight[start::3] for start in range(3))

    def one_weight_too_late(in_proj_weight):
        """Your first part is the keys' weight, the second the values', and the third is empty: you begin one weight too
        far down. Rows are counted from 0. With which row does the queries' weight begin?"""
        d_model = in_proj_weight.shape[1]
        return tuple(in_proj_weight[start : start + d_model] for start in (d_model, 2 * d_model, 3 * d_model))

    def parts_one_row_apart(in_proj_weight):
        """Each part begins only one row after the previous part, so the parts overlap and contain none of the values'
        rows. In a loop over 0, 1 and 2, by what must you multiply each number to get the row where a weight begins?"""
        d_model = in_proj_weight.shape[1]
        return tuple(in_proj_weight[start : start + d_model] for start in range(3))

    @family(
        one_row_too_long=(1, "has a row of the keys' weight as well", "late"),
        one_row_too_short=(-1, "lacks its last row", "early"),
    )
    def one_row_off(offset, in_proj_weight):
        """The first part {}, and both cuts come one row {}. A slice stops before the number after its colon: `[:5]` is
        five rows, 0 to 4. Where must the queries' rows stop?"""
        d_model = in_proj_weight.shape[1]
        return in_proj_weight.tensor_split((d_model + offset, 2 * d_model + offset))

    def a_row_left_out_before_the_keys(in_proj_weight):
        """The keys' weight lacks its first row: `d_model + 1` skips a row. A slice stops before the number after its
        colon, so the next slice begins with that number itself. With which row does the keys' weight begin?"""
        d_model = in_proj_weight.shape[1]
        return in_proj_weight[:d_model], in_proj_weight[d_model + 1 : 2 * d_model], in_proj_weight[2 * d_model :]

    def rows_left_out_before_keys_and_values(in_proj_weight):
        """The keys' and the values' weights lack their first rows: a `+ 1` skips a row. A slice stops before the number
        after its colon, so the next slice begins with that number itself. With which row does each of the two weights
        begin?"""
        d_model = in_proj_weight.shape[1]
        return in_proj_weight[:d_model], in_proj_weight[d_model + 1 : 2 * d_model], in_proj_weight[2 * d_model + 1 :]

    def last_rows_lost(in_proj_weight):
        """Each part lacks its last row. A slice stops before the number after its colon: `[:5]` is five rows, 0 to 4,
        and nothing has to be subtracted."""
        return tuple(part[:-1] for part in in_proj_weight.chunk(3))

    def last_row_lost(in_proj_weight):
        """The last row of the values' weight is missing. A slice up to `-1` stops before the last row; a slice with
        nothing after its colon goes to the end."""
        w_q, w_k, w_v = in_proj_weight.chunk(3)
        return w_q, w_k, w_v[:-1]

    def upper_ends_missing(in_proj_weight):
        """Each part is shorter than the previous part: it begins where it should, but runs on to the last row. A slice
        with nothing after its colon goes to the end. Where must the queries' rows stop, and where must the keys' rows
        stop?"""
        d_model = in_proj_weight.shape[1]
        return in_proj_weight, in_proj_weight[d_model:], in_proj_weight[2 * d_model :]

    def keys_run_to_the_end(in_proj_weight):
        """The second part goes on through the values' rows: it has twice as many rows as the others. A slice with
        nothing after its colon goes to the end. Where must the keys' rows stop?"""
        w_q, w_k, w_v = in_proj_weight.chunk(3)
        return w_q, torch.cat([w_k, w_v]), w_v

    def values_from_where_the_keys_begin(in_proj_weight):
        """The third part begins with the keys' rows, and has twice as many rows as the others. The values' rows begin
        where the keys' rows end. At which row is that?"""
        w_q, w_k, w_v = in_proj_weight.chunk(3)
        return w_q, w_k, torch.cat([w_k, w_v])

    def one_row_of_the_values(in_proj_weight):
        """The third part is a single row: `[-d_model]` is an index, and `[-d_model:]` selects all the rows from there
        on."""
        w_q, w_k, w_v = in_proj_weight.chunk(3)
        return w_q, w_k, w_v[0]

    def rows_taken_for_d_model(in_proj_weight):
        """Your first part is the whole packed weight, and the other two are empty. The first axis has 3 · d_model rows,
        not d_model. Which size of `in_proj_weight` is d_model?"""
        return in_proj_weight, in_proj_weight[:0], in_proj_weight[:0]

    def float_index(in_proj_weight):
        """`/` returns a float, but a slice accepts only integers. `//` returns an integer. You can also read d_model
        from the shape, without a division."""
        rows = len(in_proj_weight) / 3
        return in_proj_weight[:rows], in_proj_weight[rows:]

    def three_single_rows(in_proj_weight):
        """Your parts are the first three rows, one each. An index selects a single row; a slice, with a colon, selects
        a block of rows. How many rows does one weight have, and where does each begin?"""
        return in_proj_weight[0], in_proj_weight[1], in_proj_weight[2]

    def row_by_row(in_proj_weight):
        """You return every row separately, 3 · d_model rows: `unbind` splits an axis into its single entries. Return
        three blocks of rows. Which axis of size 3 could you unbind instead, and how do you make this axis?"""
        return in_proj_weight.unbind(0)


@unpack_projection.wrong
class Parts:
    def parts_of_three_rows(in_proj_weight):
        """Your parts have three rows each, and there are d_model parts. The argument of `split` is the size of a part;
        the argument of `chunk` is the number of parts. How many rows does one weight have?"""
        return in_proj_weight.split(3)

    def three_names_for_more_parts(in_proj_weight):
        """You unpack more than three parts into three names, hence the `ValueError`. `split(3)` returns parts of three
        rows, and unpacking a tensor itself yields its rows. The argument of `chunk` is the number of parts."""
        w_q, w_k, w_v = in_proj_weight.split(3)
        return w_q, w_k, w_v

    def sizes_of_three_rows(in_proj_weight):
        """You pass `split` three sizes, 3 each, which do not add up to the number of rows. A size says how many rows a
        part has, not how many parts there are. How many rows does one weight have?"""
        return in_proj_weight.split([3, 3, 3])

    def two_parts(in_proj_weight):
        """You cut the rows into two halves. Three weights were stacked: into how many equal parts must you cut, and how
        many rows does each part have?"""
        return in_proj_weight.chunk(2)

    def keys_and_values_together(in_proj_weight):
        """You return two parts: the queries' weight, and all that follows, which is the keys' and the values' weights
        in one tensor. Attention between two texts uses the weights in this form. Return the three weights separately:
        where must you cut the second part once more?"""
        return in_proj_weight.tensor_split([in_proj_weight.shape[1]])

    def queries_and_keys_together(in_proj_weight):
        """You return two parts: the queries' and the keys' weights in one tensor, and the values' weight. Return the
        three weights separately: where must you cut the first part once more?"""
        return in_proj_weight.tensor_split([2 * in_proj_weight.shape[1]])

    def one_part_of_all_rows(in_proj_weight):
        """You return one part, which is the whole packed weight. The argument of `split` is the size of a part, but you
        pass the number of all rows. How many rows does one weight have?"""
        return (in_proj_weight,)

    def as_one_tensor(in_proj_weight):
        """You return the packed weight without cutting it. Return a tuple of three tensors, so that `w_q, w_k, w_v =
        unpack_projection(…)` assigns one weight to each name."""
        return in_proj_weight

    def stacked_in_one_tensor(in_proj_weight):
        """You return one tensor, (3, d_model, d_model), which holds the three weights in the right order. Return a
        tuple of three tensors. Which operation splits an axis into a tuple?"""
        return in_proj_weight.unflatten(0, (3, -1))

    def rows_of_the_same_number_together(in_proj_weight):
        """You return d_model parts of three rows: the first row of each weight, then the second of each, and so on. You
        cut the rows into three blocks correctly, but then split along a different axis. Which axis of (3, d_model,
        d_model) counts the weights?"""
        return in_proj_weight.unflatten(0, (3, -1)).unbind(1)

    def columns_of_the_same_number_together(in_proj_weight):
        """You return d_model parts: the first column of each weight, then the second of each, and so on. You cut the
        rows into three blocks correctly, but then split along a different axis. Which axis of (3, d_model, d_model)
        counts the weights?"""
        return in_proj_weight.unflatten(0, (3, -1)).unbind(-1)


@unpack_projection.wrong
class Columns:
    def along_the_inputs(in_proj_weight):
        """You cut the second axis, the inputs: your parts have 3 · d_model rows. The three maps share their input and
        are stacked along their outputs, which are the first axis of a weight: (out, in)."""
        return in_proj_weight.tensor_split(3, dim=1)

    @family(first_columns_alone=0, middle_columns_alone=1, last_columns_alone=2)
    def some_columns_alone(index, in_proj_weight):
        """You return one tensor, a third of the columns. You cut the second axis, the inputs, and then return one part.
        The three maps share their inputs and are stacked along their outputs, which are the first axis of a weight:
        (out, in). Also, return all three weights."""
        return in_proj_weight.tensor_split(3, dim=1)[index]

    def a_third_of_the_columns(in_proj_weight):
        """Each part has all rows and a third of the columns, and any columns left over are in no part, or in the last
        part. The three maps share the columns, which are their inputs, and their rows are stacked. Which number in the
        shape is d_model?"""
        third = in_proj_weight.shape[1] // 3
        return in_proj_weight[:, :third], in_proj_weight[:, third : 2 * third], in_proj_weight[:, 2 * third :]

    def cut_through_the_columns(in_proj_weight):
        """The first part is the whole packed weight, and the other two have no columns: the cut goes through the second
        axis, the inputs. The three maps share the inputs, and their rows are stacked. On which side of the comma does
        the slice belong?"""
        return in_proj_weight, in_proj_weight[:, :0], in_proj_weight[:, :0]

    def weights_transposed(in_proj_weight):
        """Your three weights are transposed, (in, out). Return them as PyTorch stores them, (out, in): `linear` and
        PyTorch's modules expect this form. The transpose belongs to the product, `x @ w.T`."""
        return tuple(part.T for part in in_proj_weight.chunk(3))

    def transposed_before_the_cut(in_proj_weight):
        """The packed weight is transposed before it is cut, so the cut goes through the inputs: your parts have 3 ·
        d_model columns. The three maps were stacked along their outputs, which are the first axis of the given
        weight."""
        return in_proj_weight.T.chunk(3)

    def every_third_number(in_proj_weight):
        """Every third number goes to the same weight: the three weights were cut out of the last axis of a `view` or
        `reshape`, and that axis runs fastest. The rows of one weight are whole, and form one block. Which axis must
        count the three weights, the first or the last?"""
        return in_proj_weight.reshape(*[in_proj_weight.shape[1]] * 2, 3).unbind(-1)


@unpack_projection.mistake(recognizes=_is_grouped_by_heads)
def head_by_head(in_proj_weight):
    """You read the rows head by head: queries, keys and values of the first head, then those of the second. GPT-NeoX
    and Megatron pack their weights in this way. PyTorch stacks three whole weights, each with the rows of all heads,
    whatever the number of heads."""
    n_heads = next((n for n in (4, 3, 2) if in_proj_weight.shape[1] % n == 0), 1)
    return _by_heads(in_proj_weight, n_heads)
