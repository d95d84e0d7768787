//! How lanes are distinguished: a hue, a line pattern and a marker each.
//!
//! Eight hues are all that stay distinct for every kind of colour vision. Up to
//! eight lanes have one each; among more a hue stands for a family of
//! transports and the pattern for its members, as long as that suffices. Hues after
//! Okabe and Ito, "Color universal design", adapted in lightness to reach a
//! contrast of 3:1 on both backgrounds; their values are in the style sheet.

use lagometer_results::Lane;

/// Hues in the style sheet, classes `h0` to `h7`.
const HUES: usize = 8;

/// Line patterns in the style sheet, classes `d0` to `d4`, and marker shapes.
const PATTERNS: usize = 5;

/// How one lane looks everywhere on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Index of the hue.
    pub(crate) hue: usize,
    /// Index of the line pattern and of the marker.
    pub(crate) pattern: usize,
    /// Unreliable lanes have hollow markers.
    pub(crate) hollow: bool,
}

impl Look {
    /// The classes of an element that belongs to the lane.
    pub(crate) fn classes(self) -> String {
        format!("h{} d{}", self.hue, self.pattern)
    }

    /// The lane's marker, 8 units across, centred on the origin.
    pub(crate) fn marker(self) -> String {
        let shape = match self.pattern {
            0 => r#"<circle r="4" "#,
            1 => r#"<path d="M-3.6-3.6H3.6V3.6H-3.6Z" "#,
            2 => r#"<path d="M0-4.6 4.4 3.4H-4.4Z" "#,
            3 => r#"<path d="M0-5 5 0 0 5-5 0Z" "#,
            _ => r#"<path d="M0 4.6 4.4-3.4H-4.4Z" "#,
        };
        format!(
            r#"{shape}class="marker{}"/>"#,
            if self.hollow { " hollow" } else { "" }
        )
    }

    /// A piece of the lane's line with its marker, for legends.
    pub(crate) fn swatch(self) -> String {
        format!(
            r#"<svg class="swatch {}" viewBox="0 0 30 12" aria-hidden="true"><path class="curve" d="M0 6H30"/><g transform="translate(15 6)">{}</g></svg>"#,
            self.classes(),
            self.marker()
        )
    }
}

/// The looks of `lanes`, in their order.
pub(crate) fn looks(lanes: &[Lane]) -> Vec<Look> {
    let mut families: Vec<(&str, usize)> = Vec::new();
    let mut places = Vec::with_capacity(lanes.len());
    for lane in lanes {
        let family = family(&lane.transport);
        let index = families
            .iter()
            .position(|(name, _)| *name == family)
            .unwrap_or_else(|| {
                families.push((family, 0));
                families.len() - 1
            });
        places.push((index, families[index].1));
        families[index].1 += 1;
    }
    let by_family = lanes.len() > HUES
        && families.len() <= HUES
        && families.iter().all(|(_, members)| *members <= PATTERNS);
    lanes
        .iter()
        .zip(places)
        .enumerate()
        .map(|(index, (lane, place))| {
            let (hue, pattern) = if by_family {
                place
            } else {
                (index % HUES, index / HUES % PATTERNS)
            };
            let hollow = lane
                .properties
                .as_ref()
                .is_some_and(|properties| !properties.reliable);
            Look {
                hue,
                pattern,
                hollow,
            }
        })
        .collect()
}

/// `quic` of `quic-datagram`, `kcp` of `kcp`.
fn family(transport: &str) -> &str {
    transport.split(['-', '_', ' ']).next().unwrap_or(transport)
}

#[cfg(test)]
mod tests {
    use lagometer_results::figures;

    use super::*;

    fn lanes(transports: &[&str]) -> Vec<Lane> {
        transports
            .iter()
            .map(|transport| figures(&[], &[], None).into_lane("x", transport))
            .collect()
    }

    fn hues_and_patterns(transports: &[&str]) -> Vec<(usize, usize)> {
        looks(&lanes(transports))
            .into_iter()
            .map(|look| (look.hue, look.pattern))
            .collect()
    }

    #[test]
    fn few_lanes_have_a_hue_each() {
        assert_eq!(
            hues_and_patterns(&["kcp", "kcp", "enet"]),
            [(0, 0), (1, 0), (2, 0)]
        );
    }

    #[test]
    fn families_of_many_lanes_share_a_hue() {
        let many = [
            "kcp",
            "kcp",
            "quic",
            "quic-datagram",
            "udp",
            "tcp",
            "renet",
            "webrtc",
            "enet",
        ];
        let looks = hues_and_patterns(&many);
        assert_eq!(looks[..4], [(0, 0), (0, 1), (1, 0), (1, 1)]);
    }

    #[test]
    fn forty_lanes_are_distinguished_whatever_they_are() {
        let mut looks = hues_and_patterns(&["kcp"; 40]);
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 40);
    }
}
