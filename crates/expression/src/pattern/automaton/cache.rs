//! A lazy automaton that caches the states reached so far. Each worker has its own cache; when the cache exceeds its
//! memory limit, it is cleared and rebuilt. Must never continue when the steps are exhausted.

use super::Steps;
use super::ends::MatchEnds;
use super::program::{ALONE, Assertion, Inst, Program, ScanDirection, TooLarge};
use super::starts::Starts;
use crate::sample::Exhausted;
use regex_syntax::hir::Hir;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cell::Cell;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A transition that has not been computed. Others are the offset of a state's row.
const UNKNOWN: u32 = u32::MAX;
/// Set in a transition when the target state has a match or ends the search.
const SPECIAL: u32 = 1 << 31;
/// Number of caches; further workers may have to start with an empty one.
const SHARES: usize = 8;
/// Steps charged for computing a transition.
const TRANSITION: u64 = 40;
/// Steps charged for adding a state.
const ADDITION: u64 = 60;
/// Steps charged for each reported pattern.
const STEPS_A_REPORT: u64 = 4;

/// A compiled set of patterns.
pub struct Automaton {
    program: Program,
    /// The class of each byte: bytes of one class have the same transitions.
    classes: Box<[u8; 256]>,
    /// A byte of each class. The class after the last one is the end of the text.
    bytes: Box<[u8]>,
    /// Memory limit of one cache in bytes.
    most_memory: usize,
    shares: [Mutex<Option<Box<Cache>>>; SHARES],
}

/// The position before the next byte, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Before {
    Nothing,
    Word,
    Other,
}

/// A state: the active instructions after the byte that led to it.
#[derive(Debug)]
struct State {
    /// The active instructions that consume a byte or test an assertion, in order. The start of the patterns is always
    /// active, and is not included.
    insts: Box<[u32]>,
    /// The patterns that have matched.
    matched: Box<[u32]>,
    before: Before,
    ends: MatchEnds,
    /// The next state with the same hash, or [`UNKNOWN`].
    next: u32,
}

/// The result of starting all patterns at a byte.
#[derive(Debug, Default)]
struct StartSet {
    insts: Vec<u32>,
    matched: Vec<u32>,
    ends: MatchEnds,
}

#[derive(Default)]
struct Cache {
    /// The transition for each class, one row per state.
    transitions: Vec<u32>,
    states: Vec<State>,
    /// The last added state of each hash; others with the same hash are linked from it.
    known: FxHashMap<u64, u32>,
    /// For each state the search in which its patterns were last reported.
    reported: Vec<u32>,
    /// The number of the current search.
    look: u32,
    begun: FxHashMap<(Before, u16), StartSet>,
    /// Approximate memory of the cache in bytes.
    memory: usize,
    work: Work,
}

/// Scratch space of one transition.
#[derive(Default)]
struct Work {
    /// For each instruction the transition that visited it last.
    met: Vec<u32>,
    now: u32,
    stack: Vec<u32>,
    found: Vec<u32>,
    matched: Vec<u32>,
    /// The highest instruction visited of each family.
    highest: Vec<u32>,
}

thread_local! {
    static SHARE: Cell<usize> = const { Cell::new(usize::MAX) };
}
static NEXT_SHARE: AtomicUsize = AtomicUsize::new(0);

fn share() -> usize {
    SHARE.with(|share| {
        if share.get() == usize::MAX {
            share.set(NEXT_SHARE.fetch_add(1, Ordering::Relaxed));
        }
        share.get()
    })
}

impl Automaton {
    /// Compiles patterns; a pattern's number is its index.
    ///
    /// # Errors
    /// More than `most` instructions are needed.
    pub fn new<'h>(
        patterns: impl Iterator<Item = &'h Hir>,
        way: ScanDirection,
        most: usize,
        most_memory: usize,
    ) -> Result<Self, TooLarge> {
        let program = Program::new(patterns, way, most)?;
        let (classes, bytes) = classes(&program);
        Ok(Self { program, classes, bytes, most_memory, shares: Default::default() })
    }

    /// Whether it matches at the start or nowhere.
    pub fn is_anchored(&self) -> bool {
        self.program.anchored && self.program.way == ScanDirection::Forward
    }

    /// Whether one of the patterns matches anywhere.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn is_match(&self, text: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        steps.take(text.len() as u64)?;
        match self.program.way {
            ScanDirection::Forward => self.reads(text.iter(), steps),
            ScanDirection::Backward => self.reads(text.iter().rev(), steps),
        }
    }

    fn reads<'t>(&self, text: impl Iterator<Item = &'t u8>, steps: &Steps) -> Result<bool, Exhausted> {
        self.lend(|cache| {
            let mut at = 0;
            for byte in text {
                let class = u16::from(self.classes[usize::from(*byte)]);
                at = cache.follow(self, at, class, steps)?;
                if at & SPECIAL != 0 {
                    at &= !SPECIAL;
                    let state = cache.state(self, at);
                    if state.ends.before || state.ends.after {
                        return Ok(true);
                    }
                    if state.insts.is_empty() {
                        return Ok(false);
                    }
                }
            }
            let end = cache.follow(self, at, self.end(), steps)?;
            Ok(cache.state(self, end & !SPECIAL).ends.before)
        })
    }

    /// Reports every pattern that matches, possibly more than once. A state that is reached again in the same search is
    /// not reported again.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn each(&self, text: &[u8], steps: &Steps, mut tell: impl FnMut(u32)) -> Result<(), Exhausted> {
        steps.take(text.len() as u64)?;
        self.lend(|cache| {
            cache.begin_look();
            let mut at = 0;
            let classes = text.iter().map(|byte| u16::from(self.classes[usize::from(*byte)]));
            for class in classes.chain([self.end()]) {
                at = cache.follow(self, at, class, steps)?;
                if at & SPECIAL != 0 {
                    at &= !SPECIAL;
                    let number = at as usize / self.columns();
                    let (state, reported) = (&cache.states[number], &mut cache.reported[number]);
                    if *reported != cache.look {
                        *reported = cache.look;
                        steps.take(STEPS_A_REPORT * state.matched.len() as u64)?;
                        state.matched.iter().for_each(|pattern| tell(*pattern));
                    }
                    if self.program.anchored && state.insts.is_empty() {
                        break;
                    }
                }
            }
            Ok(())
        })
    }

    /// Finds the positions where matches begin; the automaton must read backwards. If it has several patterns, at most
    /// 256, none of them may contain assertions or match the empty text.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn starts(&self, text: &[u8], starts: &mut Starts, steps: &Steps) -> Result<(), Exhausted> {
        starts.clear(text.len());
        steps.take(text.len() as u64)?;
        let several = self.program.patterns > 1;
        starts.first.resize(if several { text.len() } else { 0 }, 0);
        self.lend(|cache| {
            let mut at = 0;
            for (place, byte) in text.iter().enumerate().rev() {
                at = cache.follow(self, at, u16::from(self.classes[usize::from(*byte)]), steps)?;
                if at & SPECIAL != 0 {
                    at &= !SPECIAL;
                    let state = cache.state(self, at);
                    if state.ends.before {
                        starts.set(place + 1);
                    }
                    if state.ends.after {
                        starts.set(place);
                    }
                    if several {
                        starts.first[place] = state.matched.first().map_or(0, |pattern| *pattern as u8);
                    }
                    if self.program.anchored && state.insts.is_empty() {
                        return Ok(());
                    }
                }
            }
            let end = cache.follow(self, at, self.end(), steps)?;
            if cache.state(self, end & !SPECIAL).ends.before {
                starts.set(0);
            }
            Ok(())
        })
    }

    /// Returns the length of the prefix that an anchored pattern may read: no byte after it can be part of a match,
    /// whatever the order of the search.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn reach(&self, text: &[u8], steps: &Steps) -> Result<usize, Exhausted> {
        self.lend(|cache| {
            let mut at = 0;
            for (place, byte) in text.iter().enumerate() {
                at = cache.follow(self, at, u16::from(self.classes[usize::from(*byte)]), steps)?;
                if at & SPECIAL != 0 {
                    at &= !SPECIAL;
                    if cache.state(self, at).insts.is_empty() {
                        steps.take(place as u64 + 1)?;
                        return Ok(place + 1);
                    }
                }
            }
            steps.take(text.len() as u64)?;
            Ok(text.len())
        })
    }

    /// Calls `with` with this worker's cache, or with another one if it is in use.
    fn lend<T>(&self, with: impl FnOnce(&mut Cache) -> T) -> T {
        let own = share();
        for turn in 0..SHARES {
            if let Ok(mut cache) = self.shares[(own + turn) % SHARES].try_lock() {
                return with(cache.get_or_insert_with(|| Box::new(Cache::new(self))));
            }
        }
        with(&mut Cache::new(self))
    }

    /// The class of the text's end.
    fn end(&self) -> u16 {
        self.bytes.len() as u16
    }

    fn columns(&self) -> usize {
        self.bytes.len() + 1
    }

    /// The kind of the position after a byte of that class.
    fn behind(&self, class: u16) -> Before {
        match self.bytes.get(usize::from(class)) {
            Some(byte) if self.program.looks_at_words && is_word(*byte) => Before::Word,
            _ => Before::Other,
        }
    }

    fn holds(&self, looking: Assertion, before: Before, class: u16) -> bool {
        let next = self.bytes.get(usize::from(class));
        let word = (before == Before::Word) != next.is_some_and(|byte| is_word(*byte));
        match looking {
            Assertion::Start => before == Before::Nothing,
            Assertion::End => next.is_none(),
            Assertion::Word => word,
            Assertion::NotWord => !word,
        }
    }

    fn takes(&self, inst: Inst, class: u16) -> Option<u32> {
        let byte = *self.bytes.get(usize::from(class))?;
        match inst {
            Inst::Range(low, high, next) => (low..=high).contains(&byte).then_some(next),
            Inst::Ranges(at, count, next) => {
                let ranges = &self.program.ranges[at as usize..][..usize::from(count)];
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&byte)).then_some(next)
            }
            _ => None,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Computes the class of each byte, and a byte of each class.
fn classes(program: &Program) -> (Box<[u8; 256]>, Box<[u8]>) {
    let mut begins = [false; 257];
    let mut cut = |low: u8, high: u8| (begins[usize::from(low)], begins[usize::from(high) + 1]) = (true, true);
    for inst in &program.insts {
        if let Inst::Range(low, high, _) = inst {
            cut(*low, *high);
        }
    }
    program.ranges.iter().for_each(|(low, high)| cut(*low, *high));
    if program.looks_at_words {
        [(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')].iter().for_each(|(low, high)| cut(*low, *high));
    }
    let (mut classes, mut bytes) = (Box::new([0; 256]), vec![0]);
    for byte in 1..=u8::MAX {
        if begins[usize::from(byte)] {
            bytes.push(byte);
        }
        classes[usize::from(byte)] = (bytes.len() - 1) as u8;
    }
    (classes, bytes.into())
}

impl Cache {
    fn new(automaton: &Automaton) -> Self {
        let mut cache = Self::default();
        cache.work.met = vec![0; automaton.program.insts.len()];
        cache.work.highest = vec![0; automaton.program.families.len()];
        cache.begin(automaton);
        cache
    }

    /// Clears all states but the first one.
    fn begin(&mut self, automaton: &Automaton) {
        self.transitions.clear();
        self.states.clear();
        self.known.clear();
        self.reported.clear();
        self.memory = (self.work.met.len() + self.work.highest.len()) * 4;
        let start = State {
            insts: Box::default(),
            matched: Box::default(),
            before: Before::Nothing,
            ends: MatchEnds::default(),
            next: UNKNOWN,
        };
        let hash = self.work.hash(start.before, start.ends);
        self.add(automaton, start, hash);
    }

    /// Starts a search: no state has been reported in it.
    fn begin_look(&mut self) {
        if self.look == u32::MAX {
            self.reported.fill(0);
            self.look = 0;
        }
        self.look += 1;
    }

    fn add(&mut self, automaton: &Automaton, mut state: State, hash: u64) -> u32 {
        let number = self.transitions.len() as u32;
        let is_over = automaton.program.anchored && state.insts.is_empty() && number > 0;
        let special = state.ends.before || state.ends.after || is_over;
        let marked = if special { number | SPECIAL } else { number };
        self.transitions.resize(self.transitions.len() + automaton.columns(), UNKNOWN);
        self.memory += automaton.columns() * 4 + (state.insts.len() + state.matched.len()) * 4 + 200;
        state.next = self.known.insert(hash, marked).unwrap_or(UNKNOWN);
        self.states.push(state);
        self.reported.push(0);
        marked
    }

    /// Returns the state found by the current computation, if it is cached.
    fn known(&self, automaton: &Automaton, hash: u64, before: Before, ends: MatchEnds) -> Option<u32> {
        let mut at = *self.known.get(&hash)?;
        while at != UNKNOWN {
            let state = self.state(automaton, at & !SPECIAL);
            if *state.insts == *self.work.found
                && *state.matched == *self.work.matched
                && (state.before, state.ends) == (before, ends)
            {
                return Some(at);
            }
            at = state.next;
        }
        None
    }

    /// The state of a row offset.
    fn state(&self, automaton: &Automaton, at: u32) -> &State {
        &self.states[at as usize / automaton.columns()]
    }

    #[inline]
    fn follow(&mut self, automaton: &Automaton, at: u32, class: u16, steps: &Steps) -> Result<u32, Exhausted> {
        match self.transitions[at as usize + usize::from(class)] {
            UNKNOWN => self.work_out(automaton, at, class, steps),
            known => Ok(known),
        }
    }

    /// Computes the transition for a class on its first use.
    #[cold]
    #[inline(never)]
    fn work_out(&mut self, automaton: &Automaton, at: u32, class: u16, steps: &Steps) -> Result<u32, Exhausted> {
        steps.take(TRANSITION)?;
        let number = at as usize / automaton.columns();
        let before = self.states[number].before;
        if !self.begun.contains_key(&(before, class)) {
            let begun = self.work.begin(automaton, before, class, steps)?;
            self.begun.insert((before, class), begun);
        }
        let Self { work, states, begun, .. } = self;
        let begun = &begun[&(before, class)];
        work.reset();
        let ends = work.advance(automaton, &states[number].insts, before, class, steps)?;
        steps.take(begun.insts.len() as u64)?;
        for inst in &begun.insts {
            if work.meet(*inst) {
                work.found.push(*inst);
            }
        }
        work.matched.extend_from_slice(&begun.matched);
        let ends = MatchEnds { before: ends.before || begun.ends.before, after: ends.after || begun.ends.after };
        steps.take(2 * work.found.len() as u64)?;
        work.prune(&automaton.program.families);
        work.found.sort_unstable();
        work.matched.sort_unstable();
        work.matched.dedup();
        let before = automaton.behind(class);
        let hash = work.hash(before, ends);
        if let Some(known) = self.known(automaton, hash, before, ends) {
            self.transitions[at as usize + usize::from(class)] = known;
            return Ok(known);
        }
        let (insts, matched) = (self.work.found.as_slice().into(), self.work.matched.as_slice().into());
        let state = State { insts, matched, before, ends, next: UNKNOWN };
        steps.take(ADDITION + automaton.columns() as u64 / 4 + state.insts.len() as u64)?;
        if self.memory > automaton.most_memory {
            self.begin(automaton);
            return Ok(self.add(automaton, state, hash));
        }
        let to = self.add(automaton, state, hash);
        self.transitions[at as usize + usize::from(class)] = to;
        Ok(to)
    }
}

impl Work {
    fn reset(&mut self) {
        self.found.clear();
        self.matched.clear();
        self.fresh();
    }

    /// Marks all instructions as not visited.
    fn fresh(&mut self) {
        if self.now == u32::MAX {
            self.met.fill(0);
            self.now = 0;
        }
        self.now += 1;
    }

    /// Removes all but one instruction of each family: the one whose matches include those of the others.
    fn prune(&mut self, families: &[u32]) {
        if families.is_empty() {
            return;
        }
        self.fresh();
        let Self { met, now, found, highest, .. } = self;
        for inst in found.iter() {
            let family = families[*inst as usize];
            if family != ALONE {
                let is_first = std::mem::replace(&mut met[family as usize], *now) != *now;
                let highest = &mut highest[family as usize];
                *highest = if is_first { *inst } else { (*highest).max(*inst) };
            }
        }
        found.retain(|inst| {
            let family = families[*inst as usize];
            family == ALONE || highest[family as usize] == *inst
        });
    }

    /// The hash of the computed state.
    fn hash(&self, before: Before, ends: MatchEnds) -> u64 {
        FxBuildHasher.hash_one((&*self.found, &*self.matched, before, ends))
    }

    /// Whether an instruction is visited for the first time.
    fn meet(&mut self, inst: u32) -> bool {
        std::mem::replace(&mut self.met[inst as usize], self.now) != self.now
    }

    /// Starts all patterns at a byte.
    fn begin(
        &mut self,
        automaton: &Automaton,
        before: Before,
        class: u16,
        steps: &Steps,
    ) -> Result<StartSet, Exhausted> {
        self.reset();
        let ends = self.advance(automaton, &[automaton.program.start], before, class, steps)?;
        Ok(StartSet { insts: self.found.clone(), matched: self.matched.clone(), ends })
    }

    /// Consumes a byte of a class, or the end. Computes the active instructions after it; returns whether matches end
    /// before and after it.
    fn advance(
        &mut self,
        automaton: &Automaton,
        insts: &[u32],
        before: Before,
        class: u16,
        steps: &Steps,
    ) -> Result<MatchEnds, Exhausted> {
        let mut ends = MatchEnds::default();
        let program = &automaton.program;
        // Both sides of the position before the byte are known: assertions are decided.
        self.stack.clear();
        self.stack.extend_from_slice(insts);
        let mut taken = std::mem::take(&mut self.found);
        while let Some(at) = self.stack.pop() {
            if !self.meet(at) {
                continue;
            }
            match program.insts[at as usize] {
                Inst::Split(first, count) => {
                    steps.take(u64::from(count))?;
                    self.stack.extend_from_slice(&program.splits[first as usize..][..count as usize]);
                }
                Inst::Look(looking, next) if automaton.holds(looking, before, class) => self.stack.push(next),
                Inst::Look(..) => {}
                Inst::Match(pattern) => {
                    ends.before = true;
                    self.matched.push(pattern);
                }
                inst => taken.extend(automaton.takes(inst, class)),
            }
            if steps.take(1).is_err() {
                self.found = taken;
                return Err(Exhausted);
            }
        }
        // After the byte only the left side is known.
        self.fresh();
        std::mem::swap(&mut self.stack, &mut taken);
        taken.clear();
        self.found = taken;
        while let Some(at) = self.stack.pop() {
            steps.take(1)?;
            if !self.meet(at) {
                continue;
            }
            match program.insts[at as usize] {
                Inst::Split(first, count) => {
                    steps.take(u64::from(count))?;
                    self.stack.extend_from_slice(&program.splits[first as usize..][..count as usize]);
                }
                Inst::Match(pattern) => {
                    ends.after = true;
                    self.matched.push(pattern);
                }
                _ => self.found.push(at),
            }
        }
        Ok(ends)
    }
}

impl fmt::Debug for Automaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Automaton({} instructions, {} classes)", self.program.insts.len(), self.bytes.len())
    }
}
