//! The page in HTML. Must never contain unescaped text of the configuration, of servers or of clients, and never refer
//! to another host.

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use config::spec::Mode;
use policy::program::Proxy;

use super::PageInputs;
use crate::field::Value;
use crate::statistics::{self, Column, Kind, Object};

/// Displays text with HTML's special characters escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '<' => out.write_str("&lt;"),
                '>' => out.write_str("&gt;"),
                '&' => out.write_str("&amp;"),
                '"' => out.write_str("&quot;"),
                '\'' => out.write_str("&#39;"),
                other => out.write_char(other),
            }?;
        }
        Ok(())
    }
}

/// Formats of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    /// The plain number.
    Plain,
    /// Text, left-aligned.
    Text,
    /// Bytes with a unit; the tooltip has the exact number.
    Bytes,
    /// Seconds, shown as a duration.
    Seconds,
}

/// A group of columns: its title, and for each column the title, the name in the statistics and the format.
type Group = (&'static str, &'static [(&'static str, &'static str, Show)]);

/// The columns of the page.
const GROUPS: &[Group] = &[
    ("Queue", &[("Cur", "qcur", Show::Plain), ("Max", "qmax", Show::Plain), ("Limit", "qlimit", Show::Plain)]),
    (
        "Session rate",
        &[("Cur", "rate", Show::Plain), ("Max", "rate_max", Show::Plain), ("Limit", "rate_lim", Show::Plain)],
    ),
    (
        "Sessions",
        &[
            ("Cur", "scur", Show::Plain),
            ("Max", "smax", Show::Plain),
            ("Limit", "slim", Show::Plain),
            ("Total", "stot", Show::Plain),
            ("LbTot", "lbtot", Show::Plain),
            ("Last", "lastsess", Show::Seconds),
        ],
    ),
    ("Bytes", &[("In", "bin", Show::Bytes), ("Out", "bout", Show::Bytes)]),
    ("Denied", &[("Req", "dreq", Show::Plain), ("Resp", "dresp", Show::Plain)]),
    ("Errors", &[("Req", "ereq", Show::Plain), ("Conn", "econ", Show::Plain), ("Resp", "eresp", Show::Plain)]),
    ("Warnings", &[("Retr", "wretr", Show::Plain), ("Redis", "wredis", Show::Plain)]),
    (
        "Server",
        &[
            ("Status", "status", Show::Text),
            ("LastChk", "check_status", Show::Text),
            ("Wght", "weight", Show::Plain),
            ("Act", "act", Show::Plain),
            ("Bck", "bck", Show::Plain),
            ("Chk", "chkfail", Show::Plain),
            ("Dwn", "chkdown", Show::Plain),
            ("Dwntme", "downtime", Show::Seconds),
            ("Thrtle", "throttle", Show::Plain),
        ],
    ),
];

/// The cells of a row with their columns of the statistics.
static CELLS: LazyLock<Vec<(&'static str, Show, &'static Column)>> = LazyLock::new(|| {
    let named = |name: &str| statistics::columns().find(|column| column.field.name == name);
    let cells = GROUPS.iter().flat_map(|(_, columns)| columns.iter());
    cells.filter_map(|&(_, name, show)| Some((name, show, named(name)?))).collect()
});

/// Values in the tooltip of a cell, by the name of its column.
const TIPS: &[(&str, &[(&str, &str)])] = &[
    (
        "stot",
        &[
            ("Requests", "req_tot"),
            ("Connections", "conn_tot"),
            ("1xx", "hrsp_1xx"),
            ("2xx", "hrsp_2xx"),
            ("3xx", "hrsp_3xx"),
            ("4xx", "hrsp_4xx"),
            ("5xx", "hrsp_5xx"),
            ("Other", "hrsp_other"),
            ("Intercepted", "intercepted"),
            ("New connections", "connect"),
            ("Reused", "reuse"),
            ("Queue ms", "qtime"),
            ("Connect ms", "ctime"),
            ("Response ms", "rtime"),
            ("Total ms", "ttime"),
        ],
    ),
    ("rate", &[("Requests a second", "req_rate"), ("Connections a second", "conn_rate")]),
    ("rate_max", &[("Requests a second", "req_rate_max"), ("Connections a second", "conn_rate_max")]),
    ("eresp", &[("Aborted by clients", "cli_abrt"), ("Aborted by servers", "srv_abrt"), ("Internal", "eint")]),
    ("check_status", &[("Check", "check_desc"), ("Last", "last_chk"), ("ms", "check_duration"), ("Agent", "last_agt")]),
    ("status", &[("Since, seconds", "lastchg"), ("Tracks", "tracked")]),
];

/// Writes the part before the proxies.
pub(super) fn begin(shown: &PageInputs<'_>, out: &mut String) {
    let (page, host, query) = (shown.page, &shown.worker.process.host, shown.query);
    let node = page.node.as_deref();
    let on = node.map(|node| format!(" on {}", Escaped(node))).unwrap_or_default();
    let product = Escaped(&host.product).to_string();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Statistics Report for {product}{on}</title><link rel=\"icon\" href=\"data:,\"><style>{}</style></head>\n\
         <body><header><h1>{product}{on}</h1><small>Statistics Report for pid {}",
        include_str!("page.css"),
        host.pid,
    );
    if page.shows_version {
        let _ = write!(out, ", version {}", Escaped(&host.version));
    }
    if let Some(description) = page.description.as_deref() {
        let _ = write!(out, ": {}", Escaped(description));
    }
    out.push_str("</small></header>\n");
    notice(&query.result, out);
    process(shown, out);
    links(shown, out);
    out.push_str(
        "<div class=\"legend\"><span style=\"background:var(--up)\">UP</span>\
         <span style=\"background:var(--going)\">going up or down</span>\
         <span style=\"background:var(--down)\">DOWN</span><span style=\"background:var(--maint)\">MAINT</span>\
         <span style=\"background:var(--drain)\">DRAIN, NOLB</span>\
         <span style=\"background:var(--plain)\">not checked</span></div>\n",
    );
}

/// Writes the result of the form that redirected here.
fn notice(result: &str, out: &mut String) {
    let (class, text) = match result {
        "DONE" => ("done", "The action was processed successfully."),
        "NONE" => ("", "Nothing had changed."),
        "PART" => ("", "The action was partially processed: some servers are unknown or not concerned."),
        "ERRP" => ("bad", "The action could not be processed because of invalid parameters."),
        "EXCD" => {
            ("bad", "The action could not be processed: the form does not fit into a buffer. Choose fewer servers.")
        }
        "DENY" => ("bad", "The action was denied."),
        _ => return,
    };
    let _ = writeln!(out, "<p class=\"notice {class}\" role=\"status\">{text}</p>");
}

/// Writes the summary of the process.
fn process(shown: &PageInputs<'_>, out: &mut String) {
    let process = &shown.worker.process;
    let global = &shown.generation.program.global;
    let uptime = process.host.uptime().as_secs();
    let program = &shown.generation.program;
    let fronts = program.proxies.iter().filter(|proxy| proxy.frontend.is_some() && !proxy.disabled);
    let current = |proxy| Object::new(shown.worker, program, proxy, Kind::Frontend, false).current();
    let sessions: u64 = fronts.map(|proxy| u64::from(current(proxy))).sum();
    out.push_str("<dl>");
    let mut pair = |name: &str, value: &dyn fmt::Display| {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    pair("uptime", &Duration(uptime));
    pair("threads", &process.workers());
    pair("maxconn", &global.maxconn);
    pair("current sessions", &sessions);
    pair("descriptors", &global.descriptors);
    out.push_str("</dl>\n");
}

/// Writes links to other formats and the filters.
fn links(shown: &PageInputs<'_>, out: &mut String) {
    let (query, uri) = (shown.query, String::from_utf8_lossy(&shown.page.uri).into_owned());
    let uri = Escaped(&uri);
    out.push_str("<nav>");
    let mut link = |words: &str, text: &str| {
        let _ = write!(out, "<a href=\"{uri}{}\">{text}</a>", Escaped(words));
    };
    link(&query.rest(), "Refresh now");
    if shown.page.refresh.is_some() {
        let other = super::query::Query { norefresh: !query.norefresh, ..query.clone() };
        link(&other.rest(), if query.norefresh { "Refresh by itself" } else { "Stop refreshing" });
    }
    let other = super::query::Query { up: !query.up, ..query.clone() };
    link(&other.rest(), if query.up { "Show all servers" } else { "Hide servers that are down" });
    let other = super::query::Query { no_maint: !query.no_maint, ..query.clone() };
    link(&other.rest(), if query.no_maint { "Show servers in maintenance" } else { "Hide servers in maintenance" });
    for (word, text) in [(";csv", "CSV"), (";json", "JSON"), (";json-schema", "JSON schema"), (";typed", "Typed")] {
        link(word, text);
    }
    out.push_str("</nav>\n");
}

/// Writes the title of a proxy and the head of its table.
pub(super) fn begin_proxy(shown: &PageInputs<'_>, proxy: &Proxy, out: &mut String) {
    let name = Escaped(&proxy.name);
    let _ = write!(out, "<section id=\"{name}\"><h2><a href=\"#{name}\">{name}</a>");
    if shown.page.shows_legends {
        let mode = match proxy.mode {
            Mode::Http => "http",
            Mode::Tcp => "tcp",
            Mode::Log => "log",
            Mode::Spop => "spop",
        };
        let sides = match (&proxy.frontend, &proxy.backend) {
            (Some(_), Some(_)) => "FE BE",
            (Some(_), None) => "FE",
            _ => "BE",
        };
        let _ = write!(out, "<small>cap: {sides}, mode: {mode}, id: {}</small>", proxy.id);
    }
    out.push_str("</h2>");
    if takes_forms(shown, proxy) {
        let action = format!("{}{}", String::from_utf8_lossy(&shown.page.uri), shown.query.rest());
        let _ = write!(out, "<form method=\"post\" action=\"{}\">", Escaped(&action));
    }
    out.push_str("<div class=\"scroll\"><table><thead><tr><th></th>");
    for (title, columns) in GROUPS {
        let _ = write!(out, "<th colspan=\"{}\">{title}</th>", columns.len());
    }
    if shown.page.shows_modules {
        out.push_str("<th>Extra modules</th>");
    }
    out.push_str("</tr><tr><th></th>");
    for (title, ..) in GROUPS.iter().flat_map(|(_, columns)| columns.iter()) {
        let _ = write!(out, "<th>{title}</th>");
    }
    if shown.page.shows_modules {
        out.push_str("<th></th>");
    }
    out.push_str("</tr></thead><tbody>\n");
}

/// Writes a row.
pub(super) fn object(shown: &PageInputs<'_>, object: &Object<'_>, out: &mut String) {
    let proxy = &object.proxy.name;
    let name = object.name();
    let (class, shown_name) = match object.kind {
        Kind::Frontend => ("frontend", "Frontend"),
        Kind::Backend => ("backend", "Backend"),
        Kind::Listener(_) => ("listener", &*name),
        Kind::Server(_) => (class_of_server(&object.status()), &*name),
    };
    let _ = write!(out, "<tr class=\"{class}\" id=\"{}/{}\"><td>", Escaped(proxy), Escaped(&name));
    if let (Kind::Server(_), true) = (object.kind, takes_forms(shown, object.proxy)) {
        let _ = write!(out, "<input type=\"checkbox\" name=\"s\" value=\"{0}\" aria-label=\"{0}\"> ", Escaped(&name));
    }
    match legend(shown, object) {
        Some(tip) => {
            let _ = write!(out, "<span title=\"{}\">{}</span>", Escaped(&tip), Escaped(shown_name));
        }
        None => {
            let _ = write!(out, "{}", Escaped(shown_name));
        }
    }
    out.push_str("</td>");
    for (name, show, column) in CELLS.iter() {
        cell(object, name, *show, column, out);
    }
    if shown.page.shows_modules {
        modules(object, out);
    }
    out.push_str("</tr>\n");
}

/// Returns the CSS class of a server's row for its status.
fn class_of_server(status: &str) -> &'static str {
    let is_going = status.contains('/');
    match status {
        _ if status.starts_with("MAINT") => "maint",
        _ if status.starts_with("DRAIN") || status.starts_with("NOLB") => "drain",
        _ if status.starts_with("no check") => "plain",
        _ if is_going => "going",
        _ if status.starts_with("UP") => "up",
        _ => "down",
    }
}

/// `stats show-legends`: the tooltip with address, cookie, algorithm and mode.
fn legend(shown: &PageInputs<'_>, object: &Object<'_>) -> Option<String> {
    if !shown.page.shows_legends {
        return None;
    }
    let mut tip = String::new();
    for (title, name) in [("IP", "addr"), ("cookie", "cookie"), ("algo", "algo"), ("mode", "mode")] {
        let value = value_of(object, name);
        if value != Value::None {
            let _ = write!(tip, "{title}: {value}, ");
        }
    }
    let _ = write!(tip, "id: {}", object.id());
    Some(tip)
}

fn value_of(object: &Object<'_>, name: &str) -> Value {
    statistics::columns().find(|column| column.field.name == name).map_or(Value::None, |column| column.of(object))
}

/// The tooltip of a cell: titles and columns.
type Tooltip = Vec<(&'static str, &'static Column)>;

/// The tooltips by the cell's name, resolved once.
static TIP_COLUMNS: LazyLock<Vec<(&'static str, Tooltip)>> = LazyLock::new(|| {
    let named = |name: &str| statistics::columns().find(|column| column.field.name == name);
    let rows = TIPS
        .iter()
        .map(|(cell, tips)| (*cell, tips.iter().filter_map(|(title, name)| Some((*title, named(name)?))).collect()));
    rows.collect()
});

fn cell(object: &Object<'_>, name: &str, show: Show, column: &Column, out: &mut String) {
    let value = column.of(object);
    let mut tip = String::new();
    for (title, column) in TIP_COLUMNS.iter().filter(|(cell, _)| *cell == name).flat_map(|(_, tips)| tips) {
        let value = column.of(object);
        if !matches!(&value, Value::None | Value::U32(0) | Value::U64(0)) && value != Value::Text(String::new()) {
            let _ = write!(tip, "{}{title}: {value}", if tip.is_empty() { "" } else { ", " });
        }
    }
    if show == Show::Bytes && tip.is_empty() {
        let _ = write!(tip, "{value}");
    }
    out.push_str(if show == Show::Text { "<td class=\"t\">" } else { "<td>" });
    let text = match (show, number(&value)) {
        (Show::Bytes, Some(bytes)) => Bytes(bytes).to_string(),
        (Show::Seconds, Some(seconds)) => Duration(seconds).to_string(),
        // A negative number of seconds means never.
        (Show::Seconds, None) => "-".to_owned(),
        _ => Escaped(&value.to_string()).to_string(),
    };
    let _ = if tip.is_empty() || value == Value::None {
        write!(out, "{}", if value == Value::None { "" } else { &text })
    } else {
        write!(out, "<span title=\"{}\">{text}</span>", Escaped(&tip))
    };
    out.push_str("</td>");
}

/// `stats show-modules`: the counters of the protocols.
fn modules(object: &Object<'_>, out: &mut String) {
    let mut tip = String::new();
    for column in statistics::columns().skip(statistics::OWN) {
        let value = column.of(object);
        if value != Value::None {
            let _ = write!(tip, "{}: {value}, ", column.field.name);
        }
    }
    let _ = if tip.is_empty() {
        out.write_str("<td></td>")
    } else {
        write!(out, "<td><span title=\"{}\">modules</span></td>", Escaped(tip.trim_end_matches(", ")))
    };
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::U32(value) => Some(u64::from(*value)),
        Value::U64(value) => Some(*value),
        Value::S32(value) => u64::try_from(*value).ok(),
        Value::Float(value) => Some(*value as u64),
        Value::None | Value::Text(_) => None,
    }
}

/// Displays bytes with three digits and a unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0 as f64, 0);
        const UNITS: [&str; 6] = ["", " kB", " MB", " GB", " TB", " PB"];
        while value >= 1_000.0 && unit + 1 < UNITS.len() {
            value /= 1_000.0;
            unit += 1;
        }
        let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
        write!(out, "{value:.digits$}{}", UNITS[unit])
    }
}

/// Displays seconds in the two largest units.
struct Duration(u64);

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, hours, minutes, seconds) = (self.0 / 86_400, self.0 / 3_600 % 24, self.0 / 60 % 60, self.0 % 60);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(out, "{seconds}s"),
            (0, 0, _) => write!(out, "{minutes}m{seconds}s"),
            (0, ..) => write!(out, "{hours}h{minutes}m"),
            _ => write!(out, "{days}d{hours}h"),
        }
    }
}

/// Whether the page can change the servers of a proxy.
fn takes_forms(shown: &PageInputs<'_>, proxy: &Proxy) -> bool {
    shown.admin && proxy.servers().next().is_some()
}

/// Actions of a form: the value and its label.
const ACTIONS: &[(&str, &str)] = &[
    ("", ""),
    ("ready", "Set state to READY"),
    ("drain", "Set state to DRAIN"),
    ("maint", "Set state to MAINT"),
    ("dhlth", "Health: disable checks"),
    ("ehlth", "Health: enable checks"),
    ("hrunn", "Health: force UP"),
    ("hnolb", "Health: force NOLB"),
    ("hdown", "Health: force DOWN"),
    ("dagent", "Agent: disable checks"),
    ("eagent", "Agent: enable checks"),
    ("arunn", "Agent: force UP"),
    ("adown", "Agent: force DOWN"),
    ("shutdown", "Kill sessions"),
];

/// Writes the end of a proxy's table, and the actions of its form.
pub(super) fn end_proxy(shown: &PageInputs<'_>, proxy: &Proxy, out: &mut String) {
    out.push_str("</tbody></table></div>");
    if takes_forms(shown, proxy) {
        out.push_str("<p class=\"actions\"><label>Action on the chosen servers <select name=\"action\">");
        for (word, text) in ACTIONS {
            let _ = write!(out, "<option value=\"{word}\">{text}</option>");
        }
        let id = proxy.id;
        let _ = write!(
            out,
            "</select></label><input type=\"hidden\" name=\"b\" value=\"#{id}\"><button>Apply</button></p></form>"
        );
    }
    out.push_str("</section>\n");
}

/// Writes the part after the proxies.
pub(super) fn end(out: &mut String) {
    out.push_str("<footer>Statistics are counted from the start of the process.</footer></body></html>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_the_page_is_one_of_the_statistics() {
        let named = GROUPS.iter().map(|(_, columns)| columns.len()).sum::<usize>();
        assert_eq!(CELLS.len(), named);
        let tips = TIPS.iter().map(|(_, tips)| tips.len()).sum::<usize>();
        assert_eq!(TIP_COLUMNS.iter().map(|(_, tips)| tips.len()).sum::<usize>(), tips);
    }

    #[test]
    fn numbers_are_short() {
        for (bytes, text) in [(0, "0"), (999, "999"), (1_000, "1.0 kB"), (123_456, "123 kB"), (5_600_000, "5.6 MB")] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        for (seconds, text) in [(0, "0s"), (61, "1m1s"), (3_700, "1h1m"), (90_000, "1d1h")] {
            assert_eq!(Duration(seconds).to_string(), text);
        }
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(Escaped("<a href='x'>\"&").to_string(), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }

    #[test]
    fn rows_are_coloured_by_status() {
        for (status, class) in [
            ("UP", "up"),
            ("UP 1/3", "going"),
            ("DOWN", "down"),
            ("DOWN 1/2", "going"),
            ("MAINT (via b/s)", "maint"),
            ("DRAIN", "drain"),
            ("NOLB 1/2", "drain"),
            ("no check", "plain"),
        ] {
            assert_eq!(class_of_server(status), class, "{status}");
        }
    }
}
