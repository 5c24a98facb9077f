"""In a browser, a practice gives feedback, stores the reader's progress, and accepts every form of answer."""

import re

import pytest

from gestures import drag, status
from transformer_lab.labs import Practice
from transformer_lab.practice.answers import Choice, Number, Numbers, Order, Table
from transformer_lab.practice.topic import Topic, rule

STEPS = ("scores", "scale", "softmax", "blend")


@rule(inputs=lambda draw, n=2: (n,))
def half_of(n):
    return n / 2


@half_of.mistake
def doubled(n):
    """You double it: `n` grows. Think of an apple. Is a half more or less than the whole?"""
    return n * 2


@half_of.mistake
def one_more(n):
    """You add one: that is counting. What does half mean?"""
    return n + 1


def practice_lab(answer, asked_value=None, **settings):
    settings = {"title": "Halves", "question": lambda n: f"Half of `{n}`?", "size_ranges": {"n": (2, 60)}} | settings
    return Practice(Topic(rule=half_of, answer=answer, asked_value=asked_value, **settings))


@pytest.fixture
def open_practice(show):
    """Return a function that opens a practice on a page without stored progress."""

    def open_practice(lab, **settings):
        page = show(lab, **settings)
        page.evaluate("try { localStorage.clear() } catch {}")
        return reload(page)

    yield open_practice


def reload(page):
    page.reload()
    page.wait_for_selector("[data-lab=ready]")
    return page


def submit_answer(page, text):
    page.get_by_label("Your answer").first.fill(text)
    page.keyboard.press("Enter")


def choose_practice(page, choice):
    """Choose a practice by its tile."""
    back_button = page.get_by_role("button", name="All practices")
    if back_button.is_visible():
        back_button.click()
    page.locator(f".tl-tile[data-choice='{choice}']").click()


def tile_texts(page, choice):
    return page.locator(f".tl-tile[data-choice='{choice}'] > span > span").all_inner_texts()


def number_in_question(page):
    return int(page.locator("p.tl-question code").inner_text())


def test_enter_checks_then_asks_the_next_question(open_practice):
    page = open_practice(practice_lab(Number(places=1, unit="apples")))
    n = number_in_question(page)
    submit_answer(page, str(2 * n))
    assert status(page) == "Not right. You double it: n grows. Is a half more or less than the whole?"
    assert page.get_by_role("status").locator("code").inner_text() == "n"
    submit_answer(page, str(n + 7))
    assert status(page) == "Not right. Your number is too large."
    submit_answer(page, f"{n}/2")
    assert status(page) == "Right." and "1 of 24 solved" in page.locator(".tl-lab").inner_text()
    page.keyboard.press("Enter")
    assert number_in_question(page) != n and status(page) == "Type the number and press Enter."
    page.keyboard.type("1")
    assert page.get_by_label("Your answer").first.input_value() == "1", "the reader can continue typing"


def test_two_mistakes_with_one_answer_are_both_named(open_practice):
    page = open_practice(
        practice_lab(Number(), asked_value=lambda result, n: int(result > n / 2), size_ranges={"n": (2, 90)})
    )
    submit_answer(page, "1")
    assert status(page) == (
        "Not right. Two mistakes lead to this answer. One: You double it: n grows. The other: You add one: that is "
        "counting."
    )


def test_missed_cases_come_back_and_shown_ones_are_not_solved(open_practice):
    page = open_practice(practice_lab(Number(places=1)))
    n = number_in_question(page)
    submit_answer(page, str(2 * n))
    page.get_by_role("button", name="Show answer").click()
    assert status(page).startswith(f"The answer is {n / 2:.1f}.")
    assert "0 of 24 solved" in page.locator(".tl-lab").inner_text()
    for _ in range(3):
        assert "with different numbers." not in status(page)
        page.get_by_role("button", name="Another").click()
    assert (
        status(page) == "You missed a question like this one. Here it is with different numbers."
        and number_in_question(page) != n
    )


def test_progress_is_stored_if_the_browser_allows_it(open_practice):
    page = open_practice(practice_lab(Number(places=1)))
    submit_answer(page, f"{number_in_question(page)}/2")
    assert "1 of 24 solved" in reload(page).locator(".tl-lab").inner_text()
    refusing_storage = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } });"
    page = open_practice(
        practice_lab(Number(places=1)), change=lambda html: html.replace("<script>", f"<script>{refusing_storage}", 1)
    )
    submit_answer(page, f"{number_in_question(page)}/2")
    assert status(page) == "Right." and "0 of 24 solved" in reload(page).locator(".tl-lab").inner_text()


def test_no_colon_follows_a_question_mark(open_practice):
    page = open_practice(Practice("shares_storage", "which_axis"))
    choose_practice(page, "all")
    assert re.search(r"\w\? 0 of \d+ solved$", page.locator(".tl-score").inner_text())


def test_chosen_topic_is_in_the_url(open_practice):
    page = open_practice(Practice("offset", "strides_of"))
    choose_practice(page, "strides_of")
    page.wait_for_function("location.search.includes('choice=strides_of')")
    page.goto(page.url)
    page.locator(".tl-lab").wait_for()
    assert page.locator(".tl-choice-bar").inner_text().endswith("Strides of a fresh tensor")
    for _ in range(4):
        page.get_by_role("button", name="Another").click()
        assert "Strides of a fresh tensor" in page.locator(".tl-lab").inner_text()


def test_a_practice_of_several_topics_starts_with_a_tile_for_each(open_practice):
    page = open_practice(Practice("offset", "strides_of", "head_1"))
    tiles = page.locator(".tl-tile")
    names = tiles.locator(".tl-name").all_inner_texts()
    assert names == [
        "Everything, mixed",
        *("Chapter 1, mixed", "Where an element lies", "Strides of a fresh tensor"),
        "What a head gets",  # a chapter with one topic offers no mixed practice
    ]
    assert not page.locator("p.tl-question").is_visible() and status(page) == "Choose what to practise."
    store = "localStorage.setItem('transformer-lab.practice', JSON.stringify({ offset: "
    page.evaluate(store + "{ solved: [0, 1, 2, 3, 4, 5], missed: {}, due: [] } }))")
    page = reload(page)
    assert tile_texts(page, "offset") == ["Where an element lies", "6 of 24 solved"]
    assert tile_texts(page, "1")[1] == "6 of 48 solved" and tile_texts(page, "all")[1] == "6 of 72 solved"
    progress = page.locator(".tl-ring").evaluate_all(
        "rings => rings.map((ring) => ring.style.getPropertyValue('--progress'))"
    )
    assert float(progress[2]) == 0.25 and float(progress[3]) == 0
    tiles.nth(2).focus()
    page.keyboard.press("Enter")
    assert page.locator("p.tl-question").is_visible() and not tiles.first.is_visible()
    assert page.locator(".tl-score").inner_text() == "6 of 24 solved"
    page.keyboard.press("Enter")  # the focus is on the button that leads back
    assert page.evaluate("document.activeElement.dataset.choice") == "offset"


def test_right_first_answers_in_a_row_are_counted(open_practice):
    page = open_practice(practice_lab(Number(places=1)))
    score = page.locator(".tl-score")
    for streak in (1, 2, 3):
        submit_answer(page, f"{number_in_question(page)}/2")
        assert score.inner_text().endswith("solved" if streak == 1 else f"solved · {streak} right in a row")
        page.keyboard.press("Enter")
    submit_answer(page, "0")
    assert score.inner_text() == "3 of 24 solved"
    submit_answer(page, f"{number_in_question(page)}/2")  # right at the second attempt
    page.keyboard.press("Enter")
    for _ in range(2):
        submit_answer(page, f"{number_in_question(page)}/2")
        page.keyboard.press("Enter")
    assert score.inner_text().endswith("2 right in a row")
    page.get_by_role("button", name="Show answer").click()
    assert score.inner_text().endswith("solved")


def test_the_main_button_is_check_until_the_answer_is_right(open_practice):
    page = open_practice(practice_lab(Number(places=1)))
    main_button = page.locator("button.tl-main")
    submit_answer(page, "0")
    assert status(page).startswith("Not right.") and main_button.all_inner_texts() == ["Check"]
    submit_answer(page, f"{number_in_question(page)}/2")
    assert main_button.all_inner_texts() == ["Another"]


def test_the_reader_is_told_after_three_questions_from_earlier_chapters(open_practice):
    lab = Practice("offset", "which_axis", "head_1")
    lab.choice = "to2"
    page = open_practice(lab)
    assert page.locator(".tl-choice-bar").inner_text().endswith("From chapters 1 to 2")
    for number in (1, 2, 3):
        assert not page.locator(".tl-score").inner_text().startswith("What a head gets")
        page.get_by_role("button", name="Show answer").click()
        assert ("You have answered three questions." in status(page)) == (number == 3)
        page.get_by_role("button", name="Another").click()


def test_shown_answer_is_announced_after_invalid_input(open_practice):
    page = open_practice(Practice("offset"))
    for text in ("(2, 3)", "abc"):
        submit_answer(page, text)
        assert status(page).startswith("Not read: ") and page.get_by_label("Your answer").input_value() == text
    page.get_by_role("button", name="Show answer").click()
    assert status(page).startswith("The answer is") and page.get_by_label("Your answer").input_value().isdigit()


def test_mixed_practice_lists_weaknesses(open_practice):
    page = open_practice(Practice("offset", "strides_of"))
    choose_practice(page, "strides_of")
    for _ in range(2):
        shape = page.locator("p.tl-question code").inner_text()
        submit_answer(page, shape)
        page.get_by_role("button", name="Another").click()
        assert "Strides of a fresh tensor" in page.locator(".tl-lab").inner_text()
    page.get_by_text("What to look at again").click()
    assert page.locator(".tl-weak li span").all_inner_texts() == ["Twice: You gave the sizes themselves."]
    choose_practice(page, "offset")
    page.locator(".tl-weak").get_by_role("button", name="Strides of a fresh tensor").click()
    assert "fresh tensor" in page.locator("p.tl-question").inner_text()
    page.get_by_role("button", name="Forget all").click()
    assert page.locator(".tl-weak").inner_text().startswith("Nothing yet")


def test_a_mask_is_painted_by_mouse_and_keyboard(open_practice):
    page = open_practice(Practice("decoder"))
    drag(page, page.locator("[data-at='1 0']:visible"), 40)
    assert page.locator(".tl-seen:visible").count() == 2
    page.keyboard.press("Home")
    for key in ("Space", "ArrowDown", "Space", "ArrowRight", "Space"):
        page.keyboard.press(key)
    marked_cells = page.locator(".tl-seen:visible").evaluate_all("nodes => nodes.map((node) => node.dataset.at)")
    assert marked_cells == ["1 1", "2 0", "2 1"]
    assert page.get_by_role("gridcell", name="queries 2, keys 1: visible", exact=True).count() == 1
    page.keyboard.press("Enter")
    assert status(page).startswith("Not right. ")


def test_a_table_has_a_field_for_each_number(open_practice):
    page = open_practice(practice_lab(Table(), asked_value=lambda result, n: [[2 * result, 1], [0, 5]]))
    n = number_in_question(page)
    for name, text in {"Row 0, column 0": n, "Row 0, column 1": 1, "Row 1, column 0": 0}.items():
        page.get_by_label(name, exact=True).fill(str(text))
    page.keyboard.press("Enter")
    assert status(page).startswith("The answer is not complete yet.")
    page.get_by_label("Row 1, column 1", exact=True).fill("6")
    page.keyboard.press("Enter")
    assert status(page) == "Not right. Only row 1, column 1 is wrong."
    page.get_by_label("Row 1, column 1", exact=True).fill("x")
    assert page.get_by_role("alert").get_by_text("“x” is not a number.").is_visible()
    page.get_by_label("Row 1, column 1", exact=True).fill("5")
    page.keyboard.press("Enter")
    assert status(page) == "Right."


def test_one_option_is_chosen_and_then_checked(open_practice):
    options = {0.5: "a half", 2: "twice as much", 1.1: "one more"}
    page = open_practice(
        practice_lab(Choice(options), asked_value=lambda result, n: 1.1 if result == n + 1 else result / n)
    )
    page.get_by_role("button", name="Check").click()
    assert status(page).startswith("The answer is not complete yet.")
    page.get_by_role("button", name="twice as much").click()
    page.get_by_role("button", name="Check").click()
    assert status(page).startswith("Not right. You double it")
    page.get_by_role("button", name="a half").click()
    assert status(page) == "Choose an answer, then check."
    page.get_by_role("button", name="Check").click()
    assert status(page) == "Right."


def test_steps_are_ordered_by_keyboard_without_losing_focus(open_practice):
    page = open_practice(practice_lab(Order(STEPS), asked_value=lambda result, n: STEPS if result < n else STEPS[::-1]))
    order = page.locator(".tl-sequence:visible li > :first-child")
    assert order.all_inner_texts() == sorted(STEPS)
    page.get_by_role("button", name="Down: blend").focus()
    for _ in range(3):
        page.keyboard.press("Enter")
    assert order.all_inner_texts()[-1] == "blend"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Up: blend, 4 of 4"
    page.get_by_role("button", name="Check").click()
    assert status(page) == "Not right. The right answer begins with a different step."
    page.get_by_role("button", name="Up: scores").click()
    page.get_by_role("button", name="Check").click()
    assert status(page) == "Right."


def test_an_error_as_an_answer_has_a_button(open_practice):
    numbers = Numbers(refusal="It raises")
    page = open_practice(
        practice_lab(numbers, asked_value=lambda result, n: (int(result) + 1 if result < n else 0 / 0,))
    )
    page.get_by_role("button", name="It raises").click()
    page.get_by_role("button", name="Check").click()
    assert "Two mistakes lead to this answer" in status(page)
    submit_answer(page, f"({number_in_question(page) // 2 + 1},)")
    assert status(page) == "Right."
