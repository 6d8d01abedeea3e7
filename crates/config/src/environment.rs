//! Environment variables as the configuration reads and changes them (configuration manual, section 2.3). They are a
//! copy: must never change the variables of the process itself.

use crate::text;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;

/// Maximum size of all names and values together, in bytes; it bounds a `setenv` that doubles a value.
pub const MAX_BYTES: usize = 16 << 20;

/// Variables and their values. Both are text as defined in [`crate::text`]: bytes that are not UTF-8 are preserved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    bytes: usize,
}

/// Reason why a variable cannot be set or removed; displayed as the system call would report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentError {
    /// The name is empty or contains `=`.
    InvalidName,
    /// The total would exceed [`MAX_BYTES`].
    TooLarge,
}

impl std::fmt::Display for EnvironmentError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::InvalidName => "Invalid argument",
            Self::TooLarge => "Cannot allocate memory",
        })
    }
}

impl std::error::Error for EnvironmentError {}

impl Environment {
    /// Creates an empty environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies the process's variables. Variables that exceed [`MAX_BYTES`] are left out.
    pub fn of_process() -> Self {
        let mut environment = Self::new();
        for (name, value) in std::env::vars_os() {
            let _ = environment.set(&text::from_bytes(name.as_bytes()), &text::from_bytes(value.as_bytes()));
        }
        environment
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Whether a variable exists, even with an empty value.
    pub fn contains(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Returns all variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `setenv`: sets a variable, whether or not it exists.
    ///
    /// # Errors
    /// The name is invalid, or the total would exceed [`MAX_BYTES`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), EnvironmentError> {
        check(name)?;
        let old = self.variables.get(name).map_or(0, |old| name.len() + old.len());
        let bytes = self.bytes - old + name.len() + value.len();
        if bytes > MAX_BYTES {
            return Err(EnvironmentError::TooLarge);
        }
        self.bytes = bytes;
        self.variables.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// `presetenv`: sets a variable unless it exists.
    ///
    /// # Errors
    /// As for [`Self::set`].
    pub fn set_if_absent(&mut self, name: &str, value: &str) -> Result<(), EnvironmentError> {
        if self.contains(name) { Ok(()) } else { self.set(name, value) }
    }

    /// `unsetenv`: removes a variable if it exists.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn remove(&mut self, name: &str) -> Result<(), EnvironmentError> {
        check(name)?;
        if let Some(value) = self.variables.remove(name) {
            self.bytes -= name.len() + value.len();
        }
        Ok(())
    }

    /// `resetenv`: removes every variable whose name does not satisfy `keep`.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.variables.retain(|name, _| keep(name));
        self.bytes = self.variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    }
}

fn check(name: &str) -> Result<(), EnvironmentError> {
    if name.is_empty() || name.contains('=') { Err(EnvironmentError::InvalidName) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_and_go() {
        let mut environment = Environment::new();
        environment.set("A", "1").unwrap();
        environment.set_if_absent("A", "2").unwrap();
        environment.set_if_absent("B", "").unwrap();
        assert_eq!(environment.iter().collect::<Vec<_>>(), [("A", "1"), ("B", "")]);
        environment.set("A", "3").unwrap();
        environment.remove("nothing").unwrap();
        environment.retain(|name| name == "A");
        assert_eq!((environment.get("A"), environment.contains("B")), (Some("3"), false));
        environment.remove("A").unwrap();
        assert_eq!(environment, Environment::new());
    }

    #[test]
    fn bad_names_are_refused() {
        let mut environment = Environment::new();
        for name in ["", "A=B", "="] {
            assert_eq!(environment.set(name, "x"), Err(EnvironmentError::InvalidName), "{name}");
            assert_eq!(environment.remove(name), Err(EnvironmentError::InvalidName), "{name}");
        }
    }

    #[test]
    fn growth_ends() {
        let mut environment = Environment::new();
        let mut value = String::from("x");
        while environment.set("A", &value).is_ok() {
            value = value.repeat(2);
        }
        assert!(value.len() > MAX_BYTES / 2);
        assert_eq!(environment.set("A", &value), Err(EnvironmentError::TooLarge));
        assert_eq!(environment.set("A", "small"), Ok(()));
    }
}
