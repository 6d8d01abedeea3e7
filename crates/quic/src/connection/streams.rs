//! The streams of a connection.

use bytes::Bytes;
use quinn_proto::{FinishError, ReadError as Inner, ReadableError, RecvStream, SendStream, WriteError as InnerWrite};

use crate::connection::Connection;
use crate::stream::{Direction, Part, ReadError, StreamId, WriteError, code};

impl From<Inner> for ReadError {
    fn from(error: Inner) -> Self {
        match error {
            Inner::Blocked => Self::Blocked,
            Inner::Reset(code) => Self::Reset(code.into()),
        }
    }
}

impl From<ReadableError> for ReadError {
    fn from(_: ReadableError) -> Self {
        Self::Closed
    }
}

impl From<InnerWrite> for WriteError {
    fn from(error: InnerWrite) -> Self {
        match error {
            InnerWrite::Blocked => Self::Blocked,
            InnerWrite::Stopped(code) => Self::Stopped(code.into()),
            InnerWrite::ClosedStream => Self::Closed,
        }
    }
}

impl From<FinishError> for WriteError {
    fn from(error: FinishError) -> Self {
        match error {
            FinishError::Stopped(code) => Self::Stopped(code.into()),
            FinishError::ClosedStream => Self::Closed,
        }
    }
}

/// The library treats a stream of the wrong direction as a fault of its caller.
impl Connection {
    fn is_mine(&self, id: StreamId) -> bool {
        id.0.initiator() == self.inner.side()
    }

    fn sending(&mut self, id: StreamId) -> Option<SendStream<'_>> {
        let may_send = id.direction() == Direction::Bidirectional || self.is_mine(id);
        may_send.then(|| self.inner.send_stream(id.0))
    }

    fn receiving(&mut self, id: StreamId) -> Option<RecvStream<'_>> {
        let may_receive = id.direction() == Direction::Bidirectional || !self.is_mine(id);
        may_receive.then(|| self.inner.recv_stream(id.0))
    }
}

impl Connection {
    /// Returns the next stream that the peer has opened.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.inner.streams().accept(direction.inner()).map(StreamId)
    }

    /// Opens a stream. `None`: the peer permits no more now, which an event ends.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.inner.streams().open(direction.inner()).map(StreamId)
    }

    /// Returns the number of streams of the peer that are not over.
    pub fn open_by_peer(&mut self, direction: Direction) -> u64 {
        self.inner.streams().remote_open_streams(direction.inner())
    }

    /// Reads at most `most` bytes as one piece, which is not copied.
    ///
    /// # Errors
    /// There is nothing to read.
    pub fn read(&mut self, id: StreamId, most: usize) -> Result<Part, ReadError> {
        let mut stream = self.receiving(id).ok_or(ReadError::Closed)?;
        let mut chunks = stream.read(true)?;
        let next = chunks.next(most);
        // The peer gets credit by the next datagram.
        let _ = chunks.finalize();
        Ok(next?.map_or(Part::End, |chunk| Part::Chunk(chunk.bytes)))
    }

    /// Passes pieces to `take` while that returns true. Returns whether the end was reached.
    ///
    /// # Errors
    /// The stream was reset or closed. That nothing more is to be read is none.
    pub fn read_all(&mut self, id: StreamId, mut take: impl FnMut(Bytes) -> bool) -> Result<bool, ReadError> {
        let mut stream = self.receiving(id).ok_or(ReadError::Closed)?;
        let mut chunks = stream.read(true)?;
        let result = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if !take(chunk.bytes) {
                        break Ok(false);
                    }
                }
                Err(Inner::Blocked) => break Ok(false),
                Ok(None) => break Ok(true),
                Err(error) => break Err(error.into()),
            }
        };
        let _ = chunks.finalize();
        result
    }

    /// Copies bytes into `buffer`. Returns their number; 0: the end was reached, or the buffer is empty.
    ///
    /// # Errors
    /// There is nothing to read.
    pub fn read_into(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut stream = self.receiving(id).ok_or(ReadError::Closed)?;
        let mut chunks = stream.read(true)?;
        let mut filled = 0;
        let result = loop {
            if filled == buffer.len() {
                break Ok(filled);
            }
            match chunks.next(buffer.len() - filled) {
                Ok(Some(chunk)) => {
                    buffer[filled..][..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    filled += chunk.bytes.len();
                }
                Ok(None) => break Ok(filled),
                Err(Inner::Blocked) if filled > 0 => break Ok(filled),
                Err(error) => break Err(error.into()),
            }
        };
        let _ = chunks.finalize();
        result
    }

    /// Writes a copy of the first bytes. Returns their number.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError> {
        Ok(self.sending(id).ok_or(WriteError::Closed)?.write(bytes)?)
    }

    /// Writes the first bytes without a copy, and takes them from the pieces. Returns their number.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write_pieces(&mut self, id: StreamId, pieces: &mut [Bytes]) -> Result<usize, WriteError> {
        Ok(self.sending(id).ok_or(WriteError::Closed)?.write_chunks(pieces)?.bytes)
    }

    /// Ends a stream in order.
    ///
    /// # Errors
    /// The peer has stopped it, or it has ended.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        Ok(self.sending(id).ok_or(WriteError::Closed)?.finish()?)
    }

    /// Abandons the sending side of a stream with a code of the application. One that has ended is left alone.
    pub fn reset(&mut self, id: StreamId, number: u64) {
        if let Some(mut stream) = self.sending(id) {
            let _ = stream.reset(code(number));
        }
    }

    /// Asks the peer to send no more on a stream, with a code of the application; what arrives is dropped. One that has ended
    /// is left alone.
    pub fn stop(&mut self, id: StreamId, number: u64) {
        if let Some(mut stream) = self.receiving(id) {
            let _ = stream.stop(code(number));
        }
    }

    /// Sets the priority of a stream: those with larger ones are sent first, equal ones take turns.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) {
        if let Some(mut stream) = self.sending(id) {
            let _ = stream.set_priority(priority);
        }
    }

    /// Returns the code with which the peer has stopped a stream.
    pub fn stopped(&mut self, id: StreamId) -> Option<u64> {
        self.sending(id)?.stopped().ok().flatten().map(u64::from)
    }
}
