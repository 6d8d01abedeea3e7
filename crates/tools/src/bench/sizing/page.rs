//! The sizing page, section by section. Must never compute more than a sum: the figures are the model's.

use super::costs::{Costs, READS, run_of};
use super::drivers;
use super::model::{ASSUMED, Case, Limit, Style, client_memory, cpu, efficiency, limits, wire};
use super::published::{BANDWIDTHS, FIGURES, Kind, NOT_FOUND, SOURCES};
use super::wrap::{item, paragraph};
use crate::bench::results::Results;
use crate::bench::text::{bytes, head, rounded, row, thousands};
use std::fmt::Write;

const CORES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const LINKS: [f64; 4] = [10e9, 25e9, 40e9, 100e9];
const SIZES: [u64; 5] = [64, 1024, 10 * 1024, 100 * 1024, 1024 * 1024];
const CLOSE_SIZES: [u64; 2] = [64, 10 * 1024];
const GIGABYTE: f64 = 1024.0 * 1024.0 * 1024.0;

/// Writes the page.
pub fn write(results: &[Results], all: &[Costs], subject: &Costs) -> String {
    let mut page = String::new();
    opening(&mut page, results, subject);
    measured(&mut page, results, all);
    assumed(&mut page, subject);
    extrapolated(&mut page, subject);
    drivers::write(&mut page, subject);
    next_limits(&mut page, subject);
    memory(&mut page, all, subject);
    others(&mut page, all);
    page
}

fn opening(page: &mut String, results: &[Results], subject: &Costs) {
    *page += "# Sizing\n\n";
    *page += &paragraph(&format!(
        "What a machine needs for a load, or carries of one, computed for {} from what requests, bytes and connections cost \
         it on one machine. The page is written by a program from results of `weir bench`, and the same results give the same \
         page:",
        subject.version
    ));
    *page += "    weir bench --sizing results.json… > docs/sizing.md\n\n";
    *page += &paragraph(
        "Each figure bears a mark: **m** is measured, **a** is assumed, **e** is extrapolated from those two by the model that \
         stands below, **p** was published by others. Nothing marked e was ever run. Take them as orders of magnitude, and \
         measure on your machine before you buy another one.",
    );
    let runs = || READS.iter().filter_map(|(name, _)| run_of(results, name)).map(|run| run.begun.as_str());
    if let (Some(earliest), Some(latest)) = (runs().min(), runs().max()) {
        *page += &paragraph(&format!(
            "The build that was measured is {}, from {earliest} to {latest}. A later build may cost less or more. The measurements:",
            subject.version
        ));
    }
    let columns = ["scenario", "read for", "begun", "machine"].map(str::to_owned);
    *page += &head(&columns);
    for (name, why) in READS {
        let Some(run) = run_of(results, name) else {
            *page += &row(&[format!("`{name}`"), (*why).to_owned(), "not run".to_owned(), String::new()]);
            continue;
        };
        let machine = &run.machine;
        *page += &row(&[
            format!("`{name}`"),
            (*why).to_owned(),
            run.begun.clone(),
            format!("{}, {} cores, {}", machine.processor, machine.cores, machine.kernel),
        ]);
    }
    page.push('\n');
}

fn measured(page: &mut String, results: &[Results], all: &[Costs]) {
    *page +=
        "## Measured: what things cost\n\nCPU of the proxy on one core, microseconds, user and system together.\n\n";
    let mut columns = vec![String::new()];
    columns.extend(all.iter().map(|costs| costs.version.clone()));
    *page += &head(&columns);
    let mut sizes: Vec<u64> = all.iter().flat_map(|costs| costs.by_size.iter().map(|(size, _)| *size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        line(page, all, &format!("keep-alive request, {}", bytes(size_of(size))), |costs| {
            costs.is_measured(size).then(|| format!("{} m", rounded(costs.request(size))))
        });
    }
    let micro = |value: Option<f64>| value.map(|value| format!("{} m", rounded(value)));
    line(page, all, "each further KB", |costs| Some(format!("{:.3} m", costs.byte()? * 1024.0)));
    line(page, all, "request with a new connection to the server", |costs| micro(costs.server_close));
    line(page, all, "request with new connections on both sides", |costs| micro(costs.close));
    line(page, all, "connection over tcp with one exchange", |costs| micro(costs.connection));
    line(page, all, "share of its work that a core keeps beside a second one", |costs| {
        Some(format!("{:.2} m", costs.kept?))
    });
    line(page, all, "anonymous memory of an open connection, bytes", |costs| {
        Some(format!("{} m", thousands(costs.memory?)))
    });
    page.push('\n');
    let missing: Vec<String> =
        READS.iter().filter(|(name, _)| run_of(results, name).is_none()).map(|(name, _)| format!("`{name}`")).collect();
    if !missing.is_empty() {
        *page += &paragraph(&format!("Not run, so without their rows: {}.", missing.join(", ")));
    }
    *page += &paragraph(
        "All of this went over the loopback interface: its packets carry up to 64 KB, no driver and no interrupt takes part, and \
         client and server share the machine. A real interface costs more for each byte, and its interrupts need cores.",
    );
    *page += &paragraph(
        "Configured objects take memory as well: a backend with two servers and a line of a map 8.9 KB m where there are 10,000 of them, \
         and up to 8.2 KB m where the runtime API adds it, with one thread (HAProxy 3.5-dev5: 14.5 KB m each; `bench/many_backends.py`). \
         Each thread adds 2.2 KB e of counters once it serves the backend and both servers.",
    );
}

fn line(page: &mut String, all: &[Costs], name: &str, value: impl Fn(&Costs) -> Option<String>) {
    let values: Vec<Option<String>> = all.iter().map(value).collect();
    if values.iter().all(Option::is_none) {
        return;
    }
    let mut cells = vec![name.to_owned()];
    cells.extend(values.into_iter().map(|value| value.unwrap_or_else(|| "—".to_owned())));
    *page += &row(&cells);
}

fn assumed(page: &mut String, subject: &Costs) {
    let second = subject.kept.map_or_else(
        || format!("assumed like the others: {} a", ASSUMED.doubling),
        |kept| format!("measured: {kept:.2} m"),
    );
    let rows: [(&str, String, &str); 11] = [
        ("work that a core keeps, from one core to two", second, "the scenario `workers-sweep`, at most 1"),
        (
            "the same at each further doubling",
            format!("{} a", ASSUMED.doubling),
            "nginx, 1 to 32 CPUs (published, see below): 20.7 times the requests, so 0.917 for each of five doublings",
        ),
        (
            "packets a second that a core receives which serves the interface alone",
            format!("{} a", thousands(ASSUMED.packets)),
            "HAProxy's 20 Gbit/s (2015) were 1.2 million packets in, data and acknowledgements, for each of two such cores",
        ),
        (
            "a packet",
            format!("{} + {} bytes a", ASSUMED.segment, ASSUMED.overhead),
            "Ethernet of 1,500 bytes with its gap, IPv4, TCP with timestamps",
        ),
        ("head of a request", format!("{} bytes a", ASSUMED.request), "without cookies; the answer's head is measured"),
        (
            "open clients",
            format!("{:.0} for each request a second a", ASSUMED.clients),
            "each client asks once a second and keeps its connection",
        ),
        (
            "a server's answer",
            format!("after {:.0} ms, {:.0} servers a", ASSUMED.answer * 1e3, ASSUMED.servers),
            "as long a connection to a server is in use",
        ),
        (
            "ports and descriptors",
            format!("{} to a server, {} in all a", thousands(ASSUMED.ports), thousands(ASSUMED.descriptors)),
            "`ip_local_port_range` and `fs.nr_open`, as Linux sets them",
        ),
        (
            "the kernel's memory for an idle socket",
            format!("{} bytes a", thousands(ASSUMED.socket)),
            "not measured here; full socket buffers take far more",
        ),
        ("memory", format!("{} a core a", bytes(ASSUMED.memory)), "what machines for rent usually have at least"),
        (
            "CPU of a small kept request that a ring would save",
            format!("{:.0} to {:.0} % a", ASSUMED.ring_saves[0] * 100.0, ASSUMED.ring_saves[1] * 100.0),
            "a trial with 64 connections ([performance.md](performance.md)); Weir has no such driver",
        ),
    ];
    *page += "## Assumed\n\n";
    *page += &head(&["what", "value", "why"].map(str::to_owned));
    for (what, value, why) in rows {
        *page += &row(&[what.to_owned(), value, why.to_owned()]);
    }
    page.push('\n');
    *page += &paragraph(
        "The model: a request costs the CPU of the proxy and that of the packets which come in, and the cores are shared out between \
         the two so that both are full. Their number, times what each of them keeps beside the others, divided by that cost, is \
         the rate at which they run out; the limit is called CPU where the proxy has most of them, packets where the interface has. \
         The link carries clients and servers together: data received on one side is sent on the other, so each direction \
         carries a request and an answer. Memory and descriptors follow from the clients that are open at such a rate.",
    );
}

fn extrapolated(page: &mut String, subject: &Costs) {
    *page += "## Extrapolated: requests a second\n\n";
    *page += &paragraph(
        "Every figure of this section is extrapolated (e), by cores and by the speed of the link; the limit that is reached \
         first follows it. A star says that more descriptors than the kernel's default are needed before that. Memory is that of the connections open at the highest rate of the row, the kernel's with it.",
    );
    let shares: Vec<String> =
        CORES.iter().map(|cores| format!("{cores}: {:.2}", efficiency(subject, &ASSUMED, *cores))).collect();
    *page += &paragraph(&format!("Work that each core keeps, by cores: {}.", shares.join(", ")));
    for (style, sizes) in [(Style::KeepAlive, &SIZES[..]), (Style::Close, &CLOSE_SIZES[..])] {
        for size in sizes {
            rates(page, subject, style, *size);
        }
    }
}

fn rates(page: &mut String, subject: &Costs, style: Style, size: u64) {
    let Some(cpu) = cpu(subject, style, size) else { return };
    let name = match style {
        Style::KeepAlive => "kept connections",
        Style::Close => "new connections on both sides for each request",
    };
    let mark = if style == Style::KeepAlive && subject.is_measured(size) { "m" } else { "e" };
    let (packets, bytes_each) = wire(subject, &ASSUMED, style, size);
    let _ = writeln!(page, "### {}, {name}\n", bytes(size_of(size)));
    *page += &paragraph(&format!(
        "A request takes {} µs {mark} of CPU, {} packets e and {} bytes e in each direction.",
        rounded(cpu),
        thousands(packets),
        thousands(bytes_each)
    ));
    let mut columns = vec!["cores".to_owned()];
    columns.extend(LINKS.iter().map(|link| format!("{:.0} Gbit/s", link / 1e9)));
    columns.push("memory".to_owned());
    *page += &head(&columns);
    for cores in CORES {
        let mut cells = vec![cores.to_string()];
        let mut highest = 0f64;
        for link in LINKS {
            let limits = limits(subject, &ASSUMED, &Case { cores, link, size, style });
            let first = limits.iter().find(|(limit, _)| *limit != Limit::Descriptors);
            cells.push(first.map_or_else(String::new, |(limit, rate)| {
                highest = highest.max(*rate);
                let star = if limits[0].0 == Limit::Descriptors { " \\*" } else { "" };
                format!("{} e, {}{star}", rounded(*rate), limit.name())
            }));
        }
        cells.push(
            client_memory(subject, &ASSUMED)
                .map_or_else(|| "—".to_owned(), |each| format!("{} e", bytes(highest * ASSUMED.clients * each))),
        );
        *page += &row(&cells);
    }
    page.push('\n');
}

fn next_limits(page: &mut String, subject: &Costs) {
    *page += "## What runs out next\n\n";
    *page += &paragraph(
        "Every limit of a machine with 16 cores and 25 Gbit/s, kept connections, the first one first. A limit far above the \
         first does not matter; one close to it is the next to raise. Descriptors are a setting (`fs.nr_open`), and cost \
         nothing to raise.",
    );
    let mut columns = vec!["object".to_owned()];
    columns.extend((1..Limit::ALL.len()).map(|place| place.to_string()));
    *page += &head(&columns);
    for size in SIZES {
        let case = Case { cores: 16, link: 25e9, size, style: Style::KeepAlive };
        let mut cells = vec![bytes(size_of(size))];
        let known = limits(subject, &ASSUMED, &case);
        cells.extend(known.iter().map(|(limit, rate)| format!("{} {} e", limit.name(), rounded(*rate))));
        cells.resize(columns.len(), "—".to_owned());
        *page += &row(&cells);
    }
    page.push('\n');
    *page += &paragraph(&format!(
        "Ports run out with slow servers: {} connections to one server's address at a time are {} requests a second where it \
         answers after 10 ms, and {} where it answers after one second (both e). More addresses, of servers or with `source`, \
         multiply that.",
        thousands(ASSUMED.ports),
        rounded(ASSUMED.ports / 0.010),
        rounded(ASSUMED.ports)
    ));
}

fn memory(page: &mut String, all: &[Costs], subject: &Costs) {
    let (Some(own), Some(whole)) = (subject.memory, client_memory(subject, &ASSUMED)) else { return };
    *page += "## Memory for open connections\n\n";
    *page += &paragraph(&format!(
        "An open connection that has had an answer and is idle costs the process {} bytes m, and with the kernel's sockets {} \
         bytes e.",
        thousands(own),
        thousands(whole)
    ));
    *page += &head(&["open clients", "process", "with the kernel's sockets"].map(str::to_owned));
    for clients in [1_000.0, 10_000.0, 100_000.0, 1_000_000.0] {
        *page +=
            &row(&[thousands(clients), format!("{} e", bytes(clients * own)), format!("{} e", bytes(clients * whole))]);
    }
    page.push('\n');
    let each: Vec<String> = all
        .iter()
        .filter_map(|costs| {
            Some(format!("{} {} e", costs.version, rounded(GIGABYTE / client_memory(costs, &ASSUMED)?)))
        })
        .collect();
    *page += &paragraph(&format!(
        "Idle connections in a GB: {}. The published 20,000 a GB (p) are saturated connections with full buffers of the kernel, \
         which are not measured here.",
        each.join(", ")
    ));
}

fn others(page: &mut String, all: &[Costs]) {
    *page += "## Published by others\n\n";
    *page += &paragraph(
        "Figures from 2009 to 2021, as their authors published them (p): other machines, other kernels, real links. The last but \
         one column divides by the cores of the proxy, the one in brackets by those for interrupts as well, where they are published.",
    );
    *page += &head(&["date", "program", "what", "figure", "cores", "a core", "machine and source"].map(str::to_owned));
    for figure in FIGURES {
        let (own, beside) = figure.cores;
        let (cores, each) = if own == 0.0 {
            ("—".to_owned(), "—".to_owned())
        } else if beside > 0.0 {
            (
                format!("{own} + {beside}"),
                format!("{} ({})", rounded(figure.figure / own), rounded(figure.figure / (own + beside))),
            )
        } else {
            (format!("{own}"), rounded(figure.figure / own))
        };
        *page += &row(&[
            figure.date.to_owned(),
            figure.program.to_owned(),
            figure.what.to_owned(),
            format!("{} p", thousands(figure.figure)),
            cores,
            each,
            format!("{} [{}]", figure.machine, figure.source + 1),
        ]);
    }
    page.push('\n');
    *page += "Rates of data:\n\n";
    for (date, program, what, source) in BANDWIDTHS {
        *page += &item(&format!("{date}, {program}: {what} p [{}].", source + 1));
    }
    page.push('\n');
    beside(page, all);
    *page += "### Sources\n\n";
    for (place, (title, note)) in SOURCES.iter().enumerate() {
        *page += &item(&format!("[{}] {title}: {note}", place + 1));
    }
    *page += "\n### Not found\n\n";
    for what in NOT_FOUND {
        *page += &item(what);
    }
}

/// Selects a cost to show in a row.
type Cost = fn(&Costs) -> Option<f64>;

/// Writes the comparison of published and measured figures per core.
fn beside(page: &mut String, all: &[Costs]) {
    *page += "### A core, theirs and ours\n\n";
    *page += &paragraph(
        "What one core carries when the proxy has all of it and no interface to serve: a million divided by the CPU of a \
         request that was measured here. The programs measured here are comparable with each other; a comparison with a published \
         figure also compares machines.",
    );
    let mut columns = vec!["a core and second".to_owned(), "published".to_owned()];
    columns.extend(all.iter().map(|costs| format!("{}, here", costs.version)));
    *page += &head(&columns);
    let rows: [(&str, Kind, Cost); 4] = [
        ("requests, keep-alive, small", Kind::KeepAlive, |costs| Some(costs.by_size[0].1)),
        ("requests, server-close, small", Kind::ServerClose, |costs| costs.server_close),
        ("requests, close on both sides, small", Kind::Close, |costs| costs.close),
        ("connections over tcp", Kind::Connection, |costs| costs.connection),
    ];
    for (name, kind, cost) in rows {
        let published: Vec<String> = FIGURES
            .iter()
            .filter(|figure| figure.kind == kind)
            .map(|figure| format!("{} ({})", rounded(figure.figure / figure.cores.0), figure.date))
            .collect();
        let mut cells = vec![name.to_owned(), format!("{} p", published.join(", "))];
        cells.extend(
            all.iter().map(|costs| cost(costs).map_or("—".to_owned(), |cost| format!("{} e", rounded(1e6 / cost)))),
        );
        *page += &row(&cells);
    }
    page.push('\n');
}

#[allow(clippy::cast_precision_loss, reason = "object sizes stay far below 2^52")]
fn size_of(size: u64) -> f64 {
    size as f64
}
