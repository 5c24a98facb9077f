"""Drawings are well-formed, show the package's numbers, and have no overlapping text in any font."""

import re
from inspect import isfunction
from itertools import combinations
from math import cos, pi, sin
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

import transformer_lab as tl
from fonts import FAMILIES
from transformer_lab import drawings

DRAWINGS = (
    "storage_merges",
    "dot_product",
    "attention",
    "clock_hands",
    "paths",
    "split_and_merge",
    "block",
    "block_today",
    "families",
    "softmax_in_pieces",
)
SVG = "{http://www.w3.org/2000/svg}"


def svg_root(name):
    return ElementTree.fromstring(getattr(drawings, name)().svg)


def label_texts(name):
    return [text.text for text in svg_root(name).iter(f"{SVG}text")]


def test_the_list_of_drawings_is_complete():
    functions = {name: value for name, value in vars(drawings).items() if isfunction(value)}
    names = [name for name, value in functions.items() if value.__annotations__.get("return") is drawings.Drawing]
    assert names == [*DRAWINGS]


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing_is_one_svg_without_ids(name):
    picture = getattr(tl.drawings, name)()
    root = svg_root(name)
    width, height = root.get("viewBox").split()[2:]
    assert (root.get("width"), root.get("height")) == (width, height)
    assert picture._repr_svg_() == picture.svg == getattr(tl.drawings, name)().svg
    assert repr(picture) == f"Drawing({root.get('aria-label')!r})"
    assert (root[0].tag, root[0].get("fill")) == (f"{SVG}rect", "#fff")
    # A notebook page has several drawings, so a drawing has no ids, and no styles that would apply to other drawings.
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg",
        "rect",
        "text",
        "polyline",
        "polygon",
        "circle",
        "path",
    }
    assert not any(element.get("id") or element.get("class") for element in root.iter())


# Bounding boxes of all texts, in units of the drawing.
TEXT_BOXES = """() => {
    const drawing = document.querySelector("svg");
    return [...drawing.querySelectorAll("text")].map((text) => {
        const { x, y, width, height } = text.getBBox();
        return { words: text.textContent, x, y, width, height };
    });
}"""


@pytest.fixture(scope="session", params=FAMILIES)
def page(request, launch):
    page = launch(request.param).new_page()
    yield page
    page.close()


@pytest.mark.parametrize("name", DRAWINGS)
def test_texts_do_not_overlap_in_any_font(page, name):
    page.set_content(getattr(drawings, name)().svg)
    width, height = map(float, svg_root(name).get("viewBox").split()[2:])
    boxes = page.evaluate(TEXT_BOXES)
    assert boxes
    for box in boxes:
        # A line box is taller than the letters themselves.
        box["y"], box["height"] = box["y"] + 0.15 * box["height"], 0.7 * box["height"]
        assert box["x"] >= 3 and box["x"] + box["width"] <= width - 3, box
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, box
    for box, other_box in combinations(boxes, 2):
        is_separate = (
            box["x"] + box["width"] + 2 <= other_box["x"]
            or other_box["x"] + other_box["width"] + 2 <= box["x"]
            or box["y"] + box["height"] <= other_box["y"]
            or other_box["y"] + other_box["height"] <= box["y"]
        )
        assert is_separate, (box, other_box)


@pytest.mark.parametrize("name", DRAWINGS)
def test_texts_fit_their_boxes(page, name):
    """The smallest box that contains the centre of a text must contain the whole text."""
    page.set_content(getattr(drawings, name)().svg)
    root = svg_root(name)
    boxes = [[float(box.get(key, 0)) for key in ("width", "x", "y", "height")] for box in root.iter(f"{SVG}rect")]
    for text in page.evaluate(TEXT_BOXES):
        x, y = text["x"] + text["width"] / 2, text["y"] + text["height"] / 2
        width, left, *_ = min(box for box in boxes if box[1] < x < box[1] + box[0] and box[2] < y < box[2] + box[3])
        assert left + 1 <= text["x"] and text["x"] + text["width"] <= left + width - 1, text


@pytest.mark.parametrize("name", DRAWINGS)
def test_letters_are_readable_on_a_phone(page, name):
    page.set_viewport_size({"width": 360, "height": 800})
    page.set_content(f"<style>body {{ margin: 0 }}</style>{getattr(drawings, name)().svg}")
    scale = page.evaluate("document.querySelector('svg').getBoundingClientRect().width") / drawings.WIDTH
    assert scale <= 360 / drawings.WIDTH
    sizes = page.eval_on_selector_all("text", "all => all.map((text) => parseFloat(getComputedStyle(text).fontSize))")
    assert min(sizes) * scale >= 11


def test_storage_merges_agrees_with_view():
    x = torch.arange(12).view(2, 3, 2)
    labels = label_texts("storage_merges")
    drawn_verdicts = [text == "may merge" for text in labels if text.startswith("may")]
    merge_is_possible = []
    for tensor in (x, x.transpose(0, 1)):
        assert f"shape {tuple(tensor.shape)}, strides {tensor.stride()}" in labels
        for axis in (0, 1):
            merged = [*tensor.shape[:axis], -1, *tensor.shape[axis + 2 :]]
            try:
                merge_is_possible.append(tensor.view(merged).shape[axis] > 0)
            except RuntimeError:
                merge_is_possible.append(False)
    assert drawn_verdicts == merge_is_possible == [True, True, False, False]
    stride_labels = [text for text in labels if re.fullmatch(r"[+−]\d", text)]
    assert stride_labels == ["+2"] * 5 + ["+1"] * 5 + ["+6", "−4"] * 2 + ["+6"] + ["+1", "+5", "+1"]


def test_dot_product_shows_the_products_of_its_vectors():
    """The products are measured in the drawing, in units in which the query has length 3."""
    labels = label_texts("dot_product")
    assert [text for text in labels if "=" in text] == [
        "q · a = 3 · 2 = 6",
        "q · b = 3 · 0 = 0",
        "q · c = 3 · (−2) = −6",
    ]
    arrow_tips = [
        torch.tensor([float(n) for n in polygon.get("points").split()[0].split(",")])
        for polygon in svg_root("dot_product").iter(f"{SVG}polygon")
    ]
    query_line = next(svg_root("dot_product").iter(f"{SVG}polyline")).get("points").split()[0]
    origin = arrow_tips[2].clone()  # b is perpendicular to the horizontal query, so its tip is above the origin
    origin[1] = float(query_line.split(",")[1])
    query, *keys = [(tip - origin) / (arrow_tips[0] - origin).norm() * 3 for tip in arrow_tips]
    torch.testing.assert_close(torch.stack(keys) @ query, torch.tensor([6.0, 0.0, -6.0]), atol=0.02, rtol=0)
    angles = [torch.acos(key @ query / key.norm() / query.norm()).item() * 180 / pi for key in keys]
    assert [text for text in labels if "angle" in text] == [f"angle {angle:.0f}°" for angle in angles]


def test_attention_drawing_names_the_shapes():
    sizes = {"q_len": 7, "k_len": 6, "d_head": 5, "d_value": 4}
    query, key, value = torch.zeros(7, 5), torch.zeros(6, 5), torch.zeros(6, 4)
    shapes = {
        "query": query,
        "key": key,
        "value": value,
        "scores": query @ key.mT / 5**0.5,
        "weights": tl.attention_weights(query, key),
        "output": tl.scaled_dot_product_attention(query, key, value),
    }
    labels = label_texts("attention")
    for name, tensor in shapes.items():
        axes = labels[labels.index(name) + 1].split(", ")
        assert tuple(sizes[axis] for axis in axes) == tensor.shape, name


def test_clock_hands_end_at_the_features():
    """A hand is an arrow that ends at (sine, cosine) of the position, on a clock with 0 at the top."""
    root = svg_root("clock_hands")
    centres = [[float(circle.get(key)) for key in ("cx", "cy")] for circle in root.iter(f"{SVG}circle")]
    tips = [polygon.get("points").split()[0].split(",") for polygon in root.iter(f"{SVG}polygon")][: len(centres)]
    hand_vectors = (torch.tensor([[float(n) for n in tip] for tip in tips]) - torch.tensor(centres)) / 27
    hand_vectors[:, 1] *= -1
    features = tl.sinusoidal_positions(6, 32)
    expected = [features[p, 2 * pair : 2 * pair + 2] for pair in (0, 2, 4) for p in range(6)]
    torch.testing.assert_close(hand_vectors, torch.stack(expected), atol=0.01, rtol=0)
    for pair in (0, 2, 4):
        (turn_label,) = [
            text for text in label_texts("clock_hands") if text == f"+2: {2 * 180 / pi / 10000 ** (pair / 16):.0f}°"
        ]
        angle = float(turn_label[4:-1]) * pi / 180
        rotation = torch.tensor([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])  # for rows (sine, cosine)
        rows = features[:, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(rows[:-2] @ rotation, rows[2:], atol=0.02, rtol=0)


@pytest.mark.parametrize(("layers", "layer"), [(3, "convolution"), (1, "attention")])
def test_path_lengths_match_the_gradient(layers, layer):
    assert f"{layers} layer{'s' * (layers > 1)}" in label_texts("paths")
    torch.manual_seed(0)
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(4, 4, 5, dtype=torch.float64)
    states, reaches_first_token = x, []
    for _ in range(layers):
        if layer == "attention":
            states = tl.scaled_dot_product_attention(states, states, states)
        else:
            states = torch.nn.functional.conv1d(states.T[None], kernel, padding=2)[0].T
        # gradient of the last token with respect to every token
        gradient = torch.autograd.grad(states[-1].sum(), x, retain_graph=True)[0]
        reaches_first_token.append(gradient[0].abs().sum().item() > 0)
    assert reaches_first_token == [False] * (layers - 1) + [True]


def test_split_and_merge_shows_the_functions_numbers():
    numbers = [int(text) for text in label_texts("split_and_merge") if text.isdigit()]
    x = torch.tensor([[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]])
    by_head = x.view(3, 2, 2).transpose(0, 1).flatten().tolist()  # the middle of the drawing is arranged head by head
    heads = tl.split_heads(x, 2)
    merged = tl.merge_heads(heads).flatten().tolist()
    assert numbers == x.flatten().tolist() + by_head + merged + by_head + heads.flatten().tolist()
    assert merged == x.flatten().tolist()


@pytest.mark.parametrize("norm_first", [False, True])
def test_block_parts_are_in_the_order_of_the_layer(norm_first):
    """The parts of a column, from the top, are in the order of ``EncoderLayer``, and the formula is below them."""
    layer, calls = tl.EncoderLayer(d_model=4, n_heads=2, d_ff=8, norm_first=norm_first), []
    names = {"self_attention": "attention", "feed_forward": "feed-forward", "norm1": "norm", "norm2": "norm"}
    for part, name in names.items():
        getattr(layer, part).register_forward_hook(lambda *_, name=name: calls.append(name))
    layer(torch.zeros(1, 3, 4))
    column = [
        (float(text.get("y")), text.text)
        for text in svg_root("block").iter(f"{SVG}text")
        if (float(text.get("x")) > 260) == norm_first
    ]
    column_texts = [label for _, label in sorted(column)]
    assert column_texts[0] == ("pre-norm" if norm_first else "post-norm")
    assert [label for label in column_texts if label in ("norm", "attention", "feed-forward")] == calls
    assert column_texts[-1] == ("x + f(norm(x))" if norm_first else "norm(x + f(x))")
    # A post-norm block has its norms on the residual stream; a pre-norm block has them on the branches, before the
    # parts.
    stream = [float(text.get("x")) for text in svg_root("block").iter(f"{SVG}text") if text.text == "x"][norm_first]
    norms = [float(text.get("x")) for text in svg_root("block").iter(f"{SVG}text") if text.text == "norm"]
    on_stream = [x == stream for x in norms if (x > 260) == norm_first]
    assert on_stream == [not norm_first] * 2


def test_block_today_matches_a_modern_model():
    original = tl.Transformer(11, 11, d_model=8, n_heads=2, n_layers=1, d_ff=32)
    modern = tl.LanguageModel(
        11,
        d_model=8,
        n_heads=2,
        n_layers=1,
        d_ff=16,
        norm="rms",
        norm_first=True,
        activation="silu",
        gated=True,
        n_kv_heads=1,
        positions="rotary",
    )
    labels = label_texts("block_today")
    for layer, norm, maps, norm_first in (
        (original.encoder.layers[0], "LayerNorm", "2 maps", False),
        (next(part for part in modern.modules() if isinstance(part, tl.EncoderLayer)), "RMSNorm", "3 maps", True),
    ):
        assert type(layer.norm1).__name__ == norm
        assert layer.norm_first == norm_first
        assert f"{sum(isinstance(part, nn.Linear) for part in layer.feed_forward.modules())} maps" == maps
        assert {norm, maps} <= {*labels}
    # the third RMSNorm comes after the last block
    assert (labels.count("LayerNorm"), labels.count("RMSNorm")) == (2, 3)
    assert sum(isinstance(part, tl.RMSNorm) for part in modern.modules()) == 3
    assert "sines and cosines" in labels


def test_families_marks_the_masks_that_pytorch_needs():
    """Leave out each of the six masks in turn: something leaks if and only if the mark of this mask is filled."""
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True)
    source, target = torch.randn(1, 5, 16), torch.randn(1, 4, 16)
    source_padding, target_padding = torch.tensor([[False] * 3 + [True] * 2]), torch.tensor([[False] * 3 + [True]])
    masks = {
        "src_key_padding_mask": source_padding,
        "tgt_mask": ~tl.causal_mask(4),
        "tgt_key_padding_mask": target_padding,
        "memory_key_padding_mask": source_padding,
    }
    changed_inputs = (
        (source.masked_fill(source_padding[..., None], 1.0), target, slice(0, 3)),
        (source, target.masked_fill(target_padding[..., None], 1.0), slice(0, 3)),
        (source, torch.cat([target[:, :1], torch.ones(1, 3, 16)], dim=1), slice(0, 1)),
    )
    root = svg_root("families")
    labels = label_texts("families")
    start = labels.index("src_mask")
    numbers, names = labels[start - 1 :: 3][:6], labels[start::3][:6]
    assert numbers == [*"123456"]
    needed = [circle.get("fill") == drawings.GREEN for circle in root.iter(f"{SVG}circle")][-6:]
    for name, filled in zip(names, needed):
        assert name in nn.Transformer.forward.__code__.co_varnames
        given_masks = {mask: value for mask, value in masks.items() if mask != name}
        with torch.no_grad():
            expected = model(source, target, **given_masks)
            leaks = any(
                not torch.allclose(
                    model(src, tgt, **given_masks)[:, checked_positions], expected[:, checked_positions], atol=1e-5
                )
                for src, tgt, checked_positions in changed_inputs
            )
        assert leaks == filled, name


def test_softmax_in_pieces_ends_at_the_output_of_attention():
    labels = label_texts("softmax_in_pieces")
    start = labels.index("values") + 1
    numbers = torch.tensor([float(text) for text in labels[start : start + 12]]).view(6, 2)
    scores, values = numbers.T
    expected = tl.scaled_dot_product_attention(torch.ones(1, 1), scores[:, None], values[:, None], scale=1.0)
    assert labels[-1] == f"= {expected.item():.2f}"
    factors = [text.split("exp")[1] for text in labels if "factor" in text]
    assert factors == ["(2 − 4) = 0.14", "(4 − 4) = 1.00"]
    # After each piece: the largest score so far, the sum, and the weighted sum of the values.
    results = [float(text[2:]) for text in labels if text.startswith("= ")][:-1]
    for piece in range(3):
        scores_so_far, values_so_far = scores[: 2 * piece + 2], values[: 2 * piece + 2]
        weights = torch.exp(scores_so_far - scores_so_far.max())
        state = [scores_so_far.max().item(), weights.sum().item(), (weights @ values_so_far).item()]
        torch.testing.assert_close(results[3 * piece : 3 * piece + 3], state, atol=0.006, rtol=0)
