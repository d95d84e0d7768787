//! Which KCP: the points in which versions of `ikcp.c` differ, and the mends
//! for what the current one does badly.
//!
//! The default of every rule is what the current reference does. A defect of
//! the reference is a rule too, so that it is reproduced unless its mend is
//! asked for by name.

use lagometer_units::Span;
use serde::{Deserialize, Serialize};

/// The rules an engine plays by. The default is the current `ikcp.c`,
/// [`Rules::of_2015`] the one of July 2015, [`Rules::of_kcp_go`] those of the
/// implementation in Go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a rule of its own, and written as one"
)]
pub struct Rules {
    /// Shorter flush intervals are lengthened to this. The reference: 10 ms.
    pub interval_floor: Span,
    /// Smaller receive windows are widened to this many segments, so that the
    /// largest message fits. The reference: 128; in 2015: no floor.
    pub receive_window_floor: u16,
    /// A message must be cut into fewer segments than this, at most 256. The
    /// reference: 128; in 2015: 256.
    pub fragment_limit: u16,
    /// The peer's window, in segments, until it first reports it. The reference:
    /// 128; in 2015: 32.
    pub first_remote_window: u16,
    /// What is added to the smoothed round-trip time at least.
    pub rto_margin: RtoMargin,
    /// How the timeout of a segment grows from one resend to the next.
    pub backoff: Backoff,
    /// What counts as a skip of a segment, for the fast resend.
    pub skip_counting: SkipCounting,
    /// A resend on timeout starts the segment's skip count afresh. The
    /// reference keeps the count, so that a segment already skipped often
    /// enough goes out twice: on its timeout, and again at the next flush.
    pub timeout_resets_skips: bool,
    /// A segment skipped at all is resent by the first flush that has no new
    /// segment to send, and skips are looked at before timeouts; either resend
    /// takes the path's current timeout. kcp-go's "early retransmit".
    #[serde(skip_serializing_if = "is_off")]
    pub early_resend: bool,
    /// The first transmission of a segment waits no eighth longer than the
    /// timeout with `nodelay` 0. kcp-go.
    #[serde(skip_serializing_if = "is_off")]
    pub no_first_grace: bool,
    /// An acknowledged segment keeps its place in the send window until all
    /// before it are acknowledged and the peer says so. kcp-go, which spares
    /// itself the move; the reference closes the gap at once.
    #[serde(skip_serializing_if = "is_off")]
    pub acknowledged_keep_place: bool,
    /// Acknowledgements of segments that lie before the first missing one are
    /// left out, but for the last of a flush: the cumulative number in every
    /// header says as much. kcp-go.
    #[serde(skip_serializing_if = "is_off")]
    pub brief_acknowledgements: bool,
    /// Which round trips are measured, and how they are smoothed.
    #[serde(skip_serializing_if = "RttSampling::is_reference")]
    pub rtt_sampling: RttSampling,
    /// How the congestion window grows past slow start.
    pub window_growth: WindowGrowth,
    /// The congestion window before the first flush, in segments. With the
    /// reference's 0 the first flush sends no data and only opens the window.
    pub first_congestion_window: u16,
    /// How long a sender waits, after the peer has reported no room,
    /// before it asks again. The reference: 7 s, which is also how long
    /// everything stands still when the peer's one word of new room is lost.
    pub first_probe: Span,
    /// Later waits are half as long again each, up to this. The reference:
    /// 120 s.
    pub longest_probe: Span,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            interval_floor: Span::from_millis(10),
            receive_window_floor: 128,
            fragment_limit: 128,
            first_remote_window: 128,
            rto_margin: RtoMargin::default(),
            backoff: Backoff::default(),
            skip_counting: SkipCounting::default(),
            timeout_resets_skips: false,
            early_resend: false,
            no_first_grace: false,
            acknowledged_keep_place: false,
            brief_acknowledgements: false,
            rtt_sampling: RttSampling::default(),
            window_growth: WindowGrowth::default(),
            first_congestion_window: 0,
            first_probe: Span::from_millis(7_000),
            longest_probe: Span::from_millis(120_000),
        }
    }
}

impl Rules {
    /// The rules of kcp-go 5.4.20 (`kcp.go`), which channeld speaks. Its floor
    /// under the interval, probes and clamps are the reference's; its windows
    /// have no floor.
    #[must_use]
    pub fn of_kcp_go() -> Self {
        Self {
            receive_window_floor: 1,
            fragment_limit: 256,
            first_remote_window: 32,
            backoff: Backoff::Linear2015,
            skip_counting: SkipCounting::EveryAcknowledgementByTime,
            timeout_resets_skips: true,
            early_resend: true,
            no_first_grace: true,
            acknowledged_keep_place: true,
            brief_acknowledgements: true,
            rtt_sampling: RttSampling::LastInDatagram,
            window_growth: WindowGrowth::BySegment,
            ..Self::default()
        }
    }

    /// The `ikcp.c` of July 2015 as `asio_kcp` carried it: no fast-resend
    /// check of timestamps, every acknowledgement counted for itself, timeouts
    /// that grow by a constant, and a floor of 1 ms under the margin of the
    /// timeout. `asio_kcp` lowered the floor of the interval to 2 ms.
    #[must_use]
    pub fn of_2015() -> Self {
        Self {
            interval_floor: Span::from_millis(2),
            receive_window_floor: 1,
            fragment_limit: 256,
            first_remote_window: 32,
            rto_margin: RtoMargin::OneMillisecond,
            backoff: Backoff::Linear2015,
            skip_counting: SkipCounting::EveryAcknowledgement2015,
            window_growth: WindowGrowth::Inverted2015,
            ..Self::default()
        }
    }
}

/// Which acknowledgements measure the round trip, and how it is smoothed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttSampling {
    /// Each acknowledgement is a sample; the mean moves by an eighth, the
    /// deviation by a quarter of the difference. The reference.
    #[default]
    EachAcknowledgement,
    /// The last acknowledgement of a datagram is a sample, after the whole of
    /// the datagram was read. The differences are shifted, not divided, and a
    /// sample below the mean by more than the deviation moves the deviation by
    /// a 32nd instead of a quarter. kcp-go.
    LastInDatagram,
}

impl RttSampling {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_reference(&self) -> bool {
        *self == Self::EachAcknowledgement
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_off(rule: &bool) -> bool {
    !rule
}

/// The least margin of the timeout over the smoothed round-trip time; the
/// margin is four deviations where that is more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RtoMargin {
    /// One flush interval, as in the current reference.
    #[default]
    Interval,
    /// One millisecond, as in 2015.
    OneMillisecond,
}

/// How a segment's timeout grows from one resend to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backoff {
    /// As the mode says: doubled with `nodelay` 0, half as long again with 1,
    /// plus half the current timeout with 2.
    #[default]
    ByNodelay,
    /// As in 2015 and in kcp-go: plus the current timeout with `nodelay` 0,
    /// plus half of it with the others.
    Linear2015,
}

/// What counts as a skip of a segment still outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipCounting {
    /// Each datagram counts once for the segments below one acknowledged and
    /// last sent no later. The one acknowledged is the highest, but only an
    /// acknowledgement with a later timestamp displaces an earlier one in the
    /// datagram, so that of a burst sent within a millisecond the *first*
    /// counts. The current reference (`IKCP_FASTACK_CONSERVE`).
    #[default]
    NewestInDatagram,
    /// Each datagram counts once for all segments below the highest it
    /// acknowledges, whenever they were sent. The current reference built
    /// without `IKCP_FASTACK_CONSERVE`.
    HighestInDatagram,
    /// Each acknowledgement counts for all segments below that were last sent
    /// no later, one for a segment that is already acknowledged too. kcp-go.
    EveryAcknowledgementByTime,
    /// As in 2015: each acknowledgement counts for all segments below, and one
    /// for a segment that is already gone counts for *every* segment.
    #[serde(rename = "every-acknowledgement-2015")]
    EveryAcknowledgement2015,
}

/// How the congestion window grows past slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowGrowth {
    /// To as many segments as its bytes make, rounded up, once they make one
    /// more. The current reference.
    #[default]
    ByBytes,
    /// By one segment once its bytes make one more. kcp-go.
    BySegment,
    /// As in 2015: by one segment while its bytes make *fewer* than one more,
    /// the comparison having been written the wrong way round.
    #[serde(rename = "inverted-2015")]
    Inverted2015,
}
