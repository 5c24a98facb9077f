"""Open chapters and an assignment in JupyterLab and in Notebook 7, as a reader does: `make clients` runs this file."""

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

PLACEHOLDER = "Run all cells, and a live figure appears here."
CHAPTER = "02_matmul_broadcasting.ipynb"
# With this setting, JupyterLab draws every cell, even one that is far from the visible part of the page.
RENDER_ALL_CELLS = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
LIVE_LAB = ".jp-OutputArea .tl-lab"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "chapters", folder / "chapters")
    return folder / "chapters"


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with clients.serve_clients(folder, tmp_path_factory.mktemp("jupyter"), RENDER_ALL_CELLS) as address:
        yield address


def sessions(server):
    with urllib.request.urlopen(f"{server}/api/sessions") as answer:
        return json.load(answer)


def wait_for_kernel(server, page):
    """Wait until a kernel has started and the client is connected to it; code that is sent earlier is lost."""
    end = time.monotonic() + 180
    while not any(
        session["kernel"]["connections"] and session["kernel"]["execution_state"] == "idle"
        for session in sessions(server)
    ):
        assert time.monotonic() < end, "no kernel is ready"
        page.wait_for_timeout(500)


@pytest.fixture(params=["lab/tree/{}?reset", "notebooks/{}"])  # without reset, JupyterLab reopens earlier files
def open_in_client(request, server, browser):
    """Return a function that opens a notebook in a new window of JupyterLab or of Notebook 7."""
    open_pages = []

    def open_notebook(name):
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        page.set_default_timeout(180_000)
        open_pages.append(page)
        page.goto(f"{server}/{request.param.format(name)}")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        page.locator(".jp-Notebook .jp-MarkdownOutput").last.wait_for(state="attached")
        wait_for_kernel(server, page)
        return page

    yield open_notebook
    for page in open_pages:
        page.close()
    for session in sessions(server):
        address = f"{server}/api/sessions/{session['id']}"
        urllib.request.urlopen(urllib.request.Request(address, method="DELETE")).close()


def run_all(page):
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".jp-InputPrompt", has_text="*").first.wait_for(state="attached")
    end = time.monotonic() + 300
    while page.locator(".jp-InputPrompt", has_text="*").count():
        assert time.monotonic() < end, "the run of the notebook does not end"
        page.wait_for_timeout(500)


def test_labs_replace_their_placeholders_in_a_run_and_are_back_when_the_chapter_is_reopened(open_in_client, folder):
    path = folder / CHAPTER
    shutil.copy(ROOT / "chapters" / CHAPTER, path)
    cells = nbformat.read(path, 4).cells
    labs = sum(PLACEHOLDER in str(cell.get("outputs")) for cell in cells)
    folded_parts = [FOLDED_PARTS[tag] for cell in cells for tag in cell.metadata.get("tags", []) if tag in FOLDED_PARTS]
    page = open_in_client(CHAPTER)
    page.locator(".jp-InputPlaceholder").nth(folded_parts.count("source_hidden") - 1).wait_for(state="attached")
    text = page.locator(".jp-Notebook").inner_text()
    assert text.count(PLACEHOLDER) == labs > 1 and "[!" not in text
    outputs = page.locator(".jp-OutputArea-output").all_inner_texts()
    assert not [output for output in outputs if LAB.match(output)]
    assert page.locator(".jp-InputPlaceholder").count() == folded_parts.count("source_hidden") > 1
    run_all(page)
    page.locator(LIVE_LAB).nth(labs - 1).wait_for(state="attached")
    assert page.locator(LIVE_LAB).count() == labs and PLACEHOLDER not in page.locator(".jp-Notebook").inner_text()
    page.keyboard.press("Control+s")
    while "widgets" not in json.loads(path.read_text("utf-8"))["metadata"]:
        page.wait_for_timeout(500)
    page.close()
    reopened = open_in_client(CHAPTER)
    reopened.locator(LIVE_LAB).nth(labs - 1).wait_for(state="attached")
    assert "model not found" not in reopened.locator(".jp-Notebook").inner_text()


def test_outputs_to_guess_are_folded(open_in_client):
    page = open_in_client("05_masks.ipynb")
    cells = nbformat.read(ROOT / "chapters" / "05_masks.ipynb", 4).cells
    n_folded = sum("hide-output" in cell.metadata.get("tags", []) for cell in cells)
    page.locator(".jp-OutputPlaceholder").nth(n_folded - 1).wait_for(state="attached")  # cells appear one by one
    assert page.locator(".jp-OutputPlaceholder").count() == n_folded > 1


def test_an_assignment_shows_its_cards(open_in_client):
    page = open_in_client("assignments/02_matmul_broadcasting.ipynb")
    run_all(page)
    assert page.get_by_text("not attempted").count() > 3
