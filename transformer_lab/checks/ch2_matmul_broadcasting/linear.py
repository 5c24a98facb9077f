"""A linear layer."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of


def _input_and_layer(draw, batch=2, seq=7, d_in=5, d_out=3):
    return draw(batch, seq, d_in), draw(d_out, d_in), draw(d_out)


def multiply_by_transposed_weight(x, weight):
    """Multiply by the transposed weight."""
    return x @ weight.T


def add_bias(y, bias):
    """Add the bias to every row."""
    return y + bias


@exercise(
    inputs=_input_and_layer,
    axes={"x": "batch seq d_in", "weight": "d_out d_in", "bias": "d_out", "return": "batch seq d_out"},
    hints=(
        "The weight is stored as (d_out, d_in). Which of its axes must be summed over together with the last axis of "
        "`x`, and at which place does `@` expect this axis?",
        "The product sums over the last axis of `x`, whatever axes come before it. The weight is a matrix, so its "
        "transpose is `.T`. The bias has one number for each output feature, and broadcasting lines it up with the "
        "last axis.",
        "`y = x @ …`, then `return y + …`: you need no loop, and no axis of `x` has to be moved",
    ),
)
def linear(x, weight, bias, *, product=multiply_by_transposed_weight, plus=add_bias):
    """Apply a linear layer: x (..., d_in), weight (d_out, d_in), bias (d_out,). Returns (..., d_out)."""
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

    def by_einsum(x, weight, bias):
        return torch.einsum("...i,oi->...o", x, weight) + bias

    def tokens_as_columns(x, weight, bias):
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
def tokens_independent(function, x, weight, bias):
    """Each token is computed separately: if the tokens are reordered, the results are reordered in the same way."""
    return torch.allclose(function(x.flip(-2), weight, bias), function(x, weight, bias).flip(-2), atol=1e-5)


@linear.property
def doubled_input_doubles_the_output(function, x, weight, bias):
    """Without a bias, twice the input gives twice the output."""
    no_bias = torch.zeros_like(bias)
    return torch.allclose(function(2 * x, weight, no_bias), 2 * function(x, weight, no_bias), atol=1e-5)


@linear.wrong(stage="product")
class Product:
    def weight_not_transposed(x, weight):
        """You multiply by the weight as it is stored. The weight has shape (d_out, d_in), so the product pairs the
        input features with the axis of the outputs: here this raises an error; with a square weight your function would
        run and be wrong. This is why the formula has a transpose."""
        return x @ weight

    def weight_on_the_left(x, weight):
        """The weight is on the left: `weight @ x` is right for one vector, and books write the layer in this way. For
        rows, `weight @ x` mixes the tokens instead of their features. Here it raises an error; with equal sizes it
        would not. On which side of `x` must the weight be to act on every row?"""
        return weight @ x

    def weight_reshaped(x, weight):
        """Your weight gets the shape (d_in, d_out), but its numbers stay in their order: `view` and `reshape` do not
        swap axes; they cut the same row of numbers differently. The shapes fit, but the numbers are wrong. Which
        operation transposes?"""
        return x @ weight.reshape(weight.shape[1], weight.shape[0])

    def tokens_not_folded_back(x, weight):
        """You fold the leading axes into one and leave them folded: your result has two axes, however many `x` has. The
        product works without folding, for any number of leading axes; if you fold, you must unfold at the end."""
        return x.reshape(-1, x.shape[-1]) @ weight.T

    def three_axes_alone(x, weight):
        """{Your function is right for three axes, and for no other number:} your `einsum` has one letter for `batch`
        and one for `seq`. The docstring allows any leading axes, even none. Three dots in place of these letters name
        all leading axes, however many there are."""
        return torch.einsum("bsi,oi->bso", x, weight)

    def matrices_alone(x, weight):
        """`torch.mm` accepts two matrices only; `x` may have any leading axes, and has three axes here. `@` sums over
        the last axis, whatever is in front of it."""
        return torch.mm(x, weight.T)

    def letters_exchanged(x, weight):
        """The letters of your `einsum` order the axes of the weight as (in, out), but it is stored as (out, in). So one
        letter names two different sizes, and `einsum` raises an error; with a square weight it would run and be wrong.
        Which axis of the weight needs the letter of the last axis of `x`?"""
        return torch.einsum("...i,io->...o", x, weight)

    def element_by_element_and_summed(x, weight):
        """`*` multiplies element by element and lines the tokens up with the outputs. Here this raises an error, since
        there are more tokens than outputs; with equal sizes it would run. Compute the dot product of every token with
        every row of the weight: use the matrix product, `@`."""
        return (x * weight).sum(dim=-1)


@linear.wrong(stage="product", alone=True)
class ProductAlone:
    def element_by_element(x, weight):
        """You multiply inputs and weight element by element, with `*`, not as matrices. Every output is the sum of all
        products of an input and its weight: which operator computes these sums?"""
        return x * weight

    def inputs_on_the_right(x, weight):
        """The weight is on the left and the transposed inputs are on the right: `.T` reverses all axes, those of the
        batch too. With the inputs on the left, the leading axes stay where they are."""
        return weight @ x.permute(*range(x.ndim - 1, -1, -1))

    def two_letters(x, weight):
        """Your letters name two axes of `x`, but there may be any number of axes in front of the last. `...` names all
        of them, on both sides of the arrow."""
        return torch.einsum("bi,oi->bo", x, weight)

    @with_text_of(Product.letters_exchanged)
    def letters_exchanged_for_three_axes(x, weight):
        return torch.einsum("bsi,io->bso", x, weight)


@linear.wrong(stage="plus")
class Plus:
    def bias_forgotten(y, bias):
        """The bias is missing: for an input of zeros you return zeros, but the layer must return its bias. Add it after
        the product."""
        return y

    def bias_twice(y, bias):
        """The bias is added twice. `F.linear` and `addmm` already add the bias that you pass them. For an input of
        zeros the layer must return the bias, but your function returns twice the bias."""
        return y + bias + bias

    def bias_subtracted(y, bias):
        """You subtract the bias, but must add it: for an input of zeros the layer must return its bias, but your
        function returns minus the bias."""
        return y - bias

    def bias_for_each_token(y, bias):
        """Your bias is a column: each token gets one number, but each output feature must get one number. Here there
        are more tokens than outputs, so the addition raises an error; with equal sizes it would not. A shape of
        (d_out,) lines up with the last axis without a new axis."""
        return y + bias[:, None]

    def activation_added(y, bias):
        """Your result has no negative number: you apply a ReLU after the layer. A network often has a ReLU there, but a
        linear layer does not. Return the product plus the bias."""
        return (y + bias).relu()

    def bias_once_for_each_output(y, bias):
        """You add the bias as many times as there are outputs: the addition is inside the loop over the outputs, and
        every iteration adds the whole bias. Add the bias after the loop, or one number of it in each iteration."""
        return y + len(bias) * bias

    def bias_once_for_each_later_output(y, bias):
        """You add the whole bias in every iteration of a loop over the outputs, and each iteration overwrites one
        output. So the first outputs get their bias several times, and the last output gets its bias once. Add the bias
        after the loop, or one number of it in each iteration."""
        return y + torch.arange(len(bias), 0, -1).to(bias) * bias


@linear.wrong
class Transposed:
    def tokens_in_columns(x, weight, bias):
        """Your result has the features in front of the tokens: its shape is (batch, d_out, seq). Papers that keep each
        token in a column write W X + b. In code each token is a row, in the input and in the output."""
        return weight @ x.mT + bias[:, None]

    def columns_with_a_row_of_bias(x, weight, bias):
        """The weight is on the left and the tokens are columns, so the product has shape (…, d_out, seq), and the bias,
        a row, lines up with the tokens. Here the addition raises an error; with equal sizes it would run. Keep the
        tokens in rows: on which side of `x` must the weight be?"""
        return weight @ x.mT + bias

    def columns_and_back(x, weight, bias):
        """{Your function is right for rows, but not for one vector:} `.mT` swaps the last two axes, but a vector has
        only one axis. The docstring allows an `x` without leading axes. With `x` on the left of the product, you need
        not transpose it."""
        return (weight @ x.mT).mT + bias

    def all_axes_reversed_and_back(x, weight, bias):
        """The weight is on the left and all axes of `x` are reversed, including those of the batch: `.T` reverses all
        axes, even of a tensor with more than two axes. With `x` on the left of the product, you need not transpose
        it."""
        product = weight @ x.permute(*range(x.ndim - 1, -1, -1))  # x.T without its warning
        return product.permute(*range(product.ndim - 1, -1, -1)) + bias

    def first_axis_of_the_weight_by_tensordot(x, weight, bias):
        """With a number for `dims`, `tensordot` sums over the last axis of `x` and the first axis of the weight. The
        weight has shape (d_out, d_in), so its last axis holds the features. Here the product raises an error; with a
        square weight it would run and be wrong. Transpose the weight, or name the two axes: `dims=([-1], [1])`."""
        return torch.tensordot(x, weight, dims=1) + bias

    def outputs_first_by_tensordot(x, weight, bias):
        """The weight is the first argument of `tensordot`, so the outputs are the first axis of the result, and the
        bias lines up with the tokens. With `x` as the first argument, the outputs are the last axis."""
        return torch.tensordot(weight, x, dims=([1], [-1])) + bias

    def elements_of_the_transposed(x, weight, bias):
        """`*` multiplies element by element, even with a transposed weight. Here the sizes do not fit, so it raises an
        error. Every output is the sum of all products of an input and its weight: which operator computes these
        sums?"""
        return x * weight.T + bias

    def two_axes_by_broadcasting(x, weight, bias):
        """You count the new axis from the left, at place 1, so it is in the right place only when `x` is a matrix of
        rows. Counted from the end, it is right for any number of axes: `x[..., None, :]`."""
        return (x[:, None, :] * weight).sum(-1) + bias

    def summed_over_the_outputs(x, weight, bias):
        """You multiply every token by every row of the weight, but then you sum over these rows, so the last axis of
        the result has size d_in. Sum over the last axis instead, the axis of the inputs."""
        return (x[..., None, :] * weight).sum(-2) + bias

    def x_flattened(x, weight, bias):
        """`flatten` puts all numbers of `x` in one row, but a row of the weight is as long as one token. The product
        sums over the last axis, whatever is in front of it: leave out `flatten`."""
        return x.flatten() @ weight.T + bias

    def tokens_joined_in_one_row(x, weight, bias):
        """You join all axes but the first, so the features of all tokens of a sentence are in one row, as for a layer
        that reads a whole picture. Here the layer reads one token at a time, along the last axis: leave out
        `flatten`."""
        return x.flatten(1) @ weight.T + bias

    def three_axes_by_bmm(x, weight, bias):
        """{Your function is right for three axes, and for no other number:} `torch.bmm` accepts tensors of exactly
        three axes. `@` does the same for any number of leading axes, and needs no copies of the weight."""
        return torch.bmm(x, weight.T.expand(len(x), -1, -1)) + bias

    @family(
        vector_alone_by_mv=(lambda bias, weight, x: torch.mv(weight, x) + bias, "mv"),
        vector_alone_by_addmv=(torch.addmv, "addmv"),
    )
    def one_vector_alone(product, x, weight, bias):
        """`torch.{}` accepts a matrix and one vector; `x` may have any leading axes, and has three axes here. `x @
        weight.T` sums over the last axis, whatever is in front of it."""
        return product(bias, weight, x)

    def one_matrix_by_addmm(x, weight, bias):
        """`torch.addmm` accepts matrices only; `x` may have any leading axes, and has three axes here. `@` sums over
        the last axis, whatever is in front of it; add the bias afterwards."""
        return torch.addmm(bias, x, weight.T)

    def divided_by_the_root(x, weight, bias):
        """You divide the product by √d_in before you add the bias. Attention divides its scores by such a root, and
        weights are often initialized with a standard deviation of 1/√d_in; the layer itself has no scale."""
        return x @ weight.T / x.shape[-1] ** 0.5 + bias


@linear.wrong
class Bias:
    def bias_in_front(x, weight, bias):
        """You add the bias to the input, before the product. The bias has one number for each output feature: here the
        sizes differ, so the addition raises an error; with a square weight it would run and be wrong. Compute the
        product first, then add the bias."""
        return (x + bias) @ weight.T

    def bias_added_to_the_weight(x, weight, bias):
        """You add the bias to the weight before the product, so the bias is multiplied by the inputs: for an input of
        zeros you return zeros, but the layer must return its bias. Compute the product first, then add the bias."""
        return x @ (weight + bias[:, None]).T

    def bias_summed_up(x, weight, bias):
        """Every output gets the sum of all biases. Each output feature has its own bias; a bias of shape `(d_out,)`
        already lines up with the last axis."""
        return x @ weight.T + bias.sum()

    def bias_as_a_factor(x, weight, bias):
        """You multiply by the bias, but must add it: `@` with a vector sums the outputs of a token into one number. In
        the formula, the bias follows a plus."""
        return x @ weight.T @ bias

    def bias_once_for_each_input(x, weight, bias):
        """You add the bias as many times as there are inputs: the addition is inside the loop or the sum over the
        inputs. An output is the sum over all inputs, plus one bias: where does the sum end?"""
        return x @ weight.T + x.shape[-1] * bias

    def bias_on_the_wrong_side_of_the_weight(x, weight, bias):
        """You join the bias to the front of the weight but the ones to the end of `x`, or the reverse. So every feature
        is multiplied by the weight of its neighbour. Put the bias and the ones both at the end, or both in front."""
        ones = torch.ones_like(x[..., :1])
        return torch.cat([x, ones], -1) @ torch.cat([bias[:, None], weight], 1).mT

    def ones_first_and_bias_last(x, weight, bias):
        """You join the ones to the front of `x`, but the bias to the end of the weight. So every feature is multiplied
        by the weight of its neighbour. Put the bias and the ones both at the end, or both in front."""
        ones = torch.ones_like(x[..., :1])
        return torch.cat([ones, x], -1) @ torch.cat([weight, bias[:, None]], 1).mT

    def ones_for_a_matrix(x, weight, bias):
        """The tensor of ones that you join to `x` has two axes, but `x` has three here and may have any number. The
        ones need the leading axes of `x`: `torch.ones(*x.shape[:-1], 1)`, or `x.new_ones` with that shape."""
        return torch.cat([x, torch.ones(x.shape[0], 1)], -1) @ torch.cat([weight, bias[:, None]], 1).T

    def bias_joined_as_it_is(x, weight, bias):
        """You join the bias, which has one axis, to the weight, which has two. Turn the bias into a column first:
        `bias[:, None]`."""
        return torch.cat([x, torch.ones(*x.shape[:-1], 1)], -1) @ torch.cat([weight, bias], 1).T
