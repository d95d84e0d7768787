//! What the sans-IO managers count, as metrics: of connections, channels and
//! budgets.

use crate::core::{
    Budget, COUNTED_TYPES, ChannelCounters, ConnectionCounters, OverBudgetCounters, Peer,
    PeerCounters, TypeCounters,
};

use super::families::{Families, Kind};

/// A kind of peer as channeld's metrics name it.
pub(super) fn label(peer: Peer) -> &'static str {
    match peer {
        Peer::Server => "SERVER",
        Peer::Client => "CLIENT",
    }
}

/// A metric of one kind of peer: its name, what it means, and where it is.
type PeerMetric = (&'static str, &'static str, fn(&PeerCounters) -> u64);

/// Under channeld's names.
const PEER_METRICS: &[PeerMetric] = &[
    ("messages_in", "Messages taken in", |of| of.messages_in),
    ("messages_out", "Messages sent", |of| of.messages_out),
    ("packets_in", "Frames taken in", |of| of.packets_in),
    ("packets_out", "Frames sent", |of| of.packets_out),
    (
        "packets_drop",
        "Messages refused by the state machine",
        |of| of.refused,
    ),
    ("packets_frag", "Reads that ended within a frame", |of| {
        of.fragmented
    }),
    ("packets_comb", "Whole frames found in reads", |of| {
        of.combined
    }),
    ("bytes_in", "Bytes of frames taken in", |of| of.bytes_in),
    ("bytes_out", "Bytes of frames sent", |of| of.bytes_out),
    (
        "connection_closed",
        "Connections closed for bad frames",
        |of| of.closed_for_bad_bytes,
    ),
];

/// Under names of our own.
const OWN_PEER_METRICS: &[PeerMetric] = &[
    (
        "gateway_connections_opened_total",
        "Connections ever accepted",
        |of| of.opened,
    ),
    (
        "gateway_slow_readers_total",
        "Times a connection began to read too slowly",
        |of| of.slow_readers,
    ),
    (
        "gateway_updates_merged_total",
        "Updates merged for slow readers",
        |of| of.updates_merged,
    ),
    (
        "gateway_resyncs_total",
        "Whole states sent to slow readers in place of updates",
        |of| of.resyncs,
    ),
    (
        "gateway_pauses_total",
        "Pauses of clients with more than a little waiting at a congested server, renewals counted",
        |of| of.paused,
    ),
    (
        "gateway_slow_readers_closed_total",
        "Connections closed because they read too slowly",
        |of| of.closed_for_slow_reading,
    ),
];

pub(super) fn of_connections(families: &mut Families, connections: &ConnectionCounters) {
    for peer in Peer::ALL {
        let of = connections.of(peer);
        let label = label(peer);
        families.add(
            Kind::Gauge,
            "connection_num",
            "Open connections",
            &[("type", label)],
            of.open as f64,
        );
        for (name, help, value) in PEER_METRICS.iter().chain(OWN_PEER_METRICS) {
            families.add(
                Kind::Counter,
                name,
                help,
                &[("connType", label)],
                value(of) as f64,
            );
        }
    }
    families.add(
        Kind::Counter,
        "gateway_banned_total",
        "Connections closed at once because their address misbehaved before",
        &[],
        connections.banned as f64,
    );
}

pub(super) fn of_budgets(families: &mut Families, over_budget: &OverBudgetCounters) {
    for peer in Peer::ALL {
        for budget in Budget::ALL {
            families.add(
                Kind::Counter,
                "gateway_over_budget_total",
                "Times a peer asked for more than one of its budgets allows",
                &[("peer", &peer.to_string()), ("budget", budget.label())],
                over_budget.of(peer, budget) as f64,
            );
        }
    }
}

/// A metric of one type of channel.
type TypeMetric = (&'static str, &'static str, fn(&TypeCounters) -> u64);

const TYPE_METRICS: &[TypeMetric] = &[
    (
        "gateway_updates_total",
        "Updates of channel data taken in",
        |of| of.updates,
    ),
    ("gateway_windows_total", "Windows of updates made", |of| {
        of.windows
    }),
    ("gateway_states_total", "Whole states sent", |of| of.states),
    (
        "gateway_channel_bytes_total",
        "Bytes of channel data in windows and states, once each",
        |of| of.bytes,
    ),
];

pub(super) fn of_channels(families: &mut Families, channels: &ChannelCounters, tick_at_ms: f64) {
    for ((number, name), of) in COUNTED_TYPES.iter().zip(&channels.types) {
        // Types that few games have are reported once there was one.
        let is_usual = (1..=5).contains(number);
        if !is_usual && *of == TypeCounters::default() {
            continue;
        }
        let labels = &[("type", *name)];
        families.add(
            Kind::Gauge,
            "channel_num",
            "Channels",
            labels,
            of.channels as f64,
        );
        families.add(
            Kind::Gauge,
            "channel_tick_duration",
            "Milliseconds the last fan-out tick of the channels took",
            labels,
            if of.channels > 0 { tick_at_ms } else { 0.0 },
        );
        families.add(
            Kind::Gauge,
            "gateway_subscriptions",
            "Subscriptions",
            labels,
            of.subscriptions as f64,
        );
        for (name, help, value) in TYPE_METRICS {
            families.add(Kind::Counter, name, help, labels, value(of) as f64);
        }
        families.histogram(
            "gateway_tick_lateness_seconds",
            "How late windows were sent after they were due",
            labels,
            &of.lateness,
        );
        families.histogram(
            "gateway_fan_out_seconds",
            "How old the oldest update of a window was when it was sent",
            labels,
            &of.age,
        );
    }
    families.histogram(
        "gateway_tick_delay_seconds",
        "How late the channels came to the ticks at which windows were due",
        &[],
        &channels.ticks,
    );
    let all: [(&str, &str, u64); 5] = [
        (
            "gateway_dropped_total",
            "Messages dropped, whatever the reason",
            channels.dropped,
        ),
        (
            "gateway_too_long_total",
            "Messages, and fields of channel data, too long to be sent",
            channels.too_long,
        ),
        (
            "gateway_forwarded_total",
            "User-space messages passed on, once for each recipient",
            channels.forwarded,
        ),
        (
            "gateway_handovers_total",
            "Entities that went from one spatial channel to another",
            channels.handovers,
        ),
        (
            "gateway_logins_refused_total",
            "Logins refused",
            channels.logins_refused,
        ),
    ];
    for (name, help, value) in all {
        families.add(Kind::Counter, name, help, &[], value as f64);
    }
}

/// Adds what another loop has counted.
pub(super) fn add(sum: &mut ConnectionCounters, other: &ConnectionCounters) {
    for (sum, other) in sum.peers.iter_mut().zip(&other.peers) {
        let PeerCounters {
            open,
            opened,
            messages_in,
            messages_out,
            packets_in,
            packets_out,
            bytes_in,
            bytes_out,
            fragmented,
            combined,
            refused,
            closed_for_bad_bytes,
            closed_for_slow_reading,
            slow_readers,
            updates_merged,
            resyncs,
            paused,
        } = other;
        sum.open += open;
        sum.opened += opened;
        sum.messages_in += messages_in;
        sum.messages_out += messages_out;
        sum.packets_in += packets_in;
        sum.packets_out += packets_out;
        sum.bytes_in += bytes_in;
        sum.bytes_out += bytes_out;
        sum.fragmented += fragmented;
        sum.combined += combined;
        sum.refused += refused;
        sum.closed_for_bad_bytes += closed_for_bad_bytes;
        sum.closed_for_slow_reading += closed_for_slow_reading;
        sum.slow_readers += slow_readers;
        sum.updates_merged += updates_merged;
        sum.resyncs += resyncs;
        sum.paused += paused;
    }
    sum.events_lost += other.events_lost;
    sum.banned += other.banned;
    sum.over_budget.add(&other.over_budget);
}
