//! The parameters that a master passes to its workers, in one word of the command line. Stable across versions: after
//! an upgrade, master and worker are different programs. Must never be part of the documented command line.

use std::fmt;

/// A worker's parameters. Descriptors are numbers that the worker inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSeat {
    /// The worker's end of the channel to the master.
    pub channel: i32,
    /// The master has started workers before: predecessors named on the command line were already signalled.
    pub again: bool,
    /// A connection to the runtime API of the worker that is being replaced, which passes its sockets.
    pub sockets: Option<i32>,
}

/// The flag of a process that reads files for a worker; its file descriptor of the stream to the worker follows.
pub const READER_FLAG: &str = "--reader-of-master";

impl WorkerSeat {
    /// The flag that precedes the word.
    pub const FLAG: &'static str = "--worker-of-master";

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        let descriptor = |text: &str| text.parse().ok().filter(|number| *number > 2);
        let mut parts = word.split(',');
        let channel = descriptor(parts.next()?)?;
        let mut seat = Self { channel, again: false, sockets: None };
        for part in parts {
            match part.strip_prefix("sockets=") {
                Some(number) => seat.sockets = Some(descriptor(number)?),
                None if part == "again" => seat.again = true,
                None => return None,
            }
        }
        Some(seat)
    }
}

impl fmt::Display for WorkerSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.channel)?;
        if self.again {
            f.write_str(",again")?;
        }
        self.sockets.map_or(Ok(()), |number| write!(f, ",sockets={number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_read_as_it_was_written() {
        for (again, sockets) in [(false, None), (true, None), (true, Some(7))] {
            let seat = WorkerSeat { channel: 5, again, sockets };
            assert_eq!(WorkerSeat::parse(&seat.to_string()), Some(seat));
        }
        for word in ["", "x", "1", "5,never", "5,sockets=1", "5,sockets=", "-5"] {
            assert_eq!(WorkerSeat::parse(word), None, "{word}");
        }
    }
}
