"""The whole lab: a trained Transformer, running in the browser, with every tensor on its way."""

import base64
import json
from pathlib import Path

import numpy as np
import torch
import traitlets

from ..transformer import LanguageModel, Transformer
from .lab import Lab, script, style

_FOLDER = Path(__file__).parent
SCRIPTS = ("whole_maths", "whole_words", "whole_tables", "whole_picture", "whole")


def pack(model, source, target, bos, eos, dtype="float32"):
    """Return a model as the browser reads it: its options, its vocabularies, and its weights in base64."""
    weights = {name: x.detach().cpu().float() for name, x in model.state_dict().items()}
    layer = model.decoder.layers[0]
    numbers = np.concatenate(
        [x.numpy().astype(f"<f{2 if dtype == 'float16' else 4}").ravel() for x in weights.values()]
    )
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
    """Return the model that :func:`pack` has packed."""
    shapes = dict(stored["layout"])
    numbers = np.frombuffer(base64.b64decode(stored["weights"]), "<f2" if stored["dtype"] == "float16" else "<f4")
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    parts = torch.from_numpy(numbers.astype(np.float32)).split(sizes)
    d_ff, d_model = shapes["decoder.layers.0.feed_forward.linear1.weight"]
    options = (d_model, stored["nHeads"], stored["nLayers"], d_ff, 0.0, stored["normFirst"], stored["activation"])
    options += ("decoder.layers.0.norm1.bias" in shapes,)
    vocabularies = [shapes[f"{name}.weight"][0] for name in ("src_embedding", "output") if f"{name}.weight" in shapes]
    kind = Transformer if stored["family"] == "both" else LanguageModel
    model = kind(*vocabularies, *options, final_norm="decoder.norm.weight" in shapes)
    model.load_state_dict({name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts)})
    return model.eval()


class WholeLab(Lab):
    """A whole Transformer that runs in the browser."""

    _esm = script(*(name for name in SCRIPTS if (_FOLDER / f"{name}.js").exists()))
    _css = style("whole") if (_FOLDER / "whole.css").exists() else ""
    shown = ("text", "family", "step", "part")

    stored = traitlets.List().tag(sync=True)
    drawing = traitlets.Unicode((_FOLDER / "whole.svg").read_text("utf-8") if (_FOLDER / "whole.svg").exists() else "")
    drawing.tag(sync=True)
    text = traitlets.Unicode("342").tag(sync=True)
    family = traitlets.Unicode("both").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    part = traitlets.Unicode("").tag(sync=True)

    def __init__(self, *, text="342", family="both", step=0, part=""):
        models = json.loads((_FOLDER / "whole_weights.json").read_text("utf-8"))["models"]
        super().__init__(stored=models, text=text, family=family, step=step, part=part)
