//! How a check ended, in HAProxy's words (management manual, section 9.1, field "check_status"). Must never decide what
//! follows from that.

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckStatus {
    /// None has ended yet, and none will.
    #[default]
    Unknown,
    /// None has ended yet.
    Initializing,
    /// An agent answered, and said nothing of whether the server is well.
    Checked,
    /// Traffic has shown too many errors (`observe`).
    Analyzed,
    /// The system or the peer broke the connection.
    SocketError,
    /// It connected, and no more was asked for.
    L4Ok,
    /// It did not connect in time.
    L4Timeout,
    /// It did not connect.
    L4Connection,
    /// The layer below the application is fine.
    L6Ok,
    /// That layer was not there in time.
    L6Timeout,
    /// That layer is not what it should be.
    L6Response,
    /// The application did not answer in time.
    L7Timeout,
    /// The application's answer is not what it should be.
    L7Response,
    /// The application's answer is fine.
    L7Ok,
    /// The application asks to be left alone.
    L7Conditional,
    /// The application says that it cannot serve.
    L7Status,
    /// The program that checks could not run, or says that the server is ill.
    ProgramError,
    /// That program did not end in time.
    ProgramTimeout,
    /// That program says that the server is well.
    ProgramOk,
}

/// What a check says about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is well.
    Passed,
    /// It goes on with what it has, and wants nothing new.
    Conditional,
    /// It is ill.
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

    /// Its name: `L7OK`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The same in words.
    pub fn description(self) -> &'static str {
        self.row().2
    }

    /// Its number in `show servers state`.
    pub fn number(self) -> u32 {
        self.row().3
    }

    /// The status of that number.
    pub fn of_number(number: u32) -> Option<Self> {
        ROWS.iter().find(|row| row.3 == number).map(|row| row.0)
    }

    /// The status of that name, where `names` permits it.
    pub fn named(name: &str, permitted: &[Self]) -> Option<Self> {
        permitted.iter().copied().find(|status| status.name() == name)
    }

    /// What it says about the server; `None`: nothing.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Unknown | Self::Initializing | Self::Checked => None,
            Self::L4Ok | Self::L6Ok | Self::L7Ok | Self::ProgramOk => Some(Verdict::Passed),
            Self::L7Conditional => Some(Verdict::Conditional),
            _ => Some(Verdict::Failed),
        }
    }

    /// Whether the application, or a program, was asked: then there is a code.
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
