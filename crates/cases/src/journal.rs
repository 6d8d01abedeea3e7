//! The log server of a case: keeps every line in order of arrival. It must never drop one.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::failure::Result;
use crate::pattern::LogLine;

/// The log of one run.
pub(crate) struct Journal {
    socket: UdpSocket,
    lines: Mutex<Vec<LogLine>>,
    came: Condvar,
    over: AtomicBool,
}

const SLICE: Duration = Duration::from_millis(20);

impl Journal {
    /// Opens the log server on 127.0.0.1.
    pub(crate) fn open() -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(SLICE))?;
        Ok(Self { socket, lines: Mutex::default(), came: Condvar::new(), over: AtomicBool::new(false) })
    }

    /// Returns its address.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Receives until the run is over and the socket is empty; runs in its own thread.
    pub(crate) fn receive(&self) {
        let mut datagram = vec![0; 65536];
        loop {
            let over = self.over.load(Ordering::Acquire);
            match self.socket.recv(&mut datagram) {
                Ok(length) => self.keep(&datagram[..length]),
                Err(_) if over => return,
                Err(_) => {}
            }
        }
    }

    /// Ends receiving after the subject has exited: only the lines already in the socket are read.
    pub(crate) fn finish(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Returns the lines so far.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.lock().clone()
    }

    /// Waits for up to 20 ms until there are more than `seen` lines, and returns their number.
    pub(crate) fn wait_beyond(&self, seen: usize) -> usize {
        let lines = self.lock();
        let waited = self.came.wait_timeout_while(lines, SLICE, |lines| lines.len() <= seen);
        waited.unwrap_or_else(PoisonError::into_inner).0.len()
    }

    fn keep(&self, datagram: &[u8]) {
        let line = LogLine::read(&String::from_utf8_lossy(datagram));
        if !line.is_about_the_process() {
            self.lock().push(line);
            self.came.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LogLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
