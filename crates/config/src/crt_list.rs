//! The lines of a crt-list file (configuration manual, section 5.1, "crt-list"): certificates, their options and the names
//! that they are for. Must never open a file.

use crate::document::Word;
use crate::keyword::tls;
use crate::span::{Span, Spanned};
use crate::spec::{BindTlsSpec, VerifyClients};

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct CrtListLine {
    /// Its number in the file.
    pub number: usize,
    /// The certificate's file, as written.
    pub file: String,
    /// What the `bind` line says, and this line beside it.
    pub options: BindTlsSpec,
    /// Names, wildcards and `*`, in lower case.
    pub names: Vec<String>,
    /// Names that its wildcards are not for (`!name`).
    pub excluded: Vec<String>,
}

/// Options that HAProxy has and Weir has not yet.
const NOT_YET: [&str; 9] =
    ["allow-0rtt", "client-sigalgs", "issuer", "key", "ktls", "ocsp", "ocsp-update", "sctl", "sigalgs"];
/// Options with a value.
const VALUED: [&str; 9] =
    ["alpn", "ca-file", "ciphers", "ciphersuites", "crl-file", "curves", "ecdhe", "npn", "ssl-min-ver"];
/// Options without one.
const PLAIN: [&str; 1] = ["no-alpn"];

/// Reads the text of a file named `name`, which the word at `span` names. Every line starts from what `bind` says.
///
/// # Errors
/// What is wrong, as HAProxy says it behind `'crt-list' : `.
pub fn read(text: &str, name: &str, bind: &BindTlsSpec, span: Span) -> Result<Vec<CrtListLine>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let filled = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    filled.map(|(number, line)| read_line(line, (name, number), bind, span)).collect()
}

fn read_line(line: &str, (name, number): (&str, usize), bind: &BindTlsSpec, span: Span) -> Result<CrtListLine, String> {
    let wrong = |what: &str| format!("parsing [{name}:{number}]: {what}");
    // A bracket is a word of its own wherever it stands.
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
        options: bind.clone(),
        names: Vec::new(),
        excluded: Vec::new(),
    };
    read_options(options, &mut own.options, span, wrong)?;
    for filter in filters {
        match filter.strip_prefix('!') {
            None => own.names.push(filter.to_ascii_lowercase()),
            // In front of a wildcard it means nothing.
            Some(name) if name.starts_with('*') => own.names.push(name.to_ascii_lowercase()),
            Some(name) => own.excluded.push(name.to_ascii_lowercase()),
        }
    }
    Ok(own)
}

fn read_options(
    words: &[&str],
    options: &mut BindTlsSpec,
    span: Span,
    wrong: impl Fn(&str) -> String,
) -> Result<(), String> {
    let word = |text: &str| Word { text: text.to_owned(), span, quoted: false };
    let mut at = 0;
    while let Some(&name) = words.get(at) {
        let value = words.get(at + 1).map(|text| word(text));
        at += 1;
        match name {
            "no-ca-names" => options.no_ca_names = true,
            "ca-verify-file" => {
                let path = tls::text(&word(name), value.as_ref(), "CAfile path").map_err(|(_, message)| message)?;
                options.ca_verify_file = Some(path);
                at += 1;
            }
            "verify" => {
                let method = match value.as_ref().map_or("", |word| word.text.as_str()) {
                    "none" => VerifyClients::None,
                    "optional" => VerifyClients::Optional,
                    "required" => VerifyClients::Required,
                    other => {
                        let known = "only 'none', 'optional', and 'required' are supported";
                        return Err(format!("'verify' : unknown verify method '{other}', {known}"));
                    }
                };
                options.verify = Some(Spanned::new(method, span));
                at += 1;
            }
            name if VALUED.contains(&name) || name == "ssl-max-ver" => {
                tls::read(&mut options.common, &word(name), value.as_ref()).map_err(|(_, message)| message)?;
                at += 1;
            }
            name if PLAIN.contains(&name) => {
                tls::read(&mut options.common, &word(name), None).map_err(|(_, message)| message)?;
            }
            name if NOT_YET.contains(&name) => {
                return Err(wrong(&format!("'{name}' is not supported yet by Weir")));
            }
            name => return Err(wrong(&format!("unknown ssl keyword {name}"))),
        }
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
            ("a.pem [sigalgs x]", "parsing [list:1]: 'sigalgs' is not supported yet by Weir"),
            ("a.pem [alpn]", "'alpn' : missing the comma-delimited ALPN protocol suite"),
        ];
        for (line, said) in rows {
            assert_eq!(one(line).unwrap_err(), said, "{line}");
        }
    }
}
