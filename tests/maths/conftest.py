"""The order of the tests of the mathematics."""


def pytest_collection_modifyitems(items):
    """What the parts of the formula are comes first: it fails with a sentence, where properties fail with numbers."""
    items.sort(key=lambda item: item.path.name != "test_formula.py")
