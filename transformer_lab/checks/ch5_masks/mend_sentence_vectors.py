"""Find the mistake: one vector for a sentence."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from ..exercise import exercise
from .padding_mask import padding_mask, some_lengths


def _vectors(draw, batch=3, seq=7, d_model=5):
    return draw(batch, seq, d_model), some_lengths(draw, batch, seq)


def real_tokens(x, lengths):
    """Set the vectors of padding to zero."""
    return x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]


def by_the_length(total, lengths, seq):
    """Divide each sum by the number of real tokens."""
    return total / lengths[:, None]


@exercise(
    inputs=_vectors,
    axes={"x": "batch seq d_model", "lengths": "batch", "return": "batch d_model"},
    hints=(
        "Give the program the same sentence with more padding. Which of its two steps lets the padding in?",
        "The padding is set to zero before the average, so the sum is right. By how many numbers does an average "
        "divide?",
        "`(x * …).sum(dim=…) / lengths[:, …]`",
    ),
)
def mend_sentence_vectors(x, lengths, *, kept=real_tokens, divided=by_the_length):
    """Return the average of each sentence's real tokens: (batch, seq, d_model) to (batch, d_model)."""
    return divided(kept(x, lengths).sum(dim=1), lengths, x.shape[1])


@mend_sentence_vectors.equivalent
def sentence_by_sentence(x, lengths):
    return torch.stack([tokens[:length].mean(dim=0) for tokens, length in zip(x, lengths.tolist())])


@mend_sentence_vectors.equivalent
def as_attention(x, lengths):
    mask = padding_mask.reference(lengths, x.shape[1])[:, :, 0]
    zeros = x.new_zeros(len(x), 1, x.shape[1])
    return (zeros.masked_fill(~mask, float("-inf")).softmax(-1) @ x).squeeze(1)


@mend_sentence_vectors.equivalent
def by_nanmean(x, lengths):
    hidden = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
    return x.masked_fill(hidden[..., None], float("nan")).nanmean(dim=1)


@mend_sentence_vectors.equivalent
def fused_attention(x, lengths):
    query = torch.zeros_like(x[:, :1])
    mask = padding_mask.reference(lengths, x.shape[1])[:, 0]
    return scaled_dot_product_attention(query, x, x, attn_mask=mask).flatten(1)


mend_sentence_vectors.example("sentences without padding", batch=2, seq=4, lengths=torch.tensor([4, 4]))
mend_sentence_vectors.example("sentences of one token", batch=2, seq=4, lengths=torch.tensor([1, 1]))
mend_sentence_vectors.example("a batch of one", batch=1, seq=6, lengths=torch.tensor([4]))
mend_sentence_vectors.example(
    "as many sentences as features", batch=4, seq=6, d_model=4, lengths=torch.tensor([4, 1, 6, 3]), plain=True
)


@mend_sentence_vectors.probe
def token_of_zeros(draw):
    """a real token whose vector is zero"""
    x = draw(3, 6, 5)
    x[0, 1] = 0
    return x, torch.tensor([4, 2, 6])


@mend_sentence_vectors.mistake(stage="divided")
def as_given(total, lengths, seq):
    """This does what the given program does: the padding adds nothing to the sum, and is counted all the same. A
    sentence of 2 tokens in 4 places gets half of its average. Fill it up further, and the vector shrinks further."""
    return total / seq


@mend_sentence_vectors.mistake(stage="kept")
def padding_counts(x, lengths):
    """The sum still runs over the padding. What stands there is whatever the layers before made of it, and it ends up
    in the sentence's vector. Only the first `lengths[b]` tokens belong to sentence b."""
    return x


@mend_sentence_vectors.mistake(stage="divided")
def not_divided(total, lengths, seq):
    """The tokens are added up and not divided: longer sentences get longer vectors. An average divides by how many
    there are."""
    return total


@mend_sentence_vectors.mistake(stage="divided")
def by_the_longest(total, lengths, seq):
    """Every sentence is divided by the longest one's length: right for that one, and too small for the others,
    depending on who else is in the batch. Each sentence has a length of its own."""
    return total / lengths.max()


@mend_sentence_vectors.mistake(stage="divided")
def by_all_tokens(total, lengths, seq):
    """Every sentence is divided by the number of tokens in the whole batch. Each has a length of its own: the sum over
    one sentence belongs to that one alone."""
    return total / lengths.sum()


@mend_sentence_vectors.mistake(stage="divided")
def by_the_number_of_sentences(total, lengths, seq):
    """The sums are divided by the number of sentences. What is averaged are the tokens of one sentence; how many
    sentences there are beside it must not matter. How many numbers went into each sum?"""
    return total / len(lengths)


@mend_sentence_vectors.mistake(stage="divided")
def divided_twice(total, lengths, seq):
    """The sums are divided twice, by the length and by the number of places. `mean` has divided already: where it
    stands, the padding has been counted. Which function adds up and does not divide?"""
    return total / seq / lengths[:, None]


@mend_sentence_vectors.mistake(stage="divided")
def by_one_more(total, lengths, seq):
    """Every sum is divided by one more than there are tokens: a sentence of one token gets half of that token. Adding 1
    keeps the divisor from being zero, and every average becomes too small."""
    return total / (lengths[:, None] + 1)


@mend_sentence_vectors.mistake(stage="divided")
def lengths_on_the_features_axis(total, lengths, seq):
    """The sums, (batch, d_model), are divided by the lengths, (batch,), and broadcasting aligns from the right:
    sentences meet features. It raises, unless there are as many sentences as features, and then every feature is
    divided by another sentence's length. What must the lengths get first?"""
    return total / lengths


@mend_sentence_vectors.mistake(stage="kept")
def one_token_too_many(x, lengths):
    """One token of the padding is still in the sum: position `lengths[b]` is the first that is not real. Positions are
    counted from 0; look at the comparison."""
    return real_tokens(x, lengths + 1)


@mend_sentence_vectors.mistake(stage="kept")
def one_token_too_few(x, lengths):
    """The last real token of every sentence is missing in the sum. Positions are counted from 0, so that a sentence of
    2 has the positions 0 and 1. Look at the comparison."""
    return real_tokens(x, lengths - 1)


@mend_sentence_vectors.mistake(stage="kept")
def the_padding_only(x, lengths):
    """The mask is the wrong way round: the sum runs over the padding, and the real tokens are left out."""
    return x - real_tokens(x, lengths)


@mend_sentence_vectors.mistake
def numbers_that_are_not_zero(x, lengths):
    """You count which tokens are zero to find the padding. A real token can be zero as well, and is then not counted:
    its sentence's vector comes out too large. How long each sentence is, you are told."""
    kept = real_tokens(x, lengths)
    return kept.sum(1) / (kept != 0).any(-1).sum(1, keepdim=True)


@mend_sentence_vectors.mistake
def cut_to_the_longest(x, lengths):
    """The batch is cut to its longest sentence, and the mean runs over what is left. The others still have padding
    there: it goes in, and is counted. Each sentence has a length of its own."""
    return x[:, : int(lengths.max())].mean(dim=1)


@mend_sentence_vectors.mistake
def the_last_token(x, lengths):
    """You return the last real token of each sentence. That is one way to get a vector for a sentence, and not what is
    asked for: the average of all its real tokens."""
    return x[torch.arange(len(x), device=x.device), lengths - 1]


@mend_sentence_vectors.mistake
def plain_mean(x, lengths):
    """This is the plain mean over all places, padding included: what stands in the padding goes in, and is counted.
    Only the first `lengths[b]` tokens belong to sentence b."""
    return x.mean(dim=1)


@mend_sentence_vectors.mistake
def mean_over_features(x, lengths):
    """The mean runs over the features: each token has become one number, (batch, seq). What must be averaged are the
    tokens of a sentence, feature by feature. Which axis counts the tokens?"""
    return x.mean(dim=-1)


@mend_sentence_vectors.property
def more_padding_changes_nothing(function, x, lengths):
    """Fill the sentences up further, with whatever numbers, and the vectors stay."""
    longer = torch.cat([x, x + 1], dim=1)
    return torch.allclose(function(longer, lengths), function(x, lengths), atol=1e-5)
