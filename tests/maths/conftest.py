"""The tests of the mathematics begin with test_formula.py."""


def pytest_collection_modifyitems(items):
    """Run test_formula.py first: its failures are sentences about a part of the formula, not only numbers."""
    items.sort(key=lambda item: item.path.name != "test_formula.py")
