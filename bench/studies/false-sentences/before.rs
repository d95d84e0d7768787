//! The rates of false sentences of an earlier version, by the plays of today's test.
//!
//! `play` beside this file puts it and the test's model into that version.

mod model;

use lagometer_stats::{
    Budget, BudgetResult, Document, Host, Lane, Metric, Parity, SeedRun, evaluate, figures, verdict,
};
use model::{
    FIVE_SEEDS, Kind, LIMIT_MS, LOSS, MANY, NEARLY_ALIKE, ONE_BETTER, ONE_SEED, OUTAGES, left_out,
    name_of, prefers_a_worse, rates, with_interval,
};

/// What follows several lanes none of which is named before another.
const ALIKE: &str = "with no difference beyond chance between them";

fn main() {
    println!("| identical lanes | set apart | with a budget: set apart | or decided |");
    println!("| --- | --- | --- | --- |");
    let [five_minutes, ten_minutes] = ONE_SEED;
    alike("13 lanes, 20 seeds of 30 s", &MANY);
    alike("13 lanes, 1 seed of 600 s", &Kind { lanes: 13, ..ten_minutes });
    alike("5 lanes, 5 seeds of 30 s", &FIVE_SEEDS);
    alike("5 lanes, 1 seed of 300 s", &five_minutes);
    alike("5 lanes, 1 seed of 600 s", &ten_minutes);
    alike("5 lanes, 1 seed of 22 s", &Kind { seeds: 1, seconds: 22, ..FIVE_SEEDS });
    alike("5 lanes, 20 seeds of 30 s, outages", &OUTAGES);
    alike("5 unreliable lanes, 20 seeds of 30 s", &LOSS);
    let ([worse], runs) = rates(1000, |run| {
        let out = out_of(&sentence(&NEARLY_ALIKE, run), &NEARLY_ALIKE);
        [prefers_a_worse(&out, NEARLY_ALIKE.lanes)]
    });
    println!("\na worse of nearly identical lanes preferred: {}", with_interval(worse, runs));
    let ([named], runs) = rates(1000, |run| {
        let out = out_of(&sentence(&ONE_BETTER, run), &ONE_BETTER);
        [out.len() == ONE_BETTER.lanes - 1 && out[0] == 1]
    });
    println!("the better by a stated difference named: {}", with_interval(named, runs));
}

fn alike(what: &str, kind: &Kind) {
    let limit = kind.true_share(0);
    let ([apart, with_budget, wrong], runs) = rates(1000, |run| {
        let lanes = lanes(kind, run);
        let (without, _) = said(lanes.clone(), &[]);
        let (with, results) = said(lanes, &[Budget::new(Metric::Within(LIMIT_MS), limit)]);
        let apart = !out_of(&with, kind).is_empty();
        // It knows met and missed alone, and says either of every budget.
        [!out_of(&without, kind).is_empty(), apart, apart || !results.is_empty()]
    });
    println!(
        "| {what} | {} | {} | {} |",
        with_interval(apart, runs),
        with_interval(with_budget, runs),
        with_interval(wrong, runs)
    );
}

fn sentence(kind: &Kind, run: u64) -> String {
    said(lanes(kind, run), &[]).0
}

fn out_of(sentence: &str, kind: &Kind) -> Vec<usize> {
    if sentence.contains("cannot tell lanes apart") {
        return Vec::new();
    }
    left_out(sentence, kind.lanes, ALIKE)
}

fn lanes(kind: &Kind, run: u64) -> Vec<Lane> {
    (0..kind.lanes)
        .map(|lane| {
            let records = kind.records(run, lane);
            let runs: Vec<SeedRun<'_>> = (0..)
                .zip(&records)
                .map(|(seed, records)| SeedRun {
                    seed,
                    records,
                    disturbed: &[],
                    overhead: None,
                })
                .collect();
            let mut played = figures(&runs, &[]).into_lane(&name_of(lane), "kcp");
            played.parity = kind.is_unreliable(lane).then(unreliable);
            played
        })
        .collect()
}

fn unreliable() -> Parity {
    Parity {
        reliable: false,
        ordered: false,
        encrypted: false,
        mtu_bytes: 1500,
        header_bytes: 28,
        acks: String::new(),
        congestion_control: String::new(),
    }
}

fn said(lanes: Vec<Lane>, budgets: &[Budget]) -> (String, Vec<BudgetResult>) {
    let budgets = evaluate(budgets, &lanes);
    let document = Document {
        schema: "lagometer/1".to_owned(),
        command: "run".to_owned(),
        testbed: Some("sim".to_owned()),
        seed: 0,
        seeds: vec![0],
        partial: false,
        started: String::new(),
        wall_s: 0.0,
        host: Host::default(),
        experiment: serde_json::Value::Null,
        weather: None,
        lanes,
        echo: None,
        sweep: None,
        audit: None,
        world: None,
        worlds: Vec::new(),
        budgets,
        verdict: None,
        warnings: Vec::new(),
    };
    (verdict(&document), document.budgets)
}
