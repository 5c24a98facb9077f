"""The router of a mixture of experts: which experts each token goes to, and with which weights."""

import torch
from torch.nn import functional as F

from ...mixture import MixtureOfExperts
from ..exercise import exercise, family


def _logits_and_n_active(draw, batch=2, seq=7, n_experts=6, n_active=3):
    return 2 * draw(batch, seq, n_experts), n_active


def softmax_over_experts(logits):
    """Compute the softmax of a token's logits over all experts."""
    return logits.softmax(dim=-1)


def most_probable_experts(scores, n_active):
    """Choose the `n_active` most probable experts of each token, the most probable first."""
    return scores.topk(n_active, dim=-1)


def divide_by_sum(weights):
    """Divide the weights of a token by their sum."""
    return weights / weights.sum(dim=-1, keepdim=True)


@exercise(
    inputs=_logits_and_n_active,
    axes={"logits": "batch seq n_experts", "return": "batch seq n_active, batch seq n_active"},
    hints=(
        "A token has six probabilities, one for each expert, and keeps three of them. Do these three probabilities "
        "still sum to 1?",
        "Take the softmax over the experts, keep the `n_active` largest values with their indices, and divide these "
        "values by their sum. `topk` returns values and indices; the docstring asks for the indices first.",
        "`weights, indices = logits.softmax(…).topk(…)`, then `return indices, weights / weights.sum(…, keepdim=True)`",
    ),
)
def route(logits, n_active, *, scores=softmax_over_experts, chosen=most_probable_experts, shares=divide_by_sum):
    """Return the ``n_active`` experts with the largest logits of each token, the largest first, and their weights.

    logits: (batch, seq, n_experts). The indices of the experts and the weights both have shape (batch, seq, n_active).
    """
    weights, indices = chosen(scores(logits), n_active)
    return indices, shares(weights)


route.example("one active expert", n_active=1)
route.example("two active experts", plain=True, n_experts=5, n_active=2)
route.example("all experts active", n_experts=4, n_active=4)
route.example("one token", batch=1, seq=1)
route.example("logits near 300", lambda draw: (2 * draw(2, 3, 5) + 300, 2), plain=True)
route.example("logits near −300", lambda draw: (2 * draw(2, 3, 5) - 300, 2), plain=True)


@route.right
class RightAnswers:
    def softmax_of_the_chosen(logits, n_active):
        chosen, indices = logits.topk(n_active, dim=-1)
        return indices, chosen.softmax(dim=-1)

    def sorted_and_gathered(logits, n_active):
        indices = logits.argsort(dim=-1, descending=True)[..., :n_active]
        return indices, divide_by_sum(logits.softmax(dim=-1).gather(-1, indices))

    def the_others_hidden(logits, n_active):
        indices = logits.topk(n_active, dim=-1).indices
        chosen = torch.zeros_like(logits).scatter(-1, indices, 1).bool()
        return indices, logits.masked_fill(~chosen, -torch.inf).softmax(dim=-1).gather(-1, indices)

    def one_after_the_other(logits, n_active):
        remaining, indices = logits, []
        for _ in range(n_active):
            indices.append(remaining.argmax(dim=-1, keepdim=True))
            remaining = remaining.scatter(-1, indices[-1], -torch.inf)
        indices = torch.cat(indices, dim=-1)
        return indices, torch.take_along_dim(logits, indices, dim=-1).softmax(dim=-1)

    def token_by_token(logits, n_active):
        pairs = [token.topk(n_active) for token in logits.flatten(0, 1)]
        shape = (*logits.shape[:2], n_active)
        weights = torch.stack([(values - values[0]).exp() for values, _ in pairs])
        return torch.stack([indices for _, indices in pairs]).view(shape), divide_by_sum(weights).view(shape)

    def by_the_package(logits, n_active):
        n_experts = logits.shape[-1]
        mixture = MixtureOfExperts(n_experts, 1, n_experts, n_active).to(logits)
        mixture.router.weight.data = torch.eye(n_experts).to(logits)
        return mixture.route(logits)


@route.property
def weights_sum_to_one(function, logits, n_active):
    """The weights of each token sum to 1."""
    sums = function(logits, n_active)[1].sum(dim=-1)
    return torch.allclose(sums, torch.ones_like(sums))


@route.property
def a_constant_changes_nothing(function, logits, n_active):
    """Adding a number to all logits of a token changes neither the token's experts nor their weights."""
    indices, weights = function(logits, n_active)
    shifted_indices, shifted_weights = function(logits + 3, n_active)
    return torch.equal(indices, shifted_indices) and torch.allclose(weights, shifted_weights, atol=1e-5)


@route.wrong(stage="scores")
class Scores:
    @family(
        over_the_tokens=(1, "the tokens of a sentence, so tokens compete for an expert"),
        over_the_batch=(
            0,
            "the sentences of the batch, so token 3 of one sentence competes with token 3 of the others",
        ),
    )
    def softmax(axis, logits):
        """Your softmax runs over {}. Each token chooses among its experts, so the probabilities of one token sum to 1.
        Which axis of `logits` counts the experts?"""
        return logits.softmax(dim=axis)

    def no_softmax(logits):
        """There is no softmax: you compute the weights from the logits themselves. Logits can be negative, so your
        weights can be negative too. Which function turns logits into positive numbers?"""
        return logits

    def sigmoid(logits):
        """Your scores are sigmoids: each expert gets its own score, independent of the others. The router of
        DeepSeek-V3 uses sigmoids, but this router uses a softmax, in which a token's experts compete."""
        return logits.sigmoid()

    def exponential_of_large_logits(logits):
        """The exponentials of large logits overflow, or those of very negative logits become 0: you compute `exp`
        without first subtracting the largest logit of a token. What is exp(300) in float32? `softmax` subtracts the
        maximum automatically."""
        return logits.exp()

    def logarithms(logits):
        """Your scores are logarithms of probabilities. {The order of the experts is right.} But you divide negative
        numbers by their negative sum, so the best expert gets the smallest weight. Do you use `log_softmax`?"""
        return logits.log_softmax(dim=-1)

    def scaled_by_the_root(logits):
        """You divide the logits by √n_experts before the softmax, as attention divides its scores by √d_head. A router
        has no scale: compute the softmax of the logits themselves."""
        return (logits / logits.shape[-1] ** 0.5).softmax(dim=-1)

    def logits_negated(logits):
        """Your softmax uses the negative logits: the smallest logit gets the largest probability. Which minus sign must
        you remove?"""
        return (-logits).softmax(dim=-1)

    def softplus(logits):
        """Your scores are softplus, log(1 + exp(logit)). Softplus is positive too, but the exercise asks for the
        softmax of a token's logits."""
        return F.softplus(logits)


@route.wrong(stage="chosen")
class Chosen:
    def least_probable(scores, n_active):
        """You choose the experts with the *smallest* logits. `argsort` sorts in ascending order, and `topk` has the
        argument `largest`. Which end of the order do you use?"""
        return scores.topk(n_active, dim=-1, largest=False)

    def largest_last(scores, n_active):
        """{You choose the right experts, but} the expert with the largest logit comes last in your result; the
        docstring asks for it first. `argsort` sorts in ascending order: how can you reverse it?"""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights.flip(-1), indices.flip(-1)

    def in_order_of_the_experts(scores, n_active):
        """{You choose the right experts, each with its weight, but} your experts are in the order of their numbers. The
        docstring asks for the expert with the largest logit first."""
        indices = scores.topk(n_active, dim=-1).indices.sort(dim=-1).values
        return scores.gather(-1, indices), indices

    def indices_sorted_alone(scores, n_active):
        """You sort the indices, but not the weights: experts get the weights of other experts. Each weight must keep
        its index when you sort. The docstring asks for the largest weight first."""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights, indices.sort(dim=-1).values

    @family(one=1, two=2)
    def always(count, scores, n_active):
        """Your result does not depend on `n_active`: each token always goes to {} of the experts. How many does the
        docstring ask for?"""
        return scores.topk(count, dim=-1)

    def one_too_many(scores, n_active):
        """Each token goes to one expert too many. Do you include the shared expert? Every token uses the shared expert,
        without the router. Where do you add 1 to `n_active`?"""
        return scores.topk(n_active + 1, dim=-1)

    def best_left_out(scores, n_active):
        """You leave out the best expert of each token, and begin with the second. Indices count from 0. Where does your
        slice begin?"""
        weights, indices = scores.sort(dim=-1, descending=True)
        return weights[..., 1 : n_active + 1], indices[..., 1 : n_active + 1]

    def first_experts(scores, n_active):
        """Every token goes to the experts 0, 1, 2, …: your function makes no choice. Do you return the indices of
        `topk`, or positions in an array that you have already sorted?"""
        indices = torch.arange(n_active, device=scores.device).expand(*scores.shape[:-1], -1)
        return scores.gather(-1, indices), indices

    def places_in_the_sorted(scores, n_active):
        """{The weights are right, but} your indices are 0, 1, 2, …: positions in an array that you have already sorted.
        `sort` and `topk` return two tensors: which of them contains the experts' numbers?"""
        weights = scores.topk(n_active, dim=-1).values
        return weights, torch.arange(n_active, device=scores.device).expand_as(weights)

    def first_token_for_all(scores, n_active):
        """All tokens of a sentence go to the experts of its first token, with the weights of that token. Each token has
        its own logits, so choose the experts for each token separately."""
        weights, indices = scores[:, :1].expand_as(scores).topk(n_active, dim=-1)
        return weights, indices

    def last_token_for_all(scores, n_active):
        """All tokens of a sentence go to the experts of its last token, with the weights of that token. Each token has
        its own logits, so choose the experts for each token separately."""
        return scores[:, -1:].expand_as(scores).topk(n_active, dim=-1)

    def mean_of_the_sentence(scores, n_active):
        """You choose experts for a whole sentence: you average the scores of its tokens first, so all tokens go to the
        same experts. Choose experts for each token separately."""
        return scores.mean(dim=1, keepdim=True).expand_as(scores).topk(n_active, dim=-1)

    def chosen_by_the_first_token(scores, n_active):
        """All tokens of a sentence go to the experts of its first token. {Each token has its own weights for these
        experts.} Choose experts for each token separately."""
        indices = scores[:, :1].topk(n_active, dim=-1).indices.expand(-1, scores.shape[1], -1)
        return scores.gather(-1, indices), indices


@route.wrong(stage="chosen", alone=True)
class ChosenAlone:
    def experts_choose_tokens(scores, n_active):
        """Your `topk` runs over the tokens: each expert chooses `n_active` tokens. Such routers exist (*expert
        choice*), but here each token chooses experts. Over which axis must `topk` run?"""
        return scores.topk(n_active, dim=1)

    def one_too_few(scores, n_active):
        """Each token goes to one expert too few. `topk(n_active)` already returns the right number: where do you
        subtract 1?"""
        return scores.topk(n_active - 1, dim=-1)

    def half_of_the_experts(scores, n_active):
        """Your result does not depend on `n_active`: each token always goes to half of the experts. How many does the
        docstring ask for?"""
        return scores.topk(scores.shape[-1] // 2, dim=-1)

    def not_chosen_are_zero(scores, n_active):
        """Your weights have an entry for every expert, and 0 for the experts that were not chosen. {The numbers are
        right.} The docstring asks for the shape (batch, seq, n_active): only the weights of the chosen experts, in the
        order of the indices."""
        weights, indices = scores.topk(n_active, dim=-1)
        return torch.zeros_like(scores).scatter(-1, indices, weights), indices

    def ones_and_zeros_for_indices(scores, n_active):
        """Instead of indices you return a table of ones and zeros, which says whether an expert was chosen. The
        docstring asks for the experts' numbers, with the shape (batch, seq, n_active)."""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights, torch.zeros_like(scores).scatter(-1, indices, 1).long()

    def indices_as_one_hot_vectors(scores, n_active):
        """In your result each index is a one-hot vector of ones and zeros. The docstring asks for the experts' numbers,
        with the shape (batch, seq, n_active)."""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights, F.one_hot(indices, scores.shape[-1])


@route.wrong(stage="shares")
class Shares:
    def as_they_are(weights):
        """Your weights are the probabilities of the softmax over all experts: they do not sum to 1. OLMoE uses them
        like this, but here, as in Mixtral, the weights of the chosen experts sum to 1. By what must you divide the
        weights of a token?"""
        return weights

    def all_alike(weights):
        """All experts of a token get the same weight. {The choice is right, but} you lose the router's confidence, and
        no gradient reaches the router. By which numbers does `topk` choose?"""
        return weights * 0 + 1 / weights.shape[-1]

    def by_the_largest(weights):
        """You divide by the largest weight, so the best expert has a weight of 1. The weights of a token must sum to 1:
        by what must you divide them?"""
        return weights / weights.max(dim=-1, keepdim=True).values

    def by_the_length(weights):
        """You divide by the norm of the weights, that is, by the root of the sum of their squares. The weights of a
        token must sum to 1: by what must you divide them? The argument `p` of `F.normalize` chooses the norm."""
        return F.normalize(weights, dim=-1)

    def softmax_again(weights):
        """You compute a second softmax, of the chosen probabilities: your weights are nearly equal. Use either the
        softmax of the chosen *logits*, or the chosen probabilities divided by their sum."""
        return weights.softmax(dim=-1)

    @family(
        over_the_tokens_of_a_sentence=(1, "over the tokens of a sentence"),
        over_the_sentences=(0, "over the sentences of the batch"),
        over_tokens_and_experts=((1, 2), "over all tokens and experts of a sentence"),
        over_everything=((0, 1, 2), "over the whole tensor"),
    )
    def summed(axes, weights):
        """You divide your weights by a sum {}. The weights of *one token* must sum to 1. Over which axis must you
        add?"""
        return weights / weights.sum(dim=axes, keepdim=True)

    def by_the_number(weights):
        """You divide the probabilities by `n_active`, as for a mean. The weights of a token must sum to 1: divide the
        chosen probabilities by their sum."""
        return weights / weights.shape[-1]

    def sum_of_n_active(weights):
        """The weights of a token sum to `n_active`: {they would sum to 1, but} you multiply each of them by the number
        of active experts. The sum must be 1, so that the result is a weighted mean of the experts."""
        return divide_by_sum(weights) * weights.shape[-1]

    def squares(weights):
        """Your weights are proportional to the *squared* probabilities. Do you square each probability, or double the
        logits? Both have the same effect."""
        return divide_by_sum(weights**2)

    def rounded_to_the_best(weights):
        """The best expert gets a weight of 1, and the others get 0. An expert with a weight of 0 has no effect on the
        result; here every chosen expert must have a weight above 0."""
        return (weights == weights.max(dim=-1, keepdim=True).values).to(weights.dtype) + 0 * weights

    def one_added_to_the_sum(weights):
        """You add something, perhaps 1, to the sum by which you divide: the weights do not sum to 1. The sum of
        probabilities is never 0, so the division is safe."""
        return weights / (1 + weights.sum(dim=-1, keepdim=True))


@route.wrong
class WrongAnswers:
    def weights_first(logits, n_active):
        """You return the weights first and the indices second, in the order of `topk`. {Both are right.} The docstring
        asks for the indices first."""
        indices, weights = route.reference(logits, n_active)
        return weights, indices

    def probabilities_first(logits, n_active):
        """You return what `topk` returns: the weights first, the indices second, and the weights are probabilities of
        the softmax over all experts. The docstring asks for the indices first, and for weights that sum to 1."""
        weights, indices = logits.softmax(dim=-1).topk(n_active, dim=-1)
        return weights, indices

    def chosen_by_the_logits_beside_them(logits, n_active):
        """Your weights are the logits of the chosen experts, without a softmax and without a division. {The indices are
        right.} Which function turns logits into weights that sum to 1?"""
        weights, indices = logits.topk(n_active, dim=-1)
        return indices, weights

    def zeros_before_the_softmax(logits, n_active):
        """You set the logits of the other experts to 0 before the softmax. But exp(0) is 1, so these experts still get
        some probability. Which logit has a probability of 0 after a softmax?"""
        indices = logits.topk(n_active, dim=-1).indices
        kept = torch.zeros_like(logits).scatter(-1, indices, logits.gather(-1, indices))
        return indices, kept.softmax(dim=-1).gather(-1, indices)

    def chosen_over_the_tokens(logits, n_active):
        """{You choose the right experts.} The softmax of the chosen logits runs over the tokens of the sentence, but
        the weights of *one token* must sum to 1. Which axis counts a token's experts?"""
        chosen, indices = logits.topk(n_active, dim=-1)
        return indices, chosen.softmax(dim=1)

    def weights_reversed(logits, n_active):
        """{You choose the right experts, with the largest logit first, but} the weights are in reverse order: the best
        expert gets the smallest weight. Do you sort experts and weights in one step?"""
        indices, weights = route.reference(logits, n_active)
        return indices, weights.flip(-1)

    def divided_by_all_experts(logits, n_active):
        """You divide the probabilities by the number of *all* experts. The weights of a token must sum to 1: divide the
        chosen probabilities by their sum."""
        weights, indices = logits.softmax(dim=-1).topk(n_active, dim=-1)
        return indices, weights / logits.shape[-1]

    def halved_logits(logits, n_active):
        """You divide the logits by 2 before the softmax, as a temperature does. A router has no temperature: compute
        the softmax of the logits themselves."""
        weights, indices = (logits / 2).softmax(dim=-1).topk(n_active, dim=-1)
        return indices, divide_by_sum(weights)

    def tokens_of_all_sentences_joined(logits, n_active):
        """You merge the axes of batch and tokens: your results have one axis for all tokens. {The numbers are right.}
        Reshape them to (batch, seq, n_active)."""
        return tuple(result.flatten(0, 1) for result in route.reference(logits, n_active))

    def weights_alone(logits, n_active):
        """You return only the weights. The caller must also know to which experts they belong: the docstring asks for
        the indices, and then the weights."""
        return route.reference(logits, n_active)[1]

    def indices_alone(logits, n_active):
        """You return only the indices. The experts are chosen, but their weights are missing. The docstring asks for
        the indices, and then the weights."""
        return route.reference(logits, n_active)[0]

    def last_sentence_alone(logits, n_active):
        """Your result always contains only the last sentence, however many the batch has. Does your loop overwrite the
        results of the earlier sentences?"""
        return tuple(result[-1:] for result in route.reference(logits, n_active))

    def best_of_each_group(logits, n_active):
        """You divide the experts into `n_active` groups, and choose the best expert of each group. Some routers do
        choose by groups, but this router chooses the best of all experts."""
        parts = logits.tensor_split(n_active, dim=-1)
        starts = torch.tensor([0, *(part.shape[-1] for part in parts[:-1])], device=logits.device).cumsum(0)
        indices = torch.stack([part.argmax(dim=-1) for part in parts], dim=-1) + starts
        weights, order = logits.gather(-1, indices).softmax(dim=-1).sort(dim=-1, descending=True)
        return indices.gather(-1, order), weights
