//! `server-template`: several servers from one line, which differ in their numbers only.

use super::{ServerContext, declared_before, finish, read_address, read_options, report_problems};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::keyword::is_name_character;
use crate::keyword::proxy::ProxyContext;
use crate::span::Spanned;

/// Maximum number of servers of one line; a higher number is most likely a typo.
const MOST: u32 = 65_536;

/// Reads a `server-template` line into the proxy.
pub(crate) fn read_template(context: &mut ProxyContext<'_>, line: &Line) {
    let (Some(prefix), Some(range), Some(address)) = (line.words.get(1), line.words.get(2), line.words.get(3)) else {
        let message = "'server-template' expects <prefix> <nb | range> <addr>[:<port>] as arguments.";
        return context.report.placed(line.span(line.words.len()), message);
    };
    if let Some(bad) = prefix.text.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in server-template prefix '{}'.", prefix.text);
        return context.report.placed(prefix.span, message);
    }
    let Some((first, last)) = numbers(&range.text) else {
        let message = format!("Wrong server-template number or range arg '{}'.", range.text);
        return context.report.placed(range.span, message);
    };
    let head = format!("'server-template {}/{}' : ", context.name(), prefix.text);
    let parsed = read_address(context, address, &head);
    let mut draft = super::start(context, line, 4, &head, context.draft.default_server.clone());
    if super::opens_connections(parsed.as_ref()) {
        draft.check.reuse_pool = true;
    }
    let mut server = ServerContext::new(&mut draft, Some(&prefix.text), context.around.environment);
    server.only = super::datagrams::accepted(context);
    let unread = read_options(&mut server, line, super::origin::index_after(line, 4));
    if unread.unknown.is_empty() {
        super::checks::finish(&mut server, line.whole());
    }
    let problems = server.problems;
    report_problems(&mut context.report, &head, "", problems, &unread);
    super::name_folder(context, line, &mut draft);
    let Some(parsed) = parsed else { return };
    for number in first..=last {
        let name = Spanned::new(format!("{}{number}", prefix.text), prefix.span);
        declared_before(context, line, &head, &name);
        let address = Spanned::new(parsed.clone(), address.span);
        context.draft.spec.servers.push(finish(draft.clone(), line.whole(), name, address));
        // Settings that identify a single server apply to the first one only.
        draft.id = None;
        draft.balance.guid = None;
    }
}

/// Parses `3` (1 to 3) or `2-3`. HAProxy skips blanks and a plus sign, and truncates a number to 32 bits.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let digits = |text: &str| {
        let text = text.trim_start();
        let digits = text.strip_prefix('+').unwrap_or(text);
        let (value, _) = leading_number(digits);
        u32::try_from(value as i32).ok().filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()))
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (digits(first)?, digits(last)?),
        None => (1, digits(text)?),
    };
    (first <= last && last - first < MOST).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn counts_and_ranges() {
        let rows = [
            ("3", Some((1, 3))),
            ("2-3", Some((2, 3))),
            ("0-2", Some((0, 2))),
            ("1x", Some((1, 1))),
            ("0", None),
            ("3-2", None),
            ("x", None),
            ("-2", None),
            ("3-", None),
            ("1-x", None),
            ("+3", Some((1, 3))),
            ("1-+3", Some((1, 3))),
            (" 3", Some((1, 3))),
            ("4294967297", Some((1, 1))),
            ("1-2-3", Some((1, 2))),
            ("99999999999", None),
            ("100000", None),
        ];
        for (text, expected) in rows {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }
}
