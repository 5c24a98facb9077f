"""Tests of every page of the built book, as a file and in a browser, which opens the page from disk and from a site."""

import json
import os
import re
import threading
from functools import cache
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib.image
import nbformat
import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup

import notebook_labs
from accessibility import violations
from book.moved_pages import MOVED
from lab_pictures import MAX_PICTURE_BYTES, draw_all
from sampling import sample

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
SITE = CONFIG["html"]["baseurl"]  # the address is empty until `make repository` stores one
PREFIX = urlsplit(SITE).path or "/"

FOLDERS = ("", "assignments", "solutions", "_modules/transformer_lab")
FILES = (path.relative_to(HTML).as_posix() for folder in FOLDERS for path in HTML.glob(f"{folder}/*.html".lstrip("/")))
PAGES = sorted(page for page in FILES if page.removesuffix(".html") not in MOVED)  # tests/book/test_moved_pages.py
PAGES.remove("embed.html")  # tests/book/test_embed.py tests this page, which shows one lab in a frame
NOTEBOOKS = [page for page in PAGES if Path(ROOT, "chapters", page).with_suffix(".ipynb").is_file()]
CHAPTERS = [page for page in NOTEBOOKS if page[0].isdigit()]
# The 404 page is shown at addresses that do not exist; readers never open it from disk.
PAGES_OF_BOOK = [page for page in PAGES if page != "404.html"]

if not NOTEBOOKS:
    reason = "the book is not built: run `make book`"
    assert not os.environ.get("TRANSFORMER_LAB_REQUIRE_BROWSER"), reason
    pytest.skip(reason, allow_module_level=True)


# As files


@cache
def soup(page):
    return BeautifulSoup((HTML / page).read_text("utf-8"), "html.parser")


@cache
def ids_of(page):
    return {element["id"] for element in soup(page).select("[id]")}


def linked_addresses(page):
    """Return every address in the ``href`` and ``src`` attributes of the page."""
    return [element[name] for name in ("href", "src") for element in soup(page).select(f"[{name}]")]


VOID_TAGS = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
BLOCK_TAGS = {
    "article",
    "blockquote",
    "details",
    "div",
    "footer",
    "h1",
    "h2",
    "h3",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
}


class StructureChecker(HTMLParser):
    """Find elements that are closed in the wrong order, or that a browser would move elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.problems = [], []

    def handle_starttag(self, tag, attributes):
        if tag == "p" and "summary" in self.open:
            self.problems.append(f"<p> inside <summary> in line {self.getpos()[0]}")
        if tag in BLOCK_TAGS and "p" in self.open:
            self.problems.append(f"<{tag}> inside <p> in line {self.getpos()[0]}")
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass  # elements of SVG close themselves

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> in line {self.getpos()[0]} closes something else")


@pytest.mark.parametrize("page", PAGES)
def test_html_is_well_formed(page):
    structure = StructureChecker()
    structure.feed((HTML / page).read_text("utf-8"))
    assert structure.problems == [] and structure.open == []


@pytest.mark.parametrize("page", PAGES)
def test_ids_are_unique(page):
    ids = [element["id"] for element in soup(page).select("[id]")]
    assert [name for name in set(ids) if ids.count(name) > 1] == []


@pytest.mark.parametrize("page", PAGES)
def test_internal_links_lead_somewhere(page):
    broken_links = []
    for target in linked_addresses(page):
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        path = unquote(parts.path)
        path = path.removeprefix(PREFIX) or "index.html" if page == "404.html" and path else path
        file = ((HTML / page).parent / path if path else HTML / page).resolve()
        exists = file.is_file()
        if exists and parts.fragment and file.suffix == ".html":
            exists = unquote(parts.fragment) in ids_of(file.relative_to(HTML).as_posix())
        if not exists and target != "#":
            broken_links.append(target)
    assert broken_links == []


@pytest.mark.parametrize("page", PAGES)
def test_page_names_no_file_of_a_different_host(page):
    fetched_elements = soup(page).select('script[src], img[src], iframe[src], link[href]:not([rel="canonical"])')
    assert [element for element in fetched_elements if urlsplit(element.get("src") or element["href"]).netloc] == []
    text = re.sub(r"<code.*?</code>", "", str(soup(page)), flags=re.DOTALL)  # code may quote a host's name
    assert not re.search(r"unpkg|cdnjs|jsdelivr|googleapis", text)


def test_styles_name_no_file_of_a_different_host():
    for file in HTML.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", file.read_text("utf-8")), file


@pytest.mark.parametrize("page", PAGES)
def test_page_has_title_description_and_card(page):
    def meta(name):
        return soup(page).select_one(f'meta[name="{name}"], meta[property="{name}"]')["content"]

    assert "Transformer Lab" in soup(page).title.text and len(soup(page).select("meta[name=viewport]")) == 1
    assert soup(page).html["lang"] == "en"
    assert 50 < len(meta("description")) <= 200
    assert meta("og:title") and meta("og:description")
    if not SITE:
        assert not soup(page).select('[rel="canonical"], [property="og:url"], [property^="og:image"]')
        return
    assert meta("og:image:alt")
    canonical = [link["href"] for link in soup(page).select('[rel="canonical"]')]
    assert canonical == ([] if page in ("404.html", "search.html") or page.startswith("_") else [meta("og:url")])
    assert meta("og:url").startswith(SITE) and meta("og:image").startswith(SITE)
    card = (HTML / meta("og:image").removeprefix(SITE)).read_bytes()
    assert card[1:4] == b"PNG"
    assert (int.from_bytes(card[16:20], "big"), int.from_bytes(card[20:24], "big")) == (1200, 630)


@pytest.mark.parametrize("page", PAGES)
def test_no_link_has_an_invalid_host(page):
    assert not any(".invalid" in target for target in linked_addresses(page))


def test_the_wheel_is_next_to_the_pages():
    (wheel,) = HTML.glob("*.whl")
    assert re.fullmatch(r"transformer_lab-[\d.]+-py3-none-any\.whl", wheel.name)
    assert wheel.stat().st_size < 1_600_000  # 0.4 MB of the wheel are the checkpoints of WholeLab


def test_no_two_pages_share_a_description():
    descriptions = [soup(page).select_one('meta[name="description"]')["content"] for page in [*NOTEBOOKS, "how.html"]]
    assert len(set(descriptions)) == len(descriptions)


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_notebook_can_be_opened_in_colab_and_downloaded(page):
    root = "../" * page.count("/")
    buttons = [button["href"] for button in soup(page).select(".article-header-buttons a")]
    repository, branch = CONFIG["repository"]["url"], CONFIG["repository"]["branch"]
    name = page.replace(".html", ".ipynb")
    slug = urlsplit(repository).path.strip("/")
    colab = f"https://colab.research.google.com/github/{slug}/blob/{branch}/chapters/{name}"
    binder = f"https://mybinder.org/v2/gh/{slug}/{branch}?urlpath=lab/tree/chapters/{name}"
    links = {colab, binder, repository} if SITE else set()
    assert {button for button in buttons if urlsplit(button).netloc} == links
    assert json.loads((HTML / "_sources" / name).read_text("utf-8"))["cells"]
    assert f"{root}_sources/{name}" in buttons


@pytest.mark.parametrize("page", PAGES)
def test_scripts_are_loaded_where_they_are_needed(page):
    scripts = str([script.get("src", "") for script in soup(page).select("script")])
    labs = soup(page).select('script[type="application/vnd.jupyter.widget-view+json"]')
    assert ("mount.js" in scripts) == bool(labs)
    styles = str([link["href"] for link in soup(page).select('link[rel="stylesheet"]')])
    assert ("mathematics.css" in styles) == bool(soup(page).select("math"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_and_commas_in_code_would_have_the_colour_of_text(theme):
    """Since names and commas have the colour of text, book/highlighting.py writes no markup for them."""
    style = (HTML / "_static" / "pygments.css").read_text("utf-8")
    rule = re.compile(rf'data-theme="{theme}"\] \.highlight(?: \.([npwk]))? ?{{(?:[^}}]*;)? ?color: (#\w+)')
    colours = dict(rule.findall(style))
    # If the style sheet has no rule for names or commas, they have the colour of text.
    assert {colours.get(token, colours[""]) for token in "npw"} == {colours[""]}
    assert colours["k"] != colours[""]


LARGER_FIRST_VISITS = {
    "07_parameters.html": 1_250_000,  # the longest chapter: its 219 links to terms add 25 kB
}


@pytest.mark.parametrize("page", PAGES_OF_BOOK)
def test_a_first_visit_fetches_at_most_1200_kb(page):
    """Scripts and style sheets count as part of the page; figures are loaded later, when they come near the window."""
    addresses = [link["href"] for link in soup(page).select('link[rel="stylesheet"]')]
    addresses += [script["src"] for script in soup(page).select("script[src]")]
    files = {HTML / page} | {(HTML / page).parent / urlsplit(address).path for address in addresses}
    assert sum(file.stat().st_size for file in files) <= LARGER_FIRST_VISITS.get(page, 1_200_000)


@pytest.mark.parametrize("page", PAGES)
def test_each_lab_has_a_picture_for_browsers_without_scripts(page):
    for view in soup(page).select('script[type="application/vnd.jupyter.widget-view+json"]'):
        picture = view.find_next_sibling("noscript").img
        assert picture, f"a lab of {page} has no picture: run `make pictures`, then `make book`"
        assert picture["alt"] and (HTML / page).parent.joinpath(picture["src"]).stat().st_size <= MAX_PICTURE_BYTES


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_page_holds_the_labs_that_it_shows_and_each_script_once(page):
    views = soup(page).select('script[type="application/vnd.jupyter.widget-view+json"]')
    model_ids = {json.loads(view.text)["model_id"] for view in views}
    states = soup(page).select('script[type="application/vnd.jupyter.widget-state+json"]')
    stored_states = {
        model: stored["state"] for state in states for model, stored in json.loads(state.text)["state"].items()
    }
    assert set(stored_states) == model_ids
    scripts = [state["_esm"] for state in stored_states.values() if isinstance(state["_esm"], str)]
    assert len(set(scripts)) == len(scripts)


@pytest.mark.parametrize("page", CHAPTERS)
def test_alerts_are_admonitions(page):
    article = soup(page).select_one("article")
    assert "[!" not in article.text and not article.select("blockquote")
    assert article.select(".tl-remember") and not article.select(".admonition.note")


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_every_lab_is_a_figure(page):
    """Whether or not the weights of published models are installed, the page shows no text in place of a lab."""
    path = Path(ROOT, "chapters", page).with_suffix(".ipynb")
    assert len(soup(page).select('script[type="application/vnd.jupyter.widget-view+json"]')) == len(
        notebook_labs.lab_outputs(nbformat.read(path, 4))
    )
    outputs = [element.text for element in soup(page).select(".cell_output")]
    assert not [text for text in outputs if notebook_labs.LAB.match(text.strip()) or "a live figure appears" in text]


# In a browser


@pytest.fixture(scope="session")
def site():
    """Serve the book with its 404 page, under the path of its published address; yield the local address."""

    class Server(SimpleHTTPRequestHandler):
        def translate_path(self, path):
            is_inside = path.startswith(PREFIX)
            return super().translate_path(path.removeprefix(PREFIX)) if is_inside else str(HTML / "outside")

        def send_error(self, code, message=None, explain=None):
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((HTML / "404.html").read_bytes())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Server(*args, directory=str(HTML)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def visit(browser):
    """Return a function that opens a page.

    When the test ends, it fails if a request failed or went to a host other than the page's, or if the console shows an
    error or a warning.
    """
    contexts, problems = [], []

    def open_page(address, settle=draw_all, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        host_of_page = urlsplit(address)[:2]

        def check_host(request):
            if request.url.startswith(("data:", "blob:")):
                return
            if urlsplit(request.url)[:2] != host_of_page:
                problems.append(f"requested from a different host: {request.url}")

        def report_failure(request):
            if request.failure != "net::ERR_ABORTED":  # leaving a page aborts its pending requests
                problems.append(f"failed: {request.url}: {request.failure}")

        page.on("request", check_host)
        page.on("requestfailed", report_failure)
        page.on(
            "response",
            lambda response: response.status >= 400 and problems.append(f"{response.status}: {response.url}"),
        )
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on(
            "console",
            lambda console: console.type in ("error", "warning") and problems.append(f"console: {console.text}"),
        )
        page.goto(address)
        if settle:
            settle(page)
        return page

    open_page.problems = problems
    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def serious_violations(page, only_colours=False):
    """Return the problems that axe-core calls serious or critical."""
    return [violation for violation in violations(page, only_colours) if violation[0] in ("serious", "critical")]


# For each background, keep one code word of each kind: axe-core would take minutes for thousands of words.
KEEP_ONE_WORD_OF_EACH_KIND = """() => {
    const seen = new Set();
    for (const word of document.querySelectorAll('.highlight span')) {
        const kind = `${word.className} on ${word.closest('.highlight').parentNode.className}`;
        if (seen.has(kind)) word.replaceWith(...word.childNodes);
        seen.add(kind);
    }
    document.body.normalize();
}"""


# Selectors of the book that match parts of a lab, because the book and the lab use the same class.
SELECTORS_THAT_MATCH_IN_LABS = """() => {
    const selectorsOf = (rules) => [...rules].flatMap((rule) => rule.selectorText ?? selectorsOf(rule.cssRules ?? []));
    const sheets = [...document.styleSheets].filter(({ ownerNode }) => ownerNode.tagName === "LINK");
    return sheets.flatMap(({ cssRules }) => selectorsOf(cssRules)).filter((selector) => {
        const classes = (selector.match(/[.]tl-[a-z-]+/g) ?? []).filter((name) => name !== ".tl-lab");
        const isInLab = (node) => classes.some((name) => node.closest(name)?.closest(".tl-lab"));
        return classes.length && [...document.querySelectorAll(selector.split("::")[0])].some(isInLab);
    });
}"""


def loading_failure(page, name):
    """Return None if all labs and fonts of a page have loaded, and otherwise a message about their states."""
    labs = soup(name).select('script[type="application/vnd.jupyter.widget-view+json"]')
    lab_states = page.eval_on_selector_all("[data-lab]", "labs => labs.map(lab => lab.dataset.lab)")
    font_statuses = page.evaluate(
        "[...document.fonts].filter(({ family }) => /STIX/.test(family)).map(({ status }) => status)"
    )
    expected = ["ready"] * len(labs), ["loaded"] * bool(soup(name).select("math"))
    actual = lab_states, font_statuses
    return None if actual == expected else f"found {actual}, wanted {expected}"


# Pages of one kind load the same files, so one page of each kind is tested, if possible a page with labs.
PAGES_OF_EACH_KIND = ["index.html", "glossary.html", CHAPTERS[-1], "assignments/project.html", "solutions/project.html"]


@pytest.mark.parametrize("name", PAGES_OF_EACH_KIND)
def test_labs_and_fonts_of_a_page_load_from_disk(visit, name):
    assert loading_failure(visit((HTML / name).as_uri()), name) is None


# Assignments and solutions are two kinds of pages: the first page of each kind is tested, and so are the project's
# pages.
FIRST_PAGES = [
    next(page for page in PAGES_OF_BOOK if page.startswith(folder)) for folder in ("assignments/", "solutions/")
]
SAMPLED_PAGES = [page for page in PAGES_OF_BOOK if "/" not in page or page in (*PAGES_OF_EACH_KIND, *FIRST_PAGES)]


@pytest.mark.parametrize("name", sample(PAGES_OF_BOOK, SAMPLED_PAGES))
def test_a_page_loads_its_labs_is_accessible_and_fits_the_window(visit, site, name):
    page = visit(site + name, viewport={"width": 1280, "height": 800})
    assert loading_failure(page, name) is None
    assert page.url == site + name, "a lab in its initial state must not change the address"
    assert page.evaluate(SELECTORS_THAT_MATCH_IN_LABS) == []
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    page.evaluate(KEEP_ONE_WORD_OF_EACH_KIND)
    for theme, width in (("light", 1280), ("dark", 360)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(300)  # the change of colours takes a moment
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate("document.documentElement.scrollWidth") == width
        # On a phone, the parts around the text are the same on all pages; for notebooks, only the contrast is checked.
        assert serious_violations(page, only_colours=theme == "dark" and name in NOTEBOOKS) == [], (
            f"{theme}, {width} px"
        )


@pytest.mark.parametrize("name", CHAPTERS[:1])
def test_the_script_of_practices_is_fetched_when_a_practice_comes_near(visit, name):
    page = visit((HTML / name).as_uri(), settle=None)
    lab_boxes, script = page.locator(".lab-placeholder"), page.locator("script[src*='practice-lab.js']")
    page.wait_for_function("document.readyState === 'complete' && !document.querySelector('.lab-placeholder .tl-lab')")
    page.wait_for_timeout(300)
    assert lab_boxes.count() > 1 and script.count() == 0
    lab_boxes.first.scroll_into_view_if_needed()
    page.locator(".tl-practice").first.wait_for()
    assert script.count() == 1


def search_for(visit, search_page, query):
    """Return the search page and its results, which are the addresses of sections, best first."""
    page = visit(f"{search_page}?q={query}")
    page.get_by_role("status").filter(has_text="Search finished").wait_for()
    return page, page.eval_on_selector_all(
        "#search-results li a", "links => links.map((link) => link.getAttribute('href'))"
    )


@pytest.mark.parametrize("source", ["disk", "site"])
@pytest.mark.parametrize("query", ["d_model", "q_len", "In one table", "contiguous"])
def test_search_finds_sections(visit, site, query, source):
    search_page = (HTML / "search.html").as_uri() if source == "disk" else site + "search.html"
    page, hits = search_for(visit, search_page, query)
    assert len(hits) > 5 and sum("#" in address for address in hits) > len(hits) / 2
    page.locator("#search-results a").first.click()
    page.wait_for_load_state()
    path, section = page.url.split("#")
    assert Path(urlsplit(path).path).name in [*CHAPTERS, "glossary.html"]
    assert page.locator(f"#{section}").is_visible()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("layernorm", "glossary.html#layer-norm"),
        ("layer normalisation", "glossary.html#layer-norm"),
        ("multihead", "glossary.html#multi-head-attention"),
        ("kv cache", "glossary.html#keyvalue-cache"),
        ("scaled_dot_product_attention", "api.html#scaled-dot-product-attention"),
        ("rms_norm", "api.html#rms-norm"),
        ("MaskLab", "api.html#labs-masklab"),
        ("mask inverted", "museum.html#mask-inverted"),
        ("loss too good", "museum.html#mask-inverted"),
        ("padding changes the output", "museum.html#positions-count-the-padding-in-front"),
        ("pad_token eos_token never stops", "museum.html#end-of-the-text-hidden-from-the-loss"),
        ("softmax attention", "08_linear_attention.html#what-is-linear-attention"),
    ],
)
def test_search_finds_a_page_by_other_spellings_and_words(visit, site, query, expected):
    assert expected in search_for(visit, f"{site}search.html", query)[1][:3]


def test_search_puts_solutions_last_and_says_when_it_finds_nothing(visit, site):
    _, hits = search_for(visit, f"{site}search.html", "causal mask")
    are_solutions = [address.startswith("solutions/") for address in hits]
    assert hits and are_solutions == sorted(are_solutions)
    page, hits = search_for(visit, f"{site}search.html", "zzzz")
    assert hits == [] and "no results for “zzzz”" in page.locator("#search-results").inner_text()
    page, _ = search_for(visit, f"{site}search.html", "<img src=zzzz>")
    status = page.get_by_role("status").inner_text()
    assert (
        "for “<img src=zzzz>”" in status
        and status.endswith("No section contains img, zzzz.")
        and not page.locator("#search-results img").count()
    )


@pytest.mark.parametrize("page", PAGES)
def test_assignments_and_solutions_are_folded_on_other_pages(page):
    folds = {fold.summary.text: fold.has_attr("open") for fold in soup(page).select(".bd-links details")}
    folder = page.partition("/")[0]
    assert folds == {"Assignments": folder == "assignments", "Solutions": folder == "solutions"}


@pytest.mark.parametrize("page", PAGES)
def test_every_icon_is_in_the_reduced_font(page):
    rules = (HTML / "_static" / "icons.css").read_text("utf-8")
    names = {name for icon in soup(page).select("i[class*=fa-]") for name in icon["class"] if name.startswith("fa-")}
    assert [name for name in names if f".{name}" not in rules] == []


def test_a_question_says_whether_the_choice_was_right(visit, site):
    page = visit(f"{site}{CHAPTERS[2]}#predict-first")
    score = page.locator("#predict-first .score")
    assert score.inner_text() == "3 questions. Your first choice counts."
    options = page.locator("#predict-first details")
    options.nth(2).locator("summary").click()  # right
    assert options.nth(2).locator("summary").inner_text().endswith("✓ Right")
    options.nth(3).locator("summary").focus()
    page.keyboard.press("Enter")  # wrong
    assert options.nth(3).locator("summary").inner_text().endswith("✗ No")
    options.nth(4).locator("summary").click()  # right at the second attempt
    assert options.nth(4).get_attribute("data-answer") == "right"
    assert score.inner_text() == "1 of 2 right at the first try, 1 question to go."
    page.pdf()  # printing opens all folds, but answers no question
    assert score.inner_text() == "1 of 2 right at the first try, 1 question to go."
    options.nth(6).locator("summary").click()
    assert score.inner_text() == "2 of 3 right at the first try."


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_a_page_states_the_sizes_of_its_figures(page):
    for figure in soup(page).select(".cell_output img:not(.lab-picture img)"):
        assert figure.get("width") and figure.get("height") and figure["loading"] == "lazy"


@pytest.mark.parametrize("page", CHAPTERS)
def test_figures_of_a_chapter_are_numbered_and_can_be_linked_to(page):
    figures = soup(page).select(".cell_output a.tl-enlarge img")
    number = int(page[:2])
    expected = [f"figure-{number}-{k}" for k in range(1, len(figures) + 1)]
    assert [caption["id"] for caption in soup(page).select(".tl-figure-caption")] == expected


def test_a_figure_opens_at_its_full_size_and_scrolls_on_a_phone(visit, site):
    page = visit(site + "06_normalization.html", viewport={"width": 360, "height": 740})
    link = page.locator("a.tl-wide-figure").first
    link.press("Enter")
    dialog = page.get_by_role("dialog", name=link.locator("xpath=..").locator(".tl-figure-caption strong").inner_text())
    full_size_image = dialog.locator("img")
    assert full_size_image.bounding_box()["width"] >= int(full_size_image.get_attribute("width")) > 360
    assert dialog.bounding_box()["width"] <= 360
    page.keyboard.press("Escape")
    assert not dialog.is_visible() and link.evaluate("link => link === document.activeElement")
    link.click()
    dialog.get_by_role("button", name="Close").click()
    assert not dialog.is_visible()


def test_on_a_phone_a_wrapped_line_of_code_is_indented(visit):
    page = visit((HTML / "06_normalization.html").as_uri(), viewport={"width": 360, "height": 740})
    line = page.locator(".cell_input .tl-line[style*='--in:4']:visible").first
    character_positions = """line => {
        const range = document.createRange();
        range.selectNodeContents(line);
        return [...range.getClientRects()].filter(({ width }) => width > 4).map(({ left }) => left);
    }"""
    first, *_, last = line.evaluate(character_positions)
    character_width = line.evaluate("line => parseFloat(getComputedStyle(line).paddingLeft)") / 6
    assert last >= line.bounding_box()["x"] + 6 * character_width - 1 and first < last


def test_a_table_that_goes_on_beyond_the_edge_is_marked(visit):
    page = visit((HTML / "07_parameters.html").as_uri(), viewport={"width": 360, "height": 740})
    table = page.locator(".pst-scrollable-table-container[data-goes-on]").first.element_handle()
    table.evaluate("table => table.scrollTo(10000, 0)")
    page.wait_for_function("table => !table.hasAttribute('data-goes-on')", arg=table)


def test_lines_of_text_and_code_are_long_enough(visit, site):
    """In a 1200-pixel window, a line has room for at least 88 characters of code, or 60 to 97 characters of prose."""
    page = visit(site + CHAPTERS[4], viewport={"width": 1200, "height": 850})
    code, prose = page.evaluate("""() => {
        const context = document.createElement("canvas").getContext("2d");
        const charactersPerLine = (element, sample) => {
            const { font, paddingLeft, paddingRight } = getComputedStyle(element);
            context.font = font;
            const space = element.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
            return (space * sample.length) / context.measureText(sample).width;
        };
        const paragraphs = [...document.querySelectorAll(".bd-article section > p")];
        const longest = paragraphs.reduce((a, b) => (a.textContent.length > b.textContent.length ? a : b));
        const text = paragraphs.map((each) => each.textContent).join(" "); // one paragraph may have narrow letters
        return [charactersPerLine(document.querySelector(".cell_input pre"), "0"), charactersPerLine(longest, text)];
    }""")
    assert code >= 88 and 60 <= prose <= 97


def linked_sections():
    """Return, for each page, the sections to which the glossary and the notes link."""
    sections_of = {}
    for name in ("glossary.html", "notes.html"):
        for link in soup(name).select("article a[href*='.html#']:not(.term)"):
            page, _, section = link["href"].partition("#")
            sections_of.setdefault(page, set()).add(section)
    return sections_of


# Return, for each section, how far its heading is from the top of the window after a link has led to the section.
HEADING_POSITIONS = """async (sections) => {
    const positions = {};
    for (const name of sections) {
        location.hash = name;
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        positions[name] = document.querySelector(":target :is(h1, h2, h3)").getBoundingClientRect().y;
    }
    return positions;
}"""


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("name", linked_sections())
def test_a_link_lands_on_its_heading(visit, site, name, width):
    page = visit(site + name, viewport={"width": width, "height": 800})
    positions = page.evaluate(HEADING_POSITIONS, sorted(linked_sections()[name]))
    assert {section: y for section, y in positions.items() if not 60 <= y <= 68} == {}


@pytest.mark.parametrize("width", [1440, 360])
def test_a_shared_link_lands_on_its_heading_while_the_page_comes_to_life(visit, site, width):
    name, sections = max(linked_sections().items(), key=lambda item: len(item[1]))
    section = sorted(sections)[-1]
    page = visit(f"{site}{name}#{section}", settle=None, viewport={"width": width, "height": 800})
    page.evaluate("document.fonts.ready.then(() => true)")
    page.locator("[data-lab=ready]").first.wait_for()
    page.wait_for_timeout(1000)  # labs, fonts and formulas have loaded, but the heading must not have moved
    assert 60 <= page.locator(f"#{section} :is(h1, h2, h3)").first.bounding_box()["y"] <= 68


def test_a_missing_page_says_so(visit, site):
    address = f"{site}no/such/page.html"
    page = visit(address)
    # Nothing but the page itself is missing; the console reports the missing page as a second problem.
    assert [problem for problem in visit.problems if not problem.startswith("console:")] == [f"404: {address}"]
    assert len(visit.problems) == 2
    visit.problems.clear()
    assert page.locator("h1").inner_text() == "Page not found"
    assert serious_violations(page) == []
    page.locator("nav.bd-links a").first.click()
    page.wait_for_load_state()
    assert page.url == f"{site}index.html"


def test_theme_is_kept_from_page_to_page(visit, site):
    page = visit(f"{site}index.html", color_scheme="light")
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.locator(".article-header-buttons .theme-switch-button").click()
    page.goto(site + CHAPTERS[0])
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("name", ["index.html", CHAPTERS[-1]])
def test_a_page_can_be_read_without_scripts(visit, site, name):
    page = visit(site + name, settle=None, java_script_enabled=False, color_scheme="dark")
    for picture in page.locator(".lab-picture img").all():
        picture.scroll_into_view_if_needed()
        assert picture.bounding_box()["height"] > 100
    labs = soup(name).select('script[type="application/vnd.jupyter.widget-view+json"]')
    assert page.locator(".lab-picture p").count() == len(labs)
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert all(formula.bounding_box()["width"] for formula in page.locator(".formula > math").all())


def test_a_printed_page_keeps_the_labs_colours(visit):
    page = visit((HTML / CHAPTERS[0]).as_uri())
    page.emulate_media(media="print")
    colours = page.eval_on_selector_all(
        ".tl-lab, .tl-lab *", "all => [...new Set(all.map((element) => getComputedStyle(element).printColorAdjust))]"
    )
    assert colours == ["exact"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_have_the_page_s_background_and_can_be_read(visit, theme):
    page = visit((HTML / "05_masks.html").as_uri(), color_scheme=theme, viewport={"width": 1280, "height": 900})
    figure = page.locator(".cell_output img").first
    figure.evaluate("figure => figure.scrollIntoView({ block: 'center' })")
    page.wait_for_timeout(300)  # the change of colours takes a moment
    colours = (255 * matplotlib.image.imread(BytesIO(figure.screenshot()))[..., :3]).round()
    colour = colours[8, 8]  # in the margin
    background = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert abs(colour - np.array(background[:3], float)).max() <= 2

    linear = np.where(colours <= 10, colours / 3294, ((colours / 255 + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722]) + 0.05
    assert luminance.max() / luminance.min() > 7


@pytest.mark.parametrize("name", CHAPTERS)
def test_on_a_phone_most_code_is_read_without_scrolling(visit, name):
    page = visit((HTML / name).as_uri(), viewport={"width": 360, "height": 780})
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    wide_blocks = page.locator("article pre:visible").evaluate_all(
        "blocks => blocks.map((block) => block.scrollWidth > block.clientWidth + 1)"
    )
    assert sum(wide_blocks) <= len(wide_blocks) / 3


CLASSES_WITHOUT_BREAK = """(blocks) => {
    const classes = [];
    for (const block of blocks)
        for (let node = block; node !== document.body; node = node.parentElement)
            if (getComputedStyle(node).breakInside !== 'auto') classes.push(node.className);
    return classes;
}"""


def test_on_paper_long_code_breaks_across_pages_and_short_code_does_not(visit):
    page = visit((HTML / CHAPTERS[2]).as_uri())
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    code = page.locator(".cell_input pre")
    assert code.count() > 10 and code.evaluate_all(CLASSES_WITHOUT_BREAK) == []
    lines = code.evaluate_all(
        "blocks => blocks.map((block) => getComputedStyle(block)).map(({ orphans, widows }) => orphans + widows)"
    )
    assert set(lines) == {"66"}


def test_a_printed_page_has_no_buttons_of_questions_and_folds(visit):
    page = visit((HTML / CHAPTERS[2]).as_uri())
    retry_buttons, fold_labels = page.locator("#predict-first .again"), page.locator("div.cell details.hide > summary")
    page.locator("#predict-first details summary").first.click()
    assert retry_buttons.is_visible() and fold_labels.first.is_visible()
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert not retry_buttons.is_visible() and page.locator("div.cell details.hide > .cell_input").first.is_visible()
    buttons = page.locator(".tl-why-label, .again, .copybtn, .tl-keys-button, div.cell details.hide > summary").all()
    assert buttons and not any(button.is_visible() for button in buttons)


def test_a_printed_page_shows_what_is_folded(visit):
    page = visit((HTML / CHAPTERS[0]).as_uri())
    page.evaluate(
        "addEventListener('beforeprint', () => { folded = document.querySelectorAll('details:not([open])'); })"
    )
    page.pdf()
    assert page.evaluate("folded.length") == 0
    assert page.locator("details[open]").count() == 0
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    count_animated = "nodes => nodes.filter((node) => getComputedStyle(node).animationName !== 'none').length"
    assert page.locator("details > *").evaluate_all(count_animated) == 0
