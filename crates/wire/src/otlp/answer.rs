//! Parses the response of a collector: the number of rejected items (`ExportTraceServiceResponse` and its equivalents,
//! which have the same format). Must never trust a length.

/// The rejected part of an accepted request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialSuccess {
    /// The number of rejected items.
    pub rejected: u64,
    /// The collector's error message.
    pub message: String,
}

/// The value of a Protocol Buffers field.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

fn field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = varint(bytes)?;
    let field = match tag & 7 {
        0 => Field::Number(varint(bytes)?),
        1 => take(bytes, 8).map(|_| Field::Other)?,
        2 => {
            let length = varint(bytes)?;
            Field::Bytes(take(bytes, length)?)
        }
        5 => take(bytes, 4).map(|_| Field::Other)?,
        _ => return None,
    };
    Some((tag >> 3, field))
}

/// Parses the response to an accepted request. `None` if nothing was rejected or the response is malformed, which is
/// ignored.
pub fn partial_success(mut body: &[u8]) -> Option<PartialSuccess> {
    let mut found = PartialSuccess::default();
    while !body.is_empty() {
        let (1, Field::Bytes(mut inner)) = field(&mut body)? else { continue };
        while !inner.is_empty() {
            match field(&mut inner)? {
                (1, Field::Number(rejected)) => found.rejected = i64::try_from(rejected).map_or(0, i64::unsigned_abs),
                (2, Field::Bytes(text)) => found.message = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
    }
    (found != PartialSuccess::default()).then_some(found)
}
