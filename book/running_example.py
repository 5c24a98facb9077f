"""One number runs through the book: the front page's model computes from it the tensor at the top of each chapter."""

import re
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import torch

import transformer_lab as tl

COLOURS = Path(tl.__file__).parent / "labs" / "colours.js"
# Two colour maps: one shows weights, from 0 to 1; the other shows all other numbers, divided by their largest absolute
# value.
MAP_OF_WEIGHTS, MAP_OF_NUMBERS = "BLUES", "SIGNED"
# For each chapter, the tensor, its description, and the place in ``WholeLab`` that shows the tensor.
TENSORS = {
    "01_tensor_operations": ("encoder.input", "its token vectors", "encoder.input"),
    "02_matmul_broadcasting": ("decoder.logits", "its logits", "decoder.logits"),
    "03_attention_lookup": ("encoder.0.self.head", "attention weights of one head", "encoder.0.self"),
    "04_multi_head": ("encoder.0.self.heads", "attention weights of four heads", "encoder.0.self"),
    "05_masks": ("decoder.0.self.head", "attention weights under the mask", "decoder.0.self"),
    "06_normalization": ("encoder.0.self.norm", "its vectors after a norm", "encoder.0.self.add"),
    "07_parameters": ("encoder.0.feed_forward.hidden", "its hidden units", "encoder.0.feed_forward"),
    "08_linear_attention": ("decoder.0.cross.head", "the table that linear attention never forms", "decoder.0.cross"),
    "09_today": ("decoder.0.feed_forward.output", "what a feed-forward layer adds", "decoder.0.feed_forward"),
    "10_real_models": ("decoder.probabilities", "the probability of each next word", "decoder.softmax"),
    "11_right": ("encoder.memory", "what the decoder reads", "encoder.memory"),
}


@cache
def tensors():
    """Return the number with which ``WholeLab`` starts, and the tensors of one forward pass, without the batch axis.

    The tensors have the same names as in the lab. ``.head`` contains the weights of the first head and has shape
    (q_len, k_len); ``.heads`` contains the weights of all heads, side by side.
    """
    lab = tl.labs.WholeLab()
    model, tensors_by_name = lab.model, {}
    encoder_layer, decoder_layer = model.encoder.layers[0], model.decoder.layers[0]

    def record_output(name, module):
        module.register_forward_hook(lambda _, given, returned: tensors_by_name.update({name: returned[0]}))

    def record_weights(name, attention):
        def hook(_, given, options, returned):
            weights = attention.weights(*given, **options)[0]
            tensors_by_name.update({f"{name}.head": weights[0], f"{name}.heads": torch.cat([*weights], -1)})

        attention.register_forward_hook(hook, with_kwargs=True)

    record_output("encoder.input", model.src_embedding)
    record_weights("encoder.0.self", encoder_layer.self_attention)
    record_output("encoder.0.self.norm", encoder_layer.norm1)
    record_output("encoder.0.feed_forward.hidden", encoder_layer.feed_forward.linear1)
    record_output("encoder.memory", model.encoder)
    record_weights("decoder.0.self", decoder_layer.self_attention)
    record_weights("decoder.0.cross", decoder_layer.cross_attention)
    record_output("decoder.0.feed_forward.output", decoder_layer.feed_forward)
    record_output("decoder.logits", model.output)
    checkpoint = lab.stored[0]
    source = [checkpoint["source"].index(digit) for digit in lab.text]
    target = [checkpoint["bos"], *(checkpoint["target"].index(word) for word in lab.answer)]
    with torch.no_grad():
        model(torch.tensor([source]), torch.tensor([target]))
    tensors_by_name["encoder.0.feed_forward.hidden"] = tensors_by_name["encoder.0.feed_forward.hidden"].relu()
    tensors_by_name["decoder.probabilities"] = tensors_by_name["decoder.logits"].softmax(-1)
    return lab.text, tensors_by_name


@cache
def colours(name):
    """Return the stops of a colour map of ``colours.js``, from lowest to highest, as CSS colours for both themes."""
    match = re.search(rf'const {name} = {{\s*light: fromHex\("(.*)"\),\s*dark: fromHex\("(.*)"\)', COLOURS.read_text())
    return [f"light-dark(#{light}, #{dark})" for light, dark in zip(match[1].split(), match[2].split(), strict=True)]


def heat_map(tensor, is_weights):
    """Return a matrix as an SVG with one cell per number, in the colour of the colour map's nearest stop."""
    stops = colours(MAP_OF_WEIGHTS if is_weights else MAP_OF_NUMBERS)
    shares = tensor if is_weights else tensor / tensor.abs().max() / 2 + 0.5
    levels = (shares * (len(stops) - 1)).round().int()
    rows, columns = levels.shape
    cells = [
        (colour, "".join(f"M{j} {i}h1v1h-1z" for i, j in (levels == level).nonzero().tolist()))
        for level, colour in enumerate(stops)
    ]
    paths = "".join(f'<path style="fill: {colour}" d="{path}"/>' for colour, path in cells if path)
    attributes = f'viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" style="--rows: {rows}"'
    return f'<svg {attributes} aria-hidden="true">{paths}</svg>'


def link(chapter, lab_page):
    """Return a chapter's tensor as a link to the place in ``WholeLab``, on ``lab_page``, that computes the tensor."""
    name, description, part = TENSORS[chapter]
    text, tensors_by_name = tensors()
    tensor = tensors_by_name[name]
    is_weights = name.endswith((".head", ".heads", "probabilities"))
    address = escape(f"{lab_page}?{urlencode({'whole.part': part})}")
    shape = ",&nbsp;".join(map(str, tensor.shape))
    title = f"Open this place in the front page's model, with {text} as the input"
    return (
        f'<a class="tl-running" href="{address}" title="{escape(title)}">{heat_map(tensor, is_weights)}'
        f"<span><b>{text}</b> here: {escape(description)}, ({shape})</span></a>"
    )
