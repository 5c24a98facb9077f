"""The registry of all properties, and a function that the properties share."""

PROPERTIES = {}  # name to function, in the order of the card
NEEDS = {}  # what each property needs: "equal" outputs for equal inputs, "outputs", or "nothing"


def audit_property(name, needs="equal"):
    """Register a property under its name."""

    def register(function):
        PROPERTIES[name], NEEDS[name] = function, needs
        return function

    return register


def first_true(condition):
    """Return the indices of the first element that is True, as Python numbers."""
    return condition.nonzero()[0].tolist()
