//! The name that a check asks for in its handshake of TLS (configuration manual, "check-sni", "check-sni-auto"). Must never
//! open a connection.

use std::net::IpAddr;

use policy::check::{CheckStep, Connect};
use policy::program::ServerTls;

use super::run::Course;

impl<'a> Course<'a> {
    /// The name that the handshake of a connection asks for: the one of the step, else of the server's line, else the host
    /// that the first request names. `None`: none.
    pub(super) fn server_name(&self, connect: &Connect, tls: &ServerTls) -> Option<Box<str>> {
        let own = Some(tls).filter(|_| connect.default);
        let written = connect.sni.as_deref().or_else(|| own?.check_sni.as_deref());
        written.map(Into::into).or_else(|| self.name_of_request(tls))
    }

    /// `check-sni-auto`: the host of the first request. Scripts that open their connections by rules name them there.
    fn name_of_request(&self, tls: &ServerTls) -> Option<Box<str>> {
        if !tls.names_checks || !self.check.is_http || self.check.connects_by_itself() {
            return None;
        }
        let request = self.check.steps.iter().find_map(|step| match step {
            CheckStep::Request(request) => Some(request),
            _ => None,
        });
        let (_, format) = request?.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"))?;
        let mut host = Vec::new();
        self.lend(&[], |context| format.render_in(context, &mut host));
        name_in(std::str::from_utf8(&host).ok()?).map(Into::into)
    }
}

/// The name in a `Host` field: without its port. `None`: there is none, or it is an address, which SNI does not carry (RFC
/// 6066, section 3).
fn name_in(host: &str) -> Option<&str> {
    let name = host.split(':').next().unwrap_or_default();
    let is_address = host.starts_with('[') || [host, name].iter().any(|text| text.parse::<IpAddr>().is_ok());
    Some(name).filter(|name| !name.is_empty() && !is_address)
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn names_are_asked_for_and_addresses_are_not() {
        let rows = [
            ("a.example", Some("a.example")),
            ("A.example:8443", Some("A.example")),
            ("localhost", Some("localhost")),
            ("192.0.2.1", None),
            ("192.0.2.1:80", None),
            ("[2001:db8::1]", None),
            ("[2001:db8::1]:443", None),
            ("2001:db8::1", None),
            (":443", None),
            ("", None),
        ];
        for (host, expected) in rows {
            assert_eq!(name_in(host), expected, "{host}");
        }
    }
}
