//! The choice of the busiest objects, those whose history is kept. Must never read a counter.

/// Weight of the newest interval in an object's rate: a rate is an average over about a minute.
const NEWEST: f32 = 0.2;

/// An object displaces one that is kept only if it is that many times as busy: two objects of about the same rate do not
/// displace each other again and again.
const HYSTERESIS: f32 = 1.5;

/// Rate of a place without an object.
const ABSENT: f32 = -1.0;

/// The activity of an object.
#[derive(Debug, Clone, Copy)]
struct Activity {
    /// The lower half of its counter at the last interval.
    total: u32,
    /// Events per interval; [`ABSENT`]: there is no object.
    rate: f32,
}

const NONE: Activity = Activity { total: 0, rate: ABSENT };

/// The activities of objects by index, and the indexes of the busiest ones.
#[derive(Debug, Default)]
pub(super) struct Selection {
    activities: Vec<Activity>,
    /// In ascending order.
    busiest: Vec<u32>,
}

impl Selection {
    /// Maximum number of objects considered: those with the lowest indexes. Bounds the memory.
    pub(super) const MOST: usize = 32_768;

    /// Records an interval, with the counter of each object by its index, and selects the busiest `most`.
    pub(super) fn record(&mut self, totals: &[Option<u64>], most: usize) {
        let places = totals.len().min(Self::MOST);
        if self.activities.capacity() < places {
            self.activities.reserve_exact(places - self.activities.len());
        }
        self.activities.resize(places, NONE);
        for (activity, total) in self.activities.iter_mut().zip(totals) {
            activity.record(*total);
        }
        let mut ranks: Vec<(f32, u32)> = Vec::new();
        for (index, activity) in (0_u32..).zip(&self.activities).filter(|(_, activity)| activity.rate >= 0.0) {
            // Objects that are kept precede others of the same rate.
            let score =
                if self.is_busy(index) { activity.rate * HYSTERESIS + f32::MIN_POSITIVE } else { activity.rate };
            ranks.push((score, index));
        }
        if ranks.len() > most {
            ranks.select_nth_unstable_by(most, |one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
            ranks.truncate(most);
        }
        self.busiest = ranks.into_iter().map(|(_, index)| index).collect();
        self.busiest.sort_unstable();
        self.busiest.shrink_to_fit();
    }

    /// Whether an object is one of the busiest.
    pub(super) fn is_busy(&self, index: u32) -> bool {
        self.busiest.binary_search(&index).is_ok()
    }

    /// Returns the indexes of the busiest objects, in ascending order.
    pub(super) fn busiest(&self) -> &[u32] {
        &self.busiest
    }

    /// Returns the number of allocated bytes.
    pub(super) fn bytes(&self) -> usize {
        self.activities.capacity() * size_of::<Activity>() + self.busiest.capacity() * size_of::<u32>()
    }
}

impl Activity {
    fn record(&mut self, total: Option<u64>) {
        let Some(total) = total.map(|total| total as u32) else { return *self = NONE };
        if self.rate < 0.0 {
            *self = Self { total, rate: 0.0 };
            return;
        }
        // A counter that was cleared begins at 0 again.
        let events = total.checked_sub(self.total).unwrap_or(total);
        self.rate += (events as f32 - self.rate) * NEWEST;
        self.total = total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records intervals in which each object has as many events as its place in `events` says.
    fn run(selection: &mut Selection, totals: &mut [Option<u64>], events: &[u64], intervals: usize, most: usize) {
        for _ in 0..intervals {
            for (total, events) in totals.iter_mut().zip(events) {
                *total = total.map(|total| total + events);
            }
            selection.record(totals, most);
        }
    }

    #[test]
    fn the_busiest_are_kept_until_others_are_clearly_busier() {
        let (mut selection, mut totals) = (Selection::default(), vec![Some(0); 5]);
        // All are kept if there are few.
        run(&mut selection, &mut totals, &[0; 5], 1, 5);
        assert_eq!(selection.busiest(), [0, 1, 2, 3, 4]);
        // Without events, those that are kept remain.
        run(&mut selection, &mut totals, &[0; 5], 3, 2);
        assert_eq!(selection.busiest(), [0, 1]);
        run(&mut selection, &mut totals, &[0, 0, 0, 10, 100], 3, 2);
        assert_eq!(selection.busiest(), [3, 4]);
        // A little busier does not suffice.
        run(&mut selection, &mut totals, &[0, 0, 13, 10, 100], 100, 2);
        assert_eq!(selection.busiest(), [3, 4]);
        run(&mut selection, &mut totals, &[0, 0, 16, 10, 100], 100, 2);
        assert_eq!(selection.busiest(), [2, 4]);
        // And it is not displaced by the former one.
        run(&mut selection, &mut totals, &[0, 0, 16, 20, 100], 100, 2);
        assert_eq!(selection.busiest(), [2, 4]);
    }

    #[test]
    fn removed_objects_leave_and_cleared_counters_are_no_burst() {
        let (mut selection, mut totals) = (Selection::default(), vec![Some(0), Some(1_000_000), Some(0)]);
        run(&mut selection, &mut totals, &[1, 0, 5], 10, 2);
        assert_eq!(selection.busiest(), [0, 2]);
        totals[2] = None;
        selection.record(&totals, 2);
        assert_eq!(selection.busiest(), [0, 1]);
        // The place has another object, whose counter begins at any value.
        totals[2] = Some(500);
        selection.record(&totals, 2);
        assert_eq!(selection.busiest(), [0, 1]);
        // A cleared counter.
        totals[1] = Some(0);
        run(&mut selection, &mut totals, &[2, 0, 1], 10, 1);
        assert_eq!(selection.busiest(), [0]);
        selection.record(&[], 1);
        assert_eq!(selection.busiest(), [] as [u32; 0]);
    }

    #[test]
    fn only_a_bounded_number_of_objects_is_considered() {
        let mut selection = Selection::default();
        selection.record(&vec![Some(7); Selection::MOST + 1000], 200);
        assert_eq!(selection.busiest().len(), 200);
        assert!(selection.bytes() <= Selection::MOST * 8 + 200 * 4, "{}", selection.bytes());
    }
}
