//! TLS (sections 3.1 and 3.2).

mod bounds;
mod certificates;
mod libraries;
mod ocsp;

use super::{GlobalContext, GlobalKeyword, removed, supported, tuning};
use crate::document::{Line, Word};
use crate::keyword::argument::leading_number;
use crate::keyword::tls;
use crate::span::Spanned;
use crate::spec::TlsSpec;
use crate::units::{self, TimeError, TimeUnit};

/// Maximum number of bytes that are kept of a ClientHello; none is longer.
const MOST_CAPTURED: u32 = 0x10000;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("ca-base", "<directory>", "Base directory of relative names of CA files and revocation lists.", base),
    supported("crt-base", "<directory>", "Base directory of relative names of certificates.", base),
    supported("key-base", "<directory>", "Base directory of relative names of private keys.", base),
    supported(
        "issuers-chain-path",
        "<directory>",
        "Directory of chains for certificates without one.",
        certificates::issuers_chain,
    ),
    supported("acme.scheduler", "{ auto | off }", "Whether ACME certificates are renewed automatically.", scheduler),
    supported(
        "acme.state-dir",
        "<directory>",
        "Weir's own: directory of the certificates of \"bind ... acme\".",
        state_folder,
    ),
    supported("ocsp-update.disable", "{ on | off }", "Disables all OCSP updates.", ocsp::switch),
    supported("ocsp-update.httpproxy", "<address>[:<port>]", "HTTP proxy for OCSP updates.", ocsp::proxy),
    supported("ocsp-update.maxdelay", "<number>", "Maximum time between two OCSP updates, in seconds.", ocsp::delay),
    supported("ocsp-update.mindelay", "<number>", "Minimum time between two OCSP updates, in seconds.", ocsp::delay),
    supported("ocsp-update.mode", "{ on | off }", "Whether OCSP responses are updated by default.", ocsp::switch),
    supported("ssl-default-bind-ciphers", "<ciphers>", "Ciphers of listeners up to TLS 1.2.", binds),
    supported("ssl-default-bind-ciphersuites", "<ciphersuites>", "Cipher suites of listeners from TLS 1.3 on.", binds),
    supported(
        "ssl-default-bind-client-sigalgs",
        "<algorithms>",
        "Signature algorithms accepted from clients' certificates.",
        binds,
    ),
    supported("ssl-default-bind-curves", "<curves>", "Key exchange groups of listeners.", binds),
    supported("ssl-default-bind-options", "[<option>]...", "TLS options of listeners.", bind_options),
    supported("ssl-default-bind-sigalgs", "<algorithms>", "Signature algorithms of listeners.", binds),
    supported("ssl-default-server-ciphers", "<ciphers>", "Ciphers towards servers up to TLS 1.2.", servers),
    supported(
        "ssl-default-server-ciphersuites",
        "<ciphersuites>",
        "Cipher suites towards servers from TLS 1.3 on.",
        servers,
    ),
    supported(
        "ssl-default-server-client-sigalgs",
        "<algorithms>",
        "Signature algorithms of client certificates shown to servers.",
        servers,
    ),
    supported("ssl-default-server-curves", "<curves>", "Key exchange groups towards servers.", servers),
    supported("ssl-default-server-options", "[<option>]...", "TLS options towards servers.", server_options),
    supported("ssl-default-server-sigalgs", "<algorithms>", "Signature algorithms accepted from servers.", servers),
    tuning(
        "ssl-dh-param-file",
        "<file>",
        "Diffie-Hellman parameters of all listeners; Weir exchanges keys over elliptic curves only.",
    ),
    removed(
        "ssl-engine",
        "<name> [algo <list>]",
        "OpenSSL engine to load; not available without OpenSSL.",
        "'ssl-engine' is not supported (built without USE_ENGINE or with -DOPENSSL_NO_ENGINE).",
    ),
    supported(
        "ssl-load-extra-del-ext",
        "",
        "Searches extra files by the certificate's name without its extension.",
        certificates::extra_del_ext,
    ),
    supported(
        "ssl-load-extra-files",
        "{ none | all | bundle | sctl | ocsp | issuer | key }...",
        "Which extra files are loaded with a certificate.",
        certificates::extra_files,
    ),
    tuning("ssl-mode-async", "", "Enables asynchronous engines; not available without OpenSSL."),
    supported(
        "ssl-passphrase-cmd",
        "<command> <argument>...",
        "Program that prints the passphrase of a private key.",
        certificates::passphrase_command,
    ),
    supported(
        "ssl-propquery",
        "<query>",
        "Property query for algorithm implementations; there is one of each.",
        libraries::properties,
    ),
    supported(
        "ssl-provider",
        "<name>",
        "OpenSSL provider to load: \"default\" and \"base\" are known.",
        libraries::provider,
    ),
    tuning("ssl-provider-path", "<path>", "Search path of OpenSSL providers; none are loaded."),
    supported("ssl-security-level", "<number>", "OpenSSL security level, up to 2.", libraries::security_level),
    supported(
        "ssl-server-verify",
        "[ none | required ]",
        "Whether servers' certificates are verified by default.",
        server_verify,
    ),
    supported(
        "ssl-skip-self-issued-ca",
        "",
        "Omits self-issued CA certificates from the chain that is sent.",
        certificates::skip_self_issued,
    ),
    supported("tune.ssl.cachesize", "<number>", "Size of the TLS session cache, in blocks of 200 bytes.", cache_size),
    supported(
        "tune.ssl.capture-buffer-size",
        "<number>",
        "Maximum number of bytes captured from a ClientHello.",
        capture_size,
    ),
    supported("tune.ssl.capture-cipherlist-size", "<number>", "Alias of tune.ssl.capture-buffer-size.", capture_size),
    supported(
        "tune.ssl.certificate-compression",
        "{ auto | off }",
        "Whether certificates are compressed for peers that support it.",
        bounds::compression,
    ),
    supported(
        "maxsslconn",
        "<number>",
        "Maximum number of concurrent TLS connections, of both sides.",
        bounds::connections,
    ),
    supported("tune.ssl.hard-maxrecord", "<number>", "Maximum size of the data in a TLS record.", bounds::record),
    supported("tune.ssl.keylog", "{ on | off }", "Whether TLS keys are logged, for decryption of captures.", keylog),
    supported(
        "tune.ssl.keyupdate-rate-limit",
        "<number>",
        "Maximum number of key updates per second that a peer may request.",
        bounds::key_updates,
    ),
    supported("tune.ssl.lifetime", "<time>", "Lifetime of TLS sessions, in seconds.", lifetime),
    tuning(
        "tune.ssl.maxrecord",
        "<number>",
        "Maximum size of TLS records at the start of a stream; Weir's records are as large as the data to send.",
    ),
    supported("tune.ssl.ocsp-update.maxdelay", "<number>", "Alias of ocsp-update.maxdelay.", ocsp::delay),
    supported("tune.ssl.ocsp-update.mindelay", "<number>", "Alias of ocsp-update.mindelay.", ocsp::delay),
    supported(
        "tune.ssl.ssl-ctx-cache-size",
        "<number>",
        "Size of the cache of generated certificates.",
        bounds::generated,
    ),
    tuning(
        "tune.ssl.default-dh-param",
        "<number>",
        "Size of Diffie-Hellman parameters; Weir exchanges keys over elliptic curves only.",
    ),
    tuning("tune.ssl.force-private-cache", "", "Private session cache for each process; there is a single process."),
];

fn keylog(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        "on" => context.spec.tls.keylog = true,
        "off" => context.spec.tls.keylog = false,
        other => {
            let message = format!("'{}' expects either 'on' or 'off' but got '{other}'.", line.keyword());
            context.report.alert(line.span(1), message);
        }
    }
}

fn scheduler(context: &mut GlobalContext<'_>, line: &Line) {
    let what = match line.text(1) {
        word @ ("auto" | "off") => {
            context.spec.tls.acme.schedules_nothing = word == "off";
            return;
        }
        "" => "requires an argument",
        _ => "requires either 'auto' or 'off' argument",
    };
    let message = format!("keyword 'acme.scheduler' in 'global' section {what}");
    context.report.alert(line.span(1), message);
}

fn state_folder(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        "" => context.report.alert(line.span(1), "'acme.state-dir' expects a directory path as an argument."),
        path => context.spec.tls.acme.folder = Some(Spanned::new(path.to_owned(), line.span(1))),
    }
}

fn lifetime(context: &mut GlobalContext<'_>, line: &Line) {
    let (keyword, text) = (line.keyword(), line.text(1));
    if context.report.too_many(line, 2, keyword) {
        return;
    }
    if text.is_empty() {
        let message = format!("'{keyword}' expects ssl sessions <lifetime> in seconds as argument.");
        context.report.alert(line.span(1), message);
        return;
    }
    match units::time(text, TimeUnit::Seconds) {
        Ok(time) => context.spec.tls.lifetime = Some(u32::try_from(time.value).unwrap_or(u32::MAX)),
        Err(TimeError::Unexpected(found)) => {
            let message = format!("unexpected character '{found}' in argument to <{keyword}>.");
            context.report.alert(line.span(1), message);
        }
        Err(error) => context.report.alert(line.span(1), format!("{}.", error.message(text, keyword))),
    }
}

/// Parses a number that is not negative; `None` after an error, which has been reported.
fn size(context: &mut GlobalContext<'_>, line: &Line) -> Option<u32> {
    let keyword = line.keyword();
    if context.report.too_many(line, 2, keyword) {
        return None;
    }
    if line.text(1).is_empty() {
        context.report.alert(line.span(1), format!("'{keyword}' expects an integer argument."));
        return None;
    }
    match leading_number(line.text(1)).0 {
        size @ 0.. => Some(u32::try_from(size).unwrap_or(u32::MAX)),
        _ => {
            context.report.alert(line.span(1), format!("'{keyword}' expects a positive numeric value."));
            None
        }
    }
}

fn capture_size(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(size) = size(context, line) {
        context.spec.tls.capture_size = size.min(MOST_CAPTURED);
    }
}

fn cache_size(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(size) = size(context, line) {
        context.spec.tls.cache_size = Some(size);
    }
}

fn base(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    let tls = &mut context.spec.tls;
    let place = match keyword {
        "crt-base" => &mut tls.crt_base,
        "ca-base" => &mut tls.ca_base,
        _ => &mut tls.key_base,
    };
    if line.text(1).is_empty() {
        let message = format!("global statement '{keyword}' expects a directory path as an argument.");
        context.report.alert(line.span(1), message);
    } else if place.is_some() {
        context.report.alert(line.span(0), format!("'{keyword}' already specified."));
    } else {
        *place = Some(line.text(1).to_owned());
    }
}

fn binds(context: &mut GlobalContext<'_>, line: &Line) {
    let mut common = std::mem::take(&mut context.spec.tls.binds.common);
    algorithms(context, line, &mut common);
    context.spec.tls.binds.common = common;
    context.spec.tls.remember(line.span(0));
}

fn servers(context: &mut GlobalContext<'_>, line: &Line) {
    let mut common = std::mem::take(&mut context.spec.tls.servers);
    algorithms(context, line, &mut common);
    context.spec.tls.servers = common;
    context.spec.tls.remember(line.span(0));
}

fn algorithms(context: &mut GlobalContext<'_>, line: &Line, common: &mut TlsSpec) {
    let keyword = line.keyword();
    let (place, what) = match keyword.rsplit('-').next() {
        // HAProxy calls them so.
        Some("sigalgs") if keyword.ends_with("-client-sigalgs") => (&mut common.client_sigalgs, "a curves suite"),
        Some("sigalgs") => (&mut common.sigalgs, "a curves suite"),
        Some("ciphers") => (&mut common.ciphers, "a cipher suite"),
        Some("ciphersuites") => (&mut common.ciphersuites, "a cipher suite"),
        _ => (&mut common.curves, "a curves suite"),
    };
    if line.text(1).is_empty() {
        let noun = if keyword.ends_with("sigalgs") { "arguments" } else { "argument" };
        let message = format!("global statement '{keyword}' expects {what} as an {noun}.");
        context.report.alert(line.span(1), message);
        return;
    }
    *place = Some(Spanned::new(line.text(1).to_owned(), line.span(1)));
}

/// Options of `ssl-default-*-options` that both sides have.
fn is_common(name: &str) -> bool {
    let versions = ["sslv3", "tlsv10", "tlsv11", "tlsv12", "tlsv13"];
    matches!(name, "ssl-min-ver" | "ssl-max-ver" | "no-tls-tickets" | "tls-tickets")
        || versions.iter().any(|version| name == format!("no-{version}") || name == format!("force-{version}"))
}

/// Parses an option for which [`is_common`] is true. Returns its number of words.
fn common_option(context: &mut GlobalContext<'_>, line: &Line, at: usize, common: &mut TlsSpec) -> usize {
    let takes = usize::from(matches!(line.text(at), "ssl-min-ver" | "ssl-max-ver"));
    let value: Option<&Word> = line.words.get(at + 1).filter(|_| takes == 1);
    if let Some(word) = line.words.get(at)
        && let Err((span, message)) = tls::read(common, word, value)
    {
        context.report.alert(span, format!("{message} on global statement '{}'.", line.keyword()));
    }
    1 + takes
}

fn bind_options(context: &mut GlobalContext<'_>, line: &Line) {
    let mut binds = std::mem::take(&mut context.spec.tls.binds);
    let mut at = 1;
    expect_option(context, line);
    while let Some(word) = line.words.get(at) {
        match word.text.as_str() {
            "prefer-client-ciphers" => binds.prefer_client_ciphers = true,
            "strict-sni" | "no-strict-sni" => binds.strict_sni = Some(word.text == "strict-sni"),
            name if is_common(name) => {
                at += common_option(context, line, at, &mut binds.common);
                continue;
            }
            _ => unknown_option(context, line, word),
        }
        at += 1;
    }
    context.spec.tls.binds = binds;
    context.spec.tls.remember(line.span(0));
}

fn server_options(context: &mut GlobalContext<'_>, line: &Line) {
    let mut common = std::mem::take(&mut context.spec.tls.servers);
    let mut at = 1;
    expect_option(context, line);
    while let Some(word) = line.words.get(at) {
        if is_common(&word.text) {
            at += common_option(context, line, at, &mut common);
        } else {
            unknown_option(context, line, word);
            at += 1;
        }
    }
    context.spec.tls.servers = common;
    context.spec.tls.remember(line.span(0));
}

fn expect_option(context: &mut GlobalContext<'_>, line: &Line) {
    if line.words.len() < 2 {
        let message = format!("global statement '{}' expects an option as an argument.", line.keyword());
        context.report.alert(line.span(1), message);
    }
}

fn unknown_option(context: &mut GlobalContext<'_>, line: &Line, word: &Word) {
    let message = format!("unknown option '{}' on global statement '{}'.", word.text, line.keyword());
    context.report.alert(word.span, message);
}

fn server_verify(context: &mut GlobalContext<'_>, line: &Line) {
    match line.text(1) {
        "none" => context.spec.tls.trusts_servers = Some(true),
        "required" => context.spec.tls.trusts_servers = Some(false),
        _ => context.report.alert(line.span(1), "'ssl-server-verify' expects 'none' or 'required' as argument."),
    }
}
