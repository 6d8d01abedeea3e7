//! Loads the CA files and revocation lists that lines refer to. Must never verify a chain.

use super::line::Line;
use super::{SYSTEM_ROOTS, located, reason};
use crate::compile::Compiler;
use config::span::{Span, Spanned};
use config::spec::{BindTlsSpec, GlobalTlsSpec, TlsSpec};
use std::io;
use std::sync::Arc;
use tls::faults::Ignored;
use tls::pem::Wrong;
use tls::trust::{Authorities, Trusted};

impl Compiler<'_> {
    /// Returns the CA certificates and revocation lists of a line, which may be empty. `None` if an error was reported.
    pub(super) fn authorities(
        &mut self,
        written: &TlsSpec,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Arc<Authorities>> {
        let locate = |path: &Spanned<String>| match path.value.as_str() {
            "@system-ca" => path.value.clone(),
            name => located(name, global.ca_base.as_deref(), written.folder.as_deref()),
        };
        let key = (written.ca_file.as_ref().map(locate), written.crl_file.as_ref().map(locate));
        if let Some(known) = self.tls.authorities.get(&key) {
            return Some(Arc::clone(known));
        }
        let mut authorities = Authorities::default();
        if let (Some(written), Some(name)) = (&written.ca_file, &key.0) {
            authorities.roots = self.believed(name, "ca-file", written.span, line)?.certificates().to_vec();
            authorities.ca_file = Some(name.as_str().into());
        }
        if let (Some(written), Some(name)) = (&written.crl_file, &key.1) {
            authorities.revoked = self.believed(name, "crl-file", written.span, line)?.lists().to_vec();
            authorities.crl_file = Some(name.as_str().into());
        }
        let authorities = Arc::new(authorities);
        self.tls.authorities.insert(key, Arc::clone(&authorities));
        Some(authorities)
    }

    /// Returns the CAs of `ca-verify-file`, which are trusted but not advertised; `Some(None)` if it is not specified.
    /// `None` if an error was reported.
    #[expect(clippy::option_option, reason = "nobody to believe is no failure")]
    pub(super) fn silent_authorities(
        &mut self,
        written: &BindTlsSpec,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Option<Arc<Authorities>>> {
        let Some(path) = &written.ca_verify_file else { return Some(None) };
        let name = match path.value.as_str() {
            "@system-ca" => path.value.clone(),
            name => located(name, global.ca_base.as_deref(), written.common.folder.as_deref()),
        };
        let roots = self.believed(&name, "ca-verify-file", path.span, line)?.certificates().to_vec();
        let ca_file = Some(name.as_str().into());
        Some(Some(Arc::new(Authorities { roots, ca_file, ..Authorities::default() })))
    }

    /// Returns the ignored verification errors of client certificates. `None` if an error was reported.
    pub(super) fn ignored(&mut self, written: Option<&Spanned<String>>, keyword: &str, line: &Line) -> Option<Ignored> {
        let Some(list) = written else { return Some(Ignored::default()) };
        match Ignored::parse(&list.value) {
            Ok(ignored) => Some(ignored),
            Err(why) => {
                self.alert(list.span, line.form, format!("{}'{keyword}' : {why}", line.head));
                None
            }
        }
    }

    fn believed(&mut self, name: &str, keyword: &str, span: Span, line: &Line) -> Option<Trusted> {
        let parse = if keyword == "crl-file" { Trusted::read_lists } else { Trusted::read_certificates };
        if let Some(known) = self.tls.trusted.get(name) {
            let is_lists = matches!(known, Trusted::Lists(_));
            if is_lists == (keyword == "crl-file") {
                return Some(known.clone());
            }
        }
        if self.tls.is_running {
            self.alert(span, line.form, format!("{}'{keyword}' : unable to load {name}", line.head));
            return None;
        }
        let read = self.resolver.file_reader();
        let folder = (self.resolver.folder_reader())(name);
        let text = match folder {
            Some(mut names) => {
                names.sort();
                let all = names.iter().filter(|file| !file.starts_with('.'));
                let all = all.filter_map(|file| read(&format!("{}/{file}", name.trim_end_matches('/'))).ok());
                Ok(all.collect::<Vec<_>>().join(&b'\n'))
            }
            None if name == "@system-ca" => {
                SYSTEM_ROOTS.iter().find_map(|file| read(file).ok()).ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            None => read(name),
        };
        let why = match text {
            Err(error) => reason(&error),
            Ok(text) => match parse(&text) {
                Ok(found) => return Some(found),
                Err(Wrong::Nothing) => "no certificate or crl found".to_owned(),
                Err(Wrong::Broken(why)) => why,
            },
        };
        let message = format!("{}'{keyword}' : unable to load {name} ({why})", line.head);
        self.alert(span, line.form, message);
        None
    }
}
