//! Answers that wait for the end of the event-loop iteration, to be sent with few system calls. Must never change their order.

use std::net::{IpAddr, SocketAddr};

use rt::net::Transmit;

/// Maximum number of answers that wait: a system call sends as many.
const MOST: usize = 32;
/// Maximum size in bytes of one that waits: to copy a longer one costs more than a system call.
const LONGEST: usize = 4_096;

/// Answers to clients of one socket.
#[derive(Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    waiting: Vec<Answer>,
}

/// An answer whose contents are in the bytes up to `end`, after those of the one before it.
struct Answer {
    destination: SocketAddr,
    source: Option<IpAddr>,
    segment_size: Option<usize>,
    end: usize,
}

impl Answers {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether they have to be sent before a further one is added.
    pub(super) fn are_in_the_way_of(&self, answer: &Transmit<'_>) -> bool {
        self.waiting.len() >= MOST || (answer.contents.len() > LONGEST && !self.is_empty())
    }

    /// Adds an answer. Returns false if it is too long: it is to be sent at once.
    pub(super) fn add(&mut self, answer: &Transmit<'_>) -> bool {
        let Transmit { destination, source, contents, segment_size, .. } = *answer;
        if contents.len() > LONGEST {
            return false;
        }
        self.bytes.extend_from_slice(contents);
        self.waiting.push(Answer { destination, source, segment_size, end: self.bytes.len() });
        true
    }

    /// Passes them to `send`, and removes them.
    pub(super) fn drain(&mut self, send: impl FnOnce(&mut [Transmit<'_>])) {
        let (bytes, mut begin) = (&self.bytes, 0);
        let mut transmits: Vec<_> = self
            .waiting
            .drain(..)
            .map(|Answer { destination, source, segment_size, end }| {
                let contents = bytes.get(begin..end).unwrap_or_default();
                begin = end;
                Transmit { destination, source, ecn: None, contents, segment_size }
            })
            .collect();
        send(&mut transmits);
        drop(transmits);
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(port: u16, contents: &[u8], segment_size: Option<usize>) -> Transmit<'_> {
        Transmit { destination: ([192, 0, 2, 1], port).into(), source: None, ecn: None, contents, segment_size }
    }

    #[test]
    fn answers_are_sent_as_they_were_added() {
        let mut answers = Answers::default();
        let expected = [answer(1, b"one", Some(2)), answer(2, b"", None), answer(1, b"three", None)];
        for round in 0..2 {
            assert!(answers.is_empty(), "{round}");
            assert!(expected.iter().all(|answer| answers.add(answer)));
            answers.drain(|found| assert_eq!(found, expected));
        }
    }

    #[test]
    fn long_and_many_answers_do_not_wait() {
        let (mut answers, long) = (Answers::default(), vec![0; LONGEST + 1]);
        assert!(!answers.are_in_the_way_of(&answer(1, &long, None)) && !answers.add(&answer(1, &long, None)));
        for _ in 0..MOST {
            assert!(!answers.are_in_the_way_of(&answer(1, b"x", None)) && answers.add(&answer(1, b"x", None)));
            assert!(answers.are_in_the_way_of(&answer(1, &long, None)), "it would overtake others");
        }
        assert!(answers.are_in_the_way_of(&answer(1, b"x", None)));
    }
}
