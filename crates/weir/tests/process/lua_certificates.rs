//! Scripts that replace certificates (`CertCache.set`): where it is allowed, its errors, and the certificate shown
//! afterwards.

use crate::support::{DEFAULTS, Folder, Running, connect_unix};
use std::io::{Read, Write};
use std::net::Shutdown;

const FIRST: &str = include_str!("site.pem");
const OTHER: &str = include_str!("other.pem");

const SCRIPT: &str = r#"
local function read(name)
    local file = io.open(name)
    local text = file:read("a")
    file:close()
    return text
end
local texts = { first = read("FOLDER/site.pem"), other = read("FOLDER/other.pem"), bad = "x" }
local function set(name, parts)
    local done, wrong = pcall(CertCache.set, parts and { filename = "FOLDER/" .. name, crt = texts[parts] })
    return done and "done" or tostring(wrong)
end
local body, init = set("shown.pem", "other"), nil
core.register_init(function() init = set("shown.pem", "other") end)
core.register_fetches("set", function(txn) return set("shown.pem", "other") end)
core.register_cli({"lua", "set"}, "", function(applet, _, _, name, parts) applet:send(set(name, parts) .. "\n") end)
core.register_cli({"lua", "began"}, "", function(applet) applet:send(body .. " " .. init .. "\n") end)
core.register_cli({"lua", "field"}, "", function(applet, _, _, field)
    local _, wrong = pcall(CertCache.set, { filename = "FOLDER/shown.pem", [field] = field == "crt" and 5 or "x" })
    applet:send(tostring(wrong) .. "\n")
end)
"#;

struct Stage {
    folder: Folder,
    _weir: Running,
}

impl Stage {
    fn begin() -> Self {
        let folder = Folder::new();
        for (name, text) in [("site.pem", FIRST), ("other.pem", OTHER), ("shown.pem", FIRST)] {
            folder.write(name, text);
        }
        let script = folder
            .write("s.lua", &SCRIPT.replace("FOLDER", folder.path("").display().to_string().trim_end_matches('/')));
        let at = |name: &str| folder.path(name).display().to_string();
        let text = format!(
            "global\n tune.lua.bool-sample-conversion normal\n stats socket {} level admin\n lua-load {script}\n{DEFAULTS}\
             frontend f\n bind {}\n http-request return status 200 content-type text/plain lf-string \"%[lua.set]\"\n\
             frontend t\n bind {} ssl crt {}\n",
            at("cli"),
            at("f"),
            at("t"),
            at("shown.pem"),
        );
        let weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
        Self { folder, _weir: weir }
    }

    fn exchange(&self, socket: &str, text: &str) -> String {
        let mut stream = connect_unix(&self.folder.path(socket));
        stream.write_all(text.as_bytes()).expect("sent");
        stream.shutdown(Shutdown::Write).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn ask(&self, command: &str) -> String {
        self.exchange("cli", &format!("{command}\n")).trim_end().to_owned()
    }

    /// Returns the certificate's subject.
    fn subject(&self) -> String {
        let shown = self.ask(&format!("show ssl cert {}", self.folder.path("shown.pem").display()));
        let subject = shown.lines().find_map(|line| line.strip_prefix("Subject: /CN="));
        subject.expect("a subject").to_owned()
    }
}

#[test]
fn certificates_are_set_where_scripts_may_wait() {
    let stage = Stage::begin();
    const UNKNOWN: &str = "Can't replace a certificate which is not referenced by the configuration!";
    assert_eq!(stage.ask("lua began"), format!("{UNKNOWN} done"));
    assert_eq!(stage.subject(), "other.example");
    let refused = "Can't load the payload for 'crt'";
    let rows = [
        ("lua set shown.pem first", "done", "example.com"),
        ("lua set shown.pem", "'CertCache.set' needs a table as argument", "example.com"),
        ("lua set none.pem other", UNKNOWN, "example.com"),
        (
            "lua set shown.pem bad",
            &format!("unable to load certificate from file 'shown.pem': no start line.\n{refused}"),
            "example.com",
        ),
        ("lua field name", "Unsupported field 'name'", "example.com"),
        ("lua field crt", "Unsupported field 'crt'", "example.com"),
        ("lua set shown.pem other", "done", "other.example"),
    ];
    for (command, answer, subject) in rows {
        let file = stage.folder.path("shown.pem").display().to_string();
        assert_eq!(stage.ask(command).replace(&file, "shown.pem"), answer, "{command}");
        assert_eq!(stage.subject(), subject, "{command}");
    }
    let answer = stage.exchange("f", "GET / HTTP/1.0\r\n\r\n");
    assert!(answer.ends_with("Cannot use CertCache.set from a non-yield capable runtime context"), "{answer}");
}

#[test]
fn a_script_leaves_a_change_of_the_runtime_api_alone() {
    let stage = Stage::begin();
    let shown = stage.folder.path("shown.pem").display().to_string();
    let begun = stage.ask(&format!("set ssl cert {shown} <<\n{FIRST}\n"));
    assert_eq!(begun, format!("Transaction created for certificate {shown}!"));
    assert_eq!(stage.ask("lua set shown.pem bad").lines().count(), 2);
    assert_eq!(stage.ask("lua set shown.pem other"), "done");
    assert_eq!(stage.subject(), "other.example");
    assert!(stage.ask("show ssl cert").starts_with("# transaction\n*"), "it is still there");
    assert!(stage.ask(&format!("commit ssl cert {shown}")).ends_with("Success!"));
    assert_eq!(stage.subject(), "example.com");
}
