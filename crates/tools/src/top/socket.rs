//! Queries a process through its stats socket. Must never keep a connection open, and never read without a limit.

use crate::stats_socket::Socket;
use std::io::{Read, Write};
use std::time::Duration;

/// Read timeout of the output.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of the output, in bytes.
const LONGEST: u64 = 256 << 20;

/// Sends one line and reads the output to its end.
///
/// # Errors
/// The reason why there is no output.
pub fn ask(socket: &Socket, line: &str) -> Result<String, String> {
    let answer = || -> std::io::Result<Vec<u8>> {
        let mut stream = socket.connect(PATIENCE)?;
        stream.write_all(line.as_bytes())?;
        stream.write_all(b"\n")?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer)?;
        Ok(answer)
    };
    let bytes = answer().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
