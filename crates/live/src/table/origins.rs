//! The values of an entry's origins, and their sums. An update costs the same with two origins as with thousands: the
//! difference of the former and the new values is added. Must never change a rate but by moving ended periods on, and
//! never keep a value beyond its expiry.

use super::Layout;
use super::rate;
use config::spec::DataForm;
use std::ops::Range;

/// The words before the first origin: the time at which the sums must be computed again.
const HEAD: usize = 1;
/// The words before an origin's data: the origin, and the expiry.
const BLOCK_HEAD: usize = 2;
/// Sums are computed again after this time at the latest, in milliseconds: times wrap.
const HORIZON: u32 = 1 << 30;
/// Up to this number of origins the sums are computed from all values at each update: that is fast, and needs no memory.
const FEW: usize = 8;
/// With more origins, sums are computed from all values at most once in this time (milliseconds), or in this part of the
/// shortest period of a rate: the periods of many origins end at as many times.
const INTERVAL: u32 = 10;
const INTERVALS: u32 = 256;

/// The sender of values: a peer, and the session since which all its values are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub index: u16,
    pub epoch: u16,
}

impl Origin {
    /// Whether its values are older than those of another session of the same peer.
    pub(super) fn is_before(self, present: Self) -> bool {
        // Sessions are numbered, and the numbers wrap.
        (present.epoch.wrapping_sub(self.epoch) as i16) > 0
    }

    fn word(self) -> u32 {
        u32::from(self.index) | u32::from(self.epoch) << 16
    }

    fn of_word(word: u32) -> Self {
        Self { index: word as u16, epoch: (word >> 16) as u16 }
    }
}

/// The values of an entry's origins.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// The head, then for each origin its values, in the order of their indexes.
    words: Vec<u32>,
    /// The sums, while there are more than [`FEW`] origins.
    running: Option<Box<RunningSums>>,
}

/// The table and the time of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct SumContext<'a> {
    pub(super) layout: &'a Layout,
    /// Values expire.
    pub(super) expires: bool,
    /// In milliseconds, wrapping.
    pub(super) now: u32,
}

impl<'a> SumContext<'a> {
    /// The words of an origin.
    fn block(&self) -> usize {
        BLOCK_HEAD + self.layout.words()
    }

    /// The minimum time between two computations from all values of many origins, in milliseconds.
    fn interval(&self) -> u32 {
        let periods = self.layout.stores.iter().map(|store| store.period).filter(|period| *period > 0);
        periods.min().map_or(INTERVAL, |period| INTERVAL.min(period / INTERVALS)).max(1)
    }

    /// The stored elements: their form, their words in an entry, the period of a rate.
    fn elements(&self) -> impl Iterator<Item = Element> + use<'a> {
        let layout = self.layout;
        layout.stores.iter().flat_map(move |store| {
            let place = move |element| layout.find(store.kind, element);
            (0..store.elements).filter_map(place).map(|(place, period)| Element {
                form: store.kind.form(),
                place,
                period,
            })
        })
    }

    /// Moves ended periods of an origin's rates on. Returns the time until the next one ends, or until the values expire.
    fn settle(&self, block: &mut [u32]) -> u32 {
        let left = match self.expires {
            // They may have ended before they were received.
            true if is_past(block[1], self.now) => 0,
            true => block[1].wrapping_sub(self.now),
            false => HORIZON,
        };
        let rates = self.elements().filter(|element| element.form == DataForm::Rate);
        rates.fold(left.min(HORIZON), |left, Element { place, period, .. }| {
            let words = &mut block[BLOCK_HEAD..][place];
            left.min(rate::settle(words, self.now, period).unwrap_or(HORIZON))
        })
    }
}

/// An element of the data.
struct Element {
    form: DataForm,
    place: Range<usize>,
    period: u32,
}

/// The result of a computation from all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remaining {
    /// No values are left.
    Nothing,
    /// The last values expire after this time, in milliseconds.
    For(u32),
}

impl Origins {
    /// Whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.words.len() <= HEAD
    }

    /// The number of origins.
    pub(super) fn len(&self, around: &SumContext<'_>) -> usize {
        self.words.len().saturating_sub(HEAD) / around.block()
    }

    /// Whether the sums must be computed again: a period of a rate or the life of values has ended.
    pub(super) fn is_due(&self, now: u32) -> bool {
        self.words.first().is_some_and(|horizon| is_past(*horizon, now))
    }

    /// Returns the position of an origin's values, or the one at which they are to be inserted.
    fn find(&self, index: u16, block: usize) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.words.len().saturating_sub(HEAD) / block);
        while low < high {
            let middle = low.midpoint(high);
            let at = HEAD + middle * block;
            match Origin::of_word(self.words[at]).index.cmp(&index) {
                std::cmp::Ordering::Equal => return Ok(at),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(HEAD + low * block)
    }

    /// Stores the values of an origin, which `fill` writes into zeroed words, in place of its former ones. False: the sums
    /// must be computed from all values.
    pub(super) fn store(
        &mut self,
        around: &SumContext<'_>,
        origin: Origin,
        until: u32,
        fill: impl FnOnce(&mut [u32]),
    ) -> bool {
        let size = around.block();
        let (start, known) = match self.find(origin.index, size) {
            Ok(start) => (start, true),
            Err(start) => (start, false),
        };
        if known {
            self.count(around, start, -1);
        } else {
            self.insert(start, size);
        }
        let block = &mut self.words[start..start + size];
        block[..BLOCK_HEAD].copy_from_slice(&[origin.word(), until]);
        block[BLOCK_HEAD..].fill(0);
        fill(&mut block[BLOCK_HEAD..]);
        let left = around.settle(block);
        if self.running.is_none() || self.is_due(around.now) {
            return false;
        }
        self.count(around, start, 1);
        if self.words[0].wrapping_sub(around.now) > left {
            self.words[0] = around.now.wrapping_add(left);
        }
        true
    }

    /// Makes space for the values of an origin.
    fn insert(&mut self, start: usize, size: usize) {
        let (start, missing) = if self.words.is_empty() { (HEAD, HEAD + size) } else { (start, size) };
        if self.words.capacity() - self.words.len() < missing {
            // Grows by an eighth: few origins share most keys.
            self.words.reserve_exact(missing + size * (self.words.len() / size / 8));
        }
        let before = self.words.len().max(HEAD);
        self.words.resize(before + size, 0);
        self.words.copy_within(start..before, start + size);
    }

    /// Removes the values of an origin if `is_former`. False: it has none of these.
    pub(super) fn remove(
        &mut self,
        around: &SumContext<'_>,
        index: u16,
        is_former: impl FnOnce(Origin) -> bool,
    ) -> bool {
        let Ok(start) = self.find(index, around.block()) else { return false };
        let removes = is_former(Origin::of_word(self.words[start]));
        if removes {
            self.words.drain(start..start + around.block());
            // They are computed again.
            self.running = None;
        }
        removes
    }

    /// Adds the values of an origin to the running sums, or subtracts them.
    fn count(&mut self, around: &SumContext<'_>, start: usize, sign: i128) {
        let Some(running) = &mut self.running else { return };
        let (data, mut at) = (&self.words[start + BLOCK_HEAD..start + around.block()], 0);
        for element in around.elements() {
            let parts = SumParts::of(&element, data, running.reference);
            for part in &parts.0[..SumParts::number(element.form)] {
                running.parts[at] += sign * part;
                at += 1;
            }
        }
    }

    /// Writes the running sums.
    pub(super) fn write(&self, around: &SumContext<'_>, out: &mut [u32]) {
        let Some(running) = &self.running else { return };
        let mut at = 0;
        for element in around.elements() {
            let number = SumParts::number(element.form);
            let mut parts = SumParts::default();
            parts.0[..number].copy_from_slice(&running.parts[at..at + number]);
            at += number;
            parts.write(&element, out, running.reference, around.now);
        }
    }

    /// Removes expired values, and computes and writes the sums of the others.
    pub(super) fn add_up(&mut self, around: &SumContext<'_>, out: &mut [u32]) -> Remaining {
        let size = around.block();
        let (mut left, mut remaining) = (HORIZON, Remaining::Nothing);
        let (mut from, mut kept) = (HEAD, HEAD);
        while from + size <= self.words.len() {
            if !around.expires || !is_past(self.words[from + 1], around.now) {
                self.words.copy_within(from..from + size, kept);
                let block = &mut self.words[kept..kept + size];
                let life = block[1].wrapping_sub(around.now);
                remaining = match remaining {
                    Remaining::For(longest) => Remaining::For(longest.max(life)),
                    Remaining::Nothing => Remaining::For(life),
                };
                left = left.min(around.settle(block));
                kept += size;
            }
            from += size;
        }
        self.words.truncate(kept);
        let is_many = self.len(around) > FEW;
        let mut running = self.running.take().filter(|_| is_many);
        if is_many {
            left = left.max(around.interval());
            let sums = running.get_or_insert_default();
            sums.reference = around.now;
            sums.parts.clear();
        }
        for element in around.elements() {
            let mut sum = SumParts::default();
            for block in self.words.get(HEAD..).unwrap_or_default().chunks_exact(size) {
                let parts = SumParts::of(&element, &block[BLOCK_HEAD..], around.now);
                sum.0.iter_mut().zip(parts.0).for_each(|(sum, part)| *sum += part);
            }
            sum.write(&element, out, around.now, around.now);
            if let Some(running) = &mut running {
                running.parts.extend(&sum.0[..SumParts::number(element.form)]);
            }
        }
        self.running = running;
        if let Some(horizon) = self.words.first_mut() {
            *horizon = around.now.wrapping_add(left);
        }
        remaining
    }
}

/// The sums of all values of an entry.
#[derive(Debug, Default)]
struct RunningSums {
    /// The time at which the ages of the parts are counted, in milliseconds, wrapping.
    reference: u32,
    /// For each element as many as [`SumParts::number`].
    parts: Vec<i128>,
}

/// The sum of an element, without rounding or saturation: a number, or of a rate the events of the current and the
/// previous periods, and both multiplied by the ages of the periods at a time.
#[derive(Debug, Clone, Copy, Default)]
struct SumParts([i128; 4]);

impl SumParts {
    /// The number of parts that are used.
    fn number(form: DataForm) -> usize {
        if form == DataForm::Rate { 4 } else { 1 }
    }

    /// Returns the share of an origin's data.
    fn of(element: &Element, data: &[u32], reference: u32) -> Self {
        match (element.form, &data[element.place.clone()]) {
            (DataForm::Rate, [begin, current, previous]) => {
                // Negative if it begins later.
                let age = i128::from(reference.wrapping_sub(*begin) as i32);
                let (current, previous) = (i128::from(*current), i128::from(*previous));
                Self([current, previous, current * age, previous * age])
            }
            (DataForm::Large, [low, high]) => Self([i128::from(u64::from(*low) | u64::from(*high) << 32), 0, 0, 0]),
            (_, words) => Self([words.first().map_or(0, |word| i128::from(*word)), 0, 0, 0]),
        }
    }

    /// Writes the sum. The period of a rate has the mean age of the periods whose events are fading, so that they fade as
    /// fast as these: until a period ends it has their sum at any time.
    fn write(self, element: &Element, out: &mut [u32], reference: u32, now: u32) {
        let [sum, previous, aged, aged_previous] = self.0;
        let word = |part: i128| u32::try_from(part).unwrap_or(u32::MAX);
        match (element.form, &mut out[element.place.clone()]) {
            (DataForm::Rate, [begin, current, past]) => {
                let (aged, events) = if previous == 0 { (aged, sum) } else { (aged_previous, previous) };
                let age = aged / events.max(1) + i128::from(now.wrapping_sub(reference) as i32);
                *begin = now.wrapping_sub(u32::try_from(age).unwrap_or(0));
                (*current, *past) = (word(sum), word(previous));
            }
            (DataForm::Large, [low, high]) => {
                let sum = u64::try_from(sum).unwrap_or(u64::MAX);
                (*low, *high) = (sum as u32, (sum >> 32) as u32);
            }
            (_, words) => words.iter_mut().for_each(|out| *out = word(sum)),
        }
    }
}

/// Whether a time in milliseconds has been reached.
fn is_past(then: u32, now: u32) -> bool {
    now.wrapping_sub(then) as i32 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::spec::{DataKind, StoreSpec};

    fn layout() -> Layout {
        let store = |kind, elements, period| StoreSpec { kind, elements, period };
        Layout::new(vec![
            store(DataKind::Gpc0, 1, 0),
            store(DataKind::HttpReqRate, 1, 5_120),
            store(DataKind::BytesInCnt, 1, 0),
            store(DataKind::GpcRate, 3, 10_000),
        ])
    }

    impl Origins {
        /// The exact sums of all values, at the time of the running ones.
        fn fresh(&self, around: &SumContext<'_>, reference: u32) -> Vec<i128> {
            let mut sums = Vec::new();
            for element in around.elements() {
                let mut sum = [0; 4];
                for block in self.words[HEAD..].chunks_exact(around.block()) {
                    let parts = SumParts::of(&element, &block[BLOCK_HEAD..], reference).0;
                    (0..4).for_each(|at| sum[at] += parts[at]);
                }
                sums.extend(&sum[..SumParts::number(element.form)]);
            }
            sums
        }
    }

    /// A generator of numbers below a limit.
    fn below(random: &mut u64, limit: u64) -> u64 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % limit
    }

    #[test]
    fn running_sums_are_the_sums_of_all_values() {
        let (layout, mut random) = (layout(), 11);
        let (mut origins, mut out) = (Origins::default(), vec![0; layout.words()]);
        // Times wrap soon.
        let (mut now, mut kept, mut computed) = (u32::MAX - 100_000, 0, 0);
        for step in 0..40_000 {
            now = now.wrapping_add(below(&mut random, 3) as u32 * below(&mut random, 40) as u32);
            let around = SumContext { layout: &layout, expires: true, now };
            let index = below(&mut random, 40) as u16;
            match below(&mut random, 400) {
                0 => {
                    origins.remove(&around, index, |_| true);
                }
                1 => now = now.wrapping_add(below(&mut random, 20_000) as u32),
                _ => {
                    let until = now.wrapping_add(1 + below(&mut random, 20_000) as u32);
                    let mut value =
                        || if below(&mut random, 50) == 0 { u32::MAX } else { below(&mut random, 1_000) as u32 };
                    let values: Vec<u32> = (0..layout.words()).map(|_| value()).collect();
                    let age = below(&mut random, 25_000) as u32;
                    let counted = origins.store(&around, Origin { index, epoch: 0 }, until, |words| {
                        words.copy_from_slice(&values);
                        for kind in [DataKind::HttpReqRate, DataKind::GpcRate] {
                            // Some begin later than now, by the clock of another thread.
                            let begin = now.wrapping_sub(age).wrapping_add(5);
                            words[layout.place(kind, 0).unwrap()][0] = begin;
                        }
                    });
                    if counted {
                        kept += 1;
                        origins.write(&around, &mut out);
                    } else {
                        computed += 1;
                        origins.add_up(&around, &mut out);
                    }
                }
            }
            if let Some(running) = &origins.running {
                assert_eq!(running.parts, origins.fresh(&around, running.reference), "step {step}");
                assert!(origins.len(&around) > FEW);
            } else if origins.len(&around) > FEW {
                origins.add_up(&around, &mut out);
            }
        }
        assert!(kept > 10_000 && computed > 1_000, "{kept} kept, {computed} computed");
    }

    #[test]
    fn an_update_of_many_origins_computes_no_sum_of_all() {
        const MANY: u16 = 1_000;
        let layout = layout();
        let around = |now| SumContext { layout: &layout, expires: true, now };
        let (mut origins, mut out) = (Origins::default(), vec![0; layout.words()]);
        let (mut capacity, mut growths, mut computed) = (0, 0, 0);
        let gpc = layout.place(DataKind::Gpc0, 0).unwrap().start;
        for round in 1..=3 {
            // In no order.
            for index in (0..MANY).map(|at| at * 7 % MANY) {
                let fill = |words: &mut [u32]| words[gpc] = round;
                if origins.store(&around(round), Origin { index, epoch: 0 }, 60_000, fill) {
                    origins.write(&around(round), &mut out);
                } else {
                    origins.add_up(&around(round), &mut out);
                    computed += 1;
                }
                growths += u32::from(std::mem::replace(&mut capacity, origins.words.capacity()) != capacity);
            }
            assert_eq!(out[gpc], u32::from(MANY) * round);
        }
        assert_eq!(computed, FEW + 1);
        assert!(growths < 60, "{growths}");
    }

    #[test]
    fn sums_of_many_origins_are_computed_at_intervals() {
        let layout = layout();
        let (mut origins, mut out) = (Origins::default(), vec![0; layout.words()]);
        let (mut now, mut computed) = (1_000_000, 0);
        let place = layout.place(DataKind::HttpReqRate, 0).unwrap();
        for index in 0..1_000 {
            // A period ends in each five milliseconds.
            let around = SumContext { layout: &layout, expires: true, now };
            let begin = now - u32::from(index) * 5;
            let is_counted = origins.store(&around, Origin { index, epoch: 0 }, now + 100_000, |words| {
                words[place.clone()].copy_from_slice(&[begin, 1_000, 0]);
            });
            if !is_counted {
                origins.add_up(&around, &mut out);
            }
        }
        for _ in 0..5_120 {
            now += 1;
            let around = SumContext { layout: &layout, expires: true, now };
            if origins.is_due(now) {
                origins.add_up(&around, &mut out);
                computed += 1;
            }
        }
        assert!((400..=512).contains(&computed), "{computed}");
    }
}
