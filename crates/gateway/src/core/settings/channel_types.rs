//! Tick, fan-out and rights by type of channel, read from JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_protocol::messages::channeldpb::ChannelType;

use super::json::{Object, SettingsError, parse, wrong};

/// What a type of channel is called: its name in channeld's protocol, or its
/// number where that names none.
#[must_use]
pub fn channel_type_name(channel_type: i32) -> String {
    match ChannelType::try_from(channel_type) {
        Ok(known) => known.as_str_name().to_owned(),
        Err(_) => channel_type.to_string(),
    }
}

/// The settings of all types of channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelTypes {
    types: BTreeMap<i32, ChannelTypeSettings>,
    of_others: ChannelTypeSettings,
}

/// The settings of one type of channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelTypeSettings {
    /// The grid of time on which windows are sent, at least a millisecond.
    pub tick: Duration,
    /// How often a subscriber that says nothing else gets updates, milliseconds.
    pub fan_out_interval_ms: u32,
    /// How long its first full state is held back, milliseconds; may be
    /// negative.
    pub fan_out_delay_ms: i32,
    /// A channel goes when its owner does.
    pub remove_after_owner: bool,
    /// Subscribers are notified that the owner was lost, or came back.
    pub send_owner_lost: bool,
    /// Who may act for others.
    pub acl: Acl,
    /// The full name of the type that its data begins as, empty.
    pub data_type: Option<String>,
}

/// Who may act for others in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acl {
    /// Subscribe another.
    pub sub: AclLevel,
    /// Unsubscribe another.
    pub unsub: AclLevel,
    /// Remove the channel.
    pub remove: AclLevel,
}

/// Who may do something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclLevel {
    /// Nobody.
    #[default]
    Nobody,
    /// The channel's owner.
    Owner,
    /// The channel's owner and GLOBAL's.
    OwnerAndGlobalOwner,
    /// Every game server, and no client. Settings files of channeld do not know
    /// it.
    AnyServer,
    /// Everyone.
    Anyone,
}

const DEFAULT_TICK_MS: u64 = 10;

impl ChannelTypes {
    /// Reads a settings file: an object of objects, keyed by the numbers of
    /// the types. What is absent is zero; a type that is absent has GLOBAL's
    /// tick and fan-out, and no rights.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] names the key that is wrong.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        let value = parse(text)?;
        let mut types = BTreeMap::new();
        for (key, value) in Object::new(&value, "")?.entries() {
            let number = key
                .parse::<i32>()
                .map_err(|_| wrong(key, "must be the number of a type of channel"))?;
            types.insert(number, one(&Object::new(value, key)?)?);
        }
        Ok(Self::new(types))
    }

    /// What channeld has without a settings file: GLOBAL's tick of 10 ms and
    /// interval of 20 ms for all types, and no rights.
    #[must_use]
    pub fn without_file() -> Self {
        Self::new(BTreeMap::new())
    }

    /// The settings of one type.
    #[must_use]
    pub fn of(&self, channel_type: i32) -> &ChannelTypeSettings {
        self.types.get(&channel_type).unwrap_or(&self.of_others)
    }

    /// All types that have settings of their own, in the order of their numbers,
    /// and `None` for the rest.
    pub fn all(&self) -> impl Iterator<Item = (Option<i32>, &ChannelTypeSettings)> {
        let named = self.types.iter().map(|(of, one)| (Some(*of), one));
        named.chain([(None, &self.of_others)])
    }

    /// As the default, with the rights of channeld's stock file: any connection
    /// unsubscribes any other from GLOBAL, sub-worlds, cells and entities. For
    /// development.
    #[must_use]
    pub fn open() -> Self {
        use AclLevel::{Anyone, Nobody, OwnerAndGlobalOwner};
        let open = [Anyone, Anyone, OwnerAndGlobalOwner];
        Self::with_rights([Anyone, Anyone, Nobody], open)
    }

    /// The shortest tick that channels of any type have.
    #[must_use]
    pub fn shortest_tick(&self) -> Duration {
        let of_all = self.types.values().chain([&self.of_others]);
        of_all.map(|one| one.tick).min().unwrap_or_default()
    }

    fn new(mut types: BTreeMap<i32, ChannelTypeSettings>) -> Self {
        let global =
            types
                .entry(ChannelType::Global as i32)
                .or_insert_with(|| ChannelTypeSettings {
                    tick: Duration::from_millis(DEFAULT_TICK_MS),
                    fan_out_interval_ms: 20,
                    ..ChannelTypeSettings::default()
                });
        let of_others = ChannelTypeSettings {
            tick: global.tick,
            fan_out_interval_ms: global.fan_out_interval_ms,
            fan_out_delay_ms: global.fan_out_delay_ms,
            ..ChannelTypeSettings::default()
        };
        Self { types, of_others }
    }
}

impl Default for ChannelTypes {
    /// Fifty windows a second in channels of every type, with rights that a game
    /// can live with: servers act for others, clients for themselves alone.
    fn default() -> Self {
        use AclLevel::{AnyServer, Nobody, OwnerAndGlobalOwner};
        Self::with_rights(
            [AnyServer, AnyServer, Nobody],
            [AnyServer, AnyServer, OwnerAndGlobalOwner],
        )
    }
}

impl ChannelTypes {
    /// The default with the rights, to subscribe others, unsubscribe them and
    /// remove, of GLOBAL and of the types that are for all.
    fn with_rights(of_global: [AclLevel; 3], open: [AclLevel; 3]) -> Self {
        use AclLevel::OwnerAndGlobalOwner;
        let settings =
            |remove_after_owner, send_owner_lost, [sub, unsub, remove]: [AclLevel; 3]| {
                ChannelTypeSettings {
                    tick: Duration::from_millis(20),
                    fan_out_interval_ms: 20,
                    fan_out_delay_ms: 0,
                    remove_after_owner,
                    send_owner_lost,
                    acl: Acl { sub, unsub, remove },
                    data_type: None,
                }
            };
        let few = [OwnerAndGlobalOwner; 3];
        let types = [
            (ChannelType::Global, settings(false, true, of_global)),
            (ChannelType::Private, settings(true, true, few)),
            (ChannelType::Subworld, settings(true, true, open)),
            (
                ChannelType::Spatial,
                ChannelTypeSettings {
                    data_type: Some("unrealpb.SpatialChannelData".to_owned()),
                    ..settings(false, true, open)
                },
            ),
            (
                ChannelType::Entity,
                ChannelTypeSettings {
                    data_type: Some("tpspb.EntityChannelData".to_owned()),
                    ..settings(true, false, open)
                },
            ),
        ];
        Self::new(types.map(|(of, settings)| (of as i32, settings)).into())
    }
}

fn one(object: &Object<'_>) -> Result<ChannelTypeSettings, SettingsError> {
    let acl = object.object("ACLSettings")?;
    let level = |key| match &acl {
        None => Ok(AclLevel::Nobody),
        Some(acl) => match acl.unsigned(key)? {
            // As channeld does with levels that it does not know.
            0 | 5..=255 => Ok(AclLevel::Nobody),
            1 => Ok(AclLevel::Owner),
            2 => Ok(AclLevel::OwnerAndGlobalOwner),
            3 => Ok(AclLevel::Anyone),
            4 => Ok(AclLevel::AnyServer),
            _ => Err(wrong(
                &acl.path_of(key),
                "must be 0 (nobody), 1 (the owner), 2 (the owner and GLOBAL's), 3 (anyone), \
                 4 (any game server) or up to 255, which is nobody too",
            )),
        },
    };
    Ok(ChannelTypeSettings {
        tick: Duration::from_millis(u64::from(object.unsigned("TickIntervalMs")?.max(1))),
        fan_out_interval_ms: object.unsigned("DefaultFanOutIntervalMs")?,
        fan_out_delay_ms: object.signed("DefaultFanOutDelayMs")?,
        remove_after_owner: object.flag("RemoveChannelAfterOwnerRemoved")?,
        send_owner_lost: object.flag("SendOwnerLostAndRecovered")?,
        acl: Acl {
            sub: level("Sub")?,
            unsub: level("Unsub")?,
            remove: level("Remove")?,
        },
        data_type: Some(object.text("DataMsgFullName")?)
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
        "1": { "TickIntervalMs": 100, "DefaultFanOutIntervalMs": 200, "DefaultFanOutDelayMs": -5,
               "SendOwnerLostAndRecovered": true, "ACLSettings": { "Sub": 3, "Unsub": 1, "Remove": 0 } },
        "5": { "tickintervalms": 33, "RemoveChannelAfterOwnerRemoved": true,
               "DataMsgFullName": "tpspb.EntityChannelData" } }"#;

    #[test]
    fn absent_keys_are_zero_and_absent_types_follow_global() {
        let types = ChannelTypes::from_json(FILE).unwrap();
        let global = types.of(1);
        assert_eq!(global.tick, Duration::from_millis(100));
        assert_eq!(global.fan_out_delay_ms, -5);
        assert_eq!(global.acl.sub, AclLevel::Anyone);
        assert_eq!(global.acl.unsub, AclLevel::Owner);
        let entity = types.of(5);
        assert_eq!(entity.fan_out_interval_ms, 0);
        assert!(entity.remove_after_owner && !entity.send_owner_lost);
        assert_eq!(entity.data_type.as_deref(), Some("tpspb.EntityChannelData"));
        let other = types.of(100);
        assert_eq!(other.tick, global.tick);
        assert_eq!(other.fan_out_interval_ms, 200);
        assert_eq!(other.acl, Acl::default());
        assert!(!other.send_owner_lost);
    }

    #[test]
    fn a_tick_of_nothing_is_a_millisecond() {
        let types = ChannelTypes::from_json(r#"{ "1": { "TickIntervalMs": 0 } }"#).unwrap();
        assert_eq!(types.of(1).tick, Duration::from_millis(1));
    }

    #[test]
    fn a_mistake_is_named() {
        let error = |text| ChannelTypes::from_json(text).unwrap_err().to_string();
        assert_eq!(
            error(r#"{ "GLOBAL": {} }"#),
            "GLOBAL: must be the number of a type of channel"
        );
        assert_eq!(
            error(r#"{ "1": { "TickIntervalMs": -1 } }"#),
            "1.TickIntervalMs: must be a whole number from 0 to 4294967295"
        );
        assert!(
            error(r#"{ "1": { "ACLSettings": { "Sub": 256 } } }"#)
                .starts_with("1.ACLSettings.Sub: must be 0 (nobody)")
        );
    }

    #[test]
    fn a_level_that_channeld_does_not_know_is_nobodys() {
        let text = r#"{ "1": { "ACLSettings": { "Sub": 5, "Unsub": 255 } } }"#;
        let acl = ChannelTypes::from_json(text).unwrap().of(1).acl;
        assert_eq!((acl.sub, acl.unsub), (AclLevel::Nobody, AclLevel::Nobody));
    }
}
