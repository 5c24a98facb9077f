"""Bugs in positions and in the order of heads."""

import torch

from .bug import choose_model, published
from .small_model import SmallModel, audit_arguments


@published(
    "Rotary positions in half precision",
    "EleutherAI/gpt-neox",
    1003,
    date="July 2023",
    section="9.4",
    found_by="half precision, near and far",
    symptoms="results on long contexts get worse in half precision; RoPE in bfloat16 or float16",
    story=(
        "A user computed the table of cosines in half precision and in float32, and found entries that differ by 0.78."
    ),
    repair="Compute positions and angles in float32.",
)
def positions_in_bfloat16(broken):
    """Rotary positions are computed in bfloat16, where 256 and 257 are the same number."""

    class Mistake(SmallModel):
        def angles(self, positions, x):
            pair_indices = torch.arange(x.shape[-1] // 2, device=x.device)
            frequencies = (10000.0 ** (-pair_indices / len(pair_indices))).to(x.dtype)
            return positions.to(x.dtype)[:, None, :, None] * frequencies

    return audit_arguments(choose_model(broken, Mistake, rotary=True))


@published(
    "Weights for a different rotary layout",
    "jzhang38/TinyLlama",
    24,
    date="September 2023",
    section="9.4",
    found_by="the same as the original",
    symptoms="a model with converted weights writes gibberish; rotate_half or interleaved RoPE",
    story=(
        "The converted model wrote gibberish. A user compared the training code with the program that ran the "
        "weights: the training code rotated halves, but the program rotated neighbours. Our model has the opposite "
        "mistake."
    ),
    repair="Reorder the rows of the query and key projections, or rotate as in training.",
)
def other_rope_layout(broken):
    """Weights trained with rotation of neighbouring features are run by code that rotates halves."""

    class Neighbours(SmallModel):
        def rotate(self, x, positions):
            angles = self.angles(positions, x)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            even, odd = x[..., 0::2], x[..., 1::2]
            return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)

    original, model = Neighbours(rotary=True, seed=3), SmallModel(rotary=True)
    state = original.state_dict()
    if not broken:  # reorder the rows of each head: even rows before odd rows
        for name in [name for name in state if name.endswith(("query.weight", "key.weight"))]:
            state[name] = state[name].unflatten(0, (model.n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)
    model.load_state_dict(state)
    return audit_arguments(model, reference=original)


@published(
    "Key heads in the order 0 1 0 1",
    "onnx/onnx",
    7274,
    date="September 2025",
    section="9.5",
    found_by="the same as the original",
    symptoms="grouped-query attention gives wrong outputs with published weights; repeat or repeat_interleave",
    story=(
        "A contributor compared a standard's definition with PyTorch: the definition repeated key heads as 0 1 0 1, "
        "but PyTorch repeats them as 0 0 1 1. In August 2026 a different library fixed the same mistake "
        "(ekzhang/jax-js#180)."
    ),
    repair="Use `repeat_interleave`.",
)
def tile_for_repeat(broken):
    """Query heads read the keys of a different group, in the order 0 1 0 1 instead of 0 0 1 1."""

    class Mistake(SmallModel):
        def repeat_key_heads(self, x):
            return x.repeat(1, self.n_heads // self.n_kv_heads, 1, 1)

    model, original = choose_model(broken, Mistake, n_kv_heads=2), SmallModel()
    state = model.state_dict()
    for name in [name for name in state if name.endswith(("key.weight", "value.weight"))]:
        state[name] = state[name].unflatten(0, (2, -1)).repeat_interleave(2, 0).flatten(0, 1)
    original.load_state_dict(state)
    return audit_arguments(model, reference=original)
