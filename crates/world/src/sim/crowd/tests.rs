use lagometer_units::Share;

use super::*;
use crate::sim::bot::{BotBehavior, BotConfig, Turn};
use crate::sim::ground::GroundPlan;
use crate::sim::vector::Yaw;
use lagometer_units::Time;

const FRAME_S: f64 = 1.0 / 30.0;

fn crowd(players: u32, side_m: f64, built: Share) -> Crowd {
    let plan = GroundPlan {
        side_m,
        built,
        obstacle_m: [2.0, 8.0],
    };
    let ground = Arc::new(Ground::new(&plan, 1));
    let mut crowd = Crowd::new(Arc::clone(&ground), Movement::default());
    for player in 0..players {
        let place = ground
            .starting_place(1, player, 42.0, |place| crowd.occupied(place))
            .unwrap();
        crowd.take(
            EntityId(player),
            Body::standing(place, Yaw::new(f64::from(player % 90))),
        );
    }
    crowd
}

/// Lets the players' bots drive the crowd for so many frames.
fn play(crowd: &mut Crowd, frames: u32) {
    let tenth: Share = "10 %".parse().unwrap();
    let bot_config = BotConfig {
        turn_each_second: tenth,
        jump_each_second: tenth,
        teleport_each_second: None,
    };
    let bots: Vec<BotBehavior> = (0..crowd.len() as u32)
        .map(|player| BotBehavior::new(1, player, bot_config))
        .collect();
    for frame in 0..frames {
        let at = |frame: u32| Time::from_nanos(u64::from(frame) * 1_000_000_000 / 30);
        for (player, bot) in bots.iter().enumerate() {
            let id = EntityId(player as u32);
            for nth in bot.decisions_by(at(frame))..bot.decisions_by(at(frame + 1)) {
                let decision = bot.decision(nth);
                if let Some(turn) = decision.turn {
                    let quarters = if turn == Turn::Left { 1 } else { -1 };
                    crowd.body_mut(id).unwrap().yaw.turn(quarters);
                }
                if decision.jump {
                    crowd.jump(id);
                }
            }
        }
        crowd.frame(FRAME_S);
    }
}

#[test]
fn nobody_walks_through_walls_or_each_other() {
    let mut crowd = crowd(200, 100.0, "5 %".parse().unwrap());
    for _ in 0..20 {
        play(&mut crowd, 30);
        let places: Vec<Vector> = crowd.own().map(|(_, body)| body.place).collect();
        for (index, &place) in places.iter().enumerate() {
            assert!(crowd.ground.free(place, 42.0), "{place:?}");
            for &other in &places[index + 1..] {
                assert!(place.ground_distance_squared(other) >= 84.0 * 84.0 - 1e-6);
            }
        }
    }
}

#[test]
fn everybody_keeps_walking() {
    let mut crowd = crowd(100, 150.0, "5 %".parse().unwrap());
    let before: Vec<Vector> = crowd.own().map(|(_, body)| body.place).collect();
    play(&mut crowd, 300);
    let moved = crowd
        .own()
        .zip(before)
        .filter(|((_, body), before)| body.place.ground_distance_squared(*before) > 100.0 * 100.0)
        .count();
    assert!(moved >= 90, "only {moved} of 100 left where they began");
}

#[test]
fn the_same_seed_makes_the_same_walks() {
    let walk = || {
        let mut crowd = crowd(100, 100.0, "10 %".parse().unwrap());
        play(&mut crowd, 300);
        crowd.own().map(|(_, body)| *body).collect::<Vec<_>>()
    };
    assert_eq!(walk(), walk());
}

#[test]
fn a_foreign_character_is_in_the_way_until_it_is_taken() {
    let mut crowd = crowd(0, 100.0, Share::NONE);
    let place = Vector::on_ground(500.0, 0.0);
    crowd.take(
        EntityId(1),
        Body::standing(Vector::default(), Yaw::new(0.0)),
    );
    crowd.see_foreign(EntityId(2), place);
    for _ in 0..60 {
        crowd.frame(FRAME_S);
    }
    assert!(crowd.body(EntityId(1)).unwrap().place.x < 500.0 - 84.0 + 1e-6);
    crowd.take(EntityId(2), Body::standing(place, Yaw::new(90.0)));
    crowd.see_foreign(EntityId(2), Vector::default());
    assert_eq!(crowd.body(EntityId(2)).unwrap().place, place);
    assert_eq!(crowd.len(), 2);
}
