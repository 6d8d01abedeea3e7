//! Query handle of a connection after its stream was moved. Must never hold a connection.

use rt::net::{SocketQuery, TcpInfo};

/// Whom to ask about one connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kernel {
    /// None.
    #[default]
    Unknown,
    /// The connection.
    Ask(SocketQuery),
    /// What was known when the stream gave it away.
    Last(Box<TcpInfo>),
}

impl Kernel {
    /// The number of the connection's descriptor, while the stream has the connection.
    pub fn number(&self) -> Option<i32> {
        if let Self::Ask(socket) = self { socket.number() } else { None }
    }

    /// What is known now.
    pub(crate) fn known(&self) -> Option<TcpInfo> {
        match self {
            Self::Unknown => None,
            Self::Ask(socket) => socket.tcp_info().ok(),
            Self::Last(info) => Some(**info),
        }
    }

    /// The stream gives the connection away. `wanted`: a log line will still query it.
    pub(crate) fn part(&mut self, socket: SocketQuery, wanted: bool) {
        let last = if wanted { socket.tcp_info().ok() } else { None };
        *self = last.map_or(Self::Unknown, |info| Self::Last(Box::new(info)));
    }
}
