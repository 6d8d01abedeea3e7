//! Links `email-alert` with the `mailers` section that it names. Must never send a mail.

use super::Compiler;
use crate::program::{MailAlert, MailServer, ServerAddress};
use config::diagnostic::{Diagnostic, Form, ReportOrder};
use config::spec::{LogLevel, MailersSpec, ProxyKind, ProxySpec, Spec};
use std::time::Duration;

impl Compiler<'_> {
    /// Reports unused `mailers` sections.
    pub(super) fn unused_mailers(&mut self, spec: &Spec) {
        let alerts = spec.proxies.iter().filter(|proxy| !proxy.disabled).map(|proxy| &proxy.email_alert);
        let complete = alerts.filter(|alert| alert.from.is_some() && alert.to.is_some());
        let used: Vec<&str> = complete.filter_map(|alert| Some(alert.mailers.as_ref()?.value.as_str())).collect();
        for section in spec.sections.mailers.iter().filter(|section| !used.contains(&section.name.as_str())) {
            let text = format!("Removing incomplete section 'mailers {}'.", section.name);
            let found = Diagnostic::warning(section.span, text).with_form(Form::Bare);
            self.warn(found.in_turn(ReportOrder::Sections(1), section.span));
            let _ = self.mail_servers(section);
        }
    }

    /// Returns the servers of a section that have addresses.
    fn mail_servers(&mut self, section: &MailersSpec) -> Vec<MailServer> {
        let mut servers = Vec::new();
        for (name, address) in &section.servers {
            let message = match self.server_address(&address.value) {
                Ok(ServerAddress::Inet { ip, port }) => {
                    let address = (ip, port.resolve(0)).into();
                    servers.push(MailServer { name: name.as_str().into(), address });
                    continue;
                }
                Ok(_) => format!("'mailer {name}' : a mail server has an address of the network."),
                Err(host) => {
                    format!(
                        "'mailer {name}' : invalid address: '{host}' in '{}'",
                        super::address::written(&address.value)
                    )
                }
            };
            self.alert(address.span, Form::Parsing, message);
        }
        servers
    }

    /// Compiles the mail alerts of a proxy; `None` if it sends none.
    pub(super) fn mail_alert(&mut self, spec: &Spec, written: &ProxySpec) -> Option<MailAlert> {
        let alert = &written.email_alert;
        let (Some(mailers), Some(from), Some(to)) = (&alert.mailers, &alert.from, &alert.to) else {
            let texts = [&alert.mailers, &alert.from, &alert.to, &alert.hostname].into_iter().flatten();
            let spans = texts.map(|text| text.span).chain(alert.level.as_ref().map(|level| level.span));
            if let Some(span) = spans.min_by_key(|span| span.line) {
                let kind = match written.kind {
                    ProxyKind::Frontend => "frontend",
                    ProxyKind::Backend => "backend",
                    ProxyKind::Listen => "proxy",
                };
                let text = format!(
                    "'email-alert' will be ignored for {kind} '{}' (the presence any of 'email-alert from', 'email-alert \
                     level' 'email-alert mailers', 'email-alert myhostname', or 'email-alert to' requires each of \
                     'email-alert from', 'email-alert mailers' and 'email-alert to' to be present).",
                    written.name.value
                );
                let found = Diagnostic::warning(span, text).with_form(Form::Bare);
                self.warn(found.in_turn(ReportOrder::Early(5), written.name.span));
            }
            return None;
        };
        let Some(section) = spec.sections.mailers.iter().find(|section| section.name == mailers.value) else {
            let message = format!("Proxy '{}': unable to find mailers '{}'.", written.name.value, mailers.value);
            self.alert(mailers.span, Form::Bare, message);
            return None;
        };
        let servers: Vec<_> = self.mail_servers(section);
        Some(MailAlert {
            servers: servers.into(),
            timeout: Duration::from_millis(section.timeout),
            from: from.value.as_str().into(),
            to: to.value.as_str().into(),
            level: alert.level.as_ref().map_or(LogLevel::Alert, |level| level.value),
            hostname: alert
                .hostname
                .as_ref()
                .filter(|name| !name.value.is_empty())
                .map(|name| name.value.as_str().into()),
        })
    }
}
