//! A list of fields in the order of arrival, with the text they consist of.
//!
//! Each field is stored in the text as the line `name: value\r\n`, its name in lower case and no space around its value.
//! Adjacent unchanged fields are one range of bytes, which an encoder copies at once. The bytes of removed and replaced
//! fields remain in the text until [`Fields::clear`].

mod copied;
#[cfg(test)]
mod splices;

use super::Name;
use super::name::Names;
use crate::byte_class;
use std::ops::Range;

/// Maximum length of the text in bytes: a write that would exceed it is dropped, and [`Fields::overflowed`] returns
/// true.
const MOST_TEXT: usize = 16 << 20;

/// One field: the offsets of its line in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) start: u32,
    pub(crate) value: u32,
    pub(crate) end: u32,
    pub(crate) name: Name,
}

impl Field {
    /// Offset of the end of its line, after CR LF.
    #[inline]
    pub(crate) fn line_end(&self) -> u32 {
        self.end + 2
    }
}

/// Fields of a message or of its trailers. Names are in lower case, in the order of arrival.
///
/// CR, LF and NUL in added fields are replaced by spaces, so that no field can end its line early.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// The first `used` bytes are the text; those after it are left over from earlier messages, so that they need no
    /// second initialization.
    text: Vec<u8>,
    used: usize,
    pub(crate) list: Vec<Field>,
    pub(crate) names: Names,
    overflowed: bool,
    /// Length of the text and number of fields when the head was parsed; zero if a field was changed in place since then.
    parsed: [u32; 2],
}

impl Fields {
    /// Creates an empty list; does not allocate.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Removes everything and keeps the capacity.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.list.clear();
        self.names = Names::default();
        self.overflowed = false;
        self.parsed = [0; 2];
    }

    /// Records the fields as parsed, before any of them is removed or changed.
    #[inline]
    pub(crate) fn note_parsed(&mut self) {
        self.parsed = self.extent();
    }

    /// Returns the length of the text and the number of fields; both are far below the limits of `u32`.
    #[inline]
    fn extent(&self) -> [u32; 2] {
        [self.used as u32, self.list.len() as u32]
    }

    /// Whether the text from an offset, the end of the start line, is the lines of all fields as they were parsed: no
    /// field was added, removed or changed. Additions grow the text, and removals shorten the list.
    #[inline]
    pub(crate) fn are_as_parsed(&self, line_end: u32) -> bool {
        self.parsed == self.extent() && self.list.first().is_some_and(|first| first.start == line_end)
    }

    /// Releases capacity beyond the needs of `bytes` of text. For heads that are idle until their next message.
    pub fn shrink_to(&mut self, bytes: usize) {
        let keep = bytes.max(self.used);
        if self.text.len() > keep {
            self.text.truncate(keep);
            self.text.shrink_to_fit();
        }
        self.list.shrink_to(bytes / 32);
    }

    /// Allocated memory in bytes.
    pub fn capacity(&self) -> usize {
        self.text.capacity() + self.list.capacity() * size_of::<Field>()
    }

    /// Bytes of text written, including removed and replaced fields.
    pub(crate) fn written(&self) -> usize {
        self.used
    }

    /// The number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a write was dropped because the text would have exceeded its maximum length.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Returns all fields in order: lower-case name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|field| (self.name_of(field), self.value_of(field)))
    }

    /// Returns the value of the first field with a lower-case name.
    pub fn first(&self, name: &[u8]) -> Option<&[u8]> {
        self.find(name).map(|field| self.value_of(field))
    }

    /// Returns the value of the first field with a well-known name; costs nothing if there is none.
    #[inline]
    pub fn known(&self, name: Name) -> Option<&[u8]> {
        if !self.names.has(name) {
            return None;
        }
        self.list.iter().find(|field| field.name == name).map(|field| self.value_of(field))
    }

    /// Returns the values of all fields with a lower-case name, in order.
    pub fn all<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let list = if self.names.may_have(name) { &self.list[..] } else { &[] };
        list.iter().filter(move |field| self.name_of(field) == name).map(|field| self.value_of(field))
    }

    /// Whether there is a field with a lower-case name.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.find(name).is_some()
    }

    /// Appends a field. The name is converted to lower case.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        if let Some(field) = self.write_field(name, value) {
            self.list.push(field);
        }
    }

    /// Appends a field without validation. The name must be a token in lower case, recognized as `known`, and the value
    /// must have no control character except tabs.
    pub(crate) fn append_checked(&mut self, known: Name, name: &[u8], value: &[u8]) {
        if let Some(field) = self.write_checked(known, name, value) {
            self.list.push(field);
        }
    }

    /// Inserts a field before all others without validation, as for [`Self::append_checked`].
    pub(crate) fn prepend_checked(&mut self, known: Name, name: &[u8], value: &[u8]) {
        if let Some(field) = self.write_checked(known, name, value) {
            self.list.insert(0, field);
        }
    }

    fn write_checked(&mut self, known: Name, name: &[u8], value: &[u8]) -> Option<Field> {
        let (start, at) = (self.used, self.used + name.len() + 2);
        let end = at + value.len();
        self.reserve(end + 2 - start);
        let line = self.text.get_mut(start..end + 2).filter(|_| !self.overflowed)?;
        let (name_room, rest) = line.split_at_mut_checked(name.len())?;
        name_room.copy_from_slice(name);
        let (colon, rest) = rest.split_first_chunk_mut::<2>()?;
        *colon = *b": ";
        let (value_room, line_end) = rest.split_at_mut_checked(value.len())?;
        value_room.copy_from_slice(value);
        line_end.copy_from_slice(b"\r\n");
        self.used = end + 2;
        self.names.add(known, name);
        Some(Field { start: start as u32, value: at as u32, end: end as u32, name: known })
    }

    /// Appends a field whose value is the concatenation of `parts`.
    pub fn append_parts(&mut self, name: &[u8], parts: &[&[u8]]) {
        self.reserve(name.len() + parts.iter().map(|part| part.len()).sum::<usize>() + 4);
        let Some(mut field) = self.write_field(name, b"") else { return };
        self.used = field.end as usize;
        for part in parts {
            let Some((_, end)) = self.write_text(part) else { break };
            field.end = end;
        }
        self.write_raw(b"\r\n");
        self.list.push(field);
    }

    /// Inserts a field before all others. The name is converted to lower case.
    pub fn prepend(&mut self, name: &[u8], value: &[u8]) {
        if let Some(field) = self.write_field(name, value) {
            self.list.insert(0, field);
        }
    }

    /// Removes all fields with a lower-case name and returns their number.
    pub fn remove_all(&mut self, name: &[u8]) -> usize {
        if !self.names.may_have(name) {
            return 0;
        }
        let before = self.list.len();
        let text = &self.text;
        self.list.retain(|field| name_text(text, field) != name);
        before - self.list.len()
    }

    /// Replaces the value of the first field with that name and removes the others; appends the field if there is none.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        let position = |fields: &Self| fields.list.iter().position(|field| fields.name_of(field) == name);
        let Some(at) = self.names.may_have(name).then(|| position(self)).flatten() else {
            self.append(name, value);
            return;
        };
        let Some(field) = self.write_field(name, value) else { return };
        let text = &self.text;
        let mut index = 0;
        self.list.retain(|other| {
            let keep = index <= at || name_text(text, other) != name;
            index += 1;
            keep
        });
        self.list[at] = field;
    }

    /// Appends text to the value of the last field with a lower-case name. Returns false if there is none.
    pub fn extend_last(&mut self, name: &[u8], text: &[u8]) -> bool {
        let Some(index) = self.list.iter().rposition(|field| self.name_of(field) == name) else { return false };
        let mut value = self.value_of(&self.list[index]).to_vec();
        value.extend_from_slice(text);
        value.iter_mut().filter(|byte| matches!(**byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
        self.set_value(index, &value);
        true
    }

    /// Keeps the fields for which `keep(name, value)` returns true; returns the number of removed fields.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> usize {
        let before = self.list.len();
        let text = &self.text;
        self.list.retain(|field| keep(name_text(text, field), value_text(text, field)));
        before - self.list.len()
    }

    /// Removes all fields with a well-known name.
    pub(crate) fn remove_known(&mut self, name: Name) {
        if self.names.has(name) {
            self.list.retain(|field| field.name != name);
        }
    }

    /// Returns the value of the field at `index` if it has that lower-case name.
    pub fn value_if(&self, index: usize, name: &[u8]) -> Option<&[u8]> {
        let field = self.list.get(index)?;
        (self.name_of(field) == name).then(|| self.value_of(field))
    }

    /// Replaces the value of the field at `index`.
    pub fn set_value(&mut self, index: usize, value: &[u8]) {
        let Some(old) = self.list.get(index).copied() else { return };
        let name_length = (old.value - old.start) as usize - 2;
        self.reserve(name_length + value.len() + 4);
        if self.overflowed {
            return;
        }
        let start = self.used;
        self.text.copy_within(old.start as usize..old.value as usize, start);
        self.used += name_length + 2;
        self.write_raw(value);
        let end = self.used;
        self.write_raw(b"\r\n");
        self.list[index] =
            Field { start: start as u32, value: (start + name_length + 2) as u32, end: end as u32, name: old.name };
    }

    /// Replaces the bytes at `range` of the value of the field at `index` with `with`. A value that does not grow is
    /// changed in place.
    pub fn splice_value(&mut self, index: usize, range: Range<usize>, with: &[u8]) {
        let Some(field) = self.list.get(index).copied() else { return };
        let (value, end) = (field.value as usize, field.end as usize);
        let (from, to) = (value + range.start, value + range.end);
        if from > to || to > end {
            return;
        }
        if with.len() > to - from {
            self.grow_value(index, from..to, with);
            return;
        }
        self.parsed = [0; 2];
        let behind = from + with.len();
        self.text[from..behind].copy_from_slice(with);
        self.text.copy_within(to..end + 2, behind);
        self.list[index].end = (behind + end - to) as u32;
    }

    /// Slow path of [`Self::splice_value`]: the line grows and is written again at the end of the text.
    fn grow_value(&mut self, index: usize, part: Range<usize>, with: &[u8]) {
        let Range { start: from, end: to } = part;
        let old = self.list[index];
        let (line, line_end) = (old.start as usize, old.line_end() as usize);
        self.reserve(line_end - line + with.len());
        if self.overflowed {
            return;
        }
        let start = self.used;
        self.text.copy_within(line..from, start);
        self.used += from - line;
        self.write_raw(with);
        self.text.copy_within(to..line_end, self.used);
        self.used += line_end - to;
        let value = start as u32 + (old.value - old.start);
        self.list[index] = Field { start: start as u32, value, end: self.used as u32 - 2, name: old.name };
    }

    pub fn remove(&mut self, index: usize) {
        if index < self.list.len() {
            self.list.remove(index);
        }
    }

    #[inline]
    pub(crate) fn name_of(&self, field: &Field) -> &[u8] {
        name_text(&self.text, field)
    }

    #[inline]
    pub(crate) fn value_of(&self, field: &Field) -> &[u8] {
        value_text(&self.text, field)
    }

    /// Returns a range of the text.
    #[inline]
    pub(crate) fn slice(&self, start: u32, end: u32) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Length of the text in bytes.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Reserves free space for `bytes` more bytes after the text.
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if self.text.len() - self.used < bytes {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let needed = self.used.saturating_add(bytes);
        if needed > MOST_TEXT {
            self.overflowed = true;
            return;
        }
        // Rounded up, so that heads of similar sizes do not reallocate repeatedly.
        self.text.resize(needed.next_multiple_of(256), 0);
    }

    /// The free space after the text, as reserved by [`Fields::reserve`].
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.text[self.used..]
    }

    /// Returns the text with its free space, its length, the list and the names, for a caller that writes many lines at
    /// once.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut [u8], &mut usize, &mut Vec<Field>, &mut Names) {
        (&mut self.text, &mut self.used, &mut self.list, &mut self.names)
    }

    /// Appends the first `count` bytes of the free space to the text.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.used = (self.used + count).min(self.text.len());
    }

    /// Removes trailing spaces and tabs from the text, not before `start`.
    #[inline]
    pub(crate) fn trim_end(&mut self, start: usize) {
        while self.used > start && matches!(self.text[self.used - 1], b' ' | b'\t') {
            self.used -= 1;
        }
    }

    /// Truncates the text to `used` bytes.
    #[inline]
    pub(crate) fn rewind(&mut self, used: usize) {
        self.used = used.min(self.used);
    }

    /// Appends bytes to the text, with CR, LF and NUL as spaces; returns their range.
    pub(crate) fn write_text(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        self.reserve(bytes.len());
        let start = self.used;
        let room = self.text.get_mut(start..start + bytes.len())?;
        room.copy_from_slice(bytes);
        if byte_class::has_line_end(room) {
            room.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
        }
        self.used += bytes.len();
        Some((start as u32, self.used as u32))
    }

    /// Appends parts that are known to be valid; returns their range.
    pub(crate) fn write_parts(&mut self, parts: &[&[u8]]) -> Option<(u32, u32)> {
        let start = self.used;
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.reserve(length);
        self.text.get(start..start + length)?;
        parts.iter().for_each(|part| self.write_raw(part));
        Some((start as u32, self.used as u32))
    }

    /// Appends bytes that are known to be valid, into reserved space.
    #[inline]
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        if let Some(room) = self.text.get_mut(self.used..self.used + bytes.len()) {
            room.copy_from_slice(bytes);
            self.used += bytes.len();
        }
    }

    fn find(&self, name: &[u8]) -> Option<&Field> {
        if !self.names.may_have(name) {
            return None;
        }
        self.list.iter().find(|field| self.name_of(field) == name)
    }

    fn write_field(&mut self, name: &[u8], value: &[u8]) -> Option<Field> {
        self.reserve(name.len() + value.len() + 4);
        if self.overflowed {
            return None;
        }
        let start = self.used as u32;
        if byte_class::is_small(name) {
            self.write_raw(name);
        } else {
            self.write_text(name)?;
            self.text[start as usize..self.used].make_ascii_lowercase();
        }
        let written = &self.text[start as usize..self.used];
        let known = Name::from_token(written);
        self.names.add(known, written);
        self.write_raw(b": ");
        let (value, end) = self.write_text(value)?;
        self.write_raw(b"\r\n");
        Some(Field { start, value, end, name: known })
    }
}

#[inline]
fn name_text<'a>(text: &'a [u8], field: &Field) -> &'a [u8] {
    text.get(field.start as usize..field.value as usize - 2).unwrap_or_default()
}

#[inline]
fn value_text<'a>(text: &'a [u8], field: &Field) -> &'a [u8] {
    text.get(field.value as usize..field.end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(fields: &Fields) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn sample() -> Fields {
        let mut fields = Fields::new();
        fields.append(b"Host", b"a.b");
        fields.append(b"X-A", b"1");
        fields.append(b"x-b", b"2");
        fields.append(b"X-a", b"3");
        fields
    }

    #[test]
    fn keeps_order_and_lowers_names() {
        assert_eq!(list(&sample()), pairs(&[("host", "a.b"), ("x-a", "1"), ("x-b", "2"), ("x-a", "3")]));
        assert_eq!(sample().first(b"x-a"), Some(&b"1"[..]));
        assert_eq!(sample().all(b"x-a").collect::<Vec<_>>(), [&b"1"[..], b"3"]);
        assert!(!sample().contains(b"x-c"));
        assert_eq!(sample().known(Name::Host), Some(&b"a.b"[..]));
        assert_eq!(sample().known(Name::Te), None);
    }

    #[test]
    fn replaces_in_place_and_removes_the_others() {
        let mut fields = sample();
        fields.replace(b"x-a", b"long enough to lie elsewhere");
        assert_eq!(list(&fields), pairs(&[("host", "a.b"), ("x-a", "long enough to lie elsewhere"), ("x-b", "2")]));
        fields.replace(b"x-c", b"4");
        assert_eq!(fields.len(), 4);
        assert_eq!(fields.remove_all(b"x-a"), 1);
        assert_eq!(fields.remove_all(b"x-a"), 0);
        fields.prepend(b"First", b"");
        assert_eq!(list(&fields), pairs(&[("first", ""), ("host", "a.b"), ("x-b", "2"), ("x-c", "4")]));
    }

    #[test]
    fn extends_the_last_of_a_name() {
        let mut fields = sample();
        assert!(fields.extend_last(b"x-a", b",4\r\nevil: 1"));
        assert!(!fields.extend_last(b"x-c", b"5"));
        assert_eq!(list(&fields)[3], ("x-a".to_owned(), "3,4  evil: 1".to_owned()));
        assert_eq!(list(&fields)[1], ("x-a".to_owned(), "1".to_owned()));
    }

    #[test]
    fn sets_a_value_by_index() {
        let mut fields = sample();
        fields.set_value(1, b"changed");
        fields.set_value(99, b"nobody");
        assert_eq!(list(&fields)[1], ("x-a".to_owned(), "changed".to_owned()));
        assert_eq!(fields.len(), 4);
    }

    #[test]
    fn no_added_text_can_end_its_line() {
        let mut fields = Fields::new();
        fields.append(b"X\r\nY", b"1\r\nEvil: 2\0");
        assert_eq!(list(&fields), pairs(&[("x  y", "1  evil: 2 ".replace("evil", "Evil").as_str())]));
    }

    #[test]
    fn clear_keeps_the_capacity_and_forgets_the_names() {
        let mut fields = sample();
        let capacity = fields.text.len();
        fields.clear();
        assert!(fields.is_empty() && fields.known(Name::Host).is_none());
        assert_eq!(fields.text.len(), capacity);
        fields.shrink_to(0);
        assert_eq!(fields.text.capacity(), 0);
    }

    #[test]
    fn growth_is_bounded() {
        let mut fields = sample();
        let large = vec![b'x'; MOST_TEXT];
        fields.append(b"large", &large);
        assert!(fields.overflowed());
        assert_eq!(fields.len(), 4);
    }
}
