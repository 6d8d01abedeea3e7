//! The text of the configuration that serves a state.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use super::files::Files;
use super::output::{Configuration, List};
use super::word::{Unwritable, format, name, quoted};
use super::{backends, routes, shares, streams};
use crate::desired::{Desired, Frontend, FrontendKind, Tls};

/// The backend of requests that no route fits.
const NOT_FOUND: &str = "weir:not-found";

/// A state and the names of its files.
#[derive(Clone, Copy)]
struct Serving<'a> {
    desired: &'a Desired,
    files: &'a Files<'a>,
}

const HEAD: &str = "# Written by weir-gateway: changes are lost.\nglobal\n    reload in-place\n\ndefaults\n    mode http\n    timeout connect 5s\n    \
                    timeout client 60s\n    timeout server 60s\n    timeout tunnel 1h\n    option redispatch\n";

/// Returns the configuration of a state whose files are in a folder. Requests to backends that are `refused` are answered 500.
pub fn write(desired: &Desired, refused: &BTreeSet<String>, folder: &Path) -> Configuration {
    let files = Files { folder };
    let mut result = Configuration { text: HEAD.into(), ..Configuration::default() };
    // Weir needs a listener, and probes an address that is always there.
    let ready = quoted("a path", &format!("unix@{}", folder.join("ready.sock").display()));
    match ready {
        Ok(ready) => {
            let _ =
                writeln!(result.text, "\nfrontend weir:ready\n    bind {ready}\n    http-request return status 200");
        }
        Err(error) => result.problems.push(format!("{}: {error}", folder.display())),
    }
    if !desired.backends.contains_key(NOT_FOUND) {
        let _ = writeln!(result.text, "\nbackend {NOT_FOUND}\n    http-request return status 404");
    }
    for (backend_name, backend) in &desired.backends {
        let start = result.text.len();
        if refused.contains(backend_name) {
            push_refusal(backend_name, &mut result.text);
        } else if let Err(error) = backends::push(backend_name, backend, &files, &mut result.text) {
            result.text.truncate(start);
            push_refusal(backend_name, &mut result.text);
            result.problems.push(format!("backend {}: {error}", backend_name.escape_debug()));
        }
    }
    let serving = Serving { desired, files: &files };
    for (socket, frontend) in &desired.frontends {
        let start = result.text.len();
        if let Err(error) = push_frontend(*socket, frontend, serving, &mut result) {
            result.text.truncate(start);
            result.problems.push(format!("frontend {socket}: {error}"));
        }
    }
    result
}

/// Appends a backend that answers 500, if its name can be written.
fn push_refusal(backend_name: &str, text: &mut String) {
    if let Ok(own) = name("a backend", backend_name) {
        let _ = writeln!(text, "\nbackend {own}\n    http-request return status 500");
    }
}

/// Returns the backend whose section has a line, counted from 1.
pub fn backend_at(text: &str, line: usize) -> Option<&str> {
    let before = text.lines().take(line);
    let head = before.filter(|line| !line.is_empty() && !line.starts_with([' ', '#'])).last()?;
    head.strip_prefix("backend ")
}

fn push_frontend(
    socket: SocketAddr,
    frontend: &Frontend,
    serving: Serving<'_>,
    result: &mut Configuration,
) -> Result<(), Unwritable> {
    let Serving { desired, files } = serving;
    let title = socket.to_string().replace(['[', ']'], "");
    let own = format!("weir:{title}");
    match &frontend.kind {
        FrontendKind::Http { tls, routes } => {
            let _ = write!(result.text, "\nfrontend {own}\n    bind {socket}");
            if let Some(tls) = tls {
                push_tls(&title, tls, files, result)?;
            }
            let _ = writeln!(result.text, "\n    option forwardfor");
            if let Some(tls) = tls {
                push_misdirected(&tls.hostnames, &mut result.text)?;
            }
            let path = files.folder.join("lists").join(format!("{title}.routes")).to_string_lossy().into_owned();
            shares::push_choice(&path, routes, desired, &mut result.text)?;
            let _ = writeln!(result.text, "    default_backend {NOT_FOUND}");
            let table = routes::table(routes);
            result.problems.extend(
                table.refused.iter().map(|backend| {
                    format!("a match of backend {}: its conditions are too long", backend.escape_debug())
                }),
            );
            result.lists.push(List { path, text: table.text });
        }
        FrontendKind::Tcp { backend } => {
            let backend = name("a backend", backend)?;
            let _ = writeln!(
                result.text,
                "\nfrontend {own}\n    mode tcp\n    bind {socket}\n    default_backend {backend}"
            );
        }
        FrontendKind::Tls { names } => streams::push(socket, &title, names, files, result)?,
    }
    Ok(())
}

/// Appends the rules that answer 421 where the listener of a request's host is not that of the handshake's server name.
fn push_misdirected(hostnames: &[String], text: &mut String) -> Result<(), Unwritable> {
    if hostnames.len() < 2 {
        return Ok(());
    }
    let _ = writeln!(text, "    http-request set-var(txn.weir_host) req.fhdr(host),host_only,lower");
    let mut ordered: Vec<&String> = hostnames.iter().collect();
    // The most specific one is written last.
    ordered.sort_by_key(|hostname| (!hostname.starts_with('*'), hostname.len()));
    for hostname in ordered {
        let condition = match hostname.strip_prefix('*') {
            Some("") => "-m found".to_owned(),
            Some(suffix) => format!("-m end -- {}", quoted("a hostname", suffix)?),
            None => format!("-m str -- {}", quoted("a hostname", hostname)?),
        };
        let value = format("a hostname", hostname)?;
        let _ = writeln!(
            text,
            "    http-request set-var-fmt(txn.weir_listener) {value} if {{ var(txn.weir_host) {condition} }}\n    \
             http-request set-var-fmt(txn.weir_named) {value} if {{ ssl_fc_sni,lower {condition} }}"
        );
    }
    let _ = writeln!(
        text,
        "    http-request return status 421 if {{ ssl_fc_has_sni }} !{{ var(txn.weir_listener),strcmp(txn.weir_named) eq 0 }}"
    );
    Ok(())
}

fn push_tls(title: &str, tls: &Tls, files: &Files<'_>, result: &mut Configuration) -> Result<(), Unwritable> {
    let mut list = String::new();
    for (server_name, certificates) in &tls.certificates {
        for certificate in certificates {
            let filter =
                if server_name == "*" { "" } else { name("a hostname", server_name.trim_start_matches("*."))? };
            let star = if server_name.starts_with("*.") { "*." } else { "" };
            let _ = writeln!(list, "{} {star}{filter}", files.certificate(name("a certificate", certificate)?));
        }
    }
    let path = files.folder.join("lists").join(format!("{title}.list")).to_string_lossy().into_owned();
    let _ = write!(result.text, " ssl crt-list {} alpn h2,http/1.1", quoted("a path", &path)?);
    if !tls.certificates.contains_key("*") {
        let _ = write!(result.text, " strict-sni");
    }
    if let Some(clients) = &tls.clients {
        let verify = if clients.optional { "optional crt-ignore-err all ca-ignore-err all" } else { "required" };
        let authorities = files.authorities(name("a bundle", &clients.authorities)?);
        let _ = write!(result.text, " ca-file {} verify {verify}", quoted("a path", &authorities)?);
    }
    result.lists.push(List { path, text: list });
    Ok(())
}
