//! The trailers frame of gRPC-Web (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>). Must never look
//! into a message.

use crate::http::Fields;

/// The flag of a frame that contains trailers.
const TRAILERS: u8 = 0x80;

/// Encodes `trailers` as a frame: the flag, a length of four bytes, and a line for each field.
pub fn trailers_frame(trailers: &Fields) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in trailers.iter() {
        for part in [name, b": ", value, b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    let length = u32::try_from(lines.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[TRAILERS][..], &length, &lines].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_become_lines() {
        let mut fields = Fields::new();
        assert_eq!(trailers_frame(&fields), b"\x80\0\0\0\0");
        fields.append(b"grpc-status", b"0");
        fields.append(b"x", b"y");
        assert_eq!(trailers_frame(&fields), b"\x80\0\0\0\x16grpc-status: 0\r\nx: y\r\n");
    }
}
