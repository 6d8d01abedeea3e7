//! A hashed hierarchical timer wheel: arming and cancelling are O(1), resolution is about one millisecond.
//!
//! It must never return a token early, and never read a clock.
//!
//! Six levels of 64 slots. A slot of level 0 is one tick of 2^20 ns (1.05 ms) wide, a slot of each further level 64
//! times as wide as one of the level below; together they span 2.3 years, and timers beyond that wait in the last
//! level. A timer is on the lowest level on which its tick and the present share all higher digits (of 6 bits), and
//! moves down one or more levels when the present enters its slot.

use crate::moment::Moment;

const TICK_BITS: u32 = 20;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 6;
/// Number of ticks that the wheel spans.
const REACH: u64 = 1 << (SLOT_BITS * LEVELS as u32);
/// No entry: the end of a list.
const NONE: u32 = u32::MAX;

/// Identifies one armed timer until it expires or is cancelled; stale afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

/// The armed timers of one worker, each with a token that is returned on expiry.
pub struct TimerWheel<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
    levels: [Level; LEVELS],
    /// The tick up to which everything has expired.
    present: u64,
}

struct Entry<T> {
    /// The first tick at which the timer may expire.
    tick: u64,
    generation: u32,
    previous: u32,
    /// The next entry of the slot's list, or of the free list.
    next: u32,
    level: u8,
    slot: u8,
    /// `None` when the entry is free.
    token: Option<T>,
}

#[derive(Clone, Copy)]
struct Level {
    /// Bit n is set when slot n is not empty.
    occupied: u64,
    heads: [u32; SLOTS],
}

/// Returns the first tick that is not before `at`.
fn first_tick_at(at: Moment) -> u64 {
    at.as_nanos().div_ceil(1 << TICK_BITS)
}

/// Returns the level and slot of a timer of `tick` when the wheel is at `present`.
fn place(tick: u64, present: u64) -> (usize, usize) {
    let tick = tick.clamp(present + 1, present.saturating_add(REACH - 1));
    let differing = (tick ^ present) | (SLOTS as u64 - 1);
    let level = ((63 - differing.leading_zeros()) / SLOT_BITS) as usize;
    let level = level.min(LEVELS - 1);
    (level, ((tick >> (level as u32 * SLOT_BITS)) % SLOTS as u64) as usize)
}

impl<T> TimerWheel<T> {
    /// Creates an empty wheel at the time `now`.
    pub fn new(now: Moment) -> TimerWheel<T> {
        let level = Level { occupied: 0, heads: [NONE; SLOTS] };
        let present = now.as_nanos() >> TICK_BITS;
        TimerWheel { entries: Vec::new(), free: NONE, len: 0, levels: [level; LEVELS], present }
    }

    /// Returns the number of armed timers.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer is armed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Arms a timer for `at`. A timer in the past expires with the wheel's next tick.
    pub fn arm(&mut self, at: Moment, token: T) -> TimerKey {
        let index = self.allocate(first_tick_at(at), token);
        self.link(index);
        self.len += 1;
        TimerKey { index, generation: self.entries[index as usize].generation }
    }

    /// Disarms a timer and returns its token; `None` if it has expired or was cancelled.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation != key.generation || entry.token.is_none() {
            return None;
        }
        self.unlink(key.index);
        self.release(key.index)
    }

    /// Returns when [`TimerWheel::expire`] should be called next, or `None` if nothing is armed. Never after the
    /// earliest timer by more than its tick, sometimes before it: then timers move to a lower level, and none expires.
    pub fn next_deadline(&self) -> Option<Moment> {
        let (_, _, tick) = self.next_slot()?;
        Some(Moment::from_nanos(tick.saturating_mul(1 << TICK_BITS)))
    }

    /// Advances the wheel to `now` and appends the tokens of all timers that are due, by tick. A `now` before an
    /// earlier one has no effect.
    pub fn expire(&mut self, now: Moment, due: &mut Vec<T>) {
        let target = now.as_nanos() >> TICK_BITS;
        while let Some((level, slot, tick)) = self.next_slot() {
            if tick > target {
                break;
            }
            self.present = tick;
            self.empty_slot(level, slot, due);
        }
        self.present = self.present.max(target);
    }

    /// Returns the slot that the present enters next, and the tick at which it does.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        (0..LEVELS).find_map(|number| {
            let level = &self.levels[number];
            if level.occupied == 0 {
                return None;
            }
            let shift = number as u32 * SLOT_BITS;
            let current = (self.present >> shift) % SLOTS as u64;
            // A slot equal to the current one is a whole revolution away, which only the last level can hold.
            let ahead = level.occupied.rotate_right(current as u32 + 1).trailing_zeros() as u64 + 1;
            let tick = ((self.present >> shift) + ahead) << shift;
            Some((number, ((current + ahead) % SLOTS as u64) as usize, tick))
        })
    }

    /// Empties a slot that the present has entered: due timers expire, others move to a lower level.
    fn empty_slot(&mut self, level: usize, slot: usize, due: &mut Vec<T>) {
        let mut index = std::mem::replace(&mut self.levels[level].heads[slot], NONE);
        self.levels[level].occupied &= !(1 << slot);
        while index != NONE {
            let Entry { tick, next, .. } = self.entries[index as usize];
            if tick <= self.present {
                due.extend(self.release(index));
            } else {
                self.link(index);
            }
            index = next;
        }
    }

    fn allocate(&mut self, tick: u64, token: T) -> u32 {
        if let Some(entry) = self.entries.get_mut(self.free as usize) {
            let index = std::mem::replace(&mut self.free, entry.next);
            entry.tick = tick;
            entry.token = Some(token);
            return index;
        }
        let index = self.entries.len() as u32;
        assert!(index < NONE, "a wheel has fewer than 2^32 - 1 timers");
        let token = Some(token);
        self.entries.push(Entry { tick, generation: 0, previous: NONE, next: NONE, level: 0, slot: 0, token });
        index
    }

    /// Frees an unlinked entry and returns its token.
    fn release(&mut self, index: u32) -> Option<T> {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = std::mem::replace(&mut self.free, index);
        self.len -= 1;
        entry.token.take()
    }

    fn link(&mut self, index: u32) {
        let (level, slot) = place(self.entries[index as usize].tick, self.present);
        let head = std::mem::replace(&mut self.levels[level].heads[slot], index);
        self.levels[level].occupied |= 1 << slot;
        if let Some(first) = self.entries.get_mut(head as usize) {
            first.previous = index;
        }
        let entry = &mut self.entries[index as usize];
        (entry.previous, entry.next) = (NONE, head);
        (entry.level, entry.slot) = (level as u8, slot as u8);
    }

    fn unlink(&mut self, index: u32) {
        let Entry { previous, next, level, slot, .. } = self.entries[index as usize];
        if let Some(entry) = self.entries.get_mut(next as usize) {
            entry.previous = previous;
        }
        if let Some(entry) = self.entries.get_mut(previous as usize) {
            entry.next = next;
            return;
        }
        let level = &mut self.levels[level as usize];
        level.heads[slot as usize] = next;
        if next == NONE {
            level.occupied &= !(1 << slot);
        }
    }
}

impl<T> std::fmt::Debug for TimerWheel<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimerWheel").field("len", &self.len).field("present", &self.present).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const TICK: Duration = Duration::from_nanos(1 << TICK_BITS);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_timer_is_never_early_and_less_than_a_tick_late() {
        let mut wheel = TimerWheel::new(at(5));
        let mut due = Vec::new();
        wheel.arm(at(100), 'a');
        wheel.expire(Moment::from_nanos(at(100).as_nanos() - 1), &mut due);
        assert!(due.is_empty());
        wheel.expire(at(100) + TICK, &mut due);
        assert_eq!(due, ['a']);
        assert!(wheel.is_empty());
    }

    #[test]
    fn a_cancelled_timer_stays_silent_and_its_key_goes_stale() {
        let mut wheel = TimerWheel::new(Moment::ZERO);
        let (first, second) = (wheel.arm(at(50), 1), wheel.arm(at(50), 2));
        assert_eq!(wheel.cancel(first), Some(1));
        assert_eq!(wheel.cancel(first), None);
        let third = wheel.arm(at(9), 3);
        let mut due = Vec::new();
        wheel.expire(at(60), &mut due);
        assert_eq!(due, [3, 2]);
        assert_eq!((wheel.cancel(second), wheel.cancel(third)), (None, None));
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn the_past_expires_with_the_next_tick() {
        let mut wheel = TimerWheel::new(at(1_000));
        wheel.arm(at(3), ());
        let mut due = Vec::new();
        wheel.expire(at(1_000) + TICK, &mut due);
        assert_eq!(due.len(), 1);
    }

    #[test]
    fn what_lies_beyond_the_wheel_comes_back_round() {
        let mut wheel = TimerWheel::new(Moment::ZERO);
        let far = Moment::ZERO + TICK * u32::MAX * 100;
        wheel.arm(far, ());
        wheel.arm(Moment::MAX, ());
        let mut due = Vec::new();
        while wheel.len() == 2 {
            let next = wheel.next_deadline().expect("two timers are armed");
            assert!(next <= far);
            wheel.expire(next, &mut due);
        }
        assert!(wheel.next_deadline().is_some());
    }

    #[derive(Clone, Debug)]
    enum WheelAction {
        Arm(u64),
        Cancel(usize),
        Advance(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<WheelAction>> {
        let delay = prop_oneof![0..200_000_000u64, 0..100_000_000_000u64, 0..100_000_000_000_000_000u64];
        let step = prop_oneof![
            4 => delay.clone().prop_map(WheelAction::Arm),
            1 => any::<usize>().prop_map(WheelAction::Cancel),
            3 => delay.prop_map(WheelAction::Advance),
        ];
        prop::collection::vec(step, 1..80)
    }

    /// The timers that are due at `now` by definition, found by a linear search.
    fn must_be_due(armed: &[(TimerKey, u64, usize)], now: u64) -> Vec<usize> {
        let tick = 1 << TICK_BITS;
        armed.iter().filter(|(_, deadline, _)| deadline.div_ceil(tick) <= now / tick).map(|(_, _, n)| *n).collect()
    }

    proptest! {
        #[test]
        fn the_wheel_agrees_with_a_list(start in 0..1_000_000_000_000u64, steps in steps()) {
            let mut now = start;
            let mut wheel = TimerWheel::new(Moment::from_nanos(now));
            let mut armed: Vec<(TimerKey, u64, usize)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    WheelAction::Arm(delay) => {
                        let deadline = now + delay + (1 << TICK_BITS);
                        armed.push((wheel.arm(Moment::from_nanos(deadline), number), deadline, number));
                    }
                    WheelAction::Cancel(which) if !armed.is_empty() => {
                        let (key, _, token) = armed.swap_remove(which % armed.len());
                        prop_assert_eq!(wheel.cancel(key), Some(token));
                    }
                    WheelAction::Cancel(_) => {}
                    WheelAction::Advance(by) => {
                        now += by;
                        let mut expected = must_be_due(&armed, now);
                        let mut due = Vec::new();
                        wheel.expire(Moment::from_nanos(now), &mut due);
                        due.sort_unstable();
                        expected.sort_unstable();
                        armed.retain(|(_, _, token)| !expected.contains(token));
                        prop_assert_eq!(due, expected);
                    }
                }
                prop_assert_eq!(wheel.len(), armed.len());
                let earliest = armed.iter().map(|(_, deadline, _)| *deadline).min();
                match (wheel.next_deadline(), earliest) {
                    (Some(next), Some(earliest)) => prop_assert!(next.as_nanos() < earliest + (1 << TICK_BITS)),
                    (next, earliest) => prop_assert_eq!(next.is_some(), earliest.is_some()),
                }
            }
        }
    }
}
