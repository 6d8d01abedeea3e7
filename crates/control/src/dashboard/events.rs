//! Server-sent events: a sample every second, new log lines, new entries of the timeline. Must never continue after the process stops.

use std::time::Duration;

use engine::service::log::TapReader;
use std::sync::Arc;

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, lossy};
use super::objects::{self, Columns, SAMPLED, Sums, each};
use super::overview;
use super::request::DashboardRequest;
use super::timeline::TimelineReader;
use crate::statistics::{B, F, Kind, S};

/// How often the log is read.
const TICK: Duration = Duration::from_millis(250);
/// Ticks per sample.
const TICKS: u32 = 4;
/// Maximum bytes of log lines per tick.
const LINES: usize = 32 * 1024;
/// Up to this number of servers, samples contain all of them unless the request says otherwise.
const MOST_SERVERS: usize = 500;

/// Values of `show info` in every sample.
const PROCESS: [&str; 17] = [
    "Uptime_sec",
    "Maxconn",
    "CurrConns",
    "CumConns",
    "CumReq",
    "ConnRate",
    "SessRate",
    "SslRate",
    "CurrSslConns",
    "Tasks",
    "Idle_pct",
    "Stopping",
    "Jobs",
    "DroppedLogs",
    "TotalBytesOut",
    "BytesOutRate",
    "PoolUsed_bytes",
];

/// The servers of a sample.
enum Servers {
    All,
    None,
    Of(String),
}

impl Servers {
    fn asked(asked: &DashboardRequest) -> Self {
        match asked.target.parameter("servers") {
            Some("all") => Self::All,
            Some("none") => Self::None,
            Some(backend) => Self::Of(backend.to_owned()),
            None => {
                let proxies = asked.generation.program.proxies.iter().filter(|proxy| asked.shows(proxy));
                let mut all = proxies.flat_map(|proxy| proxy.servers());
                if all.nth(MOST_SERVERS).is_none() { Self::All } else { Self::None }
            }
        }
    }

    fn wants(&self, backend: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Of(name) => name == backend,
        }
    }
}

/// `events`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let servers = Servers::asked(&asked);
    let samples = asked.target.parameter("samples") != Some("0");
    let mut tap = (asked.target.parameter("log") == Some("1"))
        .then(|| TapReader::new(Arc::clone(&asked.worker.process.log_targets)));
    let mut timeline = TimelineReader::asked(&asked);
    // `count` ends the stream after that number of samples.
    let mut left = asked.target.parameter("count").and_then(|text| text.parse::<u64>().ok()).unwrap_or(u64::MAX);
    answer.begin("text/event-stream", vec![("x-accel-buffering", "no".to_owned())]);
    answer.push("retry: 2000\n\n");
    let mut tick = 0;
    while left > 0 && !asked.worker.process.is_stopping() {
        if samples && tick % TICKS == 0 {
            sample(&asked, &servers, &mut answer).await;
            left -= 1;
        } else if tick % (TICKS * 2) == 0 {
            // Detects a disconnected client, and keeps the proxy's timeouts from ending a stream without events.
            answer.push(":\n\n");
        }
        if let Some(tap) = &mut tap {
            log(&asked, tap, &mut answer).await;
        }
        if let Some(timeline) = &mut timeline {
            timeline.write(&asked, &mut answer).await;
        }
        tick = tick.wrapping_add(1);
        if left > 0 {
            rt::sleep(TICK).await;
        }
    }
}

async fn sample(asked: &DashboardRequest, servers: &Servers, answer: &mut Answer) {
    let threads = overview::threads(asked).await;
    let mut text = format!("event: sample\ndata: {{\"time\":{},", overview::time());
    overview::write(asked, &threads, Some(&PROCESS), &mut text);
    text.push_str(",\"objects\":[");
    answer.push(&text);
    let columns = Columns::named(SAMPLED.into_iter());
    let (mut commas, mut all) = (Commas::default(), Sums::default());
    each(
        asked,
        answer,
        F | B,
        |_: &str| true,
        |object, out| {
            out.push_str(commas.next());
            let own = objects::write(object, &columns, out);
            if let Kind::Frontend = object.kind {
                all.latencies.join(&own.latencies);
            }
            all.servers += own.servers;
        },
    )
    .await;
    each(
        asked,
        answer,
        S,
        |name: &str| servers.wants(name),
        |object, out| {
            out.push_str(commas.next());
            objects::write(object, &columns, out);
        },
    )
    .await;
    let mut text = "],\"latency\":{\"of\":\"frontends\"".to_owned();
    objects::latency(&all.latencies, &mut text);
    text.push_str("},\"server_counts\":");
    objects::write_counts(&all.servers, &mut text);
    text.push_str("}\n\n");
    answer.push(&text);
    answer.relieve().await;
}

/// Writes log lines since the last call.
async fn log(asked: &DashboardRequest, tap: &mut TapReader, answer: &mut Answer) {
    let mut text = String::new();
    tap.read(LINES, |owner, line| {
        let owner = owner.and_then(|index| asked.generation.program.proxies.get(index));
        let is_shown = owner.map_or_else(|| asked.shows_all(), |proxy| asked.shows_name(&proxy.name));
        if is_shown {
            let (name, line) = (owner.map_or("", |proxy| &*proxy.name), lossy(line));
            let (time, name, line) = (overview::time(), Quoted(name), Quoted(&line));
            put(&mut text, format_args!("event: log\ndata: {{\"time\":{time},\"proxy\":{name},\"line\":{line}}}\n\n"));
        }
    });
    answer.push(&text);
    answer.relieve().await;
}
