//! Options about HTTP messages.

use super::{OptionKeyword, boolean, fixed, no_only, not_yet, removed, supported, switch, tuning};
use crate::document::Line;
use crate::keyword::place::places::{ANY, BACK, FRONT};
use crate::keyword::proxy::ProxyContext;
use crate::spec::{CloseMode, ForwardForSpec};
use std::net::{IpAddr, Ipv4Addr};

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(
        fixed(ANY),
        "forwardfor",
        "[except <network>] [header <name>] [if-none]",
        "Tells servers the client's address in X-Forwarded-For.",
        forwardfor,
    ),
    not_yet(no_only(BACK), "forwarded", "[<argument>...]", "Tells servers about the client in Forwarded (RFC 7239)."),
    not_yet(
        fixed(ANY),
        "originalto",
        "[except <network>] [header <name>]",
        "Tells servers the address that the client connected to.",
    ),
    supported(no_only(ANY), "http-keep-alive", "", "Keeps connections open on both sides (default).", http_keep_alive),
    supported(
        no_only(ANY),
        "http-server-close",
        "",
        "Closes the server's connection after each answer.",
        http_server_close,
    ),
    supported(no_only(ANY), "httpclose", "", "Closes both connections after each answer.", httpclose),
    tuning(switch(ANY), "http-no-delay", "", "Sends without waiting for more; Weir decides by what is at hand."),
    not_yet(switch(ANY), "http-buffer-request", "", "Waits for the body before the rules."),
    not_yet(switch(BACK), "http-drop-request-trailers", "", "Drops the trailers of requests."),
    not_yet(switch(FRONT), "http-drop-response-trailers", "", "Drops the trailers of responses."),
    not_yet(switch(FRONT), "http-ignore-probes", "", "Says nothing to connections that close without a request."),
    not_yet(switch(BACK), "http-pretend-keepalive", "", "Promises a server keep-alive, yet closes."),
    not_yet(
        fixed(ANY),
        "http-restrict-req-hdr-names",
        "{ preserve | delete | reject }",
        "What happens to requests with odd header names.",
    ),
    not_yet(switch(FRONT), "http-use-proxy-header", "", "Uses Proxy-Connection."),
    not_yet(fixed(FRONT), "accept-invalid-http-request", "", "Older name of accept-unsafe-violations-in-http-request."),
    not_yet(
        fixed(BACK),
        "accept-invalid-http-response",
        "",
        "Older name of accept-unsafe-violations-in-http-response.",
    ),
    not_yet(switch(FRONT), "accept-unsafe-violations-in-http-request", "", "Tolerates malformed requests."),
    not_yet(switch(BACK), "accept-unsafe-violations-in-http-response", "", "Tolerates malformed responses."),
    not_yet(switch(BACK), "checkcache", "", "Refuses responses that a cache would store with a cookie."),
    not_yet(
        switch(FRONT),
        "disable-h2-upgrade",
        "",
        "Does not switch to HTTP/2 when an HTTP/1 connection starts with its preface.",
    ),
    not_yet(
        switch(FRONT),
        "h1-case-adjust-bogus-client",
        "",
        "Spells header names towards clients as h1-case-adjust says.",
    ),
    not_yet(
        switch(BACK),
        "h1-case-adjust-bogus-server",
        "",
        "Spells header names towards servers as h1-case-adjust says.",
    ),
    removed(
        "forceclose",
        "",
        "Closed connections early.",
        "option 'forceclose' is not supported any more since HAProxy 2.0, please just remove it, or use 'option httpclose' if absolutely needed.",
    ),
    removed(
        "http-tunnel",
        "",
        "Stopped looking after the first request.",
        "option 'http-tunnel' is not supported any more since HAProxy 2.1, please just remove it, it shouldn't be needed.",
    ),
];

fn http_keep_alive(context: &mut ProxyContext<'_>, line: &Line) {
    close_mode(context, line, CloseMode::KeepAlive);
}

fn http_server_close(context: &mut ProxyContext<'_>, line: &Line) {
    close_mode(context, line, CloseMode::ServerClose);
}

fn httpclose(context: &mut ProxyContext<'_>, line: &Line) {
    close_mode(context, line, CloseMode::Close);
}

/// The last one wins; `no` takes back only what was chosen.
fn close_mode(context: &mut ProxyContext<'_>, line: &Line, mode: CloseMode) {
    boolean(context, line, |context, on| {
        let current = &mut context.draft.spec.close_mode;
        if on {
            *current = mode;
        } else if *current == mode {
            *current = CloseMode::default();
        }
    });
}

fn forwardfor(context: &mut ProxyContext<'_>, line: &Line) {
    let mut forwardfor = ForwardForSpec { except: None, header: None, if_none: false };
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        match word.text.as_str() {
            "except" => {
                let Some(network) = network(line.text(at + 1)) else {
                    context
                        .report
                        .alert(line.span(at + 1), "'option forwardfor except' expects <address>[/mask] as argument.");
                    return;
                };
                forwardfor.except = Some(network);
                at += 2;
            }
            "header" => {
                let Some(name) = line.words.get(at + 1) else {
                    context
                        .report
                        .alert(line.span(at + 1), "'option forwardfor header' expects <header_name> as argument.");
                    return;
                };
                forwardfor.header = Some(name.text.clone());
                at += 2;
            }
            "if-none" => {
                forwardfor.if_none = true;
                at += 1;
            }
            _ => {
                context.report.alert(
                    word.span,
                    "'option forwardfor' only supports optional values: 'except', 'header' and 'if-none'.",
                );
                return;
            }
        }
    }
    context.draft.spec.forwardfor = Some(forwardfor);
}

/// An address and the length of its network's prefix; a mask in dotted form counts as well if it is one run of ones.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = match mask {
        None => bits,
        Some(mask) => match mask.parse::<u8>() {
            Ok(length) => length,
            Err(_) => {
                let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
                u8::try_from(mask.leading_ones()).ok().filter(|_| mask.count_ones() == mask.leading_ones())?
            }
        },
    };
    (length <= bits).then_some((address, length))
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks() {
        let rows = [
            ("127.0.0.1", Some(("127.0.0.1", 32))),
            ("127.0.0.0/8", Some(("127.0.0.0", 8))),
            ("10.0.0.0/255.255.0.0", Some(("10.0.0.0", 16))),
            ("10.0.0.0/255.0.255.0", None),
            ("::1", Some(("::1", 128))),
            ("2001:db8::/32", Some(("2001:db8::", 32))),
            ("::1/129", None),
            ("10.0.0.0/33", None),
            ("x", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|(address, length)| (address.parse().unwrap(), length));
            assert_eq!(network(text), expected, "{text}");
        }
    }
}
