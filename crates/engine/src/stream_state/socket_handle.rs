//! Query handle of a connection after its stream was moved. Must never hold a connection.

use rt::net::{SocketQuery, TcpInfo};

/// Source of the kernel's information about one connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kernel {
    /// None.
    #[default]
    Unknown,
    /// The open connection.
    Ask(SocketQuery),
    /// The information at the time when the stream gave the connection away.
    Last(Box<TcpInfo>),
}

impl Kernel {
    /// Returns the number of the connection's file descriptor, while the stream owns the connection.
    pub fn number(&self) -> Option<i32> {
        if let Self::Ask(socket) = self { socket.number() } else { None }
    }

    /// Returns the current information, or the last one that was saved.
    pub(crate) fn known(&self) -> Option<TcpInfo> {
        match self {
            Self::Unknown => None,
            Self::Ask(socket) => socket.tcp_info().ok(),
            Self::Last(info) => Some(**info),
        }
    }

    /// Called when the stream gives the connection away. `wanted`: a log line will still query it.
    #[inline]
    pub(crate) fn part(&mut self, socket: SocketQuery, wanted: bool) {
        let last = if wanted { socket.tcp_info().ok() } else { None };
        *self = last.map_or(Self::Unknown, |info| Self::Last(Box::new(info)));
    }
}
