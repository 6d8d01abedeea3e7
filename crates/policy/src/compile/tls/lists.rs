//! Certificate lists at run time: directories of `crt`, and lines that the runtime API adds. Must never change the
//! certificates of an address: the caller does.

use super::store::different_update;
use super::{KnownTls, Line, located};
use crate::compile::Compiler;
use crate::compile::added::NoResolver;
use crate::program::{CrtLines, CrtList, Program};
use config::crt_list::{self, CrtListLine};
use config::diagnostic::{Diagnostic, Form};
use config::span::{Span, Spanned};
use config::spec::{BindTlsSpec, GlobalTlsSpec, LoadSpec, Spec};
use std::sync::Arc;
use tls::certificate::{Certificate, Usage};
use tls::names::Row;
use tls::server::{Entry, ListLine, Settings};

impl Compiler<'_> {
    /// Returns the list of a directory of certificates. `None` if the name is not a directory.
    pub(super) fn folder_list(
        &mut self,
        path: &Spanned<String>,
        folder: Option<&str>,
        global: &GlobalTlsSpec,
        found: &[Arc<Certificate>],
    ) -> Option<Arc<CrtList>> {
        let name = located(&path.value, global.crt_base.as_deref(), folder);
        (self.resolver.folder_reader())(&name)?;
        let mut lines = CrtLines::default();
        for certificate in found {
            lines.push(0, &certificate.name, "", "");
        }
        Some(self.tls.name_list(name.trim_end_matches('/').into(), lines))
    }
}

/// Returns the entry of a list's line with its certificate.
fn entry(
    certificate: Arc<Certificate>,
    written: &CrtListLine,
    settings: Arc<Settings>,
    line: Option<ListLine>,
) -> Entry {
    let own = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect::<Vec<_>>();
    let is_filtered = !written.names.is_empty() || !written.excluded.is_empty();
    let names = if is_filtered { own(&written.names) } else { certificate.names.clone() };
    let row = Row { kind: certificate.kind, names, excluded: own(&written.excluded), is_default: false };
    Entry { certificate, row, is_filtered, settings, line }
}

/// Why a line cannot be added to a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddError {
    /// The line is invalid.
    Refused(String),
    /// An address does not accept it.
    Failed {
        /// Index of the address, from 0.
        place: usize,
        /// The name of the certificate.
        certificate: Box<str>,
        /// The reason.
        why: String,
    },
}

/// A compiled line for a list.
pub struct AddedLine {
    /// The name of the certificate.
    pub certificate: Box<str>,
    /// Options, as text.
    pub options: String,
    /// SNI filters, as text: names and excluded names.
    pub names: String,
    /// The addresses that use the list, each with the entry to add.
    pub entries: Vec<(Arc<tls::Server>, Entry)>,
}

/// Compiles a line for a list and all addresses that use it, in the program that was compiled from `spec`. `serial`
/// becomes the serial number of the line; `known` contains certificates and CA files, since no file is read.
///
/// # Errors
/// The line cannot be added.
pub fn add_to_list(
    spec: &Spec,
    program: &Program,
    list: &CrtList,
    serial: usize,
    text: &str,
    known: KnownTls,
) -> Result<AddedLine, AddError> {
    let global = &spec.global.tls;
    let read = |bind: &BindTlsSpec| {
        let bind = &BindTlsSpec { sources: Vec::new(), ..bind.clone() };
        let lines = crt_list::read(text, "CLI", bind, Span::default()).map_err(AddError::Refused)?;
        match <[CrtListLine; 1]>::try_from(lines) {
            Ok([line]) => Ok(line),
            Err(_) => Err(AddError::Refused("only one line of payload is supported!".to_owned())),
        }
    };
    let plain = read(&BindTlsSpec::default())?;
    let name = located(&plain.file, global.crt_base.as_deref(), None);
    let certificate = known.certificates.iter().find(|one| *one.name == *name).map(Arc::clone);
    let certificate = certificate.ok_or_else(|| AddError::Refused(format!("certificate '{name}' does not exist!")))?;
    let certificate = purposed(program, certificate, &plain.load).map_err(AddError::Refused)?;
    let (mut nobody, mut found) = (NoResolver(program), Vec::new());
    let mut compiler = Compiler::new(spec, &mut nobody, &mut found);
    compiler.tls.know(known);
    let line = Line { head: String::new(), form: Form::Bare, algorithms: <_>::default(), span: Span::default() };
    // A missing file is an error of the line itself, independent of the addresses.
    let trusted = compiler.authorities(&plain.options.common, global, &line).is_some()
        && compiler.silent_authorities(&plain.options, global, &line).is_some();
    if !trusted {
        return Err(AddError::Refused(first_alert(found)));
    }
    let users = program.tls.listeners.iter().filter(|listener| listener.lists.contains(&list.name));
    let mut entries = Vec::new();
    for (place, listener) in users.enumerate() {
        let own = read(&listener.written)?;
        let (_, owner) = &listener.owner;
        let tail = format!(" for bind '{}' at [{}].", listener.text, listener.place);
        let line = Line { algorithms: (format!("Proxy '{owner}': "), tail), span: listener.span, ..line.clone() };
        match compiler.bind_settings(&own.options, listener.traffic, global, &line) {
            Some(settings) => {
                let line = Some(list.line(serial));
                let entry = entry(Arc::clone(&certificate), &own, Arc::new(settings), line);
                entries.push((Arc::clone(&listener.server), entry));
            }
            None => {
                let (certificate, why) = (name.into(), first_alert(found));
                return Err(AddError::Failed { place, certificate, why });
            }
        }
    }
    Ok(AddedLine { certificate: name.into(), options: plain.written_options, names: plain.written_names, entries })
}

/// Returns the certificate with the purposes that a line specifies: a changed copy, if it is not in use yet.
///
/// # Errors
/// The certificate is in use for another purpose, or the line specifies something that needs a file or a section.
fn purposed(program: &Program, certificate: Arc<Certificate>, load: &LoadSpec) -> Result<Arc<Certificate>, String> {
    let name = &certificate.name;
    let words = [
        ("key", load.key.is_some()),
        ("ocsp", load.ocsp.is_some()),
        ("issuer", load.issuer.is_some()),
        ("sctl", load.sctl.is_some()),
        ("acme", load.acme.is_some() || !load.domains.is_empty() || !load.ips.is_empty()),
        ("generate-dummy", load.generate_dummy == Some(true)),
    ];
    if let Some((word, _)) = words.into_iter().find(|(_, is_written)| *is_written) {
        return Err(format!("'{word}' cannot be used in lines that are added at run time, '{name}'"));
    }
    let listeners = program.tls.listeners.iter();
    let is_stored = program.tls.stored.iter().any(|one| one.name == *name);
    let is_used = listeners.flat_map(|listener| listener.server.certificates()).any(|one| one.name == *name);
    if !load.has_options() && (is_stored || !is_used) {
        return Ok(certificate);
    }
    if !is_used {
        let usage = Usage { ocsp_update: load.ocsp_update, jwt: load.jwt == Some(true) };
        return Ok(if usage == certificate.usage { certificate } else { Arc::new(certificate.used_as(usage)) });
    }
    let refused = |why: &str| format!("'{name}' is already instantiated with incompatible parameters:\n {why}");
    let usual = program.ocsp.is_usual;
    let (before, now) = (certificate.usage.ocsp_update, load.ocsp_update);
    if before.unwrap_or(usual) != now.unwrap_or(usual) {
        return Err(refused(&different_update(before, now, usual)));
    }
    if load.jwt == Some(true) && !program.keys.tokens().allows(name.as_bytes()) {
        return Err(refused("Can't use the certificate previously defined without any keyword with these keywords:"));
    }
    Ok(certificate)
}

fn first_alert(found: Vec<Diagnostic>) -> String {
    found.into_iter().find(Diagnostic::is_alert).map(|alert| alert.message).unwrap_or_default()
}
