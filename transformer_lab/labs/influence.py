"""The influence lab: which outputs move when one token is replaced, and what that says about a model."""

import json
from pathlib import Path
from typing import ClassVar

import torch
import traitlets
from torch import nn

from ..arguments import format_value, require_sizes, type_name
from .lab import Lab, as_integer, as_option, as_strings, script, style

SEQ_LEN = 8
INPUTS = {"one": "one text", "two": "two documents", "padded": "padding in front"}
VERDICTS = {
    "right": "right, as claimed",
    "future": "reads the future",
    "window": "window too wide",
    "documents": "documents read each other",
    "padding": "reads padding",
    "nan": "gives NaN",
}
OWN_MODEL = "your model"


def _read_models():
    path = Path(__file__).with_name("influence_models.json")
    return json.loads(path.read_text("utf-8"))["models"] if path.exists() else []


MODELS = _read_models()
LETTERS = [model["letter"] for model in MODELS]


def _own_table(model, vocab_size):
    """Return the table of a reader's own model, in the form of the stored tables.

    Each entry is the move of an output, divided by the standard deviation of all outputs.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type_name(model)}")
    if vocab_size is None:
        raise ValueError("vocab_size must be given for a model of your own, got None")
    require_sizes(2, vocab_size=vocab_size)
    was_training, parameters = model.training, list(model.parameters())
    device = parameters[0].device if parameters else "cpu"
    tokens = torch.arange(SEQ_LEN, device=device)[None] % (vocab_size - 1)
    model.eval()
    try:
        with torch.no_grad():
            baseline, rows = model(tokens), []
            if not isinstance(baseline, torch.Tensor) or baseline.shape[:2] != tokens.shape:
                raise ValueError(
                    f"model must return one tensor, (batch, seq, features), for tokens of shape (1, {SEQ_LEN}), got "
                    + format_value(baseline)
                )
            for j in range(SEQ_LEN):
                replaced = tokens.clone()
                replaced[:, j] += 1
                rows.append((model(replaced) - baseline).abs().flatten(2).amax(-1)[0])
    finally:
        model.train(was_training)
    moves = torch.stack(rows) / baseline.std().clamp(min=1e-12)
    return [[None if x != x else 0 if x < 1e-5 else float(f"{x:.3g}") for x in row] for row in moves.tolist()]


class InfluenceLab(Lab):
    """Replace one token, and see which outputs of a model move, and how far.

    Sixteen small models are stored. Some are right, but most contain a published bug. Give your verdict on a model, and
    read the story of its bug.

    Parameters
    ----------
    model : nn.Module, optional
        A model of your own, instead of the stored models: it turns token ids (batch, seq) into outputs (batch, seq,
        features).
    vocab_size : int, optional
        The number of token ids that the model knows; required for a model of your own.
    models : str or sequence of str, optional
        The letters of the stored models to choose from, ``"A"`` to ``"P"``; all when left out.
    token : int, optional
        The token that is replaced, 0 to 7.
    row : {"one", "two", "padded"}, optional
        The input of the model: one text; two documents of four tokens in one row; or five tokens after three tokens of
        padding.
    loud : bool, optional
        Whether the model's matrices are multiplied by 3,000.
    verdict : str, optional
        The reader's verdict on the model; none when left out.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"model"``, ``"switches"``, ``"table"`` and ``"verdict"``; all when left
        out.

    Attributes
    ----------
    chosen, token, row, loud, verdict
        What the reader has set; ``chosen`` is the letter of a model.
    table : Tensor, shape (8, 8), float64
        The entry (j, i) is the distance that output i moves when token j is replaced, as a fraction of the outputs'
        standard deviation.

    Raises
    ------
    TypeError, ValueError
        If a setting has an invalid value, or if your own model does not return one tensor of outputs, (batch, seq,
        features).

    Examples
    --------
    >>> lab = InfluenceLab(models="B", token=4)
    >>> lab
    InfluenceLab(chosen='B', token=4, row='one', loud=False, verdict='')
    >>> (lab.table[4] > 0).tolist()  # this model has an inverted mask: the token's own output and earlier outputs move
    [True, True, True, True, True, False, False, False]
    """

    _esm = script("influence_words", "influence")
    _css = style("influence")
    repr_traits = ("chosen", "token", "row", "loud", "verdict")
    groups = ("model", "switches", "table", "verdict")
    constants: ClassVar[dict] = {"stored": MODELS}

    chosen = traitlets.Any().tag(sync=True)  # of type Any, so that the validators below raise the package's own errors
    token = traitlets.Any().tag(sync=True)
    row = traitlets.Any().tag(sync=True)
    loud = traitlets.Any().tag(sync=True)
    verdict = traitlets.Any().tag(sync=True)
    letters = traitlets.List(traitlets.Unicode()).tag(sync=True)
    stored = traitlets.List(MODELS).tag(sync=True)
    own = traitlets.List().tag(sync=True)
    # These are lists of pairs, since a published page sorts the keys of dicts.
    texts = traitlets.Dict({"rows": [*INPUTS.items()], "verdicts": [*VERDICTS.items()]}).tag(sync=True)

    def __init__(
        self, model=None, *, vocab_size=None, models=None, token=3, row="one", loud=False, verdict="", controls=None
    ):
        own = [] if model is None else _own_table(model, vocab_size)
        letters = (
            [OWN_MODEL]
            if own
            else [as_option("models", x, LETTERS) for x in as_strings("models", LETTERS if models is None else models)]
        )
        super().__init__(
            letters=letters,
            own=own,
            chosen=letters[0],
            token=token,
            row=row,
            loud=loud,
            verdict=verdict,
            controls=controls,
        )

    @traitlets.validate("chosen")
    def _check_chosen(self, proposal):
        return as_option("chosen", proposal.value, self.letters or [*LETTERS, OWN_MODEL])

    @traitlets.validate("token")
    def _check_token(self, proposal):
        return as_integer("token", proposal.value, 0, SEQ_LEN - 1)

    @traitlets.validate("row")
    def _check_row(self, proposal):
        return as_option("row", proposal.value, list(INPUTS))

    @traitlets.validate("loud")
    def _check_loud(self, proposal):
        if not isinstance(proposal.value, bool):
            raise TypeError(f"loud must be True or False, got {format_value(proposal.value)}")
        return proposal.value

    @traitlets.validate("verdict")
    def _check_verdict(self, proposal):
        return as_option("verdict", proposal.value, ["", *VERDICTS])

    @property
    def table(self):
        if self.own:
            rows = self.own
        else:
            tables = MODELS[LETTERS.index(self.chosen)]["tables"]
            rows = tables[f"{'loud' if self.loud else 'quiet'} {self.row}"]
        return torch.tensor([[float("nan") if x is None else x for x in row] for row in rows], dtype=torch.float64)
