//! Price lists, and what a player's hour is by them.
//!
//! A list is a TOML file:
//!
//! ```toml
//! name = "our-cloud"
//! summary = "what our contract says"
//! currency = "USD"
//! dated = "2026-11-25"           # when these were the prices
//! source = "https://…"           # where they stand
//! egress_per_gb = 0.05           # what leaves to players, for 10^9 B
//! ingress_per_gb = 0.0           # what comes from them; nothing where absent
//! core_hour = 0.04               # a processor for an hour; leave out for egress alone
//! ```

use lagometer_units::{BadInput, from_toml};
use serde::{Deserialize, Serialize};

use crate::document::{Money, PlayerCost};

/// Prices of one provider, place and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Its name; by convention the file's.
    pub name: String,
    /// Whose prices they are, of what, in one sentence.
    pub summary: String,
    /// The currency of all prices, as in `USD`.
    pub currency: String,
    /// The day on which these were the prices, as in `2026-11-25`.
    pub dated: String,
    /// The page or document that the prices were taken from.
    pub source: String,
    /// Of what leaves to players, for 10⁹ bytes; 0 to 1 000 000.
    pub egress_per_gb: f64,
    /// Of what comes from them.
    #[serde(default)]
    pub ingress_per_gb: f64,
    /// Of a processor for an hour; not known where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hour: Option<f64>,
}

/// The lists that are built in: every file of `prices/`.
const BUILT_IN: &[(&str, &str)] = &[
    (
        "prices/fly-io.toml",
        include_str!("../../../prices/fly-io.toml"),
    ),
    (
        "prices/google-premium.toml",
        include_str!("../../../prices/google-premium.toml"),
    ),
    (
        "prices/hetzner.toml",
        include_str!("../../../prices/hetzner.toml"),
    ),
];

/// Bytes for which traffic is priced.
const GB: f64 = 1e9;

impl Prices {
    /// Reads and checks a list; `origin` is the file's name for messages.
    ///
    /// # Errors
    ///
    /// [`BadInput`] for anything that TOML, the keys or the values have wrong.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        let prices: Self = from_toml(origin, text)?;
        prices
            .check()
            .map_err(|(key, what)| BadInput::at_key(origin, text, &[key], what))?;
        Ok(prices)
    }

    /// Checks the values.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is expected of it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let numbers = [
            ("egress_per_gb", Some(self.egress_per_gb)),
            ("ingress_per_gb", Some(self.ingress_per_gb)),
            ("core_hour", self.core_hour),
        ];
        for (key, number) in numbers {
            if let Some(number) = number.filter(|it| !(0.0..=1e6).contains(it)) {
                return Err((key, format!("`{key}` is 0 to 1000000, not {number}")));
            }
        }
        if !is_day(&self.dated) {
            let what = format!(
                "`dated` is a day as in \"2026-11-25\", not \"{}\"",
                self.dated
            );
            return Err(("dated", what));
        }
        let words = [
            ("name", &self.name),
            ("currency", &self.currency),
            ("source", &self.source),
        ];
        match words.into_iter().find(|(_, word)| word.trim().is_empty()) {
            Some((key, _)) => Err((key, format!("`{key}` is empty: say whose prices these are"))),
            None => Ok(()),
        }
    }

    /// The lists that are built in.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        let lists = BUILT_IN.iter();
        lists
            .filter_map(|(origin, text)| Self::parse(origin, text).ok())
            .collect()
    }
}

/// Whether a text is a day as in `2026-11-25`.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let numbers = parts.iter().map(|part| part.parse::<u32>().ok());
    let numbers: Option<Vec<u32>> = numbers.collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    numbers.is_some_and(|it| {
        lengths == [4, 2, 2] && (1..=12).contains(&it[1]) && (1..=31).contains(&it[2])
    })
}

/// What a player's hour takes and costs, of what was measured of one or several players
/// for so many hours altogether; none where that is no time.
///
/// `server_hours` is the processor time of the server's side in hours, where it was measured.
#[must_use]
pub fn player_cost(
    [up_bytes, down_bytes]: [f64; 2],
    player_hours: f64,
    server_hours: Option<f64>,
    prices: &[Prices],
) -> Option<PlayerCost> {
    if player_hours <= 0.0 || !player_hours.is_finite() {
        return None;
    }
    let (up, down) = (up_bytes / player_hours, down_bytes / player_hours);
    let core_share = server_hours
        .filter(|&hours| hours > 0.0)
        .map(|hours| hours / player_hours);
    let money = prices.iter().map(|prices| {
        let traffic = (down * prices.egress_per_gb + up * prices.ingress_per_gb) / GB;
        let server = prices.core_hour.zip(core_share);
        let server = server.map(|(price, share)| price * share);
        Money {
            prices: prices.name.clone(),
            currency: prices.currency.clone(),
            dated: prices.dated.clone(),
            source: prices.source.clone(),
            traffic_per_hour: traffic,
            server_per_hour: server,
            per_hour: traffic + server.unwrap_or(0.0),
        }
    });
    Some(PlayerCost {
        up_bytes_per_hour: up.round(),
        down_bytes_per_hour: down.round(),
        players_per_core: core_share.map(|share| (10.0 / share).round() / 10.0),
        money: money.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "name = \"ours\"\nsummary = \"s\"\ncurrency = \"EUR\"\ndated = \"2026-11-25\"\n\
                        source = \"a contract\"\negress_per_gb = 0.5\ncore_hour = 0.1\n";

    fn prices() -> Prices {
        Prices::parse("ours.toml", LIST).unwrap()
    }

    #[test]
    fn what_is_built_in_is_read_bears_its_files_name_and_says_its_source() {
        let lists = Prices::built_in();
        assert_eq!(lists.len(), BUILT_IN.len());
        for (list, (origin, _)) in lists.iter().zip(BUILT_IN) {
            assert_eq!(*origin, format!("prices/{}.toml", list.name));
            assert!(list.source.starts_with("https://"), "{}", list.source);
        }
    }

    #[test]
    fn a_players_hour_is_what_was_measured_over_the_hours() {
        // Ten players for six minutes each: an hour; the server's side took 36 s.
        let cost = player_cost([1e8, 2e9], 1.0, Some(0.01), &[prices()]).unwrap();
        assert!((cost.up_bytes_per_hour - 1e8).abs() < 1.0);
        assert!((cost.down_bytes_per_hour - 2e9).abs() < 1.0);
        assert_eq!(cost.players_per_core, Some(100.0));
        let money = &cost.money[0];
        assert!((money.traffic_per_hour - 1.0).abs() < 1e-12);
        assert!((money.server_per_hour.unwrap() - 0.001).abs() < 1e-12);
        assert!((money.per_hour - 1.001).abs() < 1e-12);
    }

    #[test]
    fn what_was_not_measured_is_not_priced() {
        let cost = player_cost([0.0, 1e9], 2.0, None, &[prices()]).unwrap();
        assert_eq!(cost.players_per_core, None);
        assert_eq!(cost.money[0].server_per_hour, None);
        assert!((cost.money[0].per_hour - 0.25).abs() < 1e-12);
        assert_eq!(player_cost([1.0, 1.0], 0.0, None, &[]), None);
    }

    #[test]
    fn a_list_that_is_wrong_is_answered_with_its_line() {
        for (from, to, said) in [
            (
                "egress_per_gb = 0.5",
                "egress_per_gb = -1",
                "ours.toml:6: `egress_per_gb` is 0 to",
            ),
            (
                "core_hour = 0.1",
                "core_hour = inf",
                "ours.toml:7: `core_hour` is 0 to",
            ),
            ("2026-11-25", "25.11.2026", "ours.toml:4: `dated` is a day"),
            ("2026-11-25", "2026-13-25", "ours.toml:4: `dated` is a day"),
            ("EUR", " ", "ours.toml:3: `currency` is empty"),
            ("core_hour", "core_minute", "ours.toml:7: "),
        ] {
            let error = Prices::parse("ours.toml", &LIST.replace(from, to)).unwrap_err();
            assert!(error.to_string().starts_with(said), "{error}");
        }
    }
}
