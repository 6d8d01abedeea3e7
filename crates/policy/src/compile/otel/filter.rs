//! Compiles `filter otel`: names of spans become indices, samples and conditions are compiled. Must never send
//! anything.

use crate::compile::Compiler;
use crate::compile::names::SpecNames;
use crate::program::{OtelCarrier, OtelFilter, OtelFinish, OtelReference, OtelScope, OtelSpan, OtelSpanEvent};
use crate::rule::{Parsing, Words};
use config::diagnostic::Form;
use config::document::Word;
use config::span::Spanned;
use config::spec::{
    FilterSpec, OtelCarrierSpec, OtelEvent, OtelFileSpec, OtelFilterSpec, OtelScopeSpec, OtelSpanSpec, ProxySpec,
    RuleLineSpec, Spec, WHOLE_SAMPLE,
};
use config::suggest::nearest;
use expression::Expression;
use expression::sample::EvalPlace;
use std::cell::RefCell;
use std::sync::Arc;

/// Maximum number of spans per filter.
const MOST_SPANS: usize = 512;

/// Returns the place where the samples of an event are evaluated, as named in messages.
fn place(event: Option<OtelEvent>) -> EvalPlace {
    match event {
        Some(OtelEvent::FrontendTcpRequest | OtelEvent::BackendTcpRequest) => EvalPlace::FrontRequestContent,
        Some(event) if event.is_of_response() => EvalPlace::FrontResponseHead,
        _ => EvalPlace::FrontRequestHead,
    }
}

/// The compiler of one filter.
struct OtelFilterCompiler<'a, 's> {
    proxy: &'a ProxySpec,
    file: &'a OtelFileSpec,
    names: &'a SpecNames<'s>,
    spans: Vec<Box<str>>,
}

/// Converts a percentage, in millionths of a percent, to a fraction of 2^63.
fn share(written: u32) -> u64 {
    ((u128::from(written) << 63) / u128::from(WHOLE_SAMPLE)) as u64
}

impl OtelFilterCompiler<'_, '_> {
    /// Returns the index of a span; adds an unknown name.
    fn span(&mut self, name: &str) -> usize {
        match self.spans.iter().position(|known| **known == *name) {
            Some(place) => place,
            None => {
                self.spans.push(name.into());
                self.spans.len() - 1
            }
        }
    }

    /// Resolves a name to a span that a scope opens, or else to a context.
    fn reference(&mut self, name: &Spanned<String>) -> OtelReference {
        let spans = self.file.scopes.iter().flat_map(|scope| &scope.spans);
        if spans.into_iter().any(|span| span.name.value == name.value) {
            return OtelReference::Span(self.span(&name.value));
        }
        OtelReference::Context(name.value.as_str().into())
    }
}

fn carrier(written: &OtelCarrierSpec) -> OtelCarrier {
    let prefix = &written.prefix.value;
    let field = |name: &str| match prefix.as_str() {
        "-" => name.as_bytes().into(),
        prefix => format!("{}-{name}", prefix.to_ascii_lowercase()).into_bytes().into(),
    };
    OtelCarrier {
        name: prefix.as_str().into(),
        fields: written.headers.then(|| ["traceparent", "tracestate", "baggage"].map(field)),
        kept: written.variables,
    }
}

impl Compiler<'_> {
    /// Compiles the OpenTelemetry filters of a proxy.
    pub(in crate::compile) fn otel_filters(
        &mut self,
        spec: &Spec,
        index: usize,
        proxy: &ProxySpec,
    ) -> Box<[Arc<OtelFilter>]> {
        let first = usize::from(spec.global.otel_exporter.is_some());
        let mut filters: Vec<Arc<OtelFilter>> = Vec::new();
        for filter in &proxy.filters.list {
            let FilterSpec::Otel(written) = filter else { continue };
            // An unreadable file was reported before.
            let Some(content) = written.content else {
                self.failed = true;
                continue;
            };
            let Some(file) = spec.sections.otel_filters.get(content) else { continue };
            if filters.iter().any(|known| *known.name == *written.name()) {
                let message = format!("OpenTelemetry filter '{}' : there is another one of that name.", written.name());
                self.alert(written.span, Form::Parsing, message);
                continue;
            }
            let names = self.names(spec, Some(index));
            let course = OtelFilterCompiler { proxy, file, names: &names, spans: Vec::new() };
            if let Some(compiled) = self.otel_filter(course, written, first + content) {
                filters.push(Arc::new(compiled));
            }
        }
        filters.into()
    }

    fn otel_filter(
        &mut self,
        mut course: OtelFilterCompiler<'_, '_>,
        written: &OtelFilterSpec,
        exporter: usize,
    ) -> Option<OtelFilter> {
        let file = course.file;
        let pipeline = file.pipeline.as_ref()?;
        let own = file.scopes.iter().map(|scope| &scope.name.value);
        let known: Vec<&str> = own.map(String::as_str).collect();
        let groups = file.groups.iter();
        for name in file.used_scopes.iter().chain(groups.clone().flat_map(|(_, scopes)| scopes)) {
            self.otel_name(name, "otel-scope", &known);
        }
        let of_groups: Vec<&str> = groups.clone().map(|(name, _)| name.value.as_str()).collect();
        file.used_groups.iter().for_each(|name| self.otel_name(name, "otel-group", &of_groups));
        // The ACLs of the file are separate from those of the proxy.
        let of_proxy = self.shared.acls.take();
        let mut scopes = Vec::new();
        for scope in &file.scopes {
            let is_used = file.used_scopes.iter().any(|name| name.value == scope.name.value);
            scopes.push(self.otel_scope(&mut course, scope, is_used));
        }
        self.shared.acls.replace(of_proxy);
        if course.spans.len() > MOST_SPANS {
            self.alert(file.span, Form::Parsing, format!("'filter' : more than {MOST_SPANS} spans."));
        }
        let places = |scopes: &[Spanned<String>]| {
            scopes.iter().filter_map(|name| known.iter().position(|known| *known == name.value)).collect()
        };
        Some(OtelFilter {
            name: written.name().into(),
            exporter,
            parent_based: pipeline.sampler.parent_based,
            share: share(pipeline.sampler.share),
            rate: if file.disabled { 0 } else { share(file.rate_limit.unwrap_or(WHOLE_SAMPLE)) },
            hard_errors: file.hard_errors,
            spans: course.spans.into(),
            scopes: scopes.into(),
            groups: groups.map(|(name, scopes)| (name.value.as_str().into(), places(scopes))).collect(),
        })
    }

    /// Reports a reference to a section that does not exist.
    fn otel_name(&mut self, name: &Spanned<String>, kind: &str, known: &[&str]) {
        if !known.contains(&name.value.as_str()) {
            let hint = nearest(&name.value, known.iter().copied()).map(|known| format!("there is '{known}'"));
            let message = format!("'filter' : there is no {kind} '{}'.", name.value);
            self.alert_with_hint(name.span, Form::Parsing, message, hint);
        }
    }

    /// Compiles a scope. A scope that the instrumentation does not name is used only in groups.
    fn otel_scope(
        &mut self,
        course: &mut OtelFilterCompiler<'_, '_>,
        written: &OtelScopeSpec,
        is_used: bool,
    ) -> OtelScope {
        let event = written.event.as_ref().map(|(event, _)| *event);
        let acls: Vec<RuleLineSpec> = course.file.acls.iter().chain(&written.acls).cloned().collect();
        let reach = self.acls(&acls, course.names);
        let condition = written.event.as_ref().and_then(|(_, line)| {
            let what = "error detected while parsing an 'otel-event' condition";
            self.bare_condition(line, &line.words, &reach, course.names, what)
        });
        let spans = written.spans.iter().map(|span| self.otel_span(course, span, event)).collect();
        let finish = written.finish.iter().map(|name| match name.value.as_str() {
            "*" => OtelFinish::All,
            "*req*" => OtelFinish::Request,
            "*res*" => OtelFinish::Response,
            _ => OtelFinish::One(course.reference(name)),
        });
        let finish = finish.collect();
        let extracts = written.extracts.iter().map(carrier).collect();
        OtelScope { event: event.filter(|_| is_used), condition, extracts, spans, finish }
    }

    fn otel_span(
        &mut self,
        course: &mut OtelFilterCompiler<'_, '_>,
        written: &OtelSpanSpec,
        event: Option<OtelEvent>,
    ) -> OtelSpan {
        let span = course.span(&written.name.value);
        let parent = written.parent.as_ref().map(|name| course.reference(name));
        let links = written.links.iter().map(|name| course.reference(name)).collect();
        let course = &*course;
        let mut pairs = |list: &[(String, RuleLineSpec)]| {
            let pair =
                |(name, line): &(String, RuleLineSpec)| (name.as_str().into(), self.otel_samples(course, line, event));
            list.iter().map(pair).collect()
        };
        let (attributes, baggage) = (pairs(&written.attributes), pairs(&written.baggage));
        let events = written.events.iter().map(|(name, key, line)| {
            let value = self.otel_samples(course, line, event);
            OtelSpanEvent { name: name.as_str().into(), key: key.as_str().into(), value }
        });
        let events = events.collect();
        let status = written.status.as_ref().map(|(code, line)| (*code, self.otel_samples(course, line, event)));
        let inject = written.inject.as_ref().map(carrier);
        OtelSpan { span, root: written.root, parent, links, attributes, events, baggage, status, inject }
    }

    /// Compiles the samples of a line; reports invalid ones and omits them.
    fn otel_samples(
        &mut self,
        course: &OtelFilterCompiler<'_, '_>,
        line: &RuleLineSpec,
        event: Option<OtelEvent>,
    ) -> Box<[Expression]> {
        course.names.begin(line);
        let place = place(event);
        let (mut found, mut rest) = (Vec::new(), line.words.as_slice());
        while !rest.is_empty() {
            // The first word of a rule is its action.
            let words: Vec<Word> = [Word::default()].into_iter().chain(rest.iter().cloned()).collect();
            let (names, proxy) = (course.names, course.proxy);
            let parsing = Parsing { names, place: EvalPlace::Log, set: 0, proxy, warnings: RefCell::default() };
            let mut taken = Words::all(&words);
            let read = parsing.sample(&mut taken, place);
            let left = taken.rest().len();
            match read {
                Ok(expression) => found.push(expression),
                Err(error) => {
                    let text = format!("'filter' : {}.", error.message);
                    self.alert_with_hint(rest[0].span, Form::Parsing, text, error.hint);
                    break;
                }
            }
            rest = &rest[rest.len() - left..];
        }
        found.into()
    }
}
