//! The last events of servers, certificates and configurations. Must never show those of a proxy outside of `stats scope`.

use live::timeline::{MOST_ENTRIES, Timeline, TimelineEntry, TimelineKind};

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, Seconds};
use super::request::DashboardRequest;

/// Default of `limit`: entries per answer.
const USUAL: usize = 200;

/// Whether an entry is shown; those of the process and of certificates only if all proxies are.
fn is_shown(asked: &DashboardRequest, entry: &TimelineEntry) -> bool {
    match &*entry.event.proxy {
        "" => asked.shows_all(),
        proxy => asked.shows_name(proxy),
    }
}

/// Writes an entry as an object.
fn write(entry: &TimelineEntry, out: &mut String) {
    let event = &entry.event;
    put(out, format_args!("{{\"id\":{},\"time\":{},\"kind\":\"{}\"", entry.id, Seconds(entry.time), event.kind.name()));
    for (name, text) in [
        ("proxy", &*event.proxy),
        ("server", &*event.server),
        ("name", &*event.name),
        ("reason", &event.reason),
        ("detail", &event.detail),
    ] {
        if !text.is_empty() {
            put(out, format_args!(",\"{name}\":{}", Quoted(text)));
        }
    }
    put(out, format_args!(",\"who\":\"{}\",\"text\":{}}}", event.who.name(), Quoted(&event.text)));
}

/// `timeline`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let Ok(since) = asked.target.parameter("since").map_or(Ok(0), str::parse) else {
        return answer.refuse(400, "'since' is the number of an entry");
    };
    let kinds = asked.target.parameter("kind");
    let is_known = |name: &str| TimelineKind::ALL.iter().any(|(_, known)| *known == name);
    if kinds.is_some_and(|kinds| !kinds.split(',').all(is_known)) {
        return answer.refuse(400, "'kind' has an unknown name");
    }
    let proxy = asked.target.parameter("proxy");
    let timeline = asked.worker.process.service::<Timeline>();
    // In this order: an entry in between is not lost for the next request.
    let last = timeline.last();
    let mut entries = timeline.since(since);
    entries.retain(|entry| {
        let is_wanted = proxy.is_none_or(|proxy| *proxy == *entry.event.proxy)
            && kinds.is_none_or(|kinds| kinds.split(',').any(|name| name == entry.event.kind.name()));
        entry.id <= last && is_wanted && is_shown(&asked, entry)
    });
    let most = asked.target.number("limit", USUAL, MOST_ENTRIES);
    let skipped = entries.len().saturating_sub(most);
    answer.begin_json();
    answer.push(&format!("{{\"last\":{last},\"complete\":{},\"entries\":[", skipped == 0));
    let mut commas = Commas::default();
    for entry in entries.iter().skip(skipped) {
        let mut text = commas.next().to_owned();
        write(entry, &mut text);
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push("]}\n");
}

/// The entries after a number, for a stream of events.
pub(super) struct TimelineReader {
    last: u64,
}

impl TimelineReader {
    /// Creates the reader that a request asks for; `None`: it does not.
    pub(super) fn asked(asked: &DashboardRequest) -> Option<Self> {
        let last = asked.target.parameter("timeline")?.parse().ok()?;
        Some(Self { last })
    }

    /// Writes the new entries.
    pub(super) async fn write(&mut self, asked: &DashboardRequest, answer: &mut Answer) {
        let timeline = asked.worker.process.service::<Timeline>();
        if timeline.last() <= self.last {
            return;
        }
        for entry in timeline.since(self.last) {
            self.last = entry.id;
            if is_shown(asked, &entry) {
                let mut text = "event: timeline\ndata: ".to_owned();
                write(&entry, &mut text);
                text.push_str("\n\n");
                answer.push(&text);
                answer.relieve().await;
            }
        }
    }
}
