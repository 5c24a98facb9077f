"""In a browser, ``WholeLab`` can switch parts off, run earlier checkpoints and sample words."""

import re

import pytest

import transformer_lab as tl
from gestures import status
from lab_table import press
from test_whole_lab import panel_text, shown_words
from test_whole_maths import lab_of, small_model
from transformer_lab.labs import WholeLab


def accuracy_text(page):
    return page.locator(".tl-measured").inner_text()


def test_a_switch_changes_the_answer_and_the_accuracy(show):
    page = show(WholeLab())
    press(page, "Break it")
    learning = WholeLab().learning
    assert accuracy_text(page) == "Right on 990 numbers new to the model: 100 %."
    press(page, "Cross-attention")
    assert page.get_by_role("button", name="Cross-attention", exact=True).get_attribute("aria-pressed") == "true"
    assert shown_words(page) != [*WholeLab().answer, "<end>"]
    right_percentage = learning["switches"]["both"]["cross"]
    assert right_percentage < 10 and accuracy_text(page).startswith("Right on 990 numbers new to the model: 100 % → ")
    verdict = "Wrong: it is three hundred and forty two. A part of the model is switched off."
    assert page.locator(".tl-verdict").inner_text() == verdict
    assert re.search(r"\d+ % sure, and wrong", page.locator(".tl-sure").inner_text())
    assert page.locator(".off[data-part=cross_attention]").count() == 1
    press(page, "Cross-attention")
    assert shown_words(page) == [*WholeLab().answer, "<end>"] and page.locator(".off").count() == 0


def test_two_switches_at_once_are_counted_in_the_page(show):
    page = show(WholeLab(tool="break", off=["mask", "positions"]))
    assert "2 parts of the model are switched off." in page.locator(".tl-verdict").inner_text()
    press(page, "Positions", "√d")
    page.wait_for_function("document.querySelector('.tl-measured').textContent.endsWith('counted here.')")
    assert re.fullmatch(
        r"Right on 990 numbers new to the model: 100 % → [<>]? ?\d+ %, counted here\.", accuracy_text(page)
    )


def test_one_head_is_chosen_from_a_list(show):
    page = show(WholeLab(tool="break"))
    heads = page.get_by_label("One head")
    assert heads.locator("option").count() == 1 + 24
    heads.select_option(label="decoder layer 1, cross-attention, head 2")
    assert page.locator(".off[data-part=cross_attention]").count() == 1
    press(page, "decoder only")
    assert heads.locator("option").count() == 1 + 8


@pytest.mark.parametrize("width", [1100, 360])
def test_the_name_of_a_head_fits_its_list(show, width):
    page = show(WholeLab(tool="break"), width=width)
    heads = page.get_by_label("One head")
    heads.select_option(label="decoder layer 2, cross-attention, head 4")
    needed_width = heads.evaluate("""list => {
        const ink = document.createElement("canvas").getContext("2d");
        ink.font = getComputedStyle(list).font;
        return Math.max(...[...list.options].map((each) => ink.measureText(each.text).width)) + 24; // and the arrow
    }""")
    assert heads.bounding_box()["width"] >= needed_width


def test_an_encoder_alone_is_not_said_to_answer(show):
    page = show(WholeLab(family="encoder", tool="sample"))
    tabs = page.get_by_role("group", name="What to try").get_by_role("button")
    assert tabs.all_inner_texts() == ["About", "Break it", "Watch it learn"]
    for name in tabs.all_inner_texts():
        press(page, name)
        assert not re.search("answer|word|fail|models", panel_text(page)), name
    press(page, "decoder only")
    assert "Sample" in tabs.all_inner_texts()


def test_earlier_checkpoints_give_different_answers_and_lower_accuracies(show):
    page = show(WholeLab())
    press(page, "Watch it learn")
    slider = page.get_by_label("Checkpoint")
    distinct_answers, accuracies = set(), []
    for _ in range(5):
        slider.press("ArrowLeft")
        distinct_answers.add(" ".join(shown_words(page)))
        accuracies.append(int(re.search(r"(\d+) %", accuracy_text(page))[1]))
    assert accuracies == sorted(accuracies, reverse=True) and accuracies[-1] == 0 and len(distinct_answers) > 2
    assert "This is the model after 0 of 1,500 steps, where the loss is 3.4." in panel_text(page)
    assert page.locator(".tl-loss .line").get_attribute("d").count("L") == 61


def test_the_dot_of_the_loss_is_above_the_thumb_and_both_axes_have_numbers(show):
    lab = WholeLab(tool="learn")
    page = show(lab, width=933)
    assert page.locator(".tl-ticks > span").all_inner_texts() == ["0", "100", "150", "200", "300", "1,500"]
    assert page.locator(".tl-depths > span").all_inner_texts() == ["1", "0.1", "0.01"]
    slider_box = page.get_by_label("Checkpoint").bounding_box()
    for checkpoint in range(5, -1, -1):
        # the middle of the thumb, which is 16 pixels wide
        thumb = slider_box["x"] + 8 + (slider_box["width"] - 16) * checkpoint / 5
        dot, tick = (
            page.locator(name).bounding_box() for name in (".dot", f".tl-ticks > :nth-child({checkpoint + 1})")
        )
        assert abs(dot["x"] + dot["width"] / 2 - thumb) < 1.5 and abs(tick["x"] + tick["width"] / 2 - thumb) < 1.5
        page.get_by_label("Checkpoint").press("ArrowLeft")


def test_words_are_sampled_and_sampled_again(show):
    page = show(WholeLab(text="2003"))
    press(page, "Sample")
    page.get_by_label("Temperature", exact=True).fill("50")  # in tenths: a temperature of 5
    distinct_answers = set()
    for _ in range(6):
        press(page, "Sample again")
        distinct_answers.add(" ".join(shown_words(page)))
    assert len(distinct_answers) > 3
    page.get_by_label("Top-k, typed").fill("1")
    assert shown_words(page) == [*WholeLab(text="2003").answer, "<end>"]


def test_a_count_stops_when_its_tab_is_left(show):
    page = show(WholeLab(tool="break", off=["mask", "scale"]))
    page.wait_for_function("document.querySelector('.tl-measured').textContent.endsWith('so far …')")
    press(page, "Sample")
    node = page.locator(".tl-measured")
    text_before = node.text_content()
    page.wait_for_timeout(300)
    assert node.text_content() == text_before
    press(page, "Break it")
    page.wait_for_function("document.querySelector('.tl-measured').textContent.endsWith('counted here.')")


def test_a_part_that_is_off_is_ignored_in_a_family_without_it(show):
    page = show(WholeLab(tool="break", off=["cross"], text="7"))
    assert page.locator(".off").count()
    press(page, "decoder only")
    assert page.locator(".off").count() == 0 and shown_words(page) == ["seven", "<end>"]
    assert accuracy_text(page) == "Right on 990 numbers new to the model: > 99 %."


def test_the_button_of_a_part_that_is_off_is_struck_through(show):
    page = show(WholeLab(tool="break", off=["mask"]))
    mask, scale = (page.get_by_role("button", name=name, exact=True) for name in ("Mask", "√d"))
    decoration = "node => getComputedStyle(node).textDecorationLine"
    assert mask.evaluate(decoration) == "line-through" and scale.evaluate(decoration) == "none"


def test_the_state_is_in_the_address(show):
    page = show(WholeLab())
    press(page, "Break it")
    press(page, "Mask")
    page.wait_for_function("location.search.includes('whole.off=mask')")
    assert "whole.tool=break" in page.url


@pytest.mark.parametrize("tool", ["break", "learn", "sample"])
def test_the_lab_fits_one_screen_and_its_panel_does_not_scroll(show, tool):
    page = show(WholeLab(tool=tool))
    page.set_viewport_size({"width": 1200, "height": 850})
    assert page.locator(".tl-whole").bounding_box()["height"] <= 850
    panel = page.locator(".tl-side")
    assert panel.evaluate("node => node.scrollHeight <= node.clientHeight + 1")
    page.set_viewport_size({"width": 360, "height": 740})
    assert panel.evaluate("node => node.scrollWidth <= node.clientWidth")
    sheet = panel.bounding_box()
    assert sheet["height"] <= 0.5 * 740


def test_a_readers_own_models_have_a_slider_and_no_count(show):
    page = show(lab_of([small_model(tl.Transformer, seed, (12, 3, 2, 20), {}) for seed in range(2)]))
    press(page, "Watch it learn")
    assert "This is model 2 of 2." in panel_text(page) and page.locator(".tl-measured").count() == 0
    assert page.get_by_label("Checkpoint").get_attribute("max") == "1"
    assert status(page)
