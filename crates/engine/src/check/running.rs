//! A check on its way: its connection, what was received, and what its steps have found. Must never send or receive.

use std::cell::{Cell, OnceCell, RefCell};

use base::buffer::Buffer;
use base::moment::Moment;
use conn::fcgi;
use conn::pool_key::OwnedPoolKey;
use conn::quota::Reservation;
use conn::sequential_client::Solo;
use conn::transport::Transport;
use expression::variable::{SessionStore, Store};
use live::health::CheckStatus;
use policy::check::{Check, Connect, Expect, ServerCheck};
use policy::program::{Proxy, Server};
use rt::Timer;
use wire::http::Head;

use crate::generation::Generation;
use crate::worker::Worker;

/// A running check.
pub(super) struct RunningCheck<'a> {
    pub(super) worker: &'a Worker,
    /// The configuration that it began with.
    pub(super) generation: &'a Generation,
    pub(super) proxy: &'a Proxy,
    pub(super) server: &'a Server,
    pub(super) check: &'a Check,
    pub(super) own: &'a ServerCheck,
    pub(super) begun: Moment,
    /// Deadline of the check, or of its current part (`timeout check`).
    pub(super) deadline: Moment,
    pub(super) timer: Timer,
    pub(super) progress: Progress<'a>,
    pub(super) connection: CheckConnection<'a>,
    pub(super) answer: CheckAnswer,
    pub(super) scopes: Scopes,
}

/// The step that is executed.
#[derive(Default)]
pub(super) struct Progress<'a> {
    /// Number of the current step, from 1; 0: the implicit connection.
    pub(super) step: usize,
    /// Comment preceding the current step, added to the message if the step fails.
    pub(super) comment: Option<&'a str>,
    /// The last `expect` that was fulfilled.
    pub(super) fulfilled: Option<&'a Expect>,
}

/// The connection of a check, and what was received from it.
#[derive(Default)]
pub(super) struct CheckConnection<'a> {
    pub(super) stream: Option<Transport>,
    /// The connection if it speaks HTTP/2 or HTTP/3.
    pub(super) solo: Option<Box<Solo>>,
    /// The connection if it speaks FastCGI.
    pub(super) application: Option<Box<fcgi::Connection>>,
    pub(super) pooling: Pooling,
    /// Received bytes that are not consumed yet.
    pub(super) input: Buffer,
    /// The end of the stream was received.
    pub(super) ended: bool,
    /// The `connect` step whose success the first write shows.
    pub(super) unproven: Option<Unproven<'a>>,
    /// Bytes were just sent and the stream is not registered with epoll: yields before reading.
    pub(super) yields: bool,
    /// The connection is closed by FIN, not by RST (`linger`).
    pub(super) linger: bool,
    /// The socket may be reused after a reset; the value: whether it is IPv6.
    pub(super) spare: Option<bool>,
}

/// The response to a request of a check.
#[derive(Default)]
pub(super) struct CheckAnswer {
    /// The last request was a HEAD: its response has no body.
    pub(super) asked_head: bool,
    /// Head of the response, once it is complete.
    pub(super) head: Option<Head>,
    /// Code and text that a response of a known protocol contains.
    pub(super) said: Option<(i64, String)>,
}

/// Variables of a check, and its unique ID.
#[derive(Default)]
pub(super) struct Scopes {
    pub(super) variables: RefCell<Store>,
    /// Variables of the scope `sess`: a check is a session of its own.
    pub(super) session: SessionStore,
    /// Unique ID of the check (`unique-id-format`), once evaluated.
    pub(super) identity: OnceCell<Box<[u8]>>,
    /// Set while the unique ID is evaluated; recursive lookups return nothing.
    pub(super) identifying: Cell<bool>,
}

/// The `connect` step that a failure is attributed to while the connection is not confirmed.
pub(super) struct Unproven<'a> {
    pub(super) connect: &'a Connect,
    pub(super) comment: Option<&'a str>,
    pub(super) step: usize,
}

/// Pooling state of a check's connection.
#[derive(Default)]
pub(super) struct Pooling {
    /// The metadata of the connection in the pool; `None`: it cannot be pooled.
    pub(super) origin: Option<Origin>,
    /// A reused connection failed during this check: no other one is taken.
    pub(super) fresh: bool,
    /// Number of requests sent over the connection during this check.
    pub(super) requests: u32,
    /// The last request lets the server keep the connection open.
    pub(super) keeps: bool,
    /// Whether the response body was read to its end; `None`: nothing of it was read.
    pub(super) body: Option<bool>,
}

/// Metadata that is put back with the connection.
pub(super) struct Origin {
    pub(super) answers: u32,
    pub(super) glitches: u32,
    pub(super) generation: u32,
    pub(super) place: Option<Reservation>,
    pub(super) pool_key: Option<Box<OwnedPoolKey>>,
}

/// The connection of a check that has no `connect` step.
pub(super) static IMPLICIT: Connect = Connect {
    port: None,
    address: None,
    send_proxy: false,
    via_socks4: false,
    linger: false,
    default: true,
    comment: None,
    ssl: false,
    sni: None,
    protocol: None,
    alpn: None,
};

/// Result of a wait with a deadline.
pub(super) enum Waited<T> {
    Done(T),
    Expired,
}

/// Final status of a check.
pub(super) struct Outcome {
    pub status: CheckStatus,
    /// Code of the application protocol, such as the HTTP status.
    pub code: Option<i64>,
    /// Description for logs and statistics.
    pub info: String,
}
