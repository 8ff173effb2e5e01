"""The page about a training that is still running."""

from watching import Watched

from carryscope.report.live import LIVE_FILE, watched, write_live
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.loop import train
from carryscope.training.presets import run_config

QUICK = run_config("tiny", {"steps": 12, "d_model": 24})
LAYOUT = QUICK.model.layout


def test_it_reloads_itself_while_the_training_runs_and_not_after_it(tmp_path, visit):
    heard = Watched()
    train(QUICK, tmp_path, progress=watched(heard, tmp_path, LAYOUT))
    assert len(heard.notes) == 12, "the progress is passed on"
    page = visit(tmp_path / LIVE_FILE)
    assert page.locator("meta[http-equiv=refresh]").count() == 0
    assert page.locator("h2").inner_text().startswith("Step 12/12 loss ")
    assert page.locator("figure svg").count() == 2
    write_live(tmp_path, LAYOUT, "step 12", over=False)
    page.reload()
    assert page.locator("meta[http-equiv=refresh]").get_attribute("content") == "5"
    page.wait_for_function("() => performance.now() > 1000")
    page.locator("h2").evaluate("(title) => (title.textContent = 'old')")
    page.locator("h2", has_text="Step 12").wait_for()


def test_half_a_line_or_no_line_yet_does_no_harm(tmp_path):
    write_live(tmp_path, LAYOUT, "begins", over=False)
    train(QUICK, tmp_path / "run")
    with (tmp_path / "run" / METRICS_FILE).open("ab") as file:
        file.write(b'{"step": 13, "lo')
    write_live(tmp_path / "run", LAYOUT, "step 13", over=False)
    assert "Training loss of each answer digit" in (tmp_path / "run" / LIVE_FILE).read_text()
