//! Current streams of each worker. Must never block a worker: streams are read in batches.

use std::rc::Rc;

use base::Key;
use engine::session::task::StreamTask;
use engine::worker::Worker;

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, lossy};
use super::request::DashboardRequest;

/// Streams read from a worker at a time.
const BATCH: usize = 100;
/// Default and maximum of `limit`: streams per answer.
const USUAL: usize = 200;
const MOST: usize = 100_000;
/// Maximum length of a request's URI in an answer.
const LONGEST_URI: usize = 256;

/// A stream: the names of its frontend and its backend, and its JSON members.
type StreamRow = (String, Option<String>, String);

/// `sessions`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let only = |name: &str| asked.target.parameter(name).map(str::to_owned);
    let (frontend, backend) = (only("frontend"), only("backend"));
    let mut left = asked.target.number("limit", USUAL, MOST);
    answer.begin_json();
    answer.push("{\"sessions\":[");
    let (mut commas, mut is_cut) = (Commas::default(), false);
    for number in 0..asked.worker.process.workers() {
        let mut from = None;
        loop {
            let Some((found, last)) = engine::on_one_worker(number, move |worker| describe(worker, from)).await else {
                break;
            };
            for (front, back, members) in found {
                let is_wanted = frontend.as_ref().is_none_or(|name| *name == front)
                    && backend.as_ref().is_none_or(|name| Some(name) == back.as_ref());
                if !is_wanted || !asked.shows_name(&front) || back.as_ref().is_some_and(|back| !asked.shows_name(back))
                {
                    continue;
                }
                is_cut |= left == 0;
                if left > 0 {
                    left -= 1;
                    answer.push(commas.next());
                    answer.push(&members);
                }
            }
            answer.relieve().await;
            match last.filter(|_| !is_cut) {
                Some(last) => from = Some(last),
                None => break,
            }
        }
    }
    answer.push(if is_cut { "],\"complete\":false}\n" } else { "],\"complete\":true}\n" });
}

/// Describes up to [`BATCH`] streams after `from`. Also returns the key to continue after; `None`: these were the last.
fn describe(worker: &Rc<Worker>, from: Option<u64>) -> (Vec<StreamRow>, Option<u64>) {
    let tasks = worker.tasks_behind(from, BATCH);
    let last = if tasks.len() < BATCH { None } else { tasks.last().map(|(key, _)| key.to_bits()) };
    (tasks.iter().filter_map(|(key, task)| one(task, *key)).collect(), last)
}

fn one(task: &StreamTask, key: Key) -> Option<StreamRow> {
    let state = task.current()?;
    let state = state.try_borrow().ok()?;
    let backend = state.route.backend.map(|index| task.proxy_at(index));
    let server = backend.and_then(|proxy| proxy.backend.as_ref()).zip(state.route.server);
    let server = server.and_then(|(backend, server)| backend.servers.get(server));
    let client = state.client(task).map_or_else(|| "unix".to_owned(), |client| client.to_string());
    let mut text = String::new();
    let id = crate::runtime::process::session_id(task.worker.id, key);
    put(
        &mut text,
        format_args!(
            "{{\"id\":\"{id:#x}\",\"thread\":{},\"client\":{},\"frontend\":{},\"age_ms\":{},\"bytes_in\":{},\"bytes_out\":{}",
            task.worker.id + 1,
            Quoted(&client),
            Quoted(&task.proxy().name),
            rt::now().millis_since(state.timings.start),
            state.accounting.bytes.bytes_in,
            state.accounting.bytes.bytes_out,
        ),
    );
    if let Some(backend) = backend {
        put(&mut text, format_args!(",\"backend\":{}", Quoted(&backend.name)));
    }
    if let Some(server) = server {
        put(&mut text, format_args!(",\"server\":{}", Quoted(&server.name)));
    }
    if state.info.has_request {
        let uri = state.request.target();
        let (method, uri) = (lossy(state.request.method()), lossy(&uri[..uri.len().min(LONGEST_URI)]));
        put(&mut text, format_args!(",\"method\":{},\"uri\":{}", Quoted(&method), Quoted(&uri)));
    }
    text.push('}');
    Some((task.proxy().name.to_string(), backend.map(|proxy| proxy.name.to_string()), text))
}
