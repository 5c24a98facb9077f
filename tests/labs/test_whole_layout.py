"""In a browser, ``WholeLab`` is visible, legible and easy to press, also below a page's header and on a phone."""

import pytest

from test_whole_lab import shown_words
from transformer_lab.labs import WholeLab

HEADER_HEIGHT = 48  # the height of the book's header in pixels


def test_a_longer_answer_moves_nothing(show):
    page = show(WholeLab(), width=933)
    tops = "['.tl-family', '.tl-drawing', '.tl-foot'].map((name) => document.querySelector(name).offsetTop)"
    before = page.evaluate(tops)
    for text in ("7", "12345", "777777", "0342", "000001"):
        page.get_by_label("Type a number").fill(text)
        assert page.evaluate(tops) == before, text


def test_words_that_are_not_written_yet_can_be_read(show):
    page = show(WholeLab(step=17, part="decoder.softmax"))
    assert shown_words(page) == ["three", "hundred", "and", "forty", "two", "<end>"]
    names = page.locator(".tl-later").evaluate_all("all => all.map((each) => each.ariaLabel)")
    assert [name for name in names if name] == [f"{word}, not written yet" for word in ("and", "forty", "two", "<end>")]
    page.get_by_text("Dashed words are not written yet.", exact=True).wait_for()


@pytest.mark.parametrize("part", ["encoder.1.self", "decoder.1.cross"])
def test_a_stack_has_its_name_above_it_and_no_arrow_in_it(show, part):
    page = show(WholeLab(step=9, part=part))
    name, stack, lines, tokens = page.evaluate(
        """side => {
        const box = ({ left, right, top, bottom }) => [left, right, top, bottom];
        const column = document.querySelector(`[data-column=${side}]`);
        const all = (node, names) => [...node.querySelectorAll(names)].map((each) => box(each.getBoundingClientRect()));
        const [[name], [stack]] = [all(column, ".name"), all(column, ".layers")];
        return [name, stack, all(column, ".line"), all(document, ".labels text")];
    }""",
        part.split(".")[0],
    )
    assert stack[0] - 1 <= name[0] and name[1] <= stack[1] + 1 and name[3] <= stack[2] + 2
    for left, right, top, bottom in [*lines, *tokens]:
        assert right <= name[0] or left >= name[1] or bottom <= name[2] + 3 or top >= name[3] - 3


def test_blocks_and_strips_are_easy_to_press(show):
    page = show(WholeLab(), width=360, touch=True)
    missed = page.evaluate("""() => {
        const at = (x, y) => document.elementFromPoint(x, y)?.closest("[role=button]");
        const missed = [];
        for (const item of document.querySelectorAll("svg [role=button][aria-hidden=false]")) {
            item.scrollIntoView({ block: "center" });
            const block = item.querySelector("rect");
            if (block && item.dataset.part) {
                const { left, right, top, bottom } = block.getBoundingClientRect();
                const middle = (top + bottom) / 2;
                for (const y of [middle - 11.5, middle + 11.5]) {
                    if (at(left + 4, y) !== item || at(right - 4, y) !== item) missed.push(item.ariaLabel);
                }
            } else if (item.dataset.room) {
                const { left, right, top, bottom } = item.querySelector(".area").getBoundingClientRect();
                const middle = (top + bottom) / 2;
                if (at(left + 2, middle) !== item || at(right - 2, middle) !== item) missed.push(item.ariaLabel);
            }
        }
        return missed;
    }""")
    assert missed == []


def test_the_links_do_not_cover_their_block_and_have_the_rows_of_the_matrix(show):
    page = show(WholeLab(part="decoder.1.cross"))
    block, lens = (page.locator(name).bounding_box() for name in (".open .block", ".tl-links .lens"))
    assert lens["y"] + lens["height"] <= block["y"]
    left_labels = page.locator(".tl-links g text[style*=end]").all_text_contents()
    assert left_labels == page.locator(".tl-beside .tl-heat-rows").first.locator("span").all_text_contents()
    heads = page.locator(".tl-beside > .tl-heat")
    for head in range(4):
        head_label = heads.nth(head).evaluate("node => getComputedStyle(node, '::before').content")
        assert (
            head_label == '"head " counter(head)'
            and heads.nth(head).locator("[aria-label]").first.get_attribute("aria-label")
            == f"Weights of head {head + 1}"
        )


def test_a_panel_with_more_below_says_so(show):
    page = show(WholeLab(part="decoder.0.self"), width=933)
    content = "getComputedStyle(document.querySelector('.tl-side'), '::after').content"
    assert page.evaluate(content) == '"more below ↓"'
    page.locator(".tl-side").evaluate("node => node.scrollTo(0, node.scrollHeight)")
    page.wait_for_function(f"{content} === '\"\"'")
    page.keyboard.press("Escape")
    assert page.evaluate(content) == '""'


def test_a_block_chosen_by_keys_has_its_name_below_the_header(show):
    style = f"<style>:root {{ --pst-header-article-height: {HEADER_HEIGHT}px }} main {{ padding-block: 900px }}</style>"
    page = show(WholeLab(), width=933, change=lambda html: html.replace("<body>", f"{style}<body>"))
    page.set_viewport_size({"width": 933, "height": 850})
    page.locator("svg [tabindex='0']").focus()
    page.evaluate("scrollTo(0, document.querySelector('.tl-drawing').getBoundingClientRect().bottom + scrollY - 500)")
    for key in ["ArrowUp"] * 6 + ["ArrowRight", "Enter", "End", "Enter"]:
        page.keyboard.press(key)
        focused_top = page.evaluate("document.activeElement.getBoundingClientRect().top")
        assert page.locator(".tl-name").bounding_box()["y"] >= HEADER_HEIGHT and focused_top >= HEADER_HEIGHT, key


def test_a_part_that_is_switched_off_keeps_its_label_legible(show):
    for touch in (False, True):
        page = show(WholeLab(tool="break"), touch=touch)
        switch = page.get_by_role("button", name="Positions", exact=True)
        (switch.tap if touch else switch.click)()
        assert switch.get_attribute("aria-pressed") == "true"
        colours = [
            button.evaluate("node => getComputedStyle(node).color")
            for button in (switch, page.get_by_role("button", name="Mask", exact=True))
        ]
        assert colours[0] == colours[1], "the mouse is still over the switch"


def test_on_a_phone_the_walk_stays_above_the_panel(show):
    style = "<style>main { padding-bottom: 900px }</style>"
    page = show(WholeLab(), width=360, touch=True, change=lambda html: html.replace("<body>", f"{style}<body>"))
    page.set_viewport_size({"width": 360, "height": 740})
    page.evaluate("scrollTo(0, document.querySelector('.tl-walk').getBoundingClientRect().top + scrollY - 400)")
    page.get_by_role("button", name="Play").tap()
    page.locator(".tl-opened").wait_for()
    for name in (".tl-walk > button", ".tl-walk > input", ".open .pill"):
        assert page.locator(name).first.evaluate("""node => {
            const { left, right, bottom } = node.getBoundingClientRect();
            const item = node.closest("[data-part]") ?? node;
            return item.contains(document.elementFromPoint((left + right) / 2, bottom - 4));
        }"""), name
    page.get_by_role("button", name="Pause").tap()
    page.get_by_role("button", name="Play").wait_for()
