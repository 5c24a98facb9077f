"""Find the mistake: one vector for a sentence."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from ..common_mistakes import fixed_length
from ..exercise import exercise, family, ways, with_text_of
from .padding_mask import padding_mask, some_lengths


def _vectors(draw, batch=3, seq=7, d_model=5):
    return draw(batch, seq, d_model), some_lengths(draw, batch, seq)


def real_tokens(x, lengths):
    """Set the vectors of padding to zero."""
    return x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]


def over_the_tokens(x):
    """Add up the tokens of each sentence."""
    return x.sum(dim=1)


def by_the_length(total, lengths, seq):
    """Divide each sum by the number of real tokens."""
    return total / lengths[:, None]


@exercise(
    inputs=_vectors,
    axes={"x": "batch seq d_model", "lengths": "batch", "return": "batch d_model"},
    hints=(
        "Call the program on the same sentence with more padding. Which of its two steps lets the padding change the "
        "result?",
        "The padding is set to zero before the average, so the sum is right. By which number does the average divide "
        "the sum?",
        "`(x * …).sum(dim=…) / lengths[:, …]`",
    ),
)
def mend_sentence_vectors(x, lengths, *, kept=real_tokens, added_up=over_the_tokens, divided=by_the_length):
    """Return the average of each sentence's real tokens: (batch, seq, d_model) to (batch, d_model)."""
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
    """Fill the sentences up further, with whatever numbers, and the vectors stay."""
    longer = torch.cat([x, x + 1], dim=1)
    return torch.allclose(function(longer, lengths), function(x, lengths), atol=1e-5)


def positions_of_a_fixed_table(x, lengths):
    x = x[:, :64]
    return mend_sentence_vectors.reference(x * (torch.arange(64)[: x.shape[1]] < lengths[:, None])[..., None], lengths)


@mend_sentence_vectors.wrong(stage="kept")
class Kept:
    def padding_counts(x, lengths):
        """The padding is in your sum. What stands there is whatever the layers before made of it, and it ends up in the
        sentence's vector. Only the first `lengths[b]` tokens belong to sentence b."""
        return x

    def one_token_too_many(x, lengths):
        """One token of the padding is still in the sum: position `lengths[b]` is the first that is not real. Positions
        are counted from 0; look at the comparison."""
        return real_tokens(x, lengths + 1)

    def one_token_too_few(x, lengths):
        """The last real token of every sentence is missing in the sum. Positions are counted from 0, so that a sentence
        of 2 has the positions 0 and 1. Look at the comparison."""
        return real_tokens(x, lengths - 1)

    def the_padding_only(x, lengths):
        """The mask is the wrong way round: the sum runs over the padding, and the real tokens are left out."""
        return x - real_tokens(x, lengths)

    def one_number_of_the_mask_for_each_token(x, lengths):
        """The mask is multiplied with `x`, (batch, seq, d_model), and its last axis is `seq`. Broadcasting aligns from
        the right: the positions meet the features, and mostly that raises. Each entry belongs to a whole token. Where
        must the mask have an axis of size 1?"""
        return x * (torch.arange(x.shape[1]) < lengths[:, None])

    def padding_zeroed_in_place(x, lengths):
        """Your function changes its argument `x`: the padding is set to zero in the caller's own tensor. `x[…] = 0`
        does that, as do `x *= …` and methods that end in an underscore. A product or `masked_fill` makes a new
        tensor."""
        x[torch.arange(x.shape[1], device=x.device) >= lengths[:, None]] = 0
        return x

    def padding_in_front(x, lengths):
        """You take the last places of each sentence for its tokens, as if the padding came first. It comes after the
        tokens: a sentence of 2 tokens has them at the positions 0 and 1."""
        position = torch.arange(x.shape[1], device=x.device)
        return x * (position >= x.shape[1] - lengths[:, None])[..., None]

    def without_signs(x, lengths):
        """The signs are gone: you average the sizes of the numbers, and negative ones count as positive. Is there an
        `abs`, or a square with its root?"""
        return real_tokens(x, lengths).abs()

    def first_token_left_out(x, lengths):
        """The first token of every sentence is missing in the sum. It is a token like the others: where do your
        positions begin?"""
        return torch.cat([torch.zeros_like(x[:, :1]), real_tokens(x, lengths)[:, 1:]], dim=1)

    def very_negative_padding(x, lengths):
        """The padding is filled with a large negative number such as -1e9, and that goes into the sum. It belongs
        before a softmax, whose exponential makes zero of it. Which number adds nothing to a sum?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], -1e9)


@mend_sentence_vectors.wrong(stage="kept", alone=True)
class KeptAlone:
    def minus_infinity_for_padding(x, lengths):
        """The padding is filled with -inf, and a sum with -inf in it is -inf. That belongs before a softmax, whose
        exponential makes zero of it. Which number adds nothing to a sum?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], -torch.inf)

    def nan_for_padding(x, lengths):
        """There is NaN in the place of the padding, and a sum with NaN in it is NaN, as is the mean: only functions
        such as `nanmean` leave NaN out. Which number adds nothing to a sum?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], torch.nan)

    def filled_without_the_axis_of_the_features(x, lengths):
        """The mask fills `x`, (batch, seq, d_model), and its last axis is `seq`. Broadcasting aligns from the right:
        the positions meet the features, and mostly that raises. Each entry belongs to a whole token. Where must the
        mask have an axis of size 1?"""
        return x.masked_fill(torch.arange(x.shape[1]) >= lengths[:, None], 0.0)

    def chosen_without_the_axis_of_the_features(x, lengths):
        """The mask chooses from `x`, (batch, seq, d_model), and its last axis is `seq`. Broadcasting aligns from the
        right: the positions meet the features, and mostly that raises. Each entry belongs to a whole token. Where must
        the mask have an axis of size 1?"""
        return torch.where(torch.arange(x.shape[1]) < lengths[:, None], x, 0)

    @family(
        as_many_positions_as_sentences=(0, "sentences"),
        as_many_positions_as_features=(2, "features"),
    )
    def positions_of_another_axis(axis, x, lengths):
        """You count as many positions as there are {}, and the mask does not fit the tokens. Positions count along
        `seq`: which axis of `x` is that?"""
        return x * (torch.arange(x.shape[axis], device=x.device) < lengths[:, None])[..., None]

    def lengths_in_a_row(x, lengths):
        """The positions, (seq,), are compared with the lengths, (batch,), as they are: positions meet sentences, and
        mostly that raises. Every sentence needs a row of its own. Which axis do the lengths lack?"""
        return x * (torch.arange(x.shape[1], device=x.device) < lengths)[..., None]

    def the_padding_but_its_first(x, lengths):
        """The mask is the wrong way round: the sum runs over the padding, from its second place on, and the real tokens
        are left out. Which positions are smaller than the length?"""
        return x * (torch.arange(x.shape[1], device=x.device) > lengths[:, None])[..., None]


@mend_sentence_vectors.wrong(stage="added_up")
class AddedUp:
    def every_sum_by_every_length(x):
        """The sums keep the axis of the tokens, (batch, 1, d_model), and the lengths have one new axis, (batch, 1).
        Broadcasting aligns from the right and makes (batch, batch, d_model) of that: every sentence is divided by every
        length. Which of the two has an axis too many, or too few?"""
        return x.sum(dim=1, keepdim=True)

    def summed_over_features(x):
        """The sum runs over the features: each token has become one number, (batch, seq). What must be added up are the
        tokens of a sentence, feature by feature. Which axis counts the tokens?"""
        return x.sum(dim=-1)


@mend_sentence_vectors.wrong(stage="added_up", alone=True)
class AddedUpAlone:
    def summed_over_the_sentences(x):
        """The sum runs over the sentences of the batch: first tokens are added to first tokens, (seq, d_model). What
        must be added up are the tokens of one sentence. Which axis counts them?"""
        return x.sum(dim=0)


@mend_sentence_vectors.wrong(stage="divided")
class Divided:
    def as_given(total, lengths, seq):
        """This does what the given program does: the padding {adds nothing to the sum, and} is counted all the same. A
        sentence of 2 tokens in 4 places gets half of its average. Fill it up further, and the vector shrinks
        further."""
        return total / seq

    def not_divided(total, lengths, seq):
        """The tokens are added up and not divided: longer sentences get longer vectors. An average divides by how many
        there are."""
        return total

    def by_the_longest(total, lengths, seq):
        """Every sentence is divided by the longest one's length: right for that one, and too small for the others,
        depending on who else is in the batch. Each sentence has a length of its own."""
        return total / lengths.max()

    def by_all_tokens(total, lengths, seq):
        """Every sentence is divided by the number of tokens in the whole batch. Each has a length of its own: the sum
        over one sentence belongs to that one alone."""
        return total / lengths.sum()

    def by_the_number_of_sentences(total, lengths, seq):
        """The sums are divided by the number of sentences. What is averaged are the tokens of one sentence; how many
        sentences there are beside it must not matter. How many numbers went into each sum?"""
        return total / len(lengths)

    def divided_twice(total, lengths, seq):
        """The sums are divided twice, by the length and by the number of places. `mean` has divided already: where it
        stands, the padding has been counted. Which function adds up and does not divide?"""
        return total / seq / lengths[:, None]

    def by_one_more(total, lengths, seq):
        """Every sum is divided by one more than there are tokens: a sentence of one token gets half of that token.
        Adding 1 keeps the divisor from being zero, and every average becomes too small."""
        return total / (lengths[:, None] + 1)

    def lengths_on_the_features_axis(total, lengths, seq):
        """The sums, (batch, d_model), are divided by the lengths, (batch,), and broadcasting aligns from the right:
        sentences meet features. With several sentences it raises, unless there are as many as features, and then every
        feature is divided by another sentence's length. What must the lengths get first?"""
        return total / lengths

    def by_one_less(total, lengths, seq):
        """Every sum is divided by one less than there are tokens, as an unbiased variance is. An average divides by all
        of them: a sentence of one token must get that token, and yours divides by zero."""
        return total / (lengths[:, None] - 1)

    def by_the_padding(total, lengths, seq):
        """Every sum is divided by the number of places that are padding, `seq` less the length. A sentence without
        padding divides by zero. How many tokens went into the sum?"""
        return total / (seq - lengths[:, None])

    def ratio_upside_down(total, lengths, seq):
        """The mean over all places is multiplied by `lengths / seq`, and comes out smaller still. It has divided by
        `seq`, which was too much: which way round must the fraction stand to undo that?"""
        return total / seq * lengths[:, None] / seq

    def mean_times_the_length(total, lengths, seq):
        """The mean over all places is multiplied by the length, and so longer sentences get longer vectors. The mean
        has divided by `seq`, the length must divide, and nothing multiplies by it. What must the sum be divided by,
        once?"""
        return total / seq * lengths[:, None]

    def rounded_down(total, lengths, seq):
        """The averages are rounded down to whole numbers: `//` does that, also with numbers that are not whole. Which
        division keeps the fraction?"""
        return total // lengths[:, None]

    def axis_kept(total, lengths, seq):
        """{Each vector is right, and} the axis of the tokens is still there with size 1: (batch, 1, d_model).
        `keepdim=True` leaves it, for a division that needs it. One vector for each sentence is (batch, d_model): which
        line must drop it?"""
        return (total / lengths[:, None])[:, None]

    def by_the_average_length(total, lengths, seq):
        """Every sentence is divided by the average length of the batch: too much for the short ones, and too little for
        the long ones. Each sentence has a length of its own."""
        return total / lengths.float().mean()

    def by_the_shortest(total, lengths, seq):
        """Every sentence is divided by the shortest one's length: right for that one, and too large for the others,
        depending on who else is in the batch. Each sentence has a length of its own."""
        return total / lengths.min()

    def by_the_root(total, lengths, seq):
        """Every sum is divided by the square root of its length, as the scores of attention are by that of their width.
        An average divides by the number of tokens itself: three equal tokens must give that token."""
        return total / lengths[:, None].sqrt()

    def times_the_length(total, lengths, seq):
        """Every sum is multiplied by the length of its sentence, where an average divides by it: three equal tokens
        give nine times that token. Look at the sign between the sum and the lengths."""
        return total * lengths[:, None]

    def every_length_for_every_sum(total, lengths, seq):
        """The sums have the shape (batch, d_model) and the lengths have got two new axes, (batch, 1, 1). Broadcasting
        aligns from the right and makes (batch, batch, d_model) of that: every sentence is divided by every length. How
        many axes must the lengths have?"""
        return total / lengths[:, None, None]

    def rounded(total, lengths, seq):
        """The averages are rounded to whole numbers. Nothing asks for that: which line does it?"""
        return (total / lengths[:, None]).round()

    def by_the_first_length(total, lengths, seq):
        """Every sentence is divided by the first one's length. Each sentence has a length of its own. What does
        `lengths[0]` leave of them?"""
        return total / lengths[0]

    def one_vector_for_the_batch(total, lengths, seq):
        """You return one vector, (d_model,): the sentences' vectors have been averaged in turn. Each sentence keeps its
        own. How many averages are there in your function?"""
        return (total / lengths[:, None]).mean(dim=0)

    def axes_of_size_one_lost(total, lengths, seq):
        """{Right for several sentences, and with a batch of one the axis of the batch is lost:} `squeeze()` takes away
        every axis of size 1. Which axis alone should it take? Or none?"""
        return (total / lengths[:, None]).squeeze()


@mend_sentence_vectors.wrong(stage="divided", alone=True)
class DividedAlone:
    def counts_on_the_features_axis(total, lengths, seq):
        """The sums, (batch, d_model), are divided by one number for each sentence, (batch,), and broadcasting aligns
        from the right: sentences meet features. It raises, unless there are as many sentences as features, and then
        every feature is divided by another sentence's number. What must these numbers get first?"""
        return total / lengths.to(total)

    def by_the_features(total, lengths, seq):
        """Every sum is divided by the number of features. What has been added up are tokens, feature by feature. How
        many numbers went into each sum?"""
        return total / total.shape[-1]

    @family(counted_over_the_sentences=True, counted_over_the_sentences_in_a_row=False)
    def counted_over_the_sentences(as_a_column, total, lengths, seq):
        """The mask is added up over the sentences, not over the tokens: for each place you count how many sentences
        reach it. What must divide is how many tokens each sentence has. Which axis of the mask counts tokens?"""
        count = (torch.arange(seq, device=lengths.device) < lengths[:, None]).sum(0)
        return total / (count[:, None] if as_a_column else count)

    def features_first(total, lengths, seq):
        """{The numbers are right, and} the axes have changed places: (d_model, batch). Sentences come first. Which line
        turns the axes?"""
        return (total / lengths[:, None]).T


@mend_sentence_vectors.wrong
class WrongAnswers:
    def mask_one_token_too_long(x, lengths):
        """One token of the padding goes into the average, and is counted as well: the sum and the count both reach one
        token too far. Positions are counted from 0, and `lengths[b]` is the first that is not real. Where does your
        mask or your slice end?"""
        real = (torch.arange(x.shape[1]) <= lengths[:, None])[..., None]
        return (x * real).sum(dim=1) / real.sum(dim=1)

    def mask_one_token_too_short(x, lengths):
        """The last real token of every sentence is neither added nor counted: the sum and the count both end one token
        too early. A sentence of one token becomes NaN. Positions are counted from 0. Where does your mask or your slice
        end?"""
        real = (torch.arange(x.shape[1]) < lengths[:, None] - 1)[..., None]
        return (x * real).sum(dim=1) / real.sum(dim=1)

    def cut_at_a_tensor(x, lengths):
        """A slice such as `x[:, :lengths]` needs one whole number, and `lengths` holds one for each sentence: that
        raises, unless the batch has a single one. No slice cuts each row at another place. A mask does, or a loop over
        the sentences."""
        return x[:, :lengths].mean(dim=1)

    def all_sentences_in_one(x, lengths):
        """There is one vector for the whole batch, (d_model,). Indexing with a mask, `x[is_real]`, puts all real tokens
        one after another and forgets which sentence each belonged to. Which operation leaves every token at its
        place?"""
        return x[torch.arange(x.shape[1], device=x.device) < lengths[:, None]].mean(dim=0)

    def one_number_for_each_sentence(x, lengths):
        """Each sentence has become a single number: the mean runs over its tokens and over its features. A vector is
        asked for, with an average for each feature. Which axis must `mean` be told?"""
        return torch.stack([tokens[:length].mean() for tokens, length in zip(x, lengths.tolist())])

    def largest_of_each_feature(x, lengths):
        """You return the largest number of each feature among the real tokens. That is max pooling, another way to get
        a vector for a sentence. The task asks for the average."""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return x.masked_fill(~real[..., None], float("-inf")).amax(dim=1)

    def softmax_of_ones_and_zeros(x, lengths):
        """The weights are a softmax of the mask as numbers, 1 for real tokens and 0 for padding. e⁰ is 1, so padding
        keeps a weight, e times smaller than that of a real token. Which score has the weight zero?"""
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return (real.to(x.dtype).softmax(dim=-1)[..., None] * x).sum(dim=1)

    def the_first_token(x, lengths):
        """You return the first token of each sentence, as BERT does, whose first token is there for that. The task asks
        for the average of all real tokens."""
        return x[:, 0]

    def numbers_that_are_not_zero(x, lengths):
        """You count only what is not zero. A number of a real token can be zero as well: it is then left out of the
        count, and its sentence's vector comes out too large. How long each sentence is, you are told."""
        kept = real_tokens(x, lengths)
        return kept.sum(1) / (kept != 0).any(-1).sum(1, keepdim=True)

    def cut_to_the_longest(x, lengths):
        """The batch is cut to its longest sentence, and the mean runs over what is left. The others still have padding
        there: it goes in, and is counted. Each sentence has a length of its own."""
        return x[:, : int(lengths.max())].mean(dim=1)

    def the_last_token(x, lengths):
        """You return the last real token of each sentence. That is one way to get a vector for a sentence, and not what
        is asked for: the average of all its real tokens."""
        return x[torch.arange(len(x), device=x.device), lengths - 1]

    def plain_mean(x, lengths):
        """This is the plain mean over all places, padding included: what stands in the padding goes in, and is counted.
        Only the first `lengths[b]` tokens belong to sentence b."""
        return x.mean(dim=1)

    def mean_over_features(x, lengths):
        """The mean runs over the features: each token has become one number, (batch, seq). What must be averaged are
        the tokens of a sentence, feature by feature. Which axis counts the tokens?"""
        return x.mean(dim=-1)

    def root_mean_square(x, lengths):
        """You take the root of the average square, as RMS norm does: it says how large the numbers are, and all come
        out positive. The task asks for the average of the numbers themselves."""
        return mend_sentence_vectors.reference(x**2, lengths).sqrt()

    def weights_over_the_sentences(x, lengths):
        """The mask is divided by its sum over the sentences: the weights of one place sum to one over the batch, and
        those of a sentence do not. Which axis of the mask counts the tokens of a sentence?"""
        real = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]).to(x)
        return ((real / real.sum(0, keepdim=True))[..., None] * x).sum(dim=1)

    def the_last_sentence_only(x, lengths):
        """You return one vector, that of the last sentence: (d_model,). In a loop every round writes over what the one
        before it found. Where do the vectors of the other sentences go?"""
        return x[-1, : int(lengths[-1])].mean(dim=0)

    def joined_end_to_end(x, lengths):
        """The vectors of all sentences stand one after another on one axis, (batch · d_model,): `cat` joins along an
        axis that is there. Which function makes a new one?"""
        return mend_sentence_vectors.reference(x, lengths).flatten()

    def mask_as_an_index_of_the_second_axis(x, lengths):
        """In `x[:, is_real]` the mask, (batch, seq), stands for the axes from the second on, (seq, d_model), and does
        not fit. Nor would the picked tokens be sentences, since they have different lengths. Which operation leaves
        every token at its place?"""
        return x[:, torch.arange(x.shape[1], device=x.device) < lengths[:, None]].mean(dim=1)

    def first_token_not_counted(x, lengths):
        """The first token of every sentence is neither added nor counted, and a sentence of one token is divided by
        zero. It is a token like the others: where does your mask or your slice begin?"""
        return Kept.first_token_left_out(x, lengths).sum(dim=1) / (lengths[:, None] - 1)

    def tokens_not_added_up(x, lengths):
        """You return the tokens with the padding set to zero, (batch, seq, d_model). They are still to be averaged: one
        vector for each sentence."""
        return real_tokens(x, lengths)

    def tokens_divided_and_not_added_up(x, lengths):
        """You divide each token by the length of its sentence, and do not add them up: (batch, seq, d_model). An
        average is one vector for each sentence."""
        return real_tokens(x, lengths) / lengths[:, None, None]

    def x_itself(x, lengths):
        """You return `x` as it came. One vector for each sentence is asked for, the average of its real tokens."""
        return x

    @with_text_of(mean_over_features)
    def mean_of_kept_tokens_over_features(x, lengths):
        return real_tokens(x, lengths).mean(dim=-1)

    def mean_over_the_sentences(x, lengths):
        """The mean runs over the sentences of the batch: first tokens are averaged with first tokens, (seq, d_model).
        What must be averaged are the tokens of one sentence. Which axis counts them?"""
        return real_tokens(x, lengths).mean(dim=0)

    @with_text_of(mean_over_the_sentences)
    def mean_of_all_places_over_the_sentences(x, lengths):
        return x.mean(dim=0)

    def cut_at_the_first_length(x, lengths):
        """Every sentence is cut at the length of the first, and averaged over that many places: others lose tokens or
        keep padding. Each sentence has a length of its own."""
        return x[:, : int(lengths[0])].mean(dim=1)

    def the_first_sentence_only(x, lengths):
        """You return one vector, that of the first sentence: (d_model,). A `return` inside a loop ends it in its first
        round. Every sentence of the batch has a vector."""
        return x[0, : int(lengths[0])].mean(dim=0)

    def largest_with_zeros(x, lengths):
        """You return the largest number of each feature, where the padding is zero: max pooling, in which the zeros win
        over negative numbers besides. The task asks for the average of the real tokens."""
        return real_tokens(x, lengths).amax(dim=1)

    def largest_of_all_places(x, lengths):
        """You return the largest number of each feature among all places, padding included. That is max pooling, and
        over too much. The task asks for the average of the real tokens."""
        return x.amax(dim=1)

    def largest_and_its_place(x, lengths):
        """You return what `max` along an axis gives: a pair, the largest numbers and where they are. The task asks
        for the average of each feature over the real tokens, and for neither of these."""
        return real_tokens(x, lengths).max(dim=1)

    def middle_number(x, lengths):
        """You return the median of each feature: the number in the middle of its sentence's tokens. The task asks for
        their average, for which they are added up and divided."""
        return torch.stack([tokens[:length].median(0).values for tokens, length in zip(x, lengths.tolist())])

    def of_length_one(x, lengths):
        """Each vector points the right way and is divided by its own norm: all are of length 1. That serves to compare
        directions; asked for is the average itself, as long as it comes out."""
        return torch.nn.functional.normalize(mend_sentence_vectors.reference(x, lengths), dim=-1)

    def features_added_up(x, lengths):
        """Each sentence has become a single number: the sum runs over its tokens and over its features. A vector is
        asked for, with an average for each feature. Which axis alone must `sum` be told?"""
        return real_tokens(x, lengths).sum(dim=(1, 2)) / lengths

    def sentences_averaged_over_features(x, lengths):
        """Of each sentence's tokens, (length, d_model), the mean runs over the features: one number for each token is
        left, and `stack` refuses rows of different lengths. Which of the two axes counts the tokens?"""
        return torch.stack([tokens[:length].mean(dim=1) for tokens, length in zip(x, lengths.tolist())])

    @ways(by_view=torch.Tensor.view, by_reshape=torch.Tensor.reshape)
    def real_tokens_put_back(cut, x, lengths):
        """Indexing with a mask, `x[is_real]`, puts all real tokens one after another, and no shape makes sentences of
        them again: they have different lengths, and it raises. Which operation leaves every token at its place?"""
        return cut(x[torch.arange(x.shape[1]) < lengths[:, None]], len(x), -1, x.shape[2]).mean(dim=1)

    def the_token_after_the_last(x, lengths):
        """You take the token at position `lengths[b]`, which is the first place of the padding, and lies beyond the end
        where there is none. And one token is no average: asked for is the mean of all real ones."""
        return x[torch.arange(len(x), device=x.device), lengths]


fixed_length(mend_sentence_vectors, positions_of_a_fixed_table, "a text of 300 tokens")
