//! Generates expressions: a fetch, up to three converters, with arguments of the types in their rows.

mod condition;
mod rules;

use crate::case::Case;

use expression::sample::EvalPlace;
use expression::{Kind, Signature};
use expression::{convert, fetch};
use policy::running::{CONVERTERS, FETCHES};

/// Fetches whose sample differs between processes or over time, or depends on the subject's port.
const ELSEWHERE: &[&str] = &[
    "dst_port",
    "src_port",
    "fc_src_port",
    "fc_dst_port",
    "rand",
    "uuid",
    "pid",
    "date",
    "date_us",
    "accept_date",
    "request_date",
    "hostname",
    "thread",
    "nbthread",
    "proc",
    "cpu_calls",
    "cpu_ns_avg",
    "cpu_ns_tot",
    "cpu_usage_grp",
    "cpu_usage_proc",
    "cpu_usage_thr",
    "fs.debug_str",
    "bs.debug_str",
    "lat_ns_avg",
    "lat_ns_tot",
    "so_id",
    "so_name",
    "env",
    "act_conn",
    "fc_rtt",
    "fc_rttvar",
    "fc_unacked",
    "fc_sacked",
    "fc_lost",
    "fc_reordering",
    "fc_retrans",
    "fc_fackets",
    "fe_req_rate",
    "fe_sess_rate",
    "be_sess_rate",
    "be2hex",
    "txn.timer.total",
    "txn.timer.user",
    "req.timer.idle",
    "req.timer.tq",
    "req.timer.hdr",
    "fc.timer.handshake",
    "fc.timer.total",
    "res.timer.data",
    "res.timer.hdr",
    "bc.timer.connect",
    "req.timer.queue",
    "fe_conn",
    "dst_conn",
    "base32+src",
    "url32+src",
    "unique-id",
    "last_rule_file",
    "last_rule_line",
    "stopping",
    "uptime",
    "prio_class",
    "prio_offset",
];

/// Converters that read a file, the clock or other state of the subject.
const APART: &[&str] = &["debug", "set-var", "unset-var", "when", "capture-req", "capture-res"];

/// Rows whose omitted arguments HAProxy reads from uninitialized memory: here they are always written.
const SEEDED: &[&str] = &[
    "djb2",
    "sdbm",
    "wt6",
    "crc32",
    "crc32c",
    "xxh32",
    "xxh64",
    "xxh3",
    "sha2",
    "url_dec",
    "urlp",
    "url_param",
    "urlp_val",
];

const TEXTS: &[&str] = &[
    "a",
    "b",
    "1",
    "0",
    "-1",
    "x-list",
    "host",
    "cookie",
    "k",
    "/",
    ";",
    "'a b'",
    "user-agent",
    "sha256",
    "%Y",
    "abc",
    "utf8",
];
const NUMBERS: &[&str] = &["0", "1", "2", "3", "-1", "-2", "5", "8", "16", "24", "32", "100"];
const STARTS: &[&str] = &[
    "str(abc)",
    "str('a,b,c')",
    "str(12)",
    "str(-7)",
    "str('a=1&b=2')",
    "str(YWJj)",
    "str('%41 b+c')",
    "str(192.0.2.9)",
    "int(0)",
    "int(42)",
    "int(-5)",
    "int(70000)",
    "bin(0001feff)",
    "bin(6162)",
    "ipv4(192.0.2.77)",
    "ipv6(2001:db8::1)",
    "bool(true)",
    "str(/a/b?c=d)",
    "str('{\"a\":{\"b\":[1,\"x\"]}}')",
    "str(www.Example.com:8080)",
    "str('  x y ')",
];

/// Pseudo-random numbers, reproducible by seed.
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(super) fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// An endless sequence of expressions.
pub struct Generator {
    random: Random,
    fetches: Vec<&'static fetch::Fetch>,
    converters: Vec<&'static convert::Converter>,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let usable =
            |row: &&fetch::Fetch| row.places.has(EvalPlace::FrontRequestHead) && !ELSEWHERE.contains(&&*row.name);
        let steady = |row: &&convert::Converter| !APART.contains(&&*row.name) && !row.name.starts_with("map");
        Self {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            fetches: FETCHES.all().filter(usable).collect(),
            converters: CONVERTERS.all().filter(steady).collect(),
        }
    }

    fn arguments(&mut self, signature: &Signature, whole: bool) -> Option<String> {
        let optional = signature.kinds.len() - signature.required;
        let count = signature.required + if whole { optional } else { self.random.below(optional + 1) };
        let mut list = Vec::new();
        for kind in &signature.kinds[..count] {
            list.push(match kind {
                Kind::Str | Kind::Regex => *self.random.one(TEXTS),
                Kind::Int => *self.random.one(NUMBERS),
                Kind::Mask4 => *self.random.one(&["24", "255.255.0.0", "0", "32"]),
                Kind::Mask6 => *self.random.one(&["64", "128", "0"]),
                Kind::Ipv4 => "192.0.2.1",
                Kind::Ipv6 => "2001:db8::2",
                Kind::Frontend => "fe",
                Kind::Backend => "be",
                Kind::Server => "be/s",
                Kind::FieldPath => "1",
                Kind::Table | Kind::Userlist => return None,
            });
        }
        Some(if count == 0 { String::new() } else { format!("({})", list.join(",")) })
    }

    /// Returns an expression in a log format, sometimes with flags.
    fn formatted(&mut self) -> Option<Case> {
        let expression = self.expression()?;
        let flags = *self.random.one(&["", "", "", "", "{+Q}", "{+X}", "{+E}", "{+Q,+E}", "{+Q,-Q}"]);
        Some(Case::of_expression(&expression, flags))
    }

    fn expression(&mut self) -> Option<String> {
        let mut text = if self.random.below(2) == 0 {
            (*self.random.one(STARTS)).to_owned()
        } else {
            let row = *self.random.one(&self.fetches);
            format!("{}{}", row.name, self.arguments(&row.signature, SEEDED.contains(&&*row.name))?)
        };
        for _ in 0..self.random.below(4) {
            let row = *self.random.one(&self.converters);
            text.push(',');
            text.push_str(&row.name);
            text.push_str(&self.arguments(&row.signature, SEEDED.contains(&&*row.name))?);
        }
        Some(text)
    }
}

impl Iterator for Generator {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        (0..100).find_map(|_| match self.random.below(8) {
            0..4 => self.formatted(),
            4..6 => self.condition(),
            _ => self.rules(),
        })
    }
}
