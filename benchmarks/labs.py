"""In a lab of the largest size, how long is the longest task on the browser's main thread while a reader drags?

    python benchmarks/labs.py

Each lab is alone on a page, and its main control is dragged three times, as in page.py. The table shows medians of the
three drags, in ms. A frame takes 16 ms.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import page
import torch
from playwright.sync_api import sync_playwright

import transformer_lab as tl

sys.path.insert(0, str(page.ROOT / "tests" / "helpers"))
from lab_page import lab_page

weights = torch.rand(12, 12, 64, 64, generator=torch.Generator().manual_seed(0)).softmax(-1)
mixture = tl.MixtureOfExperts(64, 128, 8, 2, n_shared=1)
LABS = {
    "heads, 12 layers × 12 heads × 64 tokens": tl.labs.HeadsLab(weights, [f"t{i}" for i in range(64)]),
    "masks, 6 tokens": tl.labs.MaskLab(),
    "masks, 12 tokens": tl.labs.MaskLab("a b c d e f g h i j k l"),
    "normalization": tl.labs.NormalizationLab(torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(5))),
    "budget": tl.labs.BudgetLab(),
    "order of multiplication": tl.labs.OrderLab(),
    "order, 6 tokens × 3 features": tl.labs.OrderLab(mode="steps"),
    "order, 12 tokens × 6 features": tl.labs.OrderLab(**dict.fromkeys(("query", "key", "value"), torch.ones(12, 6))),
    "experts, 12 tokens × 8 experts": tl.labs.ExpertsLab(mixture, torch.randn(12, 64)),
    "sampling, 1,000 draws": tl.labs.SamplingLab("door", temperature=2, draws=1000),
}


def main():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("No Chromium is installed: on Debian, run sudo apt install chromium.")
    print(f"{'':42}{'longest task':>14}{'computed':>10}{'busiest move':>14}")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, lab in LABS.items():
            file = Path(folder, "lab.html")
            file.write_text(lab_page(lab), "utf-8")
            browser_page = browser.new_page(viewport={"width": 1000, "height": 900})
            browser_page.goto(file.as_uri())
            browser_page.wait_for_timeout(1000)
            longest, computed, move = page.median_drag(browser, browser_page, browser_page.locator(".tl-lab"))
            print(f"{name:42}{longest:14.1f}{computed:10.1f}{move:14.1f}", flush=True)
            browser_page.close()
        browser.close()


if __name__ == "__main__":
    main()
