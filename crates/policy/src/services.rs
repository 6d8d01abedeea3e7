//! Services that respond to requests inside the process (`http-request use-service`). Owns their names and the rules
//! that apply to their responses. Must never know how a service responds.

use std::sync::Arc;

/// A service, as referred to by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRow {
    pub name: Arc<str>,
    /// The name of the server in log lines: by default the name between `<` and `>`.
    pub shown: Arc<str>,
    /// Index among the services of the process.
    pub number: usize,
    /// `http-response` rules and filters apply to its responses, as for a server; otherwise only `http-after-response`
    /// rules do.
    pub ruled: bool,
    /// It processes the bytes of a session in TCP mode instead of requests.
    pub of_bytes: bool,
}

/// The services of the process, registered before a configuration is compiled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Services {
    rows: Vec<ServiceRow>,
}

impl Services {
    /// Creates an empty list.
    pub const fn none() -> Self {
        Self { rows: Vec::new() }
    }

    /// Registers a service and returns its number. Of two with the same name, the first one is found.
    pub fn register(&mut self, name: &str, ruled: bool) -> usize {
        self.register_shown(name, &format!("<{name}>"), ruled)
    }

    /// Registers a service with a name for log lines.
    pub fn register_shown(&mut self, name: &str, shown: &str, ruled: bool) -> usize {
        let number = self.rows.len();
        self.rows.push(ServiceRow { name: name.into(), shown: shown.into(), number, ruled, of_bytes: false });
        number
    }

    /// Registers a service on bytes, whose name in log lines is between `<` and `>`.
    pub fn register_of_bytes(&mut self, name: &str) -> usize {
        let number = self.register(name, false);
        if let Some(row) = self.rows.last_mut() {
            row.of_bytes = true;
        }
        number
    }

    /// Returns all services in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &ServiceRow> {
        self.rows.iter()
    }

    /// Returns the service with that number.
    pub fn get(&self, number: usize) -> Option<&ServiceRow> {
        self.rows.get(number)
    }

    /// Returns the service with that name.
    pub fn find(&self, name: &str) -> Option<&ServiceRow> {
        self.rows.iter().find(|row| &*row.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_by_name() {
        let mut services = Services::none();
        assert_eq!(
            (services.register("a", false), services.register("b", true), services.register("a", true)),
            (0, 1, 2)
        );
        assert_eq!(services.find("a").map(|row| (row.number, row.ruled)), Some((0, false)));
        assert_eq!(services.find("c"), None);
    }
}
