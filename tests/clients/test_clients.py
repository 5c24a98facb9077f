"""A chapter and an assignment in JupyterLab and in Notebook 7, as their reader sees them: `make clients`."""

import json
import shutil
import time
import urllib.request

import nbformat
import pytest

import clients
from notebook_labs import LAB
from notebooks import FOLDED_PARTS, ROOT

if not clients.is_installed():
    pytest.skip("JupyterLab is not installed: run `make clients`", allow_module_level=True)

SENTENCE = "Run all cells, and a live figure appears here."
CHAPTER = "02_matmul_broadcasting.ipynb"
EVERY_CELL = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}  # drawn, whether it is near or not
LIVE = ".jp-OutputArea .tl-lab"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "chapters", folder / "chapters")
    return folder / "chapters"


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with clients.serve_clients(folder, tmp_path_factory.mktemp("jupyter"), EVERY_CELL) as address:
        yield address


def sessions(server):
    with urllib.request.urlopen(f"{server}/api/sessions") as answer:
        return json.load(answer)


def wait_for_kernel(server, window):
    """Wait until a kernel has started and the client is connected to it; code that is run earlier is lost."""
    end = time.monotonic() + 180
    while not any(
        each["kernel"]["connections"] and each["kernel"]["execution_state"] == "idle" for each in sessions(server)
    ):
        assert time.monotonic() < end, "no kernel is ready"
        window.wait_for_timeout(500)


@pytest.fixture(params=["lab/tree/{}?reset", "notebooks/{}"])  # without reset, JupyterLab opens what was open before
def reader(request, server, browser):
    """Opens a notebook in a fresh window."""
    windows = []

    def read(name):
        window = browser.new_page(viewport={"width": 1300, "height": 1000})
        window.set_default_timeout(180_000)
        windows.append(window)
        window.goto(f"{server}/{request.param.format(name)}")
        window.locator(".jp-Notebook .jp-Cell").first.wait_for()
        window.locator(".jp-Notebook .jp-MarkdownOutput").last.wait_for(state="attached")
        wait_for_kernel(server, window)
        return window

    yield read
    for window in windows:
        window.close()
    for session in sessions(server):
        address = f"{server}/api/sessions/{session['id']}"
        urllib.request.urlopen(urllib.request.Request(address, method="DELETE")).close()


def run_all(window):
    window.get_by_role("menuitem", name="Run", exact=True).click()
    window.get_by_text("Run All Cells", exact=True).click()
    window.locator(".jp-InputPrompt", has_text="*").first.wait_for(state="attached")
    end = time.monotonic() + 300
    while window.locator(".jp-InputPrompt", has_text="*").count():
        assert time.monotonic() < end, "the notebook does not end"
        window.wait_for_timeout(500)


def test_a_chapter_before_and_after_a_run_and_opened_again(reader, folder):
    path = folder / CHAPTER
    shutil.copy(ROOT / "chapters" / CHAPTER, path)
    cells = nbformat.read(path, 4).cells
    labs = sum(SENTENCE in str(cell.get("outputs")) for cell in cells)
    hidden = [FOLDED_PARTS[tag] for cell in cells for tag in cell.metadata.get("tags", []) if tag in FOLDED_PARTS]
    window = reader(CHAPTER)
    window.locator(".jp-InputPlaceholder").nth(hidden.count("source_hidden") - 1).wait_for(state="attached")
    words = window.locator(".jp-Notebook").inner_text()
    assert words.count(SENTENCE) == labs > 1 and "[!" not in words
    outputs = window.locator(".jp-OutputArea-output").all_inner_texts()
    assert not [text for text in outputs if LAB.match(text)]
    assert window.locator(".jp-InputPlaceholder").count() == hidden.count("source_hidden") > 1
    run_all(window)
    window.locator(LIVE).nth(labs - 1).wait_for(state="attached")
    assert window.locator(LIVE).count() == labs and SENTENCE not in window.locator(".jp-Notebook").inner_text()
    window.keyboard.press("Control+s")
    while "widgets" not in json.loads(path.read_text("utf-8"))["metadata"]:
        window.wait_for_timeout(500)
    window.close()
    again = reader(CHAPTER)
    again.locator(LIVE).nth(labs - 1).wait_for(state="attached")
    assert "model not found" not in again.locator(".jp-Notebook").inner_text()


def test_outputs_to_guess_are_folded(reader):
    window = reader("05_masks.ipynb")
    cells = nbformat.read(ROOT / "chapters" / "05_masks.ipynb", 4).cells
    guessed = sum("hide-output" in cell.metadata.get("tags", []) for cell in cells)
    window.locator(".jp-OutputPlaceholder").nth(guessed - 1).wait_for(state="attached")  # cells come one by one
    assert window.locator(".jp-OutputPlaceholder").count() == guessed > 1


def test_an_assignment_shows_its_cards(reader):
    window = reader("assignments/02_matmul_broadcasting.ipynb")
    run_all(window)
    assert window.get_by_text("not attempted").count() > 3
