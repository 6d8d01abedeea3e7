//! A case as it was written: configuration, peers and expectations, before anything runs. It must never open anything.

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
    /// Where it stands.
    pub(crate) path: PathBuf,
    /// `nbthread`; None: whatever the run asks for.
    pub(crate) threads: Option<u32>,
    /// Arguments for the subject, beside `-db -f FILE`.
    pub(crate) arguments: Vec<String>,
    /// Lines for the `global` section.
    pub(crate) global: Vec<String>,
    /// Lines for the `defaults` section; `bare`: without the runner's own.
    pub(crate) defaults: Vec<String>,
    /// No defaults but the case's.
    pub(crate) bare: bool,
    /// The proxies.
    pub(crate) config: Vec<String>,
    /// Files beside the configuration, under `${dir}`.
    pub(crate) files: Vec<(String, Data)>,
    /// Addresses that the subject listens on.
    pub(crate) listeners: Vec<(String, ListenerKind)>,
    /// Servers and clients, each with its own thread.
    pub(crate) peers: Vec<PeerSpec>,
    /// What the log must hold at the end. None: whatever.
    pub(crate) log: Option<LogSpec>,
    /// Subjects that are known to differ.
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

/// Where a scripted server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// 127.0.0.1.
    Inet,
    /// [::1].
    Inet6,
    /// A unix path.
    Unix,
    /// An abstract name, padded as HAProxy pads it.
    Abstract,
    /// 127.0.0.1, refusing connections until the script says `listen`.
    Dead,
    /// 127.0.0.1, with a full backlog: connecting never ends.
    Full,
}

/// What a peer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// Connects.
    Client,
    /// Listens. `spare`: connections may come that the script does not accept.
    Server {
        /// Where.
        kind: ServerKind,
        /// Unaccepted connections are no mistake.
        spare: bool,
    },
    /// Answers questions about names.
    NameServer,
    /// Signals to the subject.
    Process,
}

/// A peer and its script.
#[derive(Debug, Clone)]
pub(crate) struct PeerSpec {
    /// Its name in the case.
    pub(crate) name: String,
    /// What it is.
    pub(crate) role: Role,
    /// How many copies run side by side; each has its `${i}`.
    pub(crate) copies: usize,
    /// What it does.
    pub(crate) script: Vec<Line>,
}

/// What the log must hold.
#[derive(Debug, Clone)]
pub(crate) struct LogSpec {
    /// In this order?
    pub(crate) ordered: bool,
    /// One pattern a line.
    pub(crate) lines: Vec<Pattern>,
}

impl Case {
    /// The case for a run with several threads, unless it asks for a number itself: who logs first is open then, and so are the numbers of
    /// connections at that moment.
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

/// A subject that behaves in another way, and why.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// The tag of the subject: `weir`, `haproxy`, `haproxy-2.6`.
    pub(crate) subject: String,
    /// Now and then only (a race inside the subject).
    pub(crate) sometimes: bool,
    /// The reason.
    pub(crate) reason: String,
}
