//! The chunked transfer coding of a flow: decoding of the source, encoding for the sink, and the handling of trailers.
//! Must never read or write a stream.

use std::sync::Arc;

use wire::h1::{self, ChunkDecoder, ChunkState, Spelling};
use wire::http::Fields;

use super::{Flow, FlowError, Source, TAILROOM, split_off};

/// State of decoding a chunked source.
pub(super) struct Chunks {
    decoder: ChunkDecoder,
    trailers: Fields,
}

impl Chunks {
    /// Creates the decoder of a body whose trailers fit in one buffer when they are sent again, after the end of a
    /// chunk and the last chunk, and with one more space per line than they may have been received with.
    pub(super) fn new() -> Self {
        let usual = h1::HeadLimits::default();
        let room = rt::buffer_size().saturating_sub(usual.max_fields + TAILROOM);
        let limits = h1::HeadLimits { max_head: usual.max_head.min(room), ..usual };
        Self { decoder: ChunkDecoder::with_limits(&limits), trailers: Fields::default() }
    }

    /// Bytes of the current chunk that were not received yet; zero between chunks.
    pub(super) fn remaining(&self) -> u64 {
        self.decoder.remaining_in_chunk()
    }

    /// Skips `count` bytes of the chunk that were moved by other means, at most [`Chunks::remaining`].
    pub(super) fn skip(&mut self, count: u64) {
        let skipped = self.decoder.skip(count);
        debug_assert_eq!(skipped, count, "no more than the chunk has");
    }
}

/// The handling of a chunked body's trailers.
#[derive(Debug, Clone, Default)]
pub enum Trailers {
    /// They are forwarded.
    #[default]
    Pass,
    /// They are forwarded, with their names in this spelling.
    Spell(Arc<Spelling>),
    /// They are dropped.
    Drop,
}

impl Flow {
    /// Decodes the chunks just read. Returns whether they contain payload or the end.
    pub(super) fn admit_chunks(&mut self) -> Result<bool, FlowError> {
        let Source::Chunked(chunks) = &mut self.source else { return Ok(false) };
        let decoded =
            chunks.decoder.decode_in_place(self.body.data_mut(), &mut chunks.trailers).map_err(FlowError::Malformed)?;
        // The bytes not consumed are a part of a line, or the next message.
        self.rest = split_off(&mut self.body, decoded.consumed);
        self.body.truncate(decoded.payload);
        if self.chunked {
            self.frame_chunk();
        }
        if decoded.state == ChunkState::End
            && let Source::Chunked(chunks) = std::mem::replace(&mut self.source, Source::Ended)
        {
            self.finish_chunks(Some(&chunks.trailers));
        }
        Ok(decoded.payload > 0 || decoded.state == ChunkState::End)
    }

    /// Puts the size line before the data and CR LF after it, unless a filter has to see the data first.
    pub(super) fn frame_chunk(&mut self) {
        if self.filter_stage.is_none() {
            self.frame();
        }
    }

    /// Puts the size line before the data and CR LF after it.
    pub(super) fn frame(&mut self) {
        if self.body.is_empty() {
            return;
        }
        let mut line = [0; 18];
        let line = h1::chunk_header(self.body.len() as u64, &mut line);
        // `start` was given the bytes that followed a head, and a head is longer than a size line; `prepare` reserves
        // the space. So there is always enough space in front.
        let placed = self.body.push_front(line);
        debug_assert!(placed, "no room in front of a chunk");
        if std::mem::take(&mut self.splicing.open) {
            let placed = self.body.push_front(b"\r\n");
            debug_assert!(placed, "no room in front of a size line");
        }
        self.push_tail(b"\r\n");
    }

    /// Ends the body for a sink that needs an explicit end: the last chunk, or trailers that the sink takes itself.
    pub(super) fn finish_chunks(&mut self, trailers: Option<&Fields>) {
        self.came = trailers.filter(|trailers| !trailers.is_empty()).cloned().map(Box::new);
        match &mut self.filter_stage {
            Some(filter_stage) => filter_stage.end(trailers),
            None => self.end_with(trailers),
        }
    }

    /// Ends the body with these trailers; nothing is sent after them.
    pub(super) fn end_with(&mut self, trailers: Option<&Fields>) {
        if self.chunked {
            self.push_end(trailers);
        } else if !matches!(self.trailers, Trailers::Drop) {
            self.last = trailers.filter(|trailers| !trailers.is_empty()).cloned().map(Box::new);
        }
    }

    /// Appends the last chunk and the trailers.
    pub(super) fn push_end(&mut self, trailers: Option<&Fields>) {
        self.close_chunk();
        self.push_tail(b"0\r\n");
        if let Some(trailers) = trailers {
            self.push_trailers(trailers);
        }
        self.push_tail(b"\r\n");
    }

    fn push_trailers(&mut self, trailers: &Fields) {
        match &self.trailers {
            Trailers::Drop => {}
            Trailers::Spell(spelling) => {
                let mut lines = Vec::new();
                for (name, value) in trailers.iter() {
                    for part in [name, b": ", value, b"\r\n"] {
                        lines.extend_from_slice(part);
                    }
                }
                spelling.apply(&mut lines);
                self.push_tail(&lines);
            }
            Trailers::Pass => {
                for (name, value) in trailers.iter() {
                    self.push_tail(name);
                    self.push_tail(b": ");
                    self.push_tail(value);
                    self.push_tail(b"\r\n");
                }
            }
        }
    }

    /// Appends to the body while it has free space, then to the tail. Bytes in a pipe are sent between the two.
    pub(super) fn push_tail(&mut self, bytes: &[u8]) {
        let joins = self.tail.is_empty() && self.splicing.is_empty() && self.body.capacity() > 0;
        if joins && self.body.push(bytes) {
            return;
        }
        if self.tail.capacity() == 0 {
            self.tail = rt::buffer();
        }
        let placed = self.tail.push(bytes);
        debug_assert!(placed, "trailers are bounded by the decoder below a buffer's size");
    }
}
