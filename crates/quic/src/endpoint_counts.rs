//! The counts of an endpoint: datagrams that reach no connection, and its own answers. Must never decide on a datagram.

use crate::crypto::VERSION;

/// Smallest datagram that may begin a connection, in bytes (RFC 9000, section 14.1).
const SMALLEST_INITIAL: usize = 1_200;
/// Least length of the connection ID that a client chooses (RFC 9000, section 7.2).
const SHORTEST_CHOSEN_ID: u8 = 8;

/// The counts of an endpoint since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointCounts {
    /// Datagrams that were dropped, those with which ignored connections begin included.
    pub dropped: u64,
    /// Dropped datagrams that are too short for their Initial packet.
    pub short_initials: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Connections that began with a valid token.
    pub valid_tokens: u64,
    /// Tokens that were invalid.
    pub invalid_tokens: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
}

impl EndpointCounts {
    /// Counts a datagram that was dropped.
    pub(crate) fn note_dropped(&mut self, datagram: &[u8]) {
        self.dropped += 1;
        if datagram.len() < SMALLEST_INITIAL && is_initial(datagram) {
            self.short_initials += 1;
        }
    }

    /// Counts an answer that no connection is involved in: a stateless reset, the error of a token, or another one.
    pub(crate) fn note_answer(&mut self, datagram: &[u8], answer: &[u8]) {
        if answer.first().is_some_and(|first| first & 0x80 == 0) {
            self.resets_sent += 1;
        } else if is_initial(answer) && datagram.get(5).is_some_and(|length| *length >= SHORTEST_CHOSEN_ID) {
            // The other error of a first packet is a short ID.
            self.invalid_tokens += 1;
        }
    }
}

/// Whether a datagram begins with an Initial packet (RFC 9000, section 17.2.2).
fn is_initial(datagram: &[u8]) -> bool {
    let is_long = datagram.first().is_some_and(|first| first & 0xb0 == 0x80);
    is_long && datagram.get(1..5) == Some(&VERSION.to_be_bytes()[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_counted_by_their_kind() {
        let initial = |length: u8, size: usize| {
            let mut bytes = vec![0xc3, 0, 0, 0, 1, length];
            bytes.resize(size, 0);
            bytes
        };
        let (retry, short) = (vec![0xf0, 0, 0, 0, 1], vec![0x41; 40]);
        let mut counts = EndpointCounts::default();
        for dropped in [&initial(8, 1_199), &initial(8, 1_200), &retry, &short, &vec![]] {
            counts.note_dropped(dropped);
        }
        counts.note_answer(&short, &short);
        counts.note_answer(&initial(8, 1_200), &initial(8, 40));
        counts.note_answer(&initial(7, 1_200), &initial(8, 40));
        // Version negotiation.
        counts.note_answer(&initial(8, 1_200), &[0x80, 0, 0, 0, 0]);
        let expected = EndpointCounts {
            dropped: 5,
            short_initials: 1,
            resets_sent: 1,
            invalid_tokens: 1,
            ..EndpointCounts::default()
        };
        assert_eq!(counts, expected);
    }
}
