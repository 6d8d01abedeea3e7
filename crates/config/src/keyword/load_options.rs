//! Options of a certificate (configuration manual, section 12.7.1), shared by `load`, crt-list lines and `ssl-f-use`.
//! Must never open a file.

use crate::document::Word;
use crate::span::{Span, Spanned};
use crate::spec::LoadSpec;

/// A wrong value, and the reason; the caller puts the place of the line in front of the sentence.
pub(crate) type Problem = (Span, String);

/// The options, each with one argument.
const NAMES: [&str; 15] = [
    "acme",
    "alias",
    "bits",
    "crt",
    "curves",
    "domains",
    "generate-dummy",
    "ips",
    "issuer",
    "jwt",
    "key",
    "keytype",
    "ocsp",
    "ocsp-update",
    "sctl",
];

/// Whether a word is the name of such an option.
pub(crate) fn is_option(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Parses an option and its argument.
///
/// # Errors
/// The wrong value and the reason.
pub(crate) fn read(load: &mut LoadSpec, keyword: &Word, value: Option<&Word>) -> Result<(), Problem> {
    let name = keyword.text.as_str();
    let text = value.map_or("", |word| word.text.as_str());
    let span = value.map_or(keyword.span, |word| word.span);
    let spanned = Some(Spanned::new(text.to_owned(), span));
    let list = || text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect();
    match name {
        "crt" => load.crt = spanned,
        "key" => load.key = spanned,
        "ocsp" => load.ocsp = spanned,
        "issuer" => load.issuer = spanned,
        "sctl" => load.sctl = spanned,
        "alias" if text.starts_with('/') => {
            return Err((
                span,
                format!("cannot parse 'alias' value '{text}', '/' is forbidden as the first character."),
            ));
        }
        "alias" => load.alias = spanned,
        "acme" => load.acme = spanned,
        "keytype" => load.keytype = spanned,
        "curves" => load.curves = spanned,
        "domains" => load.domains = list(),
        "ips" => load.ips = list(),
        "bits" => {
            let number = text
                .parse()
                .map_err(|_| (span, format!("cannot parse 'bits' value '{text}', an integer is expected.")))?;
            load.bits = Some(Spanned::new(number, span));
        }
        name => {
            let is_on = match text {
                "on" => true,
                "off" => false,
                _ => {
                    let message = format!("cannot parse '{name}' value '{text}', 'on' or 'off' is expected.");
                    return Err((span, message));
                }
            };
            match name {
                "ocsp-update" => load.ocsp_update = Some(is_on),
                "jwt" => load.jwt = Some(is_on),
                _ => load.generate_dummy = Some(is_on),
            }
        }
    }
    Ok(())
}
