//! Resolves the framing and connection fields of a received message once: repeated, contradictory and
//! connection-specific fields are rejected, merged or removed, so that nothing ambiguous is forwarded.

use super::charset::trim;
use super::error::Violation;
use crate::digits::write_decimal;
use crate::http::fields::Field;
use crate::http::{ConnectionOptions, Fields, Name};

/// Maximum number of options in Connection: each costs a search through the fields.
const MOST_OPTIONS: usize = 64;

/// The value of Transfer-Encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Absent,
    Chunked,
    /// A list without elements; only where that is accepted.
    Empty,
}

/// Splits the value of a list field into its elements (RFC 9110 section 5.6.1), trimmed; includes empty ones.
pub(super) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim)
}

/// Parses Content-Length; leaves one field of that name in canonical form. Several equal ones are merged.
pub(crate) fn content_length(fields: &mut Fields) -> Result<Option<u64>, Violation> {
    if !fields.names.has(Name::ContentLength) {
        return Ok(None);
    }
    if fields.names.are_distinct()
        && let Some(value) = fields.known(Name::ContentLength)
        && matches!(value, [b'0'] | [b'1'..=b'9', ..])
        && let Some(number) = decimal(value)
    {
        return Ok(Some(number));
    }
    repeated_content_length(fields)
}

/// Parses several Content-Length fields, or one that is not in canonical form.
#[cold]
fn repeated_content_length(fields: &mut Fields) -> Result<Option<u64>, Violation> {
    let mut length = None;
    let mut first = None;
    for (index, field) in fields.list.iter().enumerate().filter(|(_, field)| field.name == Name::ContentLength) {
        for element in elements(fields.value_of(field)) {
            let number = decimal(element).ok_or(Violation::ContentLength)?;
            if length.is_some_and(|other| other != number) {
                return Err(Violation::ContentLength);
            }
            length = Some(number);
        }
        first = first.or(Some(index));
    }
    let (Some(number), Some(first)) = (length, first) else { return Ok(None) };
    let mut room = [0; 20];
    fields.set_value(first, write_decimal(number, &mut room));
    keep_only(fields, Name::ContentLength, first);
    Ok(Some(number))
}

/// Parses Transfer-Encoding; leaves one field of that name with the value `chunked`. `lenient` accepts empty values and
/// repetitions of `chunked`, as with `option accept-unsafe-violations-in-http-response`.
pub(super) fn transfer_encoding(fields: &mut Fields, lenient: bool) -> Result<Coding, Violation> {
    if !fields.names.has(Name::TransferEncoding) {
        return Ok(Coding::Absent);
    }
    let mut chunked = false;
    let mut other = false;
    let mut first = None;
    for (index, field) in fields.list.iter().enumerate().filter(|(_, field)| field.name == Name::TransferEncoding) {
        first = first.or(Some(index));
        for element in elements(fields.value_of(field)) {
            match element {
                [] if lenient => {}
                _ if element.eq_ignore_ascii_case(b"chunked") && (!chunked || lenient) => chunked = true,
                [] => return Err(Violation::TransferEncoding),
                // `chunked` must be the last coding.
                _ if chunked => return Err(Violation::TransferEncoding),
                _ => other = true,
            }
        }
    }
    let Some(first) = first else { return Ok(Coding::Absent) };
    match (chunked, other) {
        (true, false) => {
            if fields.value_of(&fields.list[first]) != b"chunked" {
                fields.set_value(first, b"chunked");
            }
            keep_only(fields, Name::TransferEncoding, first);
            Ok(Coding::Chunked)
        }
        (true, true) => Err(Violation::TransferCoding),
        (false, true) => Err(Violation::TransferEncoding),
        (false, false) => {
            let says_something = |field: &Field| field.name == Name::TransferEncoding && field.value < field.end;
            // A list without elements is present; an empty value counts as absent.
            let coding = if fields.list.iter().any(says_something) { Coding::Empty } else { Coding::Absent };
            fields.remove_known(Name::TransferEncoding);
            Ok(coding)
        }
    }
}

/// Parses Connection, and resolves it together with the hop-by-hop fields: nominated fields, Keep-Alive,
/// Proxy-Connection and TE (except `trailers`) are removed; Upgrade is kept if Connection names it, without `h2c`.
/// Returns the options and whether an upgrade is left.
pub(super) fn connection(
    fields: &mut Fields,
    is_request: bool,
    keep_proxy_connection: bool,
) -> Result<(ConnectionOptions, bool), Violation> {
    if let Some(options) = single_option(fields) {
        return Ok((options, false));
    }
    fields.remove_known(Name::KeepAlive);
    if !keep_proxy_connection {
        fields.remove_known(Name::ProxyConnection);
    }
    let te = te(fields);
    let mut options = ConnectionOptions::default();
    if fields.names.has(Name::Connection) {
        options = read_options(fields)?;
    }
    if is_request && !options.upgrade {
        fields.remove_known(Name::Upgrade);
    }
    let protocols = upgrade(fields);
    if fields.names.has(Name::Connection) {
        rebuild_connection(fields, options.upgrade && protocols, te);
    }
    Ok((options, options.upgrade && protocols))
}

/// Fast path: one Connection field with `close` or `keep-alive`, or none, and no related field.
fn single_option(fields: &mut Fields) -> Option<ConnectionOptions> {
    let names = fields.names;
    if [Name::Te, Name::Upgrade, Name::KeepAlive, Name::ProxyConnection].into_iter().any(|name| names.has(name)) {
        return None;
    }
    if !names.has(Name::Connection) {
        return Some(ConnectionOptions::default());
    }
    let mut found = fields.list.iter().enumerate().filter(|(_, field)| field.name == Name::Connection);
    let (index, field) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let value = fields.value_of(field);
    let close = value.eq_ignore_ascii_case(b"close");
    // The usual spelling; comparing words is cheaper.
    if !close && value != b"keep-alive" && !value.eq_ignore_ascii_case(b"keep-alive") {
        return None;
    }
    fields.list.remove(index);
    Some(ConnectionOptions { close, keep_alive: !close, upgrade: false })
}

/// Parses the options and removes the fields that they nominate.
fn read_options(fields: &mut Fields) -> Result<ConnectionOptions, Violation> {
    let mut options = ConnectionOptions::default();
    let mut nominated: Vec<Vec<u8>> = Vec::new();
    for field in fields.list.iter().filter(|field| field.name == Name::Connection) {
        for element in elements(fields.value_of(field)) {
            if element.eq_ignore_ascii_case(b"close") {
                options.close = true;
            } else if element.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
            } else if element.eq_ignore_ascii_case(b"upgrade") {
                options.upgrade = true;
            } else if !element.is_empty() {
                if nominated.len() == MOST_OPTIONS {
                    return Err(Violation::ConnectionOptions);
                }
                nominated.push(element.to_ascii_lowercase());
            }
        }
    }
    for name in nominated {
        // Fields for framing and routing are never connection options (RFC 9110 section 7.6.1), even if Connection
        // names them.
        let protected = matches!(
            Name::from_token(&name),
            Name::Host | Name::ContentLength | Name::TransferEncoding | Name::Te | Name::Connection | Name::Upgrade
        );
        if !protected {
            fields.remove_all(&name);
        }
    }
    Ok(options)
}

/// Reduces TE to `trailers`, or removes it; returns whether it is kept.
fn te(fields: &mut Fields) -> bool {
    if !fields.names.has(Name::Te) {
        return false;
    }
    let says_trailers = |value: &[u8]| elements(value).any(|element| element.eq_ignore_ascii_case(b"trailers"));
    let Some(first) = fields.list.iter().position(|field| field.name == Name::Te) else { return false };
    let keep = fields.list.iter().any(|field| field.name == Name::Te && says_trailers(fields.value_of(field)));
    if keep {
        if fields.value_of(&fields.list[first]) != b"trailers" {
            fields.set_value(first, b"trailers");
        }
        keep_only(fields, Name::Te, first);
    } else {
        fields.remove_known(Name::Te);
    }
    keep
}

/// Removes HTTP/2 from Upgrade: such a tunnel would carry requests past every rule. Returns whether a protocol is left.
fn upgrade(fields: &mut Fields) -> bool {
    if !fields.names.has(Name::Upgrade) {
        return false;
    }
    let is_http2 = |element: &[u8]| element.eq_ignore_ascii_case(b"h2c") || element.eq_ignore_ascii_case(b"h2");
    let mut index = 0;
    let mut any = false;
    while let Some(field) = fields.list.get(index) {
        if field.name != Name::Upgrade {
            index += 1;
            continue;
        }
        let value = fields.value_of(field);
        if elements(value).any(is_http2) || value.is_empty() {
            let left = join(elements(value).filter(|element| !is_http2(element)));
            if left.iter().all(|byte| *byte == b',') {
                fields.list.remove(index);
                continue;
            }
            fields.set_value(index, &left);
        }
        any = true;
        index += 1;
    }
    any
}

/// Reduces Connection to one field with `upgrade` and `te` in their original spelling, at the position of the first
/// one, or removes it.
fn rebuild_connection(fields: &mut Fields, upgrade: bool, te: bool) {
    let mut left: Vec<&[u8]> = Vec::new();
    if upgrade || te {
        for field in fields.list.iter().filter(|field| field.name == Name::Connection) {
            for element in elements(fields.value_of(field)) {
                let kept = (upgrade && element.eq_ignore_ascii_case(b"upgrade"))
                    || (te && element.eq_ignore_ascii_case(b"te"));
                if kept && !left.iter().any(|other| other.eq_ignore_ascii_case(element)) {
                    left.push(element);
                }
            }
        }
    }
    let first = fields.list.iter().position(|field| field.name == Name::Connection);
    let (Some(first), false) = (first, left.is_empty()) else {
        fields.remove_known(Name::Connection);
        return;
    };
    let value = join(left.into_iter());
    if fields.value_of(&fields.list[first]) != value {
        fields.set_value(first, &value);
    }
    keep_only(fields, Name::Connection, first);
}

/// Removes the fields of a name except the one at `index`.
pub(super) fn keep_only(fields: &mut Fields, name: Name, index: usize) {
    let mut at = 0;
    fields.list.retain(|field| {
        let keep = field.name != name || at == index;
        at += 1;
        keep
    });
}

fn join<'a>(elements: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for (index, element) in elements.enumerate() {
        if index > 0 {
            joined.push(b',');
        }
        joined.extend_from_slice(element);
    }
    joined
}

/// Parses a decimal number of at least one digit; `None` also if it needs more than 64 bits.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| Some(u64::from(*byte).wrapping_sub(u64::from(b'0'))).filter(|digit| *digit < 10);
    // Nineteen digits always fit into 64 bits.
    let (short, long) = text.split_at_checked(19).unwrap_or((text, &[]));
    let mut number = short.first().and_then(digit)?;
    for byte in &short[1..] {
        number = number * 10 + digit(byte)?;
    }
    long.iter().try_fold(number, |number, byte| number.checked_mul(10)?.checked_add(digit(byte)?))
}
