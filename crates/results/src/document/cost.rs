//! What a player's hour takes of the network and of a server, and what that costs.

use serde::{Deserialize, Serialize};

/// What one player's hour takes, and what that is in money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlayerCost {
    /// Bytes on the wire from the client to the server in an hour of play, IP and UDP or TCP
    /// headers included.
    pub up_bytes_per_hour: f64,
    /// The same from the server to the client.
    pub down_bytes_per_hour: f64,
    /// Players that one processor of the server's side carries, by the processor time that it
    /// was measured to use; absent where that was not measured, as in virtual time. Of
    /// transports alone: the game's own computing comes on top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players_per_core: Option<f64>,
    /// The same in money, for each price list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub money: Vec<Money>,
}

impl PlayerCost {
    /// Bytes both ways in an hour.
    #[must_use]
    pub fn bytes_per_hour(&self) -> f64 {
        self.up_bytes_per_hour + self.down_bytes_per_hour
    }
}

/// What a player's hour takes and costs by what was played under one seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeedCost {
    /// Bytes on the wire both ways in an hour of play, headers included.
    pub bytes_per_hour: f64,
    /// The hour in money by the first price list, in its currency; absent where there is no
    /// list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_per_hour: Option<f64>,
}

impl From<&PlayerCost> for SeedCost {
    fn from(cost: &PlayerCost) -> Self {
        Self {
            bytes_per_hour: cost.bytes_per_hour(),
            money_per_hour: cost.money.first().map(|money| money.per_hour),
        }
    }
}

/// What a player's hour costs by one price list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Money {
    /// The list's name.
    pub prices: String,
    /// The currency of all amounts, as in `USD`.
    pub currency: String,
    /// The day on which these were the prices.
    pub dated: String,
    /// The page or document that the prices were taken from.
    pub source: String,
    /// For what goes to and comes from the player, in an hour.
    pub traffic_per_hour: f64,
    /// For the processor time of the server's side; absent where that was not measured or
    /// has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_per_hour: Option<f64>,
    /// Both together, as far as they are known.
    pub per_hour: f64,
}
