//! Tests of the features that are derived from a configuration: a row has a line of a proxy and the features that it enables.
#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use config::environment::Environment;
use config::spec::Family;
use config::{InputFile, LoadOptions};
use policy::program::{Features, Program};
use policy::registry::Registry;
use weir_policy as policy;

struct Rows(Registry);

impl policy::Resolver for Rows {
    fn resolve(&mut self, host: &str, _: Family) -> Result<IpAddr, String> {
        Err(format!("{host} is not looked up"))
    }

    fn registry(&self) -> &Registry {
        &self.0
    }
}

/// Compiles a `listen` section with a server and these lines after `before`.
fn compile(before: &str, lines: &str) -> Program {
    let text = format!(
        "{before}\nlisten l\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n bind 127.0.0.1:8080\n \
         {lines}\n server s 127.0.0.1:80\n"
    );
    let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: text.into_bytes() };
    let loaded = config::load(&[file], Environment::new(), &LoadOptions::default());
    let mut found = loaded.diagnostics;
    let limits = policy::SystemLimits { descriptors: 2_000, ..policy::SystemLimits::default() };
    let program = policy::compile(&loaded.spec, &mut Rows(Registry::default()), &limits, &mut found);
    let errors: Vec<_> = found.iter().filter(|one| one.is_alert()).map(|one| &one.message).collect();
    assert!(errors.is_empty(), "{lines}: {errors:?}");
    program.unwrap()
}

#[test]
fn each_line_enables_its_features() {
    use Features as F;
    let none = F::default();
    let mut wrong = Vec::new();
    let ruled = F::RULES.with(F::SCREENING);
    for (before, lines, features) in [
        ("", "", none),
        ("", "balance leastconn\n retries 5\n option redispatch\n timeout queue 1s\n maxconn 50", none),
        ("", "http-request set-header a b", ruled),
        ("", "redirect location /a if { path /b }", ruled),
        ("", "http-response set-header a b", F::RULES.with(F::RESPONSE_RULES)),
        ("", "http-after-response set-header a b", F::RULES.with(F::RESPONSE_RULES)),
        ("", "tcp-request connection reject if { src 192.0.2.1 }", F::RULES),
        ("", "tcp-request session accept", F::RULES),
        ("", "tcp-request content accept", F::RULES),
        ("", "tcp-response content accept", F::RULES.with(F::RESPONSE_RULES)),
        ("backend b\n mode http\n timeout server 1s\n timeout connect 1s", "use_backend b if { path /a }", F::RULES),
        ("", "option http-restrict-req-hdr-names reject", F::NAMES),
        ("", "option http-buffer-request", F::SCREENING),
        ("", "balance url_param a check_post", F::SCREENING),
        ("", "stats uri /s", F::SCREENING),
        ("", "option forwardfor", F::FIELDS),
        ("", "option originalto", F::FIELDS),
        ("", "option forwarded", F::FIELDS),
        ("", "http-send-name-header X-Server", F::FIELDS),
        ("", "unique-id-format %pid\n unique-id-header X-Id", F::FIELDS),
        ("", "capture request header Host len 9", F::CAPTURES),
        ("", "monitor-uri /m", F::MONITORING),
        ("", "cookie A insert\n", F::PERSISTENCE),
        ("", "use-server s if { path /a }", F::PERSISTENCE),
        ("", "stick on src\n stick-table type ip size 10", F::PERSISTENCE),
        ("", "option checkcache", F::RESPONSE_RULES),
        ("", "compression algo gzip", F::FILTERS),
        ("", "filter trace", F::FILTERS),
        ("", "option splice-auto", F::SPLICING),
        ("", "option splice-request", F::SPLICING),
        ("", "option splice-response", F::SPLICING),
        (
            "fcgi-app a\n docroot /d",
            "use-fcgi-app a\n server t 127.0.0.1:81 proto fcgi",
            F::FCGI.with(F::NAMES).with(F::SCREENING),
        ),
        (
            "fcgi-app a\n docroot /d\n log-stderr global",
            "use-fcgi-app a\n server t 127.0.0.1:81 proto fcgi",
            F::FCGI.with(F::NAMES).with(F::SCREENING).with(F::ATTEMPTS),
        ),
        ("", "retry-on empty-response", F::ATTEMPTS),
        ("", "retry-on conn-failure", none),
        ("", "balance ewma", F::WATCHED_RESPONSES),
    ] {
        let program = compile(before, lines);
        let found = program.proxies.iter().find(|proxy| *proxy.name == *"l").unwrap().features;
        if found != features {
            wrong.push((lines, found, features));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
