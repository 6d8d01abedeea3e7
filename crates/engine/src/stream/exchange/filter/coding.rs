//! The encoders of content codings with a common interface: DEFLATE in its three formats, Brotli (RFC 7932) and Zstandard (RFC
//! 8878). Owns their state between calls, and its maximum size. Must never know a message.

use std::cell::RefCell;

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use config::spec::CompressionAlgorithm;
pub(super) use deflate::{Flush, Progress};
use flate2::{Compress, Compression as Level, FlushCompress, Status};
use policy::program::GlobalCompression;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// Size of the library's DEFLATE state beside its window, in bytes: hash table and pending output, at zlib's default memory
/// level.
const DEFLATE_STATE: u64 = 128 * 1024;

/// The level with an encoder of its own, which is the default. It can be lowered to 0 within a body.
const FAST_LEVEL: u32 = 1;

/// Window size of Brotli and Zstandard, as a power of two: 256 kB.
const WINDOW: u32 = 18;

/// Maximum memory of Brotli and Zstandard, in bytes: up to level 4, and above it.
const SMALL_STATE: u64 = 2 << 20;
const LARGE_STATE: u64 = 6 << 20;

/// An encoder.
pub(super) enum Encoder {
    Deflate(Deflate),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(CCtx<'static>),
}

/// Number of DEFLATE encoders that a thread keeps for later messages: the cost of a new one is that of its memory being cleared
/// by the kernel.
const MOST_IDLE: usize = 16;

/// Fixed properties of an encoder.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    algorithm: CompressionAlgorithm,
    window: u8,
    /// Whether it is the fast one.
    fast: bool,
}

/// A DEFLATE encoder: the fast one of the first level, or the library's for the others.
enum DeflateState {
    Fast(Box<deflate::Encoder>),
    Levels(Compress),
}

thread_local! {
    static IDLE: RefCell<Vec<(Shape, DeflateState)>> = const { RefCell::new(Vec::new()) };
}

/// A DEFLATE encoder, which is reused for another message after it is dropped.
pub(super) struct Deflate {
    shape: Shape,
    /// `Some` until it is dropped.
    state: Option<DeflateState>,
}

impl Deflate {
    fn new(algorithm: CompressionAlgorithm, window: u8, level: u32) -> Self {
        let shape = Shape { algorithm, window, fast: level <= FAST_LEVEL };
        Self { shape, state: Self::idle(shape, level).or_else(|| Some(DeflateState::new(shape, level))) }
    }

    fn idle(shape: Shape, level: u32) -> Option<DeflateState> {
        IDLE.with_borrow_mut(|idle| {
            let place = idle.iter().position(|(other, _)| *other == shape)?;
            let mut state = idle.swap_remove(place).1;
            match &mut state {
                DeflateState::Fast(encoder) => encoder.reset(),
                DeflateState::Levels(encoder) => encoder.reset(),
            }
            state.set_level(level).then_some(state)
        })
    }
}

impl DeflateState {
    fn new(shape: Shape, level: u32) -> Self {
        let Shape { algorithm, window, fast } = shape;
        if fast {
            let format = match algorithm {
                CompressionAlgorithm::Gzip => deflate::Format::Gzip,
                CompressionAlgorithm::Deflate => deflate::Format::Zlib,
                _ => deflate::Format::Raw,
            };
            return Self::Fast(Box::new(deflate::Encoder::new(format, window)));
        }
        let level = Level::new(level);
        Self::Levels(match algorithm {
            CompressionAlgorithm::Gzip => Compress::new_gzip(level, window),
            CompressionAlgorithm::Deflate => Compress::new_with_window_bits(level, true, window),
            _ => Compress::new_with_window_bits(level, false, window),
        })
    }

    /// Changes the level. Returns false if the encoder does not support it.
    fn set_level(&mut self, level: u32) -> bool {
        match self {
            Self::Fast(encoder) => {
                encoder.set_compresses(level > 0);
                level <= FAST_LEVEL
            }
            // The library's level 1 makes pages a quarter larger than zlib's, its level 2 makes them smaller.
            Self::Levels(encoder) => encoder.set_level(Level::new(if level == 1 { 2 } else { level })).is_ok(),
        }
    }

    fn encode(&mut self, input: &[u8], output: &mut [u8], flush: Flush) -> Option<Progress> {
        match self {
            Self::Fast(encoder) => Some(encoder.encode(input, output, flush)),
            Self::Levels(encoder) => {
                let flush = match flush {
                    Flush::Later => FlushCompress::None,
                    Flush::Now => FlushCompress::Sync,
                    Flush::End => FlushCompress::Finish,
                };
                let before = (encoder.total_in(), encoder.total_out());
                let status = encoder.compress(input, output, flush).ok()?;
                let taken = usize::try_from(encoder.total_in() - before.0).ok()?;
                let made = usize::try_from(encoder.total_out() - before.1).ok()?;
                Some(Progress { taken, made, finished: status == Status::StreamEnd })
            }
        }
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        // A thread that ends keeps no encoders.
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() < MOST_IDLE {
                idle.push((self.shape, state));
            }
        });
    }
}

/// Returns the maximum memory of an encoder, in bytes.
pub(super) fn memory(algorithm: CompressionAlgorithm, limits: &GlobalCompression) -> u64 {
    match algorithm {
        CompressionAlgorithm::Brotli | CompressionAlgorithm::Zstd if limits.level < 5 => SMALL_STATE,
        CompressionAlgorithm::Brotli | CompressionAlgorithm::Zstd => LARGE_STATE,
        _ if limits.level <= FAST_LEVEL => deflate::MEMORY as u64,
        _ => (4 << limits.window) + DEFLATE_STATE,
    }
}

impl Encoder {
    /// Creates an encoder. `None`: the algorithm is `identity`, or there is no memory.
    pub(super) fn new(algorithm: CompressionAlgorithm, limits: &GlobalCompression) -> Option<Self> {
        let GlobalCompression { level, window, .. } = *limits;
        Some(match algorithm {
            CompressionAlgorithm::Identity => return None,
            CompressionAlgorithm::Gzip | CompressionAlgorithm::RawDeflate | CompressionAlgorithm::Deflate => {
                Self::Deflate(Deflate::new(algorithm, window, level))
            }
            CompressionAlgorithm::Brotli => {
                let mut state = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
                let set = state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level)
                    && state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, WINDOW);
                debug_assert!(set, "nothing was encoded yet");
                Self::Brotli(state)
            }
            CompressionAlgorithm::Zstd => {
                let mut state = CCtx::try_create()?;
                let level = i32::try_from(level).unwrap_or(1);
                state.set_parameter(CParameter::CompressionLevel(level)).ok()?;
                state.set_parameter(CParameter::WindowLog(WINDOW)).ok()?;
                Self::Zstd(state)
            }
        })
    }

    /// Changes the level between two pieces, if possible. Level 0 stores bytes uncompressed.
    pub(super) fn set_level(&mut self, level: u32) -> bool {
        match self {
            Self::Deflate(deflate) => deflate.state.as_mut().is_some_and(|state| state.set_level(level)),
            Self::Brotli(_) | Self::Zstd(_) => false,
        }
    }

    /// Encodes as much as the output has space for. `None`: it failed.
    pub(super) fn encode(&mut self, input: &[u8], output: &mut [u8], flush: Flush) -> Option<Progress> {
        match self {
            Self::Deflate(deflate) => deflate.state.as_mut()?.encode(input, output, flush),
            Self::Brotli(state) => {
                let operation = match flush {
                    Flush::Later => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
                    Flush::Now => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
                    Flush::End => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
                };
                let (mut left, mut room, mut taken, mut made) = (input.len(), output.len(), 0, 0);
                let done = state.compress_stream(
                    operation,
                    &mut left,
                    input,
                    &mut taken,
                    &mut room,
                    output,
                    &mut made,
                    &mut None,
                    &mut |_, _, _, _| (),
                );
                done.then(|| Progress { taken, made, finished: state.is_finished() })
            }
            Self::Zstd(state) => {
                let end = match flush {
                    Flush::Later => ZSTD_EndDirective::ZSTD_e_continue,
                    Flush::Now => ZSTD_EndDirective::ZSTD_e_flush,
                    Flush::End => ZSTD_EndDirective::ZSTD_e_end,
                };
                let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
                let left = state.compress_stream2(&mut to, &mut from, end).ok()?;
                Some(Progress { taken: from.pos(), made: to.pos(), finished: flush == Flush::End && left == 0 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a page, stopping after `pieces` pieces.
    fn encoded(encoder: &mut Encoder, text: &[u8], pieces: usize) -> Vec<u8> {
        let (mut out, mut room) = (Vec::new(), [0; 4096]);
        for (number, piece) in text.chunks(1000).take(pieces).enumerate() {
            let mut piece = piece;
            let flush = if number + 1 == text.chunks(1000).len() { Flush::End } else { Flush::Later };
            loop {
                let progress = encoder.encode(piece, &mut room, flush).unwrap();
                piece = &piece[progress.taken..];
                out.extend_from_slice(&room[..progress.made]);
                if piece.is_empty() && (flush == Flush::Later || progress.finished) {
                    break;
                }
            }
        }
        out
    }

    /// An encoder that was used before, for another text, at another level or not to its end, has the same output as a new one.
    #[test]
    fn an_encoder_that_is_used_again_is_as_a_fresh_one() {
        let text: Vec<u8> =
            (0..20_000_u32).flat_map(|number| format!("{} ", number * number % 977).into_bytes()).collect();
        let with = |level| GlobalCompression { rate: None, usage: 100, memory: 0, level, window: 15 };
        let algorithms = [CompressionAlgorithm::Gzip, CompressionAlgorithm::RawDeflate, CompressionAlgorithm::Deflate];
        for (algorithm, level) in algorithms.into_iter().flat_map(|algorithm| [(algorithm, 1), (algorithm, 4)]) {
            let limits = with(level);
            IDLE.with_borrow_mut(Vec::clear);
            let fresh = encoded(&mut Encoder::new(algorithm, &limits).unwrap(), &text, usize::MAX);
            assert_eq!(IDLE.with_borrow(Vec::len), 1);
            let mut used = Encoder::new(algorithm, &limits).unwrap();
            encoded(&mut used, &text[5000..], 20);
            used.set_level(level - 1);
            drop(used);
            let mut again = Encoder::new(algorithm, &limits).unwrap();
            assert_eq!(IDLE.with_borrow(Vec::len), 0);
            assert_eq!(encoded(&mut again, &text, usize::MAX), fresh, "{algorithm:?} {level}");
        }
        let limits = with(1);
        let many: Vec<_> = (0..2 * MOST_IDLE).map(|_| Encoder::new(CompressionAlgorithm::Gzip, &limits)).collect();
        drop(many);
        assert_eq!(IDLE.with_borrow(Vec::len), MOST_IDLE);
    }
}
