//! Compiles FastCGI applications and the backends that use them: names become indices, formats and conditions are
//! compiled. Must never choose the value of a parameter.

use super::Compiler;
use super::names::SpecNames;
use crate::program::{FcgiAction, FcgiApp, FcgiLog, FcgiRule};
use config::diagnostic::Form;
use config::spec::{FcgiAppSpec, FcgiRuleSpec, Mode, MuxProtocol, ProxySpec, Spec};
use config::suggest::nearest;
use config::text::to_bytes;
use expression::log_format::{LogFormat, Purpose};
use expression::pattern::Regex;
use expression::sample::EvalPlace;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// The place where the rules of an application are evaluated: after those of a backend.
const PLACE: EvalPlace = EvalPlace::BackRequestHead;

impl Compiler<'_> {
    /// Compiles the log targets for the applications' standard error, and reports errors in applications that no
    /// backend uses.
    pub(super) fn fcgi_logs(&mut self, spec: &Spec) -> Vec<FcgiLog> {
        let used = spec.proxies.iter().filter_map(|proxy| proxy.fcgi_app.as_ref());
        let used: HashSet<&str> = used.map(|used| used.value.as_str()).collect();
        let apps = spec.sections.fcgi_apps.iter().enumerate();
        apps.map(|(index, app)| {
            if app.docroot.is_none() {
                self.alert(app.name.span, Form::Bare, format!("fcgi-app '{}': no docroot configured.", app.name.value));
            }
            if !used.contains(app.name.value.as_str()) {
                let names = self.names(spec, None);
                self.fcgi_parts(index, app, &names);
            }
            let mut targets = if app.logs_globally { self.logs(&spec.global.logs, spec) } else { Vec::new() };
            targets.extend(self.logs(&app.logs, spec));
            FcgiLog { name: app.name.value.as_str().into(), targets }
        })
        .collect()
    }

    /// Compiles the application of a backend.
    pub(super) fn fcgi_app(&mut self, spec: &Spec, proxy: usize, written: &ProxySpec) -> Option<Arc<FcgiApp>> {
        let name = &written.name.value;
        let speaks = |protocol: Option<MuxProtocol>| protocol == Some(MuxProtocol::Fcgi);
        let mut servers = written.servers.iter().filter(|server| speaks(server.connecting.protocol));
        let Some(wanted) = &written.fcgi_app else {
            if let Some(server) = servers.next().filter(|_| written.mode == Mode::Http) {
                let message =
                    format!("proxy '{name}': FCGI server '{}' has no FCGI app configured.", server.name.value);
                let hint = "write 'use-fcgi-app <name>' and a section 'fcgi-app <name>'".to_owned();
                self.alert_with_hint(server.span, Form::Bare, message, Some(hint));
            }
            return None;
        };
        if written.mode != Mode::Http {
            let message = format!("proxy '{name}': FCGI application cannot be used in non-HTTP mode.");
            self.alert(wanted.span, Form::Bare, message);
            return None;
        }
        let apps = &spec.sections.fcgi_apps;
        let Some(index) = self.shared.indexes.fcgi_app(spec, &wanted.value) else {
            let message = format!("proxy '{name}' : fcgi-app '{}' not found.", wanted.value);
            let hint = nearest(&wanted.value, apps.iter().map(|app| app.name.value.as_str()));
            let hint = hint.map(|known| format!("there is a section 'fcgi-app {known}'"));
            self.alert_with_hint(wanted.span, Form::Bare, message, hint);
            return None;
        };
        if servers.next().is_none() {
            let message = format!("proxy '{name}': FCGI app configured but no FCGI server found.");
            let hint = "write 'proto fcgi' on the lines of its servers".to_owned();
            self.alert_with_hint(wanted.span, Form::Bare, message, Some(hint));
            return None;
        }
        if written.limits.hedge.is_some() {
            let message = format!("proxy '{name}': 'hedge-requests' is not supported yet by Weir with 'use-fcgi-app'.");
            self.alert(wanted.span, Form::Bare, message);
        }
        let names = self.names(spec, Some(proxy));
        Some(Arc::new(self.fcgi_parts(index, &apps[index], &names)))
    }

    fn fcgi_parts(&mut self, index: usize, app: &FcgiAppSpec, names: &SpecNames<'_>) -> FcgiApp {
        // The ACLs of an application are separate from those of the proxy.
        let shared = Rc::clone(&self.shared.acls);
        let of_proxy = shared.take();
        let reach = self.acls(&app.acls, names);
        let rules = app.rules.iter().filter_map(|rule| self.fcgi_rule(rule, &reach, names)).collect();
        shared.replace(of_proxy);
        let path_info = app.path_info.as_ref().and_then(|text| match Regex::new(&text.value, false) {
            Ok(regex) => Some(regex),
            Err(why) => {
                self.alert(text.span, Form::Parsing, format!("'{}' : {why}.", text.value));
                None
            }
        });
        let bytes = |text: &String| Box::from(&*to_bytes(text));
        FcgiApp {
            index,
            name: app.name.value.as_str().into(),
            docroot: app.docroot.as_ref().map(bytes).unwrap_or_default(),
            script: app.index.as_ref().map(bytes),
            path_info,
            rules,
            keep_conn: app.keep_conn,
            get_values: app.get_values,
            shares_connections: app.shares_connections,
            max_requests: app.max_requests as usize,
            logs_errors: app.logs_globally || !app.logs.is_empty(),
            constant: Box::default(),
        }
        .complete()
    }

    fn fcgi_rule(
        &mut self,
        rule: &FcgiRuleSpec,
        reach: &super::names::Reach,
        names: &SpecNames<'_>,
    ) -> Option<FcgiRule> {
        let line = &rule.line;
        let (name, rest) = line.words.split_first()?;
        let (value, rest) =
            if rule.sets { rest.split_first().map(|(value, rest)| (Some(value), rest))? } else { (None, rest) };
        if let Some(first) = rest.first().filter(|word| !matches!(word.text.as_str(), "if" | "unless")) {
            let message = format!(
                "'{}' : expects either 'if' or 'unless' followed by a condition but found '{}'.",
                name.text, first.text
            );
            self.alert(first.span, Form::Parsing, message);
            return None;
        }
        let condition = self.bare_condition(line, rest, reach, names, &format!("'{}'", name.text));
        let action = match value {
            None => FcgiAction::PassHeader(to_bytes(&name.text).to_ascii_lowercase().into()),
            Some(value) => match LogFormat::for_rule(&value.text, Purpose::Text, PLACE, names) {
                Ok(format) => FcgiAction::SetParameter(parameter(&to_bytes(&name.text)), format),
                Err(error) => {
                    let hint = error.hint();
                    self.alert_with_hint(value.span, Form::Parsing, format!("'{}' : {error}.", name.text), hint);
                    return None;
                }
            },
        };
        Some(FcgiRule { action, condition })
    }
}

/// Returns the name of a parameter: capital letters, and underscores for all other characters except digits.
fn parameter(name: &[u8]) -> Box<[u8]> {
    let mapped = name.iter().map(|byte| if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { b'_' });
    mapped.collect()
}
