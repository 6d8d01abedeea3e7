//! Patterns of ACLs that no value of their sample can match. Must never report one that a well-formed request may match.

use super::values::{self, Shape};
use crate::finding::Findings;
use crate::model::{Model, Test};
use crate::rule::Rule;
use config::document::Word;
use expression::pattern::{Method, Network};
use policy::running::{CONVERTERS, FETCHES};

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "path-without-slash",
        doc: "a pattern for the start of a path does not begin with '/', as every path does",
        check: |model, findings| each_pattern(model, findings, path_without_slash),
    },
    Rule {
        name: "query-in-path",
        doc: "a pattern for a path contains '?', which ends the path: the query string is not part of it",
        check: |model, findings| each_pattern(model, findings, query_in_path),
    },
    Rule {
        name: "wildcard-as-text",
        doc: "a pattern contains '*', which matches itself alone",
        check: |model, findings| each_pattern(model, findings, wildcard_as_text),
    },
    Rule {
        name: "regex-as-text",
        doc: "a regular expression is compared as a plain text",
        check: |model, findings| each_pattern(model, findings, regex_as_text),
    },
    Rule {
        name: "no-host-name",
        doc: "a pattern for a host name contains a scheme, a path or, for SNI, a port",
        check: |model, findings| each_pattern(model, findings, no_host_name),
    },
    Rule {
        name: "method-in-lower-case",
        doc: "a pattern for the method is in lower case, while methods are case-sensitive",
        check: |model, findings| each_pattern(model, findings, method_in_lower_case),
    },
    Rule {
        name: "case-lost",
        doc: "a pattern has letters of a case that the converter 'lower' or 'upper' has removed",
        check: |model, findings| each_pattern(model, findings, case_lost),
    },
    Rule {
        name: "network-as-text",
        doc: "a network is compared with a text as a text, so that no address matches it",
        check: |model, findings| each_pattern(model, findings, network_as_text),
    },
    Rule {
        name: "flag-after-pattern",
        doc: "a flag of an ACL follows a pattern, and is a pattern itself",
        check: |model, findings| each_stray(model, findings, flag_after_pattern),
    },
    Rule {
        name: "operator-as-pattern",
        doc: "a word of a condition ('or', 'if', 'gt' and others) is among the patterns of an ACL, and is a pattern itself",
        check: |model, findings| each_stray(model, findings, operator_as_pattern),
    },
];

/// Why a pattern never matches, and advice.
type Verdict = Option<(String, &'static str)>;

/// Applies a judge to every pattern of every test, up to a word that is a pattern by mistake.
fn each_pattern(model: &Model<'_>, findings: &mut Findings, judge: fn(&Test, &str) -> Verdict) {
    for test in tests(model) {
        let end = stray(test).unwrap_or(test.patterns.len());
        for word in test.patterns.iter().take(end) {
            if let Some((message, hint)) = judge(test, &word.text) {
                findings.add_with_hint(word.span, message, hint);
            }
        }
    }
}

/// Applies a judge to the words of every test that are patterns by mistake; the first of a test is reported.
fn each_stray(model: &Model<'_>, findings: &mut Findings, judge: Judge) {
    for test in tests(model) {
        if let Some(at) = stray(test)
            && let (Some((message, hint)), Some(word)) = (judge(test, at), test.patterns.get(at))
        {
            findings.add_with_hint(word.span, message, hint);
        }
    }
}

/// Judges the nth pattern of a test.
type Judge = fn(&Test, usize) -> Verdict;

/// Returns the first pattern of a test that is no pattern by intention.
fn stray(test: &Test) -> Option<usize> {
    let is_stray = |at: &usize| flag_after_pattern(test, *at).is_some() || operator_as_pattern(test, *at).is_some();
    (0..test.patterns.len()).find(is_stray)
}

fn tests<'m>(model: &'m Model<'_>) -> impl Iterator<Item = &'m Test> {
    model.proxies.iter().flat_map(|proxy| proxy.tests())
}

/// Whether a method compares letters as they are.
fn is_literal(method: Option<Method>) -> bool {
    use Method::{Beg, Dir, Dom, End, Str, Sub};
    matches!(method, Some(Beg | Dir | Dom | End | Str | Sub))
}

fn path_without_slash(test: &Test, pattern: &str) -> Verdict {
    if values::shape(test) != Some(Shape::Path) {
        return None;
    }
    if looks_like_regex(pattern) && test.method != Some(Method::Reg) || pattern.starts_with('*') {
        return None;
    }
    let message = match test.method? {
        Method::Str | Method::Beg if !pattern.is_empty() && !pattern.starts_with('/') => {
            format!("'{pattern}' never matches: a path begins with '/'")
        }
        Method::Reg if is_anchored_to_letter(pattern) => {
            format!("'{pattern}' never matches: a path begins with '/'")
        }
        _ => return None,
    };
    Some((message, "begin the pattern with '/'"))
}

/// Whether a regular expression matches only texts that begin with a certain letter or digit.
fn is_anchored_to_letter(pattern: &str) -> bool {
    let mut rest = pattern.strip_prefix('^').unwrap_or_default().chars();
    let is_letter = rest.next().is_some_and(|letter| letter.is_ascii_alphanumeric());
    is_letter && !rest.as_str().starts_with(['?', '*', '{']) && !pattern.contains('|')
}

fn query_in_path(test: &Test, pattern: &str) -> Verdict {
    if values::shape(test) != Some(Shape::Path) || test.fetch != "path" {
        return None;
    }
    let has = match test.method? {
        Method::Reg => pattern.contains("\\?") || pattern.contains("[?]"),
        method => is_literal(Some(method)) && pattern.contains('?'),
    };
    let message = format!("'{pattern}' never matches: a path ends before '?'");
    has.then_some((message, "use 'pathq', 'query' or 'url_param'"))
}

/// Whether a text looks like a regular expression.
fn looks_like_regex(pattern: &str) -> bool {
    let anchored = pattern.starts_with('^') || (pattern.len() > 1 && pattern.ends_with('$'));
    anchored || pattern.contains(".*") || pattern.contains("\\.") || pattern.contains(".+")
}

fn wildcard_as_text(test: &Test, pattern: &str) -> Verdict {
    if !is_literal(test.method) || looks_like_regex(pattern) || pattern == "*" {
        return None;
    }
    let has = match values::shape(test)? {
        Shape::Host | Shape::Sni | Shape::Origin => pattern.contains('*'),
        // A star is a valid character of a path, though not one that an application uses at its ends.
        Shape::Path => pattern.ends_with('*') || pattern.starts_with('*'),
    };
    let message = format!("'{pattern}' matches a '*' only: there are no wildcards");
    has.then_some((message, "compare a part of the text, with '-m beg', '-m end' or '-m sub', without '*'"))
}

fn regex_as_text(test: &Test, pattern: &str) -> Verdict {
    let has = is_literal(test.method) && values::shape(test).is_some() && looks_like_regex(pattern);
    let message = format!("'{pattern}' is compared as a plain text, not as a regular expression");
    has.then_some((message, "use '-m reg'"))
}

fn no_host_name(test: &Test, pattern: &str) -> Verdict {
    let shape = values::shape(test)?;
    // Delimiters at the ends of a pattern of 'dom' and 'dir' do not count.
    if !matches!(test.method?, Method::Str | Method::Beg | Method::End | Method::Sub) || looks_like_regex(pattern) {
        return None;
    }
    let why = match shape {
        Shape::Host if pattern.contains('/') => "the host has neither scheme nor path",
        Shape::Sni if pattern.contains('/') => "SNI has neither scheme nor path",
        Shape::Sni if pattern.contains(':') => "SNI has no port",
        _ => return None,
    };
    Some((format!("'{pattern}' never matches: {why}"), "write the name alone"))
}

/// The methods that clients send.
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

fn method_in_lower_case(test: &Test, pattern: &str) -> Verdict {
    if test.fetch != "method" || !test.converters().is_empty() || test.method != Some(Method::Str) {
        return None;
    }
    let meant = METHODS.iter().find(|method| method.eq_ignore_ascii_case(pattern))?;
    let has = *meant != pattern && !test.ignores_case;
    has.then(|| (format!("'{pattern}' never matches the method {meant}"), "write the method in upper case"))
}

fn case_lost(test: &Test, pattern: &str) -> Verdict {
    if test.ignores_case || !is_literal(test.method) {
        return None;
    }
    let converter = test.converters().last()?.name.as_str();
    let lost = match converter {
        "lower" => pattern.chars().find(char::is_ascii_uppercase),
        "upper" => pattern.chars().find(char::is_ascii_lowercase),
        _ => None,
    }?;
    let message = format!("'{pattern}' never matches: no '{lost}' is left after the converter '{converter}'");
    Some((message, "write the pattern in that case"))
}

fn network_as_text(test: &Test, pattern: &str) -> Verdict {
    let is_field = matches!(test.fetch.as_str(), "req.hdr" | "req.fhdr" | "res.hdr" | "res.fhdr");
    let is_text = test.method == Some(Method::Str) && test.converters().is_empty();
    let has = is_field && is_text && pattern.contains('/') && Network::parse(pattern).is_some();
    let message = format!("'{pattern}' is compared as a text: no address is equal to it");
    has.then_some((message, "use 'req.hdr_ip', or '-m ip'"))
}

fn flag_after_pattern(test: &Test, at: usize) -> Verdict {
    let word = test.patterns.get(at)?;
    let is_flag = matches!(word.text.as_str(), "-i" | "-f" | "-m" | "-n" | "-u" | "-M");
    let has = is_flag && at > 0 && !test.ends_flags && !word.quoted;
    let message = format!("'{}' follows a pattern, and is a pattern itself", word.text);
    has.then_some((message, "write flags before the first pattern, and '--' before a pattern like a flag"))
}

fn operator_as_pattern(test: &Test, at: usize) -> Verdict {
    let Word { text, quoted, .. } = test.patterns.get(at)?;
    let next = test.patterns.get(at + 1).map(|word| word.text.as_str());
    if *quoted || test.ends_flags {
        return None;
    }
    let message = match text.as_str() {
        "||" | "&&" | "{" | "}" => "an ACL has one test",
        word if word.eq_ignore_ascii_case("or") || word.eq_ignore_ascii_case("and") => {
            next.filter(|next| is_sample(next))?;
            "an ACL has one test"
        }
        "if" | "unless" if at > 0 && next.is_some() => "an ACL has no condition",
        "eq" | "ge" | "gt" | "le" | "lt" if test.method == Some(Method::Str) => {
            next.filter(|next| next.parse::<i64>().is_ok())?;
            "the sample is compared as a text, not as a number"
        }
        _ => return None,
    };
    let hint = if message.starts_with("the sample") {
        "add '-m int'"
    } else {
        "write several 'acl' lines with the same name for alternatives, and combine names in conditions"
    };
    Some((format!("'{text}' is a pattern here: {message}"), hint))
}

/// Whether a word begins with the name of a fetch.
fn is_sample(word: &str) -> bool {
    let name = word.split(['(', ',']).next().unwrap_or_default();
    // Names of few letters are common words: a sample has arguments or an underscore.
    let is_distinct = word.contains(['(', '_', '.']) || name == "path";
    let known = FETCHES.find(name).is_some() || CONVERTERS.find(name).is_some();
    is_distinct && (known || expression::condition::shorthands().iter().any(|row| row.name == name))
}
