"""Properties that say which outputs move when a token is replaced."""

import torch

from ..trial import Fails, NotTried, format_number, multiply_weights
from .registry import audit_property, first_true


@audit_property("the past does not move")
def past_unchanged(trial):
    """Does an output stay the same when a later token is replaced?"""
    trial.require_causal()
    influence = trial.influence()
    leaks = (trial.distance() < 0) & (influence > trial.tolerance * trial.output_std)
    if leaks.any():
        j, i = first_true(leaks)
        n_pairs = trial.length * (trial.length - 1) // 2
        raise Fails(
            f"token {j} changed: output {i} moved by {format_number(influence[j, i])}; "
            f"{int(leaks.sum())} of {n_pairs} pairs leak"
            + leak_pattern(leaks, (trial.distance() > 0) & (influence > trial.noise_floor * trial.output_std))
        )


def leak_pattern(leaks, allowed):
    """Return a question that suggests what all leaks have in common, or an empty string.

    ``leaks[j, i]`` says whether output i moves when the later token j is replaced.
    """
    n = len(leaks)
    positions = torch.arange(n)
    ahead = positions[:, None] - positions
    if not allowed.any():
        return ", and no token reaches a later output: is the mask the wrong way round?"
    if leaks.sum() == n * (n - 1) // 2:
        return ": is the mask missing, or is something computed over the whole sequence?"
    if torch.equal(leaks, (ahead > 0) & (ahead <= (farthest := int(ahead[leaks].max())))):
        return f", all up to {farthest} tokens ahead: does the triangle begin on the wrong diagonal?"
    for size in range(2, n):
        if torch.equal(leaks, (ahead > 0) & (positions[:, None] // size == positions // size)):
            return f", all inside blocks of {size} tokens: is the mask made of blocks?"
    return ""


@audit_property("every token is heard")
def every_token_has_influence(trial):
    """Does every output move when a token that it may see is replaced?"""
    trial.require_per_token()
    influence, distance = trial.influence(), trial.distance()
    expected = {"causal": distance >= 0, "bidirectional": distance == distance, "local": distance == 0}[trial.kind]
    if trial.window:
        expected = expected & (distance.abs() <= (trial.n_layers or 1) * (trial.window - 1))
    unmoved = expected & ~(influence > trial.noise_floor * trial.output_std)
    if unmoved.any():
        j, i = first_true(unmoved)
        raise Fails(f"token {j} changed: output {i} did not move ({int(unmoved.sum())} of {int(expected.sum())} pairs)")
    moved = (distance != 0) & (influence > trial.tolerance * trial.output_std)
    if trial.kind == "local" and moved.any():
        j, i = first_true(moved)
        change = format_number(influence[j, i])
        raise Fails(f"token {j} changed: output {i} moved by {change}, although it may depend only on token {i}")


@audit_property("a prefix gives the same")
def prefix_gives_same_outputs(trial):
    """Do the first tokens have the same outputs when the later tokens are left out?"""
    trial.require_causal()
    trial.require_length(trial.length - 1)
    full_output = trial.run(trial.x)
    for n in range(1, trial.length):
        prefix_text = f"the first {n} tokens" if n > 1 else "the first token"
        trial.require_same(trial.run(trial.x[:, :n]), full_output[:, :n], f"{prefix_text} of {trial.length} alone")


@audit_property("order is seen")
def order_matters(trial):
    """Does the last output move when two neighbouring earlier tokens change places?"""
    if trial.kind == "local" or trial.window == 1:
        raise NotTried("each token is computed alone")
    a, b = trial.length - 3, trial.length - 2
    x = trial.x.clone()
    x[:, a] = trial.replace_tokens(x[:, b])
    swapped = x.clone()
    swapped[:, [a, b]] = x[:, [b, a]]
    if float((trial.run(x) - trial.run(swapped))[:, -1].abs().max()) <= trial.noise_floor * trial.output_std:
        raise Fails(f"tokens {a} and {b} changed places: the last output did not move")


@audit_property("the future, with loud weights")
def future_hidden_with_large_weights(trial):
    """Is a later token still hidden if the mask uses a finite number and the visible scores are below this number?"""
    trial.require_causal()
    if ((trial.distance() < 0) & (trial.influence() > trial.tolerance * trial.output_std)).any():
        raise NotTried("an earlier output already moves with the model's own weights")
    enlarged = trial.modified_copy(multiply_weights(3000.0))
    influence = trial.influence(model=enlarged)
    if not influence.isfinite().all():
        raise NotTried("with such large weights, the outputs are not finite")
    leaks = (trial.distance() < 0) & (influence > trial.tolerance * float(trial.run(trial.x, enlarged).std()))
    if leaks.any():
        j, i = first_true(leaks)
        raise Fails(
            f"weights multiplied by 3000, token {j} changed: output {i} moved; is a hidden score a finite number?"
        )


@audit_property("the window")
def window_reach(trial):
    """Does an output depend on tokens as far back as the windows of all layers reach, and no further?"""
    if trial.window is None:
        raise NotTried("pass `window=` and `n_layers=`")
    if trial.n_layers is None:
        raise NotTried("pass `n_layers=`: a window in each of several layers reaches further")
    trial.require_per_token()
    reach = trial.n_layers * (trial.window - 1)
    trial.require_length(reach + 4)
    x = trial.draw(1, reach + 4)
    moved_pairs = (trial.influence(x) > trial.noise_floor * trial.output_std).nonzero()
    farthest = int((moved_pairs[:, 1] - moved_pairs[:, 0]).max())
    if farthest != reach:
        raise Fails(
            f"outputs depend on tokens up to {farthest}{' or more' if farthest == reach + 3 else ''} positions back, "
            f"but a window of {trial.window} in {trial.n_layers} layer{'s' * (trial.n_layers > 1)} reaches {reach}"
        )
