//! The terms of an exchange, how it ended, and what is left of it. Must never run one.

use std::time::Duration;

use base::moment::Moment;
use config::spec::RetryOn;
use conn::h1::HeadLimits;
use policy::program::Features;

use crate::stream_state::Outcome;

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The answer went to the client.
    Answered,
    /// The connection is a tunnel from here on; the head of the answer is not sent yet.
    Tunnel,
    /// The reused link died before a byte of the answer: the request goes to a fresh one.
    Replay,
    /// It failed in a way that `retry-on` lists, and nothing of an answer went to the client: it is to be sent again.
    Retry {
        /// The answer was none: the server closed before its head, or it made no sense.
        bad_answer: bool,
    },
    /// It failed.
    Failed {
        /// How it is logged.
        outcome: Outcome,
        /// The status in the log when nothing of an answer was sent.
        status: u16,
        /// The client gets that status' page, if it got nothing of an answer.
        page: bool,
    },
    /// The server says that what a cache has stored is the same: that answers, and nothing was sent.
    Validated,
    /// Nothing of an answer has come in the time that its server has for that: a second one may be asked. The exchange
    /// goes on when it is run again.
    Overdue,
    /// The second attempt has won: [`super::Exchange::take_winner`].
    Overtaken,
    /// The reused link died before a byte of the answer, and the request must not be sent twice: the client's
    /// connection ends without a word, so that the client decides.
    Silent,
}

/// What is left of an exchange. What is left of the request's flow must be read if the client's connection is to go on.
#[derive(Debug, Clone, Copy)]
pub struct Remains {
    /// The client's connection goes on.
    pub client_goes_on: bool,
    /// The link may serve another request.
    pub link_is_reusable: bool,
    /// Nothing of the final answer was sent to the client.
    pub nothing_sent: bool,
}

/// What the exchange needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// `timeout client`.
    pub client: Option<Duration>,
    /// `timeout server`.
    pub server: Option<Duration>,
    /// `option splice-response` or `splice-auto`, of either side.
    pub splice_response: bool,
    /// `option abortonclose`.
    pub abort_on_close: bool,
    /// The client's connection ends behind this answer.
    pub close_client: bool,
    /// We asked the server to close behind this answer.
    pub close_server: bool,
    /// The link was used before.
    pub reused: bool,
    /// The request may be sent a second time where a reused link was dead.
    pub replayable: bool,
    /// `option independent-streams` of the frontend.
    pub independent_client: bool,
    /// The same of the backend.
    pub independent_server: bool,
    /// It has a body.
    pub has_body: bool,
    /// Failures after which it may be sent again.
    pub retry_on: RetryOn,
    /// The connections of its backend may be tried again, and this one was not as often as that.
    pub may_retry: bool,
    /// From then on a second server may be asked.
    pub hedge_at: Option<Moment>,
    /// Index of the backend.
    pub backend: usize,
    /// `http-response` rules run on the answer.
    pub ruled: bool,
    /// The optional features of frontend and backend.
    pub features: Features,
    /// What a FastCGI application writes to standard error is logged.
    pub logs_errors: bool,
    /// Limits of a response's head.
    pub limits: HeadLimits,
}
