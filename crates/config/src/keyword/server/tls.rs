//! TLS towards the server (section 5.2).

use super::{ServerContext, ServerOption, no_op, not_yet, refused, supported};
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::keyword::tls;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(Arity::None, "ssl", "", "Speaks TLS.", ssl),
    supported(Arity::None, "no-ssl", "", "Undoes an inherited \"ssl\".", ssl),
    supported(Arity::None, "allow-0rtt", "", "Sends early data.", allow_0rtt),
    supported(Arity::One, "alpn", "<protocols>", "Protocols offered by ALPN.", common),
    supported(Arity::One, "ca-file", "<file>", "CA certificates that verify the server.", common),
    supported(Arity::One, "ciphers", "<ciphers>", "Ciphers up to TLS 1.2.", common),
    supported(Arity::One, "ciphersuites", "<ciphersuites>", "Cipher suites from TLS 1.3 on.", common),
    supported(Arity::One, "client-sigalgs", "<algorithms>", "Signature algorithms of the client certificate.", common),
    supported(Arity::One, "crl-file", "<file>", "Revocation list.", common),
    supported(Arity::One, "crt", "<certificate>", "Client certificate.", crt),
    supported(Arity::One, "curves", "<curves>", "Key exchange groups.", common),
    supported(Arity::None, "force-sslv3", "", "SSLv3 alone.", common),
    supported(Arity::None, "force-tlsv10", "", "TLS 1.0 alone.", common),
    supported(Arity::None, "force-tlsv11", "", "TLS 1.1 alone.", common),
    supported(Arity::None, "force-tlsv12", "", "TLS 1.2 alone.", common),
    supported(Arity::None, "force-tlsv13", "", "TLS 1.3 alone.", common),
    supported(Arity::One, "ktls", "{ on | off }", "Lets the kernel encrypt where it can; Weir encrypts itself.", ktls),
    supported(Arity::None, "no-renegotiate", "", "Refuses renegotiation.", no_op),
    supported(Arity::None, "no-sni-auto", "", "Does not take the name from the Host field.", sni_auto),
    supported(Arity::None, "no-ssl-reuse", "", "Resumes no TLS sessions.", ssl_reuse),
    supported(Arity::None, "no-sslv3", "", "No SSLv3.", common),
    supported(Arity::None, "no-tls-tickets", "", "No session tickets.", common),
    supported(Arity::None, "no-tlsv10", "", "No TLS 1.0.", common),
    supported(Arity::None, "no-tlsv11", "", "No TLS 1.1.", common),
    supported(Arity::None, "no-tlsv12", "", "No TLS 1.2.", common),
    supported(Arity::None, "no-tlsv13", "", "No TLS 1.3.", common),
    supported(Arity::None, "no-verifyhost", "", "Undoes an inherited \"verifyhost\".", no_verifyhost),
    supported(Arity::One, "npn", "<protocols>", "Protocols offered by NPN, the forerunner of ALPN.", common),
    not_yet(
        Arity::One,
        "quic-cc-algo",
        "{ cubic | newreno | bbr | nocc }[(<argument>...)]",
        "Congestion control of QUIC.",
    ),
    refused(
        Arity::None,
        "renegotiate",
        "",
        "Allows renegotiation, which Weir never does and TLS 1.3 does not have.",
        "'renegotiate' : Weir never renegotiates, and TLS 1.3 has no renegotiation. Remove the keyword.",
    ),
    supported(Arity::One, "sigalgs", "<algorithms>", "Signature algorithms.", common),
    supported(Arity::One, "sni", "<expression>", "Name to ask for.", sni),
    supported(Arity::None, "sni-auto", "", "Takes that name from the Host field (default).", sni_auto),
    supported(Arity::One, "ssl-max-ver", "<version>", "Highest TLS version.", common),
    supported(Arity::One, "ssl-min-ver", "<version>", "Lowest TLS version.", common),
    supported(Arity::None, "ssl-reuse", "", "Resumes TLS sessions, where a default switched that off.", ssl_reuse),
    supported(Arity::None, "tls-tickets", "", "Session tickets, where a default switched them off.", common),
    supported(Arity::One, "verify", "{ none | required }", "Whether the server's certificate is verified.", verify),
    supported(Arity::One, "verifyhost", "<name>", "Name that the server's certificate must have.", verifyhost),
];

/// Parses an option that `bind` lines have too.
fn common(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Err((span, message)) = tls::read(&mut context.draft.tls.common, keyword, value) {
        let message = if keyword.text == "curves" { "'curves' : missing curves list" } else { &message };
        context.error(span, format!("{message}."));
    }
}

fn ssl(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.tls.ssl = keyword.text == "ssl";
    context.draft.tls.no_ssl = keyword.text == "no-ssl";
}

fn allow_0rtt(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.early_data = true;
}

/// Without kernel TLS the process encrypts, which Weir always does; the option has no effect. The reader of the line
/// checks whether it is permitted.
fn ktls(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Err((span, message)) = tls::kernel(keyword, value, true) {
        context.error(span, format!("{message}."));
    }
}

fn crt(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::text(keyword, value, "certificate file path") {
        Ok(path) => context.draft.tls.certificate = Some(path),
        Err((span, message)) => context.error(span, format!("{message}.")),
    }
}

fn ssl_reuse(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.tls.no_reuse = keyword.text == "no-ssl-reuse";
}

fn sni(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::text(keyword, value, "sni expression") {
        Ok(text) => context.draft.tls.sni = Some(text),
        Err((span, message)) => context.error(span, format!("{message}.")),
    }
}

fn sni_auto(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.tls.sni_auto = Some(keyword.text == "sni-auto");
}

fn verify(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.map(|word| (word, word.text.as_str())) {
        None => context.error(keyword.span, "'verify' : missing verify method."),
        Some((_, "none")) => context.draft.tls.verify = Some(false),
        Some((_, "required")) => context.draft.tls.verify = Some(true),
        Some((word, other)) => {
            let known = "only 'none' and 'required' are supported";
            context.error(word.span, format!("'verify' : unknown verify method '{other}', {known}."));
        }
    }
}

fn verifyhost(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::text(keyword, value, "hostname to verify against") {
        Ok(host) => context.draft.tls.verifyhost = Some(host.value),
        Err((span, message)) => context.error(span, format!("{message}.")),
    }
}

fn no_verifyhost(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.verifyhost = None;
}
