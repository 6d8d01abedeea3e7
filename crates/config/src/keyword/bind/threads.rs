//! Sets of threads, as written with `thread` (section 5.1). Whether the threads exist is not checked here.

use super::BindContext;
use crate::document::Word;
use crate::keyword::argument::leading_number;
use crate::spec::{Parity, ThreadRange, ThreadsSpec};

/// Maximum number of threads of a process, and of a group, in HAProxy.
const MOST_THREADS: u32 = 1024;
const MOST_IN_GROUP: u32 = 64;
/// Maximum number of groups of a process.
const MOST_GROUPS: u32 = 32;

/// Parses `thread`. If it is repeated, both sets apply.
pub(super) fn read(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else { return };
    let before = context.draft.listening.threads.take().unwrap_or_default();
    match parse(&word.text, before) {
        Ok(threads) => context.draft.listening.threads = Some(threads).filter(|threads| !threads.0.is_empty()),
        Err(message) => context.error(if word.text.is_empty() { keyword.span } else { word.span }, message),
    }
}

/// Adds the parts of a text to the known set; returns HAProxy's sentence on error.
fn parse(text: &str, mut known: ThreadsSpec) -> Result<ThreadsSpec, String> {
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (group, set) = group(part)?;
        match (known.0.first().map(|range| range.group.is_some()), group) {
            (Some(true), None) => {
                return Err(format!(
                    "absolute thread specification '{part}' is not permitted after a group-relative thread range."
                ));
            }
            (Some(false), Some(_)) => {
                return Err(format!(
                    "group-relative thread specification '{part}' is not permitted after a absolute thread range."
                ));
            }
            _ => known.0.push(range(set, group)?),
        }
    }
    Ok(known)
}

/// Splits off the group number in front of a slash.
fn group(part: &str) -> Result<(Option<u32>, &str), String> {
    let Some((number, set)) = part.split_once('/') else { return Ok((None, part)) };
    if number.is_empty() {
        return Err(format!("thread group number expected before '{part}'."));
    }
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok((None, part));
    }
    let group = leading_number(number).0;
    let group = u32::try_from(group).ok().filter(|group| (1..=MOST_GROUPS).contains(group)).ok_or_else(|| {
        format!("invalid thread group number '{number}', permitted range is 1..{MOST_GROUPS} in '{part}'.")
    })?;
    if set.starts_with('/') {
        return Err(format!("redundant thread group specification '{set}' for group {group}"));
    }
    Ok((Some(group), set))
}

fn range(set: &str, group: Option<u32>) -> Result<ThreadRange, String> {
    let most = if group.is_some() { MOST_IN_GROUP } else { MOST_THREADS };
    let every = |parity| Ok(ThreadRange { group, first: 1, last: None, parity });
    match set {
        "" | "all" => return every(Parity::All),
        "odd" => return every(Parity::Odd),
        "even" => return every(Parity::Even),
        _ => {}
    }
    let bad_first =
        || format!("invalid first thread number '{set}', permitted range is 1..{most}, or 'all', 'odd', 'even'.");
    let digits = set.len() - set.trim_start_matches(|found: char| found.is_ascii_digit()).len();
    let (number, rest) = set.split_at(digits);
    let first = match number {
        "" if rest.starts_with('-') => 1,
        number => bounded(number, most).ok_or_else(bad_first)?,
    };
    let Some(last) = rest.strip_prefix('-') else {
        return match rest.chars().next() {
            None => Ok(ThreadRange { group, first, last: Some(first), parity: Parity::All }),
            Some(found) => Err(format!("invalid character '{found}' in thread set specification: '{set}'.")),
        };
    };
    if last.is_empty() {
        return Ok(ThreadRange { group, first, last: None, parity: Parity::All });
    }
    let digits = last.len() - last.trim_start_matches(|found: char| found.is_ascii_digit()).len();
    let number = bounded(&last[..digits], most)
        .ok_or_else(|| format!("invalid last thread number '{last}', permitted range is 1..{most}."))?;
    if let Some(found) = last[digits..].chars().next() {
        return Err(format!("invalid character '{found}' after thread set specification: '{last}'."));
    }
    // A reversed range has the same meaning.
    let (first, last) = (first.min(number), Some(first.max(number)));
    Ok(ThreadRange { group, first, last, parity: Parity::All })
}

fn bounded(digits: &str, most: u32) -> Option<u32> {
    u32::try_from(leading_number(digits).0).ok().filter(|number| (1..=most).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_haproxy_takes() {
        for (text, in_set, not_in_set) in [
            ("1,3", &[1, 3][..], &[2, 4][..]),
            ("2-", &[2, 900], &[1]),
            ("-3", &[1, 3], &[4]),
            ("3-1", &[1, 2, 3], &[4]),
            ("odd", &[1, 3], &[2]),
            ("even,1", &[1, 2, 4], &[3]),
            ("all,1", &[1, 2], &[]),
            ("1,", &[1], &[2]),
            (",1", &[1], &[2]),
        ] {
            let set = parse(text, ThreadsSpec::default()).unwrap();
            let contains = |number: &u32| set.0.iter().any(|range| range.group.is_none() && range.contains(*number));
            assert!(in_set.iter().all(contains) && !not_in_set.iter().any(contains), "{text}");
        }
        let relative = parse("1/1-2,2/odd,3/", ThreadsSpec::default()).unwrap();
        assert_eq!(relative.0.iter().map(|range| range.group).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn sentences_of_haproxy() {
        for (text, expected) in [
            ("0", "invalid first thread number '0', permitted range is 1..1024, or 'all', 'odd', 'even'."),
            ("x-1", "invalid first thread number 'x-1', permitted range is 1..1024, or 'all', 'odd', 'even'."),
            ("odd2", "invalid first thread number 'odd2', permitted range is 1..1024, or 'all', 'odd', 'even'."),
            ("a/1", "invalid first thread number 'a/1', permitted range is 1..1024, or 'all', 'odd', 'even'."),
            ("1/70", "invalid first thread number '70', permitted range is 1..64, or 'all', 'odd', 'even'."),
            ("1-2000", "invalid last thread number '2000', permitted range is 1..1024."),
            ("1-x", "invalid last thread number 'x', permitted range is 1..1024."),
            ("1/1-100", "invalid last thread number '100', permitted range is 1..64."),
            ("1x", "invalid character 'x' in thread set specification: '1x'."),
            ("1-2x", "invalid character 'x' after thread set specification: '2x'."),
            ("0/1", "invalid thread group number '0', permitted range is 1..32 in '0/1'."),
            ("33/1", "invalid thread group number '33', permitted range is 1..32 in '33/1'."),
            ("/1", "thread group number expected before '/1'."),
            ("1//2", "redundant thread group specification '/2' for group 1"),
            ("1/1,2", "absolute thread specification '2' is not permitted after a group-relative thread range."),
            ("1,1/2", "group-relative thread specification '1/2' is not permitted after a absolute thread range."),
        ] {
            assert_eq!(parse(text, ThreadsSpec::default()).unwrap_err(), expected);
        }
    }
}
