//! The certificates of a `bind` line: from its own keywords, from crt-lists, from `ssl-f-use` of its frontend. Must
//! never load a file except a crt-list.

use super::line::{BindTlsContext, Line};
use super::{located, reason};
use crate::compile::Compiler;
use crate::compile::tls::store::NamedCertificates;
use crate::program::{CrtLines, TlsTraffic};
use config::crt_list::{self, CrtListLine};
use config::diagnostic::{Diagnostic, Form};
use config::span::Spanned;
use config::spec::{BindTlsSpec, CertificateSource, GlobalTlsSpec, UsedCertificateSpec};
use std::sync::Arc;
use tls::certificate::Certificate;
use tls::names::Row;
use tls::server::{Entry, ListLine, Settings};

/// A certificate of a line, in order.
pub(super) struct ListedCertificate {
    pub(super) entry: Entry,
    /// The certificate is the first of its source, or of the same bundle: a default if the source is the first one.
    pub(super) is_first: bool,
}

impl ListedCertificate {
    /// Adds certificates for all of their names; the first entry is a default.
    pub(super) fn add_whole(entries: &mut Vec<Self>, own: Vec<Arc<Certificate>>, settings: &Arc<Settings>) {
        for certificate in own {
            let (names, is_default) = (certificate.names.clone(), entries.is_empty());
            let row = Row { kind: certificate.kind, names, excluded: Vec::new(), is_default };
            let entry = Entry { certificate, row, is_filtered: false, settings: Arc::clone(settings), line: None };
            entries.push(Self { entry, is_first: true });
        }
    }

    /// Marks the certificate as a default.
    pub(super) fn mark_default(&mut self) {
        self.entry.row.is_default = true;
    }
}

/// Compiled settings, shared by lines with the same options.
type SettingsCache = Vec<(BindTlsSpec, Arc<Settings>)>;

impl Compiler<'_> {
    /// Returns the certificates of one keyword of a line.
    pub(super) fn written_source(
        &mut self,
        source: CertificateSource,
        path: &Spanned<String>,
        context: &BindTlsContext<'_>,
        settings: &Arc<Settings>,
    ) -> Option<Vec<ListedCertificate>> {
        if source == CertificateSource::List {
            return self.list(path, context);
        }
        let BindTlsContext { written, global, line, .. } = *context;
        let is_default = source == CertificateSource::Default;
        let NamedCertificates { certificates, is_bundle } =
            self.certificates(path, written.common.folder.as_deref(), global, line)?;
        let folder = self.folder_list(path, written.common.folder.as_deref(), global, &certificates);
        let listed = certificates.into_iter().enumerate().map(|(place, certificate)| {
            let names = certificate.names.clone();
            let row = Row { kind: certificate.kind, names, excluded: Vec::new(), is_default };
            let line = folder.as_ref().map(|list| list.line(place));
            let entry = Entry { certificate, row, is_filtered: false, settings: Arc::clone(settings), line };
            ListedCertificate { entry, is_first: place == 0 || is_bundle }
        });
        Some(listed.collect())
    }

    /// Returns the certificates of a `crt-list`.
    fn list(&mut self, path: &Spanned<String>, context: &BindTlsContext<'_>) -> Option<Vec<ListedCertificate>> {
        let BindTlsContext { written, traffic, global, line } = *context;
        let name = located(&path.value, None, written.common.folder.as_deref());
        let head = format!("{}'crt-list' : ", line.head);
        let text = match (self.resolver.file_reader())(&name) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("{head}cannot open file '{name}' : {}", reason(&error));
                self.alert(path.span, line.form, message);
                return None;
            }
        };
        // Each line of the list inherits the options of the `bind` line, not its certificates.
        let bind = BindTlsSpec { sources: Vec::new(), ..written.clone() };
        let lines = match crt_list::read(&String::from_utf8_lossy(&text), &name, &bind, path.span) {
            Ok(lines) => lines,
            Err(why) => {
                self.alert(path.span, line.form, format!("{head}{why}"));
                return None;
            }
        };
        let line = Line { head, ..line.clone() };
        let (mut listed, mut known, mut failed) = (Vec::new(), SettingsCache::new(), false);
        let text_lines = text.split(|byte| *byte == b'\n').count() - usize::from(text.ends_with(b"\n"));
        let mut lines_known = CrtLines { last_number: text_lines, ..CrtLines::default() };
        let list: Arc<str> = name.as_str().into();
        for one in &lines {
            let is_wild = one.names.iter().any(|name| name.starts_with('*'));
            if !one.excluded.is_empty() && !is_wild {
                let message = format!(
                    "crt-list: negative filters on crt-list line \"{}\" without a positive wildcard filter won't do anything!",
                    one.file
                );
                self.out.push(Diagnostic::warning(path.span, message).with_form(Form::ParsingTight));
            }
            let place = format!("'{}' in crt-list '{name}' line {}, ", one.file, one.number);
            match self.listed(one, &place, traffic, global, &line, &mut known) {
                Some(mut found) => {
                    for own in &mut found {
                        let certificate = &own.entry.certificate.name;
                        let serial =
                            lines_known.push(one.number, certificate, &one.written_options, &one.written_names);
                        own.entry.line = Some(ListLine { list: Arc::clone(&list), serial });
                    }
                    listed.extend(found);
                }
                None => failed = true,
            }
        }
        self.tls.name_list(list, lines_known);
        // Each certificate of a bundle is a line of its own: only the first one is the first of its source.
        listed.iter_mut().skip(1).for_each(|listed| listed.is_first = false);
        if failed { None } else { Some(listed) }
    }

    /// Returns the certificates of `ssl-f-use` lines, the last line first, as in HAProxy. They form a list with the
    /// name of the frontend, prefixed by `@` (configuration manual, "ssl-f-use").
    pub(super) fn used_list(
        &mut self,
        frontend: &str,
        used: &[UsedCertificateSpec],
        context: &BindTlsContext<'_>,
    ) -> Option<Vec<ListedCertificate>> {
        if used.is_empty() {
            return Some(Vec::new());
        }
        let found: Vec<_> = used.iter().map(|used| self.used(used, context)).collect();
        let name: Arc<str> = format!("@{frontend}").into();
        let (mut listed, mut lines) = (Vec::new(), CrtLines::default());
        for (used, found) in used.iter().zip(found).rev() {
            let options = crt_list::printed_use(used);
            for mut own in found? {
                let serial = lines.push(0, &own.entry.certificate.name, &options, "");
                own.entry.line = Some(ListLine { list: Arc::clone(&name), serial });
                listed.push(own);
            }
        }
        self.tls.name_list(name, lines);
        Some(listed)
    }

    /// Returns the certificates of an `ssl-f-use` line.
    fn used(&mut self, used: &UsedCertificateSpec, context: &BindTlsContext<'_>) -> Option<Vec<ListedCertificate>> {
        let BindTlsContext { written, traffic, global, line } = *context;
        let place = self.place(used.span);
        let bind = BindTlsSpec { sources: Vec::new(), ..written.clone() };
        // Invalid keywords were reported by the parser.
        let one = crt_list::used(used, &place, &bind).ok()?;
        let file = place.rsplit_once(':').map_or(&*place, |(file, _)| file);
        let said = format!("'{}' in crt-list '{file}' line {}, ", one.file, one.number);
        let line = Line { head: String::new(), span: used.span, ..line.clone() };
        self.listed(&one, &said, traffic, global, &line, &mut SettingsCache::new())
    }

    /// Returns the certificates of one line of a list. `place` is the prefix of messages about conflicts with other
    /// lines.
    fn listed(
        &mut self,
        one: &CrtListLine,
        place: &str,
        traffic: TlsTraffic,
        global: &GlobalTlsSpec,
        line: &Line,
        known: &mut SettingsCache,
    ) -> Option<Vec<ListedCertificate>> {
        let settings = match known.iter().find(|(options, _)| *options == one.options) {
            Some((_, settings)) => Some(Arc::clone(settings)),
            None => self.bind_settings(&one.options, traffic, global, line).map(Arc::new),
        };
        let span = if one.load.crt.is_some() { one.load.span } else { line.span };
        let file = Spanned::new(one.file.clone(), span);
        let found = self.defined(&file, &one.load, place, global, line);
        let (settings, found) = (settings?, found?);
        if !known.iter().any(|(options, _)| *options == one.options) {
            known.push((one.options.clone(), Arc::clone(&settings)));
        }
        let own = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect::<Vec<_>>();
        let has_filters = !one.names.is_empty() || !one.excluded.is_empty();
        let entry = |certificate: Arc<Certificate>| {
            let names = if has_filters { own(&one.names) } else { certificate.names.clone() };
            let row = Row { kind: certificate.kind, names, excluded: own(&one.excluded), is_default: false };
            Entry { certificate, row, is_filtered: has_filters, settings: Arc::clone(&settings), line: None }
        };
        let all = found.certificates.into_iter().map(entry).map(|entry| ListedCertificate { entry, is_first: true });
        Some(all.collect())
    }
}
