//! Output of a process at one time: `show info` and `show stat` (management manual, sections 9.1 and 9.3), and Weir's
//! `show latency`. Columns are found by their names, so that every version can be parsed. Must never trust a text:
//! control characters are replaced.

use base::Moment;
use std::collections::HashMap;
use std::sync::Arc;

/// Commands that every process knows.
pub const QUESTION: &str = "show info;show stat";
/// The same with percentiles, which HAProxy answers with a list of its commands.
pub const QUESTION_WITH_LATENCY: &str = "show info;show stat;show latency";

/// Kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Frontend,
    Backend,
    Server,
    Listener,
}

impl Kind {
    /// Returns the name for display.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frontend => "frontend",
            Self::Backend => "backend",
            Self::Server => "server",
            Self::Listener => "listener",
        }
    }

    /// Returns the short name for display, HAProxy's abbreviation.
    pub const fn short(self) -> &'static str {
        match self {
            Self::Frontend => "FE",
            Self::Backend => "BE",
            Self::Server => "SRV",
            Self::Listener => "SOCK",
        }
    }

    /// Parses the column `type`.
    fn find(text: &str) -> Option<Self> {
        match text {
            "0" => Some(Self::Frontend),
            "1" => Some(Self::Backend),
            "2" => Some(Self::Server),
            "3" => Some(Self::Listener),
            _ => None,
        }
    }
}

/// The last result of a health check or an agent check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckResult {
    /// The code of the result, as "L4CON"; empty: not checked.
    pub status: String,
    /// The status code of the application.
    pub code: String,
    /// The text of the server or of the system.
    pub info: String,
}

impl CheckResult {
    /// Returns the result in one line, as "L7STS/503: Service Unavailable".
    pub fn line(&self) -> String {
        let code = if self.code.is_empty() { String::new() } else { format!("/{}", self.code) };
        let info = if self.info.is_empty() { String::new() } else { format!(": {}", self.info) };
        format!("{}{code}{info}", self.status)
    }

    /// Returns status and code, as "L7STS/503".
    pub fn word(&self) -> String {
        if self.code.is_empty() { self.status.clone() } else { format!("{}/{}", self.status, self.code) }
    }
}

/// Percentiles of the response time in milliseconds: the 50th, the 95th, the 99th.
pub type Percentiles = [f64; 3];

/// A frontend, a backend or a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub kind: Kind,
    pub proxy: String,
    pub name: String,
    pub status: String,
    pub check: CheckResult,
    pub agent: CheckResult,
    /// Seconds since the last change of the state, of backends and servers.
    pub since: Option<u64>,
    pub weight: Option<u64>,
    pub sessions: u64,
    pub session_limit: Option<u64>,
    pub queue: u64,
    /// Totals since the start.
    pub requests: u64,
    pub errors: u64,
    pub received: u64,
    pub sent: u64,
    /// Requests in the last second, as reported by the process.
    pub rate: f64,
    /// Average response time of the last 1024 requests, in milliseconds.
    pub time: Option<u64>,
    /// Response times of the last seconds, of processes that measure them.
    pub percentiles: Option<Percentiles>,
    /// Numbers of usable active and backup servers.
    pub usable: [u64; 2],
    /// The line of the statistics.
    line: String,
}

impl Row {
    /// Returns the key that identifies the row in the next sample.
    pub fn key(&self) -> (Kind, &str, &str) {
        (self.kind, &self.proxy, &self.name)
    }

    /// Returns the label for display.
    pub fn label(&self) -> String {
        match self.kind {
            Kind::Server | Kind::Listener => format!("{}/{}", self.proxy, self.name),
            Kind::Frontend | Kind::Backend => self.proxy.clone(),
        }
    }
}

/// The columns of the statistics by name.
#[derive(Debug, Clone, Default)]
struct Columns(HashMap<String, usize>);

impl Columns {
    fn parse(line: &str) -> Self {
        Self(fields(line).into_iter().enumerate().map(|(at, name)| (name, at)).collect())
    }

    fn text<'f>(&self, fields: &'f [String], name: &str) -> &'f str {
        self.0.get(name).and_then(|at| fields.get(*at)).map_or("", String::as_str)
    }
}

/// All columns of one row.
pub struct Fields<'a> {
    columns: &'a Columns,
    fields: Vec<String>,
}

impl Fields<'_> {
    /// Returns the printable text of a column; empty if the row does not have it.
    pub fn text(&self, name: &str) -> String {
        printable(self.columns.text(&self.fields, name))
    }

    /// Returns the number in a column.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.columns.text(&self.fields, name).parse().ok()
    }
}

/// Answer to `show latency`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LatencyAnswer {
    /// The command is unknown, or was not sent.
    #[default]
    Unknown,
    /// The process can measure latency, and does not.
    Off,
    Measured,
}

#[derive(Debug, Clone)]
pub struct Sample {
    pub at: Moment,
    pub info: HashMap<String, String>,
    pub rows: Vec<Arc<Row>>,
    pub latency: LatencyAnswer,
    columns: Columns,
}

/// First columns of the answer to `show latency`.
const LATENCY_TITLES: &str = "# pxname,svname,type,count,p50,p95,p99";
/// First words of the answer of a process that does not measure latency.
const LATENCY_OFF: &str = "Latency is not measured";

impl Sample {
    /// Parses the output of [`QUESTION`] or [`QUESTION_WITH_LATENCY`].
    ///
    /// # Errors
    /// The text is not such output.
    pub fn parse(text: &str) -> Result<Self, String> {
        let at = text.find("# pxname,").ok_or_else(|| {
            let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it closed the connection");
            format!("no statistics: {}", printable(first))
        })?;
        let pairs = text[..at].lines().filter_map(|line| line.split_once(": "));
        let info = pairs.map(|(name, value)| (printable(name), printable(value.trim()))).collect();
        let mut lines = text[at + 2..].lines();
        let columns = Columns::parse(lines.next().unwrap_or_default());
        let mut rows: Vec<Row> =
            lines.by_ref().take_while(|line| !line.is_empty()).filter_map(|line| row(&columns, line)).collect();
        let latency = match lines.next() {
            Some(line) if line.starts_with(LATENCY_TITLES) => LatencyAnswer::Measured,
            Some(line) if line.starts_with(LATENCY_OFF) => LatencyAnswer::Off,
            _ => LatencyAnswer::Unknown,
        };
        if latency == LatencyAnswer::Measured {
            add_percentiles(&mut rows, lines);
        }
        let rows = rows.into_iter().map(Arc::new).collect();
        Ok(Self { at: rt::clock::moment(), info, rows, latency, columns })
    }

    /// Returns all columns of a row of this sample.
    pub fn fields(&self, row: &Row) -> Fields<'_> {
        Fields { columns: &self.columns, fields: fields(&row.line) }
    }

    /// Returns a value of `show info`.
    pub fn info(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    /// Returns a value of `show info` as a number; 0 if there is none.
    pub fn number(&self, name: &str) -> u64 {
        self.info(name).parse().unwrap_or(0)
    }
}

/// Adds the percentiles of the lines of `show latency` to the rows that they name.
fn add_percentiles<'a>(rows: &mut [Row], lines: impl Iterator<Item = &'a str>) {
    let mut known = HashMap::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let found = fields(line);
        let [proxy, name, kind, _, half, most, nearly_all, ..] = found.as_slice() else { continue };
        let parse = |text: &String| text.parse::<f64>().ok().filter(|millis| millis.is_finite());
        if let (Some(kind), Some(half), Some(most), Some(nearly_all)) =
            (Kind::find(kind), parse(half), parse(most), parse(nearly_all))
        {
            known.insert((kind, printable(proxy), printable(name)), [half, most, nearly_all]);
        }
    }
    for row in rows {
        row.percentiles = known.get(&(row.kind, row.proxy.clone(), row.name.clone())).copied();
    }
}

fn row(columns: &Columns, line: &str) -> Option<Row> {
    let fields = fields(line);
    let text = |name: &str| columns.text(&fields, name);
    let number = |name: &str| text(name).parse::<u64>().ok();
    let sum = |names: &[&str]| names.iter().filter_map(|name| number(name)).sum::<u64>();
    let kind = Kind::find(text("type"))?;
    let errors = match kind {
        Kind::Frontend | Kind::Listener => sum(&["hrsp_5xx", "ereq"]),
        Kind::Backend | Kind::Server => sum(&["hrsp_5xx", "econ", "eresp"]),
    };
    let check = |status: &str, code: &str, info: &str, description: &str| CheckResult {
        status: printable(text(status).trim_start_matches("* ")),
        code: printable(text(code)),
        info: printable(Some(text(info)).filter(|info| !info.is_empty()).unwrap_or_else(|| text(description))),
    };
    Some(Row {
        kind,
        proxy: printable(text("pxname")),
        name: printable(text("svname")),
        status: printable(text("status")),
        check: check("check_status", "check_code", "last_chk", "check_desc"),
        agent: check("agent_status", "agent_code", "last_agt", "agent_desc"),
        since: number("lastchg"),
        weight: number("weight").filter(|_| matches!(kind, Kind::Server | Kind::Backend)),
        sessions: number("scur").unwrap_or(0),
        session_limit: number("slim"),
        queue: number("qcur").unwrap_or(0),
        requests: number("req_tot").filter(|total| *total > 0).or_else(|| number("stot")).unwrap_or(0),
        errors,
        received: number("bin").unwrap_or(0),
        sent: number("bout").unwrap_or(0),
        rate: number("req_rate").or_else(|| number("rate")).unwrap_or(0) as f64,
        time: number("rtime"),
        percentiles: None,
        usable: [number("act").unwrap_or(0), number("bck").unwrap_or(0)],
        line: line.to_owned(),
    })
}

/// Splits a line of CSV; quoted fields may contain commas, and two quotes are one.
fn fields(line: &str) -> Vec<String> {
    let (mut found, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    found.push(field);
    found
}

/// Whether a name can be a word of a command: it cannot end the command or begin another one.
pub fn is_word(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(|letter: char| letter.is_whitespace() || letter.is_control() || ";\\<".contains(letter))
}

/// Replaces control characters, so that the text cannot control a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Output common to both programs, shortened.
    pub const ANSWER: &str = "Name: HAProxy\nVersion: 2.6.12\nPid: 7\nUptime_sec: 3700\nCurrConns: 12\nMaxconn: 2000\nNbthread: 2\nIdle_pct: 83\nnode: edge-1\n\n\
        # pxname,svname,qcur,scur,slim,stot,bin,bout,ereq,econ,eresp,status,weight,act,bck,type,rate,check_status,hrsp_5xx,req_rate,req_tot,last_chk,rtime,lastchg,check_desc,check_duration,check_health,check_rise,check_fall,chkfail,chkdown,downtime,addr,cookie,sid,smax,qlimit,rtime_max,uweight,\n\
        www,FRONTEND,,12,2000,100,1000,20000,1,,,OPEN,,,,0,4,,2,40,1000,,,,,,,,,,,,,,0,,,,,\n\
        app,s1,0,3,,50,500,10000,,0,0,UP,10,1,0,2,20,L7OK,1,,480,\"a, \"\"b\"\"\",7,3700,Layer7 check passed,0,4,2,3,0,0,0,10.0.0.1:80,c1,1,6,,90,10,\n\
        app,s2,2,5,20,50,500,10000,,4,1,DOWN 1/2,10,1,0,2,0,* L4CON,0,,20,Connection refused,95,206,Layer4 connection problem,2,1,2,3,7,3,3700,10.0.0.2:80,c2,2,9,100,300,10,\n\
        app,BACKEND,1,8,200,100,1000,20000,,4,1,UP,10,1,0,1,20,,1,,500,,12,3700,,,,,,,0,0,,,0,11,,300,10,\n\n";

    /// Weir's answer to `show latency` after that.
    pub const LATENCY: &str = "# pxname,svname,type,count,p50,p95,p99,\n\
        www,FRONTEND,0,200,1.125,7.500,40.250,\napp,s1,2,190,0.900,6.100,50.000,\napp,BACKEND,1,200,1.100,7.000,39.000,\n\n";

    #[test]
    fn columns_are_found_by_name() {
        let sample = Sample::parse(ANSWER).expect("an answer");
        assert_eq!((sample.info("node"), sample.number("Pid"), sample.rows.len()), ("edge-1", 7, 4));
        let front = &sample.rows[0];
        assert_eq!(
            (front.kind, front.label().as_str(), front.requests, front.errors),
            (Kind::Frontend, "www", 1000, 3)
        );
        assert_eq!((front.rate, front.weight, front.session_limit), (40.0, None, Some(2000)));
        let second = &sample.rows[2];
        assert_eq!((second.label().as_str(), second.errors, second.queue, second.time), ("app/s2", 5, 2, Some(95)));
        assert_eq!(
            (second.status.as_str(), second.check.line().as_str(), second.weight),
            ("DOWN 1/2", "L4CON: Connection refused", Some(10))
        );
        assert_eq!((sample.rows[3].usable, sample.rows[3].since), ([1, 0], Some(3700)));
        assert_eq!(sample.rows[1].check.info, "a, \"b\"");
        let fields = sample.fields(second);
        assert_eq!(
            (fields.text("addr").as_str(), fields.number("check_fall"), fields.number("none")),
            ("10.0.0.2:80", Some(3), None)
        );
    }

    #[test]
    fn percentiles_belong_to_the_rows_that_they_name() {
        let text = format!("{ANSWER}{LATENCY}");
        let sample = Sample::parse(&text).expect("an answer");
        let found: Vec<_> = sample.rows.iter().map(|row| row.percentiles).collect();
        let wanted = [Some([1.125, 7.5, 40.25]), Some([0.9, 6.1, 50.0]), None, Some([1.1, 7.0, 39.0])];
        assert_eq!((found.as_slice(), sample.latency), (&wanted[..], LatencyAnswer::Measured));
        for (other, answer) in [
            ("", LatencyAnswer::Unknown),
            ("Unknown command: 'show latency'.\n\n", LatencyAnswer::Unknown),
            ("Latency is not measured: 'set profiling latency on' starts it.\n\n", LatencyAnswer::Off),
            ("# pxname,svname,type,count,p50,p95,p99,\napp,s1,2,1,x,NaN,\n", LatencyAnswer::Measured),
        ] {
            let sample = Sample::parse(&format!("{ANSWER}{other}")).expect("an answer");
            assert_eq!(sample.latency, answer, "{other}");
            assert!(sample.rows.iter().all(|row| row.percentiles.is_none()), "{other}");
        }
    }

    #[test]
    fn other_output_is_an_error() {
        assert_eq!(Sample::parse("Permission denied\n\n").expect_err("none"), "no statistics: Permission denied");
        assert!(Sample::parse("").is_err());
        assert!(Sample::parse("# pxname,type,").expect("an empty one").rows.is_empty());
    }

    #[test]
    fn texts_cannot_control_a_terminal() {
        let text = "# pxname,svname,status,type,\n\u{1b}[31mx,a\u{7}b,UP,2,\n";
        assert_eq!(Sample::parse(text).expect("an answer").rows[0].label(), "\u{fffd}[31mx/a\u{fffd}b");
    }
}
