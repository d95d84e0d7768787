//! Worlds in virtual time: equal seeds, equal findings; and links that come
//! and go.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lagometer_link::{Link, Profile, catalogue};
use lagometer_results::Quantiles;
use lagometer_units::Time;
use lagometer_world::matrix::{Cell, Found, play_all};
use lagometer_world::{BUILT_IN, PlayerTransport, Scenario, player_link, virtual_time};

/// A small one of the built-in scenarios.
fn scenario(name: &str, players: u32, seconds: u32) -> Arc<Scenario> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name).unwrap();
    let mut scenario = Scenario::parse(name, text).unwrap();
    scenario.players = players;
    scenario.observers = players;
    scenario.duration = format!("{seconds} s").parse().unwrap();
    scenario.join_every = "5 ms".parse().unwrap();
    Arc::new(scenario)
}

fn cells(scenario: &Arc<Scenario>, networks: &[&str]) -> Vec<Cell> {
    let of_network = |network: &&str| {
        let profile = catalogue::named(network).unwrap();
        PlayerTransport::ALL.map(|transport| Cell {
            scenario: Arc::clone(scenario),
            transport,
            network: (*network).to_owned(),
            profile: profile.clone(),
        })
    };
    networks.iter().flat_map(of_network).collect()
}

fn found(cells: &[Cell], threads: usize) -> Vec<Found> {
    play_all(cells, threads, None, &|_, _| {}, &AtomicBool::new(false)).unwrap()
}

fn digests(scenario: &Arc<Scenario>, threads: usize) -> Vec<String> {
    found(&cells(scenario, &["busy-wifi"]), threads)
        .into_iter()
        .map(|found| found.world.digest.unwrap())
        .collect()
}

#[test]
fn a_seed_finds_the_same_again_on_any_number_of_threads() {
    let scenario = scenario("lod", 12, 3);
    let once = digests(&scenario, 1);
    assert_eq!(once, digests(&scenario, 1));
    assert_eq!(once, digests(&scenario, 3));
    let mut distinct = once.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), PlayerTransport::ALL.len(), "{once:?}");
    let other = Arc::new(Scenario {
        seed: 2,
        ..(*scenario).clone()
    });
    assert_ne!(once, digests(&other, 2));
}

#[test]
fn every_transport_carries_both_scenarios_over_calm_links() {
    for name in ["single", "lod"] {
        for found in found(&cells(&scenario(name, 12, 3), &["lan"]), 2) {
            let world = found.world;
            let played_world = format!("{name} over {:?}: {world:#?}", world.transport);
            assert_eq!(world.players.in_game, 12, "{played_world}");
            assert_eq!(world.players.lost, 0, "{played_world}");
            assert_eq!(world.sight.missing, 0, "{played_world}");
            assert_eq!(world.sight.views_right, 12, "{played_world}");
            assert!(
                world.tiers.iter().any(|tier| tier.samples > 500),
                "{played_world}"
            );
            let path = world.path.unwrap();
            assert!(path.up.packets_per_s > Some(12.0 * 5.0), "{played_world}");
            assert!(
                path.down.bytes_per_s > path.up.bytes_per_s,
                "{played_world}"
            );
        }
    }
}

#[test]
fn servers_of_a_grid_hand_characters_over_in_virtual_time() {
    let scenario = scenario("spatial", 12, 5);
    let found = found(&cells(&scenario, &["home-wifi"])[..1], 1);
    let world = &found[0].world;
    assert_eq!(world.players.in_game, 12, "{world:#?}");
    assert_eq!(world.sight.views_right, world.sight.views_compared);
    assert!(world.tiers.iter().any(|tier| tier.samples > 100));
    assert!(world.handovers.is_some());
}

/// Who has lost a connection opens another, as over sockets. The gateway drops them while
/// they read nothing, which KCP does not say: they find out by its silence.
#[test]
fn players_come_back_once_their_links_do() {
    let profile = Profile::from_text(
        "cut.toml",
        "summary = \"nothing for twelve seconds\"\n[both]\ndelay = \"10 ms\"\n\
         [[both.outages]]\nat = \"1 s\"\nfor = \"12 s\"\n",
    )
    .unwrap();
    let cell = Cell {
        scenario: scenario("lod", 6, 45),
        transport: "kcp".parse().unwrap(),
        network: "cut".to_owned(),
        profile,
    };
    let world = &found(&[cell], 1)[0].world;
    assert_eq!(world.players.lost, 6, "{world:#?}");
    assert_eq!(world.players.returned, 6, "{world:#?}");
    assert_eq!(world.players.in_game, 6, "{world:#?}");
    assert_eq!(world.sight.views_right, 6, "{world:#?}");
    // They saw nothing new until they had given up the old connection, and then again.
    let oldest = world.tiers.iter().map(|tier| tier.age_ms.max);
    let oldest = oldest.fold(0.0, f64::max);
    assert!((30_000.0..34_000.0).contains(&oldest), "{world:#?}");
}

/// Some come while somebody stands where they were to start, and start in a
/// cell that they have not been shown.
#[test]
fn who_starts_in_another_cell_for_want_of_room_plays_too() {
    let mut crowded = Scenario::clone(&scenario("spatial", 60, 1));
    crowded.ground.side_m = 30.0;
    crowded.ground.built = "0 %".parse().unwrap();
    let space = crowded.space.as_mut().unwrap();
    space.cells = [3, 3];
    space.servers = [1, 1];
    space.cell_m = 10.0;
    space.interest_radius_m = 5.0;
    let found = found(&cells(&Arc::new(crowded), &["lan"])[..1], 1);
    let world = &found[0].world;
    assert_eq!(world.players.in_game, 60, "{world:#?}");
    assert_eq!(world.sight.views_right, 60, "{world:#?}");
}

#[test]
fn ages_are_no_less_than_the_one_way_delay() {
    let slow =
        Profile::from_text("slow", "summary = \"far\"\n[both]\ndelay = \"80 ms\"\n").unwrap();
    // Of six a flush of KCP does not take all that is due: the oldest is 267 ms old.
    let scenario = scenario("single", 5, 3);
    for transport in PlayerTransport::ALL {
        let link = |player, starts| player_link(&slow, 1, player, starts);
        let stop = AtomicBool::new(false);
        let played =
            virtual_time::play(&scenario, transport, &link, None, &mut |_| {}, &stop).unwrap();
        let age = Quantiles::of(&played.outcome.age[0]);
        assert!(age.min >= 80.0, "{transport}: {age:?}");
        // The window waited for, a frame, and KCP's slowest flush.
        assert!(
            age.max <= 80.0 + 20.0 + 34.0 + 110.0,
            "{transport}: {age:?}"
        );
        assert_eq!(played.outcome.right_views, (5, 5), "{transport}");
    }
}

/// A link that is down for four seconds of the time that is measured.
fn cut() -> Profile {
    Profile::from_text(
        "cut",
        "summary = \"cut off\"\n[both]\ndelay = \"10 ms\"\n\
         [[both.outages]]\nat = \"1 s\"\nfor = \"4 s\"\n",
    )
    .unwrap()
}

#[test]
fn a_player_whose_link_is_cut_sees_old_things_and_then_the_truth_again() {
    let (cut, calm) = (cut(), catalogue::named("lan").unwrap());
    let scenario = scenario("lod", 8, 6);
    for transport in PlayerTransport::ALL {
        let link = |player: u32, starts: Time| -> Link {
            let profile = if player == 0 { &cut } else { &calm };
            player_link(profile, 1, player, starts)
        };
        let stop = AtomicBool::new(false);
        let played =
            virtual_time::play(&scenario, transport, &link, None, &mut |_| {}, &stop).unwrap();
        let outcome = played.outcome;
        assert_eq!(outcome.lost, Vec::<String>::new(), "{transport}");
        assert_eq!(outcome.players, 8, "{transport}");
        assert_eq!(outcome.right_views, (8, 8), "{transport}");
        let oldest = outcome
            .age
            .iter()
            .map(|age| Quantiles::of(age).max)
            .fold(0.0, f64::max);
        assert!(
            (4_000.0..12_000.0).contains(&oldest),
            "{transport}: {oldest}"
        );
        assert!(outcome.stale > 0, "{transport}");
        assert!(played.path.down.lost > 0, "{transport}");
    }
}

#[test]
fn a_link_that_stays_down_loses_its_player_and_nobody_else() {
    let down = Profile::from_text(
        "down",
        "summary = \"gone\"\n[both]\ndelay = \"10 ms\"\n\
         [[both.outages]]\nat = \"1 s\"\nfor = \"1 h\"\n",
    )
    .unwrap();
    let calm = catalogue::named("lan").unwrap();
    // Its window of 32 segments is soon full, and then nothing is read.
    let scenario = scenario("single", 6, 45);
    let link = |player: u32, starts: Time| -> Link {
        let profile = if player == 0 { &down } else { &calm };
        player_link(profile, 1, player, starts)
    };
    let stop = AtomicBool::new(false);
    let played = virtual_time::play(
        &scenario,
        PlayerTransport::KCP,
        &link,
        None,
        &mut |_| {},
        &stop,
    )
    .unwrap();
    assert_eq!(played.outcome.lost.len(), 1);
    // It goes on seeing what it saw last, older and older, to the end: five
    // entities ten times a second for 44 seconds.
    let age = Quantiles::of(&played.outcome.age[0]);
    assert!(age.max >= 43_500.0, "{age:?}");
    assert!(played.outcome.stale >= 2160, "{}", played.outcome.stale);
    assert!(
        played.outcome.lost[0].contains("received nothing for 30 s"),
        "{:?}",
        played.outcome.lost
    );
    assert_eq!(played.outcome.players, 5);
    assert_eq!(played.outcome.right_views, (5, 5));
}

/// Nobody's figures but its own show who is cut off to the end, and it must not be
/// left out for having no next window.
#[test]
fn a_player_without_windows_has_the_longest_gap() {
    let calm = catalogue::named("lan").unwrap();
    let scenario = scenario("single", 4, 10);
    let gaps = |silent_at: Option<&str>| {
        let silent = silent_at.map(|at| {
            let text = format!(
                "summary = \"silent\"\n[both]\ndelay = \"10 ms\"\n\
                 [[both.outages]]\nat = \"{at}\"\nfor = \"1 h\"\n"
            );
            Profile::from_text("silent", &text).unwrap()
        });
        let link = |player: u32, starts: Time| -> Link {
            let own = silent.as_ref().filter(|_| player == 0);
            player_link(own.unwrap_or(&calm), 1, player, starts)
        };
        let (tcp, stop) = (PlayerTransport::TCP_CUBIC, AtomicBool::new(false));
        let played = virtual_time::play(&scenario, tcp, &link, None, &mut |_| {}, &stop).unwrap();
        // Whether it still has its connection by then or not.
        let outcome = played.outcome;
        let gaps = [outcome.worst_gap_p99, outcome.longest_gap];
        gaps.map(|gap| gap.unwrap().as_secs_f64())
    };
    let [ordinary_p99, ordinary_longest] = gaps(None);
    assert!(ordinary_longest < 0.2, "{ordinary_longest}");
    let [p99, longest] = gaps(Some("5 s"));
    assert!((4.9..=5.1).contains(&longest), "{longest}");
    assert!((p99 - ordinary_p99).abs() < 0.02, "{p99}, {ordinary_p99}");
    let [p99, longest] = gaps(Some("0 s"));
    assert!((9.9..=10.1).contains(&longest), "{longest}");
    assert!((9.9..=10.1).contains(&p99), "{p99}");
}

#[test]
fn a_play_that_is_stopped_returns_what_it_has() {
    let scenario = scenario("single", 4, 1000);
    let stop = AtomicBool::new(false);
    let found = play_all(
        &cells(&scenario, &["lan"])[..1],
        1,
        None,
        &|_, moment| {
            if moment.world.at_s > 8.0 {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        },
        &stop,
    )
    .unwrap();
    assert!(found[0].partial);
    assert!(
        found[0].world.measured_s < 20.0,
        "{}",
        found[0].world.measured_s
    );
    assert!(found[0].world.tiers[0].samples > 0);
}

/// What is too much for the link of each player saturates by the link; what it
/// carries is carried.
#[test]
fn a_narrow_link_is_the_bottleneck() {
    let narrow = "summary = \"narrow\"\n[both]\ndelay = \"10 ms\"\nrate = \"120 kbit/s\"\nqueue = \"300 ms\"\n";
    let played = |players| {
        let cell = Cell {
            scenario: scenario("single", players, 3),
            transport: PlayerTransport::TCP_CUBIC,
            network: "narrow".to_owned(),
            profile: Profile::from_text("narrow.toml", narrow).unwrap(),
        };
        found(&[cell], 1).remove(0).world
    };
    let few = played(2);
    assert_eq!(few.bottleneck, None, "{:?}", few.path);
    let many = played(40);
    let why = many.bottleneck.unwrap();
    assert!(why.starts_with("the path to players is full"), "{why}");
}
