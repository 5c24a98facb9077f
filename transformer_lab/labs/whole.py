"""``WholeLab``: a trained Transformer that runs in the browser, and shows all its tensors."""

import base64
import json
import math
from pathlib import Path

import numpy as np
import torch
import traitlets

from ..arguments import format_value, type_name
from ..attention import scaled_dot_product_attention
from ..multi_head import MultiHeadAttention
from ..normalization import EPS, LayerNorm, RMSNorm
from ..transformer import LanguageModel, Transformer
from .lab import Lab, as_integer, as_number, as_option, as_strings, script, style
from .whole_models import course_models

_FOLDER = Path(__file__).parent
LARGEST_SIZES = {"n_layers": 4, "n_heads": 8, "d_model": 64, "d_ff": 256}  # of a user's model
MAX_WORDS = 128  # the largest number of words in a vocabulary
LIMITS = {"tokens": 12, "written": 12}
TEMPERATURES = (0, 5)
SEEDS = (0, 999)
FAMILY_VIEWS = {"both": ("both", "encoder"), "decoder": ("decoder",)}  # the values of `family` for a stored model
MODEL_SWITCHES = ("mask", "positions", "residual", "scale", "cross")  # the switches, except those for a single head
MAX_DIGITS = 6  # the largest number of digits that can be typed for the course's two models
EXAMPLES = ("342", "13", "30", "2003", "1000", "0342", "12345")


def pack(model, source, target, bos, eos, dtype="float32"):
    """Serialize a model for the browser: its options, its vocabularies, and its weights in base64."""
    weights = {name: x.detach().cpu().float() for name, x in model.state_dict().items()}
    numbers = torch.cat([x.flatten() for x in weights.values()]).numpy().astype(np.dtype(dtype).newbyteorder("<"))
    layer = model.decoder.layers[0]
    return {
        "family": "both" if isinstance(model, Transformer) else "decoder",
        "nHeads": layer.self_attention.n_heads,
        "nLayers": len(model.decoder.layers),
        "normFirst": layer.norm_first,
        "activation": layer.feed_forward.activation,
        "source": source,
        "target": target,
        "bos": bos,
        "eos": eos,
        "layout": [[name, list(x.shape)] for name, x in weights.items()],
        "dtype": dtype,
        "weights": base64.b64encode(numbers.tobytes()).decode("ascii"),
    }


def unpack(stored):
    """Return the model that :func:`pack` serialized, in evaluation mode."""
    shapes = dict(stored["layout"])
    numbers = np.frombuffer(base64.b64decode(stored["weights"]), np.dtype(stored["dtype"]).newbyteorder("<"))
    parts = torch.from_numpy(numbers.astype(np.float32)).split([math.prod(shape) for shape in shapes.values()])
    d_ff, d_model = shapes["decoder.layers.0.feed_forward.linear1.weight"]
    vocabularies = [shapes[name][0] for name in ("src_embedding.weight", "output.weight") if name in shapes]
    model = (Transformer if stored["family"] == "both" else LanguageModel)(
        *vocabularies,
        d_model,
        stored["nHeads"],
        stored["nLayers"],
        d_ff,
        norm_first=stored["normFirst"],
        activation=stored["activation"],
        bias="decoder.layers.0.norm1.bias" in shapes,
        final_norm="decoder.norm.weight" in shapes,
    )
    model.load_state_dict({name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts)})
    return model.eval()


def switch_names(family, n_layers, n_heads):
    """Return the names of all switches of a model or its encoder, such as ``"mask"`` and ``"decoder.0.self.2"``."""
    sides = {"both": ("encoder", "decoder"), "encoder": ("encoder",), "decoder": ("decoder",)}[family]
    places = [(side, "self") for side in sides] + [("decoder", "cross")] * (family == "both")
    heads = [
        f"{side}.{layer}.{kind}.{head}" for side, kind in places for layer in range(n_layers) for head in range(n_heads)
    ]
    absent = {"both": (), "encoder": ("mask", "cross"), "decoder": ("cross",)}[family]
    return [*(name for name in MODEL_SWITCHES if name not in absent), *heads]


class WholeLab(Lab):
    """Run a whole Transformer, and see all its tensors and its answer, token by token.

    By default the lab shows the course's two models, a Transformer and a decoder-only model, which read a number in
    digits and write the number in words.

    Parameters
    ----------
    model : Transformer, LanguageModel, or a list of such, optional
        Your own model, with at most 4 layers, 8 heads, ``d_model`` 64 and ``d_ff`` 256. The lab stores its current
        weights, in float32. For a list of models of the same sizes, such as copies made during training, the lab has a
        slider that chooses one model.
    tokens : sequence of str, optional
        The words of the source vocabulary, or of the single vocabulary of a LanguageModel, in order. At most 128.
    tgt_tokens : sequence of str, optional
        The words of a Transformer's target vocabulary; ``tokens`` when left out.
    bos : int, optional
        The token that every answer begins with, as in :meth:`Transformer.generate`. For a LanguageModel, the token is
        added after the typed text; when left out, nothing is added.
    eos : int, optional
        The token that ends an answer. An answer ends after 12 tokens at the latest.
    text : str, optional
        The typed text, at most 12 tokens (6 digits for the course's models): characters if all tokens are single
        characters, and otherwise tokens with spaces between them.
    family : {"both", "encoder", "decoder"}, optional
        The parts that are shown: both parts or only the encoder of a Transformer, or the decoder of a decoder-only
        model.
    step : int, optional
        A step of the walk through the model; 0 is before the walk.
    part : str, optional
        The block or the arrow that is open, such as ``"decoder.0.cross"``.
    tool : {"", "break", "learn", "sample"}, optional
        The panel that is open in place of a block: the switches, the checkpoints, or the sampling.
    off : sequence of str, optional
        The parts that are switched off: ``"mask"``, ``"positions"``, ``"residual"``, ``"scale"`` (the division by √d),
        ``"cross"`` (the output of cross-attention is 0), or a head, such as ``"decoder.0.self.2"`` (its output is 0).
    checkpoint : int, optional
        The training checkpoint, or the model in your list, counted from 0; the last when left out.
    temperature : float, optional
        The temperature, from 0 (the most likely word is always written) to 5.
    top_k : int, optional
        The number of most likely words from which each word is drawn; 0 means all words.
    seed : int, optional
        The seed of the draw, from 0 to 999.

    Attributes
    ----------
    text, family, step, part, tool, off, checkpoint, temperature, top_k, seed
        What the reader has set.
    model : Transformer or LanguageModel
        The model at the checkpoint in evaluation mode, with nothing switched off.
    answer : list of str
        The answer of this model at temperature 0, with nothing switched off. An encoder alone writes nothing.

    Raises
    ------
    TypeError, ValueError
        If the model is too large or of a kind that the lab does not support, if the number of tokens differs from the
        size of a vocabulary, or if an argument is out of range.

    Examples
    --------
    >>> lab = WholeLab(text="342")
    >>> lab
    WholeLab(text='342', family='both', step=0, part='')
    >>> lab.answer
    ['three', 'hundred', 'and', 'forty', 'two']
    """

    _esm = script(
        "whole_maths",
        "whole_words",
        "whole_learning",
        "whole_cells",
        "whole_tables",
        "whole_strips",
        "whole_picture",
        "whole_panels",
        "whole_state",
        "whole_arrival",
        "whole_controls",
        "whole_experiments",
        "whole_side",
        "whole",
    )
    _css = style("whole")
    repr_traits = ("text", "family", "step", "part")

    stored = traitlets.List().tag(sync=True)
    checkpoints = traitlets.List().tag(sync=True)  # earlier models; a page has a file for each
    learning = traitlets.Dict().tag(sync=True)
    drawing = traitlets.Unicode((_FOLDER / "whole.svg").read_text("utf-8")).tag(sync=True)
    words = traitlets.Dict(json.loads((_FOLDER / "whole_words.json").read_text("utf-8"))).tag(sync=True)
    limits = traitlets.Dict().tag(sync=True)
    examples = traitlets.List(traitlets.Unicode()).tag(sync=True)
    says = traitlets.Dict().tag(sync=True)  # descriptions of the models, and error messages for typed input
    text = traitlets.Any().tag(sync=True)  # of type Any, so that the validators below raise the package's own errors
    family = traitlets.Any().tag(sync=True)
    step = traitlets.Any().tag(sync=True)
    part = traitlets.Any().tag(sync=True)
    tool = traitlets.Any().tag(sync=True)
    off = traitlets.Any().tag(sync=True)
    checkpoint = traitlets.Any().tag(sync=True)
    temperature = traitlets.Any().tag(sync=True)
    top_k = traitlets.Any().tag(sync=True)
    seed = traitlets.Any().tag(sync=True)
    at = traitlets.List(traitlets.Int(), [0, 0, -1]).tag(sync=True)  # selected head, row, column; −1: largest weight

    def __init__(
        self,
        model=None,
        tokens=None,
        tgt_tokens=None,
        *,
        bos=None,
        eos=None,
        text=None,
        family=None,
        step=0,
        part="",
        tool="",
        off=(),
        checkpoint=None,
        temperature=0,
        top_k=0,
        seed=1,
    ):
        if model is None:
            given = {"tokens": tokens, "tgt_tokens": tgt_tokens, "bos": bos, "eos": eos}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"{name} must come with a model, got {format_value(value)} alone")
            final, checkpoints, learning = course_models()
            stored, limits, initial_text = final["models"], LIMITS | {"tokens": MAX_DIGITS}, EXAMPLES[0]
            about = {"examples": list(EXAMPLES), "says": _digit_texts(stored, final["made"])}
        else:
            *checkpoints, stored = [[each] for each in _pack_all(model, tokens, tgt_tokens, bos, eos)]
            limits, learning = LIMITS, {"steps": list(range(len(checkpoints) + 1))} if checkpoints else {}
            about = {"says": _token_texts(stored[0])}
            initial_text = stored[0]["source"][0]
        switches = {
            family: switch_names(family, each["nLayers"], each["nHeads"])
            for each in stored
            for family in FAMILY_VIEWS[each["family"]]
        }
        self._is_built = False
        super().__init__(
            stored=stored,
            checkpoints=checkpoints,
            learning=learning,
            limits=limits | {"switches": switches, "temperatures": TEMPERATURES, "seeds": SEEDS},
            text=initial_text if text is None else text,
            family=stored[0]["family"] if family is None else family,
            step=step,
            part=part,
            tool=tool,
            off=off,
            checkpoint=len(checkpoints) if checkpoint is None else checkpoint,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
            **about,
        )
        self._is_built = True

    @traitlets.validate("text")
    def _check_text(self, proposal):
        return _tokenize(proposal.value, self.stored[0]["source"], self.limits["tokens"])[1]

    @traitlets.validate("family")
    def _check_family(self, proposal):
        views = [view for stored in self.stored for view in FAMILY_VIEWS[stored["family"]]]
        return as_option("family", proposal.value, views)

    @traitlets.validate("step")
    def _check_step(self, proposal):
        return as_integer("step", proposal.value, 0, 999)

    @traitlets.validate("part")
    def _check_part(self, proposal):
        if not isinstance(proposal.value, str):
            raise TypeError(f"part must be a string, got {format_value(proposal.value)}")
        return proposal.value

    @traitlets.validate("tool")
    def _check_tool(self, proposal):
        return as_option("tool", proposal.value, list(self.words["tools"]))

    @traitlets.validate("off")
    def _check_off(self, proposal):
        for name in as_strings("off", proposal.value):
            if not any(name in names for names in self.limits["switches"].values()):
                general = ", ".join(map(repr, MODEL_SWITCHES))
                found = format_value(name)
                raise ValueError(f"off must be one of {general}, or a head such as 'decoder.0.self.2', got {found}")
        return list(as_strings("off", proposal.value))

    @traitlets.validate("checkpoint")
    def _check_checkpoint(self, proposal):
        return as_integer("checkpoint", proposal.value, 0, len(self.checkpoints))

    @traitlets.validate("temperature")
    def _check_temperature(self, proposal):
        return as_number("temperature", proposal.value, *TEMPERATURES)

    @traitlets.validate("top_k")
    def _check_top_k(self, proposal):
        return as_integer("top_k", proposal.value, 0, len(self.stored[0]["target"]))

    @traitlets.validate("seed")
    def _check_seed(self, proposal):
        return as_integer("seed", proposal.value, *SEEDS)

    @traitlets.validate("stored", "checkpoints", "learning", "drawing", "limits", "examples", "says")
    def _check_fixed(self, proposal):
        if self._is_built and proposal.value != getattr(self, proposal.trait.name):
            raise ValueError(f"{proposal.trait.name} cannot change: make a new lab")
        return proposal.value

    @property
    def _stored_model(self):
        models = [*self.checkpoints, self.stored][self.checkpoint]
        return next(stored for stored in models if (stored["family"] == "decoder") == (self.family == "decoder"))

    @property
    def model(self):
        return unpack(self._stored_model)

    @property
    def answer(self):
        stored, model = self._stored_model, self.model
        source, _ = _tokenize(self.text, stored["source"], self.limits["tokens"])
        if self.family == "encoder":
            return []
        most, eos = self.limits["written"], stored["eos"]
        if self.family == "both":
            written = model.generate(torch.tensor([source]), bos=stored["bos"], eos=eos, max_new_tokens=most)[0, 1:]
        else:
            prompt = source + ([] if stored["bos"] is None else [stored["bos"]])
            stop = () if eos is None else (eos,)
            written = model.generate(torch.tensor([prompt]), most, stop=stop)[0, len(prompt) :]
        return [stored["target"][token] for token in written if token != eos]


def _sizes_text(stored):
    weights = sum(math.prod(shape) for _, shape in stored["layout"])
    layers = _plural(stored["nLayers"], "layer") + (" on each side" if stored["family"] == "both" else "")
    return f"{layers}, {_plural(stored['nHeads'], 'head')} and {weights:,} weights"


def _plural(count, noun):
    return f"{count} {noun}" + "s" * (count != 1)


def _token_texts(stored):
    """Return the description of a user's model, and the error messages for typed tokens."""
    tokens, most = stored["source"], LIMITS["tokens"]
    known = [*tokens[:9], f"{len(tokens) - 9} others"] if len(tokens) > 12 else tokens
    listed = " and ".join([*([", ".join(known[:-1])] if known[1:] else []), known[-1]])
    return {
        "label": f"Type a sequence, up to {most} tokens",
        "empty": f"Type at least one token, such as {tokens[0]}.",
        "unknown": f"“~” is not among the model’s tokens: {listed}.",
        "many": f"At most {most} tokens here, not ~.",
        "about": {
            "both": f"Your model has {_sizes_text(stored)}.",
            "encoder": "The encoder of your model: it turns each token into a vector, and writes nothing.",
        }
        if stored["family"] == "both"
        else {"decoder": f"Your model has {_sizes_text(stored)}."},
    }


def _digit_texts(models, made):
    """Return the descriptions of the course's two models, and the error messages for typed digits."""
    both, alone = (next(stored for stored in models if stored["family"] == family) for family in ("both", "decoder"))
    trained_kinds, other_kinds = ("3 digits", "4 digits"), ("5 digits", "6 digits", "with a zero in front")

    def total(counts, kinds):
        return sum(counts[kind] for kind in kinds)

    missed = [
        total(made["asked"], trained_kinds) - total(made["right"][family], trained_kinds)
        for family in ("both", "decoder")
    ]
    words = {0: "no mistake", 1: "one mistake", 2: "two mistakes"}
    mistakes_of_both, mistakes_of_decoder = (words.get(count, f"{count} mistakes") for count in missed)
    right = sum(total(made["right"][family], other_kinds) for family in ("both", "decoder"))
    width = dict(both["layout"])["output.weight"][1]
    return {
        "label": f"Type a number, up to {MAX_DIGITS} digits",
        "inputmode": "numeric",
        "empty": "Type a number, such as 7.",
        "unknown": "Digits only: the model knows 0 to 9, but no comma, sign or letter.",
        "many": f"At most {MAX_DIGITS} digits, not ~.",
        "about": {
            "both": "This model reads a number in digits and writes it in English, word by word, on this page. "
            f"It has {_sizes_text(both)}.",
            "encoder": f"The encoder turns each digit into a vector of {width} numbers, which depends on all digits. "
            f"It has {_plural(both['nLayers'], 'layer')} and {_plural(both['nHeads'], 'head')}. "
            "It writes nothing: a classifier or a search would read these vectors.",
            "decoder": f"This model continues one sequence: the digits, then the words. It has {_sizes_text(alone)}.",
        },
        "facts": f"The lab has two models: an encoder–decoder and a decoder alone. Both were trained on "
        f"{made['trained_on']:,} of the numbers from 0 to 9,999. On the other {made['held_out']} numbers, the "
        f"encoder–decoder makes {mistakes_of_both}, and the decoder alone makes {mistakes_of_decoder}. Of "
        f"{total(made['asked'], other_kinds):,} numbers with more than four digits or a 0 in front, the models get "
        f"{right or 'none'} right: they learned numbers of up to four digits, not a rule.",
        "why": {
            "long": "The model has seen only numbers of one to four digits.",
            "zero": "The model has never seen a number with a 0 in front.",
            "both": "The model has seen only numbers of one to four digits, none with a 0 in front.",
            "other": "The model learned from examples; no one told it a rule.",
            "off": "A part of the model is switched off.",
            "several": "~ parts of the model are switched off.",
            "drawn": "The words were drawn at random.",
            "early": "The training of the model had only begun.",
        },
        "longest": "Wrong: it is seven hundred and seventy seven thousand seven hundred and seventy seven. The model "
        "has seen only numbers of one to four digits. 100 % sure, and wrong. Dashed words are not written yet.",
    }


def _tokenize(text, tokens, most):
    """Return the ids of the typed tokens and the canonical text, or raise an error."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {format_value(text)}")
    letters = all(len(token) == 1 for token in tokens)
    parts = [part for part in text if part.strip() or part in tokens] if letters else text.split()
    for part in parts:
        if part not in tokens:
            raise ValueError(f"text must consist of the model's tokens, got {format_value(part)}")
    if not 1 <= len(parts) <= most:
        raise ValueError(f"text must have from 1 to {most} tokens, got {len(parts)}")
    return [tokens.index(part) for part in parts], ("" if letters else " ").join(parts)


def _pack_all(models, tokens, tgt_tokens, bos, eos):
    """Serialize a user's model or list of models, or raise an error if the lab does not support them."""
    models = list(models) if isinstance(models, (list, tuple)) else [models]
    if not models:
        raise ValueError("model must be a model or a list of at least one, got an empty list")
    stored = [_pack_own(model, tokens, tgt_tokens, bos, eos) for model in models]
    for each in stored:
        if {**each, "weights": ""} != {**stored[0], "weights": ""}:
            raise ValueError("model must be a list of models with the same options and sizes, got different ones")
    return stored


def _pack_own(model, tokens, tgt_tokens, bos, eos):
    """Serialize a user's model, or raise an error if the lab does not support it."""
    if not isinstance(model, (Transformer, LanguageModel)):
        raise TypeError(f"model must be a tl.Transformer or a tl.LanguageModel, got {type_name(model)}")
    if model.output is None:
        raise ValueError("model must have embeddings and an output layer, got a model of from_torch, which has neither")
    both = isinstance(model, Transformer)
    source = _as_vocabulary("tokens", tokens, model.src_embedding if both else model.embedding)
    if both:
        target = _as_vocabulary("tgt_tokens", tokens if tgt_tokens is None else tgt_tokens, model.tgt_embedding)
    elif tgt_tokens is not None:
        raise ValueError(
            f"tgt_tokens must be left out for a LanguageModel, which has one vocabulary, got {format_value(tgt_tokens)}"
        )
    else:
        target = source
    _check_parts(model)
    if both and bos is None:
        raise ValueError("bos must be the token that every answer of a Transformer begins with, got None")
    for name, token in (("bos", bos), ("eos", eos)):
        if token is not None:
            as_integer(name, token, 0, len(target) - 1)
    return pack(model, source, target, bos, eos)


def _check_parts(model):
    layers = [layer for stack in (getattr(model, "encoder", None), model.decoder) if stack for layer in stack.layers]
    sizes = {"n_layers": len(model.decoder.layers), "d_model": model.output.in_features}
    if layers:
        sizes |= {"n_heads": layers[0].self_attention.n_heads, "d_ff": layers[0].feed_forward.linear1.out_features}
    for name, size in sizes.items():
        if not 1 <= size <= LARGEST_SIZES[name]:
            raise ValueError(f"model must have {name} from 1 to {LARGEST_SIZES[name]}, got {size}")
    for part in model.modules():
        attend, rotate = getattr(part, "attend", scaled_dot_product_attention), getattr(part, "rotate", None)
        if attend is not scaled_dot_product_attention or rotate is not None or getattr(part, "window", None):
            raise ValueError("model must use scaled_dot_product_attention, without rotate or window")
        unequal = isinstance(part, MultiHeadAttention) and (
            part.n_kv_heads != part.n_heads or part.d_head * part.n_heads != sizes["d_model"]
        )
        gated = getattr(part, "gate", None) is not None
        if isinstance(part, RMSNorm) or gated or unequal or getattr(part, "activation", "relu") not in ("relu", "gelu"):
            raise ValueError(
                "model must have layer norm, ReLU or GELU, no gate, and heads that split d_model, each with its own "
                f"keys, got {type(part).__name__} with other options"
            )
        if isinstance(part, LayerNorm) and part.eps != EPS:
            raise ValueError(f"model must have norms of eps {EPS:g}, got {part.eps:g}")


def _as_vocabulary(name, words, embedding):
    """Return the vocabulary as a list with one word per row of the embedding, or raise an error."""
    if words is None or isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"{name} must be a sequence of strings, got {format_value(words)}")
    words, size = list(words), len(embedding.weight)
    if len(words) != size:
        raise ValueError(f"{name} must have one word for each row of the embedding, {size}, got {len(words)}")
    if size > MAX_WORDS:
        raise ValueError(f"{name} must have at most {MAX_WORDS} words, got {size}")
    letters = all(len(word) == 1 for word in words)
    for word in words:
        if words.count(word) > 1 or not word or (not letters and word.split() != [word]):
            raise ValueError(f"{name} must be different words without spaces, got {format_value(word)}")
    return words
