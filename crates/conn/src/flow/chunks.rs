//! The chunked transfer coding around a flow: taken apart on the way in, put together on the way out, with what becomes
//! of trailers. Must never read or write a stream.

use std::sync::Arc;

use wire::h1::{self, ChunkDecoder, ChunkState, Spelling};
use wire::http::Fields;

use super::{Flow, FlowError, Source, TAILROOM, split_off};

/// How far a chunked source was taken apart.
pub(super) struct Chunks {
    decoder: ChunkDecoder,
    trailers: Fields,
}

impl Chunks {
    /// For a body whose trailers fit in one buffer when they go out again: with a blank more a line than they may have
    /// come with, behind the end of a chunk and the last chunk.
    pub(super) fn new() -> Self {
        let usual = h1::HeadLimits::default();
        let room = rt::buffer_size().saturating_sub(usual.max_fields + TAILROOM);
        let limits = h1::HeadLimits { max_head: usual.max_head.min(room), ..usual };
        Self { decoder: ChunkDecoder::with_limits(&limits), trailers: Fields::default() }
    }

    /// Bytes of the current chunk that have not come yet; zero between chunks.
    pub(super) fn remaining(&self) -> u64 {
        self.decoder.remaining_in_chunk()
    }

    /// So many bytes of the chunk have come on another way, at most [`Chunks::remaining`].
    pub(super) fn skip(&mut self, count: u64) {
        let skipped = self.decoder.skip(count);
        debug_assert_eq!(skipped, count, "no more than the chunk has");
    }
}

/// What becomes of a chunked body's trailers.
#[derive(Debug, Clone, Default)]
pub enum Trailers {
    /// They go on.
    #[default]
    Pass,
    /// They go on, their names in this spelling.
    Spell(Arc<Spelling>),
    /// They are dropped.
    Drop,
}

impl Flow {
    /// Takes the chunks that were just read apart. Whether there is payload in them, or the end.
    pub(super) fn admit_chunks(&mut self) -> Result<bool, FlowError> {
        let Source::Chunked(chunks) = &mut self.source else { return Ok(false) };
        let decoded =
            chunks.decoder.decode_in_place(self.body.data_mut(), &mut chunks.trailers).map_err(FlowError::Malformed)?;
        // What was not used is a part of a line, or the next message.
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

    /// Puts the size line before the data and CR LF behind it, unless something stands in its way first.
    pub(super) fn frame_chunk(&mut self) {
        if self.filter_stage.is_none() {
            self.frame();
        }
    }

    /// Puts the size line before the data and CR LF behind it.
    pub(super) fn frame(&mut self) {
        if self.body.is_empty() {
            return;
        }
        let mut line = [0; 18];
        let line = h1::chunk_header(self.body.len() as u64, &mut line);
        // `start` was given the bytes behind a head and `prepare` reserves the room, so there is always enough in
        // front; a head's bytes are more than a size line.
        let placed = self.body.push_front(line);
        debug_assert!(placed, "no room in front of a chunk");
        if std::mem::take(&mut self.splicing.open) {
            let placed = self.body.push_front(b"\r\n");
            debug_assert!(placed, "no room in front of a size line");
        }
        self.push_tail(b"\r\n");
    }

    /// Ends a sink whose end is told: in chunks, or by whoever takes its trailers.
    pub(super) fn finish_chunks(&mut self, trailers: Option<&Fields>) {
        self.came = trailers.filter(|trailers| !trailers.is_empty()).cloned().map(Box::new);
        match &mut self.filter_stage {
            Some(filter_stage) => filter_stage.end(trailers),
            None => self.end_with(trailers),
        }
    }

    /// Nothing goes out behind these trailers.
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

    /// Appends to the body while there is room, then to the tail; what is in a pipe goes out between the two.
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
