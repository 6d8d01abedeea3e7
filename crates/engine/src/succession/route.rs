//! The process and the worker that a datagram is for. Must never pass it on.

use quic::cid::{self, Id, Place};

/// The destination of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The socket that has received it.
    Here,
    /// The socket of another worker, by its index in the group.
    Sibling(usize),
    /// Another process, and the worker there.
    Process(Place),
    /// It is dropped: a process that this one does not reach has it, and repeats it or receives it as well.
    Nowhere,
}

/// Information about the other processes that have the sockets of this one.
pub trait OtherProcesses {
    /// Whether datagrams with a tag can be passed to a process that lives.
    fn lives(&self, tag: u8) -> bool;

    /// Returns the owner of a handshake that began in another process, by a destination of its packets.
    fn handshake(&self, id: &Id) -> Option<Place>;

    /// Whether a younger process has the sockets as well.
    fn has_successor(&self) -> bool;
}

/// Returns the destination of a datagram that was received by socket `own.worker` of a group of `sockets`.
///
/// - A connection id of this program has its process and its worker.
/// - A client chooses the first destination itself, and packets of handshakes may have either id: they are those of another
///   process only if that has named them. All others begin connections here.
/// - An id of a process that has ended, or of none, is left to the machine, which may answer with a stateless reset. A process
///   with a successor leaves it alone: the id may be one of the successor.
pub fn route(datagram: &[u8], own: Place, sockets: usize, others: &impl OtherProcesses) -> Route {
    let Some(place) = cid::place(datagram) else {
        let owner = cid::of_handshake(datagram).and_then(|id| others.handshake(&id));
        return owner.filter(|owner| others.lives(owner.process)).map_or(Route::Here, Route::Process);
    };
    if place.process == own.process {
        let worker = usize::from(place.worker);
        return if place.worker == own.worker || worker >= sockets { Route::Here } else { Route::Sibling(worker) };
    }
    if others.lives(place.process) {
        Route::Process(place)
    } else if others.has_successor() {
        Route::Nowhere
    } else {
        Route::Here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Others {
        lives: &'static [u8],
        has_successor: bool,
    }

    const CHOSEN: [u8; 9] = [9, 30, 0, 0, 0, 0, 0, 0, 1];
    const OWN: [u8; 8] = [2, 30, 5, 5, 5, 5, 5, 5];

    impl OtherProcesses for Others {
        fn lives(&self, tag: u8) -> bool {
            self.lives.contains(&tag)
        }

        fn handshake(&self, id: &Id) -> Option<Place> {
            [&CHOSEN[..], &OWN].contains(&id.as_slice()).then_some(Place { worker: 2, process: 30 })
        }

        fn has_successor(&self) -> bool {
            self.has_successor
        }
    }

    fn short(worker: u8, process: u8) -> Vec<u8> {
        vec![0x40, worker, process, 1, 2, 3, 4, 5, 6, 7, 7]
    }

    fn long(first: u8, id: &[u8]) -> Vec<u8> {
        [&[first, 0, 0, 0, 1, id.len() as u8][..], id, &[0; 20]].concat()
    }

    #[test]
    fn each_datagram_has_one_destination() {
        let old = Route::Process(Place { worker: 2, process: 30 });
        let (initial, early, handshake) = (0xc0, 0xd0, 0xe0);
        // The datagram; where it goes with process 30 alive; with that gone; where there is a successor as well.
        let rows = [
            ("own", short(1, 20), [Route::Here; 3]),
            ("another worker", short(3, 20), [Route::Sibling(3); 3]),
            ("a worker that there is not", short(4, 20), [Route::Here; 3]),
            ("the older process", short(2, 30), [old, Route::Here, Route::Nowhere]),
            ("a process that is not known", short(2, 31), [Route::Here, Route::Here, Route::Nowhere]),
            ("its Handshake packet", long(handshake, &OWN), [old, Route::Here, Route::Nowhere]),
            ("own Handshake packet", long(handshake, &[3, 20, 1, 1, 1, 1, 1, 1]), [Route::Sibling(3); 3]),
            ("a first Initial again", long(initial, &CHOSEN), [old, Route::Here, Route::Here]),
            ("its later Initial", long(initial, &OWN), [old, Route::Here, Route::Here]),
            ("its 0-RTT", long(early, &CHOSEN), [old, Route::Here, Route::Here]),
            ("an Initial of a new client", long(initial, &[7; 8]), [Route::Here; 3]),
            ("whose id looks like one", long(initial, &[2, 30, 1, 1, 1, 1, 1, 1]), [Route::Here; 3]),
            ("an id of another length", long(handshake, &[2, 30, 1]), [Route::Here; 3]),
            ("another version", long(initial, &[]), [Route::Here; 3]),
            ("too short", vec![0x40, 2, 30], [Route::Here; 3]),
            ("empty", vec![], [Route::Here; 3]),
        ];
        let states: [(&[u8], bool); 3] = [(&[30], false), (&[], false), (&[], true)];
        for (name, datagram, expected) in rows {
            for ((lives, has_successor), expected) in states.into_iter().zip(expected) {
                let others = Others { lives, has_successor };
                let found = route(&datagram, Place { worker: 1, process: 20 }, 4, &others);
                assert_eq!(found, expected, "{name} {lives:?} {has_successor}");
            }
        }
    }
}
