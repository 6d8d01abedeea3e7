//! Pattern lists as objects: one for each file name, shared by every ACL and map that names it, and one for the
//! patterns of each ACL line (configuration manual, section 2.7). Owns their initial entries; changes are stored in
//! [`ListStates`](super::ListStates). Must never open a file.

use super::ListState;
use super::entries::Entries;
use super::index::{PatternIndex, Texts};
use super::single::Single;
use super::{Hit, Key, Method, PatternSet, Regex, Steps};
use crate::sample::{Context, Value};
use base::AppendOnlyVec;
use base::append_only_vec::Full;
use config::text::from_bytes;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// The type of a map's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// No values: the list of an ACL.
    None,
    Text,
    /// Text with references to the groups of a match.
    Groups,
    Integer,
    Address,
}

impl Content {
    /// Parses a value. The error is the name of the expected type.
    ///
    /// # Errors
    /// The value is invalid.
    pub fn parse(self, text: &[u8]) -> Result<Value<'_>, &'static str> {
        let utf8 = std::str::from_utf8(text).ok();
        match self {
            Self::None | Self::Text | Self::Groups => Ok(Value::Str(text)),
            Self::Integer => utf8.and_then(|text| text.parse().ok()).map(Value::Int).ok_or("an integer"),
            Self::Address => utf8.and_then(|text| text.parse::<IpAddr>().ok()).map(Value::from).ok_or("an address"),
        }
    }
}

/// An index of a list for one kind of lookup.
#[derive(Debug, Clone)]
pub struct View {
    pub set: PatternSet,
    /// The type of the values.
    pub content: Content,
}

/// The initial state of a list.
#[derive(Debug, Clone)]
pub struct List {
    pub id: u32,
    /// The file's name; empty for the patterns of an ACL line.
    pub name: String,
    /// Where it is used, as printed by `show map`.
    pub description: String,
    /// ACLs use it.
    pub is_acl: bool,
    /// It has values.
    pub is_map: bool,
    pub entries: Arc<Entries>,
    /// Its indexes.
    pub views: AppendOnlyVec<Arc<View>>,
}

/// The lists of a program; lookups refer to them by index.
#[derive(Debug, Default)]
pub struct Lists {
    pub all: AppendOnlyVec<List>,
    by_name: HashMap<String, usize>,
    /// Lists added after the configuration was compiled.
    added: RwLock<HashMap<String, usize>>,
}

impl Lists {
    /// Returns the list of a file by its name, which is a [`ListName::reference`](super::ListName::reference).
    pub fn find(&self, name: &str) -> Option<usize> {
        let added = || self.added.read().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        self.by_name.get(name).copied().or_else(added)
    }

    /// Adds a list after the configuration was compiled, and returns its index. Its id is the smallest free one.
    ///
    /// # Errors
    /// [`Full`].
    pub fn add(&self, list: List) -> Result<usize, Full> {
        let free = (0..).find(|id| self.all.iter().all(|known| known.id != *id)).unwrap_or(u32::MAX);
        let name = list.name.clone();
        let place = self.all.push(|_| List { id: free, ..list })?;
        self.added.write().unwrap_or_else(PoisonError::into_inner).insert(name, place);
        Ok(place)
    }
}

impl View {
    /// Whether it has the same method, case sensitivity and type of values as another one.
    fn is_like(&self, other: &Self) -> bool {
        let way = |view: &Self| (view.set.method(), view.set.ignores_case(), view.content);
        way(self) == way(other)
    }
}

impl PartialEq for List {
    /// Equal names do not make lists equal: the entries are compared, too. The description is not compared.
    fn eq(&self, other: &Self) -> bool {
        let views = || self.views.iter().zip(&other.views);
        (&self.name, self.is_acl, self.is_map) == (&other.name, other.is_acl, other.is_map)
            && self.views.len() == other.views.len()
            && views().all(|(own, other)| own.is_like(other))
            && (Arc::ptr_eq(&self.entries, &other.entries) || self.entries == other.entries)
    }
}

impl Clone for Lists {
    fn clone(&self) -> Self {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self { all: self.all.clone(), by_name: self.by_name.clone(), added: RwLock::new(added) }
    }
}

impl PartialEq for Lists {
    fn eq(&self, other: &Self) -> bool {
        let ids = |lists: &Self| lists.all.iter().map(|list| list.id).collect::<Vec<_>>();
        ids(self) == ids(other) && self.all == other.all
    }
}

/// A handle of a list for lookups.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// The list's index.
    pub list: usize,
    /// The index of the view.
    pub view: usize,
    /// The initial state of the view.
    pub base: Arc<View>,
    /// The initial entries.
    pub entries: Arc<Entries>,
    /// The only pattern, if there is just one.
    single: Option<Single>,
}

/// The entry that a lookup returns.
#[derive(Debug, Clone, Copy)]
pub struct MatchedEntry<'a> {
    /// Its index, if it is an initial entry.
    pub at: Option<PatternIndex>,
    /// Its index among the added entries, if it was added at run time.
    pub added: Option<PatternIndex>,
    /// The pattern as written.
    pub key: &'a [u8],
    /// The value after the pattern.
    pub value: &'a [u8],
}

impl PartialEq for Lookup {
    /// Whether both look up the same entries: equal indexes do not suffice, as the list may be another one in another
    /// configuration.
    fn eq(&self, other: &Self) -> bool {
        (self.list, self.view) == (other.list, other.view)
            && self.base.is_like(&other.base)
            && (Arc::ptr_eq(&self.entries, &other.entries) || self.entries == other.entries)
    }
}

impl Lookup {
    /// Creates a lookup in a view of a list.
    pub fn new(list: usize, view: usize, base: Arc<View>, entries: Arc<Entries>) -> Self {
        let single = Single::of(&base.set, &entries);
        Self { list, view, base, entries, single }
    }

    /// Whether a sample matches an entry, with steps shared with other samples.
    #[inline]
    pub fn matches<'a>(&self, context: &Context<'a>, value: Value<'a>, steps: &Steps) -> bool {
        let changed = context.lists.and_then(|lists| lists.changed(self.list));
        if changed.is_none()
            && let Some(found) = self.single.as_ref().and_then(|single| single.matches(value))
        {
            return found;
        }
        self.is_found(context, value, changed, steps)
    }

    #[inline(never)]
    fn is_found<'a>(
        &self,
        context: &Context<'a>,
        value: Value<'a>,
        changed: Option<&ListState>,
        steps: &Steps,
    ) -> bool {
        let Some(value) = self.base.set.prepare(context, value) else { return false };
        steps.add_value(value.size());
        let found = match changed {
            None => self.base.set.find_within(value, &*self.entries, &|_| true, steps).map(|found| found.is_some()),
            Some(state) => state.read(|change| change.find_within(self, value, steps).map(|found| found.is_some())),
        };
        context.bounded(found)
    }

    /// Returns the entry that a sample matches.
    #[inline]
    pub fn find<'a>(&'a self, context: &Context<'a>, value: Value<'a>) -> Option<MatchedEntry<'a>> {
        let value = self.base.set.prepare(context, value)?;
        match context.lists.and_then(|lists| lists.changed(self.list)) {
            None => {
                let at = self.find_base(context, value)?.at;
                Some(MatchedEntry {
                    at: Some(at),
                    added: None,
                    key: self.entries.key(at),
                    value: self.entries.value(at),
                })
            }
            Some(state) => state.read(|change| {
                let found = context.bounded(change.find(self, value))?;
                let (at, added) = (found.at, found.added);
                Some(MatchedEntry { at, added, key: context.copy(found.key)?, value: context.copy(found.value)? })
            }),
        }
    }

    /// Calls `with` with the matching entry, its regular expression, and the sample as text. Outer `None`: no entry
    /// matches.
    pub fn with_regex<'a, T>(
        &'a self,
        context: &Context<'a>,
        value: Value<'a>,
        with: impl FnOnce(&MatchedEntry<'_>, &Regex, &[u8]) -> Option<T>,
    ) -> Option<Option<T>> {
        let value = self.base.set.prepare(context, value)?;
        let text = value.bytes()?;
        match context.lists.and_then(|lists| lists.changed(self.list)) {
            None => {
                let at = self.find_base(context, value)?.at;
                let (key, value) = (self.entries.key(at), self.entries.value(at));
                Some(with(&MatchedEntry { at: Some(at), added: None, key, value }, self.base.set.regex(at)?, text))
            }
            Some(state) => state.read(|change| {
                let found = context.bounded(change.find(self, value))?;
                let regex = match found.at {
                    Some(at) => self.base.set.regex(at)?,
                    None => change.regex(self, found.added?)?,
                };
                Some(with(&found, regex, text))
            }),
        }
    }

    fn find_base(&self, context: &Context<'_>, value: Value<'_>) -> Option<Hit> {
        context.bounded(self.base.set.find(value, &*self.entries, &|_| true))
    }
}

/// How the configuration refers to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// An ACL.
    Acl,
    /// An ACL that uses a map (`-M`).
    AclOfMap,
    /// A converter.
    Map,
}

/// The line that refers to a list, in the order of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListLine {
    /// The line is parsed after everything else.
    pub late: bool,
    pub file: u32,
    /// The line, from 1.
    pub line: u32,
    pub name: String,
}

/// The lists of a configuration being compiled.
#[derive(Debug, Default)]
pub struct Registry {
    /// The index of the first list.
    first: usize,
    lists: Vec<Building>,
    by_name: HashMap<String, usize>,
    /// Regular expressions matched by PCRE2, and their lines.
    backtracking: Vec<(ListLine, String)>,
}

#[derive(Debug)]
struct Building {
    name: String,
    wanted: Option<u32>,
    first: ListLine,
    /// The keyword of the ACL line that contains the patterns.
    keyword: String,
    uses: Vec<(ListLine, &'static str)>,
    is_acl: bool,
    columns: bool,
    entries: Arc<Entries>,
    views: Vec<Arc<View>>,
}

/// The first index of lists created at run time: no list of the program has such an index, so that they are never
/// changed.
const APART: usize = usize::MAX / 2;

impl Registry {
    /// Whether there is a list of that name, which is a [`ListName::reference`](super::ListName::reference).
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Creates a registry for a further view of the list of that name, or for a new list of the program if there is
    /// none.
    pub fn beside(lists: &Lists, name: &str) -> Self {
        let Some((at, list)) = lists.find(name).and_then(|at| Some((at, lists.all.get(at)?))) else {
            return Self { first: lists.all.places(), ..Self::default() };
        };
        let by_name = HashMap::from([(name.to_owned(), 0)]);
        Self { first: at, lists: vec![Building::of(list)], by_name, ..Self::default() }
    }

    /// Creates a registry for lists outside the program.
    pub fn apart() -> Self {
        Self { first: APART, ..Self::default() }
    }

    /// Returns the list of a file, loaded with `read` on first use.
    ///
    /// # Errors
    /// HAProxy's message.
    pub fn file(
        &mut self,
        name: &str,
        usage: Use,
        place: ListLine,
        read: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<usize, String> {
        let columns = usage != Use::Acl;
        let word = if columns { "map" } else { "acl" };
        if let Some(at) = self.by_name.get(name) {
            let known = &mut self.lists[*at];
            if known.columns != columns {
                let kind = |columns| if columns { "two" } else { "one" };
                return Err(format!(
                    "The file \"{name}\" is already used as {} column file and cannot be used by as {} column file.",
                    kind(!columns),
                    kind(columns)
                ));
            }
            known.is_acl |= usage != Use::Map;
            known.uses.push((place, word));
            return Ok(self.first + *at);
        }
        let entries = Entries::of_file(read()?, columns)?;
        self.by_name.insert(name.to_owned(), self.lists.len());
        self.lists.push(Building {
            name: name.to_owned(),
            wanted: None,
            first: place.clone(),
            keyword: String::new(),
            uses: vec![(place, word)],
            is_acl: usage != Use::Map,
            columns,
            entries: Arc::new(entries),
            views: Vec::new(),
        });
        Ok(self.first + self.lists.len() - 1)
    }

    /// Adds the list of an ACL line's own patterns.
    pub fn own(&mut self, keyword: &str, entries: Entries, wanted: Option<u32>, place: ListLine) -> usize {
        self.lists.push(Building {
            name: String::new(),
            wanted,
            first: place,
            keyword: keyword.to_owned(),
            uses: Vec::new(),
            is_acl: true,
            columns: false,
            entries: Arc::new(entries),
            views: Vec::new(),
        });
        self.first + self.lists.len() - 1
    }

    /// Records the use of a regular expression, if PCRE2 matches it.
    pub fn note(&mut self, place: ListLine, regex: &Regex) {
        if !regex.is_linear() {
            self.backtracking.push((place, regex.pattern().to_owned()));
        }
    }

    /// Takes the regular expressions matched by PCRE2, and their lines.
    pub fn take_backtracking(&mut self) -> Vec<(ListLine, String)> {
        std::mem::take(&mut self.backtracking)
    }

    /// Whether a list has that id already.
    pub fn is_taken(&self, id: u32) -> bool {
        self.lists.iter().any(|list| list.wanted == Some(id))
    }

    /// Returns the line of an entry in its file.
    pub fn line(&self, list: usize, at: PatternIndex) -> usize {
        self.lists.get(list - self.first).map_or(0, |list| list.entries.line(at))
    }

    /// Returns a lookup in a list. The error includes the index of the invalid entry.
    ///
    /// # Errors
    /// HAProxy's message about the entry.
    pub fn lookup(
        &mut self,
        list: usize,
        method: Method,
        ignore_case: bool,
        content: Content,
    ) -> Result<Lookup, (PatternIndex, String)> {
        let building = &mut self.lists[list - self.first];
        let same = |view: &Arc<View>| {
            view.set.method() == method && view.set.ignores_case() == ignore_case && view.content == content
        };
        let entries = Arc::clone(&building.entries);
        if let Some(view) = building.views.iter().position(same) {
            return Ok(Lookup::new(list, view, Arc::clone(&building.views[view]), entries));
        }
        let mut set = PatternSet::new(method, ignore_case, Key::default());
        set.reserve(entries.len(), &*entries);
        set.load(content == Content::Groups);
        for at in 0..entries.len() as PatternIndex {
            set.insert(at, &*entries).map_err(|why| (at, why))?;
            if matches!(content, Content::Integer | Content::Address)
                && let Err(wanted) = content.parse(entries.value(at))
            {
                return Err((at, format!("cannot parse '{}' as {wanted}", from_bytes(entries.value(at)))));
            }
        }
        set.finish(&*entries);
        for regex in set.regexes().filter(|regex| !regex.is_linear()) {
            self.backtracking.push((building.first.clone(), regex.pattern().to_owned()));
        }
        let base = Arc::new(View { set, content });
        building.views.push(Arc::clone(&base));
        Ok(Lookup::new(list, building.views.len() - 1, base, entries))
    }

    /// Returns the finished lists, with the ids that HAProxy assigns: the requested one, or else the smallest free one
    /// in the order of the configuration.
    pub fn finish(self) -> Lists {
        let mut order: Vec<usize> = (0..self.lists.len()).filter(|at| self.lists[*at].wanted.is_none()).collect();
        order.sort_by(|one, other| self.lists[*one].first.cmp(&self.lists[*other].first));
        let taken: std::collections::HashSet<u32> = self.lists.iter().filter_map(|list| list.wanted).collect();
        let mut ids = vec![0; self.lists.len()];
        let mut free = (0..).filter(|id| !taken.contains(id));
        for at in order {
            ids[at] = free.next().unwrap_or(u32::MAX);
        }
        let finish = |(building, id): (Building, u32)| List {
            id: building.wanted.unwrap_or(id),
            description: building.description(),
            name: building.name,
            is_acl: building.is_acl,
            is_map: building.columns,
            entries: building.entries,
            views: building.views.into(),
        };
        let all = self.lists.into_iter().zip(ids).map(finish).collect();
        Lists { all, by_name: self.by_name, added: RwLock::default() }
    }
}

impl Building {
    /// Starts from an existing list.
    fn of(list: &List) -> Self {
        Self {
            name: list.name.clone(),
            wanted: Some(list.id),
            first: ListLine::default(),
            keyword: String::new(),
            uses: Vec::new(),
            is_acl: list.is_acl,
            columns: list.is_map,
            entries: Arc::clone(&list.entries),
            views: list.views.iter().cloned().collect(),
        }
    }

    fn description(&self) -> String {
        if self.name.is_empty() {
            return format!("acl '{}' file '{}' line {}", self.keyword, self.first.name, self.first.line);
        }
        let mut uses = self.uses.clone();
        uses.sort_by(|one, other| one.0.cmp(&other.0));
        let uses: Vec<String> = uses
            .iter()
            .map(|(place, word)| format!("by {word} at file '{}' line {}", place.name, place.line))
            .collect();
        format!("pattern loaded from file '{}' used {}", self.name, uses.join(", "))
    }
}
