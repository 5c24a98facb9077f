"""Test the stand-in of ``tests/standin`` in fresh processes, since a process cannot remove a registered device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "standin"
sys.path.append(str(FOLDER))  # standin is imported only for its reason_unavailable(), after PyTorch

import standin  # noqa: E402

skip_if_unavailable = pytest.mark.skipif(bool(standin.reason_unavailable()), reason=str(standin.reason_unavailable()))


def run_python_on_device(*arguments, **environment):
    """Run Python with these arguments and with the stand-in as the device."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(FOLDER)]),
        "TRANSFORMER_LAB_DEVICE": "standin",
        **environment,
    }
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)


@skip_if_unavailable
def test_the_standin_works_or_refuses():
    # `make device` uses the default settings; this test uses the hardest ones: no float64, and the coarsest rounding.
    hardest_settings = {"STANDIN_ROUNDING": "shove", "STANDIN_FLOAT64": "no"}
    process = run_python_on_device(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / "test_works_or_refuses.py"), **hardest_settings
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-1000:]


@skip_if_unavailable  # if the stand-in is unavailable, the error is about a different name
def test_a_device_reports_the_name_that_it_needs_and_pytorch_lacks():
    code = (
        "import torch; del torch._C._construct_storage_from_data_pointer; import standin; standin.autoload()\n"
        "import transformer_lab as tl\n"
        "assert torch.ones(2).sum() == 2\n"
        "tl.device()"
    )
    process = run_python_on_device("-c", code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    reason = "the device standin needs torch._C._construct_storage_from_data_pointer, which PyTorch"
    assert f"RuntimeError: {reason} {torch.__version__} does not have" in process.stderr
    assert "names 'standin', which this machine does not have" in process.stderr


@skip_if_unavailable
def test_an_unknown_rounding_is_refused():
    process = run_python_on_device("-c", "import torch", STANDIN_ROUNDING="coarse")
    assert "STANDIN_ROUNDING must be cpu, double, nudge or shove, got 'coarse'" in process.stderr
