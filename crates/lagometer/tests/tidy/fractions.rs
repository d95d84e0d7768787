//! Mathematics with fractions: nothing that can change a packet, a document or a page
//! hangs on the platform's own.
//!
//! IEEE 754 fixes the four operations, the square root and rounding to the last bit.
//! What else the standard library offers (`cbrt`, `powi`, `exp`, …) it takes from the
//! platform or the compiler, and says of it that its precision may differ from one
//! to the next; `libm` is in Rust alone. (What a library computes is not seen here:
//! Student's t and the gamma function are `statrs`'s, which takes the platform's.)

use super::check;

/// Where packets, their fates and their times are made, and what is said of them.
const PLACES: &[&str] = &[
    "crates/client/src/",
    "crates/gateway/src/core/",
    "crates/instruments/src/",
    "crates/kcp/src/",
    "crates/lab/src/",
    "crates/link/src/",
    "crates/protocol/src/",
    "crates/report/src/",
    "crates/results/src/",
    "crates/socket/src/",
    "crates/stats/src/",
    "crates/tcp/src/",
    "crates/transport/src/",
    "crates/tune/src/",
    "crates/world/src/",
];

/// Methods of `f64` and `f32` whose last bits are not fixed.
const PLATFORM: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp",
    "exp2", "exp_m1", "hypot", "ln", "ln_1p", "log", "log10", "log2", "mul_add", "powf", "powi",
    "sin", "sin_cos", "sinh", "tan", "tanh",
];

#[test]
fn fractions_that_can_change_a_packet_are_the_same_everywhere() {
    check(|file, problems| {
        if !PLACES.iter().any(|place| file.path.starts_with(place))
            || file.path.ends_with("/tests.rs")
        {
            return;
        }
        // Unit tests stand last.
        let code = file.text.split("#[cfg(test)]\nmod tests").next();
        for (index, line) in code.unwrap_or_default().lines().enumerate() {
            if let Some(method) = platform_method(line) {
                problems.push(
                    index + 1,
                    format!("`{method}` is the platform's: use `libm` or whole numbers"),
                );
            }
        }
    });
}

/// The method of the platform's mathematics that a line calls, if it does.
fn platform_method(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    PLATFORM.iter().copied().find(|method| {
        let calls = [
            format!(".{method}("),
            format!("f64::{method}"),
            format!("f32::{method}"),
        ];
        calls.iter().any(|call| code.contains(call.as_str()))
    })
}

#[test]
fn methods_are_distinguished_from_functions_and_whole_numbers() {
    assert_eq!(platform_method("let k = x.cbrt();"), Some("cbrt"));
    assert_eq!(platform_method("xs.map(f64::exp)"), Some("exp"));
    for fine in [
        "libm::exp(x)",
        "x.sqrt()",
        "n.ilog2()",
        "n.pow(3)",
        "// x.powi(3)",
    ] {
        assert_eq!(platform_method(fine), None, "{fine}");
    }
}
