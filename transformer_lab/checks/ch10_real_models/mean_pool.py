"""One vector for a sentence: the mean of its real tokens, scaled to length 1."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, rows_of, with_text_of


def _states_and_mask(draw, batch=3, seq=7, d_model=5):
    lengths = 2 + torch.arange(batch) * (seq - 2) // max(batch - 1, 1)
    return draw(batch, seq, d_model), torch.arange(seq) < lengths[:, None]


def mean_of_real_tokens(states, real):
    """Compute the mean of the real tokens of each text."""
    return (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


def scale_to_length_one(mean):
    """Divide each vector by its length."""
    return mean / mean.norm(dim=-1, keepdim=True)


@exercise(
    inputs=_states_and_mask,
    axes={"states": "batch seq d_model", "real": "batch seq", "return": "batch d_model"},
    hints=(
        "A text of three tokens is in a batch with a text of ten tokens. How many of the ten rows of the short text "
        "belong in the mean?",
        "Set the rows of the padding to 0, add up the rows of each text, and divide. Then scale each vector to "
        "length 1, so that a dot product is a cosine.",
        "`mean = (states * real[..., None]).sum(…) / real.sum(…, keepdim=True)`, `return mean / mean.norm(…)`",
    ),
)
def mean_pool(states, real, *, mean=mean_of_real_tokens, length=scale_to_length_one):
    """Return the mean of each text's real tokens, scaled to length 1; the result has shape (batch, d_model)."""
    return length(mean(states, real))


mean_pool.example("texts of equal length", lambda draw: (draw(2, 4, 5), torch.ones(2, 4, dtype=torch.bool)), plain=True)


@mean_pool.probe(plain=True)
def padding_in_front(draw):
    """padding in front of the text"""
    states, real = _states_and_mask(draw)
    return states, real.flip(1)


@mean_pool.probe(plain=True)
def padding_in_every_text(draw):
    """padding in every text"""
    return draw(3, 6, 4), torch.arange(6) < torch.tensor([[1], [4], [2]])


@mean_pool.probe(plain=True)
def huge_padding(draw):
    """huge numbers in the padding"""
    states, real = _states_and_mask(draw)
    return states.masked_fill(~real[..., None], 1e4), real


@mean_pool.right
class RightAnswers:
    def by_pytorch_normalize(states, real):
        return F.normalize(
            (states * real.unsqueeze(-1)).sum(1), dim=-1
        )  # dividing by the length cancels the divisor of the mean

    def text_by_text(states, real):
        means = torch.stack([text[is_real].mean(dim=0) for text, is_real in zip(states, real)])
        return means / means.square().sum(dim=1, keepdim=True).sqrt()

    def by_weights(states, real):
        weights = real / real.sum(dim=-1, keepdim=True)
        mean = torch.einsum("bs,bsd->bd", weights.to(states.dtype), states)
        return mean / torch.linalg.vector_norm(mean, dim=-1, keepdim=True)


@mean_pool.property
def every_length_is_one(function, states, real):
    """Every vector has a length of 1."""
    return bool(torch.allclose(function(states, real).norm(dim=-1), torch.ones(()), atol=1e-4))


@mean_pool.property
def padding_is_never_read(function, states, real):
    """The numbers in the padding do not change the result."""
    changed = states.masked_fill(~real[..., None], 3.0)
    return bool(torch.allclose(function(changed, real), function(states, real), atol=1e-4))


@mean_pool.wrong(stage="mean")
class Mean:
    def padding_in_the_mean(states, real):
        """Padding is in your mean. Short texts suffer most: their vectors are mostly padding. Which argument marks the
        real tokens?"""
        return states.mean(dim=1)

    def only_the_padding(states, real):
        """You keep the padding and leave out the real tokens: `real` is True for a real token and False for padding."""
        return mean_of_real_tokens(states, ~real)

    def first_token(states, real):
        """You return the first token of each text, `[CLS]`, as BERT's classifiers do. This model was trained with the
        mean of all real tokens."""
        return states[:, 0]

    def last_token(states, real):
        """You return the last token of each row, which is padding in a short text. The exercise asks for the mean of
        the real tokens."""
        return states[:, -1]

    def last_real_token(states, real):
        """You return the last real token of each text, as encoders made from language models do. This model was trained
        with the mean of all real tokens."""
        last = real.sum(dim=1) - 1
        return states[torch.arange(len(states)), last]

    def largest_of_each_feature(states, real):
        """You return the largest number of each feature. That is max pooling; this model was trained with the mean."""
        return states.masked_fill(~real[..., None], float("-inf")).amax(dim=1)

    def unit_vectors_averaged(states, real):
        """You scale every token to length 1 before the mean. Tokens with a large norm then count no more than others:
        scale to length 1 only once, after the mean."""
        return mean_of_real_tokens(F.normalize(states, dim=-1), real)

    def mean_over_all_texts(states, real):
        """You compute one mean for the whole batch: all texts get the same vector. On which axis are the tokens of one
        text?"""
        return mean_of_real_tokens(states.flatten(0, 1)[None], real.flatten()[None]).expand(len(states), -1)

    def mean_over_features(states, real):
        """Your mean runs over the features: it returns a number for each token, but the exercise asks for a vector for
        each text. On which axis are the tokens?"""
        return states.mean(dim=-1)

    def tokens_of_all_texts_joined(states, real):
        """The whole batch becomes one vector, the mean of all texts' tokens. `states[real]` does this: it selects the
        real tokens and joins them into one long row, without their texts. How can you leave out padding while each text
        keeps its row?"""
        return states[real].mean(dim=0)

    def first_real_token(states, real):
        """You return the first real token of each text, as classifiers do. This model was trained with the mean of all
        real tokens."""
        return states[torch.arange(len(states)), real.int().argmax(dim=1)]

    def last_of_the_real_places(states, real):
        """You return the last real token of each text, wherever it is, as encoders made from language models do. This
        model was trained with the mean of all real tokens."""
        return states[
            torch.arange(len(states)), (real * torch.arange(1, real.shape[1] + 1, device=real.device)).argmax(dim=1)
        ]

    def largest_with_padding(states, real):
        """You return the largest number of each feature, even if it comes from the padding. That is max pooling; this
        model was trained with the mean of the real tokens."""
        return states.amax(dim=1)

    def largest_or_zero(states, real):
        """You return the largest number of each feature, and zeros in the padding count as numbers. That is max
        pooling; this model was trained with the mean."""
        return (states * real[..., None]).amax(dim=1)

    def counted_from_the_front(states, real):
        """You use as many tokens from the front as there are real tokens. With padding in front of a text, these are
        not the real tokens: `real` says which tokens are real, not only how many."""
        is_in_front = torch.arange(real.shape[1], device=real.device) < real.sum(dim=1, keepdim=True)
        return mean_of_real_tokens(states, is_in_front)

    def unit_vectors_with_padding(states, real):
        """You scale every token to length 1 before the mean, and padding is in that mean too. Which argument marks the
        real tokens? Scale to length 1 only once, after the mean."""
        return F.normalize(states, dim=-1).mean(dim=1)

    def tokens_and_padding_normalized_over_the_tokens(states, real):
        """You normalize `states` along the tokens, before the mean, so each feature's norm includes the padding. Scale
        to length 1 only once, after the mean, over the features of each text."""
        return mean_of_real_tokens(F.normalize(states, dim=1), real)

    def normalized_over_the_tokens(states, real):
        """You normalize `states` along the tokens, before the mean: the default axis of `F.normalize` is 1. Scale to
        length 1 only once, after the mean, over the features of each text."""
        return mean_of_real_tokens(F.normalize(states * real[..., None], dim=1), real)

    def summed_over_the_texts(states, real):
        """You sum along the batch: the result is a vector for each place, but the exercise asks for a vector for each
        text. Count the axes of `states` from 0: which axis holds the tokens?"""
        return (states * real[..., None]).sum(dim=0)

    def texts_averaged(states, real):
        """Your mean runs over the batch, padding included: the result is a vector for each place, but the exercise asks
        for a vector for each text. Count the axes of `states` from 0: which axis holds the tokens?"""
        return states.mean(dim=0)

    def features_of_the_real_averaged(states, real):
        """Your sum runs over the features: it returns a number for each token, but the exercise asks for a vector for
        each text. On which axis are the tokens?"""
        return (states * real[..., None]).mean(dim=-1)

    def tokens_not_summed(states, real):
        """The tokens are still separate, (batch, seq, d_model): you set padding to 0, but you add nothing up. Which
        step reduces a text to one vector?"""
        return states * real[..., None]

    def tokens_and_padding_not_summed(states, real):
        """The tokens are still separate, (batch, seq, d_model), with padding among them. Which step reduces a text to
        one vector, and what does `real` say?"""
        return states.clone()


@mean_pool.wrong(stage="mean", alone=True)
class MeanAlone:
    def tokens_not_averaged(states, real):
        """You return one vector for each real token of the batch: `states[real]` selects the real tokens and joins them
        into one long row. The exercise asks for one vector for each text: how can you leave out padding while each text
        keeps its row?"""
        return states[real]

    def features_of_all_texts_averaged(states, real):
        """`states[real]` joins the real tokens of all texts into one long row, (tokens, d_model), so axis 1 now holds
        the features, and you average over them. How can you leave out padding while each text keeps its row?"""
        return states[real].mean(dim=1)

    def smallest_of_each_feature(states, real):
        """You return the smallest number of each feature. This model was trained with the mean: which method averages
        over an axis?"""
        return states.masked_fill(~real[..., None], float("inf")).amin(dim=1)

    def median_of_the_real(states, real):
        """You return the median of each feature, the number in the middle. This model was trained with the mean, to
        which every token contributes."""
        return torch.stack([text[is_real].median(dim=0).values for text, is_real in zip(states, real)])

    def infinity_in_the_padding(states, real):
        """You fill the padding with −∞ or NaN before you add up, and the sum includes it: after scaling, the result is
        NaN. With which number must you fill a row so that it adds nothing?"""
        return states.masked_fill(~real[..., None], float("-inf")).mean(dim=1)

    def far_below_zero_in_the_padding(states, real):
        """You fill the padding with a huge negative number before you average, as for scores before a softmax. That
        number dominates the sum. With which number must you fill a row so that it adds nothing?"""
        return states.masked_fill(~real[..., None], -1e9).mean(dim=1)

    def ones_in_the_padding(states, real):
        """You fill the padding with ones, and each of them adds to the sum. With which number must you fill a row so
        that it adds nothing?"""
        return states.masked_fill(~real[..., None], 1.0).sum(dim=1)

    def length_of_the_first_text(states, real):
        """You cut all texts to the length of the first text. Each text has its own length: `real` has a row for each
        text."""
        return states[:, : int(real[0].sum())].mean(dim=1)

    def pattern_of_the_first_text(states, real):
        """In every text, you leave out the places that are padding in the *first* text. `real` has a row for each text:
        which row belongs to which text?"""
        return states[:, real[0]].mean(dim=1)

    def softmax_of_the_mask(states, real):
        """Your weights are a softmax of `real`: padding gets less weight, but not zero, since e⁰ is 1. Which value must
        the padding have before a softmax, and do you need a softmax at all?"""
        return (states * real.to(states.dtype).softmax(dim=1)[..., None]).sum(dim=1)

    def later_tokens_count_more(states, real):
        """Later tokens count more in your mean: their weight is their position. In a mean, all real tokens count
        equally."""
        weights = real * torch.arange(1, real.shape[1] + 1, device=real.device)
        return (states * weights[..., None]).sum(dim=1) / weights.sum(dim=1, keepdim=True)

    def first_place_left_out(states, real):
        """Your mean leaves out the first place of each row, as if it held no token. `real` alone says which tokens
        count: it is `True` for the first token if that token is real."""
        return (states * real[..., None])[:, 1:].sum(dim=1)

    def last_place_left_out(states, real):
        """Your mean leaves out the last place of each row. `real` alone says which tokens count: does a slice or a
        range end too early?"""
        return (states * real[..., None])[:, :-1].sum(dim=1)

    def first_real_left_out(states, real):
        """Your mean leaves out the first real token of each text, as if it were `[CLS]`. The mean includes all real
        tokens."""
        return torch.stack([text[is_real][1:].mean(dim=0) for text, is_real in zip(states, real)])

    def last_real_left_out(states, real):
        """Your mean leaves out the last real token of each text, as if it were `[SEP]`, or because a slice ends too
        early. The mean includes all real tokens."""
        return torch.stack([text[is_real][:-1].mean(dim=0) for text, is_real in zip(states, real)])

    def until_the_first_padding(states, real):
        """Your sum ends at the first place that is padding. With padding in front of the text, no token is left. `real`
        says for each place separately whether it holds a real token."""
        return (states * real.cumprod(dim=1)[..., None]).sum(dim=1)

    def total_not_reset(states, real):
        """The tokens of earlier texts are in the mean of later texts: your running total carries over from text to
        text. Where in the loop must the total be reset to 0?"""
        return (states * real[..., None]).sum(dim=1).cumsum(dim=0)

    def whole_number_division(states, real):
        """You divide with `//`, which rounds down to whole numbers, so most of each vector is lost. Which operator
        keeps the fractions?"""
        return (states * real[..., None]).sum(dim=1) // real.sum(dim=1, keepdim=True)

    def fractions_cut_off(states, real):
        """Your states have become whole numbers: `.long()` and `.int()` cut off the fractions. Convert the mask to
        numbers if you like, but keep `states` as they are."""
        return mean_of_real_tokens(states.trunc(), real)

    def squares_averaged(states, real):
        """You average the squares of the numbers, which loses the signs. Average the states themselves; squares belong
        to the length, which comes after the mean."""
        return mean_of_real_tokens(states.square(), real)

    def roots_of_mean_squares(states, real):
        """You return the root of the mean square of each feature, which loses the signs. Average the states themselves;
        squares belong to the length, which comes after the mean."""
        return mean_of_real_tokens(states.square(), real).sqrt()

    def absolute_values_averaged(states, real):
        """You average the absolute values, which loses the signs. Average the states as they are: numbers of opposite
        sign may cancel."""
        return mean_of_real_tokens(states.abs(), real)

    def largest_feature_of_each_token(states, real):
        """You return the largest feature of each token: a number for each token, but the exercise asks for a vector for
        each text. And this model was trained with the mean over the tokens."""
        return (states * real[..., None]).amax(dim=-1)

    @family(
        one_behind_the_last_real=lambda real: real.sum(dim=1),
        one_behind_the_last_real_or_first=lambda real: real.sum(dim=1) % real.shape[1],
    )
    def a_place_too_far(place, states, real):
        """Your index is the number of real tokens, but the last real token is one place earlier. And this model was
        trained with the mean of all real tokens, not with a single token."""
        return states[torch.arange(len(states)), place(real)]

    def every_count_for_every_text(states, real):
        """Your result has the axis of the batch twice: you divide vectors, (batch, 1, d_model), by counts, (batch, 1).
        Shapes are aligned from the right, so every text is divided by every count. Write the two shapes down, one below
        the other."""
        return (states * real[..., None]).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)

    def every_text_for_every_count(states, real):
        """Your result has the axis of the batch twice: you divide vectors, (batch, d_model), by counts, (batch, 1, 1).
        Shapes are aligned from the right, so every text is divided by every count. Write the two shapes down, one below
        the other."""
        return (states * real[..., None]).sum(dim=1) / real.sum(dim=1)[:, None, None]


@mean_pool.wrong(stage="length")
class Length:
    def length_kept(mean):
        """Your vectors keep their lengths, so a dot product of two vectors is not a cosine. Which step comes after the
        mean?"""
        return mean

    def sum_made_one(mean):
        """You divide by the sum of the absolute values. The length is the root of the sum of the squares: for (3, 4) it
        is 5, not 7."""
        return F.normalize(mean, p=1, dim=-1)

    def divided_by_the_sum(mean):
        """You divide by the sum of the numbers: numbers of opposite sign cancel, and nothing is squared. The length is
        the root of the sum of the squares: for (3, 4) it is 5, not 7."""
        return mean / mean.sum(dim=-1, keepdim=True)

    def largest_made_one(mean):
        """You divide by the largest absolute value. The length is the root of the sum of all the squares: for (3, 4) it
        is 5, not 4."""
        return mean / mean.abs().amax(dim=-1, keepdim=True)

    def root_mean_square_made_one(mean):
        """You divide by the root of the *mean* square, as RMS norm does: each vector has a length of √d_model. The
        length is the root of the *sum* of the squares."""
        return mean / mean.square().mean(dim=-1, keepdim=True).sqrt()

    def standardized(mean):
        """You subtract the mean of the features and divide by their standard deviation. Divide each vector by its
        length, the root of the sum of the squares, without subtracting anything."""
        return (mean - mean.mean(dim=-1, keepdim=True)) / mean.std(dim=-1, keepdim=True)

    def divided_by_the_deviation(mean):
        """You divide by the standard deviation of the features. The length is the root of the sum of the squares: for
        (3, 4) it is 5, and nothing is subtracted first."""
        return mean / mean.std(dim=-1, keepdim=True)

    def centred_first(mean):
        """You subtract the mean of the features before you scale each vector to length 1. That is a step of a
        correlation, not of a cosine: divide each vector, as it is, by its length."""
        return scale_to_length_one(mean - mean.mean(dim=-1, keepdim=True))

    def root_of_the_plain_sum(mean):
        """You take the root of the sum of the numbers, not of their squares: for a negative sum, the root is NaN. The
        length of (3, 4) is √(9 + 16)."""
        return mean / mean.sum(dim=-1, keepdim=True).sqrt()

    def signs_alone(mean):
        """All your numbers are 1 or −1: each is divided by its own absolute value. This happens if the length is
        computed along an axis of size 1. Over which axis must the squares of a vector be summed?"""
        return mean.sign()

    def stretched_between_zero_and_one(mean):
        """You rescale each vector so that its smallest number is 0 and its largest 1. Here the *length* must be 1, and
        nothing is subtracted."""
        smallest = mean.amin(dim=-1, keepdim=True)
        return (mean - smallest) / (mean.amax(dim=-1, keepdim=True) - smallest)

    def features_before_texts(mean):
        """The vectors are columns, (d_model, batch), but the exercise asks for the shape (batch, d_model). Which of
        your steps exchanges the axes?"""
        return scale_to_length_one(mean).mT

    def divided_by_the_square(mean):
        """You divide by the square of the length: the root is missing. A vector of length 2 must become half as long,
        not a quarter as long."""
        return mean / mean.square().sum(dim=-1, keepdim=True)

    def length_over_the_batch(mean):
        """You normalize along the batch, so each feature has a length of 1 over all texts. One text's vector must not
        depend on the other texts."""
        return F.normalize(mean, dim=0)

    def one_length_for_all(mean):
        """You divide all vectors by a single length, that of the whole batch. Each text has its own length."""
        return mean / mean.norm()

    def softmax_for_length(mean):
        """You apply a softmax, so the numbers of each vector sum to one. Here the *length* must be 1, and the numbers
        keep their signs."""
        return mean.softmax(dim=-1)

    def divided_by_the_root_of_d_model(mean):
        """You divide all vectors by √d_model, which does not depend on the vectors: their lengths still differ. From
        which numbers do you compute the length of a vector?"""
        return mean / mean.shape[-1] ** 0.5

    def layer_norm_for_length(mean):
        """You normalize as a layer norm does: it subtracts the mean of the features, which changes the directions.
        Divide each vector by its length, without subtracting anything."""
        return F.layer_norm(mean, mean.shape[-1:])

    def multiplied_by_the_length(mean):
        """You multiply by the length instead of dividing. A vector of length 2 must become half as long, not twice as
        long."""
        return mean * mean.norm(dim=-1, keepdim=True)

    def root_of_the_length(mean):
        """You divide by the root of the length: there is one root too many. `norm` contains the root already, and a
        vector of length 4 must become a quarter as long, not half as long."""
        return mean / mean.norm(dim=-1, keepdim=True).sqrt()

    def one_added_to_the_length(mean):
        """You add 1 to the length before you divide, so no vector gets a length of 1. A constant that prevents division
        by 0 must be very small, and here no vector is 0."""
        return mean / (mean.norm(dim=-1, keepdim=True) + 1)

    def mean_square_made_one(mean):
        """You divide by the mean of the squares: the root is missing, and the mean must be a sum. The length is the
        root of the sum of the squares."""
        return mean / mean.square().mean(dim=-1, keepdim=True)

    def sigmoid_for_length(mean):
        """You apply a sigmoid, which maps each number to a number between 0 and 1. Here the *length* of the vector must
        be 1: divide all its numbers by the same number, and they keep their signs."""
        return mean.sigmoid()

    def tanh_for_length(mean):
        """You apply tanh, which maps each number to a number between −1 and 1. Here the *length* of the vector must be
        1: divide all its numbers by the same number."""
        return mean.tanh()


@mean_pool.wrong(stage="length", alone=True)
class LengthAlone:
    def squares_over_the_batch(mean):
        """You divide each feature by the sum of its squares over all texts: you sum over the axis of the batch, and the
        root is missing. One text's vector must not depend on the other texts."""
        return mean / mean.square().sum(dim=0)

    def sum_over_the_batch(mean):
        """You divide each feature by the sum of its absolute values over all texts: you sum over the axis of the batch,
        but a length is the root of a sum of squares over the features. One text's vector must not depend on the other
        texts."""
        return F.normalize(mean, p=1, dim=0)

    def divided_by_the_largest(mean):
        """You divide by the largest number of each vector. The length is the root of the sum of all the squares: for
        (3, 4) it is 5, not 4."""
        return mean / mean.amax(dim=-1, keepdim=True)

    def no_length_below_one(mean):
        """Your divisor is at least 1, so vectors shorter than 1 stay as they are. A limit that prevents division by 0
        must be very small, and here no vector is 0."""
        return mean / mean.norm(dim=-1, keepdim=True).clamp(min=1)

    @family(
        length_returned=(lambda mean: mean.norm(dim=-1), "a number for each text"),
        length_returned_with_its_axis=(lambda mean: mean.norm(dim=-1, keepdim=True), "(batch, 1)"),
    )
    def length_alone(length, mean):
        """You return the lengths, {}. The exercise asks for the vectors: which tensor must you divide by these
        lengths?"""
        return length(mean)

    def cosines_returned(mean):
        """You return the dot products of all pairs of texts, (batch, batch). The exercise asks for the vectors
        themselves, from which other code computes the dot products."""
        return scale_to_length_one(mean) @ scale_to_length_one(mean).mT

    def first_text_alone(mean):
        """You return the vector of the first text alone. A `return` inside a loop ends the function in the first round,
        and an index of 0 leaves out the other texts."""
        return scale_to_length_one(mean)[0]

    def last_text_alone(mean):
        """You return the vector of the last text alone. A loop that assigns each round's result to the same name keeps
        only the last result: how do you collect all of them?"""
        return scale_to_length_one(mean)[-1]

    def longest_made_one(mean):
        """You divide all vectors by the length of the longest one. Each text has its own length: over which single axis
        is it computed?"""
        return mean / mean.norm(dim=-1).max()

    def mean_length_made_one(mean):
        """You divide all vectors by their mean length. Each text has its own length: over which single axis is it
        computed?"""
        return mean / mean.norm(dim=-1).mean()

    def centred_over_the_batch(mean):
        """You subtract the mean of all texts' vectors from each vector before you scale the vector to length 1. One
        text's vector must not depend on the other texts: subtract nothing."""
        return scale_to_length_one(mean - mean.mean(dim=0))


@mean_pool.wrong
class WrongAnswers:
    @with_text_of(MeanAlone.until_the_first_padding)
    def zeros_for_padding_only(states, real):
        return F.normalize((states * real.cumprod(dim=1)[..., None]).sum(dim=1), dim=-1)

    def unit_tokens_not_summed(states, real):
        """The tokens are still separate, (batch, seq, d_model): each real token has a length of 1, but you add nothing
        up. Which step reduces a text to one vector, and when do you scale to length 1?"""
        return F.normalize(states * real[..., None], dim=-1)

    def sum_kept(states, real):
        """You return the sum of each text's real tokens, neither divided by the number of tokens nor scaled to length
        1, so a dot product of two vectors is not a cosine. Which step scales to length 1?"""
        return (states * real[..., None]).sum(dim=1)

    def sum_with_padding_kept(states, real):
        """You return the sum of all tokens of a row, padding included, and do not scale it to length 1. Which argument
        marks the real tokens, and which step comes after the mean?"""
        return states.sum(dim=1)

    def zeros_in_the_mean(states, real):
        """Padding adds 0 to your sum, but it is counted: you divide by the length of the row, not by the number of real
        tokens. And you do not scale your vectors to length 1, so a dot product of two vectors is not a cosine."""
        return (states * real[..., None]).mean(dim=1)

    def divided_by_all_counts(states, real):
        """You divide by the number of real tokens in the whole batch, and do not scale your vectors to length 1. Each
        text has its own count: over which axis must `sum` run? And which step comes after the mean?"""
        return (states * real[..., None]).sum(dim=1) / real.sum()

    def divided_by_the_root_of_the_count(states, real):
        """You divide the sum by the root of the number of real tokens, as some other models do, and do not scale your
        vectors to length 1. A mean divides by the count itself. And which step comes after the mean?"""
        return (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True).sqrt()

    def divided_by_the_count_at_the_end(states, real):
        """You divide by the number of tokens after scaling to length 1, so the length is no longer 1. Compute the mean
        first, then scale it."""
        return mean_pool.reference(states, real) / real.sum(dim=1, keepdim=True)

    def minus_infinity_kept(states, real):
        """You fill the padding with −∞ before you average, as for scores before a softmax: a mean with −∞ is −∞. With
        which number must you fill a row so that it adds nothing? And you do not scale to length 1."""
        return states.masked_fill(~real[..., None], float("-inf")).mean(dim=1)

    @family(
        one_number=(lambda states, real: states[real], ""),
        one_number_with_padding=(lambda states, real: states, ", padding included"),
    )
    def mean_of_everything(select, states, real):
        """You return a single number, the mean of everything{}: without an axis, `mean` runs over all axes. On which
        axis are the tokens of one text?"""
        return select(states, real).mean()

    def pair_of_max(states, real):
        """With an axis, `max` returns a pair: the values and their indices. And this model was trained with the mean of
        the real tokens, not with the largest numbers."""
        return scale_to_length_one((states * real[..., None]).max(dim=1))

    @family(
        real_after_the_mean=lambda mean, real: mean * real, real_after_the_mean_in_front=lambda mean, real: real * mean
    )
    def real_too_late(product, states, real):
        """`real` comes too late: the tokens are already averaged, and the result, (batch, d_model), does not fit
        `real`, (batch, seq). Before which step must you remove the padding?"""
        return product(states.mean(dim=1), real)

    def padding_over_the_count(states, real):
        """You add up all tokens of a row, padding included, and divide by the number of real tokens. And you do not
        scale your vectors to length 1. What must you do with the padding before the sum?"""
        return states.sum(dim=1) / real.sum(dim=1, keepdim=True)

    def sum_of_the_padding(states, real):
        """You add up the padding and leave out the real tokens: `real` is True for a real token and False for padding.
        And you do not scale your vectors to length 1."""
        return (states * ~real[..., None]).sum(dim=1)

    def unit_vectors_and_zeros_averaged(states, real):
        """You scale every token to length 1 and average over the whole row: padding adds 0, but it is counted. Tokens
        with a large norm then count no more than others. Scale to length 1 only once, after the mean."""
        return (F.normalize(states, dim=-1) * real[..., None]).mean(dim=1)

    def lengths_returned_as_well(states, real):
        """You return a pair: the vectors, and their lengths before the division. The exercise asks for the vectors
        alone, one tensor."""
        mean = mean_of_real_tokens(states, real)
        return scale_to_length_one(mean), mean.norm(dim=-1, keepdim=True)

    def unit_vectors_summed(states, real):
        """You scale every token to length 1 and add the tokens up. Tokens with a large norm then count no more than
        others, and the length of the result is not 1. Scale to length 1 only once, after the mean."""
        return (F.normalize(states, dim=-1) * real[..., None]).sum(dim=1)

    def divided_by_the_norm_of_all_tokens(states, real):
        """You divide by the root of the sum of all squares of a text, over tokens and features. The *one* vector of a
        text must have a length of 1: compute the mean first, then the length of the mean."""
        tokens = states * real[..., None]
        return (tokens / tokens.norm(dim=(1, 2), keepdim=True)).sum(dim=1)

    def padding_alone(states, real):
        """You keep the padding and leave out the real tokens: `real` is True for a real token and False for padding.
        For a text without padding, your result is all zeros."""
        return F.normalize((states * ~real[..., None]).sum(dim=1), dim=-1)

    def mean_of_the_padding(states, real):
        """You average the padding and leave out the real tokens: `real` is True for a real token and False for padding.
        And you do not scale your vectors to length 1."""
        return mean_of_real_tokens(states, ~real)

    def one_less_bools(states, real):
        """`real` holds bools, and PyTorch does not subtract bools: `1 - real` raises an error. `~` inverts bools. Do
        you need the padding at all, or only the real tokens?"""
        return 1 - real

    def mean_of_bools(states, real):
        """`real` holds bools, and PyTorch computes no mean of bools. `sum` counts the `True`s: divide the sum of a
        text's tokens by this count."""
        return real.mean(dim=1)

    @family(
        rows_of_one_length=(torch.Tensor.reshape, "`reshape`"),
        viewed_rows_of_one_length=(torch.Tensor.view, "`view`"),
    )
    def tokens_of_one_length(cut, states, real):
        """`states[real]` joins the real tokens of all texts into one long row, which no longer shows where a text ends:
        {} cannot divide this row equally among the texts. How can you leave out padding while each text keeps its
        row?"""
        return cut(states[real], len(states), -1, states.shape[-1]).mean(dim=1)

    def counts_of_the_places(states, real):
        """You divide by `real.sum(dim=0)`, which counts, for each place, the texts that have a real token there:
        (seq,). The exercise needs the number of real tokens of each text: over which axis must you sum, and which
        argument keeps that axis?"""
        return mean_of_real_tokens(states, real) / real.sum(dim=0)

    def axis_of_the_divisor_lost(states, real):
        """You divide vectors, (batch, d_model), by one number for each text, (batch,). Shapes are aligned from the
        right, so these numbers line up with the features: usually that raises an error, but with as many texts as
        features the result is silently wrong. Look at your divisor, the count or the length: which argument keeps the
        summed axis?"""
        mean = mean_of_real_tokens(states, real)
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
    def mask_without_features(combine, states, real):
        """`real` has one bool for each token, (batch, seq), and no axis for the features. Shapes are aligned from the
        right, so the tokens of `real` line up with the features of `states`. Where does `real` need an axis of size
        1?"""
        return combine(states, real)


# With one of these mistakes, the result depends on what the learner scales: the sum, or the mean that counts the zeros.
# With lengths over the batch, both have the same result.
LENGTHS_OF_EACH_TEXT = (
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


LENGTHS_OVER_THE_BATCH = (
    Length.length_over_the_batch,
    Length.one_length_for_all,
    LengthAlone.longest_made_one,
    LengthAlone.mean_length_made_one,
    LengthAlone.centred_over_the_batch,
)


@mean_pool.wrong
class LengthOfAMultiple:
    @family(**rows_of(LENGTHS_OF_EACH_TEXT + LENGTHS_OVER_THE_BATCH, "{}_of_the_sum"))
    def of_the_sum(length, states, real):
        return length((states * real[..., None]).sum(dim=1))

    @family(**rows_of(LENGTHS_OF_EACH_TEXT, "{}_with_zeros"))
    def with_zeros(length, states, real):
        return length((states * real[..., None]).mean(dim=1))
