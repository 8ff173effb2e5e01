"""Figures are drawn from findings, say what they show, and need neither browser nor network."""

import dataclasses
import re
import xml.etree.ElementTree as ET
from itertools import combinations

import msgspec
import numpy as np
import pytest
import torch

import carryscope
from carryscope.core.errors import CallError
from carryscope.core.evidence import Share
from carryscope.dissection.dissect import Dissection, dissect
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.transformer import Transformer, initialise
from carryscope.report.figures.canvas import HEADS, Canvas
from carryscope.report.figures.figure import Figure
from carryscope.report.figures.grids import staircase, table_figure
from carryscope.report.figures.sum import WRONG
from carryscope.report.sections.dissection import node_table
from carryscope.report.sections.report import figure
from carryscope.report.shelf import Shelf
from carryscope.report.tables import Cell, Table
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
    return untrained(("attention", "edges", "nodes"), digits=2, layers=2, d_model=24, heads=3)


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


def replaced(record, **fields):
    return msgspec.structs.replace(record, **fields)


LABELS = {
    "reads": ["writes", "D'4", "D0", "A5"],
    "circuit": ["writes", "A5", "own column", "base sum of", "state of", "carry from", "digit A3"],
    "staircase": ["A5", "A0", "H0, own column", "H2, two below", "D'4", "attention"],
    "edges": ["A5", "D'0", "this model", "untrained, of the same shape"],
    "nodes": ["A5", "H0", "MLP", "base sum of column 3 84%", "unused"],
    "keys": ["A5", "A0", "same key: stays", "other key: follows"],
    "digits": ["A5", "A0", "step"],
    "learning": ["A5", "A0", "BA", "UC1", "US9", "step"],
    "phases": ["A5", "A0", "BA learnt", "US9 learnt", "discovery until"],
}


@pytest.mark.parametrize("name", LABELS)
def test_every_figure_of_the_shipped_model_shows_its_labels_and_describes_itself(name, shipped):
    drawn = drawn_from(name, shipped)
    svg = drawn.svg()
    assert set(LABELS[name]) <= set(texts(svg))
    assert drawn.title in texts(svg)
    assert len(drawn.description) > 80
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.findtext("{http://www.w3.org/2000/svg}desc") == drawn.description


@pytest.mark.parametrize("name", ["reads", "circuit", "staircase", "edges", "nodes"])
def test_figures_that_show_layers_can_be_drawn_for_two(name, two_layers):
    written = texts(drawn_from(name, two_layers).svg())
    assert "NaN" not in written
    assert "undefined" not in written
    if name == "staircase":
        assert {"L0H0, no staircase", "L1H2, no staircase"} <= set(written)


def test_ten_digits_are_drawn_one_head_below_the_other():
    found = untrained(("attention",), digits=10, d_model=24, heads=3)
    drawn = staircase(found)
    assert {"A10", "A0", "D'9"} <= set(texts(drawn.svg()))
    width = ET.fromstring(drawn.svg()).get("width")
    assert width is not None
    assert float(width) < 800


def test_a_model_without_a_staircase_gets_no_title_that_claims_one(two_layers):
    assert staircase(two_layers).title == "Where the heads look: no staircase"


def test_a_staircase_cell_holds_the_mean_over_all_questions(shipped):
    records = staircase(shipped).chart.records
    place = {"panel": "H0, own column", "row": "A3", "column": "D3"}
    shown = next(r["share"] for r in records if r.items() >= place.items())
    reading = next(r for r in shipped.attention.readings if (r.head, r.answer) == (0, "A3"))
    assert shown == pytest.approx(reading.tokens["D3"], abs=2e-4)


def test_a_table_is_drawn_with_its_shades_and_says_its_cells():
    row = ["a", Cell("1%", shade=0.0, tip="low"), Cell("99%", shade=1.0, tone="wrong")]
    drawn = table_figure(Table("t", "Title", ["row", "x", "y"], [row, ["b", "", ""]], "How."))
    svg = drawn.svg()
    assert {"a", "b", "x", "y", "1%", "99%", "Title", "How."} <= set(texts(svg))
    assert svg.count("<rect") == 3, "the ground, and the two cells that hold something"
    assert 'fill="#8a3304"' in svg, "what is wrong is orange"
    assert drawn.description == "A table. a: x 1%, y 99%. b: ."
    assert 'data-tip="low"' in drawn.page_svg()
    assert "data-tip" not in svg


def test_nodes_that_no_question_needs_are_unused_and_without_shade(shipped):
    cells = [cell for row in node_table(shipped).rows for cell in row[1:]]
    unused = [cell for cell in cells if cell == "unused"]
    assert len(unused) == sum(not node.useful for node in shipped.nodes.nodes) > 0
    assert all(cell.shade is None for cell in unused)


def test_a_useful_node_before_the_answer_gets_its_line(two_layers):
    one, half = two_layers.nodes.nodes[0], Share.measured(1, 2)
    useful = replaced(one, fails=half, digits={"A2": half})
    nodes = replaced(two_layers.nodes, nodes=[useful, *two_layers.nodes.nodes[1:]])
    table = node_table(replaced(two_layers, nodes=nodes))
    assert table.rows[0][:2] == ["D1", "50%"]
    assert "digits that turn wrong: A2" in table.rows[0][1].tip


def test_a_useful_node_without_a_purpose_is_marked_by_question_marks(shipped):
    nothing = replaced(shipped, subtasks=replaced(shipped.subtasks, purposes=[]))
    useful = sum(node.useful for node in shipped.nodes.nodes)
    cells = [cell for row in node_table(nothing).rows for cell in row[1:]]
    assert sum(cell.startswith("?? ") for cell in cells) == useful


@pytest.mark.parametrize("name", ["circuit", "staircase", "nodes", "learning"])
def test_hostile_names_are_text_and_nothing_but_text(name, shipped):
    heads = [replaced(head, role=HOSTILE) for head in shipped.attention.heads]
    attention = replaced(shipped.attention, heads=heads, statement=HOSTILE)
    purposes = [replaced(p, variable=HOSTILE.replace(" ", "")) for p in shipped.subtasks.purposes]
    hostile = replaced(
        shipped,
        attention=attention,
        subtasks=replaced(shipped.subtasks, purposes=purposes),
        story=replaced(shipped.story, statements=[HOSTILE]),
    )
    svg = drawn_from(name, hostile).svg()
    assert "<script" not in svg
    assert "alert(" in svg
    ET.fromstring(svg)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("circuit", "attention"),
        ("staircase", "attention"),
        ("edges", "edges"),
        ("nodes", "nodes"),
        ("keys", "mlp"),
    ],
)
def test_the_error_about_a_missing_part_has_the_command_that_makes_it(name, part, shipped):
    with pytest.raises(CallError, match=f"Run: carryscope dissect RUN --only .*{part}"):
        drawn_from(name, replaced(shipped, **{part: None}))


def test_a_figure_of_the_mlp_is_refused_for_an_attention_only_model(shipped):
    bare = replaced(shipped, mlp=None, model=ModelConfig(d_mlp=0))
    with pytest.raises(CallError, match="Got 'keys'") as refused:
        drawn_from("keys", bare)
    assert "--only" not in str(refused.value) or "mlp" not in str(refused.value).split("--only")[1]


def test_an_unknown_figure_is_answered_with_the_names_there_are(shipped):
    with pytest.raises(CallError, match="The figures are reads, .*staircase.*. Got 'stairs'"):
        drawn_from("stairs", shipped)


@pytest.fixture
def dot() -> Figure:
    canvas = Canvas()
    canvas.box(1.0, 1.0, 2.0, 2.0, radius=1.0)
    return Figure(canvas, "A dot", "One dot, at 1.")


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


SEEN_BY = {
    "most people": np.eye(3),
    "protanopes": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopes": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopes": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""How colours look, as linear RGB: the matrices of Machado, Oliveira and Fernandes (2009)."""

TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@pytest.mark.parametrize("who", SEEN_BY)
def test_heads_and_what_is_wrong_have_colours_that_all_people_tell_apart(who):
    """Distances in CIELAB; 2.3 is just noticeable side by side."""
    seen = [in_lab(np.array(SEEN_BY[who]) @ linear(colour)) for colour in (*HEADS, WRONG)]
    near = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
    assert min(near) > 9


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def in_lab(colour: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(colour, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
