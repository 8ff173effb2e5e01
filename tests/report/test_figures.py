"""Figures are drawn from findings, say what they show, and need neither browser nor network."""

import dataclasses
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import altair as alt
import msgspec
import numpy as np
import pytest
import torch

import carryscope
from carryscope.core.errors import CallError
from carryscope.core.evidence import Share
from carryscope.dissection.dissect import dissect
from carryscope.dissection.findings import Dissection
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.report.figures.catalogue import figure
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.framework import framework_graph
from carryscope.report.figures.maps import one_pattern, staircase
from carryscope.report.figures.nodes import node_map
from carryscope.report.figures.training import check_scale, task_curves
from carryscope.report.shelf import Shelf
from carryscope.task.tokens import Format
from carryscope.training.config import RunConfig

HOSTILE = """</text><script>alert("1")</script>&'|"""


@pytest.fixture(scope="session")
def shipped() -> Dissection:
    return carryscope.load().dissection()


def untrained(parts: tuple[str, ...], **fields) -> Dissection:
    model = initialise(Transformer(ModelConfig(**fields)), torch.Generator().manual_seed(0))
    *_, found = dissect(model, parts=parts)
    return found


@pytest.fixture(scope="session")
def two_layers() -> Dissection:
    return untrained(
        ("attention", "rows", "heads", "nodes"), digits=2, layers=2, d_model=24, heads=3
    )


def drawn_from(name: str, dissection: Dissection) -> Figure:
    """A figure by its name, of a run that has nothing but a dissection."""
    config = RunConfig(format_version=FORMAT_VERSION, model=dissection.model)
    story = dissection.story
    shelf = Shelf(name="", where="RUN", config=config, weights_sha256="", story=story)
    return figure(name, dataclasses.replace(shelf, dissection=dissection))


def texts(drawn: str) -> list[str]:
    """The texts that stand in an SVG, its title and description left out."""
    svg = "{http://www.w3.org/2000/svg}"
    return ["".join(node.itertext()) for node in ET.fromstring(drawn).iter(f"{svg}text")]


def values(chart: alt.Chart) -> list[dict]:
    """The data of a chart or a layer of one."""
    return chart.data.to_dict()["values"]


def replaced(record, **fields):
    return msgspec.structs.replace(record, **fields)


LABELS = {
    "circuit": ["row =", "D'4", "own column", "state(4)", "BA(3)", "MC1(1)", "digit(3)", "writes"],
    "nodes-positions": ["P0 D4", "P17 A0", "L0 H0", "L0 MLP"],
    "staircase": ["= → A5", "A1 → A0", "H0, own column", "H2, two below", "D'4", "attention"],
    "rows": ["P0D4 *", "P11= *", "P17A0 *", "set to zero", "set to its mean"],
    "edges": ["A5", "D'0", "this model", "untrained, of the same shape"],
    "heads": ["whole model", "H0, own column", "BA", "cascade US9"],
    "nodes-fails": ["P11= → A5", "L0 H0", "L0 MLP"],
    "nodes-impact": ["P16A1 → A0", "L0 H2", "A5"],
    "nodes-attention": ["P11= → A5", "L0 H0"],
    "nodes-purpose": ["A3.BA(3)", "A2.MC1(0)"],
    "keys": ["A5", "A0", "same key: answer stays", "other key: answer follows", "all pairs"],
    "carries": ["A5", "A4", "A3", "own 9: token", "nines on the way"],
    "learning": ["A5", "A0", "BA", "UC1", "US9", "US9 learnt", "step"],
    "framework": ["A5", "A0", "BA", "UC1", "US9", "US9 depth 4", "50.05%", "0.0045%"],
}


@pytest.mark.parametrize("name", LABELS)
def test_every_figure_of_the_shipped_model_shows_its_labels_and_describes_itself(name, shipped):
    drawn = drawn_from(name, shipped)
    svg = drawn.svg()
    assert set(LABELS[name]) <= set(texts(svg))
    assert drawn.title in texts(svg)
    assert len(drawn.description) > 80
    assert drawn.chart.to_dict()["description"] == drawn.description
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.findtext("{http://www.w3.org/2000/svg}desc") == drawn.description


@pytest.mark.parametrize("name", ["circuit", "staircase", "rows", "edges", "heads", "nodes-impact"])
def test_figures_that_show_layers_can_be_drawn_for_two(name, two_layers):
    written = texts(drawn_from(name, two_layers).svg())
    assert "NaN" not in written
    assert "undefined" not in written
    if name in ("staircase", "heads"):
        assert {"L0H0, no staircase", "L1H2, no staircase"} <= set(written)


def test_ten_digits_are_drawn_one_head_below_the_other():
    found = untrained(("attention", "nodes"), digits=10, d_model=24, heads=3)
    drawn = staircase(found)
    assert {"= → A10", "A1 → A0", "D'9"} <= set(texts(drawn.svg()))
    width = ET.fromstring(drawn.svg()).get("width")
    assert width is not None
    assert float(width) < 800
    assert "P21= → A10" in texts(node_map(found, "fails").svg())


def test_a_model_without_a_staircase_gets_no_title_that_claims_one(two_layers):
    assert staircase(two_layers).title == "Where the heads look: no staircase"


def test_a_staircase_cell_holds_the_mean_over_all_questions(shipped):
    cells = values(staircase(shipped).chart.vconcat[0].concat[0])
    shown = next(c["share"] for c in cells if (c["row"], c["token"]) == ("A4 → A3", "D3"))
    reading = next(r for r in shipped.attention.readings if (r.head, r.answer) == (0, "A3"))
    assert shown == pytest.approx(reading.tokens["D3"], abs=2e-4)


def test_nodes_that_no_question_needs_are_grey_and_empty(shipped):
    grey, _, *lines = node_map(shipped, "purpose").chart.layer
    unused = [node for node in shipped.nodes.nodes if not node.useful]
    assert len(values(grey)) == len(unused) > 0
    written = {
        (line["position"].split("|")[0], line["part"]) for chart in lines for line in values(chart)
    }
    assert not written & {(f"P{n.row}", f"L{n.layer} H{n.head}") for n in unused}


@pytest.mark.parametrize("quantity", ["fails", "impact", "attention"])
def test_a_useful_node_before_the_answer_gets_its_column(quantity, two_layers):
    one, half = two_layers.nodes.nodes[0], Share.measured(1, 2)
    useful = replaced(one, fails=half, digits={"A2": half})
    nodes = replaced(two_layers.nodes, nodes=[useful, *two_layers.nodes.nodes[1:]])
    written = texts(node_map(replaced(two_layers, nodes=nodes), quantity).svg())
    assert f"P{one.row}D1" in written
    assert {"fails": "50%", "impact": "A2", "attention": "-"}[quantity] in written


def test_a_useful_node_without_a_purpose_is_marked_by_question_marks(shipped):
    nothing = replaced(shipped, subtasks=replaced(shipped.subtasks, purposes=[]))
    useful = sum(node.useful for node in shipped.nodes.nodes)
    assert texts(node_map(nothing, "purpose").svg()).count("??") == useful


def test_the_framework_graph_marks_the_chain_of_nines_and_nothing_else():
    drawn = framework_graph(3)
    boxes = [box for layer in drawn.chart.layer for box in values(layer) if "_fill" in box]
    chain = list(dict.fromkeys((b["task"], b["share"]) for b in boxes if b["_ink"] == "white"))
    assert chain == [("UC1", "45%"), ("US9", "4.5%"), ("US9", "0.45%")]
    assert "A1 UC1, A2 US9 depth 1, A3 US9 depth 2" in drawn.description


def test_learning_curves_are_logarithmic_or_linear_and_nothing_else(shipped):
    figures = task_curves(shipped.story), task_curves(shipped.story, "linear")
    logarithmic, linear = (str(figure.chart.concat[0].to_dict()) for figure in figures)
    assert "'type': 'log'" in logarithmic
    assert "'type': 'log'" not in linear
    with pytest.raises(CallError, match="'log' or 'linear'. Got 'cubic'"):
        check_scale("cubic")


def test_the_pattern_of_one_question_has_its_tokens_as_labels():
    layout = Format(2)
    pattern = np.tril(np.full((1, 3, 9, 9), 0.5))
    drawn = one_pattern(pattern, "47+85=132", layout)
    assert [t for t in texts(drawn.svg()) if len(t) == 1] == list("47+85=132") * 6
    with pytest.raises(CallError, match="has 9 tokens. Got 3"):
        one_pattern(pattern, "1+1", layout)


@pytest.mark.parametrize("name", ["circuit", "staircase", "nodes-purpose", "carries", "rows"])
def test_hostile_names_are_text_and_nothing_but_text(name, shipped):
    heads = [replaced(head, role=HOSTILE) for head in shipped.attention.heads]
    attention = replaced(shipped.attention, heads=heads, statement=HOSTILE)
    purposes = [replaced(p, variable=HOSTILE.replace(" ", "")) for p in shipped.subtasks.purposes]
    effects = [replaced(effect, digit=HOSTILE) for effect in shipped.first_digits.effects]
    hostile = replaced(
        shipped,
        attention=attention,
        subtasks=replaced(shipped.subtasks, purposes=purposes),
        first_digits=replaced(shipped.first_digits, effects=effects, statement=HOSTILE),
        rows=replaced(shipped.rows, remark=HOSTILE),
    )
    svg = drawn_from(name, hostile).svg()
    assert "<script" not in svg
    assert "alert(" in svg
    ET.fromstring(svg)


def test_hostile_tokens_of_a_pattern_are_text_too():
    text = """'"]</t>"""
    svg = one_pattern(np.zeros((1, 1, 6, 6)), text[:6], Format(1)).svg()
    assert [t for t in texts(svg) if len(t) == 1] == list(text[:6]) * 2


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("circuit", "attention"),
        ("staircase", "attention"),
        ("nodes-positions", "nodes"),
        ("rows", "rows"),
        ("edges", "rows"),
        ("heads", "heads"),
        ("nodes-fails", "nodes"),
        ("nodes-attention", "attention"),
        ("nodes-purpose", "subtasks"),
        ("keys", "mlp"),
        ("carries", "first_digits"),
    ],
)
def test_the_error_about_a_missing_part_has_the_command_that_makes_it(name, part, shipped):
    with pytest.raises(CallError, match=f"Run: carryscope dissect RUN --only {part}"):
        drawn_from(name, replaced(shipped, **{part: None}))


def test_a_figure_of_the_mlp_is_refused_for_an_attention_only_model(shipped):
    bare = replaced(shipped, mlp=None, model=ModelConfig(d_mlp=0))
    with pytest.raises(CallError, match="the model has none"):
        drawn_from("keys", bare)


def test_an_unknown_figure_is_answered_with_the_names_there_are(shipped):
    with pytest.raises(CallError, match="The figures are circuit, .*certificate. Got 'stairs'"):
        drawn_from("stairs", shipped)


@pytest.fixture
def dot() -> Figure:
    values = alt.InlineData(values=[{"x": 1}])
    return Figure(alt.Chart(values).mark_point().encode(x="x:Q"), "A dot", "One dot, at 1.")


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<svg"), ("b.PNG", b"\x89PNG"), ("deep/c.pdf", b"%PDF")]
)
def test_a_figure_is_saved_by_the_ending_of_its_name(name, start, dot, tmp_path):
    path = dot.save(tmp_path / name)
    assert path.read_bytes().startswith(start)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["a.jpg", "svg", "a.svg.gz"])
def test_another_ending_is_refused_and_nothing_is_written(name, dot, tmp_path):
    with pytest.raises(CallError, match=re.escape(f".svg, .png or .pdf. Got '{name}'.")):
        dot.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_notebook_shows_the_svg_and_reads_the_description(dot):
    bundle = dot._repr_mimebundle_(include=None, exclude=None)
    assert bundle == {"image/svg+xml": dot.svg(), "text/plain": "A dot. One dot, at 1."}


def test_data_from_the_network_are_refused():
    chart = alt.Chart("https://example.org/data.json").mark_point().encode(x="x:Q")
    with pytest.raises(ValueError, match="not allowed"):
        Figure(chart, "", "").svg()


def test_figures_on_one_page_share_no_ids(shipped):
    pages = [staircase(shipped).svg(), node_map(shipped, "fails").svg()]
    first, second = (set(re.findall(r' id="([^"]+)"', svg)) for svg in pages)
    assert first
    assert second
    assert not first & second
    for svg in pages:
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(re.findall(r' id="([^"]+)"', svg))


@pytest.mark.parametrize("module", ["carryscope", "carryscope.cli.main"])
def test_altair_is_not_imported_before_it_is_needed(module):
    code = f"import sys, {module}; sys.exit('altair' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parent)
    assert ended.returncode == 0
