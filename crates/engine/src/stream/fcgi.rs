//! What a FastCGI application is told of a request: the parameters of CGI/1.1 and those of its rules (configuration manual,
//! section 10; RFC 3875, section 4.1), and what it writes to standard error. Must never read an answer.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base::buffer::Buffer;
use base64ct::{Base64, Encoding as _};
use config::spec::LogLevel;
use conn::upstream::Upstream;
use expression::pattern::{Places, Steps};
use live::trace::{Level, Subject, events};
use policy::program::{Backend, FcgiAction, FcgiApp};
use wire::date::Date;
use wire::fcgi;
use wire::http::{Framing, Head, target};

use crate::session::Session;
use crate::stream::evaluate::EvalContext;
use crate::stream::http::Client;
use crate::stream::reply::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// What `SERVER_SOFTWARE` says.
const SOFTWARE: &str = concat!("Weir ", env!("CARGO_PKG_VERSION"));

/// The path of a request makes no parameters.
const UNFIT: Failure = Failure { outcome: Outcome::new(Cause::Internal, Phase::Headers), status: 500, page: true };

/// How long its body is cannot be told.
const ENDLESS: Failure = Failure { outcome: Outcome::new(Cause::Proxy, Phase::Headers), status: 400, page: true };

/// What the rules of an application have made of a request.
pub struct Prepared {
    /// In the order of their names. Those of CGI/1.1 stand in the place of what they would be otherwise.
    parameters: BTreeMap<Box<[u8]>, Vec<u8>>,
    /// Names of fields that are passed although they are hidden.
    passed: Vec<Box<[u8]>>,
}

/// Runs the rules of the application of a backend, if it has one.
pub fn prepare(
    session: &Session,
    client: &Client,
    state: &SharedStreamState,
    backend: &Backend,
) -> Option<Box<Prepared>> {
    let app = backend.fcgi.as_ref()?;
    let mut prepared = Prepared { parameters: BTreeMap::new(), passed: Vec::new() };
    {
        let state = state.borrow();
        note_user(&state.request, &mut prepared.parameters);
        let view = EvalContext::request(session, &state).behind(client.conn.behind());
        view.lend(|context| {
            for rule in &app.rules {
                if rule.condition.as_ref().is_some_and(|condition| !condition.holds(context)) {
                    continue;
                }
                match &rule.action {
                    FcgiAction::PassHeader(name) => prepared.passed.push(name.clone()),
                    FcgiAction::SetParameter(name, format) => {
                        let mut value = Vec::new();
                        format.render_in(context, &mut value);
                        if !value.is_empty() {
                            prepared.parameters.insert(name.clone(), value);
                        }
                    }
                }
            }
        });
    }
    // No application changes the protocol.
    let request = &mut state.borrow_mut().request;
    if std::mem::take(&mut request.upgrade) {
        request.remove_all(b"upgrade");
    }
    Some(Box::new(prepared))
}

/// Who says to be asking, and how.
fn note_user(request: &Head, parameters: &mut BTreeMap<Box<[u8]>, Vec<u8>>) {
    let Some(value) = request.first(b"authorization") else { return };
    let (scheme, rest) = value.split_at(value.iter().position(|byte| *byte == b' ').unwrap_or(value.len()));
    parameters.insert(Box::from(&b"AUTH_TYPE"[..]), scheme.to_vec());
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return;
    }
    let text = std::str::from_utf8(rest.trim_ascii()).ok();
    let Some(decoded) = text.and_then(|text| Base64::decode_vec(text).ok()) else { return };
    let user = decoded.split(|byte| *byte == b':').next().unwrap_or_default();
    parameters.insert(Box::from(&b"REMOTE_USER"[..]), user.to_vec());
}

/// Writes what an application is told of a request. `length`: of its body, where that is known.
///
/// # Errors
/// The request cannot be told, or has no room there.
pub fn write_request(
    session: &Session,
    state: &StreamState,
    (app, prepared): (&FcgiApp, &Prepared),
    (length, closes): (Option<u64>, bool),
    out: &mut Buffer,
) -> Result<(), Failure> {
    let request = &state.request;
    let mut list = Parameters { prepared, list: Vec::with_capacity(32) };
    list.add_fields(request);
    let own = prepared.parameters.iter();
    list.list.extend(own.map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(&value[..]))));
    let script = Script::of(request, app).ok_or(UNFIT)?;
    list.add_script(request, app, script);
    let destination = state.destination(session);
    let host = || destination.map(|address| address.ip().to_string().into_bytes());
    list.add(b"SERVER_NAME", request.host().map(<[u8]>::to_vec).or_else(host).unwrap_or_default());
    list.add(b"SERVER_PORT", destination.map_or_else(String::new, |address| address.port().to_string()).into_bytes());
    list.add(b"SERVER_PROTOCOL", request.version_text());
    let client = state.client(session);
    list.add(b"REMOTE_ADDR", client.map_or_else(String::new, |address| address.ip().to_string()).into_bytes());
    list.add(b"REMOTE_PORT", client.map_or_else(String::new, |address| address.port().to_string()).into_bytes());
    list.add_files();
    if list.value(b"CONTENT_LENGTH").is_empty() {
        list.add(b"CONTENT_LENGTH", length.ok_or(ENDLESS)?.to_string().into_bytes());
    }
    list.add(b"SERVER_SOFTWARE", SOFTWARE.as_bytes());
    if session.tls().is_some() {
        list.add(b"HTTPS", b"on");
    }
    let keep = app.keep_conn && !closes;
    let has_body = request.framing.has_body() && length != Some(0);
    fcgi::encode_request(keep, has_body, list.sent(), out).map_err(|_| UNFIT)
}

/// Writes the request of a check with all of its body. It has no client, and runs no rules.
///
/// # Errors
/// The request cannot be told, or has no room there.
pub fn write_check(request: &Head, app: &FcgiApp, body: &[u8], out: &mut Buffer) -> Result<(), Failure> {
    let prepared = Prepared { parameters: BTreeMap::new(), passed: Vec::new() };
    let mut list = Parameters { prepared: &prepared, list: Vec::with_capacity(16) };
    list.add_fields(request);
    list.add_script(request, app, Script::of(request, app).ok_or(UNFIT)?);
    list.add(b"SERVER_NAME", request.host().map(<[u8]>::to_vec).unwrap_or_default());
    list.add(b"SERVER_PROTOCOL", request.version_text());
    list.add_files();
    if list.value(b"CONTENT_LENGTH").is_empty() {
        list.add(b"CONTENT_LENGTH", body.len().to_string().into_bytes());
    }
    list.add(b"SERVER_SOFTWARE", SOFTWARE.as_bytes());
    fcgi::encode_request(false, !body.is_empty(), list.sent(), out).map_err(|_| UNFIT)?;
    if body.is_empty() {
        return Ok(());
    }
    let length = u16::try_from(body.len()).map_err(|_| UNFIT)?;
    let records = [&fcgi::body_record(fcgi::REQUEST, length)[..], body, &fcgi::end_of_body(fcgi::REQUEST)]
        .map(|part| out.push(part));
    if records.contains(&false) { Err(UNFIT) } else { Ok(()) }
}

/// A name and its value.
type Pair<'p> = (Cow<'p, [u8]>, Cow<'p, [u8]>);

/// Parameters, in the order in which they are sent.
struct Parameters<'p> {
    prepared: &'p Prepared,
    list: Vec<Pair<'p>>,
}

impl<'p> Parameters<'p> {
    /// Adds one of CGI/1.1, unless a rule has set it.
    fn add(&mut self, name: &'static [u8], value: impl Into<Bytes<'p>>) {
        if !self.prepared.parameters.contains_key(name) {
            self.list.push((Cow::Borrowed(name), value.into().0));
        }
    }

    /// Adds what is run, and what for.
    fn add_script(&mut self, request: &'p Head, app: &'p FcgiApp, script: Script) {
        self.add(b"GATEWAY_INTERFACE", b"CGI/1.1");
        self.add(b"DOCUMENT_ROOT", &*app.docroot);
        self.add(b"SCRIPT_NAME", script.name);
        self.add(b"PATH_INFO", script.info);
        self.add(b"REQUEST_URI", request.target_on_wire());
        self.add(b"REQUEST_METHOD", request.method());
        self.add(b"QUERY_STRING", script.query);
    }

    /// Adds where the script is, and what its path leads to.
    fn add_files(&mut self) {
        let root = self.value(b"DOCUMENT_ROOT");
        let file = [&root[..], &self.value(b"SCRIPT_NAME")].concat();
        self.add(b"SCRIPT_FILENAME", file);
        let info = self.value(b"PATH_INFO");
        if !info.is_empty() {
            self.add(b"PATH_TRANSLATED", [&root[..], &info].concat());
        }
    }

    /// Those that are sent. CGI/1.1 has a query string, be it empty, with every request (RFC 3875, section 4.1.7).
    fn sent(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let is_sent = |(name, value): &&Pair<'_>| !value.is_empty() || **name == b"QUERY_STRING"[..];
        self.list.iter().filter(is_sent).map(|(name, value)| (&**name, &**value))
    }

    /// What a parameter is.
    fn value(&self, wanted: &[u8]) -> Vec<u8> {
        self.list.iter().find(|(name, _)| **name == *wanted).map_or_else(Vec::new, |(_, value)| value.to_vec())
    }

    /// Adds the fields of a request that an application may see.
    fn add_fields(&mut self, request: &'p Head) {
        for (name, value) in request.fields() {
            let passed = || self.prepared.passed.iter().any(|passed| **passed == *name);
            match name {
                b"content-length" => {
                    // Both name the same; a body that a filter has changed has no length.
                    if matches!(request.framing, Framing::Length(_)) {
                        self.add(b"CONTENT_LENGTH", value);
                    }
                }
                b"content-type" => self.add(b"CONTENT_TYPE", value),
                _ if fcgi::HIDDEN.contains(&name) && !passed() => {}
                _ => self.list.push((Cow::Owned(parameter(name)), Cow::Borrowed(value))),
            }
        }
    }
}

/// A value that is lent or owned.
struct Bytes<'p>(Cow<'p, [u8]>);

impl<'p> From<&'p [u8]> for Bytes<'p> {
    fn from(bytes: &'p [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }
}

impl<'p, const N: usize> From<&'p [u8; N]> for Bytes<'p> {
    fn from(bytes: &'p [u8; N]) -> Self {
        Self(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Cow::Owned(bytes))
    }
}

/// `HTTP_…` of a field's name.
fn parameter(name: &[u8]) -> Vec<u8> {
    let mapped = name.iter().map(|byte| if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { b'_' });
    b"HTTP_".iter().copied().chain(mapped).collect()
}

/// What a request's target says.
struct Script {
    name: Vec<u8>,
    info: Vec<u8>,
    query: Vec<u8>,
}

impl Script {
    /// `None`: it has no path, one that cannot be decoded, or one that `path-info` cannot judge.
    fn of(request: &Head, app: &FcgiApp) -> Option<Self> {
        let target = request.target();
        let rest = &target[target::path(target)?..];
        let rest = &rest[..memchr::memchr(b'#', rest).unwrap_or(rest.len())];
        let (path, query) = match memchr::memchr(b'?', rest) {
            Some(mark) => (&rest[..mark], &rest[mark + 1..]),
            None => (rest, &[][..]),
        };
        let path = if path.is_empty() { b"/".to_vec() } else { decoded(path)? };
        let (mut name, info) = split(path, app)?;
        if let Some(script) = app.script.as_deref().filter(|_| name.ends_with(b"/")) {
            name.extend_from_slice(script);
        }
        Some(Self { name, info, query: query.to_vec() })
    }
}

/// The name of the script and what follows it, by `path-info`.
fn split(path: Vec<u8>, app: &FcgiApp) -> Option<(Vec<u8>, Vec<u8>)> {
    let Some(regex) = &app.path_info else { return Some((path, Vec::new())) };
    if memchr::memchr2(b'\n', 0, &path).is_some() {
        return None;
    }
    let (mut places, steps) = (Places::default(), Steps::for_text(path.len()));
    let mut search = regex.search(&mut places, &path, (&steps, true)).ok()?;
    if search.next(0).ok()?.is_none() {
        return Some((path, Vec::new()));
    }
    let group = |number| search.get(number).and_then(|(start, end)| path.get(start..end)).map(<[u8]>::to_vec);
    let (name, info) = (group(1), group(2).unwrap_or_default());
    match name {
        Some(name) => Some((name, info)),
        None => Some((path, Vec::new())),
    }
}

/// A path without percent signs.
fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        text.push(if *byte == b'%' {
            let (digits, behind) = rest.split_first_chunk::<2>()?;
            rest = behind;
            let digit = |byte: u8| char::from(byte).to_digit(16);
            (digit(digits[0])? << 4 | digit(digits[1])?) as u8
        } else {
            *byte
        });
    }
    Some(text)
}

/// Logs what an application has written to standard error (`log-stderr`).
pub fn log_errors(session: &Session, backend: &Backend, upstream: &mut Upstream<'_>) {
    let Some(app) = &backend.fcgi else { return };
    for message in upstream.take_errors() {
        let text = || (format!("rcvd FCGI STDERR record: {}", printable(&message)), String::new());
        session.worker.trace(&events::FCGI_STDERR, Level::User, Subject::default, text);
        if let Some(route) = session.generation().logs.application(app.index) {
            session.worker.logger.say(route, LogLevel::Err, &printable(&message));
        }
    }
}

/// A message on one line.
fn printable(message: &[u8]) -> String {
    let show = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
    message.iter().map(show).collect()
}

/// Dates an answer that says no date, as the one who receives it first (RFC 9110, section 6.6.1).
pub fn date(response: &mut Head) {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    if response.contains(b"date") {
        return;
    }
    let seconds = rt::wall().seconds;
    let Date { year, day, hour, minute, second, .. } = Date::since_epoch(seconds);
    let month = String::from_utf8_lossy(Date::since_epoch(seconds).month_name()).into_owned();
    let weekday = DAYS[seconds.div_euclid(86_400).rem_euclid(7) as usize];
    let text = format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT");
    response.append(b"date", text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_whole_or_not_at_all() {
        let rows: &[(&str, Option<&str>)] =
            &[("/a", Some("/a")), ("/a%2fb+c", Some("/a/b+c")), ("/%", None), ("/%2", None), ("/%zz", None)];
        for (path, expected) in rows {
            assert_eq!(decoded(path.as_bytes()).as_deref(), expected.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn names_of_parameters() {
        assert_eq!(parameter(b"x-forwarded-for"), b"HTTP_X_FORWARDED_FOR");
        assert_eq!(parameter(b"a.b"), b"HTTP_A_B");
    }

    #[test]
    fn messages_stay_on_one_line() {
        assert_eq!(printable(b"oops one\nand\ttwo\x7f\xc3\xa9"), "oops one.and.two...");
    }

    #[test]
    fn who_asks_is_told_by_the_scheme() {
        let rows: &[(&str, &[(&str, &str)])] = &[
            ("Basic dXNlcjpwYXNz", &[("AUTH_TYPE", "Basic"), ("REMOTE_USER", "user")]),
            ("bAsic  dXNlcg==", &[("AUTH_TYPE", "bAsic"), ("REMOTE_USER", "user")]),
            ("Basic !", &[("AUTH_TYPE", "Basic")]),
            ("Bearer x", &[("AUTH_TYPE", "Bearer")]),
            ("Negotiate", &[("AUTH_TYPE", "Negotiate")]),
        ];
        for (value, expected) in rows {
            let mut head = Head::new();
            head.append(b"authorization", value.as_bytes());
            let mut parameters = BTreeMap::new();
            note_user(&head, &mut parameters);
            let found: Vec<_> = parameters.iter().map(|(name, value)| (&**name, &value[..])).collect();
            let expected: Vec<_> = expected.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
