//! QUIC's machines on the clock of a worker: each call passes the time of that call, and no deadline is in the past. Must never
//! pass the time of the worker's iteration ([`rt::now`]).
//!
//! A batch may be sent and acknowledged within one iteration, whose round trip would be zero.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use base::moment::Moment;
use quic::endpoint::{ConnectFailure, Refusal, Target};
use quic::{Connection, Datagram, Endpoint, Handle, Incoming, Received, Transmit, Transport};

/// The shortest time until a deadline is processed. A pacer whose round trips take nanoseconds sets deadlines that have passed
/// already: processing these at once could repeat without an end.
const DEADLINE_STEP: Duration = Duration::from_micros(1);

/// An endpoint that reads the clock in each call.
pub struct TimedEndpoint(Endpoint);

/// A connection that reads the clock in each call.
pub struct TimedConnection(Connection);

impl TimedEndpoint {
    /// Gives an endpoint the clock.
    pub fn new(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }

    /// Begins a connection to a server.
    ///
    /// # Errors
    /// The address or the settings do not permit it.
    pub fn connect(
        &mut self,
        target: Target,
        transport: &Transport,
    ) -> Result<(Handle, TimedConnection), ConnectFailure> {
        let (handle, connection) = self.0.connect(rt::read_clock(), target, transport)?;
        Ok((handle, TimedConnection(connection)))
    }

    /// Processes a datagram. The bytes of an answer are in `out`, which is cleared first.
    pub fn receive(&mut self, datagram: &Datagram<'_>, out: &mut Vec<u8>) -> Received {
        self.0.receive(rt::read_clock(), rt::wall(), datagram, out)
    }

    /// Accepts a connection. `out` is cleared, and has the bytes of the answer if there is one.
    ///
    /// # Errors
    /// Its first datagram is invalid, or its handshake has failed already.
    pub fn accept(&mut self, incoming: Incoming, out: &mut Vec<u8>) -> Result<(Handle, TimedConnection), Box<Refusal>> {
        let (handle, connection) = self.0.accept(incoming, rt::read_clock(), out)?;
        Ok((handle, TimedConnection(connection)))
    }
}

impl Deref for TimedEndpoint {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.0
    }
}

impl DerefMut for TimedEndpoint {
    fn deref_mut(&mut self) -> &mut Endpoint {
        &mut self.0
    }
}

impl TimedConnection {
    /// Processes the deadlines that have passed: once in each step of the connection's task.
    pub fn expire(&mut self) {
        self.0.expire(rt::read_clock());
    }

    /// Returns the next deadline, which is always later than the worker's iteration: a timer that is armed with it does not
    /// expire in the step that has armed it. Every other call may change it.
    pub fn deadline(&mut self) -> Option<Moment> {
        let earliest = rt::now().saturating_add(DEADLINE_STEP);
        self.0.deadline().map(|deadline| deadline.max(earliest))
    }

    /// Writes what is to be sent next into `out`, as [`Connection::transmit`].
    pub fn transmit(&mut self, most: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.0.transmit(rt::read_clock(), most, out)
    }

    /// Closes the connection with a code of the application. Nothing more is read or written.
    pub fn close(&mut self, number: u64, reason: &[u8]) {
        self.0.close(rt::read_clock(), number, reason);
    }
}

impl Deref for TimedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for TimedConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_endpoint::{endpoint, simulate, target};
    use super::*;

    /// The longest time until a client repeats its first packet: three times the round trip that is assumed.
    const FIRST_TIMEOUT: Duration = Duration::from_millis(999);

    fn connect(out: &mut Vec<u8>) -> TimedConnection {
        let (_, mut connection) = TimedEndpoint::new(endpoint()).connect(target(), &Transport::default()).unwrap();
        assert!(connection.transmit(1, out).is_some());
        connection
    }

    #[test]
    fn a_packet_is_sent_at_the_time_of_the_call() {
        simulate(async {
            rt::sim::network().set_cost_of_work(Duration::from_millis(3));
            // The clock goes on within the iteration.
            let _ = rt::measure();
            let called = rt::read_clock();
            assert!(called > rt::now());
            let mut connection = connect(&mut Vec::new());
            assert_eq!(connection.deadline(), Some(called + FIRST_TIMEOUT));
        });
    }

    #[test]
    fn a_deadline_that_has_passed_is_processed_in_a_later_iteration() {
        simulate(async {
            let out = &mut Vec::new();
            let mut connection = connect(out);
            rt::sleep(FIRST_TIMEOUT * 2).await;
            let now = rt::now();
            assert!(Connection::deadline(&mut connection).is_some_and(|deadline| deadline < now));
            assert_eq!(connection.deadline(), Some(now + DEADLINE_STEP));
            let mut timer = rt::Timer::new();
            timer.arm(connection.deadline());
            std::future::poll_fn(|cx| {
                assert!(timer.poll_expired(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            connection.expire();
            assert!(connection.transmit(1, out).is_some(), "the first packet is not repeated");
        });
    }
}
