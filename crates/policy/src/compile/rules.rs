//! Compiles ACLs, rules and switching rules to conditions and actions; reports errors at their location. Must never
//! evaluate a rule.

use super::Compiler;
use super::names::{Reach, SpecNames, position};
use super::places::{QUIC, is_of_transport, named_place, place};
use crate::program::StatsPage;
use crate::rule::{
    Action, BodyWait, Decompression, Parsing, PersistRule, Rule, RuleError, RuleNames, Rules, ServerChoice, ServerRule,
    ServerTarget, Switch, Target, Wait, Words, redirect_rule,
};
use config::diagnostic::{Diagnostic, Form, ReportOrder, Severity};
use config::document::Word;
use config::keyword::rule::{
    HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE, QUIC_INITIAL, RULE_SETS, TCP_REQUEST_CONNECTION,
    TCP_REQUEST_CONTENT, TCP_REQUEST_SESSION, TCP_RESPONSE_CONTENT,
};
use config::span::Span;
use config::spec::{Mode, PersistRuleSpec, ProxyKind, ProxySpec, RuleLineSpec, RuleSpec, Spec};
use config::suggest::nearest;
use expression::Names;
use expression::condition::{AclScope, Condition, ConditionError, SuspectTest, parse_acl, parse_condition};
use expression::log_format::{LogFormat, Purpose};
use expression::sample::{EvalPlace, RulePlace};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The compiled rules of a proxy.
#[derive(Default)]
pub(super) struct CompiledRules {
    pub(super) rules: Rules,
    pub(super) switching: Vec<Switch>,
    pub(super) monitor_fail: Vec<Condition>,
    pub(super) stats: Option<Box<StatsPage>>,
    pub(super) force_switching: Vec<Condition>,
    pub(super) choice: ServerChoice,
}

impl Compiler<'_> {
    /// Compiles the ACLs and rules of one proxy.
    pub(super) fn rules(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> CompiledRules {
        self.spoe_engines(spec, index, written);
        let names = self.names(spec, Some(index));
        let reach = self.acls(&written.rules.acls, &names);
        let mut compiled = CompiledRules::default();
        let mut lists: [Vec<Rule>; 8] = Default::default();
        let mut inherited = [false; 8];
        for rule in &written.rules.rules {
            let Some(found) = self.rule(rule, written, &reach, &names) else { continue };
            let list = match rule.set {
                HTTP_REQUEST => 0,
                HTTP_RESPONSE => 1,
                HTTP_AFTER_RESPONSE => 2,
                TCP_REQUEST_CONNECTION => 3,
                TCP_REQUEST_SESSION => 4,
                TCP_REQUEST_CONTENT => 5,
                TCP_RESPONSE_CONTENT => 6,
                QUIC_INITIAL => 7,
                _ => continue,
            };
            // Rules of the 'defaults' section may end before those of the proxy.
            let follows = std::mem::replace(&mut inherited[list], rule.line.inherited) == rule.line.inherited;
            if list < 3 && follows && lists[list].last().is_some_and(|last: &Rule| last.ends_all()) {
                self.warn_of_end(rule);
            }
            lists[list].push(found);
        }
        compiled.stats = self.stats_page(&spec.global, written, &reach, &names);
        let redirects = written.rules.redirects.iter();
        let redirects = redirects.filter_map(|line| self.redirect(line, written, &reach, &names)).collect();
        for line in &written.rules.monitor_fail {
            let what = "error detected while parsing a 'monitor fail' condition";
            compiled.monitor_fail.extend(self.bare_condition(line, &line.words, &reach, &names, what));
        }
        for line in &written.rules.force_switching {
            let what = "'force-be-switch'";
            compiled.force_switching.extend(self.bare_condition(line, &line.words, &reach, &names, what));
        }
        let choice = self.server_choice(written, &reach, &names);
        if written.kind != ProxyKind::Frontend {
            compiled.choice = choice;
        }
        compiled.rules = Rules { redirects, ..by_set(lists, written) };
        compiled.rules.spoe = self.add_spoe_events(written, &mut compiled.rules);
        for line in &written.rules.switching {
            compiled.switching.extend(self.switch(line, written, &reach, &names));
        }
        compiled
    }

    pub(super) fn acls(&mut self, written: &[RuleLineSpec], names: &SpecNames<'_>) -> Reach {
        let reach = Rc::clone(&self.shared.acls);
        reach.replace(Reach::default());
        for line in written {
            let Some((name, words)) = line.words.split_first() else { continue };
            names.begin(line);
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            match parse_acl(&texts, names) {
                Ok(read) => {
                    if let Some(doubt) = read.doubt {
                        self.doubt(words, 0, doubt, &name.text, names);
                    }
                    reach.borrow_mut().of_mut(line).add(position(line.span), &name.text, read.test);
                }
                Err(error) => {
                    // Prevents further errors about conditions that refer to it.
                    reach.borrow_mut().of_mut(line).add_broken(position(line.span), &name.text);
                    let span = words.get(error.word).map_or(line.span, |word| word.span);
                    let message = format!("error detected while parsing ACL '{}' : {}.", name.text, error.message);
                    self.alert_with_hint(span, Form::Parsing, message, error.hint);
                }
            }
        }
        reach.borrow().clone()
    }

    /// Reports HAProxy's warning about a suspicious test. `acl` is the name of the ACL.
    fn doubt(&mut self, words: &[Word], criterion: usize, doubt: SuspectTest, acl: &str, names: &SpecNames<'_>) {
        if let SuspectTest::UnknownGroup(behind) = doubt {
            let Some(word) = words.get(criterion + behind) else { return };
            let proxy = names.current_name().unwrap_or_default();
            let message = format!("proxy {proxy}: acl {acl} http_auth_group(): invalid group '{}'.", word.text);
            return self.alert(word.span, Form::Bare, message);
        }
        let Some(word) = words.get(criterion) else { return };
        let behind = |at: usize| words.get(criterion + at).unwrap_or(word);
        let diag = match doubt {
            SuspectTest::Nothing => {
                let met = if word.text == "unless" { "never" } else { "always" };
                Some((word, format!("nothing follows '{}': the condition is {met} met.", word.text)))
            }
            SuspectTest::OperatorAsText(at) => {
                let found = behind(at);
                let message = format!(
                    "'{}' is a text to match here, since '{}' is matched as a text: add '-m int' to compare numbers.",
                    found.text, word.text
                );
                Some((found, message))
            }
            SuspectTest::DashAsRange(at) => {
                let found = behind(at);
                Some((
                    found,
                    format!("a dash separates the ends of a range: '{}' is all up to its number.", found.text),
                ))
            }
            _ => None,
        };
        if let Some((word, message)) = diag {
            return self.warn(Diagnostic::new(Severity::Diag, word.span, message));
        }
        let keyword = word.text.split(['(', ',']).next().unwrap_or_default();
        if doubt == SuspectTest::MethodOverwritten {
            let message =
                format!("original matching method '{keyword}' was overwritten and will not be applied as expected.");
            return self.warn(Diagnostic::warning(word.span, message));
        }
        let message = format!(
            "parsing acl keyword '{keyword}' :\n  no pattern to match against were provided, so this ACL will never \
             match.\n  If this is what you intended, please add '--' to get rid of this warning.\n  If you intended to \
             match only for existence, please use '-m found'.\n  If you wanted to force an int to match as a bool, \
             please use '-m bool'.\n"
        );
        self.warn(Diagnostic::new(Severity::Warning, word.span, message).with_form(Form::Config));
    }

    /// Reports a warning once, since the rules of a `defaults` section are compiled for every proxy.
    pub(super) fn warn(&mut self, warning: Diagnostic) {
        if !self.out.contains(&warning) {
            self.out.push(warning);
        }
    }

    fn condition(
        &mut self,
        words: &[Word],
        acls: AclScope<'_>,
        names: &SpecNames<'_>,
    ) -> Result<Option<Condition>, (ConditionError, Option<Span>)> {
        if words.is_empty() {
            return Ok(None);
        }
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let mut doubts = Vec::new();
        let found = parse_condition(&texts, acls, names, &mut doubts);
        for (at, doubt) in doubts {
            self.doubt(words, at, doubt, "", names);
        }
        found.map(Some).map_err(|error| {
            let span = words.get(error.word).map(|word| word.span);
            (error, span)
        })
    }

    /// Whether the words after an action are a condition or empty; reports anything else.
    fn leads_to_condition(&mut self, rest: &[Word], what: &str, written: &ProxySpec) -> bool {
        let Some(first) = rest.first() else { return true };
        if !first.quoted && matches!(first.text.as_str(), "if" | "unless") {
            return true;
        }
        let hint = nearest(&first.text, ["if", "unless"]).map(|known| format!("did you mean '{known}'?"));
        if is_of_transport(what) {
            let owner = owner(written);
            // HAProxy quotes three words of the line.
            let third = if what.starts_with(QUIC) { format!(" {}", first.text) } else { String::new() };
            let message = format!("'{what}{third}' only accepts 'if' or 'unless', in {owner} (got '{}')", first.text);
            self.alert_with_hint(first.span, Form::Parsing, message, hint);
        } else {
            let message =
                format!("'{what}' expects either 'if' or 'unless' followed by a condition but found '{}'.", first.text);
            self.alert_with_hint(first.span, Form::ParsingTight, message, hint);
        }
        false
    }

    pub(super) fn rule(
        &mut self,
        rule: &RuleSpec,
        written: &ProxySpec,
        reach: &Reach,
        names: &SpecNames<'_>,
    ) -> Option<Rule> {
        let (set, line) = (rule.set, &rule.line);
        names.begin(line);
        let set_name = RULE_SETS.iter().find(|row| row.0 == set).map_or("", |row| row.1);
        let mut words = Words::new(&line.words);
        let what = format!("{set_name} {}", words.action());
        let place = place(set, written.kind);
        let Some(parse) = names.registry().action(words.action(), set) else {
            self.unknown_action(rule, written, names);
            return None;
        };
        let parsing = Parsing { names, place, set, proxy: written, warnings: RefCell::default() };
        let read = parse(&mut words, &parsing);
        self.say(parsing, line);
        let action = match read {
            Ok(action) => action,
            Err(RuleError { message, hint, span, whole: true }) => {
                // HAProxy detects this error only after the whole line.
                if !self.leads_to_condition(words.rest(), &what, written) {
                    return None;
                }
                self.alert_with_hint(span.unwrap_or(line.span), Form::Bare, message, hint);
                return None;
            }
            Err(RuleError { message, hint, span, .. }) => {
                let owner = owner(written);
                let message = if is_of_transport(&what) {
                    message
                } else {
                    format!("error detected in {owner} while parsing '{what}' rule : {message}.")
                };
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, hint);
                return None;
            }
        };
        let rest = words.rest();
        if !self.leads_to_condition(rest, &what, written) {
            return None;
        }
        let condition = match self.condition(rest, reach.of(line), names) {
            Ok(condition) => condition,
            Err((error, span)) => {
                let (why, owner) = (error.message, owner(written));
                let message = if is_of_transport(&what) {
                    let word = rest.first().map_or("if", |word| &word.text);
                    let third = if what.starts_with(QUIC) { format!(" {word}") } else { String::new() };
                    format!("'{what}{third}' : error detected in {owner} while parsing '{word}' condition : {why}")
                } else {
                    format!("error detected while parsing an '{what}' condition : {why}.")
                };
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, error.hint);
                return None;
            }
        };
        let set_name = if is_of_transport(set_name) { set_name } else { "" };
        self.warn_of_misfit(condition.as_ref(), rest, place, named_place(place, written), set_name, written);
        self.warn_of_haste(&action, condition.as_ref(), rule, written);
        if self.misses_filter(&action, line, written) || self.misses_buffers(&action, line, written, names) {
            return None;
        }
        Some(Rule { condition, action, place: rule_place(line) })
    }

    /// Reports a rule with an unknown action, with a hint if a registered one has a similar name.
    fn unknown_action(&mut self, rule: &RuleSpec, written: &ProxySpec, names: &SpecNames<'_>) {
        let Some(word) = rule.line.words.first() else { return };
        let name = word.text.split('(').next().unwrap_or_default();
        let (message, hint) = config::keyword::rule::unknown(rule.set, &word.text, &written.name.value);
        let known = nearest(name, names.registry().action_names(rule.set));
        let hint = known.map(|known| format!("did you mean '{known}'?")).or(hint);
        self.alert_with_hint(word.span, Form::Parsing, message, hint);
    }

    /// Reports HAProxy's warnings about captures and tracking on content without an inspect delay, and about clients
    /// that could be tracked earlier.
    fn warn_of_haste(&mut self, action: &Action, condition: Option<&Condition>, rule: &RuleSpec, written: &ProxySpec) {
        let (what, key) = match action {
            Action::Capture { expression, .. } => ("capture", expression),
            Action::Track(track) if written.kind != ProxyKind::Backend => ("content track-sc*", &track.key),
            _ => return,
        };
        if rule.set != TCP_REQUEST_CONTENT {
            return;
        }
        let waits = written.rules.request_inspect_delay.is_some_and(|delay| delay > 0);
        let of_content = key.fetch().refusal(EvalPlace::Session).is_some();
        let told = if of_content && !waits {
            "explicitly depending on request contents without any 'tcp-request inspect-delay' setting. This means that this \
             rule will randomly find its contents. This can be fixed by setting the tcp-request inspect-delay."
        } else if !of_content
            && matches!(action, Action::Track(_))
            && written.mode == Mode::Http
            && condition.is_none_or(|condition| condition.misfit(EvalPlace::Session, EvalPlace::Session, "").is_none())
        {
            "not depending on request contents for an HTTP frontend should be executed at the session level, using a \
             'tcp-request session' rule (mandatory to track invalid HTTP requests)."
        } else {
            return;
        };
        let message = format!("{} : a 'tcp-request {what}' rule {told}", owner(written));
        self.warn(Diagnostic::warning(rule.line.span, message).with_form(Form::Bare));
    }

    /// Whether an action requires large buffers that are not configured; reports it.
    fn misses_buffers(
        &mut self,
        action: &Action,
        line: &RuleLineSpec,
        written: &ProxySpec,
        names: &SpecNames<'_>,
    ) -> bool {
        let asks = matches!(
            action,
            Action::Wait(
                Wait::Body(BodyWait { large: true, .. }) | Wait::Decompressed(Decompression { large: true, .. })
            )
        );
        if !asks || names.spec.global.tune.large_bufsize.is_some() {
            return false;
        }
        let file = self.shared.files.get(line.span.file as usize).map_or("", |name| name);
        let message = format!(
            "Proxy '{}': unable to use large buffers at {file}:{}, 'tune.bufsize.large' global parameter must be set.",
            written.name.value, line.span.line
        );
        self.alert(line.span, Form::Bare, message);
        true
    }

    /// Reports the warnings of a parser.
    pub(super) fn say(&mut self, parsing: Parsing<'_>, line: &RuleLineSpec) {
        for message in parsing.warnings.into_inner() {
            self.warn(Diagnostic::warning(line.span, message));
        }
    }

    /// Compiles a `redirect` line.
    fn redirect(
        &mut self,
        line: &RuleLineSpec,
        written: &ProxySpec,
        reach: &Reach,
        names: &SpecNames<'_>,
    ) -> Option<Rule> {
        names.begin(line);
        let owner = owner(written);
        let place = place(HTTP_REQUEST, written.kind);
        let mut words = Words::new(&line.words);
        let parsing = Parsing { names, place, set: HTTP_REQUEST, proxy: written, warnings: RefCell::default() };
        let action = match redirect_rule(&mut words, &parsing) {
            Ok(action) => action,
            Err(RuleError { message, hint, span, .. }) => {
                let message = format!("error detected in {owner} while parsing redirect rule : {message}.");
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, hint);
                return None;
            }
        };
        let condition = match self.condition(words.rest(), reach.of(line), names) {
            Ok(condition) => condition,
            Err((error, span)) => {
                let message = format!(
                    "error detected in {owner} while parsing redirect rule : error in condition: {}.",
                    error.message
                );
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, error.hint);
                return None;
            }
        };
        self.warn_of_misfit(condition.as_ref(), words.rest(), place, named_place(place, written), "", written);
        Some(Rule { condition, action, place: rule_place(line) })
    }

    /// Compiles a condition without an action; `what` is the start of error messages.
    pub(super) fn bare_condition(
        &mut self,
        line: &RuleLineSpec,
        words: &[Word],
        reach: &Reach,
        names: &SpecNames<'_>,
        what: &str,
    ) -> Option<Condition> {
        names.begin(line);
        match self.condition(words, reach.of(line), names) {
            Ok(condition) => condition,
            Err((error, span)) => {
                let message = format!("{what} : {}.", error.message);
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, error.hint);
                None
            }
        }
    }

    /// Reports HAProxy's warning about a rule that is never reached.
    fn warn_of_end(&mut self, rule: &RuleSpec) {
        let set_name = RULE_SETS.iter().find(|row| row.0 == rule.set).map_or("", |row| row.1);
        let message =
            format!("previous '{set_name}' action is final and has no condition attached, further entries are NOOP.");
        self.warn(Diagnostic::warning(rule.line.span, message).with_form(Form::ParsingTight));
    }

    /// Compiles the rules that select servers.
    fn server_choice(&mut self, written: &ProxySpec, reach: &Reach, names: &SpecNames<'_>) -> ServerChoice {
        let mut persistence = Vec::new();
        for PersistRuleSpec { forces, line } in &written.rules.persistence {
            let keyword = if *forces { "force-persist" } else { "ignore-persist" };
            let what = format!("error detected while parsing a '{keyword}' rule");
            let condition = self.bare_condition(line, &line.words, reach, names, &what);
            self.warn_of_misfit(
                condition.as_ref(),
                &line.words,
                EvalPlace::BackRequestContent,
                EvalPlace::BackRequestContent,
                "",
                written,
            );
            persistence.extend(condition.map(|condition| PersistRule { condition, forces: *forces }));
        }
        let rules = written.rules.use_server.iter().filter_map(|line| self.use_server(line, written, reach, names));
        let rules = rules.collect();
        let servers = written.servers.iter().enumerate();
        let by_name = |(index, server): (usize, &config::spec::ServerSpec)| {
            (config::text::to_bytes(&server.name.value).into_owned().into(), index)
        };
        ServerChoice {
            rules,
            persistence: persistence.into(),
            persists: written.options.persist,
            names: servers.map(by_name).collect(),
            stick: written.rules.stick.iter().filter_map(|line| self.stick(line, written, reach, names)).collect(),
        }
    }

    fn use_server(
        &mut self,
        line: &RuleLineSpec,
        written: &ProxySpec,
        reach: &Reach,
        names: &SpecNames<'_>,
    ) -> Option<ServerRule> {
        let (target, rest) = line.words.split_first()?;
        let what = "error detected while parsing switching rule";
        let condition = self.bare_condition(line, rest, reach, names, what)?;
        self.warn_of_misfit(Some(&condition), rest, EvalPlace::ServerChoice, EvalPlace::ServerChoice, "", written);
        let name = &target.text;
        if name.contains('%') {
            names.begin_late();
            return match LogFormat::for_rule(name, Purpose::Text, EvalPlace::ServerChoice, names) {
                Ok(format) => {
                    Some(ServerRule { condition, target: ServerTarget::Named(format), place: rule_place(line) })
                }
                Err(error) => {
                    let message = format!("use-server rule failed to parse log-format '{name}' : {error}.");
                    self.alert_with_hint(target.span, Form::Parsing, message, error.hint());
                    None
                }
            };
        }
        let own = names.proxy.and_then(|proxy| self.shared.indexes.server(names.spec, proxy, name));
        let Some(server) = own else {
            let owner = owner(written);
            let message = format!("{owner} : unable to find server '{name}' referenced in a 'use-server' rule.");
            self.alert(target.span, Form::Bare, message);
            return None;
        };
        self.shared.pins.borrow_mut().servers.extend(names.proxy.map(|proxy| (proxy, server)));
        Some(ServerRule { condition, target: ServerTarget::Server(server), place: rule_place(line) })
    }

    /// Reports HAProxy's warning about a condition with fetches that are not available at the place; HAProxy
    /// names it `shown`.
    pub(super) fn warn_of_misfit(
        &mut self,
        condition: Option<&Condition>,
        words: &[Word],
        place: EvalPlace,
        shown: EvalPlace,
        set: &str,
        written: &ProxySpec,
    ) {
        let (Some(condition), Some(first)) = (condition, words.first()) else { return };
        let set = if set.is_empty() { String::new() } else { format!(" in '{set}'") };
        if let Some(message) = condition.misfit(place, shown, &set) {
            self.warn(Diagnostic::warning(first.span, message));
        }
        if written.mode == Mode::Http && condition.asks_for_layer6() {
            let (file, line) = (self.shared.files.get(first.span.file as usize), first.span.line);
            let message = format!(
                "Proxy '{}': L6 sample fetches ignored on HTTP proxies (declared at {}:{line}).",
                written.name.value,
                file.map_or("", |name| name)
            );
            let turn = ReportOrder::Early(if place == EvalPlace::Switching { 6 } else { 7 });
            self.warn(Diagnostic::warning(first.span, message).with_form(Form::Bare).in_turn(turn, written.name.span));
        }
    }

    fn switch(
        &mut self,
        line: &RuleLineSpec,
        written: &ProxySpec,
        reach: &Reach,
        names: &SpecNames<'_>,
    ) -> Option<Switch> {
        names.begin(line);
        let (target, rest) = line.words.split_first()?;
        let condition = match self.condition(rest, reach.of(line), names) {
            Ok(condition) => condition,
            Err((error, span)) => {
                let message = format!("error detected while parsing switching rule : {}.", error.message);
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, error.hint);
                return None;
            }
        };
        self.warn_of_misfit(condition.as_ref(), rest, EvalPlace::Switching, EvalPlace::Switching, "", written);
        if target.text.contains('%') {
            names.begin_late();
            let format = LogFormat::for_rule(&target.text, Purpose::Text, EvalPlace::Switching, names);
            let format = match format {
                Ok(format) => format,
                Err(error) => {
                    let message = format!("failed to parse use_backend rule '{}' : {error}.", target.text);
                    self.alert_with_hint(target.span, Form::LateParsing, message, error.hint());
                    return None;
                }
            };
            let target = Target::Named(format, self.shared.indexes.switched(names.spec, names.proxy), written.mode);
            return Some(Switch { condition, target, place: rule_place(line) });
        }
        // The parser has checked that the proxy exists.
        let index = names.backend(&target.text)?;
        Some(Switch { condition, target: Target::Proxy(index), place: rule_place(line) })
    }
}

/// Returns the location of a rule.
pub(super) fn rule_place(line: &RuleLineSpec) -> RulePlace {
    RulePlace { file: line.span.file, line: line.span.line }
}

/// Converts the lists of rules, in the order of collection, to [`Rules`].
fn by_set(lists: [Vec<Rule>; 8], written: &ProxySpec) -> Rules {
    let [
        http_request,
        http_response,
        http_after_response,
        connection,
        session,
        request_content,
        response_content,
        quic_initial,
    ] = lists.map(Vec::into_boxed_slice);
    let delay = |millis: Option<u64>| millis.filter(|millis| *millis > 0).map(Duration::from_millis);
    Rules {
        quic_initial,
        connection,
        session,
        request_content,
        request_delay: delay(written.rules.request_inspect_delay),
        response_content,
        response_delay: delay(written.rules.response_inspect_delay),
        http_request,
        redirects: Box::default(),
        http_response,
        http_after_response,
        spoe: None,
    }
}

/// Returns the name of a proxy in messages.
pub(super) fn owner(written: &ProxySpec) -> String {
    let kind = match written.kind {
        ProxyKind::Frontend => "frontend",
        ProxyKind::Backend => "backend",
        ProxyKind::Listen => "proxy",
    };
    format!("{kind} '{}'", written.name.value)
}
