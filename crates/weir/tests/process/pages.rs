//! Configurations in the pages of `docs/` and the README are accepted by `-c`, without a warning.

use crate::bouncers;
use crate::support::{DEFAULTS, Folder, WEIR};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First words of complete configurations.
const SECTIONS: &[&str] = &[
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "peers",
    "resolvers",
    "ring",
    "log-forward",
    "log-profile",
    "http-errors",
    "namespace_list",
    "userlist",
    "mailers",
    "healthcheck",
    "traces",
    "udp-lb",
];

/// First words of lines shown without their section, each followed by the section that they belong to.
const LINES: &[(&str, &str)] = &[
    ("filter", "frontend example\n bind 127.0.0.1:1\n"),
    ("log-format", "frontend example\n bind 127.0.0.1:1\n log stderr daemon\n"),
    ("unique-id-format", "frontend example\n bind 127.0.0.1:1\n"),
    ("eject-outliers", "backend example\n"),
    ("retry-budget", "backend example\n"),
    ("hedge-requests", "backend example\n"),
    ("bind", "frontend example\n"),
    ("server", "backend example\n"),
    ("http-request", "frontend example\n bind 127.0.0.1:1\n"),
];

/// Messages that depend on the machine of the test.
const MACHINE: &[&str] = &[
    "could not resolve address",
    "no method found to resolve",
    "Failed to initialize server(s)",
    "Cannot open namespace",
    "Can't load stats-file",
];

/// The script of docs/lua.md.
const HELLO: &str = r#"core.register_action("tag", { "http-req" }, function(txn, name, value)
    txn.http:req_set_header(name, value)
end, 2)
core.register_service("hello", "http", function(applet)
    local body = "Hello " .. applet.path .. "\n"
    applet:set_status(200)
    applet:add_header("content-length", #body)
    applet:start_response()
    applet:send(body)
end)
"#;

/// The files of docs/spoe.md.
const REPUTATION: &str = "[ip-reputation]
spoe-agent iprep-agent
    messages check-client-ip
    option var-prefix iprep
    option set-on-error error
    timeout processing 10ms
    use-backend iprep-agents
    log global

spoe-message check-client-ip
    args ip=src
    event on-client-session
";
const CORAZA: &str = "[coraza]
spoe-agent coraza-agent
    messages coraza-req
    option var-prefix coraza
    option set-on-error error
    timeout processing 500ms
    use-backend coraza-spoa
    log global

spoe-message coraza-req
    args app=str(sample_app) src-ip=src src-port=src_port dst-ip=dst dst-port=dst_port method=method path=path query=query version=req.ver headers=req.hdrs body=req.body
    event on-frontend-http-request
";

/// Files that examples read: name and contents.
const FILES: &[(&str, &str)] = &[
    // An untrusted certificate, with its key.
    ("site.pem", include_str!("site.pem")),
    ("other.pem", include_str!("site.pem")),
    ("internal-ca.pem", include_str!("site.pem")),
    ("ca.pem", include_str!("site.pem")),
    ("mesh-ca.pem", include_str!("site.pem")),
    ("log-ca.pem", include_str!("site.pem")),
    ("node.pem", include_str!("site.pem")),
    ("redis.password", "secret\n"),
    ("blocked.lst", "192.0.2.1\n"),
    ("known.lst", "192.0.2.3\n"),
    ("slow.lst", "192.0.2.2\n"),
    ("origins.lst", "https://example.com\n"),
    ("hosts.map", "api.example.com app\n"),
    ("maintenance.html", "<p>Back soon.\n"),
    ("hello.lua", HELLO),
    // In the place of scripts that others publish.
    (
        "cors.lua",
        "for event, count in pairs({ req = 3, res = 0 }) do\n core.register_action('cors', { 'http-' .. event }, function() \
                  end, count)\nend\n",
    ),
    ("auth-request.lua", "core.register_action('auth-intercept', { 'http-req' }, function() end, 6)\n"),
    ("ip-reputation.conf", REPUTATION),
    ("coraza.conf", CORAZA),
    ("issuer.pub", include_str!("../../../expression/tests/keys/rsa.pub")),
];

/// Returns the blocks of a page: the line where each begins and its contents.
pub fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut fence, mut blank) = (false, true);
    let mut open = false;
    for (index, line) in page.lines().enumerate() {
        let mark = line.trim_start().starts_with("```");
        let text = if fence { Some(line) } else { line.strip_prefix("    ") };
        match text {
            _ if mark => {
                fence = !fence;
                open = fence;
                if fence {
                    found.push((index + 2, String::new()));
                }
            }
            Some(text) if open => found.last_mut().expect("an open block").1 += &format!("{text}\n"),
            Some(text) if blank => {
                found.push((index + 1, format!("{text}\n")));
                open = true;
            }
            // A blank line may be within an indented block.
            None if line.trim().is_empty() && open => found.last_mut().expect("an open block").1.push('\n'),
            _ => open = false,
        }
        blank = line.trim().is_empty();
    }
    found
}

/// Returns the block of a page of `docs/` that contains a text.
pub fn block(page: &str, contains: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let found = blocks(&std::fs::read_to_string(path).expect("a page"));
    let (_, block) = found.into_iter().find(|(_, block)| block.contains(contains)).expect("a block");
    block
}

/// Replaces values that a test has to choose; each of them occurs in the text.
pub fn adapted(text: String, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text.replace(from, to)
    })
}

/// Returns the configuration that a block shows, with its assumed context; `None`: it shows something else.
fn configuration(block: &str, folder: &Folder) -> Option<String> {
    let first = block.split_whitespace().next()?;
    let mut text = DEFAULTS.to_owned();
    if SECTIONS.contains(&first) {
        text += block;
    } else {
        // A form with arguments in angle brackets is grammar. A blank line is followed by the result of the line.
        let line = block.split("\n\n").next().filter(|line| !line.contains('<'))?;
        let (_, section) = LINES.iter().find(|(word, _)| *word == first)?;
        text += section;
        text += line;
    }
    text += "\n";
    let words: Vec<Vec<String>> =
        text.lines().map(|line| line.split('#').next().unwrap_or_default()).map(words).collect();
    let missing = |section: &str, name: &str| {
        !words.iter().any(|line| line.len() > 1 && line[1] == name && (line[0] == section || line[0] == "listen"))
    };
    let mut around = String::new();
    let mut add = |section: &str, name: &str, lines: &str| {
        if missing(section, name) && !around.contains(&format!("{section} {name}\n")) {
            let _ = write!(around, "{section} {name}\n{lines}");
        }
    };
    for line in words.iter().filter(|line| !line.is_empty()) {
        let after = |word: &str| line.iter().position(|found| found == word).and_then(|at| line.get(at + 1));
        for name in ["default_backend", "use_backend"].into_iter().filter_map(after) {
            if !name.starts_with('%') {
                add("backend", name, " server example 192.0.2.99:80\n");
            }
        }
        for name in line.iter().filter_map(|word| word.strip_prefix("backend@")) {
            add("backend", name, " mode log\n server example udp@192.0.2.99:514\n");
        }
        for name in line.iter().filter_map(|word| word.strip_prefix("ring@")) {
            add("ring", name, " server example 192.0.2.99:514\n");
        }
        if let Some(name) = after("resolvers").filter(|_| line[0] != "resolvers") {
            add("resolvers", name, " nameserver example 192.0.2.99:53\n");
        }
        if line.iter().any(|word| word.starts_with("do-resolve(") && word.contains("mydns")) {
            add("resolvers", "mydns", " nameserver example 192.0.2.99:53\n");
        }
    }
    // Files and owners of the reader's machine are replaced by those of the test.
    let text = (text + &around).replace("/etc/weir/", &format!("{}/", folder.text()));
    let text = text.replace("/var/log/weir/qlog", folder.text());
    Some(text.replace("group web\n", "group root\n"))
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for folder in ["docs", "docs/how-to", "docs/reference"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of pages");
        found.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    found.retain(|path| path.extension().is_some_and(|kind| kind == "md"));
    found.sort();
    found
}

#[test]
fn configurations_in_the_documentation_are_accepted() {
    let folder = Folder::new();
    for name in ["bouncer", "spoe-bouncer"] {
        std::fs::create_dir(folder.path(name)).expect("own folder");
    }
    for (name, content) in FILES.iter().chain(bouncers::FILES) {
        folder.write(name, content);
    }
    // These files are blocks of their pages, identified by their first line.
    let own = [
        ("opentelemetry.md", "[shop]", "otel.cfg"),
        ("opentelemetry.md", "exporters:", "otel.yml"),
        ("lua.md", "local Upper", "upper.lua"),
        ("how-to/bouncers.md", "[crowdsec]", "spoe-bouncer/crowdsec.cfg"),
        ("routes.md", "example.com/*", "routes.map"),
    ];
    for (page, begin, name) in own {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let found = blocks(&std::fs::read_to_string(page).expect("a page"));
        let (_, block) = found.iter().find(|(_, block)| block.trim_start().starts_with(begin)).expect("a block");
        folder.write(name, &block.replace("/etc/weir/", &format!("{}/", folder.text())));
    }
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for (line, block) in blocks(&text) {
            let Some(configuration) = configuration(&block, &folder) else { continue };
            let file = folder.write("example.cfg", &configuration);
            let output = Command::new(WEIR)
                .args(["-L", "lb1", "-C", folder.text(), "-c", "-f", &file])
                .output()
                .expect("a check");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let faults: Vec<_> = told
                .lines()
                .filter(|line| line.starts_with("[ALERT]") || line.starts_with("[WARNING]"))
                .filter(|line| !line.contains("rror(s) found in configuration") && !line.contains("Fatal errors found"))
                .filter(|line| !MACHINE.iter().any(|reason| line.contains(reason)))
                .collect();
            checked += 1;
            let name = page.file_name().expect("a name").to_string_lossy().into_owned();
            wrong.extend(faults.iter().map(|fault| format!("{name}:{line}: {fault}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 50, "{checked} configurations were found");
}

#[test]
fn blocks_are_found() {
    let page = "Text.\n\n    a\n      b\n\n    c\n\nText\n    no block\n\n```cfg\nd\n```\n";
    assert_eq!(blocks(page), [(3, "a\n  b\n\nc\n\n".to_owned()), (12, "d\n".to_owned())]);
}
