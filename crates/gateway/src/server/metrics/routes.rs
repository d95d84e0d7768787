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
            "The epoch of the owner of the channels; 0 where none is known",
            routes.epoch.unwrap_or(0),
        ),
        (
            "gateway_owns_channels",
            "1 while this node owns the channels",
            u64::from(routes.owns),
        ),
        (
            "gateway_standbys",
            "Nodes that stand by for the channels that this node owns",
            routes.standbys,
        ),
        (
            "gateway_followed",
            "1 while a node that stands by has all that this one has, and would go on",
            u64::from(routes.is_followed),
        ),
    ];
    for (name, help, value) in gauges {
        families.add(Kind::Gauge, name, help, &[], value as f64);
    }
}
