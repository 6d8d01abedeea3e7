//! The files of a state in memory.

/// A state in files.
#[derive(Debug, Default)]
pub struct Configuration {
    pub text: String,
    /// Lists of certificates, and tables of routes.
    pub lists: Vec<List>,
    /// Frontends and backends that cannot be written: one line each.
    pub problems: Vec<String>,
}

/// A file that the configuration names.
#[derive(Debug)]
pub struct List {
    pub path: String,
    pub text: String,
}
