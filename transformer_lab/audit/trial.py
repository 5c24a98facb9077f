"""The object on which a property is tried: a copy of the model in one dtype, inputs for it, and the adapters.

A property returns if it holds; otherwise it raises `Fails` with the smallest example, or `NotTried` with the reason.
"""

import copy
import time
from functools import cached_property

import torch
from torch import nn

from ..arguments import format_value, type_name
from . import limit

# For each dtype, the smallest difference that counts as a failure, as a share of the outputs' spread. In float64, a
# small leak is far larger than rounding errors. A failure must be confirmed in float32, since a model may compute parts
# in float32 and overflow in float64.
DTYPES = ((torch.float64, 1e-5, 1e-12), (torch.float32, 1e-4, 1e-6))
OTHER_LENGTHS = (8, 16, 32, 64)  # tried in turn if the model does not accept the requested length


class Fails(Exception):
    """The property does not hold; the message is the example."""


class NotTried(Exception):
    """The property cannot be tried; the message is the reason."""


class Wrong(Exception):
    """The return value of an adapter or of the model has the wrong form; the message says which form is right."""


ADAPTERS = {
    "forward": "(model, x)",
    "padded": "(model, tokens, keep)",
    "packed": "(model, tokens, documents)",
    "step": "(model, tokens, cache)",
    "loss": "(model, tokens)",
    "accumulate": "(model, batches)",
    "collate": "(sentences)",
}


class Trial:
    """A copy of the model in one dtype, in evaluation mode, with an input ``x``."""

    def __init__(self, options, dtype, tolerance, noise_floor, uncopyable):
        self.options, self.tolerance, self.noise_floor, self.uncopyable = options, tolerance, noise_floor, uncopyable
        self.kind, self.pad, self.window, self.n_layers = options.kind, options.pad, options.window, options.n_layers
        self.n_tokens = options.vocab_size  # None if the model takes vectors
        tensors = [*options.model.parameters(), *options.model.buffers()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.dtype = next((x.dtype for x in tensors if x.is_floating_point()), dtype) if uncopyable else dtype
        self.model = options.model if uncopyable else self.fresh_copy().eval()
        self.seconds = limit.SECONDS

    def start(self, length):
        """Draw the input, run the model on it, and measure how long the run takes."""
        torch.manual_seed(0)
        self.length, self.x = length, self.draw(1, length)
        begin = time.perf_counter()
        self.size = max(float(self.run(self.x).std()), 1e-9)
        self.seconds = max(limit.SECONDS, limit.PASSES * (time.perf_counter() - begin))

    # Copies and inputs

    def fresh_copy(self):
        """Return a new copy of the original, in the original's modes, which has not run a forward pass yet."""
        self.require_copy()
        return copy.deepcopy(self.options.model).to(self.dtype)

    def modified(self, change):
        """Return a copy of the model in evaluation mode, changed by ``change(copy)``."""
        model = self.fresh_copy().eval()
        change(model)
        return model

    def require_copy(self):
        if self.uncopyable:
            raise NotTried(self.uncopyable)

    def draw(self, *shape):
        """Return random tokens, never the padding token; or random vectors."""
        if self.n_tokens is None:
            x = torch.randn(*shape, self.options.d_model, dtype=torch.float32)
            return x.to(self.device, self.dtype)
        x = torch.randint(0, self.n_tokens - 1, shape)
        return (x + (x >= self.pad).long()).to(self.device)

    def replaced(self, x):
        """Return a different token, or a different vector, for each position; never the padding token."""
        if self.n_tokens is None:
            return x + torch.randn(x.shape, dtype=torch.float32).to(x)
        x = (x + 1) % self.n_tokens
        return torch.where(x == self.pad, (x + 1) % self.n_tokens, x)

    def padding_like(self, keep, number):
        """Return the content of padded positions: copies of one token, or of one vector."""
        shape = keep.shape if self.n_tokens is not None else (*keep.shape, self.options.d_model)
        return torch.full(shape, number, device=self.device, dtype=self.x.dtype)

    # Calls

    @torch.no_grad()
    def run(self, x, model=None):
        """Return the output, (batch, seq, features); (batch, 1, features) if the model returns one vector a row."""
        return self.forward(x, model or self.model)

    def forward(self, x, model):
        """Return the same output as `run`, with gradients."""
        own = self.options.forward
        return as_output(call("forward", own, model, x) if own else model(x), "forward" if own else "the model", x)

    def adapter(self, name):
        """Return an adapter as a function; raise `NotTried` if the adapter was not passed."""
        function = getattr(self.options, name)
        if function is None:
            raise NotTried(f"pass `{name}=`, a function of {ADAPTERS[name]}")
        return lambda *arguments: call(name, function, *arguments)

    @torch.no_grad()
    def padded(self, tokens, keep):
        return as_output(self.adapter("padded")(self.model, tokens, keep), "padded", tokens)

    @cached_property
    def is_per_token(self):
        """Whether the model returns one output per token at any length; None if it accepts only one length."""
        try:
            return self.run(self.x[:, :-3]).shape[1] == self.length - 3
        except Exception:
            is_unknown = self.kind == "bidirectional" and self.run(self.x).shape[1] == self.length
            return None if is_unknown else self.run(self.x).shape[1] == self.length

    def require_per_token(self):
        if self.is_per_token is False:
            raise NotTried("the model does not return one output per token")

    def require_causal(self):
        if self.kind != "causal":
            raise NotTried(f"the kind is {self.kind}, not causal")
        self.require_per_token()

    def require_tokens(self):
        if self.n_tokens is None:
            raise NotTried("the model takes vectors, and this property needs token ids")

    def require_length(self, length):
        """Raise `NotTried` if the model does not accept sequences of this length."""
        try:
            self.run(self.draw(1, length))
        except Exception as error:
            raise NotTried(f"the model does not accept {length} tokens: {first_line(error)}") from None

    # Comparisons

    def require_same(self, got, expected, name):
        """Raise `Fails`, with the place and size of the largest difference, unless both are equal up to rounding."""
        if got.shape != expected.shape:
            raise Fails(f"{name}: shape {tuple(got.shape)}, not {tuple(expected.shape)}")
        gap = (got - expected).abs()
        if not gap.isfinite().all():
            raise Fails(f"{name}: {int((~gap.isfinite()).sum())} of {gap.numel()} numbers are not finite")
        if gap.numel() and float(gap.max()) > self.tolerance * self.size:
            position = int(gap.amax((0, 2)).argmax()) if gap.ndim == 3 else int(gap.argmax())
            raise Fails(f"{name}: off by {number(gap.max())} at position {position} ({self.spread()})")

    def spread(self):
        return f"outputs vary by {number(self.size)}"

    def influence(self, x=None, model=None):
        """Return how far output i moves when token j alone is replaced: (j, i)."""
        if x is None and model is None:
            return self.own_influence
        x = self.x if x is None else x
        right, rows = self.run(x, model), []
        for j in range(x.shape[1]):
            changed = x.clone()
            changed[:, j] = self.replaced(x[:, j])
            rows.append((self.run(changed, model) - right).abs().amax(-1)[0])
        return torch.stack(rows).cpu()

    @cached_property
    def own_influence(self):
        return self.influence(self.x)

    def distance(self):
        """Return by how many positions output i comes after token j: (j, i), negative if the token comes later."""
        places = torch.arange(self.length)
        return places - places[:, None]


def call(name, function, *arguments):
    """Call an adapter; if the call itself is rejected, the error states the form that the adapter must have."""
    form = f"{name} must be a function {name}{ADAPTERS[name]}"
    if not callable(function):
        raise Wrong(f"{form}, got {format_value(function)}")
    try:
        return function(*arguments)
    except TypeError as error:
        # the call itself was rejected, not a line of the adapter
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise Wrong(f"{form}: {first_line(error)}") from None
        raise


def as_output(value, name, x):
    """Return the one output tensor in a result: (batch, seq, features)."""
    rule = "must return one tensor, (batch, seq, features)"
    if not isinstance(value, torch.Tensor):
        fits = [(path, item) for path, item in parts(value) if item.ndim == 3 and item.is_floating_point()]
        fits = [pair for pair in fits if pair[1].shape[:2] == x.shape[:2]]
        if len(fits) != 1:
            returned = ", ".join(f"{path} {tuple(item.shape)}" for path, item in parts(value)) or "no tensor"
            fix = f"lambda model, x: model(x){fits[0][0]}" if fits else "forward(model, x), which returns it"
            fix = f": pass forward={fix}" if name == "the model" else ""
            raise Wrong(f"{name} {rule}, got {type_name(value)} with {returned}{fix}")
        value = fits[0][1]
    if not value.is_floating_point() or value.ndim not in (2, 3) or len(value) != len(x):
        raise Wrong(f"{name} {rule}, got {format_value(value)}")
    return value if value.ndim == 3 else value[:, None]


def parts(value):
    """Return the tensors that are items of a tuple, a dict or a dataclass, each with the code that reads it."""
    if isinstance(value, dict):
        pairs = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        pairs = [(f"[{place}]", item) for place, item in enumerate(value)]
    else:
        pairs = [(f".{key}", item) for key, item in getattr(value, "__dict__", {}).items()]
    return [(path, item) for path, item in pairs if isinstance(item, torch.Tensor)]


def first_line(error):
    """Return an error as one line."""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text if len(text) <= 160 else text[:150] + ' …'}"


def number(value):
    return f"{float(value):.2g}"


def multiply_weights(factor):
    """Return a function that changes a model: it multiplies all matrices except the embeddings by ``factor``."""

    def change(model):
        tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        for parameter in model.parameters():
            if parameter.ndim >= 2 and id(parameter) not in tables:
                parameter.data *= factor

    return change


def copy_failure(model):
    """Return the reason why a model cannot be copied, or an empty string."""
    try:
        copy.deepcopy(model)
    except Exception as error:
        return f"the model cannot be copied ({first_line(error)})"
    return ""


def shared_with_original(t):
    """Return a sentence with the name of an original parameter that a copy uses, or an empty string.

    An independent copy has no gradient with respect to the original's parameters. But if the original's ``__init__``
    stored a closure over modules, the copy's closure still runs the original's modules.
    """
    own = {name: parameter for name, parameter in t.options.model.named_parameters() if parameter.requires_grad}
    try:
        model = copy.deepcopy(t.options.model).eval()
        x = t.x.to(next(model.parameters()).dtype) if t.n_tokens is None else t.x
        gradients = torch.autograd.grad(t.forward(x, model).sum(), list(own.values()), allow_unused=True)
    except (Exception, limit.TooLong):  # the model has no parameters, or none of them learns
        return ""
    shared = [name for name, gradient in zip(own, gradients) if gradient is not None]
    return f"a copy of the model runs parts of the original, such as `{shared[0]}`" if shared else ""
