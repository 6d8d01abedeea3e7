//! The addresses of the simulated network that tests share.

/// The address of the proxy under test, unless its test sets another one.
pub const WEIR: &str = "10.0.0.1:80";
/// Addresses of the servers.
pub const S1: &str = "10.0.1.1:80";
pub const S2: &str = "10.0.1.2:80";
/// The address of the log server.
pub const LOG: &str = "10.0.0.9:514";
