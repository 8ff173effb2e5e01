"""What a sweep says about its seeds, and the page about them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest
from report.shelves import HOSTILE, Seen, made_hostile, replaced, shipped_shelf

import carryscope
from carryscope.sweeps.finding import (
    NO_WINNER,
    SeedFinding,
    Studied,
    Sweep,
    seed_finding,
    summarised,
)
from carryscope.sweeps.page import sweep_page, sweep_tables
from carryscope.training.config import RunConfig
from carryscope.verification.cases import CaseRisk, pooled
from carryscope.verification.estimate import Rate


@pytest.fixture(scope="module")
def shipped() -> SeedFinding:
    return seed_finding(Studied.of(carryscope.load()))


def holding(found: Sweep) -> dict[str, tuple[int, int]]:
    return {name: (share.count, share.of) for name, share in found.properties.items()}


def test_the_shipped_model_has_the_heads_of_the_paper_in_every_seed(shipped: SeedFinding) -> None:
    seeds = [replaced(shipped, seed=n) for n in range(3)]
    found = summarised(carryscope.load().config, range(3), seeds, {})
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
    assert (
        "No seed agrees with Algorithm 1 on 99% of its answers (median 98.6%)." in found.statement
    )
    read = "In 3 of 3 seeds (44% to 100%) the heads read: own column, one below, two below."
    assert read in found.statement
    assert "Cascades fail in 3 of 3 seeds (44% to 100%)." in found.statement


def test_the_statement_has_the_median_and_the_range_of_wrong_answers(shipped: SeedFinding) -> None:
    shares = (0.5, 0.01, 0.02)
    seeds = [
        replaced(shipped, seed=n, numbers=shipped.numbers | {"wrong answers": share})
        for n, share in enumerate(shares)
    ]
    found = summarised(carryscope.load().config, range(3), seeds, {})
    assert found.statement.startswith(
        "2.0% of answers are wrong in the median over the seeds (1.0% to 50%)."
    )


def test_an_algorithm_agrees_best_only_if_its_lead_is_more_than_chance(
    shipped: SeedFinding,
) -> None:
    assert shipped.algorithm == NO_WINNER, "look-ahead 4 agrees as well as exact addition"
    known = Studied.of(carryscope.load())
    lead = replaced(known.agreement, difference=Rate(0.2, 0.1, 0.3))
    clear = seed_finding(known._replace(agreement=lead))
    seeds = [shipped, replaced(clear, seed=1), replaced(shipped, seed=2)]
    found = summarised(carryscope.load().config, range(3), seeds, {})
    assert [seed.algorithm for seed in seeds] == [NO_WINNER, "exact addition", NO_WINNER]
    assert "In 2 of 3 seeds (21% to 94%) no stated algorithm clearly agrees best" in found.statement
    alone = summarised(carryscope.load().config, [1], seeds[1:2], {})
    assert "Most often exact addition agrees best" in alone.statement


def test_a_head_that_lost_its_task_is_not_said_to_have_it() -> None:
    known = Studied.of(carryscope.load())
    idle = replaced(known.subtasks, purposes=[])
    holds = seed_finding(known._replace(subtasks=idle)).holds
    assert holds["the head on its own column carries its base value"] is False
    heads = [replaced(head, role=None) for head in known.attention.heads]
    blind = replaced(known.attention, heads=heads)
    holds = seed_finding(known._replace(attention=blind)).holds
    assert holds["the head on its own column carries its base value"] is None
    assert holds["a head reads its own column"] is False


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


def test_the_page_has_a_staircase_for_each_seed_and_loads_nothing(
    shipped: SeedFinding, tmp_path: Path
) -> None:
    seeds, shelves = [replaced(shipped, seed=n) for n in range(3)], []
    for n in range(3):
        where = tmp_path / f"seed-{n}"
        where.mkdir()
        (where / "report.html").touch()
        shelves.append(dataclasses.replace(shipped_shelf(), name=where.name, where=str(where)))
    text = sweep_page(summarised(recipe(), range(3), seeds, {}), shelves, tmp_path).html
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


def hostile_seed(found: SeedFinding) -> SeedFinding:
    """Its texts turned hostile, the names of properties and numbers left as they are."""
    return replaced(made_hostile(found), holds=found.holds, numbers=found.numbers)


def test_hostile_names_are_text_on_the_page(shipped: SeedFinding) -> None:
    failures = {9: f"a | b {HOSTILE}"}
    hostile = replaced(recipe(), preset=f"tiny{HOSTILE}")
    found = summarised(hostile, [0, 9], [hostile_seed(shipped)], failures)
    plain = page_of(summarised(recipe(), [0, 9], [shipped], failures))
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
