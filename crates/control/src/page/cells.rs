//! The cells of a row, with the contents of HAProxy's page: what an operator reads is in the cell, the rest in its
//! tooltip. Must never count anything.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use super::format::{Bytes, Duration, Escaped, Grouped, Tooltip};
use crate::field::Value;
use crate::statistics::{self, Column, Kind, Object};

/// A group of columns: its title and the titles of its columns.
type Group = (&'static str, &'static [&'static str]);

/// The columns of the page, after those of the checkbox and of the name.
pub(super) const GROUPS: &[Group] = &[
    ("Queue", &["Cur", "Max", "Limit"]),
    ("Session rate", &["Cur", "Max", "Limit"]),
    ("Sessions", &["Cur", "Max", "Limit", "Total", "LbTot", "Last"]),
    ("Bytes", &["In", "Out"]),
    ("Denied", &["Req", "Resp"]),
    ("Errors", &["Req", "Conn", "Resp"]),
    ("Warnings", &["Retr", "Redis"]),
    ("Server", &["Status", "LastChk", "Wght", "Act", "Bck", "Chk", "Dwn", "Dwntme", "Thrtle"]),
];

/// The columns of the statistics by name.
static COLUMNS: LazyLock<HashMap<&'static str, &'static Column>> =
    LazyLock::new(|| statistics::columns().map(|column| (column.field.name, column)).collect());

/// Returns the value of a column of the statistics.
pub(super) fn value_of(object: &Object<'_>, name: &str) -> Value {
    COLUMNS.get(name).map_or(Value::None, |column| column.of(object))
}

fn number_of(value: &Value) -> Option<u64> {
    match value {
        Value::U32(value) => Some(u64::from(*value)),
        Value::U64(value) => Some(*value),
        Value::S32(value) => u64::try_from(*value).ok(),
        Value::Float(value) => Some(*value as u64),
        Value::None | Value::Text(_) => None,
    }
}

/// Returns a frontend's or a listener's, a server's, or a backend's place in `of`.
fn by_kind<T>(kind: &Kind<'_>, [front, server, back]: [T; 3]) -> T {
    match kind {
        Kind::Frontend | Kind::Listener(_) => front,
        Kind::Server(_) => server,
        Kind::Backend => back,
    }
}

/// Writes the cells of an object.
pub(super) fn write(object: &Object<'_>, out: &mut String) {
    let mut row = RowWriter { object, out };
    row.queue();
    row.session_rate();
    row.sessions();
    row.session_totals();
    row.traffic();
    row.errors();
    row.status();
    row.checks();
}

/// The status of a server as its row shows it.
pub(super) struct ServerStatus {
    /// The text of the statistics.
    pub(super) text: String,
    pub(super) is_backup: bool,
    /// Whether its effective weight is 0.
    pub(super) is_unweighted: bool,
}

impl ServerStatus {
    pub(super) fn of(object: &Object<'_>) -> Self {
        let is = |name: &str, wanted: u64| number_of(&value_of(object, name)) == Some(wanted);
        Self { text: object.status(), is_backup: is("bck", 1), is_unweighted: is("weight", 0) }
    }

    /// Whether the text has the progress of checks, as "UP 1/3".
    fn is_changing(&self) -> bool {
        self.text.contains('/') && !self.text.contains('(')
    }

    /// Returns the class of the row, which has HAProxy's name.
    pub(super) fn class(&self) -> &'static str {
        let text = &*self.text;
        let [active, backup] = match text {
            _ if text.starts_with("MAINT") => ["maintain"; 2],
            _ if text.starts_with("NOLB") => ["active_nolb", "backup_nolb"],
            _ if text.starts_with("DRAIN") => ["active_draining", "backup_draining"],
            _ if text.starts_with("no check") => ["active_no_check", "backup_no_check"],
            _ if text.starts_with("UP") && self.is_unweighted => ["active_draining", "backup_draining"],
            _ if text.starts_with("UP") && self.is_changing() => ["active_going_down", "backup_going_down"],
            _ if text.starts_with("UP") => ["active_up", "backup_up"],
            _ if self.is_changing() => ["active_going_up", "backup_going_up"],
            _ => ["active_down", "backup_down"],
        };
        if self.is_backup { backup } else { active }
    }

    /// Returns the direction of checks in progress.
    fn arrow(&self) -> &'static str {
        match self.is_changing() {
            false => "",
            true if self.text.starts_with("DOWN") => " ↑",
            true => " ↓",
        }
    }
}

/// Writes the cells of one row in their order.
struct RowWriter<'a> {
    object: &'a Object<'a>,
    out: &'a mut String,
}

impl RowWriter<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        number_of(&value_of(self.object, name))
    }

    /// Returns a number, 0 if the object does not have it.
    fn count(&self, name: &str) -> u64 {
        self.number(name).unwrap_or(0)
    }

    /// Returns a text, empty if the object does not have it.
    fn text(&self, name: &str) -> String {
        value_of(self.object, name).to_string()
    }

    /// Writes a cell. The content is HTML.
    fn cell(&mut self, class: &str, content: &dyn fmt::Display, tip: Option<Tooltip>) {
        let tip = tip.filter(|tip| !tip.is_empty());
        let classes = [class, if tip.is_some() { "tip" } else { "" }];
        let classes: Vec<&str> = classes.into_iter().filter(|class| !class.is_empty()).collect();
        let _ = match (classes.is_empty(), tip) {
            (true, _) => write!(self.out, "<td>{content}</td>"),
            (false, None) => write!(self.out, "<td class=\"{}\">{content}</td>", classes.join(" ")),
            (false, Some(tip)) => {
                write!(self.out, "<td class=\"{}\"><u>{content}</u>{tip}</td>", classes.join(" "))
            }
        };
    }

    fn empty(&mut self) {
        self.cell("", &"", None);
    }

    /// Writes a number; an empty cell if the object does not have it.
    fn plain(&mut self, name: &str) {
        self.with_tip(name, None);
    }

    fn with_tip(&mut self, name: &str, tip: Option<Tooltip>) {
        match self.number(name) {
            Some(number) => self.cell("", &Grouped(number), tip),
            None => self.empty(),
        }
    }

    /// Writes a number that is emphasized if it is not 0.
    fn fault(&mut self, name: &str, tip: Option<Tooltip>) {
        match self.number(name) {
            Some(number) => self.cell(if number > 0 { "fault" } else { "" }, &Grouped(number), tip),
            None => self.empty(),
        }
    }

    /// Writes a limit; `absent`: the content without one.
    fn limit(&mut self, name: &str, absent: &str) {
        match self.number(name).filter(|limit| *limit > 0) {
            Some(limit) => self.cell("", &Grouped(limit), None),
            None => self.cell("", &absent, None),
        }
    }

    fn queue(&mut self) {
        self.plain("qcur");
        self.plain("qmax");
        self.limit("qlimit", by_kind(&self.object.kind, ["", "-", ""]));
    }

    fn session_rate(&mut self) {
        for (name, adjective, connections, requests) in
            [("rate", "Current", "conn_rate", "req_rate"), ("rate_max", "Max", "conn_rate_max", "req_rate_max")]
        {
            let tip = self.number(connections).map(|connections| {
                let rate = |number: u64| format!("{number}/s");
                let tip = Tooltip::default().row(&format!("{adjective} connection rate"), &rate(connections), "");
                let tip = tip.row(&format!("{adjective} session rate"), &rate(self.count(name)), "");
                match self.number(requests) {
                    Some(requests) => tip.row(&format!("{adjective} request rate"), &rate(requests), ""),
                    None => tip,
                }
            });
            self.with_tip(name, tip);
        }
        let is_frontend = matches!(self.object.kind, Kind::Frontend);
        self.limit("rate_lim", if is_frontend { "-" } else { "" });
    }

    fn sessions(&mut self) {
        let is_server = matches!(self.object.kind, Kind::Server(_));
        let limit = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let tip = is_server.then(|| {
            Tooltip::default()
                .row("Current active connections", &self.count("scur"), "")
                .row("Current used connections", &self.count("used_conn_cur"), "")
                .row("Current idle connections", &self.count("srv_icur"), "")
                .row("- unsafe", &self.count("idle_conn_cur"), "")
                .row("- safe", &self.count("safe_conn_cur"), "")
                .row("Estimated need of connections", &self.count("need_conn_est"), "")
                .row("Active connections limit", &limit(self.number("slim")), "")
                .row("Idle connections limit", &limit(self.number("src_ilim")), "")
        });
        self.with_tip("scur", tip);
        self.plain("smax");
        self.limit("slim", "-");
    }

    fn session_totals(&mut self) {
        let tip = self.totals_tip();
        self.with_tip("stot", Some(tip));
        self.plain("lbtot");
        match (self.number("lastsess"), self.object.kind) {
            (Some(seconds), _) => self.cell("", &Duration(seconds), None),
            (None, Kind::Server(_) | Kind::Backend) => self.cell("", &"?", None),
            (None, _) => self.empty(),
        }
    }

    fn totals_tip(&self) -> Tooltip {
        let (kind, count) = (&self.object.kind, |name: &str| self.count(name));
        let mut tip = Tooltip::default();
        if matches!(kind, Kind::Frontend | Kind::Listener(_)) {
            tip = tip.row("Cum. connections", &count("conn_tot"), "");
        }
        tip = tip.row("Cum. sessions", &count("stot"), "");
        for (lost, sum) in statistics::flow_counts(self.object) {
            tip = tip.row(lost.title, &sum, "");
        }
        if let Some(new) = self.number("connect") {
            let reused = count("reuse");
            tip = tip.row("New connections", &new, "").share("Reused connections", reused, new + reused);
        }
        if let (Some(requests), true) = (self.number("req_tot"), self.object.is_http()) {
            tip = tip.row("Cum. HTTP requests", &requests, "");
            let answers =
                [1, 2, 3, 4, 5].map(|class| (format!("- HTTP {class}xx responses"), format!("hrsp_{class}xx")));
            for (at, (title, name)) in answers.iter().enumerate() {
                tip = tip.share(title, count(name), requests);
                if let (1, Some(compressed)) = (at, self.number("comp_rsp")) {
                    tip = tip.share("  Compressed 2xx", compressed, count("hrsp_2xx"));
                }
            }
            tip = tip.share("- other responses", count("hrsp_other"), requests);
        }
        for (title, name) in [("Intercepted requests", "intercepted"), ("Cache lookups", "cache_lookups")] {
            if let Some(number) = self.number(name) {
                tip = tip.row(title, &number, "");
            }
        }
        if let Some(hits) = self.number("cache_hits") {
            tip = tip.share("Cache hits", hits, count("cache_lookups"));
        }
        tip = tip.row("Failed hdr rewrites", &count("wrew"), "").row("Internal errors", &count("eint"), "");
        self.add_times(tip)
    }

    /// Adds the longest and the average times of a backend or a server.
    fn add_times(&self, tip: Tooltip) -> Tooltip {
        if self.number("ttime").is_none() {
            return tip;
        }
        let mut tip = tip.text(&"Max / Avg over last 1024 success. conn.");
        for (title, name) in [
            ("- Queue time", "qtime"),
            ("- Connect time", "ctime"),
            ("- Responses time", "rtime"),
            ("- Total time", "ttime"),
        ] {
            let pair = format!("{} / {}", self.count(&format!("{name}_max")), self.count(name));
            tip = tip.row(title, &pair, "ms");
        }
        tip
    }

    fn traffic(&mut self) {
        let exact = |number: u64| Tooltip::default().row("Bytes", &number, "");
        match self.number("bin") {
            Some(bytes) => self.cell("", &Bytes(bytes), Some(exact(bytes))),
            None => self.empty(),
        }
        match self.number("bout") {
            Some(bytes) => {
                let tip = Tooltip::default().row("Response bytes in", &bytes, "");
                self.cell("", &Bytes(bytes), Some(self.add_compression(tip)));
            }
            None => self.empty(),
        }
        self.plain("dreq");
        self.plain("dresp");
    }

    fn add_compression(&self, tip: Tooltip) -> Tooltip {
        let Some(before) = self.number("comp_in") else { return tip };
        let (after, skipped) = (self.count("comp_out"), self.count("comp_byp"));
        tip.row("Compression in", &before, "")
            .share("Compression out", after, before)
            .row("Compression bypass", &skipped, "")
            .share("Total bytes saved", before.saturating_sub(after), before)
    }

    fn errors(&mut self) {
        self.fault("ereq", None);
        self.fault("econ", None);
        let tip = self.number("cli_abrt").map(|client| {
            let server = self.count("srv_abrt");
            Tooltip::default().text(&format!("Connection resets during transfers: {client} client, {server} server"))
        });
        self.fault("eresp", tip);
        self.plain("wretr");
        self.plain("wredis");
    }

    fn status(&mut self) {
        match self.object.kind {
            Kind::Server(_) => self.server_status(),
            Kind::Frontend | Kind::Listener(_) => {
                let status = self.object.status();
                self.cell(if status == "OPEN" { "ac" } else { "ac bad" }, &status, None);
                self.cell("ac", &"", None);
            }
            Kind::Backend => {
                let status = self.object.status();
                let class = if status.starts_with("UP") { "ac" } else { "ac bad" };
                let text = format!("{} {status}", Duration(self.count("lastchg")));
                self.cell(class, &text, None);
                self.cell("ac", &"", None);
            }
        }
        self.weights();
    }

    fn server_status(&mut self) {
        let status = ServerStatus::of(self.object);
        let text = Escaped(&status.text).to_string();
        let since = Duration(self.count("lastchg"));
        let content = match &*status.text {
            "no check" => format!("<i>{text}</i>"),
            _ => format!("{since} {text}{}", status.arrow()),
        };
        let agent = self.result("agent");
        let tip = (!agent.is_empty()).then(|| Tooltip::default().row("Agent", &agent, &self.text("last_agt")));
        self.cell("ac", &content, tip);
        let is_of_agent = status.text.contains("(agent)");
        let (result, what) =
            if is_of_agent { (format!("agent {agent}"), "agent") } else { (self.result("check"), "check") };
        if result.is_empty() {
            return self.cell("ac", &"", None);
        }
        let info = self.text(if is_of_agent { "last_agt" } else { "last_chk" });
        let info = if info.is_empty() { info } else { format!(": {info}") };
        let tip = Tooltip::default().text(&format!("{}{info}", self.text(&format!("{what}_desc"))));
        self.cell("ac", &Escaped(&result), Some(tip));
    }

    /// Returns the last result of a check, as "L7OK/200 in 2ms"; `name`: "check" or "agent". Empty without one.
    fn result(&self, name: &str) -> String {
        let column = |part: &str| format!("{name}_{part}");
        let mut text = self.text(&column("status"));
        if let (Some(code), false) = (self.number(&column("code")), text.is_empty()) {
            let _ = write!(text, "/{code}");
        }
        if let (Some(millis), false) = (self.number(&column("duration")), text.is_empty()) {
            let _ = write!(text, " in {millis}ms");
        }
        text
    }

    /// Writes weight, number of active and number of backup servers.
    fn weights(&mut self) {
        match (self.number("weight"), self.number("uweight")) {
            (Some(weight), Some(user)) => self.cell("ac", &format_args!("{weight}/{user}"), None),
            _ => self.cell("ac", &"", None),
        }
        for name in ["act", "bck"] {
            match (self.object.kind, self.number(name)) {
                (Kind::Server(_), Some(number)) => self.cell("ac", &if number > 0 { "Y" } else { "-" }, None),
                (_, Some(number)) => self.cell("ac", &Grouped(number), None),
                _ => self.cell("ac", &"", None),
            }
        }
    }

    fn checks(&mut self) {
        let tracked = self.text("tracked");
        if tracked.is_empty() {
            let analyzed = self.number("hanafail");
            let tip = match analyzed {
                Some(_) => "Failed Health Checks/Health Analyses",
                None => "Failed Health Checks",
            };
            match (self.number("chkfail"), analyzed) {
                (Some(failed), Some(analyzed)) => {
                    let content = format!("{}/{}", Grouped(failed), Grouped(analyzed));
                    self.cell("", &content, Some(Tooltip::default().text(&tip)));
                }
                (Some(_), None) => self.with_tip("chkfail", Some(Tooltip::default().text(&tip))),
                (None, _) => self.empty(),
            }
            self.plain("chkdown");
            match self.number("downtime") {
                Some(seconds) => self.cell("", &Duration(seconds), None),
                None => self.empty(),
            }
        } else {
            let name = Escaped(&tracked);
            let _ = write!(self.out, "<td class=\"ac\" colspan=\"3\"><a href=\"#{name}\">via {name}</a></td>");
        }
        match (self.object.kind, self.number("throttle")) {
            (Kind::Server(_), Some(percent)) => self.cell("ac", &format_args!("{percent} %"), None),
            (Kind::Server(_), None) => self.cell("ac", &"-", None),
            _ => self.cell("ac", &"", None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_one_of_the_statistics() {
        let source = include_str!("cells.rs").split("#[cfg(test)]").next().unwrap_or_default();
        for call in ["count(\"", "number(\"", "text(\"", "plain(\"", "fault(\"", "limit(\"", "with_tip(\""] {
            for name in source.split(call).skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(COLUMNS.contains_key(name), "{call}{name}");
            }
        }
        for part in ["status", "code", "duration", "desc"] {
            assert!(["check", "agent"].iter().all(|name| COLUMNS.contains_key(&*format!("{name}_{part}"))), "{part}");
        }
        assert_eq!(GROUPS.iter().map(|(_, titles)| titles.len()).sum::<usize>(), 30);
    }

    #[test]
    fn rows_have_the_classes_of_haproxy() {
        for (text, is_unweighted, class) in [
            ("UP", false, "up"),
            ("UP", true, "draining"),
            ("UP 1/3", false, "going_down"),
            ("DOWN", false, "down"),
            ("DOWN (agent)", false, "down"),
            ("DOWN 1/2", false, "going_up"),
            ("DRAIN", false, "draining"),
            ("DRAIN (agent)", false, "draining"),
            ("NOLB 1/2", false, "nolb"),
            ("no check", false, "no_check"),
            ("EJECTED", false, "down"),
        ] {
            for (is_backup, side) in [(false, "active"), (true, "backup")] {
                let status = ServerStatus { text: text.to_owned(), is_backup, is_unweighted };
                assert_eq!(status.class(), format!("{side}_{class}"), "{text}");
            }
        }
        for text in ["MAINT", "MAINT (via b/s)", "MAINT (resolution)"] {
            let status = ServerStatus { text: text.to_owned(), is_backup: true, is_unweighted: false };
            assert_eq!(status.class(), "maintain");
        }
    }

    #[test]
    fn checks_in_progress_have_a_direction() {
        for (text, arrow) in
            [("UP 1/3", " ↓"), ("NOLB 2/3", " ↓"), ("DOWN 1/2", " ↑"), ("UP", ""), ("MAINT (via a/b)", "")]
        {
            let status = ServerStatus { text: text.to_owned(), is_backup: false, is_unweighted: false };
            assert_eq!(status.arrow(), arrow, "{text}");
        }
    }
}
