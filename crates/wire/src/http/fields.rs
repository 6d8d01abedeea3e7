//! A list of fields in the order of arrival, with the text they consist of.
//!
//! Each field lies in the text as the line `name: value\r\n` with a lower-case name and no space around the value. Neighbours that nobody
//! touched are one run of bytes, which an encoder copies at once. Removed and replaced fields leave their bytes behind until `clear`.

use super::Name;

/// One field: where its line lies in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) start: u32,
    pub(crate) value: u32,
    pub(crate) end: u32,
    pub(crate) name: Name,
    /// The Connection field of the same message names it, so it must not travel further.
    pub(crate) nominated: bool,
}

/// Fields of a message or its trailers. Names are lower case; the order is that of arrival.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    pub(crate) text: Vec<u8>,
    pub(crate) list: Vec<Field>,
}

impl Fields {
    /// An empty list; nothing is allocated.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Forgets everything and keeps the capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.list.clear();
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All fields in order: lower-case name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|field| (self.name_of(field), self.value_of(field)))
    }

    /// The value of the first field of that lower-case name.
    pub fn first(&self, name: &[u8]) -> Option<&[u8]> {
        self.list.iter().find(|field| self.name_of(field) == name).map(|field| self.value_of(field))
    }

    /// The values of every field of that lower-case name, in order.
    pub fn all<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.list.iter().filter(move |field| self.name_of(field) == name).map(|field| self.value_of(field))
    }

    /// Whether a field of that lower-case name is there.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.first(name).is_some()
    }

    /// Adds a field behind all others. The name is lowered; the caller answers for both texts being free of line ends.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        let field = self.write(name, value);
        self.list.push(field);
    }

    /// Adds a field before all others.
    pub fn prepend(&mut self, name: &[u8], value: &[u8]) {
        let field = self.write(name, value);
        self.list.insert(0, field);
    }

    /// Removes every field of that lower-case name and tells how many there were.
    pub fn remove_all(&mut self, name: &[u8]) -> usize {
        let before = self.list.len();
        let text = &self.text;
        self.list.retain(|field| name_text(text, field) != name);
        before - self.list.len()
    }

    /// Gives the first field of that name a new value in its place and removes the others; appends it when there was none.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        let Some(at) = self.list.iter().position(|field| self.name_of(field) == name) else {
            self.append(name, value);
            return;
        };
        let field = self.write(name, value);
        let text = &self.text;
        let mut index = 0;
        self.list.retain(|other| {
            let keep = index <= at || name_text(text, other) != name;
            index += 1;
            keep
        });
        self.list[at] = field;
    }

    pub(crate) fn name_of(&self, field: &Field) -> &[u8] {
        name_text(&self.text, field)
    }

    pub(crate) fn value_of(&self, field: &Field) -> &[u8] {
        self.text.get(field.value as usize..field.end as usize).unwrap_or_default()
    }

    fn write(&mut self, name: &[u8], value: &[u8]) -> Field {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.text[start..].make_ascii_lowercase();
        let known = Name::from_lower(&self.text[start..]);
        self.text.extend_from_slice(b": ");
        let at = self.text.len();
        self.text.extend_from_slice(value);
        let end = self.text.len();
        self.text.extend_from_slice(b"\r\n");
        Field { start: start as u32, value: at as u32, end: end as u32, name: known, nominated: false }
    }
}

fn name_text<'a>(text: &'a [u8], field: &Field) -> &'a [u8] {
    text.get(field.start as usize..(field.value as usize).saturating_sub(2)).unwrap_or_default()
}
