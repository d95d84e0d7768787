//! What a node among several knows of its routes, as metrics.

use crate::server::report::RouteNumbers;

use super::families::{Families, Kind};

pub(super) fn of_routes(families: &mut Families, routes: &RouteNumbers) {
    let counters = [
        (
            "gateway_routes_lost_total",
            "Routes between an edge and the channels that were given up",
            routes.lost,
        ),
        (
            "gateway_routes_resent_total",
            "Pieces of messages that were sent to another node again",
            routes.counters.resent,
        ),
        (
            "gateway_routes_gaps_total",
            "Frames of another node after which something was missing",
            routes.counters.gaps,
        ),
        (
            "gateway_routes_repeated_total",
            "Frames of another node that had come before",
            routes.counters.repeated,
        ),
        (
            "gateway_windows_left_out_total",
            "Windows too old for a slow edge, which gets a full state instead",
            routes.counters.windows_left_out,
        ),
        (
            "gateway_resyncs_total",
            "How often a node that followed this one had other channels, and got all anew",
            routes.resyncs,
        ),
    ];
    for (name, help, value) in counters {
        families.add(Kind::Counter, name, help, &[], value as f64);
    }
    let gauges = [
        (
            "gateway_routes",
            "Routes between connection loops of edges and the channels",
            routes.open,
        ),
        (
            "gateway_channels_epoch",
            "The highest epoch of an owner of channels; 0 where none is known",
            routes.epoch.unwrap_or(0),
        ),
        (
            "gateway_shards",
            "Shards that the channels are divided into",
            routes.shards,
        ),
        (
            "gateway_owns_channels",
            "Shards of the channels that this node owns; 1 where they are not divided",
            routes.owned,
        ),
        (
            "gateway_standbys",
            "Nodes that stand by for the channels that this node owns; the fewest of any shard",
            routes.standbys.unwrap_or(0),
        ),
        (
            "gateway_followed",
            "Shards that another node has all of, and would go on with should this one die",
            routes.followed,
        ),
    ];
    for (name, help, value) in gauges {
        families.add(Kind::Gauge, name, help, &[], value as f64);
    }
}
