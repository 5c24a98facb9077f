"""Twenty mistakes that were written from the names of the audit's properties alone, before anything was tried.

Each is a function that returns the arguments of an audit; its docstring says what is wrong. ``SEEN_BY`` was written
down afterwards: one property that sees it, or None. Two are other valid models, which only a reference can tell from
the model that was meant. One property was changed for them: an input that the model overwrites was overwritten before
the property looked, so that another property saw it.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lab.bugs.small_model import SmallModel, audit_arguments


def noisy_router():
    """The scores of a router are jittered, also in evaluation."""

    class Mistake(SmallModel):
        def feed_forward(self, x, layer):
            return self.wide[layer](x) * torch.sigmoid(x[..., :1] + 0.1 * torch.randn_like(x[..., :1]))

    return audit_arguments(Mistake())


def first_token_overwritten():
    """The start token is written into the caller's tensor."""

    class Mistake(SmallModel):
        def forward(self, tokens, keep=None, documents=None, cache=None):
            if cache is None:
                tokens[:, 0] = 1
            return super().forward(tokens, keep, documents, cache)

    return audit_arguments(Mistake(), padded=None, packed=None, step=None)


def capacity_over_the_batch():
    """An expert takes the first eleven tokens of the whole batch, and the others get nothing."""

    class Mistake(SmallModel):
        def feed_forward(self, x, layer):
            first = (torch.arange(x.shape[0] * x.shape[1], device=x.device) < 11).reshape(x.shape[:2])
            return self.wide[layer](x) * first[..., None]

    return audit_arguments(Mistake())


def triangle_one_too_far():
    """The triangle begins one diagonal too high: each token sees the next one."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            return super().mask(q_len, k_len, keep, documents) | (self.back(q_len, k_len) == -1)

    return audit_arguments(Mistake())


def norm_over_the_sequence():
    """The last norm takes its mean over the tokens, too."""

    class Mistake(SmallModel):
        def output(self, x, keep):
            return self.head(F.layer_norm(x, x.shape[1:]))

    return audit_arguments(Mistake())


def first_key_hidden():
    """No query sees the first key: the mask compares with > where >= is meant."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            first = torch.arange(k_len, device=self.embed.weight.device) == 0
            return super().mask(q_len, k_len, keep, documents) & ~first

    return audit_arguments(Mistake(n_layers=1))


def scale_of_the_whole_length():
    """The temperature of the softmax follows the length of the whole row, not what a query sees."""

    class Mistake(SmallModel):
        def scale(self, query, key):
            return super().scale(query, key) * math.log(key.shape[2] + 1)

    return audit_arguments(Mistake())


def no_positions():
    """A bidirectional model whose positions are all 0."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return torch.zeros(1, seq, dtype=torch.long, device=self.embed.weight.device)

    return audit_arguments(Mistake(causal=False))


def small_added_mask():
    """The mask adds -100 to hidden scores."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return torch.softmax(query @ key.mT * self.scale(query, key) - 100.0 * ~mask, -1) @ value

    return audit_arguments(Mistake())


def window_on_every_second_layer():
    """The window is forgotten in the second layer."""

    class Mistake(SmallModel):
        def layer(self, x, layer, positions, keep, documents, cache):
            window, self.window = self.window, None if layer else self.window
            out = super().layer(x, layer, positions, keep, documents, cache)
            self.window = window
            return out

    return audit_arguments(Mistake(window=3))


def positions_of_the_first_row():
    """All rows of a batch get the positions of the first one."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return super().positions(seq, start, keep, documents)[:1]

    return audit_arguments(Mistake())


def mean_over_padding():
    """A vector of the whole sentence is added to each token: the mean over all places, padding among them."""

    class Mistake(SmallModel):
        def output(self, x, keep):
            return self.head(self.norms[-1](x + x.mean(1, keepdim=True)))

    return audit_arguments(Mistake(causal=False))


def empty_row_divides_by_zero():
    """The mean over the real tokens of a row divides by their number, even where it is 0."""

    class Mistake(SmallModel):
        def output(self, x, keep):
            keep = torch.ones(x.shape[:2], device=x.device) if keep is None else keep
            keep = keep.to(x.dtype)[..., None]
            return self.head(self.norms[-1](x + (x * keep).sum(1, keepdim=True) / keep.sum(1, keepdim=True)))

    return audit_arguments(Mistake(causal=False))


def cache_begins_at_the_second_part():
    """The first part is never put into the cache."""

    class Mistake(SmallModel):
        def step(self, tokens, cache):
            return (self(tokens), []) if cache is None else (self(tokens, cache=cache), cache)

    return audit_arguments(Mistake(rotary=True))


def packed_positions_go_on():
    """Documents in one row do not see each other, but the positions of the second go on where the first ends."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return super().positions(seq, start, keep, None)

    return audit_arguments(Mistake())


def branch_halved_in_training():
    """A branch is scaled as if half of the layers were dropped, in training only."""

    class Mistake(SmallModel):
        def add(self, x, branch):
            return x + (branch / 2 if self.training else branch)

    return audit_arguments(Mistake())


def loss_over_all_places():
    """The sum of the losses is divided by the number of tokens, of which one is never predicted."""

    class Mistake(SmallModel):
        def loss(self, tokens):
            scores = self(tokens)[:, :-1].flatten(0, 1)
            return F.cross_entropy(scores, tokens[:, 1:].flatten(), reduction="sum") / tokens.numel()

    return audit_arguments(Mistake())


def weights_in_a_list():
    """The experts are in a Python list: no optimizer, no checkpoint knows them."""

    class Mistake(SmallModel):
        def __init__(self):
            super().__init__()
            device = self.embed.weight.device
            self.experts = [nn.Linear(32, 32, device=device) for _ in range(2)]

        def feed_forward(self, x, layer):
            expert = self.experts[layer]
            return F.linear(x, expert.weight.to(x.dtype), expert.bias.to(x.dtype))

    return audit_arguments(Mistake())


def reversed_features():
    """The features of each head come out in reverse order: another valid model."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return super().attend(query, key, value, mask).transpose(1, 3).flip(1).transpose(1, 3)

    return audit_arguments(Mistake())


def wrong_feature_scale():
    """The scores are divided by the root of d_model, not of d_head: another valid model."""

    class Mistake(SmallModel):
        def scale(self, query, key):
            return 1 / math.sqrt(query.shape[-1] * query.shape[1])

    return audit_arguments(Mistake())


SEEN_BY = {
    noisy_router: "twice the same",
    first_token_overwritten: "the input is left alone",
    capacity_over_the_batch: "rows apart",
    triangle_one_too_far: "the past does not move",
    norm_over_the_sequence: "the past does not move",
    first_key_hidden: "every token is heard",
    scale_of_the_whole_length: "a prefix gives the same",
    no_positions: "order is seen",
    small_added_mask: "the future, with loud weights",
    window_on_every_second_layer: "the window",
    positions_of_the_first_row: "alone = in a padded batch, left",
    mean_over_padding: "alone = in a padded batch, right",
    empty_row_divides_by_zero: "finite where nothing is seen",
    cache_begins_at_the_second_part: "with a cache = without",
    packed_positions_go_on: "packed = apart",
    branch_halved_in_training: "train() = eval() without dropout",
    loss_over_all_places: "the loss asks for the next token",
    weights_in_a_list: "every parameter learns",
    reversed_features: None,
    wrong_feature_scale: None,
}
