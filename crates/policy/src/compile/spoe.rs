//! Compiles SPOE engines: names become indices, arguments and conditions are compiled, events become rules before those
//! of their proxy. Must never send a message.

use super::Compiler;
use super::engine::Engine;
use super::names::SpecNames;
use crate::program::{SpoeAgent, SpoeCall, SpoeEvents, SpoeLog, SpoeMessage, SpoeTrigger};
use crate::rule::{Action, Parsing, Rule, Rules, Wait, Words};
use config::diagnostic::{Diagnostic, Form};
use config::document::Word;
use config::spec::{
    FilterSpec, Mode, ProxyKind, ProxySpec, RuleLineSpec, Spec, SpoeAgentSpec, SpoeEngineSpec, SpoeEvent,
    SpoeFilterSpec, SpoeMessageSpec,
};
use config::suggest::nearest;
use config::text::to_bytes;
use expression::Names as _;
use expression::sample::{EvalPlace, RulePlace};
use expression::variable::Variable;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Returns the place where the messages of an event are evaluated, as named in messages.
fn place(event: SpoeEvent, kind: ProxyKind) -> EvalPlace {
    match event {
        SpoeEvent::ClientSession => EvalPlace::Connection,
        SpoeEvent::ServerSession => EvalPlace::ServerSource,
        SpoeEvent::BackendTcpRequest if kind == ProxyKind::Backend => EvalPlace::BackRequestContent,
        SpoeEvent::BackendHttpRequest if kind == ProxyKind::Backend => EvalPlace::BackRequestHead,
        SpoeEvent::FrontendTcpRequest | SpoeEvent::BackendTcpRequest => EvalPlace::FrontRequestContent,
        SpoeEvent::TcpResponse => EvalPlace::FrontResponseContent,
        SpoeEvent::FrontendHttpRequest | SpoeEvent::BackendHttpRequest => EvalPlace::FrontRequestHead,
        SpoeEvent::HttpResponse => EvalPlace::FrontResponseHead,
    }
}

/// The compiler of one engine.
struct SpoeCompiler<'a, 's> {
    spec: &'a Spec,
    proxy: &'a ProxySpec,
    filter: &'a SpoeFilterSpec,
    engine: &'a SpoeEngineSpec,
    agent: &'a SpoeAgentSpec,
    names: &'a SpecNames<'s>,
}

impl Compiler<'_> {
    /// Compiles the log targets of agents, by engine.
    pub(super) fn spoe_logs(&mut self, spec: &Spec) -> Vec<SpoeLog> {
        let engines = spec.sections.spoe_engines.iter();
        let logs = engines.map(|engine| {
            let name = engine.name.as_str().into();
            let Some(agent) = &engine.agent else { return SpoeLog { engine: name, targets: Vec::new() } };
            let mut targets = if agent.logs_globally { self.logs(&spec.global.logs, spec) } else { Vec::new() };
            targets.extend(self.logs(&agent.logs, spec));
            SpoeLog { engine: name, targets }
        });
        logs.collect()
    }

    /// Compiles the engines of a proxy, to which its rules may refer afterwards.
    pub(super) fn spoe_engines(&mut self, spec: &Spec, index: usize, written: &ProxySpec) {
        let mut engines = Vec::new();
        let names = self.names(spec, Some(index));
        for (place, filter) in written.filters.list.iter().enumerate() {
            let FilterSpec::Spoe(filter) = filter else { continue };
            // An unreadable file was reported before.
            let found =
                filter.content.and_then(|content| spec.sections.spoe_engines.get(content).map(|own| (content, own)));
            let Some((content, engine)) = found else {
                self.failed = true;
                continue;
            };
            let Some(agent) = &engine.agent else { continue };
            if engines.iter().any(|known: &Engine| known.name == engine.name) {
                let message =
                    format!("Proxy {} : duplicated name for SPOE engine '{}'.", written.name.value, engine.name);
                self.alert(filter.span, Form::Bare, message);
                continue;
            }
            let course = SpoeCompiler { spec, proxy: written, filter, engine, agent, names: &names };
            if let Some(compiled) = self.spoe_engine(&course, place, content) {
                engines.push(compiled);
            }
        }
        self.shared.spoe.replace(engines);
    }

    fn spoe_engine(&mut self, course: &SpoeCompiler<'_, '_>, filter: usize, index: usize) -> Option<Engine> {
        let agent = Arc::new(self.spoe_agent(course, index)?);
        let written = course.agent;
        let name = &course.proxy.name.value;
        if written.messages.is_empty() && written.groups.is_empty() {
            let message = format!(
                "Proxy '{name}': No message/group used by SPOE agent '{}' declared at {}.",
                written.name.value,
                self.place(written.name.span)
            );
            self.warn(Diagnostic::warning(written.name.span, message).with_form(Form::Config));
        }
        // The ACLs of a message are separate from those of the proxy.
        let of_proxy = self.shared.acls.take();
        let events = self.spoe_events(course, &agent);
        let groups = self.spoe_groups(course, &agent);
        self.shared.acls.replace(of_proxy);
        Some(Engine { name: course.engine.name.clone(), filter, span: course.filter.span, events, groups })
    }

    fn spoe_agent(&mut self, course: &SpoeCompiler<'_, '_>, index: usize) -> Option<SpoeAgent> {
        let SpoeCompiler { spec, proxy, agent: written, engine, names, .. } = *course;
        let (own, place) = (&written.name.value, self.place(written.name.span));
        let Some(wanted) = &written.backend else {
            let message = format!("'filter' : No backend declared for SPOE agent '{own}' declared at {place}");
            let hint = "write 'use-backend <backend>' in its section".to_owned();
            self.alert_with_hint(written.name.span, Form::Parsing, message, Some(hint));
            return None;
        };
        let Some(backend) = names.backend(&wanted.value) else {
            let known = spec.proxies.iter().filter(|proxy| proxy.kind != ProxyKind::Frontend);
            let known = nearest(&wanted.value, known.map(|proxy| proxy.name.value.as_str()));
            let message = format!(
                "Proxy {} : unknown backend '{}' used by SPOE agent '{own}' declared at {place}.",
                proxy.name.value, wanted.value
            );
            let hint = known.map(|known| format!("there is a backend '{known}'"));
            self.alert_with_hint(wanted.span, Form::Bare, message, hint);
            return None;
        };
        if spec.proxies[backend].mode != Mode::Spop {
            let message = format!(
                "Proxy {} : backend '{}' used by SPOE agent '{own}' declared at {place} must use SPOP mode.",
                proxy.name.value, wanted.value
            );
            let hint = Some(format!("write 'mode spop' in backend '{}'", wanted.value));
            self.alert_with_hint(wanted.span, Form::Bare, message, hint);
            return None;
        }
        let prefix = written.var_prefix.as_ref().map_or(own, |prefix| &prefix.value);
        if !prefix.chars().all(|found| found.is_ascii_alphanumeric() || matches!(found, '_' | '.')) {
            let message = format!(
                "'filter' : Invalid variable prefix '{prefix}' for SPOE agent '{own}' declared at {place}. Use 'option \
                 var-prefix' to set it. Only [a-zA-Z0-9_.] chars are supported."
            );
            self.alert(written.name.span, Form::Parsing, message);
            return None;
        }
        self.register_spoe_variables(written, prefix, names);
        self.warn_of_spoe_time(proxy, written, &place);
        let variable = |name: &Option<config::span::Spanned<String>>| {
            let variable = Variable::parse(&format!("txn.{prefix}.{}", name.as_ref()?.value)).ok()?;
            names.declare(&variable);
            Some(variable)
        };
        let largest = (super::buffers(spec).0 as u32).saturating_sub(wire::spop::LENGTH as u32);
        Some(SpoeAgent {
            engine: engine.name.as_str().into(),
            name: own.as_str().into(),
            index,
            logs: !written.logs.is_empty() || written.logs_globally && !spec.global.logs.is_empty(),
            backend,
            max_frame_size: written.max_frame_size.map_or(largest, |size| size.min(largest)),
            pipelining: !written.no_pipelining,
            processing: written.processing.map(Duration::from_millis),
            continues_on_error: written.continues_on_error,
            dontlog_normal: written.dontlog_normal,
            prefix: prefix.as_str().into(),
            sets_any_variable: written.sets_any_variable,
            serves_scripts: !spec.global.lua.scripts.is_empty(),
            on_error: variable(&written.set_on_error),
            process_time: variable(&written.set_process_time),
            total_time: variable(&written.set_total_time),
        })
    }

    /// Declares the variables of `register-var-names`.
    fn register_spoe_variables(&mut self, written: &SpoeAgentSpec, prefix: &str, names: &SpecNames<'_>) {
        let own = &written.name.value;
        for name in &written.variables {
            match Variable::parse(&format!("txn.{prefix}.{}", name.value)) {
                Ok(variable) => names.declare(&variable),
                Err(why) => {
                    let message = format!(
                        "'filter' : SPOE agent '{own}': failed to register variable {prefix}.{} ({why})",
                        name.value
                    );
                    self.alert(name.span, Form::Parsing, message);
                }
            }
        }
    }

    /// Reports HAProxy's warning about events without a processing timeout.
    fn warn_of_spoe_time(&mut self, proxy: &ProxySpec, written: &SpoeAgentSpec, place: &str) {
        let own = &written.name.value;
        if written.processing.is_none() {
            let message = format!(
                "Proxy '{}': missing 'processing' timeout for SPOE agent '{own}' declare at {place}.\n   | While not \
                 properly invalid, you will certainly encounter various problems\n   | with such a configuration. To fix \
                 this, please ensure it is set to a non-zero value.",
                proxy.name.value
            );
            self.warn(Diagnostic::warning(written.name.span, message).with_form(Form::Config));
        }
    }

    /// Compiles the messages of the agent, by event.
    fn spoe_events(
        &mut self,
        course: &SpoeCompiler<'_, '_>,
        agent: &Arc<SpoeAgent>,
    ) -> Vec<(SpoeEvent, Arc<SpoeCall>)> {
        let mut by_event: Vec<(SpoeEvent, Vec<SpoeMessage>)> = Vec::new();
        for name in &course.agent.messages {
            let Some(written) = course.engine.messages.iter().find(|message| message.name.value == name.value) else {
                let message = format!(
                    "'filter' : SPOE agent '{}' try to use undefined SPOE message '{}' at {}",
                    course.agent.name.value,
                    name.value,
                    self.place(course.agent.name.span)
                );
                let known = course.engine.messages.iter().map(|message| message.name.value.as_str());
                let hint = nearest(&name.value, known).map(|known| format!("there is a message '{known}'"));
                self.alert_with_hint(name.span, Form::Parsing, message, hint);
                continue;
            };
            let place = self.place(written.name.span);
            let Some((event, _)) = &written.event else {
                let message = format!(
                    "Proxy '{}': Ignore SPOE message '{}' without event at {place}.",
                    course.proxy.name.value, name.value
                );
                self.warn(Diagnostic::warning(written.name.span, message).with_form(Form::Config));
                continue;
            };
            let is_back = course.proxy.kind == ProxyKind::Backend;
            if is_back && event.is_of_frontends() {
                let message =
                    format!("Proxy '{}': frontend event used on a backend proxy at {place}.", course.proxy.name.value);
                self.warn(Diagnostic::warning(written.name.span, message).with_form(Form::Config));
                continue;
            }
            let Some(compiled) = self.spoe_message(course, written, Some(*event)) else { continue };
            match by_event.iter_mut().find(|(known, _)| known == event) {
                Some((_, messages)) => messages.push(compiled),
                None => by_event.push((*event, vec![compiled])),
            }
        }
        let call = |(event, messages): (SpoeEvent, Vec<SpoeMessage>)| {
            let trigger = SpoeTrigger::Event(event);
            (event, Arc::new(SpoeCall { agent: Arc::clone(agent), trigger, messages: messages.into() }))
        };
        by_event.into_iter().map(call).collect()
    }

    /// Compiles the groups of the agent.
    fn spoe_groups(&mut self, course: &SpoeCompiler<'_, '_>, agent: &Arc<SpoeAgent>) -> Vec<(String, Arc<SpoeCall>)> {
        let mut groups = Vec::new();
        let mut taken: Vec<(&str, &config::span::Spanned<String>)> = Vec::new();
        for name in &course.agent.groups {
            let Some(group) = course.engine.groups.iter().find(|group| group.name.value == name.value) else {
                let message = format!(
                    "'filter' : SPOE agent '{}' try to use undefined SPOE group '{}' at {}",
                    course.agent.name.value,
                    name.value,
                    self.place(course.agent.name.span)
                );
                self.alert(name.span, Form::Parsing, message);
                continue;
            };
            let mut messages = Vec::new();
            for wanted in &group.messages {
                let found = course.engine.messages.iter().find(|message| message.name.value == wanted.value);
                let Some(written) = found else {
                    let message = format!(
                        "'filter' : SPOE group '{}' try to use undefined SPOE message '{}' at {}",
                        name.value,
                        wanted.value,
                        self.place(course.agent.name.span)
                    );
                    self.alert(wanted.span, Form::Parsing, message);
                    continue;
                };
                if let Some((_, other)) = taken.iter().find(|(known, _)| *known == wanted.value) {
                    let message = format!(
                        "'filter' : SPOE message '{}' already belongs to the SPOE group '{}' declare at {}",
                        wanted.value,
                        other.value,
                        self.place(other.span)
                    );
                    self.alert(wanted.span, Form::Parsing, message);
                    continue;
                }
                taken.push((&wanted.value, &group.name));
                messages.extend(self.spoe_message(course, written, None));
            }
            let trigger = SpoeTrigger::Group(name.value.as_str().into());
            let call = SpoeCall { agent: Arc::clone(agent), trigger, messages: messages.into() };
            groups.push((name.value.clone(), Arc::new(call)));
        }
        groups
    }

    /// Compiles a message; `event` is its event, unless rules send it.
    fn spoe_message(
        &mut self,
        course: &SpoeCompiler<'_, '_>,
        written: &SpoeMessageSpec,
        event: Option<SpoeEvent>,
    ) -> Option<SpoeMessage> {
        let reach = self.acls(&written.acls, course.names);
        let mut arguments = Vec::new();
        for line in &written.arguments {
            arguments.extend(self.spoe_arguments(course, written, line, event)?);
        }
        let condition = written.event.as_ref().and_then(|(named, line)| {
            let what = format!("error detected while parsing an 'event {}' condition", named.name());
            self.bare_condition(line, &line.words, &reach, course.names, &what)
        });
        let name = to_bytes(&written.name.value).into_owned().into();
        // A group's messages keep the condition of their event, as in HAProxy.
        Some(SpoeMessage { name, arguments: arguments.into(), condition })
    }

    fn spoe_arguments(
        &mut self,
        course: &SpoeCompiler<'_, '_>,
        message: &SpoeMessageSpec,
        line: &RuleLineSpec,
        event: Option<SpoeEvent>,
    ) -> Option<Vec<(Box<[u8]>, expression::Expression)>> {
        course.names.begin(line);
        let place = event.map_or(EvalPlace::FrontRequestContent, |event| place(event, course.proxy.kind));
        let (mut found, mut rest) = (Vec::new(), line.words.as_slice());
        while let Some((first, others)) = rest.split_first() {
            let (name, sample) = named(first);
            // The first word of a rule is its action.
            let words: Vec<Word> = [Word::default(), sample].into_iter().chain(others.iter().cloned()).collect();
            let parsing = Parsing {
                names: course.names,
                place: EvalPlace::Log,
                set: 0,
                proxy: course.proxy,
                warnings: RefCell::default(),
            };
            let mut taken = Words::all(&words);
            let read = if words[1].text.is_empty() {
                Err(crate::rule::RuleError::new("missing fetch method"))
            } else {
                parsing.sample(&mut taken, place)
            };
            let left = taken.rest().len();
            match read {
                Ok(expression) => {
                    if event.is_some() && expression.fetch().refusal(place).is_some() {
                        let text = format!(
                            "'filter' : Ignore SPOE message '{}' at {}: some args extract information from '{}', none of \
                             which is available here ('{}')",
                            message.name.value,
                            self.place(message.name.span),
                            expression.fetch().wanted(),
                            place.name()
                        );
                        self.alert(first.span, Form::Parsing, text);
                        return None;
                    }
                    found.push((name, expression));
                }
                Err(error) => {
                    let text = format!("'args': {}.", error.message);
                    self.alert_with_hint(first.span, Form::Parsing, text, error.hint);
                    return None;
                }
            }
            rest = &rest[rest.len() - left..];
        }
        Some(found)
    }

    /// Inserts the events of the proxy's engines before its rules; returns the events that belong to no rule set.
    pub(super) fn add_spoe_events(&mut self, written: &ProxySpec, rules: &mut Rules) -> Option<Box<SpoeEvents>> {
        let engines = Rc::clone(&self.shared.spoe);
        let engines = engines.borrow();
        if engines.is_empty() {
            return None;
        }
        let ask = |order: &[usize], event: SpoeEvent| -> Vec<Rule> {
            let in_order = order.iter().filter_map(|place| engines.iter().find(|engine| engine.filter == *place));
            let rule = |engine: &Engine| {
                let (_, call) = engine.events.iter().find(|(known, _)| *known == event)?;
                let place = RulePlace { file: engine.span.file, line: engine.span.line };
                Some(Rule { condition: None, action: Action::Wait(Wait::Agent(Arc::clone(call))), place })
            };
            in_order.filter_map(rule).collect()
        };
        let request = super::filter::order(&written.filters, written.filters.request.as_ref());
        let response = super::filter::order(&written.filters, written.filters.response.as_ref());
        let prepend = |list: &mut Box<[Rule]>, events: Vec<Rule>| {
            if !events.is_empty() {
                *list = events.into_iter().chain(std::mem::take(list)).collect();
            }
        };
        let mut first = Vec::new();
        if written.kind == ProxyKind::Backend {
            first.extend(ask(&request, SpoeEvent::BackendTcpRequest));
            prepend(&mut rules.http_request, ask(&request, SpoeEvent::BackendHttpRequest));
        } else {
            first.extend(ask(&request, SpoeEvent::ClientSession));
            first.extend(ask(&request, SpoeEvent::FrontendTcpRequest));
            prepend(&mut rules.http_request, ask(&request, SpoeEvent::FrontendHttpRequest));
        }
        prepend(&mut rules.request_content, first);
        let (of_bytes, of_heads) = (ask(&response, SpoeEvent::TcpResponse), ask(&response, SpoeEvent::HttpResponse));
        let answers: Box<[Rule]> = match written.kind {
            ProxyKind::Backend => Box::default(),
            _ => of_bytes.iter().chain(&of_heads).cloned().collect(),
        };
        match written.kind {
            // A frontend has no rules of this set: these enable the analysis of responses.
            ProxyKind::Frontend => rules.response_content = answers.clone(),
            _ => {
                prepend(&mut rules.http_response, of_heads);
                prepend(&mut rules.response_content, of_bytes);
            }
        }
        let of_backend =
            |event| if written.kind == ProxyKind::Backend { Box::default() } else { ask(&request, event).into() };
        let events = SpoeEvents {
            backend_content: of_backend(SpoeEvent::BackendTcpRequest),
            backend_request: of_backend(SpoeEvent::BackendHttpRequest),
            server_session: ask(&response, SpoeEvent::ServerSession).into(),
            answers,
        };
        (!events.is_empty()).then(|| Box::new(events))
    }
}

/// Splits a word into the name of an argument and its sample.
fn named(word: &Word) -> (Box<[u8]>, Word) {
    let equals = word.text.find(['=', '(']).filter(|at| word.text[*at..].starts_with('='));
    let Some(at) = equals else { return (Box::default(), word.clone()) };
    let (name, sample) = word.text.split_at(at);
    (to_bytes(name).into_owned().into(), Word { text: sample[1..].to_owned(), ..word.clone() })
}

#[cfg(test)]
mod tests {
    use config::diagnostic::Severity;
    use config::environment::Environment;
    use config::keyword::SpecOptions;
    use config::{InputFile, LoadOptions};
    use std::cell::RefCell;

    thread_local! {
        static FILE: RefCell<String> = RefCell::default();
    }

    const ENGINE: &str = "[e]\nspoe-agent a\n messages m\n timeout processing 1s\n use-backend agents\nspoe-message m\n args \
                          ip=src\n event on-client-session\nspoe-message n\n args src\nspoe-group g\n messages n\n";

    /// The messages about a frontend with these lines and an engine in this file.
    fn said(lines: &str, file: &str) -> Vec<String> {
        FILE.set(file.to_owned());
        let text = format!(
            "frontend f\n mode http\n bind 127.0.0.1:80\n timeout client 1s\n filter spoe engine e config f\n{lines}\nbackend \
             agents\n mode spop\n timeout connect 1s\n timeout server 1s\n server a 127.0.0.1:1\nbackend http\n mode http\n"
        );
        let input = InputFile { name: "x".into(), bytes: text.into_bytes() };
        let read_file = |_: &str, _: u64| Ok(FILE.with_borrow(|file| file.clone().into_bytes()));
        let spec = SpecOptions { read_file, ..SpecOptions::default() };
        let options = LoadOptions { spec, ..LoadOptions::default() };
        let loaded = config::load(&[input], Environment::new(), &options);
        let mut found = loaded.diagnostics.clone();
        let limits = crate::SystemLimits::default();
        crate::compile(&loaded.spec, &mut crate::compile::tests::Names, &limits, &mut found);
        let told = found.into_iter().filter(|found| matches!(found.severity, Severity::Alert | Severity::Warning));
        told.map(|found| found.message).collect()
    }

    #[test]
    fn engines_are_refused_in_haproxys_words() {
        let rows = [
            ("", "", ""),
            (" messages m\n", " messages nope\n", "SPOE agent 'a' try to use undefined SPOE message 'nope' at "),
            (" messages m\n", "", "Proxy 'f': No message/group used by SPOE agent 'a' declared at "),
            (" messages m\n", " messages m n\n", "Proxy 'f': Ignore SPOE message 'n' without event at "),
            (" messages m\n", " groups nope\n", "SPOE agent 'a' try to use undefined SPOE group 'nope' at "),
            (
                " messages m\n",
                " groups g\n register-var-names a-\n",
                "failed to register variable a.a- (invalid syntax",
            ),
            (" use-backend agents\n", "", "'filter' : No backend declared for SPOE agent 'a' declared at "),
            (
                " use-backend agents\n",
                " use-backend f\n",
                "Proxy f : unknown backend 'f' used by SPOE agent 'a' declared",
            ),
            (" use-backend agents\n", " use-backend http\n", "must use SPOP mode."),
            (" timeout processing 1s\n", "", "missing 'processing' timeout for SPOE agent 'a' declare at "),
            ("spoe-agent a\n", "spoe-agent a-b\n", "'filter' : Invalid variable prefix 'a-b' for SPOE agent 'a-b'"),
            ("args ip=src", "args ip=nope", "'args': unknown fetch method 'nope'."),
            ("args ip=src", "args ip=", "'args': missing fetch method."),
            (
                "args ip=src",
                "args a=req.hdr(x)",
                "some args extract information from 'HTTP request headers', none of which is available here ('frontend \
                 tcp-request connection rule')",
            ),
            (
                "on-client-session\n",
                "on-client-session if nope\n",
                "error detected while parsing an 'event on-client-session' condition : no such ACL : 'nope'.",
            ),
        ];
        for (from, to, expected) in rows {
            let found = said("", &ENGINE.replacen(from, to, usize::from(!from.is_empty())));
            match expected {
                "" => assert_eq!(found, [""; 0]),
                _ => assert!(found.len() == 1 && found[0].contains(expected), "{to}: {found:?}"),
            }
        }
        // In a filter of a backend, fetches of the backend are available.
        let of_backend =
            |event: &str| ENGINE.replace("args ip=src", "args b=be_name").replace("on-client-session", event);
        for event in ["on-backend-tcp-request", "on-backend-http-request"] {
            let lines = " default_backend b\nbackend b\n mode http\n timeout connect 1s\n timeout server 1s\n filter spoe engine e config f";
            let found = said(lines, &of_backend(event));
            let refused: Vec<_> = found.iter().filter(|text| text.contains("some args extract information")).collect();
            assert_eq!(refused.len(), 1, "{event}: that of the frontend alone: {found:?}");
        }
        let twice = " filter spoe engine e config f";
        assert_eq!(said(twice, ENGINE), ["Proxy f : duplicated name for SPOE engine 'e'."]);
    }

    #[test]
    fn rules_name_engines_and_groups_of_their_own_proxy() {
        let usage = "expects 2 arguments: <engine-id> <group-id>";
        let rows = [
            ("http-request send-spoe-group e g", ""),
            ("http-response send-spoe-group e g if { src 127.0.0.1 }", ""),
            ("tcp-request content send-spoe-group e g", ""),
            ("http-request send-spoe-group e", usage),
            ("http-request send-spoe-group e g foo", usage),
            ("tcp-request content send-spoe-group", usage),
            (
                "http-response send-spoe-group e heads",
                "Invalid SPOE message 'heads' used by SPOE group 'heads': some args extract \
                information from 'HTTP request headers', none of which is available here ('frontend http-response header rule')",
            ),
            ("http-request send-spoe-group e heads", ""),
            (
                "http-request send-spoe-group e m",
                "Proxy 'f': unable to find SPOE group 'm' into SPOE engine 'e' configuration.",
            ),
            (
                "http-request send-spoe-group x g",
                "Proxy 'f': unable to find SPOE engine 'x' used by the send-spoe-group 'g'.",
            ),
        ];
        let file = ENGINE.replace(" messages m\n", " messages m\n groups g heads\n")
            + "spoe-message heads\n args path\nspoe-group heads\n messages heads\n";
        for (rule, expected) in rows {
            let found = said(&format!(" {rule}"), &file);
            match expected {
                "" => assert_eq!(found, [""; 0], "{rule}"),
                _ => assert!(found.len() == 1 && found[0].contains(expected), "{rule}: {found:?}"),
            }
        }
    }
}
