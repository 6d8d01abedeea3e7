//! Counters preserved across processes: the format of "dump stats-file" (management manual, section 9.5). Must never
//! retain more of a file than requested, whatever its size, and must never be used after a worker has begun to count.

use super::{ContentCounters, Count, Http2Counters, ObjectCounters};
use base::Moment;

/// Maximum length of a line including its end.
const LONGEST: usize = 2_048;
/// Maximum number of columns of a section.
const MOST_COLUMNS: usize = 256;
/// Maximum number of lines reported.
const MOST_COMPLAINTS: usize = 50;

/// The side of an object with a `guid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Frontends and listening addresses.
    Front,
    /// Backends and servers.
    Back,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterLine {
    /// Its section.
    pub side: Side,
    /// The object.
    pub guid: Box<str>,
    /// Columns and their values.
    pub values: Vec<(Box<str>, u64)>,
}

impl CounterLine {
    /// Requests of a frontend. Files of HAProxy have them by protocol, and 0 in their sum; those of Weir have both.
    pub fn requests(&self) -> u64 {
        let of =
            |wanted: &str| self.values.iter().rfind(|(column, _)| **column == *wanted).map_or(0, |(_, value)| *value);
        ["h1req", "h2req", "h3req", "req_other"].map(of).into_iter().fold(0, u64::saturating_add).max(of("req_tot"))
    }
}

/// Contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptCounts {
    pub lines: Vec<CounterLine>,
    /// The format is invalid; the lines before the error are used.
    pub is_invalid: bool,
    /// Numbers of lines that are too long.
    pub ignored: Vec<usize>,
}

/// The section of a line.
enum Section {
    /// Before the first section.
    None,
    /// An unknown one.
    Unknown,
    Known(Side, Vec<Box<str>>),
}

impl Section {
    /// Parses a section's header after its `#`: the name, a blank, `guid` and columns, each followed by a comma.
    fn begin(text: &str) -> Option<Self> {
        let (name, columns) = text.split_once(' ')?;
        let side = match name {
            "fe" => Side::Front,
            "be" => Side::Back,
            "" => return None,
            _ => return Some(Self::Unknown),
        };
        let columns = columns.strip_prefix("guid,")?;
        let (columns, _) = columns.rsplit_once(',')?;
        Some(Self::Known(side, columns.split(',').take(MOST_COLUMNS).map(Into::into).collect()))
    }
}

/// Parses a number; saturates on overflow.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

impl KeptCounts {
    /// Parses a file; keeps only the lines whose `guid` is `known`.
    pub fn read(text: &[u8], known: impl Fn(Side, &str) -> bool) -> Self {
        let mut read = Self::default();
        let mut section = Section::None;
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            if line.len() >= LONGEST {
                if read.ignored.len() < MOST_COMPLAINTS {
                    read.ignored.push(number);
                }
                continue;
            }
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            let begun = line.strip_prefix('#').map(Section::begin);
            match (begun, &section) {
                (Some(Some(begun)), _) => section = begun,
                (Some(None), _) | (None, Section::None) => {
                    read.is_invalid = true;
                    return read;
                }
                (None, Section::Unknown) => {}
                (None, Section::Known(side, columns)) => read.lines.extend(values(&line, *side, columns, &known)),
            }
        }
        read
    }
}

/// Parses the line of a known object.
fn values(line: &str, side: Side, columns: &[Box<str>], known: impl Fn(Side, &str) -> bool) -> Option<CounterLine> {
    let (guid, rest) = line.split_once(',')?;
    if !known(side, guid) {
        return None;
    }
    let values = columns.iter().zip(rest.split(','));
    let values = values.filter_map(|(column, text)| Some((column.clone(), number(text)?))).collect();
    Some(CounterLine { side, guid: guid.into(), values })
}

impl ObjectCounters {
    /// Sets a column of the statistics before anything is counted. Derived columns and rates are ignored.
    pub fn preset(&self, column: &str, value: u64, now: Moment) {
        let count: &Count = match column {
            "stot" => &self.sessions,
            "bin" | "reqbin" => &self.bytes_in,
            "reqbout" => &self.sent,
            "bout" | "resbin" => &self.received,
            "resbout" => &self.bytes_out,
            "dreq" => &self.denied_requests,
            "dresp" => &self.denied_responses,
            "ereq" => &self.request_errors,
            "econ" => &self.connect_errors,
            "eresp" => &self.response_errors,
            "wretr" => &self.retries,
            "wredis" => &self.redispatches,
            "lbtot" => &self.balanced,
            "hrsp_1xx" => &self.answers[1],
            "hrsp_2xx" => &self.answers[2],
            "hrsp_3xx" => &self.answers[3],
            "hrsp_4xx" => &self.answers[4],
            "hrsp_5xx" => &self.answers[5],
            "hrsp_other" => &self.answers[0],
            "req_tot" => &self.requests,
            "cli_abrt" => &self.client_aborts,
            "srv_abrt" => &self.server_aborts,
            "conn_tot" => &self.connections,
            "intercepted" => &self.intercepted,
            "dcon" => &self.denied_connections,
            "dses" => &self.denied_sessions,
            "wrew" => &self.failed_rewrites,
            "connect" => &self.connects,
            "reuse" => &self.reuses,
            "eint" => &self.internal_errors,
            "lastsess" if value > 0 => {
                let second = now.as_nanos() / 1_000_000_000 + 1;
                return self.last_session.set(second.saturating_sub(value).max(1));
            }
            _ => return,
        };
        count.set(value);
    }
}

impl ContentCounters {
    /// Sets the count of a column about compression or caching, before anything is counted.
    pub fn preset(&self, column: &str, value: u64) {
        let count = match column {
            "comp_in" => &self.compressor_in,
            "comp_out" => &self.compressor_out,
            "comp_byp" => &self.compressor_bypassed,
            "comp_rsp" => &self.compressed,
            "cache_lookups" => &self.cache_lookups,
            "cache_hits" => &self.cache_hits,
            "cache_hint_hits" => &self.cache_hint_hits,
            _ => return,
        };
        count.set(value);
    }
}

impl Http2Counters {
    /// Sets the count of a column about HTTP/2 with clients, before anything is counted.
    pub fn preset(&self, column: &str, value: u64) {
        match column {
            "h2sess" => self.connections.set(value),
            "h2req" => self.streams.set(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_frontends_are_those_of_all_protocols() {
        let rows: &[(&[(&str, u64)], u64)] = &[
            (&[("req_tot", 0), ("h1req", 5), ("h2req", 3), ("h3req", 2), ("req_other", 1)], 11),
            (&[("req_tot", 8), ("h1req", 5), ("h2req", 3)], 8),
            // Weir has written all of them as those of HTTP/1.
            (&[("req_tot", 8), ("h1req", 8), ("h2req", 0)], 8),
            (&[("req_tot", 8)], 8),
            (&[("stot", 3)], 0),
            (&[("h1req", u64::MAX), ("h2req", 1)], u64::MAX),
        ];
        for (values, requests) in rows {
            let values = values.iter().map(|(column, value)| ((*column).into(), *value)).collect();
            assert_eq!(CounterLine { side: Side::Front, guid: "a".into(), values }.requests(), *requests);
        }
    }

    #[test]
    fn bodies_and_connections_of_http2_have_their_columns() {
        let (content, http2) = (ContentCounters::default(), Http2Counters::default());
        let columns = ["comp_in", "comp_out", "comp_byp", "comp_rsp", "cache_lookups", "cache_hits", "cache_hint_hits"];
        for (value, column) in (1..).zip(columns.into_iter().chain(["h2sess", "h2req"])) {
            content.preset(column, value);
            http2.preset(column, value);
        }
        let counts = [
            &content.compressor_in,
            &content.compressor_out,
            &content.compressor_bypassed,
            &content.compressed,
            &content.cache_lookups,
            &content.cache_hits,
            &content.cache_hint_hits,
            &http2.connections,
            &http2.streams,
        ];
        assert_eq!(counts.map(Count::get), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    /// Lines of those that begin with a letter: `f a: stot=5`.
    fn read(text: &str) -> (Vec<String>, bool, usize) {
        let read = KeptCounts::read(text.as_bytes(), |_, guid| guid.starts_with(|first: char| first.is_alphabetic()));
        let shown = |kept: &CounterLine| {
            let values: Vec<String> = kept.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{:?} {}: {}", kept.side, kept.guid, values.join(" "))
        };
        (read.lines.iter().map(shown).collect(), read.is_invalid, read.ignored.len())
    }

    #[test]
    fn files_are_read_as_haproxy_reads_them() {
        let rows: &[(&str, &[&str], bool)] = &[
            ("", &[], false),
            ("hello\n", &[], true),
            ("a,100,\n", &[], true),
            ("#fe stot,\na,1,\n", &[], true),
            ("#fe guid,stot\na,1,\n", &[], true),
            ("# fe guid,stot,\na,1,\n", &[], true),
            ("#fe  guid,stot,\na,1,\n", &[], true),
            ("#zz guid,stot,\na,1,\n", &[], false),
            ("// c\n#fe guid,stot,bin,\na,1x,5,\n", &["Front a: bin=5"], false),
            ("#fe guid,stot,bin,\na,,5,\n", &["Front a: bin=5"], false),
            ("#fe guid,stot,\na,-1,\n", &["Front a: "], false),
            ("#fe guid,stot,\na,99999999999999999999,\n", &["Front a: stot=18446744073709551615"], false),
            ("#fe guid,stot,\na,5,\na,7,\n", &["Front a: stot=5", "Front a: stot=7"], false),
            ("#fe guid,stot,\r\na,5,\r\n", &["Front a: stot=5"], false),
            ("#fe guid,stot,\na,5", &["Front a: stot=5"], false),
            ("#fe guid,stot,\na,5,6,7,8\n", &["Front a: stot=5"], false),
            ("#fe guid,stot,\n1,5,\nnone\n", &[], false),
            ("#be guid,stot,\na,5,\n\n#fe guid,bin,\nb,1,\n", &["Back a: stot=5", "Front b: bin=1"], false),
            ("#be guid,stot,\na,5,\n#fe bin,\nb,1,\n", &["Back a: stot=5"], true),
        ];
        for (text, lines, is_invalid) in rows {
            let found = read(text);
            assert_eq!((found.0.join("; "), found.1), (lines.join("; "), *is_invalid), "{text:?}");
        }
        let long = format!("#fe guid,stot,\n{},5,\na,6,\n", "x".repeat(LONGEST));
        assert_eq!(read(&long), (vec!["Front a: stot=6".to_owned()], false, 1));
    }

    #[test]
    fn columns_have_their_counts() {
        let counters = ObjectCounters::default();
        let now = Moment::from_nanos(100_000_000_000);
        let columns = [("stot", 1), ("bin", 2), ("resbin", 3), ("hrsp_5xx", 4), ("lastsess", 5), ("rate", 6), ("x", 7)];
        columns.into_iter().for_each(|(column, value)| counters.preset(column, value, now));
        let counts =
            [&counters.sessions, &counters.bytes_in, &counters.received, &counters.answers[5], &counters.last_session];
        assert_eq!(counts.map(Count::get), [1, 2, 3, 4, 96]);
    }
}
