"""Find the first module in which a model and its reference differ."""

import torch
from torch import nn


def first_difference(trial, reference):
    """Name the first module in which the model and a reference differ.

    Modules with the same name are compared; if the two models share no name, the layers of their longest lists are
    compared by number. If the input of a module already differs, the difference began before this module.
    """
    model_calls, reference_calls = (record_modules(trial, model, named_modules) for model in (trial.model, reference))
    if not model_calls.keys() & reference_calls.keys():
        model_calls, reference_calls = (
            record_modules(trial, model, numbered_layers) for model in (trial.model, reference)
        )
    last_equal = ""
    for name in (name for name in model_calls if name in reference_calls):
        for prefix, tensor, reference_tensor in zip(("the input of ", ""), model_calls[name], reference_calls[name]):
            if tensor is None or reference_tensor is None or tensor.shape != reference_tensor.shape:
                continue
            largest_difference, std = float((tensor - reference_tensor).abs().max()), float(reference_tensor.std())
            if not largest_difference <= trial.tolerance * max(std, 1e-9):
                return f"the first difference is in {prefix}{name}" + (
                    f", after {last_equal}, which agrees" if last_equal else ""
                )
        last_equal = name
    return "the shared modules agree, but the outputs differ" if last_equal else "the two models share no module"


def named_modules(model):
    """Return all modules inside a model, in a dict keyed by name."""
    return {f"`{name}`": module for name, module in model.named_modules() if name}


def numbered_layers(model):
    """Return the layers of a model's longest list, in a dict from ``"layer 0"``, ``"layer 1"`` … to the layers."""
    lists = [module for module in model.modules() if isinstance(module, (nn.ModuleList, nn.Sequential))]
    return {f"layer {i}": layer for i, layer in enumerate(max(lists, key=len, default=()))}


def record_modules(trial, model, modules_of):
    """Return the first input and the output of every module that is called once, in the order in which calls end."""
    calls, repeated_names = {}, set()

    def hook(name):
        def record(module, arguments, output):
            repeated_names.update({name} & calls.keys())
            calls[name] = tensor_in(arguments), tensor_in(output)

        return record

    handles = [module.register_forward_hook(hook(name)) for name, module in modules_of(model).items()]
    try:
        trial.run(trial.x, model)
    finally:
        for handle in handles:
            handle.remove()
    return {name: call for name, call in calls.items() if name not in repeated_names}


def tensor_in(value):
    """Return a copy of a value, or of the first item of a tuple, if it is a floating-point tensor; otherwise None."""
    value = value[0] if isinstance(value, (tuple, list)) and value else value
    return value.detach().clone() if isinstance(value, torch.Tensor) and value.is_floating_point() else None
