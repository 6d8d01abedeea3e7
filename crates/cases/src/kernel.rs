//! What the kernel tells of a connection's far end: whether the subject has accepted it and read all that was sent.
//!
//! So a script can wait until bytes have reached the subject without asking the subject, and without sleeping. TCP only.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use crate::failure::Result;

/// Has the owner of `far` (our peer's end) accepted the connection from `near` and read everything?
pub(crate) fn has_read_all(near: SocketAddr, far: SocketAddr) -> Result<bool> {
    let table = if far.is_ipv4() { "/proc/self/net/tcp" } else { "/proc/self/net/tcp6" };
    let text = fs::read_to_string(table)?;
    let (local, remote) = (hexadecimal(far), hexadecimal(near));
    Ok(text.lines().skip(1).any(|line| is_drained(line, &local, &remote)))
}

/// One row: `sl local remote state tx:rx timer retransmits uid timeout inode …`
fn is_drained(row: &str, local: &str, remote: &str) -> bool {
    let columns: Vec<&str> = row.split_whitespace().collect();
    let [_, row_local, row_remote, _, queues, _, _, _, _, inode, ..] = columns.as_slice() else { return false };
    let unread = queues.split_once(':').map(|(_, receive)| receive);
    *row_local == local && *row_remote == remote && unread == Some("00000000") && *inode != "0"
}

/// The kernel's spelling: each 32-bit word of the address in host order, then the port.
fn hexadecimal(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut text = String::new();
    for word in octets.chunks_exact(4) {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        text.push_str(&format!("{word:08X}"));
    }
    format!("{text}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn unread_bytes_and_unaccepted_connections_show() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, far) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert!(!has_read_all(near, far).unwrap(), "not accepted yet");
            let (mut accepted, _) = listener.accept().unwrap();
            client.write_all(b"abc").unwrap();
            accepted.read_exact(&mut [0; 2]).unwrap();
            assert!(!has_read_all(near, far).unwrap(), "one byte is left");
            accepted.read_exact(&mut [0; 1]).unwrap();
            assert!(has_read_all(near, far).unwrap());
        }
    }
}
