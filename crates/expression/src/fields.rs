//! Iterates over the values of header fields: whole fields, or comma-separated parts (section 7.3.6). Must never depend
//! on which message they belong to.

use wire::http::Head;

/// Passes the comma-separated values of the fields with that lower-case name, or of all fields without a name; commas
/// within quotes do not separate. Stops when `take` returns true.
pub fn each_value<'a>(head: &'a Head, name: Option<&[u8]>, take: &mut dyn FnMut(&'a [u8]) -> bool) -> bool {
    each_field(head, name, &mut |value| {
        let mut rest = value;
        loop {
            let end = comma(rest).unwrap_or(rest.len());
            if take(rest[..end].trim_ascii()) {
                return true;
            }
            match rest.get(end + 1..) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
    })
}

/// Passes the values of the fields with that lower-case name, or of all fields without a name, trimmed of blanks, which
/// a rule may have written.
pub fn each_field<'a>(head: &'a Head, name: Option<&[u8]>, take: &mut dyn FnMut(&'a [u8]) -> bool) -> bool {
    head.fields().any(|(found, value)| name.is_none_or(|name| name == found) && take(value.trim_ascii()))
}

/// Returns the position of the next comma outside quotes.
pub fn comma(value: &[u8]) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    value.iter().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return true,
            _ => {}
        }
        false
    })
}

/// Returns the nth value that `each` passes: from 1 at the front, from -1 at the end; 0 is the last one.
pub fn occurrence<'a>(wanted: i64, each: impl Fn(&mut dyn FnMut(&'a [u8]) -> bool) -> bool) -> Option<&'a [u8]> {
    let mut found = None;
    if wanted > 0 {
        let mut left = wanted;
        each(&mut |value| {
            left -= 1;
            found = (left == 0).then_some(value);
            left == 0
        });
        return found;
    }
    let mut count = 0;
    if wanted < -1 {
        each(&mut |_| {
            count += 1;
            false
        });
    }
    // The position from the front; without a count the last value wins.
    let mut left = if wanted < -1 { count + wanted + 1 } else { i64::MAX };
    if left <= 0 {
        return None;
    }
    each(&mut |value| {
        left -= 1;
        found = Some(value);
        left == 0
    });
    found
}
