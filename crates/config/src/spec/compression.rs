//! HTTP compression (configuration manual, sections 3.2, 4 and 9.2): its conditions and parameters. Must never
//! compress.

/// A content coding that the proxy applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompressionAlgorithm {
    Identity,
    Deflate,
    RawDeflate,
    Gzip,
    /// Weir only.
    Brotli,
    /// Weir only.
    Zstd,
}

impl CompressionAlgorithm {
    /// Every algorithm, in the order in which `-vv` lists them.
    pub const ALL: [Self; 6] = [Self::Identity, Self::Deflate, Self::RawDeflate, Self::Gzip, Self::Brotli, Self::Zstd];

    /// Returns the name in the configuration, in `res.comp_algo` and in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Deflate => "deflate",
            Self::RawDeflate => "raw-deflate",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the content coding in messages (RFC 9110, section 8.4.1).
    pub const fn coding(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Deflate | Self::RawDeflate => "deflate",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the algorithm of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// `compression direction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressionDirection {
    Request,
    #[default]
    Response,
    Both,
}

/// The `compression` lines of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompressionSpec {
    /// A `compression` line was written, here or in `defaults`.
    pub written: bool,
    /// `algo` and `algo-res`, as written.
    pub algorithms: Vec<CompressionAlgorithm>,
    /// `algo-req`.
    pub request_algorithm: Option<CompressionAlgorithm>,
    /// `type` and `type-res`: prefixes of media types; empty: all.
    pub types: Vec<String>,
    /// `type-req`, likewise.
    pub request_types: Vec<String>,
    /// `minsize-res`, bytes.
    pub least: u64,
    /// `minsize-req`, bytes.
    pub request_least: u64,
    /// `offload`.
    pub offload: bool,
    /// `direction`.
    pub direction: CompressionDirection,
}

/// Process-wide limits of compression. `None`: not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalCompressionSpec {
    /// `maxcomprate`, kilobytes a second.
    pub rate: Option<u32>,
    /// `maxcompcpuusage`, percent.
    pub usage: Option<u32>,
    /// `maxzlibmem`, megabytes.
    pub memory: Option<u32>,
    /// `tune.comp.maxlevel`; default 1.
    pub level: Option<u32>,
    /// `tune.zlib.windowsize`, the base-two logarithm of bytes; default 15.
    pub window: Option<u32>,
}
