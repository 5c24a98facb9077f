"""The experts lab: a router, the experts that it chooses for each token, and biases that balance the load."""

import torch
import traitlets

from ..arguments import type_name
from ..mixture import MixtureOfExperts
from .lab import Lab, as_integer, as_option, as_strings, as_tensor, script, style, tensor_trait

MAX_TOKENS, MAX_EXPERTS = 12, 8
MAX_BIAS = 1
BIAS_STEP = 0.01  # the change of a bias in one step of balancing
SHOWN_FEATURES = 2  # the number of features of each vector that the lab shows
ORDERS = ("softmax-topk", "topk-softmax", "sigmoid-topk")
DEFAULT_TOKENS = ("the", "cat", "sat", "on", "a", "warm", "red", "mat")
DEFAULT_X = ((0.5, -0.5), (-1.7, 0.8), (0.2, -0.8), (2.0, -1.0), (1.3, 0.8), (0.8, 1.4), (0.9, -0.5), (0.6, 0.3))
DEFAULT_ROUTER = ((2.0, 0.3), (0.3, -0.3), (-1.4, -0.2), (-1.0, -0.3))


def _make_example():
    """Return the mixture that the lab shows by default.

    Its experts use ReLU and the weights -1, 0 and 1, so that a reader can compute logits and outputs by hand.
    """
    mixture = MixtureOfExperts(2, 4, len(DEFAULT_ROUTER), 2, n_shared=1, activation="relu", gated=False)
    generator = torch.Generator().manual_seed(44)
    with torch.no_grad():
        for weight in mixture.parameters():
            weight.copy_(torch.randint(-1, 2, weight.shape, generator=generator))
        mixture.router.weight.copy_(torch.tensor(DEFAULT_ROUTER))
    return mixture


def _as_input(mixture, x):
    """Return x as a float32 tensor of a shape that the mixture accepts, or raise an error."""
    if not isinstance(mixture, MixtureOfExperts):
        raise TypeError(f"mixture must be a MixtureOfExperts, got {type_name(mixture)}")
    n_experts, d_model = mixture.router.weight.shape
    if not 2 <= n_experts <= MAX_EXPERTS:
        raise ValueError(f"mixture must have 2 to {MAX_EXPERTS} experts, got {n_experts}")
    if x is None:
        raise ValueError(f"x, of shape (seq, {d_model}), must be given for a mixture of your own, got None")
    return as_tensor("x", x, "(seq, d_model)", (1, d_model), (MAX_TOKENS, d_model))


def _as_bias(bias, n_experts):
    """Return the biases as a float32 tensor, or raise an error."""
    return as_tensor("bias", bias, "(n_experts,)", (n_experts,), (n_experts,), MAX_BIAS)


def _sizes(mixture):
    """Return the number of parameters in each part of the mixture, and the number of features of its vectors."""
    parts = {"router": mixture.router, "expert": mixture.experts[0], "shared": mixture.shared}
    counts = {name: 0 if part is None else sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    return counts | {"d_model": mixture.router.weight.shape[1]}


class ExpertsLab(Lab):
    """See which experts a router chooses for each token, how their outputs are combined, and how biases balance loads.

    Parameters
    ----------
    mixture : MixtureOfExperts, optional
        A layer of 2 to 8 experts; when left out, a small layer with two features.
    x : Tensor or sequence, shape (seq, d_model)
        The input of the layer: at most 12 tokens. Required for a ``mixture`` of your own.
    tokens : str or sequence of str, optional
        One name per token. A string is split at its spaces.
    n_active : int, optional
        The number of experts per token, k; as in ``mixture`` when left out.
    order : {"softmax-topk", "topk-softmax", "sigmoid-topk"}
        How the weights are computed: first a softmax over all logits, then the choice (as in OLMoE); first the choice,
        then a softmax over the chosen logits (as in gpt-oss); or first a sigmoid of each logit, then the choice (as in
        DeepSeek-V3). The experts are the same whether the softmax comes before or after the choice.
    renormalize : bool, optional
        Whether the weights of a token's experts are divided by their sum; as in ``mixture`` when left out.
    shared : bool, optional
        Whether the shared experts of ``mixture`` are used. When left out, they are used if there are any.
    bias : Tensor or sequence, shape (n_experts,), optional
        Numbers from -1 to 1 that are added to the scores (softmax or sigmoid), for the choice only; zeros when left
        out.
    token : int, optional
        The token whose numbers are shown.
    controls : sequence of str, optional
        The groups of controls to show beside the picture: any of ``"bias"``, ``"balance"``, ``"router"``, ``"shared"``
        and ``"numbers"``; all when left out.

    Attributes
    ----------
    n_active, order, renormalize, shared, bias, token
        What the reader has set.
    indices : Tensor of int64, shape (seq, n_active)
        The experts that the router chooses for each token.
    weights : Tensor, shape (seq, n_active)
        The weights of the chosen experts.
    loads : Tensor of int64, shape (n_experts,)
        The number of tokens that each expert receives.
    output : Tensor, shape (seq, d_model)
        The weighted sums of the experts' outputs, plus the output of the shared experts if ``shared`` is true.

    Raises
    ------
    TypeError, ValueError
        If ``mixture`` is not a :class:`MixtureOfExperts` of 2 to 8 experts, or an argument does not fit it.

    References
    ----------
    Jiang et al., "Mixtral of Experts", 2024, section 2.1. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section
    2.1.2, for the biases; that model also limits the choice to groups of experts, and scales the weights.

    Examples
    --------
    >>> ExpertsLab(n_active=1).loads
    tensor([6, 1, 1, 0])
    >>> ExpertsLab(n_active=1, bias=(0, 0, 0, 0.08)).loads
    tensor([6, 0, 1, 1])
    """

    _esm = script("experts_maths", "experts_words", "experts")
    _css = style("experts")
    repr_traits = ("n_active", "order", "renormalize", "shared", "bias", "token")
    groups = ("bias", "balance", "router", "shared", "numbers")

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    x = tensor_trait()
    router = tensor_trait()
    logits = tensor_trait()
    outputs = tensor_trait()
    shared_output = tensor_trait()
    sizes = traitlets.Dict().tag(sync=True)
    limits = traitlets.Dict({"bias": MAX_BIAS, "step": BIAS_STEP}).tag(sync=True)
    n_active = traitlets.Any().tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)
    renormalize = traitlets.Bool().tag(sync=True)
    shared = traitlets.Bool().tag(sync=True)
    bias = tensor_trait()
    token = traitlets.Any().tag(sync=True)

    def __init__(
        self,
        mixture=None,
        x=None,
        tokens=None,
        *,
        n_active=None,
        order="softmax-topk",
        renormalize=None,
        shared=None,
        bias=None,
        token=0,
        controls=None,
    ):
        if mixture is None:
            mixture = _make_example()
            tokens = DEFAULT_TOKENS if x is None and tokens is None else tokens
            x = DEFAULT_X if x is None else x
        x = _as_input(mixture, x)
        tokens = [f"token {i}" for i in range(len(x))] if tokens is None else as_strings("tokens", tokens)
        if len(tokens) != len(x):
            raise ValueError(f"tokens must have one name for each row of x, {len(x)}, got {len(tokens)}")
        self._mixture = mixture
        with torch.no_grad():
            layer_input = x.to(mixture.router.weight)
            logits = mixture.router(layer_input)
            self._outputs = torch.stack([expert(layer_input) for expert in mixture.experts]).cpu().float()
            self._shared_output = (
                torch.empty(0) if mixture.shared is None else mixture.shared(layer_input).cpu().float()
            )
        n_experts = len(mixture.experts)
        shows_router = x.shape[1] <= SHOWN_FEATURES  # with few features, a reader can check a logit by hand
        super().__init__(
            tokens=tokens,
            x=x[:, :SHOWN_FEATURES],
            router=mixture.router.weight.detach().cpu().float() if shows_router else torch.empty(0),
            logits=logits.cpu().float(),
            outputs=self._outputs[..., :SHOWN_FEATURES],
            shared_output=self._shared_output[..., :SHOWN_FEATURES],
            sizes=_sizes(mixture),
            n_active=mixture.n_active if n_active is None else n_active,
            order=order,
            renormalize=mixture.renormalize if renormalize is None else renormalize,
            shared=mixture.shared is not None if shared is None else shared,
            bias=_as_bias(torch.zeros(n_experts) if bias is None else bias, n_experts),
            token=token,
            controls=controls,
        )

    @traitlets.validate("n_active", "token")
    def _check_integers(self, proposal):
        name = proposal.trait.name
        limits = (1, len(self._outputs)) if name == "n_active" else (0, self._outputs.shape[1] - 1)
        return as_integer(name, proposal.value, *limits)

    @traitlets.validate("order")
    def _check_order(self, proposal):
        return as_option("order", proposal.value, ORDERS)

    @traitlets.validate("shared")
    def _check_shared(self, proposal):
        if proposal.value and self._mixture.shared is None:
            raise ValueError("shared must be False, since the mixture has no shared experts, got True")
        return proposal.value

    @traitlets.validate("bias")
    def _check_bias(self, proposal):
        return _as_bias(proposal.value, len(self._outputs))

    @property
    def _scores(self):
        return self.logits.sigmoid() if self.order == "sigmoid-topk" else self.logits.softmax(-1)

    @property
    def indices(self):
        return (self._scores + self.bias).topk(self.n_active, dim=-1).indices

    @property
    def weights(self):
        if self.order == "topk-softmax":
            return self.logits.gather(-1, self.indices).softmax(-1)
        weights = self._scores.gather(-1, self.indices)
        return weights / weights.sum(-1, keepdim=True) if self.renormalize else weights

    @property
    def loads(self):
        return self.indices.flatten().bincount(minlength=len(self._outputs))

    @property
    def output(self):
        by_token = self._outputs.transpose(0, 1)  # (seq, n_experts, d_model)
        chosen = by_token[torch.arange(len(by_token))[:, None], self.indices]  # (seq, n_active, d_model)
        mixed = (self.weights[..., None] * chosen).sum(1)
        return mixed + self._shared_output if self.shared else mixed
