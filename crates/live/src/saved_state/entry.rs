//! Parses the fields of a line, and reports invalid ones with HAProxy's messages. Must never access a server.

use std::time::Duration;

use super::file::{Entry, Field};
use super::{FormerAdmin, FormerOperation, FormerTargets, SavedState};
use crate::health::CheckStatus;

/// Maximum length of a host name.
const LONGEST_NAME: usize = 255;
/// Maximum weight.
const MOST_WEIGHT: i64 = 256;
/// Bits of `srv_admin_state`.
const MAINTENANCE: i64 = 0x01;
const CONFIGURED: i64 = 0x04;
const DRAIN: i64 = 0x08;
const PASSING: i64 = 0x02 | 0x20;
const RENAMED: i64 = 0x40;
/// Bits of `srv_check_state` and `srv_agent_state`.
const CHECK_CONFIGURED: i64 = 0x02;
const CHECK_ENABLED: i64 = 0x04;

/// The errors in a line.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    /// Parses a numeric field within these bounds.
    fn number(&mut self, entry: &Entry, field: Field, name: &str, least: i64, most: i64) -> i64 {
        let text = entry.field(field);
        match text.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => number,
            _ => {
                self.add(name, text);
                0
            }
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        self.0.push(format!("invalid {name} value '{value}'"));
    }
}

/// Returns the text, unless it is a hyphen.
fn written(text: &str) -> Option<Box<str>> {
    (!text.is_empty() && text != "-").then(|| text.into())
}

/// The same for ports, where 0 means none.
fn written_port(text: &str) -> Option<Box<str>> {
    written(text).filter(|text| &**text != "0")
}

impl Entry {
    /// Parses the line.
    ///
    /// # Errors
    /// The errors in the line; nothing of it may be used then.
    pub fn state(&self) -> Result<SavedState, String> {
        let mut wrong = Complaints::default();
        let operation = match wrong.number(self, Field::Operation, "srv_op_state", 0, 3) {
            0 => FormerOperation::Stopped,
            1 => FormerOperation::Starting,
            2 => FormerOperation::Running,
            _ => FormerOperation::Stopping,
        };
        let bits = wrong.number(self, Field::Admin, "srv_admin_state", 0, 0x7f);
        if bits & MAINTENANCE != 0 && bits & DRAIN != 0 {
            wrong.add("srv_admin_state", self.field(Field::Admin));
        }
        let admin = FormerAdmin {
            maintenance: bits & MAINTENANCE != 0,
            configured: bits & CONFIGURED != 0,
            drain: bits & DRAIN != 0,
            passing: bits & PASSING != 0,
            renamed: bits & RENAMED != 0,
        };
        let weight = wrong.number(self, Field::Weight, "srv_uweight", 0, MOST_WEIGHT);
        let initial_weight = wrong.number(self, Field::InitialWeight, "srv_iweight", 0, MOST_WEIGHT);
        let since = wrong.number(self, Field::Since, "srv_last_time_change", i64::MIN, i64::MAX);
        let status = wrong.number(self, Field::Status, "srv_check_status", -2, 20);
        wrong.number(self, Field::Result, "srv_check_result", 0, 4);
        let level = wrong.number(self, Field::Level, "srv_check_health", i64::MIN, i64::MAX);
        let checked = wrong.number(self, Field::Check, "srv_check_state", 0, 0x1f);
        let asked = wrong.number(self, Field::Agent, "srv_agent_state", 0, 0x1f);
        wrong.number(self, Field::BackendIdWritten, "bk_f_forced_id", 0, 1);
        wrong.number(self, Field::ServerIdWritten, "srv_f_forced_id", 0, 1);
        if self.field(Field::Name).len() > LONGEST_NAME {
            wrong.add("srv_fqdn", self.field(Field::Name));
        }
        // An invalid number counts as no port: a server whose port is that of the client has none.
        let port = self.field(Field::Port).parse::<i64>().unwrap_or(0);
        if port > i64::from(u16::MAX) {
            wrong.add("srv_port", self.field(Field::Port));
        }
        if !wrong.0.is_empty() {
            return Err(wrong.0.join(", "));
        }
        let small = |number: i64| u32::try_from(number).unwrap_or(0);
        let enabled = |bits: i64| (bits & CHECK_CONFIGURED != 0).then_some(bits & CHECK_ENABLED != 0);
        Ok(SavedState {
            operation,
            admin,
            weight: small(weight),
            initial_weight: small(initial_weight),
            since: Duration::from_secs(u64::try_from(since).unwrap_or(0)),
            status: u32::try_from(status).ok().and_then(CheckStatus::of_number).unwrap_or(CheckStatus::Initializing),
            level: small(level),
            checked: enabled(checked),
            asked: enabled(asked),
            fqdn: written(self.field(Field::Name)),
            port: u16::try_from(port).ok().filter(|port| *port > 0),
            service: written(self.field(Field::Service)),
            targets: FormerTargets {
                check_port: written_port(self.field(Field::CheckPort)),
                check_address: written(self.field(Field::CheckAddress)),
                agent_address: written(self.field(Field::AgentAddress)),
                agent_port: written_port(self.field(Field::AgentPort)),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries;
    use super::*;

    /// A line with some of its fields changed.
    fn state(changes: &[(usize, &str)]) -> Result<SavedState, String> {
        let line = "2 bk 1 s1 127.0.0.1 2 0 11 11 4 15 3 4 6 0 0 0 - 2222 - 0 0 - - 0";
        let mut fields: Vec<&str> = line.split(' ').collect();
        changes.iter().for_each(|(place, text)| fields[*place] = text);
        let text = format!("1\n{}\n", fields.join(" "));
        entries(text.as_bytes(), |_, _| true).unwrap()[0].state()
    }

    #[test]
    fn wrong_values_are_named_as_haproxy_names_them() {
        let rows: &[(&[(usize, &str)], &str)] = &[
            (&[(5, "9")], "invalid srv_op_state value '9'"),
            (&[(5, "x")], "invalid srv_op_state value 'x'"),
            (&[(6, "128")], "invalid srv_admin_state value '128'"),
            (&[(6, "9")], "invalid srv_admin_state value '9'"),
            (&[(7, "-1")], "invalid srv_uweight value '-1'"),
            (&[(8, "257")], "invalid srv_iweight value '257'"),
            (&[(9, "x")], "invalid srv_last_time_change value 'x'"),
            (&[(10, "21")], "invalid srv_check_status value '21'"),
            (&[(11, "5")], "invalid srv_check_result value '5'"),
            (&[(12, "x")], "invalid srv_check_health value 'x'"),
            (&[(13, "32")], "invalid srv_check_state value '32'"),
            (&[(14, "x")], "invalid srv_agent_state value 'x'"),
            (&[(15, "x")], "invalid bk_f_forced_id value 'x'"),
            (&[(16, "x")], "invalid srv_f_forced_id value 'x'"),
            (&[(18, "70000")], "invalid srv_port value '70000'"),
            (
                &[(5, "9"), (6, "128"), (7, "3000")],
                "invalid srv_op_state value '9', invalid srv_admin_state value '128', invalid srv_uweight value '3000'",
            ),
        ];
        for (changes, expected) in rows {
            assert_eq!(state(changes).unwrap_err(), *expected);
        }
        let long = "x".repeat(300);
        assert_eq!(state(&[(17, &long)]).unwrap_err(), format!("invalid srv_fqdn value '{long}'"));
    }

    #[test]
    fn fields_are_read() {
        let read = state(&[]).unwrap();
        assert_eq!((read.operation, read.admin), (FormerOperation::Running, FormerAdmin::default()));
        assert_eq!((read.weight, read.initial_weight, read.since), (11, 11, Duration::from_secs(4)));
        assert_eq!((read.status, read.level, read.checked, read.asked), (CheckStatus::L7Ok, 4, Some(true), None));
        assert_eq!((read.port, read.fqdn, read.service), (Some(2222), None, None));
        assert_eq!(read.targets, FormerTargets::default());
        let read = state(&[
            (6, "76"),
            (9, "-5"),
            (10, "-1"),
            (13, "2"),
            (14, "22"),
            (17, "a.b"),
            (18, "0"),
            (19, "_http._tcp.b"),
            (21, "80"),
            (22, "::1"),
            (23, "127.0.0.1"),
            (24, "x"),
        ])
        .unwrap();
        let admin = FormerAdmin { configured: true, drain: true, renamed: true, ..FormerAdmin::default() };
        assert_eq!((read.admin, read.since, read.status), (admin, Duration::ZERO, CheckStatus::Initializing));
        assert_eq!((read.checked, read.asked, read.port), (Some(false), Some(true), None));
        assert_eq!((read.fqdn.as_deref(), read.service.as_deref()), (Some("a.b"), Some("_http._tcp.b")));
        let targets = FormerTargets {
            check_port: Some("80".into()),
            check_address: Some("::1".into()),
            agent_address: Some("127.0.0.1".into()),
            agent_port: Some("x".into()),
        };
        assert_eq!(read.targets, targets);
    }
}
