//! Tests of the reader's limits and corner cases; ordinary text is covered by the fixtures of `tests/language`.

use super::*;
use proptest::prelude::*;

fn read_bytes(bytes: &[u8]) -> (Document, Vec<String>) {
    read_limited(ReadLimits::USUAL, bytes)
}

fn read_limited(limits: ReadLimits, bytes: &[u8]) -> (Document, Vec<String>) {
    let mut out = Vec::new();
    let mut environment = Environment::new();
    environment.set("LIST", "a b").unwrap();
    let files = [InputFile { name: "t".into(), bytes: bytes.to_vec() }];
    let (sources, document) = read_within(limits, &files, &mut environment, &LanguageOptions::default(), &mut out);
    for diagnostic in &out {
        diagnostic.render(&sources, 1, &mut String::new());
    }
    (document, out.into_iter().map(|diagnostic| diagnostic.message).collect())
}

#[test]
fn errors_end_somewhere() {
    let (_, messages) = read_bytes(&b"global\n \"\n".repeat(1100));
    assert_eq!(messages.len(), ReadLimits::USUAL.errors + 1);
    assert_eq!(messages[ReadLimits::USUAL.errors], "too many fatal errors (1000), stopping now.");
}

#[test]
fn nesting_ends_somewhere() {
    let nested = |depth: usize| [b".if 1\n".repeat(depth), b".endif\n".repeat(depth)].concat();
    assert_eq!(read_bytes(&nested(99)).1, [""; 0]);
    assert_eq!(read_bytes(&nested(100)).1, ["too many nested '.if', max is 100."]);
    assert_eq!(read_bytes(&nested(5000)).1, ["too many nested '.if', max is 100."]);
}

#[test]
fn variables_cannot_fill_the_memory() {
    let mut text = b"global\n setenv A xxxxxxxxxxxxxxxx\n".to_vec();
    text.extend(b" setenv A \"$A$A$A$A$A$A$A$A\"\n".repeat(8));
    let (document, messages) = read_bytes(&text);
    assert!(messages[0].starts_with("environment variables add more than 1048576 bytes to this line"), "{messages:?}");
    assert!(document.environment.get("A").unwrap().len() <= lexer::MAX_EXPANSION);
    let limits = ReadLimits { expansion: 1000, ..ReadLimits::USUAL };
    let (_, messages) = read_limited(limits, &text);
    assert_eq!(messages, ["environment variables add more than 1000 bytes to the configuration."]);
}

#[test]
fn files_cannot_fill_the_memory() {
    let text = b"global\n a b c\n".repeat(100);
    let (_, messages) = read_limited(ReadLimits { words: 399, ..ReadLimits::USUAL }, &text);
    assert_eq!(messages, ["more than 399 words of configuration."]);
    let (document, messages) = read_limited(ReadLimits { bytes: 1399, ..ReadLimits::USUAL }, &text);
    assert_eq!((document.sections.len(), messages), (0, vec!["more than 1399 bytes of configuration.".to_owned()]));
    assert_eq!(read_limited(ReadLimits { words: 400, bytes: 1400, ..ReadLimits::USUAL }, &text).1, [""; 0]);
}

#[test]
fn bytes_that_are_no_text_survive() {
    let (document, messages) = read_bytes(b"frontend caf\xE9\n  bind \xC3\xA9 \"\xFF\"\n");
    assert_eq!(messages, [""; 0]);
    let section = &document.sections[0];
    assert_eq!(*text::to_bytes(section.line.text(1)), *b"caf\xE9");
    assert_eq!((section.body[0].text(1), &*text::to_bytes(section.body[0].text(2))), ("é", &b"\xFF"[..]));
}

/// Bytes with a meaning to the reader, so that random text reaches its corner cases.
fn telling_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            ".if ",
            ".elif ",
            ".else",
            ".endif",
            ".notice ",
            ".alert ",
            "global",
            "frontend ",
            "defaults",
            " setenv ",
            " unsetenv ",
            " resetenv ",
            "\"",
            "'",
            "\\",
            "\\x",
            "$",
            "${",
            "}",
            "[*]",
            "-",
            "#",
            " ",
            "\t",
            "\r",
            "\n",
            "\n",
            "\n",
            "(",
            ")",
            "!",
            "&&",
            "||",
            ",",
            "streq(",
            "defined(",
            "version_atleast(",
            "openssl_version_before(",
            "1",
            "0",
            "0x",
            "${LIST[*]}",
            "$.LINE",
            "${.SECTION}",
            ".",
            "\u{FEFF}",
            "é",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>) {
        read_bytes(&bytes);
    }

    #[test]
    fn telling_text_is_read(bytes in telling_bytes()) {
        let (document, _) = read_bytes(&bytes);
        for section in &document.sections {
            for line in std::iter::once(&section.line).chain(&section.body) {
                prop_assert!(!line.words.is_empty() && line.words.len() <= lexer::MAX_WORDS);
                for word in &line.words {
                    prop_assert!(!word.text.is_empty() && word.span.start < word.span.end);
                }
            }
        }
    }
}
