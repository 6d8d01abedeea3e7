//! Parses ACLs and conditions (configuration manual, sections 7.1 and 7.2), and reports errors with HAProxy's messages.
//! Must never evaluate one.

use super::keyword::{self, PREDEFINED};
use super::{Acl, Condition, Term, Test};
use crate::pattern::{Content, Entries, Lookup, Method, Network, Use, written_range};
use crate::sample::{EvalPlace, cast};
use crate::vocabulary::Vocabulary;
use crate::{Expression, Names, Part};
use config::suggest::nearest;
use std::sync::Arc;

/// An error in an ACL or a condition, and the word that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// HAProxy's message, without a full stop.
    pub message: String,
    /// A suggestion for correcting it.
    pub hint: Option<String>,
    /// Index of the word, from 0.
    pub word: usize,
}

impl ConditionError {
    fn at(word: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, word }
    }
}

/// File and line of the configuration, in reading order.
pub type LinePosition = (u32, u32);

/// The ACLs of one proxy by name, in the order of their first lines, each with the position of that line.
#[derive(Debug, Clone, Default)]
pub struct Acls(Vec<(LinePosition, Arc<Acl>)>);

impl Acls {
    /// Adds a line to the ACL of that name.
    pub fn add(&mut self, position: LinePosition, name: &str, test: Test) {
        match self.0.iter_mut().find(|(_, acl)| acl.name() == Some(name)) {
            Some((_, acl)) => Arc::make_mut(acl).add(test),
            None => self.0.push((position, Arc::new(Acl::new(Some(name), test)))),
        }
    }

    /// Records that a line of the ACL of that name is invalid, so that conditions that name the ACL are not reported as
    /// well.
    pub fn add_broken(&mut self, position: LinePosition, name: &str) {
        if self.all().find(name).is_none() {
            self.0.push((position, Arc::new(Acl::broken(name))));
        }
    }

    /// Every ACL: for conditions that are compiled after all lines have been read.
    pub fn all(&self) -> AclScope<'_> {
        AclScope { acls: self, before: None }
    }

    /// The ACLs that a line may name: those whose first line is above it. Their later lines count as well.
    pub fn before(&self, line: LinePosition) -> AclScope<'_> {
        AclScope { acls: self, before: Some(line) }
    }
}

/// The ACLs that a condition may name.
#[derive(Debug, Clone, Copy)]
pub struct AclScope<'a> {
    acls: &'a Acls,
    before: Option<LinePosition>,
}

impl<'a> AclScope<'a> {
    /// Returns the ACL of that name.
    pub fn find(&self, name: &str) -> Option<&'a Arc<Acl>> {
        self.known(name).filter(|(first, _)| self.before.is_none_or(|line| *first < line)).map(|(_, acl)| acl)
    }

    /// Returns the line that defines an ACL of that name too late.
    pub fn defined_below(&self, name: &str) -> Option<u32> {
        let (first, _) = self.known(name)?;
        self.before.filter(|line| first >= line).map(|_| first.1)
    }

    fn known(&self, name: &str) -> Option<&'a (LinePosition, Arc<Acl>)> {
        self.acls.0.iter().find(|(_, acl)| acl.name() == Some(name))
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.acls.0.iter().filter_map(|(_, acl)| acl.name())
    }
}

/// Returns a suggestion for the name of an ACL that does not exist.
pub(crate) fn hint_for_missing_acl(name: &str, acls: AclScope<'_>, vocabulary: &Vocabulary) -> Option<String> {
    if let Some(line) = acls.defined_below(name) {
        return Some(format!("an ACL has to be defined above the lines that name it; move line {line} up"));
    }
    let keyword = name.split(['(', ',']).next().unwrap_or_default();
    let hint = match name {
        "&&" | "&" => Some("tests that follow each other all have to match: write nothing between them"),
        "|" => Some("write '||' or 'or' between tests of which one has to match"),
        _ if name.eq_ignore_ascii_case("and") => {
            Some("tests that follow each other all have to match: write nothing between them")
        }
        _ if name.eq_ignore_ascii_case("not") => Some("write '!' before what must not match"),
        _ if name.starts_with('{') || name.ends_with('}') => Some("braces are words of their own: write '{ path /x }'"),
        _ => None,
    };
    if let Some(hint) = hint {
        return Some(hint.to_owned());
    }
    if keyword::find(keyword).is_some() || vocabulary.fetch(keyword).is_some() {
        return Some(format!("'{name}' is no ACL but a sample: write it in braces, '{{ {name} ... }}'"));
    }
    let known = acls.names().chain(PREDEFINED.iter().map(|row| row.0));
    nearest(name, known).map(|known| format!("did you mean '{known}'?"))
}

/// A parsed ACL line.
pub struct ReadTest {
    pub test: Test,
    /// A warning that HAProxy emits.
    pub doubt: Option<SuspectTest>,
}

/// A test that is probably not meant as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspectTest {
    /// A pattern is required, none was written, and no flag shows that this is intended.
    LacksPatterns,
    /// The keyword implies a matching method that is not used.
    MethodOverwritten,
    /// A pattern names a group that the `userlist` does not have; the offset in words from the criterion. HAProxy
    /// rejects it once the whole configuration has been read.
    UnknownGroup(usize),
    /// An integer operator is compared as a string; the offset in words from the criterion.
    OperatorAsText(usize),
    /// A dash in an integer pattern makes a range; the offset in words from the criterion.
    DashAsRange(usize),
    /// Nothing follows `if` or `unless`.
    Nothing,
}

/// Parses the words after an ACL's name: criterion, flags, patterns.
///
/// # Errors
/// The first error.
pub fn parse_acl(words: &[&str], names: &dyn Names) -> Result<ReadTest, ConditionError> {
    // Converters may be words of their own after a comma.
    let more = words.iter().take_while(|word| word.ends_with(',')).count();
    match words.get(more) {
        Some(_) if more > 0 => parse_test(&words[..=more].concat(), &words[more..], names)
            .map_err(|error| ConditionError { word: error.word + more, ..error }),
        _ => parse_test(words.first().copied().unwrap_or_default(), words, names),
    }
}

/// Parses a criterion, its flags and patterns: the first of `words` is the last word of the criterion.
fn parse_test(criterion: &str, words: &[&str], names: &dyn Names) -> Result<ReadTest, ConditionError> {
    if criterion.is_empty() {
        return Err(ConditionError::at(0, "missing fetch method in ACL expression ''"));
    }
    let (expression, implied) = parse_criterion(criterion, names)?;
    let mut flags = Flags::read(words)?;
    let keyword = criterion.split(['(', ',']).next().unwrap_or_default();
    let overwritten = keyword::find(keyword).is_some_and(|row| row.is_overwritten(flags.method, implied.is_some()));
    flags.method = flags.method.or(implied).or_else(|| Method::implied_by(expression.output()));
    let Some(method) = flags.method else {
        let message = format!(
            "matching method must be specified first (using '-m') when using a sample fetch of this type ('{keyword}')"
        );
        return Err(ConditionError::at(0, message));
    };
    if method.input().is_some_and(|wanted| cast(expression.output(), wanted).is_none()) {
        let message = format!(
            "matching method '{}' cannot be used with fetch keyword '{}'",
            method.name(),
            expression.fetch().name
        );
        return Err(ConditionError::at(0, message));
    }
    let mut lists = Vec::with_capacity(flags.files.len() + 1);
    let usage = if flags.map { Use::AclOfMap } else { Use::Acl };
    for file in &flags.files {
        let list = names.list(&file.name, usage, method, file.ignore_case, Content::None);
        lists.push(list.map_err(|why| ConditionError::at(file.word, why))?);
    }
    let shown = match keyword::find(keyword) {
        Some(shorthand) if !expression.is_plain() => shorthand.fetch,
        _ => keyword,
    };
    let written = &words[flags.end..];
    lists.push(own_list(written, shown, method, &flags, names)?);
    let unknown_group = match criterion.split_once('(') {
        Some(("http_auth_group", list)) if expression.is_plain() => {
            let list = list.trim_end_matches(')');
            written.iter().position(|group| !names.has_group(list, group))
        }
        _ => None,
    };
    let remark = remark(method, written, flags.end);
    let doubt = match () {
        () if unknown_group.is_some() => unknown_group.map(|at| SuspectTest::UnknownGroup(flags.end + at)),
        () if overwritten => Some(SuspectTest::MethodOverwritten),
        () if remark.is_some() => remark,
        // Flags show that the missing pattern is intended.
        () if words.len() == 1 && !method.takes_no_pattern() => Some(SuspectTest::LacksPatterns),
        () => None,
    };
    let test = Test { expression, keyword: keyword.into(), method, lists: lists.into() };
    Ok(ReadTest { test, doubt })
}

/// Returns a doubt about patterns that start `before` words after the criterion.
fn remark(method: Method, written: &[&str], before: usize) -> Option<SuspectTest> {
    match method {
        Method::Str => {
            let is_operator =
                |pair: &[&str]| matches!(pair[0], "eq" | "ge" | "gt" | "le" | "lt") && pair[1].parse::<i64>().is_ok();
            written.windows(2).position(is_operator).map(|at| SuspectTest::OperatorAsText(before + at))
        }
        Method::Int | Method::Len => {
            written.iter().position(|word| word.starts_with('-')).map(|at| SuspectTest::DashAsRange(before + at))
        }
        _ => None,
    }
}

/// Compiles the list of the patterns written in the line itself.
fn own_list(
    written: &[&str],
    keyword: &str,
    method: Method,
    flags: &Flags,
    names: &dyn Names,
) -> Result<Lookup, ConditionError> {
    let wrong = |at: usize, why: String| ConditionError::at(flags.end + at, why);
    let texts = match method {
        Method::Int | Method::Dotted | Method::Len => {
            written_range(written, method.notation()).map_err(|(at, why)| wrong(at, why))?
        }
        Method::Ip => {
            if let Some(at) = written.iter().position(|word| flags.numeric && is_short(word)) {
                return Err(wrong(at, format!("'{}' is not a valid IPv4 or IPv6 address", written[at])));
            }
            written.iter().map(|word| address(word, flags, names)).collect()
        }
        _ => written.iter().map(|word| (*word).to_owned()).collect(),
    };
    let bytes: Vec<_> = texts.iter().map(|text| config::text::to_bytes(text)).collect();
    let entries = Entries::of_words(bytes.iter().map(|bytes| &**bytes));
    let lists = names.lists();
    let mut lists = lists.borrow_mut();
    if let Some((word, id)) = flags.id
        && lists.is_taken(id)
    {
        return Err(ConditionError::at(word, "the id is already used"));
    }
    let list = lists.own(keyword, entries, flags.id.map(|(_, id)| id), names.line());
    lists.lookup(list, method, flags.ignore_case, Content::None).map_err(|(at, why)| wrong(at as usize, why))
}

/// Whether it is an IPv4 address with omitted parts, which HAProxy takes for a host name.
fn is_short(word: &str) -> bool {
    let address = word.split('/').next().unwrap_or_default();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    address.split('.').count() < 4 && address.split('.').all(digits) && !address.is_empty()
}

/// Returns a network as written; a host name is resolved to its address, unless `-n` forbids it.
fn address(word: &str, flags: &Flags, names: &dyn Names) -> String {
    if flags.numeric || Network::parse(word).is_some() {
        return word.to_owned();
    }
    let (host, mask) = word.find('/').map_or((word, ""), |at| word.split_at(at));
    if ends_in_number(host) {
        return word.to_owned();
    }
    names.resolve(host).map_or_else(|| word.to_owned(), |address| format!("{address}{mask}"))
}

/// Whether a name ends in a number, decimal or hexadecimal: no host has such a name, but the system's resolver would
/// parse it as an unusual notation of an address.
fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    match last.strip_prefix("0x").or_else(|| last.strip_prefix("0X")) {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Returns the ACL keyword or fetch closest to a word.
fn nearest_criterion<'a>(name: &str, vocabulary: &'a Vocabulary) -> Option<&'a str> {
    nearest(name, keyword::shorthands().iter().map(|row| row.name).chain(vocabulary.fetch_names()))
}

/// Parses a fetch with converters, or a shorthand.
fn parse_criterion(text: &str, names: &dyn Names) -> Result<(Expression, Option<Method>), ConditionError> {
    let name = text.split(['(', ',']).next().unwrap_or_default();
    let parse = |text: &str| {
        Expression::parse_all(text, EvalPlace::Runtime, names).map_err(|error| ConditionError {
            message: match error.part {
                Part::Converter if keyword::find(name).is_some() => {
                    format!("ACL keyword '{name}' : {}", error.message)
                }
                _ => format!("{} in ACL expression '{text}'", error.message),
            },
            hint: match error.message.strip_prefix("unknown fetch method") {
                Some(_) => nearest_criterion(name, names.vocabulary()).map(|known| format!("did you mean '{known}'?")),
                None => error.hint,
            },
            word: 0,
        })
    };
    let Some(shorthand) = keyword::find(name) else { return Ok((parse(text)?, None)) };
    let whole = format!("{}{}", shorthand.fetch, &text[name.len()..]);
    let expression = parse(&whole)?;
    let method = expression.is_plain().then_some(shorthand.method);
    Ok((expression, method))
}

/// A pattern file named by `-f`.
struct ListFile {
    /// Index of the word that names it.
    word: usize,
    name: String,
    /// `-i` precedes it.
    ignore_case: bool,
}

/// The flags of an ACL line.
#[derive(Default)]
struct Flags {
    method: Option<Method>,
    ignore_case: bool,
    files: Vec<ListFile>,
    /// `-M`: the lists are maps.
    map: bool,
    /// `-u`: the word's index, and the id of the list of the line's own patterns.
    id: Option<(usize, u32)>,
    /// `-n`: host names are not resolved.
    numeric: bool,
    /// Index of the first word after the flags.
    end: usize,
}

impl Flags {
    fn read(words: &[&str]) -> Result<Self, ConditionError> {
        let mut flags = Self { end: 1, ..Self::default() };
        while let Some(word) = words.get(flags.end).filter(|word| word.starts_with('-')) {
            let at = flags.end;
            let value = words.get(at + 1).copied().unwrap_or_default();
            flags.end += match *word {
                "-i" => {
                    flags.ignore_case = true;
                    1
                }
                "-n" => {
                    flags.numeric = true;
                    1
                }
                "-m" => {
                    flags.set_method(at, value)?;
                    2
                }
                "-f" => {
                    let (name, ignore_case) = (value.to_owned(), flags.ignore_case);
                    flags.files.push(ListFile { word: at + 1, name, ignore_case });
                    2
                }
                "-M" => {
                    flags.map = true;
                    1
                }
                "-u" => {
                    let id = value.parse::<i64>().ok().map(|id| id as u32);
                    let Some(id) = id else {
                        return Err(ConditionError::at(at + 1, "the argument of -u must be an integer"));
                    };
                    // In HAProxy this value marks lists without an id.
                    if id == u32::MAX {
                        return Err(ConditionError::at(at + 1, "the id is already used"));
                    }
                    flags.id = Some((at + 1, id));
                    2
                }
                "--" => {
                    flags.end += 1;
                    break;
                }
                other => {
                    let message = format!(
                        "'{other}' is not a valid ACL option. Please use '--' before any pattern beginning with a '-'"
                    );
                    return Err(ConditionError::at(at, message));
                }
            };
        }
        flags.end = flags.end.min(words.len());
        Ok(flags)
    }

    fn set_method(&mut self, at: usize, name: &str) -> Result<(), ConditionError> {
        if self.method.is_some() {
            let message = "only one explicit matching method can be defined with '-m' parameter. if migrating from an old \
                           version, just keep the last one";
            return Err(ConditionError::at(at, message));
        }
        let Some(method) = Method::named(name) else {
            let hint = nearest(name, Method::NAMES).map(|known| format!("did you mean '-m {known}'?"));
            let message = format!("unknown matching method '{name}' when parsing ACL expression");
            return Err(ConditionError { hint, ..ConditionError::at(at + 1, message) });
        };
        self.method = Some(method);
        Ok(())
    }
}

/// Parses a condition: `words` begins with `if` or `unless`.
///
/// # Errors
/// The first error.
pub fn parse_condition(
    words: &[&str],
    acls: AclScope<'_>,
    names: &dyn Names,
    doubts: &mut Vec<(usize, SuspectTest)>,
) -> Result<Condition, ConditionError> {
    let unless = words.first() == Some(&"unless");
    if words.len() == 1 {
        doubts.push((0, SuspectTest::Nothing));
    }
    let mut reader = Reader { words, at: 1, acls, names, doubts };
    let mut alternatives = Vec::new();
    let mut group = Vec::new();
    let mut negated = false;
    while let Some(word) = words.get(reader.at).copied() {
        match word {
            word if word == "||" || word.eq_ignore_ascii_case("or") => {
                reader.at += 1;
                alternatives.push(std::mem::take(&mut group).into_boxed_slice());
                negated = false;
                continue;
            }
            word if word.starts_with('!') && word.bytes().all(|byte| byte == b'!') => {
                reader.at += 1;
                negated ^= word.len() % 2 == 1;
                continue;
            }
            _ => {}
        }
        let bare = word.trim_start_matches('!');
        negated ^= (word.len() - bare.len()) % 2 == 1;
        let acl = reader.acl(bare)?;
        group.push(Term { acl, negated });
        negated = false;
    }
    alternatives.push(group.into_boxed_slice());
    Ok(Condition { alternatives: alternatives.into(), unless })
}

struct Reader<'a> {
    words: &'a [&'a str],
    at: usize,
    acls: AclScope<'a>,
    names: &'a dyn Names,
    doubts: &'a mut Vec<(usize, SuspectTest)>,
}

/// Returns the predefined ACL of that name.
pub fn predefined(name: &str, names: &dyn Names) -> Option<Arc<Acl>> {
    let (name, words) = PREDEFINED.iter().find(|(known, _)| *known == name)?;
    Some(Arc::new(Acl::new(Some(name), parse_acl(words, names).ok()?.test)))
}

impl Reader<'_> {
    fn acl(&mut self, name: &str) -> Result<Arc<Acl>, ConditionError> {
        let at = self.at;
        if name == "{" {
            return self.anonymous();
        }
        self.at += 1;
        if let Some(acl) = self.acls.find(name) {
            return Ok(Arc::clone(acl));
        }
        let Some((name, words)) = PREDEFINED.iter().find(|(known, _)| *known == name) else {
            let hint = hint_for_missing_acl(name, self.acls, self.names.vocabulary());
            return Err(ConditionError { hint, ..ConditionError::at(at, format!("no such ACL : '{name}'")) });
        };
        let read = parse_acl(words, self.names).map_err(|error| ConditionError { word: at, ..error })?;
        Ok(Arc::new(Acl::new(Some(name), read.test)))
    }

    /// Parses the ACL between braces.
    fn anonymous(&mut self) -> Result<Arc<Acl>, ConditionError> {
        let start = self.at + 1;
        let Some(length) = self.words[start..].iter().position(|word| *word == "}") else {
            return Err(ConditionError::at(self.at, "missing closing '}' in condition"));
        };
        self.at = start + length + 1;
        let read = parse_acl(&self.words[start..start + length], self.names)
            .map_err(|error| ConditionError { word: start + error.word, ..error })?;
        self.doubts.extend(read.doubt.map(|doubt| (start, doubt)));
        Ok(Arc::new(Acl::new(None, read.test)))
    }
}
