"""Section 6.9 says which deep stacks learn with which step size; the section's own cells confirm this for any seed."""

import pytest
import torch

from chapter_code import ALL_SEEDS, SEEDS, chapter_code


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("06_normalization", constants=("ways", "nearly_linear"), sections={"6.9"})


def means_of_last_losses(chapter, stack_name, **options):
    """Return the mean of the last five losses, with a row for each seed and a column for each step size."""
    return chapter["losses_of_copying"](chapter["ways"][stack_name], SEEDS, **options)[..., -5:].mean(dim=-1)


def test_without_residuals_neither_step_size_helps(chapter):
    assert means_of_last_losses(chapter, "norm, no residual").min() > 2.2


def test_without_residuals_other_initial_weights_and_a_nearly_linear_activation_help(chapter):
    options = {"start": chapter["sharp_start"], "bend": chapter["nearly_linear"]}
    losses_small_step = means_of_last_losses(chapter, "norm, no residual", **options)[:, 1]
    assert losses_small_step.min() > 0.55
    assert losses_small_step.max() < 0.85


def test_without_residuals_other_initial_weights_alone_are_not_enough(chapter):
    losses_small_step = means_of_last_losses(chapter, "norm, no residual", start=chapter["sharp_start"])[:, 1]
    assert losses_small_step.min() > 1.5
    assert (losses_small_step > 2.2).sum() >= 0.5 * len(SEEDS)


def test_without_residuals_a_nearly_linear_activation_alone_is_not_enough(chapter):
    assert means_of_last_losses(chapter, "norm, no residual", bend=chapter["nearly_linear"]).min() > 2.2


def test_post_norm_learns_with_a_tenth_of_the_step(chapter):
    losses = chapter["losses_of_copying"](chapter["ways"]["post-norm"], SEEDS, steps=125)
    losses_large_step, losses_small_step = losses[..., 70:75].mean(dim=-1).unbind(dim=1)
    assert losses_large_step.min() > 2.2
    assert losses_small_step.max() < 1.5
    assert losses[:, 1, -5:].mean(dim=-1).max() < 0.8


@torch.no_grad()
def test_in_post_norm_neighbours_remain_a_little_different(chapter):
    for seed in SEEDS:
        torch.manual_seed(seed)
        x = torch.randn(8, 16, 64, dtype=torch.float64)
        state = x
        for part, norm in chapter["make_stack"](48, 64, n_heads=4).double():
            state = chapter["ways"]["post-norm"](state, part, norm)
        assert 0.99 < chapter["with_neighbours"](state) < 0.9995


@torch.no_grad()
def added_variances(chapter, seed, seq):
    """Return the variance added by each attention, by each feed-forward layer, and by the whole stack of 48 layers."""
    torch.manual_seed(seed)
    x = torch.randn(128 // seq, seq, 64, dtype=torch.float64)
    state, variances = x, []
    for part, norm in chapter["make_stack"](48, 64, n_heads=4).double():
        change = part(norm(state))
        variances.append(change.square().mean())
        state = state + change
    return torch.stack(variances[0::2]), torch.stack(variances[1::2]), state.var() - x.var()


def test_attention_adds_more_to_the_stream_where_tokens_are_alike(chapter):
    for seed in SEEDS:
        attention, feed_forward, total = added_variances(chapter, seed, seq=16)
        assert 0.02 < attention[:6].mean() < 0.03
        assert 0.1 < attention[24:].mean() < 0.13
        assert 0.05 < feed_forward[:6].mean() < 0.065
        assert 0.05 < feed_forward[24:].mean() < 0.065
        assert 0.8 < (attention.sum() + feed_forward.sum()) / total < 1.3  # as if the changes were independent


def test_where_there_is_nothing_to_average_attention_adds_the_same_variance_in_every_layer(chapter):
    for seed in SEEDS:
        attention, _, _ = added_variances(chapter, seed, seq=1)
        assert 0.9 < attention[24:].mean() / attention[:6].mean() < 1.1


def test_pre_norm_learns_fastest_with_the_large_step(chapter):
    losses_large_step, losses_small_step = means_of_last_losses(chapter, "pre-norm").unbind(dim=1)
    assert losses_large_step.max() < 0.3
    assert (losses_large_step < losses_small_step).all()
    assert losses_small_step.max() < 0.9


def test_with_warm_up_post_norm_learns_with_the_large_step(chapter):
    losses_large_step = means_of_last_losses(chapter, "post-norm", steps=100, warm_up=100)[:, 0]
    assert losses_large_step.max() < 1.2
    if ALL_SEEDS:
        assert (losses_large_step < 0.8).sum() >= 6


def test_the_sections_initial_weights_vary_as_much_as_those_of_the_courses_layers(chapter):
    tl, width = chapter["tl"], chapter["WIDTH"]
    _, qkv, out, up, down, _ = chapter["new_weights"](0, chapter["usual_start"])
    attention, feed_forward = tl.MultiHeadAttention(width, 1), tl.FeedForward(width)
    course_weights = [
        torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]),
        attention.out_proj.weight,
        feed_forward.linear1.weight,
        feed_forward.linear2.weight,
    ]
    for section_weight, course_weight in zip((qkv, out, up, down), course_weights):
        assert section_weight.std().item() == pytest.approx(course_weight.std().item(), rel=0.15)


def test_the_sections_batched_stack_computes_what_the_courses_layers_compute(chapter):
    """Two runs in one batch, with biases of 0 and norms without weights, must match two separate runs with modules."""
    tl, width, seq = chapter["tl"], chapter["WIDTH"], chapter["SEQ"]
    runs = [chapter["new_weights"](seed, chapter["usual_start"]) for seed in (0, 1)]
    digits = torch.randint(0, 10, (2, 2 * seq), device=tl.device())
    residual_form, weights = (
        chapter["ways"]["pre-norm"],
        [torch.stack(weights_of_runs) for weights_of_runs in zip(*runs)],
    )
    batched_scores = chapter["digit_scores"](digits, weights, residual_form, torch.relu)
    for run, sequence, scores in zip(runs, digits, batched_scores):
        embedding, *layers, output = run
        x = embedding[sequence].unflatten(0, (2, seq))
        for qkv, out, up, down in zip(*layers):
            attention = tl.MultiHeadAttention(width, 1, bias=False).to(x.device)
            feed_forward = tl.FeedForward(width, bias=False).to(x.device)
            names = "q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"
            attention.load_state_dict(dict(zip(names, (*qkv.T.chunk(3), out.T))))
            feed_forward.load_state_dict({"linear1.weight": up.T, "linear2.weight": down.T})
            x = residual_form(residual_form(x, attention, tl.layer_norm), feed_forward, tl.layer_norm)
        torch.testing.assert_close(scores, (tl.layer_norm(x) @ output).flatten(0, 1), atol=1e-4, rtol=1e-4)
