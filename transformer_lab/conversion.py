"""What all ``from_torch`` share."""


def take_over(module, tensors):
    """Put copies of ``tensors``, by name, into a module made on ``meta``; what was frozen stays frozen."""
    module.load_state_dict({name: x.detach().clone() for name, x in tensors.items()}, assign=True)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(tensors[name].requires_grad)
    return module
