//! Pattern lists that change at run time: removals and additions, relative to the initial entries. Readers take no lock
//! while a list has never been changed. Must never read a file.

use super::RouteRequest;
use super::set::Sample;
use super::{
    Entries, Hit, Key, List, Lists, Lookup, MatchedEntry, PatternIndex, PatternSet, Regex, Steps, Texts, View,
};
use crate::sample::{Exhausted, Value};
use base::AppendOnlyVec;
use base::append_only_vec::Full;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The live state of every list of a program.
#[derive(Debug, Default)]
pub struct ListStates(AppendOnlyVec<Arc<ListState>>);

impl ListStates {
    /// The initial states. Additions are hashed with that key.
    pub fn new(lists: &Lists, key: Key) -> Self {
        Self(lists.all.iter().enumerate().map(|(at, list)| Arc::new(ListState::new(at, list, key))).collect())
    }

    /// Creates the states for a program that replaces another one with the given lists. The list of a file with the
    /// same contents and the same lookups shares its changed state with the old program; all others start with their
    /// initial entries.
    pub fn following(lists: &Lists, before: &Lists, states: &Self, key: Key) -> Self {
        let state = |(at, list): (usize, &List)| {
            let known = Some(&list.name).filter(|name| !name.is_empty()).and_then(|name| before.find(name));
            let same = known.filter(|known| before.all.get(*known) == Some(list)).and_then(|known| states.0.get(known));
            same.map_or_else(|| Arc::new(ListState::new(at, list, key)), Arc::clone)
        };
        Self(lists.all.iter().enumerate().map(state).collect())
    }

    /// Adds the state of a list that was added to the program. Its additions are hashed with that key.
    ///
    /// # Errors
    /// [`Full`].
    pub fn add(&self, list: &List, key: Key) -> Result<usize, Full> {
        self.0.push(|at| Arc::new(ListState::new(at, list, key)))
    }

    /// Returns a list's state.
    pub fn get(&self, list: usize) -> Option<&ListState> {
        self.0.get(list).map(|state| &**state)
    }

    /// Returns the state of a list if it has been changed.
    #[inline]
    pub fn changed(&self, list: usize) -> Option<&ListState> {
        self.get(list).filter(|state| state.changed.load(Ordering::Acquire))
    }
}

/// The live state of one list.
pub struct ListState {
    changed: AtomicBool,
    change: RwLock<Change>,
    observer: OnceLock<Observer>,
}

/// An event of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEvent {
    /// An entry was added to the current version.
    Added,
    /// Entries were removed.
    Removed,
    /// The value of entries was changed.
    Set,
    /// A version was emptied.
    Cleared,
    /// A prepared version became the current one.
    Committed,
}

/// Receives the events of a list, after its lock was released. Must return at once.
pub type Observer = Box<dyn Fn(&[ListEvent]) + Send + Sync>;

impl std::fmt::Debug for ListState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ListState").field(&self.change).finish()
    }
}

impl ListState {
    fn new(at: usize, list: &List, key: Key) -> Self {
        let views: Vec<_> = list.views.iter().cloned().collect();
        let change = Change {
            entries: Arc::clone(&list.entries),
            current: 0,
            next: 0,
            base: true,
            dead: FxHashSet::default(),
            values: FxHashMap::default(),
            layer: Layer::new(&views, key),
            views,
            key,
            pending: Vec::new(),
            serial: (at as u64 + 1) << 36,
            first: (at as u64 + 1) << 36,
            events: None,
        };
        Self { changed: AtomicBool::new(false), change: RwLock::new(change), observer: OnceLock::new() }
    }

    /// Reads it under the lock.
    pub fn read<T>(&self, with: impl FnOnce(&Change) -> T) -> T {
        with(&self.change.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes it, for all workers at once. Removed entries are freed after the lock is released.
    pub fn write<T>(&self, with: impl FnOnce(&mut Change, &mut Vec<Layer>) -> T) -> T {
        let mut fallen = Vec::new();
        let mut change = self.change.write().unwrap_or_else(PoisonError::into_inner);
        let result = with(&mut change, &mut fallen);
        self.changed.store(true, Ordering::Release);
        let events = change.events.as_mut().map(std::mem::take);
        drop(change);
        if let (Some(events), Some(observer)) = (events.filter(|events| !events.is_empty()), self.observer.get()) {
            observer(&events);
        }
        result
    }

    /// Adds an index, which includes the changes made so far.
    pub fn add_view(&self, view: Arc<View>) {
        self.change.write().unwrap_or_else(PoisonError::into_inner).add_view(view);
    }

    /// Sets the observer of further events. Only the first call has an effect.
    pub fn observe(&self, observer: Observer) {
        if self.observer.set(observer).is_ok() {
            self.change.write().unwrap_or_else(PoisonError::into_inner).events = Some(Vec::new());
        }
    }
}

/// Why a change is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeError {
    /// The pattern is invalid; HAProxy's message.
    Pattern(String),
    /// The value is invalid.
    Value(String),
    /// No such entry.
    Missing,
    /// The version was not prepared.
    Future,
}

/// Selects entries.
#[derive(Debug, Clone, Copy)]
pub enum EntrySelector<'a> {
    /// Entries with that key.
    Key(&'a [u8]),
    /// The entry with that reference in `show map`.
    Reference(u64),
}

/// The current contents of a list.
#[derive(Debug)]
pub struct Change {
    entries: Arc<Entries>,
    views: Vec<Arc<View>>,
    /// The version used for lookups.
    pub current: u32,
    /// The last prepared version.
    pub next: u32,
    /// The initial entries are still part of the current version.
    base: bool,
    /// Removed initial entries.
    dead: FxHashSet<PatternIndex>,
    /// Changed values of initial entries.
    values: FxHashMap<PatternIndex, Box<[u8]>>,
    /// Entries added to the current version.
    layer: Layer,
    /// The key of the hashes of all layers.
    key: Key,
    /// Versions being filled.
    pending: Vec<(u32, Layer)>,
    /// The last reference assigned.
    serial: u64,
    /// The number before the first reference of the initial entries; these are consecutive.
    first: u64,
    /// Events since the observer was last called; `None`: no observer.
    events: Option<Vec<ListEvent>>,
}

/// An added entry.
#[derive(Debug)]
struct Slot {
    key: Box<[u8]>,
    value: Box<[u8]>,
    reference: u64,
    alive: bool,
}

/// Added entries, with an index per view.
#[derive(Debug)]
pub struct Layer {
    slots: Slots,
    sets: Vec<PatternSet>,
    live: usize,
}

#[derive(Debug, Default)]
struct Slots(Vec<Slot>);

impl Texts for Slots {
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.0.get(at as usize).map_or(&[], |slot| &slot.key)
    }
}

impl Layer {
    fn new(views: &[Arc<View>], key: Key) -> Self {
        let empty = |view: &Arc<View>| PatternSet::new(view.set.method(), view.set.ignores_case(), key);
        Self { slots: Slots::default(), sets: views.iter().map(empty).collect(), live: 0 }
    }

    /// Adds an index with the existing entries. Entries that are invalid for its method are not found by it.
    fn add_view(&mut self, view: &View, key: Key) {
        let mut set = PatternSet::new(view.set.method(), view.set.ignores_case(), key);
        for at in (0..self.slots.0.len() as PatternIndex).filter(|at| self.slots.0[*at as usize].alive) {
            let _ = set.insert(at, &self.slots);
        }
        self.sets.push(set);
    }

    fn add(&mut self, key: &[u8], value: &[u8], reference: u64) -> Result<(), String> {
        let at = PatternIndex::try_from(self.slots.0.len()).map_err(|_| "too many patterns".to_owned())?;
        self.slots.0.push(Slot { key: key.into(), value: value.into(), reference, alive: true });
        for which in 0..self.sets.len() {
            if let Err(why) = self.sets[which].insert(at, &self.slots) {
                match which {
                    0 => drop(self.slots.0.pop()),
                    // The index remains in the sets before this one, but the slot is dead.
                    _ => self.bury(at),
                }
                return Err(why);
            }
        }
        self.live += 1;
        Ok(())
    }

    /// Marks a slot as dead.
    fn bury(&mut self, at: PatternIndex) {
        self.slots.0[at as usize].alive = false;
        self.sets.iter_mut().for_each(|set| set.remove(at, &self.slots));
    }

    fn alive(&self, at: PatternIndex) -> bool {
        self.slots.0.get(at as usize).is_some_and(|slot| slot.alive)
    }

    fn places(&self, which: EntrySelector<'_>) -> Vec<PatternIndex> {
        let found = match which {
            EntrySelector::Key(key) => self.sets.first().map(|set| set.like(key, self.slots.0.len(), &self.slots)),
            EntrySelector::Reference(wanted) => {
                self.slots.0.binary_search_by_key(&wanted, |slot| slot.reference).ok().map(|at| vec![at as u32])
            }
        };
        let means = |at: &PatternIndex| match which {
            EntrySelector::Key(key) => self.slots.key(*at) == key,
            EntrySelector::Reference(_) => true,
        };
        let mut found = found.unwrap_or_default();
        found.retain(|at| self.alive(*at) && means(at));
        found
    }

    /// Rebuilds the layer when most slots are dead, so that the cost of changes stays bounded.
    fn compact(&mut self, views: &[Arc<View>], key: Key) -> Option<Self> {
        if self.slots.0.len() < 64 || self.slots.0.len() < 2 * self.live {
            return None;
        }
        let mut fresh = Self::new(views, key);
        let old = std::mem::replace(self, Self::new(views, key));
        for slot in old.slots.0.iter().filter(|slot| slot.alive) {
            // It was accepted before.
            let _ = fresh.add(&slot.key, &slot.value, slot.reference);
        }
        *self = fresh;
        Some(old)
    }
}

impl Change {
    fn add_view(&mut self, view: Arc<View>) {
        let key = self.key;
        let layers = std::iter::once(&mut self.layer).chain(self.pending.iter_mut().map(|(_, layer)| layer));
        layers.for_each(|layer| layer.add_view(&view, key));
        self.views.push(view);
    }

    /// Returns the entry that a prepared sample matches.
    ///
    /// # Errors
    /// A regular expression exhausts its steps.
    pub fn find<'s>(&'s self, lookup: &'s Lookup, value: Value<'_>) -> Result<Option<MatchedEntry<'s>>, Exhausted> {
        self.find_within(lookup, value, &Steps::for_text(value.size()))
    }

    /// The same with shared steps.
    ///
    /// # Errors
    /// As for [`Change::find`].
    pub fn find_within<'s>(
        &'s self,
        lookup: &'s Lookup,
        value: Value<'_>,
        steps: &Steps,
    ) -> Result<Option<MatchedEntry<'s>>, Exhausted> {
        self.find_sample(lookup, &Sample::Value(value), steps)
    }

    /// Returns the entry of a table of routes that fits a request best.
    ///
    /// # Errors
    /// The steps or the budget of the evaluation are exhausted.
    pub fn find_route<'s>(
        &'s self,
        lookup: &'s Lookup,
        request: &RouteRequest<'_>,
        steps: &Steps,
    ) -> Result<Option<MatchedEntry<'s>>, Exhausted> {
        self.find_sample(lookup, &Sample::Request(request), steps)
    }

    fn find_sample<'s>(
        &'s self,
        lookup: &'s Lookup,
        sample: &Sample<'_>,
        steps: &Steps,
    ) -> Result<Option<MatchedEntry<'s>>, Exhausted> {
        let base = &lookup.base;
        let alive = |at| !self.dead.contains(&at);
        let old = if self.base { sample.find(&base.set, &*self.entries, &alive, steps)? } else { None };
        if let Some(hit) = old
            && !base.set.finest_counts()
        {
            return Ok(Some(self.base_entry(hit.at)));
        }
        let added = self.layer.sets.get(lookup.view);
        let new = match added {
            Some(set) => sample.find(set, &self.layer.slots, &|at| self.layer.alive(at), steps)?,
            None => None,
        };
        let loses = |old: Hit, new: Hit| added.is_some_and(|added| !base.set.precedes(old, added, new));
        Ok(match (old, new) {
            (Some(old), new) if new.is_none_or(|new| !loses(old, new)) => Some(self.base_entry(old.at)),
            (_, Some(new)) => {
                let slot = self.layer.slots.0.get(new.at as usize);
                // Methods without patterns return index 0, even without entries.
                Some(slot.map_or(MatchedEntry { at: None, added: None, key: &[], value: &[] }, |slot| MatchedEntry {
                    at: None,
                    added: Some(new.at),
                    key: &slot.key,
                    value: &slot.value,
                }))
            }
            _ => None,
        })
    }

    /// Returns the compiled regular expression of an added entry.
    pub fn regex(&self, lookup: &Lookup, added: PatternIndex) -> Option<&Regex> {
        self.layer.sets.get(lookup.view)?.regex(added)
    }

    fn base_entry(&self, at: PatternIndex) -> MatchedEntry<'_> {
        let value = self.values.get(&at).map(|value| &**value).unwrap_or_else(|| self.entries.value(at));
        MatchedEntry { at: Some(at), added: None, key: self.entries.key(at), value }
    }

    /// The number of entries of all versions.
    pub fn count(&self) -> usize {
        let base = if self.base { self.entries.len() - self.dead.len() } else { 0 };
        base + self.layer.live + self.pending.iter().map(|(_, layer)| layer.live).sum::<usize>()
    }

    /// The number of slots of the current version, dead ones included.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.layer.slots.0.len()
    }

    /// Returns up to `most` entries of a version in order, after that reference, for `show map`.
    pub fn page(&self, version: Option<u32>, behind: u64, most: usize) -> Vec<(u64, Vec<u8>, Vec<u8>)> {
        let version = version.unwrap_or(self.current);
        let mut page = Vec::new();
        if version == self.current && self.base {
            let start = behind.saturating_sub(self.first) as usize;
            let alive = (start..self.entries.len()).filter(|at| !self.dead.contains(&(*at as PatternIndex)));
            page.extend(alive.take(most).map(|at| {
                let found = self.base_entry(at as PatternIndex);
                (self.first + at as u64 + 1, found.key.to_vec(), found.value.to_vec())
            }));
        }
        if let Some(layer) = self.layer(version) {
            let start = layer.slots.0.partition_point(|slot| slot.reference <= behind);
            let alive = layer.slots.0[start..].iter().filter(|slot| slot.alive).take(most - page.len());
            page.extend(alive.map(|slot| (slot.reference, slot.key.to_vec(), slot.value.to_vec())));
        }
        page
    }

    fn layer(&self, version: u32) -> Option<&Layer> {
        if version == self.current {
            return Some(&self.layer);
        }
        self.pending.iter().find(|(known, _)| *known == version).map(|(_, layer)| layer)
    }

    fn note(&mut self, event: ListEvent) {
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// Returns the value of the first entry with exactly that key in the current version.
    pub fn value_of(&self, key: &[u8]) -> Option<&[u8]> {
        if let Some(at) = self.base_places(EntrySelector::Key(key)).first() {
            return Some(self.base_entry(*at).value);
        }
        let places = self.layer.places(EntrySelector::Key(key));
        places.first().and_then(|at| self.layer.slots.0.get(*at as usize)).map(|slot| &*slot.value)
    }

    /// Whether the current version has an entry with that key.
    pub fn has(&self, key: &[u8]) -> bool {
        !self.base_places(EntrySelector::Key(key)).is_empty() || !self.layer.places(EntrySelector::Key(key)).is_empty()
    }

    fn base_places(&self, which: EntrySelector<'_>) -> Vec<PatternIndex> {
        if !self.base {
            return Vec::new();
        }
        let mut found = match which {
            EntrySelector::Key(key) => {
                let like = self.views.first().map(|view| view.set.like(key, self.entries.len(), &*self.entries));
                let mut like = like.unwrap_or_default();
                like.retain(|at| self.entries.key(*at) == key);
                like
            }
            EntrySelector::Reference(wanted) => {
                let at = wanted.checked_sub(self.first + 1).filter(|at| *at < self.entries.len() as u64);
                at.map(|at| at as PatternIndex).into_iter().collect()
            }
        };
        found.retain(|at| !self.dead.contains(at));
        found
    }

    fn check(&self, value: &[u8]) -> Result<(), ChangeError> {
        let unfit = |view: &&Arc<View>| view.content.parse(value).is_err();
        match self.views.iter().find(unfit) {
            Some(_) => Err(ChangeError::Value(format!("unable to parse '{}'", config::text::from_bytes(value)))),
            None => Ok(()),
        }
    }

    /// Adds an entry, even if there is one with that key.
    ///
    /// # Errors
    /// The entry is invalid, or the version was not prepared.
    pub fn add(&mut self, version: Option<u32>, key: &[u8], value: &[u8]) -> Result<(), ChangeError> {
        let version = version.unwrap_or(self.current);
        // Version numbers wrap.
        if (self.next.wrapping_sub(version) as i32) < 0 {
            return Err(ChangeError::Future);
        }
        self.check(value)?;
        self.serial = self.serial.max(self.first + self.entries.len() as u64) + 1;
        let reference = self.serial;
        if version != self.current && !self.pending.iter().any(|(known, _)| *known == version) {
            self.pending.push((version, Layer::new(&self.views, self.key)));
        }
        let pending = self.pending.iter_mut().find(|(known, _)| *known == version);
        let layer = pending.map_or(&mut self.layer, |(_, layer)| layer);
        layer.add(key, value, reference).map_err(ChangeError::Pattern)?;
        if version == self.current {
            self.note(ListEvent::Added);
        }
        Ok(())
    }

    /// Changes the value of entries of the current version.
    ///
    /// # Errors
    /// The value is invalid, or there is no such entry.
    pub fn set(&mut self, which: EntrySelector<'_>, value: &[u8]) -> Result<(), ChangeError> {
        let (base, added) = (self.base_places(which), self.layer.places(which));
        if base.is_empty() && added.is_empty() {
            return Err(ChangeError::Missing);
        }
        self.check(value)?;
        for at in base {
            self.values.insert(at, value.into());
        }
        for at in added {
            self.layer.slots.0[at as usize].value = value.into();
        }
        self.note(ListEvent::Set);
        Ok(())
    }

    /// Removes entries from the current version; returns whether there were any.
    pub fn remove(&mut self, which: EntrySelector<'_>, fallen: &mut Vec<Layer>) -> bool {
        let (base, added) = (self.base_places(which), self.layer.places(which));
        let found = !base.is_empty() || !added.is_empty();
        for at in base {
            self.values.remove(&at);
            self.dead.insert(at);
        }
        for at in added {
            self.layer.bury(at);
            self.layer.live -= 1;
        }
        fallen.extend(self.layer.compact(&self.views, self.key));
        if found {
            self.note(ListEvent::Removed);
        }
        found
    }

    /// Empties a version.
    pub fn clear(&mut self, version: Option<u32>, fallen: &mut Vec<Layer>) {
        if version.is_none_or(|version| version == self.current) {
            self.forget_base();
            fallen.push(std::mem::replace(&mut self.layer, Layer::new(&self.views, self.key)));
            self.note(ListEvent::Cleared);
            return;
        }
        let at = self.pending.iter().position(|(known, _)| Some(*known) == version);
        fallen.extend(at.map(|at| self.pending.swap_remove(at).1));
    }

    fn forget_base(&mut self) {
        self.base = false;
        self.dead = FxHashSet::default();
        self.values = FxHashMap::default();
    }

    /// Returns a new version number to be filled.
    pub fn prepare(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// Makes a version the current one. False: it was not prepared, or is older.
    pub fn commit(&mut self, version: u32, fallen: &mut Vec<Layer>) -> bool {
        let ahead = version.wrapping_sub(self.current);
        if ahead == 0 || ahead > self.next.wrapping_sub(self.current) {
            return false;
        }
        self.forget_base();
        let old = self.current;
        self.current = version;
        let at = self.pending.iter().position(|(known, _)| *known == version);
        let layer = at.map_or_else(|| Layer::new(&self.views, self.key), |at| self.pending.swap_remove(at).1);
        fallen.push(std::mem::replace(&mut self.layer, layer));
        let (past, later) =
            std::mem::take(&mut self.pending).into_iter().partition(|(known, _)| known.wrapping_sub(old) < ahead);
        self.pending = later;
        let past: Vec<(u32, Layer)> = past;
        fallen.extend(past.into_iter().map(|(_, layer)| layer));
        self.note(ListEvent::Committed);
        true
    }
}

#[cfg(test)]
mod tests;
