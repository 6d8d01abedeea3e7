//! Parameters of a FastCGI request: those of CGI/1.1 and those of its rules (configuration manual, section 10; RFC 3875, section
//! 4.1), and the application's messages on standard error. Must never read a response.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base::buffer::Buffer;
use config::spec::LogLevel;
use conn::upstream::Upstream;
use live::trace::{Level, Subject, events};
use policy::program::{Backend, FcgiApp};
use wire::fcgi;
use wire::http::Head;

use crate::fcgi_request::{FcgiParameters, LENGTH, Parameters, Script, UNFIT, written};
use crate::session::Session;
use crate::short_text::ShortText;
use crate::stream::context::RequestContext;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::Worker;

/// Failure of a request whose body has no known length.
const ENDLESS: Failure = Failure { outcome: Outcome::new(Cause::Invalid, Phase::Headers), status: 400, page: true };

/// Runs the rules of the application of a backend, if it has one.
pub fn prepare(context: &RequestContext<'_>, backend: &Backend) -> Option<FcgiParameters> {
    let app = backend.fcgi.as_ref()?;
    let mut prepared = FcgiParameters::default();
    {
        let state = context.state.borrow();
        note_user(&state.request, &mut prepared.parameters);
        if !app.rules.is_empty() {
            let view = EvalContext::request(context.session, &state).behind(context.client.conn.behind());
            view.lend(|context| app.rules.iter().for_each(|rule| prepared.perform(rule, context)));
        }
    }
    // FastCGI does not support protocol upgrades.
    let request = &mut context.state.borrow_mut().request;
    if std::mem::take(&mut request.upgrade) {
        request.remove_all(b"upgrade");
    }
    Some(prepared)
}

/// Sets the parameters of the request's credentials.
fn note_user(request: &Head, parameters: &mut BTreeMap<Box<[u8]>, Vec<u8>>) {
    if let Some(value) = request.first(b"authorization") {
        note_credentials(value, parameters);
    }
}

#[cold]
fn note_credentials(value: &[u8], parameters: &mut BTreeMap<Box<[u8]>, Vec<u8>>) {
    let (scheme, rest) = value.split_at(value.iter().position(|byte| *byte == b' ').unwrap_or(value.len()));
    parameters.insert(Box::from(&b"AUTH_TYPE"[..]), scheme.to_vec());
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return;
    }
    let Some(decoded) = base::base64::decoded_strictly(rest.trim_ascii()) else { return };
    let user = decoded.split(|byte| *byte == b':').next().unwrap_or_default();
    parameters.insert(Box::from(&b"REMOTE_USER"[..]), user.to_vec());
}

/// Writes the parameters of a request. `length`: of its body, if known.
///
/// # Errors
/// The request cannot be encoded, or does not fit; nothing was written.
pub fn write_request(
    session: &Session,
    state: &StreamState,
    app: &FcgiApp,
    prepared: &FcgiParameters,
    length: Option<u64>,
    closes: bool,
    out: &mut Buffer,
) -> Result<(), Failure> {
    let request = &state.request;
    let script = Script::of(request, app).ok_or(UNFIT)?;
    let has_body = request.framing.has_body() && length != Some(0);
    written(out, app.keep_conn && !closes, has_body, prepared, |told| {
        told.fields(request);
        told.set_by_rules();
        told.script(request, app, &script);
        let (client, destination) = (state.client(session), state.destination(session));
        match (request.host(), destination) {
            (Some(host), _) => told.meta(b"SERVER_NAME", host),
            (None, Some(address)) => told.meta(b"SERVER_NAME", &ShortText::address(address.ip())),
            (None, None) => {}
        }
        told.meta(b"SERVER_PROTOCOL", request.version_text());
        told.connection(session, client, destination);
        told.files(app, &script);
        if !told.tells_length {
            told.meta(LENGTH, &ShortText::number(length.ok_or(ENDLESS)?));
        }
        Ok(())
    })
}

impl Parameters<'_, '_> {
    /// Writes the parameters about the client's connection, which are usually the same as for the previous request.
    fn connection(&mut self, session: &Session, client: Option<SocketAddr>, destination: Option<SocketAddr>) {
        if !self.is_plain {
            return connection(session, client, destination, |name, value| self.meta(name, value));
        }
        session.lend_written_ends(
            client,
            destination,
            |out| connection(session, client, destination, |name, value| fcgi::push_parameter(name, value, out)),
            |written| self.writer.parameters(written),
        );
    }
}

/// Passes the parameters about the connection's addresses to `tell`.
fn connection(
    session: &Session,
    client: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    mut tell: impl FnMut(&[u8], &[u8]),
) {
    if let Some(address) = destination {
        tell(b"SERVER_PORT", &ShortText::number(address.port().into()));
    }
    if let Some(address) = client {
        tell(b"REMOTE_ADDR", &ShortText::address(address.ip()));
        tell(b"REMOTE_PORT", &ShortText::number(address.port().into()));
    }
    if session.tls().is_some() {
        tell(b"HTTPS", b"on");
    }
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

/// Replaces bytes that are not printable.
fn printable(message: &[u8]) -> String {
    let show = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
    message.iter().map(show).collect()
}

/// Adds Date to a response without one, as its first recipient (RFC 9110, section 6.6.1).
pub fn date(worker: &Worker, response: &mut Head) {
    if !response.contains(b"date") {
        response.append_plain("date", &worker.http_date());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
