//! Condition of a row: how severe its state is, and the reason in words. Must never depend on rates: the order of rows
//! changes only if a state does.

use super::sample::{Kind, Row};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Severity of a state, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Serves nothing although it should.
    Down,
    /// Serves, but something is missing: a server of a backend, a check, free sessions.
    Degraded,
    /// Out of service by an administrator's decision.
    Planned,
    Fine,
}

/// Condition of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub severity: Severity,
    /// Empty if there is nothing to explain.
    pub reason: String,
    /// Of a backend: the usable servers and all servers.
    pub servers: Option<(u64, u64)>,
}

impl Condition {
    fn new(severity: Severity, reason: impl Into<String>) -> Self {
        Self { severity, reason: reason.into(), servers: None }
    }
}

/// Maximum number of servers that a backend's reason names.
const MOST_NAMED: usize = 8;

/// Conditions of a backend's servers.
#[derive(Debug, Default)]
struct ServerSummary {
    count: u64,
    down: u64,
    degraded: u64,
    planned: u64,
    /// The first servers that are not fine, each with its reason in a word.
    named: Vec<String>,
}

impl ServerSummary {
    fn add(&mut self, row: &Row, severity: Severity) {
        self.count += 1;
        match severity {
            Severity::Down => self.down += 1,
            Severity::Degraded => self.degraded += 1,
            Severity::Planned => self.planned += 1,
            Severity::Fine => return,
        }
        if self.named.len() < MOST_NAMED {
            self.named.push(format!("{} {}", row.name, word_of_server(row)));
        }
    }

    /// Returns the names, and how many more there are.
    fn names(&self) -> String {
        let mut text = self.named.join(", ");
        let unnamed = self.down + self.degraded + self.planned - self.named.len() as u64;
        if unnamed > 0 {
            let _ = write!(text, " and {unnamed} more");
        }
        text
    }
}

/// Returns the condition of each row, in their order.
pub fn conditions<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Vec<Condition> {
    let mut summaries: HashMap<&str, ServerSummary> = HashMap::new();
    for row in rows.clone().filter(|row| row.kind == Kind::Server) {
        summaries.entry(&row.proxy).or_default().add(row, of_server(row).severity);
    }
    let empty = ServerSummary::default();
    let of = |row: &'a Row| match row.kind {
        Kind::Server => of_server(row),
        Kind::Backend => of_backend(row, summaries.get(&*row.proxy).unwrap_or(&empty)),
        Kind::Frontend | Kind::Listener => of_frontend(row),
    };
    rows.map(of).collect()
}

fn of_frontend(row: &Row) -> Condition {
    match &*row.status {
        "OPEN" => Condition::new(Severity::Fine, ""),
        "STOP" => Condition::new(Severity::Down, "stopped"),
        "PAUSED" => Condition::new(Severity::Degraded, "paused"),
        _ => {
            let limit = row.session_limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
            Condition::new(Severity::Degraded, format!("{}{limit} sessions", row.sessions))
        }
    }
}

/// Whether a status contains the progress of checks, as "UP 1/3".
fn is_changing(status: &str) -> bool {
    status.contains('/') && !status.contains('(')
}

fn of_server(row: &Row) -> Condition {
    let status = &*row.status;
    match status {
        _ if status.starts_with("MAINT") => Condition::new(Severity::Planned, "maintenance"),
        _ if status.starts_with("DRAIN") => Condition::new(Severity::Planned, "no new sessions"),
        _ if status.starts_with("EJECTED") => Condition::new(Severity::Down, "ejected after failed requests"),
        _ if status.starts_with("DOWN") => Condition::new(Severity::Down, failure(row).line()),
        _ if status.starts_with("NOLB") => Condition::new(Severity::Planned, failure(row).line()),
        _ if is_changing(status) => Condition::new(Severity::Degraded, failure(row).line()),
        _ if row.weight == Some(0) => Condition::new(Severity::Planned, "weight 0"),
        _ => Condition::new(Severity::Fine, ""),
    }
}

/// Returns the check whose result explains the status.
fn failure(row: &Row) -> &super::sample::CheckResult {
    let by_agent = row.status.contains("(agent)") || row.check.status.is_empty();
    if by_agent { &row.agent } else { &row.check }
}

/// Returns the reason of a server in a word, for its backend.
fn word_of_server(row: &Row) -> String {
    let state = row.status.split_whitespace().next().unwrap_or_default();
    let word = failure(row).word();
    let has_reason = matches!(state, "DOWN" | "UP" | "NOLB") && row.weight != Some(0) && !word.is_empty();
    match state {
        _ if has_reason => word,
        "UP" | "no" => "weight 0".to_owned(),
        state => state.to_owned(),
    }
}

fn of_backend(row: &Row, servers: &ServerSummary) -> Condition {
    let [active, backup] = row.usable;
    let (up, count) = (active + backup, servers.count);
    let is_down = row.status.starts_with("DOWN");
    let mut reason = String::new();
    if up < count || is_down {
        let _ = write!(reason, "{up} of {count} up");
    }
    if active == 0 && backup > 0 {
        let _ = write!(reason, "{}backup only", if reason.is_empty() { "" } else { ", " });
    }
    if !servers.named.is_empty() {
        let _ = write!(reason, "{}{}", if reason.is_empty() { "" } else { ": " }, servers.names());
    }
    let severity = match () {
        () if is_down => Severity::Down,
        () if servers.down + servers.degraded > 0 || active == 0 && backup > 0 => Severity::Degraded,
        () if servers.planned > 0 => Severity::Planned,
        () => Severity::Fine,
    };
    Condition { severity, reason, servers: (count > 0).then_some((up, count)) }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    /// Rows of a backend "b" with these servers: status, weight, check and agent, each as "status code info".
    fn sample(backend: &str, usable: [u64; 2], servers: &[[&str; 4]]) -> Sample {
        let mut text = "# pxname,svname,status,weight,act,bck,type,check_status,check_code,last_chk,agent_status,\
                        agent_code,last_agt,slim,scur,\n"
            .to_owned();
        for (at, [status, weight, check, agent]) in servers.iter().enumerate() {
            let _ = writeln!(text, "b,s{},{status},{weight},1,0,2,{check},{agent},,,", at + 1);
        }
        let [active, backup] = usable;
        let _ = writeln!(text, "b,BACKEND,{backend},1,{active},{backup},1,,,,,,,,,");
        Sample::parse(&text).expect("an answer")
    }

    fn found(sample: &Sample) -> Vec<(Severity, String)> {
        let found = conditions(sample.rows.iter().map(|row| &**row));
        found.into_iter().map(|condition| (condition.severity, condition.reason)).collect()
    }

    #[test]
    fn a_server_has_a_severity_and_a_reason() {
        const NONE: &str = ",,";
        for (server, severity, reason) in [
            (["UP", "1", "L7OK,200,OK", NONE], Severity::Fine, ""),
            (["no check", "1", NONE, NONE], Severity::Fine, ""),
            (["DOWN", "1", "* L4CON,,Connection refused", NONE], Severity::Down, "L4CON: Connection refused"),
            (["DOWN 1/2", "1", "L7OK,200,OK", NONE], Severity::Down, "L7OK/200: OK"),
            (["UP 1/3", "1", "L7STS,503,Unavailable", NONE], Severity::Degraded, "L7STS/503: Unavailable"),
            (["DOWN (agent)", "1", "L7OK,200,OK", "L7STS,,stopped"], Severity::Down, "L7STS: stopped"),
            (["DOWN 0/2", "1", NONE, "L4TOUT,,"], Severity::Down, "L4TOUT"),
            (["NOLB", "1", "L7STS,404,Not Found", NONE], Severity::Planned, "L7STS/404: Not Found"),
            (["MAINT (via a/s1)", "1", NONE, NONE], Severity::Planned, "maintenance"),
            (["DRAIN", "1", "L7OK,200,OK", NONE], Severity::Planned, "no new sessions"),
            (["EJECTED", "1", NONE, NONE], Severity::Down, "ejected after failed requests"),
            (["UP", "0", "L7OK,200,OK", NONE], Severity::Planned, "weight 0"),
        ] {
            let found = found(&sample("UP", [1, 0], &[server]));
            assert_eq!(found[0], (severity, reason.to_owned()), "{server:?}");
        }
    }

    #[test]
    fn a_backend_is_as_severe_as_what_it_lacks() {
        const UP: [&str; 4] = ["UP", "1", "L7OK,200,OK", ",,"];
        const DOWN: [&str; 4] = ["DOWN", "1", "L7STS,503,Unavailable", ",,"];
        const MAINT: [&str; 4] = ["MAINT", "1", ",,", ",,"];
        const FAILING: [&str; 4] = ["UP 2/3", "1", "L4TOUT,,", ",,"];
        for (status, usable, servers, severity, reason) in [
            ("UP", [2, 0], &[UP, UP][..], Severity::Fine, ""),
            ("UP", [1, 0], &[UP, DOWN], Severity::Degraded, "1 of 2 up: s2 L7STS/503"),
            ("UP", [2, 0], &[UP, FAILING], Severity::Degraded, "s2 L4TOUT"),
            ("UP", [0, 1], &[DOWN, UP], Severity::Degraded, "1 of 2 up, backup only: s1 L7STS/503"),
            ("UP", [1, 0], &[UP, MAINT], Severity::Planned, "1 of 2 up: s2 MAINT"),
            ("DOWN", [0, 0], &[DOWN, MAINT], Severity::Down, "0 of 2 up: s1 L7STS/503, s2 MAINT"),
            ("UP", [0, 0], &[], Severity::Fine, ""),
        ] {
            let found = found(&sample(status, usable, servers));
            assert_eq!(found.last(), Some(&(severity, reason.to_owned())), "{status} {servers:?}");
        }
        let many = found(&sample("DOWN", [0, 0], &[DOWN; 11]));
        let reason = &many[11].1;
        assert!(reason.starts_with("0 of 11 up: s1 ") && reason.ends_with("s8 L7STS/503 and 3 more"), "{reason}");
    }

    #[test]
    fn a_frontend_that_accepts_nothing_is_not_fine() {
        for (status, severity, reason) in [
            ("OPEN", Severity::Fine, ""),
            ("STOP", Severity::Down, "stopped"),
            ("PAUSED", Severity::Degraded, "paused"),
            ("WAITING", Severity::Degraded, "20 of 20 sessions"),
        ] {
            let text = format!("# pxname,svname,status,type,scur,slim,\nf,FRONTEND,{status},0,20,20,\n");
            let found = found(&Sample::parse(&text).expect("an answer"));
            assert_eq!(found, [(severity, reason.to_owned())]);
        }
    }
}
