//! A stream of frames: however it is cut, the frames are the same, and none of
//! them takes more memory than allowed.

use lagometer_protocol::{FrameDecoder, FrameError, FrameForm, FrameLimits, Packet};

const LIMITS: FrameLimits = FrameLimits {
    max_payload_bytes: 65_535,
    max_packet_bytes: 10_000,
};

pub(crate) fn body(data: &[u8]) {
    let Some((&cut, stream)) = data.split_first() else {
        return;
    };
    let whole = decode(stream.chunks(stream.len().max(1)));
    assert_eq!(decode(stream.chunks(usize::from(cut).max(1))), whole);
    assert_eq!(decode(stream.chunks(1)), whole);

    let mut scratch = Vec::new();
    let mut decoder = FrameDecoder::new(LIMITS);
    let mut rest = stream;
    while let Ok(Some(frame)) = decoder.next(&mut rest) {
        if let Ok(bytes) = frame.packet_bytes(LIMITS.max_packet_bytes, &mut scratch)
            && let Ok(packet) = Packet::new_checked(bytes)
        {
            let bodies: usize = packet.messages().map(|message| message.body.len()).sum();
            assert!(bodies <= bytes.len());
        }
    }
    assert!(scratch.capacity() <= LIMITS.max_packet_bytes);
}

fn decode<'s>(
    chunks: impl Iterator<Item = &'s [u8]>,
) -> (Vec<Vec<u8>>, Option<FrameError>, FrameForm) {
    let mut decoder = FrameDecoder::new(LIMITS);
    let mut frames = Vec::new();
    for mut chunk in chunks {
        loop {
            match decoder.next(&mut chunk) {
                Ok(Some(frame)) => frames.push(frame.payload.to_vec()),
                Ok(None) => break,
                Err(FrameError::BadTag(..)) => {
                    // How much of a bad tag is told depends on the cut.
                    return (frames, Some(FrameError::BadTag(0, 0)), decoder.form());
                }
                Err(error) => return (frames, Some(error), decoder.form()),
            }
        }
    }
    (frames, None, decoder.form())
}
