//! Automatic OCSP updates, from a responder whose responses OpenSSL has signed: stapled, replaced, rejected. Without
//! `openssl` a test reports so and passes.

use crate::support::{Folder, Running, WEIR, connect_unix, free_port};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Runs openssl; `None`: it is missing, which was printed.
fn openssl(folder: &Folder, arguments: &str) -> Option<String> {
    let run = Command::new("openssl")
        .current_dir(folder.text())
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .inspect_err(|error| eprintln!("SKIPPED: no openssl: {error}"))
        .ok()?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "openssl {arguments}: {text}{}", String::from_utf8_lossy(&run.stderr));
    Some(text)
}

/// Creates a CA, two certificates of it that name that responder, one that signs responses, and another CA of the same
/// name. `None`: no openssl.
fn certificates(folder: &Folder, responder: &str) -> Option<()> {
    let key = |name: &str| format!("-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key");
    for name in ["ca", "other"] {
        openssl(folder, &format!("req -x509 {} -out {name}.crt -days 30 -subj /CN=Test_CA", key(name)))?;
    }
    let site = format!("authorityInfoAccess=OCSP;URI:{responder}\nsubjectAltName=DNS:a.example\n");
    for (name, extensions) in [("site", &*site), ("second", &*site), ("delegate", "extendedKeyUsage=OCSPSigning\n")] {
        folder.write(&format!("{name}.ext"), extensions);
    }
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect("a file");
    for (name, serial) in [("site", "0x1001"), ("second", "0x1002"), ("delegate", "0x1003")] {
        openssl(folder, &format!("req {} -out {name}.csr -subj /CN=a.example", key(name)))?;
        let from = format!("-in {name}.csr -CA ca.crt -CAkey ca.key -set_serial {serial} -days 30 -extfile {name}.ext");
        openssl(folder, &format!("x509 -req {from} -out {name}.crt"))?;
        folder.write(&format!("{name}.pem"), &(read(&format!("{name}.crt")) + &read(&format!("{name}.key"))));
    }
    folder.write("site.pem.issuer", &read("ca.crt"));
    folder.write("second.pem.issuer", &read("ca.crt"));
    Some(())
}

const GOOD: &str = "V\t400101000000Z\t";
const REVOKED: &str = "R\t400101000000Z\t250101000000Z";

/// Returns a response for the certificate with that serial number.
fn signed(folder: &Folder, signer: &str, status: &str, serial: &str) -> Vec<u8> {
    folder.write("index.txt", &format!("{status}\t{serial}\tunknown\t/CN=a.example\n"));
    folder.write("index.txt.attr", "unique_subject = no\n");
    let by = format!("-index index.txt -rsigner {signer}.crt -rkey {signer}.key -CA ca.crt -ndays 1");
    openssl(folder, &format!("ocsp {by} -issuer ca.crt -serial 0x{serial} -noverify -respout answer.der"));
    std::fs::read(folder.path("answer.der")).expect("an answer")
}

/// The behaviour of a responder.
#[derive(Clone, Default)]
enum Reply {
    #[default]
    NotFound,
    Text,
    Answer(Vec<u8>),
    /// Closes the connection.
    Nothing,
}

/// A responder, which ends with the process.
struct Responder {
    port: u16,
    reply: Arc<Mutex<Reply>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Responder {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let (reply, requests) = (Arc::<Mutex<Reply>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let own = Self { port, reply: Arc::clone(&reply), requests: Arc::clone(&requests) };
        std::thread::spawn(move || {
            while let Ok((mut peer, _)) = listener.accept() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(peer.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                requests.lock().expect("no panic").push(String::from_utf8_lossy(&head).into_owned());
                let (status, kind, body) = match reply.lock().expect("no panic").clone() {
                    Reply::NotFound => ("404 Not Found", "text/plain", Vec::new()),
                    Reply::Text => ("200 OK", "text/plain", b"hello".to_vec()),
                    Reply::Answer(der) => ("200 OK", "application/ocsp-response", der),
                    Reply::Nothing => continue,
                };
                let length = body.len();
                let head = format!("HTTP/1.0 {status}\r\nContent-type: {kind}\r\nContent-Length: {length}\r\n\r\n");
                // Weir may have disconnected.
                let _ = peer.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        own
    }

    fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    fn set(&self, reply: Reply) {
        *self.reply.lock().expect("no panic") = reply;
    }
}

/// A process with one address that uses `site.pem`.
struct Stage {
    folder: Folder,
    tls: u16,
    site: String,
    weir: Running,
}

impl Stage {
    fn new(folder: Folder, global: &str) -> Self {
        let shown = format!("crt {}/site.pem", folder.text());
        Self::showing(folder, global, &shown)
    }

    /// Creates it with another source of certificates.
    fn showing(folder: Folder, global: &str, shown: &str) -> Self {
        let tls = free_port();
        let text = format!(
            "global\n{global} httpclient.retries 0\n stats socket {0}/weir.sock level admin\n stats timeout 30s\n log stdout \
             format raw local0\nfrontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{tls} ssl {shown}\n \
             http-request return status 200\n",
            folder.text()
        );
        let file = folder.write("weir.cfg", &text);
        let weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
        let site = folder.path("site.pem").display().to_string();
        Self { folder, tls, site, weir }
    }

    fn ask(&self, command: &str) -> String {
        let mut socket = connect_unix(&self.folder.path("weir.sock"));
        socket.write_all(format!("{command}\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }

    /// Checks the next log line of an update.
    fn logged(&mut self, expected: &str) {
        let line = self.weir.wait_for_line(|line| line.contains("<OCSP-UPDATE> /"));
        assert_eq!(line, format!("<OCSP-UPDATE> {} {expected}\n", self.site));
    }

    fn stop(self) {
        self.weir.send(Signal::TERM);
        self.weir.finish();
    }
}

#[test]
fn answers_are_fetched_stapled_replaced_and_refused() {
    let (folder, responder) = (Folder::new(), Responder::new());
    let Some(()) = certificates(&folder, &responder.uri()) else { return };
    let good = signed(&folder, "ca", GOOD, "1001");
    let delegated = signed(&folder, "delegate", GOOD, "1001");
    let answers = [
        // A certificate of the same issuer that may not sign responses.
        (signed(&folder, "second", GOOD, "1001"), 4, "OCSP response check failure (OCSP_basic_verify() failed)"),
        (signed(&folder, "other", GOOD, "1001"), 4, "OCSP response check failure (OCSP_basic_verify() failed)"),
        (
            signed(&folder, "ca", GOOD, "1002"),
            5,
            "Error during insertion (OCSP single response: Certificate ID does not match any certificate or issuer)",
        ),
        (b"garbage".to_vec(), 4, "OCSP response check failure (d2i_OCSP_RESPONSE() failed)"),
    ];
    let revoked = signed(&folder, "ca", REVOKED, "1001");
    responder.set(Reply::Answer(good));
    let mut stage = Stage::new(folder, " ocsp-update.mode on\n");
    let site = stage.site.clone();
    stage.logged("1 \"Update successful\" 0 1");
    let request = responder.requests.lock().expect("no panic").first().cloned().expect("a request");
    assert!(request.starts_with("GET /ME") && request.contains(" HTTP/1.1\r\nhost: 127.0.0.1:"), "{request}");
    let shown = stage.ask(&format!("show ssl ocsp-response {site}"));
    assert!(shown.contains("Cert Status: good") && shown.contains("Serial Number: 1001"), "{shown}");
    assert_eq!(stage.ask(&format!("show ssl cert {site}.ocsp")), shown);
    let all = stage.ask("show ssl ocsp-response");
    let id = all.split("Certificate ID key : ").nth(1).expect("an id").lines().next().expect("a line").to_owned();
    let letters = stage.ask(&format!("show ssl ocsp-response base64 {id}"));
    let tls = stage.tls;
    let stapled = openssl(&stage.folder, &format!("s_client -connect 127.0.0.1:{tls} -status -servername a.example"));
    assert!(stapled.is_some_and(|text| text.contains("OCSP Response Status: successful")));
    // The certificate is revoked now: clients receive that response.
    responder.set(Reply::Answer(revoked));
    let shown = stage.ask(&format!("update ssl ocsp-response {site}"));
    assert!(shown.contains("Cert Status: revoked\n    Revocation Time: Jan  1 00:00:00 2025 GMT"), "{shown}");
    stage.logged("1 \"Update successful\" 0 2");
    responder.set(Reply::Answer(delegated));
    assert!(stage.ask(&format!("update ssl ocsp-response {site}")).contains("Cert Status: good"));
    stage.logged("1 \"Update successful\" 0 3");
    assert!(letters.ends_with('\n') && !letters.ends_with("\n\n"), "{letters}");
    assert_eq!(stage.ask(&format!("set ssl ocsp-response {}", letters.trim())), "OCSP Response updated!\n\n");
    assert!(stage.ask(&format!("show ssl ocsp-response {id}")).contains("Cert Status: good"));
    // Invalid responses leave the current one in place.
    let mut failures = 0;
    let mut refused = |stage: &mut Stage, reply: Reply, number: u8, text: &str| {
        failures += 1;
        responder.set(reply);
        let told = stage.ask(&format!("update ssl ocsp-response {site}"));
        assert!(told.starts_with(&format!("{text}.\n")), "{told}");
        stage.logged(&format!("{number} \"{text}\" {failures} 3"));
    };
    for (answer, number, text) in answers {
        refused(&mut stage, Reply::Answer(answer), number, text);
    }
    refused(&mut stage, Reply::Text, 3, "Missing \"ocsp-response\" header");
    refused(&mut stage, Reply::NotFound, 2, "HTTP error");
    refused(&mut stage, Reply::Nothing, 2, "HTTP error");
    let line = stage.weir.wait_for_line(|line| line.contains("<OCSP-UPDATE>"));
    assert!(line.starts_with("-:- [") && line.contains(" 503 0 - - SC-- "), "{line}");
    assert!(stage.ask(&format!("show ssl ocsp-response {id}")).contains("Cert Status: good"));
    let updates = stage.ask("show ssl ocsp-updates");
    assert!(updates.contains(&format!("{id} | {site} | ")), "{updates}");
    assert!(updates.ends_with(" | 3 | 7 | 2 | HTTP error\n\n"), "{updates}");
    stage.stop();
}

/// Requests through a proxy contain the whole URI; the proxy resolves the name.
#[test]
fn answers_are_fetched_through_a_proxy() {
    let (folder, responder) = (Folder::new(), Responder::new());
    let Some(()) = certificates(&folder, "http://ocsp.nowhere.example/x") else { return };
    responder.set(Reply::Answer(signed(&folder, "ca", GOOD, "1001")));
    let line = format!("{0}/site.pem [ocsp-update on issuer {0}/ca.crt]\n", folder.text());
    let list = folder.write("site.list", &line);
    let proxy = format!(" ocsp-update.httpproxy 127.0.0.1:{}\n", responder.port);
    let mut stage = Stage::showing(folder, &proxy, &format!("crt-list {list}"));
    stage.logged("1 \"Update successful\" 0 1");
    let request = responder.requests.lock().expect("no panic").first().cloned().expect("a request");
    assert!(request.starts_with("GET http://ocsp.nowhere.example/x/ME"), "{request}");
    // There was no request for another certificate.
    assert_eq!(responder.requests.lock().expect("no panic").len(), 1);
    assert!(request.contains("\r\nhost: ocsp.nowhere.example\r\n"), "{request}");
    stage.stop();
}

/// Updates are enabled first by a certificate that is added with a line at run time.
#[test]
fn lines_that_are_added_ask_for_updates() {
    let (folder, responder) = (Folder::new(), Responder::new());
    let Some(()) = certificates(&folder, &responder.uri()) else { return };
    responder.set(Reply::Answer(signed(&folder, "ca", GOOD, "1002")));
    let text = |name: &str| std::fs::read_to_string(folder.path(name)).expect("a file");
    let second = text("second.crt") + &text("ca.crt") + &text("second.key");
    let list = folder.write("site.list", &format!("{}/site.pem\n", folder.text()));
    let mut stage = Stage::showing(folder, "", &format!("crt-list {list}"));
    for command in [
        "new ssl cert second".to_owned(),
        format!("set ssl cert second <<\n{second}"),
        "commit ssl cert second".to_owned(),
        format!("add ssl crt-list {list} <<\nsecond [ocsp-update on] b.example\n"),
    ] {
        let answer = stage.ask(&command);
        assert!(answer.contains("New empty") || answer.contains("created") || answer.contains("Success!"), "{answer}");
    }
    let line = stage.weir.wait_for_line(|line| line.contains("<OCSP-UPDATE>"));
    assert_eq!(line, "<OCSP-UPDATE> second 1 \"Update successful\" 0 1\n");
    assert!(stage.ask("show ssl ocsp-response second").contains("Serial Number: 1002"));
    stage.stop();
}

/// Responses can also be set in parts, together with the certificate.
#[test]
fn answers_are_set_with_certificates() {
    let (folder, responder) = (Folder::new(), Responder::new());
    let Some(()) = certificates(&folder, &responder.uri()) else { return };
    let read = |name: &str| std::fs::read(folder.path(name)).expect("a file");
    let base64 = |der: &[u8]| {
        folder.write("part.der", "");
        std::fs::write(folder.path("part.der"), der).expect("written");
        openssl(&folder, "base64 -in part.der").expect("openssl is there")
    };
    let text = |name: &str| String::from_utf8(read(name)).expect("text");
    let (first, second) = (signed(&folder, "ca", GOOD, "1001"), signed(&folder, "ca", REVOKED, "1002"));
    let (first, second) = (base64(&first), base64(&second));
    let (certificate, key, issuer) = (text("second.crt"), text("second.key"), text("ca.crt"));
    let stage = Stage::new(folder, " ocsp-update.mode on\n ocsp-update.disable on\n");
    let site = &stage.site;
    let set = |end: &str, payload: &str| stage.ask(&format!("set ssl cert {site}{end} <<\n{}\n", payload.trim_end()));
    assert!(set(".ocsp", &first).starts_with("Transaction created for certificate "));
    assert_eq!(stage.ask(&format!("show ssl cert {site}.ocsp")), "\n", "it is not committed");
    assert!(stage.ask(&format!("show ssl cert *{site}.ocsp")).contains("Cert Status: good"));
    assert!(set(".issuer", "x").ends_with(&format!("Can't load the payload\nCan't update {site}.issuer!\n\n")));
    assert!(set(".issuer", &issuer).starts_with("Transaction updated for certificate "));
    assert!(stage.ask(&format!("commit ssl cert {site}")).ends_with(".\nSuccess!\n\n"));
    assert!(stage.ask(&format!("show ssl cert {site}.ocsp")).contains("Cert Status: good"));
    // Another certificate, whose key follows; the previous response is for another certificate.
    set("", &certificate);
    assert!(stage.ask(&format!("commit ssl cert {site}")).contains("passed a null parameter.\nFailed!"));
    set("", &certificate);
    set(".key", &key);
    set(".ocsp", &first);
    let ignored =
        "Loading: OCSP single response: Certificate ID does not match certificate and issuer. Content will be ignored.";
    assert!(stage.ask(&format!("commit ssl cert {site}")).ends_with(&format!(".\n{ignored}\nSuccess!\n\n")));
    assert_eq!(stage.ask(&format!("show ssl cert {site}.ocsp")), "\n");
    set(".ocsp", &second);
    stage.ask(&format!("commit ssl cert {site}"));
    assert!(stage.ask(&format!("show ssl cert {site}.ocsp")).contains("Cert Status: revoked"));
    assert!(stage.ask(&format!("show ssl cert {site}")).contains("\nSerial: 1002\n"));
    for (command, expected) in [
        ("set ssl ocsp-response", "'set ssl ocsp-response' expects response in base64 encoding.\n\n"),
        ("set ssl ocsp-response xx!", "'set ssl ocsp-response' received invalid base64 encoded response.\n\n"),
        ("set ssl ocsp-response YWJjZAo=", "Unable to parse OCSP response.\n\n"),
        ("show ssl ocsp-response foo", "'show ssl ocsp-response' expects a valid certid or certificate path.\n\n"),
        ("show ssl ocsp-response abcd12", "Certificate ID or path does not match any certificate.\n\n"),
        ("show ssl ocsp-response base64", "'show ssl ocsp-response [text|base64]' expects a valid certid.\n\n"),
        ("update ssl ocsp-response", "'update ssl ocsp-response' expects a filename\n\n"),
    ] {
        assert_eq!(stage.ask(command), expected, "{command}");
    }
    assert!(responder.requests.lock().expect("no panic").is_empty(), "updates are switched off");
    stage.stop();
}
