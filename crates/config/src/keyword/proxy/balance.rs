//! Load balancing: choice of a server.

use super::{ProxyContext, ProxyKeyword, condition_line, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::argument::{leading_number, lenient, limit, only};
use crate::keyword::place::places::{BACK, BACK_SECTION};
use crate::span::Spanned;
use crate::spec::{BalanceSpec, HttpReuse, UriSpec};
use crate::suggest;
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(BACK, "balance", "<algorithm> [<argument>...]", "Load balancing algorithm.", balance),
    supported(BACK, "retries", "<number>", "Number of connection retries.", retries),
    supported(
        BACK,
        "http-reuse",
        "{ never | safe | aggressive | always }",
        "Sharing of idle server connections between clients.",
        http_reuse,
    ),
    supported(
        BACK_SECTION,
        "use-server",
        "<server> { if | unless } <condition>",
        "Selects a server for requests that match a condition.",
        use_server,
    ),
];

fn balance(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.text(1);
    let read = match name {
        "" | "roundrobin" => Ok(BalanceSpec::RoundRobin),
        "static-rr" => Ok(BalanceSpec::StaticRr),
        "leastconn" => Ok(BalanceSpec::LeastConn),
        "first" => Ok(BalanceSpec::First),
        "source" => Ok(BalanceSpec::Source),
        "sticky" => Ok(BalanceSpec::Sticky),
        "log-hash" => log_hash(line),
        "hash" => hash(line),
        "uri" => uri(line),
        "url_param" => url_param(line),
        "rdp-cookie" => Ok(BalanceSpec::RdpCookie { name: "mstshash".to_owned() }),
        _ if name == "random" || name.starts_with("random(") => {
            draws(name).map(|draws| BalanceSpec::Random { draws }).map_err(|message| (1, message))
        }
        _ if (name == "ewma" || name.starts_with("ewma(")) && line.words.len() > 2 => {
            Err((2, format!("balance ewma : unexpected '{}'.", line.text(2))))
        }
        _ if name == "ewma" || name.starts_with("ewma(") => {
            decay(name).map(|decay| BalanceSpec::Ewma { decay }).map_err(|message| (1, message))
        }
        _ if name.starts_with("hdr(") => header(line),
        _ if name.starts_with("rdp-cookie(") => {
            let missing = || (1, "balance rdp-cookie : missing cookie name.".to_owned());
            in_parentheses(name).map(|name| BalanceSpec::RdpCookie { name: name.to_owned() }).ok_or_else(missing)
        }
        _ => return unknown_algorithm(context, line, name),
    };
    match read {
        Ok(balance) => context.draft.spec.balance = balance,
        Err((word, message)) => context.report.alert(line.span(word), message),
    }
}

/// Returns the text in the parentheses after a name, unless it is empty.
fn in_parentheses(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('(')?;
    let (inside, _) = rest.split_once(')')?;
    (!inside.is_empty()).then_some(inside)
}

/// The index of the wrong word, and the message.
type Wrong = (usize, String);

fn uri(line: &Line) -> Result<BalanceSpec, Wrong> {
    let mut uri = UriSpec::default();
    let mut at = 2;
    while at < line.words.len() {
        let word = line.text(at);
        match word {
            "len" | "depth" => {
                let text = line.text(at + 1);
                // HAProxy truncates the number to 32 bits.
                let Some(number) = limit((leading_number(text).0 as i32).into()) else {
                    let message = format!("balance uri : '{word}' expects a positive integer (got '{text}').");
                    return Err((at + 1, message));
                };
                *if word == "len" { &mut uri.len } else { &mut uri.depth } = Some(number);
                at += 1;
            }
            "whole" => uri.whole = true,
            "path-only" => uri.path_only = true,
            _ => {
                let message = format!(
                    "balance uri only accepts parameters 'len', 'depth', 'path-only', and 'whole' (got '{word}')."
                );
                return Err((at, message));
            }
        }
        at += 1;
    }
    Ok(BalanceSpec::Uri(uri))
}

fn url_param(line: &Line) -> Result<BalanceSpec, Wrong> {
    let name = line.text(2).to_owned();
    if name.is_empty() {
        return Err((2, "balance url_param requires an URL parameter name.".to_owned()));
    }
    match line.text(3) {
        // Earlier versions had a size to wait for as the next argument.
        "check_post" => Ok(BalanceSpec::UrlParam { name, check_post: true }),
        "" => Ok(BalanceSpec::UrlParam { name, check_post: false }),
        word => Err((3, format!("balance url_param only accepts 'check_post' modifier (got '{word}')."))),
    }
}

/// Errors in the expression itself are reported when it is compiled.
fn hash(line: &Line) -> Result<BalanceSpec, Wrong> {
    let Some(word) = line.words.get(2) else {
        return Err((2, "balance hash requires a sample expression.".to_owned()));
    };
    match line.text(3) {
        "" => Ok(BalanceSpec::Hash(Spanned::new(word.text.clone(), word.span))),
        extra => Err((3, format!("balance hash takes no other argument (got '{extra}')."))),
    }
}

/// Errors in the converters themselves are reported when they are compiled.
fn log_hash(line: &Line) -> Result<BalanceSpec, Wrong> {
    match line.words.get(2) {
        Some(word) => Ok(BalanceSpec::LogHash(Spanned::new(word.text.clone(), word.span))),
        None => Err((2, "balance log-hash requires a converter list.".to_owned())),
    }
}

fn header(line: &Line) -> Result<BalanceSpec, Wrong> {
    let Some(name) = in_parentheses(line.text(1)) else {
        return Err((1, "balance hdr requires an http header field name.".to_owned()));
    };
    let domain_only = match line.text(2) {
        "" => false,
        "use_domain_only" => true,
        word => {
            let message = format!("balance hdr({name}) only accepts 'use_domain_only' modifier (got '{word}').");
            return Err((2, message));
        }
    };
    Ok(BalanceSpec::Header { name: name.to_ascii_lowercase(), domain_only })
}

fn unknown_algorithm(context: &mut ProxyContext<'_>, line: &Line, name: &str) {
    let names = [
        "roundrobin",
        "static-rr",
        "leastconn",
        "first",
        "source",
        "random",
        "ewma",
        "uri",
        "url_param",
        "hdr",
        "rdp-cookie",
        "log-hash",
        "sticky",
    ];
    let mut diagnostic = Diagnostic::alert(
        line.span(1),
        "balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hash', \
         'hdr(name)', 'rdp-cookie(name)', 'log-hash' and 'sticky' options.",
    );
    diagnostic.hint = suggest::nearest(name, names).map(|known| format!("write 'balance {known}'"));
    context.report.push(diagnostic);
}

/// Parses `random(2)`: the number of servers to draw.
fn draws(text: &str) -> Result<u32, String> {
    let Some(rest) = text.strip_prefix("random(") else { return Ok(2) };
    let Some((number, _)) = rest.split_once(')') else {
        return Err("balance random : missing closing parenthesis.".into());
    };
    if number.is_empty() {
        return Ok(2);
    }
    match leading_number(number) {
        (value, true) => match u32::try_from(value) {
            Ok(draws @ 1..) => Ok(draws),
            _ => Err("balance random : number of draws must be at least 1.".into()),
        },
        _ => {
            let found = number.chars().find(|found| !found.is_ascii_digit()).unwrap_or(')');
            Err(format!("balance random : unexpected character '{found}' after argument."))
        }
    }
}

/// Parses `ewma(<time>)`: returns milliseconds.
fn decay(text: &str) -> Result<u64, String> {
    let Some(rest) = text.strip_prefix("ewma(") else { return Ok(10_000) };
    let Some((time, "")) = rest.split_once(')') else {
        return Err("balance ewma : missing closing parenthesis.".into());
    };
    match units::milliseconds(time) {
        Ok(time) if time.value > 0 => Ok(time.value),
        _ => Err(format!("balance ewma : '{time}' is no time to forget slow answers in.")),
    }
}

fn retries(context: &mut ProxyContext<'_>, line: &Line) {
    let missing = "'retries' expects an integer argument (dispatch counts for one).";
    let Some(word) = only(line, missing, &mut context.report) else { return };
    let value = lenient(word, "retries", &mut context.report);
    context.draft.spec.retries = u32::try_from(value.max(0)).unwrap_or(u32::MAX);
}

fn use_server(context: &mut ProxyContext<'_>, line: &Line) {
    if line.words.len() < 2 {
        context.report.alert(line.span(1), "'use-server' expects a server name.");
    } else if condition_line(context, line, 2, "use-server").is_some() {
        let line = context.around.rule_line(line, 1);
        context.draft.spec.rules.use_server.push(line);
    }
}

fn http_reuse(context: &mut ProxyContext<'_>, line: &Line) {
    let mode = line.text(1);
    let reuse = match mode {
        "never" => HttpReuse::Never,
        "safe" => HttpReuse::Safe,
        "aggressive" => HttpReuse::Aggressive,
        "always" => HttpReuse::Always,
        _ => {
            context.report.alert(line.span(1), "'http-reuse' only supports 'never', 'safe', 'aggressive', 'always'.");
            return;
        }
    };
    if !context.report.too_many(line, 2, &format!("http-reuse {mode}")) {
        context.draft.spec.http_reuse = reuse;
    }
}

#[cfg(test)]
mod tests {
    use super::{decay, draws};

    #[test]
    fn draws_of_random() {
        let rows = [
            ("random", Ok(2)),
            ("random()", Ok(2)),
            ("random(3)", Ok(3)),
            ("random(0)", Err("balance random : number of draws must be at least 1.")),
            ("random(x)", Err("balance random : unexpected character 'x' after argument.")),
            ("random(3", Err("balance random : missing closing parenthesis.")),
        ];
        for (text, expected) in rows {
            assert_eq!(draws(text), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn decay_of_ewma() {
        let rows = [
            ("ewma", Ok(10_000)),
            ("ewma(500ms)", Ok(500)),
            ("ewma(5s)", Ok(5_000)),
            ("ewma(0)", Err("balance ewma : '0' is no time to forget slow answers in.")),
            ("ewma(x)", Err("balance ewma : 'x' is no time to forget slow answers in.")),
            ("ewma(3s", Err("balance ewma : missing closing parenthesis.")),
        ];
        for (text, expected) in rows {
            assert_eq!(decay(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
