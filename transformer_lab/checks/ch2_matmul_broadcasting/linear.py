"""A linear layer."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of


def _layer(draw, batch=2, seq=7, d_in=5, d_out=3):
    return draw(batch, seq, d_in), draw(d_out, d_in), draw(d_out)


def rows_of_the_weight(x, weight):
    """Multiply by the transposed weight."""
    return x @ weight.T


def added(y, bias):
    """Add the bias to every row."""
    return y + bias


@exercise(
    inputs=_layer,
    axes={"x": "batch seq d_in", "weight": "d_out d_in", "bias": "d_out", "return": "batch seq d_out"},
    hints=(
        "The weight is stored as (d_out, d_in). Which of its axes must be summed over with the last axis of `x`, and "
        "which axis must it be for `@`?",
        "The product sums over the last axis of `x`, whatever comes before it. The weight is a matrix, so its "
        "transpose is `.T`. The bias has one number for each output feature, and broadcasting puts it there.",
        "`y = x @ …`, then `return y + …`: no loop, and no axis that has to be moved in `x`",
    ),
)
def linear(x, weight, bias, *, product=rows_of_the_weight, plus=added):
    """x (..., d_in), weight (d_out, d_in), bias (d_out,) to (..., d_out)."""
    return plus(product(x, weight), bias)


linear.example("one vector", lambda draw: (draw(5), draw(3, 5), draw(3)))
linear.example("a matrix of rows", lambda draw: (draw(7, 5), draw(3, 5), draw(3)))
linear.example("four axes", lambda draw: (draw(2, 4, 7, 5), draw(3, 5), draw(3)))
linear.example("sizes that are all equal", batch=4, seq=4, d_in=4, d_out=4, plain=True)
linear.example("one output feature", d_out=1)
linear.example("one input feature", d_in=1)
linear.example("a batch of one sentence of one token", batch=1, seq=1)


@linear.right
class RightAnswers:
    def built_in(x, weight, bias):
        return F.linear(x, weight, bias)

    def with_letters(x, weight, bias):
        return torch.einsum("...i,oi->...o", x, weight) + bias

    def as_columns(x, weight, bias):
        return (weight @ x[..., None] + bias[:, None]).squeeze(-1)

    def output_by_output(x, weight, bias):
        return torch.stack([(x * w).sum(dim=-1) + b for w, b in zip(weight, bias)], dim=-1)

    def bias_as_a_weight(x, weight, bias):
        return torch.cat([x, torch.ones_like(x[..., :1])], -1) @ torch.cat([weight, bias[:, None]], 1).mT

    def folded(x, weight, bias):
        return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight.t()).view(*x.shape[:-1], -1)


@linear.property
def zeros_give_the_bias(function, x, weight, bias):
    """An input of zeros gives the bias."""
    return torch.allclose(function(torch.zeros_like(x), weight, bias), bias)


@linear.property
def tokens_on_their_own(function, x, weight, bias):
    """Tokens do not meet: with the tokens in another order, the results come in that order."""
    return torch.allclose(function(x.flip(-2), weight, bias), function(x, weight, bias).flip(-2), atol=1e-5)


@linear.property
def twice_the_weight(function, x, weight, bias):
    """Without a bias, twice the input gives twice the output."""
    none = torch.zeros_like(bias)
    return torch.allclose(function(2 * x, weight, none), 2 * function(x, weight, none), atol=1e-5)


@linear.wrong(stage="product")
class Product:
    def weight_not_transposed(x, weight):
        """You multiply by the weight as it is stored. It is (d_out, d_in), so the input features meet the axis of the
        outputs: here that raises, and with a square weight it would run and be wrong. The formula has a transpose in it
        for that reason."""
        return x @ weight

    def weight_on_the_left(x, weight):
        """The weight stands on the left: `weight @ x` is right for one vector, which is how books write it. For rows it
        mixes the tokens instead of their features. Here it raises; with equal sizes it would not. On which side must a
        matrix stand to do the same to every row?"""
        return weight @ x

    def weight_cut_anew(x, weight):
        """Your weight gets the shape (d_in, d_out), but its numbers stay in their order: `view` and `reshape` do not
        exchange axes, they cut the same row of numbers anew. The shapes fit and the numbers are wrong. Transposing is
        another operation."""
        return x @ weight.reshape(weight.shape[1], weight.shape[0])

    def tokens_not_folded_back(x, weight):
        """The leading axes are folded into one and stay so: your result has two axes, whatever `x` had. The product
        works without folding, for any number of leading axes; if you fold, you must unfold at the end."""
        return x.reshape(-1, x.shape[-1]) @ weight.T

    def three_axes_alone(x, weight):
        """{Right for three axes, and for no other number:} your `einsum` has one letter for `batch` and one for `seq`.
        The docstring allows any leading axes, also none. Three dots in their place stand for as many axes as there
        are."""
        return torch.einsum("bsi,oi->bso", x, weight)

    def matrices_alone(x, weight):
        """`torch.mm` takes two matrices and nothing else; `x` may have any leading axes, and has three axes here. `@`
        goes along the last axis, whatever stands in front."""
        return torch.mm(x, weight.T)

    def letters_exchanged(x, weight):
        """In your `einsum` the weight is (in, out), and it is stored as (out, in). So the letter of the input features
        stands for two sizes, and it raises; with a square weight it would run and be wrong. Which axis of the weight
        must have the letter that `x` has last?"""
        return torch.einsum("...i,io->...o", x, weight)

    def multiplied_by_elements(x, weight):
        """`*` multiplies element by element and lines the tokens up with the outputs. Here that raises, since there are
        more tokens than outputs; with equal sizes it would run. Every token has to meet every row of the weight: a
        product, `@`."""
        return (x * weight).sum(dim=-1)


@linear.wrong(stage="product", alone=True)
class ProductAlone:
    def number_by_number(x, weight):
        """Inputs and weight are multiplied element by element, `*`, and not as matrices. Every output is a sum over all
        inputs, input times weight: which operator makes these sums?"""
        return x * weight

    def inputs_on_the_right(x, weight):
        """The weight stands on the left and the transposed inputs on the right: `.T` reverses all axes, those of the
        batch too. With the inputs on the left, whatever stands in front stays where it is."""
        return weight @ x.permute(*range(x.ndim - 1, -1, -1))

    def two_letters(x, weight):
        """Your letters name two axes of `x`, and there may be any number in front of the last. `...` stands for all of
        these, on both sides of the arrow."""
        return torch.einsum("bi,oi->bo", x, weight)

    @with_text_of(Product.letters_exchanged)
    def letters_exchanged_for_three_axes(x, weight):
        return torch.einsum("bsi,io->bso", x, weight)


@linear.wrong(stage="plus")
class Plus:
    def bias_forgotten(y, bias):
        """The bias is missing: for an input of zeros you return zeros, and the layer must return its bias. The addition
        is still to come."""
        return y

    def bias_twice(y, bias):
        """The bias is added twice. `F.linear` and `addmm` add it already when they are given one. For an input of zeros
        the layer must return the bias, and yours returns twice that."""
        return y + bias + bias

    def bias_taken_off(y, bias):
        """You subtract the bias where it must be added: for an input of zeros the layer must return its bias, and yours
        returns the opposite."""
        return y - bias

    def bias_for_each_token(y, bias):
        """Your bias is a column: it gives every token a number, where every output feature must get one. Here there are
        more tokens than outputs, so it raises; with equal sizes it would not. A shape of (d_out,) stands under the last
        axis by itself."""
        return y + bias[:, None]

    def activation_added(y, bias):
        """No number of yours is negative: there is a ReLU after the layer. A network often has one there, and a linear
        layer has none. The result is the product plus the bias, and nothing else."""
        return (y + bias).relu()

    def bias_once_for_each_output(y, bias):
        """The bias is added as many times as there are outputs. It is inside the loop over the outputs, and every
        turn adds all of it. Each output gets its own bias, once: add it after the loop, or one number of it in each
        turn."""
        return y + len(bias) * bias

    def bias_once_for_each_later_output(y, bias):
        """The first outputs get their bias several times, and the last one gets it once. The whole bias is added in
        every turn of a loop over the outputs, and each turn writes one output anew. Add it after the loop, or one
        number of it in each turn."""
        return y + torch.arange(len(bias), 0, -1).to(bias) * bias


@linear.wrong
class Turned:
    def everything_in_columns(x, weight, bias):
        """Your result has the features in front of the tokens: (batch, d_out, seq). That is the form of papers that
        keep a token in a column, W X + b. In code a token is a row, and goes through the layer as a row."""
        return weight @ x.mT + bias[:, None]

    def columns_with_a_row_of_bias(x, weight, bias):
        """The weight stands on the left and the tokens are turned into columns, so that the product is (…, d_out, seq);
        then the bias, which is a row, stands under the tokens. Here that raises; with equal sizes it would run. Keep
        the tokens in rows: on which side must the weight stand?"""
        return weight @ x.mT + bias

    def columns_and_back(x, weight, bias):
        """{Right for rows, and not for one vector:} `.mT` exchanges the last two axes, and a vector has one. The
        docstring allows no axes in front. With `x` on the left of the product, it need not be turned."""
        return (weight @ x.mT).mT + bias

    def all_axes_reversed_and_back(x, weight, bias):
        """The weight stands on the left and all axes of `x` are reversed, those of the batch too: that is what `.T`
        does with more than two axes. With `x` on the left of the product, it need not be turned."""
        turned = weight @ x.permute(*range(x.ndim - 1, -1, -1))  # x.T without its warning
        return turned.permute(*range(turned.ndim - 1, -1, -1)) + bias

    def first_axis_of_the_weight_by_tensordot(x, weight, bias):
        """`tensordot` with a number sums over the last axis of `x` and the first axis of the weight. The weight is
        (d_out, d_in), so its features are the last. Here that raises; with a square weight it would run and be wrong.
        Transpose the weight, or name the two axes: `dims=([-1], [1])`."""
        return torch.tensordot(x, weight, dims=1) + bias

    def outputs_first_by_tensordot(x, weight, bias):
        """The weight stands first in `tensordot`, so that the outputs become the first axis of the result, and the bias
        stands under the tokens. With `x` first, the outputs are last."""
        return torch.tensordot(weight, x, dims=([1], [-1])) + bias

    def elements_of_the_transposed(x, weight, bias):
        """`*` multiplies element by element, also with a transposed weight. Here the sizes do not fit, and it raises.
        Every output is a sum over all inputs, input times weight: which operator makes these sums?"""
        return x * weight.T + bias

    def two_axes_by_broadcasting(x, weight, bias):
        """The new axis is counted from the left, at place 1, so it stands right for a matrix of rows alone. Counted
        from the end it fits any number of axes: `x[..., None, :]`."""
        return (x[:, None, :] * weight).sum(-1) + bias

    def summed_over_the_outputs(x, weight, bias):
        """Every token meets every row of the weight, and then you sum over the rows: what is left has the size of the
        inputs. An output is the sum over the inputs, which are the last axis."""
        return (x[..., None, :] * weight).sum(-2) + bias

    def everything_in_one_row(x, weight, bias):
        """`flatten` puts all numbers of `x` in one row, and the weight has room for one token. The product goes along
        the last axis, whatever stands in front: nothing has to be flattened."""
        return x.flatten() @ weight.T + bias

    def tokens_joined_in_one_row(x, weight, bias):
        """The features of all tokens of a sentence stand in one row: all axes but the first are joined, as in front of
        a layer that reads a whole picture. Here the layer reads a token at a time, along the last axis, and nothing has
        to be joined."""
        return x.flatten(1) @ weight.T + bias

    def three_axes_by_bmm(x, weight, bias):
        """{Right for three axes, and for no other number:} `torch.bmm` takes exactly three. `@` does the same for any
        number of axes in front, and needs no copies of the weight."""
        return torch.bmm(x, weight.T.expand(len(x), -1, -1)) + bias

    @family(
        vector_alone_by_mv=(lambda bias, weight, x: torch.mv(weight, x) + bias, "mv"),
        vector_alone_by_addmv=(torch.addmv, "addmv"),
    )
    def one_vector_alone(product, x, weight, bias):
        """`torch.{}` takes a matrix and one vector; `x` may have any axes in front, and has three axes here. `x @
        weight.T` goes along the last axis, whatever stands in front."""
        return product(bias, weight, x)

    def one_matrix_by_addmm(x, weight, bias):
        """`torch.addmm` takes a matrix and nothing else; `x` may have any leading axes, and has three axes here. `@`
        goes along the last axis, whatever stands in front, and the bias is added afterwards."""
        return torch.addmm(bias, x, weight.T)

    def divided_by_the_root(x, weight, bias):
        """The product is divided by √d_in before the bias is added. Attention divides its scores like that, and weights
        are drawn like that; the layer itself has no scale."""
        return x @ weight.T / x.shape[-1] ** 0.5 + bias


@linear.wrong
class Bias:
    def bias_in_front(x, weight, bias):
        """You add the bias to the input, before the product. It has one number for each output feature: here the sizes
        differ, and it raises; with a square weight it would run and be wrong. First the product, then the bias."""
        return (x + bias) @ weight.T

    def bias_added_to_the_weight(x, weight, bias):
        """The bias is added to the weight before the product. So it is multiplied by the inputs: for an input of zeros
        it disappears, where the layer must return it. First the product, then the bias."""
        return x @ (weight + bias[:, None]).T

    def bias_summed_up(x, weight, bias):
        """Every output gets the sum of all biases. Each output feature has a bias of its own; `(d_out,)` stands under
        the last axis by itself."""
        return x @ weight.T + bias.sum()

    def bias_as_a_factor(x, weight, bias):
        """The bias is multiplied, where it must be added: `@` with a vector sums the outputs of a token into one
        number. The formula has a plus there."""
        return x @ weight.T @ bias

    def bias_in_every_turn(x, weight, bias):
        """The bias is added as many times as there are inputs. It is inside the loop or the sum over the inputs,
        and is added in every turn. An output is a sum over all inputs, and one bias: where does the sum end?"""
        return x @ weight.T + x.shape[-1] * bias

    def bias_on_the_wrong_side_of_the_weight(x, weight, bias):
        """The bias is taken into the weight on one side, and the 1 into `x` on the other: the 1 stands after the
        features and the bias in front of the weights, or the other way round. So every feature meets the weight of its
        neighbour. Put both at the end, or both in front."""
        ones = torch.ones_like(x[..., :1])
        return torch.cat([x, ones], -1) @ torch.cat([bias[:, None], weight], 1).mT

    def one_in_front_and_bias_behind(x, weight, bias):
        """The bias is taken into the weight on one side, and the 1 into `x` on the other: the 1 stands in front of the
        features and the bias after the weights. So every feature meets the weight of its neighbour. Put both at the
        end, or both in front."""
        ones = torch.ones_like(x[..., :1])
        return torch.cat([ones, x], -1) @ torch.cat([weight, bias[:, None]], 1).mT

    def ones_for_a_matrix(x, weight, bias):
        """The ones that are joined to `x` have two axes, and `x` has three here and may have any number. They need the
        same axes in front as `x`: `torch.ones(*x.shape[:-1], 1)`, or `x.new_ones` with that shape."""
        return torch.cat([x, torch.ones(x.shape[0], 1)], -1) @ torch.cat([weight, bias[:, None]], 1).T

    def bias_joined_as_it_is(x, weight, bias):
        """The bias is joined to the weight as it is, with one axis, and the weight has two. It has to become a column
        first: `bias[:, None]`."""
        return torch.cat([x, torch.ones(*x.shape[:-1], 1)], -1) @ torch.cat([weight, bias], 1).T
