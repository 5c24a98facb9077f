"""A mixture of experts: each token goes through its experts, and the results are added up."""

import torch

from ..exercise import exercise, family


class _SineExpert:
    """An expert for the inputs: a nonlinear function of each number, which a card shows as a formula."""

    def __init__(self, frequency, shift):
        self.frequency, self.shift = frequency, shift

    def __call__(self, tokens):
        return (self.frequency * tokens + self.shift).sin()

    def __repr__(self):
        return f"sin({self.frequency:g}·tokens + {self.shift:g})"


def _routed_inputs(draw, batch=2, seq=7, d_model=5, n_experts=4, n_active=3):
    experts = [_SineExpert(number + 1, (number + 1) / 5) for number in range(n_experts)]
    indices = draw(batch, seq, n_experts).argsort(dim=-1)[..., :n_active]
    return draw(batch, seq, d_model), indices, draw(batch, seq, n_active).sigmoid(), experts, _SineExpert(0.5, 0.7)


def keep_indices(indices):
    """Send each token to the experts that `indices` names."""
    return indices


def keep_weights(weights):
    """Use the weights unchanged."""
    return weights


def mix_experts(x, indices, weights, experts):
    """Add up what a token's experts return, each result times its weight."""
    tokens, indices, weights = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    mixed = torch.zeros_like(tokens)
    for number, expert in enumerate(experts):
        row, place = (indices == number).nonzero(as_tuple=True)
        mixed = mixed.index_add(0, row, weights[row, place, None] * expert(tokens[row]))
    return mixed.view_as(x)


def apply_shared_expert(x, shared):
    """Let the shared expert read every token."""
    return shared(x.flatten(0, 1)).view_as(x)


def add_shared_result(mixed, common, x):
    """Add what the shared expert returns for each token."""
    return mixed + common


@exercise(
    inputs=_routed_inputs,
    axes={
        "x": "batch seq d_model",
        "indices": "batch seq n_active",
        "weights": "batch seq n_active",
        "return": "batch seq d_model",
    },
    hints=(
        "Which tokens does expert 2 read? For each of these tokens, which entry of `weights` belongs to expert 2, and "
        "does this entry depend on the place of expert 2 among the token's experts?",
        "Merge batch and seq into one axis. For each expert, find the rows and the places at which `indices` names "
        "it, pass these rows to the expert, multiply its results by the weights at these places, and add the products "
        "to the same rows.",
        "`for number, expert in enumerate(experts): row, place = (indices == number).nonzero(as_tuple=True)`, then "
        "`mixed[row] += weights[row, place, None] * …`; at the end `+ shared(…)`",
    ),
)
def mixture_of_experts(
    x,
    indices,
    weights,
    experts,
    shared,
    *,
    routed=keep_indices,
    shares=keep_weights,
    mixed=mix_experts,
    common=apply_shared_expert,
    result=add_shared_result,
):
    """Return the weighted sum of each token's experts, plus what the shared expert returns for the token."""
    return result(mixed(x, routed(indices), shares(weights), experts), common(x, shared), x)


mixture_of_experts.example("one expert for each token", n_active=1, plain=True)
mixture_of_experts.example("every expert for each token", n_experts=3, n_active=3)
mixture_of_experts.example("experts that no token needs", seq=2, batch=1, n_experts=9, n_active=2)
mixture_of_experts.example("one token", batch=1, seq=1)


@mixture_of_experts.probe
def one_crowded_expert(draw):
    """one expert that every token needs"""
    x, indices, weights, experts, shared = _routed_inputs(draw, n_active=1)
    return x, torch.full_like(indices, 2), weights, experts, shared


@mixture_of_experts.probe
def parts_that_return_their_input(draw):
    """experts that return the very tensor they are given"""
    x, indices, weights, experts, _ = _routed_inputs(draw)
    return x, indices, weights, [_unchanged] * len(experts), _unchanged


def _unchanged(tokens):
    return tokens


@mixture_of_experts.right
class RightAnswers:
    def token_by_token(x, indices, weights, experts, shared):
        rows = []
        for token, numbers, its_weights in zip(x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)):
            row = shared(token[None])
            for number, weight in zip(numbers.tolist(), its_weights):
                row = row + weight * experts[number](token[None])
            rows.append(row)
        return torch.cat(rows).view_as(x)

    def all_experts_for_all(x, indices, weights, experts, shared):
        """Compute all experts for every token, and multiply by 0 the results that are not needed: the numbers are the
        same."""
        all_results = torch.stack([expert(x.flatten(0, 1)).view_as(x) for expert in experts], dim=2)
        dense_weights = torch.zeros(*x.shape[:2], len(experts)).to(weights).scatter(-1, indices, weights)
        return torch.einsum("bse,bsed->bsd", dense_weights, all_results) + apply_shared_expert(x, shared)

    def by_one_hot_vectors(x, indices, weights, experts, shared):
        chosen = torch.nn.functional.one_hot(indices, len(experts)).to(weights)  # (batch, seq, n_active, n_experts)
        dense_weights = (chosen * weights[..., None]).sum(dim=2)
        total = apply_shared_expert(x, shared)
        for number, expert in enumerate(experts):
            total = total + dense_weights[..., number : number + 1] * expert(x.flatten(0, 1)).view_as(x)
        return total

    def sorted_by_expert(x, indices, weights, experts, shared):
        tokens, n_active = x.flatten(0, 1), indices.shape[-1]
        order = indices.flatten().argsort()
        rows = order // n_active
        parts = tokens[rows].split(indices.flatten().bincount(minlength=len(experts)).tolist())
        results = torch.cat([expert(part) for expert, part in zip(experts, parts)])
        return shared(tokens).index_add(0, rows, results * weights.flatten()[order, None]).view_as(x)

    def place_by_place(x, indices, weights, experts, shared):
        total = apply_shared_expert(x, shared).clone()
        for place in range(indices.shape[-1]):
            for number, expert in enumerate(experts):
                is_chosen = indices[..., place] == number
                if is_chosen.any():
                    total[is_chosen] += weights[..., place][is_chosen][:, None] * expert(x[is_chosen])
        return total

    def results_put_back_by_scatter(x, indices, weights, experts, shared):
        tokens, numbers = x.flatten(0, 1), indices.flatten(0, 1)
        outputs = torch.zeros(*numbers.shape, x.shape[-1]).to(x)
        for number, expert in enumerate(experts):
            is_chosen = numbers == number
            outputs[is_chosen] = expert(tokens[is_chosen.nonzero()[:, 0]])
        return ((outputs * weights.flatten(0, 1)[..., None]).sum(dim=1) + shared(tokens)).view_as(x)


@mixture_of_experts.property
def weights_of_zero_leave_the_shared(function, x, indices, weights, experts, shared):
    """With weights of zero, the result is what the shared expert returns for each token."""
    result = function(x, indices, torch.zeros_like(weights), experts, shared)
    return torch.allclose(result, apply_shared_expert(x, shared), atol=1e-5)


@mixture_of_experts.property
def places_do_not_matter(function, x, indices, weights, experts, shared):
    """The order of a token's experts does not matter, as long as their weights are in the same order."""
    result = function(x, indices.flip(-1), weights.flip(-1), experts, shared)
    return torch.allclose(result, function(x, indices, weights, experts, shared), atol=1e-5)


@mixture_of_experts.wrong(stage="routed")
class Routed:
    def experts_of_the_first_token(indices):
        """All tokens of a sentence go through the experts of its first token. Each token has its own row of
        `indices`."""
        return indices[:, :1].expand_as(indices)

    def experts_of_the_first_sentence(indices):
        """In every sentence, each token goes through the experts of the token at the same place in the first sentence.
        `indices` has an axis for the batch: does your code use it?"""
        return indices[:1].expand_as(indices)

    def experts_of_the_very_first_token(indices):
        """All tokens of all sentences go through the experts of the very first token. Each token has its own row of
        `indices`."""
        return indices[:1, :1].expand_as(indices)

    def experts_of_the_last_token(indices):
        """All tokens of a sentence go through the experts of its last token. Each token has its own row of `indices`.
        Does a loop overwrite the row?"""
        return indices[:, -1:].expand_as(indices)

    def experts_of_the_next_token(indices):
        """Each token goes through the experts of the next token: `indices` is shifted by one place relative to `x`.
        Look at your slices."""
        return indices.roll(-1, dims=1)

    def experts_of_the_token_before(indices):
        """Each token goes through the experts of the token before it: `indices` is shifted by one place relative to
        `x`. Look at your slices."""
        return indices.roll(1, dims=1)

    def experts_of_another_sentence(indices):
        """The sentences of the batch are swapped: a token goes through the experts of a token in a different sentence.
        Are batch and seq merged in the same way for `x` and for `indices`?"""
        return indices.flip(0)

    def first_place_for_every_weight(indices):
        """A token goes only through its first expert, once for each of its weights. Which of its experts belongs to the
        second weight?"""
        return indices[..., :1].expand_as(indices)


@mixture_of_experts.wrong(stage="shares")
class Shares:
    def divided_by_their_sum(weights):
        """You divide the weights by their sum. The router decides whether they sum to 1: here the weights are used
        unchanged, and the docstring says that they need not sum to 1."""
        return weights / weights.sum(dim=-1, keepdim=True)

    def softmax_of_the_weights(weights):
        """You apply a softmax to the weights. They are weights already, computed from the router's logits: use them
        unchanged."""
        return weights.softmax(dim=-1)

    def ones(weights):
        """The weights have no effect: each expert's result is added as it is. Where do you multiply by `weights`?"""
        return torch.ones_like(weights)

    def equal_shares(weights):
        """The weights have no effect: you compute the plain mean of what a token's experts return. Where do you
        multiply by `weights`?"""
        return torch.ones_like(weights) / weights.shape[-1]

    def divided_by_their_number(weights):
        """You divide the weighted sum by the number of a token's experts. The weights already say how much each expert
        counts: do you use `mean` instead of `sum`?"""
        return weights / weights.shape[-1]

    def weight_of_the_first_place(weights):
        """You multiply the output of each of a token's experts by the token's first weight. The weight of an expert is
        at the same place in `weights` as the expert's number in `indices`: do you read `weights` at that place?"""
        return weights[..., :1].expand_as(weights)

    def weight_of_the_last_place(weights):
        """You multiply the output of each of a token's experts by the token's last weight. The weight of an expert is
        at the same place in `weights` as the expert's number in `indices`: do you read `weights` at that place?"""
        return weights[..., -1:].expand_as(weights)

    def mean_of_the_weights(weights):
        """You multiply the output of each of a token's experts by the *mean* of the token's weights. Each expert has
        its own weight: at which place of `weights`?"""
        return weights.mean(dim=-1, keepdim=True).expand_as(weights)

    def sum_of_the_weights(weights):
        """You multiply the output of each of a token's experts by the *sum* of the token's weights. Each expert has its
        own weight: at which place of `weights`?"""
        return weights.sum(dim=-1, keepdim=True).expand_as(weights)

    def weights_of_a_token_reversed(weights):
        """The weights of a token are in reverse order: the first expert gets the last weight. Do you sort indices and
        weights separately, or reverse one of them?"""
        return weights.flip(-1)

    def weights_sorted_without_the_experts(weights):
        """You sort the weights of a token but not its experts, so an expert gets the weight of a different expert.
        Weights and indices are in the same order when they are passed: do not sort them."""
        return weights.sort(dim=-1, descending=True).values

    def weights_of_the_first_token(weights):
        """All tokens of a sentence use the weights of its first token. Each token has its own row of `weights`."""
        return weights[:, :1].expand_as(weights)

    def weights_of_the_first_sentence(weights):
        """In every sentence, each token uses the weights of the token at the same place in the first sentence.
        `weights` has an axis for the batch: does your code use it?"""
        return weights[:1].expand_as(weights)

    def weights_of_the_next_token(weights):
        """Each token uses the weights of the next token: `weights` is shifted by one place relative to `x`. Look at
        your slices."""
        return weights.roll(-1, dims=1)

    def weights_squared(weights):
        """Each result is multiplied by its weight twice. Do you multiply once in the loop, and once more where you add
        up the results?"""
        return weights**2

    def what_is_left_of_one(weights):
        """You multiply each expert's output by 1 minus its weight, so the expert with the smallest weight counts most.
        Where do you subtract a weight from 1?"""
        return 1 - weights


def _sum_over_experts(x, indices, weights, experts, term=lambda expert, tokens, weight: weight * expert(tokens)):
    """Run the loop of the reference with a different rule for what is added."""
    tokens, indices, weights = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    mixed = torch.zeros_like(tokens)
    for number, expert in enumerate(experts):
        row, place = (indices == number).nonzero(as_tuple=True)
        mixed = mixed.index_add(0, row, term(expert, tokens[row], weights[row, place, None]))
    return mixed.view_as(x)


def _weighted_results(x, indices, weights, experts):
    """Return the results of each token's experts, each times its weight; the tensor has shape (batch, seq, n_active,
    d_model)."""
    all_results = torch.stack([expert(x.flatten(0, 1)).view_as(x) for expert in experts], dim=2)
    return weights[..., None] * all_results.gather(2, indices[..., None].expand(-1, -1, -1, x.shape[-1]))


@mixture_of_experts.wrong(stage="mixed")
class Mixed:
    def last_expert_stays(x, indices, weights, experts):
        """A later expert overwrites the result of an earlier one: only the token's expert with the largest number is
        left. The results must be added up: which sign is missing before your `=`?"""
        tokens, numbers, shares = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(experts):
            row, place = (numbers == number).nonzero(as_tuple=True)
            mixed = mixed.index_copy(0, row, shares[row, place, None] * expert(tokens[row]))
        return mixed.view_as(x)

    def last_place_stays(x, indices, weights, experts):
        """A later place overwrites the result of an earlier one: only the expert that is named last in a token's row is
        left. The results must be added up: which sign is missing before your `=`?"""
        return _weighted_results(x, indices, weights, experts)[:, :, -1]

    def first_place_alone(x, indices, weights, experts):
        """Each token goes only through its first expert. `indices` names `n_active` experts for each token: which loop
        is missing?"""
        return _weighted_results(x, indices, weights, experts)[:, :, 0]

    def last_place_left_out(x, indices, weights, experts):
        """The last of a token's experts is never used: a loop over the places ends one place too early. How many places
        does a row of `indices` have?"""
        return _weighted_results(x, indices, weights, experts)[:, :, :-1].sum(dim=2)

    def first_place_left_out(x, indices, weights, experts):
        """The first of a token's experts is never used: a loop over the places begins at 1. Places are counted from
        0."""
        return _weighted_results(x, indices, weights, experts)[:, :, 1:].sum(dim=2)

    def largest_of_each_feature(x, indices, weights, experts):
        """For each feature, you keep the largest of what a token's experts return. The results must be added up, each
        times its weight."""
        return _weighted_results(x, indices, weights, experts).max(dim=2).values

    def product_of_the_experts(x, indices, weights, experts):
        """You multiply what a token's experts return. The results must be added up, each times its weight."""
        return _weighted_results(x, indices, weights, experts).prod(dim=2)

    def summed_over_the_tokens(x, indices, weights, experts):
        """You sum over the tokens of a sentence as well, so all of them get the same result. Each token gets the sum
        over *its* experts. Over which axis do you sum?"""
        return _weighted_results(x, indices, weights, experts).sum(dim=(1, 2))[:, None].expand_as(x)

    def weight_before_the_expert(x, indices, weights, experts):
        """You multiply the expert's *input* by the weight. An expert is not linear: it must read the token as it is,
        and its result is multiplied by the weight."""
        return _sum_over_experts(x, indices, weights, experts, lambda expert, tokens, weight: expert(weight * tokens))

    def weight_before_and_after(x, indices, weights, experts):
        """You multiply both the expert's input and its result by the weight. An expert must read the token as it is:
        which of the two products do you keep?"""
        return _sum_over_experts(
            x, indices, weights, experts, lambda expert, tokens, weight: weight * expert(weight * tokens)
        )

    def token_itself_added(x, indices, weights, experts):
        """You add the token itself to each expert's result, before you multiply by the weight. A residual connection
        belongs to the block, around the whole mixture."""
        return _sum_over_experts(
            x, indices, weights, experts, lambda expert, tokens, weight: weight * (tokens + expert(tokens))
        )

    def one_expert_after_the_other(x, indices, weights, experts):
        """An expert reads the token plus the results of the earlier experts: your sum overwrites the tokens that later
        experts read. All experts read `x`. Which name holds the sum?"""
        tokens, numbers, shares = x.flatten(0, 1).clone(), indices.flatten(0, 1), weights.flatten(0, 1)
        for number, expert in enumerate(experts):
            row, place = (numbers == number).nonzero(as_tuple=True)
            tokens = tokens.index_add(0, row, shares[row, place, None] * expert(tokens[row]))
        return tokens.view_as(x)

    def in_the_order_of_the_experts(x, indices, weights, experts):
        """The results stay in the order of the experts: first all tokens of expert 0, then those of expert 1. Each
        result belongs to the token that the expert read. Which rows did the expert read, and where do you put its
        results?"""
        tokens, n_active = x.flatten(0, 1), indices.shape[-1]
        order = indices.flatten().argsort(stable=True)
        parts = tokens[order // n_active].split(indices.flatten().bincount(minlength=len(experts)).tolist())
        results = torch.cat([expert(part) for expert, part in zip(experts, parts)])
        return (results * weights.flatten()[order, None]).view(*indices.shape, -1).sum(dim=2)

    def sorted_results_with_weights_as_given(x, indices, weights, experts):
        """The results stay in the order of the experts, first all tokens of expert 0, then those of expert 1, but the
        weights are in the order of the tokens. Each result belongs to the token that the expert read. Where do you put
        the rows back?"""
        tokens, n_active = x.flatten(0, 1), indices.shape[-1]
        order = indices.flatten().argsort(stable=True)
        parts = tokens[order // n_active].split(indices.flatten().bincount(minlength=len(experts)).tolist())
        results = torch.cat([expert(part) for expert, part in zip(experts, parts)])
        return (results.view(*indices.shape, -1) * weights[..., None]).sum(dim=2)

    def put_back_with_weights_as_given(x, indices, weights, experts):
        """{Each result is added to its token, but} the results are sorted by expert and the weights are not, so results
        are multiplied by the wrong weights. Put the weights in the same order: `weights.flatten()[order]`."""
        tokens, n_active = x.flatten(0, 1), indices.shape[-1]
        order = indices.flatten().argsort(stable=True)
        rows = order // n_active
        parts = tokens[rows].split(indices.flatten().bincount(minlength=len(experts)).tolist())
        results = torch.cat([expert(part) for expert, part in zip(experts, parts)]) * weights.flatten()[:, None]
        return torch.zeros_like(tokens).index_add(0, rows, results).view_as(x)

    def tokens_repeated_as_a_whole(x, indices, weights, experts):
        """The copies of the tokens do not line up with their experts. `x.repeat(n_active, 1)` makes the tokens 0, 1, 2,
        …, 0, 1, 2, …; the flat `indices` has all experts of token 0 first. Which function returns 0, 0, 0, 1, 1, 1?"""
        tokens, numbers = x.flatten(0, 1), indices.flatten()
        copies = tokens.repeat(indices.shape[-1], 1)
        outputs = torch.zeros_like(copies)
        for number, expert in enumerate(experts):
            row = (numbers == number).nonzero()[:, 0]
            outputs = outputs.index_copy(0, row, expert(copies[row]))
        return (outputs.view(*indices.shape, -1) * weights[..., None]).sum(dim=2)

    def expert_of_the_next_number(x, indices, weights, experts):
        """Each token goes to the expert *after* the one in `indices`: you count experts from 1. `indices` counts from
        0."""
        return mix_experts(x, indices, weights, experts[1:] + experts[:1])

    def expert_of_the_number_before(x, indices, weights, experts):
        """Each token goes to the expert *before* the one in `indices`; index 0 leads to the last expert. `indices`
        counts from 0, as Python's lists do: do you subtract 1?"""
        return mix_experts(x, indices, weights, experts[-1:] + experts[:-1])

    def last_expert_never_used(x, indices, weights, experts):
        """The last of the experts is never used: it adds nothing to the tokens that need it. Where does your loop over
        the experts end?"""
        return mix_experts(x, indices, weights, experts[:-1])

    def expert_zero_never_used(x, indices, weights, experts):
        """Expert 0 is never used: it adds nothing to the tokens that need it. Does your loop begin at 1, or does your
        code read 0 as *no expert*?"""
        return mix_experts(x, indices, weights, [torch.zeros_like, *experts[1:]])

    def experts_as_many_as_are_active(x, indices, weights, experts):
        """You use only the first `n_active` experts. `n_active` is the number of experts of *one token*: how long is
        the list of all experts?"""
        return mix_experts(x, indices, weights, experts[: indices.shape[-1]])

    def first_experts_for_all(x, indices, weights, experts):
        """`indices` has no effect: every token goes through the experts 0, 1, 2, …, as many as it has weights. Which
        experts does its row of `indices` name?"""
        first = torch.arange(indices.shape[-1], device=x.device).expand_as(indices)
        return mix_experts(x, first, weights, experts)

    def all_experts_averaged(x, indices, weights, experts):
        """Neither `indices` nor `weights` has an effect: you compute the mean over *all* experts. A token goes through
        the experts in its row of `indices`, each with its weight."""
        return sum(expert(x.flatten(0, 1)).view_as(x) for expert in experts) / len(experts)

    def all_experts_added(x, indices, weights, experts):
        """Neither `indices` nor `weights` has an effect: you add up the results of *all* experts. A token goes through
        the experts in its row of `indices`, each with its weight."""
        return sum(expert(x.flatten(0, 1)).view_as(x) for expert in experts)

    def all_experts_times_the_sum(x, indices, weights, experts):
        """Every expert reads every token, and you multiply its result by the sum of the token's weights: `indices` has
        no effect. Which of the weights belongs to which expert?"""
        return sum(expert(x.flatten(0, 1)).view_as(x) for expert in experts) * weights.sum(dim=-1, keepdim=True)

    def weight_by_the_number_of_the_expert(x, indices, weights, experts):
        """You use an expert's *number* as the place of its weight: `weights[…, number]`. A row of `weights` has
        `n_active` places, and `indices` says which expert belongs to each place."""
        places = indices.clamp(max=indices.shape[-1] - 1)
        return mix_experts(x, indices, weights.gather(-1, places), experts)

    def mean_of_an_experts_tokens(x, indices, weights, experts):
        """You average an expert's results over all its tokens. Each token gets what the expert returns for *that*
        token. Over which axis do you compute a mean?"""

        def same_for_all(expert, tokens, weight):
            results = expert(tokens)
            return weight * (results.mean(dim=0, keepdim=True) if len(results) else results).expand_as(results)

        return _sum_over_experts(x, indices, weights, experts, same_for_all)

    @family(
        capacity_rounded_up=(lambda tokens, experts: -(-tokens // experts), "an equal share"),
        capacity_rounded_down=(lambda tokens, experts: tokens // experts, "an equal share, rounded down,"),
        capacity_with_a_quarter_more=(
            lambda tokens, experts: int(1.25 * tokens / experts),
            "1.25 times an equal share",
        ),
    )
    def limited(capacity, x, indices, weights, experts):
        """An expert reads at most {} of the tokens, and you drop the rest. Such a *capacity* keeps shapes fixed on some
        machines, but it drops tokens. Here no token is dropped."""
        tokens, numbers, shares = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
        limit = capacity(numbers.numel(), len(experts))
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(experts):
            row, place = (found[:limit] for found in (numbers == number).nonzero(as_tuple=True))
            mixed = mixed.index_add(0, row, shares[row, place, None] * expert(tokens[row]))
        return mixed.view_as(x)


@mixture_of_experts.wrong(stage="common")
class Common:
    def shared_expert_forgotten(x, shared):
        """The shared expert is missing: `shared` has no effect on your result. Every token goes through the shared
        expert, whatever the router decides."""
        return torch.zeros_like(x)

    def token_for_the_shared_expert(x, shared):
        """You add the token itself to the experts' sum instead of what `shared` returns for it. A residual connection
        belongs to the block: here the shared expert must be called."""
        return x

    def shared_expert_with_a_residual(x, shared):
        """Your result contains the token itself: you add `x` as well as the result of the shared expert. A residual
        connection belongs to the block, around the whole mixture."""
        return x + shared(x.flatten(0, 1)).view_as(x)

    def shared_expert_twice(x, shared):
        """You add the shared expert's result twice. Do you add it in your loop, or with the list of experts, and once
        more at the end?"""
        return 2 * apply_shared_expert(x, shared)

    def shared_expert_halved(x, shared):
        """You multiply the shared expert's result by one half. The shared expert has no weight: what it returns for a
        token is added as it is."""
        return apply_shared_expert(x, shared) / 2

    def shared_expert_of_the_mean(x, shared):
        """The shared expert reads the mean of the sentence. It must read each token, as the other experts do."""
        return apply_shared_expert(x.mean(dim=1, keepdim=True).expand_as(x), shared)

    def shared_expert_on_its_own_result(x, shared):
        """You call the shared expert twice: the second call reads what the first one returned. Once is enough."""
        return apply_shared_expert(apply_shared_expert(x, shared), shared)


@mixture_of_experts.wrong(stage="result")
class Result:
    def mean_with_the_shared(mixed, common, x):
        """You compute the mean of the experts' sum and the shared expert's result. The two must be added, and the sum
        must not be divided."""
        return (mixed + common) / 2

    def shared_subtracted(mixed, common, x):
        """You subtract the shared expert's result from the experts' sum, or the reverse. The two must be added."""
        return mixed - common

    def shared_multiplied(mixed, common, x):
        """You multiply the experts' sum by what the shared expert returns. The two must be added."""
        return mixed * common

    def shared_alone(mixed, common, x):
        """Your result contains only the shared expert: what the chosen experts return is lost. At the end, do you use
        the sum from your loop?"""
        return common

    def shared_by_the_sentence_alone(mixed, common, x):
        """Your result contains one sentence, however many `x` has. Does a loop return early, or overwrite the results
        of earlier sentences?"""
        return (mixed + common)[-1:]


@mixture_of_experts.wrong
class WrongAnswers:
    def shared_reads_the_sum(x, indices, weights, experts, shared):
        """The shared expert reads the sum of the other experts. It must read the token itself, as the other experts
        do."""
        mixed = mix_experts(x, indices, weights, experts)
        return mixed + apply_shared_expert(mixed, shared)

    def shared_reads_the_sum_alone(x, indices, weights, experts, shared):
        """The shared expert reads the sum of the other experts, and you return only its result. The shared expert must
        read the token itself, and its result must be added to that sum."""
        return apply_shared_expert(mix_experts(x, indices, weights, experts), shared)

    def shared_once_for_each_expert(x, indices, weights, experts, shared):
        """You add the shared expert's result once for each of a token's experts. The addition is inside a loop, but
        belongs after it."""
        return mix_experts(x, indices, weights, experts) + indices.shape[-1] * apply_shared_expert(x, shared)

    def shared_with_the_weights(x, indices, weights, experts, shared):
        """You multiply the shared expert's result by the sum of the other experts' weights. The shared expert has no
        weight: what it returns for a token is added as it is."""
        total = weights.sum(dim=-1, keepdim=True)
        return mix_experts(x, indices, weights, experts) + total * apply_shared_expert(x, shared)

    def shared_with_the_first_weight(x, indices, weights, experts, shared):
        """You multiply the shared expert's result by the first of the token's weights. The shared expert has no weight:
        what it returns for a token is added as it is."""
        return mix_experts(x, indices, weights, experts) + weights[..., :1] * apply_shared_expert(x, shared)

    def shared_with_the_rest_of_one(x, indices, weights, experts, shared):
        """You multiply the shared expert's result by 1 minus the sum of the weights. The shared expert has no weight:
        what it returns for a token is added as it is, whatever the sum of the weights."""
        rest = 1 - weights.sum(dim=-1, keepdim=True)
        return mix_experts(x, indices, weights, experts) + rest * apply_shared_expert(x, shared)

    def shared_as_one_more_of_the_mean(x, indices, weights, experts, shared):
        """You divide the sum of all results by their number, the shared expert included. The weights say how much each
        expert counts, and the shared expert's result is added as it is."""
        total = mix_experts(x, indices, weights, experts) + apply_shared_expert(x, shared)
        return total / (indices.shape[-1] + 1)

    def sentences_and_tokens_exchanged(x, indices, weights, experts, shared):
        """You flatten `x` token by token over the batch, but `indices` sentence by sentence: most tokens go through the
        experts of a different token. Do you transpose one of the two before you flatten it?"""
        other = x.transpose(0, 1).reshape(x.shape)
        mixed = mix_experts(other, indices, weights, experts)
        return mixed.view(x.shape[1], x.shape[0], -1).transpose(0, 1) + apply_shared_expert(x, shared)

    def tokens_of_all_sentences_joined(x, indices, weights, experts, shared):
        """The sentences are joined: your result has one axis for all tokens. {The numbers are right.} Restore the shape
        of `x`."""
        return mixture_of_experts.reference(x, indices, weights, experts, shared).flatten(0, 1)

    def one_result_for_each_place(x, indices, weights, experts, shared):
        """Your result keeps an axis for the places of `indices`: you do not add up the results of a token's experts.
        Over which axis is the sum missing?"""
        return _weighted_results(x, indices, weights, experts) + apply_shared_expert(x, shared)[:, :, None]
