//! The script that a store runs, which makes its decisions by its own clock. Must never be changed without thought for nodes that
//! run another version: the state in the store is the same for all.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use live::lease::{Ask, Grant, Limit};
use sha1::{Digest as _, Sha1};
use wire::resp::OwnedReply;

use super::client::Client;
use super::fault::Fault;

/// The script.
pub(super) const TEXT: &[u8] = include_bytes!("script.lua");
/// Time after which a node that has not reported counts as gone.
const PRESENCE: Duration = Duration::from_secs(5);
/// Maximum delay of a command that makes tokens older.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

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

/// Returns the command by which a node reports itself, and learns the number of nodes.
pub(super) fn presence(client: &Client, node: u64) -> Vec<Vec<u8>> {
    vec![
        b"EVALSHA".to_vec(),
        digest().into(),
        b"1".to_vec(),
        client.key(b"nodes"),
        b"nodes".to_vec(),
        format!("{node:016x}").into(),
        PRESENCE.as_micros().to_string().into(),
    ]
}

/// Returns the number of nodes of an answer to [`presence`].
pub(super) fn nodes(answer: &OwnedReply) -> Result<u32, Fault> {
    let count = answer.integer().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0);
    count.ok_or(Fault::Unexpected { command: "EVALSHA" })
}

/// Returns the command that takes and gives back tokens of several keys of a limit. `delay` is the time that an answer takes.
pub(super) fn take(client: &Client, limit: &Limit, delay: Duration, asks: &[Ask]) -> Vec<Vec<u8>> {
    let mut command = vec![b"EVALSHA".to_vec(), digest().into(), asks.len().to_string().into()];
    command.extend(asks.iter().map(|ask| {
        let mut key = client.key(b"limit:");
        key.extend_from_slice(limit.plan.name.as_bytes());
        key.push(b':');
        key.extend_from_slice(&ask.key);
        key
    }));
    let interval = limit.plan.interval();
    command.push(b"take".to_vec());
    // In microseconds, as the store's clock.
    command.push(format!("{}.{:03}", interval / 1_000, interval % 1_000).into());
    command.push(limit.plan.burst.to_string().into());
    command.push(limit.advance(delay).to_string().into());
    for ask in asks {
        // A part of the delay passes until the store has it.
        let age = ask.age + delay.min(LONGEST_DELAY) / 2;
        command.push(ask.spent.to_string().into());
        command.push(age.as_micros().to_string().into());
        command.push(ask.want.to_string().into());
    }
    command
}

/// Returns the grants of an answer to [`take`] for that number of keys: two integers for each.
pub(super) fn grants(answer: &OwnedReply, count: usize) -> Option<Vec<Grant>> {
    let OwnedReply::Array(elements) = answer else { return None };
    if elements.len() != 2 * count {
        return None;
    }
    let grant = |pair: &[OwnedReply]| {
        let (count, left) = (pair.first()?.integer()?, pair.get(1)?.integer()?);
        if count == -1 {
            return Some(Grant::Foreign);
        }
        Some(Grant::Tokens { count: u32::try_from(count).ok()?, left })
    };
    elements.chunks(2).map(grant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_two_integers_for_each_key() {
        use OwnedReply::{Array, Bulk, Integer};
        let tokens = |count, left| Grant::Tokens { count, left };
        let rows = [
            (Array(vec![Integer(5), Integer(-2)]), 1, Some(vec![tokens(5, -2)])),
            (Array(vec![Integer(-1), Integer(0), Integer(0), Integer(9)]), 2, Some(vec![Grant::Foreign, tokens(0, 9)])),
            (Array(vec![]), 0, Some(vec![])),
            (Array(vec![Integer(5), Integer(-2)]), 2, None),
            (Array(vec![Integer(5)]), 1, None),
            (Array(vec![Integer(-2), Integer(0)]), 1, None),
            (Array(vec![Integer(1 << 40), Integer(0)]), 1, None),
            (Array(vec![Integer(5), Bulk(b"5"[..].into())]), 1, None),
            (Integer(5), 1, None),
        ];
        for (answer, count, expected) in rows {
            assert_eq!(grants(&answer, count), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_node_counts_at_least_itself() {
        let rows = [(1, Some(1)), (7, Some(7)), (0, None), (-1, None), (1 << 40, None)];
        for (count, expected) in rows {
            assert_eq!(nodes(&OwnedReply::Integer(count)).ok(), expected, "{count}");
        }
        assert_eq!(nodes(&OwnedReply::Nil), Err(Fault::Unexpected { command: "EVALSHA" }));
    }
}
