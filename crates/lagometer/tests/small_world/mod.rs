//! A scenario of a world for tests: a few players, for half a second.

/// Everyone in one channel, without the two seconds before the first window.
pub(crate) const SMALL_WORLD: &str = r#"
name = "small"
summary = "a few players who see each other"
channels = "single"
players = 3
join-every = "20 ms"
for = "500 ms"
server-frames-per-s = 30
player-frames-per-s = 10
fan-out-delay = "100 ms"
observers = 3
[[tier]]
every = "20 ms"
[ground]
side-m = 50
built = "0 %"
obstacle-m = [2, 12]
[bots]
turn-each-second = "10 %"
jump-each-second = "10 %"
"#;
