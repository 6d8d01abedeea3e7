//! Which engine matches each pattern, and that both agree with PCRE2.

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

/// Patterns matched by PCRE2.
#[rustfmt::skip]
const BACKTRACKING: &[&str] = &[
    "a++b", "(?>a+)b", "(?=a)a", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", r"\R", r"\X", r"a\Kb", r"\G", r"\101", "a?+", "a{2}+", "(?m)^a", "(?x)a #c",
    "(?|a|b)", "(?P<n>a)(?P=n)", r"(?<n>a)\k<n>", r"\pL", "(*UTF8)a", "(?J)a", "(?n)(a)", r"\o{101}", "a$b", "(a$)b", "(a$)?", "$a", "a$^",
];

/// Invalid patterns, with HAProxy's messages.
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
                let mut search = regex.search(&mut own, text, &steps, true).expect("a few steps");
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
    // As with PCRE2 up to 10.42; later versions parse it as a repetition.
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

/// Patterns whose ends of matches are determined in different ways.
const REPEATED: &[&str] = &[
    ".*b|a",
    "b.*|a",
    "(a|.*b)",
    "a|ab",
    "ab|a",
    "x*",
    "a*",
    "a{0,2}",
    "a+?",
    "a{2,3}",
    "a{2,3}?",
    "[ab]+x",
    "a+b+",
    "a+b*",
    "a*b",
    "a+ab",
    "x[0-9]*",
    "<[^>]*>",
    "\"[^\"]*\"",
    "[a-z]+[0-9]+",
    "[a-z]+[a-x]",
    "(ab|ba)+",
    "(ab|xx)a*",
    "(a|aa)+$",
    "a+$",
    r"a+\b",
    r"\ba+",
    "^a|b",
    "a|b$",
    "a|",
    "a|b?",
    "aa|b+|x.*a",
    "(?i)A+|b",
    ".a|.*",
    "a.*?b|b.*a",
    "(a+)+|b+",
    "aaa|aa|a",
    "a.{0,3}b.{0,2}x",
    "(ab?){0,3}x",
    "(a.{0,2}b){0,2}x",
    "a(a|bx){1,3}1",
    "[ab]{2,4}x",
    "(a{0,2}b){2,3}a{0,2}x",
    "(?:a{1,3}|b.{0,2}){0,3}1$",
];

fn all(
    text: &[u8],
    mut next: impl FnMut(usize) -> Result<Option<(usize, usize)>, Exhausted>,
) -> Result<Vec<(usize, usize)>, Exhausted> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some((start, end)) = next(at)? {
        found.push((start, end));
        at = end.max(start + usize::from(end <= at));
        if at > text.len() {
            break;
        }
    }
    Ok(found)
}

#[test]
fn every_match_ends_where_pcre2_says() {
    for pattern in REPEATED {
        let (regex, reference) = (Regex::new(pattern, false).expect("a pattern"), reference(pattern, false));
        for number in 0..4_u32.pow(7) / 5 {
            let text: Vec<u8> = (0..7).map(|at| b"abx1"[((number * 5) >> (2 * at)) as usize % 4]).collect();
            let (mut own, mut other) = (Places::default(), reference.capture_locations());
            let steps = Steps::for_replacing(text.len());
            let mut search = regex.search(&mut own, &text, &steps, false).expect("a few steps");
            let found = all(&text, |at| search.next(at)).expect("a few steps");
            let expected = all(&text, |at| {
                let found = reference.captures_read_at(&mut other, &text, at).expect("a few steps");
                Ok(found.map(|found| (found.start(), found.end())))
            });
            assert_eq!(Ok(found), expected, "{pattern} {}", text.escape_ascii());
        }
        let text = b"<a>\"x\"<b c><\"a12,\n a\"b\">a";
        let (mut own, mut other) = (Places::default(), reference.capture_locations());
        let steps = Steps::for_replacing(text.len());
        let mut search = regex.search(&mut own, text, &steps, false).expect("a few steps");
        let expected = all(text, |at| {
            let found = reference.captures_read_at(&mut other, text, at).expect("a few steps");
            Ok(found.map(|found| (found.start(), found.end())))
        });
        assert_eq!(all(text, |at| search.next(at)), expected, "{pattern}");
    }
}

/// Each match begins where the one before ended: none of them may scan the whole text.
#[test]
fn as_many_matches_as_bytes_take_few_steps() {
    let texts = [vec![b'a'; 12_000], b"a1".repeat(6_000), b"<a>x".repeat(3_000)];
    for text in &texts {
        for pattern in [
            ".*b|a",
            "(.*b|a)",
            ".*b",
            "a*b|c",
            "(a|aa)+$",
            "x*",
            "a*",
            "a{1,3}",
            "[a-z]+[0-9]+",
            "<[^>]*>",
            "a.*b|c.*d|a|1",
        ] {
            let regex = Regex::new(pattern, false).expect("a pattern");
            let (mut places, steps) = (Places::default(), Steps::for_replacing(text.len()));
            let mut search = regex.search(&mut places, text, &steps, false).expect("steps suffice");
            assert!(all(text, |at| search.next(at)).is_ok(), "{pattern} {}", text[..4].escape_ascii());
        }
    }
}

/// Parts of patterns with lookarounds; several of them require parts of a text.
const LOOKING: &[&str] = &[
    "(?=.*ab)",
    "(?=.*b[ab]*cc)",
    "(?i)(?=.*ac)",
    "(?i:(?=.*ac))",
    "(?=a|bc)",
    "(?=ab)?",
    "(?=ab){0}",
    "(?!ab)",
    "(?!.*(?=cc))",
    "(?<=ab)",
    "(?<!cc)",
    "(?:(?=ab)|c)",
    "(?:(?=ab)a)?",
    "(?=a(?=b(?=c)))",
    "(?=(ab|ac)+)",
    "(?=a(?!b)c)",
    "(?=bc)bc",
    "(?>ab)",
    "^(?=.*aa)",
    "(?=.*\\bab)",
    "(?=.*a$)",
    "(a)(?=.*\\1c)",
    "(?-i)(?=.*ca)",
    "(?x)(?= a b )",
    "(?=\\Qab\\E)",
    "(?s)(?=.*bb)",
    "a",
    "b",
    "c",
    "[ab]",
    ".*",
    "c?",
    "|",
];

/// A required part never excludes a match.
#[test]
fn what_lookarounds_demand_is_in_every_match() {
    let (mut state, mut compared, mut found) = (1_u64, 0, 0);
    let mut below = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    for number in 0..3_000 {
        let pattern: String = (0..1 + below(4)).map(|_| LOOKING[below(LOOKING.len())]).collect();
        let ignore_case = number % 3 == 0;
        let Ok(regex) = Regex::new(&pattern, ignore_case) else { continue };
        let reference = reference(&pattern, ignore_case);
        for _ in 0..20 {
            let text: Vec<u8> = (0..below(9)).map(|_| b"abcabcAB C\n"[below(11)]).collect();
            let expected = reference.find(&text).expect("few steps").map(|found| (found.start(), found.end()));
            assert_eq!(regex.is_match(&text), Ok(expected.is_some()), "{pattern} {}", text.escape_ascii());
            let (mut places, steps) = (Places::default(), Steps::for_text(text.len()));
            let mut search = regex.search(&mut places, &text, &steps, true).expect("few steps");
            assert_eq!(search.next(0), Ok(expected), "{pattern} {}", text.escape_ascii());
            (compared, found) = (compared + 1, found + usize::from(expected.is_some()));
        }
    }
    assert!(compared > 40_000 && found > 10_000, "{compared} compared, {found} found");
}

/// Without the part PCRE2 is not called: it would consume steps.
#[test]
fn texts_without_what_lookarounds_demand_take_no_step() {
    for pattern in [
        r"^(?=.*\bselect\b)(?=.*\bfrom\b).*$",
        r"(?i)^(?=.*\bselect\b)(?=.*\bfrom\b)",
        r"(?<=select)\s(?=from)",
        r"(?=(?i)from)(?-i).*select",
        r"(?>x)(?=.*FROM).*select",
    ] {
        let regex = Regex::new(pattern, false).expect("a pattern");
        for text in [&b"1"[..], b"select", b"from", b"SELECT FRO", b"1,1,1,1,1,1,1,1"] {
            let steps = Steps::for_text(0);
            let before = steps.left();
            assert_eq!(regex.is_match_within(text, &steps), Ok(false), "{pattern}");
            assert_eq!(steps.left(), before, "{pattern} {}", text.escape_ascii());
        }
    }
}

/// Lookarounds that divide a text between one repetition each take few steps for each byte: all of them have an answer.
#[test]
fn lookarounds_of_one_repetition_have_an_answer() {
    for pattern in [
        r"^(?=.*[A-Z])(?=.*[0-9])(?=.*[a-z]).{8,}$",
        r"^(?!.*(foo|bar)).*$",
        r"^(?:(?!admin).)*$",
        r"^(?!.*\.\.)(?!.*//)[\w./-]+$",
        r"^(?=.*select)(?=.*from).*where",
        r"^(?=.*?[A-Z])(?=.*?[0-9]).*$",
        r"(?=.*[A-Z])(?=.*[0-9])(?=.*[a-z])",
        r"(?=.*;)(?=.*[0-9]).{8,}",
        r"(?i)(?=.*select)(?=.*[0-9])(?=.*where).*from",
    ] {
        let (regex, reference) = (Regex::new(pattern, false).expect("a pattern"), reference(pattern, false));
        for length in [1_000, 4_000, 16_000] {
            let texts = [
                "a".repeat(length),
                format!("A1{}", "a".repeat(length)),
                "Ab1/ ;<script ".repeat(length / 14),
                format!("select from {}", "x where ".repeat(length / 8)),
                format!("{}..", "a/".repeat(length / 2)),
            ];
            for text in texts {
                let expected = reference.is_match(text.as_bytes()).expect("few steps");
                assert_eq!(regex.is_match(text.as_bytes()), Ok(expected), "{pattern} {length} {}", &text[..20]);
            }
        }
    }
}

/// Two that divide it between them may take as many steps as the text has pairs of places: they come to the limit.
#[test]
fn repetitions_that_divide_a_text_come_to_the_limit() {
    let text = "a".repeat(4_000);
    for pattern in
        [r"^(?=a*a*b|c)", r"^(?=(?:a*)*b|c)", r"^a*(?=a*b|c)d?", r"^(?:(?=a*b|a)a)*c?(?=x|[^x]*$)y|^(?:(?=a*b|a)a)*z"]
    {
        let regex = Regex::new(pattern, false).expect("a pattern");
        let steps = Steps::for_text(text.len());
        let found = regex.is_match_within(text.as_bytes(), &steps);
        assert!(found.is_err() || steps.left() > 0, "{pattern}");
        let together = translate(pattern.as_bytes(), true).expect("a pattern").together;
        assert!(together > 1, "{pattern}: {together}");
    }
}

/// At each match, PCRE2 searches no further than the match may extend.
#[test]
fn as_many_matches_with_groups_as_pairs_take_few_steps() {
    for (pattern, text) in [
        ("([a-z]+)=([0-9]+)", "key=12&".repeat(2_300)),
        ("([a-z]+)=([0-9]+),?", "a=1,".repeat(4_000)),
        (r"\b(\w+)@((?:\w+\.)+\w+)\b", "bob@mx.example.org ".repeat(840)),
        ("(<[^>]*>)(x?)", "<a>x".repeat(4_000)),
        ("(a*)(b|c)", "aab".repeat(5_000)),
    ] {
        let (regex, reference) = (Regex::new(pattern, false).expect("a pattern"), reference(pattern, false));
        let (text, steps) = (text.as_bytes(), Steps::for_replacing(text.len()));
        let (mut places, mut other) = (Places::default(), reference.capture_locations());
        let mut search = regex.search(&mut places, text, &steps, true).expect("a few steps");
        let found = all(text, |at| {
            Ok(search.next(at)?.map(|whole| (whole, search.get(1), search.get(2)))).map(|found| {
                found.map(|(whole, one, two)| {
                    assert!(one.is_some() && two.is_some());
                    whole
                })
            })
        });
        let expected = all(text, |at| {
            let found = reference.captures_read_at(&mut other, text, at).expect("a few steps");
            Ok(found.map(|found| (found.start(), found.end())))
        });
        assert_eq!(found, expected, "{pattern}");
    }
}

/// `\G` is where the search begins, not where a match may begin.
#[test]
fn the_place_where_a_search_begins_is_that_of_the_search() {
    for (pattern, text, wanted) in [("\\Gb", "ab", None), ("\\Gb", "ba", Some((0, 1))), ("\\Gb|a", "xa", Some((1, 2)))]
    {
        let regex = Regex::new(pattern, false).unwrap();
        let (mut places, steps) = (Places::default(), Steps::for_text(text.len()));
        let found = regex.search(&mut places, text.as_bytes(), &steps, true).unwrap().next(0).unwrap();
        assert_eq!(found, wanted, "{pattern} in {text}");
        assert_eq!(regex.is_match(text.as_bytes()).unwrap(), wanted.is_some(), "{pattern} in {text}");
    }
}
