"""Properties of the weights: how they are initialized, whether they learn, and whether they can be stored."""

import copy
import itertools

import torch
from torch import nn

from ..stages import first_difference
from ..trial import Fails, NotTried, WrongForm
from .registry import audit_property


@audit_property("the same as the original")
def same_as_reference(trial):
    """Does the model return the same outputs as a reference, and in which module do the outputs first differ?"""
    reference_model = trial.options.reference
    if reference_model is None:
        raise NotTried("pass `reference=`, a module that takes the same input as the model")
    if not isinstance(reference_model, nn.Module):
        raise WrongForm(
            f"reference must be a module that takes the same input as the model, got {type(reference_model).__name__}"
        )
    reference_model = copy.deepcopy(reference_model).eval().to(trial.dtype)
    try:
        trial.require_same(trial.run(trial.x), trial.run(trial.x, reference_model), "the reference")
    except Fails as failure:
        raise Fails(f"{failure}; {first_difference(trial, reference_model)}") from None


@audit_property("identity without branches")
def identity_without_branches(trial):
    """Is the layer the identity when the last linear layers of its branches are 0?"""
    branches = trial.options.branches
    if not branches:
        raise NotTried("pass `branches=`, the last module of each branch of a pre-norm layer")
    names = [
        name for name, module in trial.options.model.named_modules() if any(module is branch for branch in branches)
    ]
    if len(names) != len(branches):
        raise WrongForm("branches must be modules of the model, such as [layer.linear2]")
    if trial.vocab_size is not None:
        raise NotTried("the model takes tokens, which are not vectors: audit a layer, with `d_model=`")

    def zero_branches(model):
        for name in names:
            for parameter in model.get_submodule(name).parameters():
                parameter.data.zero_()

    output = trial.run(trial.x, trial.modified_copy(zero_branches))
    trial.require_same(
        output, trial.x, "the last linear layers of all branches are 0, but the output differs from the input"
    )


@audit_property("layers begin different", needs="nothing")
def layers_begin_different(trial):
    """Do the layers of a list have different initial weights?"""
    has_comparable_layers = False
    for layers in trial.model.modules():
        if not isinstance(layers, (nn.ModuleList, nn.Sequential)):
            continue
        for a, b in itertools.combinations(range(min(len(layers), 8)), 2):
            if type(layers[a]) is not type(layers[b]):
                continue
            for p, q in zip(layers[a].parameters(), layers[b].parameters()):
                if p.ndim >= 2 and p.shape == q.shape and p is not q and float(p.detach().float().std()) > 0:
                    has_comparable_layers = True
                    if torch.equal(p, q):
                        raise Fails(f"layers {a} and {b} of {type(layers[a]).__name__} hold the same numbers")
    if not has_comparable_layers:
        raise NotTried("the model has no list of layers to compare")


@audit_property("every parameter learns")
def every_parameter_learns(trial):
    """Does every parameter get a gradient that is not 0?"""
    if not any(p.requires_grad for p in trial.options.model.parameters()):
        raise NotTried("the model has no parameters that learn")
    for batch in (2, 64):  # a mixture may choose an expert for only a few tokens
        model = trial.fresh_copy().eval()
        output = trial.forward(trial.draw(batch, trial.length), model)
        (output * torch.randn(output.shape, dtype=torch.float32).to(output)).sum().backward()
        names_without_gradient = [
            name for name, p in model.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())
        ]
        if not names_without_gradient:
            return
    more_text = f" and {len(names_without_gradient) - 3} more" if len(names_without_gradient) > 3 else ""
    raise Fails(
        f"the gradient is missing or 0: {', '.join(f'`{name}`' for name in names_without_gradient[:3])}{more_text}"
    )


@audit_property("saved and loaded")
def saved_and_loaded(trial):
    """Does a second copy give the same outputs after it loads the model's weights?"""
    if not trial.model.state_dict():
        raise NotTried("the model has no parameters")

    def scramble(model):
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.normal_()

    other_model = trial.modified_copy(scramble)
    other_model.load_state_dict(trial.model.state_dict())
    trial.require_same(trial.run(trial.x, other_model), trial.run(trial.x), "the weights in another copy")
