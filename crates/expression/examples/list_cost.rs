//! Measures lists of patterns: the time to load a million entries, the memory that they use, and the processor time of
//! a lookup when each lookup is of another entry, so that no cache contains it.
//! `cargo run --release -p weir-expression --example list_cost [ENTRIES]`. Must never measure anything around it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::net::Ipv4Addr;
use weir_expression::pattern::{Content, ListLine, Method, Registry, Texts as _, Use};
use weir_expression::sample::Value;

const LOOKS: u32 = 1_000_000;

/// Returns a different number for each number, in pseudo-random order.
fn mixed(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x85eb_ca6b);
    let number = (number ^ (number >> 13)).wrapping_mul(0xc2b2_ae35);
    number ^ (number >> 16)
}

fn network(number: u32) -> String {
    let bits = 20 + number % 13;
    format!("{}/{bits}", Ipv4Addr::from(mixed(number) & (u32::MAX << (32 - bits))))
}

/// Returns a path of one to eight segments.
fn path(number: u32) -> String {
    (0..=number % 8).fold(String::new(), |mut path, part| {
        let _ = write!(path, "/{:x}", mixed(number).rotate_left(4 * part));
        path
    })
}

/// Resident anonymous memory in kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Processor time of this thread in nanoseconds.
fn spent() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A name, a matching method, a function that makes an entry's key and one that makes the text to look up.
type Kind<'a> = (&'a str, Method, &'a dyn Fn(u32) -> String, &'a dyn Fn(u32) -> String);

fn main() {
    let entries: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let list = |entries: u32, line: &dyn Fn(u32) -> String| -> Vec<u8> {
        (0..entries).flat_map(|number| format!("{} backend-{number}\n", line(number)).into_bytes()).collect()
    };
    let host = |number: u32| format!("site-{number}.example.org");
    let rows: [Kind<'_>; 9] = [
        ("str", Method::Str, &host, &host),
        ("str, absent", Method::Str, &host, &|number| format!("{}!", host(number))),
        ("beg", Method::Beg, &path, &|number| format!("{}/and/some/more", path(number))),
        ("beg, absent", Method::Beg, &path, &|number| format!("/none{}/and/some/more", path(number))),
        ("end", Method::End, &|number| format!("-{:x}.html", mixed(number)), &|number| {
            format!("/pages/of-{:x}.html", mixed(number)).replace("of", "")
        }),
        ("int", Method::Int, &|number| number.to_string(), &|number| number.to_string()),
        ("ip", Method::Ip, &network, &|number| Ipv4Addr::from(mixed(number)).to_string()),
        ("ip, absent mostly", Method::Ip, &network, &|number| Ipv4Addr::from(mixed(!number)).to_string()),
        ("reg, a thousandth", Method::Reg, &|number| format!("^/dir{number}/[a-z]+$"), &|number| {
            format!("/dir{number}/page")
        }),
    ];
    for (name, method, line, asked) in rows {
        let entries = if method == Method::Reg { entries / 1000 } else { entries };
        let content = list(entries, line);
        let texts: Vec<String> = (0..LOOKS).map(|number| asked(mixed(number) % entries)).collect();
        let values: Vec<Value<'_>> = texts
            .iter()
            .map(|text| match method {
                Method::Ip => Value::Ipv4(text.parse().expect("an address")),
                Method::Int => Value::Int(text.parse().expect("a number")),
                _ => Value::Str(text.as_bytes()),
            })
            .collect();
        let (bytes, before, start) = (content.len(), resident(), spent());
        let mut lists = Registry::default();
        let list = lists.file(name, Use::Map, ListLine::default(), || Ok(content)).unwrap();
        let lookup = lists.lookup(list, method, false, Content::Text).expect("a list");
        let loaded = (spent() - start) / 1_000_000;
        let memory = resident().saturating_sub(before) + bytes as u64 / 1024;
        let start = spent();
        let mut found = 0_usize;
        for value in &values {
            if let Ok(Some(hit)) = lookup.base.set.find(black_box(*value), &*lookup.entries, &|_| true) {
                found += 1;
                black_box((lookup.entries.key(hit.at), lookup.entries.value(hit.at).first()));
            }
        }
        let nanos = (spent() - start) / u64::from(LOOKS);
        println!("{name:<18} load {loaded:>5} ms {memory:>7} KB   look {nanos:>5} ns, found {found}");
    }
}
