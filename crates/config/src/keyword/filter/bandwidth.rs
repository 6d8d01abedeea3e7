//! Parser of `filter bwlim-in` and `filter bwlim-out` (configuration manual, section 9.7). Must never count a byte.

use crate::document::{Line, Word};
use crate::keyword::proxy::ProxyContext;
use crate::keyword::report::Report;
use crate::span::Spanned;
use crate::spec::{BandwidthSpec, FilterSpec, RuleLineSpec, SharedLimitSpec};
use crate::units::{self, TimeError};
use std::ops::Range;

/// Reads `filter bwlim-in`.
pub(super) fn upload(context: &mut ProxyContext<'_>, line: &Line) {
    read(context, line, true);
}

/// Reads `filter bwlim-out`.
pub(super) fn download(context: &mut ProxyContext<'_>, line: &Line) {
    read(context, line, false);
}

/// Values of the options; 0 where not written.
#[derive(Default)]
struct Options {
    default_limit: u32,
    default_period: u32,
    limit: u32,
    min_size: u32,
    /// Index range of the words of `key`.
    key: Option<Range<usize>>,
    table: Option<Spanned<String>>,
    /// `own`: an option of the per-stream form was written; `shared`: one of the form for all streams with the same
    /// key.
    own: bool,
    shared: bool,
}

fn read(context: &mut ProxyContext<'_>, line: &Line, upload: bool) {
    let keyword = line.text(1).to_owned();
    let Some(name) = line.words.get(2) else {
        let message = format!("'filter' : '{keyword}' : a name is expected as first argument ");
        context.report.alert(line.span(2), message);
        return;
    };
    let mut filters = context.draft.spec.filters.list.iter();
    let declared = filters.any(|filter| matches!(filter, FilterSpec::Bandwidth(known) if known.name == name.text));
    if declared {
        let message =
            format!("'filter' : bwlim filter '{}' already declared for proxy '{}'", name.text, context.name());
        context.report.alert(name.span, message);
        return;
    }
    let Some(options) = options(context, line, &keyword) else { return };
    let complaint = match &options {
        Options { own: true, shared: true, .. } => "cannot mix per-stream and shared parameter",
        Options { shared: true, limit: 0, .. } => "<limit> option is missing",
        Options { shared: true, key: None, .. } => "<key> option is missing",
        Options { shared: false, default_period: 0, .. } => "<default-period> option is missing",
        Options { shared: false, default_limit: 0, .. } => "<default-limit> option is missing",
        Options { default_limit, default_period, limit, min_size, key, table, .. } => {
            let shared = key.clone().map(|words| {
                let words = line.words.get(words).unwrap_or_default().to_vec();
                let key = RuleLineSpec { words, ..context.around.rule_line(line, 0) };
                SharedLimitSpec { key, table: table.clone() }
            });
            context.draft.spec.filters.list.push(FilterSpec::Bandwidth(BandwidthSpec {
                name: name.text.clone(),
                upload,
                limit: if shared.is_some() { *limit } else { *default_limit },
                period: *default_period,
                min_size: *min_size,
                shared,
            }));
            return;
        }
    };
    context.report.alert(line.span(1), format!("'filter' : '{keyword}' : {complaint}"));
}

/// Parses the options after the name; `None` after an alert.
fn options(context: &mut ProxyContext<'_>, line: &Line, keyword: &str) -> Option<Options> {
    let mut options = Options::default();
    let mut at = 3;
    while let Some(word) = line.words.get(at) {
        let name = word.text.as_str();
        match name {
            "default-limit" | "default-period" => options.own = true,
            "limit" | "key" | "table" => options.shared = true,
            "min-size" => {}
            other => {
                context.report.alert(word.span, format!("'filter {keyword}' : unknown keyword '{other}'."));
                return None;
            }
        }
        let Some(value) = line.words.get(at + 1) else {
            let what = if name == "key" { "sample expression" } else { "value" };
            let message = format!("'filter' : '{keyword}' : the {what} is missing for '{name}' option");
            context.report.alert(line.span(at + 1), message);
            return None;
        };
        at += 2;
        let read = match name {
            "default-limit" => size(value).map(|size| options.default_limit = size),
            "limit" => size(value).map(|size| options.limit = size),
            "min-size" => size(value).map(|size| options.min_size = size),
            "default-period" => time(value, &mut context.report).map(|time| options.default_period = time),
            "key" => {
                let first = at - 1;
                // Converters may be words of their own: the expression ends where an option begins.
                let is_option =
                    |word: &Word| matches!(word.text.as_str(), "table" | "limit" | "min-size" | "default-limit");
                while line.words.get(at).is_some_and(|word| !is_option(word)) {
                    at += 1;
                }
                options.key = Some(first..at);
                Ok(())
            }
            _ => {
                options.table = Some(Spanned::new(value.text.clone(), value.span));
                Ok(())
            }
        };
        if let Err(found) = read {
            let message =
                format!("'filter' : '{keyword}' : invalid value for option '{name}' (unexpected character '{found}')");
            context.report.alert(value.span, message);
            return None;
        }
    }
    Some(options)
}

/// Parses a size in bytes. The error is the first character that could not be parsed.
fn size(word: &Word) -> Result<u32, char> {
    let size = units::size(&word.text, u64::from(u32::MAX));
    let size = size.map_err(|error| error.rest.chars().next().unwrap_or(' '))?;
    Ok(u32::try_from(size).unwrap_or(u32::MAX))
}

/// Parses a time in milliseconds.
fn time(word: &Word, report: &mut Report<'_>) -> Result<u32, char> {
    match units::milliseconds(&word.text) {
        Ok(time) => {
            if let Some(warning) = time.leftover_warning(&word.text) {
                report.leftover(word.span, warning);
            }
            Ok(u32::try_from(time.value).unwrap_or(u32::MAX))
        }
        Err(TimeError::Unexpected(found)) => Err(found),
        Err(TimeError::Empty | TimeError::Overflow) => Err(word.text.chars().next().unwrap_or(' ')),
    }
}
