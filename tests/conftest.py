"""What several test files share: the scripts of tools/, and an installed browser."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    """An installed Chromium or Chrome, without a window."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        advice = "no Chromium or Chrome is installed; on Debian or Ubuntu: sudo apt install chromium"
        if os.environ.get("TRANSFORMER_LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(advice, pytrace=False)
        pytest.skip(advice)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's sandbox does not start as root, which is who runs CI's containers.
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        )
        yield browser
        browser.close()
