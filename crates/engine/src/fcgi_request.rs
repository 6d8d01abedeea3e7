//! Writes requests of FastCGI: parameters of CGI/1.1 and of rules (RFC 3875, section 4.1). Must never read a response.

use base::hex;
use std::borrow::Cow;
use std::collections::BTreeMap;

use base::buffer::Buffer;
use expression::pattern::{Places, Steps};
use expression::sample;
use policy::program::{FcgiAction, FcgiApp, FcgiRule};
use wire::fcgi::{self, RequestWriter};
use wire::http::{Framing, Head, target};

use crate::short_text::ShortText;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};

/// The path of a request cannot be converted to parameters.
pub(crate) const UNFIT: Failure =
    Failure { outcome: Outcome::new(Cause::Internal, Phase::Headers), status: 500, page: true };

/// Results of an application's rules for a request.
#[derive(Default)]
pub struct FcgiParameters {
    /// Parameters by name. They replace the values of CGI/1.1.
    pub(crate) parameters: BTreeMap<Box<[u8]>, Vec<u8>>,
    /// Names of fields that are passed although they are hidden by default.
    pub(crate) passed: Vec<Box<[u8]>>,
}

impl FcgiParameters {
    /// Returns the value that rules have set for a parameter, else `own`.
    pub(crate) fn or<'v>(&'v self, name: &[u8], own: &'v [u8]) -> &'v [u8] {
        self.parameters.get(name).map_or(own, Vec::as_slice)
    }

    /// Executes a rule.
    pub(crate) fn perform(&mut self, rule: &FcgiRule, context: &sample::Context<'_>) {
        if rule.condition.as_ref().is_some_and(|condition| !condition.holds(context)) {
            return;
        }
        match &rule.action {
            FcgiAction::PassHeader(name) => self.passed.push(name.clone()),
            FcgiAction::SetParameter(name, format) => {
                let mut value = Vec::new();
                format.render_in(context, &mut value);
                if !value.is_empty() {
                    self.parameters.insert(name.clone(), value);
                }
            }
        }
    }

    /// Whether a rule passes a field that is hidden by default.
    pub(crate) fn passes(&self, name: &[u8]) -> bool {
        self.passed.iter().any(|passed| **passed == *name)
    }
}

/// Writes the request of a check with all of its body. It has no client, and runs no rules.
///
/// # Errors
/// The request cannot be encoded, or does not fit.
pub fn write_check(request: &Head, app: &FcgiApp, body: &[u8], out: &mut Buffer) -> Result<(), Failure> {
    let script = Script::of(request, app).ok_or(UNFIT)?;
    written(out, false, !body.is_empty(), &FcgiParameters::default(), |told| {
        told.fields(request);
        told.script(request, app, &script);
        told.meta(b"SERVER_NAME", request.host().unwrap_or_default());
        told.meta(b"SERVER_PROTOCOL", request.version_text());
        told.files(app, &script);
        if !told.tells_length {
            told.meta(LENGTH, &ShortText::number(body.len() as u64));
        }
        Ok(())
    })?;
    if body.is_empty() {
        return Ok(());
    }
    let length = u16::try_from(body.len()).map_err(|_| UNFIT)?;
    let records = [&fcgi::body_record(fcgi::REQUEST, length)[..], body, &fcgi::end_of_body(fcgi::REQUEST)]
        .map(|part| out.push(part));
    if records.contains(&false) { Err(UNFIT) } else { Ok(()) }
}

/// Writes a request with the parameters that `tell` adds; nothing if that fails.
pub(crate) fn written(
    out: &mut Buffer,
    keep: bool,
    has_body: bool,
    prepared: &FcgiParameters,
    tell: impl FnOnce(&mut Parameters<'_, '_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let tells_length = prepared.parameters.contains_key(LENGTH);
    let is_plain = prepared.parameters.is_empty();
    let mut told = Parameters { prepared, writer: RequestWriter::begin(keep, out.spare_mut()), is_plain, tells_length };
    tell(&mut told)?;
    let length = told.writer.end(has_body).map_err(|_| UNFIT)?;
    out.advance(length);
    Ok(())
}

/// Name of a parameter that a field may have set already.
pub(crate) const LENGTH: &[u8] = b"CONTENT_LENGTH";

/// Name of the parameter that CGI/1.1 requires in every request, even if empty (RFC 3875, section 4.1.7).
pub(crate) const QUERY: &[u8] = b"QUERY_STRING";

/// Writer of parameters.
pub(crate) struct Parameters<'p, 'o> {
    pub(crate) prepared: &'p FcgiParameters,
    pub(crate) writer: RequestWriter<'o>,
    /// Rules have set no parameter.
    pub(crate) is_plain: bool,
    /// CONTENT_LENGTH was written, or is set by a rule.
    pub(crate) tells_length: bool,
}

impl Parameters<'_, '_> {
    /// Writes a parameter of CGI/1.1, unless a rule has set it or it is empty.
    pub(crate) fn meta(&mut self, name: &[u8], value: &[u8]) {
        if !value.is_empty() && self.is_own(name) {
            self.writer.parameter(name, value);
        }
    }

    /// As [`Parameters::meta`], with a value in two parts.
    fn joined(&mut self, name: &[u8], value: [&[u8]; 2]) {
        if value.iter().any(|part| !part.is_empty()) && self.is_own(name) {
            self.writer.joined(name, value);
        }
    }

    /// Whether no rule has set a parameter.
    #[inline]
    fn is_own(&self, name: &[u8]) -> bool {
        self.is_plain || !self.prepared.parameters.contains_key(name)
    }

    /// Writes the parameters that rules have set. No value is empty.
    pub(crate) fn set_by_rules(&mut self) {
        for (name, value) in &self.prepared.parameters {
            self.writer.parameter(name, value);
        }
    }

    /// Writes the parameters about the script and the request line.
    pub(crate) fn script(&mut self, request: &Head, app: &FcgiApp, script: &Script<'_>) {
        if self.is_plain {
            self.writer.parameters(&app.constant);
        } else {
            app.constants().for_each(|(name, value)| self.meta(name, value));
        }
        self.meta(b"SCRIPT_NAME", &script.name);
        self.meta(b"PATH_INFO", &script.info);
        self.meta(b"REQUEST_URI", request.target_on_wire());
        self.meta(b"REQUEST_METHOD", request.method());
        if self.is_own(QUERY) {
            self.writer.parameter(QUERY, script.query);
        }
    }

    /// Writes the file names of the script and of its path info.
    pub(crate) fn files(&mut self, app: &FcgiApp, script: &Script<'_>) {
        let root = self.prepared.or(b"DOCUMENT_ROOT", &app.docroot);
        self.joined(b"SCRIPT_FILENAME", [root, self.prepared.or(b"SCRIPT_NAME", &script.name)]);
        let info = self.prepared.or(b"PATH_INFO", &script.info);
        if !info.is_empty() {
            self.joined(b"PATH_TRANSLATED", [root, info]);
        }
    }

    /// Writes the fields of a request that an application may receive.
    pub(crate) fn fields(&mut self, request: &Head) {
        for (name, value) in request.fields() {
            match name {
                b"content-length" => {
                    // Both are the same; a body that a filter has changed has no length.
                    if matches!(request.framing, Framing::Length(_)) {
                        self.meta(LENGTH, value);
                        self.tells_length |= !value.is_empty();
                    }
                }
                b"content-type" => self.meta(b"CONTENT_TYPE", value),
                _ if fcgi::is_hidden(name) && !self.prepared.passes(name) => {}
                _ if value.is_empty() => {}
                _ => self.writer.field(name, value),
            }
        }
    }
}

/// Text of a request, unchanged or changed.
pub(crate) type Text<'r> = Cow<'r, [u8]>;

/// Script name, path info and query of a request's target.
pub(crate) struct Script<'r> {
    pub(crate) name: Text<'r>,
    pub(crate) info: Text<'r>,
    pub(crate) query: &'r [u8],
}

impl<'r> Script<'r> {
    /// Parses a target. `None`: it has no path, one that cannot be decoded, or one that `path-info` cannot match.
    pub(crate) fn of(request: &'r Head, app: &FcgiApp) -> Option<Self> {
        let target = request.target();
        let rest = &target[target::path(target)?..];
        let (path, query) = match memchr::memchr2(b'?', b'#', rest) {
            Some(mark) if rest[mark] == b'?' => {
                let behind = &rest[mark + 1..];
                (&rest[..mark], &behind[..memchr::memchr(b'#', behind).unwrap_or(behind.len())])
            }
            Some(mark) => (&rest[..mark], &[][..]),
            None => (rest, &[][..]),
        };
        let path = if path.is_empty() { Cow::Borrowed(&b"/"[..]) } else { decoded(path)? };
        let (mut name, info) = split(path, app)?;
        if let Some(script) = app.script.as_deref().filter(|_| name.ends_with(b"/")) {
            name.to_mut().extend_from_slice(script);
        }
        Some(Self { name, info, query })
    }
}

/// Splits a path into script name and path info, by `path-info`.
fn split<'r>(path: Text<'r>, app: &FcgiApp) -> Option<(Text<'r>, Text<'r>)> {
    let nothing = Cow::Borrowed(&[][..]);
    let Some(regex) = &app.path_info else { return Some((path, nothing)) };
    if memchr::memchr2(b'\n', 0, &path).is_some() {
        return None;
    }
    let (mut places, steps) = (Places::default(), Steps::for_text(path.len()));
    let mut search = regex.search(&mut places, &path, &steps, true).ok()?;
    if search.next(0).ok()?.is_none() {
        return Some((path, nothing));
    }
    let group = |number| search.get(number).and_then(|(start, end)| path.get(start..end)).map(<[u8]>::to_vec);
    let (name, info) = (group(1), group(2).unwrap_or_default());
    match name {
        Some(name) => Some((name.into(), info.into())),
        None => Some((path, nothing)),
    }
}

/// Decodes the percent-encoding of a path.
fn decoded(path: &[u8]) -> Option<Text<'_>> {
    if memchr::memchr(b'%', path).is_none() {
        return Some(path.into());
    }
    let mut text = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        text.push(if *byte == b'%' {
            let (digits, behind) = rest.split_first_chunk::<2>()?;
            rest = behind;
            hex::byte(*digits)?
        } else {
            *byte
        });
    }
    Some(text.into())
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
}
