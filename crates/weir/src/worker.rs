//! A worker's side of the channel to its master: says that it serves, takes connections to its runtime API, leaves when
//! the master has gone. Must never wait for the master.

use crate::in_place::Renewal;
use crate::master::link::{CONNECTION, FromWorker, RELOAD};
use crate::version;
use engine::worker::Process;
use rt::net::{Channel, OwnedSocket, send_descriptors};
use rt::{Class, NO_TAG};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The master, as its worker sees it.
#[derive(Debug)]
pub struct Master {
    channel: OwnedFd,
    /// How the process reads its configuration again; none where it does not.
    renewal: Option<Arc<Renewal>>,
}

impl Master {
    /// Takes over the end of the channel that the process was started with.
    ///
    /// # Errors
    /// The kernel's.
    pub fn inherit(channel: i32) -> io::Result<Self> {
        rt::process::take_inherited(channel).map(|channel| Self { channel, renewal: None })
    }

    /// Standard error, and the master's ear.
    ///
    /// # Errors
    /// The kernel's: descriptors are exhausted.
    pub fn voice(&self) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(Voice(self.channel.try_clone()?)))
    }

    /// Has the process go over to another configuration where the master asks for it.
    pub fn renew_with(&mut self, renewal: Renewal) {
        self.renewal = Some(Arc::new(renewal));
    }

    /// Tells that the process serves, then does what the master wants, until the master has gone. Nothing is done, and
    /// false returned, where the channel cannot be used.
    pub async fn obey(self, process: &Arc<Process>) -> bool {
        let Ok(mut channel) = Channel::adopt(self.channel) else { return false };
        if let Some(renewal) = &self.renewal {
            let reloads = FromWorker::Reloads { needs_reader: renewal.start.gives_up() };
            let _ = channel.send(&reloads.encode(), &[]);
        }
        let _ = channel.send(&FromWorker::Serves(version::of_runtime()).encode(), &[]);
        let mut place = [0; 64];
        let mut descriptors = Vec::new();
        while let Ok(1..) = channel.receive(&mut place, &mut descriptors).await {
            let mut passed = descriptors.drain(..).next();
            if place.first() == RELOAD.first()
                && let Some(renewal) = &self.renewal
                && let Ok(answers) = channel.duplicate()
            {
                let reload = reload(Arc::clone(renewal), Arc::clone(process), answers, passed.take());
                rt::spawn(Class::Normal, NO_TAG, reload);
            }
            if place.first() == CONNECTION.first()
                && let Some(socket) = passed.and_then(|fd| OwnedSocket::try_from(fd).ok())
            {
                control::runtime::process::serve(socket);
            }
        }
        true
    }
}

/// Goes over to the configuration as the files have it now, which `reader` reads where this process cannot, and tells the
/// master how that went. The master asks for one at a time.
async fn reload(renewal: Arc<Renewal>, process: Arc<Process>, answers: OwnedFd, reader: Option<OwnedFd>) {
    let verdict = match answers.try_clone() {
        Ok(voice) => renewal.run(&process, Box::new(Voice(voice)), reader).await,
        Err(_) => FromWorker::Classic("descriptors are exhausted".to_owned()),
    };
    let _ = send_descriptors(&answers, &verdict.encode(), &[]);
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
