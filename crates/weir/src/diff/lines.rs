//! The lines of a configuration by what they set, for a comparison. Must never interpret a value.

use super::keywords::{self, text};
use config::document::{Document, Line, Section};
use std::collections::HashMap;

/// The key of an object: its section, and the line in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SectionKey {
    pub kind: String,
    pub name: String,
}

impl SectionKey {
    /// Returns the name for messages.
    pub fn shown(&self) -> String {
        if self.name.is_empty() { self.kind.clone() } else { format!("{} {}", self.kind, self.name) }
    }
}

/// A section, or several of one name.
#[derive(Debug, Default)]
pub struct SectionLines<'a> {
    /// Words after the name.
    pub arguments: String,
    /// The `defaults` section that applies, if the section is a proxy.
    pub defaults: String,
    /// Lines in the order of their first appearance.
    pub groups: Vec<(LineKey, Vec<&'a Line>)>,
    /// Indexes of `groups`.
    places: HashMap<LineKey, usize>,
}

impl<'a> SectionLines<'a> {
    fn add(&mut self, key: LineKey, line: &'a Line) {
        match self.places.get(&key).and_then(|at| self.groups.get_mut(*at)) {
            Some((_, lines)) => lines.push(line),
            None => {
                self.places.insert(key.clone(), self.groups.len());
                self.groups.push((key, vec![line]));
            }
        }
    }

    /// Returns the lines with that key.
    pub fn get(&self, key: &LineKey) -> &[&'a Line] {
        self.places.get(key).and_then(|at| self.groups.get(*at)).map_or(&[], |(_, lines)| lines)
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.groups.iter().map(|(_, lines)| lines.len()).sum()
    }
}

/// Key of a line: the object or the setting that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LineKey {
    /// An object with a name and options: `server app1`, `bind :80`.
    Object { keyword: String, name: String },
    /// A setting, by the words of its name: `timeout client`.
    Setting(String),
}

/// Lines that make objects with a name.
const OBJECTS: [&str; 15] = [
    "server",
    "server-template",
    "default-server",
    "bind",
    "acl",
    "peer",
    "nameserver",
    "mailer",
    "user",
    "group",
    "table",
    "load",
    "errorfile",
    "errorfiles",
    "http-error",
];

impl LineKey {
    fn of(section: &str, line: &Line) -> Self {
        let keyword = line.keyword();
        let name = match keyword {
            "http-error" => line.text(2),
            "default-server" if line.text(1) == "name" => line.text(2),
            "default-server" => "",
            _ => line.text(1),
        };
        let is_socket = section == "global" && keyword == "stats" && line.text(1) == "socket";
        if is_socket {
            return Self::Object { keyword: "stats socket".to_owned(), name: line.text(2).to_owned() };
        }
        if OBJECTS.contains(&keyword) {
            return Self::Object { keyword: keyword.to_owned(), name: name.to_owned() };
        }
        let start = usize::from(matches!(keyword, "no" | "default"));
        let words = line.words.get(start..).unwrap_or_default();
        Self::Setting(text(&words[..keywords::name_length(section, words)]))
    }

    /// Returns the number of words of a line that the key contains.
    pub fn words(&self, line: &Line) -> usize {
        match self {
            Self::Object { keyword, name } => match keyword.as_str() {
                "stats socket" | "http-error" => 3,
                "default-server" if !name.is_empty() => 3,
                "default-server" => 1,
                _ => 2,
            },
            Self::Setting(name) => name.split(' ').count() + usize::from(matches!(line.keyword(), "no" | "default")),
        }
        .min(line.words.len())
    }
}

/// The sections of a document by their names.
#[derive(Debug, Default)]
pub struct Sections<'a> {
    /// Keys in the order of their first appearance.
    pub order: Vec<SectionKey>,
    pub lines: HashMap<SectionKey, SectionLines<'a>>,
}

/// Returns the sections of a document.
pub fn sections(document: &Document) -> Sections<'_> {
    let mut found = Sections::default();
    let (mut unnamed, mut defaults) = (0, String::new());
    for section in &document.sections {
        let key = key(section, &mut unnamed);
        let is_proxy = ["frontend", "backend", "listen"].contains(&key.kind.as_str());
        if key.kind == "defaults" {
            defaults = key.shown();
        }
        let first = if section.line.words.len() > 1 { 2 } else { 1 };
        if !found.lines.contains_key(&key) {
            found.order.push(key.clone());
        }
        let own = found.lines.entry(key.clone()).or_default();
        own.arguments = text(section.line.words.get(first..).unwrap_or_default());
        if is_proxy {
            own.defaults.clone_from(&defaults);
        }
        for line in &section.body {
            own.add(LineKey::of(&key.kind, line), line);
        }
    }
    found
}

/// Returns the key of a section; `defaults` sections without a name are counted.
fn key(section: &Section, unnamed: &mut usize) -> SectionKey {
    let kind = section.line.keyword().to_owned();
    let name = section.line.text(1).to_owned();
    if kind == "defaults" && (name.is_empty() || name == "from") {
        *unnamed += 1;
        let name = if *unnamed == 1 { String::new() } else { format!("(number {unnamed})") };
        return SectionKey { kind, name };
    }
    SectionKey { kind, name }
}
