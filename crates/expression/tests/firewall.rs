//! Patterns in the style of web application firewalls on texts that are expensive for them: results equal PCRE2's, and
//! every search ends within its steps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod hostile;

use weir_expression::pattern::{Key, Method, PatternIndex, PatternSet, Places, Regex, Steps, Texts};
use weir_expression::sample::{Exhausted, Value};

/// Match limit of PCRE2 beyond which results are not compared.
const PATIENCE: u32 = 20_000;

struct List(Vec<&'static str>);

impl Texts for List {
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.0[at as usize].as_bytes()
    }
}

fn reference(pattern: &str) -> pcre2::bytes::Regex {
    let limited = format!("(*LIMIT_MATCH={PATIENCE}){pattern}");
    pcre2::bytes::RegexBuilder::new().build(&limited).unwrap_or_else(|why| panic!("{pattern}: {why}"))
}

#[test]
fn verdicts_are_those_of_pcre2() {
    let mut compared = 0;
    for (line, pattern) in hostile::patterns() {
        let (regex, reference) = (Regex::new(pattern, false).expect("a pattern"), reference(pattern));
        for text in [40, 150].iter().flat_map(|length| hostile::texts(pattern, *length)) {
            let Ok(expected) = reference.find(&text) else { continue };
            let expected = expected.map(|found| (found.start(), found.end()));
            let verdict = regex.is_match(&text);
            if verdict == Err(Exhausted) {
                continue;
            }
            assert_eq!(verdict, Ok(expected.is_some()), "line {line}: {pattern} {}", text.escape_ascii());
            let (mut places, steps) = (Places::default(), Steps::for_text(text.len()));
            let found =
                regex.search(&mut places, &text, &steps, compared % 2 == 0).and_then(|mut search| search.next(0));
            if let Ok(found) = found {
                assert_eq!(found, expected, "line {line}: {pattern} {}", text.escape_ascii());
            }
            compared += 1;
        }
    }
    assert!(compared > 15_000, "{compared} compared");
}

#[test]
fn a_list_answers_as_its_patterns_do() {
    let list = List(hostile::patterns().map(|(_, pattern)| pattern).collect());
    let mut set = PatternSet::new(Method::Reg, false, Key::default());
    set.load(false);
    (0..list.0.len()).for_each(|at| set.insert(at as PatternIndex, &list).expect("a pattern"));
    set.finish(&list);
    let alone: Vec<Regex> = list.0.iter().map(|pattern| Regex::new(pattern, false).expect("a pattern")).collect();
    let mut told = 0;
    for pattern in &list.0 {
        for text in hostile::texts(pattern, 60).iter().step_by(3) {
            let Ok(found) = set.find(Value::Str(text), &list, &|_| true) else { continue };
            let verdicts: Result<Vec<bool>, Exhausted> = alone.iter().map(|regex| regex.is_match(text)).collect();
            let Ok(verdicts) = verdicts else { continue };
            let expected = verdicts.iter().position(|matches| *matches);
            assert_eq!(found.map(|hit| hit.at as usize), expected, "{}", text.escape_ascii());
            told += 1;
        }
    }
    assert!(told > 2_000, "{told} compared");
}

/// Few of the collection's texts exhaust the cache, and only with few patterns.
#[test]
fn steps_suffice_but_for_what_is_made_to_take_them() {
    let (mut looks, mut exhausted) = (0, Vec::new());
    for (line, pattern) in hostile::patterns() {
        let regex = Regex::new(pattern, false).expect("a pattern");
        let mut count = 0;
        for text in hostile::LENGTHS.iter().flat_map(|length| hostile::texts(pattern, *length)) {
            looks += 1;
            count += usize::from(regex.is_match(&text).is_err());
        }
        if count > 0 {
            exhausted.push((line, count, pattern));
        }
    }
    let total: usize = exhausted.iter().map(|(_, count, _)| count).sum();
    assert!(total * 200 < looks && exhausted.len() < 10, "{total} of {looks}: {exhausted:#?}");
}

/// Pattern shapes that are known to take unbounded time, on a buffer-sized text.
#[test]
fn known_shapes_are_told_apart_at_once() {
    let run = [&[b'a'; 15_000][..], b"!"].concat();
    for pattern in [
        "((a{0,100}){0,100}){0,10}b",
        "(.{0,1000}){0,10}b",
        "([a-z]{1,255}){1,20}b",
        "(x+x+)+y|a{2,9999}b",
        "^(?=(a+)+$)(a|a)*b",
        "^(a+)+$",
        "^(a|aa)+$",
        "(a*)*c",
    ] {
        let (regex, steps) = (Regex::new(pattern, false).expect("a pattern"), Steps::for_text(run.len()));
        let before = steps.left();
        assert_eq!(regex.is_match_within(&run, &steps), Ok(false), "{pattern}");
        let taken = before - steps.left();
        assert!(taken < run.len() as u64 + 1_000, "{pattern}: {taken}");
    }
}
