"""The experts lab works in Python and in a browser, and its arithmetic agrees with the package's."""

import math
from bisect import bisect_left
from functools import partial

import pytest
import torch

import transformer_lab as tl
from agreement import raises
from gestures import drag_slider, status
from javascript import Engine, assert_close
from transformer_lab.labs import ExpertsLab

ORDERS = ("softmax-topk", "topk-softmax", "sigmoid-topk")
each_order = pytest.mark.parametrize("order", ORDERS)


@pytest.fixture(scope="module")
def experts():
    return Engine(ExpertsLab)


def random_lab(seed=0, n_experts=5, seq=7, d_model=3, n_shared=1, **settings):
    torch.manual_seed(seed)
    mixture = tl.MixtureOfExperts(d_model, 6, n_experts, 2, n_shared=n_shared)
    x = torch.randn(seq, d_model)
    return ExpertsLab(mixture, x, **settings), mixture, x


def small_mixture():
    torch.manual_seed(0)
    return tl.MixtureOfExperts(2, 4, 3, 1)


def settings(lab):
    """Return the settings for the script, as they are sent to the browser."""
    names = ("logits", "n_active", "order", "renormalize", "bias")
    return {name: lab.get_state([name])[name] for name in names}


def random_bias(seed, n_experts):
    return (torch.rand(n_experts, generator=torch.Generator().manual_seed(seed)) - 0.5).round(decimals=2)


# The arithmetic.


@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize("n_active", [1, 2, 5])
def test_routing_agrees_with_the_layer(experts, n_active, renormalize):
    for seed in range(4):
        lab, mixture, x = random_lab(seed, n_active=n_active, renormalize=renormalize, n_shared=seed % 2)
        mixture.n_active, mixture.renormalize = n_active, renormalize
        indices, weights = mixture.route(x)
        actual = experts("route", settings(lab))
        assert actual["chosen"] == indices.tolist() == lab.indices.tolist()
        assert_close(actual["weights"], weights.detach().double())
        torch.testing.assert_close(lab.weights, weights)
        output = mixture(x).detach()
        torch.testing.assert_close(lab.output, output)
        for i, row in enumerate(output):
            token_outputs = lab.outputs[:, i].tolist()
            shared = lab.shared_output[i].tolist() if lab.shared else None
            token_output = experts("combineOutputs", actual["chosen"][i], actual["weights"][i], token_outputs, shared)
            assert_close(token_output, row[:2].double(), rtol=2e-6)


@each_order
@pytest.mark.parametrize("renormalize", [True, False])
def test_routing_agrees_with_a_plain_loop(experts, order, renormalize):
    for seed in range(8):
        bias = random_bias(seed, 5)
        lab, *_ = random_lab(seed, n_active=1 + seed % 5, order=order, renormalize=renormalize, bias=bias)
        actual = experts("route", settings(lab))
        for i, logits in enumerate(lab.logits.double()):
            score = logits.sigmoid() if order == "sigmoid-topk" else logits.exp() / logits.exp().sum()
            ranked = (score + lab.bias).argsort(descending=True).tolist()
            chosen = ranked[: lab.n_active]
            weights = score[chosen]
            if order == "topk-softmax":
                weights = logits[chosen].exp() / logits[chosen].exp().sum()
            elif renormalize:
                weights = weights / weights.sum()
            assert actual["chosen"][i] == chosen == lab.indices[i].tolist()
            assert_close(actual["scores"][i], score)
            assert_close(actual["weights"][i], weights)
            assert_close(lab.weights[i].tolist(), weights)
        loads = experts("loadsOf", actual["chosen"], 5)
        assert loads == lab.loads.tolist() and sum(loads) == 7 * lab.n_active


def test_softmax_before_or_after_the_choice_is_the_same_with_renormalizing(experts):
    softmax_first_lab, *_ = random_lab(3)
    choice_first_lab, *_ = random_lab(3, order="topk-softmax", renormalize=False)
    actual = [experts("route", settings(lab)) for lab in (softmax_first_lab, choice_first_lab)]
    assert actual[0]["chosen"] == actual[1]["chosen"]
    assert_close(actual[0]["weights"], torch.tensor(actual[1]["weights"], dtype=torch.float64), rtol=1e-12, atol=1e-12)
    softmax_first_lab.renormalize = False
    assert all(sum(weights) < 0.999 for weights in experts("route", settings(softmax_first_lab))["weights"])


@each_order
def test_balancing_takes_the_steps_of_a_plain_loop(experts, order):
    lab = ExpertsLab(order=order)
    bias = torch.zeros(4, dtype=torch.float64)
    for _ in range(30):
        lab.bias = bias
        bias = bias + 0.01 * (2 * 8 / 4 - lab.loads).double().sign()
    lab.bias = torch.zeros(4)
    assert_close(experts("balance", settings(lab), 30, lab.limits), bias, rtol=0, atol=1e-9)


@each_order
@pytest.mark.parametrize("n_active", [1, 2])
def test_balancing_evens_the_loads_of_the_first_example(experts, order, n_active):
    lab = ExpertsLab(order=order, n_active=n_active)
    assert lab.loads.max() >= 3 * lab.loads.min()
    lab.bias = torch.tensor(experts("balance", settings(lab), 200, lab.limits))
    assert lab.loads.tolist() == [2 * n_active] * 4
    assert experts("balance", settings(lab), 1, lab.limits) == lab.get_state(["bias"])["bias"], (
        "the biases must stay the same"
    )


def test_biases_stay_in_their_range(experts):
    lab = ExpertsLab(small_mixture(), [[1.0, 1.0]], n_active=1)
    bias = experts("balance", settings(lab), 500, lab.limits)
    assert max(map(abs, bias)) <= 1


BIASES = torch.linspace(0, 0.8, 3201).tolist()


def chosen_experts(lab, bias_of_expert_2):
    """Return each token's experts if expert 2 has this bias."""
    lab.bias = torch.tensor([0, 0, bias_of_expert_2, 0])
    return lab.indices.sort().values


def has_moved(lab, initial_experts, token, bias_of_expert_2):
    return not chosen_experts(lab, bias_of_expert_2)[token].equal(initial_experts[token])


@each_order
def test_a_rising_bias_moves_tokens_in_the_order_that_is_shown(experts, order):
    for seed in range(6):
        lab, *_ = random_lab(seed, n_experts=4, seq=6, order=order)
        initial_experts = chosen_experts(lab, 0)
        # If a bias moves a token to an expert, so does every larger bias: bisection finds the smallest of these biases.
        first_biases = [
            bisect_left(BIASES, True, key=partial(has_moved, lab, initial_experts, token)) for token in range(6)
        ]
        order_of_moves = [
            token for token in sorted(range(6), key=first_biases.__getitem__) if first_biases[token] < len(BIASES)
        ]
        chosen_experts(lab, BIASES[-1])
        assert experts("movedTokens", settings(lab)) == order_of_moves


def test_the_nearest_expert_is_the_best_that_was_not_chosen(experts):
    assert experts("bestUnchosen", [0.5, 0.3, 0.2], [0, 0, 0.05], [0]) == {"expert": 1, "gap": 0.2}
    assert experts("bestUnchosen", [0.5, 0.25, 0.25], [0, 0, 0.125], [0, 2]) == {"expert": 1, "gap": 0.125}
    assert experts("bestUnchosen", [0.5, 0.3, 0.2], [0, 0, 0], [0, 1, 2]) is None


def test_parameters_are_those_of_the_layer(experts):
    for n_shared in (0, 2):
        lab, mixture, _ = random_lab(n_shared=n_shared)
        text = experts("parametersText", lab.sizes, 5, 2, lab.shared)
        total = sum(p.numel() for p in mixture.parameters())
        active = total - 3 * sum(p.numel() for p in mixture.experts[0].parameters())
        assert f"= {total}. " in text and f" = {active}, {round(100 * active / total)} %." in text


# The state in Python.


def test_numbers_of_the_first_example_can_be_computed_by_hand():
    lab = ExpertsLab(token=2)
    assert lab.logits[2].tolist() == pytest.approx([0.16, 0.3, -0.12, 0.04])  # (0.2, -0.8) times each row
    for numbers in (lab.outputs, lab.shared_output):
        torch.testing.assert_close(numbers, numbers.round(decimals=1))
    assert lab.loads.tolist() == [7, 7, 1, 1]
    low, high = math.exp(0.16), math.exp(0.3)
    assert lab.weights[2].tolist() == pytest.approx([high / (low + high), low / (low + high)])


def test_given_layer_and_tensor_are_not_modified():
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    mixture = small_mixture().double()
    before = [p.clone() for p in mixture.parameters()]
    lab = ExpertsLab(mixture, x, "a b c")
    assert lab.output.dtype == torch.float32 and not lab.output.requires_grad and lab.output.shape == (3, 2)
    assert all(torch.equal(p, q) for p, q in zip(mixture.parameters(), before)) and x.requires_grad
    assert lab.tokens == ["a", "b", "c"] and not lab.shared


def test_the_switch_adds_the_shared_expert():
    lab, mixture, x = random_lab()
    output_with_shared_expert = lab.output
    lab.shared = False
    torch.testing.assert_close(output_with_shared_expert - lab.output, mixture.shared(x).detach())


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ExpertsLab(torch.nn.Linear(2, 2)), TypeError, "mixture must be a MixtureOfExperts, got Linear"),
        (
            lambda: ExpertsLab(tl.MixtureOfExperts(2, 4, 9, 1), torch.ones(1, 2)),
            ValueError,
            "mixture must have 2 to 8 experts, got 9",
        ),
        (
            lambda: ExpertsLab(tl.MixtureOfExperts(3, 4, 2, 1)),
            ValueError,
            "x, of shape (seq, 3), must be given for a mixture of your own, got None",
        ),
        (
            lambda: ExpertsLab(x=torch.ones(13, 2)),
            ValueError,
            "x must have shape (seq, d_model), from (1, 2) to (12, 2), got (13, 2)",
        ),
        (lambda: ExpertsLab(x=[[1, math.nan]]), ValueError, "x must be finite, got nan"),
        (lambda: ExpertsLab(tokens="a b"), ValueError, "tokens must have one name for each row of x, 8, got 2"),
        (lambda: ExpertsLab(n_active=0), ValueError, "n_active must be from 1 to 4, got 0"),
        (lambda: ExpertsLab(n_active=1.0), TypeError, "n_active must be an integer, got 1.0"),
        (lambda: ExpertsLab(token=8), ValueError, "token must be from 0 to 7, got 8"),
        (
            lambda: ExpertsLab(order="topk-softmx"),
            ValueError,
            "order must be one of 'softmax-topk', 'topk-softmax', 'sigmoid-topk', got 'topk-softmx'; did you mean "
            "'topk-softmax'?",
        ),
        (lambda: ExpertsLab(bias=[0, 0]), ValueError, "bias must have shape (n_experts,), got (2,)"),
        (lambda: ExpertsLab(bias=[0, 0, 0, 2]), ValueError, "bias must have values from -1 to 1, got 2"),
        (lambda: ExpertsLab(renormalize="no"), TypeError, "renormalize must be True or False, got 'no'"),
        (
            lambda: ExpertsLab(tl.MixtureOfExperts(2, 4, 2, 1), [[1, 1]], shared=True),
            ValueError,
            "shared must be False, since the mixture has no shared experts, got True",
        ),
    ],
)
def test_invalid_arguments_raise_clear_errors(make, error, text):
    raises(make, error, text)


# In a browser.


def bias(page, expert):
    return page.get_by_label(f"Bias of expert {expert}", exact=True)


def test_a_rising_bias_moves_the_nearest_token_first(show):
    page = show(ExpertsLab())
    page.get_by_role("radio", name="sat").click()
    assert "Expert 3 comes next, 0.030 behind." in status(page)
    bias(page, 3).focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert status(page).endswith("The biases have changed no token’s experts yet.")
    page.keyboard.press("ArrowRight")
    assert status(page).endswith("The bias changed the experts of “sat” alone.")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert status(page).endswith("The bias changed the experts of “sat” first, and of 3 tokens in all.")


def test_dragging_a_bias_moves_links_and_loads(show):
    page = show(ExpertsLab())
    count_visible = "paths => paths.filter((path) => path.checkVisibility({ visibilityProperty: true })).length"
    assert page.locator(".tl-links path:not(.tl-shared)").evaluate_all(count_visible) == 16
    for _ in drag_slider(page, bias(page, 2), (0.5, 0.7, 1)):
        pass
    assert bias(page, 2).input_value() == "1"
    assert page.locator(".tl-expert").nth(2).locator(".tl-count").first.inner_text() == "8 tokens"
    assert page.locator(".tl-links path.tl-moved").evaluate_all(count_visible) == 7, (
        "7 of 8 links must be new, since “cat” had this expert before"
    )
    assert page.locator(".tl-links path:not(.tl-shared)").evaluate_all(count_visible) == 16
    page.get_by_role("button", name="All biases 0").click()
    assert page.locator(".tl-links path.tl-moved").count() == 0


def test_table_shows_the_weighted_sum(show):
    page = show(ExpertsLab(token=2))
    rows = [row.inner_text().split("\t") for row in page.locator(".tl-numbers tbody tr").all()]
    weighted_outputs = []
    for row in rows[:-1]:
        if row[-1] != "not computed":
            weighted_outputs.append(
                [float(row[-2]) * float(x) for x in row[-1].replace("−", "-").strip("()").split(", ")]
            )
    assert len(weighted_outputs) == 3
    displayed_sum = [float(x) for x in rows[-1][-1].replace("−", "-").strip("()").split(", ")]
    assert [sum(column) for column in zip(*weighted_outputs)] == pytest.approx(displayed_sum, abs=0.006)
    assert displayed_sum == pytest.approx(ExpertsLab().output[2].tolist(), abs=0.005)
    page.get_by_role("button", name="shared expert").click()
    assert page.locator(".tl-numbers tbody tr").nth(4).inner_text().endswith("off")
    page.get_by_role("button", name="4", exact=True).click()
    assert page.locator(".tl-numbers").get_by_text("not computed").count() == 0


def test_renormalizing_is_fixed_if_the_softmax_comes_last(show):
    page = show(ExpertsLab(renormalize=False))
    button = page.get_by_role("button", name="renormalize")
    assert button.get_attribute("aria-pressed") == "false"
    page.get_by_role("button", name="top-k, then softmax").click()
    assert button.is_disabled() and button.get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="sigmoid, then top-k").click()
    assert button.is_enabled() and button.get_attribute("aria-pressed") == "false"


def test_bias_and_load_are_on_one_screen_of_a_phone(show):
    page = show(ExpertsLab(), width=360)
    box = page.locator(".tl-flow").bounding_box()
    balance = page.get_by_role("button", name="10 steps").bounding_box()
    assert balance["y"] + balance["height"] - box["y"] < 740


def test_layer_without_shared_experts_has_no_switch(show):
    lab, *_ = random_lab(n_shared=0)
    page = show(lab)
    assert page.get_by_role("button", name="shared expert").count() == 0
    assert page.locator(".tl-shared").count() == 0
    assert "…" in page.locator(".tl-numbers tbody tr").last.inner_text(), (
        "an ellipsis must show that there are more features"
    )
