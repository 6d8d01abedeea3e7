//! Functions that the compiler asks the system by. Must never call one.

use std::net::IpAddr;

/// Reads a file by name.
pub type ReadFile = fn(&str) -> std::io::Result<Vec<u8>>;

/// Lists the files in a directory; `None` if there is no such directory.
pub type ReadFolder = fn(&str) -> Option<Vec<String>>;

/// Resolves the address of a host.
pub type FindHost = fn(&str) -> Option<IpAddr>;
