//! The gateway as its live view sees it.

use std::time::Instant;

use lagometer_gateway::server::{Server, Watcher};
use lagometer_watch::View;
use lagometer_watch::gateway::GatewayView;

use crate::live::Watched;

/// A gateway that runs.
pub(super) struct Gateway {
    watcher: Watcher,
    began: Instant,
    view: GatewayView,
}

impl Gateway {
    pub(super) fn new(server: &Server, servers: &str, clients: &str) -> Self {
        Self {
            watcher: server.watcher(),
            began: Instant::now(),
            view: GatewayView::new(servers, clients),
        }
    }
}

impl Watched for Gateway {
    fn look(&mut self, show: &mut dyn FnMut(&dyn View)) {
        match self.watcher.look() {
            Ok(glance) => self.view.note(self.began.elapsed(), glance),
            Err(hangs) => self.view.note_hanging(&hangs.to_string()),
        }
        show(self.view.board());
    }
}
