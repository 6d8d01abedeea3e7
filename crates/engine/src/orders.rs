//! Settings that rules made for one stream, other than changes of its messages: timeouts, retries, log level. Must never apply a
//! setting.

use config::spec::LogLevel;
use expression::sample::OwnLimits;
use policy::program::Proxy;
use policy::rule::TimeoutKind;
use std::time::Duration;

/// The settings of one stream. Small, so that they can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Orders {
    /// Level of its log line; inner `None`: not logged.
    pub log_level: Option<Option<LogLevel>>,
    /// Only failed connections are retried (`disable-l7-retry`).
    pub never_retry: bool,
    /// Timeouts set for this stream.
    pub timeouts: OwnTimeouts,
    /// Maximum number of retries (`set-retries`).
    pub retries: Option<u32>,
    /// Packet mark towards the server (`set-bc-mark`).
    pub server_mark: Option<u32>,
    /// TOS towards the server (`set-bc-tos`).
    pub server_class: Option<u8>,
    /// `set-priority-class`: lower classes are served first.
    pub class: i16,
    /// `set-priority-offset`, in milliseconds.
    pub offset: i32,
}

impl Orders {
    /// Whether the stream needs a server connection with its own mark or TOS.
    #[inline]
    pub fn marks_server(&self) -> bool {
        self.server_mark.is_some() || self.server_class.is_some()
    }

    /// Returns the values that replace the proxies' limits.
    pub fn limits(&self) -> OwnLimits {
        let OwnTimeouts { client, connect, queue, server, tarpit, tunnel } = self.timeouts;
        OwnLimits { client, connect, queue, server, tarpit, tunnel, retries: self.retries }
    }

    /// Removes the backend's settings when another backend gets the request.
    pub fn leave_backend(&mut self) {
        let OwnTimeouts { client, tarpit, .. } = self.timeouts;
        self.timeouts = OwnTimeouts { client, tarpit, ..OwnTimeouts::default() };
        self.retries = None;
    }
}

/// Timeouts that rules have set for one stream.
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
    /// Returns the client's timeout: that of a rule, else `timeout client` of the frontend.
    #[inline]
    pub fn client_timeout(&self, frontend: &Proxy) -> Option<Duration> {
        self.client.or(frontend.timeouts.client)
    }

    /// Returns the server's timeout: that of a rule, else `timeout server` of the backend.
    #[inline]
    pub fn server_timeout(&self, backend: &Proxy) -> Option<Duration> {
        self.server.or(backend.timeouts.server)
    }

    /// Sets one timeout.
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
