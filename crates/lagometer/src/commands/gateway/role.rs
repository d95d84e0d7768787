//! What of a gateway this process is, and how it is joined with the others.

use std::sync::Arc;
use std::time::Duration;

use lagometer_gateway::core::ShardCount;
use lagometer_gateway::server::{Join, Role};
use lagometer_gateway_nats::NatsBus;
use lagometer_nats::Settings;

use crate::cli::{NodeArguments, RoleName};
use crate::commands::over_nats;
use crate::failure::Failure;

/// How long one attempt to reach NATS takes before the next: it is waited for as long as
/// the process runs.
const ATTEMPT: Duration = Duration::from_hours(1);

/// Reads what the command line says, and tries what can be tried without a server.
pub(super) fn role(arguments: &NodeArguments) -> Result<Role, Failure> {
    let Some(urls) = &arguments.nats else {
        return match arguments.role {
            RoleName::All => Ok(Role::All),
            RoleName::Edge | RoleName::Channels => Err(Failure::Input(
                "--role edge and --role channels are parts of a gateway: say with --nats which \
                 NATS servers join them, as in --nats nats://10.0.0.1:4222"
                    .to_owned(),
            )),
        };
    };
    let settings = over_nats::settings(urls, &arguments.user, ATTEMPT);
    lagometer_nats::check(&settings).map_err(Failure::input)?;
    // The command line has no other numbers.
    let shards = ShardCount::new(arguments.shards).unwrap_or(ShardCount::ONE);
    match arguments.role {
        RoleName::All => Err(Failure::Input(
            "--nats joins the parts of a gateway, and this is a whole one: add --role edge or \
             --role channels, or leave --nats out"
                .to_owned(),
        )),
        RoleName::Edge => Ok(Role::Edge(join(settings, shards))),
        RoleName::Channels => Ok(Role::Channels(join(settings, shards))),
    }
}

fn join(settings: Settings, shards: ShardCount) -> Join {
    Join::new(shards, |node, inboxes| {
        let bus = NatsBus::start(settings, node, inboxes).map_err(|why| why.to_string())?;
        Ok(Arc::new(bus))
    })
}
