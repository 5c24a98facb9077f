"""In a browser, a reader types into ``WholeLab``, steps through it and opens its parts; all numbers are the model's."""

import json
import re
from pathlib import Path

import pytest
import torch

import train_whole_lab
import transformer_lab as tl
from gestures import status, swipe
from javascript import Engine
from lab_table import large_whole_lab, press
from transformer_lab.labs import WholeLab

ROOT = Path(__file__).parents[2]
NUMBER_PATTERN = r"([−\d.]+)"


def shown_words(page):
    return page.locator(".tl-word:visible > span:first-child").all_inner_texts()


def panel_text(page):
    return page.locator(".tl-side").inner_text()


def find_part(page, name, side="decoder"):
    return page.locator(f"[data-part={name}][data-side={side}]")


def parse_number(text):
    return float(text.replace("−", "-"))


def test_typed_number_is_answered_word_by_word(show):
    page = show(WholeLab())
    for text, answer in (("13", "thirteen"), ("30", "thirty"), ("3", "three"), ("2003", "two thousand and three")):
        page.get_by_label("Type a number").fill(text)
        assert shown_words(page) == [*answer.split(), "<end>"] == [*WholeLab(text=text).answer, "<end>"]
        assert page.locator(".tl-verdict").inner_text() == "Right."
        assert status(page) == f"The model reads “{text}” and writes “{answer}”: right."


@pytest.mark.parametrize(
    ("typed", "answer", "explanation"),
    [
        (
            "45678",
            "forty five thousand six hundred and seventy eight",
            "The model has seen only numbers of one to four digits.",
        ),
        ("0342", "three hundred and forty two", "The model has never seen a number with a 0 in front."),
    ],
)
def test_wrong_answer_is_explained(show, typed, answer, explanation):
    page = show(WholeLab())
    page.get_by_label("Type a number").fill(typed)
    text = page.locator(".tl-verdict").inner_text()
    assert f"Wrong: it is {answer}." in text and explanation in text and status(page).endswith(": wrong.")


def test_invalid_input_shows_no_verdict(show):
    page = show(WholeLab())
    page.get_by_label("Type a number").fill("34a")
    assert page.locator(".tl-verdict").inner_text() == "Still showing 342."
    reason = "Digits only: the model knows 0 to 9, but no comma, sign or letter."
    assert status(page) == f"Not read: {reason} Still showing 342."
    page.locator("[data-part=cross_attention] rect").hover()
    assert page.locator(".tl-ask input").input_value() == "34a", "pointing does not change the typed text"
    page.get_by_role("button", name="342", exact=True).click()
    assert page.locator(".tl-verdict").inner_text() == "Right." and page.locator(".tl-ask input").input_value() == "342"


def test_empty_answer_is_reported(show):
    page = show(WholeLab(text="0342"))
    assert status(page) == "The model reads “0342” and writes nothing: wrong."
    assert page.locator(".tl-verdict").inner_text().startswith("Nothing is written. Wrong: it is three hundred")
    page.get_by_label("Type a number").fill("000001")
    assert page.locator(".tl-verdict").inner_text().endswith("of one to four digits, none with a 0 in front.")


def test_each_family_has_a_description(show):
    page = show(WholeLab())
    assert "2 layers on each side" in panel_text(page) and "26,208 weights" in panel_text(page)
    press(page, "encoder only")
    assert "It writes nothing" in panel_text(page) and "weights" not in panel_text(page)
    press(page, "decoder only")
    assert "This model continues one sequence: the digits, then the words." in panel_text(
        page
    ) and "11,808 weights" in panel_text(page)
    assert page.locator("[data-text=target]").inner_html() == "3 4 2 = three … two"


def test_number_words_match_the_training_data():
    engine = Engine(WholeLab)
    target = WholeLab().stored[0]["target"]
    numbers = target[target.index("zero") :]
    for n in [*range(1100), *range(1100, 1_000_000, 7919), 999_999]:
        assert engine("numberWords", n, numbers) == train_whole_lab.in_words(n)


def test_walk_visits_every_block_and_writes_the_answer(show):
    page = show(WholeLab(text="13"))
    slider = page.get_by_label("Walk through the model")
    steps = int(slider.get_attribute("max"))
    highlighted = set()
    for step in range(1, steps + 1):
        slider.press("ArrowRight")
        assert status(page).startswith(f"Step {step}. ")
        highlighted |= set(
            page.locator(".lit[data-part]").evaluate_all("parts => parts.map((part) => part.dataset.part)")
        )
    parts = set(re.findall(r'data-part="(\w+)"', (ROOT / "transformer_lab/labs/whole.svg").read_text("utf-8")))
    assert highlighted == parts
    assert shown_words(page) == ["thirteen", "<end>"]
    page.get_by_role("button", name="Step back").click()
    assert status(page).startswith(f"Step {steps - 1}. ") and shown_words(page)[0] == "thirteen"
    assert page.locator(".tl-later:visible").count() == 1


def test_click_on_a_word_opens_its_step(show):
    page = show(WholeLab())
    page.get_by_role("button", name="hundred, probability").click()
    assert status(page).startswith("Step 17. Softmax, decoder. Next: “hundred”")
    assert page.locator("[data-text=target]").inner_html() == "&lt;start&gt; three"
    assert page.locator("[data-text=next]").inner_html() == "hundred"


def test_play_stops_at_the_end(show):
    page = show(WholeLab(text="3", step=14))
    page.get_by_role("button", name="Play").click()
    assert page.get_by_role("button", name="Pause").is_visible()
    page.wait_for_function(
        "document.querySelector('.tl-walk input').value === document.querySelector('.tl-walk input').max"
    )
    page.get_by_role("button", name="Play").wait_for()
    assert shown_words(page) == ["three", "<end>"]


def test_there_is_no_play_button_under_reduced_motion(show, desktop_and_phone):
    page = desktop_and_phone[0][False]
    page.emulate_media(reduced_motion="reduce")
    page = show(WholeLab())
    assert page.get_by_role("button", name="Play").count() == 0
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("make", [WholeLab, large_whole_lab, lambda: large_whole_lab(model_class=tl.LanguageModel)])
def test_every_block_and_arrow_opens_with_its_own_text(show, make):
    page = show(make())
    controls = page.locator("svg [role=button][aria-hidden=false]")
    texts = set()
    for i in range(controls.count()):
        controls.nth(i).dispatch_event("click")
        name = controls.nth(i).get_attribute("aria-label").removeprefix("Arrow: ")
        assert page.locator(".tl-name").inner_text() == name or name.startswith("Residual around ")
        assert "NaN" not in panel_text(page) and "undefined" not in panel_text(page)
        texts.add(panel_text(page))
    assert len(texts) > controls.count() / 2


def forward_tensors(lab):
    """Return the tensors that hooks record while the course's Transformer writes its last word."""
    model, tensors = lab.model, {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _, __, out, name=name: tensors.__setitem__(name, out))
    source = torch.tensor([[int(digit) for digit in lab.text]])
    target = lab.stored[0]["target"]
    target_tokens = torch.tensor([[target.index(word) for word in ["<start>", *lab.answer]]])
    with torch.no_grad():
        model(source, target_tokens)
    return tensors


MODULES_BY_FLOW = {
    "encoder.input": "src_embedding",
    "encoder.0.self.output": "encoder.layers.0.self_attention",
    "encoder.1.feed_forward.norm": "encoder.layers.1.norm2",
    "decoder.0.self.norm": "decoder.layers.0.norm1",
    "decoder.1.cross.output": "decoder.layers.1.cross_attention",
    "decoder.1.feed_forward.output": "decoder.layers.1.feed_forward",
    "decoder.logits": "output",
}


@pytest.mark.parametrize("flow", MODULES_BY_FLOW)
def test_arrow_shows_its_tensor(show, flow):
    lab = WholeLab(part=flow)
    page = show(lab)
    expected = forward_tensors(lab)[MODULES_BY_FLOW[flow]]
    expected = (expected[0] if isinstance(expected, tuple) else expected)[0]
    axis = "vocab" if flow.endswith("logits") else "d_model"
    assert f"Shape (seq {expected.shape[0]}, {axis} {expected.shape[1]})" in panel_text(page)
    sheet = page.locator(".tl-sheet").first
    for row in range(expected.shape[0]):
        for column in range(3):
            match = re.search(rf": {NUMBER_PATTERN}$", status(page))[1]
            assert parse_number(match) == pytest.approx(
                expected[row, column].item(), abs=0.51 * 10 ** -len(match.partition(".")[2])
            )
            sheet.press("ArrowRight")
        for _ in range(3):
            sheet.press("ArrowLeft")
        sheet.press("ArrowDown")


def test_attention_panel_computes_with_the_models_numbers(show):
    lab = WholeLab(part="decoder.1.cross")
    page = show(lab)
    model = lab.model
    tensors = forward_tensors(lab)
    memory, x = tensors["encoder.layers.1"], tensors["decoder.layers.1.norm1"]
    weights = model.decoder.layers[1].cross_attention.weights(x, memory)[0]
    for head in range(4):
        page.locator(".tl-beside .tl-sheet").nth(head).press("ArrowDown")
        page.locator(".tl-beside .tl-sheet").nth(head).press("ArrowUp")
        bars = page.locator(".tl-bar-row:visible").all_inner_texts()
        row = int(
            page.locator(".tl-who .tl-choice")
            .last.locator("button")
            .evaluate_all("all => all.findIndex((each) => each.ariaPressed === 'true')")
        )
        for key, text in enumerate(bars):
            displayed_weight = parse_number(re.search(rf"{NUMBER_PATTERN}$", text)[1])
            assert displayed_weight == pytest.approx(
                weights[head, row, key].item(), abs=0.0101 if "<" in text else 0.0051
            )
        assert status(page).startswith(
            f"Cross-attention, decoder layer 2, head {head + 1}, to write “three” after “<st"
        )


def test_causal_mask_hides_later_tokens(show):
    page = show(WholeLab(family="decoder", part="decoder.0.self"))
    bars = page.locator(".tl-bar-row:visible").all_inner_texts()
    assert [("masked" in text) for text in bars] == [False] + [True] * (len(bars) - 1)
    page.get_by_role("group", name="Token").get_by_role("button").nth(2).click()
    bars = page.locator(".tl-bar-row:visible").all_inner_texts()
    assert [("masked" in text) for text in bars] == [False] * 3 + [True] * (len(bars) - 3)


def test_single_column_models_hide_the_other_column(show):
    page = show(WholeLab())
    press(page, "encoder only")
    assert find_part(page, "masked_attention").get_attribute("aria-hidden") == "true"
    assert shown_words(page) == [] and "writes nothing" in panel_text(page)
    assert page.get_by_label("Walk through the model").get_attribute("max") == "7"
    press(page, "decoder only")
    assert find_part(page, "self_attention", "encoder").get_attribute("aria-hidden") == "true"
    assert find_part(page, "cross_attention").get_attribute("aria-hidden") == "true"
    assert shown_words(page) == [*WholeLab(family="decoder").answer, "<end>"]
    find_part(page, "masked_attention").locator("rect").click()
    status_text = "Masked self-attention, decoder layer 1, head 1, to write “<end>” after “two”, looks at “"
    assert status(page).startswith(status_text)
    page.get_by_role("group", name="Token").get_by_role("button").first.click()
    assert status(page).endswith("head 1: “3” looks at “3” (1.00)"), "no word is written before the answer"


def test_hover_previews_an_arrow_and_leaving_restores_the_open_part(show):
    page = show(WholeLab(part="encoder.0.self"))
    before = panel_text(page)
    x, y = page.locator("[data-flow=memory] .line").evaluate("""line => {
        const { x, y } = line.getPointAtLength(15).matrixTransform(line.getScreenCTM());
        return [x, y];
    }""")
    page.mouse.move(x, y)
    assert status(page).startswith("Last vectors, encoder. Shape (seq 3, d_model 24). Row “3”, feature 0: ")
    page.mouse.move(2, 2)
    assert panel_text(page) == before


@pytest.mark.parametrize("family", ["both", "encoder", "decoder"])
def test_arrow_keys_follow_the_computation(show, family):
    page = show(WholeLab(family=family))
    page.locator("svg [tabindex='0']").focus()
    n_controls = page.locator("svg [role=button][aria-hidden=false]").count()
    index = "[...document.querySelectorAll('svg [role=button]')].indexOf(document.activeElement)"
    visited = [page.evaluate(index)]
    for _ in range(n_controls - 1):
        page.keyboard.press("ArrowUp")
        visited.append(page.evaluate(index))
    assert len(set(visited)) == n_controls and -1 not in visited
    page.keyboard.press("ArrowUp")
    assert page.evaluate(index) == visited[-1], "Up stops at the top"
    page.keyboard.press("Home")
    assert page.evaluate(index) == visited[0]
    page.keyboard.press("End")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(index) == visited[-2]


def test_left_and_right_change_sides_at_the_same_height(show):
    page = show(WholeLab())
    find_part(page, "self_attention", "encoder").focus()
    page.keyboard.press("ArrowRight")
    position = "[document.activeElement.dataset.side, document.activeElement.dataset.part]"
    assert page.evaluate(position) == ["decoder", "masked_attention"]
    page.keyboard.press("ArrowRight")
    assert page.evaluate(position) == ["decoder", "masked_attention"]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(position) == ["encoder", "self_attention"]


def test_enter_opens_a_part_of_the_drawing(show):
    page = show(WholeLab())
    page.locator("svg [tabindex='0']").focus()
    for _ in range(5):
        page.keyboard.press("ArrowUp")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(".tl-name").inner_text() == focused.removeprefix("Arrow: ")


def test_parts_have_distinct_accessible_names(show):
    page = show(WholeLab())
    names = page.locator("svg [role=button][aria-hidden=false]").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('aria-label'))"
    )
    assert len(set(names)) == len(names)
    assert "Arrow: Residual around self-attention, encoder layer 1" in names
    assert page.get_by_role("heading", name="A whole Transformer").count() == 1
    assert page.locator("[role=application]").count() == 0


def test_escape_closes_the_panel_and_keeps_the_focus(show):
    page = show(WholeLab())
    find_part(page, "softmax").focus()
    page.keyboard.press("Enter")
    assert page.locator(".tl-name").inner_text() == "Softmax, decoder"
    page.keyboard.press("Escape")
    assert page.locator(".tl-name").inner_text() == "A small Transformer, alive"
    assert page.evaluate("document.activeElement.dataset.part") == "softmax"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "tl-side", "Tab must move from the drawing to the panel"


def test_attention_opens_at_the_largest_weight(show):
    page = show(WholeLab())
    find_part(page, "cross_attention").locator("rect").click()
    position = "Cross-attention, decoder layer 1, head 1, "
    assert status(page) == f"{position}to write “<end>” after “two”, looks at “2” (1.00)"
    page.get_by_role("group", name="Token").get_by_role("button", name="<start>").click()
    assert status(page) == f"{position}to write “three” after “<start>”, looks at “3” (1.00)"
    assert "= 0.00" not in panel_text(page)


def test_bars_are_aligned_and_have_one_length(show):
    page = show(WholeLab(part="decoder.0.cross", text="777777"), width=360)
    tracks = page.locator(".tl-bar-row:visible .tl-part").evaluate_all(
        "nodes => nodes.map((node) => [node.getBoundingClientRect().left, node.getBoundingClientRect().width])"
    )
    assert len(tracks) == 6 and all(track == tracks[0] for track in tracks) and tracks[0][1] > 30


def test_words_appear_with_their_step(show):
    page = show(WholeLab(step=15))
    assert page.locator(".tl-later:visible").count() == 6
    slider = page.get_by_label("Walk through the model")
    slider.press("ArrowRight")
    assert page.locator(".tl-later:visible").count() == 5
    assert "For each further word the decoder runs again" in panel_text(page)
    slider.press("ArrowRight")
    assert "For this word the decoder ran again" in panel_text(page) and "For each further" not in panel_text(page)
    find_part(page, "linear").locator("rect").click()
    assert "ran again" not in panel_text(page), "the note belongs to the step, not to other open parts"
    slider.press("End")
    assert "Now build the model: start with chapter 1" in panel_text(page)
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext") == "Not started, 21 steps"


def test_layout_is_stable_while_typing(show):
    page = show(WholeLab())
    tops = """[...document.querySelectorAll(".tl-tries, .tl-answer, .tl-family, .tl-drawing, .tl-status")]
        .map((node) => node.getBoundingClientRect().top)"""
    before = page.evaluate(tops)
    for text in ("", "abc", "1234567", "12a", "777777", "0342", "7"):
        page.get_by_label("Type a number").fill(text)
        assert page.evaluate(tops) == before, text


def test_an_encoder_alone_ends_in_its_vectors(show):
    page = show(WholeLab(family="encoder"))
    assert page.locator("[data-text=vectors]").inner_html() == "3 vectors"
    assert not page.locator("[data-flow=memory]").is_visible()
    page.locator("[data-flow=vectors] rect").click()
    assert page.locator(".tl-name").inner_text() == "Last vectors, encoder"


def test_tap_scrolls_the_panel_into_view(show):
    page = show(WholeLab(), width=360, touch=True)
    find_part(page, "softmax").locator("rect").tap()
    page.wait_for_function("document.querySelector('.tl-name').getBoundingClientRect().bottom < innerHeight")


def test_a_finger_opens_a_part_and_scrolls_the_page(show):
    page = show(WholeLab(), width=360, touch=True)
    find_part(page, "feed_forward", "encoder").locator("rect").tap()
    assert "hidden units are active for “3”" in status(page)
    box = page.locator(".tl-drawing").bounding_box()
    top = page.evaluate("scrollY")
    swipe(page, (box["x"] + 60, box["y"] + 200), 0, -120)
    page.wait_for_function("top => scrollY > top + 60", arg=top)


@pytest.mark.parametrize("width", [1100, 360])
def test_layout_is_stable_during_the_walk(show, width):
    page = show(WholeLab(), width=width)
    slider = page.get_by_label("Walk through the model")
    tops = """[...document.querySelectorAll(".tl-walk, .tl-side, .tl-status, .tl-drawing")]
        // On a phone the panel is a sheet, with the walk above it.
        .filter((node) => innerWidth > 700 || !node.matches(".tl-status, .tl-side, .tl-walk"))
        .map((node) => node.getBoundingClientRect().top + scrollY)"""
    before = page.evaluate(tops)
    for _ in range(int(slider.get_attribute("max"))):
        slider.press("ArrowRight")
        assert page.evaluate(tops) == before, status(page)


def headings(page):
    cells = json.loads((ROOT / "chapters" / f"{page}.ipynb").read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.findall(r"^## (?:\d+\.\d+ )?(.+)$", text, flags=re.MULTILINE)


def test_every_place_links_to_an_existing_section():
    for *_, page, section in WholeLab().words["places"].values():
        assert section in [re.sub(r"[`*]", "", heading).replace("\u00a0", " ") for heading in headings(page)], section


def test_places_link_to_their_sections_inside_the_course(show):
    link = '<a href="book/06_normalization.html">6</a></main>'
    page = show(WholeLab(part="encoder.0.feed_forward"), change=lambda html: html.replace("</main>", link))
    place = page.get_by_role("link", name="chapter 6, What does the feed-forward layer do?")
    assert place.get_attribute("href").endswith("book/06_normalization.html#what-does-the-feed-forward-layer-do")
    page = show(WholeLab(part="encoder.0.feed_forward"))
    assert page.get_by_role("link").count() == 0 and "chapter 6, What does the feed-forward layer do?" in panel_text(
        page
    )


def test_verdict_is_hidden_until_the_last_word(show):
    page = show(WholeLab())
    slider, verdict = page.get_by_label("Walk through the model"), page.locator(".tl-verdict")
    assert verdict.is_visible()
    slider.press("Home")
    slider.press("ArrowRight")
    for step in range(1, int(slider.get_attribute("max"))):
        assert not verdict.is_visible() and "right" not in verdict.get_attribute("class"), f"step {step}"
        slider.press("ArrowRight")
    assert verdict.is_visible() and verdict.inner_text() == "Right."


STRIP_PIXELS = """() => {
    const canvas = document.querySelector(".tl-data");
    const { width, height } = canvas;
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    const rows = [];
    for (let y = 0; y < height; y++) {
        const row = [];
        const offset = (x) => 4 * (y * width + x);
        for (let x = 390; x < 610; x += 3) row.push([...pixels.slice(offset(x), offset(x) + 3)].join());
        const isDrawn = pixels[4 * (y * width + 400) + 3] > 0;
        rows.push(isDrawn ? row.join(" ") : "");
    }
    return rows;
}"""


def strip_rows(page):
    """Return a set of drawn pixel rows for each of the decoder's strips."""
    strips, previous_row = [], ""
    for row in page.evaluate(STRIP_PIXELS):
        if row and not previous_row:
            strips.append(set())
        if row:
            strips[-1].add(row)
        previous_row = row
    return strips


def test_each_arrow_has_a_strip_that_changes_from_block_to_block(show):
    page = show(WholeLab(step=9, text="342"))  # the decoder has read one token
    actual = strip_rows(page)
    assert len(actual) == 10, "one strip for each of the decoder's arrows with vectors"
    assert all(a.isdisjoint(b) for i, a in enumerate(actual) for b in actual[:i]), "no two strips may look alike"
    assert "<start>" in page.locator(".labels text").all_text_contents()


def test_attention_is_drawn_as_links_of_the_chosen_head(show):
    lab = WholeLab(part="encoder.0.self")
    page = show(lab)
    assert page.locator(".tl-links .lens-title").text_content() == "head 1 of 4"
    assert 3 <= page.locator(".tl-links path").count() <= 9
    widths = page.locator(".tl-links path.chosen").evaluate_all(
        "all => all.map((each) => +each.getAttribute('stroke-width'))"
    )
    bars = page.locator(".tl-bar-row:visible").all_inner_texts()
    weights = [parse_number(re.search(rf"{NUMBER_PATTERN}$", text)[1]) for text in bars]
    expected = sorted(0.4 + 4.6 * weight for weight in weights if weight >= 0.03)
    assert sorted(widths)[-len(expected) :] == pytest.approx(expected, abs=0.03)
    page.locator(".tl-beside .tl-sheet").nth(1).press("ArrowDown")
    assert page.locator(".tl-links .lens-title").text_content() == "head 2 of 4"
    page.keyboard.press("Escape")
    assert not page.locator(".tl-links").is_visible()


def test_the_lab_writes_its_answer_on_arrival_and_then_waits(show):
    page = show(WholeLab())
    page.reload()
    page.locator(".tl-later:visible").first.wait_for()
    page.wait_for_function("!document.querySelector('.tl-later:not([hidden])')")
    assert shown_words(page) == ["three", "hundred", "and", "forty", "two", "<end>"]
    assert page.locator(".tl-verdict").inner_text() == "Right." and page.get_by_label("Walk").input_value() == "0"


def test_under_reduced_motion_the_answer_appears_at_once(show, desktop_and_phone):
    page = desktop_and_phone[0][False]
    page.emulate_media(reduced_motion="reduce")
    show(WholeLab())
    page.reload()
    page.locator(".tl-word").first.wait_for()
    page.wait_for_timeout(300)
    assert page.locator(".tl-later:visible").count() == 0
    page.emulate_media(reduced_motion="no-preference")


def test_next_word_writes_one_word_and_shows_its_softmax(show):
    page = show(WholeLab())
    for n_written in range(1, 7):
        page.get_by_role("button", name="Next word", exact=True).click()
        assert page.locator(".tl-word:visible:not(.tl-later)").count() == n_written
        assert page.locator(".tl-name").inner_text() == "Softmax, decoder"
    page.get_by_role("button", name="Next word", exact=True).click()
    assert page.locator(".tl-word:visible:not(.tl-later)").count() == 1, "the first word follows the last word"


def test_a_wrong_answer_says_how_sure_the_model_is(show):
    page = show(WholeLab(text="12345"))
    probability = 1.0
    for label in page.locator(".tl-word:visible").evaluate_all("all => all.map((each) => each.ariaLabel)"):
        probability *= 1 if "> 0.999" in label else float(label.split()[-1])
    match = re.fullmatch(r"(\d+) % sure, and wrong\.", page.locator(".tl-sure").inner_text())
    assert int(match[1]) == pytest.approx(100 * probability, abs=1.5)
    press(page, "342")
    assert page.locator(".tl-sure").inner_text() in ("100 % sure.", "> 99 % sure.")


def test_the_lab_fits_one_screen_below_the_header(show):
    page = show(WholeLab(), width=933)
    assert page.locator(".tl-lab").bounding_box()["height"] <= 850 - 48  # minus the header of the book's pages
    box = page.locator(".tl-status").bounding_box()
    assert box["width"] <= 1 and box["height"] <= 1, "the text is only for screen readers"


def test_on_a_phone_the_panel_is_a_sheet_over_the_lower_half(show):
    page = show(WholeLab(), width=360, touch=True)
    page.set_viewport_size({"width": 360, "height": 740})
    for name in ("softmax", "masked_attention"):
        page.evaluate("top => scrollBy(0, top - 200)", find_part(page, name).locator("rect").bounding_box()["y"])
        find_part(page, name).locator("rect").tap()
        block, sheet = find_part(page, name).locator("rect").bounding_box(), page.locator(".tl-side").bounding_box()
        assert 0.45 * 740 < sheet["y"] < 0.56 * 740 and abs(sheet["y"] + sheet["height"] - 740) < 2
        assert block["y"] > 0 and block["y"] + block["height"] <= page.locator(".tl-walk").bounding_box()["y"]
