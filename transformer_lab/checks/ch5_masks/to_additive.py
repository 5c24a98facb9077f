"""A mask to add to the scores, made from a boolean mask."""

import torch

from ..agree import metadata
from ..exercise import exercise, family


def _random_mask(draw, q_len=5, k_len=4):
    return (draw(q_len, k_len) > 0,)


def zeros(mask):
    """Begin with zeros in float32."""
    return torch.zeros(mask.shape, device=mask.device)


def where_false(mask):
    """Find the places where the mask is `False`."""
    return ~mask


def fill_in_minus_infinity(bias, hidden):
    """Fill in -inf at the hidden places."""
    return bias.masked_fill(hidden, float("-inf"))


@exercise(
    inputs=_random_mask,
    axes={"mask": "q_len k_len", "return": "q_len k_len"},
    hints=(
        "Which number can you add to a score without changing it, and which number must you add so that the weight "
        "becomes zero?",
        "Begin with zeros of the mask's shape, in float32, and fill in -inf where the mask is `False`. Multiplying by "
        "infinity is a trap: 0 · inf is NaN.",
        "`torch.zeros(mask.shape).masked_fill(…, …)`",
    ),
)
def to_additive(mask, *, bias=zeros, hidden=where_false, filled=fill_in_minus_infinity):
    """Return a float32 tensor of the mask's shape: 0 where ``mask`` is True, -inf where it is False."""
    return filled(bias(mask), hidden(mask))


@to_additive.right
class RightAnswers:
    def by_where(mask):
        return torch.where(mask, 0.0, float("-inf"))

    def by_the_logarithm(mask):
        return mask.float().log()

    def in_place(mask):
        bias = torch.zeros_like(mask, dtype=torch.float32)
        bias[~mask] = -torch.inf
        return bias


to_additive.example("a mask that hides all", torch.zeros(3, 4, dtype=torch.bool))
to_additive.example("a mask that hides nothing", torch.ones(3, 4, dtype=torch.bool))
to_additive.example("a mask with four axes", lambda draw: (draw(2, 1, 1, 5) > 0,))
to_additive.example("a mask of 300 keys", torch.arange(600).reshape(2, 300) % 7 < 4)
to_additive.example("a mask with one axis", torch.tensor([True, False, True]))


@to_additive.property
def only_zero_and_minus_infinity(function, mask):
    """Every entry is 0 or -inf."""
    result = function(mask)
    return bool(((result == 0) | (result == float("-inf"))).all())


@to_additive.property
def infinity_where_false(function, mask):
    """An entry is -inf where the mask is `False`, and nowhere else."""
    return torch.equal(function(mask) == float("-inf"), ~mask)


def _hides_with_one_finite_number(probe, got, expected):
    """Whether the only mistake is that all hidden places get the same finite number below zero."""
    if not isinstance(got.value, torch.Tensor) or metadata(got.value) != metadata(expected.value):
        return False
    (mask,) = probe.arguments
    hiding = got.value[~mask]
    is_one_finite_number = bool((hiding == hiding[:1]).all() and (hiding < 0).all() and hiding.isfinite().all())
    return is_one_finite_number and not got.value[mask].any()


@to_additive.wrong(stage="bias")
class Bias:
    def ones_where_allowed(mask):
        """Hidden places get -inf, but allowed places get 1 instead of 0, because `True` becomes the number 1. The
        softmax does not change, since all visible scores rise by the same amount. But if you turn such a mask back into
        bool with `mask == 0`, nothing is allowed. Which number leaves a score as it is?"""
        return mask.float()

    def bool_for_numbers(mask):
        """The result is bool, `True` where -inf should be. You filled a tensor of `False`, but bool cannot hold -inf:
        every number but 0 becomes `True`, without an error. `zeros_like` also copies the dtype of the mask; which dtype
        must your zeros have?"""
        return torch.zeros_like(mask)


@to_additive.wrong(stage="bias", alone=True)
class BiasAlone:
    def bool_filled(mask):
        """The result is bool, and `True` everywhere. You filled the mask itself, but bool cannot hold -inf: every
        number but 0 becomes `True`, without an error. Begin with a tensor of numbers."""
        return mask


@to_additive.wrong(stage="hidden")
class Hidden:
    def additive_inverted(mask):
        """Your mask is the wrong way round: -inf where the mask is `True`. Here `True` means may attend, and a visible
        key keeps its score. `masked_fill` fills where its own mask is `True`: is that the place you want?"""
        return mask


@to_additive.wrong(stage="hidden", alone=True)
class HiddenAlone:
    def bool_negated_with_a_minus(mask):
        """PyTorch does not negate a bool with a minus: `-mask` raises an error. The opposite of a mask is `~mask`,
        entry by entry."""
        return -mask

    def not_of_a_tensor(mask):
        """Python's words `not`, `and`, `or` and `if` require one `True` or `False`, but the tensor has many: "Boolean
        value of Tensor with more than one value is ambiguous". Which operator negates a bool tensor entry by entry?"""
        return not mask


@to_additive.wrong(stage="filled")
class Filled:
    def plus_infinity(bias, hidden):
        """Hidden places get +inf: the hidden score becomes the largest of all, and the softmax returns NaN. The minus
        sign is missing, or is written twice, as in `-float("-inf")`."""
        return bias.masked_fill(hidden, float("inf"))

    def minus_a_billion(bias, hidden):
        """Hidden places get -1e9 instead of -inf. With either number, the hidden weights are zero as long as some key
        is visible. In a row that sees nothing, -1e9 gives all keys equal weights and blends hidden values, without an
        error. Also, `float16` cannot represent -1e9. The docstring asks for -inf."""
        return bias.masked_fill(hidden, -1e9)

    def minus_ten_thousand(bias, hidden):
        """Hidden places get -10000 instead of -inf. Older programs use -10000, because the lowest number in `float16`
        is -65504. With either number, the hidden weights are zero as long as some key is visible and the absolute
        values of all scores are far below 10000. In a row that sees nothing all scores decrease by the same amount, and
        no key is hidden. The docstring asks for -inf."""
        return bias.masked_fill(hidden, -1e4)

    def lowest_number(bias, hidden):
        """Hidden places get the lowest number of float32 instead of -inf. Many libraries use this number, to avoid NaN
        in rows that see nothing; such rows then attend to all keys equally. The sum of two such masks overflows. The
        docstring asks for -inf."""
        return bias.masked_fill(hidden, torch.finfo(torch.float32).min)

    def nothing_filled(bias, hidden):
        """Every entry is 0, so nothing is hidden. `masked_fill` returns a new tensor and leaves the old one unchanged:
        where do you use its result?"""
        return bias


@to_additive.wrong
class WrongAnswers:
    def one_and_zero(mask):
        """You return the mask as ones and zeros. Added to the scores, it raises the allowed scores by 1 and hides no
        key. Which number, added to a score, makes its weight zero?"""
        return mask.float()

    def zero_and_minus_one(mask):
        """Hidden places get -1. Adding -1 to a score divides its exponential by 2.7, and the key is still seen. Which
        number, added to a score, makes its weight zero?"""
        return mask.float() - 1

    def nan_where_allowed(mask):
        """Your mask is NaN where attention is allowed: you multiply a mask of 0 and 1 by -inf, and 0 times infinity is
        NaN. Choose between two numbers instead of multiplying: `masked_fill` or `where`."""
        return (~mask) * float("-inf")

    def nan_where_hidden(mask):
        """Your mask is NaN where attention is hidden, and -inf where it is allowed: you multiply the mask itself by
        -inf, and 0 times infinity is NaN. Choose between two numbers instead of multiplying: `masked_fill` or
        `where`."""
        return mask * float("-inf")

    def bool_subtracted(mask):
        """PyTorch does not subtract bools, so expressions such as `1 - mask` raise an error. The opposite of a mask is
        `~mask`. If you convert the mask to numbers and multiply them by -inf, you get NaN, since 0 times infinity is
        NaN. To choose between two numbers, you need neither step."""
        return (1 - mask) * float("-inf")

    def one_where_hidden(mask):
        """Your result is the inverted mask as numbers: 1 where the mask hides, 0 where it allows. Added to the scores,
        it raises the hidden scores by 1, and hides nothing. Which number, added to a score, makes its weight zero?"""
        return (~mask).float()

    def everything_hidden(mask):
        """Your result is -inf everywhere, so nothing may be attended to. If you first replace 1 with 0 and then 0 with
        -inf, the new zeros are replaced as well. In which order must you replace the two numbers so that each changes
        only once?"""
        return torch.full(mask.shape, float("-inf"))

    def bool_filled_in_place(mask):
        """You wrote -inf into the mask itself. A bool tensor cannot hold -inf: every number but 0 becomes `True`,
        without an error, and the caller's own mask now allows everything. Begin with a new tensor, of numbers."""
        mask[~mask] = float("-inf")
        return mask

    def two_axes_only(mask):
        """Your loops assume a mask with two axes, and fail for any other mask. The result must have the shape of the
        mask, however many axes the mask has. PyTorch's own operations work on every entry: which of them chooses
        between two numbers?"""
        bias = torch.zeros(mask.shape)
        for query in range(mask.shape[0]):
            for key in range(mask.shape[1]):
                if not mask[query, key]:
                    bias[query, key] = float("-inf")
        return bias

    def axes_added(mask):
        """{The numbers are right, but} the result has two axes of size 1 that the mask does not have. Programs that
        begin with a mask of shape (batch, k_len) add these axes. The docstring asks for a result with the shape of the
        mask."""
        return to_additive.reference(mask)[:, None, None]

    def mask_transposed(mask):
        """The last two axes are exchanged: a row of your result belongs to a key, and not to a query. {The numbers are
        right.} The result must have the shape of the mask, so nothing has to be transposed."""
        return to_additive.reference(mask).mT

    @family(infinity_in_int64=torch.int64, infinity_in_int32=torch.int32)
    def infinity_in_integers(dtype, mask):
        """You fill -inf into integers, and PyTorch raises an error: only floating-point numbers can be infinite. `long`
        and `int` turn a mask into the integers 0 and 1. Which dtype must your zeros have?"""
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, float("-inf"))


@to_additive.mistake(stage="filled", recognizes=_hides_with_one_finite_number)
def finite_number_below_zero(bias, hidden):
    """Hidden places get a finite number instead of -inf. Added to a score, this number hides the key only from a query
    with a much higher visible score: where all visible scores are as low as the score of the hidden key, this key gets
    a weight. In a row that sees nothing all scores change by the same amount, and no key is hidden. The docstring asks
    for -inf, which is below every score."""
    return bias.masked_fill(hidden, -100.0)
