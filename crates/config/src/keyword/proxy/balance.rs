//! Choice of a server.

use super::{ProxyContext, ProxyKeyword, not_yet, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::argument::{leading_number, lenient, only};
use crate::keyword::place::places::{ANY, BACK, BACK_ONLY, BACK_SECTION};
use crate::spec::{BalanceSpec, HttpReuse};
use crate::suggest;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(BACK, "balance", "<algorithm> [<argument>...]", "How a server is chosen.", balance),
    not_yet(BACK, "hash-type", "<method> [<function> [<modifier>]]", "How hashes are mapped to servers."),
    not_yet(ANY, "hash-balance-factor", "<factor>", "Load above the average that a hash may give a server."),
    not_yet(
        BACK_ONLY,
        "hash-preserve-affinity",
        "{ always | maxconn | maxqueue }",
        "What happens when the server that a hash chose is full.",
    ),
    supported(BACK, "retries", "<number>", "Attempts to connect before giving up.", retries),
    supported(
        BACK,
        "http-reuse",
        "{ never | safe | aggressive | always }",
        "Sharing of idle server connections between clients.",
        http_reuse,
    ),
    not_yet(BACK_SECTION, "use-server", "<server> [{ if | unless } <condition>]", "Sends requests to one server."),
    not_yet(
        BACK,
        "load-server-state-from-file",
        "{ global | local | none }",
        "Take the servers' last states from a file.",
    ),
    not_yet(BACK, "server-state-file-name", "[ { use-backend-name | <file> } ]", "That file."),
];

/// Algorithms that HAProxy knows and Weir does not yet. A parenthesis behind the name takes an argument.
const ALGORITHMS_NOT_YET: &[&str] =
    &["uri", "url_param", "hash", "hdr(", "rdp-cookie", "rdp-cookie(", "log-hash", "sticky"];

fn balance(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.text(1);
    let balance = match name {
        "" | "roundrobin" => BalanceSpec::RoundRobin,
        "static-rr" => BalanceSpec::StaticRr,
        "leastconn" => BalanceSpec::LeastConn,
        "first" => BalanceSpec::First,
        "source" => BalanceSpec::Source,
        _ if name == "random" || name.starts_with("random(") => match draws(name) {
            Ok(draws) => BalanceSpec::Random { draws },
            Err(message) => {
                context.report.alert(line.span(1), message);
                return;
            }
        },
        _ => {
            unknown_algorithm(context, line, name);
            return;
        }
    };
    context.draft.spec.balance = balance;
}

fn unknown_algorithm(context: &mut ProxyContext<'_>, line: &Line, name: &str) {
    let known = |row: &&&str| if row.ends_with('(') { name.starts_with(**row) } else { name == **row };
    if ALGORITHMS_NOT_YET.iter().find(known).is_some() {
        let name = name.split('(').next().unwrap_or(name);
        let place = context.holder.describe();
        context.report.not_yet(line.span(1), &format!("balance {name}"), &place);
        return;
    }
    let names = ["roundrobin", "static-rr", "leastconn", "first", "source", "random", "uri", "url_param", "hash"];
    let mut diagnostic = Diagnostic::alert(
        line.span(1),
        "balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hash', \
         'hdr(name)', 'rdp-cookie(name)', 'log-hash' and 'sticky' options.",
    );
    diagnostic.hint = suggest::nearest(name, names).map(|known| format!("write 'balance {known}'"));
    context.report.push(diagnostic);
}

/// `random(2)`: how many servers are drawn.
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

fn retries(context: &mut ProxyContext<'_>, line: &Line) {
    let missing = "'retries' expects an integer argument (dispatch counts for one).";
    let Some(word) = only(line, missing, &mut context.report) else { return };
    let value = lenient(word, "retries", &mut context.report);
    context.draft.spec.retries = u32::try_from(value.max(0)).unwrap_or(u32::MAX);
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
    use super::draws;

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
}
