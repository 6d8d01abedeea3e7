//! The services that answer requests inside the process (`http-request use-service`). Owns their names and what the rules
//! have to do with their answers. Must never know how one answers.

use std::sync::Arc;

/// One service, as a rule refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRow {
    /// The name that a rule uses.
    pub name: Arc<str>,
    /// The name of the server in log lines: by default the same between `<` and `>`.
    pub shown: Arc<str>,
    /// Its number among the services of the process.
    pub number: usize,
    /// `http-response` rules and filters see its answers, as they see a server's. Without it, only `http-after-response`
    /// rules do.
    pub ruled: bool,
    /// It serves the bytes of a session in TCP mode, not requests.
    pub of_bytes: bool,
}

/// The services of the process, registered before a configuration is compiled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Services {
    rows: Vec<ServiceRow>,
}

impl Services {
    /// No services.
    pub const fn none() -> Self {
        Self { rows: Vec::new() }
    }

    /// Registers one more and returns its number. Of two with one name, the first is found.
    pub fn register(&mut self, name: &str, ruled: bool) -> usize {
        self.register_shown(name, &format!("<{name}>"), ruled)
    }

    /// The same with the name of the server in log lines.
    pub fn register_shown(&mut self, name: &str, shown: &str, ruled: bool) -> usize {
        let number = self.rows.len();
        self.rows.push(ServiceRow { name: name.into(), shown: shown.into(), number, ruled, of_bytes: false });
        number
    }

    /// The same for a service on bytes, which log lines show by its name between `<` and `>`.
    pub fn register_of_bytes(&mut self, name: &str) -> usize {
        let number = self.register(name, false);
        if let Some(row) = self.rows.last_mut() {
            row.of_bytes = true;
        }
        number
    }

    /// All of them, in the order of their registration.
    pub fn iter(&self) -> impl Iterator<Item = &ServiceRow> {
        self.rows.iter()
    }

    /// The service of that number.
    pub fn get(&self, number: usize) -> Option<&ServiceRow> {
        self.rows.get(number)
    }

    /// The service of that name.
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
