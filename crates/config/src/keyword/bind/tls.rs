//! TLS on listening sockets (section 5.1).

use super::{BindContext, BindOption, not_yet, supported};
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::keyword::tls;
use crate::span::Spanned;
use crate::spec::{CertificateSource, VerifyClients};

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::None, "ssl", "", "Enables TLS.", ssl),
    supported(
        Arity::One,
        "acme",
        "<domain>[,<domain>...]",
        "Weir's own: obtains a certificate for these names by ACME.",
        acme,
    ),
    supported(Arity::None, "allow-0rtt", "", "Accepts early data.", allow_0rtt),
    supported(Arity::One, "alpn", "<protocols>", "Protocols offered by ALPN.", common),
    supported(Arity::One, "ca-file", "<file>", "CA certificates that verify clients.", common),
    supported(
        Arity::One,
        "ca-ignore-err",
        "{ all | <error>[,...] }",
        "Verification errors to ignore above the client's certificate in its chain.",
        ignored_errors,
    ),
    supported(
        Arity::One,
        "ca-sign-file",
        "<file>",
        "CA that signs generated certificates, with its key.",
        ca_sign_file,
    ),
    supported(Arity::One, "ca-sign-pass", "<passphrase>", "Passphrase of the key of ca-sign-file.", ca_sign_pass),
    supported(
        Arity::One,
        "ca-verify-file",
        "<file>",
        "CA certificates that verify clients and are not announced.",
        ca_verify_file,
    ),
    supported(Arity::One, "ciphers", "<ciphers>", "Ciphers up to TLS 1.2.", common),
    supported(Arity::One, "ciphersuites", "<ciphersuites>", "Cipher suites from TLS 1.3 on.", common),
    supported(
        Arity::One,
        "client-sigalgs",
        "<algorithms>",
        "Signature algorithms accepted from clients' certificates.",
        common,
    ),
    supported(Arity::One, "crl-file", "<file>", "Revocation list for clients' certificates.", common),
    supported(Arity::One, "crt", "<certificate>", "Certificate, or a folder of them.", crt),
    supported(
        Arity::One,
        "crt-ignore-err",
        "{ all | <error>[,...] }",
        "Verification errors to ignore in clients' certificates.",
        ignored_errors,
    ),
    supported(Arity::One, "crt-list", "<file>", "List of certificates with options and names.", crt_list),
    supported(Arity::One, "curves", "<curves>", "Key exchange groups.", common),
    supported(
        Arity::One,
        "default-crt",
        "<certificate>",
        "Certificate for clients without SNI or with an unknown name.",
        default_crt,
    ),
    supported(Arity::One, "ecdhe", "<curve>", "Key exchange group; former keyword of curves.", common),
    not_yet(Arity::One, "ech", "<directory>", "Keys of Encrypted Client Hello."),
    supported(Arity::None, "force-sslv3", "", "Forces SSLv3.", common),
    supported(Arity::None, "force-tlsv10", "", "Forces TLS 1.0.", common),
    supported(Arity::None, "force-tlsv11", "", "Forces TLS 1.1.", common),
    supported(Arity::None, "force-tlsv12", "", "Forces TLS 1.2.", common),
    supported(Arity::None, "force-tlsv13", "", "Forces TLS 1.3.", common),
    supported(
        Arity::None,
        "generate-certificates",
        "",
        "Generates certificates for requested names.",
        generate_certificates,
    ),
    supported(Arity::One, "ktls", "{ on | off }", "Kernel TLS; Weir encrypts itself.", ktls),
    supported(Arity::None, "no-alpn", "", "Offers no ALPN.", common),
    supported(Arity::None, "no-ca-names", "", "Does not announce CA names to clients.", no_ca_names),
    supported(Arity::None, "no-sslv3", "", "Disables SSLv3.", common),
    supported(Arity::None, "no-strict-sni", "", "Serves unknown names with the default certificate.", strict_sni),
    supported(Arity::None, "no-tls-tickets", "", "Disables session tickets.", common),
    supported(Arity::None, "no-tlsv10", "", "Disables TLS 1.0.", common),
    supported(Arity::None, "no-tlsv11", "", "Disables TLS 1.1.", common),
    supported(Arity::None, "no-tlsv12", "", "Disables TLS 1.2.", common),
    supported(Arity::None, "no-tlsv13", "", "Disables TLS 1.3.", common),
    supported(Arity::One, "npn", "<protocols>", "Protocols offered by NPN, the forerunner of ALPN.", common),
    supported(
        Arity::None,
        "prefer-client-ciphers",
        "",
        "Uses the client's preference order of ciphers.",
        prefer_client_ciphers,
    ),
    supported(Arity::One, "sigalgs", "<algorithms>", "Signature algorithms.", common),
    supported(Arity::One, "ssl-max-ver", "<version>", "Highest TLS version.", common),
    supported(Arity::One, "ssl-min-ver", "<version>", "Lowest TLS version.", common),
    supported(Arity::None, "strict-sni", "", "Refuses clients that request an unknown name.", strict_sni),
    supported(Arity::One, "tls-ticket-keys", "<file>", "Keys of session tickets.", ticket_keys),
    supported(Arity::None, "tls-tickets", "", "Enables session tickets if a default disabled them.", common),
    supported(
        Arity::One,
        "verify",
        "{ none | optional | required }",
        "Whether clients must present a certificate.",
        verify,
    ),
];

/// Stores the directory that relative file names start from.
fn name_folder(context: &mut BindContext<'_>, keyword: &Word) {
    context.draft.tls.common.folder = context.around.paths.folder(keyword.span, context.around.sources);
}

/// Parses an option that `server` lines have too.
fn common(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    if let Err((span, message)) = tls::read(&mut context.draft.tls.common, keyword, value) {
        context.error(span, message);
    }
}

fn ssl(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.ssl = true;
}

fn crt(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    match tls::text(keyword, value, "certificate location") {
        Ok(path) => context.draft.tls.sources.push((CertificateSource::Certificate, path)),
        Err((span, message)) => context.error(span, message),
    }
}

fn acme(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'acme' : missing domain names");
        return;
    };
    let names = word.text.split(',').map(str::to_owned).collect();
    context.draft.tls.acme.push(Spanned::new(names, word.span));
}

fn crt_list(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    match tls::text(keyword, value, "certificate location") {
        Ok(path) => context.draft.tls.sources.push((CertificateSource::List, path)),
        Err((span, message)) => context.error(span, message),
    }
}

fn default_crt(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    match tls::text(keyword, value, "certificate location") {
        Ok(path) => context.draft.tls.sources.push((CertificateSource::Default, path)),
        Err((span, message)) => context.error(span, message),
    }
}

fn ca_verify_file(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    match tls::text(keyword, value, "CAfile path") {
        Ok(path) => context.draft.tls.ca_verify_file = Some(path),
        Err((span, message)) => context.error(span, message),
    }
}

fn ca_sign_file(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    match tls::text(keyword, value, "CAfile path") {
        Ok(path) => context.draft.tls.ca_sign_file = Some(path),
        Err((span, message)) => context.error(span, message),
    }
}

fn ticket_keys(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    name_folder(context, keyword);
    match tls::text(keyword, value, "TLS ticket keys file path") {
        Ok(path) => context.draft.tls.ticket_keys = Some(path),
        Err((span, message)) => context.error(span, message),
    }
}

fn ca_sign_pass(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::text(keyword, value, "CAkey password") {
        Ok(passphrase) => context.draft.tls.ca_sign_pass = Some(passphrase.value),
        Err((span, message)) => context.error(span, message),
    }
}

fn generate_certificates(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.generates = true;
}

fn ignored_errors(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::text(keyword, value, "error IDs list") {
        Ok(list) if keyword.text == "ca-ignore-err" => context.draft.tls.ca_ignore_err = Some(list),
        Ok(list) => context.draft.tls.crt_ignore_err = Some(list),
        Err((span, message)) => context.error(span, message),
    }
}

fn strict_sni(context: &mut BindContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.tls.strict_sni = Some(keyword.text == "strict-sni");
}

fn allow_0rtt(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.early_data = true;
}

/// Without kernel TLS the process encrypts, which Weir always does; the option has no effect.
fn ktls(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Err((span, message)) = tls::kernel(keyword, value, context.around.experimental.permits()) {
        context.error(span, message);
    }
}

fn no_ca_names(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.no_ca_names = true;
}

fn prefer_client_ciphers(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.tls.prefer_client_ciphers = true;
}

fn verify(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'verify' : missing verify method");
        return;
    };
    let method = match word.text.as_str() {
        "none" => VerifyClients::None,
        "optional" => VerifyClients::Optional,
        "required" => VerifyClients::Required,
        other => {
            let known = "only 'none', 'optional', and 'required' are supported";
            context.error(word.span, format!("'verify' : unknown verify method '{other}', {known}"));
            return;
        }
    };
    context.draft.tls.verify = Some(Spanned::new(method, word.span));
}
