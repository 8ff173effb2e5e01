"""What a sweep says about its seeds, and the page about them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest
from report.shelves import HOSTILE, Seen, made_hostile, replaced, shipped_shelf

import carryscope
from carryscope.report.shelf import Shelf
from carryscope.sweeps.finding import (
    NO_WINNER,
    PROPERTIES,
    Studied,
    Sweep,
    best_algorithm,
    summarised,
)
from carryscope.sweeps.page import sweep_page, sweep_tables
from carryscope.training.config import RunConfig
from carryscope.verification.cases import CaseRisk, pooled
from carryscope.verification.estimate import Rate


def holding(found: Sweep) -> dict[str, tuple[int, int]]:
    return {name: (share.count, share.of) for name, share in found.properties.items()}


def with_wrong(share: float) -> Shelf:
    """The shipped model, wrong in this share of its answers."""
    shelf = shipped_shelf()
    risk = replaced(shelf.risk, teacher_forced=Rate(share, share, share))
    return dataclasses.replace(shelf, risk=risk)


def test_the_shipped_model_has_the_heads_of_the_paper_in_every_seed() -> None:
    found = summarised(recipe(), range(3), [shipped_shelf()] * 3, {})
    held = holding(found)
    for name in (
        "double staircase",
        "a head reads its own column",
        "a head reads the column two below",
        "the head on its own column carries its base value",
        "the head one below carries that column's carry",
        "the head two below carries that column's carry",
        "every sub-task of Algorithm 1 is carried",
        "cascades fail",
    ):
        assert held[name] == (3, 3), name
    assert held["agrees with Algorithm 1 on 99% of answers"] == (0, 3)
    read = "In 3 of 3 seeds (44% to 100%) the heads read: own column, one below, two below."
    assert read in found.statement


def test_the_statement_has_the_median_and_the_range_of_wrong_answers() -> None:
    found = summarised(recipe(), range(3), [with_wrong(share) for share in (0.5, 0.01, 0.02)], {})
    assert found.statement.startswith(
        "2.0% of answers are wrong in the median over the seeds (1.0% to 50%)."
    )


def test_an_algorithm_agrees_best_only_if_its_lead_is_more_than_chance() -> None:
    agreement = Studied.of(shipped_shelf()).agreement
    assert best_algorithm(agreement) == NO_WINNER, "look-ahead 4 agrees as well as exact addition"
    lead = replaced(agreement, difference=Rate(0.2, 0.1, 0.3))
    assert best_algorithm(lead) == "exact addition"


def test_a_head_that_lost_its_task_is_not_said_to_have_it() -> None:
    known = Studied.of(shipped_shelf())
    carries, reads = (
        PROPERTIES[name]
        for name in (
            "the head on its own column carries its base value",
            "a head reads its own column",
        )
    )
    assert carries(known._replace(subtasks=replaced(known.subtasks, purposes=[]))) is False
    heads = [replaced(head, role=None) for head in known.attention.heads]
    blind = known._replace(attention=replaced(known.attention, heads=heads))
    assert carries(blind) is None
    assert reads(blind) is False


def test_failures_of_one_depth_are_averaged_by_their_probabilities() -> None:
    def case(digit: str, chance: float, wrong: float) -> CaseRisk:
        rate = Rate(wrong, wrong / 2, wrong * 1.5)
        return CaseRisk(
            digit=digit, depth=2, carrying=True, probability=chance, wrong=rate, asked=9
        )

    (found,) = pooled([case("A3", 0.1, 0.5), case("A2", 0.3, 0.1)])
    assert found.wrong.estimate == pytest.approx(0.2)
    assert (found.wrong.low, found.wrong.high) == pytest.approx((0.1, 0.3))


# The page


def page_of(found: Sweep) -> Seen:
    return Seen(sweep_page(found, [], Path()).html)


def recipe() -> RunConfig:
    return carryscope.load().config


def test_the_page_has_a_staircase_for_each_seed_and_loads_nothing(tmp_path: Path) -> None:
    shelves = []
    for n in range(3):
        where = tmp_path / f"seed-{n}"
        where.mkdir()
        (where / "report.html").touch()
        shelves.append(dataclasses.replace(shipped_shelf(), name=where.name, where=str(where)))
    text = sweep_page(summarised(recipe(), range(3), shelves, {}), shelves, tmp_path).html
    seen = Seen(text)
    for n in range(3):
        assert f">seed-{n}</text>" in text
    drawn = {figure["id"] for figure in seen.all("figure")}
    assert drawn == {"figure-staircases", "figure-losses"}
    assert 'id="table-failures"' in text
    policy = next(m["content"] for m in seen.all("meta") if "http-equiv" in m)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    loading = [a for _, a in seen.tags if {"src", "srcset"} & set(a)]
    links = [a["href"] for a in seen.all("a") if not str(a["href"]).startswith("#")]
    assert not loading
    assert links == [f"./seed-{n}/report.html" for n in range(3)]
    assert not seen.all("link")


def test_hostile_names_are_text_on_the_page() -> None:
    failures, shelf = {9: f"a | b {HOSTILE}"}, shipped_shelf()
    hostile = replaced(recipe(), preset=f"tiny{HOSTILE}")
    heads = made_hostile(shelf.dissection.attention.heads)
    attention = replaced(shelf.dissection.attention, heads=heads)
    spoilt = dataclasses.replace(shelf, dissection=replaced(shelf.dissection, attention=attention))
    found = summarised(hostile, [0, 9], [spoilt], failures)
    plain = page_of(summarised(recipe(), [0, 9], [shelf], failures))
    seen = page_of(found)
    assert len(seen.all("script")) == len(plain.all("script")) == 1
    assert not seen.all("img")
    assert "<script>alert(1)</script>" in seen.text
    assert "{{ 7*7 }}" in seen.text
    assert "**Seed 9 failed.** a \\| b" in sweep_tables(found, [], Path())


def test_a_sweep_without_any_seed_still_has_a_page_that_says_why() -> None:
    found = summarised(recipe(), [4], [], {4: "The disk is full."})
    assert found.statement == "No seed was finished."
    assert "Seed 4 failed. The disk is full." in page_of(found).text
    assert msgspec.json.decode(msgspec.json.encode(found), type=Sweep) == found
