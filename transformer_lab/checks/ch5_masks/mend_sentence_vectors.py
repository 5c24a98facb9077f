"""Find the mistake: one vector for a sentence."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from ..common_mistakes import fixed_length
from ..exercise import exercise, family, ways, with_text_of
from .padding_mask import padding_mask, random_lengths


def _tokens_and_lengths(draw, batch=3, seq=7, d_model=5):
    return draw(batch, seq, d_model), random_lengths(draw, batch, seq)


def set_padding_to_zero(x, lengths):
    """Set the vectors of the padding to zero."""
    return x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]


def sum_over_the_tokens(x):
    """Add up the tokens of each sentence."""
    return x.sum(dim=1)


def divide_by_the_length(total, lengths, seq):
    """Divide each sum by the number of real tokens."""
    return total / lengths[:, None]


@exercise(
    inputs=_tokens_and_lengths,
    axes={"x": "batch seq d_model", "lengths": "batch", "return": "batch d_model"},
    hints=(
        "Run the program on the same sentence with more padding. Which of the program's two steps depends on the "
        "padding?",
        "The padding is set to zero before the average, so the sum is right. By which number does an average divide?",
        "`(x * …).sum(dim=…) / lengths[:, …]`",
    ),
)
def mend_sentence_vectors(
    x, lengths, *, kept=set_padding_to_zero, added_up=sum_over_the_tokens, divided=divide_by_the_length
):
    """Return the average of each sentence's real tokens: (batch, seq, d_model) becomes (batch, d_model)."""
    return divided(added_up(kept(x, lengths)), lengths, x.shape[1])


@mend_sentence_vectors.right
class RightAnswers:
    def sentence_by_sentence(x, lengths):
        return torch.stack([tokens[:length].mean(dim=0) for tokens, length in zip(x, lengths.tolist())])

    def as_attention(x, lengths):
        mask = padding_mask.reference(lengths, x.shape[1])[:, :, 0]
        zeros = x.new_zeros(len(x), 1, x.shape[1])
        return (zeros.masked_fill(~mask, float("-inf")).softmax(-1) @ x).squeeze(1)

    def by_nanmean(x, lengths):
        hidden = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        return x.masked_fill(hidden[..., None], float("nan")).nanmean(dim=1)

    def fused_attention(x, lengths):
        query = torch.zeros_like(x[:, :1])
        mask = padding_mask.reference(lengths, x.shape[1])[:, 0]
        return scaled_dot_product_attention(query, x, x, attn_mask=mask).flatten(1)


mend_sentence_vectors.example("sentences without padding", batch=2, seq=4, lengths=torch.tensor([4, 4]))
mend_sentence_vectors.example("sentences of one token", batch=2, seq=4, lengths=torch.tensor([1, 1]))
mend_sentence_vectors.example("a text of 300 tokens", batch=2, seq=300, lengths=torch.tensor([300, 170]))
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


@mend_sentence_vectors.property
def more_padding_changes_nothing(function, x, lengths):
    """Add more padding to the sentences, with any numbers, and the vectors stay the same."""
    longer = torch.cat([x, x + 1], dim=1)
    return torch.allclose(function(longer, lengths), function(x, lengths), atol=1e-5)


def positions_cut_from_a_fixed_table(x, lengths):
    x = x[:, :64]
    return mend_sentence_vectors.reference(x * (torch.arange(64)[: x.shape[1]] < lengths[:, None])[..., None], lengths)


@mend_sentence_vectors.wrong(stage="kept")
class Kept:
    def padding_counts(x, lengths):
        """Your sum includes the padding. The earlier layers can leave any numbers in the padding, and these numbers end
        up in the sentence's vector. Only the first `lengths[b]` tokens belong to sentence b."""
        return x

    def one_token_too_many(x, lengths):
        """Your sum includes one token of the padding: position `lengths[b]` is the first that is not real. Positions
        are counted from 0; check the comparison."""
        return set_padding_to_zero(x, lengths + 1)

    def one_token_too_few(x, lengths):
        """Your sum leaves out the last real token of every sentence. Positions are counted from 0, so a sentence of 2
        tokens has the positions 0 and 1. Check the comparison."""
        return set_padding_to_zero(x, lengths - 1)

    def the_padding_only(x, lengths):
        """The mask is inverted: you add up the padding of each sentence, and leave out its real tokens."""
        return x - set_padding_to_zero(x, lengths)

    def one_number_of_the_mask_for_each_token(x, lengths):
        """You multiply `x`, (batch, seq, d_model), by the mask, whose last axis is `seq`. Broadcasting aligns from the
        right, so positions line up with features, which raises an error for most sizes. Each entry of the mask belongs
        to a whole token. Where must the mask have an axis of size 1?"""
        return x * (torch.arange(x.shape[1]) < lengths[:, None])

    def padding_zeroed_in_place(x, lengths):
        """Your function changes its argument `x`: it sets the padding to zero in the caller's own tensor. `x[…] = 0`,
        `x *= …` and methods that end in an underscore change a tensor in place. A product or `masked_fill` makes a new
        tensor."""
        x[torch.arange(x.shape[1], device=x.device) >= lengths[:, None]] = 0
        return x

    def padding_in_front(x, lengths):
        """You use the last places of each sentence as its tokens, as if the padding came first. The padding comes after
        the tokens: a sentence of 2 tokens has them at the positions 0 and 1."""
        position = torch.arange(x.shape[1], device=x.device)
        return x * (position >= x.shape[1] - lengths[:, None])[..., None]

    def absolute_values_averaged(x, lengths):
        """The signs are lost: you average absolute values, so negative numbers count as positive. Is there an `abs`, or
        a square and its root?"""
        return set_padding_to_zero(x, lengths).abs()

    def first_token_left_out(x, lengths):
        """Your sum leaves out the first token of every sentence. This token is like the others: where do your positions
        begin?"""
        return torch.cat([torch.zeros_like(x[:, :1]), set_padding_to_zero(x, lengths)[:, 1:]], dim=1)

    def very_negative_padding(x, lengths):
        """You fill the padding with a large negative number such as -1e9, and your sum includes it. Such a number is
        meant for a softmax, which turns it into the weight zero. Which number leaves a sum unchanged?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], -1e9)


@mend_sentence_vectors.wrong(stage="kept", alone=True)
class KeptAlone:
    def minus_infinity_for_padding(x, lengths):
        """You fill the padding with -inf, and a sum that contains -inf is -inf. Minus infinity is meant for a softmax,
        which turns it into the weight zero. Which number leaves a sum unchanged?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], -torch.inf)

    def nan_for_padding(x, lengths):
        """You fill the padding with NaN, and a sum or a mean that contains NaN is NaN: only functions such as `nanmean`
        leave NaN out. Which number leaves a sum unchanged?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], torch.nan)

    def filled_without_the_axis_of_the_features(x, lengths):
        """You fill `x`, (batch, seq, d_model), with a mask whose last axis is `seq`. Broadcasting aligns from the
        right, so positions line up with features, which raises an error for most sizes. Each entry of the mask belongs
        to a whole token. Where must the mask have an axis of size 1?"""
        return x.masked_fill(torch.arange(x.shape[1]) >= lengths[:, None], 0.0)

    def chosen_without_the_axis_of_the_features(x, lengths):
        """You select from `x`, (batch, seq, d_model), with a mask whose last axis is `seq`. Broadcasting aligns from
        the right, so positions line up with features, which raises an error for most sizes. Each entry of the mask
        belongs to a whole token. Where must the mask have an axis of size 1?"""
        return torch.where(torch.arange(x.shape[1]) < lengths[:, None], x, 0)

    @family(
        as_many_positions_as_sentences=(0, "sentences"),
        as_many_positions_as_features=(2, "features"),
    )
    def positions_of_another_axis(axis, x, lengths):
        """You make as many positions as there are {}, so the mask does not fit the tokens. Positions are counted along
        `seq`: which axis of `x` is that?"""
        return x * (torch.arange(x.shape[axis], device=x.device) < lengths[:, None])[..., None]

    def lengths_in_a_row(x, lengths):
        """You compare the positions, (seq,), with the lengths, (batch,), as they are, so positions line up with
        sentences, which raises an error for most sizes. Every sentence needs its own row. Which axis do the lengths
        lack?"""
        return x * (torch.arange(x.shape[1], device=x.device) < lengths)[..., None]

    def padding_without_its_first_place(x, lengths):
        """The mask is inverted: you add up the padding, except its first place, and leave out the real tokens. Which
        positions are smaller than the length?"""
        return x * (torch.arange(x.shape[1], device=x.device) > lengths[:, None])[..., None]


@mend_sentence_vectors.wrong(stage="added_up")
class AddedUp:
    def every_sum_by_every_length(x):
        """The sums keep the axis of the tokens, (batch, 1, d_model), and the lengths have one new axis, (batch, 1).
        Broadcasting aligns from the right, which makes the result (batch, batch, d_model): every sum is divided by
        every length. Which of the two tensors has one axis too many, or too few?"""
        return x.sum(dim=1, keepdim=True)

    def summed_over_features(x):
        """You add up over the features: each token becomes one number, (batch, seq). Add up the tokens of a sentence,
        feature by feature. Which axis counts the tokens?"""
        return x.sum(dim=-1)


@mend_sentence_vectors.wrong(stage="added_up", alone=True)
class AddedUpAlone:
    def summed_over_the_sentences(x):
        """You add up over the sentences of the batch: first tokens are added to first tokens, (seq, d_model). Add up
        the tokens of one sentence. Which axis counts them?"""
        return x.sum(dim=0)


@mend_sentence_vectors.wrong(stage="divided")
class Divided:
    def as_given(total, lengths, seq):
        """Your function does the same as the given program: the padding {adds nothing to the sum, but} still counts in
        the divisor. A sentence of 2 tokens in 4 places gets half of its average. With more padding, the vector shrinks
        further."""
        return total / seq

    def not_divided(total, lengths, seq):
        """You add up the tokens but do not divide: longer sentences get larger vectors. An average divides by the
        number of tokens."""
        return total

    def by_the_longest(total, lengths, seq):
        """You divide every sum by the length of the longest sentence: this is right for the longest, but the vectors of
        all others are too small and depend on the rest of the batch. Each sentence has its own length."""
        return total / lengths.max()

    def by_all_tokens(total, lengths, seq):
        """You divide every sum by the number of tokens in the whole batch. Each sentence has its own length: divide its
        sum by the number of its own tokens."""
        return total / lengths.sum()

    def by_the_number_of_sentences(total, lengths, seq):
        """You divide the sums by the number of sentences. The exercise asks for the average over the tokens of one
        sentence; the number of other sentences must not matter. How many numbers are added up in each sum?"""
        return total / len(lengths)

    def divided_twice(total, lengths, seq):
        """You divide the sums twice, by the length and by the number of places. `mean` divides already, and counts the
        padding. Which function adds up without dividing?"""
        return total / seq / lengths[:, None]

    def by_the_length_plus_one(total, lengths, seq):
        """You divide every sum by one more than the number of tokens: for a sentence of one token, the result is half
        of that token. Adding 1 avoids a divisor of zero, but makes every average too small."""
        return total / (lengths[:, None] + 1)

    def lengths_on_the_features_axis(total, lengths, seq):
        """You divide the sums, (batch, d_model), by the lengths, (batch,). Broadcasting aligns from the right, so
        sentences line up with features. With several sentences the division raises an error, unless there are as many
        features as sentences; then every feature is divided by a different sentence's length. Which axis do the lengths
        lack?"""
        return total / lengths

    def by_the_length_minus_one(total, lengths, seq):
        """You divide every sum by one less than the number of tokens, as for an unbiased variance. An average divides
        by the number of all tokens: for a sentence of one token, the result must be that token, but you divide it by
        zero."""
        return total / (lengths[:, None] - 1)

    def by_the_padding(total, lengths, seq):
        """You divide every sum by the number of places that are padding, `seq` minus the length. For a sentence without
        padding, you divide by zero. How many tokens are added up in the sum?"""
        return total / (seq - lengths[:, None])

    def ratio_inverted(total, lengths, seq):
        """You multiply the mean over all places by `lengths / seq`, which makes it even smaller. The mean divides by
        `seq`, which is too large: by which fraction must you multiply the mean to correct this?"""
        return total / seq * lengths[:, None] / seq

    def mean_times_the_length(total, lengths, seq):
        """You multiply the mean over all places by the length, so longer sentences get larger vectors. The mean has
        divided the sum by `seq` already. By which single number must you divide the sum instead?"""
        return total / seq * lengths[:, None]

    def rounded_down(total, lengths, seq):
        """You round the averages down to whole numbers: `//` rounds down, even for floats. Which division keeps the
        fraction?"""
        return total // lengths[:, None]

    def axis_kept(total, lengths, seq):
        """{Each vector is right, but} the axis of the tokens is still there with size 1: (batch, 1, d_model).
        `keepdim=True` keeps it, for a division that needs it. The result must have one vector for each sentence,
        (batch, d_model): which line must drop the axis?"""
        return (total / lengths[:, None])[:, None]

    def by_the_average_length(total, lengths, seq):
        """You divide every sum by the average length in the batch, which is too large for the short sentences and too
        small for the long ones. Each sentence has its own length."""
        return total / lengths.float().mean()

    def by_the_shortest(total, lengths, seq):
        """You divide every sum by the length of the shortest sentence: this is right for the shortest, but the vectors
        of all others are too large and depend on the rest of the batch. Each sentence has its own length."""
        return total / lengths.min()

    def by_the_root(total, lengths, seq):
        """You divide every sum by the square root of its length, as attention divides its scores by the root of the
        number of features. An average divides by the number of tokens itself: the average of three equal tokens must be
        that token."""
        return total / lengths[:, None].sqrt()

    def times_the_length(total, lengths, seq):
        """You multiply every sum by the length of its sentence, but an average divides by it: three equal tokens give
        nine times that token. Check the operator between the sum and the lengths."""
        return total * lengths[:, None]

    def every_length_for_every_sum(total, lengths, seq):
        """The sums have the shape (batch, d_model), and the lengths have two new axes, (batch, 1, 1). Broadcasting
        aligns from the right, which makes the result (batch, batch, d_model): every sum is divided by every length. How
        many axes must the lengths have?"""
        return total / lengths[:, None, None]

    def rounded(total, lengths, seq):
        """You round the averages to whole numbers, but the exercise does not ask for this. Which line rounds?"""
        return (total / lengths[:, None]).round()

    def by_the_first_length(total, lengths, seq):
        """You divide every sum by the length of the first sentence. Each sentence has its own length. How many of the
        lengths does `lengths[0]` use?"""
        return total / lengths[0]

    def one_vector_for_the_batch(total, lengths, seq):
        """You return one vector, (d_model,): you also average over the sentences. Each sentence must keep its own
        vector. Over how many axes does your function average?"""
        return (total / lengths[:, None]).mean(dim=0)

    def axes_of_size_one_lost(total, lengths, seq):
        """{Your function is right for several sentences, but a batch of one loses the axis of the batch:} `squeeze()`
        removes every axis of size 1. Which single axis should it remove, if any?"""
        return (total / lengths[:, None]).squeeze()


@mend_sentence_vectors.wrong(stage="divided", alone=True)
class DividedAlone:
    def counts_on_the_features_axis(total, lengths, seq):
        """You divide the sums, (batch, d_model), by one number for each sentence, (batch,). Broadcasting aligns from
        the right, so sentences line up with features. This raises an error, unless there are as many sentences as
        features; then every feature is divided by a different sentence's number. Which axis do these numbers lack?"""
        return total / lengths.to(total)

    def by_the_features(total, lengths, seq):
        """You divide every sum by the number of features. The sum is over tokens, feature by feature. How many numbers
        are added up in each sum?"""
        return total / total.shape[-1]

    @family(counted_over_the_sentences=True, counted_over_the_sentences_in_a_row=False)
    def counted_over_the_sentences(as_a_column, total, lengths, seq):
        """You add up the mask over the sentences, not over the tokens: for each place you count how many sentences
        reach it. The divisor must be the number of tokens of each sentence. Which axis of the mask counts tokens?"""
        count = (torch.arange(seq, device=lengths.device) < lengths[:, None]).sum(0)
        return total / (count[:, None] if as_a_column else count)

    def features_first(total, lengths, seq):
        """{The numbers are right, but} the axes are exchanged: (d_model, batch). Sentences come first. Which line
        exchanges the axes?"""
        return (total / lengths[:, None]).T


@mend_sentence_vectors.wrong
class WrongAnswers:
    def mask_one_token_too_long(x, lengths):
        """Your average includes one token of the padding, and counts it too: the sum and the count both reach one token
        too far. Positions are counted from 0, and position `lengths[b]` is the first that is not real. Where does your
        mask or your slice end?"""
        real = (torch.arange(x.shape[1]) <= lengths[:, None])[..., None]
        return (x * real).sum(dim=1) / real.sum(dim=1)

    def mask_one_token_too_short(x, lengths):
        """You neither add nor count the last real token of every sentence: the sum and the count both end one token too
        early. The vector of a sentence with one token is then NaN. Positions are counted from 0. Where does your mask
        or your slice end?"""
        real = (torch.arange(x.shape[1]) < lengths[:, None] - 1)[..., None]
        return (x * real).sum(dim=1) / real.sum(dim=1)

    def cut_at_a_tensor(x, lengths):
        """A slice such as `x[:, :lengths]` needs one integer, but `lengths` holds one for each sentence, so the slice
        raises an error, unless the batch has a single sentence. No slice cuts each row at a different place. Use a
        mask, or a loop over the sentences."""
        return x[:, :lengths].mean(dim=1)

    def all_sentences_in_one(x, lengths):
        """You return one vector for the whole batch, (d_model,). Indexing with a mask, `x[is_real]`, puts all real
        tokens one after another, so you no longer know the sentence of each token. Which operation leaves every token
        in its place?"""
        return x[torch.arange(x.shape[1], device=x.device) < lengths[:, None]].mean(dim=0)

    def one_number_for_each_sentence(x, lengths):
        """Each sentence becomes a single number: you average over its tokens and over its features. The exercise asks
        for a vector with an average for each feature. Which axis must you pass to `mean`?"""
        return torch.stack([tokens[:length].mean() for tokens, length in zip(x, lengths.tolist())])

    def largest_of_each_feature(x, lengths):
        """You return the largest number of each feature among the real tokens. This is max pooling, a different way to
        compute a vector for a sentence. The task asks for the average."""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], float("-inf")).amax(dim=1)

    def softmax_of_ones_and_zeros(x, lengths):
        """Your weights are a softmax of the mask as numbers, 1 for real tokens and 0 for padding. e⁰ is 1, so padding
        keeps a weight, which is the weight of a real token divided by e. Which score gets the weight zero?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return (real.to(x.dtype).softmax(dim=-1)[..., None] * x).sum(dim=1)

    def the_first_token(x, lengths):
        """You return the first token of each sentence, as is done with BERT, which has a special first token for this
        purpose. The task asks for the average of all real tokens."""
        return x[:, 0]

    def nonzero_tokens_counted(x, lengths):
        """You count only the tokens that are not zero. A real token can be zero too: you then leave it out of the
        count, and the vector of its sentence is too large. Which argument holds the number of tokens of each
        sentence?"""
        kept = set_padding_to_zero(x, lengths)
        return kept.sum(1) / (kept != 0).any(-1).sum(1, keepdim=True)

    def cut_to_the_longest(x, lengths):
        """You cut the batch to the length of its longest sentence, and average over all remaining places. Shorter
        sentences still have padding among these places, and your function adds and counts it. Each sentence has its own
        length."""
        return x[:, : int(lengths.max())].mean(dim=1)

    def the_last_token(x, lengths):
        """You return the last real token of each sentence. This is one way to get a vector for a sentence, but the task
        asks for the average of all its real tokens."""
        return x[torch.arange(len(x), device=x.device), lengths - 1]

    def plain_mean(x, lengths):
        """You average over all places, including the padding: its numbers are added and counted. Only the first
        `lengths[b]` tokens belong to sentence b."""
        return x.mean(dim=1)

    def mean_over_features(x, lengths):
        """You average over the features: each token becomes one number, (batch, seq). Average the tokens of a sentence,
        feature by feature. Which axis counts the tokens?"""
        return x.mean(dim=-1)

    def root_mean_square(x, lengths):
        """You compute the root of the mean square, as RMS norm does: it measures how large the numbers are, and it is
        never negative. The task asks for the average of the numbers themselves."""
        return mend_sentence_vectors.reference(x**2, lengths).sqrt()

    def weights_over_the_sentences(x, lengths):
        """You divide the mask by its sum over the sentences: the weights of one place sum to one over the batch, but
        the weights of a sentence do not. Which axis of the mask counts the tokens of a sentence?"""
        real = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]).to(x)
        return ((real / real.sum(0, keepdim=True))[..., None] * x).sum(dim=1)

    def the_last_sentence_only(x, lengths):
        """You return one vector, the vector of the last sentence: (d_model,). Each iteration of your loop overwrites
        the previous result. Where do the vectors of the other sentences go?"""
        return x[-1, : int(lengths[-1])].mean(dim=0)

    def vectors_concatenated(x, lengths):
        """The vectors of all sentences follow one another on one axis, (batch · d_model,): `cat` joins tensors along an
        axis that exists already. Which function makes a new axis?"""
        return mend_sentence_vectors.reference(x, lengths).flatten()

    def mask_as_an_index_of_the_second_axis(x, lengths):
        """In `x[:, is_real]` the mask, (batch, seq), indexes the last two axes, (seq, d_model), and does not fit. Even
        if it did, the selected tokens could not form a tensor of sentences, which have different lengths. Which
        operation leaves every token in its place?"""
        return x[:, torch.arange(x.shape[1], device=x.device) < lengths[:, None]].mean(dim=1)

    def first_token_not_counted(x, lengths):
        """You neither add nor count the first token of every sentence. For a sentence of one token, you divide by zero.
        The first token is like the others: where does your mask or your slice begin?"""
        return Kept.first_token_left_out(x, lengths).sum(dim=1) / (lengths[:, None] - 1)

    def tokens_not_added_up(x, lengths):
        """You return the tokens with the padding set to zero, (batch, seq, d_model), but you do not average them.
        Return one vector for each sentence."""
        return set_padding_to_zero(x, lengths)

    def tokens_divided_and_not_added_up(x, lengths):
        """You divide each token by the length of its sentence, but do not add the tokens up, so the shape is
        still (batch, seq, d_model). An average is one vector for each sentence."""
        return set_padding_to_zero(x, lengths) / lengths[:, None, None]

    def x_unchanged(x, lengths):
        """You return `x` unchanged. The task asks for one vector for each sentence, the average of its real tokens."""
        return x

    @with_text_of(mean_over_features)
    def mean_of_kept_tokens_over_features(x, lengths):
        return set_padding_to_zero(x, lengths).mean(dim=-1)

    def mean_over_the_sentences(x, lengths):
        """You average over the sentences of the batch: first tokens are averaged with first tokens, (seq, d_model).
        Average the tokens of one sentence. Which axis counts them?"""
        return set_padding_to_zero(x, lengths).mean(dim=0)

    @with_text_of(mean_over_the_sentences)
    def mean_of_all_places_over_the_sentences(x, lengths):
        return x.mean(dim=0)

    def cut_at_the_first_length(x, lengths):
        """You cut every sentence at the length of the first, and average over that many places: other sentences lose
        tokens or keep padding. Each sentence has its own length."""
        return x[:, : int(lengths[0])].mean(dim=1)

    def the_first_sentence_only(x, lengths):
        """You return one vector, the vector of the first sentence: (d_model,). A `return` inside a loop ends the
        function in its first iteration. Every sentence of the batch needs a vector."""
        return x[0, : int(lengths[0])].mean(dim=0)

    def largest_with_padding_at_zero(x, lengths):
        """You return the largest number of each feature, with the padding set to zero: this is max pooling, and a zero
        of the padding is larger than any negative number. The task asks for the average of the real tokens."""
        return set_padding_to_zero(x, lengths).amax(dim=1)

    def largest_of_all_places(x, lengths):
        """You return the largest number of each feature among all places, including the padding. This is max pooling,
        over too many places. The task asks for the average of the real tokens."""
        return x.amax(dim=1)

    def largest_and_its_place(x, lengths):
        """You return the result of `max` along an axis: a pair, the largest numbers and their places. The task asks for
        neither, but for the average of each feature over the real tokens."""
        return set_padding_to_zero(x, lengths).max(dim=1)

    def median_of_each_feature(x, lengths):
        """You return the median of each feature: the number in the middle of its sentence's tokens. The task asks for
        their average: add them up and divide."""
        return torch.stack([tokens[:length].median(0).values for tokens, length in zip(x, lengths.tolist())])

    def vectors_normalized(x, lengths):
        """You divide each vector by its own norm: the direction stays right, but the norm is now 1. Unit vectors are
        useful for comparing directions, but the task asks for the average itself."""
        return torch.nn.functional.normalize(mend_sentence_vectors.reference(x, lengths), dim=-1)

    def features_added_up(x, lengths):
        """Each sentence becomes a single number: you add up over its tokens and over its features. The task asks for a
        vector with an average for each feature. Which single axis must you pass to `sum`?"""
        return set_padding_to_zero(x, lengths).sum(dim=(1, 2)) / lengths

    def sentences_averaged_over_features(x, lengths):
        """You average each sentence's tokens, (length, d_model), over the features: one number remains for each token,
        and `stack` refuses rows of different lengths. Which of the two axes counts the tokens?"""
        return torch.stack([tokens[:length].mean(dim=1) for tokens, length in zip(x, lengths.tolist())])

    @ways(by_view=torch.Tensor.view, by_reshape=torch.Tensor.reshape)
    def real_tokens_put_back(cut, x, lengths):
        """Indexing with a mask, `x[is_real]`, puts all real tokens one after another. They cannot be reshaped into
        sentences again, because sentences have different lengths, so your function raises an error. Which operation
        leaves every token in its place?"""
        return cut(x[torch.arange(x.shape[1]) < lengths[:, None]], len(x), -1, x.shape[2]).mean(dim=1)

    def the_token_after_the_last(x, lengths):
        """You return the token at position `lengths[b]`, which is the first place of the padding; without padding, this
        position is beyond the end. Also, one token is not an average: the task asks for the mean of all real tokens."""
        return x[torch.arange(len(x), device=x.device), lengths]


fixed_length(mend_sentence_vectors, positions_cut_from_a_fixed_table, "a text of 300 tokens")
