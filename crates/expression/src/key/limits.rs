//! The algorithms allowed in tokens (configuration manual, section 3.1: `jwt.decrypt_alg_list`,
//! `jwt.decrypt_enc_list`; Weir's own: `tune.jwt-none`). Must never decrypt or verify.

use config::spec::{TOKEN_ALGORITHMS, TOKEN_ENCODINGS, TokensSpec};

/// The algorithms that tokens may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenLimits {
    /// A bit per index in [`TOKEN_ALGORITHMS`].
    algorithms: u32,
    /// A bit per index in [`TOKEN_ENCODINGS`].
    encodings: u32,
    rejects_unsigned: bool,
}

impl TokenLimits {
    /// Everything but `RSA1_5`, which is the first (RFC 8725, section 3.2).
    pub const DEFAULT: Self = Self { algorithms: !1, encodings: !0, rejects_unsigned: false };

    /// The limits of the configuration.
    pub fn new(written: &TokensSpec) -> Self {
        Self {
            algorithms: written.algorithms.unwrap_or(Self::DEFAULT.algorithms),
            encodings: written.encodings.unwrap_or(Self::DEFAULT.encodings),
            rejects_unsigned: written.rejects_unsigned,
        }
    }

    /// Whether a variable must not select the algorithm `none` of signed tokens.
    pub fn rejects_unsigned(&self) -> bool {
        self.rejects_unsigned
    }

    /// Whether an encrypted token may have this `alg`.
    pub fn allows_algorithm(&self, name: &[u8]) -> bool {
        allows(self.algorithms, TOKEN_ALGORITHMS, name)
    }

    /// Whether an encrypted token may have this `enc`.
    pub fn allows_encoding(&self, name: &[u8]) -> bool {
        allows(self.encodings, TOKEN_ENCODINGS, name)
    }
}

fn allows(bits: u32, names: &[&str], name: &[u8]) -> bool {
    names.iter().position(|known| known.as_bytes() == name).is_some_and(|at| bits >> at & 1 == 1)
}
