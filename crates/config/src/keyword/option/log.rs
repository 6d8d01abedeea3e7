//! Options about log lines and counters.

use super::{OptionKeyword, boolean, fixed, supported, switch, tuning};
use crate::document::Line;
use crate::keyword::place::places::{FRONT, FRONT_DIRECTIVE};
use crate::keyword::proxy::{ChosenFormat, ProxyContext};
use crate::spec::LogFormatSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(fixed(FRONT_DIRECTIVE), "httplog", "[clf]", "Log format of HTTP.", httplog),
    supported(fixed(FRONT_DIRECTIVE), "httpslog", "", "Log format of HTTPS.", httpslog),
    supported(fixed(FRONT_DIRECTIVE), "tcplog", "[clf]", "Log format of TCP.", tcplog),
    supported(switch(FRONT), "dontlognull", "", "Does not log connections without data.", dontlognull),
    supported(switch(FRONT), "dontlog-normal", "", "Logs failures only.", dontlog_normal),
    supported(switch(FRONT), "log-separate-errors", "", "Logs failures at a higher level.", log_separate_errors),
    supported(switch(FRONT), "logasap", "", "Logs as soon as the response headers are received.", logasap),
    tuning(switch(FRONT), "contstats", "", "Updates counters while a stream runs; Weir always does."),
    supported(switch(FRONT), "socket-stats", "", "Keeps statistics for each listening address.", socket_stats),
];

fn dontlognull(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.dontlognull = on);
}

fn dontlog_normal(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.log_lines.dontlog_normal = on);
}

fn log_separate_errors(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.log_lines.separate_errors = on);
}

fn logasap(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.log_lines.as_soon_as_possible = on);
}

fn httpslog(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(extra) = line.words.get(2) {
        let message = format!("'option httpslog' takes no argument; '{}' is passed over.", extra.text);
        context.report.diag(extra.span, message);
    }
    context.choose_format(ChosenFormat { format: LogFormatSpec::Https, option: "httpslog", span: line.whole() });
}

fn socket_stats(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.reception.socket_stats = on);
}

fn httplog(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(clf) = clf(context, line) else { return };
    let (format, option) = if clf { (LogFormatSpec::HttpClf, "httplog clf") } else { (LogFormatSpec::Http, "httplog") };
    context.choose_format(ChosenFormat { format, option, span: line.whole() });
}

fn tcplog(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(clf) = clf(context, line) else { return };
    let (format, option) = if clf { (LogFormatSpec::TcpClf, "tcplog clf") } else { (LogFormatSpec::Tcp, "tcplog") };
    context.choose_format(ChosenFormat { format, option, span: line.whole() });
}

/// Whether the line selects Common Log Format.
fn clf(context: &mut ProxyContext<'_>, line: &Line) -> Option<bool> {
    let name = line.text(1);
    let clf = match line.text(2) {
        "" => false,
        "clf" => true,
        _ => {
            context.report.alert(line.span(2), format!("keyword '{name}' only supports option 'clf'."));
            return None;
        }
    };
    if context.report.too_many(line, 3, &format!("option {name}")) { None } else { Some(clf) }
}
