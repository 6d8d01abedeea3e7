//! Fingerprints of ClientHellos: JA3 (its text; the caller computes the digest) and JA4 (of TLS over TCP). Must never
//! judge one.

use aws_lc_rs::digest::{SHA256, digest};
use wire::client_hello::{ClientHello, extension};

use crate::capture::is_grease;

/// Number of hexadecimal digits of a hash in JA4.
const KEPT: usize = 12;
/// The value in JA4 instead of the hash of an empty list.
const NOTHING: &str = "000000000000";

/// Returns two-byte values without GREASE (RFC 8701).
fn numbers(list: &[u8]) -> impl Iterator<Item = u16> {
    let pairs = list.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    pairs.filter(|pair| !is_grease(*pair)).map(u16::from_be_bytes)
}

fn extensions(hello: &ClientHello<'_>) -> Vec<u16> {
    hello.extension_types().filter(|kind| !is_grease(*kind)).map(u16::from_be_bytes).collect()
}

fn dashed(numbers: impl Iterator<Item = u16>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join("-")
}

/// Returns the text whose MD5 is JA3: version, cipher suites, extensions, groups, point formats, in decimal.
pub fn ja3(hello: &ClientHello<'_>) -> String {
    let groups = hello.numbers(extension::SUPPORTED_GROUPS).unwrap_or_default();
    let formats = hello.bytes(extension::EC_POINT_FORMATS).unwrap_or_default();
    format!(
        "{},{},{},{},{}",
        hello.version,
        dashed(numbers(hello.ciphers)),
        dashed(extensions(hello).into_iter()),
        dashed(numbers(groups)),
        dashed(formats.iter().map(|format| u16::from(*format))),
    )
}

/// Returns JA4: a summary of the ClientHello, the hash of its cipher suites, and that of its extensions and signature
/// algorithms.
pub fn ja4(hello: &ClientHello<'_>) -> String {
    let mut ciphers: Vec<u16> = numbers(hello.ciphers).collect();
    let all = extensions(hello);
    let newest = hello.bytes(extension::SUPPORTED_VERSIONS).and_then(|list| numbers(list).max());
    let version = match newest.unwrap_or(hello.version) {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        _ => "00",
    };
    let named = if all.contains(&extension::SERVER_NAME) { 'd' } else { 'i' };
    let begin = format!(
        "t{version}{named}{:02}{:02}{}",
        ciphers.len().min(99),
        all.len().min(99),
        ends_of(hello.protocols().next().unwrap_or_default())
    );
    ciphers.sort_unstable();
    let mut others: Vec<u16> =
        all.iter().copied().filter(|kind| ![extension::SERVER_NAME, extension::ALPN].contains(kind)).collect();
    others.sort_unstable();
    let algorithms = hello.numbers(extension::SIGNATURE_ALGORITHMS).unwrap_or_default();
    let algorithms: Vec<u16> = numbers(algorithms).collect();
    let last = match (all.is_empty(), algorithms.is_empty()) {
        (true, _) => NOTHING.to_owned(),
        (false, true) => hash(&hexadecimal(&others)),
        (false, false) => hash(&format!("{}_{}", hexadecimal(&others), hexadecimal(&algorithms))),
    };
    let first = if ciphers.is_empty() { NOTHING.to_owned() } else { hash(&hexadecimal(&ciphers)) };
    format!("{begin}_{first}_{last}")
}

/// Returns the first and the last character of a protocol's name; if one is not alphanumeric, the first and the last
/// digit of the name in hexadecimal.
fn ends_of(protocol: &[u8]) -> String {
    let (Some(first), Some(last)) = (protocol.first(), protocol.last()) else { return "00".to_owned() };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return format!("{}{}", char::from(*first), char::from(*last));
    }
    format!("{:x}{:x}", first >> 4, last & 0x0f)
}

fn hexadecimal(numbers: &[u16]) -> String {
    numbers.iter().map(|number| format!("{number:04x}")).collect::<Vec<_>>().join(",")
}

fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    base::hex::encode_lower(&digest.as_ref()[..KEPT / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::client_hello::Hello;

    /// Builds the ClientHello of a version with these cipher suites and extensions.
    fn message(version: u16, ciphers: &[u16], extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut body = version.to_be_bytes().to_vec();
        body.extend([7; 32]);
        body.push(0);
        body.extend((ciphers.len() as u16 * 2).to_be_bytes());
        body.extend(ciphers.iter().flat_map(|cipher| cipher.to_be_bytes()));
        body.extend([1, 0]);
        let mut list = Vec::new();
        for (kind, value) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend((value.len() as u16).to_be_bytes());
            list.extend(value);
        }
        body.extend((list.len() as u16).to_be_bytes());
        body.extend(list);
        let mut message = vec![1, 0];
        message.extend((body.len() as u16).to_be_bytes());
        message.extend(body);
        message
    }

    fn of<T>(message: &[u8], make: fn(&ClientHello<'_>) -> T) -> T {
        make(&Hello::of(message).and_then(|hello| hello.client()).unwrap())
    }

    fn pairs(numbers: &[u16], prefix: usize) -> Vec<u8> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        let length = (bytes.len() as u16).to_be_bytes();
        [&length[2 - prefix..], &bytes].concat()
    }

    /// The example of JA4's technical details: a browser's ClientHello.
    #[test]
    fn the_example_of_ja4() {
        let ciphers = [
            0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c,
            0x009d, 0x002f, 0x0035,
        ];
        let algorithms = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
        let mut extensions = vec![
            (0x1a1a, vec![]),
            (0x001b, vec![]),
            (0x0000, b"\0\x04\0\0\x01a".to_vec()),
            (0x0033, vec![]),
            (0x0010, b"\0\x0c\x02h2\x08http/1.1".to_vec()),
            (0x4469, vec![]),
            (0x0017, vec![]),
            (0x002d, vec![]),
            (0x000d, pairs(&algorithms, 2)),
            (0x0005, vec![]),
            (0x0023, vec![]),
            (0x0012, vec![]),
            (0x002b, pairs(&[0x3a3a, 0x0304, 0x0303], 1)),
            (0xff01, vec![]),
            (0x000b, b"\x01\0".to_vec()),
            (0x000a, pairs(&[0x4a4a, 0x001d, 0x0017, 0x0018], 2)),
            (0x0015, vec![]),
        ];
        let found = of(&message(0x0303, &ciphers, &extensions), ja4);
        assert_eq!(found, "t13d1516h2_8daaf6152771_e5627efa2ab1");
        // The order does not matter.
        extensions.reverse();
        assert_eq!(of(&message(0x0303, &ciphers, &extensions), ja4), found);
    }

    #[test]
    fn hellos_with_little_in_them() {
        let rows = [
            (0x0303, &[][..], vec![], "t12i000000_000000000000_000000000000"),
            (0x0301, &[0x002f], vec![], "t10i010000_"),
            // The only extension is ALPN, which is not hashed.
            (0x0300, &[], vec![(0x10, b"\0\x03\x02\xabx".to_vec())], "ts3i0001a8_000000000000_e3b0c44298fc"),
        ];
        for (version, ciphers, extensions, expected) in rows {
            let found = of(&message(version, ciphers, &extensions), ja4);
            assert!(found.starts_with(expected), "{found}");
        }
    }

    /// The example from the publication of JA3.
    #[test]
    fn ja3_is_a_text_of_numbers() {
        let extensions = [
            (0x0a0a, vec![]),
            (0x0000, b"\0\x04\0\0\x01a".to_vec()),
            (0x000a, pairs(&[0x0017, 0x0018, 0x0019], 2)),
            (0x000b, b"\x01\0".to_vec()),
        ];
        let found = of(&message(0x0301, &[0x1a1a, 47, 53, 5, 10], &extensions), ja3);
        assert_eq!(found, "769,47-53-5-10,0-10-11,23-24-25,0");
        assert_eq!(of(&message(0x0303, &[], &[]), ja3), "771,,,,");
    }
}
