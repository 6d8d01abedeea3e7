//! The cookie in the first packet of the Remote Desktop Protocol: a TPKT header (RFC 1006), an X.224 connection
//! request, then `Cookie: name=value` and a line end. Parses the bytes present; must never wait for more, nor look
//! beyond the packet.

/// The TPKT header's version.
const TPKT_VERSION: u8 = 3;

/// X.224 "connection request", in the upper half of its octet.
const CONNECTION_REQUEST: u8 = 0xe0;

/// Length of TPKT header, length indicator, code, two references and class, in bytes.
const HEADER: usize = 11;

/// Whether the packet at the start of `data` is incomplete. False also for other protocols.
pub fn is_incomplete(data: &[u8]) -> bool {
    match data.get(..4) {
        Some(header) => {
            header[0] == TPKT_VERSION && data.len() < usize::from(u16::from_be_bytes([header[2], header[3]]))
        }
        None => data.first().is_none_or(|first| *first == TPKT_VERSION),
    }
}

/// Returns the value of the cookie `name` in `packet`, if it is complete; with an empty `name`, that of the first
/// cookie. Names are compared without case.
pub fn cookie<'a>(packet: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (header, _) = packet.split_at_checked(HEADER)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let indicator = usize::from(header[4]);
    let is_request = header[0] == TPKT_VERSION && header[5] & 0xf0 == CONNECTION_REQUEST;
    // The indicator is the length of the rest of the packet after it.
    if !is_request || indicator + 5 != length || length < HEADER {
        return None;
    }
    let data = packet.get(HEADER..length.min(packet.len()))?;
    let label = data.get(..8)?;
    if !label.eq_ignore_ascii_case(b"Cookie: ") {
        return None;
    }
    let line = &data[8..];
    let end = line.windows(2).position(|two| two == b"\r\n")?;
    let equals = line[..end].iter().position(|byte| *byte == b'=')?;
    (name.is_empty() || line[..equals].eq_ignore_ascii_case(name)).then(|| &line[equals + 1..end])
}

#[cfg(test)]
mod tests {
    use super::cookie;

    fn packet(data: &[u8]) -> Vec<u8> {
        let length = (11 + data.len()) as u16;
        let mut packet = vec![3, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([length as u8 - 5, 0xe0, 0, 0, 0, 0, 0]);
        packet.extend(data);
        packet
    }

    #[test]
    fn finds_the_cookie_and_nothing_else() {
        let rows: &[(&[u8], &str, Option<&str>)] = &[
            (b"Cookie: mstshash=user\r\n", "mstshash", Some("user")),
            (b"Cookie: MSTShash=user\r\n\x01\x00\x08\x00\x03\x00\x00\x00", "mstshash", Some("user")),
            (b"cookie: msts=1.2.3\r\n", "msts", Some("1.2.3")),
            (b"Cookie: mstshash=\r\n", "mstshash", Some("")),
            (b"Cookie: mstshash=a=b\r\n", "mstshash", Some("a=b")),
            (b"Cookie: mstshash=user\r\n", "msts", None),
            (b"Cookie: mstshash=user", "mstshash", None),
            (b"Cookie: mstshash\r\nx=y\r\n", "mstshash", None),
            (b"Kookie: mstshash=user\r\n", "mstshash", None),
            (b"", "mstshash", None),
        ];
        for (data, name, expected) in rows {
            let packet = packet(data);
            let found = cookie(&packet, name.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{}", data.escape_ascii());
        }
    }

    #[test]
    fn a_packet_cut_anywhere_or_damaged_is_no_cookie_and_no_panic() {
        let whole = packet(b"Cookie: mstshash=user\r\n");
        for length in 0..whole.len() {
            assert_eq!(cookie(&whole[..length], b"mstshash"), None, "{length}");
        }
        for place in [0, 2, 3, 4, 5] {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x81;
            assert_eq!(cookie(&damaged, b"mstshash"), None, "{place}");
        }
    }
}
