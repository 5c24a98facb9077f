"""The object on which a property is tried.

A trial provides a copy of the model in one dtype, inputs for the copy, and the adapters that call the copy.

A property returns if it holds; otherwise it raises `Fails` with the smallest example, or `NotTried` with the reason.
"""

import copy
import time
from functools import cached_property

import torch
from torch import nn

from ..arguments import format_value, type_name
from . import limit

# Each row contains a dtype, a tolerance and a noise floor. A difference above the tolerance is a failure; an output
# that changes by more than the noise floor counts as moved. Both bounds are fractions of the outputs' standard
# deviation. In float64, even a small leak is far larger than rounding errors. A failure counts only if it also occurs
# in float32: a model may compute parts in float32, where numbers of float64 lose digits or overflow.
PRECISIONS = ((torch.float64, 1e-5, 1e-12), (torch.float32, 1e-4, 1e-6))
OTHER_LENGTHS = (8, 16, 32, 64)  # tried in turn if the model does not accept the requested length


class Fails(Exception):
    """The property does not hold; the message is an example."""


class NotTried(Exception):
    """The property cannot be tried; the message is the reason."""


class WrongForm(Exception):
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
    """A copy of the model in one dtype and in evaluation mode, and an input ``x`` for the copy."""

    def __init__(self, options, dtype, tolerance, noise_floor, copy_error):
        self.options, self.tolerance, self.noise_floor, self.copy_error = options, tolerance, noise_floor, copy_error
        self.kind, self.pad, self.window, self.n_layers = options.kind, options.pad, options.window, options.n_layers
        self.vocab_size = options.vocab_size  # None if the model takes vectors
        tensors = [*options.model.parameters(), *options.model.buffers()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.dtype = next((x.dtype for x in tensors if x.is_floating_point()), dtype) if copy_error else dtype
        self.model = options.model if copy_error else self.fresh_copy().eval()
        self.seconds = limit.SECONDS

    def start(self, length):
        """Draw the input, run the model on it, and measure how long the run takes."""
        torch.manual_seed(0)
        self.length, self.x = length, self.draw(1, length)
        begin = time.perf_counter()
        self.output_std = max(float(self.run(self.x).std()), 1e-9)
        self.seconds = max(limit.SECONDS, limit.PASSES * (time.perf_counter() - begin))

    # Copies and inputs

    def fresh_copy(self):
        """Return a new copy of the original, in the original's modes; the copy has not run a forward pass yet."""
        self.require_copy()
        return copy.deepcopy(self.options.model).to(self.dtype)

    def modified_copy(self, change):
        """Return a copy of the model in evaluation mode, changed by ``change(copy)``."""
        model = self.fresh_copy().eval()
        change(model)
        return model

    def require_copy(self):
        if self.copy_error:
            raise NotTried(self.copy_error)

    def draw(self, *shape):
        """Return random tokens, none of which is the padding token, or random vectors."""
        if self.vocab_size is None:
            x = torch.randn(*shape, self.options.d_model, dtype=torch.float32)
            return x.to(self.device, self.dtype)
        x = torch.randint(0, self.vocab_size - 1, shape)
        return (x + (x >= self.pad).long()).to(self.device)

    def replace_tokens(self, x):
        """Return a different token, or a different vector, for each position; never the padding token."""
        if self.vocab_size is None:
            return x + torch.randn(x.shape, dtype=torch.float32).to(x)
        x = (x + 1) % self.vocab_size
        return torch.where(x == self.pad, (x + 1) % self.vocab_size, x)

    def padding_like(self, keep, number):
        """Return what fills padded positions: copies of one token, or of one vector."""
        shape = keep.shape if self.vocab_size is not None else (*keep.shape, self.options.d_model)
        return torch.full(shape, number, device=self.device, dtype=self.x.dtype)

    # Calls

    @torch.no_grad()
    def run(self, x, model=None):
        """Return the output, (batch, seq, features), where seq is 1 if the model returns one vector per row."""
        return self.forward(x, model or self.model)

    def forward(self, x, model):
        """Return the same output as `run`, and let autograd record the computation."""
        forward_adapter = self.options.forward
        if not forward_adapter:
            return as_output(model(x), "the model", x)
        return as_output(call_adapter("forward", forward_adapter, model, x), "forward", x)

    def adapter(self, name):
        """Return an adapter as a function; raise `NotTried` if the adapter was not passed."""
        function = getattr(self.options, name)
        if function is None:
            raise NotTried(f"pass `{name}=`, a function of {ADAPTERS[name]}")
        return lambda *arguments: call_adapter(name, function, *arguments)

    @torch.no_grad()
    def padded(self, tokens, keep):
        return as_output(self.adapter("padded")(self.model, tokens, keep), "padded", tokens)

    @cached_property
    def is_per_token(self):
        """Whether the model returns one output per token at any length; None if only one length is accepted."""
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
        if self.vocab_size is None:
            raise NotTried("the model takes vectors, but this property needs token ids")

    def require_length(self, length):
        """Raise `NotTried` if the model does not accept sequences of this length."""
        try:
            self.run(self.draw(1, length))
        except Exception as error:
            raise NotTried(f"the model does not accept {length} tokens: {first_line(error)}") from None

    # Comparisons

    def require_same(self, got, expected, name):
        """Raise `Fails` with the place and size of the largest difference, unless both tensors agree up to rounding."""
        if got.shape != expected.shape:
            raise Fails(f"{name}: shape {tuple(got.shape)}, not {tuple(expected.shape)}")
        differences = (got - expected).abs()
        if not differences.isfinite().all():
            n_not_finite = int((~differences.isfinite()).sum())
            raise Fails(f"{name}: {n_not_finite} of {differences.numel()} numbers are not finite")
        if differences.numel() and float(differences.max()) > self.tolerance * self.output_std:
            position = int(differences.amax((0, 2)).argmax()) if differences.ndim == 3 else int(differences.argmax())
            largest = format_number(differences.max())
            raise Fails(f"{name}: off by {largest} at position {position} ({self.output_std_text()})")

    def output_std_text(self):
        return f"outputs vary by {format_number(self.output_std)}"

    def influence(self, x=None, model=None):
        """Return a matrix whose entry (j, i) says how far output i moves when only token j is replaced."""
        if x is None and model is None:
            return self.own_influence
        x = self.x if x is None else x
        expected, moves = self.run(x, model), []
        for j in range(x.shape[1]):
            changed_x = x.clone()
            changed_x[:, j] = self.replace_tokens(x[:, j])
            moves.append((self.run(changed_x, model) - expected).abs().amax(-1)[0])
        return torch.stack(moves).cpu()

    @cached_property
    def own_influence(self):
        return self.influence(self.x)

    def distance(self):
        """Return a matrix whose entry (j, i) is the position of output i minus the position of token j."""
        positions = torch.arange(self.length)
        return positions - positions[:, None]


def call_adapter(name, function, *arguments):
    """Call an adapter; if the call itself is rejected, the error states the form that the adapter must have."""
    form = f"{name} must be a function {name}{ADAPTERS[name]}"
    if not callable(function):
        raise WrongForm(f"{form}, got {format_value(function)}")
    try:
        return function(*arguments)
    except TypeError as error:
        # Python rejected the call itself, before any line of the adapter ran
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise WrongForm(f"{form}: {first_line(error)}") from None
        raise


def as_output(value, name, x):
    """Return the only output tensor in a result; it has shape (batch, seq, features)."""
    rule = "must return one tensor, (batch, seq, features)"
    if not isinstance(value, torch.Tensor):
        candidates = [(path, item) for path, item in tensor_items(value) if item.ndim == 3 and item.is_floating_point()]
        candidates = [candidate for candidate in candidates if candidate[1].shape[:2] == x.shape[:2]]
        if len(candidates) != 1:
            returned = ", ".join(f"{path} {tuple(item.shape)}" for path, item in tensor_items(value)) or "no tensor"
            code = ", a function of (model, x) that returns it"
            if candidates:
                code = f"lambda model, x: model(x){candidates[0][0]}"
            fix = f": pass forward={code}" if name == "the model" else ""
            raise WrongForm(f"{name} {rule}, got {type_name(value)} with {returned}{fix}")
        value = candidates[0][1]
    if not value.is_floating_point() or value.ndim not in (2, 3) or len(value) != len(x):
        raise WrongForm(f"{name} {rule}, got {format_value(value)}")
    return value if value.ndim == 3 else value[:, None]


def tensor_items(value):
    """Return the tensors that are items of a tuple, a dict or a dataclass, each with the code that reads it."""
    if isinstance(value, dict):
        items = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        items = [(f"[{index}]", item) for index, item in enumerate(value)]
    else:
        items = [(f".{key}", item) for key, item in getattr(value, "__dict__", {}).items()]
    return [(path, item) for path, item in items if isinstance(item, torch.Tensor)]


def first_line(error):
    """Return an error as one line."""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text if len(text) <= 160 else text[:150] + ' …'}"


def format_number(value):
    return f"{float(value):.2g}"


def multiply_weights(factor):
    """Return a function that changes a model: it multiplies all matrices except the embeddings by ``factor``."""

    def change(model):
        embedding_ids = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        for parameter in model.parameters():
            if parameter.ndim >= 2 and id(parameter) not in embedding_ids:
                parameter.data *= factor

    return change


def find_copy_error(model):
    """Return the reason why a model cannot be copied, or an empty string."""
    try:
        copy.deepcopy(model)
    except Exception as error:
        return f"the model cannot be copied ({first_line(error)})"
    return ""


def describe_shared_parameter(trial):
    """Return a sentence that names a parameter of the original which a copy uses, or an empty string.

    The output of an independent copy has no gradient with respect to the original's parameters. But if the original's
    ``__init__`` stored a closure over modules, the copy's closure still runs the original's modules.
    """
    originals = {
        name: parameter for name, parameter in trial.options.model.named_parameters() if parameter.requires_grad
    }
    try:
        model = copy.deepcopy(trial.options.model).eval()
        x = trial.x.to(next(model.parameters()).dtype) if trial.vocab_size is None else trial.x
        gradients = torch.autograd.grad(trial.forward(x, model).sum(), list(originals.values()), allow_unused=True)
    except (Exception, limit.TimeLimitExceeded):  # the model has no parameters, or none of them learns
        return ""
    shared_names = [name for name, gradient in zip(originals, gradients) if gradient is not None]
    return f"a copy of the model runs parts of the original, such as `{shared_names[0]}`" if shared_names else ""
