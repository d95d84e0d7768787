//! A message that waited for an earlier one says so, and no other does.

use std::time::Duration;

use lagometer_transport::{HeadOfLine, Spec};

use crate::messages::message;
use crate::network::{Network, Path, Side};

/// The messages that are lost when they are first sent.
const HOLE: std::ops::Range<usize> = 20..22;

/// A hole in the middle of a steady series: what is sent behind it waits where the
/// transport's properties say.
pub(crate) fn is_reported_where_it_happens(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 61);
    let mut sent_at = Vec::new();
    for number in 0..60 {
        network.path = if HOLE.contains(&number) {
            Path::CUT
        } else {
            Path::CLEAN
        };
        sent_at.push(network.now);
        let sent = network.send(Side::Client, &message(number as u32, 200));
        sent.unwrap();
        network.run_for(Duration::from_millis(20));
    }
    network.run_for(Duration::from_secs(20));
    let blocked = &network.blocked[Side::Server as usize];
    let Some(blocked) = blocked.iter().copied().collect::<Option<Vec<_>>>() else {
        assert!(
            blocked.iter().all(Option::is_none),
            "reported for some and not for others"
        );
        return;
    };
    assert!(
        blocked[..HOLE.start].iter().all(Duration::is_zero),
        "before the hole: {blocked:?}"
    );
    let waited = blocked.iter().filter(|blocked| !blocked.is_zero()).count();
    let properties = spec.properties();
    if properties.head_of_line == HeadOfLine::Nowhere {
        assert!(!properties.reliable || !properties.ordered);
        assert_eq!(waited, 0, "nothing waits where order is not kept");
        return;
    }
    let arrived_at = &network.arrived_at[Side::Server as usize];
    let took: Vec<_> = arrived_at
        .iter()
        .zip(&sent_at)
        .map(|(&at, &sent)| at.since(sent))
        .collect();
    // By then none is still opening its window.
    let usual = took[HOLE.start / 2..HOLE.start]
        .iter()
        .max()
        .expect("some arrived");
    // Late, and yet it had nothing to wait for when it came.
    let is_held_back = |number: &usize| took[*number] > *usual && blocked[*number].is_zero();
    let held_back = (HOLE.end..took.len()).filter(is_held_back).count();
    let longest = blocked.iter().max().expect("some arrived");
    let found = format!("{waited} waited, {held_back} were held back: {blocked:?}, {took:?}");
    if properties.head_of_line == HeadOfLine::AtReceiver {
        assert!((1..38).contains(&waited), "{found}");
    } else {
        assert!(held_back > waited, "{found}");
    }
    assert!(*longest < Duration::from_secs(5), "{longest:?}");
}
