//! Field lines, of heads and trailers alike: from bytes to canonical lines in a [`Fields`].
//!
//! A line is taken whole or not at all, so that a head that comes in pieces is resumed at the line it stopped in. What
//! the fields mean is not judged here.

use super::charset::{copy_name, copy_value, is_blank};
use super::error::{Broken, Violation};
use crate::http::fields::Field;
use crate::http::{Fields, Name};

/// The longest name of a field; HAProxy's limit too.
const LONGEST_NAME: usize = 255;

/// What lines may be like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Lines allowed, a start line included.
    pub(super) most: usize,
    /// Names with invalid characters drop their field instead of refusing the message; NUL may stand in values.
    pub(super) accept_unsafe: bool,
}

/// How far the lines got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// The line that starts there is not complete.
    Partial { line: usize },
    /// The empty line was seen.
    End { behind: usize },
}

/// Makes room for the canonical form of what is left of `input`: each line grows by up to two bytes, a name by none.
pub(super) fn reserve(input: &[u8], at: usize, most: usize, fields: &mut Fields) -> Result<(), Broken> {
    fields.reserve((input.len() - at) + 2 * most.min(input.len() - at) + LONGEST_NAME + 64);
    if fields.overflowed() { Broken::at(Violation::HeadTooLarge, at) } else { Ok(()) }
}

/// Parses lines from `at`, where one starts, up to the empty one. Room must have been reserved. `dropped` tells from
/// call to call whether the last line was left out, so that its continuation is too.
pub(super) fn parse_lines(
    input: &[u8],
    mut at: usize,
    rules: &Rules,
    dropped: &mut bool,
    fields: &mut Fields,
) -> Result<Lines, Broken> {
    loop {
        let line = at;
        let next = match input.get(at) {
            None => None,
            Some(b'\n') => return Ok(Lines::End { behind: at + 1 }),
            Some(b'\r') => match input.get(at + 1) {
                None => None,
                Some(b'\n') => return Ok(Lines::End { behind: at + 2 }),
                Some(_) => return Broken::at(Violation::BareCr, at),
            },
            Some(b' ' | b'\t') => continue_line(input, at, rules, *dropped, fields)?,
            Some(_) => parse_line(input, at, rules, dropped, fields)?,
        };
        match next {
            Some(next) => at = next,
            None => return Ok(Lines::Partial { line }),
        }
    }
}

/// One field's line. `None`: it is not complete, and nothing has changed.
#[inline]
fn parse_line(
    input: &[u8],
    at: usize,
    rules: &Rules,
    dropped: &mut bool,
    fields: &mut Fields,
) -> Result<Option<usize>, Broken> {
    let start = fields.used();
    let longest = (at + LONGEST_NAME + 1).min(input.len());
    let length = copy_name(&input[at..longest], fields.room());
    let colon = at + length;
    match input.get(colon) {
        Some(b':') if length > 0 && length <= LONGEST_NAME => {}
        Some(b':') if length == 0 => return Broken::at(Violation::EmptyName, at),
        _ if length > LONGEST_NAME => return Broken::at(Violation::NameLength, at),
        None => return Ok(None),
        Some(b'\r' | b'\n') => return Broken::at(Violation::NoColon, colon),
        Some(_) if rules.accept_unsafe => return drop_line(input, at, rules, dropped, fields),
        Some(_) => return Broken::at(Violation::NameCharacter, colon),
    }
    if fields.list.len() + 2 > rules.most {
        return Broken::at(Violation::TooManyFields, at);
    }
    let name = Name::from_lower(&fields.room()[..length]);
    fields.advance(length);
    fields.write_raw(b": ");
    let value = fields.used();
    let Some(next) = copy_rest(input, skip_blanks(input, colon + 1), rules, fields)? else {
        fields.rewind(start);
        return Ok(None);
    };
    end_line(value, fields);
    let end = fields.used() - 2;
    fields.list.push(Field { start: start as u32, value: value as u32, end: end as u32, name });
    fields.names.add(name);
    *dropped = false;
    Ok(Some(next))
}

/// A line that starts with a space continues the one before it (obs-fold, RFC 9112 section 5.2): its line end becomes
/// spaces, as HAProxy does it.
fn continue_line(
    input: &[u8],
    at: usize,
    rules: &Rules,
    dropped: bool,
    fields: &mut Fields,
) -> Result<Option<usize>, Broken> {
    if dropped {
        let used = fields.used();
        let next = copy_rest(input, at, rules, fields);
        fields.rewind(used);
        return next;
    }
    let Some(last) = fields.list.last().copied() else { return Broken::at(Violation::LeadingSpace, at) };
    fields.rewind(last.end as usize);
    let from = if last.value == last.end {
        skip_blanks(input, at)
    } else {
        let line_end = at.saturating_sub(if input[..at].ends_with(b"\r\n") { 2 } else { 1 });
        let blanks = input[..line_end].iter().rev().take_while(|byte| is_blank(**byte)).count();
        fields.write_raw(&input[line_end - blanks..line_end]);
        fields.write_raw(if at - line_end == 2 { b"  " } else { b" " });
        at
    };
    let next = copy_rest(input, from, rules, fields);
    if !matches!(next, Ok(Some(_))) {
        fields.rewind(last.end as usize);
        fields.write_raw(b"\r\n");
        return next;
    }
    end_line(last.value as usize, fields);
    let end = fields.used() as u32 - 2;
    if let Some(last) = fields.list.last_mut() {
        last.end = end;
    }
    next
}

/// A line whose name is invalid, where that is accepted: it is checked and left out.
fn drop_line(
    input: &[u8],
    at: usize,
    rules: &Rules,
    dropped: &mut bool,
    fields: &mut Fields,
) -> Result<Option<usize>, Broken> {
    let Some(length) = memchr::memchr(b'\n', &input[at..]) else { return Ok(None) };
    let Some(colon) = memchr::memchr(b':', &input[at..at + length]) else {
        return Broken::at(Violation::NoColon, at + length);
    };
    let used = fields.used();
    let next = copy_rest(input, at + colon + 1, rules, fields);
    fields.rewind(used);
    *dropped = true;
    next
}

/// Copies a line from `at` up to its end. `None`: the end has not come.
#[inline]
fn copy_rest(input: &[u8], mut at: usize, rules: &Rules, fields: &mut Fields) -> Result<Option<usize>, Broken> {
    loop {
        let count = copy_value(&input[at..], fields.room());
        fields.advance(count);
        at += count;
        match input.get(at) {
            None => return Ok(None),
            Some(b'\r') => {
                return match input.get(at + 1) {
                    Some(b'\n') => Ok(Some(at + 2)),
                    None => Ok(None),
                    Some(_) => Broken::at(Violation::BareCr, at),
                };
            }
            Some(b'\n') => return Ok(Some(at + 1)),
            Some(0) if !rules.accept_unsafe => return Broken::at(Violation::ValueCharacter, at),
            Some(byte) => {
                fields.write_raw(&[*byte]);
                at += 1;
            }
        }
    }
}

#[inline]
fn skip_blanks(input: &[u8], mut at: usize) -> usize {
    while input.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

/// Trims the value that starts at `value` and ends its line.
#[inline]
fn end_line(value: usize, fields: &mut Fields) {
    fields.trim_end(value);
    fields.write_raw(b"\r\n");
}
