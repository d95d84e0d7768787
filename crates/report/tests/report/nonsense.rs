//! Documents from anywhere: whatever numbers a file holds, nothing panics,
//! nothing is written without end, and the page stays whole.

use lagometer_report::{Terminal, compare, comparison, page, table};
use lagometer_results::Document;
use serde_json::Value;

use crate::synthetic::{LANES, document, judge};

/// Values that arithmetic stumbles over.
const AWKWARD: [f64; 12] = [
    0.0,
    -0.0,
    -1.0,
    1e-300,
    -1e300,
    1e300,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    9_007_199_254_740_993.0,
    0.999_999_999_999,
    1.0,
];

/// A generator of choices that is the same in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Spoils about one number in `rarity`, lengthens no series, and now and then
/// empties one.
fn spoil(value: &mut Value, choices: &mut Choices, rarity: usize) {
    match value {
        Value::Number(number) if choices.below(rarity) == 0 => {
            *value = if number.is_f64() {
                Value::from(AWKWARD[choices.below(AWKWARD.len())])
            } else {
                Value::from(if choices.below(40) == 0 {
                    u64::MAX
                } else {
                    [0, 1, 7, u64::from(u32::MAX)][choices.below(4)]
                })
            };
        }
        Value::Array(items) => {
            if choices.below(rarity) == 0 {
                items.truncate(choices.below(3));
            }
            for item in items {
                spoil(item, choices, rarity);
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                spoil(field, choices, rarity);
            }
        }
        _ => {}
    }
}

#[test]
fn no_number_breaks_the_table_the_page_or_a_comparison() {
    let mut sound = document(&LANES[1..4], 12, &[1, 2]);
    judge(&mut sound);
    let written = serde_json::to_value(&sound).expect("a document is JSON");
    let mut read = 0;
    for seed in 1..=150_u64 {
        let mut choices = Choices(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut spoiled = written.clone();
        spoil(&mut spoiled, &mut choices, [4, 20, 200][seed as usize % 3]);
        // A count too large for its field is refused before it comes here.
        let Ok(document) = serde_json::from_value::<Document>(spoiled) else {
            continue;
        };
        read += 1;
        let text = table(&document, Terminal::PLAIN);
        assert!(
            text.len() < 40_000,
            "seed {seed}: {} bytes of table",
            text.len()
        );
        let html = page(std::slice::from_ref(&document));
        assert!(
            html.len() < 2_000_000,
            "seed {seed}: {} bytes of page",
            html.len()
        );
        for wrong in ["NaN", "inf"] {
            if let Some(at) = html.find(wrong) {
                let around = html.floor_char_boundary(at.saturating_sub(200));
                panic!(
                    "seed {seed}: {}",
                    &html[around..html.ceil_char_boundary(at + 20)]
                );
            }
        }
        match compare(&sound, &document) {
            Ok(compared) => {
                assert!(
                    comparison(&compared, Terminal::PLAIN).len() < 40_000,
                    "seed {seed}"
                );
            }
            Err(refused) => assert!(document.lanes.is_empty(), "seed {seed}: {refused}"),
        }
    }
    assert!(read >= 50, "only {read} documents could be read");
}
