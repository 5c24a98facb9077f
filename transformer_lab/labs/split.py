"""The split lab: how a tensor is split into heads, and how the heads are merged."""

import math

import traitlets

from .lab import Lab, as_integer, as_number, as_strings, script, style

MAX_HEADS, MAX_TOKENS = 32, 64
N_STAGES = 10  # the number of steps
EXAMPLE = {"seq": 4, "heads": 2, "d_head": 3}  # the shape of the tensor that is drawn
SENTENCE = "the cat sat on the mat"


class SplitLab(Lab):
    """Follow a number into the heads and back, step by step, and see where ``view`` alone would move the number.

    Parameters
    ----------
    tokens : str or sequence of str, optional
        A sentence of at most 64 tokens, whose length appears in the shapes. A string is split at its spaces.
    n_heads : int, optional
        The number of heads in the shapes, from 1 to 32; the drawn example has 2.
    d_model : int, optional
        The number of features in the shapes, a multiple of ``n_heads``.
    stage : int, optional
        The chosen step, from 0 to 9.
    split_by_view, merge_by_view : bool, optional
        Whether the transpose is left out in the split into heads, and in the merge.
    controls : sequence of str, optional
        The groups of controls to show beside the steps; the only group, ``"mistakes"``, is shown by default.

    Attributes
    ----------
    stage, split_by_view, merge_by_view
        What the reader has set.
    cell : int
        The number that the reader follows: ``6 * token + feature``.

    Examples
    --------
    >>> SplitLab("the cat sat", n_heads=4, d_model=32)
    SplitLab(n_heads=4, stage=3, split_by_view=False, merge_by_view=False)
    """

    _esm = script("motion", "split_journey", "split")
    _css = style("split")
    repr_traits = ("n_heads", "stage", "split_by_view", "merge_by_view")
    groups = ("mistakes",)

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    n_heads = traitlets.Any().tag(sync=True)
    d_model = traitlets.Any().tag(sync=True)
    stage = traitlets.Any().tag(sync=True)
    cell = traitlets.Any(9).tag(sync=True)
    split_by_view = traitlets.Bool().tag(sync=True)
    merge_by_view = traitlets.Bool().tag(sync=True)
    example = traitlets.Dict(EXAMPLE).tag(sync=True)

    def __init__(
        self,
        tokens=SENTENCE,
        n_heads=2,
        *,
        d_model=None,
        stage=3,
        split_by_view=False,
        merge_by_view=False,
        controls=None,
    ):
        super().__init__(
            tokens=as_strings("tokens", tokens),
            n_heads=n_heads,
            d_model=d_model,
            stage=stage,
            split_by_view=split_by_view,
            merge_by_view=merge_by_view,
            controls=controls,
        )
        if d_model is not None and as_integer("d_model", d_model, 1, 2**20) % n_heads:
            raise ValueError(f"d_model must be a multiple of n_heads {n_heads}, got {d_model}")

    @traitlets.validate("tokens")
    def _check_tokens(self, proposal):
        as_number("the number of tokens", len(proposal.value), 1, MAX_TOKENS)
        return proposal.value

    @traitlets.validate("n_heads", "stage", "cell")
    def _check_integer(self, proposal):
        ranges = {"n_heads": (1, MAX_HEADS), "stage": (0, N_STAGES - 1), "cell": (0, math.prod(EXAMPLE.values()) - 1)}
        return as_integer(proposal.trait.name, proposal.value, *ranges[proposal.trait.name])
