"""What measures make of a sweep over seeds and of the study of the MLP."""

import msgspec

from carryscope import load
from carryscope.core.evidence import Mean, Share
from carryscope.sweeps.finding import summarised
from carryscope.sweeps.seeds import seed_finding
from carryscope.training.presets import run_config
from paper.claims.claims import load_claims
from paper.claims.judging import judge_one
from paper.mlp.finding import (
    BASE,
    FRESH_MLP,
    NO_MLP,
    UNTRAINED_ATTENTION,
    CurvePoint,
    MlpStudy,
    Subject,
)

replace = msgspec.structs.replace

HOLDS, PART, FAILS, NOT_MEASURED = "holds", "holds in part", "does not hold", "not measured"


def test_every_seed_must_do_it_for_the_algorithm_to_be_one():
    one = seed_finding(load())
    blind = [replace(head, role=None) for head in one.heads]
    other = replace(one, heads=blind, missing=["BA(0)"], depths=[])

    def judged(seeds, recipes=("fast-5",)):
        named = [replace(seed, seed=number) for number, seed in enumerate(seeds)]
        sweeps = [
            summarised(run_config(recipe, {}), range(len(seeds)), named, []) for recipe in recipes
        ]
        claim = next(claim for claim in load_claims() if claim.id == "seeds")
        return judge_one(claim, {}, sweeps=sweeps)

    def held(seeds, recipes=("fast-5",)):
        return [check.holds for check in judged(seeds, recipes).checks]

    # Without seeds of the paper's own recipe the first check, which asks for them, fails.
    assert held([one] * 8) == [False] + [True] * 6
    # The other seed has no depths, so it does not count for cascades.
    assert held([one] * 7 + [other]) == [False] + [True, False] * 2 + [True, True]
    assert judged([one] * 8).verdict == PART
    assert held([one] * 8, ("fast-5", "paper-5")) == [True] * 12
    assert judged([one] * 8, ("fast-5", "paper-5")).verdict == HOLDS
    assert judged([one] * 8, ("paper-5",)).verdict == NOT_MEASURED
    assert judged([other] * 8).verdict == FAILS


def test_the_mlp_must_be_needed_and_can_be_learnt_again():
    def judged(without, fresh, control, then=0.01):
        losses = {BASE: 0.01, NO_MLP: without, FRESH_MLP: fresh, UNTRAINED_ATTENTION: control}
        study = mlp_study_of(losses)
        study.subjects[0].curve[:] = [CurvePoint(step=1, loss=then)]
        claim = next(claim for claim in load_claims() if claim.id == "mlp-study")
        return judge_one(claim, {}, mlp=study).verdict

    assert judged(without=1.0, fresh=0.011, control=0.5) == HOLDS
    assert judged(without=1.0, fresh=0.3, control=0.5) == PART
    assert judged(without=1.0, fresh=0.011, control=0.5, then=0.9) == PART
    assert judged(without=0.01, fresh=0.011, control=0.5) == FAILS


def mlp_study_of(losses):
    """A study of which only the losses count, held out and, in its one step, of training."""
    subjects = [
        Subject(
            name=name,
            about=name,
            control=False,
            weights_sha256="",
            seed=0,
            steps=1,
            trained=1,
            held_out_loss=Mean(loss, 100, 0.99 * loss, 1.01 * loss),
            held_out_digit_loss={},
            uniform_right=Share.measured(0, 0),
            right=[],
            milestones=[],
            curve=[CurvePoint(step=1, loss=loss)],
        )
        for name, loss in losses.items()
    ]
    return MlpStudy(
        package_version="",
        base="paper-5",
        preset="paper-5",
        model=load().config.model,
        questions=100,
        exam_seed=0,
        subjects=subjects,
        statements=[],
        statement="",
    )
