//! Parses field lines of heads and trailers into the canonical lines of [`Fields`].
//!
//! A line is consumed completely or not at all, so that a fragmented head is resumed at the line where it stopped. The
//! meaning of the fields is not examined here.

use super::block::{self, Block};
use super::charset::{copy_name, copy_value, is_blank};
use super::error::{StepError, Violation};
use crate::http::fields::Field;
use crate::http::{Fields, Name};

/// The maximum length of a field name; HAProxy's limit too.
const LONGEST_NAME: usize = 255;

/// Limits and leniency of field lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Maximum number of lines, including a start line.
    pub(super) most: usize,
    /// A name with invalid characters drops its field instead of rejecting the message; NUL is permitted in values.
    pub(super) accept_unsafe: bool,
}

/// How far the lines were parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// The line at that offset is incomplete.
    Partial { line: usize },
    /// The empty line was parsed.
    End { behind: usize },
}

/// Reserves capacity for the canonical form of the line at `at`, and more: bytes after the head are not counted.
pub(super) fn reserve(input: &[u8], at: usize, fields: &mut Fields) -> Result<(), StepError> {
    let rest = input.get(at..).unwrap_or_default();
    if fields.room().len() >= rest.len() + LONGEST_NAME + 768 {
        return if fields.overflowed() { StepError::at(Violation::HeadTooLarge, at) } else { Ok(()) };
    }
    let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    fields.reserve(line + LONGEST_NAME + 768);
    if fields.overflowed() { StepError::at(Violation::HeadTooLarge, at) } else { Ok(()) }
}

/// Parses lines from `at`, the start of a line, up to the empty one. `dropped` keeps between calls whether the last
/// line was dropped, so that its continuation is dropped too.
pub(super) fn parse_lines(
    input: &[u8],
    mut at: usize,
    rules: &Rules,
    dropped: &mut bool,
    fields: &mut Fields,
) -> Result<Lines, StepError> {
    loop {
        at = parse_plain_lines(input, at, rules.most, dropped, fields);
        let line = at;
        let next = match input.get(at) {
            None => None,
            Some(b'\n') => return Ok(Lines::End { behind: at + 1 }),
            Some(b'\r') => match input.get(at + 1) {
                None => None,
                Some(b'\n') => return Ok(Lines::End { behind: at + 2 }),
                Some(_) => return StepError::at(Violation::BareCr, at),
            },
            Some(byte) => {
                reserve(input, at, fields)?;
                if is_blank(*byte) {
                    continue_line(input, at, rules, *dropped, fields)?
                } else {
                    parse_line(input, at, rules, dropped, fields)?
                }
            }
        };
        match next {
            Some(next) => at = next,
            None => return Ok(Lines::Partial { line }),
        }
    }
}

/// Parses plain lines and stops before the first one that is not; that one is parsed by the general functions below.
#[inline]
fn parse_plain_lines(input: &[u8], mut at: usize, most: usize, dropped: &mut bool, fields: &mut Fields) -> usize {
    let (text, used, list, names) = fields.parts();
    let (begin, mut start) = (at, *used);
    while list.len() + 2 <= most
        && let (Some(source), Some(target)) = (input.get(at..), text.get_mut(start..))
        && let Some(line) = copy_canonical_line(source, target).or_else(|| copy_other_line(source, target))
    {
        let name = names.add_token(&source[..line.name]);
        let value = start + line.name + 2;
        let end = value + line.value;
        list.push(Field { start: start as u32, value: value as u32, end: end as u32, name });
        start = end + 2;
        at += line.taken;
    }
    *dropped &= at == begin;
    *used = start;
    at
}

/// A line that was copied: the lengths of its name and value, and the number of bytes consumed.
struct Plain {
    name: usize,
    value: usize,
    taken: usize,
}

/// Copies a line that differs from its canonical form by capitals in its name alone: a plain name of at most a block, a
/// colon, one blank, a value without control characters and without blanks around it, CR LF. So each byte keeps its
/// offset. `None` for any other line; free space may have changed then.
#[inline]
fn copy_canonical_line(source: &[u8], target: &mut [u8]) -> Option<Plain> {
    let most = source.len().min(target.len());
    let (source, target) = (&source[..most], &mut target[..most]);
    let begin = source.first_chunk()?;
    let (lower, name) = Block::new(begin).plain_name();
    *target.first_chunk_mut()? = lower;
    let value = name + 2;
    if name == 0 || source.get(name..value)? != b": " {
        return None;
    }
    *target.get_mut(name..)?.first_chunk_mut()? = *b": ";
    let mut end = value;
    loop {
        let block = source.get(end..)?.first_chunk()?;
        *target.get_mut(end..)?.first_chunk_mut()? = *block;
        let length = Block::new(block).control();
        end += length;
        if length < block::SIZE {
            break;
        }
    }
    let line_end = source.get(end..end + 2)?;
    if line_end != b"\r\n" || is_blank(source[value]) || is_blank(source[end - 1]) && end > value {
        return None;
    }
    *target.get_mut(end..)?.first_chunk_mut()? = *b"\r\n";
    Some(Plain { name, value: end - value, taken: end + 2 })
}

/// Copies a plain line that is not canonical, or near the end of the bytes received. `None` at the end of the head.
#[inline]
fn copy_other_line(source: &[u8], target: &mut [u8]) -> Option<Plain> {
    if matches!(source, [] | [b'\r' | b'\n', ..]) { None } else { copy_plain_line(source, target) }
}

/// Copies a plain line: a name of letters, digits and dashes, a value without control characters, and the line end.
/// `None` for any other line.
#[inline(never)]
fn copy_plain_line(source: &[u8], target: &mut [u8]) -> Option<Plain> {
    let name = copy_plain_name(source, target)?;
    let (separator, target) = target.get_mut(name..)?.split_first_chunk_mut()?;
    *separator = *b": ";
    let start = first_visible(source, name + 1)?;
    let source = &source[start..];
    let mut value = copy_value(source, target);
    let taken = match source.get(value..)? {
        [b'\r', b'\n', ..] => value + 2,
        [b'\n', ..] => value + 1,
        _ => return None,
    };
    if value > 0 && is_blank(source[value - 1]) {
        value = without_blanks(&source[..value]);
    }
    *target.get_mut(value..)?.first_chunk_mut()? = *b"\r\n";
    Some(Plain { name, value, taken: start + taken })
}

/// Returns the offset of the first byte after blanks, of which there is usually one.
#[inline]
fn first_visible(source: &[u8], at: usize) -> Option<usize> {
    let at = at + usize::from(*source.get(at)? == b' ');
    if is_blank(*source.get(at)?) { Some(skip_blanks(source, at)) } else { Some(at) }
}

/// Returns the length of a text without the blanks at its end.
#[cold]
fn without_blanks(text: &[u8]) -> usize {
    text.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1)
}

/// Copies a plain name in lower case and returns its length. `None` if it is empty, too long, or not followed by a colon.
#[inline]
fn copy_plain_name(source: &[u8], target: &mut [u8]) -> Option<usize> {
    let (lower, length) = Block::first(source).plain_name();
    *target.first_chunk_mut()? = lower;
    let length = if length < block::SIZE { length } else { copy_long_name(source, target)? };
    (length > 0 && source.get(length) == Some(&b':')).then_some(length)
}

/// Copies a plain name of more than one block.
#[cold]
fn copy_long_name(source: &[u8], target: &mut [u8]) -> Option<usize> {
    let mut length = block::SIZE;
    while length <= LONGEST_NAME {
        let (lower, count) = Block::first(source.get(length..)?).plain_name();
        *target.get_mut(length..)?.first_chunk_mut()? = lower;
        length += count;
        if count < block::SIZE {
            return (length <= LONGEST_NAME).then_some(length);
        }
    }
    None
}

/// Parses one field line. `None` if it is incomplete; nothing has changed then.
#[cold]
fn parse_line(
    input: &[u8],
    at: usize,
    rules: &Rules,
    dropped: &mut bool,
    fields: &mut Fields,
) -> Result<Option<usize>, StepError> {
    let start = fields.used();
    let room = fields.room();
    let longest = (at + LONGEST_NAME + 1).min(input.len());
    let length = copy_name(&input[at..longest], room);
    let colon = at + length;
    match input.get(colon) {
        Some(b':') if length > 0 && length <= LONGEST_NAME => {}
        Some(b':') if length == 0 => return StepError::at(Violation::EmptyName, at),
        _ if length > LONGEST_NAME => return StepError::at(Violation::NameLength, at),
        None => return Ok(None),
        Some(b'\r' | b'\n') => return StepError::at(Violation::NoColon, colon),
        Some(_) if rules.accept_unsafe => return drop_line(input, at, rules, dropped, fields),
        Some(_) => return StepError::at(Violation::NameCharacter, colon),
    }
    let Some((separator, rest)) = room[length..].split_first_chunk_mut::<2>() else {
        return StepError::at(Violation::HeadTooLarge, at);
    };
    *separator = *b": ";
    let Some(copied) = copy_rest(input, skip_blanks(input, colon + 1), rules.accept_unsafe, rest)? else {
        return Ok(None);
    };
    if fields.list.len() + 2 > rules.most {
        return StepError::at(Violation::TooManyFields, at);
    }
    let name = Name::from_token(&input[at..colon]);
    let value = start + length + 2;
    let end = value + copied.length;
    fields.advance(end + 2 - start);
    fields.list.push(Field { start: start as u32, value: value as u32, end: end as u32, name });
    fields.names.add(name, &input[at..colon]);
    *dropped = false;
    Ok(Some(copied.next))
}

/// Appends a line that starts with a space to the line before it (obs-fold, RFC 9112 section 5.2): the line end becomes
/// spaces, as in HAProxy.
fn continue_line(
    input: &[u8],
    at: usize,
    rules: &Rules,
    dropped: bool,
    fields: &mut Fields,
) -> Result<Option<usize>, StepError> {
    if dropped {
        return Ok(copy_rest(input, at, rules.accept_unsafe, fields.room())?.map(|copied| copied.next));
    }
    let Some(last) = fields.list.last().copied() else { return StepError::at(Violation::LeadingSpace, at) };
    // The blanks trimmed from the end of the previous line, and its line end, become part of the value.
    let line_end = at.saturating_sub(if input[..at].ends_with(b"\r\n") { 2 } else { 1 });
    let blanks = input[..line_end].iter().rev().take_while(|byte| is_blank(**byte)).count();
    fields.rewind(last.end as usize);
    fields.reserve(blanks + (input.len() - at) + 8);
    let from = if last.value == last.end {
        skip_blanks(input, at)
    } else {
        fields.write_raw(&input[line_end - blanks..line_end]);
        fields.write_raw(&b"  "[..at - line_end]);
        at
    };
    let copied = copy_rest(input, from, rules.accept_unsafe, fields.room());
    if let Ok(Some(copied)) = &copied {
        fields.advance(copied.length);
        fields.trim_end(last.value as usize);
        let end = fields.used() as u32;
        if let Some(last) = fields.list.last_mut() {
            last.end = end;
        }
    } else {
        fields.rewind(last.end as usize);
    }
    fields.write_raw(b"\r\n");
    Ok(copied?.map(|copied| copied.next))
}

/// Drops a line with an invalid name, where that is accepted; it is validated otherwise.
fn drop_line(
    input: &[u8],
    at: usize,
    rules: &Rules,
    dropped: &mut bool,
    fields: &mut Fields,
) -> Result<Option<usize>, StepError> {
    let Some(length) = memchr::memchr(b'\n', &input[at..]) else { return Ok(None) };
    let Some(colon) = memchr::memchr(b':', &input[at..at + length]) else {
        return StepError::at(Violation::NoColon, at + length);
    };
    *dropped = true;
    Ok(copy_rest(input, at + colon + 1, rules.accept_unsafe, fields.room())?.map(|copied| copied.next))
}

/// The copied rest of a line, followed by CR LF.
struct Copied {
    /// Bytes without trailing blanks.
    length: usize,
    /// Offset of the next line.
    next: usize,
}

/// Copies a line from `at` up to its end, without trailing blanks, and appends CR LF. `None` if the line end is
/// missing.
fn copy_rest(input: &[u8], at: usize, accept_unsafe: bool, room: &mut [u8]) -> Result<Option<Copied>, StepError> {
    let mut end = at;
    loop {
        end += copy_value(&input[end..], &mut room[end - at..]);
        let next = match input.get(end) {
            None => return Ok(None),
            Some(b'\r') => match input.get(end + 1) {
                Some(b'\n') => end + 2,
                None => return Ok(None),
                Some(_) => return StepError::at(Violation::BareCr, end),
            },
            Some(b'\n') => end + 1,
            Some(0) if !accept_unsafe => return StepError::at(Violation::ValueCharacter, end),
            Some(byte) => {
                let Some(target) = room.get_mut(end - at) else { return StepError::at(Violation::HeadTooLarge, end) };
                *target = *byte;
                end += 1;
                continue;
            }
        };
        while end > at && is_blank(input[end - 1]) {
            end -= 1;
        }
        let length = end - at;
        let Some(behind) = room[length..].first_chunk_mut::<2>() else {
            return StepError::at(Violation::HeadTooLarge, end);
        };
        *behind = *b"\r\n";
        return Ok(Some(Copied { length, next }));
    }
}

#[cold]
fn skip_blanks(input: &[u8], mut at: usize) -> usize {
    while input.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}
