"""Multi-head attention under a mask, as a module."""

import functools

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import linear, scaled_dot_product_attention

from .. import attention_steps as steps
from ..ch4_multi_head.merge_heads import Refused, Scrambled, merge_heads
from ..ch4_multi_head.multi_head_attention import Scale
from ..ch4_multi_head.split_heads import Cuts, split_heads
from ..exercise import exercise, family, rows_of, ways
from .masked_attention import EmptyRows, Masked, WrongAnswers, with_a_large_negative_number, zeros_for_empty_rows

LAYERS = ("q_proj", "k_proj", "v_proj", "out_proj")


def parameters(x):
    """Return the weights and biases that the check puts into the four layers, for tokens such as ``x``."""
    d_model, draw = x.shape[-1], torch.Generator().manual_seed(x.shape[-1])
    sizes = {"weight": (d_model, d_model), "bias": (d_model,)}
    drawn = {f"{name}.{kind}": torch.randn(sizes[kind], generator=draw) for name in LAYERS for kind in sizes}
    return {name: (2 * value / d_model**0.5).to(x) for name, value in drawn.items()}


def project(x, name):
    """Apply one of the four layers."""
    values = parameters(x)
    return linear(x, values[f"{name}.weight"], values[f"{name}.bias"])


def as_function(answer):
    """Return the function that makes a layer from a class, puts the check's weights into the layer, and calls the
    layer."""
    if not isinstance(answer, (type, nn.Module)):
        return answer
    is_class = isinstance(answer, type) and issubclass(answer, nn.Module)

    @functools.wraps(answer if is_class else as_function, updated=())
    def masked_multi_head(query, key, value, mask, n_heads):
        if not is_class:
            raise ValueError("pass the class itself to the check, a subclass of `nn.Module`, not a layer made from it")
        layer = answer(query.shape[-1], n_heads).to(query)
        values, shapes = parameters(query), {name: tuple(p.shape) for name, p in layer.named_parameters()}
        if shapes != (expected := {name: tuple(value.shape) for name, value in values.items()}):
            mismatched = sorted(name for name in {*shapes, *expected} if shapes.get(name) != expected.get(name))
            raise ValueError(
                "the parameters must be those of four layers `nn.Linear(d_model, d_model)`: q_proj, k_proj, v_proj "
                f"and out_proj, each with a bias; missing, not needed or of a wrong shape: {', '.join(mismatched)}"
            )
        arguments = (query, key, value) if mask is None else (query, key, value, mask)
        return functional_call(layer, values, arguments)

    return masked_multi_head


def three_projections(query, key, value):
    """Make queries, keys and values, each from its own argument and with its own layer."""
    return project(query, "q_proj"), project(key, "k_proj"), project(value, "v_proj")


def output_projection(merged):
    """Apply the last layer to the merged heads."""
    return project(merged, "out_proj")


def _inputs(draw, batch=2, heads=3, q_len=7, k_len=6, d_head=4):
    d_model = heads * d_head
    query, key, value = draw(batch, q_len, d_model), draw(batch, k_len, d_model), draw(batch, k_len, d_model)
    mask, rows = draw(batch, 1, q_len, k_len) > 0, torch.arange(q_len)
    mask[..., rows, (rows + 1) % k_len] = False  # where there is room, every row has both a True and a False
    mask[..., rows, rows % k_len] = True
    return query, key, value, mask, heads


@exercise(
    inputs=_inputs,
    axes={
        "query": "batch q_len d_model",
        "key": "batch k_len d_model",
        "value": "batch k_len d_model",
        "mask": "batch one q_len k_len",
        "return": "batch q_len d_model",
    },
    hints=(
        "You have written the split, the merge and attention under a mask. In which order does a token pass through "
        "these three steps and the four layers?",
        "Project `query`, `key` and `value`, each with its own layer; split; attend under the mask in every head; "
        "merge; project. What must each head return without a mask, and what must it return for a query that sees "
        "nothing?",
        "in `__init__`: `self.q_proj = nn.Linear(…, …)` and three more; in `forward`: `query = "
        "self.q_proj(query).unflatten(…).transpose(…)`, …, `if mask is None:`, …, `return self.out_proj(…)`",
    ),
    as_function=as_function,
)
def masked_multi_head(
    query,
    key,
    value,
    mask,
    n_heads,
    *,
    projections=three_projections,
    split=split_heads.reference,
    scores=steps.dot_products,
    scale=steps.by_root_d,
    masked=with_a_large_negative_number,
    weights=steps.over_keys,
    empty_rows=zeros_for_empty_rows,
    output=steps.weighted_sum,
    merge=merge_heads.reference,
    combined=output_projection,
):
    """Attend in every head to the keys that ``mask`` allows; the result has shape (batch, q_len, d_model).

    Without a mask, every query sees every key. A query that may not see any key gets zeros from every head, and no
    gradient is NaN.
    """
    query, key, value = (split(x, n_heads) for x in projections(query, key, value))
    table = scale(scores(query, key), query.shape[-1])
    if mask is None:
        return combined(merge(output(weights(table), value)))
    table = masked(table, mask)
    return combined(merge(output(empty_rows(weights(table), mask), value)))


def _split_projections(query, key, value, n_heads):
    return (split_heads.reference(x, n_heads) for x in three_projections(query, key, value))


@masked_multi_head.right
class RightAnswers:
    @as_function
    class FromFourLayers(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.n_heads = n_heads
            for name in LAYERS:
                setattr(self, name, nn.Linear(d_model, d_model))

        def forward(self, query, key, value, mask=None):
            query, key, value = (
                layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
                for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
            )
            scores = query @ key.mT / query.shape[-1] ** 0.5
            if mask is not None:
                empty = ~mask.any(dim=-1, keepdim=True)
                scores = scores.masked_fill(~(mask | empty), float("-inf"))
            weights = scores.softmax(dim=-1)
            if mask is not None:
                weights = weights.masked_fill(empty, 0.0)
            return self.out_proj((weights @ value).transpose(1, 2).flatten(2))

    def fused(query, key, value, mask, n_heads):
        query, key, value = _split_projections(query, key, value, n_heads)
        if mask is None:
            return output_projection(merge_heads.reference(scaled_dot_product_attention(query, key, value)))
        sees_a_key = mask.any(-1, keepdim=True)
        output = scaled_dot_product_attention(query, key, value, attn_mask=mask | ~sees_a_key)
        return output_projection((output * sees_a_key).transpose(1, 2).flatten(2))

    def head_by_head(query, key, value, mask, n_heads):
        query, key, value = three_projections(query, key, value)
        heads = []
        for head, (q, k, v) in enumerate(zip(*(x.chunk(n_heads, -1) for x in (query, key, value)))):
            scores = q @ k.mT / q.shape[-1] ** 0.5
            if mask is not None:
                head_mask = mask.expand(len(q), n_heads, *scores.shape[1:])[:, head]
                scores = scores.masked_fill(~head_mask, -1e9)
            weights = scores.softmax(-1)
            heads.append((weights if mask is None else weights * head_mask) @ v)
        return output_projection(torch.cat(heads, -1))


masked_multi_head.example("no mask", mask=None)
masked_multi_head.example("a causal mask (seq, seq)", q_len=6, mask=torch.ones(6, 6, dtype=torch.bool).tril())
masked_multi_head.example(
    "a padding mask (batch, 1, 1, k_len)", mask=(torch.arange(6) < torch.tensor([[4], [2]]))[:, None, None]
)
masked_multi_head.example("one head", heads=1)
masked_multi_head.example("one query", q_len=1)


@masked_multi_head.probe
def one_for_each_head(draw):
    """a mask (heads, q_len, k_len)"""
    query, key, value, _, heads = _inputs(draw)
    mask = draw(heads, 7, 6) > 0
    mask[..., 0] = True
    return query, key, value, mask, heads


@masked_multi_head.probe
def padding_in_front(draw):
    """a causal mask, and padding in front"""
    x = draw(2, 5, 12)
    real = torch.arange(5) >= torch.tensor([[2], [0]])
    return x, x.clone(), x.clone(), torch.ones(5, 5, dtype=torch.bool).tril() & real[:, None, None], 3


@masked_multi_head.probe
def large_scores(draw):
    """scores in the hundreds"""
    query, key, value, mask, heads = _inputs(draw)
    return 20 * query, 20 * key, value, mask, heads


@masked_multi_head.property
def hidden_tokens_change_nothing(function, query, key, value, mask, n_heads):
    """Change a token that no query may see, and all outputs stay the same."""
    all_but_the_last = torch.ones(1, 1, 1, key.shape[1], dtype=torch.bool)
    all_but_the_last[..., -1] = False
    other_key, other_value = key.clone(), value.clone()
    other_key[:, -1] += 1
    other_value[:, -1] += 1
    before = function(query, key, value, all_but_the_last, n_heads)
    after = function(query, other_key, other_value, all_but_the_last, n_heads)
    return torch.allclose(before, after, atol=1e-4)


@masked_multi_head.property
def sentences_independent(function, query, key, value, mask, n_heads):
    """Change one sentence of the batch, and the outputs of the other sentences stay the same."""
    if mask is not None and mask.ndim > 3:
        mask = mask[:1].expand(len(query), *mask.shape[1:])
    changed = value.clone()
    changed[-1] += 1
    before = function(query, key, value, mask, n_heads)
    return torch.allclose(before[:-1], function(query, key, changed, mask, n_heads)[:-1], atol=1e-4)


@masked_multi_head.wrong(stage="projections")
class Sources:
    def all_from_the_queries(query, key, value):
        """You make queries, keys and values all from `query`. This is right in self-attention, where the three
        arguments are the same tensor. In cross-attention, keys and values come from a different sequence. Which
        argument does each layer need?"""
        return project(query, "q_proj"), project(query, "k_proj"), project(query, "v_proj")

    def values_from_the_keys(query, key, value):
        """You make the values from `key`, with the values' layer. Usually `key` and `value` are the same tensor, so the
        mistake does not show. Which argument belongs in the third layer?"""
        return project(query, "q_proj"), project(key, "k_proj"), project(key, "v_proj")


@masked_multi_head.wrong(stage="projections", alone=True)
class Projections:
    def keys_with_the_queries_layer(query, key, value):
        """You make the keys with `q_proj`, so one of the four layers is unused. Which one? Check the names in the three
        lines."""
        return project(query, "q_proj"), project(key, "q_proj"), project(value, "v_proj")

    def values_with_the_keys_layer(query, key, value):
        """You make the values with `k_proj`, so one of the four layers is unused. Which one? Check the names in the
        three lines."""
        return project(query, "q_proj"), project(key, "k_proj"), project(value, "k_proj")

    def keys_and_values_exchanged(query, key, value):
        """You make the keys with `v_proj`, and the values with `k_proj`. Compare the names on the two sides of the
        `=`."""
        return project(query, "q_proj"), project(key, "v_proj"), project(value, "k_proj")

    def queries_and_keys_exchanged(query, key, value):
        """You make the queries with `k_proj`, and the keys with `q_proj`. Compare the names on the two sides of the
        `=`."""
        return project(query, "k_proj"), project(key, "q_proj"), project(value, "v_proj")

    def no_projections(query, key, value):
        """You split the three inputs as they are, without `q_proj`, `k_proj` and `v_proj`. What does each of these
        layers do to a token before the split?"""
        return query, key, value

    def values_not_projected(query, key, value):
        """You split the values as they are, without `v_proj`. What does this layer do to a token before the split?"""
        return project(query, "q_proj"), project(key, "k_proj"), value


@masked_multi_head.wrong(stage="combined")
class LastLayer:
    def no_output_projection(merged):
        """The last layer is missing: you merge the heads, but do not apply `out_proj`. Without it, no output feature
        can combine the results of two heads. What comes after the merge?"""
        return merged


@masked_multi_head.wrong(stage="combined", alone=True)
class Combined:
    def with_the_values_layer(merged):
        """You apply `v_proj` again as the last layer, and `out_proj` is unused. Check the name in the last line."""
        return project(merged, "v_proj")


@masked_multi_head.wrong
class WrongModules:
    @family(
        **rows_of(
            (
                WrongAnswers.after_the_softmax,
                WrongAnswers.mask_inverted_with_infinity,
                WrongAnswers.mask_inverted_with_zeros,
                WrongAnswers.mask_without_effect,
                WrongAnswers.plus_infinity,
                WrongAnswers.divided_again,
                WrongAnswers.divided_again_with_a_guard,
                WrongAnswers.mask_as_an_index,
                WrongAnswers.three_axes_for_the_batch,
                WrongAnswers.zero_times_infinity,
            )
        )
    )
    def attends(attend, query, key, value, mask, n_heads):
        if mask is None:
            return masked_multi_head.reference(query, key, value, mask, n_heads)
        output = attend(*_split_projections(query, key, value, n_heads), mask)
        return output_projection(merge_heads.reference(output))

    @ways(by_any=lambda mask: mask.any(dim=-1, keepdim=True), by_inverting=lambda mask: ~mask)
    def needs_a_mask(operation, query, key, value, mask, n_heads):
        """Without a mask your layer raises an error: `mask` is then None, and None has neither `any` nor an inverse.
        The signature has the default `mask=None`, with which every query must see every key. What must you check before
        you use the mask?"""
        operation(mask)
        return masked_multi_head.reference(query, key, value, mask, n_heads)

    def causal_whatever_the_mask(query, key, value, mask, n_heads):
        """The argument `mask` has no effect: each query sees the keys up to its own place, as with `is_causal=True`.
        The caller chooses the mask, which can also hide padding, or passes no mask. What should your layer use in place
        of the causal mask?"""
        causal = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool, device=query.device).tril()
        return masked_multi_head.reference(query, key, value, causal, n_heads)

    def mask_for_the_first_head_alone(query, key, value, mask, n_heads):
        """You mask head 0 alone, and all other heads see every key. A mask whose axis for the heads has size 1 applies
        to all heads. Along which axis does your index select a part?"""
        if mask is None:
            return masked_multi_head.reference(query, key, value, mask, n_heads)
        other_heads = torch.ones(1, n_heads, 1, 1, dtype=torch.bool, device=mask.device)
        other_heads[:, 0] = False
        return masked_multi_head.reference(query, key, value, mask | other_heads, n_heads)

    def heads_of_a_token_compared(query, key, value, mask, n_heads):
        """The scores compare the heads of one token with each other: `heads` comes after the tokens in the matrix
        product, which works on the last two axes. The tables of scores are heads × heads, so most masks do not fit, and
        no token ever sees a different token. Which axes must be the last two?"""
        query, key, value = (x.unflatten(-1, (n_heads, -1)) for x in three_projections(query, key, value))
        table = steps.by_root_d(query @ key.mT, query.shape[-1])
        if mask is None:
            return output_projection((steps.over_keys(table) @ value).flatten(2))
        weights = steps.over_keys(with_a_large_negative_number(table, mask))
        return output_projection((zeros_for_empty_rows(weights, mask) @ value).flatten(2))

    def one_head_only(query, key, value, mask, n_heads):
        """You compare all features in one table: there is one head, whatever `n_heads` is. Split before the scores, so
        that every head has its own table."""
        head_mask = mask if mask is None or mask.ndim != 3 else mask[:1]
        return masked_multi_head.reference(query, key, value, head_mask, 1)

    def output_and_weights(query, key, value, mask, n_heads):
        """You return two things, the output and the weights. `nn.MultiheadAttention` also returns both, but this
        exercise asks only for the output."""
        output = masked_multi_head.reference(query, key, value, mask, n_heads)
        query, key, _ = _split_projections(query, key, value, n_heads)
        table = steps.by_root_d(query @ key.mT, query.shape[-1])
        if mask is None:
            return output, steps.over_keys(table)
        return output, zeros_for_empty_rows(steps.over_keys(with_a_large_negative_number(table, mask)), mask)

    def zeros_after_the_output_projection(query, key, value, mask, n_heads):
        """Your layer returns zeros for a query that sees nothing. The zeros belong one step earlier: the output of
        every head for such a query is zero, and `out_proj` then adds its bias, as for every other token."""
        output = masked_multi_head.reference(query, key, value, mask, n_heads)
        if mask is None:
            return output
        sees_a_key = mask.any(-1).expand(len(query), n_heads, query.shape[1]).any(1)
        return output * sees_a_key[..., None]


# The common mistakes are also tried in pairs, one from each of two stages; the rarer mistakes are only tried alone.
masked_multi_head.mistakes_in(
    split=(Cuts.view_alone, Cuts.every_nth_feature),
    merge=(Scrambled.reshape_alone, Scrambled.features_interleaved),
    scale=(steps.no_scale, steps.by_d, Scale.scaled_by_d_model),
    masked=(Masked.mask_inverted, Masked.score_of_zero, Masked.mask_added, Masked.mask_transposed),
    weights=(steps.over_queries, steps.over_heads),
    empty_rows=(EmptyRows.nan_for_empty_rows, EmptyRows.empty_rows_not_zeroed, EmptyRows.empty_columns_for_rows),
)
masked_multi_head.mistakes_in(
    alone=True,
    split=(Cuts.n_heads_taken_for_d_head, Cuts.transposed_and_reshaped),
    merge=(Refused.view_after_transpose, Scrambled.features_for_tokens, Scrambled.heads_reversed),
    scores=(steps.keys_not_transposed, steps.all_axes_reversed, steps.heads_and_keys_transposed, steps.keys_reshaped),
    scale=(steps.times_root_d,),
    masked=(Masked.one_axis_too_many,),
)
