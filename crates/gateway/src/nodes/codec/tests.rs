//! Every message there is comes back as it was, and nothing else is read as one.

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::{
    AdmittedConnection, AuthAttempt, CheckedEnvelope, CheckedMessages, HomeVersion, Misbehaviour,
    ToChannels, ToConnections,
};
use crate::core::{Budget, CloseReason, Peer, ShardId};

use super::*;

const KEY: ConnKey = ConnKey {
    slot: 7,
    generation: u32::MAX,
};
const ONE: ConnId = ConnId(1);
const TWO: ConnId = ConnId(u32::MAX);

fn addresses() -> [Option<IpAddr>; 3] {
    [None, Some([10, 1, 2, 3].into()), Some([9; 16].into())]
}

fn to_channels() -> Vec<ToChannels> {
    let bodies = Bytes::from_static(b"abcde");
    let envelopes = [2, 5].map(|body_end| CheckedEnvelope {
        channel_id: 1,
        broadcast: 2,
        stub_id: 3,
        msg_type: 4,
        body_end,
    });
    let mut all = vec![
        ToChannels::Messages {
            from: ONE,
            messages: CheckedMessages::new(&envelopes, bodies.clone()),
        },
        ToChannels::Messages {
            from: TWO,
            messages: CheckedMessages::new(&envelopes[..1], bodies),
        },
        ToChannels::AddressProven { key: KEY },
        ToChannels::Congested {
            sender: ONE,
            receiver: TWO,
            pause: Duration::from_millis(3),
        },
        ToChannels::AskCongestion {
            sender: ONE,
            receiver: TWO,
        },
        ToChannels::Relieved {
            sender: TWO,
            receiver: ONE,
        },
        ToChannels::Undelivered {
            sender: ONE,
            bytes: 1 << 33,
            is_notice: true,
        },
        ToChannels::Resync {
            id: ONE,
            channel: ChannelId(9),
        },
        ToChannels::Misbehaved(Misbehaviour::NoLogin {
            address: [1, 2, 3, 4].into(),
        }),
        ToChannels::Introduced { key: KEY },
        ToChannels::RouteLost,
        ToChannels::Relayed {
            from: ShardId(3),
            frame: Bytes::from_static(b"of a shard"),
        },
    ];
    for owner in [None, Some(TWO)] {
        all.push(ToChannels::GlobalOwner {
            owner,
            version: HomeVersion {
                epoch: 1 << 40,
                number: 3,
            },
        });
    }
    for (address, flag) in addresses().into_iter().zip([true, false, true]) {
        let player = "Ängström".to_owned();
        all.push(ToChannels::Admitted(AdmittedConnection {
            key: KEY,
            id: TWO,
            peer: Peer::Client,
            address,
            is_address_forgeable: flag,
            player: player.clone(),
            version: HomeVersion {
                epoch: 2,
                number: 1 << 40,
            },
            recovers: flag,
        }));
        all.push(ToChannels::Closed {
            key: KEY,
            broke_off: flag,
        });
        all.push(ToChannels::Misbehaved(Misbehaviour::Refused {
            player: player.clone(),
            address,
        }));
        all.push(ToChannels::Auth(AuthAttempt {
            key: KEY,
            peer: if flag { Peer::Server } else { Peer::Client },
            address,
            is_address_forgeable: flag,
            stub_id: 5,
            broadcast: 6,
            player,
            login_token: String::new(),
        }));
    }
    all
}

fn to_connections() -> Vec<ToConnections> {
    let message = || Bytes::from_static(b"message");
    let members = [ONE, TWO].map(|id| Member {
        id,
        skip_self: id == ONE,
    });
    let these = Recipients::These(members.into());
    let window = |to, merge_options| {
        ToConnections::Window(Window {
            to,
            channel: ChannelId(3),
            type_url: "type.googleapis.com/x".into(),
            merge_options,
            value: message(),
            own: [Own {
                id: ONE,
                range: 2..7,
            }]
            .into(),
            except: [TWO].into(),
        })
    };
    let options = MergeOptions {
        replace_list: true,
        list_size_limit: 5,
        truncate_top: false,
        remove_entries: true,
    };
    let mut all = vec![
        ToConnections::AuthAnswer {
            key: KEY,
            id: ONE,
            admitted: true,
            player: "p".to_owned(),
            message: message(),
            number: 7,
            recovers: true,
        },
        ToConnections::Send {
            to: TWO,
            message: Bytes::new(),
        },
        ToConnections::Pause {
            id: ONE,
            receiver: TWO,
            pause: Duration::from_secs(1),
        },
        ToConnections::AskCongestion {
            sender: ONE,
            receiver: TWO,
        },
        ToConnections::Resume {
            id: ONE,
            receiver: TWO,
        },
        ToConnections::SendMany {
            to: [ONE, TWO].into(),
            message: message(),
        },
        ToConnections::State {
            to: [TWO].into(),
            channel: ChannelId(4),
            messages: vec![message(), Bytes::new()],
        },
        ToConnections::Join {
            group: GroupId(1),
            channel: ChannelId(2),
            member: members[0],
        },
        ToConnections::Leave {
            group: GroupId(1),
            id: ONE,
        },
        ToConnections::Forget {
            id: ONE,
            channel: ChannelId(2),
        },
        window(Recipients::Group(GroupId(8)), None),
        window(these.clone(), Some(options)),
        ToConnections::Missed {
            to: these,
            channel: ChannelId(2),
        },
        ToConnections::Ban {
            address: [1; 16].into(),
            until: Time::from_secs(70),
        },
    ];
    all.extend(addresses().map(|source_prefix| ToConnections::Forward {
        cause: ONE,
        source_prefix,
        to: TWO,
        message: message(),
    }));
    all.extend(closes());
    all
}

fn closes() -> Vec<ToConnections> {
    let budgets = Budget::ALL.map(CloseReason::OverBudget);
    let reasons = [
        CloseReason::PeerClosed,
        CloseReason::Disconnected,
        CloseReason::NoNumberLeft,
        CloseReason::ChannelsLost,
    ];
    let closes = budgets.into_iter().chain(reasons);
    closes
        .map(|why| ToConnections::Close { key: KEY, why })
        .collect()
}

#[test]
fn every_message_to_the_channels_comes_back_as_it_was() {
    for message in to_channels() {
        let bytes = encode_to_channels(&message);
        for end in 0..bytes.len() {
            assert!(
                decode_to_channels(bytes.slice(..end)).is_err(),
                "{message:?}"
            );
        }
        assert_eq!(decode_to_channels(bytes), Ok(message));
    }
}

#[test]
fn every_message_to_connections_comes_back_as_it_was() {
    let now = Time::from_secs(60);
    for message in to_connections() {
        let bytes = encode_to_connections(now, &message);
        for end in 0..bytes.len() {
            let cut = decode_to_connections(now, bytes.slice(..end));
            assert!(cut.is_err(), "{message:?}");
        }
        assert_eq!(decode_to_connections(now, bytes), Ok(message));
    }
}

#[test]
fn a_ban_ends_by_the_clock_of_whoever_reads_it() {
    let ban = ToConnections::Ban {
        address: [1, 1, 1, 1].into(),
        until: Time::from_secs(70),
    };
    let bytes = encode_to_connections(Time::from_secs(60), &ban);
    let Ok(ToConnections::Ban { until, .. }) = decode_to_connections(Time::from_secs(5), bytes)
    else {
        panic!("a ban");
    };
    assert_eq!(until, Time::from_secs(15));
}

#[test]
fn bodies_and_own_parts_lie_within_what_they_are_of() {
    let envelope = |body_end| CheckedEnvelope {
        channel_id: 0,
        broadcast: 0,
        stub_id: 0,
        msg_type: 0,
        body_end,
    };
    for ends in [&[4, 2][..], &[6]] {
        let envelopes: Vec<_> = ends.iter().copied().map(envelope).collect();
        let messages = CheckedMessages::new(&envelopes, Bytes::from_static(b"abcde"));
        let bytes = encode_to_channels(&ToChannels::Messages {
            from: ONE,
            messages,
        });
        assert_eq!(decode_to_channels(bytes), Err(Malformed));
    }
    let window = Window {
        to: Recipients::Group(GroupId(1)),
        channel: ChannelId(1),
        type_url: "x".into(),
        merge_options: None,
        value: Bytes::from_static(b"abc"),
        own: [Own {
            id: ONE,
            range: 1..4,
        }]
        .into(),
        except: [].into(),
    };
    let now = Time::ZERO;
    let bytes = encode_to_connections(now, &ToConnections::Window(window));
    assert_eq!(decode_to_connections(now, bytes), Err(Malformed));
}
