//! TLS with other implementations, as clients and as servers: OpenSSL, GnuTLS, Go's crypto/tls, Python's ssl, curl,
//! HAProxy. And invalid certificates. A missing program is reported and skipped.

use crate::pki::{self, Authority, CertificateOptions};
use crate::support::{Folder, Running, connect, free_port, run};
use std::path::Path;
use std::process::Command;

const DEFAULTS: &str = "defaults\n mode http\n timeout connect 20s\n timeout client 60s\n timeout server 60s\n";

const VERSIONS: [&str; 2] = ["1.2", "1.3"];

fn is_there(program: &str) -> bool {
    let there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = there.is_ok_and(|done| done.status.success());
    if !there {
        eprintln!("SKIPPED: {program} is not installed");
    }
    there
}

/// Runs Weir with these sections; `[port]` is replaced by the port of its `bind`.
fn weir(folder: &Folder, sections: &str) -> (Running, u16) {
    let port = free_port();
    let text = format!("{DEFAULTS}{}", sections.replace("[port]", &port.to_string()));
    let file = folder.write(&format!("weir-{port}.cfg"), &text);
    let running = Running::weir(&["-db", "-f", &file]);
    drop(connect(port));
    (running, port)
}

/// Builds the client and the server in Go. `None`: not possible, which was printed.
fn go(folder: &Folder) -> Option<String> {
    if !is_there("go") {
        return None;
    }
    let program = folder.path("tlstest").to_string_lossy().into_owned();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/tls_peers");
    let mut command = Command::new("go");
    command.current_dir(source).env("GOTOOLCHAIN", "local");
    let built = run(command.args(["build", "-buildvcs=false", "-o", &program, "."]));
    if built.code() != Some(0) {
        eprintln!("SKIPPED: this Go cannot build the client: {}", built.stderr);
        return None;
    }
    Some(program)
}

/// Runs a client in a shell; returns its output.
fn shell(command: &str) -> Result<String, String> {
    let done = run(Command::new("sh").args(["-c", command]));
    let printed = format!("{}{}", done.stdout, done.stderr);
    if done.code() == Some(0) { Ok(printed) } else { Err(format!("{command}: {printed}")) }
}

const PYTHON: &str = "import socket, ssl, sys\n\
    port, version, authority, own = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]\n\
    context = ssl.create_default_context(cafile=authority)\n\
    context.minimum_version = context.maximum_version = ssl.TLSVersion['TLSv' + version.replace('.', '_')]\n\
    if own: context.load_cert_chain(own[0])\n\
    with context.wrap_socket(socket.create_connection(('127.0.0.1', port)), server_hostname='example.test') as stream:\n\
    \x20   stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n\
    \x20   while data := stream.recv(4096): sys.stdout.write(data.decode())\n";

/// The installed clients: a name, and the command line for a port, a version, a CA file and optionally a client
/// certificate.
type Client = (&'static str, Box<dyn Fn(u16, &str, &str, Option<&str>) -> String>);

fn clients(folder: &Folder) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    let request = "printf 'GET / HTTP/1.0\\r\\n\\r\\n'";
    if pki::is_there() {
        clients.push((
            "openssl",
            Box::new(move |port, version, authority, own| {
                let own = own.map_or(String::new(), |own| format!("-cert {own}"));
                let version = version.replace('.', "_");
                format!(
                    "{request} | openssl s_client -quiet -connect 127.0.0.1:{port} -servername example.test -CAfile {authority} \
                     -verify_return_error -verify_hostname example.test -tls{version} {own}"
                )
            }),
        ));
    }
    if is_there("gnutls-cli") {
        clients.push((
            "gnutls-cli",
            Box::new(move |port, version, authority, own| {
                let own = own.map_or(String::new(), |own| format!("--x509certfile {own} --x509keyfile {own}"));
                format!(
                    "{request} | gnutls-cli --x509cafile {authority} --sni-hostname example.test --verify-hostname example.test \
                     --priority NORMAL:-VERS-ALL:+VERS-TLS{version} {own} -p {port} 127.0.0.1"
                )
            }),
        ));
    }
    if is_there("curl") {
        clients.push((
            "curl",
            Box::new(|port, version, authority, own| {
                let own = own.map_or(String::new(), |own| format!("--cert {own}"));
                format!(
                    "curl -sS -0 -m 60 --cacert {authority} --tlsv{version} --tls-max {version} {own} \
                     --resolve example.test:{port}:127.0.0.1 https://example.test:{port}/"
                )
            }),
        ));
    }
    if is_there("python3") {
        let script = folder.write("client.py", PYTHON);
        clients.push((
            "python3",
            Box::new(move |port, version, authority, own| {
                format!("python3 {script} {port} {version} {authority} {}", own.unwrap_or_default())
            }),
        ));
    }
    if let Some(program) = go(folder) {
        clients.push((
            "go",
            Box::new(move |port, version, authority, own| {
                format!("{program} client 127.0.0.1:{port} {version} {authority} {}", own.unwrap_or_default())
            }),
        ));
    }
    clients
}

#[test]
fn clients_of_other_authors() {
    if !pki::is_there() {
        return;
    }
    let (folder, authority) = (Folder::new(), Authority::root());
    let site = authority.issue("site", CertificateOptions::default());
    let rsa = authority.issue("site-rsa", CertificateOptions { key: "rsa:2048", ..CertificateOptions::default() });
    let client = authority.issue(
        "client",
        CertificateOptions { subject: "/CN=client", names: "DNS:client", ..CertificateOptions::default() },
    );
    let other = Authority::root();
    let stranger =
        other.issue("stranger", CertificateOptions { subject: "/CN=stranger", ..CertificateOptions::default() });
    let ca = authority.path("ca.pem");
    let answer = "http-request return status 200 content-type text/plain lf-string \
        \"<%[ssl_fc_protocol] %[ssl_fc_sni,lower] %[ssl_c_s_dn(CN)] %[ssl_c_verify]>\\n\"";
    for certificate in [&site, &rsa] {
        let sections = format!(
            "frontend f\n bind 127.0.0.1:[port] ssl crt {certificate} ca-file {ca} verify optional\n {answer}\n"
        );
        let (_weir, port) = weir(&folder, &sections);
        for (name, command) in clients(&folder) {
            for version in VERSIONS {
                let printed =
                    shell(&command(port, version, &ca, None)).unwrap_or_else(|error| panic!("{name}: {error}"));
                let expected = format!("<TLSv{version} example.test  0>");
                let times = printed.matches(&expected).count();
                assert_eq!(times, if name == "go" { 2 } else { 1 }, "{name} {version}: {printed}");

                let printed = shell(&command(port, version, &ca, Some(&client)));
                let printed = printed.unwrap_or_else(|error| panic!("{name}: {error}"));
                let expected = format!("<TLSv{version} example.test client 0>");
                assert!(printed.contains(&expected), "{name} {version}: {printed}");

                // A client certificate of an unknown CA, and a client that does not trust the site's CA.
                let refused = shell(&command(port, version, &ca, Some(&stranger)));
                assert!(!refused.as_ref().is_ok_and(|printed| printed.contains('<')), "{name} {version}: {refused:?}");
                let refused = shell(&command(port, version, &other.path("ca.pem"), None));
                assert!(!refused.as_ref().is_ok_and(|printed| printed.contains('<')), "{name} {version}: {refused:?}");
            }
        }
    }
}

/// A server that runs during a test.
struct Server {
    _running: Running,
    port: u16,
}

impl Server {
    fn start(command: &mut Command, port: u16) -> Self {
        let running = Running::start(command);
        drop(connect(port));
        Self { _running: running, port }
    }
}

/// Runs `openssl s_server`, with a page about the connection.
fn openssl_server(certificate: &str, version: &str) -> Server {
    let port = free_port();
    let version = format!("-tls{}", version.replace('.', "_"));
    // The certificate, and optionally a file with its chain.
    let (certificate, chain) = certificate.split_once(' ').unwrap_or((certificate, ""));
    let port_text = port.to_string();
    let mut command = Command::new("openssl");
    command.args(["s_server", "-accept", &port_text, "-cert", certificate, &version, "-www", "-quiet"]);
    if !chain.is_empty() {
        command.args(["-cert_chain", chain]);
    }
    Server::start(&mut command, port)
}

fn gnutls_server(certificate: &str, version: &str) -> Server {
    let port = free_port();
    let priority = format!("NORMAL:-VERS-ALL:+VERS-TLS{version}");
    let port_text = port.to_string();
    let arguments = [
        "--http",
        "-p",
        &port_text,
        "--x509certfile",
        certificate,
        "--x509keyfile",
        certificate,
        "--priority",
        &priority,
    ];
    Server::start(Command::new("gnutls-serv").args(arguments), port)
}

fn haproxy_server(folder: &Folder, certificate: &str, version: &str) -> Server {
    let port = free_port();
    let text = format!(
        "{DEFAULTS}frontend f\n bind 127.0.0.1:{port} ssl crt {certificate} ssl-min-ver TLSv{version} ssl-max-ver TLSv{version}\n \
         http-request return status 200 content-type text/plain lf-string \"%[ssl_fc_protocol]\\n\"\n"
    );
    let file = folder.write(&format!("haproxy-{port}.cfg"), &text);
    Server::start(Command::new("haproxy").args(["-db", "-f", &file]), port)
}

fn go_server(program: &str, certificate: &str, version: &str) -> Server {
    let mut running = Running::start(Command::new(program).args(["server", certificate, version]));
    let line = running.wait_for_line(|line| line.starts_with("listening "));
    let port = line["listening ".len()..].trim().parse().expect("a port");
    Server { _running: running, port }
}

/// Returns the status and the body of one request to Weir.
fn ask(port: u16) -> String {
    let done =
        run(Command::new("curl").args(["-s", "-m", "60", "-w", "%{http_code}", &format!("http://127.0.0.1:{port}/")]));
    done.stdout
}

#[test]
fn servers_of_other_authors() {
    if !pki::is_there() || !is_there("curl") {
        return;
    }
    let (folder, authority) = (Folder::new(), Authority::root());
    let site = authority.issue("site", CertificateOptions::default());
    let ca = authority.path("ca.pem");
    let go = go(&folder);
    let (gnutls, haproxy) = (is_there("gnutls-serv"), is_there("haproxy"));
    for version in VERSIONS {
        let mut servers = vec![("openssl", openssl_server(&site, version))];
        if gnutls {
            servers.push(("gnutls-serv", gnutls_server(&site, version)));
        }
        if haproxy {
            servers.push(("haproxy", haproxy_server(&folder, &site, version)));
        }
        if let Some(program) = &go {
            servers.push(("go", go_server(program, &site, version)));
        }
        for (name, server) in &servers {
            let sections = format!(
                "listen l\n bind 127.0.0.1:[port]\n http-response set-header x-tls \"%[ssl_bc_protocol]\"\n \
                 server s 127.0.0.1:{} ssl verify required ca-file {ca} sni str(example.test)\n",
                server.port
            );
            let (_weir, port) = weir(&folder, &sections);
            for _ in 0..2 {
                let done = run(Command::new("curl").args(["-si", "-m", "60", &format!("http://127.0.0.1:{port}/")]));
                assert!(
                    done.stdout.starts_with("HTTP/1.1 200") || done.stdout.starts_with("HTTP/1.0 200"),
                    "{name}: {done:?}"
                );
                assert!(done.stdout.contains(&format!("x-tls: TLSv{version}")), "{name}: {done:?}");
            }
        }
    }
}

/// Servers with certificates that must be rejected, each with the reason in the check's log.
#[test]
fn certificates_that_must_not_be_taken() {
    if !pki::is_there() || !is_there("curl") {
        return;
    }
    let (folder, root) = (Folder::new(), Authority::root());
    let middle = root.intermediate();
    let ca = root.path("ca.pem");
    let good = CertificateOptions::default();
    let leaf = middle.issue("leaf", good);
    let (above, root_text) = (middle.read("ca.pem"), root.read("ca.pem"));
    let chain = middle.write("chain", &above);
    let reversed = middle.write("reversed", &[root_text.as_str(), &above].concat());
    root.issue("revoked", good);
    let crl = root.revoke("revoked");
    let unknown = Authority::root();
    let stranger = unknown.issue("stranger", good);
    let rows: [(&str, String, String, bool); 11] = [
        ("as it should be", root.issue("good", good), String::new(), true),
        ("as it should be, with a list of revoked ones", root.path("good.pem"), format!("crl-file {crl}"), true),
        ("a chain", format!("{leaf} {chain}"), String::new(), true),
        ("a chain out of order", format!("{leaf} {reversed}"), String::new(), true),
        ("without the certificate between", leaf, String::new(), false),
        ("expired", root.issue("expired", CertificateOptions { until: "200201000000Z", ..good }), String::new(), false),
        (
            "of another host",
            root.issue("other", CertificateOptions { subject: "/CN=other.test", names: "DNS:other.test", ..good }),
            String::new(),
            false,
        ),
        ("of an unknown authority", stranger, String::new(), false),
        ("revoked", root.path("revoked.pem"), format!("crl-file {crl}"), false),
        (
            "for clients only",
            root.issue("usage", CertificateOptions { usage: "clientAuth", ..good }),
            String::new(),
            false,
        ),
        // A name that contains a NUL, where C programs would end it.
        (
            "with a NUL in its name",
            root.issue(
                "nul",
                CertificateOptions {
                    subject: "/CN=x",
                    names: "DER:301C821A6578616D706C652E74657374002E61747461636B65722E74657374",
                    ..good
                },
            ),
            String::new(),
            false,
        ),
    ];
    for (what, certificate, options, taken) in rows {
        let server = openssl_server(&certificate, "1.3");
        let sections = format!(
            "listen l\n bind 127.0.0.1:[port]\n retries 0\n \
             server s 127.0.0.1:{} ssl verify required ca-file {ca} sni str(example.test) verifyhost example.test {options}\n",
            server.port
        );
        let (_weir, port) = weir(&folder, &sections);
        let answer = ask(port);
        let expected = if taken { "200" } else { "503" };
        assert!(answer.ends_with(expected), "{what}: {answer}");
    }
}
