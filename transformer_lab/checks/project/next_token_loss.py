"""The loss of guessing the next token."""

import math
from functools import partial

import torch
from torch.nn.functional import cross_entropy

from ..exercise import exercise, family, rows_of


def _logits_and_tokens(draw, batch=2, seq=7, vocab=5):
    return draw(batch, seq, vocab), torch.randint(vocab, (batch, seq), generator=draw.generator)


def all_but_the_last(logits):
    """Leave out the logits of the last position."""
    return logits[:, :-1]


def all_but_the_first(tokens):
    """Leave out the first token."""
    return tokens[:, 1:]


def mean_cross_entropy(logits, targets):
    """Take the mean cross-entropy of the two over all positions."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


@exercise(
    inputs=_logits_and_tokens,
    axes={"logits": "batch seq vocab", "tokens": "batch seq", "return": ""},
    hints=(
        "The logits at position 3 are a guess at which token? And which position has nothing to be compared with?",
        "Leave out the last logits and the first token: then each guess lines up with its answer. `cross_entropy` "
        "expects the classes on the second axis, so flatten batch and seq into one axis.",
        "`F.cross_entropy(logits[:, …].flatten(0, 1), tokens[:, …].flatten())`",
    ),
)
def next_token_loss(logits, tokens, *, guesses=all_but_the_last, answers=all_but_the_first, loss=mean_cross_entropy):
    """The mean cross-entropy of each position's logits against the token that comes next: one number."""
    return loss(guesses(logits), answers(tokens))


@next_token_loss.right
class RightAnswers:
    def by_transposing(logits, tokens):
        return cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:])

    def by_gather(logits, tokens):
        chances = logits.log_softmax(-1)[:, :-1]
        return -chances.gather(-1, tokens[:, 1:, None]).mean()

    def by_loops(logits, tokens):
        batch, seq, _ = logits.shape
        losses = [
            logits[b, t].logsumexp(0) - logits[b, t, tokens[b, t + 1]] for b in range(batch) for t in range(seq - 1)
        ]
        return torch.stack(losses).mean()


next_token_loss.example("two tokens", seq=2)


@next_token_loss.probe
def large_logits(draw):
    """logits in the hundreds"""
    logits, tokens = _logits_and_tokens(draw)
    return 200 * logits, tokens


@next_token_loss.property
def even_guesses(function, logits, tokens):
    """Logits that are all equal give log(vocab), the loss of guessing."""
    loss = function(torch.zeros_like(logits), tokens)
    return loss.ndim == 0 and math.isclose(float(loss), math.log(logits.shape[-1]), rel_tol=1e-4)


@next_token_loss.wrong(stage="loss")
class Loss:
    def one_for_each(logits, targets):
        """You return one loss for each position. One number is asked for, their mean: `backward` needs it so."""
        return cross_entropy(logits.transpose(1, 2), targets, reduction="none")

    def averaged_over_the_vocabulary(logits, targets):
        """The loss is too small by a factor of `vocab`, as it is when the mean runs over the vocabulary too and counts
        the zeros of one-hot targets. Each position makes one guess: how many guesses are there?"""
        chosen = torch.nn.functional.one_hot(targets, logits.shape[-1])
        return -(logits.log_softmax(-1) * chosen).mean()

    def logarithm_of_the_softmax(logits, targets):
        """{Right for ordinary logits, and infinite for large ones.} A probability that is rounded to 0 has no
        logarithm, and the exponential of a logit beyond 89 is infinite in float32: one of the two has happened.
        `log_softmax` takes all steps in one and meets neither, and `cross_entropy` contains it."""
        return -logits.softmax(-1).gather(-1, targets[..., None]).log().mean()

    def exponentials_too_large(logits, targets):
        """{Right for ordinary logits, and NaN for large ones:} in float32, e to the 89 is infinite, and infinity
        divided by infinity is NaN. `log_softmax` takes the largest logit off first, and `cross_entropy` contains it."""
        chances = logits.exp() / logits.exp().sum(-1, keepdim=True)
        return -chances.gather(-1, targets[..., None]).log().mean()

    def each_class_by_itself(logits, targets):
        """Each class is judged by itself, as a yes or a no: that is binary cross-entropy, with a sigmoid. Exactly one
        token comes next, so all of them share one whole: a softmax, and the logarithm of the one that is right."""
        chosen = torch.nn.functional.one_hot(targets, logits.shape[-1]).to(logits)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, chosen)

    def chance_of_an_error(logits, targets):
        """This is one minus the mean chance of the right tokens: the logarithm is missing. A guess that gives the right
        token hardly any chance must cost far more than one that gives it a small one."""
        return 1 - logits.softmax(-1).gather(-1, targets[..., None]).mean()

    def picked_along_the_positions(logits, targets):
        """The targets pick positions and not tokens of the vocabulary: `gather` runs along axis 1, which is `seq`, and
        what it finds is a number of token 0. On which axis does the vocabulary stand?"""
        return -logits.log_softmax(-1).gather(1, targets[..., None]).mean()

    def every_answer_for_every_guess(logits, targets):
        """An index such as `log_p[..., tokens]` picks every token of the batch at every position, and all of these are
        averaged. Each guess has one answer. Which function takes one number at each place?"""
        return -logits.log_softmax(-1)[..., targets].mean()

    def without_the_answers(logits, targets):
        """The mean runs over all tokens of the vocabulary, and which one came next is not asked: the loss is the same
        for every text. Of each guess counts only the probability of the token that follows."""
        return -logits.log_softmax(-1).mean()

    def entropy_of_the_guesses(logits, targets):
        """This is the entropy of the guesses: how undecided they are, whichever token came next. Of each guess counts
        only the probability of the token that follows."""
        return -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()

    def share_of_right_guesses(logits, targets):
        """You return the accuracy: the share of positions at which the largest logit is that of the right token. It has
        no gradient, and a loss must have one. How likely was the right token?"""
        return (logits.argmax(-1) == targets).float().mean()

    def the_largest_loss(logits, targets):
        """You return the largest loss of all guesses. The mean is asked for: every guess counts, and all of them
        alike."""
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").max()

    def sigmoid_for_the_softmax(logits, targets):
        """The logit of the right token went through a sigmoid, and the other tokens are not asked: making all logits
        larger would do. One token comes next, so the chances of all must sum to one. Which function sees to that?"""
        return -torch.nn.functional.logsigmoid(logits.gather(-1, targets[..., None])).mean()

    def without_the_right_logit(logits, targets):
        """This is the mean logarithm of the sums of exponentials, by which a softmax divides. The logit of the right
        token is missing, so that the loss is the same whichever token came next."""
        return logits.logsumexp(-1).mean()

    def targets_in_another_order(logits, targets):
        """Logits and targets were put into one row in different orders: one sentence by sentence, the other place by
        place. So guesses meet answers from elsewhere. Which line turns the tokens before they are flattened?"""
        return cross_entropy(logits.flatten(0, 1), targets.T.flatten())

    def turned_and_then_flattened(logits, targets):
        """The vocabulary was brought to axis 1 and the logits were flattened afterwards: the numbers that belong to one
        position are torn apart. {Shape and dtype are right, so nothing complains.} One of the two steps is enough."""
        return cross_entropy(logits.mT.reshape(-1, logits.shape[-1]), targets.flatten())

    @family(
        the_last_sentence_only=(-1, "last", "counted: in a loop every round writes over what the one before it found"),
        the_first_sentence_only=(0, "first", "counted"),
    )
    def one_sentence_only(sentence, logits, targets):
        """Only the {} sentence of the batch is {}. The mean runs over the predictions of all sentences."""
        return cross_entropy(logits[sentence], targets[sentence])

    def one_loss_for_each_position(logits, targets):
        """You return one loss for each position, (seq - 1,). One number is asked for: the mean over all positions
        too."""
        return cross_entropy(logits.mT, targets, reduction="none").mean(0)

    def normalized_over_all_places(logits, targets):
        """The softmax runs over the positions of all sentences, not over the vocabulary: once batch and seq are
        flattened, axis 0 counts positions. The scores of all tokens at one position are what must sum to one."""
        return -logits.flatten(0, 1).log_softmax(0).gather(1, targets.flatten()[:, None]).mean()

    def positions_for_classes(logits, targets):
        """`cross_entropy` takes the classes on axis 1, and that is `seq` in your logits: its softmax runs over the
        positions. With targets of the same shape, as `one_hot` makes them, nothing complains. Bring the vocabulary to
        axis 1."""
        return cross_entropy(logits, torch.nn.functional.one_hot(targets, logits.shape[-1]).to(logits))

    def every_sentence_for_every_sentence(logits, targets):
        """Each sentence's guesses are compared with the answers of every sentence: an index such as `log_p[:, place,
        tokens]` takes all sentences for each row of tokens. Which index goes along the batch with them?"""
        return -logits.log_softmax(-1)[:, torch.arange(targets.shape[1], device=targets.device), targets].mean()

    def exponentials_for_logits(logits, targets):
        """The logits went through an exponential before `cross_entropy`, whose softmax takes one itself: small
        differences become large ones, and large logits become infinite. Give it the logits."""
        return mean_cross_entropy(logits.exp(), targets)

    def signs_of_the_logits_turned(logits, targets):
        """The logits have lost their sign before `cross_entropy`, so that the largest counts as the least likely. The
        minus belongs to the logarithm, and `cross_entropy` has it already."""
        return mean_cross_entropy(-logits, targets)

    def squared_distance_of_the_logits(logits, targets):
        """The loss is a squared distance between logits and ones. Cross-entropy is minus the logarithm of the
        probability that the next token got."""
        return (logits - torch.nn.functional.one_hot(targets, logits.shape[-1]).to(logits)).square().mean()

    def zeros_out_in_each_sentence(logits, targets):
        """Targets that are token 0 are left out, and the mean is taken in each sentence first, and then over the
        sentences. That is a mask for padding. Here there is none: token 0 is a token like all others, and every
        prediction counts alike."""
        losses, real = cross_entropy(logits.mT, targets, reduction="none"), (targets != 0).to(logits)
        return ((losses * real).sum(1) / real.sum(1)).mean()

    def zeros_out_and_divided_by_all(logits, targets):
        """Targets that are token 0 cost nothing, and the mean still counts them. That is a mask for padding, and half
        of one: here there is no padding, and token 0 is a token like all others. Which line makes its loss 0?"""
        return cross_entropy(logits.mT, targets, reduction="none", ignore_index=0).mean()

    def summed(logits, targets):
        """The losses are added up instead of averaged: twice the batch gives twice the loss, and gradients twice as
        large. The mean is asked for."""
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")

    def softmax_first(logits, targets):
        """A softmax was taken before `cross_entropy`, which takes one itself: with probabilities between 0 and 1 the
        second softmax is nearly even, the loss can never come near zero, and training crawls. Give it the logits."""
        return mean_cross_entropy(logits.softmax(-1), targets)

    def the_sign_forgotten(logits, targets):
        """The loss is negative: it is the mean logarithm of the right tokens' chances, without the minus. Minimizing it
        makes the right tokens as unlikely as possible."""
        return -mean_cross_entropy(logits, targets)

    def chance_for_loss(logits, targets):
        """This is minus the mean chance of the right tokens: the logarithm is missing. Its gradient is tiny where the
        model is badly wrong, which is where it is needed."""
        return -logits.softmax(-1).gather(-1, targets[..., None]).mean()


@next_token_loss.wrong(stage="loss", alone=True)
class LossAlone:
    def gather_without_an_axis(logits, targets):
        """`gather` wants as many axes of its index as the logits have: it raises. The targets are (batch, seq), and the
        vocabulary's axis is missing, of size 1."""
        return -logits.log_softmax(-1).gather(-1, targets).mean()

    def indices_that_do_not_fit(logits, targets):
        """Indices side by side are broadcast against one another, and (batch,) and (seq,) do not fit: it raises. As a
        column, (batch, 1), the first of them would. Or is there a function that takes one number at each place?"""
        batch, seq = (torch.arange(size, device=targets.device) for size in targets.shape)
        return -logits.log_softmax(-1)[batch, seq, targets].mean()

    def vocabulary_cut_as_well(logits, targets):
        """The vocabulary has lost its last token: `[:, :-1, :-1]` cuts a third axis too, and a target that is this
        token has no logit. Only `seq` must get shorter. Which axis is it?"""
        return mean_cross_entropy(logits[..., :-1], targets)

    def answers_one_too_small(logits, targets):
        """1 is taken off the numbers of the tokens, and token 0 becomes -1, which is none. Tokens are counted from 0:
        the shift is one of places, along `seq`, and not of the numbers that stand there."""
        return mean_cross_entropy(logits, targets - 1)

    def answers_one_too_large(logits, targets):
        """1 is added to the numbers of the tokens, and the last of the vocabulary gets a number that is none. Tokens
        are counted from 0: the shift is one of places, along `seq`, and not of the numbers that stand there."""
        return mean_cross_entropy(logits, targets + 1)

    @family(
        best_token_for_the_logits=lambda best, targets: cross_entropy(best, targets),
        best_token_for_the_logits_in_one_row=lambda best, targets: cross_entropy(best.flatten(), targets.flatten()),
    )
    def best_token_alone(loss, logits, targets):
        """`argmax` has made one token of each guess before `cross_entropy`, which refuses it: it wants the logits of
        all tokens, and with only the best one nothing can be learned. What do you hand over?"""
        return loss(logits.argmax(-1), targets)

    def vocabulary_flattened_as_well(logits, targets):
        """`flatten()` puts all axes of the logits into one, the vocabulary too, and `cross_entropy` finds no classes.
        Which axes alone are to be joined?"""
        return cross_entropy(logits.flatten(), targets.flatten())

    def answers_in_floating_point(logits, targets):
        """The targets have become floating point numbers, and `cross_entropy` takes such for probabilities. The number
        of a token is a whole number: which line changes its dtype?"""
        return cross_entropy(logits.flatten(0, 1), targets.flatten().float())

    def view_of_a_slice(logits, targets):
        """A slice that leaves out a position has gaps in memory, and `view` cannot join its axes: it raises. `flatten`
        and `reshape` copy where they must."""
        return cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def view_of_the_targets(logits, targets):
        """A slice that leaves out a position has gaps in memory, and `view` cannot join its axes: it raises. `flatten`
        and `reshape` copy where they must."""
        return cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.view(-1))

    @family(
        **{f"added_1e_{power}": partial(torch.add, other=10**-power) for power in (5, 6, 7, 8, 9, 10, 12, 15, 20, 30)},
        **{
            f"at_least_1e_{power}": partial(torch.clamp, min=10**-power) for power in (4, 5, 6)
        },  # smaller limits give the same loss
    )
    def with_a_lower_limit(limit, logits, targets):
        """{Right for ordinary logits, and too small for large ones:} the probabilities have a lower limit. A small
        number such as 1e-9 that is added to them makes one, and so does `clamp`. However little a guess gives to the
        right token, it costs no more than minus the logarithm of that limit. `log_softmax` needs no limit, and
        `cross_entropy` contains it."""
        return -limit(logits.softmax(-1).gather(-1, targets[..., None])).log().mean()


@next_token_loss.wrong
class WrongAnswers:
    def not_shifted(logits, tokens):
        """Each position is compared with its own token instead of the next. The model sees that token, so the loss
        falls to zero at once, and generation repeats the last token for ever. Guess and answer must be shifted by
        one."""
        return mean_cross_entropy(logits, tokens)

    def shifted_backwards(logits, tokens):
        """The shift goes the wrong way: each position is compared with the token *before* it, which it can see. The
        loss falls quickly and nothing is learned. Which of the two must lose its first entry?"""
        return mean_cross_entropy(logits[:, 1:], tokens[:, :-1])

    @family(both_without_the_first=(slice(1, None), "first"), both_without_the_last=(slice(-1), "last"))
    def cut_at_the_same_end(kept, logits, tokens):
        """Logits and tokens have both lost their *{}* entry, so each position is still compared with its own token. To
        shift one against the other, they must be cut at different ends."""
        return mean_cross_entropy(logits[:, kept], tokens[:, kept])

    def rolled_round(logits, tokens):
        """The tokens are rolled round: the last position is compared with the *first* token of the same sentence. It
        has no next token, and must be left out."""
        return mean_cross_entropy(logits, tokens.roll(-1, dims=1))

    def batch_and_vocabulary_confused(logits, tokens):
        """The logits were reshaped instead of transposed, or along the wrong axis: the numbers that belong to one
        position are torn apart. {Shape and dtype are right, so nothing complains.} Flatten `batch` and `seq`, and leave
        `vocab` whole."""
        shifted = logits[:, :-1]
        return cross_entropy(shifted.reshape(len(shifted), shifted.shape[2], -1), tokens[:, 1:])

    @family(
        in_bits=(2, "is in bits: the logarithm has base 2", "something divided by log 2, or is `log2`"),
        in_decimals=(10, "has the logarithm with base 10", "`log10`"),
    )
    def another_logarithm(base, logits, tokens):
        """The loss {}. The cross-entropy of this course, and of PyTorch, takes the natural logarithm. Is {} called?"""
        return next_token_loss.reference(logits, tokens) / math.log(base)

    def perplexity(logits, tokens):
        """You return the perplexity, e to the power of the loss. The loss itself is asked for: leave the last `exp`
        out."""
        return next_token_loss.reference(logits, tokens).exp()

    def as_a_number(logits, tokens):
        """You return a Python number. `.item()` cuts the way back to the logits, so nothing can be learned from this
        loss. Return the tensor of one element; take its number where you print it."""
        return next_token_loss.reference(logits, tokens).item()

    def the_last_position_only(logits, tokens):
        """Only one prediction of each sentence is counted, that of its last token. Every position but the last predicts
        its successor, and all of these count alike."""
        return torch.nn.functional.cross_entropy(logits[:, -2], tokens[:, -1])

    def summed_over_a_sentence(logits, tokens):
        """The losses of a sentence are added up, and only the sentences are averaged. The mean runs over all
        predictions, batch times (seq - 1) of them."""
        return next_token_loss.reference(logits, tokens) * (tokens.shape[1] - 1)

    def summed_over_the_batch(logits, tokens):
        """The losses are averaged over the positions and added up over the sentences. The mean runs over all
        predictions, batch times (seq - 1) of them."""
        return next_token_loss.reference(logits, tokens) * len(tokens)

    def logits_for_log_probabilities(logits, tokens):
        """The logits are taken for log probabilities: `nll_loss` only picks one number for each target and turns its
        sign. Without `log_softmax` before it, making all logits larger would do. `cross_entropy` does both."""
        return torch.nn.functional.nll_loss(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def class_zero_ignored(logits, tokens):
        """Targets that are token 0 are left out, as with `ignore_index=0`. Here there is no padding: token 0 is a token
        like all others, and is to be predicted."""
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)

    def shifted_by_two(logits, tokens):
        """The targets are two places ahead: each position is compared with the token after the next. Is the shift made
        twice, once in the logits and once in the tokens? Position t predicts token t + 1."""
        return torch.nn.functional.cross_entropy(logits[:, :-2].flatten(0, 1), tokens[:, 2:].flatten())

    def across_sentences(logits, tokens):
        """The shift was made after all sentences were put in one row: the end of a sentence predicts the beginning of
        the next one. Shift along `seq` first, then flatten."""
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1)[:-1], tokens.flatten()[1:])

    @family(
        normalized_over_positions=lambda logits: logits[:, :-1].log_softmax(1),
        normalized_over_positions_before_the_cut=lambda logits: logits.log_softmax(1)[:, :-1],
    )
    def softmax_over_positions(log_chances, logits, tokens):
        """The softmax runs over the positions, not over the vocabulary: axis 1 of the logits is `seq`. The scores of
        all tokens at one position are what must sum to one."""
        return -log_chances(logits).gather(-1, tokens[:, 1:, None]).mean()

    def log_of_the_mean(logits, tokens):
        """The probabilities are averaged first, and the logarithm is taken of their mean. Each prediction has a loss of
        its own, minus the logarithm of one probability; the mean is taken of these."""
        return -logits[:, :-1].softmax(-1).gather(-1, tokens[:, 1:, None]).mean().log()

    def smoothed(logits, tokens):
        """The targets are smoothed, as with `label_smoothing=0.1`: a part of the loss comes from all other tokens. Here
        the one token that follows is all that counts."""
        return torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1
        )

    def nothing_averaged(logits, tokens):
        """You return the loss of every prediction, as with `reduction="none"`. One number is asked for: their mean."""
        losses = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
        )
        return losses

    def one_loss_for_each_sentence(logits, tokens):
        """You return one loss for each sentence. One number is asked for: the mean over all sentences too."""
        return torch.nn.functional.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none").mean(1)

    def classes_on_the_last_axis(logits, tokens):
        """`cross_entropy` takes the classes on axis 1, and got `seq` there: the vocabulary stands on the last axis.
        Flatten batch and seq into one axis, or bring the vocabulary to axis 1."""
        return torch.nn.functional.cross_entropy(logits[:, :-1], tokens[:, 1:])

    def targets_and_logits_exchanged(logits, tokens):
        """The two arguments of `cross_entropy` are exchanged: first come the logits, (N, vocab), then the targets,
        (N,), which are whole numbers."""
        return torch.nn.functional.cross_entropy(tokens[:, 1:].flatten(), logits[:, :-1].flatten(0, 1))

    def only_the_logits_cut(logits, tokens):
        """The logits lack their last position, and the tokens are all there: the numbers of predictions and targets
        differ. Cut the first token off the targets as well: `tokens[:, 1:]`."""
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens.flatten())

    def only_the_tokens_cut(logits, tokens):
        """The targets lack the first token, and the logits still have all their positions: the numbers of predictions
        and targets differ. The last position predicts nothing: `logits[:, :-1]`."""
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def squared_distance(logits, tokens):
        """The loss is a squared distance between probabilities and ones. Cross-entropy is minus the logarithm of the
        probability that the next token got."""
        target = torch.nn.functional.one_hot(tokens[:, 1:], logits.shape[-1]).to(logits)
        return (logits[:, :-1].softmax(-1) - target).square().mean()

    def sentences_shifted(logits, tokens):
        """The shift runs along the batch: the logits of one sentence are compared with the tokens of the next. `[:-1]`
        and `[1:]` cut the first axis. Which one is `seq`?"""
        return mean_cross_entropy(logits[:-1], tokens[1:])

    def rolled_backwards(logits, tokens):
        """The tokens are rolled the wrong way: each position is compared with the token *before* it, and the first with
        the last of its sentence. Roll by -1, and leave out the position that has no next token."""
        return mean_cross_entropy(logits, tokens.roll(1, dims=1))

    def rolled_through_the_batch(logits, tokens):
        """The tokens are rolled without an axis: `roll` takes them in one row then, and each sentence ends with the
        first token of the next. Along `seq` it is `dims=1`; and the last position has no next token, and must be left
        out."""
        return mean_cross_entropy(logits, tokens.roll(-1))

    def zero_after_the_last(logits, tokens):
        """The last position is compared with token 0, which was put after each sentence to fill it up. It has no next
        token, and must be left out."""
        return mean_cross_entropy(logits, torch.nn.functional.pad(tokens[:, 1:], (0, 1)))

    def whole_numbers_for_probabilities(logits, tokens):
        """`cross_entropy` takes the numbers of the tokens, or probabilities, which must be floating point numbers.
        `one_hot` makes neither: whole numbers. Hand over the tokens as they are."""
        targets = torch.nn.functional.one_hot(tokens[:, 1:], logits.shape[-1])
        return cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(0, 1))

    def the_last_guess_left_out(logits, tokens):
        """One guess of each sentence is missing, that at its last token. `seq` positions make `seq` - 1 guesses: where
        does your loop or your slice end?"""
        return mean_cross_entropy(logits[:, :-2], tokens[:, 1:-1])

    def the_first_guess_left_out(logits, tokens):
        """One guess of each sentence is missing, that of its first position. The logits at position 0 are a guess at
        token 1: where does your loop or your slice begin?"""
        return mean_cross_entropy(logits[:, 1:-1], tokens[:, 2:])

    def normalized_over_the_batch(logits, tokens):
        """The softmax runs over the sentences, not over the vocabulary: axis 0 of the logits is the batch. The scores
        of all tokens at one position are what must sum to one."""
        return -logits[:, :-1].log_softmax(0).gather(-1, tokens[:, 1:, None]).mean()

    def different_axes_cut(logits, tokens):
        """The tokens have lost their first place, and the logits a whole sentence: `[:-1]` cuts the first axis, the
        batch. Which axis of the logits is `seq`?"""
        return mean_cross_entropy(logits[:-1], tokens[:, 1:])

    def tokens_cut_along_the_batch(logits, tokens):
        """The logits have lost their last position, and the tokens a whole sentence: `[1:]` cuts the first axis, the
        batch. Which axis of the tokens is `seq`?"""
        return mean_cross_entropy(logits[:, :-1], tokens[1:])

    def guesses_and_answers_returned(logits, tokens):
        """You return the guesses and the answers{, shifted as they should be}. They are still to be compared: one
        number is asked for, the mean cross-entropy."""
        return logits[:, :-1], tokens[:, 1:]

    def vocabulary_cut_after_turning(logits, tokens):
        """The logits were transposed first, and `[:, :-1]` cuts the second axis, which is now the vocabulary. So `seq`
        is as long as before, and does not fit the targets. On which axis does it stand after the turn?"""
        return cross_entropy(logits.mT[:, :-1], tokens[:, 1:])

    def the_last_position_with_its_own_token(logits, tokens):
        """Only the last position of each sentence is counted, and it is compared with its own token. It has no next
        token at all. All positions but the last are to be compared with the token that follows."""
        return cross_entropy(logits[:, -1], tokens[:, -1])

    def the_first_guess_only(logits, tokens):
        """Only one prediction of each sentence is counted, that of its first position. Does a `return` end the loop in
        its first round? Every position but the last predicts its successor, and all of these count alike."""
        return cross_entropy(logits[:, 0], tokens[:, 1])

    def past_the_end(logits, tokens):
        """You ask for a token after the last one, and there is none: the loop runs over all `seq` positions. How many
        of them have a next token?"""
        return cross_entropy(logits[:, -1], tokens[:, tokens.shape[1]])

    def cut_from_the_logits(logits, tokens):
        """{The number is right, and} nothing can be learned from it: `.detach()`, `.data` and `torch.no_grad()` cut the
        way back to the logits, as does a new tensor made from numbers. Compute with the logits as they come."""
        return next_token_loss.reference(logits.detach(), tokens)

    def shifted_twice_in_one_row(logits, tokens):
        """The shift is made twice: once along `seq`, and once more after all sentences were put in one row. Each
        position is compared with the token after the next, and the end of a sentence with the next sentence. That
        happens where a loss function of a library shifts by itself. Position t predicts token t + 1."""
        logits, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        return cross_entropy(logits[:-1], targets[1:])


@next_token_loss.wrong
class OwnToken:
    @family(
        **rows_of((Loss.chance_for_loss, Loss.summed, Loss.softmax_first, Loss.the_sign_forgotten), "own_token_and_{}")
    )
    def own_token_and(loss, logits, tokens):
        """Two things go wrong here. Each position is compared with its own token, which it can see, and should be
        compared with the next one. And: {}"""
        return loss(logits, tokens)


@next_token_loss.mistake_around
def divided_by_seq(function):
    """The sum is divided by batch times seq, although the last token of a sentence predicts nothing: there are seq - 1
    predictions in each."""
    return lambda logits, tokens: function(logits, tokens) * (tokens.shape[1] - 1) / tokens.shape[1]
