//! Automated certificates from Pebble on loopback: issued, kept, renewed, refused. Pebble is built with go from the
//! module in `tests/pebble`; without go the test reports so and passes.

use crate::support::{Folder, Running, WEIR, connect, connect_unix, free_port, wait_until};
use rustix::process::Signal;
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tls::certificate::Certificate;
use tls::issue::{Key, KeyKind};

/// Builds Pebble; `None`: not possible, the reason was printed.
pub fn pebble(folder: &Folder) -> Option<PathBuf> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pebble");
    let program = folder.path("pebble");
    let build = Command::new("go")
        .current_dir(module)
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg("github.com/letsencrypt/pebble/v2/cmd/pebble")
        .output();
    match build {
        Ok(build) if build.status.success() => Some(program),
        Ok(build) => {
            eprintln!("SKIPPED: Pebble cannot be built: {}", String::from_utf8_lossy(&build.stderr));
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: no go to build Pebble with: {error}");
            None
        }
    }
}

/// TXT records, by name.
type Records = Arc<Mutex<HashMap<String, String>>>;

/// Runs a name server with 127.0.0.1 for every name, and these records, over TCP as Pebble requires; it ends with the
/// process.
fn name_server(records: &Records) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let records = Arc::clone(records);
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = listener.accept() {
            let records = Arc::clone(&records);
            std::thread::spawn(move || while answer(&mut peer, &records).is_some() {});
        }
    });
    port
}

/// Returns the name in a question: length-prefixed labels.
fn name(mut labels: &[u8]) -> String {
    let mut name = String::new();
    while let Some((length, rest)) = labels.split_first().filter(|(length, _)| **length > 0) {
        let (label, rest) = rest.split_at_checked(usize::from(*length)).unwrap_or_default();
        name += &format!("{}{}", if name.is_empty() { "" } else { "." }, String::from_utf8_lossy(label));
        labels = rest;
    }
    name.to_ascii_lowercase()
}

/// Answers a question; `None`: the peer has closed.
fn answer(peer: &mut TcpStream, records: &Records) -> Option<()> {
    let mut length = [0; 2];
    peer.read_exact(&mut length).ok()?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    peer.read_exact(&mut question).ok()?;
    let end = 12 + question.get(12..)?.iter().position(|byte| *byte == 0)? + 5;
    let data = match question.get(end - 4..end - 2)? {
        [0, 1] => Some(vec![127, 0, 0, 1]),
        [0, 16] => records.lock().expect("no panic").get(&name(&question[12..])).map(|text| {
            let length = u8::try_from(text.len()).expect("a short text");
            [&[length], text.as_bytes()].concat()
        }),
        _ => None,
    };
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(data.is_some()), 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    if let Some(data) = data {
        answer.extend([0xc0, 12]);
        answer.extend(&question[end - 4..end]);
        answer.extend([0, 0, 0, 0]);
        answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        answer.extend(data);
    }
    let length = u16::try_from(answer.len()).ok()?;
    peer.write_all(&[&length.to_be_bytes()[..], &answer].concat()).ok()
}

/// The environment of a test.
pub struct Stage {
    pub folder: Folder,
    pub directory: String,
    /// Ports at which Pebble validates names.
    pub http: u16,
    pub tls: u16,
    names: u16,
    records: Records,
    _pebble: Running,
}

impl Stage {
    pub fn new(folder: Folder, program: &Path) -> Self {
        Self::with(folder, program, "")
    }

    /// Creates it with additional settings of Pebble.
    fn with(folder: Folder, program: &Path, more: &str) -> Self {
        let key = Key::generate(KeyKind::P256).expect("a key");
        let certificate = key.self_signed(&["localhost".into()], &["127.0.0.1".parse().expect("an address")]);
        let certificate = folder.write("ca.pem", &certificate.expect("a certificate"));
        let key = folder.write("ca.key", &key.to_pem());
        let (listen, management, http, tls) = (free_port(), free_port(), free_port(), free_port());
        let records = Records::default();
        let config = format!(
            r#"{{"pebble":{{"listenAddress":"127.0.0.1:{listen}","managementListenAddress":"127.0.0.1:{management}",
            "certificate":"{certificate}","privateKey":"{key}","httpPort":{http},"tlsPort":{tls},
            "domainBlocklist":["blocked.example"],"retryAfter":{{"authz":1,"order":1}},"keyAlgorithm":"ecdsa",
            "profiles":{{"default":{{"description":"d","validityPeriod":7776000}},
            "short":{{"description":"s","validityPeriod":518400}}}}{more}}}}}"#
        );
        let config = folder.write("pebble.json", &config);
        let names = name_server(&records);
        let log = folder.path("pebble.log");
        let mut command = Command::new("sh");
        command.args(["-c", "log=$1; shift; exec \"$0\" \"$@\" >\"$log\""]).arg(program).arg(log);
        command.args(["-config", &config, "-dnsserver", &format!("127.0.0.1:{names}")]);
        command.envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "30"), ("PEBBLE_AUTHZREUSE", "0")]);
        let pebble = Running::start(&mut command);
        drop(connect(listen));
        let directory = format!("https://127.0.0.1:{listen}/dir");
        Self { folder, directory, http, tls, names, records, _pebble: pebble }
    }

    fn config(&self, domains: &str) -> String {
        let (folder, directory, tls) = (self.folder.text(), &self.directory, self.tls);
        let text = format!(
            "global\n httpclient.ssl.ca-file {folder}/ca.pem\n httpclient.resolvers.disabled on\n \
             expose-experimental-directives\n acme.state-dir {folder}/state\n stats socket {folder}/weir.sock level admin\n \
             log stdout format raw local0\nacme default\n directory {directory}\n account-key {folder}/account.key\n\
             frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{tls} ssl acme {domains}\n\
             \x20http-request return status 200\n"
        );
        self.folder.write("weir.cfg", &text)
    }

    /// Three sections, and a certificate of each.
    fn sections(&self) -> String {
        let Self { directory, http, tls, names, .. } = self;
        let folder = self.folder.text();
        let section = |name: &str, more: &str| {
            format!("acme {name}\n directory {directory}\n account-key {folder}/account.key\n{more}")
        };
        let text = format!(
            "global\n httpclient.ssl.ca-file {folder}/ca.pem\n httpclient.resolvers.disabled on\n \
             expose-experimental-directives\n stats socket {folder}/weir.sock level admin\n log stdout format raw local0\n\
             resolvers default\n nameserver n tcp@127.0.0.1:{names}\n hold valid 100\n hold nx 100\n{}{}{}crt-store\n \
             load crt {folder}/web.pem acme WEB domains w.example,v.example\n \
             load crt dns.pem acme DNS domains d.example,*.e.example alias two\n \
             load crt stays.pem acme STAYS domains p.example\n\
             frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{http}\n \
             bind 127.0.0.1:{tls} ssl crt {folder}/web.pem crt @/two\n \
             http-request return status 200 content-type text/plain lf-string \
             \"%[path,field(-1,/)].%[path,field(-1,/),map(virt@acme)]\" if {{ path_beg /.well-known/acme-challenge/ }}\n",
            section("WEB", " map virt@acme\n reuse-key on\n keytype ECDSA\n curves P-256\n"),
            section("DNS", " challenge dns-01\n provider-name \"own\"\n acme-vars \"zone=\\\"x\\\"\"\n keytype RSA\n"),
            section("STAYS", " challenge dns-persist-01\n challenge-ready dns\n dns-delay 100ms\n"),
        );
        self.folder.write("sections.cfg", &text)
    }

    fn start(&self, domains: &str) -> Running {
        let file = self.config(domains);
        Running::start(Command::new(WEIR).args(["-db", "-f", &file]))
    }

    /// Returns the number of orders that Pebble has received.
    pub fn orders(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path("pebble.log")).expect("a log");
        log.matches(" orders in the db").count()
    }

    fn ask(&self, command: &str) -> String {
        self.ask_at("weir.sock", command)
    }

    /// Sends a command to a socket of the folder.
    pub fn ask_at(&self, socket: &str, command: &str) -> String {
        let mut socket = connect_unix(&self.folder.path(socket));
        socket.write_all(format!("{command}\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }
}

/// Returns the text between two texts.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(behind).map(|(found, _)| found)
}

/// Waits until a certificate was obtained.
fn wait_for_success(weir: &mut Running) {
    let line = weir.wait_for_line(|line| line.contains("Successful update") || line.contains("Aborting."));
    assert!(line.ends_with("Successful update of the certificate.\n"), "{line}");
}

#[test]
fn certificates_are_issued_kept_renewed_and_refused() {
    let folder = Folder::new();
    let Some(program) = pebble(&folder) else { return };
    let stage = Stage::new(folder, &program);
    let mut weir = stage.start("a.example,b.example");
    wait_for_success(&mut weir);
    let kept = stage.folder.path("state/a.example.pem");
    let name = kept.to_str().expect("text").to_owned();
    let read = || {
        wait_until("the certificate is kept", || kept.exists());
        assert_eq!(std::fs::metadata(&kept).expect("a file").mode() & 0o777, 0o600);
        Certificate::read(&name, &std::fs::read(&kept).expect("a file"), None).expect("a certificate")
    };
    let first = read();
    assert_eq!(first.names, ["a.example".into(), "b.example".into()]);
    assert_eq!(std::fs::metadata(stage.folder.path("account.key")).expect("a file").mode() & 0o777, 0o600);
    let shown = stage.ask(&format!("show ssl cert {name}"));
    assert!(shown.contains("Issuer: /CN=Pebble Intermediate") && shown.contains("Status: Used"), "{shown}");
    // Renewed on command, with another key.
    assert_eq!(stage.ask(&format!("acme renew {name}")), "\n");
    wait_for_success(&mut weir);
    let second = read();
    assert_ne!(first.der(), second.der());
    weir.send(Signal::TERM);
    weir.finish();
    // The next process continues with it, and sends no request.
    let weir = stage.start("a.example,b.example");
    wait_until("the certificate is due later", || stage.ask("acme status").contains("\tScheduled\t"));
    assert!(stage.ask(&format!("show ssl cert {name}")).contains("Issuer: /CN=Pebble Intermediate"));
    assert_eq!(read().der(), second.der());
    weir.send(Signal::TERM);
    let finished = weir.finish();
    assert!(!finished.stdout.contains("Starting update"), "{}", finished.stdout);
    // If the order is refused, a temporary certificate is used.
    let mut weir = stage.start("blocked.example");
    weir.wait_for_line(|line| line.contains("rejectedIdentifier") && line.ends_with("Aborting.\n"));
    drop(connect(stage.tls));
    assert!(!stage.folder.path("state/blocked.example.pem").exists());
    weir.send(Signal::TERM);
    weir.finish();
}

/// Sections with each type of challenge: by rules and a map, by records that an operator sets, by a permanent record.
#[test]
fn sections_obtain_certificates_of_the_storage() {
    let folder = Folder::new();
    let Some(program) = pebble(&folder) else { return };
    let stage = Stage::new(folder, &program);
    let file = stage.sections();
    let mut weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
    let web = stage.folder.path("web.pem").display().to_string();
    let set = |record: &str, value: &str| stage.records.lock().expect("no panic").insert(record.into(), value.into());
    // The permanent record is found once it exists.
    let (mut done, mut is_set) = (Vec::new(), false);
    while done.len() < 2 {
        let line = weir.wait_for_line(|line| {
            [" TXT record to ", "Successful update", "Aborting."].iter().any(|text| line.contains(text))
        });
        assert!(!line.contains("Aborting."), "{line}");
        if line.contains("_validation-persist.p.example") {
            set("_validation-persist.p.example", between(&line, "TXT record to \"", "\"").expect("a record"));
            is_set = true;
        } else if line.contains("Successful") {
            done.push(between(&line, "acme: ", ": ").expect("a name").to_owned());
        }
    }
    done.sort();
    assert!(is_set && done == [web.clone(), "stays.pem".to_owned()], "{done:?}");
    let shown = stage.ask(&format!("show ssl cert {web}"));
    assert!(shown.contains("Subject Alternative Name: DNS:w.example, DNS:v.example"), "{shown}");
    assert!(shown.contains("Issuer: /CN=Pebble Intermediate") && shown.contains("Status: Used"), "{shown}");
    assert!(stage.ask("show ssl cert stays.pem").contains("Algorithm: EC384\n"));
    assert_eq!(stage.ask("show map virt@acme"), "\n", "tokens are taken away");
    // Events for a program that sets records.
    let events = || stage.ask("show events dpapi");
    wait_until("all events", || {
        events().matches(" acme deploy @/two ").count() >= 2 && events().contains(" acme newcert ")
    });
    let events = events();
    let deploys: Vec<_> = events.split(" acme deploy @/two thumbprint ").skip(1).collect();
    assert_eq!(deploys.len(), 2, "{events}");
    for deploy in deploys {
        assert!(deploy.contains("\nprovider-name \"own\"\nacme-vars \"zone=\\\"x\\\"\"\ndns-01-record \""), "{deploy}");
        let domain = between(deploy, "\"value\": \"", "\"").expect("a domain");
        set(&format!("_acme-challenge.{domain}"), between(deploy, "dns-01-record \"", "\"").expect("a record"));
    }
    assert!(events.contains(&format!(" acme newcert {web}\n")), "{events}");
    let ready = |domain: &str| stage.ask(&format!("acme challenge_ready @/two domain {domain}"));
    assert_eq!(
        ready("f.example"),
        "Couldn't find an ACME task using crt \"@/two\" and dns \"f.example\" to set as ready!\n\n"
    );
    assert_eq!(ready("d.example"), "'@/two' challenge(s) ready! Remaining challenges to deploy: 1\n\n");
    assert_eq!(
        ready("e.example"),
        "'@/two' challenges ready! All challenges ready, starting challenges validation!\n\n"
    );
    wait_for_success(&mut weir);
    let shown = stage.ask("show ssl cert @/two");
    assert!(shown.contains("DNS:*.e.example") && shown.contains("Algorithm: RSA2048\n"), "{shown}");
    // Renewed with the existing key.
    let dump = || stage.ask(&format!("dump ssl cert {web}"));
    let former = dump();
    stage.ask(&format!("acme renew {web}"));
    wait_for_success(&mut weir);
    let (next, key) = (dump(), |text: &str| between(text, "PRIVATE KEY-----", "-----END").expect("a key").to_owned());
    assert!(next != former && key(&next) == key(&former));
    assert_eq!(stage.ask("acme status").matches("\tScheduled\t").count(), 3);
    weir.send(Signal::TERM);
    weir.finish();
}

/// A script receives events of records and of certificates, and reports that its records exist.
#[test]
fn scripts_are_told_of_records_and_of_certificates() {
    let folder = Folder::new();
    let Some(program) = pebble(&folder) else { return };
    let stage = Stage::new(folder, &program);
    let Stage { directory, names, tls, .. } = &stage;
    let folder = stage.folder.text();
    let script = r#"
core.event_sub({ "ACME" }, function(event, data, sub, when)
    print(event .. " " .. data.crtname .. " " .. tostring(data.domain) .. " " .. tostring(data.dns_record) .. " "
        .. type(data.thumbprint))
end)
core.register_cli({ "ready" }, "", function(applet, _, name, domain)
    applet:send(tostring(ACME.challenge_ready(name, domain)))
end)
"#;
    let script = stage.folder.write("s.lua", script);
    let text = format!(
        "global\n httpclient.ssl.ca-file {folder}/ca.pem\n httpclient.resolvers.disabled on\n \
         expose-experimental-directives\n tune.lua.bool-sample-conversion normal\n lua-load {script}\n \
         stats socket {folder}/weir.sock level admin\n log stdout format raw local0\n\
         resolvers default\n nameserver n tcp@127.0.0.1:{names}\n hold valid 100\n hold nx 100\n\
         acme DNS\n directory {directory}\n account-key {folder}/account.key\n challenge dns-01\n\
         crt-store\n load crt dns.pem acme DNS domains d.example,e.example alias two\n\
         frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{tls} ssl crt @/two\n \
         http-request return status 200\n"
    );
    let file = stage.folder.write("script.cfg", &text);
    let mut weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
    for _ in 0..2 {
        let line = weir.wait_for_line(|line| line.starts_with("ACME_DEPLOY "));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[1], words[4]), ("@/two", "string"), "{line}");
        let record = format!("_acme-challenge.{}", words[2]);
        stage.records.lock().expect("no panic").insert(record, words[3].to_owned());
    }
    // The number of missing records.
    assert_eq!(stage.ask("ready @/two d.example"), "1\n");
    assert_eq!(stage.ask("ready @/two e.example"), "0\n");
    let line = weir.wait_for_line(|line| line.starts_with("ACME_NEWCERT "));
    assert_eq!(line, "ACME_NEWCERT @/two nil nil nil\n");
    weir.send(Signal::TERM);
    weir.finish();
}

/// An account bound to an external account of the CA, a profile, a certificate of a crt-list that already exists.
#[test]
fn accounts_are_bound_and_profiles_are_asked_for() {
    let folder = Folder::new();
    let Some(program) = pebble(&folder) else { return };
    let secret = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let binding = format!(r#","externalAccountBindingRequired":true,"externalAccountMACKeys":{{"kid-1":"{secret}"}}"#);
    let stage = Stage::with(folder, &program, &binding);
    let key = Key::generate(KeyKind::P256).expect("a key");
    let former = key.self_signed(&["a.example".into()], &[]).expect("a certificate") + &key.to_pem();
    let site = stage.folder.write("site.pem", &former);
    let (id, mac) = (stage.folder.write("id", "kid-1\n"), stage.folder.write("mac", &format!("{secret}\n")));
    let list = stage.folder.write("site.list", &format!("{site} [acme E domains a.example ips 127.0.0.1] a.example\n"));
    let Stage { directory, http, tls, .. } = &stage;
    let folder = stage.folder.text();
    let text = format!(
        "global\n httpclient.ssl.ca-file {folder}/ca.pem\n httpclient.resolvers.disabled on\n acme.scheduler off\n \
         expose-experimental-directives\n stats socket {folder}/weir.sock level admin\n log stdout format raw local0\n\
         acme E\n directory {directory}\n account-key {folder}/account.key\n contact a@b.example\n profile short\n \
         eab-key-id {id}\n eab-mac-key {mac}\n map virt@acme\n\
         frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{http}\n bind 127.0.0.1:{tls} ssl crt-list {list}\n \
         http-request return status 200 content-type text/plain lf-string \
         \"%[path,field(-1,/)].%[path,field(-1,/),map(virt@acme)]\"\n"
    );
    let file = stage.folder.write("bound.cfg", &text);
    let mut weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
    assert!(stage.ask("acme status").contains(&format!("\n{site}\tE\tStopped\t")));
    assert_eq!(stage.ask(&format!("acme renew {site}")), "\n");
    wait_for_success(&mut weir);
    let shown = stage.ask(&format!("show ssl cert {site}"));
    assert!(shown.contains("DNS:a.example, IP Address:127.0.0.1\n") && shown.contains("Issuer: /CN=Pebble"), "{shown}");
    let dump = stage.ask(&format!("dump ssl cert {site}"));
    let next = Certificate::read(&site, dump.trim_end().as_bytes(), None).expect("a certificate");
    let validity = tls::x509::validity(next.der()).expect("a validity");
    assert!(validity.not_after - validity.not_before <= 518_400, "the profile is another one");
    weir.send(Signal::TERM);
    weir.finish();
}

/// Names and folders that cannot work are configuration errors.
#[test]
fn names_and_folders_that_do_not_work_are_told() {
    let folder = Folder::new();
    let told = |line: &str| {
        let text = format!(
            "global\n acme.state-dir {}/file\nfrontend f\n mode http\n timeout client 1s\n bind 127.0.0.1:{} ssl {line}\n",
            folder.text(),
            free_port()
        );
        let file = folder.write("bad.cfg", &text);
        let finished = crate::support::weir(["-db", "-f", &file]);
        assert_eq!(finished.code(), Some(1), "{}", finished.stderr);
        finished.stderr
    };
    folder.write("file", "no folder");
    for (line, expected) in [
        ("acme *.a.example", "'*.a.example' cannot be obtained here"),
        ("acme a.example,,b.example", "'' is no domain name"),
        ("acme localhost", "'localhost' is no domain name"),
        ("acme a.example acme a.example,b.example", "another line asks for 'a.example' with other names"),
        ("acme a.example", "default.account.key': Not a directory"),
    ] {
        let stderr = told(line);
        assert!(stderr.contains(expected), "{line}: {stderr}");
    }
}
