//! Any bytes as the output of an agent: no panic, frames end at their declared length, the same result in pieces, and
//! values round-trip.

use wire::spop::{Actions, Data, agent_disconnect, agent_hello, next_frame};

/// Maximum size of a frame in bytes.
const MOST: u32 = 1_024;

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    let mut rest = input;
    while let Ok(Some((frame, taken))) = next_frame(rest, MOST) {
        assert!(taken <= rest.len() && taken <= MOST as usize + 4);
        for shorter in [0, 3, taken / 2, taken - 1] {
            assert_eq!(next_frame(&rest[..shorter], MOST), Ok(None), "a frame is there before its end");
        }
        payload(frame.payload);
        rest = &rest[taken..];
    }
    payload(input);
}

fn payload(bytes: &[u8]) {
    let _ = (agent_hello(bytes, MOST), agent_disconnect(bytes));
    assert!(Actions::new(bytes).count() <= bytes.len());
    let mut rest = bytes;
    while let Ok(value) = Data::take(&mut rest) {
        let mut written = Vec::new();
        value.encode(&mut written);
        assert_eq!(Data::take(&mut written.as_slice()), Ok(value));
    }
}
