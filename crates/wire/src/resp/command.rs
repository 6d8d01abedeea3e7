//! Encodes commands.

use std::io::Write as _;

/// Appends a command, as an array of bulk strings. An argument may contain any bytes.
pub fn push_command(arguments: &[&[u8]], out: &mut Vec<u8>) {
    push_length(b'*', arguments.len(), out);
    for argument in arguments {
        push_length(b'$', argument.len(), out);
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_length(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    // A vector accepts all bytes.
    let _ = write!(out, "{length}\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_bulk_strings() {
        let rows: [(&[&[u8]], &str); 4] = [
            (&[b"PING"], "*1\r\n$4\r\nPING\r\n"),
            (&[b"GET", b""], "*2\r\n$3\r\nGET\r\n$0\r\n\r\n"),
            (&[b"SET", b"a b", b"\r\n$9\r\n"], "*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$6\r\n\r\n$9\r\n\r\n"),
            (&[&[b'x'; 12]], "*1\r\n$12\r\nxxxxxxxxxxxx\r\n"),
        ];
        for (arguments, expected) in rows {
            let mut out = b"before".to_vec();
            push_command(arguments, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("before{expected}"));
        }
    }
}
