"""Code that the ``from_torch`` constructors share."""


def load_copies(module, tensors):
    """Load copies of ``tensors``, a dict keyed by name, into a module on ``meta``; frozen parameters stay frozen."""
    module.load_state_dict({name: x.detach().clone() for name, x in tensors.items()}, assign=True)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(tensors[name].requires_grad)
    return module
