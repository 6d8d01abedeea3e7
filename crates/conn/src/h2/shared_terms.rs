//! Limits that connections of a thread share: nearly all connections have the same. Must never keep more than one set of them
//! that no connection uses.

use std::cell::RefCell;
use std::rc::Rc;

use super::Terms;

thread_local! {
    /// The latest limits.
    static LATEST: RefCell<Option<Rc<Terms>>> = const { RefCell::new(None) };
}

/// Returns limits that equal `terms`, those of the latest connection if possible.
pub(super) fn of(terms: Terms) -> Rc<Terms> {
    LATEST.with_borrow_mut(|latest| match latest {
        Some(latest) if **latest == terms => Rc::clone(latest),
        _ => Rc::clone(latest.insert(Rc::new(terms))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_limits_are_shared_and_others_are_not() {
        let terms = Terms::default();
        let other = Terms { max_streams: 7, ..terms };
        let (first, second, third, fourth) = (of(terms), of(terms), of(other), of(terms));
        assert!(Rc::ptr_eq(&first, &second) && !Rc::ptr_eq(&first, &third));
        assert_eq!((*first, *third, *fourth), (terms, other, terms));
        drop((third, fourth));
        assert_eq!(Rc::strong_count(&first), 2, "only the latest limits are kept");
    }
}
