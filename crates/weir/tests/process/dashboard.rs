//! The dashboard's API: every address of its description answers as described, and no client sees or changes more than
//! the page allows.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, free_port};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Command;

/// `[site]` serves requests, `[all]`, `[asking]` and `[bare]` have pages.
const SECTIONS: &str = "global
    log 127.0.0.1:[nowhere] local0
    # <b>here</b>
    node here
    profiling.rules on
frontend site
    bind 127.0.0.1:[site]
    log global
    option httplog
    stick-table type string size 100 store http_req_cnt
    http-request track-sc0 path
    use_backend other if { path /other }
    default_backend app
backend app
    server s1 127.0.0.1:[origin]
    server s2 127.0.0.1:[origin] weight 7
backend other
    server o1 127.0.0.1:[origin] disabled
listen all
    bind 127.0.0.1:[all]
    stats uri /stats
    stats dashboard
    stats admin if TRUE
listen asking
    bind 127.0.0.1:[asking]
    stats enable
    stats dashboard
    stats auth reader:secret-word
    stats scope app
listen bare
    bind 127.0.0.1:[bare]
    stats uri /stats
    stats dashboard
listen page
    bind 127.0.0.1:[page]
    stats uri /stats
    stats admin if TRUE
";

/// A process with pages, and its server.
pub struct Stage {
    _weir: Running,
    _origin: Running,
    pub site: u16,
    pub all: u16,
    asking: u16,
    bare: u16,
    page: u16,
}

impl Stage {
    pub fn start(folder: &Folder) -> Self {
        let [origin, site, all, asking, bare, page, nowhere] = std::array::from_fn(|_| free_port());
        let (global, sections) = SECTIONS.split_at(SECTIONS.find("frontend").expect("a section"));
        let mut text = format!("{global}{DEFAULTS}{sections}");
        for (word, port) in [
            ("[origin]", origin),
            ("[site]", site),
            ("[all]", all),
            ("[asking]", asking),
            ("[bare]", bare),
            ("[page]", page),
            ("[nowhere]", nowhere),
        ] {
            text = text.replace(word, &port.to_string());
        }
        let file = folder.write("dashboard.cfg", &text);
        let server = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{origin}")]));
        drop(connect(origin));
        let weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
        let stage = Self { _weir: weir, _origin: server, site, all, asking, bare, page };
        for port in [site, all, asking, bare, page] {
            drop(connect(port));
        }
        stage
    }
}

/// An answer: status, head, body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends one request, whose fields and body follow the first line, and reads to the end.
pub fn send(port: u16, request: &str) -> Answer {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a head") > 0, "{head}");
    }
    let head = head.to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).expect("a body");
    let body = if head.contains("transfer-encoding: chunked") { joined(&rest) } else { rest };
    Answer { status, head, body: String::from_utf8(body).expect("UTF-8") }
}

fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    while let Some(at) = body.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&body[..at]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.expect("a length");
        payload.extend_from_slice(&body[at + 2..at + 2 + length]);
        body = &body[at + 4 + length..];
    }
    payload
}

pub fn get(port: u16, path: &str) -> Answer {
    send(port, &format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n"))
}

fn post(port: u16, path: &str, field: &str, form: &str) -> Answer {
    let length = form.len();
    send(
        port,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: here\r\n{field}connection: close\r\ncontent-length: {length}\r\n\r\n{form}"
        ),
    )
}

pub fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

/// Validates a value against a schema: types, required members, enumerated values.
fn judge(value: &Value, schema: &Value, whole: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = whole.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name}"));
        return judge(value, schema, whole, place);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    assert!(types.is_empty() || types.iter().any(|kind| fits(kind)), "{place}: {value} is not {types:?}");
    if let Some(listed) = schema["enum"].as_array() {
        assert!(listed.contains(value), "{place}: {value}");
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.get(name).is_some(), "{place} has no {name}: {value}");
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => judge(member, schema, whole, &format!("{place}.{name}")),
            None if schema["additionalProperties"].is_object() => {
                judge(member, &schema["additionalProperties"], whole, &format!("{place}.{name}"));
            }
            None => assert!(schema["properties"].is_null(), "{place}.{name} is not described"),
        }
    }
    for member in value.as_array().into_iter().flatten() {
        judge(member, &schema["items"], whole, &format!("{place}[]"));
    }
}

#[test]
fn every_address_answers_as_the_description_says() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    for path in ["/a", "/b?s=100", "/other"] {
        get(stage.site, path);
    }
    let description = json(&get(stage.all, "/stats/api/v1/openapi.json"));
    assert_eq!(description["openapi"], "3.1.0");
    let mut seen = 0;
    for (path, methods) in description["paths"].as_object().expect("paths") {
        let target = path.replace("{name}", "site").replace("{backend}", "app").replace("{server}", "s2");
        for (method, operation) in methods.as_object().expect("methods") {
            let target = format!("/stats{target}");
            let answer = match method.as_str() {
                "get" if path.ends_with("/events") => get(stage.all, &format!("{target}?count=2")),
                "get" => get(stage.all, &target),
                "post" => post(stage.all, &target, "", "state=drain&weight=50%25"),
                other => panic!("{other}"),
            };
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let content = operation["responses"]["200"]["content"].as_object().expect("content");
            let (kind, content) = content.iter().next().expect("a type");
            assert!(answer.head.contains(&format!("content-type: {kind}")), "{}", answer.head);
            assert!(answer.head.contains("cache-control: no-store"), "{}", answer.head);
            if kind == "application/json" {
                judge(&json(&answer), &content["schema"], &description, path);
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 18);
    let samples = get(stage.all, "/stats/api/v1/events?count=2").body;
    let samples: Vec<&str> = samples.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(samples.len(), 2, "{samples:?}");
    for sample in samples {
        let sample = serde_json::from_str(sample).expect("JSON");
        judge(&sample, &description["components"]["schemas"]["Sample"], &description, "sample");
    }
    let servers = json(&get(stage.all, "/stats/api/v1/servers?backend=app&fields=weight,status"));
    assert_eq!(servers["servers"][1]["status"], "DRAIN");
    assert_eq!(servers["servers"][1]["weight"], 3);
    assert_eq!(servers["servers"].as_array().map(Vec::len), Some(2));
    let table = json(&get(stage.all, "/stats/api/v1/tables/site?key=/oth"));
    assert_eq!(table["entries"].as_array().map(Vec::len), Some(1), "{table}");
    assert_eq!(table["entries"][0]["data"]["http_req_cnt"], 1);
    let rules = json(&get(stage.all, "/stats/api/v1/rules?proxy=site"));
    let list = rules["rules"].as_array().expect("rules");
    let shown: Vec<_> = list.iter().map(|rule| (rule["ruleset"].as_str(), rule["hits"].as_u64())).collect();
    assert_eq!(shown, [(Some("http-request"), Some(3)), (Some("use_backend"), Some(3))], "{rules}");
    assert_eq!((&list[1]["matched"], &rules["measured"], &rules["complete"]), (&1.into(), &true.into(), &true.into()));
    assert!(
        list[1]["file"].as_str().is_some_and(|file| file.ends_with("dashboard.cfg"))
            && list[1]["line"].as_u64() > Some(0)
    );
    let dearest = json(&get(stage.all, "/stats/api/v1/rules?sort=time&limit=1"));
    assert_eq!(
        (dearest["rules"].as_array().map(Vec::len), &dearest["complete"]),
        (Some(1), &false.into()),
        "{dearest}"
    );
}

#[test]
fn a_reader_gets_the_lines_of_the_log_as_they_come() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let mut stream = connect(stage.all);
    let request = "GET /stats/api/v1/events?log=1&samples=0 HTTP/1.1\r\nhost: here\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    assert!(lines.any(|line| line.starts_with("retry:")));
    // The subscription exists once the head has arrived: later lines are shown.
    get(stage.site, "/%3Cscript%3E?a=1");
    // Connections that waited for the process to serve may have lines as well.
    let wanted = |line: String| line.strip_prefix("data: ").filter(|line| line.contains("GET /")).map(str::to_owned);
    let line = lines.find_map(wanted).expect("a line");
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["proxy"], "site");
    assert!(line["line"].as_str().is_some_and(|text| text.contains("GET /%3Cscript%3E?a=1")), "{line}");
}

#[test]
fn nobody_sees_or_changes_more_than_the_page_allows() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let change = "/stats/api/v1/servers/app/s1";
    for (port, path, field, form, status) in [
        (stage.all, change, "", "state=maint", 200),
        (stage.all, change, "origin: http://here\r\n", "state=ready", 200),
        (stage.all, change, "origin: http://evil\r\n", "state=drain", 403),
        (stage.all, change, "referer: http://evil/here\r\n", "state=drain", 403),
        (stage.all, change, "", "state=gone", 400),
        (stage.all, change, "", "weight=1000", 400),
        (stage.all, "/stats/api/v1/servers/app/none", "", "state=drain", 404),
        (stage.all, "/stats/api/v1/servers", "", "state=drain", 405),
        (stage.bare, change, "", "state=drain", 403),
    ] {
        let answer = post(port, path, field, form);
        assert_eq!(answer.status, status, "{path} {field} {form}: {}", answer.body);
    }
    assert_eq!(get(stage.all, change).status, 405);
    for (method, path, allowed) in [
        ("DELETE", change, "POST"),
        ("PUT", "/stats/api/v1/servers", "GET, HEAD"),
        ("OPTIONS", "/stats/api/v1/config", "GET, HEAD"),
    ] {
        let answer = send(stage.all, &format!("{method} {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n"));
        assert_eq!(answer.status, 405, "{method} {path}");
        assert!(answer.head.contains(&format!("allow: {}\r\n", allowed.to_lowercase())), "{}", answer.head);
    }
    assert_eq!(get(stage.all, "/stats/api/v1/none").status, 404);
    assert_eq!(get(stage.all, "/stats/api/v1/tables/none").status, 404);
    // Without the keyword these are addresses of the page, as in HAProxy.
    assert!(get(stage.page, "/stats/dashboard").body.contains("Statistics Report"));
    assert!(!get(stage.page, "/stats/api/v1/overview").head.contains("json"));
    // The configuration is shown only to admitted clients.
    assert_eq!(get(stage.bare, "/stats/api/v1/config").status, 403);
    let text = get(stage.all, "/stats/api/v1/config").body;
    assert!(text.contains("stats auth reader:\\u003chidden\\u003e") && !text.contains("secret-word"), "{text}");
    // Credentials and `stats scope` apply, also with an address that contains a question mark.
    let page = "/haproxy?stats/api/v1";
    assert_eq!(get(stage.asking, &format!("{page}/overview")).status, 401);
    let asked = |path: &str| {
        let request = format!(
            "GET {page}/{path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\nauthorization: Basic cmVhZGVyOnNlY3JldC13b3Jk\r\n\r\n"
        );
        json(&send(stage.asking, &request))
    };
    let proxies = asked("proxies&fields=status");
    assert_eq!(proxies["proxies"].as_array().map(Vec::len), Some(1), "{proxies}");
    assert_eq!(proxies["proxies"][0]["proxy"], "app");
    assert_eq!(asked("topology")["frontends"].as_array().map(Vec::len), Some(0));
    assert_eq!(asked("tables")["tables"].as_array().map(Vec::len), Some(0));
    assert_eq!(asked("rules")["rules"].as_array().map(Vec::len), Some(0));
    let config = asked("config");
    let lines = config["files"][0]["lines"].as_array().expect("lines");
    let shown: Vec<&str> = lines.iter().filter_map(Value::as_str).filter(|line| !line.is_empty()).collect();
    assert!(lines.len() > 20 && shown[0].ends_with(" app"), "{shown:?}");
    assert!(!shown.iter().any(|line| line.contains("asking") || line.contains("global")), "{shown:?}");
    assert_eq!(config["diagnostics"].as_array().map(Vec::len), Some(0));
}
