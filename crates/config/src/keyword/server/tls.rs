//! TLS towards the server (section 5.2).

use super::{ServerContext, ServerOption, no_op, refused, supported};
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::keyword::bind::Congestion;
use crate::keyword::tls;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(Arity::None, "ssl", "", "Enables TLS.", ssl),
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
    supported(Arity::None, "force-sslv3", "", "Forces SSLv3.", common),
    supported(Arity::None, "force-tlsv10", "", "Forces TLS 1.0.", common),
    supported(Arity::None, "force-tlsv11", "", "Forces TLS 1.1.", common),
    supported(Arity::None, "force-tlsv12", "", "Forces TLS 1.2.", common),
    supported(Arity::None, "force-tlsv13", "", "Forces TLS 1.3.", common),
    supported(Arity::One, "ktls", "{ on | off }", "Kernel TLS; Weir encrypts itself.", ktls),
    supported(Arity::None, "no-renegotiate", "", "Refuses renegotiation.", no_op),
    supported(Arity::None, "no-sni-auto", "", "Does not take the SNI from the Host field.", sni_auto),
    supported(Arity::None, "no-ssl-reuse", "", "Disables resumption of TLS sessions.", ssl_reuse),
    supported(Arity::None, "no-sslv3", "", "Disables SSLv3.", common),
    supported(Arity::None, "no-tls-tickets", "", "Disables session tickets.", common),
    supported(Arity::None, "no-tlsv10", "", "Disables TLS 1.0.", common),
    supported(Arity::None, "no-tlsv11", "", "Disables TLS 1.1.", common),
    supported(Arity::None, "no-tlsv12", "", "Disables TLS 1.2.", common),
    supported(Arity::None, "no-tlsv13", "", "Disables TLS 1.3.", common),
    supported(Arity::None, "no-verifyhost", "", "Undoes an inherited \"verifyhost\".", no_verifyhost),
    supported(Arity::One, "npn", "<protocols>", "Protocols offered by NPN, the forerunner of ALPN.", common),
    supported(
        Arity::One,
        "quic-cc-algo",
        "{ cubic | newreno | bbr | nocc }[(<argument>...)]",
        "Congestion control of QUIC connections, and their maximum window in bytes.",
        congestion,
    ),
    refused(
        Arity::None,
        "renegotiate",
        "",
        "Allows renegotiation, which Weir never does and TLS 1.3 removed.",
        "'renegotiate' : Weir never renegotiates, and TLS 1.3 has no renegotiation. Remove the keyword.",
    ),
    supported(Arity::One, "sigalgs", "<algorithms>", "Signature algorithms.", common),
    supported(Arity::One, "sni", "<expression>", "SNI to send.", sni),
    supported(Arity::None, "sni-auto", "", "Takes the SNI from the Host field (default).", sni_auto),
    supported(Arity::One, "ssl-max-ver", "<version>", "Highest TLS version.", common),
    supported(Arity::One, "ssl-min-ver", "<version>", "Lowest TLS version.", common),
    supported(Arity::None, "ssl-reuse", "", "Enables resumption of TLS sessions if a default disabled it.", ssl_reuse),
    supported(Arity::None, "tls-tickets", "", "Enables session tickets if a default disabled them.", common),
    supported(Arity::One, "verify", "{ none | required }", "Whether the server's certificate is verified.", verify),
    supported(Arity::One, "verifyhost", "<name>", "Name that the server's certificate must have.", verifyhost),
    supported(
        Arity::None,
        "webtransport",
        "",
        "Weir's own: passes WebTransport sessions on over HTTP/3.",
        webtransport,
    ),
];

fn webtransport(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.connecting.quic.webtransport = Some(keyword.span);
}

fn congestion(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else { return context.error(keyword.span, format!("{}.", Congestion::MISSING)) };
    match Congestion::parse(&word.text) {
        Ok(Congestion { algorithm, max_window }) => {
            let quic = &mut context.draft.connecting.quic;
            (quic.congestion, quic.max_window) = (Some(algorithm), max_window);
        }
        Err(message) => context.error(word.span, format!("{message}.")),
    }
}

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
