//! TLS of connections that carry no requests: to peers, to log servers, to name servers. Must never open one.

use super::super::Compiler;
use super::super::variables;
use crate::program::{LinkTls, ServerTls};
use bumpalo::Bump;
use config::diagnostic::Form;
use config::span::Span;
use config::spec::{ServerTlsSpec, Spec};
use expression::Expression;
use expression::sample::Meter;
use expression::variable::Variables;
use std::sync::Arc;

/// Maximum length of a server name in bytes.
const LONGEST_NAME: usize = 256;

impl Compiler<'_> {
    /// Compiles the TLS parameters of a server line; `None` if it has none, or an error was reported.
    /// `section` and `server` are names.
    pub(in crate::compile) fn link_tls(
        &mut self,
        written: Option<&ServerTlsSpec>,
        section: &str,
        server: &str,
        span: Span,
        spec: &Spec,
        head: &str,
    ) -> Option<LinkTls> {
        let written = written?;
        let settings = self.client_settings(written, section, server, span, &spec.global.tls, head)?;
        let name = match &written.sni {
            None => None,
            Some(text) => {
                let names = self.names(spec, None);
                self.connection_expression(text, span, &names, head).and_then(|sni| self.fixed_name(&sni))
            }
        };
        match tls::Client::new(settings) {
            Ok(client) => Some(LinkTls { client: Arc::new(client.noting(&self.shared.wanted)), name }),
            Err(why) => {
                self.alert(span, Form::Placed, format!("{head}{why}."));
                None
            }
        }
    }

    /// Returns the TLS parameters of a log server.
    pub(in crate::compile) fn fixed(&self, tls: &ServerTls) -> LinkTls {
        let name = tls.sni.as_ref().and_then(|sni| self.fixed_name(sni));
        LinkTls { client: Arc::clone(&tls.client), name }
    }

    /// Evaluates an expression without a request. Fetches of a request have no value, as in HAProxy.
    fn fixed_name(&self, sni: &Expression) -> Option<Box<str>> {
        let (arena, meter) = (Bump::new(), Meter::default());
        let probes = self.resolver.probes();
        let context = variables::context(&arena, LONGEST_NAME, probes, Variables::default(), &meter);
        let text = sni.evaluate(&context).and_then(|value| context.as_text(value))?;
        std::str::from_utf8(text).ok().filter(|name| !name.is_empty()).map(Into::into)
    }
}
