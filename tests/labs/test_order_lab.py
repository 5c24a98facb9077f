"""The order lab works in Python and in a browser, and its arithmetic agrees with the package's."""

import itertools
import math
import random

import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from agreement import raises
from gestures import status
from javascript import Engine, assert_close
from transformer_lab.labs import OrderLab
from transformer_lab.labs.order import SIZE_RANGES

MIN_WIDTH = 2


def some_sizes(count, seed=0):
    """Return random sizes over the whole range, including the extreme sizes."""
    draw = random.Random(seed)
    corners = list(itertools.product((16, 65_536), (1, 256), (1, 256)))
    random_sizes = [(round(2 ** draw.uniform(4, 16)), draw.randint(1, 256), draw.randint(1, 256)) for _ in range(count)]
    return [dict(zip("ndm", sizes)) for sizes in corners + random_sizes]


def some_sequences(count, seed=0):
    """Yield random queries, keys and values, whose sizes are drawn from all supported sizes."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    for _ in range(count):
        seq, d, m = draw.randint(1, 12), draw.randint(1, 6), draw.randint(1, 6)
        std = draw.choice((0.5, 2, 5))
        query, key, value = (torch.randn(seq, size, generator=generator) * std for size in (d, d, m))
        yield query.clamp(-10, 10), key.clamp(-10, 10), value.clamp(-10, 10)


def scores_and_outputs_by_definition(query, key, value):
    """Compute in float64 the scores and each query's weighted mean of the values so far, with φ = elu + 1."""
    query, key, value = (x.double() for x in (query, key, value))
    scores = torch.einsum("id,jd->ij", F.elu(query) + 1, F.elu(key) + 1).tril()
    return scores, torch.einsum("ij,jm->im", scores / scores.sum(-1, keepdim=True), value)


# The arithmetic.


@pytest.fixture(scope="module")
def engine():
    return Engine(OrderLab)


def test_feature_map_agrees_with_the_package(engine):
    x = torch.linspace(-10, 10, 81, dtype=torch.float64)
    actual = [engine("phi", value) for value in x.tolist()]
    assert_close(actual, F.elu(x) + 1)
    assert_close(actual, tl.elu_feature_map(x))
    assert min(actual) > 0


def test_recurrent_form_agrees_with_the_package(engine):
    for query, key, value in some_sequences(40):
        actual = engine("recurrentSteps", query.tolist(), key.tolist(), value.tolist())
        q, k, v = (x.double()[None, None] for x in (query, key, value))
        state = tl.initial_state(1, 1, q.shape[-1], v.shape[-1], dtype=torch.float64)
        for t, step in enumerate(actual):
            assert_close(step["before"]["S"], state[0][0, 0])
            assert_close(step["before"]["z"], state[1][0, 0])
            state, output = tl.linear_attention_step(state, q[:, :, t], k[:, :, t], v[:, :, t])
            assert_close(step["S"], state[0][0, 0])
            assert_close(step["z"], state[1][0, 0])
            assert_close(step["output"], output[0, 0])
            assert_close(step["added"], torch.outer(F.elu(k[0, 0, t]) + 1, v[0, 0, t]))
            assert_close([x / step["denominator"] for x in step["numerator"]], output[0, 0])
        outputs = [step["output"] for step in actual]
        assert_close(outputs, tl.causal_linear_attention(q, k, v)[0, 0])
        assert_close(outputs, scores_and_outputs_by_definition(query, key, value)[1])


def test_parallel_form_agrees_with_the_package(engine):
    for query, key, value in some_sequences(40, seed=1):
        scores, outputs = scores_and_outputs_by_definition(query, key, value)
        for t in range(len(key)):
            actual = engine("parallelRow", query.tolist(), key.tolist(), value.tolist(), t)
            assert len(actual["scores"]) == len(actual["weights"]) == t + 1
            assert_close(actual["scores"], scores[t, : t + 1])
            assert_close(actual["weights"], scores[t, : t + 1] / scores[t].sum())
            assert_close(actual["sum"], scores[t].sum())
            assert_close(actual["output"], outputs[t])


def test_counts_agree_with_matmul(engine):
    for sizes in some_sizes(300):
        n, d, m = sizes.values()
        actual, lab = engine("counts", sizes), OrderLab(**sizes)
        # A product (a, b) @ (b, c) needs a·b·c multiply-adds.
        assert actual["first"] == [n * d * n, n * n * m] and actual["second"] == [d * n * m, n * d * m]
        assert (sum(actual["first"]), sum(actual["second"])) == lab.multiply_adds
        assert tuple(actual["held"]) == lab.held == (n * n, d * m)
        equal_n = actual["equalN"]
        assert equal_n**2 * (d + m) == pytest.approx(2 * equal_n * d * m)
        cost_difference = lab.multiply_adds[0] - lab.multiply_adds[1]
        assert cost_difference == 0 or (cost_difference > 0) == (n > equal_n)


def test_counts_agree_with_the_packages_flops():
    for sizes in some_sizes(50, seed=1):
        n, d = sizes["n"], sizes["d"]
        first, second = OrderLab(n, d, d).multiply_adds
        assert 2 * first == tl.attention_flops(n, d)
        assert 2 * second == tl.linear_attention_flops(n, d, n_heads=1)
        assert (first == second) == (n == d)


LABEL_WIDTHS = {"q": 42, "k": 44, "v": 42, "a": 84, "s": 50, "out": 44}  # widths that the lab reserves


def test_product_is_between_its_factors_and_to_scale(engine):
    for sizes in some_sizes(200, seed=2):
        scale = engine("fitScale", sizes, LABEL_WIDTHS)
        pictures = engine("layout", sizes, scale, LABEL_WIDTHS)
        side_lengths = {name: max(size * scale, MIN_WIDTH) for name, size in sizes.items()}
        shapes = {"q": "nd", "k": "dn", "v": "nm", "out": "nm"}
        for name, mid in (("first", "nn"), ("second", "dm")):
            rects = pictures[name]["rects"]
            for rect, (rows, columns) in (shapes | {"mid": mid}).items():
                assert rects[rect]["h"] == pytest.approx(side_lengths[rows]) and rects[rect]["w"] == pytest.approx(
                    side_lengths[columns]
                )
            left_factor, upper_factor = (rects[x] for x in {"first": "qk", "second": "kv"}[name])
            product_rect = rects["mid"]
            assert (product_rect["y"], product_rect["h"]) == (left_factor["y"], left_factor["h"])
            assert left_factor["x"] + left_factor["w"] < product_rect["x"]
            assert (product_rect["x"], product_rect["w"]) == (upper_factor["x"], upper_factor["w"])
            assert upper_factor["y"] + upper_factor["h"] < product_rect["y"]
            for first_rect, second_rect in itertools.combinations(rects.values(), 2):
                apart_in_x = (
                    first_rect["x"] + first_rect["w"] <= second_rect["x"]
                    or second_rect["x"] + second_rect["w"] <= first_rect["x"]
                )
                apart_in_y = (
                    first_rect["y"] + first_rect["h"] <= second_rect["y"]
                    or second_rect["y"] + second_rect["h"] <= first_rect["y"]
                )
                assert apart_in_x or apart_in_y
        # At a larger scale, the pictures would not fit.
        enlarged_pictures = engine("layout", sizes, scale * 1.001, LABEL_WIDTHS)
        picture_sizes = [(picture["width"], picture["height"]) for picture in pictures.values()]
        assert max(x for x, _ in picture_sizes) <= 340 and max(y for _, y in picture_sizes) <= 125
        assert (
            any(picture["width"] > 340 or picture["height"] > 125 for picture in enlarged_pictures.values())
            or scale > 31
        )


def test_scale_is_round_and_fits(engine):
    for sizes in some_sizes(100, seed=3):
        scale = engine("fitScale", sizes, LABEL_WIDTHS)
        ruler = engine("rulerLength", scale)
        assert 45 < ruler * scale <= 90 and math.log2(ruler).is_integer()


def test_slider_of_n_has_round_steps(engine):
    stops = [engine("tokensOf", i) for i in range(97)]
    assert stops == sorted(set(stops)) and stops[0] == 16 and stops[-1] == 65_536
    assert all(isinstance(n, int) for n in stops) and {2**i for i in range(4, 17)} <= set(stops)
    assert [engine("sliderPosition", n) for n in stops] == pytest.approx(list(range(97)))
    intermediate_positions = [engine("sliderPosition", n) for n in range(16, 5000, 13)]
    assert intermediate_positions == sorted(set(intermediate_positions))


def test_typed_sizes_are_parsed_or_refused_in_words(engine):
    for text, value in [("16", 16), (" 65,536 ", 65_536), ("4096", 4096), ("4 096", 4096), ("50_257", 50_257)]:
        assert engine("parseSize", "n", text, SIZE_RANGES["n"]) == {"value": value, "text": f"{value:,}"}
    for text in ("", "x", "-3", "1.5", "1e3", "4,09", "16 17"):
        assert engine("parseSize", "n", text, SIZE_RANGES["n"]) == {
            "error": "N must be a whole number from 16 to 65,536."
        }
    assert engine("parseSize", "n", "15", SIZE_RANGES["n"]) == {"error": "N must be from 16 to 65,536, not 15."}
    assert engine("parseSize", "d", "1,000", SIZE_RANGES["d"]) == {"error": "D must be from 1 to 256, not 1,000."}
    assert engine("parseSize", "m", "0", SIZE_RANGES["m"]) == {"error": "M must be from 1 to 256, not 0."}


def test_numbers_are_formatted_for_reading(engine):
    assert [engine("numberText", x) for x in (3, 2.5, -0.333, 0.004, -1e-9, 0, 12345.6)] == [
        "3", "2.5", "−0.33", "≈0", "≈0", "0", "12346",
    ]  # fmt: skip
    assert [engine("positiveText", x) for x in (3, 0.004, 0.0000454, 2e-9)] == ["3", "0.004", "0.00005", "2e−9"]
    assert [engine("cellText", x) for x in (9.25, -10.25, 99.96, -1320.4)] == ["9.25", "−10.3", "100", "−1320"]
    assert [engine("ratioText", x) for x in (16, 1152.4, 6.4, 1.5, 1.0156)] == ["16", "1,152", "6.4", "1.5", "1.016"]
    assert engine("sumText", [2, 0.5], [3, -1]) == "2·3 + 0.5·(−1)"
    assert [engine("vectorText", x) for x in ([1, -2], [3])] == ["(1, −2)", "3"]


# The state in Python.


def test_the_state_is_a_sum_and_the_output_is_a_mean():
    lab = OrderLab()
    # The default sequence, by hand: φ(k) is (2, 1, ½), (1, 3, 1), (½, 2, 2), …; φ(q) of the third token is (½, 3, 1).
    for token, S, z in [
        (1, [[4, 0], [2, 0], [1, 0]], [2, 1, 0.5]),
        (2, [[4, 3], [2, 9], [1, 3]], [3, 4, 1.5]),
        (3, [[3.5, 3.5], [0, 11], [-1, 5]], [3.5, 6, 3.5]),
    ]:
        lab.token = token
        assert_close(lab.state[0], torch.tensor(S, dtype=torch.float64))
        assert_close(lab.state[1], torch.tensor(z, dtype=torch.float64))
    assert_close(lab.output, torch.tensor([0.75, 39.75], dtype=torch.float64) / 23.25)
    lab.token = 1
    assert lab.output.tolist() == lab.value[0].tolist(), "the first token sees only itself"


def test_state_and_output_agree_at_every_token():
    for query, key, value in some_sequences(30, seed=4):
        _, outputs = scores_and_outputs_by_definition(query, key, value)
        lab = OrderLab(query=query, key=key, value=value)
        for token in range(1, len(key) + 1):
            lab.token = token
            S, z = lab.state
            assert (S.shape, z.shape) == ((key.shape[1], value.shape[1]), (key.shape[1],))
            features = F.elu(query[token - 1]) + 1
            assert_close(lab.output, outputs[token - 1], rtol=1e-4, atol=1e-4)
            assert_close(features @ S / (features @ z), outputs[token - 1], rtol=1e-4, atol=1e-4)


def test_repr_is_stable_and_state_from_the_browser_is_kept():
    lab = OrderLab()
    assert repr(lab) == "OrderLab(mode='order', n=1024, d=64, m=64, between='nothing', token=1)"
    lab.set_state({"n": 4096, "d": 32, "m": 16, "between": "causal", "mode": "steps", "token": 6})
    assert repr(lab) == "OrderLab(mode='steps', n=4096, d=32, m=16, between='causal', token=6)"
    assert lab.multiply_adds == (4096**2 * 48, 2 * 4096 * 32 * 16) and type(lab.n) is int
    state = lab.get_state()
    lab.set_state({name: state[name] for name in ("query", "key", "value")})
    assert lab.key.dtype == torch.float32 and torch.equal(lab.key, OrderLab().key)


def test_inputs_are_copied_and_select_the_step_mode():
    x = torch.ones(2, 3)
    lab = OrderLab(query=x, key=x, value=x)
    x.zero_()
    assert lab.query.eq(1).all() and lab.key.eq(1).all() and lab.value.eq(1).all()
    assert (lab.mode, lab.token) == ("steps", 1) and OrderLab(mode="steps").mode == "steps"
    assert OrderLab(query=x, key=x, value=x, mode="order").mode == "order"
    assert OrderLab(query=[[1]], key=[[2]], value=[[3, 4]]).output.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 15}, ValueError, "n must be from 16 to 65536, got 15"),
        ({"n": 65_537}, ValueError, "n must be from 16 to 65536, got 65537"),
        ({"n": 64.0}, TypeError, "n must be an integer, got 64.0"),
        ({"d": 0}, ValueError, "d must be from 1 to 256, got 0"),
        ({"m": 257}, ValueError, "m must be from 1 to 256, got 257"),
        ({"m": "8"}, TypeError, "m must be an integer, got '8'"),
        ({"d": True}, TypeError, "d must be an integer, got True"),
        ({"token": 0}, ValueError, "token must be from 1 to 6, got 0"),
        ({"token": 7}, ValueError, "token must be from 1 to 6, got 7"),
        ({"token": None}, TypeError, "token must be an integer, got None"),
        ({"mode": "recurrent"}, ValueError, "mode must be one of 'order', 'steps', got 'recurrent'"),
        (
            {"between": ["softmax"]},
            ValueError,
            "between must be one of 'nothing', 'softmax', 'causal', got ['softmax']",
        ),
        ({"key": [[1]]}, ValueError, "query, key and value must be given together, got key without query and value"),
        (
            {"query": [[1]], "key": [[1]]},
            ValueError,
            "query, key and value must be given together, got query and key without value",
        ),
        (
            {"query": "one", "key": [[1]], "value": [[1]]},
            TypeError,
            "query must be a tensor or sequences of numbers, got 'one'",
        ),
        (
            {"query": [[1]], "key": [1, 2], "value": [[1]]},
            ValueError,
            "key must have shape (seq, d_head), from (1, 1) to (12, 6), got (2,)",
        ),
        (
            {"query": [[1]], "key": [[1]], "value": torch.zeros(13, 2)},
            ValueError,
            "value must have shape (seq, d_value), from (1, 1) to (12, 6), got (13, 2)",
        ),
        (
            {"query": torch.zeros(2, 7), "key": [[1]], "value": [[1]]},
            ValueError,
            "query must have shape (seq, d_head), from (1, 1) to (12, 6), got (2, 7)",
        ),
        (
            {"query": torch.zeros(0, 2), "key": [[1]], "value": [[1]]},
            ValueError,
            "query must have shape (seq, d_head), from (1, 1) to (12, 6), got (0, 2)",
        ),
        (
            {"query": [[1, math.nan]], "key": [[1, 2]], "value": [[1]]},
            ValueError,
            "query must have values from -10 to 10, got nan",
        ),
        (
            {"query": [[1]], "key": [[1]], "value": [[-10.5]]},
            ValueError,
            "value must have values from -10 to 10, got -10.5",
        ),
        (
            {"query": torch.zeros(3, 2), "key": torch.zeros(2, 2), "value": torch.zeros(2, 1)},
            ValueError,
            "query and key must share seq, got 3 and 2",
        ),
        (
            {"query": torch.zeros(2, 2), "key": torch.zeros(2, 2), "value": torch.zeros(3, 1)},
            ValueError,
            "value and key must share seq, got 3 and 2",
        ),
        (
            {"query": torch.zeros(2, 3), "key": torch.zeros(2, 2), "value": torch.zeros(2, 1)},
            ValueError,
            "query and key must share d_head, got 3 and 2",
        ),
    ],
)
def test_invalid_arguments_raise_clear_errors(arguments, error, message):
    raises(lambda: OrderLab(**arguments), error, message)


# In a browser.


BUTTON_TEXTS = {"nothing": "nothing", "softmax": "softmax", "causal": "causal mask"}
FIELD_LABELS = {"n": "N, tokens", "d": "D, key features", "m": "M, value features"}


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def slider(page, name):
    return page.get_by_role("slider", name=FIELD_LABELS[name])


def typed_field(page, name):
    return page.get_by_label(f"{FIELD_LABELS[name]}, typed")


def number_text(number):
    """Format a number with at most two decimals, as in the lab."""
    if number and abs(number) < 0.005:
        return "≈0"
    return f"{round(number, 2):g}".replace("-", "−")


def vector_text(numbers):
    numbers = [number_text(x) for x in numbers]
    return f"({', '.join(numbers)})" if len(numbers) > 1 else numbers[0]


def cost_texts(page, column):
    return page.locator(".tl-cost-table").nth(column).locator("td").all_inner_texts()


def rectangle_sizes(page, picture):
    """Return the width and height of a picture's rectangles, in the units of the picture."""
    return (
        page.locator(".tl-picture")
        .nth(picture)
        .evaluate("""picture => {
        const side = (name, which) => Number(picture.querySelector(`rect.tl-${name}`).getAttribute(which));
        const names = ['q', 'k', 'v', 'mid', 'out'];
        return Object.fromEntries(names.map((name) => [name, [side(name, 'width'), side(name, 'height')]]));
    }""")
    )


@pytest.mark.parametrize(("n", "d", "m"), [(1024, 64, 64), (16, 256, 64), (65_536, 256, 32), (64, 64, 64), (100, 7, 3)])
def test_typed_sizes_update_counts_and_texts(show, n, d, m):
    page, lab = show(OrderLab(d=8)), OrderLab(n, d, m)
    for name, value in {"n": n, "d": d, "m": m}.items():
        typed_field(page, name).fill(str(value))
    first, second = lab.multiply_adds
    assert cost_texts(page, 0) == [f"{x:,}" for x in (n * n * d, n * n * m, first, n * n)]
    assert cost_texts(page, 1) == [f"{x:,}" for x in (n * d * m, n * d * m, second, d * m)]
    assert f"N²(D + M) = {n:,}² × {d + m}" in page.locator(".tl-cost-table").nth(0).inner_text()
    assert f"2NDM = 2 × {n:,} × {d} × {m}" in page.locator(".tl-cost-table").nth(1).inner_text()
    text = status(page)
    assert text.endswith(f"Numbers stored in between: {n * n:,} or {d * m:,}.")
    if first == second:
        assert text.startswith(f"Both orders take {first:,} multiply-adds: N is 2DM/(D + M). ")
        return
    smaller, larger = sorted((first, second))
    heading = "Keys with values first" if second < first else "Queries with keys first"
    ratio = (
        f"{round(larger / smaller):,}" if larger / smaller >= 10 else f"{larger / smaller:.2f}".rstrip("0").rstrip(".")
    )
    assert text.startswith(f"“{heading}” takes {ratio} times fewer multiply-adds: {smaller:,} instead of {larger:,}. ")
    equal = 2 * d * m / (d + m)
    assert f"The costs are equal at N = 2DM/(D + M) = {equal:g}. " in text or f" = {equal:.1f}. " in text
    bars = page.locator(".tl-orders .tl-bar").evaluate_all(
        "tracks => tracks.map((track) => [...track.children].map((part) => part.offsetWidth / track.offsetWidth))"
    )
    for bar, parts in zip(bars, ((n * n * d, n * n * m), (n * d * m, n * d * m))):
        assert bar == pytest.approx([part / larger for part in parts], abs=0.01)


def test_pictures_share_a_scale_and_thin_sides_are_widened(show):
    page = show(OrderLab(256, 64, 128))
    note = page.locator(".tl-scale-note")
    first, second = rectangle_sizes(page, 0), rectangle_sizes(page, 1)
    scale = first["mid"][0] / 256
    for picture, mid in ((first, (256, 256)), (second, (128, 64))):
        expected = {"q": (64, 256), "k": (256, 64), "v": (128, 256), "mid": mid, "out": (128, 256)}
        assert picture == {name: pytest.approx([x * scale for x in size]) for name, size in expected.items()}
    ruler = page.locator(".tl-ruler").first.evaluate("path => path.getBBox().width")
    words = page.locator(".tl-picture").first.locator("text").last.text_content()
    assert ruler == pytest.approx(int(words.split()[0]) * scale, abs=0.5) and words.endswith("rows or columns")
    assert note.inner_text() == "All sides are to scale."
    typed_field(page, "n").fill("65,536")
    second, scale = rectangle_sizes(page, 1), rectangle_sizes(page, 0)["mid"][0] / 65_536
    assert second["mid"] == [2, 2] and second["q"] == [2, pytest.approx(65_536 * scale)]
    assert note.inner_text().startswith(
        f"At this scale, D = 64 and M = 128 would be at most {128 * scale:.2f} pixels wide. "
    )
    typed_field(page, "d").fill("256")
    typed_field(page, "m").fill("1")
    typed_field(page, "n").fill("16")
    width = rectangle_sizes(page, 0)["q"][0] / 256
    assert (
        f"M = 1 would be {width:.2f} pixels wide. This side is drawn 2 pixels wide, so that it is visible."
        in note.inner_text()
    )


def test_softmax_allows_one_order_and_a_mask_needs_running_sums(show):
    page = show(OrderLab())
    crosses = page.locator(".tl-cross")
    states = {}
    for between, name in BUTTON_TEXTS.items():
        press(page, name)
        pressed = page.get_by_role("group", name="Between the two products").locator("[aria-pressed=true]")
        assert pressed.all_inner_texts() == [name]
        states[between] = status(page)
        softmax, causal = between == "softmax", between == "causal"
        assert not crosses.nth(0).is_visible() and crosses.nth(1).is_visible() == softmax
        assert page.locator(".tl-cost-table").nth(1).is_visible() != softmax
        error_text = page.locator(".tl-impossible").nth(1).inner_text()
        assert error_text.startswith("Not possible: exp(q·k) is neither") if softmax else error_text == ""
        assert page.get_by_role("button", name="equal: 64").count() == (0 if softmax else 1)
        assert page.locator(".tl-masked").nth(0).is_visible() == causal
        assert ("softmax(QKᵀ)" in page.locator(".tl-picture").nth(0).text_content()) == softmax
        assert ("S so far" in page.locator(".tl-picture").nth(1).text_content()) == causal
        assert {"nothing": "associative", "softmax": "All N × N scores", "causal": "contain the future"}[
            between
        ] in page.locator(".tl-reason").inner_text()
    assert states["softmax"].startswith(
        "With softmax in between, only one order is possible: 134,217,728 multiply-adds"
    )
    assert states["nothing"] == states["causal"], "a mask does not change the counts"


def test_mark_sets_n_to_equal_costs(show):
    page = show(OrderLab(n=8192, d=64, m=64))
    mark = page.locator(".tl-mark")
    mark.click()
    assert typed_field(page, "n").input_value() == "64" and status(page).startswith(
        "Both orders take 524,288 multiply-adds"
    )
    assert mark.get_attribute("aria-pressed") == "true"
    for name in "dm":
        typed_field(page, name).fill("256")
    track, place = slider(page, "n").bounding_box(), mark.bounding_box()
    thumb_x = track["x"] + 8 + (track["width"] - 16) * 4 / 12  # four of twelve doublings from 16
    assert place["x"] + place["width"] / 2 == pytest.approx(thumb_x, abs=2)
    for name in "dm":
        typed_field(page, name).fill("64")
    typed_field(page, "m").fill("32")
    assert mark.inner_text() == "equal: 42.7" and mark.get_attribute("aria-pressed") == "false"
    mark.click()
    assert typed_field(page, "n").input_value() == "43" and "takes 1.008 times fewer" in status(page)
    typed_field(page, "d").fill("5")
    assert not mark.is_visible(), "the slider of N does not reach the N of equal costs"


def test_every_slider_can_be_moved_by_keyboard(show):
    page = show(OrderLab())
    for key, n in {"ArrowRight": 1152, "ArrowLeft": 1024, "End": 65_536, "Home": 16}.items():
        slider(page, "n").press(key)
        assert typed_field(page, "n").input_value() == f"{n:,}"
        assert slider(page, "n").get_attribute("aria-valuetext") == f"{n:,} tokens"
    for name in "dm":
        slider(page, name).press("ArrowRight")
        assert typed_field(page, name).input_value() == "65"
    press(page, "step by step")
    token = page.get_by_label("Token", exact=True)
    for key, expected_token in {"ArrowRight": 2, "End": 6, "ArrowLeft": 5, "Home": 1}.items():
        token.press(key)
        assert status(page).startswith(f"Token {expected_token} of 6: ")


def random_sequences():
    generator = torch.Generator().manual_seed(6)
    for seq, d, m in [(12, 6, 6), (4, 2, 5)]:
        draws = [torch.randn(seq, size, generator=generator) * 2 for size in (d, d, m)]
        yield dict(zip(("query", "key", "value"), (x.clamp(-10, 10) for x in draws)))


@pytest.mark.parametrize("tensors", [{}, *random_sequences()], ids=["own", "largest", "broad"])
def test_every_step_agrees_with_the_package(show, tensors):
    lab = OrderLab(mode="steps", **tensors)
    page = show(lab)
    (seq, d), m = lab.key.shape, lab.value.shape[1]
    scores, outputs = scores_and_outputs_by_definition(lab.query, lab.key, lab.value)
    blocks = page.locator(".tl-matrix")
    previous_state_texts = None
    for token in range(1, seq + 1):
        if token > 1:
            press(page, "Next token")
        lab.token = token
        S, z = lab.state
        state = torch.cat((S, z[:, None]), 1)
        cell_texts = blocks.evaluate_all(
            "blocks => blocks.map((block) => [...block.querySelectorAll('.tl-number')].map((cell) => cell.innerText))"
        )
        numbers = [[float(x.replace("−", "-").replace("≈0", "0")) for x in cells] for cells in cell_texts]
        assert_close(numbers[2], state.flatten().double(), rtol=6e-3, atol=6e-3)
        v = torch.cat((lab.value[token - 1], torch.ones(1)))
        product = torch.outer(F.elu(lab.key[token - 1]) + 1, v).double()
        assert_close(numbers[1], product.flatten(), rtol=6e-3, atol=6e-3)
        assert cell_texts[0] == (previous_state_texts or ["0"] * (d * (m + 1))), (
            "the state carries over to the next token"
        )
        previous_state_texts = cell_texts[2]
        marked_cells = (
            blocks.nth(2)
            .locator(".tl-number")
            .evaluate_all("cells => cells.map((cell) => cell.classList.contains('tl-changed'))")
        )
        assert marked_cells == [x != 0 for x in product.flatten().tolist()]
        output = vector_text(outputs[token - 1].tolist())
        assert page.locator(".tl-output-line").inner_text().endswith(f"= {output}")
        assert page.locator(".tl-products > :nth-child(2n)").count() == m + 1
        rows = page.locator(".tl-keys tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.children].map((cell) => cell.innerText))"
        )
        for j, (_, score, weight, value) in enumerate(rows):
            assert value == vector_text(lab.value[j].tolist())
            if j >= token:
                assert (score, weight) == ("masked", "0")
            else:
                assert float(score) == pytest.approx(scores[token - 1, j].item(), abs=6e-3, rel=0.2)
                assert float(weight) == pytest.approx((scores[token - 1, j] / scores[token - 1].sum()).item(), abs=6e-3)
        assert page.locator(".tl-keys tfoot td").last.inner_text() == output
        assert page.locator(".tl-comparison").inner_text() == "The weights times the values give the same output."
        text = page.locator(".tl-forms").inner_text()
        assert f"state: D×M + D = {d}×{m} + {d} = {d * m + d}, after each token" in text
        assert f"t × (D + M) = {token} × {d + m} = {token * (d + m)}, and it grows" in text
        assert status(page) == (
            f"Token {token} of {seq}: φ(k)vᵀ and φ(k) are added to the state, which always has {d * m + d} numbers. "
            f"The output is {output}, as in the parallel form. "
            f"A key–value cache would contain {token * (d + m)} numbers by now."
        )


def test_the_written_sums_can_be_checked_by_hand(show):
    page = show(OrderLab(mode="steps", token=3))
    text = page.locator(".tl-recurrent").inner_text()
    for line in (
        "k = (−0.69, 1, 1)",
        "φ(k) = elu(k) + 1 = (0.5, 2, 2)",
        "v = (−1, 1)",
        "φ(q) = (0.5, 3, 1)",
        "0.5·3.5 + 3·0 + 1·(−1) = 0.75",
        "0.5·3.5 + 3·11 + 1·5 = 39.75",
        "0.5·3.5 + 3·6 + 1·3.5 = 23.25",
        "= (0.75, 39.75) / 23.25 = (0.03, 1.71)",
    ):
        assert line in text
    label = page.locator(".tl-matrix").nth(2).get_attribute("aria-label")
    assert label == "after token 3. S: rows 3.5 3.5; 0 11; −1 5. z: 3.5 6 3.5."


def test_back_and_next_keep_the_focus(show):
    page = show(OrderLab(mode="steps"))
    back_button, next_button = (page.get_by_role("button", name=name, exact=True) for name in ("Back", "Next token"))
    assert back_button.is_disabled() and next_button.is_enabled()
    next_button.focus()
    for _ in range(5):
        page.keyboard.press("Enter")
    assert status(page).startswith("Token 6 of 6") and next_button.is_disabled()
    assert back_button.evaluate("button => button === document.activeElement")
    for _ in range(5):
        page.keyboard.press("Enter")
    assert status(page).startswith("Token 1 of 6") and next_button.evaluate(
        "button => button === document.activeElement"
    )


def test_a_sequence_of_one_token_has_no_other_step(show):
    page = show(OrderLab(query=[[1]], key=[[-1]], value=[[2]]))
    assert "The output is 2, as in the parallel form" in status(page)
    assert page.get_by_label("Token", exact=True).is_disabled()
    assert all(page.get_by_role("button", name=name).is_disabled() for name in ("Back", "Next token"))


CONTRASTS = """() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const luminance = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const rgb = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255);
        const [r, g, b] = rgb.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrasts = {};
    const compare = (kind, node, colour, background) => {
        const [dark, bright] = [luminance(colour), luminance(background)].sort((a, b) => a - b);
        contrasts[`${kind} ${node.getAttribute('class')}`] = (bright + 0.05) / (dark + 0.05);
    };
    const styled = (selector) => [...document.querySelectorAll(selector)].map((node) => [node, getComputedStyle(node)]);
    const [[, { backgroundColor: background }]] = styled('.tl-lab'), [[, { fill: middleFill }]] = styled('.tl-mid');
    for (const [node, style] of styled('.tl-picture rect')) compare('shape', node, style.fill, background);
    for (const [node, style] of styled('.tl-cross, .tl-ruler')) compare('shape', node, style.stroke, background);
    for (const [node, style] of styled('.tl-part')) {
        compare('shape', node, style.backgroundColor, getComputedStyle(node.parentNode).backgroundColor);
    }
    for (const [node, style] of styled('.tl-picture text')) {
        compare('text', node, style.fill, node.matches('.tl-inside') ? middleFill : background);
    }
    return contrasts;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_have_enough_contrast(show, theme):
    page = show(OrderLab(between="softmax"), OrderLab(mode="steps"), theme=theme)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) == 15
    for kind, contrast in contrasts.items():
        assert contrast >= (4.5 if kind.startswith("text") else 3), kind
