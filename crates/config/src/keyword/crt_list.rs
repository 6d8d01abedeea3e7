//! Lines of a crt-list file (configuration manual, section 5.1, "crt-list") and of `ssl-f-use` (section 4.2), which
//! form a list of the frontend: certificates, their files, their options and the names that select them. Must never
//! open a file.

use crate::document::Word;
use crate::keyword::load_options;
use crate::keyword::tls;
use crate::span::{Span, Spanned};
use crate::spec::{BindTlsSpec, LoadSpec, UsedCertificateSpec, VerifyClients};

#[derive(Debug, Clone, PartialEq)]
pub struct CrtListLine {
    /// Line number in the file.
    pub number: usize,
    /// The certificate's file, or its name in a `crt-store`, as written.
    pub file: String,
    /// The certificate's other files.
    pub load: LoadSpec,
    /// Options of the `bind` line, overridden by those of this line.
    pub options: BindTlsSpec,
    /// Server names, wildcards and `*`, in lower case.
    pub names: Vec<String>,
    /// Names excluded from its wildcards (`!name`).
    pub excluded: Vec<String>,
    /// The line's own options, in the order in which `show ssl crt-list` prints them.
    pub written_options: String,
    /// Included and excluded names, as written.
    pub written_names: String,
}

/// Options in the order in which `show ssl crt-list` prints them, and whether they have a value.
const PRINTED: [(&str, bool); 18] = [
    ("npn", true),
    ("alpn", true),
    ("no-alpn", false),
    ("verify", true),
    ("no-ca-names", false),
    ("allow-0rtt", false),
    ("ca-file", true),
    ("ca-verify-file", true),
    ("crl-file", true),
    ("ciphers", true),
    ("ciphersuites", true),
    ("curves", true),
    ("ecdhe", true),
    ("client-sigalgs", true),
    ("sigalgs", true),
    ("ktls", true),
    ("ssl-min-ver", true),
    ("ssl-max-ver", true),
];

/// Returns options as words that can be parsed again.
fn printed(options: &[&str]) -> String {
    let has_value = |name: &str| PRINTED.iter().any(|(known, valued)| *known == name && *valued);
    let mut pairs = Vec::new();
    let mut at = 0;
    while let Some(name) = options.get(at) {
        let value = options.get(at + 1).filter(|_| has_value(name));
        pairs.push((*name, value));
        at += 1 + usize::from(value.is_some());
    }
    let place = |name: &str| PRINTED.iter().position(|(known, _)| *known == name).unwrap_or(PRINTED.len());
    pairs.sort_by_key(|(name, _)| place(name));
    let words =
        pairs.iter().map(|(name, value)| value.map_or_else(|| (*name).to_owned(), |value| format!("{name} {value}")));
    words.collect::<Vec<_>>().join(" ")
}

/// Options with a value.
const VALUED: [&str; 15] = [
    "alpn",
    "ca-file",
    "ca-verify-file",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "crl-file",
    "curves",
    "ecdhe",
    "ktls",
    "npn",
    "sigalgs",
    "ssl-max-ver",
    "ssl-min-ver",
    "verify",
];
/// Options without a value.
const PLAIN: [&str; 3] = ["allow-0rtt", "no-alpn", "no-ca-names"];

/// Parses the text of the file `name`, which the word at `span` names. Every line starts from the options of `bind`.
///
/// # Errors
/// HAProxy's text after `'crt-list' : `.
pub fn read(text: &str, name: &str, bind: &BindTlsSpec, span: Span) -> Result<Vec<CrtListLine>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let filled = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    filled.map(|(number, line)| read_line(line, name, number, bind, span)).collect()
}

/// Returns the options of a line `ssl-f-use`, as `show ssl crt-list` prints them: without the name of its certificate.
pub fn printed_use(written: &UsedCertificateSpec) -> String {
    let mut words: Vec<&str> = written.words.iter().map(|word| word.text.as_str()).collect();
    if let Some(at) = words.iter().position(|word| *word == "crt") {
        words.drain(at..words.len().min(at + 2));
    }
    printed(&words)
}

/// Parses a line `ssl-f-use` at `place` (`file:line`), for a `bind` line.
///
/// # Errors
/// The error, and the word that it is about.
pub fn used(written: &UsedCertificateSpec, place: &str, bind: &BindTlsSpec) -> Result<CrtListLine, (Span, String)> {
    let mut options = bind.clone();
    options.common.folder.clone_from(&written.folder);
    let mut line = CrtListLine {
        number: written.span.line as usize,
        file: String::new(),
        load: LoadSpec { span: written.span, folder: written.folder.clone(), ..LoadSpec::default() },
        options,
        names: Vec::new(),
        excluded: Vec::new(),
        written_options: String::new(),
        written_names: String::new(),
    };
    read_options(&written.words, &mut line).map_err(|fault| match fault {
        Fault::Unknown(span, name) => (span, format!("unknown crt keyword '{name}'")),
        Fault::NoValue(span, name) => (span, format!("missing argument for '{name}'")),
        Fault::BadValue(span, message) => (span, format!("parsing [{place}] : {message}")),
        Fault::Wrong(span, message) => (span, message),
    })?;
    match &line.load.crt {
        Some(file) => {
            line.file.clone_from(&file.value);
            Ok(line)
        }
        None => Err((written.span, "Trying to load a certificate but no 'crt' keyword specified.".to_owned())),
    }
}

fn read_line(line: &str, name: &str, number: usize, bind: &BindTlsSpec, span: Span) -> Result<CrtListLine, String> {
    let wrong = |what: &str| format!("parsing [{name}:{number}]: {what}");
    // A bracket is always a word of its own.
    let spaced = line.replace('[', " [ ").replace(']', " ] ");
    let words: Vec<&str> = spaced.split_ascii_whitespace().collect();
    let Some((file, rest)) = words.split_first().filter(|(file, _)| **file != "[") else {
        return Err(wrong("file must start with a cert"));
    };
    let (options, filters) = match (rest.first(), rest.iter().position(|word| *word == "]")) {
        (Some(&"["), Some(end)) => (&rest[1..end], &rest[end + 1..]),
        (Some(&"["), None) => (&rest[1..], &[][..]),
        (_, Some(_)) => return Err(wrong("missing '['")),
        (_, None) => (&[][..], rest),
    };
    if filters.iter().any(|word| matches!(*word, "[" | "]")) {
        return Err(wrong("too many brackets"));
    }
    let mut own = CrtListLine {
        number,
        file: (*file).to_owned(),
        load: LoadSpec { span, folder: bind.common.folder.clone(), ..LoadSpec::default() },
        options: bind.clone(),
        names: Vec::new(),
        excluded: Vec::new(),
        written_options: printed(options),
        written_names: filters.join(" "),
    };
    let word = |text: &&str| Word { text: (*text).to_owned(), span, quoted: false };
    let options: Vec<Word> = options.iter().map(word).collect();
    read_options(&options, &mut own).map_err(|fault| match fault {
        Fault::Unknown(_, name) => wrong(&format!("unknown ssl keyword {name}")),
        Fault::NoValue(_, name) => wrong(&format!("ssl args out of '[]' for {name}")),
        Fault::BadValue(_, message) => format!("parsing [{name}:{number}] : {message}"),
        Fault::Wrong(_, message) => message,
    })?;
    for filter in filters {
        match filter.strip_prefix('!') {
            None => own.names.push(filter.to_ascii_lowercase()),
            // The exclamation mark has no meaning in front of a wildcard.
            Some(name) if name.starts_with('*') => own.names.push(name.to_ascii_lowercase()),
            Some(name) => own.excluded.push(name.to_ascii_lowercase()),
        }
    }
    Ok(own)
}

/// Error in an option.
enum Fault {
    Unknown(Span, String),
    NoValue(Span, String),
    /// The message starts with the place of the line.
    BadValue(Span, String),
    Wrong(Span, String),
}

fn read_options(words: &[Word], line: &mut CrtListLine) -> Result<(), Fault> {
    let mut at = 0;
    while let Some(keyword) = words.get(at) {
        let (name, value) = (keyword.text.as_str(), words.get(at + 1));
        let is_load = load_options::is_option(name) && !VALUED.contains(&name);
        if is_load {
            load_options::read(&mut line.load, keyword, value)
                .map_err(|(span, message)| Fault::BadValue(span, message))?;
            at += 2;
            continue;
        }
        let has_value = VALUED.contains(&name);
        if !has_value && !PLAIN.contains(&name) {
            return Err(Fault::Unknown(keyword.span, name.to_owned()));
        }
        if has_value && value.is_none() {
            return Err(Fault::NoValue(keyword.span, name.to_owned()));
        }
        read_option(keyword, value.filter(|_| has_value), &mut line.options)
            .map_err(|(span, message)| Fault::Wrong(span, message))?;
        at += 1 + usize::from(has_value);
    }
    Ok(())
}

/// Parses an option that `bind` lines have too.
fn read_option(keyword: &Word, value: Option<&Word>, options: &mut BindTlsSpec) -> Result<(), tls::Problem> {
    match keyword.text.as_str() {
        "allow-0rtt" => options.early_data = true,
        "ktls" => tls::kernel(keyword, value, true)?,
        "no-ca-names" => options.no_ca_names = true,
        "ca-verify-file" => options.ca_verify_file = Some(tls::text(keyword, value, "CAfile path")?),
        "verify" => {
            let method = match value.map_or("", |word| word.text.as_str()) {
                "none" => VerifyClients::None,
                "optional" => VerifyClients::Optional,
                "required" => VerifyClients::Required,
                other => {
                    let known = "only 'none', 'optional', and 'required' are supported";
                    let message = format!("'verify' : unknown verify method '{other}', {known}");
                    return Err((keyword.span, message));
                }
            };
            options.verify = Some(Spanned::new(method, keyword.span));
        }
        _ => tls::read(&mut options.common, keyword, value)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<CrtListLine, String> {
        let mut lines = read(line, "list", &BindTlsSpec::default(), Span::default())?;
        assert_eq!(lines.len(), 1);
        Ok(lines.remove(0))
    }

    #[test]
    fn lines_have_options_and_names() {
        let line = one(
            "# c\n\n a.pem [alpn http/1.1 ssl-min-ver TLSv1.3 verify optional no-ca-names] A.com *.b.com !C.b.com !*.d\n",
        );
        let line = line.unwrap();
        assert_eq!((line.number, line.file.as_str()), (3, "a.pem"));
        assert_eq!(line.names, ["a.com", "*.b.com", "*.d"]);
        assert_eq!(line.excluded, ["c.b.com"]);
        assert_eq!(line.options.common.alpn.unwrap().value, ["http/1.1"]);
        assert_eq!(line.options.verify.unwrap().value, VerifyClients::Optional);
        assert!(line.options.no_ca_names && line.options.common.versions.min.is_some());
        assert_eq!(one("a.pem").unwrap().names, [""; 0]);
        assert_eq!(one("a.pem[no-alpn]b").unwrap().names, ["b"]);
    }

    #[test]
    fn what_is_wrong_is_said_as_haproxy_says_it() {
        let rows = [
            ("a.pem [foo] a", "parsing [list:1]: unknown ssl keyword foo"),
            ("a.pem alpn h2] a", "parsing [list:1]: missing '['"),
            ("[alpn h2] a.pem", "parsing [list:1]: file must start with a cert"),
            ("a.pem [ssl-min-ver TLSv9]", "'TLSv9' : unknown ssl/tls version"),
            (
                "a.pem [verify x]",
                "'verify' : unknown verify method 'x', only 'none', 'optional', and 'required' are supported",
            ),
            ("a.pem [ktls maybe]", "'ktls' expects \"on\" or \"off\" as an argument."),
            ("a.pem [alpn]", "parsing [list:1]: ssl args out of '[]' for alpn"),
            (
                "a.pem [ocsp-update maybe]",
                "parsing [list:1] : cannot parse 'ocsp-update' value 'maybe', 'on' or 'off' is expected.",
            ),
        ];
        for (line, said) in rows {
            assert_eq!(one(line).unwrap_err(), said, "{line}");
        }
    }

    #[test]
    fn lines_have_files_of_their_own() {
        let line = one("a.crt [key b.key ocsp c issuer d sctl e alpn h2 ocsp-update off] x").unwrap();
        let value = |file: &Option<Spanned<String>>| file.as_ref().map(|file| file.value.clone()).unwrap_or_default();
        let load = &line.load;
        let files = [&load.key, &load.ocsp, &load.issuer, &load.sctl].map(value);
        assert_eq!(files, ["b.key", "c", "d", "e"]);
        assert_eq!((load.ocsp_update, load.has_options()), (Some(false), true));
        assert_eq!(line.options.common.alpn.unwrap().value, ["h2"]);
    }

    #[test]
    fn a_frontend_uses_certificates() {
        let used = |text: &str| {
            let word = |text: &str| Word { text: text.to_owned(), span: Span::default(), quoted: false };
            let words = text.split_ascii_whitespace().map(word).collect();
            let written = UsedCertificateSpec { words, ..UsedCertificateSpec::default() };
            super::used(&written, "a.cfg:3", &BindTlsSpec::default())
        };
        let line = used("crt a.crt key b.key verify optional").unwrap();
        assert_eq!((line.file.as_str(), line.load.key.unwrap().value.as_str()), ("a.crt", "b.key"));
        assert_eq!(line.options.verify.unwrap().value, VerifyClients::Optional);
        let rows = [
            ("", "Trying to load a certificate but no 'crt' keyword specified."),
            ("alpn h2", "Trying to load a certificate but no 'crt' keyword specified."),
            ("crt a foo", "unknown crt keyword 'foo'"),
            ("crt a ssl-min-ver TLSv9", "'TLSv9' : unknown ssl/tls version"),
            (
                "crt a ocsp-update x",
                "parsing [a.cfg:3] : cannot parse 'ocsp-update' value 'x', 'on' or 'off' is expected.",
            ),
        ];
        for (line, said) in rows {
            assert_eq!(used(line).unwrap_err().1, said, "{line}");
        }
    }
}
