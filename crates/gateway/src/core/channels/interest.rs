//! What part of the world a client is to see, and how closely.

use std::collections::BTreeMap;

use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, ChannelType, SpatialInfo, SpatialInterestQuery,
    UpdateSpatialInterestMessage,
};

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId};
use crate::core::settings::{Grid, Position};

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::Envelope;

/// Fan-out intervals, milliseconds, by distance in diagonals of a cell: here,
/// up to one away, up to two. Farther cells have the interval of their type.
const INTERVALS_MS: [u32; 3] = [20, 50, 100];

/// The most steps that an area is sampled in on each axis.
const STEPS_AT_MOST: f64 = 4096.0;

impl ChannelManager {
    pub(super) fn update_interest(
        &mut self,
        request: &Request,
        asked: &UpdateSpatialInterestMessage,
    ) {
        let tables = &mut self.tables;
        // All shards are asked, each for its own cells; home says what is wrong.
        let is_home = tables.settings.shard.is_home();
        let client = ConnId(asked.conn_id);
        if !tables.is_server(request.from) || tables.connections.get(client).is_none() {
            if is_home {
                let why = "only servers set interests, of connections there are";
                tables.drop_message(request, why);
            }
            return;
        }
        let spots = asked
            .query
            .as_ref()
            .and_then(|query| query.spots_aoi.as_ref())
            .map_or(0, |area| area.spots.len());
        if spots > tables.budgets_of(request).places {
            if is_home {
                tables.refuse(request, Budget::Places);
            }
            return;
        }
        let cells = match (&tables.settings.grid, &asked.query) {
            (Some(grid), Some(query)) => cells(grid, query),
            _ => None,
        };
        let (Some(cells), Some(connection)) = (cells, self.tables.connections.get(client)) else {
            if is_home {
                let why = "its centre lies outside the world, or it is malformed";
                self.tables.drop_message(request, why);
            }
            return;
        };
        let wanted: BTreeMap<ChannelId, u32> = cells
            .into_iter()
            .map(|(cell, distance)| (self.tables.spatial_channel(cell), distance))
            .filter(|&(cell, _)| self.tables.is_here(cell))
            .collect();
        let gone: Vec<ChannelId> = connection
            .subscribed
            .keys()
            .filter(|id| !wanted.contains_key(id))
            .filter(|id| {
                let channel = self.tables.channels.get(*id);
                channel.is_some_and(|channel| channel.is(ChannelType::Spatial))
            })
            .collect();
        // All is done as if the client had asked for it.
        let as_client = Request {
            from: client,
            ..*request
        };
        for id in gone {
            self.unsubscribe_and_notify(&as_client, id, client);
        }
        self.subscribe_by_distance(&as_client, wanted);
    }

    /// Subscribes a client to cells, each as often as it is near: 0 is its own.
    fn subscribe_by_distance(&mut self, as_client: &Request, wanted: BTreeMap<ChannelId, u32>) {
        let default_ms = self
            .tables
            .settings
            .types
            .of(ChannelType::Spatial as i32)
            .fan_out_interval_ms;
        for (id, distance) in wanted {
            let interval_ms = INTERVALS_MS.get(distance as usize).copied();
            let options = ChannelSubscriptionOptions {
                fan_out_interval_ms: Some(interval_ms.unwrap_or(default_ms)),
                ..ChannelSubscriptionOptions::default()
            };
            let quietly = Request {
                envelope: Envelope::from(as_client.channel),
                ..*as_client
            };
            self.subscribe_and_notify(&quietly, id, as_client.from, &options);
        }
    }
}

/// The cells that a query's areas touch, and how far each is from the area's
/// centre in diagonals of a cell, rounded up. `None` if a centre lies outside
/// the world or a size is not positive.
fn cells(grid: &Grid, query: &SpatialInterestQuery) -> Option<BTreeMap<u32, u32>> {
    let mut cells = BTreeMap::new();
    if let Some(spots) = &query.spots_aoi {
        for (index, spot) in spots.spots.iter().enumerate() {
            if let Some(cell) = grid.cell(position(spot)) {
                cells.insert(cell, spots.dists.get(index).copied().unwrap_or(0));
            }
        }
    }
    if let Some(area) = &query.box_aoi {
        let extent = position(area.extent.as_ref()?);
        let centre = position(area.center.as_ref()?);
        sample(grid, centre, extent, false, &mut cells, |_| true)?;
    }
    if let Some(area) = &query.sphere_aoi {
        let centre = position(area.center.as_ref()?);
        let extent = Position {
            x: area.radius,
            z: area.radius,
        };
        let within = |spot: Position| squared(spot, centre) <= area.radius * area.radius;
        sample(grid, centre, extent, false, &mut cells, within)?;
    }
    if let Some(area) = &query.cone_aoi {
        let centre = position(area.center.as_ref()?);
        // One without a direction looks everywhere.
        let direction = area
            .direction
            .as_ref()
            .map_or_else(Position::default, position);
        let extent = Position {
            x: area.radius,
            z: area.radius,
        };
        // In Rust alone, for the platform's last bit is not fixed.
        let least = libm::cos(area.angle);
        let length = direction.distance(Position::default());
        let within = |spot: Position| {
            let far = spot.distance(centre);
            let along = (spot.x - centre.x) * direction.x + (spot.z - centre.z) * direction.z;
            // At the centre itself there is no direction; it is always in.
            let is_ahead = !(far > 0.0 && length > 0.0) || along / (far * length) >= least;
            squared(spot, centre) <= area.radius * area.radius && is_ahead
        };
        sample(grid, centre, extent, true, &mut cells, within)?;
    }
    Some(cells)
}

/// Goes over an area in steps of half a cell or half its extent, whichever is
/// less, and notes each spot's cell with its distance; of several spots in one
/// cell the last counts. The centre's own cell is 0 away. Only spots in the
/// world are looked at, however large the area.
fn sample(
    grid: &Grid,
    centre: Position,
    extent: Position,
    from_the_edge: bool,
    cells: &mut BTreeMap<u32, u32>,
    within: impl Fn(Position) -> bool,
) -> Option<()> {
    let (width, height) = grid.cell_size();
    let (near, far) = grid.bounds();
    let centre_cell = grid.cell(centre)?;
    let axis = |centre: f64, extent: f64, size: f64, near: f64, far: f64| {
        let step = extent.min(size) / 2.0;
        if !(step > 0.0 && extent.is_finite()) {
            return None;
        }
        let begin = centre - extent;
        let begin = if from_the_edge {
            begin.max(near)
        } else {
            begin
        };
        // Steps that lie before the world are not taken.
        let skipped = ((near - begin) / step).floor().max(0.0);
        let end = (centre + extent).min(far);
        Some((begin + skipped * step, step, end))
    };
    let (x_from, x_step, x_to) = axis(centre.x, extent.x, width, near.x, far.x)?;
    let (z_from, z_step, z_to) = axis(centre.z, extent.z, height, near.z, far.z)?;
    // The number of steps is counted, not waited for: beside a large centre a
    // tiny step adds nothing, and its sum would never reach the end.
    let steps = |from: f64, step: f64, to: f64| {
        let count = ((to - from) / step).clamp(0.0, STEPS_AT_MOST) as u32;
        (0..=count)
            .map(move |index| from + f64::from(index) * step)
            .take_while(move |&at| at <= to)
    };
    for z in steps(z_from, z_step, z_to) {
        for x in steps(x_from, x_step, x_to) {
            let spot = Position { x, z };
            if within(spot)
                && let Some(cell) = grid.cell(spot)
            {
                let distance = (centre.distance(spot) / grid.diagonal()).ceil();
                cells.insert(cell, distance as u32);
            }
        }
    }
    cells.insert(centre_cell, 0);
    Some(())
}

fn position(info: &SpatialInfo) -> Position {
    Position {
        x: info.x,
        z: info.z,
    }
}

fn squared(one: Position, other: Position) -> f64 {
    let (x, z) = (one.x - other.x, one.z - other.z);
    x * x + z * z
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::channeldpb::spatial_interest_query::{
        BoxAoi, ConeAoi, SphereAoi, SpotsAoi,
    };

    use super::*;

    fn grid() -> Grid {
        Grid::from_json(
            r#"{ "Config": { "WorldOffsetX": 0, "WorldOffsetZ": 0, "GridWidth": 10,
                "GridHeight": 10, "GridCols": 10, "GridRows": 10, "ServerCols": 1, "ServerRows": 1 } }"#,
        )
        .unwrap()
    }

    fn at(x: f64, z: f64) -> SpatialInfo {
        SpatialInfo { x, y: 0.0, z }
    }

    fn sphere(x: f64, z: f64, radius: f64) -> SpatialInterestQuery {
        SpatialInterestQuery {
            sphere_aoi: Some(SphereAoi {
                center: Some(at(x, z)),
                radius,
            }),
            ..SpatialInterestQuery::default()
        }
    }

    #[test]
    fn a_sphere_is_the_cells_its_samples_touch() {
        let found = cells(&grid(), &sphere(55.0, 55.0, 10.0)).unwrap();
        assert_eq!(
            found.keys().copied().collect::<Vec<_>>(),
            [45, 54, 55, 56, 65, 66]
        );
        assert_eq!(found[&55], 0);
        assert_eq!(found[&54], 1);
        let wide = cells(&grid(), &sphere(55.0, 55.0, 40.0)).unwrap();
        assert_eq!(wide[&51], 3, "the last sample of the cell counts");
        assert!(!wide.contains_key(&11), "a corner is out of reach");
    }

    #[test]
    fn no_area_is_too_large_and_none_may_be_nothing() {
        let grid = grid();
        let all = cells(&grid, &sphere(55.0, 55.0, 1e12)).unwrap();
        assert_eq!(all.len(), 100);
        for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(cells(&grid, &sphere(55.0, 55.0, radius)), None, "{radius}");
        }
        assert_eq!(cells(&grid, &sphere(-1.0, 55.0, 5.0)), None);
    }

    #[test]
    fn an_area_whose_steps_add_nothing_to_its_centre_does_not_hang() {
        for radius in [1e-300, 1e-20, 1e-9] {
            let found = cells(&grid(), &sphere(55.0, 55.0, radius)).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), [(55, 0)], "{radius}");
        }
    }

    #[test]
    fn spots_boxes_and_cones_add_up() {
        let query = SpatialInterestQuery {
            spots_aoi: Some(SpotsAoi {
                spots: vec![
                    SpatialInfo::default(),
                    SpatialInfo {
                        x: 15.0,
                        ..SpatialInfo::default()
                    },
                    SpatialInfo {
                        x: -15.0,
                        ..SpatialInfo::default()
                    },
                ],
                dists: vec![2],
            }),
            box_aoi: Some(BoxAoi {
                center: Some(at(95.0, 95.0)),
                extent: Some(SpatialInfo {
                    x: 10.0,
                    y: 0.0,
                    z: 4.0,
                }),
            }),
            cone_aoi: Some(ConeAoi {
                center: Some(at(55.0, 5.0)),
                direction: Some(at(1.0, 0.0)),
                angle: 0.1,
                radius: 20.0,
            }),
            ..SpatialInterestQuery::default()
        };
        let found: Vec<(u32, u32)> = cells(&grid(), &query).unwrap().into_iter().collect();
        assert_eq!(
            found,
            [(0, 2), (1, 0), (5, 0), (6, 1), (7, 2), (98, 1), (99, 0)]
        );
    }
}
