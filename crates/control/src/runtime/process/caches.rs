//! `show cache` (management manual, section 9.3). Must never show what a response says.

use live::cache::Listed;

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] =
    &[Command::new("show cache", "show cache", "show cache status", Run::Gradual(show_cache))];

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

fn line(entry: &Listed) -> String {
    let Listed { place, hash, variant, hints_alone, bytes, blocks, readers, left } = *entry;
    let kind = if hints_alone { "hints" } else { "full" };
    format!(
        "{place:#x} hash:{} vary:0x{variant:040x} type:{kind} size:{bytes} ({blocks} blocks), refcount:{readers}, expire:{left}\n",
        hash as u32
    )
}
