//! Compiles the parameters of the internal HTTP client: its name servers and trusted CAs. Must never send a request.

use super::Compiler;
use super::names::DEFAULT_RESOLVERS;
use super::tls::SYSTEM_ROOTS;
use crate::program::{HttpClient, Resolvers};
use config::diagnostic::Form;
use config::spec::GlobalSpec;
use std::sync::Arc;
use std::time::Duration;
use tls::client;
use tls::pem;
use tls::verify::Authorities;

impl Compiler<'_> {
    /// Compiles the keywords of the `global` section, with these `resolvers` sections.
    pub(super) fn http_client(&mut self, global: &GlobalSpec, sections: &[Resolvers]) -> HttpClient {
        let written = &global.http_client;
        let wanted = written.resolvers.as_ref().map_or(DEFAULT_RESOLVERS, |name| name.value.as_str());
        let section = sections.iter().position(|section| &*section.name == wanted);
        if let Some(name) = written.resolvers.as_ref().filter(|_| section.is_none() && !written.resolves_nothing) {
            let message =
                format!("Proxy '<HTTPCLIENT>': Can't find resolvers section '{wanted}' for do-resolve action.");
            self.alert(name.span, Form::Bare, message);
        }
        let connect = written.connect_timeout.map_or(Duration::from_secs(5), Duration::from_millis);
        HttpClient {
            section: section.filter(|_| !written.resolves_nothing),
            prefers_ipv4: written.prefers_ipv4,
            retries: written.retries.unwrap_or(3),
            connect: Some(connect).filter(|time| !time.is_zero()),
            tls: self.http_client_tls(global),
            script_tls: if global.lua.scripts.is_empty() {
                None
            } else {
                let settings = client::Settings { resumes: true, ..client::Settings::default() };
                tls::Client::new(settings).ok().map(Arc::new)
            },
        }
    }

    /// Compiles the TLS parameters. `None` if the system's root certificates cannot be read, or an error was reported.
    fn http_client_tls(&mut self, global: &GlobalSpec) -> Option<Arc<tls::Client>> {
        let written = &global.http_client;
        let read = self.resolver.file_reader();
        let authorities = match &written.ca_file {
            None if written.trusts_servers => None,
            None => Some(SYSTEM_ROOTS.iter().find_map(|file| pem::certificates(&read(file).ok()?).ok())?),
            Some(path) => {
                let base = global.tls.ca_base.as_deref();
                let name = super::tls::located(&path.value, base, None);
                let found = match path.value.as_str() {
                    "@system-ca" => {
                        SYSTEM_ROOTS.iter().find_map(|file| read(file).ok()).ok_or_else(|| "not found".into())
                    }
                    _ => read(&name).map_err(|error| super::tls::reason(&error)),
                };
                match found.and_then(|text| pem::certificates(&text).map_err(|_| "no certificate found".to_owned())) {
                    Ok(roots) => Some(roots),
                    Err(why) => {
                        let message = format!("Couldn't open the ca-file '{}' ({why}).", path.value);
                        self.alert(path.span, Form::Bare, message);
                        return None;
                    }
                }
            }
        };
        let authorities = authorities.filter(|_| !written.trusts_servers);
        let authorities = authorities.map(|roots| Arc::new(Authorities { roots, ..Authorities::default() }));
        let settings = client::Settings { authorities, resumes: true, ..client::Settings::default() };
        tls::Client::new(settings).ok().map(Arc::new)
    }
}
