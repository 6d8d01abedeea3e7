//! Datagrams of a UDP socket that were received elsewhere: by the socket of another worker, or by another process. Must never
//! grow without limit, nor wait.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use quic::Datagram;
use quic::cid::HandshakeIds;

/// Maximum number of bytes that wait for a worker, those of [`OVERHEAD`] included. Further datagrams are dropped, as by the kernel.
const MOST_BYTES: usize = 1 << 20;
/// Number of bytes that a waiting datagram is counted for besides its contents.
const OVERHEAD: usize = 96;

/// A datagram that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedDatagram {
    peer: SocketAddr,
    local: Option<IpAddr>,
    ecn: u8,
    bytes: Box<[u8]>,
}

impl QueuedDatagram {
    fn of(datagram: &Datagram<'_>) -> Self {
        let Datagram { bytes, peer, local, ecn } = *datagram;
        Self { peer, local, ecn, bytes: bytes.into() }
    }

    /// Returns the datagram.
    pub fn as_datagram(&self) -> Datagram<'_> {
        let Self { peer, local, ecn, bytes } = self;
        Datagram { bytes, peer: *peer, local: *local, ecn: *ecn }
    }
}

/// An order for the listener of a socket.
#[derive(Debug)]
pub enum Order {
    /// To process a datagram.
    Receive(QueuedDatagram),
    /// To stop receiving, and to report the handshakes in progress.
    Report(ReportPart),
}

/// The orders for the listener of a socket.
#[derive(Debug, Default)]
pub struct DatagramQueue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    orders: VecDeque<Order>,
    /// Bytes of datagrams.
    bytes: usize,
    listener: Option<Waker>,
    /// The listener has ended.
    is_closed: bool,
}

impl DatagramQueue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a datagram. Returns false if there is no room, or no listener any longer: it is dropped.
    pub fn push(&self, datagram: &Datagram<'_>) -> bool {
        let size = datagram.bytes.len() + OVERHEAD;
        {
            let waiting = self.lock();
            if waiting.is_closed || waiting.bytes + size > MOST_BYTES {
                return false;
            }
        }
        self.add(Order::Receive(QueuedDatagram::of(datagram)), size);
        true
    }

    /// Adds another order. It is dropped if the listener has ended.
    pub fn order(&self, order: Order) {
        self.add(order, 0);
    }

    fn add(&self, order: Order, size: usize) {
        let mut waiting = self.lock();
        if waiting.is_closed {
            drop(waiting);
            // A report counts as made when it is dropped, outside of the lock.
            return drop(order);
        }
        waiting.bytes += size;
        waiting.orders.push_back(order);
        let listener = waiting.listener.take();
        drop(waiting);
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    /// Wakes the listener: something in its group has changed.
    pub fn wake(&self) {
        let listener = self.lock().listener.take();
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    /// Returns the next order. Pending: the task is woken by the next one.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Order> {
        let mut waiting = self.lock();
        let Some(order) = waiting.orders.pop_front() else {
            match &mut waiting.listener {
                Some(listener) => listener.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        };
        if let Order::Receive(datagram) = &order {
            waiting.bytes -= datagram.bytes.len() + OVERHEAD;
        }
        Poll::Ready(order)
    }

    /// Drops the orders that wait, and all further ones.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let left = std::mem::take(&mut waiting.orders);
        drop(waiting);
        drop(left);
    }
}

/// The handshakes in progress at the sockets of several workers.
#[derive(Debug, Default)]
pub struct HandshakeReport(Mutex<ReportState>);

#[derive(Debug, Default)]
struct ReportState {
    ids: Vec<HandshakeIds>,
    /// Parts that are missing.
    missing: usize,
    reader: Option<Waker>,
}

/// The part of one socket. A part that is dropped without ids counts as well.
#[derive(Debug)]
pub struct ReportPart(Arc<HandshakeReport>);

impl HandshakeReport {
    fn lock(&self) -> MutexGuard<'_, ReportState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a further part.
    pub fn part(self: &Arc<Self>) -> ReportPart {
        self.lock().missing += 1;
        ReportPart(Arc::clone(self))
    }

    /// Returns the ids once all parts were reported.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Vec<HandshakeIds>> {
        let mut state = self.lock();
        if state.missing > 0 {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut state.ids))
    }
}

impl ReportPart {
    /// Adds the ids of the socket.
    pub fn report(self, ids: Vec<HandshakeIds>) {
        self.0.lock().ids.extend(ids);
    }
}

impl Drop for ReportPart {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.missing -= 1;
        let reader = if state.missing == 0 { state.reader.take() } else { None };
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use quic::cid::Id;

    use super::*;

    fn datagram(bytes: &[u8]) -> Datagram<'_> {
        Datagram { bytes, peer: "192.0.2.1:9".parse().unwrap(), local: None, ecn: 2 }
    }

    fn next(queue: &DatagramQueue) -> Option<Vec<u8>> {
        match queue.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Order::Receive(datagram)) => Some(datagram.as_datagram().bytes.to_vec()),
            _ => None,
        }
    }

    #[test]
    fn a_queue_is_bounded_and_takes_more_once_it_is_read() {
        let (queue, large) = (DatagramQueue::default(), vec![7; 65_000]);
        let count = (0..).take_while(|_| queue.push(&datagram(&large))).count();
        assert_eq!(count, MOST_BYTES / (65_000 + OVERHEAD));
        assert!(next(&queue).is_some_and(|bytes| bytes == large) && queue.push(&datagram(&large)));
        assert!(!queue.push(&datagram(&large)));
        assert_eq!(std::iter::from_fn(|| next(&queue)).count(), count);
        // Empty datagrams count as well.
        assert_eq!((0..).take_while(|_| queue.push(&datagram(&[]))).count(), MOST_BYTES / OVERHEAD);
    }

    #[test]
    fn nothing_waits_for_a_listener_that_has_ended() {
        let (queue, report) = (DatagramQueue::default(), Arc::new(HandshakeReport::default()));
        let poll = || report.poll(&mut Context::from_waker(Waker::noop()));
        assert!(queue.push(&datagram(b"x")));
        queue.order(Order::Report(report.part()));
        assert!(poll().is_pending());
        queue.close();
        assert!(poll().is_ready());
        queue.order(Order::Report(report.part()));
        assert!(poll().is_ready() && !queue.push(&datagram(b"x")) && next(&queue).is_none());
    }

    #[test]
    fn a_report_is_complete_with_its_last_part() {
        let report = Arc::new(HandshakeReport::default());
        let ids = HandshakeIds { chosen: Id::new(&[1; 8]).unwrap(), own: [2; 8] };
        let (first, second) = (report.part(), report.part());
        first.report(vec![ids]);
        let poll = || report.poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        second.report(vec![ids]);
        assert_eq!(poll(), Poll::Ready(vec![ids, ids]));
    }
}
