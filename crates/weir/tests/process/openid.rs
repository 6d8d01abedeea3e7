//! A user logs in through Weir: oauth2-proxy and a provider of OpenID Connect, with the configurations of
//! docs/forward-authentication.md. Both are built with go from the module in `tests/oauth2-proxy`; without go, or if they cannot be
//! built, the test reports so and passes.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use crate::pages::{adapted, block};
use crate::support::{DEFAULTS, Folder, Running, connect, connect_unix, free_port};

/// The page with the configurations.
const PAGE: &str = "forward-authentication.md";

/// Builds both programs in the folder. Returns false if that is not possible; the reason was printed.
fn build(folder: &Folder) -> bool {
    let mut command = Command::new("go");
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oauth2-proxy"));
    command.args([
        "build",
        "-mod=readonly",
        "-o",
        &format!("{}/", folder.text()),
        ".",
        "github.com/oauth2-proxy/oauth2-proxy/v7",
    ]);
    match command.output() {
        Ok(build) if build.status.success() => true,
        Ok(build) => {
            eprintln!("SKIPPED: oauth2-proxy cannot be built: {}", String::from_utf8_lossy(&build.stderr));
            false
        }
        Err(error) => {
            eprintln!("SKIPPED: no go to build oauth2-proxy with: {error}");
            false
        }
    }
}

/// A browser: it keeps cookies and follows nothing by itself.
#[derive(Default)]
struct Browser {
    cookies: BTreeMap<String, String>,
}

/// What a server has answered.
struct Page {
    status: String,
    location: String,
    body: String,
}

impl Browser {
    /// Asks for a URL at 127.0.0.1, with these fields.
    fn get(&mut self, url: &str, fields: &str) -> Page {
        let rest = url.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("where is {url}"));
        let (port, path) = rest.split_once('/').expect("a path");
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = if cookies.is_empty() { String::new() } else { format!("Cookie: {}\r\n", cookies.join("; ")) };
        let mut stream = connect(port.parse().expect("a port"));
        let request =
            format!("GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{cookies}{fields}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        let mut location = String::new();
        for line in head.lines().skip(1) {
            let Some((name, value)) = line.split_once(": ") else { continue };
            match name.to_ascii_lowercase().as_str() {
                "location" => value.clone_into(&mut location),
                "set-cookie" => {
                    let cookie = value.split(';').next().unwrap_or_default();
                    let (name, value) = cookie.split_once('=').expect("a cookie");
                    match value {
                        "" => self.cookies.remove(name),
                        _ => self.cookies.insert(name.to_owned(), value.to_owned()),
                    };
                }
                _ => {}
            }
        }
        Page { status: head.split(' ').nth(1).unwrap_or_default().to_owned(), location, body: body.to_owned() }
    }
}

#[test]
fn a_user_logs_in_through_oauth2_proxy() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    let [port, proxy, provider] = [free_port(), free_port(), free_port()];
    let at = |port: u16| format!("127.0.0.1:{port}");
    let file = adapted(
        block(PAGE, "oidc_issuer_url"),
        &[
            ("https://login.example.com", &format!("http://{}", at(provider))),
            ("https://app.example.com", &format!("http://{}", at(port))),
            ("127.0.0.1:4180", &at(proxy)),
        ],
    );
    let own = adapted(
        block(PAGE, "_oauth2_proxy"),
        &[
            (":443 ssl crt /etc/weir/site.pem", &at(port)),
            ("127.0.0.1:4180", &at(proxy)),
            ("192.0.2.11:80", &format!("unix@{}/app", folder.text())),
        ],
    );
    let app = format!(
        "global\n stats socket {0}/sock level admin\n{DEFAULTS}{own}\nfrontend serves\n bind unix@{0}/app\n http-request return \
         status 200 content-type text/plain lf-string \"%[req.fhdr(x-auth-request-user)] %[req.fhdr(x-auth-request-email)] %[path]\"\n",
        folder.text()
    );
    let _provider = Running::start(Command::new(folder.path("oidc")).arg(at(provider)));
    drop(connect(provider));
    let _proxy = Running::start(
        Command::new(folder.path("oauth2-proxy")).args(["--config", &folder.write("oauth2-proxy.cfg", &file)]),
    );
    drop(connect(proxy));
    let _weir = Running::weir(&["-db", "-f", &folder.write("weir.cfg", &app)]);
    let (mut browser, page) = (Browser::default(), format!("http://{}/a?b", at(port)));
    let claims = "X-Auth-Request-User: root\r\nX_Auth_Request_Email: root@a\r\n";
    // To the provider, which knows the user, and back with a code.
    let asked = browser.get(&page, claims);
    assert!(
        asked.status == "302" && asked.location.starts_with(&format!("http://{}/oidc/authorize?", at(provider))),
        "{}",
        asked.location
    );
    let logged_in = browser.get(&asked.location, "");
    assert!(logged_in.location.starts_with(&format!("http://{}/oauth2/callback?", at(port))), "{}", logged_in.location);
    let returned = browser.get(&logged_in.location, "");
    assert_eq!((&*returned.status, &*returned.location), ("302", "/a?b"), "{}", returned.body);
    for _ in 0..2 {
        let served = browser.get(&page, claims);
        assert_eq!((&*served.status, &*served.body), ("200", "1234567890 jane.doe@example.com /a"));
    }
    let mut runtime = connect_unix(&folder.path("sock"));
    runtime.write_all(b"show auth-cache\n").expect("sent");
    let mut shown = String::new();
    runtime.read_to_string(&mut shown).expect("text");
    assert!(shown.contains(" entries 1 ") && shown.contains(" hits 1 "), "{shown}");
    // Another session is none.
    for value in browser.cookies.values_mut() {
        value.insert(0, 'x');
    }
    assert_eq!(browser.get(&page, claims).status, "302");
}
