//! The page in HTML. Must never contain unescaped text of the configuration, of servers or of clients, and never refer
//! to another host.

use std::fmt::Write as _;

use config::spec::Mode;
use policy::program::Proxy;

use super::PageInputs;
use super::cells::{self, GROUPS, ServerStatus, value_of};
use super::format::{BitRate, Escaped, Grouped, Tooltip};
use super::query::Query;
use crate::field::Value;
use crate::statistics::process::{ProcessInfo, ROWS};
use crate::statistics::{self, Kind, Object};

/// Classes of rows with their meanings.
const LEGEND: &[(&str, &str)] = &[
    ("active_up", "active UP"),
    ("backup_up", "backup UP"),
    ("active_going_down", "UP, going down"),
    ("active_going_up", "DOWN, going up"),
    ("active_down", "DOWN"),
    ("maintain", "MAINT"),
    ("active_draining", "DRAIN, NOLB or weight 0"),
    ("active_no_check", "not checked"),
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
    out.push_str("<div class=\"legend\">");
    for (class, text) in LEGEND {
        let _ = write!(out, "<span class=\"{class}\">{text}</span>");
    }
    out.push_str("</div>\n");
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
    // Numbers of tasks are those of this worker.
    let here = [(rt::tasks() as u64, 0)];
    let info = ProcessInfo::gather(shown.worker, &shown.generation.program, &here, false);
    let value = |name: &str| {
        let row = ROWS.iter().find(|row| row.field.name == name);
        row.map_or(Value::None, |row| (row.value)(&info)).to_string()
    };
    let count = |name: &str| value(name).parse::<u64>().unwrap_or(0);
    let memory = Some(value("Memmax_MB")).filter(|limit| limit != "0").map(|limit| format!("{limit} MB"));
    let number = |name: &str| Grouped(count(name)).to_string();
    let rate = BitRate(count("BytesOutRate").saturating_mul(8)).to_string();
    out.push_str("<dl>");
    for (name, value) in [
        ("pid", format!("{} (nbthread = {})", value("Pid"), value("Nbthread"))),
        ("uptime", value("Uptime")),
        ("memmax", memory.unwrap_or_else(|| "unlimited".to_owned())),
        ("ulimit-n", number("Ulimit-n")),
        ("maxsock", number("Maxsock")),
        ("maxconn", number("Maxconn")),
        ("current conns", number("CurrConns")),
        ("conn rate", format!("{}/s (max {}/s)", number("ConnRate"), number("MaxConnRate"))),
        ("session rate", format!("{}/s (max {}/s)", number("SessRate"), number("MaxSessRate"))),
        ("bit rate", rate),
        ("idle", format!("{} %", value("Idle_pct"))),
    ] {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    out.push_str("</dl>\n");
}

/// Writes links to other formats and the filters.
fn links(shown: &PageInputs<'_>, out: &mut String) {
    let (query, uri) = (shown.query, String::from_utf8_lossy(&shown.page.uri).into_owned());
    let uri = Escaped(&uri);
    out.push_str("<nav>");
    scope_form(query, &shown.page.uri, out);
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

/// Writes the form that filters by names of proxies. A browser replaces the query of the address by the fields: what
/// the page's address has after a question mark becomes fields before the filter.
fn scope_form(query: &Query, uri: &[u8], out: &mut String) {
    let others = Query { scope: String::new(), ..query.clone() }.rest();
    let address = format!("{}{others}", String::from_utf8_lossy(uri));
    let (path, fields) = address.split_once('?').unwrap_or((&address, ""));
    let _ = write!(out, "<form method=\"get\" action=\"{}\">", Escaped(path));
    for field in fields.split(['&', ';']).filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let _ = write!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", Escaped(name), Escaped(value));
    }
    let scope = Escaped(&query.scope);
    let _ = write!(
        out,
        "<label>Scope : <input name=\"scope\" value=\"{scope}\" size=\"8\" maxlength=\"{}\" tabindex=\"1\"></label></form>",
        super::query::LONGEST_SCOPE
    );
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
            Mode::Udp => "udp",
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
    out.push_str("<div class=\"scroll\"><table class=\"tbl\"><thead><tr><th rowspan=\"2\">");
    if takes_forms(shown, proxy) {
        let _ = write!(
            out,
            "<input type=\"checkbox\" aria-label=\"all servers\" title=\"all servers\" onclick=\"{SELECT_ALL}\">"
        );
    }
    out.push_str("</th><th rowspan=\"2\"></th>");
    for (title, columns) in GROUPS {
        let _ = write!(out, "<th colspan=\"{}\">{title}</th>", columns.len());
    }
    if shown.page.shows_modules {
        out.push_str("<th>Extra modules</th>");
    }
    out.push_str("</tr><tr>");
    for title in GROUPS.iter().flat_map(|(_, columns)| columns.iter()) {
        let _ = write!(out, "<th>{title}</th>");
    }
    if shown.page.shows_modules {
        out.push_str("<th></th>");
    }
    out.push_str("</tr></thead><tbody>\n");
}

/// Ticks all servers of a form, or none. It names no object: a name is text, and must not become a script.
const SELECT_ALL: &str = "for(const box of this.form.elements)if(box.name==='s')box.checked=this.checked";

/// Writes a row.
pub(super) fn object(shown: &PageInputs<'_>, object: &Object<'_>, out: &mut String) {
    let proxy = &object.proxy.name;
    let name = object.name();
    let status;
    let (class, shown_name) = match object.kind {
        Kind::Frontend => ("frontend", "Frontend"),
        Kind::Backend => ("backend", "Backend"),
        Kind::Listener(_) => ("socket", &*name),
        Kind::Server(_) => {
            status = ServerStatus::of(object);
            (status.class(), &*name)
        }
    };
    let _ = write!(out, "<tr class=\"{class}\" id=\"{}/{}\"><td>", Escaped(proxy), Escaped(&name));
    if let (Kind::Server(_), true) = (object.kind, takes_forms(shown, object.proxy)) {
        let _ = write!(out, "<input type=\"checkbox\" name=\"s\" value=\"{0}\" aria-label=\"{0}\">", Escaped(&name));
    }
    let legend = legend(shown, object);
    let link = format!("<a class=\"lfsb\" href=\"#{}/{}\">{}</a>", Escaped(proxy), Escaped(&name), Escaped(shown_name));
    let _ = match legend {
        Some(legend) => write!(out, "</td><td class=\"name tip\"><u>{link}</u>{legend}</td>"),
        None => write!(out, "</td><td class=\"name\">{link}</td>"),
    };
    cells::write(object, out);
    if shown.page.shows_modules {
        modules(object, out);
    }
    out.push_str("</tr>\n");
}

/// `stats show-legends`: the tooltip with address, cookie, algorithm and mode.
fn legend(shown: &PageInputs<'_>, object: &Object<'_>) -> Option<Tooltip> {
    if !shown.page.shows_legends {
        return None;
    }
    let mut tip = Tooltip::default();
    for (title, name) in [("IP", "addr"), ("cookie", "cookie"), ("balancing", "algo"), ("mode", "mode")] {
        let value = value_of(object, name);
        if value != Value::None {
            tip = tip.row(title, &value, "");
        }
    }
    Some(tip.row("id", &object.id(), ""))
}

/// `stats show-modules`: the counters of the protocols.
fn modules(object: &Object<'_>, out: &mut String) {
    let values = statistics::columns().skip(statistics::OWN).map(|column| (column.field.name, column.of(object)));
    let tip = values
        .filter(|(_, value)| *value != Value::None)
        .fold(Tooltip::default(), |tip, (name, value)| tip.row(name, &value, ""));
    let _ = if tip.is_empty() {
        out.write_str("<td></td>")
    } else {
        write!(out, "<td class=\"tip\"><u>modules</u>{tip}</td>")
    };
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
    fn every_class_of_the_legend_has_a_colour() {
        let style = include_str!("page.css");
        assert!(LEGEND.iter().all(|(class, _)| style.contains(&format!(".{class}"))));
    }

    #[test]
    fn the_filter_keeps_the_address_of_the_page() {
        let form = |uri: &str, query: Query| {
            let mut out = String::new();
            scope_form(&query, uri.as_bytes(), &mut out);
            out
        };
        let text = form("/s", Query { up: true, scope: "a\"b".into(), ..Query::default() });
        assert!(text.starts_with("<form method=\"get\" action=\"/s;up\"><label>"), "{text}");
        assert!(text.contains("name=\"scope\" value=\"a&quot;b\""), "{text}");
        let text = form("/haproxy?stats", Query { norefresh: true, ..Query::default() });
        let hidden = |name: &str| format!("<input type=\"hidden\" name=\"{name}\" value=\"\">");
        let begin =
            format!("<form method=\"get\" action=\"/haproxy\">{}{}<label>", hidden("stats"), hidden("norefresh"));
        assert!(text.starts_with(&begin), "{text}");
    }
}
