//! `show pools`: the memory of the process (management manual, section 9.3). Must never free any.

use std::fmt::Write as _;

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show pools",
    "show pools [by*] [match <pfx>] [nb]",
    "report information about the memory pools usage",
    Run::Gradual(show),
)];

/// Sort order of pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Declared,
    Name,
    Size,
    Usage,
}

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let (mut order, mut prefix, mut most) = (Order::Declared, String::new(), usize::MAX);
        let mut words = call.words.iter().skip(2);
        while let Some(word) = words.next() {
            match word.as_str() {
                "byname" => order = Order::Name,
                "bysize" => order = Order::Size,
                "byusage" => order = Order::Usage,
                "detailed" => {}
                "match" => prefix = words.next().cloned().unwrap_or_default(),
                number => match number.parse() {
                    Ok(number) => most = number,
                    Err(_) => {
                        call.refuse(
                            "Expects either 'byname', 'bysize', 'byusage', 'match <pfx>', 'detailed', or a max number of \
                             output lines.",
                        );
                        return Ok(());
                    }
                },
            }
        }
        let found = engine::on_every_worker(&call.state.process, |_| rt::pools()).await;
        let mut pools: Vec<rt::PoolUse> = Vec::new();
        for pool in found.into_iter().flatten().filter(|pool| pool.name.starts_with(&prefix)) {
            match pools.iter_mut().find(|known| known.name == pool.name) {
                Some(known) => (known.kept, known.used) = (known.kept + pool.kept, known.used + pool.used),
                None => pools.push(pool),
            }
        }
        match order {
            Order::Declared => {}
            Order::Name => pools.sort_by_key(|pool| pool.name),
            Order::Size => pools.sort_by_key(|pool| std::cmp::Reverse(pool.size)),
            Order::Usage => pools.sort_by_key(|pool| std::cmp::Reverse(pool.size * (pool.used + pool.kept))),
        }
        let limited = if most < usize::MAX { format!(" (limited to the first {most} entries)") } else { String::new() };
        let _ = writeln!(call.answer, "Dumping pools usage{limited}. Use SIGQUIT to flush them.");
        for rt::PoolUse { name, size, kept, used } in pools.iter().take(most) {
            let all = kept + used;
            let _ = writeln!(
                call.answer,
                "  - Pool {name} ({size} bytes) : {all} allocated ({} bytes), {used} used (~{kept} by thread caches), 0 failures",
                all * size,
            );
        }
        let sum = |of: fn(&rt::PoolUse) -> usize| pools.iter().map(|pool| of(pool) * pool.size).sum::<usize>();
        let _ = writeln!(
            call.answer,
            "Total: {} pools, {} bytes allocated, {} used (~{} by thread caches).\nProcess: {} bytes allocated, {} failures.",
            pools.len(),
            sum(|pool| pool.kept + pool.used),
            sum(|pool| pool.used),
            sum(|pool| pool.kept),
            base::memory::PROCESS.used(),
            base::memory::PROCESS.failed(),
        );
        Ok(())
    })
}
