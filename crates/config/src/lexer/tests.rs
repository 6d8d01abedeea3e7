//! Tests of the lexer. The expected results were compared with HAProxy 3.5.

use super::*;
use std::collections::BTreeMap;

impl Variables for BTreeMap<&str, &str> {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.get(name).map(|value| Cow::Borrowed(value.as_bytes()))
    }
}

fn variables() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("AA", "foo"),
        ("EMPTY", ""),
        ("LIST", "a b  c"),
        ("SPACES", " lead trail "),
        ("QUOTES", "\"a b\" c"),
        ("BLANKS", "u\tv\nw\x0Bx"),
        ("BACKSLASH", "a\\b#c$AA"),
        (
            "SEVENTY",
            "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 \
                     39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70",
        ),
        (".LINE", "7"),
    ])
}

fn words(line: &str) -> Result<Vec<String>, String> {
    lex(line.as_bytes(), &variables(), Comments::Skipped)
        .map(|words| words.iter().map(|word| crate::text::from_bytes(&word.text)).collect())
        .map_err(|error| error.message())
}

#[test]
fn lines_become_words() {
    let rows: &[(&str, &[&str])] = &[
        ("", &[]),
        ("  \t ", &[]),
        ("# comment", &[]),
        ("global#this is the global section", &["global"]),
        ("  bind\t:80  # x", &["bind", ":80"]),
        ("a\x0Bb\x0Cc", &["a", "b", "c"]),
        ("a\\ b", &["a b"]),
        ("a\\#b", &["a#b"]),
        ("\\\\ \\' \\\"", &["\\", "'", "\""]),
        ("a\\nb\\rc\\td", &["a\nb\rc\td"]),
        ("\\x41\\x4a\\x4A", &["AJJ"]),
        ("\\q \\$AA \\", &["\\q", "\\$AA", "\\"]),
        ("a\\\tb", &["a\\", "b"]),
        ("$AA ${AA} x$", &["$AA", "${AA}", "x$"]),
        ("\"a b\"", &["a b"]),
        ("\"a#b\" \"a'b\"", &["a#b", "a'b"]),
        ("\"\\\"\" \"\\'\" \"\\#\" \"\\ \" \"\\\\\"", &["\"", "'", "#", " ", "\\"]),
        ("\"\\x41\\n\\q\"", &["A\n\\q"]),
        ("'\\x41 \"#$AA\\'", &["\\x41 \"#$AA\\"]),
        ("\"a\"\"b\"'c'd", &["abcd"]),
        ("\"\" ''", &["", ""]),
        ("a\"\"b", &["ab"]),
        ("log-format \"%{+Q}o %t\"' %s %{-Q}r'", &["log-format", "%{+Q}o %t %s %{-Q}r"]),
        ("a\rb", &["a"]),
        ("a \r b\r c", &["a", "b"]),
        ("\r\n a", &["a"]),
        ("a\\\rb", &["a\\"]),
    ];
    for (line, expected) in rows {
        assert_eq!(words(line).unwrap(), *expected, "{line}");
    }
}

#[test]
fn variables_are_expanded() {
    let rows: &[(&str, &[&str])] = &[
        ("\"$AA\" \"${AA}\"", &["foo", "foo"]),
        ("\"x $AA y\"", &["x foo y"]),
        ("\"$AAx\" \"$AA-x\" \"$AA.x\" \"$AA[*]\"", &["", "foo-x", "foo.x", "foo[*]"]),
        ("\"\\$AA\" '$AA'", &["$AA", "$AA"]),
        ("\"$LIST\" \"$QUOTES\"", &["a b  c", "\"a b\" c"]),
        ("\"$BACKSLASH\"", &["a\\b#c$AA"]),
        ("\"${NOPE}\" \"$NOPE\"", &["", ""]),
        ("\"${NOPE-def}\" \"${EMPTY-def}\" \"${AA-def}\" \"${NOPE-}\"", &["def", "", "foo", ""]),
        ("\"${NOPE-a b}\"", &["a b"]),
        ("\"${NOPE-$AA}\" \"${NOPE-${AA}}\"", &["$AA", "${AA}"]),
        ("\"${NOPE-\"x\"}\" \"${NOPE-\\x41#}\"", &["\"x\"", "\\x41#"]),
        ("\"$.LINE\" \"${.LINE}\" \"$.LINE.x\" \"${.LINE-d}\"", &["7", "7", "7.x", "7"]),
        ("\"$AAé\"", &["fooé"]),
    ];
    for (line, expected) in rows {
        assert_eq!(words(line).unwrap(), *expected, "{line}");
    }
}

#[test]
fn lists_become_words() {
    let rows: &[(&str, &[&str])] = &[
        ("\"${LIST[*]}\" d", &["a", "b", "c", "d"]),
        ("\"pre${LIST[*]}post\"", &["prea", "b", "cpost"]),
        ("x\"${LIST[*]}\"y", &["xa", "b", "cy"]),
        ("x\"${SPACES[*]}\"\"${LIST[*]}\"y", &["x", "lead", "trail", "a", "b", "cy"]),
        ("\"${SPACES[*]}\"", &["lead", "trail"]),
        ("a \"${EMPTY[*]}\" b", &["a", "b"]),
        ("a \"${EMPTY[*]}\"\"\" b", &["a", "", "b"]),
        ("a \"${EMPTY[*]}$EMPTY\" b", &["a", "", "b"]),
        ("\"x${NOPE[*]}\" \"${NOPE[*]}x\"", &["x", "x"]),
        ("\"${NOPE[*]-d e}\" \"${NOPE-d[*]}\"", &["d", "e", "d[*]"]),
        ("\"${BLANKS[*]}\"", &["u", "v", "w", "x"]),
        ("\"${QUOTES[*]}\"", &["\"a", "b\"", "c"]),
        ("\"${LIST[*]} \\x20 z\"", &["a", "b", "c   z"]),
    ];
    for (line, expected) in rows {
        assert_eq!(words(line).unwrap(), *expected, "{line}");
    }
}

#[test]
fn errors_are_placed_where_haproxy_places_them() {
    let rows: &[(&str, &str)] = &[
        (".notice \"abc", "unmatched quote at position 9:"),
        (".notice 'abc", "unmatched quote at position 9:"),
        (".notice \"abc\\\"", "unmatched quote at position 9:"),
        (".notice \"a\rb\"", "unmatched quote at position 9:"),
        (".notice 'a\rb'", "unmatched quote at position 9:"),
        (".notice \"a\" \"${AA}\" 'b", "unmatched quote at position 21:"),
        (".notice \"${AA", "unmatched brace in environment variable name at position 11:"),
        (".notice \"${AA x}\"", "unmatched brace in environment variable name at position 11:"),
        (".notice \"${AA:-x}\"", "unmatched brace in environment variable name at position 11:"),
        (".notice \"${AA-x", "unmatched brace in environment variable name at position 11:"),
        (".notice \"$1\"", "forbidden first char in environment variable name at position 11:"),
        (".notice \"$\"", "forbidden first char in environment variable name at position 11:"),
        (".notice \"a$", "forbidden first char in environment variable name at position 12:"),
        (".notice \"${}\"", "forbidden first char in environment variable name at position 12:"),
        (".notice \"${-x}\"", "forbidden first char in environment variable name at position 12:"),
        (".notice \"$.NOPE\"", "forbidden first char in environment variable name at position 11:"),
        (".notice \"${.LI-d}\"", "forbidden first char in environment variable name at position 12:"),
        (".notice \"${AA[*}\"", "truncated or invalid word expansion sequence at position 14:"),
        (".notice \"${AA[1]}\"", "truncated or invalid word expansion sequence at position 14:"),
        (".notice \\x4", "truncated or invalid hexadecimal sequence at position 9:"),
        (".notice \"\\x4g\"", "truncated or invalid hexadecimal sequence at position 10:"),
        ("timeout client 5s \"${SEVENTY[*]}\"", "too many words, truncating after word 64, position 19: <61>."),
    ];
    for (line, expected) in rows {
        assert_eq!(words(line).unwrap_err(), *expected, "{line}");
    }
}

#[test]
fn the_number_of_words_is_bounded() {
    let line = |count: usize| (0..count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    assert_eq!(words(&line(64)).unwrap().len(), 64);
    assert_eq!(words(&format!("{} # x", line(64))).unwrap().len(), 64);
    assert_eq!(words(&line(65)).unwrap_err(), "too many words, truncating after word 64, position 243: <w63>.");
}

#[test]
fn expansion_is_bounded() {
    let value = "x".repeat(100_000);
    let variables = BTreeMap::from([("A", value.as_str())]);
    let line = format!("\"{}\"", "$A".repeat(20));
    let error = lex(line.as_bytes(), &variables, Comments::Skipped).unwrap_err();
    assert_eq!(error.kind, LexErrorKind::TooLarge);
}

#[test]
fn long_lines_and_other_bytes_survive() {
    let long = format!("a \"{}\"", "y".repeat(1_000_000));
    assert_eq!(words(&long).unwrap()[1].len(), 1_000_000);
    let words = lex(b"\xE9 \"\\xc3\"'\xA9' \x01", &variables(), Comments::Skipped).unwrap();
    let texts: Vec<&[u8]> = words.iter().map(|word| &word.text[..]).collect();
    assert_eq!(texts, [&b"\xE9"[..], b"\xC3\xA9", b"\x01"]);
}

#[test]
fn comments_are_kept_on_the_command_line() {
    let words = lex(b"1 #x", &variables(), Comments::Kept).unwrap();
    assert_eq!(words[1].text, b"#x");
}

#[test]
fn places_point_into_the_line() {
    let line = "  a\"b $AA\\n\"c  'd' \"${LIST[*]}\"";
    let words = lex(line.as_bytes(), &variables(), Comments::Skipped).unwrap();
    let cut = |word: &Token| &line[word.start as usize..word.end as usize];
    let cuts: Vec<&str> = words.iter().map(cut).collect();
    assert_eq!(cuts, ["a\"b $AA\\n\"c", "'d'", "\"${LIST[*]}", "\"${LIST[*]}", "\"${LIST[*]}\""]);
    assert_eq!(words[0].places, [2, 4, 5, 6, 6, 6, 9, 12]);
    let quoted: Vec<bool> = words.iter().map(|word| word.quoted).collect();
    assert_eq!(quoted, [true; 5]);
    assert!(!lex(b"plain", &variables(), Comments::Skipped).unwrap()[0].quoted);
}
