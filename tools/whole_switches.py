"""Switches off the same parts of a model as ``WholeLab``, with hooks on the model's modules."""

from contextlib import contextmanager
from functools import partial

import transformer_lab as tl
from transformer_lab.labs.whole import switch_names


def switches_of(model):
    """Return the names of all single switches that change ``model``."""
    family = "both" if isinstance(model, tl.Transformer) else "decoder"
    return switch_names(family, len(model.decoder.layers), model.decoder.layers[0].self_attention.n_heads)


@contextmanager
def switched_off(model, off):
    """Switch off the parts ``off`` of ``model`` until the end of the ``with`` block."""
    hooks, restore_functions = [], []

    def on_call(module, hook):
        hooks.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    for side in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(getattr(model, side, None), "layers", ())):
            if "residual" in off:
                layer._residual = _without_residual.__get__(layer)
                restore_functions.append(lambda layer=layer: delattr(layer, "_residual"))
            for kind in ("self", "cross"):
                attention = getattr(layer, f"{kind}_attention", None)
                if attention is None:
                    continue
                if "scale" in off:  # queries that are √d_head times as large undo the division
                    for parameter in attention.q_proj.parameters():
                        restore_functions.append(partial(parameter.data.copy_, parameter.detach().clone()))
                        parameter.data *= attention.d_head**0.5
                if "mask" in off and side == "decoder" and kind == "self":
                    on_call(attention, lambda _, args, options: (args, options | {"is_causal": False}))
                if "cross" in off and kind == "cross":
                    hooks.append(attention.register_forward_hook(lambda _, args, output: output * 0))
                heads = [h for h in range(attention.n_heads) if f"{side}.{number}.{kind}.{h}" in off]
                if heads:
                    on_call(
                        attention.out_proj,
                        lambda _, args, __, heads=heads, a=attention: (_zero_heads(a, args, heads), {}),
                    )
    if "positions" in off:
        for module in model.modules():
            if isinstance(module, tl.TokenEmbedding):
                restore_functions.append(partial(module.positions.copy_, module.positions.clone()))
                module.positions.zero_()
    try:
        yield model
    finally:
        for hook in hooks:
            hook.remove()
        for undo in restore_functions:
            undo()


def _zero_heads(attention, args, heads):
    x = args[0].unflatten(-1, (attention.n_heads, attention.d_head)).clone()
    x[..., heads, :] = 0
    return (x.flatten(-2),)


def _without_residual(layer, x, sublayer, norm):
    return sublayer(norm(x)) if layer.norm_first else norm(sublayer(x))
