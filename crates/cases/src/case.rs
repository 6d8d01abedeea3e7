//! A parsed case: configuration, peers and expectations, before anything runs. It must never open anything.

use std::path::PathBuf;

use crate::data::Data;
use crate::failure::Result;
use crate::pattern::Pattern;
use crate::script::{self, Line};

/// One `.case` file.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Topic and name: `timeouts/queue`.
    pub(crate) name: String,
    /// The path of its file.
    pub(crate) path: PathBuf,
    /// `nbthread`; `None`: the setting of the run.
    pub(crate) threads: Option<u32>,
    /// Arguments for the subject, in addition to `-db -f FILE`.
    pub(crate) arguments: Vec<String>,
    /// Lines for the `global` section.
    pub(crate) global: Vec<String>,
    /// Lines for the `defaults` section, added to the runner's own unless `bare`.
    pub(crate) defaults: Vec<String>,
    /// Omit the runner's own defaults.
    pub(crate) bare: bool,
    /// The lines of the proxies.
    pub(crate) config: Vec<String>,
    /// Files in the same folder as the configuration, `${dir}`.
    pub(crate) files: Vec<(String, Data)>,
    /// Addresses that the subject listens on.
    pub(crate) listeners: Vec<(String, ListenerKind)>,
    /// Servers and clients, each with its own thread.
    pub(crate) peers: Vec<PeerSpec>,
    /// The expected log. `None`: any.
    pub(crate) log: Option<LogSpec>,
    /// Subjects with known differences.
    pub(crate) differences: Vec<Difference>,
}

/// How the subject gets a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// Inherited, 127.0.0.1.
    Inherited,
    /// Inherited, [::1].
    InheritedInet6,
    /// Inherited, a unix path.
    InheritedUnix,
    /// 127.0.0.1 and a free port, bound by the subject.
    Inet,
    /// [::1] and a free port, bound by the subject.
    Inet6,
    /// A unix path, bound by the subject.
    Unix,
    /// An abstract name, bound by the subject.
    Abstract,
}

/// How a scripted server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// 127.0.0.1.
    Inet,
    /// [::1].
    Inet6,
    /// A unix path.
    Unix,
    /// An abstract name, padded as in HAProxy.
    Abstract,
    /// 127.0.0.1, refusing connections until the step `listen`.
    Dead,
    /// 127.0.0.1, with a full backlog: connecting never completes.
    Full,
}

/// The role of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// Connects.
    Client,
    /// Listens.
    Server {
        kind: ServerKind,
        /// Unaccepted connections are permitted.
        spare: bool,
    },
    /// Answers DNS queries.
    NameServer,
    /// Sends signals to the subject.
    Process,
}

/// A peer and its script.
#[derive(Debug, Clone)]
pub(crate) struct PeerSpec {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Number of copies that run concurrently; each has its own `${i}`.
    pub(crate) copies: usize,
    /// Its steps.
    pub(crate) script: Vec<Line>,
}

/// The expected log.
#[derive(Debug, Clone)]
pub(crate) struct LogSpec {
    /// Whether the lines are expected in this order.
    pub(crate) ordered: bool,
    /// One pattern per line.
    pub(crate) lines: Vec<Pattern>,
}

impl Case {
    /// Adapts the case to a run with several threads, unless it sets the number itself: then the order of the log is
    /// undefined, and so are the connection counts in it.
    pub(crate) fn for_threads(mut self, threads: u32) -> Result<Self> {
        if self.threads.is_some() || threads == 1 {
            return Ok(self);
        }
        if let Some(log) = &mut self.log {
            log.ordered = false;
            log.lines = log.lines.iter().map(Pattern::with_any_connections).collect::<Result<_>>()?;
        }
        self.peers.iter_mut().try_for_each(|peer| script::with_any_connections(&mut peer.script))?;
        Ok(self)
    }
}

/// A subject with different behaviour, and the reason.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// The tag of the subject: `weir`, `haproxy`, `haproxy-2.6`.
    pub(crate) subject: String,
    /// It differs only sometimes (a race inside the subject).
    pub(crate) sometimes: bool,
    pub(crate) reason: String,
}
