//! A message that waited for an earlier one says so, and no other does.

use std::time::Duration;

use lagometer_transport::Spec;

use crate::messages::message;
use crate::network::{Network, Path, Side};

/// A hole in the middle of a steady series.
pub(crate) fn is_told_where_it_happens(spec: &Spec) {
    let mut network = Network::connected(spec, Path::CLEAN, 61);
    for number in 0..60 {
        network.path = match number {
            20 | 21 => Path::CUT,
            _ => Path::CLEAN,
        };
        network.send(Side::Client, &message(number, 200)).unwrap();
        network.run_for(Duration::from_millis(20));
    }
    network.run_for(Duration::from_secs(20));
    let blocked = &network.blocked[Side::Server as usize];
    let Some(blocked) = blocked.iter().copied().collect::<Option<Vec<_>>>() else {
        assert!(
            blocked.iter().all(Option::is_none),
            "told for some and not for others"
        );
        return;
    };
    assert!(
        blocked[..20].iter().all(Duration::is_zero),
        "before the hole: {blocked:?}"
    );
    let waited = blocked.iter().filter(|blocked| !blocked.is_zero()).count();
    if spec.properties().reliable && spec.properties().ordered {
        assert!(waited < 38, "{waited} waited: {blocked:?}");
        assert!(waited > 0 || holds_back_after_a_loss(spec), "{blocked:?}");
        let longest = blocked.iter().max().expect("some arrived");
        assert!(*longest < Duration::from_secs(5), "{longest:?}");
    } else {
        assert_eq!(waited, 0, "nothing waits where order is not kept");
    }
}

/// With its own congestion control KCP starts over with one segment after a loss, and
/// with Nagle's algorithm TCP keeps small messages until all before are acknowledged:
/// what comes behind the hole waits at the sender.
fn holds_back_after_a_loss(spec: &Spec) -> bool {
    let settings = spec.settings_json();
    match spec.transport() {
        "kcp" => settings["nc"] == false,
        "tcp" => settings["no_delay"] == false,
        _ => false,
    }
}
