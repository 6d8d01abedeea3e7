//! `_getsocks`: passes the listening sockets to a successor (management manual, section 3 "-x"; the messages are
//! described in docs/process-management.md). Must never close a socket: both processes share it until this one stops.

use std::sync::Arc;

use rt::net::{ListeningSocket, MOST_DESCRIPTORS};

use super::super::{Answer, Call, Command, Disconnected, Pending, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] =
    &[Command::new("_getsocks", "", "hand over the listening sockets", Run::Gradual(hand_over))];

fn hand_over<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        call.conversation.leaving = true;
        // Permitted by an option of the socket, independent of the level, as in HAProxy.
        if !call.conversation.expose_listeners {
            return Ok(());
        }
        send(call.state, call.answer).await
    })
}

/// Sends every listening socket: the number of sockets, then groups of them. A group is one message with a record for
/// each socket and the descriptors as ancillary data, and is acknowledged by four bytes.
async fn send(worker: &Worker, answer: &mut Answer) -> Result<(), Disconnected> {
    let sockets: Vec<Arc<ListeningSocket>> = match worker.process.sockets() {
        Some(sockets) => sockets.open().into_iter().map(|(_, socket)| socket).collect(),
        None => Vec::new(),
    };
    answer.push(i32::try_from(sockets.len()).unwrap_or(i32::MAX).to_ne_bytes());
    answer.flush().await?;
    for group in sockets.chunks(MOST_DESCRIPTORS) {
        let mut records = Vec::new();
        let mut descriptors = Vec::with_capacity(group.len());
        for socket in group {
            let Some(descriptor) = socket.as_descriptor() else { return Err(Disconnected) };
            socket.set_shared();
            descriptors.push(descriptor);
            record(socket, &mut records);
        }
        answer.pass(&records, &descriptors).await?;
        acknowledged(answer).await?;
    }
    Ok(())
}

/// Writes the record of a socket: network namespace, device, options. The successor reads everything else from the
/// kernel.
fn record(socket: &ListeningSocket, records: &mut Vec<u8>) {
    for name in [socket.namespace().unwrap_or_default(), &socket.interface().unwrap_or_default()] {
        // Names in the kernel are shorter than 256 bytes.
        let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
        records.push(name.len() as u8);
        records.extend_from_slice(name);
    }
    records.extend_from_slice(&0_i32.to_ne_bytes());
}

async fn acknowledged(answer: &mut Answer) -> Result<(), Disconnected> {
    let mut left = size_of::<i32>();
    let mut buffer = rt::buffer();
    while left > 0 {
        buffer.clear();
        match answer.read(&mut buffer).await? {
            0 => return Err(Disconnected),
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}
