//! TLS without I/O: handshakes by rustls, records by Weir itself with AWS-LC's ciphers, certificates and their
//! selection by name, and the settings of both sides. Must never open a file or a connection, nor read a clock except
//! the one that certificates are verified against.

pub mod account;
pub mod capture;
pub mod certificate;
mod chain;
pub mod client;
pub mod connection;
pub mod details;
mod distinguished_name;
pub mod early_data;
mod events;
pub mod failure;
pub mod faults;
pub mod fingerprint;
mod generated_certificate;
mod handshake;
pub mod handshake_info;
pub mod issue;
pub mod limits;
pub mod names;
pub mod ocsp;
pub mod openssl;
pub mod passphrase;
pub mod pem;
pub mod provider;
pub mod quic;
pub mod quic_hello;
pub mod record;
pub mod resumption;
pub mod revocation;
pub mod sealed;
pub mod server;
mod sessions;
pub mod signature;
pub mod suites;
pub mod ticket_keys;
pub mod timestamps;
pub mod trust;
pub mod verify;
pub mod x509;

pub use client::{Client, ServerIdentity, asked_name};
pub use connection::{Connection, HandshakeProgress, RecordContent};
pub use early_data::EarlyData;
pub use failure::Failure;
pub use handshake_info::HandshakeInfo;
pub use server::Server;
