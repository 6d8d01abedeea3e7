//! TLS options shared by `bind` and `server` lines, and the `global` section for them: versions, algorithms, protocols,
//! files. Must never open a file.

use crate::document::Word;
use crate::span::Spanned;
use crate::spec::{TlsSpec, TlsVersion};

/// Parses an option of both sides.
///
/// # Errors
/// The wrong word, and HAProxy's text after the name of the line.
pub(crate) fn read(spec: &mut TlsSpec, keyword: &Word, value: Option<&Word>) -> Result<(), Problem> {
    let name = keyword.text.as_str();
    if let Some(version) = name.strip_prefix("force-") {
        let version = short(version).ok_or_else(|| missing(keyword, "the ssl/tls version"))?;
        (spec.versions.min, spec.versions.max) = (Some(version), Some(version));
        return Ok(());
    }
    if let Some(version) = name.strip_prefix("no-").and_then(short) {
        spec.versions.forbidden[version as usize] = true;
        return Ok(());
    }
    match name {
        "tls-tickets" => spec.tickets = Some(true),
        "no-tls-tickets" => spec.tickets = Some(false),
        "no-alpn" => spec.alpn = Some(Spanned::new(Vec::new(), keyword.span)),
        "ssl-min-ver" => spec.versions.min = Some(version(keyword, value)?),
        "ssl-max-ver" => spec.versions.max = Some(version(keyword, value)?),
        "ciphers" | "ciphersuites" => {
            let text = text(keyword, value, "cipher suite")?;
            let place = if name == "ciphers" { &mut spec.ciphers } else { &mut spec.ciphersuites };
            *place = Some(text);
        }
        "curves" => spec.curves = Some(text(keyword, value, "curve suite")?),
        "ecdhe" => spec.curves = Some(text(keyword, value, "named curve")?),
        "sigalgs" => spec.sigalgs = Some(text(keyword, value, "signature algorithm list")?),
        "client-sigalgs" => spec.client_sigalgs = Some(text(keyword, value, "signature algorithm list")?),
        "ca-file" => spec.ca_file = Some(text(keyword, value, "CAfile path")?),
        "crl-file" => spec.crl_file = Some(text(keyword, value, "CRLfile path")?),
        "npn" => {
            protocols(keyword, value, "NPN")?;
        }
        _ => spec.alpn = Some(protocols(keyword, value, "ALPN")?),
    }
    Ok(())
}

/// Place and message of an error.
pub(crate) type Problem = (crate::span::Span, String);

fn missing(keyword: &Word, what: &str) -> Problem {
    (keyword.span, format!("'{}' : missing {what}", keyword.text))
}

/// Returns a required value.
pub(crate) fn text(keyword: &Word, value: Option<&Word>, what: &str) -> Result<Spanned<String>, Problem> {
    match value.filter(|word| !word.text.is_empty()) {
        Some(word) => Ok(Spanned::new(word.text.clone(), word.span)),
        None => Err(missing(keyword, what)),
    }
}

/// Parses `ktls`: checks the value, and whether the experimental keyword is permitted.
pub(crate) fn kernel(keyword: &Word, value: Option<&Word>, is_permitted: bool) -> Result<(), Problem> {
    let unexpected = |span| Err((span, "'ktls' expects \"on\" or \"off\" as an argument.".to_owned()));
    let Some(word) = value else { return unexpected(keyword.span) };
    if !is_permitted {
        let why = "directive is experimental, must be allowed via a global 'expose-experimental-directives'";
        return Err((keyword.span, format!("'ktls' {why}")));
    }
    if matches!(word.text.as_str(), "on" | "off") { Ok(()) } else { unexpected(word.span) }
}

fn version(keyword: &Word, value: Option<&Word>) -> Result<TlsVersion, Problem> {
    let word = value.filter(|word| !word.text.is_empty()).ok_or_else(|| missing(keyword, "the ssl/tls version"))?;
    TlsVersion::of(&word.text).ok_or_else(|| (word.span, format!("'{}' : unknown ssl/tls version", word.text)))
}

/// Parses a version as in `no-*` and `force-*`.
fn short(name: &str) -> Option<TlsVersion> {
    let names = ["sslv3", "tlsv10", "tlsv11", "tlsv12", "tlsv13"];
    names.iter().position(|known| *known == name).map(|place| TlsVersion::ALL[place])
}

/// Parses a list of protocols.
pub(crate) fn protocols(keyword: &Word, value: Option<&Word>, kind: &str) -> Result<Spanned<Vec<String>>, Problem> {
    let list = text(keyword, value, &format!("the comma-delimited {kind} protocol suite"))?;
    let names: Vec<String> = list.value.split(',').map(str::to_owned).collect();
    if names.iter().any(|name| name.is_empty() || name.len() > 255) {
        return Err((list.span, format!("'{}' : {kind} protocol name too long", keyword.text)));
    }
    Ok(Spanned::new(names, list.span))
}
