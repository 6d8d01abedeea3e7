//! `_getsocks`: passes the listening sockets to a successor (management manual, section 3 "-x"; the messages are
//! described in docs/process-management.md). Must never close a socket: both processes share it until this one stops.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rt::net::{ListeningSocket, MOST_DESCRIPTORS};

use super::super::{Answer, Call, Command, Disconnected, Pending, Run};
use engine::datagram_sockets::{DatagramSockets, OpenDatagrams};
use engine::succession::{self, PassedChannel};
use engine::worker::Worker;
use policy::program::{Program, SocketOptions};

pub(super) const TABLE: &[Command<Worker>] =
    &[Command::new("_getsocks", "", "hand over the listening sockets", Run::Gradual(hand_over))];

fn hand_over<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        call.conversation.leaving = true;
        // Permitted by an option of the socket, independent of the level, as in HAProxy.
        if !call.conversation.expose_listeners {
            return Ok(());
        }
        send(call.state, &call.generation.program, call.answer).await
    })
}

/// Sends every listening socket: the number of sockets, then groups of them. A group is one message with a record for
/// each socket and the descriptors as ancillary data, and is acknowledged by four bytes.
async fn send(worker: &Worker, program: &Program, answer: &mut Answer) -> Result<(), Disconnected> {
    let streams = worker.process.sockets().map(|sockets| sockets.open()).unwrap_or_default();
    let streams = streams.into_iter().map(|(_, socket)| PassedSocket::Stream(socket));
    let datagrams = worker.process.service::<DatagramSockets>().open().into_iter();
    let datagrams = datagrams.filter(|socket| socket.as_descriptor().is_some()).map(PassedSocket::Datagram);
    let datagrams: Vec<PassedSocket> = datagrams.collect();
    let channels = if datagrams.is_empty() { Vec::new() } else { succession::channels(&worker.process) };
    let channels = channels.into_iter().map(PassedSocket::Channel);
    let sockets: Vec<PassedSocket> = streams.chain(datagrams).chain(channels).collect();
    answer.push(i32::try_from(sockets.len()).unwrap_or(i32::MAX).to_ne_bytes());
    answer.flush().await?;
    for group in sockets.chunks(MOST_DESCRIPTORS) {
        let mut records = Vec::new();
        let mut descriptors = Vec::with_capacity(group.len());
        for socket in group {
            let Some(descriptor) = socket.as_descriptor() else { return Err(Disconnected) };
            descriptors.push(descriptor);
            socket.record(program, &mut records);
        }
        answer.pass(&records, &descriptors).await?;
        acknowledged(answer).await?;
    }
    Ok(())
}

/// A socket that is passed.
enum PassedSocket {
    /// It listens for connections.
    Stream(Arc<ListeningSocket>),
    /// It receives the datagrams of a QUIC address.
    Datagram(Arc<OpenDatagrams>),
    /// The successor passes datagrams of QUIC connections over it.
    Channel(PassedChannel),
}

impl PassedSocket {
    /// Returns the descriptor, from now on shared with the other process.
    fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Stream(socket) => {
                socket.set_shared();
                socket.as_descriptor()
            }
            Self::Datagram(socket) => socket.as_descriptor(),
            Self::Channel(channel) => Some(channel.end.as_fd()),
        }
    }

    /// Writes the record of the socket: network namespace, device, options. The successor reads everything else from the
    /// kernel.
    fn record(&self, program: &Program, records: &mut Vec<u8>) {
        match self {
            Self::Stream(socket) => {
                write_names([socket.namespace().unwrap_or_default(), &socket.interface().unwrap_or_default()], records);
            }
            Self::Datagram(socket) => {
                let options = options(program, socket);
                let name = |name: Option<&Box<str>>| name.map_or(String::new(), |name| name.to_string());
                let namespace = name(options.and_then(|options| options.namespace.as_ref()));
                let interface = name(options.and_then(|options| options.interface.as_ref()));
                write_names([&namespace, &interface], records);
            }
            Self::Channel(channel) => {
                write_names([""; 2], records);
                return records.extend_from_slice(&channel.mark().to_ne_bytes());
            }
        }
        records.extend_from_slice(&0_i32.to_ne_bytes());
    }
}

/// Returns the options of a QUIC address.
fn options<'a>(program: &'a Program, socket: &OpenDatagrams) -> Option<&'a SocketOptions> {
    let owner = socket.owner();
    let frontend = program.proxies.get(owner.frontend)?.frontend.as_ref()?;
    Some(&frontend.binds.get(owner.bind)?.listening.socket)
}

/// Writes names with their lengths.
fn write_names(names: [&str; 2], records: &mut Vec<u8>) {
    for name in names {
        // Names in the kernel are shorter than 256 bytes.
        let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
        records.push(name.len() as u8);
        records.extend_from_slice(name);
    }
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
