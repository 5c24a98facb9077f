"""What does a page of the book cost a reader, and how soon and how smoothly do its labs respond?

    make book && python benchmarks/page.py [--repeats 5] [--pages 03_attention_lookup.html]

Every page of the built book is opened in an installed Chromium in three ways: from disk, over HTTP, and over HTTP with
the usual set-up for widgets. This set-up consists of myst-nb's default scripts (require.js and
@jupyter-widgets/html-manager) and anywidget's own loader, all served from this machine. The packages of the usual
set-up are fetched once with npm into _build/benchmark-peers; without npm, the rows of the usual set-up are left out. A
lab has responded when a key press on its main control has changed its status line. The labs on a page are tried one
after another, and the speed-up over the usual set-up is computed for the first lab. The far lab is the last lab of a
page: once the page is parsed, the page is scrolled to this lab, and the time until the lab is drawn is measured. The
column "moved" shows the layout shift. Most pages have practices, whose script is a separate file that is fetched when a
practice is near the viewport. A frame's work is printed in clock time and in processor time: on a busy machine, the
clock time is longer.
"""

import argparse
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anywidget
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
HTML_FOLDER = ROOT / "_build" / "html"
PEERS_FOLDER = ROOT / "_build" / "benchmark-peers"
PACKAGES = {"requirejs": "2.3.4", "@jupyter-widgets/html-manager": "1.0.6"}  # the versions in myst-nb's settings
USUAL_SETTINGS = (
    '<script src="/peers/requirejs@2.3.4/require.js"></script>'
    '<script src="/peers/@jupyter-widgets/html-manager@1.0.6/dist/embed-amd.js"'
    ' data-jupyter-widgets-cdn="/peers/"></script>'
)
MOUNT = re.compile(r'<script src="_static/mount\.js[^>]*></script>')
STATE = re.compile(r'<script type="application/vnd.jupyter.widget-state\+json">(.*?)</script>', re.DOTALL)
# The main control of a lab is the first element that matches this selector.
MAIN_CONTROL = '.tl-draggable, [aria-label^="Query at"], .tl-matrix[tabindex="0"], .tl-sheet, input[type=range]'
N_MOVES = 60

# Moves the focus to the first lab that has not responded yet, as soon as this lab is drawn, and records when the lab
# responds. If a lab is drawn only near the viewport, scrolls to this lab once the page is complete.
RESPONSE_SCRIPT = """
window.responses = [];
let focusedLab = null;
function focusNextLab() {
    const views = document.querySelectorAll('script[type$="widget-view+json"]');
    const place = views[window.responses.length]?.parentElement;
    const lab = place?.querySelector(".tl-lab");
    if (place && !lab && document.readyState === "complete") place.scrollIntoView();
    if (!lab?.querySelector(".tl-status")?.textContent || lab === focusedLab) return;
    focusedLab = lab;
    if (lab.matches(".tl-practice")) { // has no main control: counts as responding once it is drawn
        window.responses.push(performance.now());
        return focusNextLab();
    }
    // A lab that consists only of cells has no main control.
    const controls = [...lab.querySelectorAll(MAIN), ...lab.querySelectorAll("[tabindex='0']")];
    controls.find((control) => control.checkVisibility()).focus({ preventScroll: true });
    const observer = new MutationObserver(() => {
        observer.disconnect();
        window.responses.push(performance.now());
        focusNextLab();
    });
    observer.observe(lab.querySelector(".tl-status"), { childList: true, characterData: true, subtree: true });
}
new MutationObserver(focusNextLab).observe(document, { childList: true, subtree: true });
addEventListener("load", focusNextLab);
"""


# Adds up the layout shifts while the page loads.
SHIFT_SCRIPT = """
window.shift = 0;
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
# Scrolls to the page's last lab once the page is parsed, and records the time until this lab is complete.
FAR_LAB_SCRIPT = """
addEventListener("DOMContentLoaded", () => {
    const views = document.querySelectorAll('script[type$="widget-view+json"]');
    const place = views[views.length - 1].parentElement;
    const start = performance.now();
    const checkLab = () => {
        if (place.querySelector("[data-lab=ready]")) window.farLabTime = performance.now() - start;
        else requestAnimationFrame(checkLab);
    };
    place.scrollIntoView();
    checkLab();
});
"""


def fetch_peers():
    """Fetch those packages of the usual set-up that are missing; return whether all packages now exist."""
    for name, version in PACKAGES.items():
        folder = PEERS_FOLDER / f"{name}@{version}"
        if not folder.exists():
            if not shutil.which("npm"):
                return False
            PEERS_FOLDER.mkdir(parents=True, exist_ok=True)
            command = ["npm", "pack", "--silent", f"{name}@{version}"]
            npm = subprocess.run(command, cwd=PEERS_FOLDER, capture_output=True, text=True)
            if npm.returncode:
                return False
            with tarfile.open(PEERS_FOLDER / npm.stdout.split()[-1]) as archive:
                archive.extractall(PEERS_FOLDER / "unpacked", filter="data")
            folder.parent.mkdir(parents=True, exist_ok=True)
            (PEERS_FOLDER / "unpacked" / "package").rename(folder)
    return True


def anywidget_script():
    """Return the loader that anywidget installs for notebooks: the same file that anywidget publishes for pages."""
    for folder in Path(anywidget.__file__).parents:
        file = folder / "share" / "jupyter" / "nbextensions" / "anywidget" / "index.js"
        if file.exists():
            return file
    raise SystemExit("anywidget's script for notebooks is not in this environment.")


def file_of(path):
    """Return the file for an address of the local site: /ours/…, /usual/…, or /peers/…."""
    prefix, _, relative_path = unquote(path).lstrip("/").partition("/")
    if prefix != "peers":
        return HTML_FOLDER / relative_path
    return anywidget_script() if relative_path.startswith("anywidget@") else PEERS_FOLDER / relative_path


def read_lab_script(address):
    """Return a lab's script from the separate file that book/widget_state.py has written."""
    file = HTML_FOLDER / "_static" / address.partition("?")[0]
    return json.loads(file.read_text("utf-8").partition(" = ")[2].rstrip(";\n"))


def inline_texts(script):
    """Return a page's widget state for the usual set-up: each widget has the full text of its script and style."""
    data = json.loads(script[1])
    models = {name: model["state"] for name, model in data["state"].items()}
    for state in models.values():
        state.pop("layout", None)  # the book's page omits the layout too
        for trait in ("_esm", "_css"):
            if isinstance(source := state.get(trait), dict):
                state[trait] = read_lab_script(source["file"]) if "file" in source else models[source["as"]][trait]
    return script[0].replace(script[1], json.dumps(data).replace("</", "<\\/"))


class SiteHandler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = urlsplit(self.path).path
        file = file_of(path)
        if not file.is_file():
            return self.send_error(404)
        body = file.read_bytes()
        if path.startswith("/usual/") and file.suffix == ".html":
            body = STATE.sub(inline_texts, MOUNT.sub(USUAL_SETTINGS, body.decode())).encode()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self):
        with suppress(ConnectionError):  # a page may be closed before the whole page has been sent
            super().handle()

    def log_message(self, *_):
        pass


def lab_script_sizes(html):
    """Return three numbers: the bytes of the labs' inline scripts and of their script files, and the number of labs."""
    states = [json.loads(text)["state"] for text in STATE.findall(html)]
    texts = [model["state"].get("_esm") for models in states for model in models.values()]
    # A later lab of the same kind refers to the first lab's script.
    inline_scripts = {text for text in texts if isinstance(text, str)}
    files = {text["file"] for text in texts if isinstance(text, dict) and "file" in text}
    sizes = (sum(len(text.encode()) for text in group) for group in (inline_scripts, map(read_lab_script, files)))
    return (*sizes, html.count('"application/vnd.jupyter.widget-view+json"'))


def open_page(browser, address, script=""):
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(20_000)
    page.add_init_script(script)
    page.goto(address, wait_until="commit")
    return page


def measure_load(browser, address):
    """Load a page; return four numbers: local requests, their bytes, other requests, layout shift."""
    page = browser.new_context().new_page()
    page.add_init_script(SHIFT_SCRIPT)
    own_files, other_hosts = [], []

    def record_request(request):
        url = urlsplit(request.url)
        if url.scheme in ("blob", "data"):
            return
        is_local = url.scheme == "file" or url.hostname == "127.0.0.1"
        (own_files if is_local else other_hosts).append(
            Path(unquote(url.path)) if url.scheme == "file" else file_of(url.path)
        )

    page.on("request", record_request)
    page.goto(address, wait_until="networkidle")
    page.wait_for_timeout(500)
    shift = page.evaluate("window.shift")
    page.context.close()
    return len(own_files), sum(file.stat().st_size for file in own_files if file.is_file()), len(other_hosts), shift


def far_lab_time(browser, address):
    """Scroll to a page's last lab once the page is parsed; return the milliseconds until the lab is drawn."""
    page = open_page(browser, address, FAR_LAB_SCRIPT)
    page.wait_for_function("window.farLabTime !== undefined")  # 0 if the lab is already complete
    milliseconds = page.evaluate("window.farLabTime")
    page.context.close()
    return milliseconds


def response_times(browser, address, n_labs):
    """Return the milliseconds from the start of navigation until the first and the last lab have responded to a key."""
    page = open_page(browser, address, RESPONSE_SCRIPT.replace("MAIN", repr(MAIN_CONTROL)))
    deadline = time.monotonic() + 20
    while page.evaluate("window.responses.length") < n_labs:
        if time.monotonic() > deadline:
            sys.exit(f"A lab of {address} does not respond: is its main control among those of MAIN_CONTROL?")
        for key in ("ArrowRight", "ArrowDown", "ArrowUp"):  # at an edge, one of these keys has no effect
            # Press keys only inside a lab, since elsewhere an arrow key opens the next page.
            if page.evaluate("document.activeElement?.closest('.tl-lab') !== null"):
                page.keyboard.press(key)
            page.evaluate("new Promise(requestAnimationFrame)")  # otherwise the next key may undo this key's change
    responses = page.evaluate("window.responses")
    page.context.close()
    return responses[0], responses[-1]


def pointer_path(control):
    """Yield the pointer's path: along a slider, to and fro over a draggable size, over cells, or around the plane."""
    box = control.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for i in range(N_MOVES + 1):
        angle = 2 * math.pi * i / N_MOVES
        if "tl-draggable" in (control.get_attribute("class") or ""):
            yield x + 90 * math.sin(angle), y
        elif control.evaluate("node => node.tagName") == "INPUT":
            yield box["x"] + 8 + (box["width"] - 16) * i / N_MOVES, y
        elif re.search("tl-(matrix|sheet)", control.get_attribute("class") or ""):
            yield x + (box["width"] / 2 - 8) * math.sin(3 * angle), y + (box["height"] / 2 - 8) * math.cos(angle)
        else:
            yield x - 100 * (1 - math.cos(angle)), y + 100 * math.sin(angle)


def drag(browser, page, control):
    """Drag once; return three durations: the longest task in clock and processor time, and the most work per move."""
    points = list(pointer_path(control))
    page.mouse.move(*points[0])
    page.mouse.down()
    browser.start_tracing(page=page, categories=["devtools.timeline", "disabled-by-default-devtools.timeline"])
    for point in points[1:]:
        page.mouse.move(*point)
        time.sleep(0.016)
    trace = json.loads(browser.stop_tracing())["traceEvents"]
    page.mouse.up()

    moves = [e for e in trace if e["name"] == "EventDispatch" and e["args"]["data"]["type"] == "pointermove"]
    moves.sort(key=lambda event: event["ts"])
    thread = (moves[0]["pid"], moves[0]["tid"])
    starts = [move["ts"] for move in moves] + [moves[-1]["ts"] + 50_000]
    tasks = [e for e in trace if e["name"] == "RunTask" and e.get("dur") and (e["pid"], e["tid"]) == thread]
    tasks = [e for e in tasks if e["ts"] + e["dur"] > starts[0] and e["ts"] < starts[-1]]
    # A task belongs to the last move that began before the task ended: the move that the task handles.
    work = [sum(e["dur"] for e in tasks if a <= e["ts"] + e["dur"] < b) for a, b in pairwise(starts)]
    longest = max(tasks, key=lambda event: event["dur"])
    return longest["dur"] / 1000, max(e.get("tdur", 0) for e in tasks) / 1000, max(work) / 1000


def median_drag(browser, page, lab):
    """Drag the first visible main control three times; return the medians of the results of `drag`."""
    control = lab.locator(MAIN_CONTROL).locator("visible=true").first
    control.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
    return [statistics.median(column) for column in zip(*(drag(browser, page, control) for _ in range(3)))]


def measure_smoothness(browser, address):
    """Run `median_drag` for each lab, and again after a click on each of the lab's "step by step" buttons."""
    page = open_page(browser, address)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)
    for lab in page.locator(".tl-lab:not(.tl-practice)", has=page.locator(MAIN_CONTROL).locator("visible=true")).all():
        yield median_drag(browser, page, lab)
        for button in lab.get_by_role("button", name="step by step").all():
            button.click()
            yield median_drag(browser, page, lab)
    page.context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pages", nargs="*", help="file names; all pages when left out")
    options = parser.parse_args()
    pages = options.pages or sorted(file.name for file in HTML_FOLDER.glob("*.html"))
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
    if not pages:
        sys.exit("There is no book in _build/html: run `make book` first.")
    if not chromium:
        sys.exit("No Chromium is installed: on Debian, run sudo apt install chromium.")
    has_peers = fetch_peers()
    if not has_peers:
        print("The usual set-up is left out: its packages could not be fetched (npm and a network are needed, once).")

    server = ThreadingHTTPServer(("127.0.0.1", 0), SiteHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_address[1]}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print_report(browser, site, pages, options.repeats, has_peers)
        browser.close()


def print_report(browser, site, pages, repeats, has_peers):
    header = f"{'page':<30}{'opened':<8}{'requests':>9}{'kB':>8}{'to other hosts':>16}{'moved':>8}"
    print(f"{header}{'first lab':>12}{'all labs':>12}")
    details = []
    # The time of the first page includes the browser's start, so this result is not used.
    measure_load(browser, (HTML_FOLDER / pages[0]).as_uri())
    for name in pages:
        script_bytes, practice_bytes, n_labs = lab_script_sizes((HTML_FOLDER / name).read_text("utf-8"))
        setups = {"disk": (HTML_FOLDER / name).as_uri(), "http": f"{site}/ours/{name}"}
        if has_peers and n_labs:
            setups["usual"] = f"{site}/usual/{name}"
        times = {setup: [] for setup in setups}
        for _ in range(repeats if n_labs else 0):
            for setup, address in setups.items():
                times[setup].append(response_times(browser, address, n_labs))
        for setup, address in setups.items():
            requests, size, n_other_hosts, shift = measure_load(browser, address)
            medians = [statistics.median(column) for column in zip(*times[setup])]
            response_text = "".join(f"{median:>9.0f} ms" for median in medians) if n_labs else f"{'no lab':>12}"
            print(
                f"{name:<30}{setup:<8}{requests:>9}{size / 1000:>8.0f}{n_other_hosts:>16}{shift:>8.3f}{response_text}",
                flush=True,
            )
        if n_labs:
            script_bytes += (ROOT / "book" / "mount.js").stat().st_size
            ratio = statistics.median(b[0] / a[0] for a, b in zip(times["http"], times["usual"])) if has_peers else None
            first_lab_ms = max(statistics.median(first for first, _ in times[setup]) for setup in ("disk", "http"))
            frames = list(measure_smoothness(browser, setups["disk"]))
            far_lab_ms = statistics.median(far_lab_time(browser, setups["http"]) for _ in range(repeats))
            longest = [max(column) for column in zip(*frames)]
            details.append((name, first_lab_ms, far_lab_ms, ratio, script_bytes, practice_bytes, longest))

    titles = ("first lab", "far lab", "usual/ours", "lab script", "when near", "longest task", "computed", "busy move")
    print(f"\n{'page':<30}" + "".join(f"{title:>14}" for title in titles))
    for name, first_lab_ms, far_lab_ms, ratio, script_bytes, practice_bytes, frame in details:
        ratio_text = "not measured" if ratio is None else f"{ratio:.1f} ×"
        cells = [
            f"{first_lab_ms:.0f} ms",
            f"{far_lab_ms:.0f} ms",
            ratio_text,
            f"{script_bytes / 1000:.1f} kB",
            f"{practice_bytes / 1000:.1f} kB",
            *(f"{time:.1f} ms" for time in frame),
        ]
        print(f"{name:<30}" + "".join(f"{cell:>14}" for cell in cells))
    aims = ("≤ 1000 ms", "≤ 300 ms", "≥ 3 ×", "≤ 60 kB", "", "", "≤ 16 ms")
    print(f"{'aims':<30}" + "".join(f"{aim:>14}" for aim in aims))


if __name__ == "__main__":
    main()
