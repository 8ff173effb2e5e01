"""The page itself: one file, safe with any name, at home in any window and in another page."""

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from report.shelves import bare_shelf

import carryscope
from carryscope.cli.main import run as cli
from carryscope.dissection.asking import answers_without
from carryscope.model.files import with_weights
from carryscope.report.explorer import examples, reference_means, sayings
from carryscope.report.page import EXPLORER_SCRIPTS, EXPLORER_STYLES, explorer_page
from carryscope.task.columns import Columns
from carryscope.task.operation import OPERATIONS
from carryscope.task.tokens import Format
from carryscope.training.checkpoint import kept_weights
from carryscope.training.loop import train
from carryscope.training.presets import run_config

HOSTILE = """</script><script>alert("1")</script><img src=x onerror=alert(2)>&'"{{ 7*7 }}"""

BROWSER = Path(carryscope.__file__).parent / "report" / "browser" / "explorer"


@pytest.fixture(scope="module")
def found():
    return carryscope.load().dissection()


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "tiny"
    train(run_config("tiny", {"steps": 20, "d_model": 24}), directory, keep_checkpoints=3)
    return directory


def hostile(found):
    """Findings in which every text that reaches the page is hostile."""
    replace = msgspec.structs.replace
    heads = [replace(head, role=HOSTILE) for head in found.attention.heads]
    purposes = [replace(p, variable=HOSTILE, kind=HOSTILE) for p in found.subtasks.purposes]
    return replace(
        found,
        attention=replace(found.attention, heads=heads, statement=HOSTILE),
        subtasks=replace(found.subtasks, purposes=purposes),
        nodes=replace(found.nodes, how=HOSTILE),
    )


def test_hostile_names_and_findings_are_text(explore_model, random_model, found):
    explorer = explore_model(random_model(digits=5), HOSTILE, hostile(found))
    assert explorer.page.locator(".run").inner_text() == HOSTILE
    assert explorer.page.title().startswith(HOSTILE)
    assert explorer.page.locator(".panel .role").first.inner_text() == HOSTILE
    assert HOSTILE in explorer.part("row-parts").inner_text()
    assert HOSTILE in explorer.part("source").inner_text()
    explorer.part("tour-open").click()
    for _ in range(3):
        explorer.part("tour-next").click()
    assert HOSTILE in explorer.part("tour-text").inner_text()
    assert explorer.page.locator("img").count() == 0


def test_the_run_the_issue_names_is_a_heading(explore_model, random_model):
    explorer = explore_model(random_model(digits=2), "<script>alert(1)</script>")
    name = "How <script>alert(1)</script> adds"
    assert explorer.page.get_by_role("heading", name=name).first.is_visible()


def test_without_findings_it_works_and_says_what_is_missing(explore_model, random_model):
    explorer = explore_model(random_model(digits=3, layers=2, format="signed"))
    assert "has no findings" in explorer.part("source").inner_text()
    assert "No findings about it." in explorer.part("row-parts").inner_text()
    assert len(explorer.answer) == 5
    assert explorer.page.locator(".layer").count() == 2
    explorer.named("P2.L0.H1").click()
    assert explorer.status.startswith("Without L0 H1 at row D0:")
    explorer.part("tour-open").click()
    for _ in range(6):
        assert "undefined" not in explorer.part("tour-text").inner_text()
        explorer.part("tour-next").click()


@pytest.mark.parametrize("digits", [1, 2, 10])
def test_any_number_of_digits_fits_into_360_pixels(digits, explore_model, random_model):
    explorer = explore_model(random_model(digits=digits), width=360)
    assert explorer.page.evaluate("document.documentElement.scrollWidth") == 360
    explorer.part("tour-open").click()
    for _ in range(6):
        box = explorer.part("tour").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        explorer.part("tour-next").click()


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_what_is_behind_it(dark, explore_model, random_model):
    explorer = explore_model(random_model(digits=2), dark=dark)
    colours = explorer.page.evaluate(
        """() => { const root = document.querySelector(".carryscope-explorer");
        return Object.fromEntries(["card", "wash", "ink", "soft", "blue", "wrong", "wrong-wash",
            "on-blue"].map((name) => {
                root.style.color = `var(--${name})`;
                return [name, getComputedStyle(root).color.match(/\\d+/g).map(Number)];
            })); }"""
    )
    pairs = ["ink card", "ink wash", "soft card", "soft wash", "wrong card", "wrong wrong-wash"]
    for pair in [*pairs, "blue card", "on-blue blue"]:
        text, behind = (luminance(colours[name]) for name in pair.split())
        contrast = (max(text, behind) + 0.05) / (min(text, behind) + 0.05)
        assert contrast >= 4.5, f"{pair}: {contrast:.2f}, WCAG AA asks for 4.5"


def luminance(colour: list[int]) -> float:
    """Relative luminance as WCAG defines it."""
    parts = np.array(colour) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_everything_that_can_be_worked_has_a_name(explore, shipped_page):
    page = explore(shipped_page, "#explorer?q=445+555&off=L0.H1,P13.L0.H0.P1").page
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, [role=spinbutton], .cell")]
        .filter((e) => e.getAttribute("aria-hidden") !== "true")
        .filter((e) => !e.getAttribute("aria-label") && !e.textContent && !e.labels?.length)
        .map((e) => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.slow  # a time, not a ratio: a busy machine must not fail it
def test_a_keystroke_is_answered_within_50_ms(shipped):
    shipped.named("L0.H1").click()
    code = """Array.from({ length: 15 }, (_, i) => {
        const input = document.querySelector("[data-part=input]");
        input.value = `${12345 + 6789 * i}+${98765 - 4321 * i}`;
        if (input.value.length > 11) return 0;
        const start = performance.now();
        input.dispatchEvent(new Event("input"));
        document.body.getBoundingClientRect();
        return performance.now() - start;
    }).filter(Boolean)"""
    times = shipped.call(code)
    assert len(times) > 10
    # All digits change each time and a head is away, so the model runs twice: the worst case.
    # The fastest counts, because whatever else the machine does can only add.
    assert min(times) < 50, times


def test_it_is_small_enough_for_a_report(shipped_page):
    assert shipped_page.stat().st_size < 15_000_000, "a report with it in must stay below 20 MB"


@pytest.mark.slow  # a time, not a ratio: a busy machine must not fail it
def test_it_opens_within_two_seconds(explore, shipped_page):
    times = [explore(shipped_page).page.evaluate("performance.now()") for _ in range(2)]
    assert min(times) < 2000, times


def test_it_names_no_address_and_allows_nothing_but_itself(shipped_page):
    text = shipped_page.read_text().replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in text
    assert "https:" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy[1]


def test_its_style_reaches_nothing_outside_of_it(shipped):
    outside = """() => [...document.styleSheets[0].cssRules].map((rule) => rule.selectorText ?? "")
        .filter((selector) => selector.includes("carryscope-explorer"))"""
    assert set(shipped.page.evaluate(outside)) == {".carryscope-explorer"}
    for name in EXPLORER_STYLES:
        text = (BROWSER / f"{name}.css").read_text()
        starts = re.findall(r"^(?!\s|/|\}|@keyframes|$)\S.*$", text, flags=re.MULTILINE)
        assert set(starts) <= {".carryscope-explorer {"}, name


def test_in_a_notebook_it_runs_in_a_frame_of_its_own(visit, tmp_path, random_model):
    model = random_model(digits=2)
    shown = explorer_page(
        [(bare_shelf(model, "</iframe><b id=out>"), model)], "12+34"
    )._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html>{shown}")
    page = visit(tmp_path / "notebook.html")
    frame = page.frames[1]
    frame.wait_for_selector(".carryscope-explorer[aria-busy=false]")
    assert frame.locator("[data-part=short-answer]").inner_text().startswith("12+34 = ")
    frame.locator("[data-part=input]").fill("12+35")
    page.wait_for_timeout(400)  # until it would write its address
    assert frame.locator("[data-part=short-answer]").inner_text().startswith("12+35 = ")
    assert page.locator("#out").count() == 0


def test_a_link_to_another_place_on_the_page_is_left_alone(explore, shipped_page):
    page = explore(shipped_page, "#try").page
    page.wait_for_timeout(400)
    assert page.evaluate("location.hash") == "#try"


LABELS = {
    "addition": ["BA", "UC1", "Simple US9", "Cascade 2", "Cascade 3", "Cascade 4"],
    "subtraction": ["MD", "UB", "Simple UZ", "Cascade 2", "Cascade 3"],
}


@pytest.mark.parametrize("operation", LABELS)
@pytest.mark.parametrize("digits", [2, 3, 4, 5, 10, 20])
def test_examples_are_of_the_class_they_are_said_to_be(digits, operation):
    layout = Format(digits, "signed", 15, OPERATIONS[operation])
    chosen, labels = examples(layout), LABELS[operation]
    most = digits + 1 - (operation == "subtraction")
    assert [example["label"] for example in chosen] == labels[:most]
    for travelled, example in enumerate(chosen):
        columns = Columns.of(layout.parse(example["sum"]))
        distance = np.where(columns.carry_in, columns.look_ahead + 1, 0).max()
        assert distance == travelled, f"{example['label']}: it passes {distance - 1} columns"


def test_a_mixed_model_has_examples_of_both_operations():
    sums = [example["sum"] for example in examples(Format(5, "signed", 15, OPERATIONS["mixed"]))]
    assert {"445+555", "1000-1"} <= set(sums)


def test_means_are_those_of_the_engine(random_model):
    model = random_model(digits=2, layers=2)
    run_over = carryscope.dissection.samples.Samples(2, 7).varied
    tokens = torch.from_numpy(model.config.layout.encode(run_over))
    means = reference_means(model, seed=7)
    with torch.inference_mode():
        _, cache = model.run_with_cache(tokens)
    assert set(means) == {f"mean.{i}.{n}" for i in (0, 1) for n in ("z", "mlp_out", "resid_post")}
    for name, site in [("z", "attn.hook_z"), ("mlp_out", "hook_mlp_out")]:
        torch.testing.assert_close(means[f"mean.1.{name}"], cache[f"blocks.1.{site}"].mean(0))


def test_sayings_tell_a_shared_purpose_with_its_partners(found):
    purpose = next(p for p in found.subtasks.purposes if p.node == "P13.L0.H1")
    shared = msgspec.structs.replace(purpose, node="P13.L0.H1+H2", heads=[1, 2])
    subtasks = msgspec.structs.replace(found.subtasks, purposes=[shared])
    told = sayings(msgspec.structs.replace(found, subtasks=subtasks))
    assert told["nodes"]["P13.L0.H2"].startswith(
        "Together with H1 it carries whether column 2 makes a carry"
    )
    assert told["nodes"]["P13.L0.H0"].startswith("What it carries was not found. Without it 84% of")
    assert told["nodes"]["P16.L0.H2"].startswith("Not used:")


def test_the_command_writes_the_page_and_ends_with_its_path(tiny_run, capsys, tmp_path):
    assert cli(["explorer", str(tiny_run)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(tiny_run / "explorer.html")
    out = tmp_path / "new" / "page.html"
    assert cli(["explorer", str(tiny_run), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"path": str(out), "bytes": out.stat().st_size}


def test_a_slider_shows_attention_and_answers_at_the_steps_that_were_kept(tiny_run, explore):
    run = carryscope.load(tiny_run)
    path = tiny_run / "lapse.html"
    run.explorer().save(path)
    explorer = explore(path)
    shown = "explorer.layers[0].maps[1].lines[0].cells[1].dataset.share"
    trained, slider = explorer.call(shown), explorer.part("moment")
    assert slider.input_value() == "3", "it opens with the trained model"
    layout = run.config.model.layout
    varied = carryscope.dissection.samples.Samples.of(layout, 0).varied
    asked = varied[np.linspace(0, len(varied) - 1, 256).astype(int)]
    for place, (step, kept) in enumerate(kept_weights(tiny_run)):
        slider.fill(str(place))
        told = explorer.part("moment-told").inner_text()
        assert told.startswith(f"Step {step}: attention on average. Digits right: A2 ")
        model = with_weights(run.config.model, kept, tiny_run)
        assert f"25+79 = {answers_without(model, ['25+79'], ())[0].answer}" in told
        with torch.inference_mode():
            _, cache = model.run_with_cache(torch.from_numpy(layout.encode(asked)))
        pattern = cache["blocks.0.attn.hook_pattern"].mean(0)[1, layout.first_row]
        seen = explorer.call("[...explorer.lapse.at.patternAt(0, 1, argument)]", layout.first_row)
        assert seen == pytest.approx(pattern[: layout.first_row + 1].tolist(), abs=0.003)
    explorer.type("12+34")
    assert slider.input_value() == "3", "whatever is asked is asked of the trained model"
    explorer.type("25+79")
    assert explorer.call(shown) == trained


def test_findings_about_other_weights_are_left_out_with_a_remark(tiny_run, capsys, tmp_path):
    findings = tiny_run / "findings" / "dissection.json"
    findings.write_bytes(
        (carryscope.load().directory / "findings" / "dissection.json").read_bytes()
    )
    assert cli(["explorer", str(tiny_run), "--out", str(tmp_path / "page.html")]) == 0
    assert "without findings" in capsys.readouterr().err
    findings.unlink()


def test_a_wrong_call_is_told_in_one_line(tiny_run, capsys, tmp_path):
    assert cli(["explorer", "nowhere"]) == 2
    assert cli(["explorer", str(tiny_run), "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "No run at nowhere" in told[0]
    assert "it is a directory. Choose another --out." in told[1]


def test_every_file_of_the_page_is_used_and_short_enough_to_read():
    files = {file.name: file.read_text().splitlines() for file in BROWSER.iterdir()}
    used = {f"{name}.js" for name in EXPLORER_SCRIPTS}
    used |= {f"{name}.css" for name in EXPLORER_STYLES}
    assert set(files) == used | {"explorer.html"}
    for name, lines in files.items():
        assert len(lines) <= 300, name
        assert max(map(len, lines)) <= 100, name
