//! The gate as a `JUnit` report, the format in which CI services read what passed
//! and what did not.
//!
//! No times stand in it: the same run gives the same bytes.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Check, Gate, Outcome};

/// One suite for the run, one case for each check, of the class of its lane.
pub(super) fn report(gate: &Gate) -> String {
    let mut suite = TestSuite::new(gate.title.as_str());
    suite.add_test_cases(gate.checks.iter().map(case));
    let mut report = Report::new("lagometer");
    report.add_test_suite(suite);
    report
        .to_string()
        .unwrap_or_else(|error| unreachable!("writing to memory: {error}"))
}

fn case(check: &Check) -> TestCase {
    let mut status = match check.outcome {
        Outcome::Held | Outcome::Better => TestCaseStatus::success(),
        Outcome::Undecided | Outcome::Unmeasured => TestCaseStatus::skipped(),
        Outcome::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_message(check.found.as_str());
    let mut case = TestCase::new(check.asked.as_str(), status);
    case.set_classname(check.lane.as_deref().unwrap_or("the run"));
    case
}
