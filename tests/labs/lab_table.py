"""For each lab, this table states how to create it, its extreme states, and interactions by mouse and finger."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

import transformer_lab as tl
from gestures import drag, middle, status, swipe
from transformer_lab.labs import (
    BroadcastingLab,
    BudgetLab,
    ExpertsLab,
    HeadsLab,
    InfluenceLab,
    LookupLab,
    MaskLab,
    NormalizationLab,
    OrderLab,
    Practice,
    SamplingLab,
    SplitLab,
    StridesLab,
    WholeLab,
)

PAD_TOKEN = "<pad>"
LONGEST_SENTENCE = "attention is all you need when the words have their own places"
SENTENCE = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "cat", "slept"]
BUDGET_REPR = "BudgetLab(GPT2, seq=1024, batch=1, bytes_per_value=4)"


@dataclass(frozen=True)
class LabCase:
    """A lab, with the data for the tests that all labs share."""

    make: Callable
    expected_repr: str
    extreme_states: list  # functions that bring the lab into large, wide or invalid states
    valid_settings: dict  # a state that the browser may send
    invalid_settings: dict
    linked_trait: str  # a trait that jslink connects with another widget
    control_and_key: tuple  # a control, and a key that changes the status line while the control has the focus
    play: Callable  # changes most of the lab by mouse
    touch: Callable  # uses the lab by finger on a page 360 pixels wide; returns whether the lab reacts correctly
    scroll_starts: tuple  # places from which a finger scrolls the page
    invalid_inputs: tuple = ()  # rows: a field, invalid input, its error, valid input, a text that then appears
    script_bytes: int = 60_000  # at most


def press(page, *names):
    for name in names:
        page.get_by_role("button", name=name, exact=True).first.click()


def cell(page, flat, grid=0):
    return page.locator(".tl-grid").nth(grid).locator(f"[data-flat='{flat}']")


def square(page, i, j, stage="weights"):
    return page.locator(f"[data-stage={stage}]:visible .tl-square[data-at='{i} {j}']").first


def query_handle(page):
    return page.get_by_label(re.compile("^Query at")).first


def random_weights(layers, heads, q_len, k_len, seed=0, causal=False):
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(layers, heads, q_len, k_len, generator=generator)
    if causal:
        scores = scores.masked_fill(~tl.causal_mask(q_len), -torch.inf)
    return scores.softmax(-1)


# Interactions.


def play_with_strides(page):
    page.get_by_label("Shape of x").first.fill("4, 4")
    press(page, "+ .view(-1)")
    cell(page, 3).click()


def touch_strides(page):
    cell(page, 7).tap()
    return status(page).startswith("Element [0, 2, 1] is 6, at storage place 6.")


def play_with_broadcasting(page):
    drag(page, page.get_by_label("b, axis 0").first, 40)
    press(page, "a @ b")


def touch_broadcasting(page):
    slider = page.get_by_label("a, axis 0")
    slider.scroll_into_view_if_needed()
    swipe(page, middle(slider), 54)
    return status(page).endswith("= 10 + 1 = 11. The sum has shape (6, 4).")


def play_with_lookup(page):
    drag(page, query_handle(page).locator(".tl-query"), -60, 60)
    drag(page, page.get_by_label(re.compile("^Value owl")).first.locator(".tl-point"), 30, 30)
    page.get_by_label("Temperature").first.fill("900")
    press(page, "distance")


def touch_lookup(page):
    query_handle(page).scroll_into_view_if_needed()
    unit = page.locator(".tl-plane").first.bounding_box()["width"] / 5
    swipe(page, middle(query_handle(page).locator(".tl-query")), -0.5 * unit, 1.5 * unit)
    x, y = (float(coordinate) for coordinate in page.get_by_label("Query", exact=True).input_value().split(", "))
    return abs(x - 0.7) < 0.03 and abs(y + 1.2) < 0.03 and "has the largest weight" in status(page)


def play_with_masks(page):
    press(page, "decoder: cross")
    square(page, 0, 0).click()
    press(page, "scores × 0")
    page.get_by_label("Source sentence (the keys)", exact=True).first.fill("uno due")
    press(page, "window", "More window")
    page.get_by_label("Sentence", exact=True).first.fill("one two three")


def touch_masks(page):
    square(page, 1, 4).tap()
    return status(page).startswith("“cat” sees “the”, “cat” and “the”; weights ")


def play_with_normalization(page):
    cell(page, 9).click()
    page.get_by_label("Value of the chosen entry").first.fill("-12")
    page.get_by_label("Padding at the end of the sentence").first.fill("2")
    press(page, "group norm", "subtract the mean")


def touch_normalization(page):
    cell(page, 14).tap()
    press(page, "instance norm")
    return status(page).startswith("x[0, 3, 2] = 1 shares its mean ")


def play_with_order(page):
    page.get_by_label("N, tokens, typed").first.fill("300")
    page.get_by_role("slider", name="D, key features").first.fill("200")
    page.get_by_label("M, value features, typed").first.fill("nothing")
    press(page, "softmax", "step by step", "Next token")


def touch_order(page):
    page.locator(".tl-mark").tap()
    shows_both_orders = status(page).startswith("Both orders take")
    page.get_by_role("button", name="step by step").tap()
    page.get_by_role("button", name="Next token").tap()
    return shows_both_orders and status(page).startswith("Token 2 of 6")


def play_with_heads(page):
    press(page, "1")
    page.get_by_role("radio", name="head 2").first.click()
    page.get_by_role("radiogroup", name="Who looks").first.get_by_role("radio").nth(3).click()


def play_with_experts(page):
    page.get_by_role("radio", name="warm").first.click()
    press(page, "10 steps", "sigmoid, then top-k", "renormalize", "shared expert", "3")
    page.get_by_label("Bias of expert 2", exact=True).first.press("PageUp")


def touch_experts(page):
    page.get_by_role("radio", name="sat").tap()
    shows_the_experts = status(page).startswith("“sat” goes to expert 1 (0.53) and expert 0 (0.47).")
    for _ in range(5):
        page.get_by_role("button", name="10 steps").tap()
    return shows_the_experts and "Every expert has 4 tokens: the load is even." in status(page)


def play_with_influence(page):
    press(page, "F", "weights × 3,000", "two documents", "reads the future")
    page.get_by_role("radio", name="5", exact=True).first.click()


def touch_influence(page):
    page.get_by_role("button", name="B", exact=True).tap()
    page.get_by_role("radio", name="4", exact=True).tap()
    shows_the_change = "Outputs 0 to 3 come before the token." in status(page)
    page.get_by_role("button", name="reads the future").tap()
    return shows_the_change and status(page).endswith("“reads the future” is the right answer.")


def play_with_split(page):
    press(page, "view alone to merge")
    page.locator(".tl-stage").nth(5).click()
    cell(page, 20).click()


def touch_heads(page):
    page.get_by_role("radio", name="head 1").tap()
    page.get_by_role("radiogroup", name="Who looks").get_by_role("radio").nth(2).tap()
    return status(page).startswith("Layer 0, head 1: “sat” looks ")


def touch_split(page):
    page.get_by_role("button", name="view alone to split").tap()
    return status(page).startswith("b3, feature 3 of token b, is at [0, 3, 0]: head 0, row d.")


def play_with_budget(page):
    for name in ("Layers", "d_model", "Heads", "d_ff", "Vocabulary", "Positions", "Context, seq", "Batch"):
        page.get_by_label(name, exact=True).first.press("PageUp")
    press(page, "2: half")
    page.get_by_text("Exact numbers").first.click()
    press(page, "training")
    page.get_by_text("Exact numbers").first.click()
    page.get_by_label("Base of the comparison").first.select_option("GPT-2 XL")


def touch_budget(page):
    page.get_by_role("button", name="BERT-large").tap()
    shows_the_preset = status(page).startswith("BERT-large has 335,141,888 parameters")
    page.get_by_role("button", name="seq = 4,096").tap()
    return shows_the_preset and status(page).startswith("A context of 4,096 tokens instead of 512")


def play_with_whole(page):
    page.get_by_label("Type a number, up to 6 digits", exact=True).first.fill("13")
    page.locator("[data-part=cross_attention] rect").first.click()
    page.locator(".tl-sheet").first.press("ArrowDown")
    press(page, "layer 2", "decoder only", "Next step", "Next step", "Next step")


def touch_whole(page):
    page.locator("[data-part=self_attention] rect").tap()
    shows_the_panel = status(page).startswith("Self-attention, encoder layer 1, head 1: “3” looks at “")
    page.get_by_role("button", name="encoder only").tap()
    return shows_the_panel and status(page) == "An encoder alone turns “342” into vectors and writes nothing."


def mixed_practice(*topics):
    practice = Practice(*topics)
    practice.choice = "all"
    return practice


def play_with_practice(page):
    answer = page.get_by_label("Your answer", exact=True).first
    answer.fill("1, 2, 3")
    answer.press("Enter")


def touch_practice(page):
    page.get_by_label("Your answer", exact=True).fill("(60, 12)")
    page.get_by_role("button", name="Check").tap()
    return status(page) == "Not right. The right answer has 3 numbers; yours has two."


def play_with_painting(page):
    square(page, 0, 0, "answer").click()
    press(page, "Check")


def touch_painting(page):
    square(page, 1, 1, "answer").tap()
    swipe(page, middle(square(page, 2, 0, "answer")), 40)
    press(page, "Check")
    return status(page).startswith("Not right. ") and page.locator(".tl-seen").count() == 3


def play_with_sampling(page):
    press(page, "colour", "Draw 100", "Draw")
    page.get_by_label("Temperature", exact=True).first.press("ArrowRight")
    page.get_by_label("Top-k, typed", exact=True).first.fill("40")
    page.get_by_label("Top-p", exact=True).first.press("PageDown")
    page.get_by_label("Min-p, typed", exact=True).first.fill("0.05")
    page.get_by_label("Seed", exact=True).first.fill("7")


def touch_sampling(page):
    page.get_by_role("button", name="france").tap()
    page.get_by_role("button", name="Draw", exact=True).tap()
    return status(page).startswith("All 49,152 tokens are kept; “␣Paris” is the most likely, with 0.773. Draw 1: ")


def large_experts_lab(n_experts=8, seq=12, n_shared=0):
    """Return a lab with an untrained layer of the largest size that the lab supports."""
    torch.manual_seed(0)
    mixture = tl.MixtureOfExperts(16, 32, n_experts, min(n_experts, 3), n_shared=n_shared, renormalize=False)
    tokens = [f"aVeryLongTokenNumber{i}" for i in range(seq)]
    return tl.labs.ExpertsLab(mixture, 3 * torch.randn(seq, 16), tokens, bias=[-1] * (n_experts - 1) + [1])


def influence_lab_of_a_model():
    torch.manual_seed(0)
    return InfluenceLab(tl.LanguageModel(20, 16, 2, 1, 32), vocab_size=20, token=7)


def large_whole_lab(norm_first=True, activation="gelu", model_class=tl.Transformer):
    """Return a lab with an untrained model of the largest size that the lab supports."""
    torch.manual_seed(0)
    words = [f"word{i}" for i in range(128)]
    vocabularies = (128, 128) if model_class is tl.Transformer else (128,)
    model = model_class(*vocabularies, 64, 8, 4, 256, norm_first=norm_first, activation=activation)
    return tl.labs.WholeLab(model, words, bos=0, text=" ".join(words[-12:]))


LABS = {
    "strides": LabCase(
        make=StridesLab,
        expected_repr="StridesLab(shape=(2, 3, 4), chain='.transpose(1, 2)')",
        extreme_states=[
            lambda: StridesLab((4, 16), ".t()"),
            lambda: StridesLab((2, 32), ".reshape(-1)[::3]"),
            lambda: StridesLab((2, 2, 2, 2, 4), ".transpose(0, 4).view(64)"),
        ],
        valid_settings={"shape": [6], "chain": ".view(2, 3)[-1, ...]", "index": [1]},
        invalid_settings={"shape": (5, 13), "chain": ".explode()"},
        linked_trait="chain",
        control_and_key=(".tl-grid", "ArrowRight"),
        play=play_with_strides,
        touch=touch_strides,
        scroll_starts=(".tl-grid", ".tl-storage", "input[type=range]"),
        invalid_inputs=(
            ("Shape of x", "two", "A size must be a whole number", "2, 5", "shape (2, 5)"),
            ("Shape of x", "9, 9", "81 elements are more than this lab draws (64).", "8, 8", "shape (8, 8)"),
            (
                "Walk through the tensor in reading order, typed",
                "25",
                "The number must be from 1 to 24, not 25",
                "24",
                "is 23",
            ),
            ("Operations on x", ".explode()", "This lab has no .explode.", ".view(24)", "shape (24,)"),
            ("Operations on x", "<img src=x>", "The error begins at", "[0]", "shape (3, 4)"),
        ),
    ),
    "broadcasting": LabCase(
        make=BroadcastingLab,
        expected_repr="BroadcastingLab(a=(3, 1), b=(4,), mode='elementwise')",
        extreme_states=[
            lambda: BroadcastingLab((2, 3, 1), (4,)),
            lambda: BroadcastingLab((8, 8), (8, 8), "matmul", (7, 7)),
            lambda: BroadcastingLab((3, 4), (3,)),
            lambda: BroadcastingLab((2, 1, 3, 4, 1, 2, 3, 1), (10**9,)),
        ],
        valid_settings={"a": [5, 3, 2], "b": [2, 4], "mode": "matmul", "index": [1, 1, 1]},
        invalid_settings={"a": (-1,), "b": (1,) * 9, "mode": "x"},
        linked_trait="mode",
        control_and_key=(".tl-draggable", "ArrowUp"),
        play=play_with_broadcasting,
        touch=touch_broadcasting,
        scroll_starts=(".tl-draggable", ".tl-grid"),
        invalid_inputs=(
            ("Shape of a", "3, -1", "A size must be a whole number", "5, 1", "shape (5, 4)"),
            ("Shape of b", "99999999999", "A size must be from 0 to 1,000,000,000", "7", "shape (3, 7)"),
        ),
    ),
    "lookup": LabCase(
        make=LookupLab,
        expected_repr=(
            "LookupLab(query=(1.2, 0.3), labels=('cat', 'dog', 'owl', 'carp', 'oak'), temperature=1.4142, "
            "similarity='dot')"
        ),
        extreme_states=[
            lambda: LookupLab(
                (2, -2), [(2, -2), (-2, 2)], [(-2, -2), (2, -2)], labels=["a long name", "b"], temperature=100
            )
        ],
        valid_settings={"query": [0, 1], "key": [[0, 1]] * 5, "temperature": 10, "similarity": "distance"},
        invalid_settings={
            "query": torch.tensor([9.0, 0.0]),
            "key": torch.zeros(3, 2),
            "temperature": 0,
            "similarity": "",
        },
        linked_trait="temperature",
        control_and_key=('[aria-label^="Query at"]', "ArrowLeft"),
        play=play_with_lookup,
        touch=touch_lookup,
        scroll_starts=(".tl-ground", "input[type=range]"),
        invalid_inputs=(
            (
                "Query",
                "one, two",
                "Write a point as two numbers, such as 1, 0.5.",
                "1, 0.5",
                "dog has the largest weight",
            ),
            (
                "Temperature, typed",
                "hot",
                "Temperature must be a number from 0.010 to 100.",
                "0.5",
                "has the largest weight",
            ),
            (
                "Temperature, typed",
                "1000",
                "Temperature must be from 0.010 to 100, not 1,000",
                "0.5",
                "has the largest weight",
            ),
            ("Query", "3, 0", "Both coordinates must be from −2 to 2.", "2, 0", "cat has the largest weight"),
        ),
    ),
    "masks": LabCase(
        make=MaskLab,
        expected_repr="MaskLab(tokens=('the', 'cat', 'sat', 'on', 'the', 'mat'), preset='causal', mistake='none')",
        extreme_states=[
            lambda: MaskLab(LONGEST_SENTENCE, "window", window=4),
            lambda: MaskLab("w" * 16 + " " + "x" * 16 + f" {PAD_TOKEN}" * 10, "decoder self", mistake="inverted"),
            lambda: MaskLab(f"{PAD_TOKEN} {PAD_TOKEN} the cat sat", "both", mistake="times zero"),
            lambda: MaskLab("a b", mask=torch.zeros(2, 2, dtype=torch.bool), mistake="large negative"),
            lambda: MaskLab(preset="decoder cross", mistake="after softmax"),
            lambda: MaskLab(
                "a", query=torch.ones(1, 256) * 1e6, key=torch.ones(12, 256), value=torch.ones(12, 40) * -1e4
            ),
        ],
        valid_settings={"preset": "window", "window": 1, "flipped": [[0, 1]], "mistake": "times zero", "at": [1, 1]},
        invalid_settings={
            "tokens": [],
            "preset": "?",
            "mistake": "",
            "window": 13,
            "flipped": [[1]],
            "at": [-1, 0],
            "mask": torch.ones(1, 1, dtype=torch.bool),
        },
        linked_trait="preset",
        control_and_key=("[role=grid][tabindex='0']", "ArrowDown"),
        play=play_with_masks,
        touch=touch_masks,
        scroll_starts=(
            ".tl-hint",
            ".tl-key-name",
            ".tl-square",
            ".tl-query-name",
            ".tl-sum",
            ".tl-blend",
            ".tl-status",
        ),
        invalid_inputs=(
            ("Padding", "7", "Padding must be from 0 to 6, not 7.", "2", "<pad>"),
            ("Sentence", " ", "Type at least one word.", "a b", "“b” sees “a” and “b”"),
            ("Sentence", LONGEST_SENTENCE + " and more", "At most 12 tokens here, not 14.", "a", "“a” sees “a”"),
            ("Sentence", "antidisestablishmentarianism", "A token has at most 16 characters", "x y", "“y” sees “x”"),
        ),
    ),
    "normalization": LabCase(
        make=NormalizationLab,
        expected_repr="NormalizationLab(shape=(2, 4, 4), norm='layer', dims=(2,), n_groups=1)",
        extreme_states=[
            lambda: NormalizationLab(norm="batch", lengths=[4, 2]),
            lambda: NormalizationLab(torch.linspace(-100, 100, 144).view(4, 6, 6), "group", lengths=[6, 5, 4, 1]),
            lambda: NormalizationLab(torch.zeros(1, 1, 1), "rms"),
            lambda: NormalizationLab(torch.full((3, 2, 5), -0.25), dims=()),
        ],
        valid_settings={"dims": [0, 1], "lengths": [4, 3], "index": [1, 1, 1], "center": False},
        invalid_settings={
            "x": torch.zeros(1, 4, 4),
            "lengths": [4],
            "index": [0, 0, 4],
            "dims": (0, 3),
            "n_groups": 3,
            "eps": 0.0,
            "norm": "weight",
        },
        linked_trait="n_groups",
        control_and_key=(".tl-grid", "ArrowRight"),
        play=play_with_normalization,
        touch=touch_normalization,
        scroll_starts=(".tl-grid", "input[type=range]"),
        invalid_inputs=(
            ("Value of the chosen entry, typed", "x", "A value must be a number from −", "-1.5", "x[0, 1, 1] = −1.50"),
            (
                "Padding at the end of the sentence, typed",
                "4",
                "Padding at the end of the sentence goes",
                "3",
                "3 of 4",
            ),
        ),
    ),
    "order": LabCase(
        make=OrderLab,
        expected_repr="OrderLab(mode='order', n=1024, d=64, m=64, between='nothing', token=1)",
        extreme_states=[
            lambda: OrderLab(65_536, 256, 256, between="causal"),
            lambda: OrderLab(16, 256, 1, between="softmax"),
            lambda: OrderLab(mode="steps", token=4),
            lambda: OrderLab(
                **dict(zip(("query", "key", "value"), torch.linspace(-10, 10, 216).view(3, 12, 6))), token=8
            ),
            lambda: OrderLab(query=[[-10, 10]], key=[[-10, -10]], value=[[0]]),
        ],
        valid_settings={"n": 4096, "d": 32, "m": 16, "between": "causal", "mode": "steps", "token": 6},
        invalid_settings={
            "n": 2,
            "d": 1.5,
            "token": 9,
            "mode": "x",
            "between": "",
            "key": torch.zeros(2, 3),
            "value": torch.full((6, 2), 11.0),
        },
        linked_trait="mode",
        control_and_key=('[type=range][aria-label^="N"]', "ArrowRight"),
        play=play_with_order,
        touch=touch_order,
        scroll_starts=(".tl-matrix", "input[aria-label='Token']"),
        invalid_inputs=(
            ("N, tokens, typed", "many", "N must be a whole number from 16 to 65,536.", "64", "Both orders take"),
            (
                "N, tokens, typed",
                "9" * 400,
                "N must be from 16 to 65,536, not a number of 400 digits",
                "64",
                "Both orders take",
            ),
            ("N, tokens, typed", "8", "N must be from 16 to 65,536, not 8.", "128", "128² × 64"),
            ("D, key features, typed", "1.5", "D must be a whole number from 1 to 256.", "8", "1,024² × 8"),
            ("M, value features, typed", "257", "M must be from 1 to 256, not 257.", "16", "1,024² × 16"),
        ),
    ),
    "experts": LabCase(
        make=ExpertsLab,
        expected_repr=(
            "ExpertsLab(n_active=2, order='softmax-topk', renormalize=True, shared=True, bias=(0.0, 0.0, 0.0, 0.0), "
            "token=0)"
        ),
        extreme_states=[
            large_experts_lab,
            lambda: large_experts_lab(2, 1, n_shared=2),
            lambda: ExpertsLab(n_active=4, order="sigmoid-topk", renormalize=False, shared=False, token=7),
            lambda: ExpertsLab(n_active=1, order="topk-softmax", bias=(-1, 1, -0.5, 0.99), token=5),
        ],
        valid_settings={
            "n_active": 3,
            "order": "sigmoid-topk",
            "renormalize": False,
            "shared": False,
            "bias": [0, 0.5, -0.25, 1],
            "token": 4,
        },
        invalid_settings={
            "n_active": 5,
            "order": "x",
            "renormalize": "x",
            "shared": "x",
            "bias": torch.tensor([0, 0, 0, 1.5]),
            "token": 8,
        },
        linked_trait="n_active",
        control_and_key=("[role=radio][tabindex='0']", "ArrowDown"),
        play=play_with_experts,
        touch=touch_experts,
        scroll_starts=(".tl-links", ".tl-bias", ".tl-numbers", ".tl-status"),
        invalid_inputs=(
            (
                "Bias of expert 3, typed",
                "much",
                "Bias of expert 3 must be a number from −1.00 to 1.00.",
                "0.05",
                "The bias changed the experts of “sat” alone.",
            ),
            (
                "Bias of expert 0, typed",
                "-2",
                "Bias of expert 0 must be from −1.00 to 1.00, not −2.",
                "-1",
                "first, and of 7 tokens in all.",
            ),
        ),
    ),
    "heads": LabCase(
        make=lambda: HeadsLab(random_weights(2, 4, 10, 10), SENTENCE, d_model=32),
        expected_repr="HeadsLab(layer=0, head=0, query=9, key=6)",
        extreme_states=[
            lambda: HeadsLab(random_weights(12, 12, 64, 64, causal=True), [f"word{i % 13}" for i in range(64)]),
            lambda: HeadsLab(random_weights(1, 3, 4, 6), "le chat dort .", "the cat is a sleep .", query=1),
            lambda: HeadsLab(random_weights(2, 3, 4, 4), "a b c d", others=[(random_weights(2, 3, 10, 10), SENTENCE)]),
            lambda: HeadsLab(random_weights(3, 12, 10, 10), SENTENCE, overview="maps", controls=HeadsLab.groups),
            lambda: HeadsLab(random_weights(128, 32, 9, 9), ["www"] * 9, overview="weight"),
            lambda: HeadsLab(torch.zeros(1, 1, 1, 1), ["lone"]),
            lambda: HeadsLab(random_weights(13, 7, 20, 20), [f"aVeryLongTokenNumber{i}" for i in range(20)]),
        ],
        valid_settings={"layer": 1, "head": 2, "query": 3, "key": 4},
        invalid_settings={
            "sentence": 1,
            "layer": 2,
            "head": -1,
            "query": 10,
            "key": 10,
            "overview": "x",
            "tokens": list("abcdefghij"),
            "weights": torch.ones(1, 1, 1, 1),
        },
        linked_trait="head",
        control_and_key=(".tl-sheet", "ArrowUp"),
        play=play_with_heads,
        touch=touch_heads,
        scroll_starts=(".tl-sheet", ".tl-chips", ".tl-minis"),
    ),
    "sampling": LabCase(
        make=SamplingLab,
        expected_repr="SamplingLab(prompt='sea', temperature=1, top_k=None, top_p=1, min_p=0, seed=0, draws=0)",
        extreme_states=[
            lambda: SamplingLab("door", temperature=2, top_p=0.99, draws=1000),
            lambda: SamplingLab("question", temperature=0, draws=3),
            lambda: SamplingLab("colour", temperature=0.05, top_k=1, min_p=1, seed=9999, draws=1),
            lambda: SamplingLab("product", temperature=1.5, top_k=300, top_p=0.5, min_p=0.01, draws=12),
        ],
        valid_settings={
            "prompt": "door",
            "temperature": 0.7,
            "top_k": 40,
            "top_p": 0.9,
            "min_p": 0.05,
            "seed": 3,
            "draws": 5,
        },
        invalid_settings={
            "prompt": "lake",
            "temperature": 2.05,
            "top_k": 301,
            "top_p": 0,
            "min_p": 0.005,
            "seed": -1,
            "draws": 1.5,
        },
        linked_trait="temperature",
        control_and_key=('input[aria-label="Temperature"]', "ArrowRight"),
        play=play_with_sampling,
        touch=touch_sampling,
        scroll_starts=(".tl-tokens", "input[type=range]", ".tl-status"),
        invalid_inputs=(
            (
                "Temperature, typed",
                "hot",
                "Temperature must be a number from 0 to 2.",
                "0.5",
                "is the most likely, with 0.8",
            ),
            (
                "Temperature, typed",
                "0.33",
                "Temperature is set in steps of 0.05.",
                "0.35",
                "is the most likely, with 0.9",
            ),
            (
                "Top-k, typed",
                "1000",
                "Top-k must be a whole number from 1 to 300, or “all”.",
                "40",
                "40 tokens of 49,152 are kept",
            ),
            (
                "Top-k, typed",
                "0",
                "Top-k must be a whole number from 1 to 300, or “all”.",
                "1",
                "1 token of 49,152 is kept",
            ),
            ("Top-p, typed", "0", "Top-p must be from 0.01 to 1, not 0.", "0.5", "2 tokens of 49,152 are kept"),
            ("Min-p, typed", "0.125", "Min-p is set in steps of 0.01.", "0.12", "tokens of 49,152 are kept"),
            ("Seed", "10000", "Seed must be from 0 to 9,999, not 10,000.", "3", "All 49,152 tokens are kept"),
        ),
    ),
    "influence": LabCase(
        make=InfluenceLab,
        expected_repr="InfluenceLab(chosen='A', token=3, row='one', loud=False, verdict='')",
        extreme_states=[
            lambda: InfluenceLab(models="N", row="padded", verdict="nan", token=0),
            lambda: InfluenceLab(models="F", row="padded", loud=True, verdict="future", token=7),
            lambda: InfluenceLab(models=("E", "C"), verdict="right", row="two"),
            influence_lab_of_a_model,
        ],
        valid_settings={"chosen": "H", "token": 6, "row": "two", "loud": True, "verdict": "documents"},
        invalid_settings={"chosen": "Q", "token": 8, "row": "three", "loud": "yes", "verdict": "wrong"},
        linked_trait="token",
        control_and_key=('[role="radio"][aria-checked="true"]', "ArrowRight"),
        play=play_with_influence,
        touch=touch_influence,
        scroll_starts=(".tl-table", ".tl-status"),
    ),
    "split": LabCase(
        make=SplitLab,
        expected_repr="SplitLab(n_heads=2, stage=3, split_by_view=False, merge_by_view=False)",
        extreme_states=[
            lambda: SplitLab("a " * 64, 32, d_model=1024, stage=7, split_by_view=True, merge_by_view=True),
            lambda: SplitLab("aVeryLongToken " * 3, 4, stage=4, split_by_view=True),
        ],
        valid_settings={"stage": 5, "cell": 0, "split_by_view": True, "merge_by_view": True},
        invalid_settings={"stage": 10, "cell": 24, "n_heads": 0, "tokens": []},
        linked_trait="stage",
        control_and_key=(".tl-grid", "ArrowRight"),
        play=play_with_split,
        touch=touch_split,
        scroll_starts=(".tl-stages", ".tl-grid"),
    ),
    "budget": LabCase(
        script_bytes=80_000,  # the script reads the config.json of fifty model types
        make=BudgetLab,
        expected_repr=BUDGET_REPR,
        extreme_states=[
            lambda: BudgetLab(tl.BERT_LARGE, 4096, base="gpt2", quantity="training"),
            lambda: BudgetLab(tl.ModelShape("gpt2", 3, 100, 5, 77, 1, 1, tied=False, bias=False), quantity="flops"),
            lambda: BudgetLab(tl.ModelShape("gpt2", 128, 16_384, 128, 131_072, 262_144, 1_048_576), batch=1024),
            lambda: BudgetLab(
                tl.ModelShape("gpt2", 128, 16_384, 16_384, 131_072, 262_144, 1024), 1_048_576, 1024, base="bert-base"
            ),
        ],
        valid_settings={"seq": 256, "batch": 2, "bytes_per_value": 2, "quantity": "flops", "base": "bert-base"},
        invalid_settings={
            "shape": replace(tl.GPT2, n_layers=129),
            "seq": 0,
            "batch": 1.0,
            "bytes_per_value": 8,
            "base": "",
            "quantity": "money",
        },
        linked_trait="quantity",
        control_and_key=('input[aria-label="Layers"]', "ArrowRight"),
        play=play_with_budget,
        touch=touch_budget,
        scroll_starts=(".tl-track input", ".tl-stack", ".tl-status"),
        invalid_inputs=(
            ("Heads, typed", "7", "d_model 768 is not a multiple of 7.", "16", "16 heads instead of 12"),
            ("Layers, typed", "129", "Layers must be from 1 to 128, not 129.", "13", "13 layers instead of 12"),
        ),
    ),
    "whole": LabCase(
        make=WholeLab,
        script_bytes=89_000,  # 71 kB in the book, without spaces and long names
        expected_repr="WholeLab(text='342', family='both', step=0, part='')",
        extreme_states=[
            lambda: WholeLab(text="777777", part="decoder.1.self"),
            lambda: WholeLab(text="2003", family="decoder", step=4, part="decoder.0.self.add"),
            lambda: WholeLab(family="encoder", part="encoder.memory"),
            lambda: WholeLab(step=21, part="decoder.softmax"),
            large_whole_lab,
        ],
        valid_settings={"text": "13", "family": "decoder", "step": 3, "part": "decoder.0.self", "at": [1, 0, 1]},
        invalid_settings={"text": "3x", "family": "x", "step": -1, "part": 3},
        linked_trait="text",
        control_and_key=("input[type=range]", "ArrowRight"),
        play=play_with_whole,
        touch=touch_whole,
        scroll_starts=(".tl-drawing", "input[type=range]", ".tl-name", ".tl-status"),
        invalid_inputs=(
            (
                "Type a number, up to 6 digits",
                "three",
                "Digits only: the model knows 0 to 9, but no comma, sign or letter.",
                "3",
                "Right.",
            ),
            ("Type a number, up to 6 digits", "1234567", "At most 6 digits, not 7.", "1000", "thousand"),
            (
                "Type a number, up to 6 digits",
                " ",
                "Type a number, such as 7.",
                "45678",
                "Wrong: it is forty five thousand six hundred",
            ),
        ),
    ),
    "practice": LabCase(
        make=lambda: Practice("strides_of"),
        expected_repr="Practice(topic='strides_of', case=0)",
        extreme_states=[
            lambda: Practice("head_1"),
            lambda: Practice("order_of_a_block"),
            lambda: Practice("offset", "head_1", "decoder"),
            lambda: mixed_practice("offset", "head_1", "decoder"),
        ],
        valid_settings={"case": 3, "answer": "20, 5, 1", "state": "checked"},
        invalid_settings={"case": 24, "answer": "1" * 401, "state": "x", "topic": "offset", "choice": "offset"},
        linked_trait="answer",
        control_and_key=(".tl-input", "Enter"),
        play=play_with_practice,
        touch=touch_practice,
        scroll_starts=(".tl-question", ".tl-status"),
        invalid_inputs=(
            ("Your answer", "20; x; 1", "“x” is not a number.", "[20 5 1]", "Type the numbers"),
            ("Your answer", "1" * 101, "No answer is that long.", "4*5, 5, 1", "Type the numbers"),
        ),
    ),
    "painting": LabCase(
        make=lambda: Practice("decoder"),
        expected_repr="Practice(topic='decoder', case=0)",
        extreme_states=[lambda: Practice("decoder")],
        valid_settings={"case": 5, "answer": "1000/1100/1110/1111", "state": "shown"},
        invalid_settings={"case": 1.5},
        linked_trait="answer",
        control_and_key=("button", "Enter"),
        play=play_with_painting,
        touch=touch_painting,
        scroll_starts=(".tl-question", ".tl-painted", ".tl-status"),
    ),
}
