//! Lists of algorithms without a supported name, in HAProxy's sentences. Must never read a list.

/// A requirement without any supported value.
pub(super) enum Unfit<'a> {
    Versions,
    Ciphers(&'a str),
    Suites(&'a str),
    Groups(&'a str),
    Signatures(&'a str),
    ClientSignatures(&'a str),
}

impl Unfit<'_> {
    /// Returns the message about a server.
    pub(super) fn of_server(self, head: &str, backend: &str, server: &str) -> String {
        match self {
            Self::Versions => {
                format!("{head}backend '{backend}': all SSL/TLS versions are disabled for server '{server}'.")
            }
            Self::Groups(text) => {
                format!("{head}Proxy '{backend}': unable to set SSL curves list to '{text}' for server '{server}'.")
            }
            Self::Signatures(text) => format!(
                "{head}Proxy '{backend}': unable to set SSL Signature Algorithm list to '{text}' for server '{server}'."
            ),
            Self::ClientSignatures(text) => format!(
                "{head}Proxy '{backend}': unable to set SSL Client Signature Algorithm list to '{text}' for server \
                 '{server}'."
            ),
            Self::Ciphers(text) => format!("{head}unable to set SSL cipher list to '{text}'."),
            Self::Suites(text) => format!("{head}unable to set TLS 1.3 cipher suites to '{text}'."),
        }
    }
}
