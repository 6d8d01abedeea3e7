//! The padding at the end of a packet's payload. Must never change what any other frame says.
//!
//! The library reads PADDING frames one by one, and each Initial datagram and each probe of the path's MTU consists mostly of
//! them: that was an eighth of a handshake's cost.

use quinn_proto::VarInt;
use quinn_proto::coding::Codec;

/// Fewer bytes of padding are left to the library.
const WORTHWHILE: usize = 32;

/// Returns the length of a payload without the PADDING frames at its end, at least 1 unless it is empty. A payload with a
/// frame that only the library can read keeps its padding.
pub(super) fn length_without_padding(payload: &[u8]) -> usize {
    let end = payload.len() - zeros_at_end(payload);
    if payload.len() - end < WORTHWHILE {
        return payload.len();
    }
    let mut rest = payload;
    // The zeros at the end may be the content of the last frame.
    while payload.len() - rest.len() < end {
        if skip_frame(&mut rest).is_none() {
            return payload.len();
        }
    }
    (payload.len() - rest.len()).max(1)
}

/// Returns the number of zeros at the end, most of which are counted 32 at a time.
fn zeros_at_end(payload: &[u8]) -> usize {
    let whole = payload.rchunks_exact(32).take_while(|chunk| **chunk == [0; 32]).count() * 32;
    let rest = &payload[..payload.len() - whole];
    whole + rest.iter().rev().take_while(|byte| **byte == 0).count()
}

/// Skips one frame (RFC 9000, section 19, and the extension for acknowledgment frequency). `None`: it is incomplete or unknown, or its length is that of the packet.
fn skip_frame(rest: &mut &[u8]) -> Option<()> {
    match integer(rest)? {
        // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK, which follows the PING of a probe.
        0x00 | 0x01 | 0x1e | 0x1f => Some(()),
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => skip_integers(rest, 1),
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
        0x05 | 0x11 | 0x15 => skip_integers(rest, 2),
        // RESET_STREAM.
        0x04 => skip_integers(rest, 3),
        // ACK_FREQUENCY.
        0xaf => skip_integers(rest, 4),
        // NEW_TOKEN.
        0x07 => skip_content(rest),
        // CRYPTO, STREAM with a length, CONNECTION_CLOSE of the application.
        0x06 | 0x0a | 0x0b | 0x1d => skip_integers(rest, 1).and_then(|()| skip_content(rest)),
        // STREAM with an offset and a length, CONNECTION_CLOSE.
        0x0e | 0x0f | 0x1c => skip_integers(rest, 2).and_then(|()| skip_content(rest)),
        // ACK, the second kind with counts of ECN.
        kind @ 0x02..=0x03 => {
            skip_integers(rest, 2)?;
            let ranges = integer(rest)?;
            let counts = if kind == 0x03 { 3 } else { 0 };
            skip_integers(rest, ranges.checked_mul(2)?.checked_add(1 + counts)?)
        }
        // NEW_CONNECTION_ID: its length has one byte, and a token of 16 bytes follows.
        0x18 => {
            skip_integers(rest, 2)?;
            let length = *rest.first()?;
            skip_bytes(rest, 1 + usize::from(length) + 16)
        }
        // PATH_CHALLENGE, PATH_RESPONSE.
        0x1a | 0x1b => skip_bytes(rest, 8),
        _ => None,
    }
}

fn integer(rest: &mut &[u8]) -> Option<u64> {
    VarInt::decode(rest).ok().map(VarInt::into_inner)
}

/// Skips integers. Their number is bounded by the bytes that are left.
fn skip_integers(rest: &mut &[u8], count: u64) -> Option<()> {
    (0..count).try_for_each(|_| integer(rest).map(drop))
}

/// Skips a length and as many bytes.
fn skip_content(rest: &mut &[u8]) -> Option<()> {
    let length = integer(rest)?;
    skip_bytes(rest, usize::try_from(length).ok()?)
}

fn skip_bytes(rest: &mut &[u8], count: usize) -> Option<()> {
    *rest = rest.get(count..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames before padding, and whether that can be cut off.
    #[test]
    fn padding_is_cut_off_after_frames_that_are_known() {
        let rows: &[(&[u8], bool)] = &[
            (&[0x01], true),
            (&[0x01, 0x1f], true),
            (&[0x40, 0xaf, 1, 2, 0x44, 0x00, 3], true),
            (&[0x06, 0x00, 0x03, 1, 2, 3], true),
            (&[0x00, 0x00, 0x06, 0x40, 0x05, 0x01, 9, 0x01], true),
            (&[0x02, 5, 0, 1, 5, 2, 2], true),
            (&[0x03, 5, 0, 0, 5, 1, 1, 1], true),
            (&[0x0b, 4, 2, 1, 2], true),
            (&[0x0f, 4, 0x44, 0x00, 2, 1, 2], true),
            (&[0x1a, 1, 2, 3, 4, 5, 6, 7, 8], true),
            (&[0x1e, 0x10, 1, 0x12, 1, 0x13, 1, 0x14, 1, 0x16, 1, 0x17, 1, 0x19, 1], true),
            (&[0x05, 4, 1, 0x11, 4, 1, 0x15, 4, 1, 0x04, 4, 1, 9], true),
            (&[0x07, 2, 1, 9, 0x1d, 1, 1, 9, 0x1c, 1, 6, 1, 9], true),
            (&[0x18, 1, 0, 2, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], true),
            // A STREAM frame that extends to the end, and frames that are unknown here.
            (&[0x08, 4, 1, 2], false),
            (&[0x0c, 4, 0x44, 0x00, 1, 2], false),
            (&[0x18, 1, 0, 0x40], false),
            (&[0x40, 0x52, 1], false),
        ];
        for (frames, is_cut) in rows {
            let padded = [*frames, &[0; 40]].concat();
            let expected = if *is_cut { frames.len() } else { padded.len() };
            assert_eq!(length_without_padding(&padded), expected, "{frames:x?}");
            assert_eq!(length_without_padding(frames), frames.len());
        }
    }

    #[test]
    fn zeros_at_the_end_are_counted() {
        for zeros in 0..100 {
            for front in [0, 1, 31, 32, 33] {
                let payload = [vec![7; front], vec![0; zeros]].concat();
                assert_eq!(zeros_at_end(&payload), zeros, "{zeros} after {front}");
            }
        }
        assert_eq!(zeros_at_end(&[[0; 40].as_slice(), &[1], &[0; 31]].concat()), 31);
    }

    #[test]
    fn zeros_within_frames_are_kept() {
        // The zeros are the content of a CRYPTO and of a STREAM frame, and a part of them.
        for frame in [&[0x06_u8, 0x00, 40][..], &[0x0a, 4, 40]] {
            let whole = [frame, &[0; 40]].concat();
            assert_eq!(length_without_padding(&whole), whole.len());
            let padded = [frame, &[0; 100]].concat();
            assert_eq!(length_without_padding(&padded), whole.len());
            let incomplete = [frame, &[0; 39]].concat();
            assert_eq!(length_without_padding(&incomplete), incomplete.len());
        }
        // ACK ranges that the packet does not contain.
        let hostile = [&[0x02_u8, 5, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..], &[0; 100]].concat();
        assert_eq!(length_without_padding(&hostile), hostile.len());
        assert_eq!(length_without_padding(&[]), 0);
        assert_eq!(length_without_padding(&[0; 1_000]), 1);
    }
}
