"""The claims: what the file says, and the verdicts that follow from draws."""

import re
from pathlib import Path

import pytest

from paper import estimands
from paper.claims import (
    CLAIMS_FILE,
    DrawRecord,
    Verdict,
    authors_seed,
    chance,
    compared_with,
    estimands_of,
    frozen,
    holm,
    judge,
    planned,
)

SOURCE = next(
    (place for place in CLAIMS_FILE.parents if (place / "shared" / "paper.tex").exists()), None
)
SEEDS = frozen().seeds


def draw(recipe, seed, untrained=None, **numbers):
    """A record with these numbers, and with none for everything else that claims ask of it."""
    asked = {**dict.fromkeys(estimands_of(recipe)), "columns_read": 3.0, **numbers}
    return DrawRecord(
        package_version="",
        weights_sha256="",
        machine="",
        recipe=recipe,
        seed=seed,
        steps=5000,
        heads=[],
        held_out_loss=0.01,
        numbers=asked,
        untrained=untrained or {},
    )


def draws(recipe="paper-5", *, number, values):
    """A draw for each of the values, by the fresh seeds in their order."""
    pairs = zip(SEEDS[recipe], values, strict=False)
    return [draw(recipe, seed, **{number: value}) for seed, value in pairs]


def verdicts(records):
    return {one.claim.id: one.verdict for one in judge(records)}


def judged(claim, records):
    return next(one for one in judge(records) if one.claim.id == claim)


def test_there_are_about_two_dozen_claims_each_with_an_estimand_of_its_name():
    claims = frozen().claims
    assert 24 <= len(claims) <= 28
    assert len({claim.id for claim in claims}) == len(claims)
    public = {
        name
        for name, function in vars(estimands).items()
        if getattr(function, "__module__", "") == estimands.__name__ and name[0] != "_"
    }
    assert {claim.estimand for claim in claims} == public
    assert {r for c in claims for r in {*c.recipes, *compared_with(c)}} == set(SEEDS)


def test_seeds_are_fresh_and_each_recipe_has_enough_to_decide_a_unanimous_claim():
    tested = [claim for claim in frozen().claims if not claim.any_one_layer]
    for claim in tested:
        assert not {authors_seed(r) for r in claim.recipes} & {s for r in SEEDS for s in SEEDS[r]}
        alone = 0.5 ** planned(claim) * len(tested)
        assert alone < 0.05 or claim.id == "consistent", claim.id


@pytest.mark.skipif(SOURCE is None, reason="the paper's source is not beside the repository")
def test_every_sentence_and_label_is_in_the_paper():
    text = (SOURCE / "shared" / "paper.tex").read_text()
    words = {"BaseAddC": "Base Add,", "BaseAdd": "BaseAdd", "BAC": "BA,", "MC": "MC1", "US": "US9"}
    words |= {"BA": "BA", "UC": "UC1", "MS": "MS9"}
    plain = re.sub(r"\\(\w+)\b ?", lambda m: f"{words[m[1]]} " if m[1] in words else m[0], text)
    plain = re.sub(r"\$?\\(?:operatorname|textbf)\{(\w+)\}\$?", r"\1", plain)
    plain = re.sub(r"“|”|``|''", '"', plain)
    plain = re.sub(r"\s+", " ", plain.replace(" ,", ",").replace(" .", "."))
    for claim in frozen().claims:
        assert rf"\label{{{claim.label}}}" in text, claim.id
        assert claim.sentence in plain, claim.id


def test_without_draws_nothing_is_decided():
    assert set(verdicts([]).values()) == {Verdict.OPEN}


def test_a_claim_is_replicated_contradicted_or_mixed_by_how_many_draws_show_it():
    for holding, verdict in ((16, "replicated"), (0, "contradicted"), (9, "mixed")):
        values = [0.5] * holding + [0.0] * (16 - holding)
        found = judged("cascades-fail", draws(number="cascade_loss", values=values))
        assert (found.verdict, found.share.count) == (verdict, holding)


def test_few_draws_decide_nothing_even_if_all_are_alike():
    found = judged("cascades-fail", draws(number="cascade_loss", values=[0.5] * 9))
    assert found.verdict == Verdict.OPEN
    assert judged("cascades-fail", draws(number="cascade_loss", values=[0.5] * 10)).verdict == (
        Verdict.REPLICATED
    )


def test_draws_that_differ_are_mixed_before_all_of_them_are_there():
    values = [0.5] * 6 + [0.0] * 6
    assert judged("cascades-fail", draws(number="cascade_loss", values=values)).verdict == "mixed"


def test_a_draw_without_a_value_does_not_satisfy_the_rule():
    found = judged("a3-head-ranking", draws(number="a3_ranking", values=[None] * 16))
    assert found.verdict == Verdict.CONTRADICTED


def test_the_authors_draw_is_shown_and_does_not_count():
    own = draw("paper-5", authors_seed("paper-5"), cascade_loss=0.5)
    found = judged("cascades-fail", [own])
    assert [value.holds for value in found.authors] == [True]
    assert found.share.of == 0


def test_a_paired_claim_takes_the_difference_between_draws_of_one_seed():
    two, three = SEEDS["paper-5-heads-2"], SEEDS["paper-5"]
    records = [draw("paper-5-heads-2", seed, packed=0.5) for seed in two]
    records += [draw("paper-5", seed, packed=0.2) for seed in three[:4]]
    found = judged("two-heads-pack", records)
    assert [round(value.value, 6) for value in found.fresh] == [0.3] * 4
    assert [value.seed for value in found.fresh] == list(three[:4])


def test_longer_models_are_compared_with_the_next_shorter():
    steps = {"paper-5": 700, "paper-10": 900, "paper-15": 800}
    records = [draw(recipe, 201, steps_to_learn=n) for recipe, n in steps.items()]
    found = judged("longer-slower", records)
    assert {v.recipe: v.value for v in found.fresh} == {"paper-10": 200, "paper-15": -100}


def test_neighbouring_seeds_are_compared_in_pairs():
    found = judged("consistent", draws(number="circuit", values=[111, 111, 111, 210, 210, 210, 7]))
    assert [value.holds for value in found.fresh] == [True, False, True]


def test_a_claim_is_vacuous_only_if_untrained_models_show_it_too():
    numbers = {"changed_elsewhere": 0.0}
    shown = draw("paper-5", 201, numbers, **numbers)
    assert judged("one-digit-per-row", [shown]).verdict == Verdict.VACUOUS
    other = draw("paper-5", 201, {"changed_elsewhere": 3.0}, **numbers)
    assert judged("one-digit-per-row", [other]).verdict == Verdict.OPEN


def test_holms_procedure_against_a_textbook_example():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


def test_the_exact_test_counts_heads_of_a_fair_coin():
    found = judged("cascades-fail", draws(number="cascade_loss", values=[0.5] * 3 + [0.0]))
    assert chance(found.share, more=True) == pytest.approx(5 / 16)
    assert chance(found.share, more=False) == pytest.approx(15 / 16)


def test_no_path_of_a_machine_is_in_the_claims():
    assert not re.search(r"/(?:root|home|work)/", Path(CLAIMS_FILE).read_text())
