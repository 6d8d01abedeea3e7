//! Table of conditions. The results and sentences are those of HAProxy 3.5, except where features differ.

use super::*;
use crate::options::LanguageOptions;

fn answer(text: &str) -> Result<bool, ConditionError> {
    let mut environment = Environment::new();
    environment.set("AA", "foo").unwrap();
    environment.set("EMPTY", "").unwrap();
    let options = LanguageOptions {
        ssl: Some(crate::options::SslLibrary {
            name: "OpenSSL 3.0.2".into(),
            openssl_version: "3.0.2".into(),
            awslc_api: None,
            fips_mode: false,
        }),
        ..LanguageOptions::default()
    };
    eval(text, &ConditionContext { environment: &environment, options: &options })
}

#[test]
fn answers() {
    let yes = [
        "1",
        " 1",
        "1 ",
        "-1",
        "+1",
        "010",
        "0x10",
        "0Xf",
        "99999999999999999999",
        "4294967296",
        "!0",
        "!!1",
        "! ! (1)",
        "(1)",
        "( 1 )",
        "(((((((((1)))))))))",
        "!(0)",
        "! (0)",
        "!(0 || 0)",
        "1&&1",
        "1 && 1",
        "1||0",
        "0 || !0",
        "0 || 0 || 1",
        "0 && 0 || 1",
        "1 || 0 && 0",
        "1 && !(0 || 0)",
        "(0 || 1) && 1",
        "defined(AA)",
        "defined(EMPTY)",
        "defined(\"AA\")",
        "feature(THREAD)",
        "feature(QUIC)",
        "streq(a,a)",
        "streq(,)",
        "streq( a, a)",
        "streq(\"a b\",a b)",
        "streq(\"a,b\",'a,b')",
        "streq(\"a)b\",'a)b')",
        "streq(\"a\"b'c',abc)",
        "streq((a,(a)",
        "streq(\\\"a\\\",'\"a\"')",
        "streq(\\q,\"\\q\")",
        "streq(a\\ b,a b)",
        "streq(\\n,\"\\n\")",
        "strneq(a,b)",
        "strneq(a ,a)",
        "strneq(\\n,n)",
        "strneq(\\x41,A)",
        "strstr(abc,b)",
        "strstr(abc,)",
        "strstr(,)",
        "version_atleast(2.4)",
        "version_atleast(foo)",
        "version_atleast()",
        "version_atleast",
        "version_before(3.5)",
        "enabled(SPLICE)",
        "enabled(EPOLL)",
        "ssllib_name_startswith(OpenSSL)",
        "openssl_version_atleast(1.1.1)",
        "openssl_version_before(3.5.0)",
        "1 || openssl_version_atleast(foo)",
        "!fips_mode",
        "!fips_mode()",
    ];
    for text in yes {
        assert_eq!(answer(text), Ok(true), "{text}");
    }
    let no = [
        "",
        " ",
        "0",
        "00",
        "-0",
        "+0",
        "0x0",
        "!1",
        "!!0",
        "0&&1",
        "0 || 0",
        "0 && 0",
        "1 && 0 || 0",
        "defined",
        "defined()",
        "defined(NOPE)",
        "defined( AA )",
        "defined(.LINE)",
        "feature(thread)",
        "feature(THREA)",
        "!feature(QUIC)",
        "feature()",
        "feature(+THREAD)",
        "streq(a,b)",
        "streq(a,a )",
        "streq(a, a)",
        "streq(a,)",
        "strneq(a,a)",
        "strstr(abc,d)",
        "strstr(,a)",
        "version_atleast(3.5)",
        "version_atleast(3.5.1)",
        "version_before(3.5-dev5)",
        "version_before(foo)",
        "enabled(splice)",
        "enabled(foo)",
        "enabled()",
        "enabled(KQUEUE)",
        "ssllib_name_startswith(wolf)",
        "openssl_version_before(3.0.0)",
        "awslc_api_atleast(1)",
        "awslc_api_before(1)",
        "0 && openssl_version_atleast(foo)",
        "fips_mode() && 1",
        "fips_mode && 1",
        "defined &&1",
    ];
    for text in no {
        assert_eq!(answer(text), Ok(false), "{text}");
    }
}

#[test]
fn the_library_can_be_missing_or_aws_lc() {
    let environment = Environment::new();
    let mut options = LanguageOptions { ssl: None, ..LanguageOptions::default() };
    let ask = |text, options: &LanguageOptions| {
        eval(text, &ConditionContext { environment: &environment, options }).map_err(|error| error.message)
    };
    for text in [
        "openssl_version_atleast(1.1.1)",
        "openssl_version_before(9.9.9)",
        "ssllib_name_startswith()",
        "fips_mode()",
        "awslc_api_atleast(1)",
    ] {
        assert_eq!(ask(text, &options), Ok(false), "{text}");
    }
    options.ssl = Some(crate::options::SslLibrary {
        name: "AWS-LC".into(),
        openssl_version: "1.1.1".into(),
        awslc_api: Some(35),
        fips_mode: true,
    });
    assert_eq!(ask("awslc_api_atleast(35) && awslc_api_before(36) && fips_mode()", &options), Ok(true));
    let message = "invalid argument to conditional expression predicate 'awslc_api_atleast': 'x'";
    assert_eq!(ask("awslc_api_atleast(x)", &options), Err(message.into()));
}

/// Returns the sentence with `conditional expression` shortened to `CE`, the position that HAProxy reports, and the
/// text that the caret run marks.
fn shown(text: &str) -> String {
    let error = answer(text).unwrap_err();
    let under = text.get(error.start..error.end.min(text.len())).unwrap();
    format!("{} @{} [{under}]", error.message.replace("conditional expression", "CE"), error.position + 1)
}

#[test]
fn errors() {
    let rows: &[(&str, &str)] = &[
        ("foo", "unparsable CE 'foo' @1 [foo]"),
        ("foo(a)", "unparsable CE 'foo(a)' @1 [foo(a)]"),
        ("0 && x || y", "unparsable CE 'x || y' @6 [x || y]"),
        ("(0 && x)", "unparsable CE 'x)' @7 [x)]"),
        ("(", "unparsable CE '(' @1 [(]"),
        ("()", "unparsable CE ')' @2 [)]"),
        ("!", "unparsable CE '!' @1 [!]"),
        ("!foo", "unparsable CE '!foo' @1 [!foo]"),
        ("!(", "unparsable CE '!(' @1 [!(]"),
        ("(!", "unparsable CE '!' @2 [!]"),
        (
            "streq(a,b\\",
            "failed to parse '\\' after 'b' as type 'string' at position 2 in argument 1 of predicate 'streq' used in CE \
             @10 [\\]",
        ),
        ("- || x", "unparsable CE '- || x' @1 [- || x]"),
        ("--1", "unparsable CE '--1' @1 [--1]"),
        ("&& 1", "unparsable CE '&& 1' @1 [&& 1]"),
        ("1 &&", "unparsable CE '&&' @3 [&&]"),
        ("0 || 1 ||", "unparsable CE '0 || 1 ||' @8 [||]"),
        ("1 &&& 1", "unparsable CE '& 1' @5 [& 1]"),
        ("fips_mode||x", "unparsable CE 'fips_mode||x' @1 [fips_mode||x]"),
        ("(defined)", "unparsable CE 'defined)' @2 [defined)]"),
        ("200rrr", "unexpected character 'r' at the end of CE '200rrr' @4 [r]"),
        ("1 2", "unexpected character '2' at the end of CE '1 2' @3 [2]"),
        ("1)", "unexpected character ')' at the end of CE '1)' @2 [)]"),
        ("(1)(1)", "unexpected character '(' at the end of CE '(1)(1)' @4 [(]"),
        ("08", "unexpected character '8' at the end of CE '08' @2 [8]"),
        ("0x", "unexpected character 'x' at the end of CE '0x' @2 [x]"),
        ("1|1", "unexpected character '|' at the end of CE '1|1' @2 [|]"),
        ("defined (AA)", "unexpected character '(' at the end of CE 'defined (AA)' @9 [(]"),
        ("(1", "expected ')' after CE '(1' @1 [(]"),
        ("((1)", "expected ')' after CE '((1)' @1 [(]"),
        ("!(1", "expected ')' after CE '!(1' @1 [(]"),
        ("defined(AA", "expected ')' in argument 1 of predicate 'defined' used in CE @11 []"),
        ("defined(AA,b)", "expected ')' before ',b)' in argument 1 of predicate 'defined' used in CE @11 [,]"),
        ("streq(a,b,c)", "expected ')' before ',c)' in argument 1 of predicate 'streq' used in CE @10 [,]"),
        ("fips_mode(x)", "expected ')' before 'x)' in argument 0 of predicate 'fips_mode' used in CE @11 [x]"),
        (
            "streq(a)",
            "missing arguments (got 1/2), type 'string' expected in argument 1 of predicate 'streq' used in CE @8 [)]",
        ),
        (
            "streq()",
            "missing arguments (got 1/2), type 'string' expected in argument 1 of predicate 'streq' used in CE @7 [)]",
        ),
        (
            "streq",
            "missing arguments (got 1/2), type 'string' expected in argument 1 of predicate 'streq' used in CE @6 []",
        ),
        ("openssl_version_atleast(foo)", "invalid argument to CE predicate 'openssl_version_atleast': 'foo' @28 [foo]"),
        (
            "openssl_version_before(3.0) || 1",
            "invalid argument to CE predicate 'openssl_version_before': '3.0' @27 [3.0]",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(shown(text), *expected, "{text}");
    }
}

#[test]
fn recursion_is_bounded() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(answer(&nested(341)), Ok(true));
    let error = answer(&nested(342)).unwrap_err();
    assert!(error.message.starts_with("unparsable conditional sub-expression '("), "{}", error.message);
    assert_eq!(error.position, 341);
    assert_eq!(answer(&format!("{}1", "!".repeat(100_001))), Ok(false));
    assert_eq!(answer(&format!("{}1", "1&&".repeat(100_000))), Ok(true));
}

#[test]
fn names_are_suggested() {
    let hint = |text| answer(text).unwrap_err().hint.unwrap();
    assert_eq!(hint("featur(THREAD)"), "did you mean 'feature'?");
    assert_eq!(hint("STREQ(a,b)"), "did you mean 'streq'?");
    assert!(hint("xyzzy(a)").starts_with("the predicates are awslc_api_atleast, "));
    assert!(hint("streq(a)").starts_with("streq(<string>,<string>)"));
}

#[test]
fn arguments_of_the_command_line() {
    let mut environment = Environment::new();
    environment.set("AA", "foo").unwrap();
    let options = LanguageOptions::default();
    let context = ConditionContext { environment: &environment, options: &options };
    let ask = |text: &str| eval_argument(text.as_bytes(), &context).map_err(|error| error.message);
    for text in [
        "1",
        "'1'",
        "\"streq(a,a)\"",
        "streq(\"$AA\",foo)",
        "streq(\"${NOPE-x}\",x)",
        "streq(\\x41,A)",
        "!streq($AA,foo)",
    ] {
        assert_eq!(ask(text), Ok(true), "{text}");
    }
    assert_eq!(ask(""), Ok(false));
    assert_eq!(ask("\"foo"), Err("Syntax Error in condition: Unmatched quote.".into()));
    assert_eq!(
        ask("200rrr"),
        Err("Failed to evaluate condition: unexpected character 'r' at the end of conditional expression '200rrr'"
            .into())
    );
    assert_eq!(
        ask("1 # comment"),
        Err(
            "Failed to evaluate condition: unexpected character '#' at the end of conditional expression '1 # comment'"
                .into()
        )
    );
}
