//! The grid: its numbers, its servers, what a client of it sees.

use std::collections::BTreeMap;

use lagometer_client::OwnedEvent;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::spatial_interest_query::{
    BoxAoi, ConeAoi, SphereAoi, SpotsAoi,
};
use lagometer_protocol::messages::channeldpb::{
    ChannelType, CreateChannelMessage, SpatialInfo, SpatialInterestQuery,
};

use crate::harness::peer::QUIET;
use crate::harness::{Gateway, Peer, Settings, WRITE, Whose, options};

/// Four cells in a row, two servers with two each, who see one cell of the
/// other.
pub(crate) const ROW_OF_FOUR: &str = r#"{"SpatialControllerType": "StaticGrid2DSpatialController",
  "Config": {"WorldOffsetX": -2000, "WorldOffsetZ": -500, "GridWidth": 1000, "GridHeight": 1000,
  "GridCols": 4, "GridRows": 1, "ServerCols": 2, "ServerRows": 1, "ServerInterestBorderSize": 1}}"#;

/// A square of nine by nine with one server.
pub(crate) const SQUARE: &str = r#"{"SpatialControllerType": "StaticGrid2DSpatialController",
  "Config": {"WorldOffsetX": -9000, "WorldOffsetZ": -9000, "GridWidth": 2000, "GridHeight": 2000,
  "GridCols": 9, "GridRows": 9, "ServerCols": 1, "ServerRows": 1, "ServerInterestBorderSize": 0}}"#;

/// The first number of a cell's channel.
pub(crate) const FIRST: u32 = 0x0001_0000;

pub(crate) fn with_grid(whose: Whose, grid: &'static str) -> Gateway {
    let settings = Settings {
        spatial: Some(grid),
        ..Settings::default()
    };
    Gateway::start_with(whose, &settings)
}

/// A server makes its share of the cells; their numbers.
pub(crate) fn create_cells(server: &mut Peer) -> Vec<u32> {
    let asked = server.send(|outbox| {
        outbox.create_channel(CreateChannelMessage {
            channel_type: ChannelType::Spatial.into(),
            sub_options: Some(options(WRITE, 20)),
            ..Default::default()
        })
    });
    match server.answer(asked) {
        FromGateway::CreateSpatialChannel(made) => made.spatial_channel_id,
        other => panic!("{other:?}"),
    }
}

fn at(x: f64, z: f64) -> SpatialInfo {
    SpatialInfo { x, y: 0.0, z }
}

pub(crate) fn c18_servers_share_the_grid_and_its_border(whose: Whose) {
    let gateway = with_grid(whose, ROW_OF_FOUR);
    let mut master = gateway.server();
    master.own_global();
    let (mut west, mut east) = (gateway.server(), gateway.server());
    assert_eq!(create_cells(&mut west), [FIRST, FIRST + 1]);
    let regions = west.expect("the regions", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::SpatialRegionsUpdate(update),
            ..
        } => Some(update.regions.clone()),
        _ => None,
    });
    let shares: Vec<(u32, u32)> = regions
        .iter()
        .map(|region| (region.channel_id - FIRST, region.server_index))
        .collect();
    assert_eq!(shares, [(0, 0), (1, 0), (2, 1), (3, 1)]);
    let (min, max) = (regions[1].min.unwrap(), regions[1].max.unwrap());
    assert_eq!((min.x, min.z, max.x, max.z), (-1000.0, -500.0, 0.0, 500.0));
    for cell in [FIRST, FIRST + 1] {
        assert_eq!(west.sub_result(cell).conn_id, west.id);
    }
    assert_eq!(create_cells(&mut east), [FIRST + 2, FIRST + 3]);
    for (peer, border) in [(&mut west, FIRST + 2), (&mut east, FIRST + 1)] {
        let id = peer.id;
        assert_eq!(peer.sub_result(border).conn_id, id, "the border");
    }
    for peer in [&mut master, &mut west, &mut east] {
        peer.expect("that the grid is ready", |event| match event {
            OwnedEvent::Message {
                message: FromGateway::SpatialChannelsReady(ready),
                ..
            } if ready.server_count == 2 => Some(()),
            _ => None,
        });
    }
    // A third finds no share left.
    let mut third = gateway.server();
    third.send(|outbox| {
        outbox.create_channel(CreateChannelMessage {
            channel_type: ChannelType::Spatial.into(),
            ..Default::default()
        })
    });
    third.list();
    third.expect_none("a share", |event| match event {
        OwnedEvent::Message {
            message: FromGateway::CreateSpatialChannel(made),
            ..
        } => Some(made.clone()),
        _ => None,
    });
}

pub(crate) fn c18_places_lie_in_cells(whose: Whose) {
    let gateway = with_grid(whose, ROW_OF_FOUR);
    let mut server = gateway.server();
    let places = vec![
        at(-2000.0, -500.0),
        at(-1000.5, 0.0),
        at(-1000.0, 0.0),
        at(0.0, 499.999),
        at(1999.999, 0.0),
        at(2000.0, 0.0),
        at(0.0, 500.0),
        at(-2000.001, 0.0),
    ];
    let asked = server.send(|outbox| outbox.query_spatial(places));
    let FromGateway::QuerySpatialChannel(found) = server.answer(asked) else {
        panic!("no answer");
    };
    let cell = |at: u32| FIRST + at;
    assert_eq!(
        found.channel_id,
        [cell(0), cell(0), cell(1), cell(2), cell(3), 0, 0, 0]
    );
}

const CELLS: i64 = 9;
const SIDE: f64 = 2000.0;
const EDGE: f64 = -9000.0;

fn cell_of(x: f64, z: f64) -> Option<(i64, i64)> {
    let cell = (
        ((x - EDGE) / SIDE).floor() as i64,
        ((z - EDGE) / SIDE).floor() as i64,
    );
    let inside = |at: i64| (0..CELLS).contains(&at);
    (inside(cell.0) && inside(cell.1)).then_some(cell)
}

fn channel_of((column, row): (i64, i64)) -> u32 {
    FIRST + u32::try_from(column + row * CELLS).unwrap()
}

/// The cells that an area around `centre` touches, by sampling points, and how
/// far the last sample of each is from it in diagonals.
fn sampled(
    centre: (f64, f64),
    extent: (f64, f64),
    clipped: bool,
    holds: impl Fn(f64, f64) -> bool,
) -> BTreeMap<u32, u32> {
    let step = |extent: f64| extent.min(SIDE) * 0.5;
    let (step_x, step_z) = (step(extent.0), step(extent.1));
    let clip = |low: f64| if clipped { low.max(EDGE) } else { low };
    let diagonal = SIDE.hypot(SIDE);
    let mut cells = BTreeMap::new();
    let mut z = clip(centre.1 - extent.1);
    while z <= centre.1 + extent.1 {
        let mut x = clip(centre.0 - extent.0);
        while x <= centre.0 + extent.0 {
            if let Some(cell) = cell_of(x, z).filter(|_| holds(x - centre.0, z - centre.1)) {
                let away = (x - centre.0).hypot(z - centre.1) / diagonal;
                cells.insert(channel_of(cell), away.ceil() as u32);
            }
            x += step_x;
        }
        z += step_z;
    }
    if let Some(cell) = cell_of(centre.0, centre.1) {
        cells.insert(channel_of(cell), 0);
    }
    cells
}

/// The interval a cell gets at that distance.
fn interval(distance: u32) -> u32 {
    match distance {
        1 => 50,
        2 => 100,
        // In the middle, and far away, where the channel's own holds.
        _ => 20,
    }
}

/// Sends the query and compares what the client is then subscribed to.
fn try_interest(
    server: &mut Peer,
    client: &mut Peer,
    subscribed: &mut BTreeMap<u32, u32>,
    query: SpatialInterestQuery,
    expected: &BTreeMap<u32, u32>,
) {
    let id = client.id;
    server.send(|outbox| outbox.update_interest(FIRST, id, query));
    let expected: BTreeMap<u32, u32> = expected
        .iter()
        .map(|(&channel, &distance)| (channel, interval(distance)))
        .collect();
    let wants = |known: &BTreeMap<u32, u32>| known.keys().eq(expected.keys());
    let mut changed = 0;
    loop {
        let pause = if wants(subscribed) {
            QUIET
        } else {
            crate::harness::SOON
        };
        let Ok(event) = client.client.take_event(pause, |event| {
            matches!(
                event,
                OwnedEvent::Message {
                    message: FromGateway::SubToChannel(_) | FromGateway::UnsubFromChannel(_),
                    ..
                }
            )
        }) else {
            break;
        };
        changed += 1;
        let OwnedEvent::Message {
            channel_id,
            message,
            ..
        } = event
        else {
            continue;
        };
        match message {
            FromGateway::SubToChannel(result) => {
                let options = result.sub_options.unwrap();
                subscribed.insert(channel_id, options.fan_out_interval_ms.unwrap());
            }
            _ => drop(subscribed.remove(&channel_id)),
        }
    }
    assert!(changed > 0, "nothing changed");
    let channels = |map: &BTreeMap<u32, u32>| -> Vec<u32> {
        map.keys().map(|channel| channel - FIRST).collect()
    };
    assert_eq!(channels(subscribed), channels(&expected));
}

pub(crate) fn c19_interest_is_sampled_in_the_grid(whose: Whose) {
    let gateway = with_grid(whose, SQUARE);
    let mut server = gateway.server();
    create_cells(&mut server);
    let mut client = gateway.client();
    let mut subscribed = BTreeMap::new();
    let centre = (300.0, -700.0);
    let middle = Some(at(centre.0, centre.1));

    let radius = 3000.0;
    let sphere = sampled(centre, (radius, radius), false, |x, z| {
        x * x + z * z <= radius * radius
    });
    let query = SpatialInterestQuery {
        sphere_aoi: Some(SphereAoi {
            center: middle,
            radius,
        }),
        ..Default::default()
    };
    try_interest(&mut server, &mut client, &mut subscribed, query, &sphere);
    let expected: BTreeMap<u32, u32> = sphere
        .iter()
        .map(|(&channel, &distance)| (channel, interval(distance)))
        .collect();
    assert_eq!(
        subscribed, expected,
        "new cells have the interval of their distance"
    );

    let extent = (6500.0, 900.0);
    let query = SpatialInterestQuery {
        box_aoi: Some(BoxAoi {
            center: middle,
            extent: Some(at(extent.0, extent.1)),
        }),
        ..Default::default()
    };
    let cells = sampled(centre, extent, false, |_, _| true);
    try_interest(&mut server, &mut client, &mut subscribed, query, &cells);

    // Towards +x, 0.6 radians to either side.
    let (radius, angle) = (5000.0, 0.6f64);
    let cells = sampled(centre, (radius, radius), true, |x, z| {
        let away = x.hypot(z);
        away <= radius && (away == 0.0 || x / away >= angle.cos())
    });
    let query = SpatialInterestQuery {
        cone_aoi: Some(ConeAoi {
            center: middle,
            direction: Some(at(1.0, 0.0)),
            angle,
            radius,
        }),
        ..Default::default()
    };
    try_interest(&mut server, &mut client, &mut subscribed, query, &cells);

    let spots = [at(-8999.0, -8999.0), at(8999.0, 8999.0), at(99_999.0, 0.0)];
    let cells = [(FIRST, 1), (FIRST + 80, 2)].into();
    let query = SpatialInterestQuery {
        spots_aoi: Some(SpotsAoi {
            spots: spots.to_vec(),
            dists: vec![1, 2, 0],
        }),
        ..Default::default()
    };
    try_interest(&mut server, &mut client, &mut subscribed, query, &cells);
}
