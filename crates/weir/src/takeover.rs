//! Takes over the listening sockets of an older process (`-x`): requests them, and keeps them until an address of the
//! configuration needs one. Unused ones are closed. Shares the sockets that the process inherited (`fd@`) among the
//! lines that name them. Must never bind anything.
//!
//! The messages are HAProxy's, so that either program can replace the other; docs/process-management.md describes them.

use engine::succession::PassedChannel;
use rt::net::{
    Address, BindOptions, DatagramSocket, ForeignDatagrams, ForeignListener, ListeningSocket, MOST_DESCRIPTORS,
    is_channel, receive_descriptors,
};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of the older process.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of sockets.
const MOST_SOCKETS: usize = 1 << 16;

/// Maximum length of a record in bytes: two names of up to 255 bytes with their lengths, and the options.
const LONGEST_RECORD: usize = 2 * 256 + 4;

/// Reasons why no sockets were received.
#[derive(Debug)]
pub enum Refusal {
    /// The connection failed.
    NotConnected,
    /// The answer is not a number, in most cases because `expose-fd listeners` is missing.
    NoNumber,
    /// The transfer was interrupted.
    Broken(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("Failed to connect to the old process socket"),
            Self::NoNumber => f.write_str("Failed to get the number of sockets to be transferred !"),
            Self::Broken(error) => write!(f, "Failed to get the sockets : {}", crate::files::reason(error)),
        }
    }
}

/// Unused sockets of an older process, and those that the process inherited at its start.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    items: Vec<Item>,
    /// UDP sockets of QUIC addresses, in the order of their groups.
    datagrams: Vec<DatagramItem>,
    /// Channels to processes that have these as well.
    channels: Vec<PassedChannel>,
    /// Copies of inherited descriptors that an address has used, by number: another line may listen on the same socket.
    given: Vec<(RawFd, OwnedFd)>,
}

#[derive(Debug)]
struct Item {
    namespace: String,
    listener: ForeignListener,
}

#[derive(Debug)]
struct DatagramItem {
    namespace: String,
    socket: ForeignDatagrams,
}

impl InheritedSockets {
    /// Requests the sockets of the process that listens on a path.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn from_path(path: &Path) -> Result<Self, Refusal> {
        let stream = UnixStream::connect(path).map_err(|_| Refusal::NotConnected)?;
        Self::from_stream(stream)
    }

    /// Requests the sockets of the process at the other end of a connection.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn from_stream(mut stream: UnixStream) -> Result<Self, Refusal> {
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .and_then(|()| stream.write_all(b"_getsocks\n"));
        prepared.map_err(|_| Refusal::NotConnected)?;
        let mut reader = Reader { stream, bytes: Vec::new(), descriptors: Vec::new() };
        let number = reader.number().map_err(|_| Refusal::NoNumber)?;
        let number = usize::try_from(number).ok().filter(|number| *number <= MOST_SOCKETS);
        reader.sockets(number.ok_or(Refusal::NoNumber)?).map_err(Refusal::Broken)
    }

    /// Returns the socket that listens on an address, if there is one.
    pub fn take(&mut self, address: &Address, interface: Option<&str>, namespace: &str) -> Option<ForeignListener> {
        let fits = |item: &Item| {
            is_same(&item.listener.address, address)
                && item.listener.interface.as_deref() == interface
                && item.namespace == namespace
        };
        let at = self.items.iter().position(fits)?;
        Some(self.items.swap_remove(at).listener)
    }

    /// Returns the UDP sockets that are bound to an address, in the order of their group, `most` at most.
    ///
    /// # Errors
    /// From the sockets.
    pub fn datagrams(
        &mut self,
        address: SocketAddr,
        options: &BindOptions,
        most: usize,
    ) -> io::Result<Vec<DatagramSocket>> {
        let fits = |item: &DatagramItem| {
            item.socket.address == address
                && item.socket.interface == options.interface
                && item.namespace == options.namespace.as_deref().unwrap_or_default()
        };
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(at) = self.datagrams.iter().position(fits) else { break };
            taken.push(self.datagrams.remove(at).socket.adopt()?);
        }
        Ok(taken)
    }

    /// Returns such a socket ready to accept connections.
    pub fn listen(&mut self, address: &Address, options: &BindOptions) -> Option<io::Result<ListeningSocket>> {
        let found =
            self.take(address, options.interface.as_deref(), options.namespace.as_deref().unwrap_or_default())?;
        Some(found.adopt(address, options))
    }

    /// Listens on a descriptor that the process inherited at its start (`fd@`). Lines that name the same one get
    /// separate descriptors of the same socket.
    ///
    /// # Errors
    /// Those of [`ListeningSocket::inherit`]; the system's error if descriptors are exhausted.
    pub fn given(&mut self, number: RawFd, options: &BindOptions) -> io::Result<ListeningSocket> {
        if let Some((_, taken)) = self.given.iter().find(|(known, _)| *known == number) {
            let again = ForeignListener::new(taken.try_clone()?).ok_or(io::ErrorKind::InvalidInput)?;
            let address = again.address.clone();
            return again.adopt(&address, options);
        }
        let socket = ListeningSocket::inherit(number, options)?;
        if let Some(taken) = socket.as_descriptor() {
            self.given.push((number, taken.try_clone_to_owned()?));
        }
        Ok(socket)
    }

    /// Returns the channels to the processes that have the UDP sockets as well.
    pub fn take_channels(&mut self) -> Vec<PassedChannel> {
        std::mem::take(&mut self.channels)
    }

    /// Adds a socket, if it listens for connections or receives datagrams.
    pub fn add(&mut self, namespace: &str, fd: OwnedFd) {
        let namespace = namespace.to_owned();
        match ForeignDatagrams::new(fd) {
            Ok(socket) => self.datagrams.push(DatagramItem { namespace, socket }),
            Err(fd) => self.items.extend(ForeignListener::new(fd).map(|listener| Item { namespace, listener })),
        }
    }

    /// Merges the sockets of another one.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.items.extend(other.items);
        self.datagrams.extend(other.datagrams);
        self.channels.extend(other.channels);
        self.given.extend(other.given);
        self
    }

    /// Returns the number of unused sockets.
    pub fn len(&self) -> usize {
        self.items.len() + self.datagrams.len()
    }
}

/// Whether a socket that reports to listen on `found` is the one for `wanted`. For a UNIX socket the kernel reports the
/// name that it was first bound to: its path followed by `.PID.tmp`.
fn is_same(found: &Address, wanted: &Address) -> bool {
    match (found, wanted) {
        (Address::Unix(found), Address::Unix(wanted)) => found == wanted || final_path(found).as_ref() == Some(wanted),
        _ => found == wanted,
    }
}

fn final_path(path: &Path) -> Option<PathBuf> {
    let rest = path.as_os_str().as_bytes().strip_suffix(b".tmp")?;
    let dot = rest.iter().rposition(|byte| *byte == b'.')?;
    let is_number = dot + 1 < rest.len() && rest[dot + 1..].iter().all(u8::is_ascii_digit);
    is_number.then(|| PathBuf::from(OsStr::from_bytes(&rest[..dot])))
}

/// Data received from the older process.
struct Reader {
    stream: UnixStream,
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Reader {
    /// Receives more; the end of the stream is an error here.
    fn more(&mut self) -> io::Result<()> {
        let mut place = [0; 4096];
        let count = receive_descriptors(&self.stream, &mut place, &mut self.descriptors)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes.extend_from_slice(&place[..count]);
        let waits = self.bytes.len() <= MOST_DESCRIPTORS * LONGEST_RECORD + place.len()
            && self.descriptors.len() <= 2 * MOST_DESCRIPTORS;
        if waits { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn number(&mut self) -> io::Result<i32> {
        loop {
            if let Some((number, _)) = self.bytes.split_first_chunk::<4>() {
                let number = i32::from_ne_bytes(*number);
                self.bytes.drain(..4);
                return Ok(number);
            }
            self.more()?;
        }
    }

    fn sockets(&mut self, number: usize) -> io::Result<InheritedSockets> {
        let mut found = InheritedSockets::default();
        let mut done = 0;
        while done < number {
            let group = (number - done).min(MOST_DESCRIPTORS);
            // The older process chooses the number of sockets per message: the received ones are processed.
            while self.descriptors.is_empty() {
                self.more()?;
            }
            let group = group.min(self.descriptors.len());
            for _ in 0..group {
                let (namespace, options) = self.record()?;
                let end = self.descriptors.remove(0);
                match PassedChannel::tag_of(options) {
                    Some(tag) if is_channel(&end) => found.channels.push(PassedChannel { tag, end }),
                    Some(_) => {}
                    None => found.add(&namespace, end),
                }
            }
            let acknowledgement = i32::try_from(done).unwrap_or(i32::MAX);
            self.stream.write_all(&acknowledgement.to_ne_bytes())?;
            done += group;
        }
        Ok(found)
    }

    /// Parses a record and returns the network namespace, empty for the default one, and the options, which mark channels; the
    /// device and the options of a socket are read from the kernel.
    fn record(&mut self) -> io::Result<(String, u32)> {
        loop {
            if let Some((namespace, options, length)) = record(&self.bytes) {
                self.bytes.drain(..length);
                return Ok((namespace, options));
            }
            if self.bytes.len() > LONGEST_RECORD {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.more()?;
        }
    }
}

/// Returns the namespace and the options of the first record, and the record's length; `None`: incomplete.
fn record(bytes: &[u8]) -> Option<(String, u32, usize)> {
    let (&namespace, rest) = bytes.split_first()?;
    let (namespace, rest) = rest.split_at_checked(usize::from(namespace))?;
    let (&interface, rest) = rest.split_first()?;
    let rest = rest.get(usize::from(interface)..)?;
    let (options, rest) = rest.split_first_chunk()?;
    let namespace = String::from_utf8_lossy(namespace).into_owned();
    Some((namespace, u32::from_ne_bytes(*options), bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn unix_sockets_are_known_by_the_name_they_end_under() {
        let unix = |path: &str| Address::Unix(path.into());
        let rows = [
            ("/run/a", "/run/a", true),
            ("/run/a.12.tmp", "/run/a", true),
            ("/run/a.tmp", "/run/a", false),
            ("/run/a..tmp", "/run/a", false),
            ("/run/a.x1.tmp", "/run/a", false),
            ("/run/a.12.tmp", "/run/b", false),
        ];
        for (found, wanted, expected) in rows {
            assert_eq!(is_same(&unix(found), &unix(wanted)), expected, "{found} {wanted}");
        }
        assert!(!is_same(&Address::Abstract(b"a".to_vec()), &unix("a")));
    }

    #[test]
    fn udp_sockets_of_an_address_are_taken_in_their_order() {
        let options = BindOptions::default();
        let any = "127.0.0.1:0".parse().expect("an address");
        let group = DatagramSocket::bind_group(any, &options, 3).expect("sockets");
        let address = group[0].local_address();
        let copy =
            |socket: &DatagramSocket| socket.as_descriptor().expect("real").try_clone_to_owned().expect("a copy");
        let other = DatagramSocket::bind(any, &options).expect("a socket");
        let mut inherited = InheritedSockets::default();
        inherited.add("", copy(&other));
        let numbers: Vec<_> = group.iter().map(copy).collect();
        let expected: Vec<RawFd> = numbers.iter().map(AsRawFd::as_raw_fd).collect();
        numbers.into_iter().for_each(|fd| inherited.add("", fd));
        inherited.add("red", copy(&group[0]));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let listened_at = Address::Inet(listener.local_addr().expect("bound"));
        inherited.add("", listener.into());
        assert_eq!(inherited.len(), 6);
        let numbers =
            |taken: Vec<DatagramSocket>| taken.iter().filter_map(DatagramSocket::descriptor).collect::<Vec<_>>();
        let device = BindOptions { interface: Some("lo".to_owned()), ..BindOptions::default() };
        assert!(inherited.datagrams(address, &device, 4).expect("sockets").is_empty());
        assert_eq!(numbers(inherited.datagrams(address, &options, 2).expect("sockets")), expected[..2]);
        assert_eq!(numbers(inherited.datagrams(address, &options, 2).expect("sockets")), expected[2..]);
        assert_eq!(inherited.len(), 3);
        assert!(inherited.listen(&listened_at, &options).is_some_and(|socket| socket.is_ok()));
    }

    #[test]
    fn records_are_cut_where_they_end() {
        let whole = b"\x03red\x02lo\0\0\0\0next";
        assert_eq!(record(whole), Some(("red".to_owned(), 0, 11)));
        for length in 0..11 {
            assert_eq!(record(&whole[..length]), None, "{length}");
        }
        assert_eq!(record(b"\0\0\x01\0\0\0"), Some((String::new(), u32::from_ne_bytes([1, 0, 0, 0]), 6)));
    }

    #[test]
    fn a_process_that_lies_is_left_alone() {
        let rows: &[&[u8]] =
            &[b"", b"\x01", b"\xff\xff\xff\xff", b"\0\0\0\x7f", b"\x01\0\0\0\0\0\0\0\0\0", b"\x01\0\0\0"];
        for answer in rows {
            let (ours, mut theirs) = UnixStream::pair().expect("a pair");
            theirs.write_all(answer).expect("room");
            theirs.shutdown(std::net::Shutdown::Write).expect("open");
            assert!(InheritedSockets::from_stream(ours).is_err(), "{answer:?}");
        }
    }
}
