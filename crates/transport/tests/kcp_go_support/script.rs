//! A conversation in all that decides about it, drawn from a seed.

use std::fmt::Write as _;

use kcp_oracle::dice::Dice;
use lagometer_kcp::Config;
use lagometer_transport::kcp::FecGroup;

/// Settings, path, clock and writes of one conversation.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    pub(crate) conversation: u32,
    /// What both sessions are set to; the rules are kcp-go's.
    pub(crate) config: Config,
    /// Both sessions' forward error correction, where they have it.
    pub(crate) fec: Option<FecGroup>,
    /// Where the millisecond clock stands at the start.
    pub(crate) clock_ms: u64,
    /// When the second session starts, the first being there from the start.
    pub(crate) second_start_ns: u64,
    pub(crate) until_ns: u64,
    loss_per_mille: u64,
    duplicate_per_mille: u64,
    delay_us: [u64; 2],
    jitter_us: [u64; 2],
    /// While the second session is not read.
    pub(crate) pause_ns: (u64, u64),
    pub(crate) writes: Vec<Write>,
}

/// Bytes handed to a session in one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) side: usize,
    pub(crate) ns: u64,
    pub(crate) bytes: usize,
}

impl Script {
    /// The conversation of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut config = Config::kcp_go();
        if seed % 2 == 1 {
            config = Config {
                nodelay: 1,
                interval_ms: 10,
                resend: 2,
                congestion_control: false,
                ..config
            };
        }
        // Most as kcp-go is found, some with what an application may set.
        if dice.percent(25) {
            let window = dice.pick(&[2, 8, 64, 128, 512]);
            (config.send_window, config.receive_window) = (window, dice.pick(&[4, 32, 128]));
        }
        if dice.percent(15) {
            config.interval_ms = dice.pick(&[10, 20, 33, 50]);
            config.resend = dice.pick(&[0, 1, 2, 3]);
            config.nodelay = dice.pick(&[0, 1, 2]);
            config.congestion_control = dice.percent(50);
        }
        if dice.percent(25) {
            config.mtu = dice.pick(&[50, 64, 200, 576, 1_200]);
        }
        let fec = fec_of(seed);
        if fec.is_some() {
            // Without the 8 bytes in front of it a datagram has 50 at least.
            config.mtu = config.mtu.max(58);
        }
        let second_start_ns = dice.within(1, 40) * 1_000_000 + dice.within(1, 999) * 1_000;
        let seconds = dice.within(2, 20);
        let until_ns = seconds * 1_000_000_000 + 7;
        let pause_ns = if dice.percent(20) {
            let from = dice.within(0, seconds * 1_000) * 1_000_000 + 5;
            (from, from + dice.within(1, 9_000) * 1_000_000)
        } else {
            (5, 5)
        };
        // Near the wrap of the 32-bit clock in some.
        let clock_ms = if dice.percent(20) {
            (1 << 32) - dice.within(0, 4_000)
        } else {
            dice.below(100_000)
        };
        let delay_us = [dice.within(200, 150_000), dice.within(200, 150_000)];
        let mut jitter = || match dice.below(3) {
            0 => 0,
            1 => dice.within(1, 3_000),
            _ => dice.within(3_000, 120_000),
        };
        let jitter_us = [jitter(), jitter()];
        let mut script = Self {
            seed,
            conversation: dice.any() as u32,
            config,
            fec,
            clock_ms,
            second_start_ns,
            until_ns,
            loss_per_mille: dice.pick(&[0, 10, 50, 50, 100, 200, 350]),
            duplicate_per_mille: dice.pick(&[0, 0, 10, 100]),
            delay_us,
            jitter_us,
            pause_ns,
            writes: Vec::new(),
        };
        script.draw_writes(&mut dice);
        script
    }

    /// Steady small messages from either side, and now and then much at once.
    fn draw_writes(&mut self, dice: &mut Dice) {
        let last_us = self.until_ns / 1_000 - 1;
        for side in 0..2 {
            if dice.percent(15) {
                continue;
            }
            let every_us = dice.pick(&[5_000, 20_000, 50_000, 50_000, 100_000, 700_000]);
            let largest = dice.pick(&[1, 50, 500, 500, 1_376, 5_000]);
            let bulk = dice.pick(&[0, 0, 2]);
            let until_us = last_us - dice.below(last_us / 2);
            let mut at_us = self.second_start_ns / 1_000 + dice.within(1, 200_000);
            while at_us < until_us {
                let bytes = if dice.percent(bulk) {
                    dice.within(1, 65_540)
                } else {
                    dice.within(1, largest)
                };
                self.writes.push(Write {
                    side,
                    ns: at_us * 1_000 + 1 + 2 * side as u64,
                    bytes: bytes as usize,
                });
                at_us += dice.within(every_us / 2, every_us * 3 / 2);
            }
        }
        self.writes.sort_by_key(|write| write.ns);
    }

    /// The script as the oracle reads it.
    pub(crate) fn line(&self) -> String {
        let config = &self.config;
        let mut line = format!(
            "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
            self.seed,
            self.conversation,
            config.nodelay,
            config.interval_ms,
            config.resend,
            u8::from(!config.congestion_control),
            config.mtu,
            config.send_window,
            config.receive_window,
            self.clock_ms,
            self.second_start_ns,
            self.until_ns,
            self.loss_per_mille,
            self.duplicate_per_mille,
            self.delay_us[0],
            self.delay_us[1],
            self.jitter_us[0],
            self.jitter_us[1],
            self.pause_ns.0,
            self.pause_ns.1,
            self.fec.map_or(0, |group| group.data),
            self.fec.map_or(0, |group| group.parity),
        );
        for write in &self.writes {
            let (side, ns, bytes) = (write.side, write.ns, write.bytes);
            write!(line, " {side}:{ns}:{bytes}").expect("a string takes all");
        }
        line
    }

    /// What is written at `write`.
    pub(crate) fn bytes_of(&self, write: Write) -> Vec<u8> {
        let byte = |index: usize| {
            let place = self.seed.wrapping_add(write.ns).wrapping_add(index as u64);
            (mix(place) >> 7) as u8
        };
        (0..write.bytes).map(byte).collect()
    }

    /// When the copies of the datagram arrive that a side sends at `ns` as its
    /// `index`-th.
    pub(crate) fn arrivals(&self, side: usize, index: u64, ns: u64) -> Vec<u64> {
        let draw = |what: u64| {
            let datagram = mix(self.seed).wrapping_add(index * 2 + side as u64);
            mix(mix(datagram).wrapping_add(what))
        };
        if draw(0) % 1_000 < self.loss_per_mille {
            return Vec::new();
        }
        let copies = 1 + u64::from(draw(1) % 1_000 < self.duplicate_per_mille);
        (0..copies)
            .map(|copy| {
                let us = self.delay_us[side] + draw(2 + copy) % (self.jitter_us[side] + 1);
                (ns / 1_000 + us) * 1_000 + 2
            })
            .collect()
    }
}

/// Forward error correction in every third conversation: mostly as kcp-go's
/// users set it.
fn fec_of(seed: u64) -> Option<FecGroup> {
    let mut dice = Dice::new(mix(seed));
    let (data, parity) = dice.pick(&[(10, 3), (10, 3), (1, 1), (3, 1), (5, 5), (20, 7)]);
    seed.is_multiple_of(3).then_some(FecGroup { data, parity })
}

/// One step of `SplitMix64`, as the oracle has it.
fn mix(number: u64) -> u64 {
    Dice::new(number).any()
}
