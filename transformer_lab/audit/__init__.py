"""An audit of any Transformer: ``tl.audit(model, vocab_size=50)``.

`properties` contains the properties that are tested, so read this folder first. `trial` provides the model and
its inputs, `examine` evaluates the properties one after the other, `stages` finds the first module in which a model and
its reference differ, and `card` renders the report. ``__main__`` runs an audit from a shell.
"""

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from torch import nn

from ..arguments import format_value, require_one_of, require_sizes, type_name

if TYPE_CHECKING:
    from .card import AuditReport

KINDS = ("causal", "bidirectional", "local")
COLLECTION_TYPES = (list, tuple, set, frozenset, dict)


def audit(
    model: nn.Module,
    *,
    vocab_size: int | None = None,
    d_model: int | None = None,
    kind: str = "causal",
    forward: Callable | None = None,
    padded: Callable | None = None,
    packed: Callable | None = None,
    step: Callable | None = None,
    loss: Callable | None = None,
    accumulate: Callable | None = None,
    collate: Callable | None = None,
    reference: nn.Module | None = None,
    branches: Sequence[nn.Module] = (),
    window: int | None = None,
    n_layers: int | None = None,
    length: int = 10,
    long: int = 0,
    pad: int = 0,
    expect: Collection[str] = (),
) -> "AuditReport":
    """Test the properties that any Transformer of a given kind must have, and show the results on a card.

    The audit needs no trained weights and no data: it changes inputs and compares outputs. The audit runs on copies of
    the model. The model's weights and modes, and the session's random state, stay unchanged. A failure is a fact about
    the model, but a card without a failure proves nothing: the card lists what was not tried, and what no property can
    detect.

    Parameters
    ----------
    model : nn.Module
        Maps token ids (batch, seq), or vectors (batch, seq, d_model), to outputs (batch, seq, features). If a model
        returns one vector for each row of the batch, its input is audited like the source of an encoder–decoder.
    vocab_size : int, optional
        The number of token ids that the model accepts.
    d_model : int, optional
        The size of the vectors that the model accepts. Either ``vocab_size`` or ``d_model`` is required.
    kind : {"causal", "bidirectional", "local"}, optional
        Which tokens an output may depend on: with ``"causal"``, on its own token and earlier tokens; with
        ``"bidirectional"``, on all tokens; with ``"local"``, only on its own token.
    forward : function (model, x) -> output, optional
        Calls the model, if ``model(x)`` does not return the output. For an encoder–decoder, fix the source and audit
        the model as a function of its target; then fix the target and audit the model as a function of
        its source, with ``kind="bidirectional"``.
    padded : function (model, tokens, keep) -> output, optional
        Calls the model on a padded batch; ``keep`` has shape (batch, seq), and is ``True`` at real tokens.
    packed : function (model, tokens, documents) -> output, optional
        Calls the model on a row of several documents; ``documents`` contains the index of each token's document.
    step : function (model, tokens, cache) -> (output, cache), optional
        Calls the model on the next one or more tokens; in the first call, ``cache`` is ``None``.
    loss : function (model, tokens) -> Tensor of shape (), optional
        Returns the mean loss of predicting each next token.
    accumulate : function (model, batches), optional
        Runs the backward pass over a list of ``(tokens, labels)``; labels are not shifted, and are -100 at
        tokens that do not count in the loss.
    collate : function (sentences) -> (tokens, labels), optional
        Makes a batch from lists of token ids; ``pad`` is also the end token, so each list ends with ``pad``. The labels
        have the form described at ``accumulate``.
    reference : nn.Module, optional
        A module that must return the same outputs as ``model``. If the outputs differ, the card names the first module
        that differs.
    branches : sequence of nn.Module, optional
        The last module of each branch of a pre-norm layer: if the parameters of these modules are 0, the layer is the
        identity.
    window : int, optional
        The number of tokens that a token sees in one layer, including itself; requires ``n_layers``.
    n_layers : int, optional
    length : int, optional
        The number of tokens in a sequence, at least 8. If the model does not accept this length, other lengths are
        tried.
    long : int, optional
        The number of tokens, at least 200, for the property that compares bfloat16's accuracy at the beginning and at
        the end of a long sequence; 0 leaves this property out.
    pad : int, optional
        The token id that stands for padding.
    expect : collection of str, or dict of str to str, optional
        Properties to leave out. A dict maps each of these properties to a reason, which the card shows.

    Returns
    -------
    AuditReport
        ``rows`` is a list of ``(property, status, text)``, where status is ``"holds"``, ``"fails"``, ``"raises"`` or
        ``"not tried"``; ``failed`` is the list of properties that fail.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or value. The card shows the errors that the model or a passed function
        raises.

    Examples
    --------
    >>> import torch, transformer_lab as tl
    >>> model = tl.LanguageModel(vocab_size=50, d_model=16, n_heads=2, n_layers=2, d_ff=32)
    >>> report = tl.audit(model, vocab_size=50)  # doctest: +ELLIPSIS
    Audit of LanguageModel: 0 fail, ...
    >>> report.failed
    []
    >>> encoder = tl.Encoder(d_model=16, n_heads=2, n_layers=2, d_ff=32)  # every token sees all others
    >>> tl.audit(encoder, d_model=16).rows[4]  # doctest: +ELLIPSIS
    Audit of Encoder: ...
    ('the past does not move', 'fails', 'token 1 changed: output 0 moved by ...; 45 of 45 pairs leak: ...')
    """
    # imported only here: `examine` imports the checks, and would slow down the import of the package
    from .examine import examine

    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type_name(model)}")
    if (vocab_size is None) == (d_model is None):
        raise ValueError(
            "one of vocab_size (the model takes token ids) and d_model (it takes vectors) must be given, got "
            + ("none" if d_model is None else "both")
        )
    if vocab_size is not None:
        require_sizes(4, vocab_size=vocab_size)
    if d_model is not None:
        require_sizes(d_model=d_model)
    require_one_of(KINDS, kind=kind)
    require_sizes(**{name: size for name, size in {"window": window, "n_layers": n_layers}.items() if size is not None})
    require_sizes(8, length=length)
    require_sizes(0, long=long, pad=pad)
    if 0 < long < 200:
        raise ValueError(f"long must be 0, which leaves the long sequence out, or at least 200, got {long}")
    if vocab_size is not None and pad >= vocab_size:
        raise ValueError(f"pad must be a token below vocab_size, which is {vocab_size}, got {pad}")
    if not isinstance(branches, (list, tuple)) or not all(isinstance(branch, nn.Module) for branch in branches):
        raise TypeError(f"branches must be a list of modules of the model, got {format_value(branches)}")
    if not isinstance(expect, COLLECTION_TYPES) or not all(isinstance(name, str) for name in expect):
        raise TypeError(
            f"expect must be a list of names of properties, or a dict from names to reasons, got {format_value(expect)}"
        )
    options = SimpleNamespace(**{name: value for name, value in locals().items() if name != "examine"})
    report = examine(options)
    report.show()
    return report
