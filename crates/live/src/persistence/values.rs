//! The mapping of cookie values to servers. Must never depend on whether a server is up.

use std::net::SocketAddr;

/// The values of a backend's servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CookieValues {
    /// By server.
    values: Vec<Option<Box<[u8]>>>,
    /// The servers with a value, by value, then by index.
    sorted: Vec<usize>,
}

/// A server, and the inputs of its value.
#[derive(Debug, Clone, Copy)]
pub struct CookieInputs<'a> {
    pub server: usize,
    /// The value in its `server` line.
    pub own: Option<&'a [u8]>,
    /// Its address, if it is an internet address.
    pub address: Option<SocketAddr>,
}

impl CookieValues {
    /// Computes the values of these servers; with a key, servers without a configured value get dynamic ones.
    pub fn of_servers<'a>(servers: impl Iterator<Item = CookieInputs<'a>>, key: Option<&[u8]>) -> Self {
        let mut values = Vec::new();
        for CookieInputs { server, own, address } in servers {
            let dynamic = || Some(super::dynamic_value(key?, address?));
            values.resize_with(values.len().max(server + 1), || None);
            values[server] = own.map(Into::into).or_else(dynamic);
        }
        Self::new(values)
    }

    /// Creates the mapping from values by server.
    pub fn new(values: Vec<Option<Box<[u8]>>>) -> Self {
        let mut sorted: Vec<usize> = (0..values.len()).filter(|server| values[*server].is_some()).collect();
        sorted.sort_by(|one, other| (&values[*one], one).cmp(&(&values[*other], other)));
        Self { values, sorted }
    }

    /// Returns the value of a server.
    pub fn of(&self, server: usize) -> Option<&[u8]> {
        self.values.get(server)?.as_deref()
    }

    /// Returns the servers with that value, in the order of the configuration.
    pub fn servers(&self, value: &[u8]) -> &[usize] {
        let key = |server: &usize| self.of(*server).unwrap_or_default();
        let start = self.sorted.partition_point(|server| key(server) < value);
        let length = self.sorted[start..].partition_point(|server| key(server) == value);
        &self.sorted[start..start + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lead_to_servers() {
        let values = ["b", "a", "", "b", "c", "ab"];
        let boxed = |text: &str| Some(text).filter(|text| !text.is_empty()).map(|text| text.as_bytes().into());
        let values = CookieValues::new(values.into_iter().map(boxed).collect());
        let rows: &[(&str, &[usize])] =
            &[("a", &[1]), ("b", &[0, 3]), ("c", &[4]), ("ab", &[5]), ("", &[]), ("d", &[]), ("A", &[])];
        for (value, expected) in rows {
            assert_eq!(values.servers(value.as_bytes()), *expected, "{value}");
        }
        assert_eq!([values.of(5), values.of(2), values.of(9)], [Some(&b"ab"[..]), None, None]);
        assert_eq!(CookieValues::default().servers(b"a"), &[] as &[usize]);
    }
}
