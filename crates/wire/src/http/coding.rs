//! Parses Accept-Encoding (RFC 9110, sections 12.4.2 and 12.5.3). Must never know which codings are supported.

/// The weight of elements without `q`.
pub const FULL_WEIGHT: u16 = 1_000;

/// An element of Accept-Encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedCoding<'v> {
    /// The coding or `*`, in its original case.
    pub name: &'v [u8],
    /// Weight in thousandths, at most [`FULL_WEIGHT`]; 0 means not acceptable.
    pub weight: u16,
}

/// Returns the elements of a value in order, without empty ones. As in HAProxy, an invalid weight counts as none, and
/// other parameters are ignored.
pub fn accepted(value: &[u8]) -> impl Iterator<Item = AcceptedCoding<'_>> {
    value.split(|byte| *byte == b',').filter_map(|element| {
        let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let first = parts.next()?;
        let end = first.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(first.len());
        let name = &first[..end];
        let weight = parts.find_map(|part| match part {
            [b'q' | b'Q', b'=', value @ ..] => Some(weight(value)),
            _ => None,
        });
        (!name.is_empty()).then_some(AcceptedCoding { name, weight: weight.unwrap_or(FULL_WEIGHT) })
    })
}

/// Parses a weight, in thousandths; digits after the third decimal place are ignored.
fn weight(value: &[u8]) -> u16 {
    let mut digits = match value {
        [b'0'] => return 0,
        [b'0', b'.', digits @ ..] => digits,
        [b'0', ..] => return 0,
        _ => return FULL_WEIGHT,
    };
    let (mut weight, mut unit) = (0, 100);
    while let [digit @ b'0'..=b'9', rest @ ..] = digits {
        weight += u16::from(digit - b'0') * unit;
        (digits, unit) = (rest, unit / 10);
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from HAProxy 3.5, except for the case of `q`, on which RFC 9110 places no requirement.
    #[test]
    fn weights_are_read() {
        let rows: &[(&str, &[(&str, u16)])] = &[
            ("", &[]),
            (" , ,", &[]),
            ("gzip", &[("gzip", 1000)]),
            ("gzip, deflate", &[("gzip", 1000), ("deflate", 1000)]),
            ("gzip;q=0.5,*", &[("gzip", 500), ("*", 1000)]),
            ("gzip ; q=0.25 , br;q=0", &[("gzip", 250), ("br", 0)]),
            ("gzip;Q=0.1", &[("gzip", 100)]),
            ("gzip;x=1;q=0.5;q=0.9", &[("gzip", 500)]),
            ("gzip;foo;q=0.1", &[("gzip", 100)]),
            ("gzip;xq=0.1", &[("gzip", 1000)]),
            ("gzip q=0.1", &[("gzip", 1000)]),
            ("gzip;q =0.1", &[("gzip", 1000)]),
            (
                "gzip;q=,a;q=abc,b;q=-1,c;q=.5,d;q=\"0.1\"",
                &[("gzip", 1000), ("a", 1000), ("b", 1000), ("c", 1000), ("d", 1000)],
            ),
            ("a;q=1.1,b;q=2,c;q=1.0", &[("a", 1000), ("b", 1000), ("c", 1000)]),
            (
                "a;q=0.1234,b;q=0.001,c;q=0.0001,d;q=0.,e;q=0.5x",
                &[("a", 123), ("b", 1), ("c", 0), ("d", 0), ("e", 500)],
            ),
        ];
        for (value, expected) in rows {
            let found: Vec<_> =
                accepted(value.as_bytes()).map(|one| (String::from_utf8_lossy(one.name), one.weight)).collect();
            let found: Vec<_> = found.iter().map(|(name, weight)| (&**name, *weight)).collect();
            assert_eq!(found, *expected, "{value}");
        }
    }
}
