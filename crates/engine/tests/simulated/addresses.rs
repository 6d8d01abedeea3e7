//! The addresses of the simulated network that tests share.

/// Where the proxy under test listens unless its test says otherwise.
pub const WEIR: &str = "10.0.0.1:80";
/// Servers.
pub const S1: &str = "10.0.1.1:80";
pub const S2: &str = "10.0.1.2:80";
/// The log server.
pub const LOG: &str = "10.0.0.9:514";
