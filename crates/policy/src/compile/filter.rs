//! Compiles filters: the names of a sequence become indices. Must never judge the parameters of a filter.

use super::Compiler;
use crate::program::{
    Bandwidth, CacheFilter, Compression, CompressionFilter, Filter, Filters, ScriptFilter, SharedBandwidth, Trace,
};
use crate::rule::{Action, RuleNames, expression_text};
use config::diagnostic::Form;
use config::keyword::rule::HTTP_RESPONSE;
use config::span::Spanned;
use config::spec::{
    BandwidthSpec, CompressionDirection, CompressionSpec, DataKind, FilterSpec, FiltersSpec, ProxySpec, RuleLineSpec,
    RuleSpec, ScriptFilterSpec, SharedLimitSpec, Spec,
};
use expression::sample::{EvalPlace, cast};
use expression::{Expression, Names};
use live::table::sample_type;
use std::sync::Arc;
use std::time::Duration;

/// Compiles a filter without a shared limit.
fn filter_of(written: &FilterSpec, proxy: &str, direction: CompressionDirection) -> Filter {
    match written {
        FilterSpec::Bandwidth(limit) => Filter::Bandwidth(Bandwidth {
            upload: limit.upload,
            limit: limit.limit.into(),
            period: Duration::from_millis(limit.period.into()),
            min_size: limit.min_size.into(),
        }),
        FilterSpec::Plain(own) => Filter::Plain(own.clone()),
        // The caller resolves the names of the caches.
        FilterSpec::Cache { explicit, .. } => Filter::Cache(CacheFilter { cache: usize::MAX, first: !explicit }),
        FilterSpec::FcgiApp => Filter::FcgiApp,
        FilterSpec::Spoe(_) => Filter::Spoe,
        // The caller resolves the name.
        FilterSpec::Otel(_) | FilterSpec::Script(_) => Filter::Otel,
        FilterSpec::Compression { upload, explicit } => {
            let directed = match direction {
                CompressionDirection::Request => *upload,
                CompressionDirection::Response => !*upload,
                CompressionDirection::Both => true,
            };
            Filter::Compression(CompressionFilter { upload: *upload, enabled: *explicit || directed })
        }
        FilterSpec::Trace(trace) => Filter::Trace(Arc::new(Trace {
            label: format!("{}/{proxy}", trace.name.as_deref().unwrap_or("TRACE")).into(),
            quiet: trace.quiet,
            random_forwarding: trace.random_forwarding,
            most: Some(trace.max_forward as usize).filter(|most| *most > 0),
            hexdump: trace.hexdump,
        })),
    }
}

/// Returns the order of filters in a sequence; the declared order without one. A name refers to the first filter that
/// has it, and repeated names are ignored.
pub(super) fn order(written: &FiltersSpec, sequence: Option<&Spanned<Vec<String>>>) -> Box<[usize]> {
    let Some(sequence) = sequence else { return (0..written.list.len()).collect() };
    let mut order = Vec::new();
    for name in &sequence.value {
        if let Some(index) = written.list.iter().position(|filter| filter.name() == name)
            && !order.contains(&index)
        {
            order.push(index);
        }
    }
    order.into()
}

/// Compiles the `compression` lines.
pub(super) fn compression(written: &CompressionSpec) -> Option<Box<Compression>> {
    let types = |list: &[String]| list.iter().map(|name| name.to_ascii_lowercase().into()).collect();
    written.written.then(|| {
        Box::new(Compression {
            algorithms: written.algorithms.iter().rev().copied().collect(),
            request_algorithm: written.request_algorithm,
            types: types(&written.types),
            request_types: types(&written.request_types),
            least: written.least,
            request_least: written.request_least,
            offload: written.offload,
        })
    })
}

impl Compiler<'_> {
    /// Compiles the filters of a proxy.
    pub(super) fn filters(&mut self, spec: &Spec, index: usize, proxy: &ProxySpec) -> Filters {
        let written = &proxy.filters;
        let otel = self.otel_filters(spec, index, proxy);
        let filter = |filter: &FilterSpec| match filter {
            FilterSpec::Bandwidth(limit @ BandwidthSpec { shared: Some(shared), .. }) => {
                self.shared_limit(spec, index, limit, shared)
            }
            FilterSpec::Cache { name, explicit } => {
                // An unknown cache was reported before.
                let cache = self.shared.indexes.cache(spec, name).unwrap_or(usize::MAX);
                Filter::Cache(CacheFilter { cache, first: !explicit })
            }
            FilterSpec::Script(script) => self.script_filter(script),
            _ => filter_of(filter, &proxy.name.value, proxy.compression.direction),
        };
        // A response rule cannot add the first filter to a stream.
        let replaces = |rule: &RuleSpec| {
            rule.set == HTTP_RESPONSE && rule.line.words.first().is_some_and(|word| word.text == "replace-body")
        };
        let list: Box<[Filter]> = written.list.iter().map(filter).collect();
        let implied = |filter: &Filter| matches!(filter, Filter::Cache(cache) if cache.first);
        Filters {
            are_wanted: !list.iter().all(implied) || proxy.rules.rules.iter().any(replaces),
            list,
            otel,
            request: order(written, written.request.as_ref()),
            response: order(written, written.response.as_ref()),
        }
    }

    /// Compiles a filter that a script registered; reports an unknown name and returns a filter without effect.
    fn script_filter(&mut self, written: &ScriptFilterSpec) -> Filter {
        let name = &written.name.value;
        let short = name.strip_prefix("lua.").unwrap_or(name);
        let found = self.shared.registry.filters.iter().position(|known| **known == *short);
        let Some(number) = found else {
            let known: Vec<String> = self.shared.registry.filters.iter().map(|known| format!("lua.{known}")).collect();
            let message = format!("'filter' : unknown keyword '{name}'. Registered keywords : {}", known.join(", "));
            self.alert(written.name.span, Form::Parsing, message);
            return Filter::Otel;
        };
        let arguments = written.arguments.iter().map(|word| word.as_str().into()).collect();
        Filter::Script(Arc::new(ScriptFilter { number, name: short.into(), arguments }))
    }

    /// Compiles a bandwidth limit that is shared by all streams of a key; after an error it applies to each stream
    /// separately.
    fn shared_limit(&mut self, spec: &Spec, index: usize, limit: &BandwidthSpec, shared: &SharedLimitSpec) -> Filter {
        let own = &spec.proxies[index].name.value;
        let names = self.names(spec, Some(index));
        names.begin(&shared.key);
        let first = shared.key.words.first().map_or(shared.key.span, |word| word.span);
        let read = Expression::parse_all(
            &expression_text(&shared.key.words, names.vocabulary()),
            EvalPlace::FrontRequestContent,
            &names,
        );
        let name = shared.table.as_ref().map_or(own, |table| &table.value);
        let place = shared.table.as_ref().map_or(first, |table| table.span);
        let plan = names.table(name).and_then(|table| Some((table, names.table_plan(table)?)));
        let rate = if limit.upload { DataKind::BytesInRate } else { DataKind::BytesOutRate };
        let why = match (&read, &plan) {
            (Err(error), _) => {
                let kind = if limit.upload { "bwlim-in" } else { "bwlim-out" };
                let message = format!("'filter' : 'filter {kind}' : failed to parse the key : {}", error.message);
                self.alert_with_hint(first, Form::Parsing, message, error.hint.clone());
                None
            }
            (_, None) => Some(format!("unable to find table '{name}' referenced by bwlim filter '{}'", limit.name)),
            (Ok(key), Some((_, plan))) if cast(key.output(), sample_type(plan.key)).is_none() => {
                Some(format!("stick-table '{name}' uses a key type incompatible with bwlim filter '{}'", limit.name))
            }
            (_, Some((_, plan))) if !plan.layout.has(rate) => Some(format!(
                "stick-table '{name}' uses a data type incompatible with bwlim filter '{}'. It must be '{}'",
                limit.name,
                rate.name()
            )),
            _ => None,
        };
        if let Some(why) = why {
            self.alert(place, Form::Bare, format!("Proxy {own} : {why}"));
        }
        match (read, plan) {
            (Ok(key), Some((table, _))) => Filter::SharedBandwidth(Arc::new(SharedBandwidth {
                upload: limit.upload,
                limit: limit.limit.into(),
                min_size: limit.min_size.into(),
                table,
                key,
            })),
            _ => filter_of(&FilterSpec::Bandwidth(limit.clone()), own, CompressionDirection::default()),
        }
    }

    /// Reports a rule that names a filter which its proxy does not have. Returns true if it does.
    pub(super) fn misses_filter(&mut self, action: &Action, line: &RuleLineSpec, written: &ProxySpec) -> bool {
        let Action::LimitBandwidth(change) = action else { return false };
        if change.filter.is_some() && !line.inherited {
            return false;
        }
        let message = format!(
            "Proxy '{}': unable to find bwlim filter '{}' referenced by set-bandwidth-limit rule.",
            written.name.value, change.name
        );
        let hint = known_limits(written, line.inherited, &change.name);
        self.alert_with_hint(line.words.get(1).map_or(line.span, |word| word.span), Form::Bare, message, hint);
        true
    }
}

/// Returns a hint about an unknown filter.
fn known_limits(written: &ProxySpec, inherited: bool, name: &str) -> Option<String> {
    if inherited {
        return Some("write the rule in the proxy that has the filter: a 'defaults' section cannot have any".into());
    }
    let names =
        written.filters.list.iter().filter_map(|filter| {
            if let FilterSpec::Bandwidth(limit) = filter { Some(limit.name.as_str()) } else { None }
        });
    config::suggest::nearest(name, names).map(|known| format!("there is a filter '{known}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::spec::TraceSpec;

    #[test]
    fn a_sequence_names_the_first_of_each_kind_once() {
        let limit = |upload| {
            FilterSpec::Bandwidth(config::spec::BandwidthSpec {
                name: "a".into(),
                upload,
                limit: 1,
                period: 1,
                min_size: 0,
                shared: None,
            })
        };
        let trace = FilterSpec::Trace(TraceSpec::default());
        let list = vec![trace.clone(), limit(true), trace, limit(false)];
        let rows: &[(Option<&str>, &[usize])] = &[
            (None, &[0, 1, 2, 3]),
            (Some("trace"), &[0]),
            (Some("bwlim-out,trace,trace"), &[3, 0]),
            (Some("bwlim-in,bwlim-out"), &[1, 3]),
        ];
        for (names, expected) in rows {
            let sequence = names.map(|names| Spanned {
                value: names.split(',').map(str::to_owned).collect(),
                span: config::span::Span::default(),
            });
            let written = FiltersSpec { list: list.clone(), request: sequence, response: None };
            assert_eq!(&*order(&written, written.request.as_ref()), *expected, "{names:?}");
            assert_eq!(&*order(&written, written.response.as_ref()), [0, 1, 2, 3]);
        }
    }

    /// Errors of rules, with HAProxy 3.5's messages where it has them.
    #[test]
    fn rules_name_limits_of_their_own_proxy() {
        let rows: &[(&str, &str)] = &[
            ("http-request set-bandwidth-limit a", ""),
            ("http-request set-bandwidth-limit a limit 1m period 10s if { src 127.0.0.1 }", ""),
            ("http-response set-bandwidth-limit a limit res.hdr(x),mul(2) period int(5)", ""),
            ("tcp-response content set-bandwidth-limit a limit 0 limit 1 period 0", ""),
            ("http-request set-bandwidth-limit", "missing bwlim filter name"),
            ("tcp-request content set-bandwidth-limit", "missing bwlim filter name"),
            ("http-request set-bandwidth-limit a limit", "'limit': invalid size value or unknown fetch method ''"),
            ("http-request set-bandwidth-limit a limit 1x", "'limit': invalid size value or unknown fetch method '1x'"),
            (
                "http-request set-bandwidth-limit a period 60d",
                "'period': invalid time value or unknown fetch method '60d'",
            ),
            ("http-request set-bandwidth-limit a limit res.hdr(x)", "may not be reliably used here"),
            ("http-request set-bandwidth-limit a foo", "condition but found 'foo'"),
            ("http-request set-bandwidth-limit b", "Proxy 'l': unable to find bwlim filter 'b' referenced by set-b"),
        ];
        for (rule, expected) in rows {
            let text = format!(
                "listen l\n bind :1\n mode http\n filter bwlim-in a default-limit 1k default-period 1s\n {rule}\n"
            );
            let file = config::InputFile { name: "x".into(), bytes: text.into_bytes() };
            let loaded =
                config::load(&[file], config::environment::Environment::new(), &config::LoadOptions::default());
            let mut found = loaded.diagnostics.clone();
            let limits = crate::SystemLimits::default();
            crate::compile(&loaded.spec, &mut crate::compile::tests::Names, &limits, &mut found);
            let alerts: Vec<_> = found.iter().filter(|found| found.is_alert()).map(|found| &found.message).collect();
            match alerts.as_slice() {
                [] => assert_eq!(*expected, "", "{rule}"),
                [alert] => assert!(!expected.is_empty() && alert.contains(expected), "{rule}: {alert}"),
                more => panic!("{rule}: {more:?}"),
            }
        }
    }
}
