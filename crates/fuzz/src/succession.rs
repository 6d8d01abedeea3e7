//! The messages between two processes that have the same UDP sockets: any bytes. One that is accepted has a single form, and
//! is within the limits; a datagram has addresses of one family.

use engine::succession::message::{LONGEST, MOST_HANDSHAKES, MOST_SOCKETS, Message};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let Some(message) = Message::decode(data) else { return };
    match &message {
        Message::Datagram(parcel) => {
            let datagram = &parcel.datagram;
            assert!(datagram.ecn < 4 && data.ends_with(datagram.bytes));
            assert!(datagram.local.is_none_or(|local| local.is_ipv4() == datagram.peer.is_ipv4()));
        }
        Message::Take { sockets, .. } => assert!(sockets.len() <= MOST_SOCKETS),
        Message::Handshakes { ids, .. } => assert!(ids.len() <= MOST_HANDSHAKES),
        Message::Taken { .. } => {}
    }
    let mut again = vec![9];
    message.encode(&mut again);
    assert!(again == data && again.len() <= LONGEST);
}
