//! Any patterns and any sample, by every match method: a list returns the same as its patterns one by one, with any
//! index, also if some were added after the start and some are disabled.
//!
//! One byte selects the method, one the number of patterns at the start; patterns end at a byte 0xFE, the last one at
//! 0xFF, and the sample follows.


use expression::pattern::{Key, Method, PatternIndex, PatternSet, Texts};
use expression::sample::Value;
use crate::evaluation::with_context;

const METHODS: [Method; 11] = [
    Method::Int,
    Method::Ip,
    Method::Bin,
    Method::Len,
    Method::Str,
    Method::Sub,
    Method::Reg,
    Method::Beg,
    Method::End,
    Method::Dir,
    Method::Dom,
];

struct Patterns<'a>(Vec<&'a [u8]>);

impl Texts for Patterns<'_> {
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.0[at as usize]
    }
}

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [choice, early, rest @ ..] = data else { return };
    let mut halves = rest.splitn(2, |byte| *byte == 0xFF);
    let patterns: Vec<_> = halves.next().unwrap_or_default().split(|byte| *byte == 0xFE).take(64).collect();
    let sample = halves.next().unwrap_or_default();
    let (method, ignore_case) = (METHODS[usize::from(choice & 0x7F) % METHODS.len()], choice & 0x80 != 0);
    let value = match method {
        Method::Int => Value::Int(sample.iter().take(8).fold(0, |number, byte| number << 8 | i64::from(*byte))),
        Method::Ip if sample.len() < 8 => {
            Value::Ipv4(std::net::Ipv4Addr::from(sample.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte))))
        }
        Method::Ip => {
            let bits = sample.iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte));
            Value::Ipv6(std::net::Ipv6Addr::from(bits))
        }
        Method::Bin => Value::Bin(sample),
        _ => Value::Str(sample),
    };
    let count_of_early = usize::from(*early) % (patterns.len() + 1);
    let texts = Patterns(patterns);
    // Every third pattern is disabled.
    let alive = |at: PatternIndex| at % 3 != 2;
    let mut all = PatternSet::new(method, ignore_case, Key::default());
    let mut alone = Vec::new();
    for at in 0..texts.0.len() as PatternIndex {
        if at as usize == count_of_early {
            all.finish(&texts);
        }
        let mut one = PatternSet::new(method, ignore_case, Key::default());
        let (first, second) = (all.insert(at, &texts), one.insert(at, &texts));
        assert_eq!(first.is_ok(), second.is_ok());
        if first.is_err() {
            return;
        }
        alone.push(one);
    }
    with_context(b"", |context| {
        let Some(prepared) = all.prepare(context, value) else { return };
        let Ok(found) = all.find(prepared, &texts, &alive) else { return };
        let expected: Vec<_> = (0..).zip(&alone).filter_map(|(_, one)| one.find(prepared, &texts, &alive).ok().flatten()).collect();
        // The most specific network, the longest prefix; otherwise the first.
        let best = expected.iter().map(|hit| hit.weight).max();
        let expected = match best {
            Some(best) if all.finest_counts() => expected.iter().find(|hit| hit.weight == best),
            _ => expected.first(),
        };
        assert_eq!(found.as_ref().map(|hit| hit.at), expected.map(|hit| hit.at), "{method:?} {ignore_case}");
    });
}
