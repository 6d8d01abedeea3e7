//! `show cache` (management manual, section 9.3), and `purge cache`, Weir's own. Must never show the contents of a
//! response.

use config::spec::RuntimeLevel;
use live::cache::CacheListing;
use std::fmt::Write as _;

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("show cache", "show cache", "show cache status", Run::Gradual(show_cache)).at(RuntimeLevel::Admin),
    Command::new(
        "purge cache",
        "purge cache <name> { key <url> | tag <tag> | all }",
        "remove responses from a cache",
        Run::Now(purge_cache),
    )
    .at(RuntimeLevel::Operator),
];

/// Removes the entries of a URL, of a tag, or all, and answers with their number.
fn purge_cache(call: &mut Call<'_, Worker>) {
    let caches = &call.state.process.live.caches;
    let name = call.word(2);
    let Some(cache) = caches.iter().find(|cache| *cache.plan().name == *name) else {
        return call.refuse("No such cache.");
    };
    let (kind, what) = (call.word(3), call.word(4));
    let count = match kind {
        "all" => cache.purge(|_| true),
        "tag" if !what.is_empty() => cache.purge(|tags| tags.iter().any(|tag| **tag == *what.as_bytes())),
        "key" => match key(what) {
            Some(key) => usize::from(cache.remove(&key)),
            None => return call.refuse("'key' expects a URL: scheme, host and path."),
        },
        _ => return call.refuse("'purge cache' expects 'key <url>', 'tag <tag>' or 'all'."),
    };
    let _ = writeln!(call.answer, "{count} removed");
}

/// Returns the cache key of a URL.
fn key(url: &str) -> Option<Vec<u8>> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let scheme = &url[..url.len() - rest.len()];
    let at = rest.find('/')?;
    (at > 0).then(|| [scheme, &rest[..at], " ", &rest[at..]].concat().into_bytes())
}

fn show_cache<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let process = std::sync::Arc::clone(&call.state.process);
        for cache in process.live.caches.iter() {
            let place = std::sync::Arc::as_ptr(cache) as usize;
            let (name, free) = (&cache.plan().name, cache.available() + cache.idle_blocks());
            call.answer.push(format!("{place:#x}: {name} (shctx:{place:#x}, available blocks:{free})\n"));
            let mut shard = 0;
            while let Some(entries) = cache.list(shard, rt::now()) {
                for entry in entries {
                    call.answer.push(line(&entry));
                    call.answer.relieve().await?;
                }
                shard += 1;
            }
        }
        Ok(())
    })
}

fn line(entry: &CacheListing) -> String {
    let CacheListing { place, hash, variant, hints_alone, bytes, blocks, readers, left } = *entry;
    let kind = if hints_alone { "hints" } else { "full" };
    format!(
        "{place:#x} hash:{} vary:0x{variant:040x} type:{kind} size:{bytes} ({blocks} blocks), refcount:{readers}, expire:{left}\n",
        hash as u32
    )
}
