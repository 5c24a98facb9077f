"""A mixture of experts: many feed-forward layers, of which each token uses only a few."""

from functools import partial

import torch
from torch import Tensor, nn

from .arguments import as_sizes, require_features, require_flags
from .layers import FeedForward
from .precision import upcast


class MixtureOfExperts(nn.Module):
    """Feed-forward layers as experts, and a router that sends each token to a few of them.

    A token's output is the sum of its experts' outputs, weighted by the router, plus the output of the shared experts.
    The model stores all experts, but a token uses only ``n_active + n_shared`` of them. The module can replace the
    :class:`FeedForward` of a layer: ``layer.feed_forward = MixtureOfExperts(…)``.

    Parameters
    ----------
    d_model : int
    d_ff : int
        Number of features inside one expert.
    n_experts : int
        Number of experts that the router chooses from.
    n_active : int
        Number of experts that the router chooses for each token, at most ``n_experts``.
    n_shared : int, optional
        Number of further experts, which every token uses. They are stored as one :class:`FeedForward` of
        ``n_shared * d_ff`` features, whose output equals the sum of the outputs of ``n_shared`` experts.
    activation, gated, bias : optional
        As in :class:`FeedForward`, for every expert. The router has no bias.
    renormalize : bool, optional
        Whether the weights of the chosen experts are divided by their sum, as in Mixtral, and in Qwen3, which calls the
        option ``norm_topk_prob``. The softmax of gpt-oss, over only the chosen experts, is equivalent. ``False`` leaves
        the weights as the softmax over all experts returns them, as in OLMoE, Qwen2 and DeepSeek-V2. DeepSeek-V3 and
        GLM-4.5 have different routers, with sigmoids and a bias for balance.

    References
    ----------
    Shazeer et al., "Outrageously Large Neural Networks", 2017, section 2. Jiang et al., "Mixtral of Experts", 2024,
    section 2.1. Dai et al., "DeepSeekMoE", 2024, sections 3.1 and 3.2, for small experts and for shared experts.

    Examples
    --------
    >>> mixture = MixtureOfExperts(d_model=4, d_ff=8, n_experts=6, n_active=2)
    >>> x = torch.ones(2, 5, 4)
    >>> mixture(x).shape
    torch.Size([2, 5, 4])
    >>> indices, weights = mixture.route(x)
    >>> indices.shape
    torch.Size([2, 5, 2])
    >>> torch.allclose(weights.sum(-1), torch.ones(2, 5))
    True
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        n_experts: int,
        n_active: int,
        *,
        n_shared: int = 0,
        activation: str = "silu",
        gated: bool = True,
        bias: bool = False,
        renormalize: bool = True,
    ):
        super().__init__()
        d_model, d_ff, n_experts, self.n_active = as_sizes(
            d_model=d_model, d_ff=d_ff, n_experts=n_experts, n_active=n_active
        )
        if self.n_active > n_experts:
            raise ValueError(f"n_active must be at most n_experts, got n_active {n_active} and n_experts {n_experts}")
        (n_shared,) = as_sizes(minimum=0, n_shared=n_shared)
        require_flags(renormalize=renormalize)
        self.renormalize = renormalize
        new_expert = partial(FeedForward, d_model, activation=activation, gated=gated, bias=bias)
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(new_expert(d_ff) for _ in range(n_experts))
        self.shared = new_expert(n_shared * d_ff) if n_shared else None

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the experts that each token is sent to, and their weights.

        Parameters
        ----------
        x : Tensor, shape (..., seq, d_model)

        Returns
        -------
        (Tensor of int64, Tensor), both of shape (..., seq, n_active)
            The experts' indices, in order of decreasing weight, and the weights, which are positive and, with
            ``renormalize``, sum to one.
        """
        require_features(self.router.weight, x=x)
        probabilities = torch.softmax(upcast(self.router(x)), dim=-1)  # (..., seq, n_experts)
        weights, indices = probabilities.topk(self.n_active, dim=-1)
        if self.renormalize:
            weights = weights / weights.sum(-1, keepdim=True)
        return indices, weights.to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the mixture for each token, with the shape of ``x``, (..., seq, d_model)."""
        indices, weights = self.route(x)
        if not x.numel():
            return x.clone()
        mixed = self._mix(x.flatten(0, -2), indices.flatten(), weights.flatten()).view(x.shape)
        return mixed if self.shared is None else mixed + self.shared(x)

    def _mix(self, tokens, expert_indices, weights):
        """Sum up the outputs of each token's experts; indices and weights have ``n_active`` entries per token."""
        # Tokens are sorted by expert, so that each expert's tokens are contiguous after one gather.
        order = expert_indices.argsort()
        counts = expert_indices.bincount(minlength=len(self.experts)).tolist()
        token_indices = order // self.n_active
        groups = tokens[token_indices].split(counts), weights[order, None].split(counts), token_indices.split(counts)
        mixed = torch.zeros_like(tokens)
        for expert, expert_tokens, expert_weights, expert_rows in zip(self.experts, *groups):
            if len(expert_rows):
                mixed.index_add_(0, expert_rows, (expert(expert_tokens) * expert_weights).to(mixed.dtype))
        return mixed

    def extra_repr(self) -> str:
        return f"n_active={self.n_active}, renormalize={self.renormalize}"
