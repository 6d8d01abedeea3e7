//! The script that divides the slots of servers between nodes, in the store and by its clock. Must never be changed without thought for
//! nodes that run another version: the state in the store is the same for all.

use std::fmt::Write as _;
use std::sync::OnceLock;

use live::lease::slots::{Claim, SlotGrant};
use sha1::{Digest as _, Sha1};
use wire::resp::OwnedReply;

/// The script.
pub const TEXT: &[u8] = include_bytes!("slots.lua");

/// Returns the name of the script in the store: its SHA-1 digest in hexadecimal.
pub(super) fn digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| {
        Sha1::digest(TEXT).iter().fold(String::new(), |mut text, byte| {
            // A string accepts all text.
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}

/// Returns the arguments of the script after its name: the number of keys, keys, and what a node reports about each.
pub fn arguments(keys: &[Vec<u8>], node: u64, claims: &[Claim]) -> Vec<Vec<u8>> {
    let mut arguments = vec![keys.len().to_string().into_bytes()];
    arguments.extend(keys.iter().cloned());
    let first = claims.first();
    let lifetime = first.map_or(0, |claim| claim.lifetime.as_micros());
    let leaves = first.is_some_and(|claim| claim.is_leaving);
    let head = [format!("{node:016x}"), lifetime.to_string(), u8::from(leaves).to_string()];
    arguments.extend(head.map(String::into_bytes));
    for claim in claims {
        let numbers = [claim.sequence, claim.most.into(), claim.held.into(), claim.demand.into(), claim.nodes.into()];
        arguments.extend(numbers.map(|number| number.to_string().into_bytes()));
    }
    arguments
}

/// Returns the grants of an answer for that number of keys: three integers for each.
pub fn grants(answer: &OwnedReply, count: usize) -> Option<Vec<SlotGrant>> {
    let OwnedReply::Array(elements) = answer else { return None };
    if elements.len() != 3 * count {
        return None;
    }
    let grant = |part: &[OwnedReply]| {
        let [count, nodes, contested] = part else { return None };
        let count = match count.integer()? {
            -1 => return Some(SlotGrant::Foreign),
            -2 => return Some(SlotGrant::Outdated),
            count => u32::try_from(count).ok()?,
        };
        let nodes = u32::try_from(nodes.integer()?).ok().filter(|nodes| *nodes > 0)?;
        Some(SlotGrant::Slots { count, nodes, is_contested: contested.integer()? != 0 })
    };
    elements.chunks(3).map(grant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_three_integers_for_each_server() {
        use OwnedReply::{Array, Bulk, Integer};
        let numbers = |numbers: &[i64]| Array(numbers.iter().copied().map(Integer).collect());
        let slots = |count, nodes, is_contested| SlotGrant::Slots { count, nodes, is_contested };
        let rows = [
            (numbers(&[5, 2, 0]), 1, Some(vec![slots(5, 2, false)])),
            (numbers(&[0, 1, 1, -1, 0, 0]), 2, Some(vec![slots(0, 1, true), SlotGrant::Foreign])),
            (numbers(&[-2, 3, 0]), 1, Some(vec![SlotGrant::Outdated])),
            (numbers(&[]), 0, Some(vec![])),
            (numbers(&[5, 2]), 1, None),
            (numbers(&[5, 2, 0]), 2, None),
            (numbers(&[-3, 2, 0]), 1, None),
            (numbers(&[5, 0, 0]), 1, None),
            (numbers(&[5, -1, 0]), 1, None),
            (numbers(&[1 << 40, 1, 0]), 1, None),
            (numbers(&[1, 1 << 40, 0]), 1, None),
            (Array(vec![Integer(5), Integer(1), Bulk(b"0"[..].into())]), 1, None),
            (Integer(5), 1, None),
        ];
        for (answer, count, expected) in rows {
            assert_eq!(grants(&answer, count), expected, "{answer:?}");
        }
    }
}
