//! Output of a process at one time: `show info` and `show stat` (management manual, sections 9.1 and 9.3). Columns are
//! found by their names, so that every version can be parsed. Must never trust a text: control characters are replaced.

use base::Moment;
use std::collections::HashMap;

/// Commands that are sent.
pub const QUESTION: &str = "show info;show stat";

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
}

/// A frontend, a backend or a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub kind: Kind,
    pub proxy: String,
    pub name: String,
    pub status: String,
    pub check: String,
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
    /// Number of usable servers.
    pub usable: Option<u64>,
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

#[derive(Debug, Clone)]
pub struct Sample {
    pub at: Moment,
    pub info: HashMap<String, String>,
    pub rows: Vec<Row>,
}

impl Sample {
    /// Parses the output of [`QUESTION`].
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
        let head = fields(lines.next().unwrap_or_default());
        let columns: HashMap<&str, usize> = head.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let rows = lines.take_while(|line| !line.is_empty()).filter_map(|line| row(&columns, &fields(line))).collect();
        Ok(Self { at: rt::clock::moment(), info, rows })
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

fn row(columns: &HashMap<&str, usize>, fields: &[String]) -> Option<Row> {
    let text = |name: &str| columns.get(name).and_then(|at| fields.get(*at)).map_or("", String::as_str);
    let number = |name: &str| text(name).parse::<u64>().ok();
    let sum = |names: &[&str]| names.iter().filter_map(|name| number(name)).sum::<u64>();
    let kind = match text("type") {
        "0" => Kind::Frontend,
        "1" => Kind::Backend,
        "2" => Kind::Server,
        "3" => Kind::Listener,
        _ => return None,
    };
    let errors = match kind {
        Kind::Frontend | Kind::Listener => sum(&["hrsp_5xx", "ereq"]),
        Kind::Backend | Kind::Server => sum(&["hrsp_5xx", "econ", "eresp"]),
    };
    Some(Row {
        kind,
        proxy: printable(text("pxname")),
        name: printable(text("svname")),
        status: printable(text("status")),
        check: printable(text("check_status")),
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
        usable: matches!(kind, Kind::Backend).then(|| sum(&["act", "bck"])),
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

/// Replaces control characters, so that the text cannot control a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Output common to both programs, shortened.
    pub const ANSWER: &str = "Name: HAProxy\nVersion: 2.6.12\nPid: 7\nUptime_sec: 3700\nCurrConns: 12\nMaxconn: 2000\nIdle_pct: 83\nnode: edge-1\n\n\
        # pxname,svname,qcur,scur,slim,stot,bin,bout,ereq,econ,eresp,status,weight,act,bck,type,rate,check_status,hrsp_5xx,req_rate,req_tot,last_chk,rtime,\n\
        www,FRONTEND,,12,2000,100,1000,20000,1,,,OPEN,,,,0,4,,2,40,1000,,,\n\
        app,s1,0,3,,50,500,10000,,0,0,UP,10,1,0,2,20,L7OK,1,,480,\"a, \"\"b\"\"\",7,\n\
        app,s2,2,5,,50,500,10000,,4,1,DOWN 1/2,10,1,0,2,0,* L4CON,0,,20,,95,\n\
        app,BACKEND,1,8,200,100,1000,20000,,4,1,UP,10,1,0,1,20,,1,,500,,12,\n\n";

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
        assert_eq!((second.status.as_str(), second.check.as_str(), second.weight), ("DOWN 1/2", "* L4CON", Some(10)));
        assert_eq!(sample.rows[3].usable, Some(1));
    }

    #[test]
    fn what_is_no_answer_is_told() {
        assert_eq!(Sample::parse("Permission denied\n\n").expect_err("none"), "no statistics: Permission denied");
        assert!(Sample::parse("").is_err());
        assert!(Sample::parse("# pxname,type,").expect("an empty one").rows.is_empty());
    }

    #[test]
    fn texts_order_nothing_from_a_terminal() {
        let text = "# pxname,svname,status,type,\n\u{1b}[31mx,a\u{7}b,UP,2,\n";
        assert_eq!(Sample::parse(text).expect("an answer").rows[0].label(), "\u{fffd}[31mx/a\u{fffd}b");
    }
}
