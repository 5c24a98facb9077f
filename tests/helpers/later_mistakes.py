"""Twenty more mistakes, written by somebody who knew the properties' names from a card but had not read the audit.

Each mistake is a function that returns the arguments of an audit; its docstring says what is wrong. ``DETECTED_BY`` was
written after the first run: it maps each mistake to a property that detects the mistake, or to None. No property was
changed because of these mistakes. Two of the mistakes are not detected. No property could detect ``tied_through_data``:
only a conversion or an optimizer distinguishes its two weights from tied weights. The error of ``running_sum_in_half``
is divided by the number of tokens, and stays below the model's own rounding error. ``random_features_outside`` was
written for the property "saved and loaded", but the property "half precision, near and far" detects it. "Saved and
loaded" cannot detect it: the audit has no second model from the same factory, and a plain tensor may legitimately
be a constant.
"""

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lab.bugs.small_model import SmallModel, audit_arguments, seeded


def scale_updated_in_evaluation():
    """A running mean of the activations is updated even in evaluation."""

    class Mistake(SmallModel):
        def __init__(self):
            super().__init__()
            self.register_buffer("running_mean", torch.ones((), device=self.embed.weight.device))

        def output(self, x, keep):
            self.running_mean.lerp_(x.detach().abs().mean(), 0.1)
            return super().output(x, keep) / self.running_mean

    return audit_arguments(Mistake())


def vectors_scaled_in_place():
    """An encoder multiplies the caller's vectors in place by the square root of d_model."""

    class Mistake(nn.Module):
        def __init__(self):
            super().__init__()
            with seeded(0):
                self.mix = nn.MultiheadAttention(32, 4, batch_first=True)
                self.positions = nn.Parameter(torch.randn(64, 32))

        def forward(self, x):
            x *= 32**0.5
            x = x + self.positions[: x.shape[1]]
            return x + self.mix(x, x, x, need_weights=False)[0]

    return {"model": Mistake(), "d_model": 32, "kind": "bidirectional"}


def adapter_in_a_hook():
    """A hook adds a low-rank adapter; in a copy of the model, the hook still uses the original model's adapter."""

    class Mistake(SmallModel):
        def __init__(self):
            super().__init__()
            with seeded(1):
                self.down, self.up = nn.Linear(32, 4, bias=False), nn.Linear(4, 32, bias=False)
            self.to(self.embed.weight.device)
            self.feed_forwards[0].register_forward_hook(
                lambda _, inputs, output: output + self.up(self.down(inputs[0]))
            )

    return audit_arguments(Mistake())


def one_scale_for_the_batch():
    """Activations are rounded to eight bits with one scale for the whole batch."""

    class Mistake(SmallModel):
        def feed_forward(self, x, layer):
            scale = x.detach().abs().amax() / 127
            rounded = (x / scale).round() * scale
            return self.feed_forwards[layer](x + (rounded - x).detach())

    return audit_arguments(Mistake())


def masked_after_the_softmax():
    """The weights of later tokens are set to 0 only after the softmax, so the sum of a row includes these tokens."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return ((query @ key.mT * self.scale(query, key)).softmax(-1) * mask) @ value

    return audit_arguments(Mistake())


def shift_wraps_around():
    """Half of the features come from the previous token; for the first token, they come from the last token."""

    class Mistake(SmallModel):
        def embed_tokens(self, tokens, positions):
            x = super().embed_tokens(tokens, positions)
            return torch.cat([x[..., :16], x.roll(1, dims=1)[..., 16:]], -1)

    return audit_arguments(Mistake(), padded=None, packed=None, step=None)


def tied_through_data():
    """The output layer shares the memory of the embedding table, but its weight is a separate parameter."""

    class Mistake(SmallModel):
        def __init__(self):
            super().__init__()
            self.head.weight.data = self.embed.weight.data

    return audit_arguments(Mistake())


def mask_of_the_first_length():
    """The mask of the first text is stored; for a shorter text, the last rows of this mask are used."""

    class Mistake(SmallModel):
        stored_mask = None

        def mask(self, q_len, k_len, keep, documents):
            if self.stored_mask is None or len(self.stored_mask) < k_len:
                self.stored_mask = self.distance_back(k_len, k_len) >= 0
            return self.stored_mask[-q_len:, :k_len] & self.padding_and_document_mask(q_len, k_len, keep, documents)

    return audit_arguments(Mistake())


def running_sum_in_half():
    """A running mean over the tokens is summed in the dtype of the activations."""

    class Mistake(SmallModel):
        def embed_tokens(self, tokens, positions):
            x, total, means = super().embed_tokens(tokens, positions), 0.0, []
            for i in range(x.shape[1]):
                total = total + x[:, i]
                means.append(total / (i + 1))
            return x + torch.stack(means, 1)

    return audit_arguments(Mistake(), padded=None, packed=None, step=None)


def keys_rotated_again():
    """The cached keys are already rotated, and each step rotates them again."""

    class Mistake(SmallModel):
        def extend(self, cache, layer, key, value):
            if len(cache) > layer:
                keys, values = cache[layer]
                positions = torch.arange(keys.shape[2], device=keys.device)[None]
                cache[layer] = self.rotate(keys, positions), values
            return super().extend(cache, layer, key, value)

    return audit_arguments(Mistake(rotary=True))


def shift_forgets_the_cache():
    """Half of the features come from the previous token; these features are 0 at the start of each cached part."""

    class Mistake(SmallModel):
        def embed_tokens(self, tokens, positions):
            x = super().embed_tokens(tokens, positions)
            previous = F.pad(x, (0, 0, 1, 0))[:, :-1]
            return torch.cat([x[..., :16], previous[..., 16:]], -1)

    return audit_arguments(Mistake(), padded=None, packed=None)


def later_documents_see_earlier_ones():
    """The mask of packed documents compares with >= instead of ==."""

    class Mistake(SmallModel):
        def padding_and_document_mask(self, q_len, k_len, keep, documents):
            seen = super().padding_and_document_mask(q_len, k_len, keep, None)
            return seen if documents is None else seen & (documents[:, None, :, None] >= documents[:, None, None])

    return audit_arguments(Mistake())


def last_position_of_the_row():
    """A classifier uses the last position, which is padding in shorter rows."""

    class Mistake(SmallModel):
        def output(self, x, keep):
            return self.head(self.norms[-1](x[:, -1]))

    return audit_arguments(Mistake(causal=False), packed=None, collate=None, long=None, n_layers=None)


def targets_wrap_around():
    """The targets are rolled by one, so that the last output has to predict the first token."""

    class Mistake(SmallModel):
        def loss(self, tokens):
            return F.cross_entropy(self(tokens).flatten(0, 1), tokens.roll(-1, dims=1).flatten())

    return audit_arguments(Mistake())


def sum_of_losses(model, tokens, labels):
    """Return the sum of the losses over all labels except -100."""
    return F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="sum")


def gradients_cleared_between_batches():
    """The gradients are set to 0 before each small batch."""

    def accumulate(model, batches):
        n_labels = sum(int((labels[:, 1:] != -100).sum()) for _, labels in batches)
        for tokens, labels in batches:
            model.zero_grad()
            (sum_of_losses(model, tokens, labels) / n_labels).backward()

    return audit_arguments(SmallModel(), accumulate=accumulate)


def divided_by_all_positions():
    """The sum of the losses is divided by the number of all positions, including padding."""

    def accumulate(model, batches):
        n_positions = sum(labels[:, 1:].numel() for _, labels in batches)
        for tokens, labels in batches:
            (sum_of_losses(model, tokens, labels) / n_positions).backward()

    return audit_arguments(SmallModel(), accumulate=accumulate)


def cut_to_the_shortest():
    """zip cuts a batch to its shortest sentence."""

    def collate(sentences):
        tokens = torch.tensor(list(zip(*sentences))).T
        return tokens, tokens.clone()

    return audit_arguments(SmallModel(), collate=collate)


def seed_in_each_layer():
    """Each layer sets the seed before it initializes its weights, "to be reproducible"."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            with seeded(0):
                self.mix = nn.Linear(32, 32)

        def forward(self, x):
            return x + self.mix(x).relu()

    class Mistake(SmallModel):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(3)).to(self.embed.weight.device)

        def output(self, x, keep):
            for block in self.blocks:
                x = block(x)
            return super().output(x, keep)

    return audit_arguments(Mistake())


def residual_added_twice():
    """The feed-forward part adds its own input, and the layer adds x again."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
            self.mix = nn.MultiheadAttention(32, 4, batch_first=True)
            self.wide, self.narrow = nn.Linear(32, 64), nn.Linear(64, 32)

        def feed_forward(self, x):
            return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

        def forward(self, x):
            y = self.norm1(x)
            x = x + self.mix(y, y, y, need_weights=False)[0]
            return x + self.feed_forward(x)

    with seeded(0):
        model = Layer()
    return {
        "model": model,
        "d_model": 32,
        "kind": "bidirectional",
        "branches": (model.mix.out_proj, model.narrow),
        "expect": {"order is seen": "positions are added before the layer"},
    }


def random_features_outside():
    """The random directions of the positions are a plain tensor, which is in no checkpoint."""

    class Mistake(SmallModel):
        def __init__(self):
            super().__init__()
            self.directions = torch.randn(16, device=self.embed.weight.device)

        def embed_tokens(self, tokens, positions):
            angles = positions[..., None] * self.directions.to(self.embed.weight.dtype)
            return super().embed_tokens(tokens, positions) + torch.cat([angles.sin(), angles.cos()], -1)

    return audit_arguments(Mistake())


DETECTED_BY = {
    scale_updated_in_evaluation: "twice the same",
    vectors_scaled_in_place: "the input is left alone",
    adapter_in_a_hook: "a copy is on its own",
    one_scale_for_the_batch: "rows apart",
    masked_after_the_softmax: "the past does not move",
    shift_wraps_around: "the past does not move",
    tied_through_data: None,
    mask_of_the_first_length: "a prefix gives the same",
    running_sum_in_half: None,
    keys_rotated_again: "with a cache = without",
    shift_forgets_the_cache: "with a cache = without",
    later_documents_see_earlier_ones: "packed = apart",
    last_position_of_the_row: "padding of the source changes nothing",
    targets_wrap_around: "the loss asks for the next token",
    gradients_cleared_between_batches: "small batches = one big",
    divided_by_all_positions: "small batches = one big",
    cut_to_the_shortest: "every real token is a label",
    seed_in_each_layer: "layers begin different",
    residual_added_twice: "identity without branches",
    random_features_outside: "half precision, near and far",
}
