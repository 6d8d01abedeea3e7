//! Queries a process through its stats socket. Must never keep a connection open, and never read without a limit.

use super::options::Socket;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Read timeout of the output.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of the output, in bytes.
const LONGEST: u64 = 256 << 20;

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

fn connect(socket: &Socket) -> std::io::Result<Box<dyn Stream>> {
    match socket {
        Socket::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(Box::new(stream))
        }
        Socket::Tcp(address) => {
            let mut last = std::io::ErrorKind::AddrNotAvailable.into();
            for address in address.to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, PATIENCE) {
                    Ok(stream) => {
                        stream.set_read_timeout(Some(PATIENCE))?;
                        stream.set_write_timeout(Some(PATIENCE))?;
                        return Ok(Box::new(stream));
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

/// Sends one line and reads the output to its end.
///
/// # Errors
/// The reason why there is no output.
pub fn ask(socket: &Socket, line: &str) -> Result<String, String> {
    let answer = || -> std::io::Result<Vec<u8>> {
        let mut stream = connect(socket)?;
        stream.write_all(line.as_bytes())?;
        stream.write_all(b"\n")?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer)?;
        Ok(answer)
    };
    let bytes = answer().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
