//! The results of checks, with HAProxy's names (management manual, section 9.1, field "check_status"). Must never
//! decide the consequences.

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckStatus {
    /// No result, and none expected.
    #[default]
    Unknown,
    /// No result yet.
    Initializing,
    /// An agent responded without stating the server's health.
    Checked,
    /// Observed traffic exceeded the error limit (`observe`).
    Analyzed,
    /// A socket error of the system or the peer.
    SocketError,
    /// The connection was established, and nothing else was checked.
    L4Ok,
    /// Connecting timed out.
    L4Timeout,
    /// Connecting failed.
    L4Connection,
    /// Layer 6 (TLS) succeeded.
    L6Ok,
    /// Layer 6 timed out.
    L6Timeout,
    /// Layer 6 failed.
    L6Response,
    /// The application timed out.
    L7Timeout,
    /// The application's response is invalid.
    L7Response,
    /// The application's response is valid.
    L7Ok,
    /// The application requests no new clients.
    L7Conditional,
    /// The application reports a failure.
    L7Status,
    /// The external check could not run, or reports a failure.
    ProgramError,
    /// The external check timed out.
    ProgramTimeout,
    /// The external check succeeded.
    ProgramOk,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The server is healthy.
    Passed,
    /// It serves existing sessions, but no new clients.
    Conditional,
    /// The server failed.
    Failed,
}

/// Status, name, description, number in `show servers state`.
const ROWS: [(CheckStatus, &str, &str, u32); 19] = [
    (CheckStatus::Unknown, "UNK", "Unknown", 0),
    (CheckStatus::Initializing, "INI", "Initializing", 1),
    (CheckStatus::Checked, "CHECKED", "No status change", 3),
    (CheckStatus::Analyzed, "HANA", "Health analyze", 4),
    (CheckStatus::SocketError, "SOCKERR", "Socket error", 5),
    (CheckStatus::L4Ok, "L4OK", "Layer4 check passed", 6),
    (CheckStatus::L4Timeout, "L4TOUT", "Layer4 timeout", 7),
    (CheckStatus::L4Connection, "L4CON", "Layer4 connection problem", 8),
    (CheckStatus::L6Ok, "L6OK", "Layer6 check passed", 9),
    (CheckStatus::L6Timeout, "L6TOUT", "Layer6 timeout", 10),
    (CheckStatus::L6Response, "L6RSP", "Layer6 invalid response", 11),
    (CheckStatus::L7Timeout, "L7TOUT", "Layer7 timeout", 12),
    (CheckStatus::L7Response, "L7RSP", "Layer7 invalid response", 13),
    (CheckStatus::L7Ok, "L7OK", "Layer7 check passed", 15),
    (CheckStatus::L7Conditional, "L7OKC", "Layer7 check conditionally passed", 16),
    (CheckStatus::L7Status, "L7STS", "Layer7 wrong status", 17),
    (CheckStatus::ProgramError, "PROCERR", "External check error", 18),
    (CheckStatus::ProgramTimeout, "PROCTOUT", "External check timeout", 19),
    (CheckStatus::ProgramOk, "PROCOK", "External check passed", 20),
];

impl CheckStatus {
    fn row(self) -> &'static (Self, &'static str, &'static str, u32) {
        ROWS.iter().find(|row| row.0 == self).unwrap_or(&ROWS[0])
    }

    /// Its name, such as `L7OK`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its description.
    pub fn description(self) -> &'static str {
        self.row().2
    }

    /// Its number in `show servers state`.
    pub fn number(self) -> u32 {
        self.row().3
    }

    /// Returns the status of that number.
    pub fn of_number(number: u32) -> Option<Self> {
        ROWS.iter().find(|row| row.3 == number).map(|row| row.0)
    }

    /// Returns the status of that name, if it is permitted.
    pub fn named(name: &str, permitted: &[Self]) -> Option<Self> {
        permitted.iter().copied().find(|status| status.name() == name)
    }

    /// The verdict about the server; `None`: none.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Unknown | Self::Initializing | Self::Checked => None,
            Self::L4Ok | Self::L6Ok | Self::L7Ok | Self::ProgramOk => Some(Verdict::Passed),
            Self::L7Conditional => Some(Verdict::Conditional),
            _ => Some(Verdict::Failed),
        }
    }

    /// Whether the application, or a program, was checked: then there is a code.
    pub fn is_application(self) -> bool {
        use CheckStatus::{L7Conditional, L7Ok, L7Status, ProgramError, ProgramOk, ProgramTimeout};
        matches!(self, L7Ok | L7Conditional | L7Status | ProgramError | ProgramTimeout | ProgramOk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_a_row_and_verdicts_follow_from_names() {
        for (status, name, description, number) in ROWS {
            assert_eq!((status.name(), status.description(), status.number()), (name, description, number));
            let expected = match name {
                "UNK" | "INI" | "CHECKED" => None,
                "L7OKC" => Some(Verdict::Conditional),
                name if name.ends_with("OK") => Some(Verdict::Passed),
                _ => Some(Verdict::Failed),
            };
            assert_eq!(status.verdict(), expected, "{name}");
        }
    }

    #[test]
    fn names_are_found_where_they_are_permitted() {
        let permitted = [CheckStatus::L7Timeout, CheckStatus::L4Timeout];
        assert_eq!(CheckStatus::named("L4TOUT", &permitted), Some(CheckStatus::L4Timeout));
        assert_eq!(CheckStatus::named("L7OK", &permitted), None);
    }
}
