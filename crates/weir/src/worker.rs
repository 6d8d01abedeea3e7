//! A worker's side of the channel to its master: says that it serves, takes connections to its runtime API, leaves when
//! the master has gone. Must never wait for the master.

use crate::master::link::{CONNECTION, FromWorker};
use crate::version;
use rt::net::{Channel, OwnedSocket, send_descriptors};
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// The master, as its worker sees it.
#[derive(Debug)]
pub struct Master(OwnedFd);

impl Master {
    /// Takes over the end of the channel that the process was started with.
    ///
    /// # Errors
    /// The kernel's.
    pub fn inherit(channel: i32) -> io::Result<Self> {
        rt::process::take_inherited(channel).map(Self)
    }

    /// Standard error, and the master's ear.
    ///
    /// # Errors
    /// The kernel's: descriptors are exhausted.
    pub fn voice(&self) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(Voice(self.0.try_clone()?)))
    }

    /// Tells that the process serves, then does what the master wants, until the master has gone. Nothing is done, and
    /// false returned, where the channel cannot be used.
    pub async fn obey(self) -> bool {
        let Ok(mut channel) = Channel::adopt(self.0) else { return false };
        let _ = channel.send(&FromWorker::Serves(version::of_runtime()).encode(), &[]);
        let mut place = [0; 64];
        let mut descriptors = Vec::new();
        while let Ok(1..) = channel.receive(&mut place, &mut descriptors).await {
            let connection = descriptors.drain(..).next();
            if place.first() == CONNECTION.first()
                && let Some(socket) = connection.and_then(|fd| OwnedSocket::try_from(fd).ok())
            {
                control::runtime::process::serve(socket);
            }
        }
        true
    }
}

/// What is said on standard error while the process starts, for `show startup-logs`.
struct Voice(OwnedFd);

impl Write for Voice {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A master that does not listen misses it.
        let said = FromWorker::Said(String::from_utf8_lossy(bytes).into_owned());
        let _ = send_descriptors(&self.0, &said.encode(), &[]);
        io::stderr().write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
