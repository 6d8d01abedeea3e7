//! Known differences, each with its reason. Must never excuse a mutant that does not match one.

use crate::compare::Verdict;

/// The program that rejects, a part of its message, and why the other one does not.
type KnownRejection = (Refuses, &'static str, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refuses {
    Weir,
    Haproxy,
}

use Refuses::{Haproxy, Weir};

const KNOWN: &[KnownRejection] = &[
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

/// Whether a difference is known.
pub fn is_known(ours: &Verdict, theirs: &Verdict) -> bool {
    let (who, refused) = if ours.code == Some(0) { (Haproxy, theirs) } else { (Weir, ours) };
    // HAProxy continues after some alerts. Weir does so where this has no consequences.
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
