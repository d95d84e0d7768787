//! A document of two short lanes for the tests of this crate.

use std::time::Duration;

use lagometer_stats::Distribution;
use lagometer_units::Time;

use super::{
    Asked, Audit, AuditFigures, AuditSpread, Bottleneck, BottleneckSender, BottleneckWay,
    BudgetResult, Cell, CensoredQuantiles, Decision, DelayOf, DirectionImpairments, Disturbance,
    Document, Echo, EchoCounts, Flow, GatewayMetrics, Host, Impairments, LaneAudit, Lasted, Noise,
    NoiseFloor, NoiseQuantiles, Placement, PlacementTrial, Quantiles, SCHEMA, Sweep, Traffic,
    TransportProperties, Tune, TuneFinding, TuneLevel, TuneNetwork, TunePoint, TuneSensitivity,
    TuneTransfer, TunedFigure, TunedLane, Warning, WayAudit, Wire, World, WorldMoment, WorldPath,
    WorldProcess, WorldTier, WorldWay,
};
use crate::episodes::Disturbed;
use crate::figures::{SeedRun, figures};
use crate::prices::{Prices, player_cost};
use crate::record::MessageRecord;

/// Thirty seconds of a reliable lane that lags in the fifth second, and of an
/// unreliable one that loses every tenth message.
#[expect(clippy::too_many_lines, reason = "it lists every field there is")]
pub(crate) fn sample_document() -> Document {
    let disturbed = [Disturbed {
        from: Time::from_secs(5),
        until: Time::from_millis(5_300),
    }];
    let lane = |name: &str, reliable: bool, rtt: fn(u64) -> Option<u64>| {
        let records: Vec<_> = (0..600).map(|index| echoed(index, rtt(index))).collect();
        let run = SeedRun {
            seed: 1,
            records: &records,
            disturbed: &disturbed,
            overhead: Some(1.25),
            cost: None,
            game: None,
            flows: None,
        };
        let mut lane = figures(&[run], &[], Some(Duration::from_millis(170))).into_lane(name, name);
        lane.properties = Some(TransportProperties {
            reliable,
            ordered: reliable,
            head_of_line: String::new(),
            encrypted: false,
            mtu_bytes: 1400,
            header_bytes: 52,
            acks: "at the next flush".to_owned(),
            varies: String::new(),
            late_answer: "an acknowledgement alone".to_owned(),
            congestion_control: "none".to_owned(),
            peer_timeout: "30 s".to_owned(),
            fixed: "nothing".to_owned(),
        });
        lane.wire = Some(Wire {
            packets: 1200,
            bytes: 750_000,
            overhead: 1.25,
            up_packets: 600,
            down_packets: 600,
            dropped: [("burst".to_owned(), 12)].into(),
        });
        lane
    };
    let mut lanes = vec![
        lane("kcp", true, |index| {
            Some(if (100..110).contains(&index) { 400 } else { 60 })
        }),
        lane("udp", false, |index| (index % 10 != 0).then_some(55)),
    ];
    lanes[1].traffic = Some(sample_traffic());
    lanes[1].cost = player_cost([6e4, 1e6], 0.01, Some(1e-5), &Prices::built_in());
    Document {
        schema: SCHEMA.to_owned(),
        command: "run".to_owned(),
        testbed: Some("sim".to_owned()),
        seed: 1,
        seeds: vec![1],
        partial: false,
        started: "2026-01-02T03:04:05Z".to_owned(),
        wall_s: 0.25,
        host: Host {
            os: "linux".to_owned(),
            kernel: "6.18".to_owned(),
            cpus: 2,
            noise: Some(Noise {
                wake_us: NoiseQuantiles {
                    p50: 60.0,
                    p99: 200.0,
                },
                steal_pct: 1.5,
                floor: Some(NoiseFloor {
                    clock_source: "tsc".to_owned(),
                    clock_read_ns: 18.9,
                    system_call_ns: 86.9,
                    timer_slack_us: Some(50.0),
                    short_sleep_us: NoiseQuantiles {
                        p50: 40.0,
                        p99: 120.0,
                    },
                    wake_same_core_us: Some(NoiseQuantiles { p50: 1.0, p99: 1.2 }),
                    wake_cross_core_us: None,
                    longest_gap_us: 512.5,
                    udp_loopback_per_s: Some(900_000.0),
                    stolen_pct: None,
                }),
            }),
        },
        experiment: serde_json::json!({ "for": "30 s" }),
        asked: Some(Asked {
            experiment: "games/duel.toml".to_owned(),
            network: Some("busy-wifi".to_owned()),
            to: Some("192.0.2.7:7700".to_owned()),
            emu_mode: Some("proxy".to_owned()),
            ipv6: true,
        }),
        impairments: Some(Impairments {
            up: DirectionImpairments {
                disturbances: vec![Disturbance {
                    kind: "stall".to_owned(),
                    start_s: 5.0,
                    end_s: 5.3,
                }],
                step_s: 10.0,
                delay_ms: vec![20.0; 3],
                loss_pct: vec![0.0; 3],
                rate_kbit_per_s: Vec::new(),
            },
            down: DirectionImpairments::default(),
        }),
        lanes,
        bottlenecks: vec![sample_bottleneck()],
        echo: Some(sample_echo()),
        sweep: Some(sample_sweep()),
        audit: Some(sample_audit()),
        world: Some(sample_world()),
        worlds: vec![sample_world()],
        tune: Some(sample_tune()),
        budgets: vec![BudgetResult {
            lane: "kcp".to_owned(),
            metric: "within_150ms".to_owned(),
            limit: 0.99,
            value: Some(0.98),
            unmeasured: false,
            at_least: false,
            ok: false,
            decision: Decision::Undecided,
            low: Some(0.94),
            high: Some(0.995),
            more_seeds: Some(4),
            fewest_more_seeds: None,
        }],
        verdict: None,
        warnings: vec![Warning {
            what: "One seed was played.".to_owned(),
            why: "Small differences may be these network conditions'.".to_owned(),
            mend: "--seeds 5".to_owned(),
        }],
    }
}

/// Messages down, of which one in ten was lost.
fn sample_traffic() -> Traffic {
    Traffic {
        delay: DelayOf::OneWay,
        within_ms: 100.0,
        up: None,
        down: Some(Flow {
            intended: 600,
            delivered: 540,
            on_time: 0.9,
            delay_ms: CensoredQuantiles::default(),
            freezes_per_min: 2.0,
            frozen_s_per_min: 0.5,
            longest_freeze: Some(Lasted {
                ms: 250.0,
                at_least: true,
            }),
            kbit_per_s: 128.0,
        }),
    }
}

fn echoed(index: u64, rtt_ms: Option<u64>) -> MessageRecord {
    let intended = Time::from_millis(index * 50);
    MessageRecord {
        accepted: Some(intended),
        arrived: rtt_ms.map(|rtt| intended + Duration::from_millis(rtt / 2)),
        returned: rtt_ms.map(|rtt| intended + Duration::from_millis(rtt)),
        blocked: rtt_ms.map(|rtt| Duration::from_millis(rtt.saturating_sub(300))),
        ..MessageRecord::due(intended)
    }
}

/// Two echoes and a loss.
fn sample_echo() -> Echo {
    let mut round_trips = Distribution::new();
    round_trips.record(Duration::from_micros(4));
    round_trips.record(Duration::from_micros(5));
    Echo {
        transport: "udp".to_owned(),
        remote: "own".to_owned(),
        size_bytes: 8,
        outstanding: 1,
        measured_s: 1.0,
        iops: 2.0,
        delay_ms: Some(250.0),
        rtt_ms: Quantiles::of(&round_trips),
        histogram: round_trips.to_base64(),
        messages: EchoCounts {
            sent: 3,
            echoed: 2,
            lost: 1,
            ..EchoCounts::default()
        },
        placement: Placement {
            name: "same core".to_owned(),
            local_cpu: Some(0),
            remote_cpu: Some(0),
            asked: false,
            tried: vec![PlacementTrial {
                name: "same core".to_owned(),
                local_cpu: Some(0),
                remote_cpu: Some(0),
                rate: 2.0,
            }],
        },
        step_s: 0.5,
        series: vec![2.0, 2.0],
        ..Echo::default()
    }
}

/// A latency and a bandwidth.
fn sample_sweep() -> Sweep {
    let cell = |test: &str| Cell {
        test: test.to_owned(),
        size_bytes: 1400,
        method: "one write each".to_owned(),
        sent: 10,
        received: 9,
        lost: 1,
        ..Cell::default()
    };
    Sweep {
        remote: "own".to_owned(),
        congestion_control: Some("cubic".to_owned()),
        cell_s: 0.5,
        cells: vec![
            Cell {
                latency_us: Some(2.1),
                rtt_ms: Some(Quantiles::default()),
                ..cell("udp_lat")
            },
            Cell {
                send_mbit_per_s: Some(5800.0),
                recv_mbit_per_s: Some(5700.0),
                ..cell("udp_bw")
            },
        ],
    }
}

/// An audit of one lane that found no fault.
fn sample_audit() -> Audit {
    let spread = AuditSpread {
        count: 1200,
        mean: 12.0,
        p50: 9.0,
        p99: 40.0,
        max: 700.0,
    };
    let figures = AuditFigures {
        delay_ms: spread,
        loss_pct: 1.0,
        rate_mbit_per_s: 0.2,
    };
    let way = WayAudit {
        packets: 600,
        lost_by_accident: 1,
        release_error_us: Some(spread),
        outside_error_us: Some(spread),
        unseen: 2,
        asked: figures,
        realised: figures,
    };
    Audit {
        valid: true,
        faults: Vec::new(),
        device: "tun".to_owned(),
        waiting: "hybrid".to_owned(),
        precedence: "real-time".to_owned(),
        router_cpu_pct: Some(20.5),
        release_error_us: spread,
        outside_error_us: Some(spread),
        wake_late_us: spread,
        longest_absence_us: 700.0,
        asked: figures,
        realised: figures,
        lanes: vec![LaneAudit {
            lane: "kcp".to_owned(),
            up: way.clone(),
            down: way,
        }],
    }
}

fn sample_world() -> World {
    World {
        gateway: "own".to_owned(),
        measured_s: 5.0,
        tiers: vec![WorldTier {
            every_ms: 20.0,
            samples: 100,
            ..WorldTier::default()
        }],
        gateway_metrics: Some(GatewayMetrics {
            cpu_pct: Some(11.0),
            queue_ms: Some(0.5),
            merged_pct: Some(0.1),
            ..GatewayMetrics::default()
        }),
        transport: Some("kcp".to_owned()),
        network: Some("cable".to_owned()),
        path: Some(WorldPath {
            up: WorldWay {
                packets_per_s: Some(10.0),
                bytes_per_s: Some(1000.0),
                lost_share: 0.01,
                full_share: Some(0.005),
                wait_ms: Some(2.5),
            },
            down: WorldWay::default(),
        }),
        cost: player_cost([1e3, 1e4], 0.01, None, &[]),
        digest: Some("0123456789abcdef".to_owned()),
        inputs: Some("fedcba9876543210".to_owned()),
        processes: vec![WorldProcess {
            at: "here".to_owned(),
            servers: 1,
            ..WorldProcess::default()
        }],
        bottleneck: Some("the gateway is full".to_owned()),
        timeline: vec![WorldMoment {
            players: 5,
            age_p50_ms: Some(39.0),
            ..WorldMoment::default()
        }],
        ..World::default()
    }
}

/// A download beside a lane.
fn sample_bottleneck() -> Bottleneck {
    let sender = |name: &str, kbit_per_s, goodput_kbit_per_s| BottleneckSender {
        name: name.to_owned(),
        contends: true,
        packets: 100,
        dropped: 3,
        marked: 0,
        kbit_per_s,
        goodput_kbit_per_s,
        waiting_bytes: vec![1500, 64_000, 0],
    };
    Bottleneck {
        lanes: vec!["kcp".to_owned()],
        up: BottleneckWay::default(),
        down: BottleneckWay {
            senders: vec![
                sender("kcp", 80.0, None),
                sender("film", 9_920.0, Some(9_600.0)),
            ],
            jain: Some(0.508),
            step_s: 10.0,
        },
    }
}

fn sample_tune() -> Tune {
    let figure = TunedFigure {
        before_searched: Some(0.97),
        found_searched: Some(0.995),
        before: Some(0.968),
        before_interval: Some([0.96, 0.975]),
        found: Some(0.993),
        found_interval: Some([0.991, 0.995]),
        difference: Some(0.025),
        difference_interval: Some([0.018, 0.032]),
    };
    let settings = serde_json::json!({ "resend": 1 });
    Tune {
        goal: "within_150ms".to_owned(),
        limits: vec!["overhead at most 2".to_owned()],
        networks: vec![TuneNetwork {
            name: "busy-wifi".to_owned(),
            weight: 1.0,
            held_out: false,
        }],
        search_seeds: vec![1, 2],
        held_out_seeds: vec![3, 4],
        seed_s: 30.0,
        candidates: 40,
        played_s: 2400.0,
        lanes: vec![TunedLane {
            lane: "kcp".to_owned(),
            transport: "kcp".to_owned(),
            preset: "kcp".to_owned(),
            settings: settings.clone(),
            toml: "[[lane]]\nname = \"kcp-tuned\"\ntransport = \"kcp\"\n".to_owned(),
            candidates: 40,
            finding: TuneFinding::Better,
            goal: figure.clone(),
            overhead: figure.clone(),
            p99_ms: figure.clone(),
            bytes_per_player_hour: Some(figure.clone()),
            money_per_player_hour: Some(figure.clone()),
            currency: Some("USD".to_owned()),
            limits_kept: Some(true),
            transfer: vec![TuneTransfer {
                network: "3g".to_owned(),
                settings: settings.clone(),
                goal: figure,
            }],
            sensitivity: vec![TuneSensitivity {
                setting: "resend".to_owned(),
                found: 1.into(),
                swing: 0.02,
                levels: vec![TuneLevel {
                    value: 0.into(),
                    goal: 0.973,
                }],
            }],
            frontier: vec![TunePoint {
                preset: "kcp".to_owned(),
                settings,
                overhead: 1.4,
                p99_ms: Some(141.0),
                goal: 0.993,
            }],
        }],
    }
}
