//! Messages about the files of `filter otel`.

use config::diagnostic::Severity;
use config::environment::Environment;
use config::keyword::SpecOptions;
use config::{InputFile, LoadOptions};
use std::cell::RefCell;

thread_local! {
    static FILES: RefCell<(String, String)> = RefCell::default();
}

const FILE: &str = "[f]\notel-instrumentation i\n config x.yml\n scopes s\n groups g\notel-group g\n scopes s\notel-scope s\n span \
                    a root\n  attribute k src\n  status ok\n finish *\n otel-event on-client-session-start\n";
const PIPELINE: &str = "exporters:\n  e:\n    type: otlp_http\n    endpoint: http://h:4318/v1/traces\nsamplers:\n  s:\n    type: \
                        always_on\nprocessors:\n  p:\n    type: batch\nproviders:\n  o:\n    resources:\n      - service.name: \
                        n\nsignals:\n  traces:\n    exporters: e\n    samplers: s\n    processors: p\n    providers: o\n";

/// The messages about a frontend with this filter, and these files.
fn said(lines: &str, file: &str, pipeline: &str) -> Vec<String> {
    FILES.set((file.to_owned(), pipeline.to_owned()));
    let text = format!(
        "frontend f\n mode http\n bind 127.0.0.1:80\n timeout client 1s\n filter otel id f config x\n{lines}\n"
    );
    let input = InputFile { name: "x".into(), bytes: text.into_bytes() };
    let read_file = |name: &str, _: u64| {
        Ok(FILES.with_borrow(|files| if name.ends_with(".yml") { &files.1 } else { &files.0 }.clone().into_bytes()))
    };
    let spec = SpecOptions { read_file, ..SpecOptions::default() };
    let options = LoadOptions { spec, ..LoadOptions::default() };
    let loaded = config::load(&[input], Environment::new(), &options);
    let mut found = loaded.diagnostics.clone();
    let limits = crate::SystemLimits::default();
    let program = crate::compile(&loaded.spec, &mut crate::compile::tests::Names, &limits, &mut found);
    let told: Vec<_> =
        found.into_iter().filter(|found| matches!(found.severity, Severity::Alert | Severity::Warning)).collect();
    assert_eq!(program.is_none(), told.iter().any(|found| found.is_alert()), "{told:?}");
    told.into_iter().map(|found| found.message).collect()
}

#[test]
fn files_are_judged() {
    let rows = [
        ("", "", ""),
        ("[f]", "[g]", "no 'otel-instrumentation' found in file x"),
        (" config x.yml\n", "", "no 'config' in section 'otel-instrumentation' found in file x"),
        (" scopes s\n groups", " scopes t\n groups", "there is no otel-scope 't'."),
        (" groups g", " groups h", "there is no otel-group 'h'."),
        ("otel-group g\n scopes s", "otel-group g\n scopes t", "there is no otel-scope 't'."),
        (" span", " spam", "unknown keyword 'spam' in section 'otel-scope'."),
        ("otel-scope s", "otel-scope s\n attribute a src", "'attribute' : there is no 'span' before it."),
        ("a root", "a roots", "'span' : unknown argument 'roots'."),
        ("a root", "a parent", "'span' : missing name behind 'parent'."),
        ("status ok", "status fine", "'status' : unknown code 'fine'."),
        ("attribute k src", "attribute k", "'attribute' : missing argument."),
        ("attribute k src", "attribute k nope", "unknown fetch method 'nope'"),
        ("attribute k src", "inject a:b", "'a:b' cannot be a part of the name of a header field."),
        ("attribute k src", "inject a use-cookies", "unknown storage 'use-cookies'."),
        ("finish *", "instrument cnt_int a value src", "'instrument' is not supported yet by Weir"),
        ("finish *", "log-record info src", "'log-record' is not supported yet by Weir"),
        ("finish *", "idle-timeout 1s", "'idle-timeout' is not supported yet by Weir"),
        ("on-client-session-start", "on-client-session", "unknown event 'on-client-session'"),
        ("on-client-session-start", "on-idle-timeout", "'on-idle-timeout' is not supported yet by Weir."),
        ("session-start", "session-start if nope", "no such ACL : 'nope'."),
        ("session-start", "session-start nope", "expects 'if' or 'unless' and a condition, not 'nope'."),
        (
            " scopes s\n groups",
            " rate-limit 101\n scopes s\n groups",
            "'rate-limit' : '101' is no number from 0 to 100.",
        ),
        (" scopes s\n groups", " option nope\n scopes s\n groups", "'option' : unknown option 'nope'."),
        ("otel-group g", "otel-scope s\notel-group g", "'otel-scope s' : there is another one before it."),
    ];
    for (from, to, expected) in rows {
        let found = said("", &FILE.replacen(from, to, usize::from(!from.is_empty())), PIPELINE);
        match expected {
            "" => assert_eq!(found, [""; 0]),
            // The lines of an invalid span are reported as well.
            _ => assert!(found.first().is_some_and(|first| first.contains(expected)), "{to}: {found:?}"),
        }
    }
}

#[test]
fn pipelines_are_judged() {
    let rows = [
        (
            "type: otlp_http",
            "type: otlp_grpc",
            "exporters of type 'otlp_grpc' are not supported by Weir, only 'otlp_http' is.",
        ),
        ("type: otlp_http", "type: zipkin", "exporters of type 'zipkin' are not supported"),
        ("http://h:4318/v1/traces", "h:4318", "'endpoint' : 'h:4318' is no URL of http or https."),
        ("    endpoint", "    content_type: json\n    endpoint", "Weir sends protobuf in the place of 'json'."),
        ("    endpoint", "    compression: gzip\n    endpoint", "'compression gzip' is not supported by Weir."),
        ("    endpoint", "    ssl_ca_cert_path: /x\n    endpoint", "'ssl_ca_cert_path' is not supported by Weir"),
        ("    endpoint", "    timeout: x\n    endpoint", "'timeout' : 'x' is no number from 1 to 3600."),
        ("    endpoint", "    nope: x\n    endpoint", "unknown key 'nope' of an exporter."),
        ("    exporters: e", "    exporters: f", "'f' is not among the 'exporters'."),
        ("    exporters: e\n", "", "the signal 'traces' has no 'exporters'."),
        ("  traces:", "  trace:", "there is no signal 'traces' in 'signals'."),
        ("signals:\n", "signals:\n  metrics:\n    exporters: e\n", "signal 'metrics' has no effect"),
        ("type: always_on", "type: sometimes", "unknown sampler 'sometimes'."),
        ("type: always_on", "type: trace_id_ratio_based\n    ratio: 2", "'ratio' : '2' is no number from 0 to 1."),
        ("type: always_on", "type: [x]", "YAML : only plain and quoted values"),
        ("type: batch", "type: batch\n    max_queue_size: 0", "'max_queue_size' : '0' is no number from 1 to 1000000."),
    ];
    for (from, to, expected) in rows {
        assert!(PIPELINE.contains(from), "{from}");
        let found = said("", FILE, &PIPELINE.replacen(from, to, 1));
        assert!(found.len() == 1 && found[0].contains(expected), "{to}: {found:?}");
    }
    let whole =
        PIPELINE.replace("type: always_on", "type: parent_based\n    delegate: trace_id_ratio_based\n    ratio: 0.5");
    assert_eq!(said("", FILE, &whole), [""; 0]);
}

#[test]
fn rules_name_filters_and_groups_of_their_own_proxy() {
    let rows = [
        ("http-request otel-group f g", ""),
        ("http-response otel-group f g if { src 127.0.0.1 }", ""),
        ("http-after-response otel-group f g", ""),
        ("tcp-request content otel-group f g", ""),
        ("http-request otel-group f", "expects 2 arguments: <filter-id> <group-id>"),
        ("http-request otel-group x g", "unable to find the OpenTelemetry filter 'x'"),
        ("http-request otel-group f x", "unable to find the group 'x' of the OpenTelemetry filter 'f'"),
        ("filter otel id f config x", "OpenTelemetry filter 'f' : there is another one of that name."),
    ];
    for (rule, expected) in rows {
        let found = said(&format!(" {rule}"), FILE, PIPELINE);
        match expected {
            "" => assert_eq!(found, [""; 0], "{rule}"),
            _ => assert!(found.len() == 1 && found[0].contains(expected), "{rule}: {found:?}"),
        }
    }
}
