//! Runs sample expressions, conditions and rules in Weir and in HAProxy: the same configuration and the same requests,
//! answers compared byte by byte. Expressions are generated at random from the tables of fetches and converters; a seed
//! repeats a run.
//!
//! Without HAProxy the test reports so and passes. `HAPROXY=…` selects another one, `DIFFERENTIAL_SEED` and
//! `DIFFERENTIAL_COUNT` another run: `DIFFERENTIAL_COUNT=4000 cargo test -p weir --test differential`.

mod case;
mod generate;
mod known;
#[path = "../shared/ports.rs"]
mod ports;
mod requests;
mod subject;

use generate::Generator;
use std::collections::BTreeMap;
use std::path::PathBuf;
use subject::Subject;

/// Default number of expressions.
const COUNT: usize = 120;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn haproxy() -> Option<PathBuf> {
    let path = std::env::var_os("HAPROXY").map_or_else(|| PathBuf::from("/usr/sbin/haproxy"), PathBuf::from);
    path.exists().then_some(path)
}

#[test]
fn expressions_give_what_haproxy_gives() {
    let Some(haproxy) = haproxy() else {
        eprintln!("SKIPPED: haproxy is not installed, nothing to compare expressions with");
        return;
    };
    let (seed, count) = (number("DIFFERENTIAL_SEED", 1), number("DIFFERENTIAL_COUNT", COUNT as u64) as usize);
    let weir = Subject::new(env!("CARGO_BIN_EXE_weir").into());
    let other = Subject::new(haproxy);
    let (mut compared, mut fallen) = (0, 0);
    let mut differences: BTreeMap<String, String> = BTreeMap::new();
    for (round, expressions) in Generator::new(seed).take(count).collect::<Vec<_>>().chunks(60).enumerate() {
        let mut expressions = expressions.to_vec();
        let (refused_by_other, refused_by_weir) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| other.refused(&expressions));
            let ours = weir.refused(&expressions);
            (theirs.join().expect("the check ends"), ours)
        });
        for (index, case) in expressions.iter().enumerate() {
            let expression = &case.text();
            let (ours, theirs) = (refused_by_weir.contains_key(&index), refused_by_other.contains_key(&index));
            // A converter unknown to this HAProxy is not a difference.
            let unknown = refused_by_other.get(&index).is_some_and(|why| why.contains("unknown "));
            if ours != theirs && !unknown && !known::may_be_refused(expression, other.version()) {
                let why = refused_by_weir.get(&index).or_else(|| refused_by_other.get(&index));
                let who = if ours { "Weir" } else { "HAProxy" };
                differences.insert(expression.clone(), format!("{who} refuses it: {}", why.map_or("", |why| why)));
            }
        }
        let mut index = 0;
        expressions.retain(|_| {
            let keep = !refused_by_weir.contains_key(&index) && !refused_by_other.contains_key(&index);
            index += 1;
            keep
        });
        let (ours, theirs) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| other.answers(&expressions));
            let ours = weir.answers(&expressions);
            (ours, theirs.join())
        });
        let Ok(theirs) = theirs else {
            eprintln!("round {round}: the other program ended by itself, nothing is compared");
            fallen += 1;
            continue;
        };
        for (case, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            compared += 1;
            let (expression, request) = (expressions[case % expressions.len()].text(), case / expressions.len());
            let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            if ours != theirs && !known::is_known(&expression, other.version(), (&shown(ours), &shown(theirs))) {
                differences
                    .entry(expression)
                    .or_insert_with(|| format!("request {request}: {} instead of {}", shown(ours), shown(theirs)));
            }
        }
        assert!(round < 1000, "too many rounds");
    }
    eprintln!("{compared} answers compared with {}", other.version());
    assert!(fallen < 5, "HAProxy ends again and again");
    assert!(compared > count, "hardly anything was compared");
    let shown: Vec<String> = differences.iter().map(|(expression, what)| format!("{expression}\n    {what}")).collect();
    assert!(shown.is_empty(), "{} expressions differ (seed {seed}):\n{}", shown.len(), shown.join("\n"));
}
