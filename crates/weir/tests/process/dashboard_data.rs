//! The data of the dashboard's API over real sockets: certificates with the days that they are valid, their metric, the
//! timeline of an exchange and of a failing check, and log lines of errors.

use std::io::{Read, Write};
use std::process::Command;

use crate::dashboard::{get, json};
use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, connect_unix, free_port, wait_until};
use serde_json::Value;

const SECTIONS: &str = "global
    stats socket [socket] level admin
    log 127.0.0.1:[nowhere] local0
frontend secure
    bind 127.0.0.1:[secure] ssl crt [site]
    default_backend app
frontend site
    bind 127.0.0.1:[port]
    log global
    option httplog
    http-request use-service prometheus-exporter if { path /metrics }
    default_backend app
backend app
    server s1 127.0.0.1:[closed] check inter 50ms fall 1
    server s2 127.0.0.1:[closed] ssl verify required ca-file [site] disabled
listen stats
    bind 127.0.0.1:[page]
    stats uri /
    stats dashboard
listen scoped
    bind 127.0.0.1:[scoped]
    stats uri /
    stats dashboard
    stats scope app
";

const SITE: &str = include_str!("site.pem");
const OTHER: &str = include_str!("other.pem");

struct Stage {
    _weir: Running,
    folder: Folder,
    site: String,
    port: u16,
    page: u16,
    scoped: u16,
}

impl Stage {
    fn start() -> Self {
        let folder = Folder::new();
        let site = folder.write("site.pem", SITE);
        let [secure, port, closed, page, scoped, nowhere] = std::array::from_fn(|_| free_port());
        let (global, sections) = SECTIONS.split_at(SECTIONS.find("frontend").expect("a section"));
        let mut text = format!("{global}{DEFAULTS}{sections}").replace("[site]", &site);
        text = text.replace("[socket]", &folder.path("weir.sock").to_string_lossy());
        for (word, port) in [
            ("[secure]", secure),
            ("[port]", port),
            ("[closed]", closed),
            ("[page]", page),
            ("[scoped]", scoped),
            ("[nowhere]", nowhere),
        ] {
            text = text.replace(word, &port.to_string());
        }
        let file = folder.write("data.cfg", &text);
        let weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
        for port in [port, page, scoped] {
            drop(connect(port));
        }
        Self { _weir: weir, folder, site, port, page, scoped }
    }

    fn api(&self, path: &str) -> Value {
        json(&get(self.page, &format!("/api/v1/{path}")))
    }

    /// Sends a command to the runtime API.
    fn ask(&self, command: &str) -> String {
        let mut stream = connect_unix(&self.folder.path("weir.sock"));
        stream.write_all(format!("{command}\n").as_bytes()).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

#[test]
fn certificates_are_listed_with_their_places_and_measured() {
    let stage = Stage::start();
    let list = stage.api("certificates");
    let [own, authority] = &list["certificates"].as_array().expect("a list")[..] else { panic!("{list}") };
    for one in [own, authority] {
        assert_eq!((&one["name"], &one["status"]), (&Value::from(&*stage.site), &"valid".into()));
        let seconds = one["not_after"].as_f64().expect("a time") - one["not_before"].as_f64().expect("a time");
        let days = one["days_left"].as_f64().expect("a number");
        assert!(days > 365.0 && days < seconds / 86_400.0, "{one}");
    }
    assert_eq!((&own["names"], &own["names_total"]), (&serde_json::json!(["example.com"]), &1.into()));
    assert!(own["subject"].as_str().is_some_and(|name| name.contains("example.com")), "{own}");
    assert_eq!((&own["used"][0]["kind"], &own["used"][0]["proxy"]), (&"bind".into(), &"secure".into()));
    assert_eq!((&own["used"][0]["section"], &own["used_total"]), (&"frontend".into(), &1.into()));
    assert_eq!(authority["authority"], true);
    assert_eq!(authority["used"], serde_json::json!([{"kind": "server", "proxy": "app", "name": "s2"}]));
    assert_eq!(stage.api("certificates?authorities=0")["certificates"].as_array().map(Vec::len), Some(1));
    let cut = stage.api("certificates?limit=1");
    assert_eq!((cut["certificates"].as_array().map(Vec::len), &cut["complete"]), (Some(1), &false.into()));
    assert_eq!(get(stage.scoped, "/api/v1/certificates").status, 403);
    // The metric has to be named.
    let metrics = |query: &str| get(stage.port, &format!("/metrics{query}")).body;
    let text = metrics("?scope=certificate");
    let (head, line) = text.trim_end().rsplit_once('\n').expect("lines");
    assert!(head.ends_with("# TYPE weir_certificate_seconds_left gauge"), "{text}");
    let begin = format!("weir_certificate_seconds_left{{certificate=\"{}\"}} ", stage.site);
    let seconds: f64 = line.strip_prefix(&begin).and_then(|number| number.parse().ok()).expect("a sample");
    let days = stage.api("certificates")["certificates"][0]["days_left"].as_f64().expect("a number");
    assert!((seconds / 86_400.0 - days).abs() < 1.0, "{seconds} {days}");
    assert!(!metrics("").contains("weir_certificate") && !metrics("?scope=*").contains("weir_certificate"));
    assert!(metrics("?scope=*&scope=certificate").contains("\nweir_certificate_seconds_left{"));
}

#[test]
fn failures_and_exchanges_are_recorded() {
    let stage = Stage::start();
    wait_until("the server is down", || stage.api("servers?backend=app")["servers"][0]["state"] == "down");
    let list = stage.api("servers?backend=app&fields=state");
    assert_eq!((&list["servers"][0]["reason"], &list["servers"][1]["state"]), (&"L4CON".into(), &"maint".into()));
    let down = stage.api("timeline?kind=server_down");
    assert_eq!((&down["entries"][0]["reason"], &down["entries"][0]["server"]), (&"L4CON".into(), &"s1".into()));
    let last = stage.api("timeline")["last"].as_u64().expect("a number");
    assert!(stage.ask(&format!("set ssl cert {} <<\n{}\n", stage.site, OTHER.trim_end())).contains("created"));
    assert!(stage.ask(&format!("commit ssl cert {}", stage.site)).contains("Success!"));
    let rest = stage.api(&format!("timeline?since={last}&kind=certificate"));
    assert_eq!((&rest["entries"][0]["name"], &rest["entries"][0]["who"]), (&Value::from(&*stage.site), &"cli".into()));
    // A page with a scope shows its proxies' entries alone.
    let scoped = json(&get(stage.scoped, "/api/v1/timeline"));
    let entries = scoped["entries"].as_array().expect("entries");
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry["proxy"] == "app"), "{scoped}");
    // There is no server: the request fails, and its line is kept.
    assert_eq!(get(stage.port, "/lost?x=1").status, 503);
    let is_there =
        || stage.api("errors?status=503&proxy=site")["lines"].as_array().is_some_and(|lines| !lines.is_empty());
    wait_until("the line of the error is there", is_there);
    let line = stage.api("errors?termination=SC")["lines"][0].clone();
    assert_eq!((&line["backend"], &line["status"]), (&"app".into(), &503.into()));
    assert!(line["line"].as_str().is_some_and(|text| text.contains("GET /lost?x=1")), "{line}");
    let scoped = json(&get(stage.scoped, "/api/v1/errors"));
    assert_eq!(scoped["lines"].as_array().map(Vec::len), Some(0), "{scoped}");
}
