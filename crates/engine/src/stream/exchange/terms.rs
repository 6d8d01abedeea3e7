//! The parameters of an exchange, its result, and the state of both connections after it. Must never run one.

use std::time::Duration;

use base::moment::Moment;
use config::spec::RetryOn;
use conn::h1::HeadLimits;
use policy::program::{Features, Proxy};
use wire::http::Head;

use crate::stream_state::Outcome;

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The answer was forwarded to the client.
    Answered,
    /// The connection is a tunnel from now on; the head of the answer is not sent yet.
    Tunnel,
    /// The reused link was closed before a byte of the answer was received: the request is sent on a new one.
    Replay,
    /// The attempt failed in a way that `retry-on` lists, and no part of an answer was forwarded to the client: it is
    /// to be sent again.
    Retry {
        /// There was no valid answer: the server closed before its head, or it was malformed.
        bad_answer: bool,
    },
    /// The attempt failed.
    Failed {
        /// Outcome for the log.
        outcome: Outcome,
        /// The status in the log if no part of an answer was sent.
        status: u16,
        /// The client gets the page for that status if no part of an answer was sent.
        page: bool,
    },
    /// The server has confirmed that a cached response is still valid: the cache answers, and nothing was sent.
    Validated,
    /// No byte of an answer was received within the server's time: a second attempt may be started. The exchange
    /// continues when it is run again.
    Overdue,
    /// The second attempt has won: [`super::Exchange::take_winner`].
    Overtaken,
    /// The reused link was closed before a byte of the answer was received, and the request must not be sent twice: the
    /// client's connection is closed without an answer, so that the client decides.
    Silent,
}

/// State after an exchange. The rest of the request must be read if the client's connection is to continue.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeResult {
    /// The client's connection continues.
    pub client_goes_on: bool,
    /// The client's connection continues once the rest of the request was read and dropped.
    pub client_drains: bool,
    /// The link may serve another request.
    pub link_is_reusable: bool,
    /// No part of the final answer was sent to the client.
    pub nothing_sent: bool,
}

/// Parameters of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// `timeout client`, for a client that does not take its answer.
    pub client: Option<Duration>,
    /// The maximum inactivity of a client that has not sent its whole request.
    pub upload: Option<Duration>,
    /// `timeout server`.
    pub server: Option<Duration>,
    /// `option splice-response` or `splice-auto`, of either side.
    pub splice_response: bool,
    /// `option abortonclose`.
    pub abort_on_close: bool,
    /// The client's connection is closed after this answer.
    pub close_client: bool,
    /// The server was asked to close after this answer.
    pub close_server: bool,
    /// The link was used before.
    pub reused: bool,
    /// The request may be sent a second time if a reused link was closed.
    pub replayable: bool,
    /// `option independent-streams` of the frontend.
    pub independent_client: bool,
    /// `option independent-streams` of the backend.
    pub independent_server: bool,
    /// The request has a body.
    pub has_body: bool,
    /// Failures after which the request may be sent again.
    pub retry_on: RetryOn,
    /// `retry-on` lists `conn-failure`, and the maximum number of retries is not reached.
    pub may_retry: bool,
    /// Time from which a second attempt may be started.
    pub hedge_at: Option<Moment>,
    /// Index of the backend.
    pub backend: usize,
    /// `http-response` rules run on the answer.
    pub ruled: bool,
    /// The optional features of frontend and backend.
    pub features: Features,
    /// The standard error stream of a FastCGI application is logged.
    pub logs_errors: bool,
    /// Limits of a response's head.
    pub limits: HeadLimits,
}

impl Terms {
    /// Returns the terms that depend on the client's side alone: of an exchange without a server, which has no timeout and is
    /// never retried.
    #[inline]
    pub fn of_client(frontend: &Proxy, request: &Head, features: Features, limits: HeadLimits) -> Self {
        Self {
            client: frontend.timeouts.client,
            upload: frontend.timeouts.client,
            server: None,
            splice_response: false,
            abort_on_close: false,
            close_client: false,
            close_server: false,
            reused: false,
            replayable: false,
            independent_client: frontend.options.independent_streams,
            independent_server: false,
            has_body: request.framing.has_body(),
            retry_on: RetryOn::NONE,
            may_retry: false,
            hedge_at: None,
            backend: frontend.index,
            ruled: false,
            features,
            logs_errors: false,
            limits,
        }
    }
}
