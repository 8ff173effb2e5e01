"""What measures make of models whose truth is known, of one that knows nothing, of other numbers.

The built adder performs Algorithm 1, so what the paper says of it is true or false by
construction. An untrained model must get nothing but what any model gets.
"""

import dataclasses

import msgspec
import numpy as np
import pytest
from paper_studies import adder, altered, mean, shipped, untrained, verdict, verdicts

from carryscope.core.evidence import Share
from carryscope.task.columns import QuestionClass
from carryscope.task.strata import LookAhead
from paper.claims.attention import packing
from paper.claims.carries import wrong_at_depth
from paper.claims.claims import load_claims
from paper.claims.judging import judge_one
from paper.exam import EACH, case_of

replace = msgspec.structs.replace

HOLDS, PART, FAILS, NOT_MEASURED = "holds", "holds in part", "does not hold", "not measured"
ANY = "holds for any one-layer model"
MOOT = "does not apply"


def test_of_the_built_adder_holds_what_is_built_in():
    found = verdicts(paper_5=adder(), reuse_5=adder())
    holding = (
        "algorithm-1 head-tasks last-digits head-ranking base-add-head staircase-5 simple-us9 "
        "cascades-fail nines-plus-one all-heads-useful one-digit-per-row reuse-same reuse-tasks"
    )
    assert {found[name] for name in holding.split()} == {HOLDS}
    assert found["first-digits-differ"] == FAILS  # all its digits have one rule
    assert found["sixty-keys"] == PART  # its MLP keeps the answer and forgets the key


def test_an_untrained_model_gets_only_what_any_model_gets():
    runs = ("paper_5", "paper_10", "paper_15", "paper_5_heads_2", "paper_5_heads_4", "reuse_5")
    found = verdicts(**dict.fromkeys(runs, untrained()))
    about_models = {claim.id for claim in load_claims() if claim.runs}
    assert {found[name] for name in about_models} == {FAILS, ANY, MOOT, NOT_MEASURED}
    forced = {name for name, verdict in found.items() if verdict == ANY}
    assert forced == {"rows-unused", "one-row-before", "reuse-impact"}


def test_what_follows_from_the_architecture_is_no_finding_about_the_trained_model():
    found = verdicts("rows-unused", "one-row-before", paper_5=shipped())
    assert set(found.values()) == {ANY}


def test_without_its_control_a_row_claim_is_not_measured():
    bare = altered(shipped(), "dissection.rows", untrained=None)
    assert verdict("rows-unused", paper_5=bare) == NOT_MEASURED


def test_a_row_claim_that_the_control_does_not_share_would_be_a_finding():
    rows = shipped().rows
    control = replace(rows.untrained, rows=with_changes(rows.untrained.rows, (3, 17)))
    unlike = altered(shipped(), "dissection.rows", untrained=control)
    assert verdict("rows-unused", paper_5=unlike) == HOLDS


def test_one_answer_that_changes_without_an_early_row_is_one_too_many():
    rows = with_changes(shipped().rows.rows, (3,))
    assert verdict("rows-unused", paper_5=altered(shipped(), "dissection.rows", rows=rows)) == PART


def with_changes(effects, rows):
    one = {"A3": Share.measured(1, 1000)}
    return [replace(e, changed=one) if e.row in rows else e for e in effects]


def test_runs_that_are_not_there_are_not_measured():
    found = verdicts(paper_5=shipped())
    there = {"paper-5", "paper-5-long"}
    missing = {c.id for c in load_claims() if set(c.runs) - there} | {"mlp-study", "seeds"}
    assert {name for name, verdict in found.items() if verdict == NOT_MEASURED} == missing


def test_a_finding_that_is_not_there_is_not_measured():
    bare = dataclasses.replace(
        shipped(), shelf=dataclasses.replace(shipped().shelf, dissection=None, risk=None)
    )
    found = verdicts(paper_5=bare)
    assert found["loss-5"] == HOLDS
    assert found["a5-first"] == PART  # from the metrics, with no dissection
    assert {found[name] for name in ("staircase-5", "cascades-fail", "sixty-keys")} == {
        NOT_MEASURED
    }


def with_wrong(study, depth, share, *, deeper=False):
    """A study in which this share of digits is wrong after so many nines."""
    depths = range(depth, study.digits) if deeper else [depth]
    changed = {case_of(LookAhead(study.digits, d, True)) for d in depths}

    def cell(old):
        of = old.right.of
        return replace(old, right=Share.measured(round(of * (1 - share)), of))

    right = [cell(old) if old.case in changed else old for old in study.exam.right]
    return dataclasses.replace(study, known_exam=replace(study.exam, right=right))


def test_cascades_that_arrive_are_against_the_paper_and_simple_carries_that_do_not_too():
    assert verdict("cascades-fail", paper_5=shipped()) == HOLDS
    assert verdict("cascades-fail", paper_5=with_wrong(shipped(), 2, 0.0)) == PART
    better = with_wrong(shipped(), 2, 0.0, deeper=True)
    whole = with_loss(better, QuestionClass.CASCADE_US9, mean(0.001, 0.002))
    assert verdict("cascades-fail", paper_5=whole) == FAILS
    worse = with_wrong(shipped(), 1, 0.5)
    assert verdict("cascades-fail", paper_5=worse) == MOOT  # it cannot do simple ones either
    assert verdict("simple-us9", paper_5=worse) == PART


def with_loss(study, kind, value):
    effects = [
        replace(e, loss=value) if e.head is None and e.question_class == kind.label else e
        for e in study.heads.effects
    ]
    return altered(study, "dissection.heads", effects=effects)


def test_failures_by_length_are_counted_over_all_digits():
    study = with_wrong(shipped(), 3, 0.4)
    assert wrong_at_depth(study, 3).estimate == pytest.approx(0.4)
    assert wrong_at_depth(study, 3).of == 2 * EACH  # A5 and A4
    assert wrong_at_depth(study, 9).estimate is None


def test_nines_plus_one_that_is_answered_right_is_against_the_paper():
    exam = replace(shipped().exam, through_all=Share.measured(200, 200))
    study = dataclasses.replace(shipped(), known_exam=exam)
    assert verdict("nines-plus-one", paper_5=study) == FAILS
    assert verdict("nines-plus-one", paper_5=shipped()) == HOLDS


def test_base_add_is_one_heads_work_and_its_own_columns():
    assert verdict("base-add-head", paper_5=shipped()) == HOLDS
    other = altered(shipped(), "dissection.heads", base_add_role="one below")
    assert verdict("base-add-head", paper_5=other) == PART
    none = altered(shipped(), "dissection.heads", base_add_head=None)
    assert verdict("base-add-head", paper_5=none) == FAILS


def test_of_two_heads_with_one_role_the_more_useful_counts_for_its_rank():
    heads = shipped().attention.heads
    (own,), (below,) = ([h for h in heads if h.offset == k] for k in (0, 1))
    both = [replace(h, offset=0, role=own.role) if h.offset == 1 else h for h in heads]
    study = altered(shipped(), "dissection.attention", heads=both)
    claim = next(claim for claim in load_claims() if claim.id == "head-ranking")
    lost = judge_one(claim, {"paper-5-long": study}).checks[0].numbers[0]
    whole = judge_one(claim, {"paper-5-long": shipped()}).checks[0].numbers
    assert below.role != own.role
    assert lost == max(whole, key=lambda number: number.estimate)


def test_a_head_that_hardly_stands_out_does_not():
    base = shipped().heads
    others = [e for e in base.effects if e.head is not None and e.question_class == "BA"]
    level = max(e.loss.estimate for e in others)
    rivals = [e for e in others if e.loss.high < level]
    near = mean(0.6 * level, 0.7 * level)
    effects = [replace(e, loss=near) if e in rivals else e for e in base.effects]
    assert verdict("base-add-head", paper_5=shipped()) == HOLDS
    study = altered(shipped(), "dissection.heads", effects=effects)
    assert verdict("base-add-head", paper_5=study) == FAILS


def test_a_staircase_that_loses_a_step_holds_in_part():
    roles = [replace(h, role=None) if h.offset == 2 else h for h in shipped().attention.heads]
    fewer = altered(shipped(), "dissection.attention", heads=roles)
    assert verdict("staircase-5", paper_5=fewer) == PART
    none = [replace(h, role=None) for h in roles]
    gone = altered(shipped(), "dissection.attention", heads=none)
    assert verdict("staircase-5", paper_5=gone) == FAILS


def test_a_purpose_that_is_not_found_takes_its_check_away():
    without = [p for p in shipped().subtasks.purposes if not (p.digit == "A3" and p.kind == "BA")]
    study = altered(shipped(), "dissection.subtasks", purposes=without)
    assert verdict("head-tasks", paper_5=shipped()) == HOLDS
    assert verdict("head-tasks", paper_5=study) == PART


def test_two_heads_pack_where_two_columns_share_what_one_does_not_get():
    layout, attention = shipped().layout, shipped().attention
    pattern = np.zeros((1, 3, layout.answer_length, layout.context))
    pattern[..., [0, 1, 6, 7]] = 0.25  # D4, D3, D'4, D'3
    packed = replace(attention, patterns={"BA": pattern.tolist()})
    assert packing(packed, layout).estimate == 1
    pattern[..., [0, 6]], pattern[..., [1, 7]] = 0.4, 0.1
    single = replace(attention, patterns={"BA": pattern.tolist()})
    assert packing(single, layout).count == 0
    study = altered(shipped(), "dissection.attention", patterns=packed.patterns)
    assert verdict("two-heads-pack", paper_5=shipped(), paper_5_heads_2=study) == HOLDS
    assert verdict("two-heads-pack", paper_5=study, paper_5_heads_2=shipped()) == FAILS


def test_attention_that_is_spread_because_nothing_was_learnt_is_no_packing():
    assert packing(untrained().attention, untrained().layout).count > 0
    assert verdict("two-heads-pack", paper_5=shipped(), paper_5_heads_2=untrained()) == MOOT


def test_four_heads_split_if_two_read_the_same_columns():
    heads = shipped().attention.heads
    same = [replace(h, offset=0, role="own column") if h.offset == 2 else h for h in heads]
    study = altered(shipped(), "dissection.attention", heads=same)
    assert verdict("four-heads-split", paper_5_heads_4=shipped()) == FAILS
    assert verdict("four-heads-split", paper_5_heads_4=study) == HOLDS
    none = altered(study, "dissection.attention", heads=[replace(h, role=None) for h in same])
    assert verdict("four-heads-split", paper_5_heads_4=none) == FAILS


def test_a_key_with_another_digit_is_against_the_table():
    digits = shipped().faithfulness.table
    entries = [replace(digits[2].entries[0], differs=True), *digits[2].entries[1:]]
    table = [*digits[:2], replace(digits[2], entries=entries), *digits[3:]]
    study = altered(shipped(), "faithfulness", table=table)
    assert verdict("sixty-keys", paper_5=study) == FAILS


def test_what_can_be_counted_out_needs_no_run():
    found = verdicts()
    assert found["digit-4-no-cascades"] == FAILS  # 99999+1 brings one to A4
    assert found["algorithm-1-printed"] == FAILS  # 99999+1 has a sixth digit
