"""The router of a mixture of experts: which experts each token goes to, and with which weights."""

import torch
from torch.nn import functional as F

from ...mixture import MixtureOfExperts
from ..exercise import exercise, family


def _logits(draw, batch=2, seq=7, n_experts=6, n_active=3):
    return 2 * draw(batch, seq, n_experts), n_active


def of_all_experts(logits):
    """Take the softmax of a token's logits over all experts."""
    return logits.softmax(dim=-1)


def most_probable(scores, n_active):
    """Choose the `n_active` most probable experts of each token, the most probable first."""
    return scores.topk(n_active, dim=-1)


def by_their_sum(weights):
    """Divide the weights of a token by their sum."""
    return weights / weights.sum(dim=-1, keepdim=True)


@exercise(
    inputs=_logits,
    axes={"logits": "batch seq n_experts", "return": "batch seq n_active, batch seq n_active"},
    hints=(
        "A token has six probabilities, one for each expert, and keeps three of them. Do these three still sum to 1?",
        "Take the softmax over the experts, keep the `n_active` largest values with their places, and divide by the "
        "sum of what was kept. `topk` returns values and indices; the docstring asks for the indices first.",
        "`weights, indices = logits.softmax(…).topk(…)`, then `return indices, weights / weights.sum(…, keepdim=True)`",
    ),
)
def route(logits, n_active, *, scores=of_all_experts, chosen=most_probable, shares=by_their_sum):
    """Return the ``n_active`` experts with the largest logits of each token, the largest first, and their weights.

    logits: (batch, seq, n_experts). Returns indices and weights, both (batch, seq, n_active).
    """
    weights, indices = chosen(scores(logits), n_active)
    return indices, shares(weights)


route.example("one active expert", n_active=1)
route.example("two active experts", plain=True, n_experts=5, n_active=2)
route.example("as many active experts as there are", n_experts=4, n_active=4)
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
        return indices, by_their_sum(logits.softmax(dim=-1).gather(-1, indices))

    def the_others_hidden(logits, n_active):
        indices = logits.topk(n_active, dim=-1).indices
        chosen = torch.zeros_like(logits).scatter(-1, indices, 1).bool()
        return indices, logits.masked_fill(~chosen, -torch.inf).softmax(dim=-1).gather(-1, indices)

    def one_after_the_other(logits, n_active):
        rest, indices = logits, []
        for _ in range(n_active):
            indices.append(rest.argmax(dim=-1, keepdim=True))
            rest = rest.scatter(-1, indices[-1], -torch.inf)
        indices = torch.cat(indices, dim=-1)
        return indices, torch.take_along_dim(logits, indices, dim=-1).softmax(dim=-1)

    def token_by_token(logits, n_active):
        pairs = [token.topk(n_active) for token in logits.flatten(0, 1)]
        shape = (*logits.shape[:2], n_active)
        weights = torch.stack([(values - values[0]).exp() for values, _ in pairs])
        return torch.stack([places for _, places in pairs]).view(shape), by_their_sum(weights).view(shape)

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
    """A number that is added to all logits of a token changes neither its experts nor their weights."""
    indices, weights = function(logits, n_active)
    others, same = function(logits + 3, n_active)
    return torch.equal(indices, others) and torch.allclose(weights, same, atol=1e-5)


@route.wrong(stage="scores")
class Scores:
    @family(
        over_the_tokens=(1, "the tokens of a sentence: they compete for an expert"),
        over_the_batch=(0, "the sentences of the batch: token 3 of one competes with token 3 of the others"),
    )
    def softmax(axis, logits):
        """Your softmax runs over {}. Each token chooses among its experts, so the probabilities of one token sum to 1.
        Which axis of `logits` holds the experts?"""
        return logits.softmax(dim=axis)

    def no_softmax(logits):
        """There is no softmax: the weights are made of the logits themselves. Logits can be negative, and so are your
        weights then. What makes positive numbers of them?"""
        return logits

    def sigmoid(logits):
        """Your scores are sigmoids: each expert is scored by itself. The router of DeepSeek-V3 does that; this one
        takes a softmax, in which a token's experts compete."""
        return logits.sigmoid()

    def exponential_of_large_logits(logits):
        """Large logits overflow, or very small ones vanish: you take `exp` without subtracting the largest logit of a
        token first. What does float32 make of exp(300)? `softmax` subtracts the maximum by itself."""
        return logits.exp()

    def logarithms(logits):
        """Your scores are logarithms of probabilities. {The order of the experts is right.} But the weights are shares
        of negative numbers: the best expert gets the smallest. Is there a `log_softmax`?"""
        return logits.log_softmax(dim=-1)

    def scaled_by_the_root(logits):
        """Your logits are divided by √n_experts before the softmax, as scores are by √d_head in attention. A router has
        no scale: its softmax takes the logits as they are."""
        return (logits / logits.shape[-1] ** 0.5).softmax(dim=-1)

    def sign_turned(logits):
        """Your softmax takes the logits with the sign turned: the smallest logit gets the largest probability. Is there
        a minus too much?"""
        return (-logits).softmax(dim=-1)

    def softplus(logits):
        """Your scores are softplus, log(1 + exp(logit)). That makes positive numbers as well; asked for is the softmax
        of a token's logits."""
        return F.softplus(logits)


@route.wrong(stage="chosen")
class Chosen:
    def least_probable(scores, n_active):
        """You choose the experts with the *smallest* logits. `argsort` begins with the smallest, and `topk` has the
        argument `largest`. Which end do you take?"""
        return scores.topk(n_active, dim=-1, largest=False)

    def largest_last(scores, n_active):
        """{The experts are the right ones, and} the largest logit comes last; the docstring wants it first. `argsort`
        begins with the smallest: how do you turn the order round?"""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights.flip(-1), indices.flip(-1)

    def in_order_of_the_experts(scores, n_active):
        """{The experts are the right ones, each with its weight, and} they are in the order of their numbers. The
        docstring wants the one with the largest logit first."""
        indices = scores.topk(n_active, dim=-1).indices.sort(dim=-1).values
        return scores.gather(-1, indices), indices

    def indices_sorted_alone(scores, n_active):
        """You sort the indices, and the weights stay in the order that they had: experts get the weights of others.
        Sorted or not, a weight and its index must stay together. The docstring wants the largest first."""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights, indices.sort(dim=-1).values

    @family(one=1, two=2)
    def always(count, scores, n_active):
        """`n_active` changes nothing: each token goes to {} of the experts, whatever it says. How many does the
        docstring ask for?"""
        return scores.topk(count, dim=-1)

    def one_too_many(scores, n_active):
        """Each token goes to one expert too many. Shared experts, which every token uses, are not the router's: where
        does the additional one come from?"""
        return scores.topk(n_active + 1, dim=-1)

    def best_left_out(scores, n_active):
        """The best expert of each token is left out: you begin with the second. Indices count from 0. Where does your
        slice begin?"""
        weights, indices = scores.sort(dim=-1, descending=True)
        return weights[..., 1 : n_active + 1], indices[..., 1 : n_active + 1]

    def first_experts(scores, n_active):
        """Every token goes to the experts 0, 1, 2, …: nothing is chosen. Is it the indices of `topk` that you return,
        or places in a result that is sorted already?"""
        indices = torch.arange(n_active, device=scores.device).expand(*scores.shape[:-1], -1)
        return scores.gather(-1, indices), indices

    def places_in_the_sorted(scores, n_active):
        """{The weights are right, and} your indices are 0, 1, 2, …: places in a result that is sorted already. Which
        experts stood there? `sort` and `topk` return these numbers as well."""
        weights = scores.topk(n_active, dim=-1).values
        return weights, torch.arange(n_active, device=scores.device).expand_as(weights)

    def first_token_for_all(scores, n_active):
        """All tokens of a sentence go where its first token goes, with that token's weights. Each token has logits of
        its own, so each chooses by itself."""
        weights, indices = scores[:, :1].expand_as(scores).topk(n_active, dim=-1)
        return weights, indices

    def last_token_for_all(scores, n_active):
        """All tokens of a sentence go where its last token goes, with that token's weights. Each token has logits of
        its own, so each chooses by itself."""
        return scores[:, -1:].expand_as(scores).topk(n_active, dim=-1)

    def mean_of_the_sentence(scores, n_active):
        """A sentence chooses as a whole: the scores of its tokens are averaged first, and all tokens go to the same
        experts. Each token chooses by itself."""
        return scores.mean(dim=1, keepdim=True).expand_as(scores).topk(n_active, dim=-1)

    def chosen_by_the_first_token(scores, n_active):
        """The first token of a sentence chooses the experts of all its tokens. {The weights are each token's own.} Each
        token chooses by itself."""
        indices = scores[:, :1].topk(n_active, dim=-1).indices.expand(-1, scores.shape[1], -1)
        return scores.gather(-1, indices), indices


@route.wrong(stage="chosen", alone=True)
class ChosenAlone:
    def experts_choose_tokens(scores, n_active):
        """Your `topk` runs over the tokens: each expert chooses `n_active` tokens. Such routers exist (*expert
        choice*); here each token chooses experts. Over which axis must `topk` run?"""
        return scores.topk(n_active, dim=1)

    def one_too_few(scores, n_active):
        """Each token goes to one expert too few. `topk(n_active)` returns so many; what is subtracted from it?"""
        return scores.topk(n_active - 1, dim=-1)

    def half_of_the_experts(scores, n_active):
        """`n_active` changes nothing: each token goes to half of the experts, whatever it says. How many does the
        docstring ask for?"""
        return scores.topk(scores.shape[-1] // 2, dim=-1)

    def not_chosen_are_zero(scores, n_active):
        """Your weights are as wide as all experts, with zeros for those that were not chosen. {The numbers are right.}
        The docstring asks for (batch, seq, n_active): the weights of the chosen alone, beside their indices."""
        weights, indices = scores.topk(n_active, dim=-1)
        return torch.zeros_like(scores).scatter(-1, indices, weights), indices

    def ones_and_zeros_for_indices(scores, n_active):
        """In place of indices you return a table of ones and zeros: whether an expert was chosen. The docstring asks
        for the experts' numbers, (batch, seq, n_active)."""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights, torch.zeros_like(scores).scatter(-1, indices, 1).long()

    def indices_as_one_hot_vectors(scores, n_active):
        """Each index is a vector of ones and zeros, one-hot, in your result. The docstring asks for the experts'
        numbers, (batch, seq, n_active)."""
        weights, indices = scores.topk(n_active, dim=-1)
        return weights, F.one_hot(indices, scores.shape[-1])


@route.wrong(stage="shares")
class Shares:
    def as_they_are(weights):
        """Your weights are the probabilities as the softmax over all experts gives them: they do not sum to 1. OLMoE
        leaves them so; here, as in Mixtral, the chosen share the whole. What must the weights of a token be divided
        by?"""
        return weights

    def all_alike(weights):
        """All experts of a token get the same weight. {The choice is right, but} how sure the router was is lost, and
        no gradient reaches it. Which numbers did `topk` choose by?"""
        return weights * 0 + 1 / weights.shape[-1]

    def by_the_largest(weights):
        """You divide by the largest weight, so that the best expert has the weight 1. The weights of a token must sum
        to 1: what do you divide by then?"""
        return weights / weights.max(dim=-1, keepdim=True).values

    def by_the_length(weights):
        """You divide by the root of the sum of squares, as a vector is normalized. The weights of a token must sum to
        1: what do you divide by then? `F.normalize` has an argument `p` for it."""
        return F.normalize(weights, dim=-1)

    def softmax_again(weights):
        """The weights go through a softmax after they have been chosen among probabilities: they are nearly alike.
        Either the softmax of the chosen *logits*, or the chosen probabilities divided by their sum."""
        return weights.softmax(dim=-1)

    @family(
        over_the_tokens_of_a_sentence=(1, "over the tokens of a sentence"),
        over_the_sentences=(0, "over the sentences of the batch"),
        over_tokens_and_experts=((1, 2), "over all tokens and experts of a sentence"),
        over_everything=((0, 1, 2), "over everything there is"),
    )
    def summed(axes, weights):
        """Your weights are divided by a sum {}. The weights of *one token* must sum to 1. Over which axis do you
        add?"""
        return weights / weights.sum(dim=axes, keepdim=True)

    def by_the_number(weights):
        """The probabilities are divided by `n_active`, as for a mean. The weights of a token must sum to 1: divide by
        what they sum to now."""
        return weights / weights.shape[-1]

    def sum_of_n_active(weights):
        """The weights of a token sum to `n_active`: {they are shares of 1, and} each is multiplied by the number of
        active experts. The sum must be 1, so that the mixture is a mean of experts."""
        return by_their_sum(weights) * weights.shape[-1]

    def squares(weights):
        """Your weights are shares of the *squared* probabilities. Is each probability multiplied by itself, or are the
        logits doubled? Both come to the same."""
        return by_their_sum(weights**2)

    def rounded_to_the_best(weights):
        """The best expert gets the weight 1 and the others 0. Then they need not be computed at all; here every chosen
        expert has its share."""
        return (weights == weights.max(dim=-1, keepdim=True).values).to(weights.dtype) + 0 * weights

    def one_added_to_the_sum(weights):
        """The sum that you divide by has something added to it, 1 perhaps: the weights do not sum to 1. The sum of
        probabilities is never 0, so no safeguard is needed."""
        return weights / (1 + weights.sum(dim=-1, keepdim=True))


@route.wrong
class WrongAnswers:
    def weights_first(logits, n_active):
        """You return the weights first and the indices second, in the order of `topk`. {Both are right.} The docstring
        asks for the indices first."""
        indices, weights = route.reference(logits, n_active)
        return weights, indices

    def probabilities_first(logits, n_active):
        """You return what `topk` returns: the weights first, the indices second, and the weights as the softmax over
        all experts gives them. The docstring asks for the indices first, and for weights that sum to 1."""
        weights, indices = logits.softmax(dim=-1).topk(n_active, dim=-1)
        return weights, indices

    def chosen_by_the_logits_beside_them(logits, n_active):
        """The weights are the logits of the chosen, as they are: no softmax, and no division. {The indices are right.}
        What makes shares of 1 of them?"""
        weights, indices = logits.topk(n_active, dim=-1)
        return indices, weights

    def zeros_before_the_softmax(logits, n_active):
        """You set the logits of the other experts to 0 before the softmax. A logit of 0 still has exp(0) = 1, so they
        keep a share. Which number has no share after a softmax?"""
        indices = logits.topk(n_active, dim=-1).indices
        kept = torch.zeros_like(logits).scatter(-1, indices, logits.gather(-1, indices))
        return indices, kept.softmax(dim=-1).gather(-1, indices)

    def chosen_over_the_tokens(logits, n_active):
        """{The experts are the right ones.} The softmax of their logits runs over the tokens of the sentence: the
        weights of *one token* must sum to 1. Which axis holds the experts of a token?"""
        chosen, indices = logits.topk(n_active, dim=-1)
        return indices, chosen.softmax(dim=1)

    def weights_the_other_way_round(logits, n_active):
        """{The experts are the right ones, the largest logit first, and} their weights stand the other way round: the
        best expert gets the smallest. Are the two sorted in one step?"""
        indices, weights = route.reference(logits, n_active)
        return indices, weights.flip(-1)

    def divided_by_all_experts(logits, n_active):
        """The probabilities are divided by the number of *all* experts. The weights of a token must sum to 1: divide by
        what those of the chosen sum to."""
        weights, indices = logits.softmax(dim=-1).topk(n_active, dim=-1)
        return indices, weights / logits.shape[-1]

    def halved_logits(logits, n_active):
        """Your logits are divided by 2 before the softmax, as by a temperature. A router has none: its softmax takes
        the logits as they are."""
        weights, indices = (logits / 2).softmax(dim=-1).topk(n_active, dim=-1)
        return indices, by_their_sum(weights)

    def tokens_of_all_sentences_joined(logits, n_active):
        """The sentences are joined: your results have one axis for all tokens. {The numbers are right.} Give them the
        batch back: (batch, seq, n_active)."""
        return tuple(result.flatten(0, 1) for result in route.reference(logits, n_active))

    def weights_alone(logits, n_active):
        """You return the weights alone. Who reads them must also know which experts they belong to: the docstring asks
        for the indices, and then the weights."""
        return route.reference(logits, n_active)[1]

    def indices_alone(logits, n_active):
        """You return the indices alone. The experts are chosen; how much each of them counts is missing. The docstring
        asks for the indices, and then the weights."""
        return route.reference(logits, n_active)[0]

    def last_sentence_alone(logits, n_active):
        """Your result has one sentence, however many come in. Does a loop return, or overwrite, what it made of the
        sentences before?"""
        return tuple(result[-1:] for result in route.reference(logits, n_active))

    def best_of_each_group(logits, n_active):
        """You divide the experts into `n_active` groups, and take the best of each. Some routers do limit the groups;
        this one takes the best experts, wherever they are."""
        parts = logits.tensor_split(n_active, dim=-1)
        starts = torch.tensor([0, *(part.shape[-1] for part in parts[:-1])], device=logits.device).cumsum(0)
        indices = torch.stack([part.argmax(dim=-1) for part in parts], dim=-1) + starts
        weights, order = logits.gather(-1, indices).softmax(dim=-1).sort(dim=-1, descending=True)
        return indices.gather(-1, order), weights
