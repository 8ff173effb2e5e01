"""The explorer as a person uses it, in a real browser: asking, taking apart, going back."""

import pytest
from micro_model import micro_model

import carryscope
from carryscope.dissection.asking import answers_without
from carryscope.dissection.interventions import Ablate
from carryscope.task.questions import parse_question

SUMS = ["445+555", "0+0", "12345+54321", "25+79", "99999+1", "1234+8769"]


@pytest.fixture(scope="module")
def model():
    return carryscope.load().model()


@pytest.fixture(scope="module")
def engine():
    return carryscope.load().engine()


def test_it_opens_with_an_answer_and_the_network_off(shipped):
    assert shipped.page.evaluate("navigator.onLine") is False
    assert shipped.page.get_by_role("heading", name="How fast-5 adds").is_visible()
    assert shipped.answer == "000000"
    assert shipped.status == "Nothing is taken away. Wrong at A3."


def test_what_it_tells_about_every_digit_is_what_ask_tells(shipped, model):
    for text in SUMS:
        shipped.type(text)
        told = shipped.call("explorer.result.digits")
        for digit, expected in zip(told, answers_without(model, [text], ())[0].digits, strict=True):
            assert (digit["name"], digit["written"]) == (expected.name, expected.predicted)
            assert (digit["truth"], digit["task"]) == (expected.truth, expected.task)
            assert digit["lookAhead"] == expected.look_ahead
            assert digit["carrying"] == expected.carrying
            assert digit["probability"] == pytest.approx(expected.probability, abs=1e-3)


def test_a_card_shows_the_digit_its_mark_its_chance_its_task_and_its_nines(shipped):
    card = shipped.page.locator(".answer").nth(2)
    shown = "A3 ✗ 0 82% a carry through 2 nines should be 1 UC1"
    assert card.inner_text().split() == shown.split()
    label = "A3: 0, wrong, it is 1, 82% sure, task UC1, look-ahead 2"
    assert card.get_attribute("aria-label") == label


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("12x+5", "A sum has only digits and one “+”. Got “x”."),
        ("123456+1", "at most 5 digits. One here has 6."),
        ("-5+3", "only adds, without minus signs"),
        ("", "Type a sum such as 445+555."),
        ("12", "two numbers with one “+”"),
        ("1+2+3", "two numbers with one “+”"),
        ("1 2+3", "no spaces inside"),
        ("<b>1</b>+1", "Got “<”"),
        ("\u0661+\u0662", "Got “\u0661”"),
    ],
)
def test_what_is_no_sum_is_told_in_one_line_and_the_last_answer_stays(typed, message, shipped):
    shipped.type("25+79")
    shipped.type(typed)
    assert message in shipped.part("message").inner_text()
    assert shipped.part("input").get_attribute("aria-invalid") == "true"
    assert shipped.answer == "000104"
    shipped.part("input").blur()
    assert shipped.part("input").input_value() == "25+79"
    assert shipped.part("message").inner_text() == ""


def test_spaces_zeros_and_an_equals_sign_do_no_harm(shipped):
    shipped.type("  0000000025 + 079 = ")
    assert shipped.answer == "000104"


def test_digits_are_stepped_and_typed_one_by_one(shipped):
    shipped.type("9+0")
    shipped.page.get_by_role("spinbutton", name="D0, digit 0 of the first number").press("ArrowUp")
    assert shipped.part("input").input_value() == "0+0"
    units = shipped.page.get_by_role("spinbutton", name="D'1, digit 1 of the second number")
    units.press("4")
    shipped.page.keyboard.press("2")
    assert shipped.part("input").input_value() == "0+42"
    shipped.page.get_by_title("D3 down").click()
    assert shipped.part("input").input_value() == "9000+42"
    assert shipped.answer == "009042"


def test_every_example_can_be_picked(shipped):
    picks = shipped.part("examples").get_by_role("button").all()
    assert len(picks) == 6
    for pick in picks:
        pick.click()
        assert shipped.part("input").input_value() == pick.get_attribute("data-sum")
        assert pick.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize(
    ("name", "site", "rows", "heads"),
    [
        ("L0.H0", "blocks.0.attn.hook_z", range(17), (0,)),
        ("P16.L0.H0", "blocks.0.attn.hook_z", [16], (0,)),
        ("L0.MLP", "blocks.0.hook_mlp_out", range(17), None),
        ("P15.L0.MLP", "blocks.0.hook_mlp_out", [15], None),
        ("P16.L0", "blocks.0.hook_resid_post", [16], None),
    ],
)
def test_clicking_a_part_away_breaks_the_digits_it_breaks_in_python(
    name, site, rows, heads, shipped, engine
):
    shipped.type("12345+54321")
    assert "Every digit is right" in shipped.status
    shipped.named(name).click()
    assert shipped.removed == [name]
    question = parse_question("12345+54321", 5)
    outcome = engine.answers(question, [Ablate(site, tuple(rows), heads, "mean")])
    broken = shipped.page.locator(".answer[data-broken]").count()
    assert broken > 0
    # Up to the first wrong digit, free running and teacher forcing read the same.
    first_wrong = int(outcome.right[0, 0].argmin())
    written = shipped.answer[: first_wrong + 1]
    assert written == "".join(map(str, outcome.predicted[0, 0, : first_wrong + 1]))
    assert shipped.status.startswith("Without ")
    assert "break" in shipped.status
    shipped.part("reset").click()
    assert shipped.removed == []
    assert shipped.answer == "066666"


def test_one_edge_is_cut_by_a_click_and_what_is_left_is_scaled_up(shipped):
    before = shipped.call("[...explorer.result.machine.patternAt(0, 0, 13)]")
    shipped.named("P13.L0.H0.P1").click()
    after = shipped.call("[...explorer.result.machine.patternAt(0, 0, 13)]")
    assert after[1] == 0
    assert sum(after) == pytest.approx(1)
    assert after[7] == pytest.approx(before[7] / (1 - before[1]))
    assert shipped.status.startswith("Without H0 at row A3 reading D3:")


def test_zero_and_mean_are_one_choice_and_give_different_answers(shipped):
    shipped.named("P15.L0.MLP").click()
    mean = shipped.call("explorer.result.digits[4].chances")
    shipped.page.get_by_role("radio", name="zero").click()
    assert shipped.page.get_by_role("radio", name="zero").get_attribute("aria-checked") == "true"
    assert shipped.call("explorer.result.digits[4].chances") != mean
    shipped.page.keyboard.press("ArrowLeft")
    assert shipped.call("explorer.result.digits[4].chances") == mean


def test_undo_goes_back_step_by_step(shipped):
    assert shipped.part("undo").is_disabled()
    shipped.type("25+79")
    shipped.named("L0.H1").click()
    shipped.named("P13.L0.H0").click()
    shipped.part("reset").click()
    shipped.part("undo").click()
    assert shipped.removed == ["L0.H1", "P13.L0.H0"]
    shipped.page.keyboard.press("Control+z")
    assert shipped.removed == ["L0.H1"]
    shipped.part("undo").click()
    assert shipped.removed == []
    shipped.part("undo").click()
    assert shipped.part("input").input_value() == "445+555"
    assert shipped.part("undo").is_disabled()


def test_a_chip_puts_its_part_back(shipped):
    shipped.named("L0.H1").click()
    shipped.named("L0.H2").click()
    shipped.part("removed").get_by_role("button", name="Put back H1").click()
    assert shipped.removed == ["L0.H2"]


def test_a_link_holds_all_that_is_shown(shipped, explore, shipped_page):
    shipped.type("54321+45679")
    shipped.named("P14.L0").click()
    shipped.named("P13.L0.H0.P1").click()
    shipped.page.get_by_role("radio", name="zero").click()
    shipped.part("copy").click()
    again = explore(shipped_page, shipped.page.evaluate("location.hash"))
    assert again.removed == ["P14.L0", "P13.L0.H0.P1"]
    assert again.part("input").input_value() == "54321+45679"
    code = "explorer.result.digits.map((digit) => [...digit.chances])"
    assert again.call(code) == shipped.call(code)
    again.page.mouse.move(0, 0)
    shipped.page.mouse.move(0, 0)
    assert again.part("row-title").inner_text() == shipped.part("row-title").inner_text()


def test_the_address_follows_what_is_done_and_a_new_address_is_followed(shipped):
    shipped.named("L0.H2").click()
    shipped.page.wait_for_url("**off=L0.H2**")
    shipped.page.evaluate("location.hash = '#explorer?q=1+2&off=L0.MLP&how=zero'")
    shipped.part("removed").get_by_role("button", name="Put back MLP").wait_for()
    assert shipped.removed == ["L0.MLP"]
    assert shipped.part("input").input_value() == "1+2"
    shipped.part("undo").click()
    assert shipped.removed == ["L0.H2"]


@pytest.mark.parametrize(
    "fragment",
    [
        "#explorer?q=%%%&off=L9.H9,P99.L0,<script>,P3.L0.H0.P9,,L0&how=all&row=3",
        "#explorer?q=<img src=x onerror=alert(1)>&off=__proto__",
        "#explorer?",
        "#method",
    ],
)
def test_a_link_that_makes_no_sense_does_no_harm(fragment, explore_model):
    explorer = explore_model(micro_model(), fragment=fragment)
    assert explorer.removed == []
    assert explorer.part("input").input_value() == "6+7"


def test_hovering_a_row_shows_what_heads_read_there_and_what_the_findings_say(shipped):
    shipped.named("P14.L0.H0.P2").hover()
    title = shipped.part("row-title").inner_text()
    assert title.startswith("Row A2 reads “0” (A3) and writes A2 · H0 gives D2 ")
    told = shipped.part("row-parts").inner_text()
    assert "Carries the base sum (BA) of column 2." in told
    readings = shipped.page.locator(".column").all_text_contents()
    assert [text.split(":")[0] for text in readings] == [
        "reads column 2",
        "reads column 1",
        "reads column 0",
    ]
    assert "of questions fail" in told
    shipped.page.mouse.move(5, 5)
    assert shipped.part("row-title").inner_text().startswith("Row A3 ")


def test_a_row_can_be_chosen_by_its_digit_and_taken_apart_below(shipped):
    shipped.page.locator(".answer").nth(4).click()
    assert shipped.part("row-title").inner_text() == "Row A1 reads “0” (A2) and writes A1"
    shipped.page.get_by_role("button", name="Take away H0 at row A1").click()
    assert shipped.removed == ["P15.L0.H0"]
    back = shipped.page.get_by_role("button", name="Put back H0 at row A1").last
    assert back.evaluate("(button) => button === document.activeElement"), "the keyboard stays"
    shipped.page.locator(".edge").first.click()
    assert len(shipped.removed) == 2


def test_without_a_mouse_edges_and_heads_are_reached_and_taken_away(shipped):
    keyboard = shipped.page.keyboard
    shipped.named("L0.H1").focus()
    keyboard.press("Enter")
    assert shipped.removed == ["L0.H1"]
    keyboard.press("Enter")
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    keyboard.press("Space")
    assert shipped.removed == ["P12.L0.H1"]
    keyboard.press("ArrowDown")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    assert shipped.removed == ["P12.L0.H1", "P13.L0.H1.P1"]
    assert shipped.part("row-title").inner_text().startswith("Row A3 ")
    keyboard.press("Tab")
    focused = shipped.page.evaluate("document.activeElement.dataset.name")
    assert focused == "L0.H2", "a map is one stop of the tab key"


def test_the_tour_has_six_steps_that_show_what_they_talk_about(shipped):
    shipped.part("tour-open").click()
    titles = []
    for step in range(1, 7):
        assert shipped.part("tour-count").inner_text() == f"Step {step} of 6"
        titles.append(shipped.part("tour-title").inner_text())
        assert len(shipped.part("tour-text").inner_text()) > 80
        assert shipped.page.locator(".lit").count() == 1
        if step == 5:
            assert shipped.removed == ["L0.H0"]
            assert "break" in shipped.part("tour-text").inner_text()
        if step == 6:
            assert "The model says 000000: wrong" in shipped.part("tour-text").inner_text()
        shipped.part("tour-next").click()
    assert len(set(titles)) == 6
    assert shipped.part("tour").is_hidden()
    assert shipped.page.locator(".lit").count() == 0
    assert shipped.removed == []


def test_the_tour_is_walked_back_and_left_by_the_keyboard(shipped):
    shipped.part("tour-open").press("Enter")
    shipped.part("tour-next").press("Enter")
    shipped.part("tour-back").press("Enter")
    assert shipped.part("tour-count").inner_text() == "Step 1 of 6"
    assert shipped.part("tour-back").is_disabled()
    shipped.page.keyboard.press("Escape")
    assert shipped.part("tour").is_hidden()
    focused = shipped.page.evaluate("document.activeElement.dataset.part")
    assert focused == "tour-open"


def test_why_a_digit_is_wrong_is_told_in_the_words_of_python(shipped):
    """For fifty sums that fail: the same sentence, so the same columns, read and not read."""
    run = carryscope.load()
    failing = [stratum.simplest for stratum in run.risk().strata if stratum.simplest][:50]
    assert len(failing) == 50
    told = 0
    for given in answers_without(run.model(), failing, ()):
        shipped.type(given.question)
        for place, digit in enumerate(given.digits):
            if digit.explanation is not None:
                shipped.call("explorer.store.look(argument)", 11 + place)
                assert shipped.part("why").inner_text() == digit.explanation.sentence
                told += 1
    assert told >= 50


def test_columns_show_who_reads_them_and_the_one_that_nobody_reads(shipped):
    readers = shipped.page.locator(".reader").all_inner_texts()
    assert readers == ["", "", "H0", "H1", "H2", "no head"]
    blind = shipped.page.locator(".digit[data-blind]").all()
    assert [one.get_attribute("aria-label")[:3] for one in blind] == ["D0,", "D'0"]
    assert shipped.page.locator(".carry").all_inner_texts() == ["", "", "1", "1", "1", ""]
    shipped.page.locator(".answer").nth(5).click()
    assert shipped.page.locator(".digit[data-blind]").count() == 0
    assert shipped.part("why").inner_text().startswith("A0 is 0, which is right.")


def test_a_head_that_is_taken_away_reads_nothing(shipped):
    shipped.named("L0.H1").click()
    assert shipped.page.locator(".reader").all_inner_texts()[2:] == [
        "H0",
        "no head",
        "H2",
        "no head",
    ]


def test_every_failure_that_is_shown_is_one(shipped):
    seen = set()
    for _ in range(20):
        shipped.part("failure").click()
        assert shipped.call("explorer.result.digits.some((digit) => !digit.right)")
        assert shipped.part("why").get_attribute("data-wrong") is not None
        seen.add(shipped.part("input").input_value())
    assert len(seen) == 20
    assert shipped.part("failure").inner_text() == "Show me the next failure"


def test_failures_are_chosen_by_kind_by_digit_and_by_look_ahead(shipped, model):
    failing = [one.simplest for one in carryscope.load().risk().strata if one.simplest]
    first = {}
    for given in answers_without(model, failing, ()):
        first[given.question] = next(d for d in given.digits if d.predicted != d.truth)
    for by, value, holds in [
        ("digit", "A4", lambda digit: digit.name == "A4"),
        ("ahead", "3-", lambda digit: (digit.look_ahead, digit.carrying) == (3, False)),
        ("kind", "missed", lambda digit: digit.explanation.assumed is False),
    ]:
        chosen = shipped.page.locator(f"[data-by={by}]")
        chosen.select_option(value)
        expected = [text for text, digit in first.items() if holds(digit)]
        assert shipped.part("failure-told").inner_text() == f"1 of {len(expected)} that are known."
        for text in expected[:3]:
            assert shipped.part("input").input_value() == text
            shipped.part("failure").click()
        chosen.select_option("")
    shipped.page.locator("[data-by=digit]").select_option("A3")
    shipped.page.locator("[data-by=ahead]").select_option("4-")
    assert shipped.part("failure-told").inner_text() == "No such failure is known."
    for by in ("digit", "ahead"):
        shipped.page.locator(f"[data-by={by}]").select_option("")


def test_a_cell_of_the_failure_map_opens_a_sum_of_its_kind(shipped):
    for digit, ahead, fails in [("A3", "2+", True), ("A5", "5-", True), ("A2", "1+", False)]:
        shipped.page.evaluate("(hash) => (location.hash = hash)", f"#explorer?case={digit}.{ahead}")
        shipped.page.wait_for_function("() => location.hash.includes('row')")
        shown = shipped.call("explorer.result.digits[explorer.store.state.row - 11]")
        assert shown["name"] == digit
        assert f"{shown['lookAhead']}{'-+'[shown['carrying']]}" == ahead
        assert shown["right"] is not fails


def test_without_known_failures_none_is_promised(explore_model, random_model):
    explorer = explore_model(random_model(digits=2))
    assert explorer.part("failure").count() == 0


def test_play_writes_the_same_answer_digit_by_digit(shipped):
    whole, lines = shipped.answer, shipped.page.locator(".lines path")
    assert lines.count() == 0
    for written in range(1, 7):
        shipped.part("step").click()
        assert shipped.call("explorer.store.state.row") == 10 + written
        assert shipped.page.locator(".answer[data-unwritten]").count() == 6 - written
        assert shipped.part("short-answer").inner_text() == f"445+555 = {whole[:written]}"
        read = "explorer.result.machine.patternAt(0, head, argument)"
        patterns = shipped.call(f"[0, 1, 2].map((head) => [...{read}])", 10 + written)
        drawn = [x for row in patterns for p, x in enumerate(row) if x >= 0.1 and p != 11]
        assert lines.count() == len(drawn), "a line to all that is read, but the sign '='"
    shipped.part("step").click()
    assert shipped.answer == whole
    assert lines.count() == 0
    assert shipped.call("explorer.store.past.length") == 0, "nothing to undo"
    assert shipped.call("explorer.store.state.row") == 13, "at the first wrong digit"


def test_play_runs_by_itself_is_paused_and_ends_when_something_else_is_asked(shipped):
    shipped.part("speed").select_option("fast")
    shipped.part("play").click()
    assert shipped.part("play").inner_text() == "Pause"
    shipped.page.locator(".answer[data-unwritten]").nth(3).wait_for(state="detached")
    shipped.part("play").click()
    assert shipped.part("play").inner_text() == "Go on"
    unwritten = shipped.page.locator(".answer[data-unwritten]").count()
    shipped.page.wait_for_timeout(700)
    assert shipped.page.locator(".answer[data-unwritten]").count() == unwritten
    shipped.type("25+79")
    assert shipped.answer == "000104"
    assert shipped.part("play").inner_text() == "Play"
    assert shipped.page.locator(".answer[data-unwritten]").count() == 0


def test_the_tour_leaves_nothing_to_undo_and_shows_again_what_was_there(shipped):
    shipped.type("25+79")
    past = shipped.call("explorer.store.past.length")
    shipped.part("tour-open").click()
    for _ in range(4):
        shipped.part("tour-next").click()
    shipped.part("tour-close").click()
    assert shipped.call("explorer.store.past.length") == past
    assert shipped.part("input").input_value() == "25+79"
    assert shipped.removed == []


def test_a_copied_link_leaves_the_state_in_sight(shipped):
    shipped.named("L0.H1").click()
    before = shipped.status
    shipped.part("copy").click()
    shipped.page.wait_for_function(
        "document.querySelector('.carryscope-explorer').explorer.removed.timer"
    )
    assert shipped.status == before


def test_a_link_to_a_sum_opens_at_the_digit_that_is_wrong(shipped):
    shipped.page.evaluate("location.hash = '#explorer?q=9930+70'")
    shipped.part("short-answer").get_by_text("9930+70").wait_for()
    wrong = shipped.call("explorer.result.digits.findIndex((digit) => !digit.right)")
    assert wrong >= 0
    assert shipped.call("explorer.store.state.row") == 11 + wrong


def test_fingers_have_room_on_a_phone(shipped):
    shipped.page.set_viewport_size({"width": 390, "height": 800})
    small = shipped.page.evaluate(
        """() => [...document.querySelectorAll("button, summary, select")]
        .filter((one) => one.offsetParent).map((one) => [one.textContent, one.offsetHeight])
        .filter(([, height]) => height < 40)"""
    )
    wide = shipped.page.evaluate("document.documentElement.scrollWidth")
    shipped.page.set_viewport_size({"width": 1280, "height": 900})
    assert small == []
    assert wide == 390
