//! A game server and two players in one program:
//! `cargo run -p lagometer-client --example two_players_move -- [SERVERS CLIENTS]`
//!
//! The server owns the world (GLOBAL). Each player walks along an axis of its
//! own, sends the gateway where it is, and sees the other in its mirror. The
//! addresses are the gateway's ports for servers and for clients; it has to
//! let clients subscribe and update, as with channeld's
//! `client_authoratative_fsm.json`.

use std::time::Duration;

use lagometer_client::Settings;
use lagometer_client::blocking::{Client, ClientError};
use lagometer_protocol::any;
use lagometer_protocol::messages::channeldpb::{
    ChannelDataAccess, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
    TransformState, Vector3f,
};
use lagometer_protocol::messages::tankspb::TankGameChannelData;
use lagometer_protocol::schema::Schema;
use prost::Message;

const WORLD: u32 = 0;
const STEPS: u16 = 60;
const STEP: Duration = Duration::from_millis(33);
const SOON: Duration = Duration::from_secs(5);

fn main() -> Result<(), ClientError> {
    let mut arguments = std::env::args().skip(1);
    let mut address = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let servers = address("127.0.0.1:11288");
    let clients = address("127.0.0.1:12108");

    let mut server = Client::connect(servers, Settings::default(), Schema::bundled())?;
    server.login("server", "", SOON)?;
    let asked = server.outbox().create_channel(CreateChannelMessage {
        channel_type: ChannelType::Global.into(),
        data: Some(prost_types::Any {
            type_url: any::type_url("tankspb.TankGameChannelData"),
            value: Vec::new(),
        }),
        ..Default::default()
    })?;
    server.answer(asked, SOON)?;

    let mut ann = Player::join(&clients, "ann")?;
    let mut bob = Player::join(&clients, "bob")?;
    for step in 0..STEPS {
        let metres = f32::from(step) * 0.2;
        ann.move_to(metres, 0.0)?;
        bob.move_to(0.0, metres)?;
        // Waiting for what is to come is also the pause between two steps.
        ann.watch(STEP / 2)?;
        bob.watch(STEP / 2)?;
        if step % 15 == 14 {
            println!("ann sees bob at {:?}", ann.sees(bob.id));
            println!("bob sees ann at {:?}", bob.sees(ann.id));
        }
    }
    Ok(())
}

struct Player {
    client: Client,
    id: u32,
}

impl Player {
    fn join(gateway: &str, name: &str) -> Result<Self, ClientError> {
        let mut client = Client::connect(gateway, Settings::default(), Schema::bundled())?;
        let id = client.login(name, "", SOON)?;
        let options = ChannelSubscriptionOptions {
            data_access: Some(ChannelDataAccess::WriteAccess.into()),
            fan_out_interval_ms: Some(20),
            ..Default::default()
        };
        let asked = client.outbox().subscribe(WORLD, id, Some(options))?;
        client.answer(asked, SOON)?;
        Ok(Self { client, id })
    }

    fn move_to(&mut self, x: f32, z: f32) -> Result<(), ClientError> {
        let here = TransformState {
            position: Some(Vector3f { x, y: 0.0, z }),
            ..Default::default()
        };
        let update = TankGameChannelData {
            transform_states: [(self.id, here)].into(),
            ..Default::default()
        };
        let type_url = any::type_url("tankspb.TankGameChannelData");
        self.client
            .outbox()
            .update(WORLD, &type_url, &update.encode_to_vec())?;
        self.client.flush()
    }

    fn watch(&mut self, pause: Duration) -> Result<(), ClientError> {
        // The mirror takes what arrives; the events themselves are not needed.
        let waited = self.client.take_event(pause, |_| false);
        self.client.drain_events().for_each(drop);
        match waited {
            Err(ClientError::TimedOut(_)) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn sees(&self, other: u32) -> Option<(f32, f32)> {
        let world: TankGameChannelData = self.client.mirror().data(WORLD)?;
        let position = world.transform_states.get(&other)?.position?;
        Some((position.x, position.z))
    }
}
