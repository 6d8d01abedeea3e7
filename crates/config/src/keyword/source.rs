//! `source <address> [usesrc …] [interface …]`, as a line of its own and as an option of a server
//! (configuration manual, sections 4.2 and 5.2). Must never look a name or an interface up.

use crate::address::{self, AddressError, AddressRules};
use crate::document::Word;
use crate::environment::Environment;
use crate::keyword::argument::leading_number;
use crate::span::Span;
use crate::spec::{AddressSpec, HostSpec, PresentedSource, SourceSpec};

/// Maximum occurrence from the end of a field in `hdr_ip`.
const OCCURRENCES_FROM_THE_END: i64 = 10;

/// Differences between the two forms: HAProxy's sentences and port ranges.
pub(crate) struct Form {
    /// Sentence about a missing address.
    pub(crate) missing: &'static str,
    /// Sentence about a missing address after `usesrc`.
    pub(crate) presented_missing: &'static str,
    /// Text in front of "missing interface name".
    pub(crate) holder: &'static str,
    /// Text after a sentence about the address.
    pub(crate) stop: &'static str,
    pub(crate) ranges: bool,
}

/// A `source` line of a backend.
pub(crate) const LINE: Form = Form {
    missing: "'source' expects <addr>[:<port>], and optionally 'usesrc' <addr>, and 'interface' <name>.",
    presented_missing: "'usesrc' expects <addr>[:<port>], 'client', or 'clientip' as argument.",
    holder: "source",
    stop: "",
    ranges: false,
};

/// An option of a server.
pub(crate) const OPTION: Form = Form {
    missing: "'source' expects <addr>[:<port>[-<port>]], and optionally 'usesrc' <addr>, and 'interface' <name> as \
              argument..",
    presented_missing: "'usesrc' expects <addr>[:<port>], 'client', 'clientip', or 'hdr_ip(name,#)' as argument.",
    holder: "server",
    stop: ".",
    ranges: true,
};

/// Place and message of an error.
pub(crate) type Wrong = (Span, String);

/// Parses the words after `source`, whose place is `place`.
pub(crate) fn read(words: &[Word], place: Span, form: &Form, environment: &Environment) -> Result<SourceSpec, Wrong> {
    let Some(word) = words.first() else { return Err((place, form.missing.to_owned())) };
    let rules = AddressRules { port_range: form.ranges, ..AddressRules::SOURCE };
    let address = literal(word, &rules, environment)
        .map_err(|error| (word.span, format!("'source {}' : {error}{}", word.text, form.stop)))?;
    let mut source = SourceSpec { address, presented: None, interface: None };
    let mut rest = &words[1..];
    while let Some((keyword, behind)) = rest.split_first() {
        let value = behind.first();
        match keyword.text.as_str() {
            "usesrc" => source.presented = Some(presented(keyword, value, form, environment)?),
            "interface" => match value {
                Some(value) => source.interface = Some(value.text.clone()),
                None => return Err((keyword.span, format!("'{}' : missing interface name.", form.holder))),
            },
            _ => {
                let message = "'source' only supports optional keywords 'interface' and 'usesrc'.";
                return Err((keyword.span, message.to_owned()));
            }
        }
        rest = behind.get(1..).unwrap_or_default();
    }
    Ok(source)
}

/// Parses an address that is not a name.
pub(crate) fn literal(
    word: &Word,
    rules: &AddressRules,
    environment: &Environment,
) -> Result<AddressSpec, AddressError> {
    match address::parse(&word.text, rules, environment)? {
        AddressSpec::Inet { host: HostSpec::Name(host), .. } => {
            Err(AddressError::InvalidHost { host, text: word.text.clone() })
        }
        address => Ok(address),
    }
}

fn presented(
    keyword: &Word,
    value: Option<&Word>,
    form: &Form,
    environment: &Environment,
) -> Result<PresentedSource, Wrong> {
    let Some(word) = value else { return Err((keyword.span, form.presented_missing.to_owned())) };
    match word.text.as_str() {
        "client" => Ok(PresentedSource::Client),
        "clientip" => Ok(PresentedSource::ClientIp),
        text => match text.strip_prefix("hdr_ip(") {
            Some(arguments) => field(arguments, word.span),
            None => literal(word, &AddressRules::SOURCE, environment)
                .map(PresentedSource::Address)
                .map_err(|error| (word.span, format!("'usesrc {text}' : {error}"))),
        },
    }
}

/// Parses `<name>[,<occurrence>])`; HAProxy does not require the closing parenthesis.
fn field(arguments: &str, span: Span) -> Result<PresentedSource, Wrong> {
    let arguments = arguments.split(')').next().unwrap_or_default();
    let (name, occurrence) = arguments.split_once(',').map_or((arguments, -1), |(name, number)| {
        let (number, _) = leading_number(number);
        (name, number)
    });
    if occurrence < -OCCURRENCES_FROM_THE_END {
        let message = format!(
            "usesrc hdr_ip(name,num) does not support negative occurrences values smaller than {OCCURRENCES_FROM_THE_END}."
        );
        return Err((span, message));
    }
    let occurrence = i32::try_from(occurrence).unwrap_or(i32::MAX);
    Ok(PresentedSource::Header { name: name.trim().to_owned(), occurrence })
}
