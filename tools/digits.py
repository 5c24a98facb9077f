"""Printed digits that another device may round differently: watched while a notebook runs.

A kernel whose start-up runs this file (``STARTUP``) puts out, beside what a cell shows, every value that ``tl.show``
prints near a rounding boundary. Numbers in an f-string are beyond its reach: the run on the device itself finds those.
"""

from pathlib import Path

MIME = "application/near+json"
STARTUP = f"__import__('runpy').run_path({str(Path(__file__).resolve())!r})['watch']()"  # leaves no name to the cells
ENDS = 6  # of an axis whose middle is not printed


def near_boundary(values, digits):
    """Return those of ``values`` that lie so near a rounding boundary that another device may print other digits.

    A device may differ by 1e-6·(2 + |value|), in float64 by a thousandth of that: between the instruction sets of one
    CPU, the chapters' values were seen to differ by less than 1e-7·(1 + |value|).
    """
    import torch

    values = values.detach().cpu()
    if values.is_complex():
        values = torch.view_as_real(values)
    if not values.is_floating_point():
        return torch.empty(0)
    if values.numel() > 1000:  # printed without its middle
        for axis, size in enumerate(values.shape):
            if size > ENDS:
                values = values.index_select(axis, torch.tensor([0, 1, 2, size - 3, size - 2, size - 1]))
    wide = values.double()
    wide, values = wide[wide.isfinite()], values[wide.isfinite()]
    scale = 10.0**digits
    unit = 1e-9 if values.dtype == torch.float64 else 1e-6
    error = scale * unit * (2 + wide.abs())
    boundary = ((wide * scale) % 1 - 0.5).abs()
    # Such as 2.5 or 0.1: on every device the same. Among large numbers every one is near some short decimal.
    exact = ((wide * scale).round() / scale).to(values.dtype) == values
    exact = exact & (wide.abs() * scale < 2**20) | (wide == wide.round())
    return wide[(boundary <= error) & ~exact]


def watch():
    """Make ``tl.show`` put out what it prints near a boundary."""
    from IPython.display import display

    import transformer_lab as tl

    show = tl.show

    def watched(x, axes=None, *, digits=4):
        show(x, axes, digits=digits)
        near = near_boundary(x, digits).tolist()
        if near:
            display({"text/plain": "", MIME: [digits, near]}, raw=True)

    tl.show = tl.tensors.show = watched


def take_near(notebook):
    """Take what was put out beside the shown out of a notebook, and return it in words."""
    found = []
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type == "code":
            near = [output.data[MIME] for output in cell.outputs if MIME in output.get("data", {})]
            cell.outputs = [output for output in cell.outputs if MIME not in output.get("data", {})]
            found += [
                f"cell {number} shows {value!r} with {digits} digits" for digits, values in near for value in values
            ]
    return found
