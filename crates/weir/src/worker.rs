//! A worker's end of the channel to its master: reports that it serves, accepts connections to its runtime API, leaves
//! when the master has ended. Must never wait for the master.

use crate::in_place::Renewal;
use crate::master::link::{CONNECTION, FromWorker, RELOAD};
use crate::version;
use engine::worker::Process;
use rt::net::{Channel, OwnedSocket, send_descriptors};
use rt::{Class, NO_TAG};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The channel to the master.
#[derive(Debug)]
pub struct Master {
    channel: OwnedFd,
    /// Parameters of a reload in place; `None`: not supported.
    renewal: Option<Arc<Renewal>>,
}

impl Master {
    /// Adopts the end of the channel that the process inherited.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn inherit(channel: i32) -> io::Result<Self> {
        rt::process::take_inherited(channel).map(|channel| Self { channel, renewal: None })
    }

    /// Returns a writer to standard error that also sends to the master.
    ///
    /// # Errors
    /// The kernel's error: descriptors are exhausted.
    pub fn voice(&self) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(MasterOutput(self.channel.try_clone()?)))
    }

    /// Enables reloads in place.
    pub fn renew_with(&mut self, renewal: Renewal) {
        self.renewal = Some(Arc::new(renewal));
    }

    /// Reports that the process serves, then executes requests of the master until the master ends. Returns false at
    /// once if the channel cannot be used.
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

/// Reloads in place, with `reader` if this process cannot read the files, and sends the result to the master. The
/// master requests one reload at a time.
async fn reload(renewal: Arc<Renewal>, process: Arc<Process>, answers: OwnedFd, reader: Option<OwnedFd>) {
    let verdict = match answers.try_clone() {
        Ok(voice) => renewal.run(&process, Box::new(MasterOutput(voice)), reader).await,
        Err(_) => FromWorker::Classic("descriptors are exhausted".to_owned()),
    };
    let _ = send_descriptors(&answers, &verdict.encode(), &[]);
}

/// Writes to standard error and sends the messages of the start to the master, for `show startup-logs`.
struct MasterOutput(OwnedFd);

impl Write for MasterOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // If the master does not read, the message is dropped.
        let said = FromWorker::Said(String::from_utf8_lossy(bytes).into_owned());
        let _ = send_descriptors(&self.0, &said.encode(), &[]);
        io::stderr().write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
