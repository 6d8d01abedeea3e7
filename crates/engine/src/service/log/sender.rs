//! Sends a worker's lines, without waiting, and without retries except for the rest of a partially written line. Must never
//! interpret a line.

use rt::net::{Address, Datagram, Family};
use rt::{ATOMIC, Output};
use std::io::{self, IoSlice};
use std::sync::{Arc, PoisonError};

use super::lines::Lines;
use super::targets::Targets;
use crate::routes::sinks::{LogSink, SinkTarget};

/// One worker's sockets and buffered lines.
#[derive(Debug)]
pub struct Sender {
    /// Buffered lines, by the number of their sink.
    waiting: Vec<Waiting>,
    /// One unconnected socket per family. Each send resolves the path again, so that a log daemon that comes back with a new
    /// socket at the same path gets the next line.
    sockets: [Option<Datagram>; 3],
}

/// Buffered lines of a sink. It holds the sink only while lines, or the rest of one, are buffered.
#[derive(Debug, Default)]
struct Waiting {
    sink: Option<Arc<LogSink>>,
    lines: Lines,
}

/// Number of buffered lines of a sink at which they are sent before the end of the iteration.
const MOST_LINES: usize = 64;
/// Number of buffered bytes, likewise.
const MOST_BYTES: usize = 64 * 1024;

impl Sender {
    /// Creates a sender without lines.
    pub fn new() -> Self {
        Self { waiting: Vec::new(), sockets: [None, None, None] }
    }

    /// Buffers a line of at most `length` bytes for a sink, or a record.
    pub fn push(&mut self, targets: &Targets, sink: &Arc<LogSink>, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if sink.number >= self.waiting.len() {
            self.waiting.resize_with(sink.number + 1, Waiting::default);
        }
        let waiting = &mut self.waiting[sink.number];
        // A number is not reused while its sink is held.
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

    /// Sends all buffered lines. Returns false if the rest of a line could not be written; call again soon.
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

/// Writes lines to a descriptor; returns the number of lines taken, and whether no partial line is left.
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
    // After an error, the rest of the line is discarded.
    (sent, output.finish().unwrap_or(true))
}

/// Sends each line as a datagram; returns the number of lines taken.
fn send_lines(sockets: &mut [Option<Datagram>; 3], address: &Address, lines: &Lines, buffer: Option<usize>) -> usize {
    let family = Family::of(address);
    let slot = match family {
        Family::Inet4 => &mut sockets[0],
        Family::Inet6 => &mut sockets[1],
        Family::Unix => &mut sockets[2],
    };
    if slot.is_none() {
        *slot = Datagram::unconnected(family).ok();
        // If the kernel rejects the size, its default remains.
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
            // The error can concern this datagram alone, for instance if it is too long.
            Err(error) => {
                // DroppedLogs counts lines for which there was no buffer space, as HAProxy does, but not those without a
                // receiver.
                sent += usize::from(error.kind() != io::ErrorKind::WouldBlock);
                slices = &slices[1..];
            }
        }
    }
    sent
}
