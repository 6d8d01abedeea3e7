//! Keys of tokens: what PEM files (RFC 7468), certificates (RFC 5280) and JSON Web Keys (RFC 7517) hold, parsed once,
//! where the configuration is read or where a key is first seen. Must never open a file, and never tell a secret.

mod der;
mod limits;
mod private;
mod public;
mod ring;
mod tokens;

pub use limits::TokenLimits;
pub use private::{Curve, Padding, PrivateKey};
pub use public::{KeyError, PublicKey, Scheme};
pub use ring::Keys;
pub use tokens::{TokenCertificate, TokenCertificates, Unusable};
