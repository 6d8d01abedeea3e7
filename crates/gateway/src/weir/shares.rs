//! Backends whose servers get different header fields: a section for each group of servers with the same fields, and rules of a frontend
//! that choose among them by the groups' weights.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::word::{Unwritable, format, name, quoted};
use crate::desired::{Backend, Desired, Filter, Route, Server};

/// Servers with the same fields.
#[derive(Debug)]
pub struct Share<'a> {
    pub fields: &'a [Filter],
    pub servers: BTreeMap<&'a str, &'a Server>,
}

impl Share<'_> {
    /// Returns the sum of the weights of servers that get new requests.
    fn weight(&self) -> u32 {
        self.servers.values().filter(|server| !server.is_draining).map(|server| u32::from(server.weight)).sum()
    }
}

/// Returns the groups of a backend, at least one.
pub fn of(backend: &Backend) -> Vec<Share<'_>> {
    let mut result: Vec<Share<'_>> = Vec::new();
    for (server_name, server) in &backend.servers {
        let known = result.iter().position(|share| share.fields == server.request_headers);
        let at = known.unwrap_or_else(|| {
            result.push(Share { fields: &server.request_headers, servers: BTreeMap::new() });
            result.len() - 1
        });
        result[at].servers.insert(server_name, server);
    }
    if result.is_empty() {
        result.push(Share { fields: &[], servers: BTreeMap::new() });
    }
    result
}

/// Returns the name of the section of a group.
pub fn section(backend: &str, at: usize) -> String {
    if at == 0 { backend.to_owned() } else { format!("{backend}:m{at}") }
}

/// Appends the choice of a backend by a table of routes, whose path is given.
pub fn push_choice(path: &str, routes: &[Route], desired: &Desired, text: &mut String) -> Result<(), Unwritable> {
    let lookup = format!("req.route({path})");
    let mut rules = String::new();
    let names: std::collections::BTreeSet<&str> = routes.iter().map(|route| route.backend.as_str()).collect();
    for backend_name in names {
        let Some(backend) = desired.backends.get(backend_name) else { continue };
        let shares = of(backend);
        let mut rest: u32 = shares.iter().map(Share::weight).sum();
        for (at, share) in shares.iter().enumerate().skip(1) {
            let weight = share.weight();
            if weight > 0 {
                let _ = writeln!(
                    rules,
                    "    http-request set-var-fmt(txn.weir_backend) {} if {{ var(txn.weir_backend) -m str -- {} }} {{ rand({rest}) lt {weight} }}",
                    format("a backend", &section(backend_name, at))?,
                    quoted("a backend", name("a backend", backend_name)?)?
                );
            }
            rest -= weight;
        }
    }
    if rules.is_empty() {
        let _ = writeln!(text, "    use_backend {}", quoted("a path", &format!("%[{lookup}]"))?);
    } else {
        let lookup = quoted("a path", &lookup)?;
        let _ = write!(
            text,
            "    http-request set-var(txn.weir_backend) {lookup}\n{rules}    use_backend '%[var(txn.weir_backend)]'\n"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{BackendKind, PathMatch, Protocol, Timeouts};
    use std::sync::Arc;

    fn server(weight: u16, field: Option<&str>) -> Server {
        let set = |value: &str| Filter::SetRequestHeader { name: "at".into(), value: value.into() };
        Server {
            address: [10, 0, 0, 1].into(),
            port: 80,
            weight,
            is_draining: false,
            request_headers: field.map(set).into_iter().collect(),
        }
    }

    #[test]
    fn groups_are_chosen_by_their_weights() {
        let rows = [
            ("0:a", server(2, Some("a"))),
            ("0:b", server(2, Some("a"))),
            ("1:c", server(4, None)),
            ("2:d", server(2, Some("d"))),
        ];
        let backend = Backend {
            kind: BackendKind::Http,
            filters: Vec::new(),
            servers: rows.into_iter().map(|(name, server)| (name.to_owned(), server)).collect(),
            protocol: Protocol::Http1,
            tls: None,
            timeouts: Timeouts::default(),
            retries: None,
            cookie: None,
        };
        let counts: Vec<_> = of(&backend).iter().map(|share| (share.servers.len(), share.weight())).collect();
        assert_eq!(counts, [(2, 4), (1, 4), (1, 2)]);
        let route = Route {
            host: "*".into(),
            path: PathMatch::Prefix(String::new()),
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
            order: String::new(),
            backend: "b".into(),
        };
        let mut desired = Desired::default();
        desired.backends.insert("b".into(), Arc::new(backend));
        let mut text = String::new();
        push_choice("/t", std::slice::from_ref(&route), &desired, &mut text).unwrap();
        assert_eq!(
            text,
            "    http-request set-var(txn.weir_backend) 'req.route(/t)'\n    \
             http-request set-var-fmt(txn.weir_backend) 'b:m1' if { var(txn.weir_backend) -m str -- 'b' } { rand(10) lt 4 }\n    \
             http-request set-var-fmt(txn.weir_backend) 'b:m2' if { var(txn.weir_backend) -m str -- 'b' } { rand(6) lt 2 }\n    \
             use_backend '%[var(txn.weir_backend)]'\n"
        );
        let mut plain = String::new();
        push_choice("/t", &[route], &Desired::default(), &mut plain).unwrap();
        assert_eq!(plain, "    use_backend '%[req.route(/t)]'\n");
    }
}
