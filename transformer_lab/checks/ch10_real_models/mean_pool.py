"""One vector for a sentence: the mean of its real tokens, with length 1."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, rows_of, with_text_of


def _states(draw, batch=3, seq=7, d_model=5):
    lengths = 2 + torch.arange(batch) * (seq - 2) // max(batch - 1, 1)
    return draw(batch, seq, d_model), torch.arange(seq) < lengths[:, None]


def mean_of_real(states, real):
    """Take the mean of the real tokens of each text."""
    return (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


def of_length_one(mean):
    """Divide each vector by its length."""
    return mean / mean.norm(dim=-1, keepdim=True)


@exercise(
    inputs=_states,
    axes={"states": "batch seq d_model", "real": "batch seq", "return": "batch d_model"},
    hints=(
        "A text of three tokens is in a batch with a text of ten. How many of its ten rows may its mean contain?",
        "Set the rows of the padding to 0, add up the rows of each text, and divide. Then scale each vector to "
        "length 1, so that a dot product is a cosine.",
        "`mean = (states * real[..., None]).sum(…) / real.sum(…, keepdim=True)`, `return mean / mean.norm(…)`",
    ),
)
def mean_pool(states, real, *, mean=mean_of_real, length=of_length_one):
    """Return the mean of each text's real tokens, with length 1: (batch, seq, d_model) to (batch, d_model)."""
    return length(mean(states, real))


mean_pool.example("texts of one length", lambda draw: (draw(2, 4, 5), torch.ones(2, 4, dtype=torch.bool)), plain=True)


@mean_pool.probe(plain=True)
def padding_in_front(draw):
    """padding in front of the text"""
    states, real = _states(draw)
    return states, real.flip(1)


@mean_pool.probe(plain=True)
def padding_in_every_text(draw):
    """padding in every text"""
    return draw(3, 6, 4), torch.arange(6) < torch.tensor([[1], [4], [2]])


@mean_pool.probe(plain=True)
def huge_padding(draw):
    """huge numbers in the padding"""
    states, real = _states(draw)
    return states.masked_fill(~real[..., None], 1e4), real


@mean_pool.right
class RightAnswers:
    def by_pytorch_normalize(states, real):
        return F.normalize(
            (states * real.unsqueeze(-1)).sum(1), dim=-1
        )  # dividing by the length cancels the divisor of the mean

    def text_by_text(states, real):
        means = torch.stack([text[kept].mean(dim=0) for text, kept in zip(states, real)])
        return means / means.square().sum(dim=1, keepdim=True).sqrt()

    def by_weights(states, real):
        weights = real / real.sum(dim=-1, keepdim=True)
        mean = torch.einsum("bs,bsd->bd", weights.to(states.dtype), states)
        return mean / torch.linalg.vector_norm(mean, dim=-1, keepdim=True)


@mean_pool.property
def every_length_is_one(function, states, real):
    """Every vector has the length 1."""
    return bool(torch.allclose(function(states, real).norm(dim=-1), torch.ones(()), atol=1e-4))


@mean_pool.property
def padding_is_never_read(function, states, real):
    """What stands in the padding changes nothing."""
    changed = states.masked_fill(~real[..., None], 3.0)
    return bool(torch.allclose(function(changed, real), function(states, real), atol=1e-4))


@mean_pool.wrong(stage="mean")
class Mean:
    def padding_in_the_mean(states, real):
        """Padding is in your mean. Short texts suffer most: their vectors are mostly padding. Which argument says which
        tokens are real?"""
        return states.mean(dim=1)

    def only_the_padding(states, real):
        """You keep the padding and leave out the real tokens: `real` is True where there is a word."""
        return mean_of_real(states, ~real)

    def first_token(states, real):
        """You take the first token of each text, `[CLS]`, as BERT's classifiers do. This model was trained with the
        mean of all of its real tokens."""
        return states[:, 0]

    def last_token(states, real):
        """You take the last token of each row. In a short text that is padding; asked for is the mean of the real
        ones."""
        return states[:, -1]

    def last_real_token(states, real):
        """You take the last real token of each text, as encoders made of language models do. This one was trained with
        the mean of all real tokens."""
        last = real.sum(dim=1) - 1
        return states[torch.arange(len(states)), last]

    def largest_of_each_feature(states, real):
        """You take the largest number of each feature. That is max pooling; this model was trained with the mean."""
        return states.masked_fill(~real[..., None], float("-inf")).amax(dim=1)

    def unit_vectors_averaged(states, real):
        """You make every token's length 1 before the mean. Long tokens then count no more than short ones: the length
        is made 1 once, after the mean."""
        return mean_of_real(F.normalize(states, dim=-1), real)

    def mean_over_all_texts(states, real):
        """One mean serves the whole batch: all texts get the same vector. Which axis are the tokens of one text on?"""
        return mean_of_real(states.flatten(0, 1)[None], real.flatten()[None]).expand(len(states), -1)

    def mean_over_features(states, real):
        """Your mean is over the features: a number for each token, where a vector for each text was asked for. Which
        axis are the tokens on?"""
        return states.mean(dim=-1)

    def tokens_of_all_texts_joined(states, real):
        """The whole batch becomes one vector, the mean of all texts' tokens. `states[real]` leads there: it picks the
        real tokens and joins them in one long row, so that which came from which text is forgotten. How can padding be
        left out while each text keeps its row?"""
        return states[real].mean(dim=0)

    def first_real_token(states, real):
        """You take the first real token of each text, as classifiers do. This model was trained with the mean of all of
        its real tokens."""
        return states[torch.arange(len(states)), real.int().argmax(dim=1)]

    def last_of_the_real_places(states, real):
        """You take the last real token of each text, wherever it stands, as encoders made of language models do. This
        one was trained with the mean of all real tokens."""
        return states[
            torch.arange(len(states)), (real * torch.arange(1, real.shape[1] + 1, device=real.device)).argmax(dim=1)
        ]

    def largest_with_padding(states, real):
        """You take the largest number of each feature, in the padding as well. That is max pooling; this model was
        trained with the mean, and that of the real tokens."""
        return states.amax(dim=1)

    def largest_or_zero(states, real):
        """You take the largest number of each feature, and zeros in the padding count for numbers. That is max pooling;
        this model was trained with the mean."""
        return (states * real[..., None]).amax(dim=1)

    def counted_from_the_front(states, real):
        """You take as many tokens from the front as are real. With padding in front, those are not the real ones:
        `real` says which they are, and not only how many."""
        front = torch.arange(real.shape[1], device=real.device) < real.sum(dim=1, keepdim=True)
        return mean_of_real(states, front)

    def unit_vectors_with_padding(states, real):
        """You make every token's length 1 before the mean, and padding is in that mean as well. Which argument says
        which tokens are real? And the length is made 1 once, after the mean."""
        return F.normalize(states, dim=-1).mean(dim=1)

    def tokens_and_padding_normalized_over_the_tokens(states, real):
        """You normalize `states` along the tokens, before the mean, and the length of each feature is taken over the
        padding as well. The length is made 1 once, after the mean, over the features of each text."""
        return mean_of_real(F.normalize(states, dim=1), real)

    def normalized_over_the_tokens(states, real):
        """You normalize `states` along the tokens, before the mean: `F.normalize` takes axis 1 unless it is told
        otherwise. The length is made 1 once, after the mean, over the features of each text."""
        return mean_of_real(F.normalize(states * real[..., None], dim=1), real)

    def summed_over_the_texts(states, real):
        """You add up along the batch: a vector for each place, where one for each text was asked for. Count the axes of
        `states` from 0: which one are the tokens?"""
        return (states * real[..., None]).sum(dim=0)

    def texts_averaged(states, real):
        """Your mean is over the batch, padding included: a vector for each place, where one for each text was asked
        for. Count the axes of `states` from 0: which one are the tokens?"""
        return states.mean(dim=0)

    def features_of_the_real_averaged(states, real):
        """Your sum is over the features: a number for each token, where a vector for each text was asked for. Which
        axis are the tokens on?"""
        return (states * real[..., None]).mean(dim=-1)

    def tokens_kept_apart(states, real):
        """The tokens are still apart, (batch, seq, d_model): padding is set to 0, and nothing is added up. Which step
        makes one vector of a text?"""
        return states * real[..., None]

    def tokens_and_padding_kept_apart(states, real):
        """The tokens are still apart, (batch, seq, d_model), padding among them. Which step makes one vector of a text,
        and what does `real` say?"""
        return states.clone()


@mean_pool.wrong(stage="mean", alone=True)
class MeanAlone:
    def tokens_not_averaged(states, real):
        """You return one vector for each real token of the batch: `states[real]` picks them and joins them in one long
        row. The task asks for one vector for each text: how can padding be left out while each text keeps its row?"""
        return states[real]

    def features_of_all_texts_averaged(states, real):
        """`states[real]` joins the real tokens of all texts in one long row, (tokens, d_model), and the axis you
        average over is that of the features then. How can padding be left out while each text keeps its row?"""
        return states[real].mean(dim=1)

    def smallest_of_each_feature(states, real):
        """You take the smallest number of each feature. This model was trained with the mean: which method averages
        over an axis?"""
        return states.masked_fill(~real[..., None], float("inf")).amin(dim=1)

    def median_of_the_real(states, real):
        """You take the median of each feature, the one in the middle. This model was trained with the mean, to which
        every token adds its part."""
        return torch.stack([text[kept].median(dim=0).values for text, kept in zip(states, real)])

    def infinity_in_the_padding(states, real):
        """You fill the padding with −∞ or NaN before you add up, and neither is left out of a sum: scaled it is NaN.
        With which number must a row be filled to add nothing?"""
        return states.masked_fill(~real[..., None], float("-inf")).mean(dim=1)

    def far_below_zero_in_the_padding(states, real):
        """You fill the padding with a huge negative number before you average, as scores are masked before a softmax.
        In a sum it is all that is left. With which number must a row be filled to add nothing?"""
        return states.masked_fill(~real[..., None], -1e9).mean(dim=1)

    def ones_in_the_padding(states, real):
        """You fill the padding with ones, and each of them adds to the sum. With which number must a row be filled to
        add nothing?"""
        return states.masked_fill(~real[..., None], 1.0).sum(dim=1)

    def length_of_the_first_text(states, real):
        """You cut all texts to the length of the first one. Each has its own: `real` has a row for each text."""
        return states[:, : int(real[0].sum())].mean(dim=1)

    def pattern_of_the_first_text(states, real):
        """You leave out of every text what is padding in the *first* one. `real` has a row for each text: which index
        stands before yours?"""
        return states[:, real[0]].mean(dim=1)

    def softmax_of_the_mask(states, real):
        """Your weights are a softmax of `real`: padding gets less, and not nothing, since e⁰ is 1. What must stand in
        the padding before a softmax, and do you need one?"""
        return (states * real.to(states.dtype).softmax(dim=1)[..., None]).sum(dim=1)

    def later_tokens_count_more(states, real):
        """Later tokens count more in your mean: their weight is their position. In a mean each real token counts as
        much as any other."""
        weights = real * torch.arange(1, real.shape[1] + 1, device=real.device)
        return (states * weights[..., None]).sum(dim=1) / weights.sum(dim=1, keepdim=True)

    def first_place_left_out(states, real):
        """Your mean leaves out the first place of each row, as if it were no token. `real` alone says what counts: the
        first token is `True` where it is real."""
        return (states * real[..., None])[:, 1:].sum(dim=1)

    def last_place_left_out(states, real):
        """Your mean leaves out the last place of each row. `real` alone says what counts: is there a slice, or a range,
        that ends too early?"""
        return (states * real[..., None])[:, :-1].sum(dim=1)

    def first_real_left_out(states, real):
        """Your mean leaves out the first real token of each text, as if it were `[CLS]`. All real tokens are in it."""
        return torch.stack([text[kept][1:].mean(dim=0) for text, kept in zip(states, real)])

    def last_real_left_out(states, real):
        """Your mean leaves out the last real token of each text, as if it were `[SEP]`, or a slice ends too early. All
        real tokens are in it."""
        return torch.stack([text[kept][:-1].mean(dim=0) for text, kept in zip(states, real)])

    def until_the_first_padding(states, real):
        """Your sum ends at the first place that is padding. Where that stands in front of the text, no token is left.
        Which places are real, `real` says of each by itself."""
        return (states * real.cumprod(dim=1)[..., None]).sum(dim=1)

    def total_not_reset(states, real):
        """The tokens of earlier texts are in the mean of later ones: your total goes on from text to text. Where in the
        loop must it begin at 0?"""
        return (states * real[..., None]).sum(dim=1).cumsum(dim=0)

    def whole_number_division(states, real):
        """You divide with `//`, which rounds down to whole numbers, and most of your vectors is lost. Which operator
        keeps what is after the point?"""
        return (states * real[..., None]).sum(dim=1) // real.sum(dim=1, keepdim=True)

    def fractions_cut_off(states, real):
        """Your states have become whole numbers: `.long()` and `.int()` cut off what is after the point. A mask may be
        turned into numbers, and `states` stay as they are."""
        return mean_of_real(states.trunc(), real)

    def squares_averaged(states, real):
        """You average the squares of the numbers, and signs are lost. The mean is that of the states themselves;
        squares belong to the length, which comes after it."""
        return mean_of_real(states.square(), real)

    def roots_of_mean_squares(states, real):
        """You take the root of the mean square of each feature, and signs are lost. The mean is that of the states
        themselves; squares belong to the length, which comes after it."""
        return mean_of_real(states.square(), real).sqrt()

    def absolute_values_averaged(states, real):
        """You average the absolute values, and signs are lost. The mean is that of the states as they are: numbers of
        opposite sign may cancel."""
        return mean_of_real(states.abs(), real)

    def largest_feature_of_each_token(states, real):
        """You take the largest feature of each token: a number for each token, where a vector for each text was asked
        for. And this model was trained with the mean, over the tokens."""
        return (states * real[..., None]).amax(dim=-1)

    @family(
        one_behind_the_last_real=lambda real: real.sum(dim=1),
        one_behind_the_last_real_or_first=lambda real: real.sum(dim=1) % real.shape[1],
    )
    def a_place_too_far(place, states, real):
        """Your index is how many tokens are real, and the last of them stands one place before. And this model was
        trained with the mean of all real tokens, not with one of them."""
        return states[torch.arange(len(states)), place(real)]

    def every_count_for_every_text(states, real):
        """Your result has two axes of the batch: vectors, (batch, 1, d_model), were divided by counts, (batch, 1), and
        shapes are aligned from the right, so that every text meets every count. Write both shapes down, one below the
        other."""
        return (states * real[..., None]).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)

    def every_text_for_every_count(states, real):
        """Your result has two axes of the batch: vectors, (batch, d_model), were divided by counts, (batch, 1, 1), and
        shapes are aligned from the right, so that every text meets every count. Write both shapes down, one below the
        other."""
        return (states * real[..., None]).sum(dim=1) / real.sum(dim=1)[:, None, None]


@mean_pool.wrong(stage="length")
class Length:
    def length_kept(mean):
        """Your vectors keep their lengths, so that a dot product of two is no cosine. Which step comes after the
        mean?"""
        return mean

    def sum_made_one(mean):
        """You divide by the sum of the absolute values. The length is the root of the sum of the squares: 3 and 4 give
        5, and not 7."""
        return F.normalize(mean, p=1, dim=-1)

    def divided_by_the_sum(mean):
        """You divide by the sum of the numbers, where signs cancel and nothing is squared. The length is the root of
        the sum of the squares: 3 and 4 give 5, and not 7."""
        return mean / mean.sum(dim=-1, keepdim=True)

    def largest_made_one(mean):
        """You divide by the largest absolute value. The length is the root of the sum of the squares, to which every
        number adds: 3 and 4 give 5, and not 4."""
        return mean / mean.abs().amax(dim=-1, keepdim=True)

    def root_mean_square_made_one(mean):
        """You divide by the root of the *mean* square, as RMS norm does: each vector has the length √d_model. The
        length is the root of the *sum* of the squares."""
        return mean / mean.square().mean(dim=-1, keepdim=True).sqrt()

    def standardized(mean):
        """You subtract the mean of the features and divide by their standard deviation. Here each vector is divided by
        its length, the root of the sum of the squares, and nothing is subtracted."""
        return (mean - mean.mean(dim=-1, keepdim=True)) / mean.std(dim=-1, keepdim=True)

    def divided_by_the_deviation(mean):
        """You divide by the standard deviation of the features. The length is the root of the sum of the squares: 3 and
        4 give 5, and nothing is subtracted first."""
        return mean / mean.std(dim=-1, keepdim=True)

    def centred_first(mean):
        """The mean of the features is subtracted before each vector is made 1 long. That is a correlation's way, and no
        cosine's: here each vector is divided by its length as it is."""
        return of_length_one(mean - mean.mean(dim=-1, keepdim=True))

    def root_of_the_plain_sum(mean):
        """You take the root of the sum of the numbers, and not of their squares: below zero that is NaN. The length of
        (3, 4) is √(9 + 16)."""
        return mean / mean.sum(dim=-1, keepdim=True).sqrt()

    def signs_alone(mean):
        """All your numbers are 1 or −1: each was divided by its own absolute value. That happens where the length is
        taken along an axis of size 1. Over which axis do the squares of a vector add up?"""
        return mean.sign()

    def stretched_between_zero_and_one(mean):
        """You stretch each vector so that its smallest number is 0 and its largest 1. Here the *length* must be 1, and
        nothing is subtracted."""
        smallest = mean.amin(dim=-1, keepdim=True)
        return (mean - smallest) / (mean.amax(dim=-1, keepdim=True) - smallest)

    def features_before_texts(mean):
        """The vectors are columns: (d_model, batch), where (batch, d_model) was asked for. Which of your steps
        exchanges the axes?"""
        return of_length_one(mean).mT

    def divided_by_the_square(mean):
        """You divide by the square of the length: the root is missing. A vector of length 2 must become half as long,
        not a quarter."""
        return mean / mean.square().sum(dim=-1, keepdim=True)

    def length_over_the_batch(mean):
        """You normalize along the batch, so that each feature has the length 1 over all texts. One text's vector must
        not depend on the others."""
        return F.normalize(mean, dim=0)

    def one_length_for_all(mean):
        """You divide all vectors by one length, that of the whole batch. Each text has its own."""
        return mean / mean.norm()

    def softmax_for_length(mean):
        """You made the numbers of each vector sum to one by a softmax. Here the *length* must be 1, and signs stay."""
        return mean.softmax(dim=-1)

    def divided_by_the_root_of_d_model(mean):
        """You divide all vectors by √d_model, a number that knows nothing of them: each keeps a length of its own. What
        is the length of a vector computed from?"""
        return mean / mean.shape[-1] ** 0.5

    def layer_norm_for_length(mean):
        """You normalize as a layer norm does: the mean of the features is subtracted, and the directions change. Here
        each vector is divided by its length, and nothing is subtracted."""
        return F.layer_norm(mean, mean.shape[-1:])

    def multiplied_by_the_length(mean):
        """You multiply by the length where you should divide. A vector of length 2 must become half as long, not
        twice."""
        return mean * mean.norm(dim=-1, keepdim=True)

    def root_of_the_length(mean):
        """You divide by the root of the length: there is one root too many. `norm` has taken it already, and a vector
        of length 4 must become a quarter as long, not half."""
        return mean / mean.norm(dim=-1, keepdim=True).sqrt()

    def one_added_to_the_length(mean):
        """1 is added to the length before you divide, so that no vector gets the length 1. What keeps a division from 0
        is very small, and here no vector is 0."""
        return mean / (mean.norm(dim=-1, keepdim=True) + 1)

    def mean_square_made_one(mean):
        """You divide by the mean of the squares: the root is missing, and a sum in place of the mean. The length is the
        root of the sum of the squares."""
        return mean / mean.square().mean(dim=-1, keepdim=True)

    def sigmoid_for_length(mean):
        """You squeeze each number between 0 and 1 by a sigmoid. Here the *length* of the vector must be 1: all of its
        numbers are divided by the same one, and signs stay."""
        return mean.sigmoid()

    def tanh_for_length(mean):
        """You squeeze each number between −1 and 1 by tanh. Here the *length* of the vector must be 1: all of its
        numbers are divided by the same one."""
        return mean.tanh()


@mean_pool.wrong(stage="length", alone=True)
class LengthAlone:
    def squares_over_the_batch(mean):
        """You divide each feature by the sum of its squares over all texts: that is the axis of the batch, and the root
        is missing. One text's vector must not depend on the others."""
        return mean / mean.square().sum(dim=0)

    def sum_over_the_batch(mean):
        """You divide each feature by its absolute values' sum over all texts: that is the axis of the batch, and a
        length is the root of a sum of squares. One text's vector must not depend on the others."""
        return F.normalize(mean, p=1, dim=0)

    def divided_by_the_largest(mean):
        """You divide by the largest number, whatever its sign. The length is the root of the sum of the squares, to
        which every number adds: 3 and 4 give 5, and not 4."""
        return mean / mean.amax(dim=-1, keepdim=True)

    def no_length_below_one(mean):
        """Your divisor is at least 1, so that short vectors stay as they are. What keeps a division from 0 is very
        small, and here no vector is 0."""
        return mean / mean.norm(dim=-1, keepdim=True).clamp(min=1)

    @family(
        length_returned=(lambda mean: mean.norm(dim=-1), "a number for each text"),
        length_returned_with_its_axis=(lambda mean: mean.norm(dim=-1, keepdim=True), "(batch, 1)"),
    )
    def length_alone(length, mean):
        """You return the lengths, {}. They are what each vector is divided by: what was to be returned?"""
        return length(mean)

    def cosines_returned(mean):
        """You return the dot product of each two texts, (batch, batch). What was asked for are the vectors themselves,
        from which others take it."""
        return of_length_one(mean) @ of_length_one(mean).mT

    def first_text_alone(mean):
        """You return the vector of the first text alone. A `return` inside a loop ends the function in its first round,
        and an index of 0 leaves the others out."""
        return of_length_one(mean)[0]

    def last_text_alone(mean):
        """You return the vector of the last text alone. A loop that gives each round's result the same name keeps the
        last: what gathers all of them?"""
        return of_length_one(mean)[-1]

    def longest_made_one(mean):
        """You divide all vectors by the length of the longest one. Each text has a length of its own: over which axis,
        and no other, is it taken?"""
        return mean / mean.norm(dim=-1).max()

    def mean_length_made_one(mean):
        """You divide all vectors by their mean length. Each text has a length of its own: over which axis, and no
        other, is it taken?"""
        return mean / mean.norm(dim=-1).mean()

    def centred_over_the_batch(mean):
        """The mean of all texts is subtracted from each before its length is made 1. One text's vector must not depend
        on the others: nothing is subtracted."""
        return of_length_one(mean - mean.mean(dim=0))


@mean_pool.wrong
class WrongAnswers:
    @with_text_of(MeanAlone.until_the_first_padding)
    def nothing_behind_padding(states, real):
        return F.normalize((states * real.cumprod(dim=1)[..., None]).sum(dim=1), dim=-1)

    def unit_tokens_kept_apart(states, real):
        """The tokens are still apart, (batch, seq, d_model): each real one has the length 1, and nothing is added up.
        Which step makes one vector of a text, and when is its length made 1?"""
        return F.normalize(states * real[..., None], dim=-1)

    def sum_kept(states, real):
        """You return the sum of each text's real tokens: it is not divided by how many there are, and its length is not
        made 1, so that a dot product of two is no cosine. Which step makes the length 1?"""
        return (states * real[..., None]).sum(dim=1)

    def sum_with_padding_kept(states, real):
        """You return the sum of all tokens of a row, padding included, and its length is not made 1. Which argument
        says which tokens are real, and which step comes after the mean?"""
        return states.sum(dim=1)

    def zeros_in_the_mean(states, real):
        """Padding adds 0 to your sum, and it is counted: you divide by the length of the row, and not by how many
        tokens are real. And the length of your vectors is not made 1, so that a dot product of two is no cosine."""
        return (states * real[..., None]).mean(dim=1)

    def divided_by_all_counts(states, real):
        """You divide by the number of real tokens in the whole batch, and the length of your vectors is not made 1.
        Each text has a count of its own: which axis must `sum` run over? And which step comes after the mean?"""
        return (states * real[..., None]).sum(dim=1) / real.sum()

    def divided_by_the_root_of_the_count(states, real):
        """You divide the sum by the root of how many tokens are real, as sentence vectors of another kind do, and the
        length of your vectors is not made 1. A mean divides by the count; which step comes after it?"""
        return (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True).sqrt()

    def divided_by_the_count_at_the_end(states, real):
        """You divide by the number of tokens after the length has been made 1, and so it is 1 no more. First comes the
        mean, and then its length."""
        return mean_pool.reference(states, real) / real.sum(dim=1, keepdim=True)

    def minus_infinity_kept(states, real):
        """You fill the padding with −∞ before you average, as scores are masked before a softmax: a mean with −∞ is −∞.
        With which number must a row be filled to add nothing? And the length is not made 1."""
        return states.masked_fill(~real[..., None], float("-inf")).mean(dim=1)

    @family(
        one_number=(lambda states, real: states[real], ""),
        one_number_with_padding=(lambda states, real: states, ", padding included"),
    )
    def mean_of_everything(kept, states, real):
        """You return a single number, the mean of everything{}: without an axis `mean` runs over all of them. Which
        axis are the tokens of one text on?"""
        return kept(states, real).mean()

    def pair_of_max(states, real):
        """Along an axis, `max` returns a pair: the values, and where they stand. And this model was trained with the
        mean of the real tokens, not with the largest numbers."""
        return of_length_one((states * real[..., None]).max(dim=1))

    @family(
        real_after_the_mean=lambda mean, real: mean * real, real_after_the_mean_in_front=lambda mean, real: real * mean
    )
    def real_too_late(product, states, real):
        """`real` comes too late: the tokens are averaged already, and what is left is (batch, d_model), which `real`,
        (batch, seq), does not fit. Before which step must the padding go?"""
        return product(states.mean(dim=1), real)

    def padding_over_the_count(states, real):
        """You add up all tokens of a row, padding included, and divide by how many are real; and the length of your
        vectors is not made 1. What must become of the padding before the sum?"""
        return states.sum(dim=1) / real.sum(dim=1, keepdim=True)

    def sum_of_the_padding(states, real):
        """You add up the padding and leave out the real tokens: `real` is True where there is a word. And the length of
        your vectors is not made 1."""
        return (states * ~real[..., None]).sum(dim=1)

    def unit_vectors_and_zeros_averaged(states, real):
        """You make every token's length 1, and average them over the whole row: padding adds 0, and is counted. Long
        tokens then count no more than short ones; and the length is made 1 once, after the mean."""
        return (F.normalize(states, dim=-1) * real[..., None]).mean(dim=1)

    def lengths_returned_as_well(states, real):
        """You return a pair: the vectors, and the lengths that they had. The task asks for the vectors alone, one
        tensor."""
        mean = mean_of_real(states, real)
        return of_length_one(mean), mean.norm(dim=-1, keepdim=True)

    def unit_vectors_summed(states, real):
        """You make every token's length 1 and add the tokens up. Long tokens then count no more than short ones, and
        the result is longer than 1: the length is made 1 once, after the mean."""
        return (F.normalize(states, dim=-1) * real[..., None]).sum(dim=1)

    def divided_by_the_norm_of_all_tokens(states, real):
        """You divide by the root of the sum of all squares of a text, taken over tokens and features. The length that
        must be 1 is that of the *one* vector: first the mean, then its length."""
        kept = states * real[..., None]
        return (kept / kept.norm(dim=(1, 2), keepdim=True)).sum(dim=1)

    def padding_alone(states, real):
        """You keep the padding and leave out the real tokens: `real` is True where there is a word. A text without
        padding gives only zeros."""
        return F.normalize((states * ~real[..., None]).sum(dim=1), dim=-1)

    def mean_of_the_padding(states, real):
        """You average the padding and leave out the real tokens: `real` is True where there is a word. And the length
        of your vectors is not made 1."""
        return mean_of_real(states, ~real)

    def one_less_bools(states, real):
        """`real` holds bools, and PyTorch subtracts none: `1 - real` raises. `~` turns bools around; and do you need
        the padding, or the real tokens?"""
        return 1 - real

    def mean_of_bools(states, real):
        """`real` holds bools, and PyTorch takes no mean of them. How many are `True`, `sum` tells: that is what the sum
        of a text's tokens is divided by."""
        return real.mean(dim=1)

    @family(
        rows_of_one_length=(torch.Tensor.reshape, "`reshape`"),
        viewed_rows_of_one_length=(torch.Tensor.view, "`view`"),
    )
    def tokens_of_one_length(cut, states, real):
        """`states[real]` joins the real tokens of all texts in one long row, and texts of different lengths cannot be
        told apart in it any more: {} finds no number of tokens that fits. How can padding be left out while each text
        keeps its row?"""
        return cut(states[real], len(states), -1, states.shape[-1]).mean(dim=1)

    def counts_of_the_places(states, real):
        """You divide by `real.sum(dim=0)`, which counts in how many texts a place is real: (seq,). The task asks
        how many tokens of each text are: over which axis do you add up, and which argument keeps it?"""
        return mean_of_real(states, real) / real.sum(dim=0)

    def axis_of_the_divisor_lost(states, real):
        """You divide vectors, (batch, d_model), by one number for each text, (batch,). Shapes are aligned from the
        right, so these numbers stand under the features: mostly that raises, and with as many texts as features it
        would run and be wrong. Look at what you divide by, the count or the length: which argument keeps the axis that
        was summed?"""
        mean = mean_of_real(states, real)
        return mean / mean.norm(dim=-1)

    @family(
        states_times_real=lambda states, real: states * real,
        real_times_states=lambda states, real: real * states,
        states_times_numbers=lambda states, real: states * real.float(),
        numbers_times_states=lambda states, real: real.float() * states,
        filled_where_not_real=lambda states, real: states.masked_fill(~real, 0),
        filled_where_real=lambda states, real: states.masked_fill(real, 0),
        chosen_where_real=lambda states, real: torch.where(real, states, 0),
        chosen_where_real_or_zeros=lambda states, real: torch.where(real, states, torch.zeros_like(states)),
    )
    def mask_without_features(refused, states, real):
        """`real` has one bool for each token, (batch, seq), and no axis for the features. Shapes are aligned from the
        right, so that its tokens stand under the features of `states`. Where does it need an axis of size 1?"""
        return refused(states, real)


# A wrong length depends on which multiple of the mean it gets: the sum, or the mean with zeros counted. Lengths over
# the batch are the same for both.
OF_EACH = (
    Length.divided_by_the_square,
    Length.softmax_for_length,
    Length.layer_norm_for_length,
    Length.divided_by_the_root_of_d_model,
    Length.multiplied_by_the_length,
    Length.root_of_the_length,
    Length.one_added_to_the_length,
    Length.mean_square_made_one,
    Length.sigmoid_for_length,
    Length.tanh_for_length,
)


OVER_THE_BATCH = (
    Length.length_over_the_batch,
    Length.one_length_for_all,
    LengthAlone.longest_made_one,
    LengthAlone.mean_length_made_one,
    LengthAlone.centred_over_the_batch,
)


@mean_pool.wrong
class LengthOfAnother:
    @family(**rows_of(OF_EACH + OVER_THE_BATCH, "{}_of_the_sum"))
    def of_the_sum(length, states, real):
        return length((states * real[..., None]).sum(dim=1))

    @family(**rows_of(OF_EACH, "{}_with_zeros"))
    def with_zeros(length, states, real):
        return length((states * real[..., None]).mean(dim=1))
