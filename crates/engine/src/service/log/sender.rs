//! Sends a worker's lines. Nothing here waits, and nothing is tried twice but the rest of a line that had begun. Must
//! never look into a line.

use rt::net::{Address, Datagram, Family};
use rt::{ATOMIC, Output};
use std::io::{self, IoSlice};
use std::sync::{Arc, PoisonError};

use super::lines::Lines;
use super::targets::Targets;
use crate::routes::sinks::{LogSink, SinkTarget};

/// One worker's sockets and waiting lines.
#[derive(Debug)]
pub struct Sender {
    /// What waits, by the numbers of the sinks.
    waiting: Vec<Waiting>,
    /// One unconnected socket a family. Addresses are looked up with each sending, so that a log daemon that comes back
    /// with a new socket at the same path gets the next line.
    sockets: [Option<Datagram>; 3],
}

/// What waits for a sink. Nothing holds a sink longer than its lines, or the rest of one, wait here.
#[derive(Debug, Default)]
struct Waiting {
    sink: Option<Arc<LogSink>>,
    lines: Lines,
}

/// Lines that wait for one sink before they are sent without waiting for the turn's end.
const MOST_LINES: usize = 64;
/// Bytes, likewise.
const MOST_BYTES: usize = 64 * 1024;

impl Sender {
    /// With nothing to send.
    pub fn new() -> Self {
        Self { waiting: Vec::new(), sockets: [None, None, None] }
    }

    /// Takes a line of at most `length` bytes for a sink, or a record.
    pub fn push(&mut self, targets: &Targets, sink: &Arc<LogSink>, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if sink.number >= self.waiting.len() {
            self.waiting.resize_with(sink.number + 1, Waiting::default);
        }
        let waiting = &mut self.waiting[sink.number];
        // No other sink has that number while this one is held.
        waiting.sink.get_or_insert_with(|| Arc::clone(sink));
        let lines = &mut waiting.lines;
        if sink.takes_records() {
            lines.push_record(write);
        } else {
            lines.push(length, write);
        }
        if lines.count() >= MOST_LINES || lines.size() >= MOST_BYTES {
            self.flush_sink(targets, sink.number);
        }
    }

    /// Sends what waits. False: the rest of a line still waits for room, so that this should be called again soon.
    pub fn flush(&mut self, targets: &Targets) -> bool {
        let mut done = true;
        for sink in 0..self.waiting.len() {
            done &= self.flush_sink(targets, sink);
        }
        done
    }

    fn flush_sink(&mut self, targets: &Targets, number: usize) -> bool {
        let Waiting { sink, lines } = &mut self.waiting[number];
        let Some(open) = sink else { return true };
        let count = lines.count();
        let (sent, done) = match &open.target {
            SinkTarget::Output(None) => (0, true),
            SinkTarget::Output(Some(output)) => write_lines(output, lines),
            _ if count == 0 => (0, true),
            SinkTarget::Telemetry => (targets.channel.push(rt::worker().into(), lines), true),
            SinkTarget::Ring(ring) | SinkTarget::Stream(ring) => (count - ring.append(lines.iter()), true),
            SinkTarget::Server(address) => {
                let address = address.lock().unwrap_or_else(PoisonError::into_inner).clone();
                (send_lines(&mut self.sockets, &address, lines, targets.send_buffer), true)
            }
            SinkTarget::Address(address) => (send_lines(&mut self.sockets, address, lines, targets.send_buffer), true),
        };
        lines.clear();
        if done {
            *sink = None;
        }
        targets.count_dropped(count.saturating_sub(sent));
        done
    }
}

/// Writes lines to a descriptor; tells how many it took, and whether it holds no rest of a line.
fn write_lines(output: &Output, lines: &Lines) -> (usize, bool) {
    let most = if output.takes_batches() { ATOMIC } else { 0 };
    let mut sent = 0;
    for group in lines.groups(most) {
        match output.write(lines.get(group.clone())) {
            Ok(()) => sent += group.len(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => {}
        }
    }
    // An error has given the rest up.
    (sent, output.finish().unwrap_or(true))
}

/// Sends each line as a datagram; tells how many were taken.
fn send_lines(sockets: &mut [Option<Datagram>; 3], address: &Address, lines: &Lines, buffer: Option<usize>) -> usize {
    let family = Family::of(address);
    let slot = match family {
        Family::Inet4 => &mut sockets[0],
        Family::Inet6 => &mut sockets[1],
        Family::Unix => &mut sockets[2],
    };
    if slot.is_none() {
        *slot = Datagram::unconnected(family).ok();
        // A size that the kernel does not grant leaves its own.
        if let (Some(socket), Some(bytes)) = (&slot, buffer) {
            let _ = socket.set_send_buffer(bytes);
        }
    }
    let Some(socket) = slot else { return 0 };
    let mut slices = [IoSlice::new(&[]); MOST_LINES];
    let mut filled = 0;
    let mut sent = 0;
    for line in lines.iter() {
        slices[filled] = IoSlice::new(line);
        filled += 1;
        if filled == slices.len() {
            sent += send_slices(socket, address, &slices);
            filled = 0;
        }
    }
    sent + send_slices(socket, address, &slices[..filled])
}

fn send_slices(socket: &Datagram, address: &Address, mut slices: &[IoSlice<'_>]) -> usize {
    let mut sent = 0;
    while !slices.is_empty() {
        match socket.send_batch(address, slices) {
            Ok(0) => break,
            Ok(taken) => {
                sent += taken;
                slices = &slices[taken.min(slices.len())..];
            }
            // It may be this one alone, as when it is too long for a datagram.
            Err(error) => {
                // DroppedLogs counts lines that found no room, as HAProxy does, and not those without a receiver.
                sent += usize::from(error.kind() != io::ErrorKind::WouldBlock);
                slices = &slices[1..];
            }
        }
    }
    sent
}
