"""The fixtures in this file start an installed browser and open pages of labs; several test files use them."""

import os
import signal
from functools import cache

import pytest

import fonts
from lab_page import lab_page

# A shell starts background jobs with SIGINT ignored, but the tests of the stop button send SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The bank contains data, not tests. The stand-in's tests run only if the stand-in is the device: see test_standin.py.
collect_ignore = ["bank"] if os.environ.get("TRANSFORMER_LAB_DEVICE") == "standin" else ["bank", "standin"]


# Set the page's theme, and wait for its labs.
SET_THEME_AND_WAIT = """async ([theme, labs]) => {
    document.documentElement.dataset.theme = theme;
    for (const end = Date.now() + 30_000; document.querySelectorAll('[data-lab]').length < labs;) {
        if (Date.now() > end) throw new Error("the labs did not appear");
        await new Promise((done) => setTimeout(done, 5));
    }
    // WholeLab writes its answer word by word when it appears; a key press shows the complete answer at once.
    for (const lab of document.querySelectorAll('.tl-whole')) lab.dispatchEvent(new Event('keydown'));
}"""


@pytest.fixture(scope="session")
def launch(tmp_path_factory):
    """Return a function that starts an installed Chromium or Chrome, headless, with a font family of fonts.py."""
    from state import browser

    chromium = browser()
    if chromium is None:
        reason = "no Chromium or Chrome is installed; on Debian or Ubuntu: sudo apt install chromium-headless-shell"
        if os.environ.get("TRANSFORMER_LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:

        @cache
        def launch(family):
            settings = fonts.install(family, tmp_path_factory.mktemp(family))
            # Chromium's sandbox does not start for root, the user in CI's containers.
            return playwright.chromium.launch(
                executable_path=chromium,
                args=["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else [],
                env={**os.environ, "FONTCONFIG_FILE": str(settings)},
            )

        yield launch


@pytest.fixture(scope="session")
def browser(launch):
    """A browser with a font of the usual width."""
    return launch("usual")


@pytest.fixture(scope="module")
def desktop_and_phone(browser):
    """A desktop page and a phone-like page, both with the network off, and a list of the errors on them."""
    problems, pages_by_touch = [], {}
    for touch in (False, True):
        page = browser.new_context(offline=True, has_touch=touch, is_mobile=touch).new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda r: None if r.url.startswith(("file:", "blob:", "data:")) else problems.append(r.url))
        pages_by_touch[touch] = page
    yield pages_by_touch, problems
    for page in pages_by_touch.values():
        page.context.close()


@pytest.fixture
def show(desktop_and_phone, tmp_path):
    """Return a function that opens a page of labs from disk; after a test, errors on the page make the test fail."""
    pages_by_touch, problems_so_far = desktop_and_phone

    def show(*labs, width=760, theme="light", touch=False, change=lambda html: html):
        page = pages_by_touch[touch]
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="light")
        file = tmp_path / "labs.html"
        file.write_text(change(lab_page(*labs)), "utf-8")
        page.goto(file.as_uri())
        page.evaluate(SET_THEME_AND_WAIT, [theme, len(labs)])
        return page

    yield show
    problems = list(problems_so_far)
    problems_so_far.clear()
    assert not problems
