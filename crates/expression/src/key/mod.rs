//! Keys of tokens: the contents of PEM files (RFC 7468), certificates (RFC 5280) and JSON Web Keys (RFC 7517), parsed
//! once, when the configuration is parsed or a key is first used. Must never open a file, and never reveal a secret.

mod decryption;
mod der;
mod limits;
mod public;
mod ring;
mod tokens;

pub use decryption::{Curve, Padding, PrivateKey};
pub use limits::TokenLimits;
pub use public::{KeyError, PublicKey, Scheme};
pub use ring::Keys;
pub use tokens::{TokenCertificate, TokenCertificates, Unusable};
