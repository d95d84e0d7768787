#!/usr/bin/env python3
"""What the tests of false sentences notice: docs/false-sentences.md, "What the test notices".

    bench/studies/false-sentences/defects.py [RUNS [WORDS]]

Each of the defects below is made in a copy of the three crates that reckon, and the test
that is to notice it is played: RUNS of each kind, 400 by default; with WORDS those defects alone
that have them in their description. Some ten minutes of two processors. Ends with 1 where a test passes with its defect, or fails without any.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
COPY = ROOT / "target/false-sentences/defects"
CRATES = ["crates/stats", "crates/units", "crates/results"]

HOLM = "crates/stats/src/student.rs"
DIFFERENCE = "crates/results/src/difference.rs"
BEYOND = "crates/results/src/difference/beyond.rs"
RESAMPLE = "crates/results/src/resample.rs"
VERDICT = "crates/results/src/verdict.rs"

FIVE = "identical_lanes_are_not_set_apart_by_five_seeds"
TWENTY = "identical_lanes_are_not_set_apart_by_twenty_seeds"
STRETCHES = "identical_lanes_are_not_set_apart_by_stretches_of_one_seed"
OUTAGES = "identical_lanes_are_not_set_apart_by_outages_of_unlike_length"
BUDGET = "a_budget_near_the_truth_sets_no_identical_lanes_apart"
QUANTILES = "nothing_is_said_of_a_quantile_that_lies_on_its_limit"
POWER = "a_lane_that_is_better_by_a_stated_difference_is_named"
# Of the reckoning itself: what is small beside the luck of a few hundred runs.
ERROR = "difference::tests::the_error_of_a_mean_is_the_standard_error_of_its_units"
SCALE = "difference::tests::how_sure_a_difference_is_does_not_hang_on_where_the_share_lies"
FLOOR = "difference::tests::a_few_seeds_that_agree_to_the_message_are_no_proof"


TESTS = [FIVE, TWENTY, STRETCHES, OUTAGES, BUDGET, QUANTILES, POWER, ERROR, SCALE, FLOOR]


class Defect(NamedTuple):
    """A change of one place, and the test that is to fail of it."""

    what: str
    test: str
    file: str = ""
    old: str = ""
    new: str = ""


DEFECTS = [
    *(Defect("none", test) for test in TESTS),
    *(
        Defect(
            "comparisons are no family: each is held to the chance by itself",
            test,
            HOLM,
            "chance / (p_values.len() - place) as f64",
            "chance",
        )
        for test in [FIVE, TWENTY]
    ),
    Defect(
        "a family with four times the chance",
        FIVE,
        HOLM,
        "chance / (p_values.len() - place) as f64",
        "4.0 * chance / (p_values.len() - place) as f64",
    ),
    Defect(
        "a normal distribution for Student's",
        FIVE,
        DIFFERENCE,
        ".saturating_sub(1)\n            .max(1),",
        ".max(1_000),",
    ),
    Defect(
        "the error without its n/(n-1)",
        ERROR,
        DIFFERENCE,
        "(variance * units / (units - 1.0).max(1.0)).sqrt()",
        "(variance * units.max(1.0) / units).sqrt()",
    ),
    Defect(
        "the error divided by the root of n once more",
        FIVE,
        DIFFERENCE,
        "(variance * units / (units - 1.0).max(1.0)).sqrt()",
        "(variance / (units - 1.0).max(1.0)).sqrt()",
    ),
    Defect(
        "differences where the variance hangs on the value",
        SCALE,
        DIFFERENCE,
        "(scaled.abs() / scaled_error.max(f64::MIN_POSITIVE))",
        "(mean.abs() / error + 0.0 * (scaled + scaled_error))",
    ),
    Defect(
        "stretches counted as ten times as independent",
        STRETCHES,
        DIFFERENCE,
        "ResampleUnit::Stretch => resamples.blocks / 2,",
        "ResampleUnit::Stretch => resamples.blocks * 5,",
    ),
    Defect(
        "stretches of one second for ten",
        STRETCHES,
        RESAMPLE,
        "const BLOCK_S: f64 = 10.0;",
        "const BLOCK_S: f64 = 1.0;",
    ),
    Defect(
        "no floor under the error from a figure's resolution",
        FLOOR,
        DIFFERENCE,
        ".min(mean.abs() / resolution.max(f64::MIN_POSITIVE))",
        "",
    ),
    Defect(
        "a budget is not held to one more unit that is worse than the worst",
        OUTAGES,
        BEYOND,
        "(value < limit && worst_unit > 0.0)",
        "(value < limit && worst_unit > f64::MAX)",
    ),
    Defect(
        "who is known to miss a budget is left out though no other is known to keep it",
        BUDGET,
        VERDICT,
        "if !lanes.iter().any(keeps) {",
        "if !lanes.iter().any(keeps) && lanes.iter().all(|lane| self.is_known_to_miss_budget(lane)) {",
    ),
    Defect(
        "a budget on a quantile is judged by its own draws alone",
        QUANTILES,
        BEYOND,
        "Some(other.filter(|other| other.t < own.t).unwrap_or(own))",
        "Some(other.filter(|other| other.t < -1.0).unwrap_or(own))",
    ),
    Defect(
        "one more unit that is no worse than the worst, of a quantile",
        QUANTILES,
        BEYOND,
        "const NEXT_WORSE: f64 = 5.0;",
        "const NEXT_WORSE: f64 = 1.0;",
    ),
    Defect(
        "a twentieth of the chance",
        POWER,
        HOLM,
        "chance / (p_values.len() - place) as f64",
        "0.05 * chance / (p_values.len() - place) as f64",
    ),
]


def copy() -> None:
    """A workspace of the crates as they are here, changes that are not committed too."""
    shutil.rmtree(COPY, ignore_errors=True)
    for crate in CRATES:
        shutil.copytree(ROOT / crate, COPY / crate)
    shutil.copytree(ROOT / "prices", COPY / "prices")
    shutil.copy(ROOT / "Cargo.lock", COPY)
    text = (ROOT / "Cargo.toml").read_text()
    text = re.sub(r"^members = \[.*?\]", 'members = ["crates/*"]', text, flags=re.M | re.S)
    text = re.sub(r"^default-members = \[.*?\]\n", "", text, flags=re.M | re.S)
    (COPY / "Cargo.toml").write_text(text)


def play(test: str, runs: str) -> tuple[bool, list[str]]:
    """Whether the test passes, and what it printed of rates."""
    environment = os.environ | {
        "LAGOMETER_MONTE_CARLO": runs,
        "CARGO_TARGET_DIR": str(COPY.parent / "target"),
    }
    of = ["--lib"] if "::" in test else ["--test", "false_sentences"]
    command = ["cargo", "test", "--quiet", "--release", "-p", "lagometer-results", *of]
    command += ["--", "--exact", "--nocapture", test]
    played = subprocess.run(command, cwd=COPY, env=environment, capture_output=True, text=True)
    if "test result:" not in played.stdout or " 0 passed; 0 failed" in played.stdout:
        sys.exit(f"{test} was not played:\n{played.stderr[-2000:]}")
    rows = [line for line in played.stdout.splitlines() if line.startswith("| ")]
    return played.returncode == 0, rows


def main() -> None:
    runs = sys.argv[1] if len(sys.argv) > 1 else "400"
    words = sys.argv[2] if len(sys.argv) > 2 else ""
    copy()
    unnoticed = 0
    for defect in [defect for defect in DEFECTS if words in defect.what]:
        if defect.file:
            file = COPY / defect.file
            text = file.read_text()
            if text.count(defect.old) != 1:
                sys.exit(f"{defect.file}: `{defect.old}` is not there once: mend this list")
            file.write_text(text.replace(defect.old, defect.new))
        passes, rows = play(defect.test, runs)
        if defect.file:
            file.write_text(text)
        is_as_wanted = passes != bool(defect.file)
        unnoticed += not is_as_wanted
        said = "passes" if passes else "fails"
        print(f"{defect.what}: {said}{'' if is_as_wanted else ' (!)'}", flush=True)
        for row in rows:
            print(f"    {row}", flush=True)
    sys.exit(unnoticed > 0)


if __name__ == "__main__":
    main()
