//! A cache of small responses (section 6.2). Must never hold an object.

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::keyword::report::Report;
use crate::spec::{CacheSpec, EarlyHints};
use crate::units;

/// Maximum of `total-max-size`, in megabytes.
const LARGEST: u32 = 4_095;

/// Maximum size of the file of `disk`, in megabytes.
const LARGEST_FILE: u32 = 1 << 24;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported(
        "coalesce",
        "<time>",
        "Weir's own: how long requests wait for the response to a concurrent request for the same resource.",
        coalesce,
    ),
    supported("disk", "<file> <megabytes>", "Weir's own: file for entries evicted from memory.", disk),
    supported(
        "early-hints",
        "{ on | off | only } [ratio <1..99>]",
        "Sends 103 responses from cached links.",
        early_hints,
    ),
    supported("max-age", "<seconds>", "Maximum lifetime of an entry.", max_age),
    supported("max-object-size", "<bytes>", "Maximum size of an entry.", max_object_size),
    supported("max-secondary-entries", "<number>", "Maximum number of variants of an entry.", max_secondary_entries),
    supported("process-vary", "{ on | off }", "Whether Vary is honoured.", process_vary),
    supported("ranges", "{ on | off }", "Weir's own: whether range requests are served.", ranges),
    supported("rfc9111", "{ on | off }", "Weir's own: whether all of RFC 9111 applies, beyond HAProxy.", standard),
    supported(
        "stale-if-error",
        "<seconds>",
        "Weir's own: how long a stale entry is used while its server fails.",
        stale_if_error,
    ),
    supported(
        "stale-while-revalidate",
        "<seconds>",
        "Weir's own: how long a stale entry is used while it is refreshed.",
        stale,
    ),
    supported("tag-header", "<name>", "Weir's own: header field with the tags of an entry.", tag_header),
    supported("total-max-size", "<megabytes>", "Size of the cache.", total_max_size),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1).to_owned();
    if context.report.too_many(line, 2, "cache") {
        return false;
    }
    if context.content.caches.iter().any(|known| known.name == name) {
        context.report.tight(line.span(1), format!("Duplicate cache name '{name}'."));
        return false;
    }
    context.content.caches.push(CacheSpec {
        span: line.whole(),
        name,
        megabytes: 0,
        largest: 0,
        age: 60,
        varies: false,
        variants: 10,
        hints: EarlyHints::Off,
        ratio: 25,
        coalesce: 0,
        stale: 0,
        stale_if_error: 0,
        ranges: false,
        standard: false,
        disk: None,
        tag_header: None,
    });
    true
}

fn warn(context: &mut SectionContext<'_>, line: &Line, message: String) {
    context.report.push(Diagnostic::warning(line.span(1), message).with_form(Form::ParsingTight));
}

/// Changes the open section, unless there is more than one argument.
fn change(context: &mut SectionContext<'_>, line: &Line, change: impl FnOnce(&mut CacheSpec)) {
    if !context.report.too_many(line, 2, line.keyword())
        && let Some(section) = context.content.caches.last_mut()
    {
        change(section);
    }
}

/// Reports an error that HAProxy labels a warning, although it rejects the configuration.
fn refuse(context: &mut SectionContext<'_>, line: &Line, message: String) {
    context.report.tight(line.span(1), message);
}

/// Parses a number that consists of digits only; a larger one than `u32::MAX` saturates.
fn number(line: &Line) -> Option<u32> {
    let text = line.text(1);
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}

fn total_max_size(context: &mut SectionContext<'_>, line: &Line) {
    match number(line) {
        Some(megabytes) if megabytes > LARGEST => {
            let message = format!("\"total-max-size\" ({}) must not be greater than {LARGEST}", line.text(1));
            refuse(context, line, message);
        }
        Some(megabytes) => change(context, line, |section| section.megabytes = megabytes),
        None => refuse(context, line, format!("total-max-size wrong value '{}'", line.text(1))),
    }
}

fn max_age(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        return warn(context, line, "'max-age' expects an age parameter in seconds.".to_owned());
    };
    // As `atoi` parses it: text is 0, and a negative value never expires.
    let (seconds, clean) = leading_number(&word.text);
    if !clean {
        context.report.diag(word.span, format!("'max-age' takes a number; '{}' is read as {seconds}.", word.text));
    }
    change(context, line, |section| section.age = u32::try_from(seconds).unwrap_or(u32::MAX));
}

fn max_object_size(context: &mut SectionContext<'_>, line: &Line) {
    if line.words.len() < 2 {
        return refuse(context, line, "'max-object-size' expects a maximum file size parameter in bytes.".to_owned());
    }
    match number(line) {
        Some(bytes) => change(context, line, |section| section.largest = bytes),
        None => refuse(context, line, format!("max-object-size wrong value '{}'", line.text(1))),
    }
}

fn max_secondary_entries(context: &mut SectionContext<'_>, line: &Line) {
    if line.words.len() < 2 {
        return refuse(context, line, "'max-secondary-entries' expects a strictly positive number.".to_owned());
    }
    match number(line).filter(|number| *number > 0) {
        Some(variants) => change(context, line, |section| section.variants = variants),
        None => refuse(context, line, format!("max-secondary-entries wrong value '{}'", line.text(1))),
    }
}

fn process_vary(context: &mut SectionContext<'_>, line: &Line) {
    match line.text(1) {
        "on" => change(context, line, |section| section.varies = true),
        "off" => change(context, line, |section| section.varies = false),
        _ => {
            let message = "'process-vary' expects \"on\" or \"off\" (enable or disable vary processing).".to_owned();
            warn(context, line, message);
        }
    }
}

fn early_hints(context: &mut SectionContext<'_>, line: &Line) {
    let hints = match line.text(1) {
        "on" => EarlyHints::On,
        "off" => EarlyHints::Off,
        "only" => EarlyHints::Only,
        _ => {
            let message = "'early-hints' expects \"on\", \"off\" or \"only\" (enable or disable HTTP 103 Early Hints \
                           support, or store only hints).";
            return warn(context, line, message.to_owned());
        }
    };
    let mut ratio = None;
    if line.words.len() > 2 {
        let refuse = |report: &mut Report<'_>, at: usize, message: String| report.tight(line.span(at), message);
        if line.text(2) != "ratio" {
            let message = format!("'early-hints' unexpected argument '{}', expected 'ratio'.", line.text(2));
            return refuse(&mut context.report, 2, message);
        }
        let expects = "'early-hints ratio' expects an integer argument between 1 and 99";
        match line.words.get(3) {
            None => return refuse(&mut context.report, 3, format!("{expects}.")),
            Some(word) => match word.text.parse::<u32>().ok().filter(|ratio| (1..=99).contains(ratio)) {
                None => return refuse(&mut context.report, 3, format!("{expects}, got '{}'.", word.text)),
                some => ratio = some,
            },
        }
        if context.report.too_many(line, 4, "early-hints") {
            return;
        }
    }
    if let Some(section) = context.content.caches.last_mut() {
        section.hints = hints;
        section.ratio = ratio.unwrap_or(section.ratio);
    }
}

fn coalesce(context: &mut SectionContext<'_>, line: &Line) {
    match units::milliseconds(line.text(1)) {
        Ok(time) if time.value > 0 => change(context, line, |section| section.coalesce = time.value),
        _ => context.report.tight(line.span(1), "'coalesce' expects a time.".to_owned()),
    }
}

fn stale(context: &mut SectionContext<'_>, line: &Line) {
    match number(line) {
        Some(seconds) => change(context, line, |section| section.stale = seconds),
        None => context.report.tight(line.span(1), "'stale-while-revalidate' expects a number of seconds.".to_owned()),
    }
}

fn stale_if_error(context: &mut SectionContext<'_>, line: &Line) {
    match number(line) {
        Some(seconds) => change(context, line, |section| section.stale_if_error = seconds),
        None => context.report.tight(line.span(1), "'stale-if-error' expects a number of seconds.".to_owned()),
    }
}

fn ranges(context: &mut SectionContext<'_>, line: &Line) {
    match line.text(1) {
        "on" => change(context, line, |section| section.ranges = true),
        "off" => change(context, line, |section| section.ranges = false),
        _ => context.report.tight(line.span(1), "'ranges' expects \"on\" or \"off\".".to_owned()),
    }
}

fn standard(context: &mut SectionContext<'_>, line: &Line) {
    match line.text(1) {
        "on" => change(context, line, |section| section.standard = true),
        "off" => change(context, line, |section| section.standard = false),
        _ => context.report.tight(line.span(1), "'rfc9111' expects \"on\" or \"off\".".to_owned()),
    }
}

fn disk(context: &mut SectionContext<'_>, line: &Line) {
    let megabytes = line.text(2).parse::<u32>().ok().filter(|megabytes| (1..=LARGEST_FILE).contains(megabytes));
    let path = line.text(1).to_owned();
    match megabytes.filter(|_| !path.is_empty()) {
        None => {
            let message = format!("'disk' expects a file and a number of megabytes between 1 and {LARGEST_FILE}.");
            context.report.tight(line.span(1), message);
        }
        Some(_) if context.report.too_many(line, 3, "disk") => {}
        Some(_)
            if context.content.caches.iter().any(|other| other.disk.as_ref().is_some_and(|(own, _)| *own == path)) =>
        {
            context.report.tight(line.span(1), format!("'{path}' is the file of a cache already."));
        }
        Some(megabytes) => {
            if let Some(section) = context.content.caches.last_mut() {
                section.disk = Some((path, megabytes));
            }
        }
    }
}

fn tag_header(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return context.report.tight(line.span(1), "'tag-header' expects the name of a header field.".to_owned());
    }
    let name = name.to_owned();
    change(context, line, |section| section.tag_header = Some(name));
}

/// Checks finished sections: each requires a size.
pub(crate) fn verify(sections: &[CacheSpec], report: &mut Report<'_>) {
    for section in sections {
        let half = u64::from(section.megabytes) << 19;
        let message = if section.megabytes == 0 {
            format!("Size not specified for cache '{}'", section.name)
        } else if u64::from(section.largest) > half {
            format!("\"max-object-size\" is limited to an half of \"total-max-size\" => {half}")
        } else {
            continue;
        };
        report.push(Diagnostic::alert(section.span, message).with_form(Form::Config));
    }
}
