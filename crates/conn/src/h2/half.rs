//! What a connection keeps of a stream: what has come and was not taken, and how far both messages are. Must never read or
//! write the connection.

use std::task::{Context, Waker};

use wire::http::Head;

/// How the head of a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// It is here; `length` bytes of a block told it.
    Here { length: usize },
    /// It is answered with that status.
    Refused { status: u16 },
    /// Its task has it.
    Taken,
}

/// A stream, for its connection.
pub(super) struct Half {
    pub(super) request: Request,
    pub(super) head: Head,
    /// Payload that has come, of which `taken` bytes were taken.
    pub(super) incoming: Vec<u8>,
    pub(super) taken: usize,
    /// Bytes of payload that the head announced and that have not come.
    pub(super) announced: Option<u64>,
    /// The client has sent all of it.
    pub(super) ended: bool,
    /// The stream was reset, or the connection is gone.
    pub(super) failed: bool,
    /// Our answer has ended.
    pub(super) complete: bool,
    /// Bytes that the client may still send.
    pub(super) credit: i64,
    /// Bytes that were taken and are not among those yet.
    pub(super) owed: u32,
    /// Bytes of payload that may still go out.
    pub(super) window: i64,
    /// It stands in the queue for room in the output.
    pub(super) queued: bool,
    /// Nobody serves it any more, but its client still sends: so many bytes are read and dropped, so that it reads its answer.
    pub(super) draining: Option<usize>,
    task: Option<Waker>,
}

impl Half {
    pub(super) fn new() -> Self {
        Self {
            request: Request::Taken,
            head: Head::new(),
            incoming: Vec::new(),
            taken: 0,
            announced: None,
            ended: false,
            failed: false,
            complete: false,
            credit: 0,
            owed: 0,
            window: 0,
            queued: false,
            draining: None,
            task: None,
        }
    }

    /// Begins a stream anew, with the memory of a former one.
    pub(super) fn renew(&mut self, credit: u32, window: i64) {
        let head = std::mem::take(&mut self.head);
        let mut incoming = std::mem::take(&mut self.incoming);
        incoming.clear();
        *self = Self { head, incoming, credit: i64::from(credit), window, ..Self::new() };
    }

    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Payload that was not taken.
    pub(super) fn payload(&self) -> &[u8] {
        &self.incoming[self.taken..]
    }

    /// Takes payload.
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken == self.incoming.len() {
            self.taken = 0;
            self.incoming = Vec::new();
        }
    }

    /// It ends before its messages do.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.wake();
    }
}
