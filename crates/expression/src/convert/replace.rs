//! `regsub`: replaces the matches of a regular expression.

use super::Converter;
use crate::pattern::{Places, Regex, Steps};
use crate::sample::{Context, Exhausted, Meter, Text, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use base::hex;
use std::sync::{Arc, Mutex};

/// Every converter of the family.
pub const TABLE: &[Converter] = &[Converter::new(
    "regsub",
    Signature::new(2, &[Kind::Regex, Kind::Str, Kind::Str]),
    Type::Str,
    Type::Str,
    "Replaces the first match of a regular expression; flag `g`: all matches, `i`: without regard to case.",
    substitute,
)
.checked(check)];

/// A regular expression and its replacement.
struct Substitution {
    regex: Regex,
    everywhere: bool,
    pieces: Vec<Piece>,
    /// Offsets of the groups of a match, for one evaluation at a time.
    places: Mutex<Places>,
}

/// Part of a replacement.
enum Piece {
    Literal(Vec<u8>),
    Group(usize),
}

fn check(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    let flags = arguments.utf8(2).unwrap_or_default();
    if let Some(wrong) = flags.chars().find(|flag| !matches!(flag, 'i' | 'g')) {
        return Err(format!("invalid regex flag '{wrong}', only 'i' and 'g' are supported"));
    }
    let pattern = arguments.utf8(0).unwrap_or_default();
    if pattern.is_empty() {
        return Err("missing regex in arg 1".to_owned());
    }
    let regex = Regex::new(pattern, flags.contains('i'))?;
    checking.names.lists().borrow_mut().note(checking.names.line(), &regex);
    let pieces = pieces(arguments.text(1).unwrap_or_default());
    let places = Mutex::new(Places::default());
    let everywhere = flags.contains('g');
    arguments.set(0, Argument::Made(Arc::new(Substitution { regex, everywhere, pieces, places })));
    Ok(())
}

/// Parses a replacement: `\0` to `\9` are groups, `\x41` is a byte, any other escaped character is itself.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, rest) {
            (b'\\', [group @ b'0'..=b'9', behind @ ..]) => {
                rest = behind;
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                pieces.push(Piece::Group(usize::from(group - b'0')));
            }
            (b'\\', [b'x', high, low, behind @ ..]) if hex::byte([*high, *low]).is_some() => {
                rest = behind;
                literal.extend(hex::byte([*high, *low]));
            }
            (b'\\', [other, behind @ ..]) => {
                rest = behind;
                literal.push(*other);
            }
            (other, _) => literal.push(*other),
        }
    }
    pieces.push(Piece::Literal(literal));
    pieces.retain(|piece| !matches!(piece, Piece::Literal(literal) if literal.is_empty()));
    pieces
}

fn substitute<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (bytes, made) = (value.bytes()?, arguments.made::<Substitution>(0)?);
    if !context.spend(Meter::search(bytes.len())) {
        return None;
    }
    let steps = Steps::for_replacing(bytes.len());
    if !context.bounded(made.regex.is_match_within(bytes, &steps)) {
        return Some(Value::Str(bytes));
    }
    let mut text = context.text(bytes.len() + 64);
    let replaced = match made.places.try_lock() {
        Ok(mut places) => replace(made, bytes, &mut places, &steps, &mut text),
        // Another worker is using them.
        Err(_) => replace(made, bytes, &mut Places::default(), &steps, &mut text),
    };
    context.bounded(replaced);
    text.finish().map(Value::Str)
}

/// Replaces matches from the front. After an empty match a byte is copied, as HAProxy does.
fn replace(
    made: &Substitution,
    bytes: &[u8],
    places: &mut Places,
    steps: &Steps,
    text: &mut Text<'_>,
) -> Result<(), Exhausted> {
    let with_groups = made.pieces.iter().any(|piece| matches!(piece, Piece::Group(1..)));
    let mut search = made.regex.search(places, bytes, steps, with_groups)?;
    let mut at = 0;
    while let Some((start, end)) = search.next(at)? {
        text.extend(&bytes[at..start]);
        for piece in &made.pieces {
            match piece {
                Piece::Literal(literal) => text.extend(literal),
                Piece::Group(group) => {
                    search.get(*group).into_iter().for_each(|(start, end)| text.extend(&bytes[start..end]));
                }
            }
        }
        let moved = end > at;
        at = end;
        if !made.everywhere || text.overflowed() {
            break;
        }
        if !moved {
            let Some(byte) = bytes.get(at) else { break };
            text.push(*byte);
            at += 1;
        }
    }
    text.extend(&bytes[at..]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn matches_are_replaced() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),regsub(b,X)", "aXc"),
                ("str(abab),regsub(b,X,g)", "aXaX"),
                ("str(abAB),regsub(b,X,gi)", "aXAX"),
                ("str(abAB),regsub('(b)(A)','\\2\\1')", "aAbB"),
                ("str(abAB),regsub('(b)(A)','[\\0]')", "a[bA]B"),
                ("str(abAB),regsub('(b)(A)','[\\3]')", "a[]B"),
                ("str(abAB),regsub('(b)(A)','[\\x41]')", "a[A]B"),
                ("str(abAB),regsub('(b)(A)','[\\n]')", "a[n]B"),
                ("str(abAB),regsub('x*','-','g')", "-a-b-A-B-"),
                ("str(abAB),regsub('x*','-')", "-abAB"),
                ("str(abAB),regsub('$','-','g')", "abAB--"),
                ("str(aaaa),regsub('^a','-','g')", "-aaa"),
                ("str(),regsub('^','-','g')", "-"),
                ("str(/////a///b/c/xzxyz/),regsub('/+','/','g')", "/a/b/c/xzxyz/"),
                ("str(abAB),regsub(a,)", "bAB"),
                ("str(a.b),regsub(\\.,_)", "a_b"),
                (
                    "str(abAB),regsub(b,X,z)",
                    "!invalid args in converter 'regsub' : invalid regex flag 'z', only 'i' and 'g' are supported",
                ),
            ],
        );
    }
}
