"""The gated feed-forward layer."""

import torch
from torch.nn import functional as F

from ..exercise import exercise


def _tokens_and_maps(draw, batch=2, seq=7, d_model=5, d_ff=8):
    return draw(batch, seq, d_model), draw(d_ff, d_model), draw(d_ff, d_model), draw(d_model, d_ff)


def silu(x):
    """Multiply by the sigmoid: SiLU."""
    return x * x.sigmoid()


def opened_by(gate, up):
    """Multiply what is in the middle by the gate."""
    return gate * up


@exercise(
    inputs=_tokens_and_maps,
    axes={
        "x": "batch seq d_model",
        "gate": "d_ff d_model",
        "up": "d_ff d_model",
        "down": "d_model d_ff",
        "return": "batch seq d_model",
    },
    hints=(
        "Three maps: two go from `x` to d_ff features, and one goes back. Which of the two goes through SiLU?",
        "The gate goes through SiLU, the other does not. Both are multiplied element by element, and the product "
        "goes back.",
        "`return (F.silu(x @ …) * (x @ …)) @ …`, with weights as they are stored, (out, in)",
    ),
)
def gated_feed_forward(x, gate, up, down, *, activation=silu, product=opened_by):
    """Two maps of the tokens multiplied, one of them through SiLU, and a map back: (batch, seq, d_model) stays."""
    return product(activation(x @ gate.T), x @ up.T) @ down.T


@gated_feed_forward.probe(plain=True)
def large_tokens(draw):
    """tokens in the tens"""
    x, *maps = _tokens_and_maps(draw, batch=1, seq=3)
    return 20 * x, *maps


@gated_feed_forward.equivalent
def by_linear(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


@gated_feed_forward.equivalent
def by_one_map_and_chunks(x, gate, up, down):
    opening, content = (x @ torch.cat([gate, up]).T).chunk(2, dim=-1)
    return (torch.sigmoid(opening) * opening * content) @ down.T


@gated_feed_forward.equivalent
def by_einsum(x, gate, up, down):
    opening, content = torch.einsum("bsd,fd->bsf", x, gate), torch.einsum("bsd,fd->bsf", x, up)
    return torch.einsum("bsf,bsf,df->bsd", opening / (1 + (-opening).exp()), content, down)


@gated_feed_forward.property
def nothing_behind_a_closed_gate(function, x, gate, up, down):
    """With a gate of zeros nothing comes out, whatever the other maps are."""
    return bool((function(x, torch.zeros_like(gate), up, down) == 0).all())


@gated_feed_forward.mistake(stage="activation")
def gelu(x):
    """Your gate goes through GELU. Gemma has it in this place; this model was trained with SiLU, x · sigmoid(x)."""
    return F.gelu(x)


@gated_feed_forward.mistake(stage="activation")
def gelu_by_tanh(x):
    """Your gate goes through GELU, in its form with tanh. Gemma has it in this place; this model was trained with SiLU,
    x · sigmoid(x)."""
    return F.gelu(x, approximate="tanh")


@gated_feed_forward.mistake(stage="activation")
def relu(x):
    """Your gate goes through ReLU, as in the paper of 2017. This model was trained with SiLU, x · sigmoid(x)."""
    return x.relu()


@gated_feed_forward.mistake(stage="activation")
def sigmoid_alone(x):
    """Your gate is a plain sigmoid, as in the first gated layers. SiLU is x · sigmoid(x): the x is missing."""
    return x.sigmoid()


@gated_feed_forward.mistake(stage="activation")
def tanh(x):
    """Your gate goes through tanh, and can be no larger than 1. This model was trained with SiLU, x · sigmoid(x)."""
    return x.tanh()


@gated_feed_forward.mistake(stage="activation")
def no_activation(x):
    """Neither of the two maps goes through SiLU: their product alone is left. Which of them is the gate?"""
    return x


@gated_feed_forward.mistake(stage="activation")
def softmax_over_features(x):
    """Your gate goes through a softmax, so that its features compete. SiLU looks at each number by itself."""
    return x.softmax(dim=-1)


@gated_feed_forward.mistake(stage="product")
def added(gate, up):
    """You add the gate where it multiplies. A gate that is 0 must let nothing through: what does a sum do there?"""
    return gate + up


@gated_feed_forward.mistake(stage="product")
def gate_alone(gate, up):
    """The gate goes back by itself: `up` changes nothing in your result. What does the gate open?"""
    return gate


@gated_feed_forward.mistake(stage="product")
def gate_left_out(gate, up):
    """`gate` changes nothing in your result: the other map goes back by itself. What is multiplied with it?"""
    return up


@gated_feed_forward.mistake(stage="product")
def joined_side_by_side(gate, up):
    """The two maps are put side by side, and d_ff has doubled. They are multiplied, element by element."""
    return torch.cat([gate, up], dim=-1)


@gated_feed_forward.mistake
def gate_and_up_exchanged(x, gate, up, down):
    """Gate and up have changed places: SiLU is applied to the wrong one of the two. Their shapes are equal, so nothing
    complains."""
    return (silu(x @ up.T) * (x @ gate.T)) @ down.T


@gated_feed_forward.mistake
def silu_after_the_product(x, gate, up, down):
    """SiLU comes after the product. It belongs to the gate alone, before it is multiplied."""
    return silu((x @ gate.T) * (x @ up.T)) @ down.T


@gated_feed_forward.mistake
def silu_on_both(x, gate, up, down):
    """Both maps go through SiLU. Only the gate does: the other one is what the gate opens, and stays as it is."""
    return (silu(x @ gate.T) * silu(x @ up.T)) @ down.T


@gated_feed_forward.mistake
def plain_layer(x, gate, up, down):
    """There is no gate: this is the plain feed-forward layer with SiLU between two maps. `gate` is not used: what does
    it open?"""
    return silu(x @ up.T) @ down.T


@gated_feed_forward.mistake
def residual_inside(x, gate, up, down):
    """You add `x` at the end. The residual connection belongs to the block, which would add it a second time."""
    return x + (silu(x @ gate.T) * (x @ up.T)) @ down.T


@gated_feed_forward.mistake
def silu_at_the_end(x, gate, up, down):
    """There is another SiLU after the last map. Nothing comes after it: what the layer adds may have any sign."""
    return silu((silu(x @ gate.T) * (x @ up.T)) @ down.T)
