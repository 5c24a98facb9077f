"""Twenty mistakes that were written from the names of the audit's properties alone, before the audit was run on them.

Each mistake is a function that returns the arguments of an audit; its docstring says what is wrong. ``DETECTED_BY`` was
written afterwards: it maps each mistake to a property that detects the mistake, or to None. Two of the mistakes are
valid models, but not the intended ones: only a comparison with a reference can detect them. One property was changed
because of these mistakes: it read an input too late, after a mistake had overwritten the input, so that a different
property reported this mistake.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lab.bugs.small_model import SmallModel, audit_arguments


def noisy_router():
    """The scores of a router are jittered, even in evaluation."""

    class Mistake(SmallModel):
        def feed_forward(self, x, layer):
            return self.feed_forwards[layer](x) * torch.sigmoid(x[..., :1] + 0.1 * torch.randn_like(x[..., :1]))

    return audit_arguments(Mistake())


def first_token_overwritten():
    """The start token is written into the caller's tensor."""

    class Mistake(SmallModel):
        def forward(self, tokens, keep=None, documents=None, cache=None):
            if cache is None:
                tokens[:, 0] = 1
            return super().forward(tokens, keep, documents, cache)

    return audit_arguments(Mistake(), padded=None, packed=None, step=None)


def capacity_of_the_whole_batch():
    """An expert processes only the first eleven tokens of the whole batch; no expert processes the other tokens."""

    class Mistake(SmallModel):
        def feed_forward(self, x, layer):
            within_capacity = (torch.arange(x.shape[0] * x.shape[1], device=x.device) < 11).reshape(x.shape[:2])
            return self.feed_forwards[layer](x) * within_capacity[..., None]

    return audit_arguments(Mistake())


def causal_mask_one_diagonal_too_high():
    """The triangle includes one diagonal too many: each token sees the next token."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            return super().mask(q_len, k_len, keep, documents) | (self.distance_back(q_len, k_len) == -1)

    return audit_arguments(Mistake())


def norm_over_the_sequence():
    """The last norm computes its mean over the tokens as well as the features."""

    class Mistake(SmallModel):
        def output(self, x, keep):
            return self.head(F.layer_norm(x, x.shape[1:]))

    return audit_arguments(Mistake())


def first_key_hidden():
    """No query sees the first key, because the mask compares with > instead of >=."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            first = torch.arange(k_len, device=self.embed.weight.device) == 0
            return super().mask(q_len, k_len, keep, documents) & ~first

    return audit_arguments(Mistake(n_layers=1))


def scale_from_the_whole_length():
    """The temperature of the softmax depends on the length of the whole row, not on the number of visible keys."""

    class Mistake(SmallModel):
        def scale(self, query, key):
            return super().scale(query, key) * math.log(key.shape[2] + 1)

    return audit_arguments(Mistake())


def no_positions():
    """All positions of a bidirectional model are 0."""

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
    """The second layer has no window."""

    class Mistake(SmallModel):
        def layer(self, x, layer, positions, keep, documents, cache):
            window, self.window = self.window, None if layer else self.window
            out = super().layer(x, layer, positions, keep, documents, cache)
            self.window = window
            return out

    return audit_arguments(Mistake(window=3))


def positions_of_the_first_row():
    """All rows of a batch get the positions of the first row."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return super().positions(seq, start, keep, documents)[:1]

    return audit_arguments(Mistake())


def mean_over_padding():
    """The mean over all positions, including padding, is added to each token."""

    class Mistake(SmallModel):
        def output(self, x, keep):
            return self.head(self.norms[-1](x + x.mean(1, keepdim=True)))

    return audit_arguments(Mistake(causal=False))


def empty_row_divides_by_zero():
    """The mean over a row's real tokens divides by the number of these tokens, even if this number is 0."""

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


def packed_positions_not_reset():
    """Documents in one row do not see each other, but each continues the positions of the document before it."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return super().positions(seq, start, keep, None)

    return audit_arguments(Mistake())


def branch_halved_in_training():
    """In training only, a branch is scaled as if half of the layers were dropped."""

    class Mistake(SmallModel):
        def add(self, x, branch):
            return x + (branch / 2 if self.training else branch)

    return audit_arguments(Mistake())


def loss_divided_by_all_tokens():
    """The sum of the losses is divided by the number of all tokens, although the first token is never predicted."""

    class Mistake(SmallModel):
        def loss(self, tokens):
            scores = self(tokens)[:, :-1].flatten(0, 1)
            return F.cross_entropy(scores, tokens[:, 1:].flatten(), reduction="sum") / tokens.numel()

    return audit_arguments(Mistake())


def weights_in_a_list():
    """The experts are in a Python list, so no optimizer and no checkpoint contains them."""

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
    """The features of each head are returned in reverse order: a valid model, but not the intended one."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return super().attend(query, key, value, mask).transpose(1, 3).flip(1).transpose(1, 3)

    return audit_arguments(Mistake())


def scale_from_d_model():
    """The scores are divided by the root of d_model instead of d_head: a valid model, but not the intended one."""

    class Mistake(SmallModel):
        def scale(self, query, key):
            return 1 / math.sqrt(query.shape[-1] * query.shape[1])

    return audit_arguments(Mistake())


DETECTED_BY = {
    noisy_router: "twice the same",
    first_token_overwritten: "the input is left alone",
    capacity_of_the_whole_batch: "rows apart",
    causal_mask_one_diagonal_too_high: "the past does not move",
    norm_over_the_sequence: "the past does not move",
    first_key_hidden: "every token is heard",
    scale_from_the_whole_length: "a prefix gives the same",
    no_positions: "order is seen",
    small_added_mask: "the future, with loud weights",
    window_on_every_second_layer: "the window",
    positions_of_the_first_row: "alone = in a padded batch, left",
    mean_over_padding: "alone = in a padded batch, right",
    empty_row_divides_by_zero: "finite where nothing is seen",
    cache_begins_at_the_second_part: "with a cache = without",
    packed_positions_not_reset: "packed = apart",
    branch_halved_in_training: "train() = eval() without dropout",
    loss_divided_by_all_tokens: "the loss asks for the next token",
    weights_in_a_list: "every parameter learns",
    reversed_features: None,
    scale_from_d_model: None,
}
