//! Where in an experiment's file a mistake in a budget stands.
//!
//! A budget is read as a whole and checked then, so that what is wrong with it is known to
//! TOML as a mistake in the list of all budgets, whose place is that of the first.

use lagometer_results::{Budget, Metric};
use lagometer_units::{BadInput, line_of_key};

/// The same mistake at the line of the budget that has it, where it is one in a budget and
/// stands at the first.
pub(super) fn at_its_own_line(origin: &str, text: &str, bad: BadInput) -> BadInput {
    if line_of_key(text, &["budget"]) != Some(bad.line) {
        return bad;
    }
    let Some((nth, key)) = first_wrong(text) else {
        return bad;
    };
    BadInput::at_key(
        origin,
        text,
        &["budget", &nth.to_string(), key],
        bad.message,
    )
}

/// The first budget that is wrong, counted from 0, and the key at which it is.
fn first_wrong(text: &str) -> Option<(usize, &'static str)> {
    let document: toml::Table = toml::from_str(text).ok()?;
    let mut budgets = document.get("budget")?.as_array()?.iter().enumerate();
    let is_wrong = |budget: &toml::Value| budget.clone().try_into::<Budget>().is_err();
    let (nth, budget) = budgets.find(|(_, budget)| is_wrong(budget))?;
    let metric = budget.get("metric").and_then(toml::Value::as_str);
    let is_known = metric.is_some_and(|metric| metric.parse::<Metric>().is_ok());
    let lanes = budget.get("lanes").and_then(toml::Value::as_array);
    let limit = ["at_least", "at_most"].into_iter();
    let key = match limit.clone().find(|key| budget.get(key).is_some()) {
        _ if !is_known => "metric",
        _ if lanes.is_some_and(Vec::is_empty) => "lanes",
        Some(limit) => limit,
        None => "metric",
    };
    Some((nth, key))
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    /// What is said of an experiment with these budgets, of which the first begins at
    /// line 9.
    fn said_of(budgets: &str) -> String {
        let text = format!(
            "name = \"t\"\nsummary = \"t\"\nnetwork = \"lan\"\nfor = \"10 s\"\nlanes = [\"udp\"]\n\
             [workload.paced-echo]\nsize = \"200 B\"\ninterval = \"50 ms\"\n{budgets}"
        );
        Experiment::parse("t.toml", &text).unwrap_err().to_string()
    }

    #[test]
    fn a_mistake_in_the_third_budget_is_at_its_own_line() {
        let good = "[[budget]]\nmetric = \"lost\"\nat_most = \"1 %\"\n";
        let with = |third: &str| said_of(&format!("{good}{good}[[budget]]\n{third}"));
        for (third, says) in [
            (
                "# a slip\nmetric = \"p98\"\nat_most = \"1 s\"\n",
                "t.toml:17: ",
            ),
            ("metric = \"p99\"\nat_most = 5\n", "t.toml:17: "),
            (
                "metric = \"p99\"\nat_least = \"5 ms\"\n",
                "t.toml:17: a budget on",
            ),
            ("metric = \"p99\"\n", "t.toml:16: a budget on"),
            (
                "metric = \"p99\"\nat_most = \"5 ms\"\nlanes = []\n",
                "t.toml:18: `lanes` is empty",
            ),
            // What TOML itself finds is there already.
            ("metric = \"p99\"\nat_mots = \"5 ms\"\n", "t.toml:17: "),
            ("metric = 5\n", "t.toml:16: "),
        ] {
            let said = with(third);
            assert!(said.starts_with(says), "{third}: {said}");
        }
        let first = said_of(&format!(
            "[[budget]]\nmetric = \"p98\"\nat_most = \"1 s\"\n{good}"
        ));
        assert!(first.starts_with("t.toml:10: "), "{first}");
    }
}
