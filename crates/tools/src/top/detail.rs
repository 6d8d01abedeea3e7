//! Details of one row in words: checks, addresses, sessions, queue, rates, errors, times. Must never draw.

use super::columns::{NO_VALUE, width_of};
use super::format::{duration, latency, short};
use super::sample::{Fields, Kind, LatencyAnswer, Sample, printable};
use super::view::ViewRow;

/// A topic with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub title: &'static str,
    pub values: Vec<String>,
}

/// State of a proxy that `show stat` does not contain: its captured errors and its servers' administrative states
/// (management manual, `show errors` and `show servers state`), and the lost datagrams of Weir's `udp-lb` sections (`show udp-lb`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyDetails {
    pub proxy: String,
    /// The first lines of captured messages that broke a rule of HTTP, the newest last.
    errors: Vec<String>,
    /// Servers with their administrative states, a bit set.
    admin: Vec<(String, u32)>,
    /// Numbers with their names, as "2 refused".
    datagrams: Vec<String>,
}

/// Maximum number of captured errors that are kept.
const MOST_ERRORS: usize = 4;

impl ProxyDetails {
    /// Returns the commands that report a proxy's state. `has_flows`: it is a `udp-lb` section.
    pub fn question(proxy: &str, has_flows: bool) -> String {
        let flows = if has_flows { format!(";show udp-lb {proxy}") } else { String::new() };
        format!("show errors {proxy};show servers state {proxy}{flows}")
    }

    /// Parses the output of [`ProxyDetails::question`]. Refused commands leave their part empty.
    pub fn parse(proxy: &str, text: &str) -> Self {
        let mut found = Self { proxy: proxy.to_owned(), ..Self::default() };
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            // "[24/Nov/2026:18:54:37.911] frontend www (#2): invalid request"
            let is_capture = line.starts_with('[') && line.contains("invalid ");
            if is_capture && found.errors.len() < MOST_ERRORS {
                let source = lines.peek().and_then(|next| next.split("src ").nth(1)).unwrap_or_default();
                let from = if source.is_empty() { String::new() } else { format!(" from {source}") };
                found.errors.push(printable(&format!("{line}{from}")));
            }
            // "udp-lb dns flows 2 evicted 0 ..."
            let words: Vec<&str> = line.split(' ').collect();
            if let ["udp-lb", name, pairs @ ..] = words.as_slice()
                && *name == proxy
            {
                let pairs = pairs.chunks_exact(2).filter(|pair| pair[0] != "flows" && pair[1].parse::<u64>().is_ok());
                found.datagrams = pairs.map(|pair| printable(&format!("{} {}", pair[1], pair[0]))).collect();
            }
            // "2 app 1 s1 127.0.0.1 2 0 1 ..."
            if let [_, backend, _, server, _, _, admin, ..] = words.as_slice()
                && *backend == proxy
                && let Ok(admin) = admin.parse()
            {
                found.admin.push((printable(server), admin));
            }
        }
        found
    }

    /// Returns the reasons of a server's administrative state.
    fn admin_state(&self, server: &str) -> Vec<&'static str> {
        const BITS: [(u32, &str); 7] = [
            (0x01, "maintenance by the runtime API"),
            (0x02, "maintenance of the tracked server"),
            (0x04, "maintenance by the configuration"),
            (0x08, "drained by the runtime API"),
            (0x10, "drained with the tracked server"),
            (0x20, "no address from name resolution"),
            (0x40, "name changed at run time"),
        ];
        let state = self.admin.iter().find(|(name, _)| name == server).map_or(0, |(_, state)| *state);
        BITS.into_iter().filter(|(bit, _)| state & bit != 0).map(|(_, text)| text).collect()
    }
}

/// Appends `<number> <name>` for columns that are there.
fn counts(fields: &Fields<'_>, columns: &[(&str, &str)]) -> Vec<String> {
    let shown = |(column, name): &(&str, &str)| Some(format!("{} {name}", fields.number(column)?));
    columns.iter().filter_map(shown).collect()
}

/// The same without those that are 0; "none" if all are.
fn faults(fields: &Fields<'_>, columns: &[(&str, &str)]) -> Vec<String> {
    let shown = |(column, name): &(&str, &str)| {
        fields.number(column).filter(|number| *number > 0).map(|number| format!("{number} {name}"))
    };
    let values: Vec<String> = columns.iter().filter_map(shown).collect();
    if values.is_empty() { vec!["none".to_owned()] } else { values }
}

/// Returns the topics of a row.
pub fn topics(sample: &Sample, shown: &ViewRow, more: Option<&ProxyDetails>) -> Vec<Topic> {
    let fields = sample.fields(&shown.row);
    let more = more.filter(|more| more.proxy == shown.row.proxy);
    let topics = [
        ("state", state(shown, &fields, more)),
        ("check", check(&fields, "check", "last_chk")),
        ("agent", check(&fields, "agent", "last_agt")),
        ("address", address(&fields)),
        ("sessions", sessions(shown, &fields)),
        ("queue", queue(shown, &fields)),
        ("rates", rates(shown, &fields)),
        ("answers", answers(&fields)),
        ("protocols", protocols(&fields)),
        ("QUIC", quic(&fields)),
        ("datagrams", datagrams(shown, more)),
        ("times", times(&fields)),
        ("latency", percentiles(sample, shown)),
        ("errors", errors(&fields)),
        ("last error", more.map(|more| more.errors.clone()).unwrap_or_default()),
    ];
    let topics = topics.into_iter().map(|(title, values)| Topic { title, values });
    topics.filter(|topic| !topic.values.is_empty()).collect()
}

fn state(shown: &ViewRow, fields: &Fields<'_>, more: Option<&ProxyDetails>) -> Vec<String> {
    let row = &shown.row;
    let since = row.since.map(|since| format!(" for {}", duration(since))).unwrap_or_default();
    let mut values = vec![format!("{}{since}", row.status)];
    // The check of a server explains itself.
    let is_explained = row.kind == Kind::Server && !fields.text("check_status").is_empty();
    let reason = Some(&shown.condition.reason).filter(|reason| !reason.is_empty() && !is_explained);
    values.extend(reason.cloned());
    if row.kind == Kind::Server {
        values.extend(more.iter().flat_map(|more| more.admin_state(&row.name)).map(str::to_owned));
        values.extend((fields.number("bck") == Some(1)).then(|| "backup".to_owned()));
    }
    let weight = row.weight.map(|weight| match fields.number("uweight") {
        Some(user) => format!("weight {weight}/{user}"),
        None => format!("weight {weight}"),
    });
    values.extend(weight);
    values.extend(fields.number("throttle").map(|throttle| format!("slowstart {throttle} %")));
    let tracked = fields.text("tracked");
    values.extend(Some(tracked).filter(|tracked| !tracked.is_empty()).map(|tracked| format!("tracks {tracked}")));
    values.extend(fields.number("chkdown").map(|downs| format!("times down: {downs}")));
    values.extend(fields.number("downtime").map(|seconds| format!("down for {} in total", duration(seconds))));
    values
}

/// Returns the last result of a check; `name`: "check" or "agent".
fn check(fields: &Fields<'_>, name: &str, info: &str) -> Vec<String> {
    let column = |part: &str| format!("{name}_{part}");
    let status = fields.text(&column("status"));
    if status.is_empty() {
        return Vec::new();
    }
    let code = fields.number(&column("code")).map(|code| format!("/{code}")).unwrap_or_default();
    let took = fields.number(&column("duration")).map(|millis| format!(" in {millis}ms")).unwrap_or_default();
    let mut values = vec![format!("{status}{code}{took}")];
    values.extend([fields.text(&column("desc")), fields.text(info)].into_iter().filter(|text| !text.is_empty()));
    if let (Some(health), Some(rise), Some(fall)) =
        (fields.number(&column("health")), fields.number(&column("rise")), fields.number(&column("fall")))
    {
        values.push(format!("health {health}, rise {rise}, fall {fall}"));
    }
    if name == "check" {
        values.extend(counts(fields, &[("chkfail", "failed")]));
    }
    values
}

fn address(fields: &Fields<'_>) -> Vec<String> {
    let named = |(column, name): (&str, &str)| {
        let text = fields.text(column);
        (!text.is_empty()).then(|| format!("{name}{text}"))
    };
    let columns = [("addr", ""), ("cookie", "cookie "), ("algo", "balance "), ("mode", "mode "), ("sid", "id ")];
    columns
        .into_iter()
        .filter(|(column, _)| *column != "sid" || fields.number("sid") != Some(0))
        .filter_map(named)
        .collect()
}

fn sessions(shown: &ViewRow, fields: &Fields<'_>) -> Vec<String> {
    let mut values = vec![format!("{} now", shown.row.sessions)];
    values.extend(counts(fields, &[("smax", "at most")]));
    values.extend(shown.row.session_limit.map(|limit| format!("limit {limit}")));
    values.extend(counts(fields, &[("stot", "in total"), ("lbtot", "balanced"), ("srv_icur", "idle connections")]));
    if let Some(seconds) = fields.number("lastsess") {
        values.push(format!("last {} ago", duration(seconds)));
    }
    values
}

fn queue(shown: &ViewRow, fields: &Fields<'_>) -> Vec<String> {
    if matches!(shown.row.kind, Kind::Frontend | Kind::Listener) {
        return Vec::new();
    }
    let mut values = vec![format!("{} now", shown.row.queue)];
    values.extend(counts(fields, &[("qmax", "at most")]));
    values.extend(fields.number("qlimit").map(|limit| format!("limit {limit}")));
    values
}

fn rates(shown: &ViewRow, fields: &Fields<'_>) -> Vec<String> {
    let rates = &shown.rates;
    let mut values = vec![
        format!("{} requests/s", short(rates.requests)),
        format!("{} errors/s", short(rates.errors)),
        format!("in {}/s", short(rates.received)),
        format!("out {}/s", short(rates.sent)),
    ];
    let most = [("req_rate_max", "requests/s at most"), ("rate_max", "sessions/s at most")];
    values.extend(counts(fields, &most));
    let limit = fields.number("rate_lim").filter(|limit| *limit > 0);
    values.extend(limit.map(|limit| format!("limit {limit} sessions/s")));
    values
}

/// Returns the requests and connections of each protocol that the clients of a frontend have used.
fn protocols(fields: &Fields<'_>) -> Vec<String> {
    let columns = [("HTTP/1", "h1req", "h1sess"), ("HTTP/2", "h2req", "h2sess"), ("HTTP/3", "h3req", "h3sess")];
    let shown = |(name, requests, connections): (&str, &str, &str)| {
        let [requests, connections] = [requests, connections].map(|column| fields.number(column).unwrap_or(0));
        let is_used = requests > 0 || connections > 0;
        is_used.then(|| format!("{name}: {requests} requests, {connections} connections"))
    };
    columns.into_iter().filter_map(shown).collect()
}

/// Returns what QUIC has counted; nothing if there were no packets.
fn quic(fields: &Fields<'_>) -> Vec<String> {
    let columns = [
        ("quic_half_open_conn", "handshakes in progress"),
        ("quic_hdshk_fail", "failed handshakes"),
        ("quic_lost_pkt", "packets lost"),
        ("quic_retry_sent", "Retry packets sent"),
        ("quic_dropped_pkt", "datagrams dropped"),
        ("quic_conn_migration_done", "address changes"),
    ];
    let sent = fields.number("quic_sent_pkt").unwrap_or(0);
    let mut values = faults(fields, &columns);
    if sent > 0 {
        values.insert(0, format!("{sent} packets sent"));
    }
    if values.first().is_some_and(|first| first == "none") { Vec::new() } else { values }
}

/// Returns the lost datagrams and flows of a `udp-lb` section.
fn datagrams(shown: &ViewRow, more: Option<&ProxyDetails>) -> Vec<String> {
    let counts = more.filter(|_| shown.row.kind == Kind::Frontend).map(|more| more.datagrams.clone());
    counts.unwrap_or_default()
}

fn answers(fields: &Fields<'_>) -> Vec<String> {
    let columns = [
        ("hrsp_1xx", "1xx"),
        ("hrsp_2xx", "2xx"),
        ("hrsp_3xx", "3xx"),
        ("hrsp_4xx", "4xx"),
        ("hrsp_5xx", "5xx"),
        ("hrsp_other", "other"),
    ];
    let mut values = if fields.number("hrsp_2xx").is_some() { faults(fields, &columns) } else { Vec::new() };
    let bytes = |column: &str| short(fields.number(column).unwrap_or(0) as f64);
    values.push(format!("in {}B", bytes("bin")));
    values.push(format!("out {}B", bytes("bout")));
    values
}

/// Averages over the last 1024 requests, each with its maximum.
fn times(fields: &Fields<'_>) -> Vec<String> {
    let time = |(column, name): (&str, &str)| {
        let average = fields.number(column)?;
        let most = fields.number(&format!("{column}_max")).map(|most| format!(" (max {most}ms)")).unwrap_or_default();
        Some(format!("{name} {average}ms{most}"))
    };
    let columns = [("qtime", "queue"), ("ctime", "connect"), ("rtime", "response"), ("ttime", "total")];
    columns.into_iter().filter_map(time).collect()
}

fn percentiles(sample: &Sample, shown: &ViewRow) -> Vec<String> {
    let names = ["p50", "p95", "p99"];
    match shown.row.percentiles {
        Some(times) => names.iter().zip(times).map(|(name, time)| format!("{name} {}", latency(time))).collect(),
        None if sample.latency == LatencyAnswer::Measured => vec!["no request in the last seconds".to_owned()],
        None => names.iter().map(|name| format!("{name} {NO_VALUE}")).collect(),
    }
}

fn errors(fields: &Fields<'_>) -> Vec<String> {
    let columns = [
        ("ereq", "invalid requests"),
        ("dreq", "denied requests"),
        ("dresp", "denied answers"),
        ("econ", "failed connections"),
        ("eresp", "invalid answers"),
        ("wretr", "retries"),
        ("wredis", "redispatches"),
        ("cli_abrt", "aborted by clients"),
        ("srv_abrt", "aborted by servers"),
        ("eint", "internal"),
    ];
    faults(fields, &columns)
}

/// A line of the pane: the title of a topic, and its values.
pub type Line = (&'static str, String);

/// Breaks topics into lines of this width; a title is on the first line of its topic only.
pub fn lines(topics: &[Topic], width: usize) -> Vec<Line> {
    const SEPARATOR: &str = "   ";
    let mut lines: Vec<Line> = Vec::new();
    for topic in topics {
        let mut line = String::new();
        let mut title = topic.title;
        for value in &topic.values {
            let needed = width_of(&line) + SEPARATOR.len() + width_of(value);
            if !line.is_empty() && needed > width {
                lines.push((title, std::mem::take(&mut line)));
                title = "";
            }
            line.push_str(if line.is_empty() { "" } else { SEPARATOR });
            line.push_str(value);
        }
        lines.push((title, line));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::ANSWER;
    use super::super::view::with_rates;
    use super::*;

    /// Answers of HAProxy to the question, shortened.
    const MORE: &str = "Total events captured on [24/Nov/2026:19:00:00.000] : 1\n \n\
        [24/Nov/2026:18:54:37.911] backend app (#3): invalid response\n  \
        frontend www (#2), server s2 (#2), event #0, src 127.0.0.1:59638\n  buffer starts at 0\n\n\
        1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state\n\
        3 app 1 s1 127.0.0.1 2 0 10\n3 app 2 s2 127.0.0.1 0 4 10\n\n";

    fn all(of: usize, more: Option<&ProxyDetails>) -> Vec<Topic> {
        let sample = Sample::parse(ANSWER).expect("an answer");
        topics(&sample, &with_rates(&sample, None)[of], more)
    }

    fn values(topics: &[Topic], title: &str) -> String {
        topics.iter().find(|topic| topic.title == title).map(|topic| topic.values.join(" | ")).unwrap_or_default()
    }

    #[test]
    fn a_server_has_all_topics() {
        let more = ProxyDetails::parse("app", MORE);
        let topics = all(2, Some(&more));
        for (title, text) in [
            (
                "state",
                "DOWN 1/2 for 3m26s | maintenance by the configuration | weight 10/10 | times down: 3 | down for 1h01m in total",
            ),
            (
                "check",
                "* L4CON in 2ms | Layer4 connection problem | Connection refused | health 1, rise 2, fall 3 | 7 failed",
            ),
            ("agent", ""),
            ("address", "10.0.0.2:80 | cookie c2 | id 2"),
            ("sessions", "5 now | 9 at most | limit 20 | 50 in total"),
            ("queue", "2 now | limit 100"),
            ("rates", "0 requests/s | 0 errors/s | in 0/s | out 0/s"),
            ("times", "response 95ms (max 300ms)"),
            ("latency", "p50 – | p95 – | p99 –"),
            ("errors", "4 failed connections | 1 invalid answers"),
            ("last error", "[24/Nov/2026:18:54:37.911] backend app (#3): invalid response from 127.0.0.1:59638"),
        ] {
            assert_eq!(values(&topics, title), text, "{title}");
        }
    }

    #[test]
    fn other_rows_have_what_they_know() {
        let front = all(0, None);
        assert_eq!(values(&front, "state"), "OPEN");
        assert_eq!((values(&front, "queue"), values(&front, "check")), (String::new(), String::new()));
        assert!(values(&front, "rates").starts_with("40 requests/s"));
        let backend = all(3, None);
        assert!(values(&backend, "state").starts_with("UP for 1h01m | 1 of 2 up: s2 L4CON | weight 10"));
        // Details of another proxy are not used.
        let other = ProxyDetails { proxy: "www".to_owned(), ..ProxyDetails::parse("app", MORE) };
        assert_eq!(values(&all(2, Some(&other)), "last error"), "");
    }

    /// Protocols that were not used, and counts of 0, are left out.
    #[test]
    fn protocols_and_quic_are_counted() {
        let names =
            "h1req,h2req,h3req,h1sess,h2sess,h3sess,quic_sent_pkt,quic_lost_pkt,quic_half_open_conn,quic_hdshk_fail,";
        let text = |values: &str| {
            let title = "# pxname,svname,status,type,";
            format!("Name: Weir\n\n{title}{names}\nwww,FRONTEND,OPEN,0,{values}\n\n")
        };
        let found = |values: &str| {
            let sample = Sample::parse(&text(values)).expect("an answer");
            let topics = topics(&sample, &with_rates(&sample, None)[0], None);
            ["protocols", "QUIC"].map(|title| self::values(&topics, title))
        };
        let protocols = "HTTP/1: 7 requests, 2 connections | HTTP/3: 30 requests, 4 connections";
        let quic = "90 packets sent | 1 handshakes in progress | 3 packets lost";
        assert_eq!(found("7,0,30,2,0,4,90,3,1,0,"), [protocols, quic]);
        assert_eq!(found("0,0,0,0,0,0,0,0,0,5,"), ["", "5 failed handshakes"]);
        assert_eq!(found("0,0,0,0,0,0,0,0,0,0,"), ["", ""]);
    }

    /// They are shown with the frontend alone.
    #[test]
    fn lost_datagrams_of_a_section_are_counted() {
        let text = "\n1\n# be_id be_name\n\nudp-lb www flows 3 evicted 1 refused 0 oversized 2 unsent 0 rejected 7\n\n";
        let more = ProxyDetails::parse("www", text);
        let counts = "1 evicted | 0 refused | 2 oversized | 0 unsent | 7 rejected";
        assert_eq!(values(&all(0, Some(&more)), "datagrams"), counts);
        assert_eq!(values(&all(0, Some(&ProxyDetails::parse("www", "No such udp-lb section.\n"))), "datagrams"), "");
        let more = ProxyDetails::parse("app", &text.replace("www", "app"));
        assert_eq!(values(&all(3, Some(&more)), "datagrams"), "");
        assert_eq!(ProxyDetails::question("a", true), "show errors a;show servers state a;show udp-lb a");
        assert_eq!(ProxyDetails::question("a", false), "show errors a;show servers state a");
    }

    #[test]
    fn refused_details_are_empty() {
        let found = ProxyDetails::parse("app", "Permission denied\n\nCan't find backend.\n\n");
        assert_eq!(found, ProxyDetails { proxy: "app".to_owned(), ..ProxyDetails::default() });
    }

    #[test]
    fn values_are_broken_into_lines() {
        let topic = |title, values: &[&str]| Topic { title, values: values.iter().map(|one| (*one).into()).collect() };
        let found = lines(&[topic("a", &["one", "two", "three"]), topic("b", &["four"])], 9);
        let wanted = [("a", "one   two"), ("", "three"), ("b", "four")].map(|(title, text)| (title, text.to_owned()));
        assert_eq!(found, wanted);
    }
}
