//! The routes of a section: which of their announcements is wanted, and which one is announced. A route changes at most once in
//! an interval, and the last state always follows. Must never know a session.

use std::time::Duration;

use base::moment::Moment;

/// Minimum interval between two changes of a route.
const INTERVAL: Duration = Duration::from_millis(100);

/// The state of the routes, in the order of their plans.
#[derive(Debug)]
pub struct Routes(Box<[RouteState]>);

#[derive(Debug, Clone, Copy, Default)]
struct RouteState {
    /// The announcement whose condition holds; `None`: there is none.
    wanted: Option<usize>,
    current: Option<usize>,
    /// Last change of `current`.
    changed: Option<Moment>,
    changes: u64,
}

impl RouteState {
    /// Returns when the route may change, if it has to.
    fn due(&self) -> Option<Moment> {
        let differs = self.wanted != self.current;
        differs.then(|| self.changed.map_or(Moment::ZERO, |changed| changed.saturating_add(INTERVAL)))
    }
}

impl Routes {
    /// Creates routes of which none is announced.
    pub fn new(number: usize) -> Self {
        Self(vec![RouteState::default(); number].into())
    }

    /// Sets the announcement of a route whose condition holds.
    pub fn want(&mut self, route: usize, announcement: Option<usize>) {
        if let Some(state) = self.0.get_mut(route) {
            state.wanted = announcement;
        }
    }

    /// Makes the changes that are due. Returns whether there are any.
    pub fn settle(&mut self, now: Moment) -> bool {
        let mut is_changed = false;
        for state in self.0.iter_mut().filter(|state| state.due().is_some_and(|due| due <= now)) {
            (state.current, state.changed) = (state.wanted, Some(now));
            state.changes += 1;
            is_changed = true;
        }
        is_changed
    }

    /// Returns when the next change is due.
    pub fn deadline(&self) -> Option<Moment> {
        self.0.iter().filter_map(RouteState::due).min()
    }

    /// Returns the announcement of a route that is announced.
    pub fn current(&self, route: usize) -> Option<usize> {
        self.0.get(route).and_then(|state| state.current)
    }

    /// Returns the last change of a route, and the number of its changes.
    pub fn changes(&self, route: usize) -> (Option<Moment>, u64) {
        self.0.get(route).map_or((None, 0), |state| (state.changed, state.changes))
    }

    /// Returns the number of routes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::ZERO + Duration::from_millis(1_000 + millis)
    }

    #[test]
    fn the_first_change_is_made_at_once_and_flapping_is_bounded() {
        let mut routes = Routes::new(2);
        assert_eq!((routes.deadline(), routes.settle(at(0))), (None, false));
        routes.want(0, Some(1));
        assert!(routes.settle(at(0)));
        assert_eq!((routes.current(0), routes.current(1)), (Some(1), None));
        let mut changes = 0;
        for millis in 1..=1_000 {
            routes.want(0, (millis % 2 == 0).then_some(0));
            changes += u64::from(routes.settle(at(millis)));
        }
        assert!((5..=10).contains(&changes), "{changes}");
        assert_eq!(routes.changes(0).1, changes + 1);
        assert_eq!(routes.changes(1), (None, 0));
    }

    #[test]
    fn the_last_state_follows() {
        let mut routes = Routes::new(1);
        routes.want(0, Some(0));
        routes.settle(at(0));
        routes.want(0, None);
        assert!(!routes.settle(at(99)));
        assert_eq!(routes.deadline(), Some(at(100)));
        assert!(routes.settle(at(100)));
        assert_eq!((routes.current(0), routes.deadline()), (None, None));
        // A change that is taken back within the interval is none.
        routes.want(0, Some(0));
        assert_eq!(routes.deadline(), Some(at(200)));
        routes.want(0, None);
        assert_eq!((routes.deadline(), routes.settle(at(300))), (None, false));
    }
}
