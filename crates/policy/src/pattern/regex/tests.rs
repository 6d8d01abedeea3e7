//! Which patterns go which way, and that both mean what PCRE2 means by them.

use super::*;

/// Patterns that are matched in linear time.
#[rustfmt::skip]
const LINEAR: &[&str] = &[
    "a", "a$", r"a\Z", "^a", r"\Aa\z", "a|b", "(a)(b)?", "a{2}", "a{1,}?", "a{", "{a", "a{1", r"\Qa.b\E+", r"a\Q.\Eb", r"\Q", r"a\E",
    "[[:alpha:]]+", "[[:^digit:]]", "[[:word:]]", r"\d\w\s", r"\D\W\S", r"\h", r"\H", r"\v+", r"\V", r"\N", r"\ba\b", r"\Ba", r"\<a\>",
    r"\x41", r"\x{41}", r"\x4", r"\0", r"\012", r"\e\a\f", r"\cA", r"[\b]", "[a[b]", "[a&&b]", "[--/]", "[a||b]", "[a~~b]",
    "[]a]", "[^]a]", "[a-]", "[-a]", r"[\w-]", r"[a\]b]", r"[\Qa-z\E]", "[^\\n]", r"[\x00-\x7f]", r"[\h]", r"[\v]", "(?i)a", "(?-i)a", "(?i:a)B",
    "(?s).", "(?U)a+", "(?P<n>a)b", "(?<n>a)b", "(?'n'a)b", "(?#c)a", r"\_\-\/\:\%\ ", "(|a)", "()", "a{1000}", "(a|b$)", "(a$|b)", "é*", "[é]", r"\é",
    "a b", "[ a]", "a]", "a}", "(a|(b|c$))", "x*", ".", "a.c", "#a", "a&b",
];

/// Patterns that PCRE2 matches.
#[rustfmt::skip]
const BACKTRACKING: &[&str] = &[
    "a++b", "(?>a+)b", "(?=a)a", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", r"\R", r"\X", r"a\Kb", r"\G", r"\101", "a?+", "a{2}+", "(?m)^a", "(?x)a #c",
    "(?|a|b)", "(?P<n>a)(?P=n)", r"(?<n>a)\k<n>", r"\pL", "(*UTF8)a", "(?J)a", "(?n)(a)", r"\o{101}", "a$b", "(a$)b", "(a$)?", "$a", "a$^",
];

/// Patterns that are none, with what HAProxy says.
const WRONG: &[(&str, &str)] = &[
    ("(", "missing closing parenthesis, erroffset=1"),
    (")", "unmatched closing parenthesis, erroffset=0"),
    ("[", "missing terminating ] for character class, erroffset=1"),
    ("*a", "quantifier does not follow a repeatable item, erroffset=0"),
    ("a**", "quantifier does not follow a repeatable item, erroffset=2"),
    ("a{2,1}", "numbers out of order in {} quantifier, erroffset=5"),
    ("[z-a]", "range out of order in character class, erroffset=3"),
    (r"\y", "unrecognized character follows \\, erroffset=1"),
    (r"(?<a>x)(?<a>y)", "two named subpatterns have the same name (PCRE2_DUPNAMES not set), erroffset=12"),
];

const TEXTS: &[&[u8]] = &[
    b"",
    b"a",
    b"A",
    b"b",
    b"ab",
    b"aab",
    b"aaab",
    b"aa",
    b"abc",
    b"a\n",
    b"a\n\n",
    b"ab\n",
    b"\n",
    b"a.b",
    b"a.bb",
    b"a]b",
    b"[",
    b"&",
    b"|",
    b"-",
    b"/",
    b".",
    b"\xff",
    b"\x80a",
    b"a\xffc",
    b"\xc3\xa9",
    b"\xa9\xa9",
    b"\x00",
    b"\x01",
    b"\x08",
    b"\x1b\x07\x0c",
    b"\x0b",
    b"\x85",
    b"\xa0",
    b" ",
    b"a b",
    b"{a",
    b"a{",
    b"a{,2}",
    b"a{1",
    b"<a>",
    b"a-b",
    b"_-/:% ",
    b"A4x\x04",
    b"c\n",
    b"aB",
    b"AB",
    b"xyz",
    b"123",
    b"\\",
    b"a}",
    b"#a",
    b"a&b",
    b"_",
];

fn reference(pattern: &str, ignore_case: bool) -> pcre2::bytes::Regex {
    pcre2::bytes::RegexBuilder::new()
        .caseless(ignore_case)
        .build(pattern)
        .unwrap_or_else(|why| panic!("{pattern}: {why}"))
}

#[test]
fn patterns_go_their_way() {
    for pattern in LINEAR {
        assert!(Regex::new(pattern, false).expect("a pattern").is_linear(), "{pattern}");
    }
    for pattern in BACKTRACKING {
        assert!(!Regex::new(pattern, false).expect("a pattern").is_linear(), "{pattern}");
    }
    for (pattern, why) in WRONG {
        let told = Regex::new(pattern, false).expect_err("no pattern");
        assert_eq!(told, format!("regex '{pattern}' is invalid (error={why})"));
    }
}

#[test]
fn both_ways_mean_the_same() {
    for pattern in LINEAR.iter().chain(BACKTRACKING) {
        for ignore_case in [false, true] {
            let (regex, reference) =
                (Regex::new(pattern, ignore_case).expect("a pattern"), reference(pattern, ignore_case));
            for text in TEXTS {
                let matches = reference.is_match(text).unwrap_or(false);
                assert_eq!(regex.is_match(text), Ok(matches), "{pattern} {text:?} {ignore_case}");
                let (mut own, mut other) = (Places::default(), reference.capture_locations());
                let steps = Steps::for_text(text.len());
                let mut search = regex.search(&mut own, text, (&steps, true)).expect("a few steps");
                let found = search.next(0).expect("a few steps");
                assert_eq!(found.is_some(), matches, "{pattern} {text:?}");
                if reference.captures_read(&mut other, text).is_ok_and(|found| found.is_some()) {
                    for group in 0..other.len() {
                        assert_eq!(search.get(group), other.get(group), "{pattern} {text:?} group {group}");
                    }
                }
            }
        }
    }
}

#[test]
fn braces_without_a_lower_bound_are_text() {
    // As with PCRE2 up to 10.42; later versions take it for a repetition.
    let regex = Regex::new("^a{,2}$", false).expect("a pattern");
    assert_eq!((regex.is_match(b"a{,2}"), regex.is_match(b"aa")), (Ok(true), Ok(false)));
}

#[test]
fn what_takes_too_many_steps_is_exhausted() {
    let regex = Regex::new(r"^(a+)+\1$", false).expect("a pattern");
    assert_eq!((regex.is_linear(), regex.is_match(b"aaaa")), (false, Ok(true)));
    let text = [&[b'a'; 64][..], b"c"].concat();
    assert_eq!(regex.is_match(&text), Err(Exhausted));
}
