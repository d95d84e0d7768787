//! Any transport with any settings, as one value.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lagometer_units::{Time, suggest};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::catalogue::{Preset, names, new_name, presets};
use crate::settings::with_overrides;
use crate::{
    BadSetting, BoxedEndpoint, ConnectionLogs, Encapsulation, End, LogWriter, Offer, Pair,
    Transport, TransportProperties, Tunable,
};

/// A transport with its settings, checked.
#[derive(Clone)]
pub struct Spec {
    transport: Arc<dyn AnyTransport>,
    /// Where its connections are logged, if anywhere.
    logs: Option<Arc<dyn ConnectionLogs>>,
}

/// Why there is no such transport.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadSpec {
    /// No preset has this name.
    #[error("no transport is called `{name}`; {suggestion}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// What it is called now, a name that is near, or all there are.
        suggestion: String,
    },
    /// There is such a transport, but not where it is asked for: why, and where it
    /// is.
    #[error("{0}")]
    NotHere(String),
    /// The settings of the preset cannot be changed like this.
    #[error(transparent)]
    BadSetting(#[from] BadSetting),
}

impl Spec {
    /// The transport with these settings.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] when they do not pass their own check.
    pub fn new<T: Transport>(settings: T) -> Result<Self, BadSetting> {
        settings.check()?;
        Ok(Self {
            transport: Arc::new(settings),
            logs: None,
        })
    }

    /// The preset called `name`, by whichever of its names, if there is one.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        presets()
            .iter()
            .find(|preset| preset.is_called(name))
            .map(Preset::spec)
    }

    /// The preset called `name` with the settings in `overrides` put in place
    /// of its own. Tables within are merged likewise.
    ///
    /// # Errors
    ///
    /// [`BadSpec`] when there is no such preset or no more, and when a setting is
    /// unknown, of the wrong kind or out of range; it is then named.
    pub fn resolve(name: &str, overrides: &Map<String, Value>) -> Result<Self, BadSpec> {
        let base = Self::preset(name).ok_or_else(|| BadSpec::unknown(name, names()))?;
        Ok(base.with_overrides(overrides)?)
    }

    /// The same transport with the settings in `overrides` put in place of
    /// its own, as in [`resolve`](Self::resolve).
    ///
    /// # Errors
    ///
    /// [`BadSetting`] when a setting is unknown, of the wrong kind or out of
    /// range; it is then named.
    pub fn with_overrides(&self, overrides: &Map<String, Value>) -> Result<Self, BadSetting> {
        Ok(Self {
            logs: self.logs.clone(),
            ..self.transport.with(overrides)?
        })
    }

    /// The transport's name, as in `kcp`; its presets share it.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.transport.name()
    }

    /// The library that carries the messages and its version.
    #[must_use]
    pub fn library(&self) -> &'static str {
        self.transport.library()
    }

    /// The settings that are worth searching.
    #[must_use]
    pub fn tunables(&self) -> &'static [Tunable] {
        self.transport.tunables()
    }

    /// What is promised and what it costs.
    #[must_use]
    pub fn properties(&self) -> TransportProperties {
        self.transport.properties()
    }

    /// What there is for a game whose streams want different deliveries.
    #[must_use]
    pub fn offer(&self) -> Offer {
        self.transport.offer()
    }

    /// What carries the datagrams.
    #[must_use]
    pub fn encapsulation(&self) -> Encapsulation {
        self.transport.encapsulation()
    }

    /// The largest message that is taken, in bytes.
    #[must_use]
    pub fn largest_message_bytes(&self) -> usize {
        self.transport.largest_message_bytes()
    }

    /// The longest it takes to report a dead link, as
    /// [`Transport::dead_link_after`].
    #[must_use]
    pub fn dead_link_after(&self) -> Option<Duration> {
        self.transport.dead_link_after()
    }

    /// Every setting, as a table.
    #[must_use]
    pub fn settings_json(&self) -> Value {
        self.transport.settings()
    }

    /// The settings as such, where they are of the kind `T`.
    #[must_use]
    pub fn settings<T: Transport>(&self) -> Option<&T> {
        self.transport.as_any().downcast_ref()
    }

    /// The same transport, whose endpoints write what they do as qlog into `logs`. None
    /// where they cannot.
    #[must_use]
    pub fn logged(&self, logs: Arc<dyn ConnectionLogs>) -> Option<Self> {
        self.transport.has_qlog().then(|| Self {
            transport: Arc::clone(&self.transport),
            logs: Some(logs),
        })
    }

    /// Makes both ends of a new connection at the instant `start`. Whatever
    /// they draw at random follows from `seed`.
    #[must_use]
    pub fn pair(&self, seed: u64, start: Time) -> Pair {
        self.pair_with_logs_of(seed, start, &[End::Client, End::Server])
    }

    fn pair_with_logs_of(&self, seed: u64, start: Time, ends: &[End]) -> Pair {
        let Some(logs) = &self.logs else {
            return self.transport.pair(seed, start);
        };
        let mut log = |end: End| ends.contains(&end).then(|| logs.open(seed, end)).flatten();
        self.transport.pair_logged(seed, start, &mut log)
    }

    /// Makes the side that opens the connection, where the other is made
    /// elsewhere: by [`server`](Self::server) of an equal transport with the
    /// same `seed`, from which all that both must know follows.
    #[must_use]
    pub fn client(&self, seed: u64, start: Time) -> BoxedEndpoint {
        self.pair_with_logs_of(seed, start, &[End::Client]).client
    }

    /// Makes the side that waits for the connection; see
    /// [`client`](Self::client).
    #[must_use]
    pub fn server(&self, seed: u64, start: Time) -> BoxedEndpoint {
        self.pair_with_logs_of(seed, start, &[End::Server]).server
    }
}

impl BadSpec {
    /// No preset is called `name`: it has another name now, or `known` are all
    /// there are.
    pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let suggestion = match new_name(name) {
            Some(new_name) => format!("it is now called `{new_name}`"),
            None => suggest(name, &known.collect::<Vec<_>>()),
        };
        Self::Unknown {
            name: name.to_owned(),
            suggestion,
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.transport, formatter)
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.transport() == other.transport() && self.settings_json() == other.settings_json()
    }
}

/// [`Transport`] for use behind a pointer.
trait AnyTransport: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn library(&self) -> &'static str;
    fn tunables(&self) -> &'static [Tunable];
    fn properties(&self) -> TransportProperties;
    fn offer(&self) -> Offer;
    fn encapsulation(&self) -> Encapsulation;
    fn largest_message_bytes(&self) -> usize;
    fn dead_link_after(&self) -> Option<Duration>;
    fn settings(&self) -> Value;
    fn as_any(&self) -> &dyn Any;
    fn with(&self, overrides: &Map<String, Value>) -> Result<Spec, BadSetting>;
    fn pair(&self, seed: u64, start: Time) -> Pair;
    fn has_qlog(&self) -> bool;
    fn pair_logged(
        &self,
        seed: u64,
        start: Time,
        log: &mut dyn FnMut(End) -> Option<LogWriter>,
    ) -> Pair;
}

impl<T: Transport> AnyTransport for T {
    fn name(&self) -> &'static str {
        T::TRANSPORT
    }

    fn library(&self) -> &'static str {
        T::LIBRARY
    }

    fn tunables(&self) -> &'static [Tunable] {
        T::TUNABLES
    }

    fn properties(&self) -> TransportProperties {
        Transport::properties(self)
    }

    fn offer(&self) -> Offer {
        Transport::offer(self)
    }

    fn encapsulation(&self) -> Encapsulation {
        Transport::encapsulation(self)
    }

    fn largest_message_bytes(&self) -> usize {
        Transport::largest_message_bytes(self)
    }

    fn dead_link_after(&self) -> Option<Duration> {
        Transport::dead_link_after(self)
    }

    fn settings(&self) -> Value {
        serde_json::to_value(self).expect("settings are tables with keys that are strings")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn with(&self, overrides: &Map<String, Value>) -> Result<Spec, BadSetting> {
        let mut overrides = overrides.clone();
        for (former, name) in T::FORMER_SETTINGS {
            if let Some(value) = overrides.remove(*former) {
                overrides.entry(*name).or_insert(value);
            }
        }
        Spec::new(with_overrides(self, &overrides)?)
    }

    fn pair(&self, seed: u64, start: Time) -> Pair {
        Transport::pair(self, seed, start)
    }

    fn has_qlog(&self) -> bool {
        T::HAS_QLOG
    }

    fn pair_logged(
        &self,
        seed: u64,
        start: Time,
        log: &mut dyn FnMut(End) -> Option<LogWriter>,
    ) -> Pair {
        Transport::pair_logged(self, seed, start, log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolve(name: &str, overrides: &Value) -> Result<Spec, BadSpec> {
        Spec::resolve(name, overrides.as_object().unwrap())
    }

    #[test]
    fn an_override_changes_its_setting_alone() {
        let spec = resolve("udp-redundant", &json!({ "copies": 5 })).unwrap();
        let mut expected = Spec::preset("udp-redundant").unwrap().settings_json();
        expected["copies"] = json!(5);
        assert_eq!(spec.settings_json(), expected);
    }

    #[test]
    fn a_setting_is_found_by_its_former_name() {
        let [former, now] = ["carriage", "mapping"].map(|name| {
            resolve("quic", &json!({ name: "datagram" }))
                .unwrap()
                .settings_json()
        });
        assert_eq!(former, now);
        assert_eq!(now["mapping"], "datagram");
    }

    #[test]
    fn a_typing_mistake_is_named() {
        let error = resolve("udp-redundant", &json!({ "copy": 5 })).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("setting `copy`: unknown field `copy`, expected one of"),
            "{error}"
        );
    }

    #[test]
    fn a_wrong_unit_and_an_impossible_value_are_named() {
        let error = resolve("udp", &json!({ "max_datagram": 1200 })).unwrap_err();
        assert!(
            error.to_string().starts_with("setting `max_datagram`: "),
            "{error}"
        );
        let error = resolve("udp", &json!({ "max_datagram": "1 MB" })).unwrap_err();
        assert!(
            error.to_string().contains("expected 64 to 65507"),
            "{error}"
        );
    }

    #[test]
    fn settings_are_those_of_their_own_kind_alone() {
        let spec = Spec::preset("udp").unwrap();
        let settings = spec.settings::<crate::udp::Settings>();
        assert_eq!(settings, Some(&crate::udp::Settings::PLAIN));
        assert!(spec.settings::<crate::tcp::Settings>().is_none());
    }

    #[test]
    fn an_unknown_name_is_answered_with_one_that_is_near_or_new() {
        let error = |name| resolve(name, &json!({})).unwrap_err().to_string();
        assert_eq!(
            error("upd"),
            "no transport is called `upd`; did you mean `udp`?"
        );
        assert_eq!(
            error("tcp-smoltcp"),
            "no transport is called `tcp-smoltcp`; it is now called `tcp-cubic`"
        );
    }

    #[test]
    fn settings_survive_being_written_and_read() {
        for preset in presets() {
            let spec = preset.spec();
            let written = spec.settings_json();
            let read = resolve(preset.name, &written).unwrap();
            assert_eq!(read, spec, "{}", preset.name);
        }
    }
}
