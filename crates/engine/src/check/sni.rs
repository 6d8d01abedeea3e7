//! The server name (SNI) of a check's TLS handshake (configuration manual, "check-sni", "check-sni-auto"). Must never open a
//! connection.

use std::net::IpAddr;

use policy::check::{CheckStep, Connect};
use policy::program::ServerTls;

use super::running::RunningCheck;

impl<'a> RunningCheck<'a> {
    /// Returns the SNI for a connection: that of the step, else of the server's line, else the host of the first request. `None`:
    /// no SNI.
    pub(super) fn server_name(&self, connect: &Connect, tls: &ServerTls) -> Option<Box<str>> {
        let own = Some(tls).filter(|_| connect.default);
        let written = connect.sni.as_deref().or_else(|| own?.check_sni.as_deref());
        written.map(Into::into).or_else(|| self.name_of_request(tls))
    }

    /// `check-sni-auto`: the host of the first request. Checks that open their connections by rules name it there.
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
        host_in(std::str::from_utf8(&host).ok()?).map(Into::into)
    }
}

/// Returns the host of a `Host` field, without its port. `None`: the field has no host. An IP address is not sent as SNI (RFC
/// 6066, section 3), but is verified in the certificate.
fn host_in(host: &str) -> Option<&str> {
    let host = match host.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
        Some(address) => address,
        None if host.parse::<IpAddr>().is_ok() => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    Some(host).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::host_in;

    #[test]
    fn hosts_are_without_their_ports() {
        let rows = [
            ("a.example", Some("a.example")),
            ("A.example:8443", Some("A.example")),
            ("localhost", Some("localhost")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1:80", Some("192.0.2.1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[2001:db8::1]:443", Some("2001:db8::1")),
            ("2001:db8::1", Some("2001:db8::1")),
            (":443", None),
            ("", None),
        ];
        for (host, expected) in rows {
            assert_eq!(host_in(host), expected, "{host}");
        }
    }
}
