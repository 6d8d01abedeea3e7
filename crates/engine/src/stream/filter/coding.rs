//! The encoders of content codings behind one call: DEFLATE in its three formats, Brotli (RFC 7932) and Zstandard (RFC 8878). Owns
//! what each holds between two calls, and how much that is at most. Must never know a message.

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use config::spec::CompressionAlgorithm;
use flate2::{Compress, Compression as Level, FlushCompress, Status};
use policy::program::GlobalCompression;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// Bytes of DEFLATE's state beside its window: the hash table and what waits to be written, at zlib's usual memory level.
const DEFLATE_STATE: u64 = 128 * 1024;

/// The history of Brotli and Zstandard, as a power of two: 256 kB.
const WINDOW: u32 = 18;

/// Bytes that Brotli and Zstandard hold at most: up to level 4, and above it.
const SMALL_STATE: u64 = 2 << 20;
const LARGE_STATE: u64 = 6 << 20;

/// What is to become of the bytes that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// More follow.
    Later,
    /// They can be decoded from what is written.
    Now,
    /// Nothing follows.
    End,
}

/// An encoder.
pub(super) enum Encoder {
    Deflate(Compress),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(CCtx<'static>),
}

/// What one call has done.
pub(super) struct Progress {
    pub(super) taken: usize,
    pub(super) made: usize,
    /// The last byte was written.
    pub(super) finished: bool,
}

/// What an encoder holds, bytes.
pub(super) fn memory(algorithm: CompressionAlgorithm, limits: &GlobalCompression) -> u64 {
    match algorithm {
        CompressionAlgorithm::Brotli | CompressionAlgorithm::Zstd if limits.level < 5 => SMALL_STATE,
        CompressionAlgorithm::Brotli | CompressionAlgorithm::Zstd => LARGE_STATE,
        _ => (4 << limits.window) + DEFLATE_STATE,
    }
}

/// The library's level for one of zlib's. Its own level 1 makes pages a quarter larger than zlib's does, its level 2 makes them
/// smaller, in less time than zlib takes.
fn deflate_level(level: u32) -> Level {
    Level::new(if level == 1 { 2 } else { level })
}

impl Encoder {
    /// For an algorithm. `None`: it changes nothing, or there is no memory.
    pub(super) fn new(algorithm: CompressionAlgorithm, limits: &GlobalCompression) -> Option<Self> {
        let GlobalCompression { level, window, .. } = *limits;
        let start = deflate_level(level);
        Some(match algorithm {
            CompressionAlgorithm::Identity => return None,
            CompressionAlgorithm::Gzip => Self::Deflate(Compress::new_gzip(start, window)),
            CompressionAlgorithm::RawDeflate => Self::Deflate(Compress::new_with_window_bits(start, false, window)),
            CompressionAlgorithm::Deflate => Self::Deflate(Compress::new_with_window_bits(start, true, window)),
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

    /// Changes the level, where that is possible between two pieces. Zero passes bytes on as they are.
    pub(super) fn set_level(&mut self, level: u32) -> bool {
        match self {
            Self::Deflate(deflate) => deflate.set_level(deflate_level(level)).is_ok(),
            Self::Brotli(_) | Self::Zstd(_) => false,
        }
    }

    /// Encodes as much as there is room for. `None`: it could not.
    pub(super) fn encode(&mut self, input: &[u8], output: &mut [u8], flush: Flush) -> Option<Progress> {
        match self {
            Self::Deflate(deflate) => {
                let flush = match flush {
                    Flush::Later => FlushCompress::None,
                    Flush::Now => FlushCompress::Sync,
                    Flush::End => FlushCompress::Finish,
                };
                let before = (deflate.total_in(), deflate.total_out());
                let status = deflate.compress(input, output, flush).ok()?;
                let taken = usize::try_from(deflate.total_in() - before.0).ok()?;
                let made = usize::try_from(deflate.total_out() - before.1).ok()?;
                Some(Progress { taken, made, finished: status == Status::StreamEnd })
            }
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
