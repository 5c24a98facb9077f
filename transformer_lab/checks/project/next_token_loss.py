"""The loss of guessing the next token."""

import math
from functools import partial

import torch
from torch.nn.functional import cross_entropy

from ..exercise import exercise, family, rows_of


def _logits_and_tokens(draw, batch=2, seq=7, vocab=5):
    return draw(batch, seq, vocab), torch.randint(vocab, (batch, seq), generator=draw.generator)


def drop_last_position(logits):
    """Leave out the logits of the last position."""
    return logits[:, :-1]


def drop_first_token(tokens):
    """Leave out the first token."""
    return tokens[:, 1:]


def mean_cross_entropy(logits, targets):
    """Compute the mean cross-entropy of guesses and answers over all positions."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


@exercise(
    inputs=_logits_and_tokens,
    axes={"logits": "batch seq vocab", "tokens": "batch seq", "return": ""},
    hints=(
        "The logits at position 3 are a guess at which token? And which position has no token to be compared with?",
        "Leave out the last logits and the first token: then each guess lines up with its answer. `cross_entropy` "
        "expects the classes on the second axis, so flatten batch and seq into one axis.",
        "`F.cross_entropy(logits[:, …].flatten(0, 1), tokens[:, …].flatten())`",
    ),
)
def next_token_loss(logits, tokens, *, guesses=drop_last_position, answers=drop_first_token, loss=mean_cross_entropy):
    """Return, as one number, the mean cross-entropy of each position's logits against the token that comes next."""
    return loss(guesses(logits), answers(tokens))


@next_token_loss.right
class RightAnswers:
    def by_transposing(logits, tokens):
        return cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:])

    def by_gather(logits, tokens):
        log_probs = logits.log_softmax(-1)[:, :-1]
        return -log_probs.gather(-1, tokens[:, 1:, None]).mean()

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
    """If all logits are equal, the loss is log(vocab): all tokens are equally likely."""
    loss = function(torch.zeros_like(logits), tokens)
    return loss.ndim == 0 and math.isclose(float(loss), math.log(logits.shape[-1]), rel_tol=1e-4)


@next_token_loss.wrong(stage="loss")
class Loss:
    def one_for_each(logits, targets):
        """You return one loss for each position. The exercise asks for their mean: `backward` needs a single number."""
        return cross_entropy(logits.transpose(1, 2), targets, reduction="none")

    def averaged_over_the_vocabulary(logits, targets):
        """The loss is too small by a factor of `vocab`: the mean may run over the vocabulary too, and count the zeros
        of one-hot targets. Each position makes one guess: how many guesses are there?"""
        chosen = torch.nn.functional.one_hot(targets, logits.shape[-1])
        return -(logits.log_softmax(-1) * chosen).mean()

    def logarithm_of_the_softmax(logits, targets):
        """{Your loss is right for ordinary logits, but infinite for large ones.} A probability that is rounded to 0 has
        no logarithm, and in float32 the exponential of a logit beyond 89 is infinite: one of the two has happened.
        `log_softmax` computes softmax and logarithm in one step and avoids both problems, and `cross_entropy` contains
        it."""
        return -logits.softmax(-1).gather(-1, targets[..., None]).log().mean()

    def exponentials_too_large(logits, targets):
        """{Your loss is right for ordinary logits, but NaN for large ones:} in float32, e to the power of 89 is
        infinite, and infinity divided by infinity is NaN. `log_softmax` subtracts the largest logit first, and
        `cross_entropy` contains it."""
        probs = logits.exp() / logits.exp().sum(-1, keepdim=True)
        return -probs.gather(-1, targets[..., None]).log().mean()

    def each_class_by_itself(logits, targets):
        """You judge each class separately, as a yes or a no: that is binary cross-entropy, with a sigmoid. Exactly one
        token comes next, so the probabilities of all tokens must sum to one: use a softmax, and the logarithm of the
        right token's probability."""
        chosen = torch.nn.functional.one_hot(targets, logits.shape[-1]).to(logits)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, chosen)

    def chance_of_an_error(logits, targets):
        """You return one minus the mean probability of the right tokens: the logarithm is missing. A guess that gives
        the right token almost no probability must cost far more than a guess that gives the right token a small
        probability."""
        return 1 - logits.softmax(-1).gather(-1, targets[..., None]).mean()

    def picked_along_the_positions(logits, targets):
        """The targets select positions, not tokens of the vocabulary: `gather` runs along axis 1, which is `seq`, and
        reads the log-probabilities of token 0 only. On which axis is the vocabulary?"""
        return -logits.log_softmax(-1).gather(1, targets[..., None]).mean()

    def every_answer_for_every_guess(logits, targets):
        """An index such as `log_p[..., tokens]` selects every token of the batch at every position, and you average all
        the selected numbers. Each guess has one answer. Which function selects one number at each place?"""
        return -logits.log_softmax(-1)[..., targets].mean()

    def without_the_answers(logits, targets):
        """The mean runs over all tokens of the vocabulary and does not use the answers: the loss is the same for every
        text. In each guess, only the probability of the token that follows counts."""
        return -logits.log_softmax(-1).mean()

    def entropy_of_the_guesses(logits, targets):
        """You return the entropy of the guesses: how undecided they are, whichever token came next. In each guess, only
        the probability of the token that follows counts."""
        return -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()

    def share_of_right_guesses(logits, targets):
        """You return the accuracy: the share of positions at which the right token has the largest logit. Accuracy has
        no gradient, but a loss must have one. How likely was the right token?"""
        return (logits.argmax(-1) == targets).float().mean()

    def the_largest_loss(logits, targets):
        """You return the largest loss of all guesses. The exercise asks for the mean: all guesses count equally."""
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").max()

    def sigmoid_for_the_softmax(logits, targets):
        """You apply a sigmoid to the logit of the right token and ignore the other tokens, so making all logits larger
        would lower the loss. One token comes next, so the probabilities of all tokens must sum to one. Which function
        ensures that?"""
        return -torch.nn.functional.logsigmoid(logits.gather(-1, targets[..., None])).mean()

    def without_the_right_logit(logits, targets):
        """You return the mean logarithm of the sums by which a softmax divides. The logit of the right token is
        missing, so the loss is the same whichever token came next."""
        return logits.logsumexp(-1).mean()

    def targets_in_another_order(logits, targets):
        """You flatten logits and targets in different orders: one of them sentence by sentence, the other place by
        place. Guesses are then compared with answers from other places. Which line transposes the tokens before you
        flatten them?"""
        return cross_entropy(logits.flatten(0, 1), targets.T.flatten())

    def transposed_and_then_flattened(logits, targets):
        """You moved the vocabulary to axis 1 and flattened the logits afterwards: the numbers of one position are no
        longer together. {Shape and dtype are right, so PyTorch raises no error.} One of the two steps is enough."""
        return cross_entropy(logits.mT.reshape(-1, logits.shape[-1]), targets.flatten())

    @family(
        the_last_sentence_only=(-1, "last", "counted: each round of a loop overwrites the result of the round before"),
        the_first_sentence_only=(0, "first", "counted"),
    )
    def one_sentence_only(sentence, logits, targets):
        """Only the {} sentence of the batch is {}. The mean runs over the predictions of all sentences."""
        return cross_entropy(logits[sentence], targets[sentence])

    def one_loss_for_each_position(logits, targets):
        """You return one loss for each position, (seq - 1,). The exercise asks for one number: average over the
        positions as well."""
        return cross_entropy(logits.mT, targets, reduction="none").mean(0)

    def normalized_over_all_places(logits, targets):
        """The softmax runs over the positions of all sentences, not over the vocabulary: once batch and seq are
        flattened, axis 0 counts positions. The probabilities of all tokens at one position must sum to one."""
        return -logits.flatten(0, 1).log_softmax(0).gather(1, targets.flatten()[:, None]).mean()

    def positions_for_classes(logits, targets):
        """`cross_entropy` takes the classes on axis 1, which is `seq` in your logits: its softmax runs over the
        positions. With targets of the same shape, such as those from `one_hot`, it raises no error. Move the vocabulary
        to axis 1."""
        return cross_entropy(logits, torch.nn.functional.one_hot(targets, logits.shape[-1]).to(logits))

    def every_sentence_for_every_sentence(logits, targets):
        """You compare each sentence's guesses with the answers of every sentence: an index such as `log_p[:, place,
        tokens]` selects all sentences for each row of tokens. Which other index is missing, so that each row of tokens
        reads only its own sentence?"""
        return -logits.log_softmax(-1)[:, torch.arange(targets.shape[1], device=targets.device), targets].mean()

    def exponentials_for_logits(logits, targets):
        """You apply an exponential to the logits before `cross_entropy`, whose softmax contains an exponential already:
        small differences become large, and large logits become infinite. Pass the logits."""
        return mean_cross_entropy(logits.exp(), targets)

    def logits_negated(logits, targets):
        """You change the sign of the logits before `cross_entropy`, so the largest logit counts as the least likely.
        The minus belongs to the logarithm, and `cross_entropy` already contains it."""
        return mean_cross_entropy(-logits, targets)

    def squared_distance_of_the_logits(logits, targets):
        """The loss is a squared distance between logits and one-hot targets. Cross-entropy is minus the logarithm of
        the probability of the next token."""
        return (logits - torch.nn.functional.one_hot(targets, logits.shape[-1]).to(logits)).square().mean()

    def zeros_out_in_each_sentence(logits, targets):
        """You leave out targets that are token 0, and average within each sentence first, then over the sentences. A
        mask for padding does this. Here there is no padding: token 0 is a token like all others, and every prediction
        counts equally."""
        losses, real = cross_entropy(logits.mT, targets, reduction="none"), (targets != 0).to(logits)
        return ((losses * real).sum(1) / real.sum(1)).mean()

    def zeros_out_and_divided_by_all(logits, targets):
        """Targets that are token 0 cost nothing, but the mean still counts them. This is half of what a mask for
        padding does. Here there is no padding, and token 0 is a token like all others. Which line sets its loss to
        0?"""
        return cross_entropy(logits.mT, targets, reduction="none", ignore_index=0).mean()

    def summed(logits, targets):
        """You add the losses instead of averaging them: a batch twice as large has twice the loss and gradients twice
        as large. The exercise asks for the mean."""
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")

    def softmax_first(logits, targets):
        """You apply a softmax before `cross_entropy`, which applies one itself. With probabilities between 0 and 1, the
        second softmax is nearly even, so the loss can never approach zero, and training hardly progresses. Pass the
        logits."""
        return mean_cross_entropy(logits.softmax(-1), targets)

    def the_sign_forgotten(logits, targets):
        """The loss is negative: it is the mean logarithm of the right tokens' probabilities, without the minus.
        Minimizing it makes the right tokens as unlikely as possible."""
        return -mean_cross_entropy(logits, targets)

    def chance_for_loss(logits, targets):
        """You return minus the mean probability of the right tokens: the logarithm is missing. The gradient of this
        loss is tiny where the model is badly wrong, which is where the gradient is needed."""
        return -logits.softmax(-1).gather(-1, targets[..., None]).mean()


@next_token_loss.wrong(stage="loss", alone=True)
class LossAlone:
    def gather_without_an_axis(logits, targets):
        """`gather` needs an index with as many axes as the logits, so it raises an error. The targets are (batch, seq):
        they lack an axis of size 1 for the vocabulary."""
        return -logits.log_softmax(-1).gather(-1, targets).mean()

    def indices_that_do_not_fit(logits, targets):
        """Indices side by side are broadcast against one another, but (batch,) and (seq,) do not fit, so PyTorch raises
        an error. As a column, (batch, 1), the first index would fit. Or is there a function that selects one number at
        each place?"""
        batch, seq = (torch.arange(size, device=targets.device) for size in targets.shape)
        return -logits.log_softmax(-1)[batch, seq, targets].mean()

    def vocabulary_cut_as_well(logits, targets):
        """The vocabulary has lost its last token: `[:, :-1, :-1]` cuts a third axis too, and a target that is this
        token has no logit. Only `seq` must get shorter. Which axis is `seq`?"""
        return mean_cross_entropy(logits[..., :-1], targets)

    def answers_one_too_small(logits, targets):
        """You subtract 1 from the numbers of the tokens, and token 0 becomes -1, which is not a token. Tokens are
        counted from 0: shift the places along `seq`, not the numbers of the tokens."""
        return mean_cross_entropy(logits, targets - 1)

    def answers_one_too_large(logits, targets):
        """You add 1 to the numbers of the tokens, and the last token gets a number outside the vocabulary. Tokens are
        counted from 0: shift the places along `seq`, not the numbers of the tokens."""
        return mean_cross_entropy(logits, targets + 1)

    @family(
        best_token_for_the_logits=lambda best, targets: cross_entropy(best, targets),
        best_token_for_the_logits_in_one_row=lambda best, targets: cross_entropy(best.flatten(), targets.flatten()),
    )
    def best_token_alone(loss, logits, targets):
        """`argmax` reduces each guess to one token before `cross_entropy`, which then raises an error: it needs the
        logits of all tokens, and nothing can be learned from the best token alone. Which tensor must you pass?"""
        return loss(logits.argmax(-1), targets)

    def vocabulary_flattened_as_well(logits, targets):
        """`flatten()` joins all axes of the logits, even the vocabulary, and `cross_entropy` finds no classes. Which
        are the only axes that you must join?"""
        return cross_entropy(logits.flatten(), targets.flatten())

    def answers_in_floating_point(logits, targets):
        """The targets have become floating-point numbers, which `cross_entropy` treats as probabilities. The number of
        a token is a whole number: which line changes its dtype?"""
        return cross_entropy(logits.flatten(0, 1), targets.flatten().float())

    def view_of_a_slice(logits, targets):
        """A slice that leaves out a position has gaps in memory, so `view` cannot join its axes and raises an error.
        `flatten` and `reshape` copy where necessary."""
        return cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def view_of_the_targets(logits, targets):
        """A slice that leaves out a position has gaps in memory, so `view` cannot join its axes and raises an error.
        `flatten` and `reshape` copy where necessary."""
        return cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.view(-1))

    @family(
        **{f"added_1e_{power}": partial(torch.add, other=10**-power) for power in (5, 6, 7, 8, 9, 10, 12, 15, 20, 30)},
        **{
            f"at_least_1e_{power}": partial(torch.clamp, min=10**-power) for power in (4, 5, 6)
        },  # smaller limits give the same loss
    )
    def with_a_lower_limit(limit, logits, targets):
        """{Your loss is right for ordinary logits, but too small for large ones:} the probabilities have a lower limit.
        Adding a small number such as 1e-9 sets such a limit, and so does `clamp`. No guess then costs more than minus
        the logarithm of that limit, however little probability it gives the right token. `log_softmax` needs no limit,
        and `cross_entropy` contains it."""
        return -limit(logits.softmax(-1).gather(-1, targets[..., None])).log().mean()


@next_token_loss.wrong
class WrongAnswers:
    def not_shifted(logits, tokens):
        """You compare each position with its own token instead of the next. A position sees its own token, so the loss
        falls to zero at once, and generation repeats the last token forever. Shift the answers by one place."""
        return mean_cross_entropy(logits, tokens)

    def shifted_backwards(logits, tokens):
        """The shift has the wrong direction: you compare each position with the token *before* it, which the model can
        see. The loss falls quickly and nothing is learned. Which of the two tensors must lose its first entry?"""
        return mean_cross_entropy(logits[:, 1:], tokens[:, :-1])

    @family(both_without_the_first=(slice(1, None), "first"), both_without_the_last=(slice(-1), "last"))
    def cut_at_the_same_end(kept, logits, tokens):
        """Logits and tokens have both lost their *{}* entry, so each position is still compared with its own token. To
        shift one against the other, cut them at different ends."""
        return mean_cross_entropy(logits[:, kept], tokens[:, kept])

    def rolled_past_the_end(logits, tokens):
        """You roll the tokens: the last position is compared with the *first* token of the same sentence. The last
        position has no next token, and must be left out."""
        return mean_cross_entropy(logits, tokens.roll(-1, dims=1))

    def batch_and_vocabulary_confused(logits, tokens):
        """You reshaped the logits instead of transposing them, or along the wrong axis: the numbers of one position are
        no longer together. {Shape and dtype are right, so PyTorch raises no error.} Flatten `batch` and `seq`, and
        leave `vocab` whole."""
        shifted = logits[:, :-1]
        return cross_entropy(shifted.reshape(len(shifted), shifted.shape[2], -1), tokens[:, 1:])

    @family(
        in_bits=(2, "is in bits: the logarithm has base 2", "something divided by log 2, or is `log2`"),
        in_decimals=(10, "is in decimal digits: the logarithm has base 10", "`log10`"),
    )
    def another_logarithm(base, logits, tokens):
        """The loss {}. The cross-entropy of this course, and of PyTorch, uses the natural logarithm. Is {} called?"""
        return next_token_loss.reference(logits, tokens) / math.log(base)

    def perplexity(logits, tokens):
        """You return the perplexity, e to the power of the loss. The exercise asks for the loss itself: leave out the
        last `exp`."""
        return next_token_loss.reference(logits, tokens).exp()

    def as_a_number(logits, tokens):
        """You return a Python number. `.item()` cuts the gradient's path to the logits, so nothing can be learned from
        this loss. Return the tensor with one element, and use `.item()` where you print it."""
        return next_token_loss.reference(logits, tokens).item()

    def the_last_position_only(logits, tokens):
        """Only one prediction of each sentence is counted: the prediction of its last token. Every position but the
        last predicts the token that follows, and all of these predictions count equally."""
        return torch.nn.functional.cross_entropy(logits[:, -2], tokens[:, -1])

    def summed_over_a_sentence(logits, tokens):
        """You add the losses of a sentence, and average only over the sentences. The mean runs over all predictions,
        batch times (seq - 1) of them."""
        return next_token_loss.reference(logits, tokens) * (tokens.shape[1] - 1)

    def summed_over_the_batch(logits, tokens):
        """You average the losses over the positions and add them over the sentences. The mean runs over all
        predictions, batch times (seq - 1) of them."""
        return next_token_loss.reference(logits, tokens) * len(tokens)

    def logits_for_log_probabilities(logits, tokens):
        """You use the logits as log-probabilities: `nll_loss` only selects one number for each target and changes its
        sign. Without `log_softmax` before it, making all logits larger would lower the loss. `cross_entropy` contains
        both functions."""
        return torch.nn.functional.nll_loss(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def class_zero_ignored(logits, tokens):
        """You leave out targets that are token 0, as with `ignore_index=0`. Here there is no padding: token 0 is a
        token like all others, and must be predicted."""
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)

    def shifted_by_two(logits, tokens):
        """The targets are two places ahead: each position is compared with the token after the next. Do you shift
        twice, once in the logits and once in the tokens? Position t predicts token t + 1."""
        return torch.nn.functional.cross_entropy(logits[:, :-2].flatten(0, 1), tokens[:, 2:].flatten())

    def across_sentences(logits, tokens):
        """You shift after you have joined all sentences in one row: the end of a sentence predicts the beginning of the
        next sentence. Shift along `seq` first, then flatten."""
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1)[:-1], tokens.flatten()[1:])

    @family(
        normalized_over_positions=lambda logits: logits[:, :-1].log_softmax(1),
        normalized_over_positions_before_the_cut=lambda logits: logits.log_softmax(1)[:, :-1],
    )
    def softmax_over_positions(log_probs, logits, tokens):
        """The softmax runs over the positions, not over the vocabulary: axis 1 of the logits is `seq`. The
        probabilities of all tokens at one position must sum to one."""
        return -log_probs(logits).gather(-1, tokens[:, 1:, None]).mean()

    def log_of_the_mean(logits, tokens):
        """You average the probabilities first, and compute the logarithm of their mean. Each prediction has its own
        loss, minus the logarithm of one probability: average these losses."""
        return -logits[:, :-1].softmax(-1).gather(-1, tokens[:, 1:, None]).mean().log()

    def smoothed(logits, tokens):
        """The targets are smoothed, as with `label_smoothing=0.1`: a part of the loss comes from all other tokens. Here
        only the token that follows counts."""
        return torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1
        )

    def nothing_averaged(logits, tokens):
        """You return the loss of every prediction, as with `reduction="none"`. The exercise asks for one number, their
        mean."""
        losses = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
        )
        return losses

    def one_loss_for_each_sentence(logits, tokens):
        """You return one loss for each sentence. The exercise asks for one number: average over the sentences as
        well."""
        return torch.nn.functional.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none").mean(1)

    def classes_on_the_last_axis(logits, tokens):
        """`cross_entropy` takes the classes on axis 1 but received `seq` there: the vocabulary is on the last axis.
        Flatten batch and seq into one axis, or move the vocabulary to axis 1."""
        return torch.nn.functional.cross_entropy(logits[:, :-1], tokens[:, 1:])

    def targets_and_logits_exchanged(logits, tokens):
        """The two arguments of `cross_entropy` are exchanged: first come the logits, (N, vocab), then the targets,
        (N,), which are whole numbers."""
        return torch.nn.functional.cross_entropy(tokens[:, 1:].flatten(), logits[:, :-1].flatten(0, 1))

    def only_the_logits_cut(logits, tokens):
        """The logits lack their last position, but no token is cut: the numbers of predictions and targets differ. Cut
        the first token off the targets as well: `tokens[:, 1:]`."""
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens.flatten())

    def only_the_tokens_cut(logits, tokens):
        """The targets lack the first token, but the logits still have all their positions: the numbers of predictions
        and targets differ. The last position predicts nothing, so leave it out: `logits[:, :-1]`."""
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def squared_distance(logits, tokens):
        """The loss is a squared distance between probabilities and one-hot targets. Cross-entropy is minus the
        logarithm of the probability of the next token."""
        target = torch.nn.functional.one_hot(tokens[:, 1:], logits.shape[-1]).to(logits)
        return (logits[:, :-1].softmax(-1) - target).square().mean()

    def sentences_shifted(logits, tokens):
        """The shift runs along the batch: the logits of one sentence are compared with the tokens of the next sentence.
        `[:-1]` and `[1:]` cut the first axis. Which axis is `seq`?"""
        return mean_cross_entropy(logits[:-1], tokens[1:])

    def rolled_backwards(logits, tokens):
        """You roll the tokens in the wrong direction: each position is compared with the token *before* it, and the
        first position with the last token of its sentence. Roll by -1, and leave out the position that has no next
        token."""
        return mean_cross_entropy(logits, tokens.roll(1, dims=1))

    def rolled_through_the_batch(logits, tokens):
        """You roll the tokens without an axis: `roll` then treats them as one row, and each sentence ends with the
        first token of the next. To roll along `seq`, pass `dims=1`; the last position has no next token, and must be
        left out."""
        return mean_cross_entropy(logits, tokens.roll(-1))

    def zero_after_the_last(logits, tokens):
        """You append token 0 to each sentence and compare the last position with it. The last position has no next
        token, and must be left out."""
        return mean_cross_entropy(logits, torch.nn.functional.pad(tokens[:, 1:], (0, 1)))

    def whole_numbers_for_probabilities(logits, tokens):
        """`cross_entropy` takes the numbers of the tokens, or probabilities, which must be floating-point numbers.
        `one_hot` returns neither, but vectors of whole numbers. Pass the tokens as they are."""
        targets = torch.nn.functional.one_hot(tokens[:, 1:], logits.shape[-1])
        return cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(0, 1))

    def the_last_guess_left_out(logits, tokens):
        """One guess of each sentence is missing: the guess at its last token. `seq` positions make `seq` - 1 guesses:
        where does your loop or your slice end?"""
        return mean_cross_entropy(logits[:, :-2], tokens[:, 1:-1])

    def the_first_guess_left_out(logits, tokens):
        """One guess of each sentence is missing: the guess from its first position. The logits at position 0 are a
        guess at token 1: where does your loop or your slice begin?"""
        return mean_cross_entropy(logits[:, 1:-1], tokens[:, 2:])

    def normalized_over_the_batch(logits, tokens):
        """The softmax runs over the sentences, not over the vocabulary: axis 0 of the logits is the batch. The
        probabilities of all tokens at one position must sum to one."""
        return -logits[:, :-1].log_softmax(0).gather(-1, tokens[:, 1:, None]).mean()

    def different_axes_cut(logits, tokens):
        """The tokens have lost their first position, but the logits have lost a whole sentence: `[:-1]` cuts the first
        axis, the batch. Which axis of the logits is `seq`?"""
        return mean_cross_entropy(logits[:-1], tokens[:, 1:])

    def tokens_cut_along_the_batch(logits, tokens):
        """The logits have lost their last position, but the tokens have lost a whole sentence: `[1:]` cuts the first
        axis, the batch. Which axis of the tokens is `seq`?"""
        return mean_cross_entropy(logits[:, :-1], tokens[1:])

    def guesses_and_answers_returned(logits, tokens):
        """You return the guesses and the answers{, shifted as they should be}. You must still compare them: the
        exercise asks for one number, the mean cross-entropy."""
        return logits[:, :-1], tokens[:, 1:]

    def vocabulary_cut_after_turning(logits, tokens):
        """You transpose the logits first, and `[:, :-1]` then cuts the vocabulary, which is now the second axis. `seq`
        is as long as before, and does not fit the targets. On which axis is `seq` after the transpose?"""
        return cross_entropy(logits.mT[:, :-1], tokens[:, 1:])

    def the_last_position_with_its_own_token(logits, tokens):
        """Only the last position of each sentence is counted, and it is compared with its own token. The last position
        has no next token. Compare all other positions with the token that follows."""
        return cross_entropy(logits[:, -1], tokens[:, -1])

    def the_first_guess_only(logits, tokens):
        """Only one prediction of each sentence is counted: the prediction from its first position. Does a `return` end
        the loop in its first round? Every position but the last predicts the token that follows, and all of these
        predictions count equally."""
        return cross_entropy(logits[:, 0], tokens[:, 1])

    def past_the_end(logits, tokens):
        """You index a token after the last one, which does not exist: the loop runs over all `seq` positions. How many
        of them have a next token?"""
        return cross_entropy(logits[:, -1], tokens[:, tokens.shape[1]])

    def cut_from_the_logits(logits, tokens):
        """{The number is right, but} nothing can be learned from it: `.detach()`, `.data` and `torch.no_grad()` cut the
        gradient's path to the logits, and so does a new tensor made from numbers. Compute with the logits as they
        come."""
        return next_token_loss.reference(logits.detach(), tokens)

    def shifted_twice_in_one_row(logits, tokens):
        """You shift twice: once along `seq`, and once more after you have joined all sentences in one row. Each
        position is compared with the token after the next, and the end of a sentence with the next sentence. Some
        library losses shift already, so another shift is one too many. Position t predicts token t + 1."""
        logits, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        return cross_entropy(logits[:-1], targets[1:])


@next_token_loss.wrong
class OwnToken:
    @family(
        **rows_of((Loss.chance_for_loss, Loss.summed, Loss.softmax_first, Loss.the_sign_forgotten), "own_token_and_{}")
    )
    def own_token_and(loss, logits, tokens):
        """Two things go wrong here. Each position is compared with its own token, which the model can see, instead of
        the next token. And: {}"""
        return loss(logits, tokens)


@next_token_loss.mistake_around
def divided_by_seq(function):
    """You divide the sum by batch times seq, although the last token of a sentence predicts nothing: each sentence has
    seq - 1 predictions."""
    return lambda logits, tokens: function(logits, tokens) * (tokens.shape[1] - 1) / tokens.shape[1]
