"""Finds the digits in a notebook's output that may differ on another device.

A kernel that first runs ``STARTUP`` adds to each cell's outputs every value that ``tl.show`` prints and that is near a
rounding boundary. The tool does not find numbers in f-strings: only a run on the other device shows whether they
differ.
"""

from pathlib import Path

MIME = "application/near+json"
STARTUP = f"__import__('runpy').run_path({str(Path(__file__).resolve())!r})['watch']()"  # defines no name
N_ENDS = 6  # number of printed elements of an axis whose middle is left out


def near_boundary(values, digits):
    """Return those ``values`` that are so near a rounding boundary that their digits may depend on the device.

    Values on two devices may differ by up to 1e-6·(2 + |value|), or in float64 by a thousandth of this amount. For
    comparison, the chapters' values on the instruction sets of one CPU differ by less than 1e-7·(1 + |value|).
    """
    import torch

    values = values.detach().cpu()
    if values.is_complex():
        values = torch.view_as_real(values)
    if not values.is_floating_point():
        return torch.empty(0)
    if values.numel() > 1000:  # such a tensor is printed without its middle
        for axis, size in enumerate(values.shape):
            if size > N_ENDS:
                values = values.index_select(axis, torch.tensor([0, 1, 2, size - 3, size - 2, size - 1]))
    in_float64 = values.double()
    in_float64, values = in_float64[in_float64.isfinite()], values[in_float64.isfinite()]
    scale = 10.0**digits
    unit = 1e-9 if values.dtype == torch.float64 else 1e-6
    error = scale * unit * (2 + in_float64.abs())
    boundary = ((in_float64 * scale) % 1 - 0.5).abs()
    # Numbers such as 2.5 or 0.1 are the same on every device. A large number is always near a short decimal, so its
    # nearness proves nothing.
    is_exact = ((in_float64 * scale).round() / scale).to(values.dtype) == values
    is_exact = is_exact & (in_float64.abs() * scale < 2**20) | (in_float64 == in_float64.round())
    return in_float64[(boundary <= error) & ~is_exact]


def watch():
    """Make ``tl.show`` also output the shown values that are near a boundary."""
    from IPython.display import display

    import transformer_lab as tl

    show = tl.show

    def show_and_record(x, axes=None, *, digits=4):
        show(x, axes, digits=digits)
        near_values = near_boundary(x, digits).tolist()
        if near_values:
            display({"text/plain": "", MIME: [digits, near_values]}, raw=True)

    tl.show = tl.tensors.show = show_and_record


def pop_near_boundary(notebook):
    """Remove the recorded values near a boundary from a notebook's outputs, and return a sentence for each of them."""
    sentences = []
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type == "code":
            recorded = [output.data[MIME] for output in cell.outputs if MIME in output.get("data", {})]
            cell.outputs = [output for output in cell.outputs if MIME not in output.get("data", {})]
            sentences += [
                f"cell {number} shows {value!r} with {digits} digits" for digits, values in recorded for value in values
            ]
    return sentences
