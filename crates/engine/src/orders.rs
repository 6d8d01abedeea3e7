//! What rules have ordered for one stream beside changes of its messages: timeouts, retries, its level in the log. Must
//! never carry an order out.

use config::spec::LogLevel;
use expression::sample::OwnLimits;
use policy::rule::TimeoutKind;
use std::time::Duration;

/// The orders of one stream. Small, so that they are copied where they are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Orders {
    /// The level of its line; inside: `None` for silence.
    pub log_level: Option<Option<LogLevel>>,
    /// It is not sent again after anything but a failed connection (`disable-l7-retry`).
    pub never_retry: bool,
    /// Timeouts of its own.
    pub timeouts: OwnTimeouts,
    /// Attempts beyond the first (`set-retries`).
    pub retries: Option<u32>,
    /// The mark of packets to the server (`set-bc-mark`).
    pub server_mark: Option<u32>,
    /// Their service class (`set-bc-tos`).
    pub server_class: Option<u8>,
    /// `set-priority-class`: lower ones go first.
    pub class: i16,
    /// `set-priority-offset`, milliseconds.
    pub offset: i32,
}

impl Orders {
    /// Whether connections to the server are not like any other.
    #[inline]
    pub fn marks_server(&self) -> bool {
        self.server_mark.is_some() || self.server_class.is_some()
    }

    /// What is set in place of the proxies' limits.
    pub fn limits(&self) -> OwnLimits {
        let OwnTimeouts { client, connect, queue, server, tarpit, tunnel } = self.timeouts;
        OwnLimits { client, connect, queue, server, tarpit, tunnel, retries: self.retries }
    }

    /// Another backend than the one that gave the orders gets the request: what is its own counts there.
    pub fn leave_backend(&mut self) {
        let OwnTimeouts { client, tarpit, .. } = self.timeouts;
        self.timeouts = OwnTimeouts { client, tarpit, ..OwnTimeouts::default() };
        self.retries = None;
    }
}

/// Timeouts that rules have set for this stream alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnTimeouts {
    pub client: Option<Duration>,
    pub connect: Option<Duration>,
    pub queue: Option<Duration>,
    pub server: Option<Duration>,
    pub tarpit: Option<Duration>,
    pub tunnel: Option<Duration>,
}

impl OwnTimeouts {
    /// Sets one.
    pub fn set(&mut self, kind: TimeoutKind, period: Duration) {
        *match kind {
            TimeoutKind::Client => &mut self.client,
            TimeoutKind::Connect => &mut self.connect,
            TimeoutKind::Queue => &mut self.queue,
            TimeoutKind::Server => &mut self.server,
            TimeoutKind::Tarpit => &mut self.tarpit,
            TimeoutKind::Tunnel => &mut self.tunnel,
        } = Some(period);
    }
}
