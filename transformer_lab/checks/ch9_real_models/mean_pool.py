"""One vector for a sentence: the mean of its real tokens, with length 1."""

import torch
from torch.nn import functional as F

from ..exercise import exercise


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
        "A text of three tokens stands in a batch with one of ten. How many of its ten rows may the mean know of?",
        "Set the rows of the padding to 0, add up the rows of each text, and divide. Then scale each vector to "
        "length 1, so that a dot product is a cosine.",
        "`mean = (states * real[..., None]).sum(…) / real.sum(…, keepdim=True)`, `return mean / mean.norm(…)`",
    ),
)
def mean_pool(states, real, *, mean=mean_of_real, length=of_length_one):
    """Return the mean of each text's real tokens, with length 1: (batch, seq, d_model) to (batch, d_model)."""
    return length(mean(states, real))


@mean_pool.probe(plain=True)
def no_padding(draw):
    """texts of one length"""
    return draw(2, 4, 5), torch.ones(2, 4, dtype=torch.bool)


@mean_pool.probe(plain=True)
def padding_in_front(draw):
    """padding in front of the text"""
    states, real = _states(draw)
    return states, real.flip(1)


@mean_pool.probe(plain=True)
def huge_padding(draw):
    """huge numbers in the padding"""
    states, real = _states(draw)
    return states.masked_fill(~real[..., None], 1e4), real


@mean_pool.equivalent
def by_pytorch_normalize(states, real):
    return F.normalize((states * real.unsqueeze(-1)).sum(1), dim=-1)  # the length goes anyway, and with it the divisor


@mean_pool.equivalent
def text_by_text(states, real):
    means = torch.stack([text[kept].mean(dim=0) for text, kept in zip(states, real)])
    return means / means.square().sum(dim=1, keepdim=True).sqrt()


@mean_pool.equivalent
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


@mean_pool.mistake(stage="mean")
def padding_in_the_mean(states, real):
    """Padding is in your mean. Short texts suffer most: their vectors are mostly padding. Which argument says which
    tokens are real?"""
    return states.mean(dim=1)


@mean_pool.mistake(stage="mean", alone=True)
def only_the_padding(states, real):
    """You keep the padding and leave out the real tokens: `real` is True where there is a word."""
    return mean_of_real(states, ~real)


@mean_pool.mistake(stage="mean")
def first_token(states, real):
    """You take the first token of each text, `[CLS]`, as BERT's classifiers do. This model was trained with the mean of
    all of its real tokens."""
    return states[:, 0]


@mean_pool.mistake(stage="mean")
def last_token(states, real):
    """You take the last token of each row. In a short text that is padding; asked for is the mean of the real ones."""
    return states[:, -1]


@mean_pool.mistake(stage="mean")
def last_real_token(states, real):
    """You take the last real token of each text, as encoders made of language models do. This one was trained with the
    mean of all real tokens."""
    last = real.sum(dim=1) - 1
    return states[torch.arange(len(states)), last]


@mean_pool.mistake(stage="mean")
def largest_of_each_feature(states, real):
    """You take the largest number of each feature. That is max pooling; this model was trained with the mean."""
    return states.masked_fill(~real[..., None], float("-inf")).amax(dim=1)


@mean_pool.mistake(stage="mean")
def unit_vectors_averaged(states, real):
    """You make every token's length 1 before the mean. Long tokens then count no more than short ones: the length is
    made 1 once, after the mean."""
    return mean_of_real(F.normalize(states, dim=-1), real)


@mean_pool.mistake(stage="mean")
def mean_over_all_texts(states, real):
    """One mean serves the whole batch: all texts get the same vector. Which axis are the tokens of one text on?"""
    return mean_of_real(states.flatten(0, 1)[None], real.flatten()[None]).expand(len(states), -1)


@mean_pool.mistake(stage="mean")
def mean_over_features(states, real):
    """Your mean is over the features: a number for each token, where a vector for each text was asked for. Which axis
    are the tokens on?"""
    return states.mean(dim=-1)


@mean_pool.mistake(stage="length")
def length_kept(mean):
    """Your vectors keep their lengths, so that a dot product of two is no cosine. Which step comes after the mean?"""
    return mean


@mean_pool.mistake(stage="length")
def divided_by_the_square(mean):
    """You divide by the square of the length: the root is missing. A vector of length 2 must become half as long, not a
    quarter."""
    return mean / mean.square().sum(dim=-1, keepdim=True)


@mean_pool.mistake(stage="length")
def sum_made_one(mean):
    """You divide by the sum of the absolute values. The length is the root of the sum of the squares: 3 and 4 give 5,
    and not 7."""
    return F.normalize(mean, p=1, dim=-1)


@mean_pool.mistake(stage="length")
def length_over_the_batch(mean):
    """You normalize along the batch, so that each feature has the length 1 over all texts. One text's vector must not
    depend on the others."""
    return F.normalize(mean, dim=0)


@mean_pool.mistake(stage="length")
def one_length_for_all(mean):
    """You divide all vectors by one length, that of the whole batch. Each text has its own."""
    return mean / mean.norm()


@mean_pool.mistake(stage="length")
def softmax_for_length(mean):
    """You made the numbers of each vector sum to one by a softmax. Here the *length* must be 1, and signs stay."""
    return mean.softmax(dim=-1)


@mean_pool.mistake(stage="mean")
def tokens_of_all_texts_joined(states, real):
    """The whole batch becomes one vector, the mean of all texts' tokens. `states[real]` leads there: it picks the real
    tokens and joins them in one long row, so that which came from which text is forgotten. How can padding be left out
    while each text keeps its row?"""
    return states[real].mean(dim=0)


@mean_pool.mistake
def axis_of_the_divisor_lost(states, real):
    """You divide vectors, (batch, d_model), by one number for each text, (batch,). Shapes are aligned from the right,
    so these numbers stand under the features: mostly that raises, and with as many texts as features it would run and
    be wrong. Look at what you divide by, the count or the length: which argument keeps the axis that was summed?"""
    mean = mean_of_real(states, real)
    return mean / mean.norm(dim=-1)


@mean_pool.mistake
def padding_overwritten(states, real):
    """The vectors are right, and the caller's `states` have been written over. `states[~real] = 0`, `states *= …` and
    names that end in an underscore work in place. Which of your lines changes the tensor it was given?"""
    states[~real] = 0
    return mean_pool.reference(states, real)
