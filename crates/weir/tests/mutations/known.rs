//! Where verdicts may differ, each with its reason. Must never excuse a mutant that nothing of it names.

use crate::compare::Verdict;

/// Who refuses, a part of what it says, and why the other one does not.
type Known = (Refuses, &'static str, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refuses {
    Weir,
    Haproxy,
}

use Refuses::{Haproxy, Weir};

const KNOWN: &[Known] = &[
    (Weir, "is not supported yet by Weir", "a later version will support it"),
    (Weir, "invalid address", "HAProxy looks up names that no host can have, when it looks them up at all"),
    (Weir, "missing port specification", "HAProxy takes an empty variable for the port 0"),
    (Weir, "is an invalid size", "HAProxy takes what is beyond 64 bits for the largest number"),
    (Weir, "unable to find bwlim filter", "HAProxy compares the beginning of a very long name"),
    (Weir, "invalid args in fetch method 'acl' : ACL '' not found", "HAProxy passes over an empty name"),
    (Weir, "as type 'integer'", "HAProxy takes what is beyond 64 bits for the largest number"),
    (Weir, "must be between", "HAProxy keeps 32 bits of a number, so that large ones become small"),
    (Weir, "is not within 0 and 256", "HAProxy keeps 32 bits of a number, so that large ones become small"),
    (Weir, "expects an integer argument between", "HAProxy keeps 32 bits of a number, so that large ones become small"),
    (Haproxy, "Internal error: invalid default message", "Weir's own pages fit into any buffer"),
];

/// Whether a difference has a reason.
pub fn is_known(ours: &Verdict, theirs: &Verdict) -> bool {
    let (who, refused) = if ours.code == Some(0) { (Haproxy, theirs) } else { (Weir, ours) };
    // HAProxy calls some things an alert and goes on. Weir does so where nothing is lost by it.
    let goes_on = who == Weir && !theirs.alerts.is_empty();
    let says = |part: &str| refused.alerts.iter().any(|alert| alert.contains(part));
    goes_on || KNOWN.iter().any(|(refuses, part, _)| *refuses == who && says(part))
}

#[test]
fn every_known_difference_has_its_reason() {
    for (_, part, reason) in KNOWN {
        assert!(part.len() > 5 && reason.len() > 10, "{part}");
    }
}
