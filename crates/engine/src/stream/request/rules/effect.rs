//! Effects of actions on a stream or its session: computed while the message is borrowed, and applied afterwards. Must never
//! evaluate a condition.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::spec::{LogLevel, LogStep};
use expression::sample;
use live::table::Pinned;
use policy::rule::{Action, End, Packets, Peer, TimeoutKind, integer};

use crate::session::Session;
use crate::session::attached_server::AttachedServer;
use crate::stream::conclude;
use crate::stream::exchange::filter;
use crate::stream::record::{instrumentation, tracking};
use crate::stream::request::evaluate::EvalContext;

/// Valid values of `set-retries`.
const RETRIES: std::ops::RangeInclusive<i64> = 0..=100;
/// Largest absolute value of a priority class.
const CLASSES: i64 = 2047;
/// Largest absolute value of a priority offset, in milliseconds.
const OFFSETS: i64 = 524_287;

/// A computed effect of a rule on a stream or its connections.
pub(super) enum Effect {
    /// Sets a timeout of the stream.
    Timeout(TimeoutKind, Duration),
    /// Disables retries after a response (`disable-l7-retry`).
    DisableRetry,
    /// Sets the mark or TOS of a connection's packets.
    Packets(Peer, Packets, i64),
    /// Sets the maximum number of retries.
    Retries(u32),
    /// Sets the priority class.
    Class(i16),
    /// Sets the priority offset, in milliseconds.
    Offset(i32),
    /// Enables the bandwidth filter at a position; limit and period replace those of the filter.
    Limit(filter::RulePosition, Option<u64>, Option<Duration>, Option<Pinned>),
    /// Sets the log level.
    LogLevel(Option<LogLevel>),
    /// Writes a log line.
    Log(LogStep, Option<usize>),
    /// Turns the client's connection into one of a server (reverse HTTP).
    Attach(AttachedServer),
    /// Runs scopes of `filter otel`: names of the filter and of the group.
    OtelGroup(Arc<(Box<str>, Box<str>)>),
    /// Sets source or destination of the client's connection.
    Ends(End, SocketAddr),
}

impl Effect {
    /// Computes the effect of an action; `None`: it has none.
    pub(super) fn of(session: &Session, action: &Action, context: &sample::Context<'_>) -> Option<Self> {
        Some(match action {
            Action::SetLogLevel(level) => Self::LogLevel(*level),
            Action::Log { step, profile } => Self::Log(*step, *profile),
            Action::OtelGroup(names) => Self::OtelGroup(std::sync::Arc::clone(names)),
            Action::SetTimeout(kind, period) => Self::Timeout(*kind, period.evaluate(context)?),
            Action::DisableRetry => Self::DisableRetry,
            Action::SetPackets(peer, packets, number) => Self::Packets(*peer, *packets, number.evaluate(context)?),
            Action::SetRetries(number) => {
                let retries = number.evaluate(context).filter(|retries| RETRIES.contains(retries))?;
                Self::Retries(u32::try_from(retries).ok()?)
            }
            Action::SetPriorityClass(class) => Self::Class(integer(class, context)?.clamp(-CLASSES, CLASSES) as i16),
            Action::SetPriorityOffset(offset) => {
                Self::Offset(integer(offset, context)?.clamp(-OFFSETS, OFFSETS) as i32)
            }
            Action::LimitBandwidth(change) => {
                let (bytes, period) = change.evaluate(context);
                let place = filter::RulePosition { proxy: change.proxy, index: change.filter? };
                Self::Limit(place, bytes, period, tracking::share(session, context, place))
            }
            Action::Attach(attach) => Self::Attach(AttachedServer::by(attach, context)),
            Action::SetEnd(end, expression) => Self::Ends(*end, end.change(context, expression)?),
            // Other actions are steps of their own.
            _ => return None,
        })
    }
}

/// Applies an effect: with `of_stream` until the stream ends, else until its session ends.
pub(super) fn perform(view: &EvalContext<'_>, effect: Effect, of_stream: bool) {
    let EvalContext { session, state, .. } = *view;
    match effect {
        Effect::Timeout(kind, period) => state.order(|orders| orders.timeouts.set(kind, period)),
        Effect::DisableRetry => state.order(|orders| orders.never_retry = true),
        // Values wrap as in HAProxy; if the system does not permit it, nothing changes.
        Effect::Packets(Peer::Client, Packets::Mark, number) => {
            let _ = session.socket().set_mark(number as u32);
        }
        Effect::Packets(Peer::Client, Packets::ServiceClass, number) => {
            let _ = session.socket().set_service_class(number as u8);
        }
        Effect::Packets(Peer::Server, Packets::Mark, number) => {
            state.order(|orders| orders.server_mark = Some(number as u32));
        }
        Effect::Packets(Peer::Server, Packets::ServiceClass, number) => {
            state.order(|orders| orders.server_class = Some(number as u8));
        }
        Effect::Retries(retries) => state.order(|orders| orders.retries = Some(retries)),
        Effect::Class(class) => state.order(|orders| orders.class = class),
        Effect::Offset(offset) => state.order(|orders| orders.offset = offset),
        Effect::Limit(place, bytes, period, entry) => {
            filter::limit(state.filters.as_ref(), place, bytes, period, entry);
        }
        Effect::LogLevel(level) => state.order(|orders| orders.log_level = Some(level)),
        Effect::Log(step, profile) => conclude::log_now(*view, step, profile),
        Effect::Attach(attached) => session.attach(attached),
        Effect::OtelGroup(names) => instrumentation::group(view, &names.0, &names.1),
        Effect::Ends(end, address) => {
            let (client, destination) = if end.is_source() { (Some(address), None) } else { (None, Some(address)) };
            if of_stream {
                state.change_ends(client, destination);
            } else {
                session.change_ends(client, destination);
            }
        }
    }
}
