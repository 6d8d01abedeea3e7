//! Backends as sections of a configuration.

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::files::Files;
use super::shares::{self, Share};
use super::word::{Unwritable, field, format, literal, name, quoted};
use crate::desired::{Backend, BackendKind, Filter, PathChange, Protocol, Redirect, Server, ServerTls};

/// Appends a backend: a section for each group of servers with the same header fields.
pub fn push(backend_name: &str, backend: &Backend, files: &Files<'_>, text: &mut String) -> Result<(), Unwritable> {
    for (at, share) in shares::of(backend).iter().enumerate() {
        push_section(&shares::section(backend_name, at), backend, share, files, text)?;
    }
    Ok(())
}

fn push_section(
    section: &str,
    backend: &Backend,
    share: &Share<'_>,
    files: &Files<'_>,
    text: &mut String,
) -> Result<(), Unwritable> {
    let mode = if matches!(backend.kind, BackendKind::Tcp) { "tcp" } else { "http" };
    let _ = writeln!(text, "\nbackend {}\n    mode {mode}", name("a backend", section)?);
    if let Some(time) = backend.timeouts.request.or(backend.timeouts.backend_request) {
        let _ = writeln!(text, "    timeout server {time}ms");
    }
    // Requests that are answered here are not copied.
    let (answers, others): (Vec<_>, Vec<_>) =
        backend.filters.iter().partition(|filter| matches!(filter, Filter::Answer { .. }));
    for filter in answers.into_iter().chain(others).chain(share.fields) {
        push_filter(filter, text)?;
    }
    match &backend.kind {
        BackendKind::Status(status) => {
            let _ = writeln!(text, "    http-request return status {status}");
        }
        BackendKind::Redirect(redirect) => push_redirect(redirect, text)?,
        BackendKind::Http | BackendKind::Tcp => push_servers(backend, share, files, text)?,
    }
    Ok(())
}

fn push_servers(backend: &Backend, share: &Share<'_>, files: &Files<'_>, text: &mut String) -> Result<(), Unwritable> {
    let mut weights = share.servers.values().map(|server| server.weight);
    let first = weights.next();
    let is_even = weights.all(|weight| Some(weight) == first);
    let _ = writeln!(text, "    balance {}", if is_even { "leastconn" } else { "roundrobin" });
    if let Some(retries) = &backend.retries {
        let statuses: String = retries.statuses.iter().map(|status| format!(" {status}")).collect();
        let _ = writeln!(text, "    retries {}\n    retry-on conn-failure empty-response{statuses}", retries.attempts);
    }
    if let Some(cookie) = &backend.cookie {
        let lifetime = cookie.lifetime.map(|seconds| format!(" maxlife {seconds}s")).unwrap_or_default();
        let _ =
            writeln!(text, "    cookie {} insert indirect nocache httponly{lifetime}", name("a cookie", &cookie.name)?);
    }
    for (server_name, server) in &share.servers {
        push_server(server_name, server, backend, files, text)?;
    }
    Ok(())
}

fn push_server(
    server_name: &str,
    server: &Server,
    backend: &Backend,
    files: &Files<'_>,
    text: &mut String,
) -> Result<(), Unwritable> {
    let address = SocketAddr::new(server.address, server.port);
    let weight = if server.is_draining { 0 } else { server.weight };
    let _ = write!(text, "    server {} {address} weight {weight}", name("a server", server_name)?);
    if backend.cookie.is_some() {
        let _ = write!(text, " cookie {}", name("a server", server_name)?);
    }
    if matches!(backend.protocol, Protocol::Http2) && matches!(backend.kind, BackendKind::Http) {
        let _ = write!(text, " proto h2");
    }
    if let Some(tls) = &backend.tls {
        push_tls(tls, files, text)?;
    }
    text.push('\n');
    Ok(())
}

fn push_tls(tls: &ServerTls, files: &Files<'_>, text: &mut String) -> Result<(), Unwritable> {
    let own = tls.names.first().unwrap_or(&tls.server_name);
    let authorities = match &tls.authorities {
        Some(authorities) => files.authorities(name("a bundle", authorities)?),
        None => "@system-ca".to_owned(),
    };
    let _ = write!(
        text,
        " ssl verify required sni {} verifyhost {} ca-file {}",
        quoted("a server name", &format!("str({})", name("a server name", &tls.server_name)?))?,
        name("a server name", own)?,
        quoted("a bundle", &authorities)?
    );
    if let Some(certificate) = &tls.certificate {
        let _ =
            write!(text, " crt {}", quoted("a certificate", &files.certificate(name("a certificate", certificate)?))?);
    }
    Ok(())
}

fn push_filter(filter: &Filter, text: &mut String) -> Result<(), Unwritable> {
    let line = match filter {
        Filter::SetRequestHeader { name, value } => {
            format!("http-request set-header {} {}", field(name)?, format("a header field", value)?)
        }
        Filter::AddRequestHeader { name, value } => {
            format!("http-request add-header {} {}", field(name)?, format("a header field", value)?)
        }
        Filter::RemoveRequestHeader { name } => format!("http-request del-header {}", field(name)?),
        Filter::SetResponseHeader { name, value } => {
            format!("http-response set-header {} {}", field(name)?, format("a header field", value)?)
        }
        Filter::AddResponseHeader { name, value } => {
            format!("http-response add-header {} {}", field(name)?, format("a header field", value)?)
        }
        Filter::RemoveResponseHeader { name } => format!("http-response del-header {}", field(name)?),
        Filter::SetHost { value } => format!("http-request set-header host {}", format("a hostname", value)?),
        Filter::SetPath(PathChange::Full(path)) => format!("http-request set-path {}", format("a path", path)?),
        Filter::SetPath(PathChange::Prefix { matched, replacement }) => {
            push_prefix(matched, replacement, text)?;
            "http-request set-path '%[var(txn.weir_path)]'".to_owned()
        }
        Filter::Mirror { backend, numerator, denominator } => {
            let percent = 100.0 * f64::from(*numerator) / f64::from((*denominator).max(1));
            if *numerator == 0 {
                return Ok(());
            }
            format!("http-request mirror {} sample {:.4}%", name("a backend", backend)?, percent.clamp(0.0001, 100.0))
        }
        Filter::Answer { status, numerator, denominator } if numerator >= denominator => {
            format!("http-request return status {status}")
        }
        Filter::Answer { status, numerator, denominator } => {
            format!("http-request return status {status} if {{ rand({denominator}) lt {numerator} }}")
        }
        Filter::Cors(cors) => return super::cors::push(cors, text),
    };
    let _ = writeln!(text, "    {line}");
    Ok(())
}

/// Sets a variable to the path with another prefix of whole elements.
fn push_prefix(matched: &str, replacement: &str, text: &mut String) -> Result<(), Unwritable> {
    let matched = matched.trim_end_matches('/').len();
    let replacement = replacement.trim_end_matches('/');
    let longer = format!("{}%[path,bytes({matched})]", literal(replacement));
    let whole = if replacement.is_empty() { "/" } else { replacement };
    let _ = writeln!(
        text,
        "    http-request set-var-fmt(txn.weir_path) {}\n    http-request set-var-fmt(txn.weir_path) {} if {{ path,length le {matched} }}",
        quoted("a path", &longer)?,
        format("a path", whole)?
    );
    Ok(())
}

fn push_redirect(redirect: &Redirect, text: &mut String) -> Result<(), Unwritable> {
    let scheme = match &redirect.scheme {
        Some(scheme) => literal(scheme),
        None => "%[ssl_fc,iif(https,http)]".to_owned(),
    };
    let host = match &redirect.host {
        Some(host) => literal(host),
        None => "%[req.hdr(host),host_only]".to_owned(),
    };
    let port = match redirect.port {
        Some(port) => {
            let default = match redirect.scheme.as_deref() {
                Some("https") => port == 443,
                Some("http") => port == 80,
                _ => port == 80 || port == 443,
            };
            if default { String::new() } else { format!(":{port}") }
        }
        None if redirect.scheme.is_some() => String::new(),
        None => {
            let _ = writeln!(
                text,
                "    http-request set-var-fmt(txn.weir_port) ':%[dst_port]' unless {{ dst_port 80 443 }}"
            );
            "%[var(txn.weir_port)]".to_owned()
        }
    };
    let target = match &redirect.path {
        None => "%[pathq]".to_owned(),
        Some(change) => {
            let _ = writeln!(text, "    http-request set-var-fmt(txn.weir_query) '?%[query]' if {{ query -m found }}");
            let path = match change {
                PathChange::Full(path) => literal(path),
                PathChange::Prefix { matched, replacement } => {
                    push_prefix(matched, replacement, text)?;
                    "%[var(txn.weir_path)]".to_owned()
                }
            };
            format!("{path}%[var(txn.weir_query)]")
        }
    };
    let location = quoted("a redirection", &format!("{scheme}://{host}{port}{target}"))?;
    let _ = writeln!(text, "    http-request redirect code {} location {location}", redirect.status);
    Ok(())
}
