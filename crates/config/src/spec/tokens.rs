//! Algorithms of tokens that are permitted (configuration manual, section 3.1). Must never implement one.

/// Key management algorithms (RFC 7518, section 4.1).
pub const TOKEN_ALGORITHMS: &[&str] = &[
    "RSA1_5",
    "RSA-OAEP",
    "RSA-OAEP-256",
    "A128KW",
    "A192KW",
    "A256KW",
    "dir",
    "ECDH-ES",
    "ECDH-ES+A128KW",
    "ECDH-ES+A192KW",
    "ECDH-ES+A256KW",
    "A128GCMKW",
    "A192GCMKW",
    "A256GCMKW",
];

/// Content encryption algorithms (RFC 7518, section 5.1).
pub const TOKEN_ENCODINGS: &[&str] =
    &["A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512", "A128GCM", "A192GCM", "A256GCM"];

/// Permitted algorithms; `None`: not written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TokensSpec {
    /// `jwt.decrypt_alg_list`: a bit mask over [`TOKEN_ALGORITHMS`].
    pub algorithms: Option<u32>,
    /// `jwt.decrypt_enc_list`: a bit mask over [`TOKEN_ENCODINGS`].
    pub encodings: Option<u32>,
    /// `tune.jwt-none reject`, Weir's own: no variable may select the algorithm `none` of signed tokens.
    pub rejects_unsigned: bool,
}
