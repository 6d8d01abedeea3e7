//! A store that several nodes share, and the limits that they enforce together; Weir's own. Must never open a file.

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Word};
use crate::keyword::argument::{milliseconds, only};
use crate::keyword::report::{Report, quoted_list};
use crate::keyword::{is_name_character, server};
use crate::span::Spanned;
use crate::spec::{AddressSpec, LimitSpec, LostMode, SocketKind, StoreSectionSpec, StoreServerSpec};
use crate::suggest;
use crate::units;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("answer-size", "<size>", "Maximum size of one answer of the server.", answer_size),
    supported("database", "<number>", "Number of the database.", database),
    supported("key-prefix", "<text>", "Text that all keys in the store begin with.", key_prefix),
    supported(
        "limit",
        "<name> rate <number> period <time> [burst <number>] [size <number>] [lost { local | open | closed }]",
        "A limit that holds over all nodes, for each key.",
        limit,
    ),
    supported("password-file", "<path>", "File with the password.", password_file),
    supported("server", "<name> <address> [<option>...]", "The server, which speaks RESP2 as Redis does.", server_line),
    supported("timeout connect", "<time>", "Maximum time to connect to the server.", timeout_connect),
    supported("timeout server", "<time>", "Maximum time for an answer of the server.", timeout_server),
    supported("user", "<name>", "User of the server.", user),
];

/// Minimum of `answer-size`, in bytes.
const SMALLEST_ANSWER: u64 = 4_096;
/// Maximum of `answer-size`, in bytes.
const LARGEST_ANSWER: u64 = 16 << 20;
/// Maximum of `database`.
const LAST_DATABASE: i64 = 65_535;
/// Maximum length of `key-prefix`, in bytes.
const LONGEST_PREFIX: usize = 128;
/// Default of `size`.
const USUAL_SIZE: u32 = 100 * 1_024;
/// Maximum of `size`.
const LARGEST_SIZE: u64 = 64 << 20;
/// Maximum time in which a burst refills, in milliseconds.
const LONGEST_REFILL: u128 = 366 * 24 * 3_600_000;
/// The arguments of `limit`.
const ARGUMENTS: [&str; 5] = ["rate", "period", "burst", "size", "lost"];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    if context.report.too_many(line, 2, "store") {
        return false;
    }
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'store' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.stores.iter().find(|other| other.name.value == name) {
        let place = context.around.place(other.span);
        context.report.alert(line.span(1), format!("store '{name}' is already declared at {place}."));
        return false;
    }
    context.content.stores.push(StoreSectionSpec::new(line.whole(), Spanned::new(name.to_owned(), line.span(1))));
    true
}

/// Changes the open section.
fn change(context: &mut SectionContext<'_>, change: impl FnOnce(&mut StoreSectionSpec)) {
    if let Some(section) = context.content.stores.last_mut() {
        change(section);
    }
}

/// Returns the only argument of a line, which must not be empty.
fn argument<'a>(context: &mut SectionContext<'_>, line: &'a Line, usage: &str) -> Option<&'a Word> {
    let missing = format!("'{}' expects {usage} as argument.", line.keyword());
    let word = only(line, &missing, &mut context.report)?;
    if word.text.is_empty() {
        context.report.alert(word.span, missing);
        return None;
    }
    Some(word)
}

fn server_line(context: &mut SectionContext<'_>, line: &Line) {
    let Some(open) = context.content.stores.last_mut() else { return };
    let report = &mut context.report;
    let Some(mut found) = server::read_detached(&open.name.value, line, context.around.environment, report) else {
        return;
    };
    if let Some(other) = &open.server {
        let (name, place) = (&open.name.value, context.around.place(other.span));
        return report.alert(line.span(1), format!("store '{name}' already has a server, declared at {place}."));
    }
    let is_fit = match &found.address.value {
        AddressSpec::Inet { kind, .. } | AddressSpec::Unix { kind, .. } | AddressSpec::Abstract { kind, .. } => {
            *kind == SocketKind::Stream
        }
        _ => false,
    };
    if !is_fit {
        return report.alert(found.address.span, "the server of a store has a TCP address or a UNIX socket.");
    }
    found.tls.common.folder = context.around.paths.folder(line.whole(), context.around.sources);
    let server::Detached { name, address, tls, .. } = found;
    let tls = tls.ssl.then(|| Box::new(tls));
    open.server = Some(StoreServerSpec { span: line.whole(), name, address, tls });
}

fn user(context: &mut SectionContext<'_>, line: &Line) {
    if let Some(word) = argument(context, line, "<name>") {
        change(context, |store| store.user = Some(Spanned::new(word.text.clone(), word.span)));
    }
}

fn password_file(context: &mut SectionContext<'_>, line: &Line) {
    if let Some(word) = argument(context, line, "<path>") {
        change(context, |store| store.password_file = Some(Spanned::new(word.text.clone(), word.span)));
    }
}

fn database(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = argument(context, line, "<number>") else { return };
    match units::number(&word.text, 0..=LAST_DATABASE) {
        Ok(number) => change(context, |store| store.database = u32::try_from(number).unwrap_or(0)),
        Err(error) => context.report.alert(word.span, format!("'database' : {error}, got '{}'.", word.text)),
    }
}

fn key_prefix(context: &mut SectionContext<'_>, line: &Line) {
    let missing = "'key-prefix' expects <text> as argument.";
    let Some(word) = only(line, missing, &mut context.report) else { return };
    if word.text.len() > LONGEST_PREFIX {
        let message = format!("'key-prefix' has {LONGEST_PREFIX} bytes at most, got {}.", word.text.len());
        return context.report.alert(word.span, message);
    }
    change(context, |store| store.key_prefix.clone_from(&word.text));
}

fn answer_size(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = argument(context, line, "<size>") else { return };
    if let Some(size) = size(word, "answer-size", SMALLEST_ANSWER, LARGEST_ANSWER, &mut context.report) {
        change(context, |store| store.answer_size = size);
    }
}

/// Parses a size or a number with a unit, between two limits.
fn size(word: &Word, name: &str, least: u64, most: u64, report: &mut Report<'_>) -> Option<u32> {
    match units::size(&word.text, most) {
        Ok(value) if value >= least => u32::try_from(value).ok(),
        Ok(_) => {
            report.alert(word.span, format!("'{name}' expects {least} at least, got '{}'.", word.text));
            None
        }
        Err(error) => {
            let message = format!("'{name}' : invalid size '{}'.", word.text);
            report.push(Diagnostic::alert(word.span, message).with_hint(error.hint(most)));
            None
        }
    }
}

fn timeout(context: &mut SectionContext<'_>, line: &Line, set: fn(&mut StoreSectionSpec, u64)) {
    if context.report.too_many(line, 3, "timeout") {
        return;
    }
    let name = format!("timeout {}", line.text(1));
    if let Some(value) = time(line.words.get(2), line, &name, &mut context.report) {
        change(context, |store| set(store, value));
    }
}

fn timeout_connect(context: &mut SectionContext<'_>, line: &Line) {
    timeout(context, line, |store, value| store.timeout_connect = value);
}

fn timeout_server(context: &mut SectionContext<'_>, line: &Line) {
    timeout(context, line, |store, value| store.timeout_server = value);
}

/// Parses a time of one millisecond at least, in milliseconds.
fn time(word: Option<&Word>, line: &Line, name: &str, report: &mut Report<'_>) -> Option<u64> {
    let missing = format!("'{name}' expects <time> as argument.");
    let unexpected = format!("unexpected character '%c' in argument to <{name}>.");
    let value = milliseconds(word, line, name, &missing, &unexpected, report)?;
    if value == 0 {
        report.alert(line.span(line.words.len() - 1), format!("'{name}' expects one millisecond at least."));
        return None;
    }
    Some(value)
}

/// The arguments of a `limit` line as they are read.
#[derive(Default)]
struct LimitDraft {
    rate: Option<u32>,
    period: Option<u64>,
    burst: Option<u32>,
    size: Option<u32>,
    lost: LostMode,
}

fn limit(context: &mut SectionContext<'_>, line: &Line) {
    let Some(open) = context.content.stores.last_mut() else { return };
    let report = &mut context.report;
    let Some(name) = line.words.get(1) else {
        return report.alert(line.span(1), "'limit' expects <name> rate <number> period <time> as arguments.");
    };
    // A colon separates the name from the key in the store.
    if let Some(bad) = name.text.chars().find(|&found| found == ':' || !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'limit' name '{}'.", name.text);
        return report.alert(name.span, message);
    }
    if let Some(other) = open.limits.iter().find(|other| other.name.value == name.text) {
        let (store, place) = (&open.name.value, context.around.place(other.span));
        let message = format!("limit '{}' of store '{store}' is already declared at {place}.", name.text);
        return report.alert(name.span, message);
    }
    let mut draft = LimitDraft::default();
    for words in line.words.get(2..).unwrap_or_default().chunks(2) {
        if !limit_argument(&mut draft, words, line, report) {
            return;
        }
    }
    let (Some(rate), Some(period)) = (draft.rate, draft.period) else {
        let missing = if draft.rate.is_none() { "rate <number>" } else { "period <time>" };
        return report.alert(line.span(line.words.len()), format!("'limit {}' expects '{missing}'.", name.text));
    };
    let burst = draft.burst.unwrap_or(rate);
    if u64::from(rate) > period.saturating_mul(1_000) {
        return report.alert(name.span, format!("'limit {}' : the rate exceeds one per microsecond.", name.text));
    }
    if u128::from(burst) * u128::from(period) / u128::from(rate) > LONGEST_REFILL {
        return report.alert(name.span, format!("'limit {}' : the burst refills in more than 366 days.", name.text));
    }
    let name = Spanned::new(name.text.clone(), name.span);
    let size = draft.size.unwrap_or(USUAL_SIZE);
    open.limits.push(LimitSpec { span: line.whole(), name, rate, period, burst, size, lost: draft.lost });
}

/// Reads an argument and its value. Returns false after an error, which has been reported.
fn limit_argument(draft: &mut LimitDraft, words: &[Word], line: &Line, report: &mut Report<'_>) -> bool {
    let Some(keyword) = words.first() else { return true };
    let name = keyword.text.as_str();
    if !ARGUMENTS.contains(&name) {
        let message = format!("'limit' : unknown argument '{name}', expected {}.", quoted_list(&ARGUMENTS));
        let known = suggest::nearest(name, ARGUMENTS).map(|known| format!("write '{known}'"));
        let mut diagnostic = Diagnostic::alert(keyword.span, message);
        diagnostic.hint = known;
        report.push(diagnostic);
        return false;
    }
    let Some(value) = words.get(1) else {
        report.alert(line.span(line.words.len()), format!("'limit' : '{name}' expects a value."));
        return false;
    };
    match name {
        "period" => {
            draft.period = time(Some(value), line, "period", report);
            draft.period.is_some()
        }
        "size" => {
            draft.size = size(value, "size", 1, LARGEST_SIZE, report);
            draft.size.is_some()
        }
        "lost" => lost(draft, value, report),
        _ => {
            let number = count(value, name, report);
            *(if name == "rate" { &mut draft.rate } else { &mut draft.burst }) = number;
            number.is_some()
        }
    }
}

fn count(value: &Word, name: &str, report: &mut Report<'_>) -> Option<u32> {
    match units::number(&value.text, 1..=i64::from(i32::MAX)) {
        Ok(number) => u32::try_from(number).ok(),
        Err(error) => {
            report.alert(value.span, format!("'limit' : '{name}' : {error}, got '{}'.", value.text));
            None
        }
    }
}

fn lost(draft: &mut LimitDraft, value: &Word, report: &mut Report<'_>) -> bool {
    draft.lost = match value.text.as_str() {
        "local" => LostMode::Local,
        "open" => LostMode::Open,
        "closed" => LostMode::Closed,
        other => {
            let message = format!("'limit' : 'lost' expects 'local', 'open' or 'closed', got '{other}'.");
            report.alert(value.span, message);
            return false;
        }
    };
    true
}

/// Checks finished sections: each requires a server, and a user requires a password.
pub(crate) fn verify(sections: &[StoreSectionSpec], report: &mut Report<'_>) {
    for section in sections {
        let name = &section.name.value;
        if section.server.is_none() {
            report.alert(section.span, format!("store '{name}' has no 'server' line."));
        }
        if let Some(user) = section.user.as_ref().filter(|_| section.password_file.is_none()) {
            let message = format!("'user {}' of store '{name}' requires 'password-file'.", user.value);
            report.alert(user.span, message);
        }
    }
}
