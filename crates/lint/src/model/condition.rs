//! ACLs and conditions as written: alternatives of terms, each an ACL or a test with its patterns (configuration manual,
//! sections 7.1 and 7.2). Must never evaluate one.

use config::document::Word;
use config::span::Span;
use config::spec::RuleLineSpec;
use expression::condition::{PREDEFINED, shorthands};
use expression::pattern::Method;
use expression::sample::Type;
use expression::{Call, calls};
use policy::running::{CONVERTERS, FETCHES};

/// The lines of one ACL.
#[derive(Debug, Clone)]
pub struct Acl {
    pub name: String,
    /// It is in the `defaults` section.
    pub inherited: bool,
    /// One for each line; one of them has to match.
    pub tests: Vec<Test>,
}

/// One sample with the patterns that it is compared with.
#[derive(Debug, Clone)]
pub struct Test {
    /// The fetch, followed by the converters.
    pub calls: Vec<Call>,
    /// The name of the fetch without abbreviation: `req.hdr` for `hdr_beg`.
    pub fetch: String,
    /// All of its words.
    pub text: String,
    pub method: Option<Method>,
    /// `-i`.
    pub ignores_case: bool,
    /// `-f`: patterns are also in files, or at run time in lists.
    pub has_files: bool,
    /// `--` precedes the patterns.
    pub ends_flags: bool,
    pub patterns: Vec<Word>,
}

/// `if` or `unless` with its terms.
#[derive(Debug, Clone)]
pub struct Condition {
    pub unless: bool,
    /// Each a conjunction; one of them has to hold.
    pub alternatives: Vec<Vec<Term>>,
}

/// One part of a conjunction.
#[derive(Debug, Clone)]
pub struct Term {
    pub negated: bool,
    pub kind: TermKind,
    pub span: Span,
}

/// An ACL, or a test in braces.
#[derive(Debug, Clone)]
pub enum TermKind {
    Named(String),
    Anonymous(Box<Test>),
}

impl Condition {
    /// Parses the words from `if` or `unless` on.
    pub fn read(words: &[Word]) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        let mut condition = Self { unless: first.text == "unless", alternatives: vec![Vec::new()] };
        let mut negated = false;
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            let text = word.text.as_str();
            if text == "||" || text.eq_ignore_ascii_case("or") {
                condition.alternatives.push(Vec::new());
                negated = false;
                continue;
            }
            let bare = text.trim_start_matches('!');
            negated ^= (text.len() - bare.len()) % 2 == 1;
            if bare.is_empty() {
                continue;
            }
            let (kind, span) = if bare == "{" {
                let inside: Vec<Word> = rest.by_ref().take_while(|word| word.text != "}").cloned().collect();
                (TermKind::Anonymous(Box::new(Test::read(&inside)?)), whole(&inside))
            } else {
                (TermKind::Named(bare.to_owned()), word.span)
            };
            let term = Term { negated: std::mem::take(&mut negated), kind, span };
            condition.alternatives.last_mut()?.push(term);
        }
        Some(condition)
    }

    /// Returns the tests in its braces.
    pub fn own_tests(&self) -> impl Iterator<Item = &Test> {
        self.terms().filter_map(|term| match &term.kind {
            TermKind::Anonymous(test) => Some(&**test),
            TermKind::Named(_) => None,
        })
    }

    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        self.alternatives.iter().flatten()
    }
}

impl Test {
    /// Parses the words after the name of an ACL, or those in braces.
    pub fn read(words: &[Word]) -> Option<Self> {
        // Converters may be words of their own after a comma.
        let more = words.iter().take_while(|word| word.text.ends_with(',')).count();
        let (sample, mut rest) = words.split_at_checked(more + 1)?;
        let text: String = sample.iter().map(|word| word.text.as_str()).collect();
        let calls = calls(&text)?;
        let name = calls.first()?.name.clone();
        let shorthand = shorthands().iter().find(|row| row.name == name);
        let fetch = shorthand.map_or(name.as_str(), |row| row.fetch).to_owned();
        let mut test = Self {
            method: shorthand.filter(|_| calls.len() == 1).map(|row| row.method),
            calls,
            fetch,
            text: words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "),
            ignores_case: false,
            has_files: false,
            ends_flags: false,
            patterns: Vec::new(),
        };
        while let Some((flag, after)) = rest.split_first().filter(|(word, _)| word.text.starts_with('-')) {
            let value = after.first().map_or("", |word| word.text.as_str());
            let taken = match flag.text.as_str() {
                "-m" => {
                    test.method = Method::named(value);
                    1
                }
                "-f" => {
                    test.has_files = true;
                    1
                }
                "-u" => 1,
                _ => 0,
            };
            test.ignores_case |= flag.text == "-i";
            test.ends_flags |= flag.text == "--";
            rest = after.get(taken..)?;
            if test.ends_flags {
                break;
            }
        }
        test.patterns = rest.to_vec();
        test.method = test.method.or_else(|| Method::implied_by(test.output()?));
        Some(test)
    }

    /// Returns the type of the sample.
    fn output(&self) -> Option<Type> {
        let fetch = FETCHES.find(&self.fetch)?.output;
        let converters = self.converters().iter().map(|call| CONVERTERS.find(&call.name).map(|row| row.output));
        converters.into_iter().try_fold(fetch, |type_, next| match next? {
            Type::Any => Some(type_),
            other => Some(other),
        })
    }

    pub fn converters(&self) -> &[Call] {
        self.calls.get(1..).unwrap_or_default()
    }

    /// Returns the nth argument of the fetch.
    pub fn argument(&self, index: usize) -> Option<&str> {
        self.calls.first()?.arguments.as_ref()?.get(index).map(String::as_str)
    }
}

/// Returns the tests of a predefined ACL.
pub fn predefined(name: &str) -> Option<Test> {
    let (_, words) = PREDEFINED.iter().find(|row| row.0 == name)?;
    let words: Vec<Word> = words.iter().map(|text| Word { text: (*text).to_owned(), ..Word::default() }).collect();
    Test::read(&words)
}

/// Groups the lines of a proxy's ACLs by name.
pub fn acls(lines: &[RuleLineSpec]) -> Vec<Acl> {
    let mut acls: Vec<Acl> = Vec::new();
    for line in lines {
        let Some((name, words)) = line.words.split_first() else { continue };
        let known = acls.iter_mut().find(|acl| acl.name == name.text && acl.inherited == line.inherited);
        let test = Test::read(words);
        match known {
            Some(acl) => acl.tests.extend(test),
            None => {
                acls.push(Acl { name: name.text.clone(), inherited: line.inherited, tests: test.into_iter().collect() })
            }
        }
    }
    acls
}

/// Returns the place from the first word to the last one.
fn whole(words: &[Word]) -> Span {
    let first = words.first().map(|word| word.span).unwrap_or_default();
    Span { end: words.last().map_or(first.end, |word| word.span.end), ..first }
}
