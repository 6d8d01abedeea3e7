//! Lists of patterns that change at run time: what was taken from a list and what was added, beside what it was at the
//! start. No reader takes a lock as long as a list has never been changed. Must never look at a file.

use super::{Entries, Found, Key, List, Lists, Lookup, PatternIndex, PatternSet, Regex, Steps, Texts, View};
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
    /// As they are at the start. What is added is hashed under that key.
    pub fn new(lists: &Lists, key: Key) -> Self {
        Self(lists.all.iter().enumerate().map(|(at, list)| Arc::new(ListState::new(at, list, key))).collect())
    }

    /// For a program that follows another one, whose lists stand so. The list of a file that held the same then, and is
    /// looked up in the same way, goes on as it was changed, for both; all others are as they are at the start.
    pub fn following(lists: &Lists, (before, states): (&Lists, &Self), key: Key) -> Self {
        let state = |(at, list): (usize, &List)| {
            let known = Some(&list.name).filter(|name| !name.is_empty()).and_then(|name| before.find(name));
            let same = known.filter(|known| before.all.get(*known) == Some(list)).and_then(|known| states.0.get(known));
            same.map_or_else(|| Arc::new(ListState::new(at, list, key)), Arc::clone)
        };
        Self(lists.all.iter().enumerate().map(state).collect())
    }

    /// Adds the state of a list that was added to the program. What is added to it is hashed under that key.
    ///
    /// # Errors
    /// [`Full`].
    pub fn add(&self, list: &List, key: Key) -> Result<usize, Full> {
        self.0.push(|at| Arc::new(ListState::new(at, list, key)))
    }

    /// A list's state.
    pub fn get(&self, list: usize) -> Option<&ListState> {
        self.0.get(list).map(|state| &**state)
    }

    /// The state of a list that was changed.
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

/// What happens to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEvent {
    /// An entry was added to a version.
    Added,
    /// Entries were removed.
    Removed,
    /// Entries got another value.
    Set,
    /// A version was emptied.
    Cleared,
    /// A version took the place of the current one.
    Committed,
}

/// Is told of what has happened to a list, after its lock was released. Must return at once.
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

    /// Looks at it.
    pub fn read<T>(&self, with: impl FnOnce(&Change) -> T) -> T {
        with(&self.change.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes it, for all workers at once. What is removed is freed after the lock is released.
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

    /// Adds a way to look up in it, which sees what was changed before.
    pub fn add_view(&self, view: Arc<View>) {
        self.change.write().unwrap_or_else(PoisonError::into_inner).add_view(view);
    }

    /// Has this be told of what happens from now on. Only the first call has an effect.
    pub fn observe(&self, observer: Observer) {
        if self.observer.set(observer).is_ok() {
            self.change.write().unwrap_or_else(PoisonError::into_inner).events = Some(Vec::new());
        }
    }
}

/// Why a change was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeError {
    /// The pattern is none; HAProxy's sentence.
    Pattern(String),
    /// The value is none.
    Value(String),
    /// There is no such entry.
    Missing,
    /// That version was not prepared.
    Future,
}

/// Which entries are meant.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// Those of a key.
    Key(&'a [u8]),
    /// The one that `show map` names so.
    Reference(u64),
}

/// What has become of a list.
#[derive(Debug)]
pub struct Change {
    entries: Arc<Entries>,
    views: Vec<Arc<View>>,
    /// The version that is matched against.
    pub current: u32,
    /// The last one that was prepared.
    pub next: u32,
    /// What the list held at the start still counts.
    base: bool,
    /// Entries of the start that do not.
    dead: FxHashSet<PatternIndex>,
    /// Values of entries of the start that were changed.
    values: FxHashMap<PatternIndex, Box<[u8]>>,
    /// What was added to the current version.
    layer: Layer,
    /// What the hashes of all layers depend on.
    key: Key,
    /// Versions that are being filled.
    pending: Vec<(u32, Layer)>,
    /// The last reference that was given away.
    serial: u64,
    /// The number below the first reference of the start's entries; those follow each other.
    first: u64,
    /// What has happened since an observer was told last; `None`: there is none.
    events: Option<Vec<ListEvent>>,
}

/// An entry that was added.
#[derive(Debug)]
struct Slot {
    key: Box<[u8]>,
    value: Box<[u8]>,
    reference: u64,
    alive: bool,
}

/// Entries that were added, with an index for every view.
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

    /// Adds an index, with what is there already. Entries that are no patterns of its method are not found by it.
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
        for set in &mut self.sets {
            if let Err(why) = set.insert(at, &self.slots) {
                // Sets before this one keep its place, which counts for nothing.
                self.slots.0[at as usize].alive = false;
                return Err(why);
            }
        }
        self.live += 1;
        Ok(())
    }

    fn alive(&self, at: PatternIndex) -> bool {
        self.slots.0.get(at as usize).is_some_and(|slot| slot.alive)
    }

    fn places(&self, which: Which<'_>) -> Vec<PatternIndex> {
        let found = match which {
            Which::Key(key) => self.sets.first().map(|set| set.like(key, self.slots.0.len(), &self.slots)),
            Which::Reference(wanted) => {
                self.slots.0.binary_search_by_key(&wanted, |slot| slot.reference).ok().map(|at| vec![at as u32])
            }
        };
        let means = |at: &PatternIndex| match which {
            Which::Key(key) => self.slots.key(*at) == key,
            Which::Reference(_) => true,
        };
        let mut found = found.unwrap_or_default();
        found.retain(|at| self.alive(*at) && means(at));
        found
    }

    /// Where most of it is dead it is made anew, so that what a change costs does not grow.
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

    /// The entry that a prepared sample matches.
    ///
    /// # Errors
    /// A regular expression takes too many steps.
    pub fn find<'s>(&'s self, lookup: &'s Lookup, value: Value<'_>) -> Result<Option<Found<'s>>, Exhausted> {
        self.find_within(lookup, value, &Steps::for_text(value.size()))
    }

    /// The same with steps that others take, too.
    ///
    /// # Errors
    /// As of [`Change::find`].
    pub fn find_within<'s>(
        &'s self,
        lookup: &'s Lookup,
        value: Value<'_>,
        steps: &Steps,
    ) -> Result<Option<Found<'s>>, Exhausted> {
        let base = &lookup.base;
        let alive = |at| !self.dead.contains(&at);
        let old = if self.base { base.set.find_within(value, &*self.entries, &alive, steps)? } else { None };
        if let Some(hit) = old
            && !base.set.finest_counts()
        {
            return Ok(Some(self.base_entry(hit.at)));
        }
        let new = match self.layer.sets.get(lookup.view) {
            Some(set) => set.find_within(value, &self.layer.slots, &|at| self.layer.alive(at), steps)?,
            None => None,
        };
        Ok(match (old, new) {
            (Some(old), new) if new.is_none_or(|new| new.weight <= old.weight) => Some(self.base_entry(old.at)),
            (_, Some(new)) => {
                let slot = self.layer.slots.0.get(new.at as usize);
                // Methods without patterns find place 0, whether or not there is an entry.
                Some(slot.map_or(Found { at: None, added: None, key: &[], value: &[] }, |slot| Found {
                    at: None,
                    added: Some(new.at),
                    key: &slot.key,
                    value: &slot.value,
                }))
            }
            _ => None,
        })
    }

    /// The regular expression of an entry that was added, as it was compiled then.
    pub fn regex(&self, lookup: &Lookup, added: PatternIndex) -> Option<&Regex> {
        self.layer.sets.get(lookup.view)?.regex(added)
    }

    fn base_entry(&self, at: PatternIndex) -> Found<'_> {
        let value = self.values.get(&at).map(|value| &**value).unwrap_or_else(|| self.entries.value(at));
        Found { at: Some(at), added: None, key: self.entries.key(at), value }
    }

    /// How many entries there are, whatever their version.
    pub fn count(&self) -> usize {
        let base = if self.base { self.entries.len() - self.dead.len() } else { 0 };
        base + self.layer.live + self.pending.iter().map(|(_, layer)| layer.live).sum::<usize>()
    }

    /// Entries that were added to the current version and are held, dead ones included.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.layer.slots.0.len()
    }

    /// Some entries of a version in their order, behind that reference: what `show map` tells.
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

    /// The value of the first entry of that very key in the current version.
    pub fn value_of(&self, key: &[u8]) -> Option<&[u8]> {
        if let Some(at) = self.base_places(Which::Key(key)).first() {
            return Some(self.base_entry(*at).value);
        }
        let places = self.layer.places(Which::Key(key));
        places.first().and_then(|at| self.layer.slots.0.get(*at as usize)).map(|slot| &*slot.value)
    }

    /// Whether the current version has an entry of that key.
    pub fn has(&self, key: &[u8]) -> bool {
        !self.base_places(Which::Key(key)).is_empty() || !self.layer.places(Which::Key(key)).is_empty()
    }

    fn base_places(&self, which: Which<'_>) -> Vec<PatternIndex> {
        if !self.base {
            return Vec::new();
        }
        let mut found = match which {
            Which::Key(key) => {
                let like = self.views.first().map(|view| view.set.like(key, self.entries.len(), &*self.entries));
                let mut like = like.unwrap_or_default();
                like.retain(|at| self.entries.key(*at) == key);
                like
            }
            Which::Reference(wanted) => {
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

    /// Adds an entry, whether or not there is one of that key.
    ///
    /// # Errors
    /// Why not.
    pub fn add(&mut self, version: Option<u32>, key: &[u8], value: &[u8]) -> Result<(), ChangeError> {
        let version = version.unwrap_or(self.current);
        // Numbers of versions wrap.
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

    /// Gives entries of the current version another value.
    ///
    /// # Errors
    /// Why not.
    pub fn set(&mut self, which: Which<'_>, value: &[u8]) -> Result<(), ChangeError> {
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

    /// Takes entries out of the current version; whether there were any.
    pub fn remove(&mut self, which: Which<'_>, fallen: &mut Vec<Layer>) -> bool {
        let (base, added) = (self.base_places(which), self.layer.places(which));
        let found = !base.is_empty() || !added.is_empty();
        for at in base {
            self.values.remove(&at);
            self.dead.insert(at);
        }
        for at in added {
            self.layer.slots.0[at as usize].alive = false;
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

    /// A number for a version to be filled.
    pub fn prepare(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// Puts a version in the place of the current one. False: it was not prepared, or is past.
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
