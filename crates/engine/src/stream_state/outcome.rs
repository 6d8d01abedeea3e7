//! How a stream ended: the termination state of log lines. Must never access a stream.

/// Cause of a stream's end (configuration manual, section 8.5, first character).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    #[default]
    Normal,
    Client,
    Server,
    Proxy,
    /// The proxy, because the body of the request is invalid.
    Invalid,
    /// The proxy: a filter rejected the response, or rules have made it too large.
    Refused,
    Local,
    Resource,
    Internal,
    ClientTimeout,
    ServerTimeout,
    Killed,
    /// Its server went down (`on-marked-down`).
    Down,
    /// An active server came up (`on-marked-up`).
    Up,
}

impl Cause {
    /// Returns its character in the log.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Normal => b'-',
            Self::Client => b'C',
            Self::Server => b'S',
            Self::Proxy | Self::Invalid | Self::Refused => b'P',
            Self::Local => b'L',
            Self::Resource => b'R',
            Self::Internal => b'I',
            Self::ClientTimeout => b'c',
            Self::ServerTimeout => b's',
            Self::Killed => b'K',
            Self::Down => b'D',
            Self::Up => b'U',
        }
    }
}

/// Phase of a stream at its end (configuration manual, section 8.5, second character).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    #[default]
    Done,
    Request,
    Tarpit,
    Queue,
    Connect,
    Headers,
    Data,
    Last,
}

impl Phase {
    /// Returns its character in the log.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Done => b'-',
            Self::Request => b'R',
            Self::Tarpit => b'T',
            Self::Queue => b'Q',
            Self::Connect => b'C',
            Self::Headers => b'H',
            Self::Data => b'D',
            Self::Last => b'L',
        }
    }
}

/// Outcome of a stream: its termination state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    pub cause: Cause,
    pub phase: Phase,
}

impl Outcome {
    pub const fn new(cause: Cause, phase: Phase) -> Self {
        Self { cause, phase }
    }

    /// Returns the first two characters of the termination state.
    pub const fn letters(self) -> [u8; 2] {
        [self.cause.letter(), self.phase.letter()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_print_as_the_manual_says() {
        for (cause, phase, text) in [
            (Cause::Normal, Phase::Done, b"--"),
            (Cause::Server, Phase::Headers, b"SH"),
            (Cause::ServerTimeout, Phase::Queue, b"sQ"),
            (Cause::ClientTimeout, Phase::Request, b"cR"),
            (Cause::Proxy, Phase::Data, b"PD"),
            (Cause::Invalid, Phase::Headers, b"PH"),
            (Cause::Refused, Phase::Data, b"PD"),
            (Cause::Client, Phase::Connect, b"CC"),
            (Cause::Proxy, Phase::Tarpit, b"PT"),
            (Cause::Local, Phase::Last, b"LL"),
            (Cause::Resource, Phase::Connect, b"RC"),
            (Cause::Internal, Phase::Done, b"I-"),
            (Cause::Killed, Phase::Data, b"KD"),
        ] {
            assert_eq!(&Outcome::new(cause, phase).letters(), text);
        }
    }
}
