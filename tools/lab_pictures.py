"""Takes a picture of each lab in the built book, for browsers without scripts, and measures the lab's height.

The pictures are in book/pictures. Take new pictures when the look of a lab has changed: `make pictures`, then `make
book`.
"""

import io
import json
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from state import browser

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
FOLDER = ROOT / "book" / "pictures"
MAX_PICTURE_BYTES = 40_000
WINDOWS = {"phone": 360, "tablet": 800, "desk": 1280}  # widths in pixels, as for .lab-placeholder in book/style.css
COLOURS = (256, 128, 64, 32, 16)
VIEWS = """document.querySelectorAll('script[type$="widget-view+json"]')"""
SCROLL_PAST_ALL = f"""async () => {{
    const start = scrollY;
    for (const view of {VIEWS}) {{
        view.parentElement.scrollIntoView({{ behavior: "instant" }});
        await new Promise(requestAnimationFrame);
    }}
    scrollTo({{ top: start, behavior: "instant" }});
}}"""


def draw_all(page):
    """Scroll past all labs of the page until all are drawn; some labs are drawn only when near the viewport."""
    page.evaluate(SCROLL_PAST_ALL)
    page.wait_for_function(f"{VIEWS}.length === document.querySelectorAll('[data-lab]').length")


def compress_picture(png):
    """Return a picture as WebP, with as many colours as fit into ``MAX_PICTURE_BYTES`` bytes."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in COLOURS:
        out = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).convert("RGB").save(out, "webp", lossless=True, method=6)
        if out.tell() <= MAX_PICTURE_BYTES:
            break
    return out.getvalue(), picture.size


def take_pictures(page, name):
    """Save the pictures of one page; return the file, sizes, heights and sentence of each lab, in the page's order."""
    pictures = []
    page.goto((HTML / f"{name}.html").as_uri())
    draw_all(page)
    labs = page.locator("[data-lab]")
    heights = {}
    for window, width in WINDOWS.items():
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)  # a lab adapts to a new width after a few frames
        heights[window] = labs.evaluate_all("labs => labs.map((lab) => Math.round(lab.offsetHeight))")
    for number, lab in enumerate(labs.all(), 1):
        data, (width, height) = compress_picture(lab.screenshot(animations="disabled"))
        file = f"lab-{name.replace('/', '_')}-{number}.webp"
        (FOLDER / file).write_bytes(data)
        texts = [lab.locator(part).first.inner_text() for part in (".tl-title", ".tl-status")]
        height_by_window = {window: heights[window][number - 1] for window in WINDOWS}
        pictures.append(
            {"file": file, "width": width, "height": height, "rooms": height_by_window, "says": ": ".join(texts)}
        )
        print(f"{file:<40} {len(data) / 1000:6.1f} kB")
    return pictures


def main():
    chromium = browser()
    if chromium is None or not HTML.exists():
        sys.exit("Pictures of the built book are taken with Chromium or Chrome: run `make book` and install a browser.")
    pages = [path for path in sorted(HTML.rglob("*.html")) if "widget-view+json" in path.read_text("utf-8")]
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    pictures = {}
    with sync_playwright() as playwright:
        chromium_browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = chromium_browser.new_page(color_scheme="light", reduced_motion="reduce")
        for path in pages:
            name = path.relative_to(HTML).with_suffix("").as_posix()
            pictures[name] = take_pictures(page, name)
        chromium_browser.close()
    (FOLDER / "pictures.json").write_text(json.dumps(pictures, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
