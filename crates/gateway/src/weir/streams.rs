//! Frontends of TLS by server name: connections that are passed through as they are, and connections that are decrypted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use super::files::Files;
use super::output::{Configuration, List};
use super::word::{Unwritable, name, quoted};
use crate::desired::TlsTarget;

/// A server name with its backend, and the certificates of one that is decrypted.
struct Named<'a> {
    name: &'a str,
    backend: &'a str,
    certificates: Option<&'a [String]>,
}

/// Appends the frontend of an address. If some names are passed through and others are not, these have a second frontend at a socket of
/// the state directory.
pub fn push(
    socket: SocketAddr,
    title: &str,
    names: &BTreeMap<String, TlsTarget>,
    files: &Files<'_>,
    result: &mut Configuration,
) -> Result<(), Unwritable> {
    let mut all: Vec<Named<'_>> = names.iter().map(|(name, target)| named(name, target)).collect();
    all.sort_by_key(|one| (one.name.starts_with('*'), std::cmp::Reverse(one.name.len())));
    let (decrypted, passed): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.certificates.is_some());
    if passed.is_empty() && !decrypted.is_empty() {
        return push_decrypted(&format!("weir:{title}"), &socket.to_string(), title, &decrypted, files, result);
    }
    let _ = writeln!(
        result.text,
        "\nfrontend weir:{title}\n    mode tcp\n    bind {socket}\n    tcp-request inspect-delay 5s\n    \
         tcp-request content accept if {{ req.ssl_hello_type 1 }}"
    );
    for one in &all {
        let inner = format!("weir:tls:{title}");
        let backend = if one.certificates.is_some() { &inner } else { one.backend };
        push_rule("req.ssl_sni", one.name, backend, &mut result.text)?;
    }
    if decrypted.is_empty() {
        return Ok(());
    }
    let place = format!("unix@{}", files.folder.join(format!("tls-{title}.sock")).display());
    let place = quoted("a path", &place)?;
    let _ =
        writeln!(result.text, "\nbackend weir:tls:{title}\n    mode tcp\n    server decrypted {place} send-proxy-v2");
    push_decrypted(
        &format!("weir:decrypted:{title}"),
        &format!("{place} accept-proxy"),
        title,
        &decrypted,
        files,
        result,
    )
}

fn named<'a>(name: &'a str, target: &'a TlsTarget) -> Named<'a> {
    match target {
        TlsTarget::Passthrough { backend } => Named { name, backend, certificates: None },
        TlsTarget::Terminate { backend, certificates } => Named { name, backend, certificates: Some(certificates) },
    }
}

fn push_decrypted(
    frontend: &str,
    place: &str,
    title: &str,
    names: &[&Named<'_>],
    files: &Files<'_>,
    result: &mut Configuration,
) -> Result<(), Unwritable> {
    let mut list = String::new();
    for one in names {
        for certificate in one.certificates.unwrap_or_default() {
            let file = files.certificate(name("a certificate", certificate)?);
            let filter = match one.name.strip_prefix("*.") {
                Some(rest) => format!(" *.{}", name("a hostname", rest)?),
                None if one.name == "*" => String::new(),
                None => format!(" {}", name("a hostname", one.name)?),
            };
            let _ = writeln!(list, "{file}{filter}");
        }
    }
    let path = files.folder.join("lists").join(format!("{title}.list")).to_string_lossy().into_owned();
    let strict = if names.iter().any(|one| one.name == "*") { "" } else { " strict-sni" };
    let _ = writeln!(
        result.text,
        "\nfrontend {frontend}\n    mode tcp\n    bind {place} ssl crt-list {}{strict}",
        quoted("a path", &path)?
    );
    for one in names {
        push_rule("ssl_fc_sni", one.name, one.backend, &mut result.text)?;
    }
    result.lists.push(List { path, text: list });
    Ok(())
}

fn push_rule(sample: &str, server_name: &str, backend: &str, text: &mut String) -> Result<(), Unwritable> {
    let condition = match server_name.strip_prefix('*') {
        Some("") => String::new(),
        Some(suffix) => format!(" if {{ {sample} -m end -i -- {} }}", quoted("a server name", suffix)?),
        None => format!(" if {{ {sample} -m str -i -- {} }}", quoted("a server name", server_name)?),
    };
    let _ = writeln!(text, "    use_backend {}{condition}", name("a backend", backend)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn written(names: &[(&str, TlsTarget)]) -> Configuration {
        let names = names.iter().map(|(name, target)| ((*name).to_owned(), target.clone())).collect();
        let mut result = Configuration::default();
        let files = Files { folder: Path::new("/state") };
        push("10.0.0.1:443".parse().unwrap(), "10.0.0.1:443", &names, &files, &mut result).unwrap();
        result
    }

    #[test]
    fn names_are_passed_or_decrypted() {
        let passed = || TlsTarget::Passthrough { backend: "p".into() };
        let decrypted = || TlsTarget::Terminate { backend: "d".into(), certificates: vec!["c".into()] };
        let one = written(&[("a.test", passed()), ("*.test", passed()), ("*", passed())]);
        assert!(one.lists.is_empty() && !one.text.contains(" ssl "), "{}", one.text);
        let rules: Vec<_> = one.text.lines().filter(|line| line.contains("use_backend")).collect();
        assert_eq!(
            rules,
            [
                "    use_backend p if { req.ssl_sni -m str -i -- 'a.test' }",
                "    use_backend p if { req.ssl_sni -m end -i -- '.test' }",
                "    use_backend p",
            ]
        );
        let two = written(&[("a.test", decrypted()), ("*", decrypted())]);
        assert!(two.text.contains("bind 10.0.0.1:443 ssl crt-list '/state/lists/10.0.0.1:443.list'\n"), "{}", two.text);
        assert_eq!(two.lists[0].text, "/state/certificates/c.pem a.test\n/state/certificates/c.pem\n");
        let three = written(&[("a.test", decrypted()), ("b.test", passed())]);
        assert!(three.text.contains("use_backend weir:tls:10.0.0.1:443 if { req.ssl_sni -m str -i -- 'a.test' }"));
        assert!(
            three.text.contains("bind 'unix@/state/tls-10.0.0.1:443.sock' accept-proxy ssl crt-list"),
            "{}",
            three.text
        );
    }
}
