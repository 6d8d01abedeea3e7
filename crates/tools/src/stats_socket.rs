//! Addresses of stats sockets, and connections to them. Must never know a command, and never wait without a limit.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

/// Common paths of stats sockets.
pub const USUAL: [&str; 6] = [
    "/run/weir.sock",
    "/run/weir/stats.sock",
    "/run/weir/admin.sock",
    "/run/haproxy/admin.sock",
    "/var/run/haproxy.sock",
    "/run/haproxy.sock",
];

/// Length of a name in the abstract namespace that is padded with zeroes (`abns@`), in bytes.
const PADDED_NAME: usize = 107;

/// Address of a stats socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    Unix(OsString),
    Abstract {
        name: String,
        /// `abnsz@`: the name is not padded with zeroes.
        unpadded: bool,
    },
    Tcp(String),
}

impl Socket {
    /// Parses an address: a path, `unix@PATH`, `abns@NAME`, `HOST:PORT`, with or without a prefix such as `ipv4@`.
    pub fn parse(word: &OsString) -> Self {
        let text = word.to_string_lossy();
        let after = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
        if let Some(path) = after(&["unix@", "uxst@"]) {
            return Self::Unix(path.into());
        }
        for (prefix, unpadded) in [("abns@", false), ("abnsz@", true)] {
            if let Some(name) = text.strip_prefix(prefix) {
                return Self::Abstract { name: name.to_owned(), unpadded };
            }
        }
        let address = after(&["tcp@", "tcp4@", "tcp6@", "ipv4@", "ipv6@"]).unwrap_or(&text);
        let is_address = !address.contains('/')
            && address
                .rsplit_once(':')
                .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|one| one.is_ascii_digit()));
        if is_address { Self::Tcp(address.to_owned()) } else { Self::Unix(word.clone()) }
    }

    /// Returns the first socket that exists at one of these paths.
    pub fn at(paths: &[&str]) -> Option<Self> {
        paths.iter().find(|path| Path::new(path).exists()).map(|path| Self::Unix((*path).into()))
    }

    /// Returns the address for display.
    pub fn shown(&self) -> String {
        match self {
            Self::Unix(path) => path.to_string_lossy().into_owned(),
            Self::Abstract { name, unpadded: false } => format!("abns@{name}"),
            Self::Abstract { name, unpadded: true } => format!("abnsz@{name}"),
            Self::Tcp(address) => address.clone(),
        }
    }

    /// Connects. `patience` limits the connection to a TCP address, and each later read and write.
    ///
    /// # Errors
    /// Those of the system.
    pub fn connect(&self, patience: Duration) -> io::Result<Connection> {
        let connection = match self {
            Self::Unix(path) => Connection::Unix(UnixStream::connect(path)?),
            Self::Abstract { name, unpadded } => {
                let mut bytes = name.clone().into_bytes();
                if !unpadded {
                    bytes.resize(bytes.len().max(PADDED_NAME), 0);
                }
                Connection::Unix(UnixStream::connect_addr(&SocketAddr::from_abstract_name(bytes)?)?)
            }
            Self::Tcp(address) => Connection::Tcp(connect_tcp(address, patience)?),
        };
        connection.limit_reads(Some(patience))?;
        connection.limit_writes(patience)?;
        Ok(connection)
    }
}

fn connect_tcp(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let (host, port) = address.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
    let port: u16 = port.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let host = match host.trim_start_matches('[').trim_end_matches(']') {
        // A wildcard of a `bind` line accepts connections of this machine.
        "" | "*" | "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        other => other,
    };
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection to a stats socket.
#[derive(Debug)]
pub enum Connection {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    /// Sets the time limit of reads; `None`: unlimited.
    ///
    /// # Errors
    /// Those of the system.
    pub fn limit_reads(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(time),
            Self::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    fn limit_writes(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(Some(time)),
            Self::Tcp(stream) => stream.set_write_timeout(Some(time)),
        }
    }

    /// Closes the sending side.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish_sending(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(buffer),
            Self::Tcp(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_paths_or_addresses() {
        for (word, wanted) in [
            ("/run/a.sock", Socket::Unix("/run/a.sock".into())),
            ("unix@a:1", Socket::Unix("a:1".into())),
            ("localhost:9999", Socket::Tcp("localhost:9999".to_owned())),
            ("ipv4@127.0.0.1:1", Socket::Tcp("127.0.0.1:1".to_owned())),
            ("ipv6@[::1]:1", Socket::Tcp("[::1]:1".to_owned())),
            ("abns@a", Socket::Abstract { name: "a".to_owned(), unpadded: false }),
            ("abnsz@a", Socket::Abstract { name: "a".to_owned(), unpadded: true }),
            ("./a:1", Socket::Unix("./a:1".into())),
            ("sock", Socket::Unix("sock".into())),
        ] {
            assert_eq!(Socket::parse(&word.into()), wanted, "{word}");
        }
    }

    #[test]
    fn a_tcp_address_may_be_a_wildcard() {
        for (host, wildcard) in [("127.0.0.1", "*"), ("127.0.0.1", ""), ("::1", "::")] {
            let Ok(listener) = std::net::TcpListener::bind((host, 0)) else { continue };
            let port = listener.local_addr().expect("an address").port();
            let connected = Socket::Tcp(format!("{wildcard}:{port}")).connect(Duration::from_secs(5));
            assert!(connected.is_ok(), "{wildcard}: {connected:?}");
        }
        let error = Socket::Tcp("localhost:70000".to_owned()).connect(Duration::from_secs(5)).expect_err("no port");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
