//! Stick tables and their entries. Must never hold a table's lock while it waits for the client to read.

use std::sync::Arc;

use base::moment::Moment;
use config::spec::{DataForm, StoreSpec};
use live::table::{Cursor, EntryView, Table};

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, lossy};
use super::request::DashboardRequest;
use crate::runtime::process::{column, shown_datum, write_key};

/// Entries visited per lock of a shard.
pub(super) const PAGE: u32 = 128;
/// Default and maximum of `limit`: entries per answer.
const USUAL: usize = 200;
const MOST: usize = 1_000_000;

/// Whether a table may be shown: a proxy's table if the proxy is, other tables only if all proxies are.
fn is_shown(asked: &DashboardRequest, table: &Table) -> bool {
    let owner = table.plan.proxy.and_then(|index| asked.generation.program.proxies.get(index));
    owner.map_or_else(|| asked.shows_all(), |proxy| asked.shows_name(&proxy.name))
}

fn all(asked: &DashboardRequest) -> Vec<Arc<Table>> {
    asked.worker.process.live.tables.iter().filter(|table| is_shown(asked, table)).map(Arc::clone).collect()
}

pub(super) fn members(table: &Table, out: &mut String) {
    let plan = &table.plan;
    let (name, kind) = (Quoted(&plan.name), plan.key.name());
    put(out, format_args!("\"name\":{name},\"type\":\"{kind}\",\"size\":{},\"used\":{}", plan.size, table.used()));
}

/// `tables`.
pub(super) async fn list(asked: DashboardRequest, mut answer: Answer) {
    answer.begin_json();
    answer.push("{\"tables\":[");
    let mut commas = Commas::default();
    for table in all(&asked) {
        let mut text = format!("{}{{", commas.next());
        members(&table, &mut text);
        text.push('}');
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push("]}\n");
}

/// Returns the table that the address names.
pub(super) fn named(asked: &DashboardRequest) -> Option<Arc<Table>> {
    let name = asked.target.names.first()?;
    all(asked).into_iter().find(|table| *table.plan.name == **name)
}

/// `tables/{name}`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let Some(table) = named(&asked) else { return answer.refuse(404, "there is no such table") };
    let mut left = asked.target.number("limit", USUAL, MOST);
    let filter = asked.target.parameter("key").unwrap_or_default().to_owned();
    let mut text = "{".to_owned();
    members(&table, &mut text);
    text.push_str(",\"entries\":[");
    answer.begin_json();
    answer.push(&text);
    let (mut commas, mut cursor, mut is_cut) = (Commas::default(), Some(Cursor::default()), false);
    while let Some(from) = cursor.filter(|_| !is_cut) {
        text.clear();
        cursor = table.page(from, PAGE, rt::now(), |_, view| {
            let mut key = String::new();
            write_key(&mut key, table.plan.key, view.key);
            if key.contains(&filter) {
                is_cut |= left == 0;
                if left > 0 {
                    left -= 1;
                    text.push_str(commas.next());
                    entry(&table, &view, &key, &mut text);
                }
            }
        });
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push(if is_cut { "],\"complete\":false}\n" } else { "],\"complete\":true}\n" });
}

pub(super) fn entry(table: &Table, view: &EntryView<'_>, key: &str, out: &mut String) {
    put(out, format_args!("{{\"key\":{},\"use\":{}", Quoted(key), view.trackers));
    if view.until != Moment::MAX {
        put(out, format_args!(",\"expires_ms\":{}", view.until.millis_since(rt::now())));
    }
    out.push_str(",\"data\":{");
    let mut commas = Commas::default();
    for StoreSpec { kind, elements, period } in &table.plan.layout.stores {
        for element in 0..*elements {
            let name = column(*kind, element);
            let value = shown_datum(view, table, *kind, element).unwrap_or(0);
            let comma = commas.next();
            match kind.form() {
                DataForm::Rate => put(out, format_args!("{comma}\"{name}({period})\":{value}")),
                DataForm::Number | DataForm::Large => put(out, format_args!("{comma}\"{name}\":{value}")),
                DataForm::Server => {
                    let known = table.servers.name(value as u32).map_or_else(|| "-".to_owned(), |name| lossy(&name));
                    put(out, format_args!("{comma}\"{name}\":{}", Quoted(&known)));
                }
            }
        }
    }
    out.push_str("}}");
}
