"""The labs: their JavaScript against PyTorch and the package, what a reader may type, and the state kept in Python."""

import json
import math
import random

import ipywidgets
import pytest
import torch
import traitlets
from agreement import says
from hypothesis import example, given, settings
from hypothesis import strategies as st
from javascript import Engine, agree

import transformer_lab as tl
from transformer_lab.labs import BroadcastingLab, LookupLab, StridesLab
from transformer_lab.labs.strides import OPERATIONS

LABS = {"broadcasting": BroadcastingLab, "lookup": LookupLab, "strides": StridesLab}
LIMITS, SHAPES, PLANE = (lab().limits for lab in (StridesLab, BroadcastingLab, LookupLab))
REFUSALS = (RuntimeError, IndexError, TypeError, ValueError)  # what PyTorch raises at an operation that does not fit


@pytest.fixture(scope="module")
def strides():
    return Engine(StridesLab)


@pytest.fixture(scope="module")
def broadcasting():
    return Engine(BroadcastingLab)


@pytest.fixture(scope="module")
def lookup():
    return Engine(LookupLab)


# The shared arithmetic.


def test_softmax_dot_and_blend_agree_with_torch(lookup):
    generator = torch.Generator().manual_seed(0)
    for k_len, features in [(1, 1), (2, 5), (5, 3), (8, 2)] * 10:
        scores = torch.randn(k_len, generator=generator, dtype=torch.float64) * 10
        other = torch.randn(k_len, generator=generator, dtype=torch.float64)
        rows = torch.randn(k_len, features, generator=generator, dtype=torch.float64)
        weights = tl.softmax(scores)
        agree(lookup("softmax", scores.tolist()), weights)
        agree(lookup("dot", scores.tolist(), other.tolist()), scores @ other)
        agree(lookup("blend", weights.tolist(), rows.tolist()), weights @ rows)


def test_softmax_does_not_overflow(lookup):
    assert lookup("softmax", [1e4, 0, 1e4]) == [0.5, 0, 0.5]


def test_elements_are_counted_as_torch_counts_them(strides):
    draw = random.Random(1)
    for _ in range(200):
        shape = [draw.choice((0, 1, 2, 3, 5)) for _ in range(draw.randrange(5))]
        x = torch.arange(math.prod(shape)).view(shape)
        assert tuple(strides("contiguousStrides", shape)) == x.stride()
        for flat in range(x.numel()):
            index = strides("unravel", flat, shape)
            assert x[tuple(index)] == flat == strides("ravel", index, shape)


# The strides lab against real tensors.


def some_operation(draw, x):
    """One operation for ``x``, as code; about one in four does not fit."""

    def axis():
        return draw.randint(-x.ndim - 1, x.ndim) if draw.random() < 0.15 else draw.randrange(-x.ndim, max(x.ndim, 1))

    def sizes():
        shape, left = [], x.numel()
        for prime in (2, 2, 2, 2, 2, 2, 3, 3, 3, 5, 7):
            if left and left % prime == 0:
                left //= prime
                shape.append(prime)
        while len(shape) > 1 and draw.random() < 0.7:
            shape.append(shape.pop(draw.randrange(len(shape))) * shape.pop(draw.randrange(len(shape))))
        shape += [1] * draw.choice((0, 0, 1, 2))
        if not x.numel():
            shape = [*x.shape, 0] if draw.random() < 0.5 else list(x.shape)
        draw.shuffle(shape)
        if shape and draw.random() < 0.25:
            shape[draw.randrange(len(shape))] = draw.choice((-1, -1, -1, 3, -2))
        return shape

    def part(size):
        low, high, step = (draw.choice(("", draw.randint(-size - 1, size + 1))) for _ in range(3))
        return draw.choice((str(draw.randint(-size, size)), ":", f"{low}:", f":{high}", f"{low}:{high}:{step}", "::2"))

    def index():
        parts = [part(size) for size in x.shape[: draw.randrange(x.ndim + 1)]]
        if draw.random() < 0.3:
            parts.insert(draw.randrange(len(parts) + 1), "...")
        return ", ".join(parts or ["..."])

    def order():
        dims = draw.sample(range(x.ndim), x.ndim)
        return dims[1:] if draw.random() < 0.1 else dims

    def stretched():
        shape = [draw.choice((2, 3, 1, -1)) if size == 1 else draw.choice((size, size, -1, 4)) for size in x.shape]
        return [draw.choice((1, 2, 0)) for _ in range(draw.randrange(3))] + shape

    def listed(numbers):
        text = ", ".join(map(str, numbers))
        return draw.choice((text, f"({text}{',' if len(numbers) == 1 else ''})", f"[{text}]"))

    kind = draw.choice([*OPERATIONS, "view", "transpose", "["])
    if kind == "[":
        return f"[{index()}]"
    arguments = {
        "view": lambda: listed(sizes()),
        "reshape": lambda: listed(sizes()),
        "permute": lambda: listed(order()),
        "expand": lambda: listed(stretched()),
        "flatten": lambda: draw.choice(("", f"{axis()}", f"{axis()}, {axis()}")),
        "transpose": lambda: f"{axis()}, {axis()}",
        "squeeze": lambda: draw.choice(("", f"{axis()}", f"{axis()}, {axis()}")),
        "unsqueeze": lambda: f"{axis()}",
    }.get(kind, str)()
    if draw.random() < 0.03:
        arguments = draw.choice(("", "0, 1, 1", "(0, 1)"))
    return f".{kind}({'' if arguments == '()' and kind == 'squeeze' else arguments})"


def same_tensor(strides, drawn, x):
    """Demand that the lab's tensor reads its storage exactly as PyTorch's does."""
    assert tuple(drawn["shape"]) == tuple(x.shape)
    assert tuple(drawn["strides"]) == x.stride(), tuple(drawn["shape"])
    assert drawn["offset"] == x.storage_offset()
    assert strides("isContiguous", drawn) == x.is_contiguous()
    if x.numel():
        storage = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        assert drawn["storage"] == storage.tolist()
        assert [drawn["storage"][place] for place in strides("storagePlaces", drawn)] == x.flatten().tolist()


@pytest.mark.parametrize("seed", range(8))
def test_chains_agree_with_torch(strides, seed):
    draw = random.Random(seed)
    fitted = refused = 0
    for _ in range(150):
        shape = [draw.choice((1, 2, 3, 4, 5)) for _ in range(draw.randrange(5))]
        while math.prod(shape) > 64:
            shape.pop()
        x = torch.arange(math.prod(shape)).view(shape)
        chain, real = "", [x]
        for _ in range(draw.randint(1, 5)):
            chain += (piece := some_operation(draw, x))
            try:
                x = eval(f"x{piece}", {"x": x})
            except REFUSALS:
                break
            real.append(x)
            if x.numel() > 128:
                break
        steps = strides("parseChain", chain, LIMITS)
        assert "error" not in steps, chain
        found = strides("run", shape, steps["value"])
        fits = len(real) == len(steps["value"]) + 1 and x.numel() <= 128
        assert found.get("refused") == (None if fits else len(steps["value"]) - 1), f"{shape} {chain} {found}"
        assert fits or found["reason"]
        fitted, refused = fitted + fits, refused + (not fits)
        for before, drawn, here in zip([None, *real], found["tensors"], real):
            try:
                same_tensor(strides, drawn, here)
            except AssertionError as error:
                raise AssertionError(f"{shape} {chain}: {error}") from None
            if before is not None and here.numel():
                assert drawn["copied"] != tl.layout(here).shares_storage_with(before), chain
        if fits:  # and Python reads the same chain as the browser, as typed and as written anew
            for text in (chain, steps["text"]):
                lab = StridesLab(shape, text)
                assert tl.layout(lab.tensor) == tl.layout(x) or torch.equal(lab.tensor, x), text
    assert min(fitted, refused) > 30  # both were tried


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        (".transpose(0, 1).view(6)", "view cannot walk axes 0 and 1 in one even step"),
        (".view(4)", "view: the shape (4,) does not hold the 6 elements of (2, 3)."),
        (".view(-1, -1)", "view: only one size can be left open with −1."),
        (
            ".transpose(0, 2)",
            "transpose: dimension 2 is out of range; this tensor has 2 axes, so it goes from -2 to 1.",
        ),
        (".transpose(0)", "transpose wants two dimensions: .transpose(0, 1)."),
        (".transpose((0, 1))", "transpose takes plain numbers, not a list of them."),
        (".t(1)", "t takes no numbers; got 1."),
        (".unsqueeze(0, 1)", "unsqueeze takes 1 number; got 2."),
        (".flatten(0, 1, 1)", "flatten takes 2 numbers at most; got 3."),
        (".unsqueeze(0).t()", "t turns a matrix; this tensor has 3 axes."),
        (".permute(0)", "permute: name each of the 2 axes once; got (0)."),
        (".view()", "view wants to know the shape."),
        (".expand(4, 3)", "expand: axis 0 has size 2; only an axis of size 1 can stretch, so it cannot become 4."),
        (".unsqueeze(0).expand(50, 2, 3)", "expand: 300 elements are more than this lab draws (128)."),
        ("[2]", "Index 2 is out of range for axis 0 of size 2."),
        ("[0, 0, 0]", "Too many indices: 3 for 2 axes."),
        ("[::0]", "A slice's step must be greater than zero in PyTorch"),
    ],
)
def test_a_refusal_says_why(strides, chain, reason):
    found = strides("run", [2, 3], strides("parseChain", chain, LIMITS)["value"])
    assert found["reason"].startswith(reason)


# The broadcasting lab against torch.


def two_shapes(draw, mode):
    """Two shapes of at most 5 axes, of which about half fit."""
    common = [draw.choice((0, 2, 2, 3, 3, 5)) for _ in range(draw.randrange(5))]

    def worn():
        sizes = [draw.choice((size, size, size, 1)) for size in common]
        if sizes and draw.random() < 0.3:
            sizes[draw.randrange(len(sizes))] = 7
        return sizes[draw.choice((0, 0, draw.randrange(len(sizes) + 1))) :]

    a, b = worn(), worn()
    if mode == "matmul":
        k, rows, columns = draw.choice((0, 1, 2, 3)), draw.choice((1, 2, 4)), draw.choice((1, 3, 5))
        a, b = draw.choice(([k], [*a[:3], rows, k])), draw.choice(([k], [*b[:3], k, columns]))
        if draw.random() < 0.25:
            draw.choice((a, b))[-1] += 1
        if draw.random() < 0.05:
            a = []
    return a, b


@pytest.mark.parametrize("mode", ["elementwise", "matmul"])
def test_shapes_and_elements_agree_with_torch(broadcasting, mode):
    draw = random.Random(mode)
    fitted = refused = elements = 0
    for _ in range(600):
        a, b = two_shapes(draw, mode)
        found = broadcasting("combine", mode, a, b)
        columns = broadcasting("alignment", mode, a, b)
        clash = any(column["role"] == "clash" for column in columns)
        x = torch.arange(math.prod(a)).view(a) + 1
        y = torch.arange(math.prod(b)).view(b) + 1
        try:
            result = x @ y if mode == "matmul" else 10 * x + y
        except RuntimeError:
            refused += 1
            assert found["reason"] and clash and "shape" not in found
            with pytest.raises(ValueError, match="a and b must have shapes that fit, got "):
                _ = BroadcastingLab(a, b, mode).result_shape
            continue
        fitted += 1
        assert "reason" not in found and not clash
        assert tuple(found["shape"]) == tuple(result.shape) == BroadcastingLab(a, b, mode).result_shape
        drawn = [column["out"] for column in columns if column["role"] != "summed" and column.get("out") is not None]
        assert drawn == found["shape"]
        for flat in range(min(result.numel(), 4)):
            flat = flat if flat == 0 else draw.randrange(result.numel())
            index = broadcasting("unravel", flat, found["shape"])
            element = broadcasting("explain", mode, a, b, found, index)
            assert element["value"] == result[tuple(index)].item()
            assert element["words"].startswith(f"result[{', '.join(map(str, index))}] = ")
            assert element["words"].endswith(f" = {element['value']}")
            used = zip(x.flatten()[element["usedA"]].tolist(), y.flatten()[element["usedB"]].tolist())
            terms = [p * q if mode == "matmul" else 10 * p + q for p, q in used]
            assert sum(terms) == element["value"] and len(terms) == (found["k"] if mode == "matmul" else 1)
            elements += 1
    assert min(fitted, refused) > 100 and elements > 300


def test_a_clash_names_the_axis(broadcasting):
    assert broadcasting("broadcastShapes", [4, 3], [2, 1])["reason"] == "axis −2: 4 and 2 differ, and neither is 1"
    assert broadcasting("matmulShapes", [2, 3], [4, 5])["reason"] == (
        "the last axis of a (3) and the second-to-last axis of b (4) must be equal"
    )
    assert broadcasting("matmulShapes", [2, 3], [4])["reason"] == (
        "the last axis of a (3) and the only axis of b (4) must be equal"
    )
    assert broadcasting("matmulShapes", [6, 2, 3], [4, 3, 5])["reason"] == (
        "batch axes: axis −3: 6 and 4 differ, and neither is 1"
    )
    assert broadcasting("matmulShapes", [], [4])["reason"].startswith("matmul wants at least one axis on each side")


def test_huge_shapes_combine_without_memory(broadcasting):
    for mode, b in (("elementwise", [1]), ("matmul", [10**9, 7])):
        a = [10**9] * 4
        assert tuple(broadcasting("combine", mode, a, b)["shape"]) == BroadcastingLab(a, b, mode).result_shape


# The lookup lab against the package.


@pytest.mark.parametrize("kind", ["dot", "distance"])
@pytest.mark.parametrize("temperature", [0.01, 0.3, math.sqrt(2), 100])
def test_lookup_agrees_with_the_package(lookup, kind, temperature):
    generator = torch.Generator().manual_seed(3)
    for k_len in range(1, 9):
        query, key, value = (
            (torch.rand(n, 2, generator=generator, dtype=torch.float64) * 4 - 2).round(decimals=2)
            for n in (1, k_len, k_len)
        )
        scores = query @ key.T if kind == "dot" else -(torch.cdist(query, key) ** 2) / 2
        found = lookup(
            "lookup",
            {"query": query[0].tolist(), "key": key.tolist(), "value": value.tolist()}
            | {"temperature": temperature, "similarity": kind},
        )
        agree(found["scores"], scores[0])
        agree(found["weights"], tl.softmax(scores / temperature)[0])
        if kind == "dot":
            scale = 1 / temperature
            agree(found["weights"], tl.attention_weights(query, key, scale=scale)[0])
            agree(found["output"], tl.scaled_dot_product_attention(query, key, value, scale=scale)[0])
        # Python's side of the lab computes in float32, whose last digit a low temperature magnifies.
        lab = LookupLab(query[0], key, value, temperature=temperature, similarity=kind)
        atol = 1e-6 * max(1, 1 / temperature)
        agree(found["weights"], lab.weights.double(), atol=atol)
        agree(found["output"], lab.output.double(), atol=4 * atol)


def test_the_slider_covers_the_temperatures(lookup):
    for slider in range(0, 1001, 50):
        assert lookup("sliderOf", lookup("temperatureOf", slider, PLANE), PLANE) == slider
    assert lookup("temperatureOf", 0, PLANE) == pytest.approx(0.01)
    assert lookup("temperatureOf", 1000, PLANE) == pytest.approx(100)


# What is typed into a field: a value, or an error in words, and never an exception.

anything = st.text(max_size=30) | st.text("()[]., :−-x0123456789evw\n", max_size=20)
chains = st.lists(
    st.sampled_from(
        [".", "view", "t", "squeeze", "(", ")", "[", "]", ",", ":", "...", "-1", "2", "3", "6", "0", " ", "x"]
    ),
    max_size=12,
).map("".join)
typed = settings(max_examples=300, deadline=None, derandomize=True)


def read(engine, parse, text, *options):
    """What the field makes of ``text``, held to: an error in words, or a value that is written and read again."""
    result = engine(parse, text, *options)
    if "error" in result:
        assert result.keys() == {"error"} and len(result["error"]) > 10
        return None
    again = engine(parse, result["text"], *options)
    assert again == result
    return result


@typed
@given(text=anything)
@example(text="2, 3, 4")
@example(text="(1,)")
@example(text="99999999999999999999")
def test_typed_shapes(text, strides):
    result = read(strides, "parseShape", text, SHAPES)
    if result:
        BroadcastingLab(a=result["value"])
    result = read(strides, "parseShape", text, {"size": 64, "axes": 5, "least": 1})
    if result and math.prod(result["value"]) <= 64:
        StridesLab(result["value"], "")


@typed
@given(text=anything | chains | st.builds("{}{}".format, st.just(".transpose(0, 1)"), chains))
@example(text=" x.transpose( 0,1 )\n.view([6])")
@example(text="[01, ::2]")
@example(text=".view((6,))")
@example(text=".view(2,3])")
@example(text="\xa0.t()")
def test_typed_chains(text, strides):
    result = read(strides, "parseChain", text, LIMITS)
    if result is None:
        return
    found = strides("run", [2, 3], result["value"])
    lab = StridesLab((2, 3), result["text"])  # whatever the browser sends, Python reads
    if "reason" not in found:
        assert tuple(found["tensors"][-1]["shape"]) == tuple(lab.tensor.shape)


@typed
@given(text=anything | st.builds("{} {}".format, st.floats(-3, 3), st.floats(-3, 3)))
@example(text="(1, −0.5)")
@example(text="1e400 0")
@example(text="NaN, 1")
def test_typed_points(text, lookup):
    result = lookup("parsePoint", text, PLANE)
    if "error" in result:
        assert result.keys() == {"error"} and len(result["error"]) > 10
    else:
        LookupLab(query=result["value"])


@pytest.mark.parametrize(
    ("lab", "parse", "text", "error"),
    [
        ("strides", "parseShape", "2, x", "A size is a whole number; “x” is not. Write a shape as 2, 3, 4."),
        ("strides", "parseShape", "2.5", "A size is a whole number; “2.5” is not. Write a shape as 2, 3, 4."),
        ("strides", "parseShape", "-1", "A size is a whole number; “-1” is not. Write a shape as 2, 3, 4."),
        ("strides", "parseShape", "5000000000", "A size here goes from 0 to 1,000,000,000; 5000000000 does not fit."),
        ("strides", "parseShape", "1 1 1 1 1 1 1 1 1", "At most 8 axes here; this has 9."),
        (
            "strides",
            "parseChain",
            ".view(6",
            "This can be read up to “.view(6”. Write operations as .transpose(0, 1) or [:, 0].",
        ),
        ("strides", "parseChain", ".view(six)", ".view takes whole numbers here; “six” is not one."),
        ("strides", "parseChain", "[None]", "“None” is not an index; write 1, or 0:2, or ::2, or “...”."),
        ("lookup", "parsePoint", "1", "Write a point as two numbers: 1, 0.5."),
        ("lookup", "parsePoint", "3, 0", "The plane goes from −2 to 2 both ways."),
    ],
)
def test_what_is_typed_wrong_is_named(request, lab, parse, text, error):
    limits = {"parseShape": SHAPES, "parseChain": LIMITS, "parsePoint": PLANE}[parse]
    assert request.getfixturevalue(lab)(parse, text, limits) == {"error": error}


def test_an_unknown_operation_is_answered_with_the_known_ones(strides):
    for name in ("flip", "constructor", "index", "toString"):
        error = strides("parseChain", f".{name}(0)", LIMITS)["error"]
        assert error.startswith(f".{name} is not in this lab. It knows view, reshape, flatten, ")


# The state in Python.


def test_strides_lab_gives_the_tensor():
    lab = StridesLab(shape=(2, 3, 4), chain=".transpose(1, 2)[:, ::2]")
    assert torch.equal(lab.tensor, torch.arange(24).view(2, 3, 4).transpose(1, 2)[:, ::2])
    lab.set_state({"shape": [6], "chain": ".view(2, 3)[-1, ...]"})  # as the browser does
    assert lab.tensor.tolist() == [3, 4, 5]
    assert StridesLab((), "").tensor.shape == ()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        _ = StridesLab((2, 3), ".t().view(6)").tensor


def test_broadcasting_lab_gives_the_result_shape():
    lab = BroadcastingLab((3, 1), (4,))
    assert lab.result_shape == (3, 4)
    lab.set_state({"a": [5, 3, 2], "b": [2, 4], "mode": "matmul"})
    assert lab.result_shape == (5, 3, 4)
    with pytest.raises(ValueError, match=r"^a and b must have shapes that fit, got \(2,\) and \(3,\): "):
        _ = BroadcastingLab((2,), (3,)).result_shape


def test_lookup_lab_gives_tensors():
    lab = LookupLab(query=(1, 0), key=[(1, 0), (0, 1)], value=[(2, 0), (0, 2)])
    assert lab.labels == ["key 0", "key 1"]
    heard = []
    lab.observe(lambda change: heard.append(change.new), "query")
    lab.set_state({"query": [0, 1]})  # whole numbers, as JavaScript writes them
    assert lab.query.dtype == torch.float32 and lab.query.tolist() == [0, 1] and len(heard) == 1
    expected = tl.softmax(torch.tensor([0.0, 1.0]) / math.sqrt(2))
    torch.testing.assert_close(lab.weights, expected)
    torch.testing.assert_close(lab.output, 2 * expected)
    lab.query = torch.tensor([2, 1])
    assert lab.query.dtype == torch.float32


def test_a_lab_leaves_the_tensors_it_was_given_alone():
    query = torch.tensor([0.5, 0.25], dtype=torch.float64, requires_grad=True)
    lab = LookupLab(query=query)
    assert lab.query.dtype == torch.float32 and not lab.query.requires_grad
    assert query.dtype == torch.float64 and query.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("name", LABS)
def test_the_state_survives_the_way_to_the_browser_and_back(name):
    lab, other = LABS[name](), LABS[name]()
    state = json.loads(
        json.dumps({key: value for key, value in lab.get_state().items() if key in lab.traits(sync=True)})
    )
    for change in ({"chain": ".view(-1)"}, {"mode": "matmul"}, {"similarity": "distance", "key": [[0, 1]] * 5}):
        if change.keys() <= state.keys():
            lab.set_state(change)
    assert repr(lab) != repr(other) or name == "lookup"
    lab.set_state(
        {key: value for key, value in state.items() if not key.startswith("_") and key not in ("layout", "comm")}
    )
    assert repr(lab) == repr(other)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StridesLab((4, 1)), "StridesLab(shape=(4, 1), chain='.transpose(1, 2)')"),
        (lambda: BroadcastingLab((), (0,), "matmul"), "BroadcastingLab(a=(), b=(0,), mode='matmul')"),
        (
            lambda: LookupLab(query=(1 / 3, -2), labels=list("abcde"), temperature=1 / 3),
            "LookupLab(query=(0.3333, -2.0), labels=('a', 'b', 'c', 'd', 'e'), temperature=0.3333, similarity='dot')",
        ),
    ],
)
def test_the_text_form_is_stable(make, text):
    assert repr(make()) == repr(make()) == text


CHAIN = (
    "chain must be operations like .transpose(0, 1)[:, ::2], of view, reshape, flatten, transpose, t, permute, "
    "contiguous, squeeze, unsqueeze, expand and [ ], got {!r}"
)
SHAPE = "shape must have at most 5 axes of size 1 or more and 64 elements, got {}"
SIZES = "{} must have at most 8 axes of sizes from 0 to 10**9, got {}"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: StridesLab((5, 13)), ValueError, SHAPE.format((5, 13))),
        (lambda: StridesLab((0,)), ValueError, SHAPE.format((0,))),
        (lambda: StridesLab((1,) * 6), ValueError, SHAPE.format((1,) * 6)),
        *(
            (lambda chain=chain: StridesLab(chain=chain), ValueError, CHAIN.format(chain))
            for chain in (
                "view(6)",
                "foo",
                "y.t()",
                ".t",
                ".flip(0)",
                ".view(dim=1)",
                ".view(1.5)",
                ".view(True)",
                "[None]",
                "[1.5:]",
                "['a']",
                "[(0, 1), 2]",
                "__import__('os')",
                ".view(x.numel())",
                "\0",
                "(",
                "x + 1",
                ".t()" * 9999,
            )
        ),
        (
            lambda: StridesLab(3),
            traitlets.TraitError,
            "The 'shape' trait of a StridesLab instance expected a list, not the int 3.",
        ),
        (lambda: BroadcastingLab((-1,)), ValueError, SIZES.format("a", (-1,))),
        (lambda: BroadcastingLab(b=(10**9 + 1,)), ValueError, SIZES.format("b", (10**9 + 1,))),
        (lambda: BroadcastingLab((1,) * 9), ValueError, SIZES.format("a", (1,) * 9)),
        (lambda: BroadcastingLab(mode="x"), ValueError, "mode must be one of 'elementwise', 'matmul', got 'x'"),
        (
            lambda: BroadcastingLab((2.5,)),
            traitlets.TraitError,
            "The 'a' trait of a BroadcastingLab instance contains an Int of a List which expected an int, "
            "not the float 2.5.",
        ),
        (lambda: LookupLab("up"), TypeError, "query must be a tensor or sequences of numbers, got 'up'"),
        (lambda: LookupLab((1, 2, 3)), ValueError, "query must have shape (2,), got (3,)"),
        (lambda: LookupLab((3, 0)), ValueError, "query must have values from -2 to 2, got 3"),
        (lambda: LookupLab((math.nan, 0)), ValueError, "query must have values from -2 to 2, got nan"),
        (lambda: LookupLab(key=[]), ValueError, "key must have shape (k_len, 2), from (1, 2) to (8, 2), got (0,)"),
        (
            lambda: LookupLab(key=torch.zeros(9, 2), value=torch.zeros(9, 2)),
            ValueError,
            "key must have shape (k_len, 2), from (1, 2) to (8, 2), got (9, 2)",
        ),
        (
            lambda: LookupLab(value=[(0, 0)]),
            ValueError,
            "value must have one point for each of the 5 labels, got 1",
        ),
        (lambda: LookupLab(temperature=0), ValueError, "temperature must be from 0.01 to 100, got 0.0"),
        (lambda: LookupLab(temperature=math.nan), ValueError, "temperature must be from 0.01 to 100, got nan"),
        (
            lambda: LookupLab(similarity="cosine"),
            ValueError,
            "similarity must be one of 'dot', 'distance', got 'cosine'",
        ),
    ],
)
def test_bad_arguments_are_named(make, error, text):
    says(make, error, text)


def test_a_refused_setting_changes_nothing():
    lab = LookupLab()
    before = repr(lab)
    for name, value in (
        ("query", torch.tensor([9.0, 0.0])),
        ("temperature", 0),
        ("similarity", ""),
        ("key", torch.zeros(3, 2)),
    ):
        with pytest.raises(ValueError):
            setattr(lab, name, value)
    assert repr(lab) == before and len(lab.key) == 5


# The script and its frame.


@pytest.mark.parametrize("name", LABS)
def test_the_script_is_small_and_needs_nothing_else(name):
    lab = LABS[name]
    assert len(lab._esm.encode()) <= 60_000 and len(lab._css.encode()) <= 60_000
    assert lab._esm.rstrip().endswith("export default { render };") and lab._esm.count("export ") == 1
    for text in (lab._esm.replace("http://www.w3.org/2000/svg", ""), lab._css):
        assert not any(word in text for word in ("import ", "require(", "//cdn", "http:", "https:", "@import", "url("))


@pytest.mark.parametrize(("name", "trait"), [("strides", "chain"), ("broadcasting", "mode"), ("lookup", "temperature")])
def test_a_lab_composes_like_any_widget(name, trait):
    lab = LABS[name]()
    assert ipywidgets.HBox([lab]).children == (lab,)
    other = ipywidgets.FloatText() if trait == "temperature" else ipywidgets.Text()
    link = ipywidgets.jslink((lab, trait), (other, "value"))
    assert link.source == (lab, trait)
    ipywidgets.link((lab, trait), (other, "value"))
    assert other.value == getattr(lab, trait)
