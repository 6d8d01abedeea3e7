//! Notifications of the master to systemd (`-Ws`; sd_notify(3)): datagrams to the socket in `$NOTIFY_SOCKET`. Must
//! never fail: without a manager, nothing is sent.

use base::Moment;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// State changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// A worker serves.
    Ready,
    /// A reload begins.
    Reloading(Moment),
    /// A reload failed; the previous workers continue.
    ReloadFailed,
    /// The master is stopping.
    Stopping,
}

impl StateChange {
    fn text(self, pid: u32) -> String {
        match self {
            Self::Ready => format!("READY=1\nMAINPID={pid}\nSTATUS=Ready.\n"),
            Self::Reloading(now) => {
                let micros = now.as_nanos() / 1_000;
                format!("RELOADING=1\nSTATUS=Reloading Configuration.\nMONOTONIC_USEC={micros}\n")
            }
            Self::ReloadFailed => "READY=1\nSTATUS=Reload failed!\n".to_owned(),
            Self::Stopping => "STOPPING=1".to_owned(),
        }
    }
}

/// The socket and the address of the manager.
#[derive(Debug)]
pub struct Manager(Option<(UnixDatagram, SocketAddr)>);

impl Manager {
    /// Opens a socket for the manager at this address, if valid.
    pub fn at(name: Option<&OsStr>) -> Self {
        let address = name.and_then(|name| match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
            [b'/', ..] => SocketAddr::from_pathname(name).ok(),
            _ => None,
        });
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            // A manager that does not read must not block the master.
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        Self(socket)
    }

    /// Sends a notification.
    pub fn tell(&self, news: StateChange) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(news.text(std::process::id()).as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_written_as_systemd_reads_them() {
        let rows = [
            (StateChange::Ready, "READY=1\nMAINPID=7\nSTATUS=Ready.\n"),
            (
                StateChange::Reloading(Moment::from_nanos(12_345_678)),
                "RELOADING=1\nSTATUS=Reloading Configuration.\nMONOTONIC_USEC=12345\n",
            ),
            (StateChange::ReloadFailed, "READY=1\nSTATUS=Reload failed!\n"),
            (StateChange::Stopping, "STOPPING=1"),
        ];
        for (news, expected) in rows {
            assert_eq!(news.text(7), expected);
        }
    }

    #[test]
    fn names_of_either_kind_are_reached() {
        let name = format!("weir-test-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("free");
        Manager::at(Some(OsStr::new(&format!("@{name}")))).tell(StateChange::Stopping);
        let mut place = [0; 64];
        let count = manager.recv(&mut place).expect("sent");
        assert_eq!(&place[..count], b"STOPPING=1");
        Manager::at(None).tell(StateChange::Ready);
        Manager::at(Some(OsStr::new("relative"))).tell(StateChange::Ready);
    }
}
