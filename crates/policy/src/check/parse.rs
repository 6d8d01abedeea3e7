//! Parses the rules of `http-check` and `tcp-check`, and `option httpchk`. Error messages are HAProxy's. Must never
//! look at a server.

use super::{CheckStep, Connect, Content, Expect, ExpectMatch, FieldMatch, Payload, Port, Request, TextMatch};
use crate::rule::{Parsing, RuleError, Words, find_action};
use base::hex;
use config::address::{self, AddressRules};
use config::document::Word;
use config::environment::Environment;
use config::spec::{AddressSpec, HostSpec, MuxProtocol, PortSpec};
use config::text;
use expression::Expression;
use expression::log_format::{LogFormat, Purpose};
use expression::pattern::Regex;
use live::health::CheckStatus;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Parses a `tcp-check` rule, starting with the step's name.
///
/// # Errors
/// The rule is invalid.
pub(crate) fn tcp_rule(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<CheckStep, RuleError> {
    match words.action().split('(').next().unwrap_or_default() {
        "comment" => comment_step(words),
        "connect" => connect(words, parsing, false),
        "send" | "send-lf" | "send-binary" | "send-binary-lf" => send(words, parsing),
        "expect" => expect(words, parsing, false),
        _ => variable(words, parsing),
    }
}

/// Parses an `http-check` rule, starting with the step's name.
///
/// # Errors
/// The rule is invalid.
pub(crate) fn http_rule(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<CheckStep, RuleError> {
    match words.action().split('(').next().unwrap_or_default() {
        "comment" => comment_step(words),
        "connect" => connect(words, parsing, true),
        "send" => request(words, parsing, Request::default()).map(CheckStep::Request),
        "expect" => expect(words, parsing, true),
        _ => variable(words, parsing),
    }
}

/// Parses the request of `option httpchk`: `[<method>] [<target>] [<version>] [<host>]`.
///
/// # Errors
/// The request is invalid.
pub(crate) fn http_line(words: &[Word], parsing: &Parsing<'_>) -> Result<Request, RuleError> {
    let mut request = Request::default();
    let (method, rest) = match words {
        [] => return Ok(request),
        [target] => (None, std::slice::from_ref(target)),
        [method, rest @ ..] => (Some(method), rest),
    };
    if let Some(method) = method {
        request.method = bytes(method);
    }
    if let Some(target) = rest.first() {
        request.target = Content::Bytes(bytes(target));
    }
    if let Some(version) = rest.get(1) {
        if version.text.contains(['\r', '\n']) {
            let message = "hiding headers or body at the end of the version string is unsupported.\
                           Use 'http-check send' directive instead.";
            return Err(RuleError::at(Some(version), message));
        }
        request.version = version_of(version);
    }
    if let Some(host) = rest.get(2) {
        request.fields.push((Box::from(*b"host"), parsing.format(host)?));
    }
    Ok(request)
}

/// Completes a script of `http-check` rules: without a request it sends the one of `option httpchk`; the first request
/// of a script inherits unspecified values from it; after the last request a default `expect` is added if there is
/// none.
pub(crate) fn implicit_steps(
    mut steps: Vec<CheckStep>,
    line: Request,
    written: Option<WrittenRequest>,
) -> Vec<CheckStep> {
    let first = steps.iter().position(|step| matches!(step, CheckStep::Request(_)));
    match first {
        Some(at) => {
            if let (CheckStep::Request(request), Some(own)) = (&mut steps[at], written) {
                if !own.method {
                    request.method = line.method;
                }
                if !own.target {
                    request.target = line.target;
                }
                if !own.version {
                    request.version = line.version;
                }
            }
        }
        None => {
            let connect = steps.iter().position(|step| matches!(step, CheckStep::Connect(_)));
            let expects = steps.iter().position(|step| matches!(step, CheckStep::Expect(_)));
            let mut at = connect.map(|at| at + 1).or(expects).unwrap_or(steps.len());
            // A comment belongs to the rule after it.
            while connect.is_none() && at > 0 && matches!(steps[at - 1], CheckStep::Comment(_)) {
                at -= 1;
            }
            steps.insert(at, CheckStep::Request(line));
        }
    }
    let last = steps.iter().rposition(|step| matches!(step, CheckStep::Request(_))).unwrap_or(0);
    if !steps[last..].iter().any(|step| matches!(step, CheckStep::Expect(_))) {
        steps.push(CheckStep::Expect(Box::new(Expect::new(ExpectMatch::Status(Box::from([200..=399]))))));
    }
    steps
}

/// The values that a request specifies itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WrittenRequest {
    method: bool,
    target: bool,
    version: bool,
}

impl WrittenRequest {
    /// Determines them from the words of an `http-check send` rule.
    pub(crate) fn of(words: &[Word]) -> Self {
        let mut written = Self::default();
        let mut at = 1;
        while let Some(word) = words.get(at) {
            at += 2;
            match word.text.as_str() {
                "meth" => written.method = true,
                "uri" | "uri-lf" => written.target = true,
                "ver" => written.version = true,
                "hdr" => at += 1,
                _ => {}
            }
        }
        written
    }
}

fn bytes(word: &Word) -> Box<[u8]> {
    text::to_bytes(&word.text).into()
}

fn comment_of(word: &Word) -> Box<str> {
    word.text.as_str().into()
}

/// Returns the version of a check's request; HTTP/2 and later are replaced by HTTP/1.1.
fn version_of(word: &Word) -> Box<[u8]> {
    let later = |text: &str| text.strip_prefix("HTTP/").is_some_and(|number| number.starts_with(['2', '3']));
    if later(&word.text) { Box::from(*b"HTTP/1.1") } else { bytes(word) }
}

fn comment_step(words: &mut Words<'_>) -> Result<CheckStep, RuleError> {
    let word = words.expect("expects a string as argument")?;
    Ok(CheckStep::Comment(comment_of(word)))
}

fn variable(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<CheckStep, RuleError> {
    let name = words.action().split('(').next().unwrap_or_default();
    let row = find_action(name).ok_or_else(|| RuleError::new("unknown step"))?;
    let action = (row.parse)(words, parsing)
        .map_err(|error| RuleError { message: format!("'{name}' : {}", error.message), ..error })?;
    Ok(CheckStep::Variable(Box::new(action)))
}

/// Parses the address of a connection with an optional port. A wildcard is the server's address.
fn address(word: &Word) -> Result<(Option<IpAddr>, Option<Port>), RuleError> {
    let wrong = |message: String| RuleError::at(Some(word), format!("'addr' : {message}."));
    match address::parse(&word.text, &AddressRules::SOURCE, &Environment::new())
        .map_err(|error| wrong(error.to_string()))?
    {
        AddressSpec::Inet { host: HostSpec::Any, .. } => Ok((None, None)),
        AddressSpec::Inet { host: HostSpec::Ip(address), port, .. } => {
            let port = match port {
                PortSpec::Exact(port) if port > 0 => Some(Port::Fixed(port)),
                _ => None,
            };
            Ok((Some(address), port))
        }
        AddressSpec::Inet { host: HostSpec::Name(name), .. } => {
            Err(wrong(format!("invalid address: '{name}' in '{}'", word.text)))
        }
        _ => Err(RuleError::at(Some(word), not_yet(&format!("addr {}", word.text)))),
    }
}

fn connect(words: &mut Words<'_>, parsing: &Parsing<'_>, is_http: bool) -> Result<CheckStep, RuleError> {
    let mut connect = Connect::default();
    // The port that is part of the address; `port` takes precedence in any order.
    let mut beside = None;
    while let Some(word) = words.take() {
        match word.text.as_str() {
            "default" => connect.default = true,
            "linger" => connect.linger = true,
            "send-proxy" => connect.send_proxy = true,
            "via-socks4" => connect.via_socks4 = true,
            "comment" => connect.comment = Some(comment_of(words.expect("'comment' expects a string as argument.")?)),
            "port" => connect.port = Some(port(words, parsing)?),
            "addr" => {
                let word = words.expect("'addr' expects <ipv4|ipv6> as argument.")?;
                (connect.address, beside) = address(word)?;
            }
            "proto" => {
                let word = words.expect("'proto' expects a MUX protocol as argument.")?;
                match (word.text.as_str(), is_http) {
                    ("h1", true) => connect.protocol = Some(MuxProtocol::Http1),
                    ("h2", true) => connect.protocol = Some(MuxProtocol::Http2),
                    ("qmux", true) => connect.protocol = Some(MuxProtocol::Qmux),
                    ("fcgi", true) => connect.protocol = Some(MuxProtocol::Fcgi),
                    ("none", false) => {}
                    ("quic" | "spop", _) => {
                        return Err(RuleError::at(Some(word), not_yet(&format!("proto {}", word.text))));
                    }
                    (known @ ("h1" | "h2" | "qmux" | "fcgi" | "none"), _) => {
                        let kind = if is_http { "http-check" } else { "tcp-check" };
                        let message = format!("'proto' : invalid MUX protocol '{known}' for {kind}");
                        return Err(RuleError::at(Some(word), message));
                    }
                    (other, _) => {
                        let message = format!("'proto' : unknown MUX protocol '{other}'.");
                        return Err(RuleError::at(Some(word), message));
                    }
                }
            }
            "ssl" => connect.ssl = true,
            "sni" => connect.sni = Some(words.expect("'sni' expects a string as argument.")?.text.as_str().into()),
            "alpn" => {
                let list = words.expect("'alpn' : missing the comma-delimited ALPN protocol suite")?;
                connect.alpn = Some(list.text.split(',').map(|name| name.as_bytes().to_vec()).collect());
            }
            other => {
                let message = format!(
                    "expects 'comment', 'port', 'addr', 'send-proxy', 'ssl', 'sni', 'alpn' or 'via-socks4', 'linger', \
                     'default' but got '{other}' as argument"
                );
                return Err(RuleError::at(Some(word), message));
            }
        }
    }
    connect.port = connect.port.or(beside);
    Ok(CheckStep::Connect(connect))
}

fn not_yet(what: &str) -> String {
    format!("'{what}' is not supported yet by Weir")
}

fn port(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Port, RuleError> {
    let missing = "'port' expects a port number or a sample expression as argument.";
    let Some(word) = words.peek() else { return Err(RuleError::new(missing)) };
    if word.text.starts_with(|first: char| first.is_ascii_digit()) {
        words.take();
        return match word.text.parse() {
            Ok(port @ 1..) => Ok(Port::Fixed(port)),
            _ => {
                let message = format!(
                    "expects a valid TCP port (from range 1 to 65535) or a sample expression, got {}.",
                    word.text
                );
                Err(RuleError::at(Some(word), message))
            }
        };
    }
    let expression = parsing.expression(words).map_err(|error| RuleError {
        message: format!("error detected while parsing port expression : {}", error.message),
        ..error
    })?;
    Ok(Port::Evaluated(Box::new(expression)))
}

fn send(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<CheckStep, RuleError> {
    let name = words.action().to_owned();
    let kind = if name.contains("binary") { "binary string" } else { "string" };
    let word = words.take().ok_or_else(|| RuleError::new(format!("'{kind}' expects a {name} as argument")))?;
    let content = match name.as_str() {
        "send" => Content::Bytes(bytes(word)),
        "send-binary" => Content::Bytes(
            unhex(word)
                .map_err(|error| RuleError { message: format!("'{}' {}", word.text, error.message), ..error })?,
        ),
        "send-lf" => Content::Text(Box::new(text_format(word, parsing)?)),
        _ => Content::Hex(Box::new(text_format(word, parsing)?)),
    };
    let mut comment = None;
    while let Some(word) = words.take() {
        if word.text != "comment" {
            let message = format!("expects 'comment' but got '{}' as argument", word.text);
            return Err(RuleError::at(Some(word), message));
        }
        comment = Some(comment_of(words.expect("'comment' expects a string as argument.")?));
    }
    Ok(CheckStep::Send(Payload { content, comment }))
}

/// Parses hexadecimal digits.
fn unhex(word: &Word) -> Result<Box<[u8]>, RuleError> {
    let digits = word.text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        let message = "invalid binary string (an even number of hex digit is expected)";
        return Err(RuleError::at(Some(word), message));
    }
    let digit = |byte: u8| {
        hex::digit(byte).ok_or_else(|| {
            let message = format!("invalid binary string (an hex digit is expected (found '{}'))", char::from(byte));
            RuleError::at(Some(word), message)
        })
    };
    digits.chunks_exact(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn request(words: &mut Words<'_>, parsing: &Parsing<'_>, mut request: Request) -> Result<Request, RuleError> {
    let value = |words: &mut Words<'_>, name: &str| -> Result<Word, RuleError> {
        Ok(words.expect(&format!("'{name}' expects a string as argument."))?.clone())
    };
    while let Some(word) = words.take() {
        let name = word.text.as_str();
        match name {
            "meth" => request.method = bytes(&value(words, name)?),
            "uri" => request.target = Content::Bytes(bytes(&value(words, name)?)),
            "uri-lf" => {
                request.target = Content::Text(Box::new(format_of(&value(words, name)?, Purpose::Head, parsing)?))
            }
            "ver" => request.version = version_of(&value(words, name)?),
            "body" => request.body = Some(Content::Bytes(bytes(&value(words, name)?))),
            "body-lf" => request.body = Some(Content::Text(Box::new(text_format(&value(words, name)?, parsing)?))),
            "comment" => request.comment = Some(comment_of(&value(words, name)?)),
            "hdr" => {
                let (Some(field), Some(format)) = (words.take(), words.take()) else {
                    return Err(RuleError::at(Some(word), "'hdr' expects <name> and <value> as arguments"));
                };
                // The body's length is computed.
                let is_framing = |name: &&str| field.text.eq_ignore_ascii_case(name);
                if !["content-length", "transfer-encoding"].iter().any(is_framing) {
                    let name = field.text.to_ascii_lowercase();
                    request.fields.push((text::to_bytes(&name).into(), parsing.format(format)?));
                }
            }
            other => {
                let message = format!(
                    "expects 'comment', 'meth', 'uri', 'uri-lf', 'ver', 'hdr', 'body' or 'body-lf' but got '{other}' \
                     as argument"
                );
                return Err(RuleError::at(Some(word), message));
            }
        }
    }
    Ok(request)
}

/// The statuses that are permitted for `ok-status`, `error-status` and `tout-status`.
const OK: [CheckStatus; 4] = [CheckStatus::L4Ok, CheckStatus::L6Ok, CheckStatus::L7Ok, CheckStatus::L7Conditional];
const ERRORS: [CheckStatus; 5] = [
    CheckStatus::L4Connection,
    CheckStatus::L6Response,
    CheckStatus::L7Response,
    CheckStatus::L7Status,
    CheckStatus::L7Conditional,
];
const TIMEOUTS: [CheckStatus; 3] = [CheckStatus::L4Timeout, CheckStatus::L6Timeout, CheckStatus::L7Timeout];

/// The options of `expect` before the match.
#[derive(Default)]
struct Options {
    negated: bool,
    at_least: Option<usize>,
    comment: Option<Box<str>>,
    ok: Option<CheckStatus>,
    error: Option<CheckStatus>,
    timeout: Option<CheckStatus>,
    on_success: Option<LogFormat>,
    on_error: Option<LogFormat>,
    code: Option<Expression>,
}

fn expect(words: &mut Words<'_>, parsing: &Parsing<'_>, is_http: bool) -> Result<CheckStep, RuleError> {
    let mut options = Options::default();
    let mut wanted = None;
    if words.peek().is_none() {
        return Err(RuleError::new("expects at least a matching pattern as arguments"));
    }
    while let Some(word) = words.take() {
        let mut name = word.text.as_str();
        while let Some(rest) = name.strip_prefix('!') {
            options.negated = true;
            name = rest;
        }
        if name.is_empty() && words.peek().is_some() {
            continue;
        }
        if option(name, words, parsing, &mut options)? {
            continue;
        }
        let Some(found) = pattern(name, words, parsing, is_http)? else {
            let message = match is_http {
                true => format!(
                    "'only supports min-recv, [!]string', '[!]rstring', '[!]string-lf', '[!]status', '[!]rstatus', \
                     [!]hdr, [!]fhdr or comment but got '{name}' as argument."
                ),
                false => format!(
                    "'only supports min-recv, '[!]binary', '[!]string', '[!]rstring', '[!]string-lf''[!]rbinary', \
                     '[!]binary-lf' or comment but got '{name}' as argument."
                ),
            };
            return Err(RuleError::at(Some(word), message));
        };
        if wanted.replace(found).is_some() {
            return Err(RuleError::at(Some(word), "only one pattern expected"));
        }
    }
    let wanted = wanted.ok_or_else(|| RuleError::new("pattern not found"))?;
    let base = Expect::new(wanted);
    Ok(CheckStep::Expect(Box::new(Expect {
        negated: options.negated,
        at_least: options.at_least,
        comment: options.comment,
        ok: options.ok.unwrap_or(base.ok),
        error: options.error,
        timeout: options.timeout.unwrap_or(base.timeout),
        on_success: options.on_success,
        on_error: options.on_error,
        code: options.code,
        ..base
    })))
}

/// Parses an option of `expect`. Returns false if `name` is not an option.
fn option(name: &str, words: &mut Words<'_>, parsing: &Parsing<'_>, options: &mut Options) -> Result<bool, RuleError> {
    let argument = |words: &mut Words<'_>| -> Result<Word, RuleError> {
        Ok(words.expect(&format!("'{name}' expects a string as argument"))?.clone())
    };
    let status = |word: &Word, permitted: &[CheckStatus], shown: &str| {
        CheckStatus::named(&word.text, permitted).ok_or_else(|| {
            let message = format!("'{name}' only supports {shown} status (got '{}').", word.text);
            RuleError::at(Some(word), message)
        })
    };
    match name {
        "comment" => options.comment = Some(comment_of(&argument(words)?)),
        "min-recv" => {
            let word = words.expect("'min-recv' expects a integer as argument")?.clone();
            let wrong = || RuleError::at(Some(&word), "'min-recv' expects -1 or an integer from 0 to INT_MAX");
            let number: i64 = word.text.parse().map_err(|_| wrong())?;
            options.at_least = match number {
                -1 => None,
                number => Some(usize::try_from(number).ok().filter(|n| *n <= i32::MAX as usize).ok_or_else(wrong)?),
            };
        }
        "ok-status" => {
            options.ok = Some(status(&argument(words)?, &OK, "'L4OK', 'L6OK', 'L7OK' or 'L7OKC'")?);
        }
        "error-status" => {
            options.error = Some(status(&argument(words)?, &ERRORS, "'L4CON', 'L6RSP', 'L7RSP' or 'L7STS'")?);
        }
        "tout-status" => {
            options.timeout = Some(status(&argument(words)?, &TIMEOUTS, "'L4TOUT', 'L6TOUT' or 'L7TOUT'")?);
        }
        "on-success" => options.on_success = Some(text_format(&argument(words)?, parsing)?),
        "on-error" => options.on_error = Some(text_format(&argument(words)?, parsing)?),
        "status-code" if words.peek().is_none() => {
            return Err(RuleError::new("'status-code' expects an expression as argument"));
        }
        "status-code" => {
            options.code = Some(parsing.expression(words).map_err(|error| RuleError {
                message: format!("error detected while parsing status-code expression : {}", error.message),
                ..error
            })?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn text_format(word: &Word, parsing: &Parsing<'_>) -> Result<LogFormat, RuleError> {
    format_of(word, Purpose::Text, parsing)
}

fn format_of(word: &Word, purpose: Purpose, parsing: &Parsing<'_>) -> Result<LogFormat, RuleError> {
    parsing.format_of(&word.text, purpose, word).map_err(|error| RuleError {
        message: format!("'{}' invalid log-format string ({})", word.text, error.message),
        ..error
    })
}

/// Compiles a regular expression and reports it if it has to be matched with PCRE2.
fn noted(parsing: &Parsing<'_>, word: &Word, ignore_case: bool) -> Result<Regex, RuleError> {
    let regex = Regex::new(&word.text, ignore_case).map_err(|error| RuleError::at(Some(word), error))?;
    parsing.names.lists().borrow_mut().note(parsing.names.line(), &regex);
    Ok(regex)
}

/// Parses the match of `expect`. `None` if `name` is not a match.
fn pattern(
    name: &str,
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
    is_http: bool,
) -> Result<Option<ExpectMatch>, RuleError> {
    let argument = |words: &mut Words<'_>| -> Result<Word, RuleError> {
        Ok(words.expect(&format!("'{name}' expects a <pattern> as argument"))?.clone())
    };
    let regex = |word: &Word| noted(parsing, word, false);
    Ok(Some(match (name, is_http) {
        ("string", _) => ExpectMatch::Bytes { bytes: bytes(&argument(words)?), binary: false },
        ("rstring", _) => ExpectMatch::Pattern { pattern: regex(&argument(words)?)?, binary: false },
        ("string-lf", _) => ExpectMatch::Format(Content::Text(Box::new(text_format(&argument(words)?, parsing)?))),
        ("binary", false) => ExpectMatch::Bytes { bytes: unhex(&argument(words)?)?, binary: true },
        ("rbinary", false) => ExpectMatch::Pattern { pattern: regex(&argument(words)?)?, binary: true },
        ("binary-lf", false) => ExpectMatch::Format(Content::Hex(Box::new(text_format(&argument(words)?, parsing)?))),
        ("status", true) => ExpectMatch::Status(statuses(&argument(words)?)?),
        ("rstatus", true) => ExpectMatch::StatusPattern(regex(&argument(words)?)?),
        ("hdr" | "fhdr", true) => field(name, words, parsing)?,
        _ => return Ok(None),
    }))
}

fn statuses(word: &Word) -> Result<Box<[RangeInclusive<u16>]>, RuleError> {
    let permitted = |found: &char| found.is_ascii_digit() || matches!(found, '-' | ',');
    if let Some(wrong) = word.text.chars().find(|found| !permitted(found)) {
        let message = format!("invalid character '{wrong}' in the list of status codes");
        return Err(RuleError::at(Some(word), message));
    }
    let number = |text: &str| text.parse::<u16>().ok();
    let ranges = word.text.split(',').filter(|part| !part.is_empty()).map(|part| {
        let range = match part.split_once('-') {
            Some((first, last)) => number(first).zip(number(last)).filter(|(first, last)| first <= last),
            None => number(part).map(|status| (status, status)),
        };
        let wrong = || RuleError::at(Some(word), format!("invalid range of status codes '{part}'"));
        range.map(|(first, last)| first..=last).ok_or_else(wrong)
    });
    ranges.collect()
}

fn field(name: &str, words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<ExpectMatch, RuleError> {
    let missing =
        || RuleError::new(format!("'{name}' expects at the name keyword as first argument followed by a pattern"));
    let keyword = words.take().ok_or_else(missing)?;
    if !matches!(keyword.text.as_str(), "name" | "name-lf") {
        return Err(missing());
    }
    let in_name = text_match(name, keyword.text.ends_with("-lf"), true, words, parsing)?.ok_or_else(missing)?;
    let value = match words.peek_text() {
        keyword @ ("value" | "value-lf") => {
            words.take();
            let found = text_match(name, keyword.ends_with("-lf"), false, words, parsing)?;
            let missing = || RuleError::new(format!("'{name}' expect a pattern with the value keyword"));
            Some(found.ok_or_else(missing)?)
        }
        "" => None,
        _ => return Err(RuleError::at(words.peek(), format!("'{name}' expect a pattern with the value keyword"))),
    };
    Ok(ExpectMatch::Field { whole: name == "fhdr", name: in_name, value })
}

fn text_match(
    name: &str,
    is_format: bool,
    is_name: bool,
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
) -> Result<Option<TextMatch>, RuleError> {
    let mut method = "str";
    if words.peek_text() == "-m" {
        words.take();
        method = words.take().map_or("", |word| &word.text);
    }
    let wrong = |message: String| Err(RuleError::new(message));
    if !matches!(method, "str" | "beg" | "end" | "sub" | "reg") {
        return wrong(format!("'{name}' : '-m' only supports 'str', 'beg', 'end', 'sub' or 'reg' (got '{method}')"));
    }
    let Some(word) = words.take() else { return Ok(None) };
    if is_format && method == "reg" {
        return wrong(format!("'{name}' : log-format patterns cannot be regular expressions"));
    }
    let how = match method {
        "beg" => FieldMatch::Begin,
        "end" => FieldMatch::End,
        "sub" => FieldMatch::Within,
        "reg" => FieldMatch::Pattern(noted(parsing, word, is_name)?),
        _ => FieldMatch::Whole,
    };
    let text = match is_format {
        true => Content::Text(Box::new(text_format(word, parsing)?)),
        false => Content::Bytes(bytes(word)),
    };
    Ok(Some(TextMatch { how, text }))
}
