//! Rates of a few machines by the way in which the kernel is called, and HAProxy's figures on 64 cores beside the model's. Must never
//! measure: all figures are those of the model, or published.

use super::costs::Costs;
use super::model::{ASSUMED, Case, Limit, Style, limits, wire};
use super::published::GRAVITON;
use super::wrap::paragraph;
use crate::bench::text::{head, rounded, row, thousands};

const CORES: [u32; 3] = [2, 16, 64];
const LINK: f64 = 100e9;
const SMALL: u64 = 64;
/// The objects of the published rate of data.
const LARGE: u64 = 30_000;
const SIZES: [(u64, &str); 3] = [(SMALL, "64 B"), (1024, "1 KB"), (LARGE, "30 kB")];

/// Writes the section.
pub fn write(page: &mut String, subject: &Costs) {
    *page += "## Extrapolated: epoll and a ring\n\n";
    let [least, most] = ASSUMED.ring_saves.map(|share| share * 100.0);
    *page += &paragraph(&format!(
        "Weir calls the kernel by epoll. A ring (io_uring) is no driver of Weir: in a trial one saved {least:.0} to {most:.0} % a of a kept \
         request's CPU, with 64 connections ([performance.md](performance.md)). Its rows subtract that part of a small request from \
         requests of each size: a ring saves calls, not the copying of bytes. Requests a second over kept connections, with 100 Gbit/s:"
    ));
    let mut columns = vec!["object".to_owned(), "calls".to_owned()];
    columns.extend(CORES.iter().map(|cores| format!("{cores} cores")));
    *page += &head(&columns);
    for (size, name) in SIZES {
        let cells = CORES.iter().map(|cores| {
            let (limit, rate) = first(subject, *cores, size);
            format!("{} e, {}", rounded(rate), limit.name())
        });
        *page += &row(&[name.to_owned(), "epoll".to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
        let cells = CORES.iter().map(|cores| by_ring(subject, *cores, size));
        *page += &row(&[name.to_owned(), "ring".to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    }
    page.push('\n');
    beside(page, subject);
}

/// Writes HAProxy's figures on 64 cores beside those of the model.
fn beside(page: &mut String, subject: &Costs) {
    *page += "### HAProxy's figures on 64 cores, and the model's\n\n";
    *page += &head(&["64 cores, 100 Gbit/s", "HAProxy, 2021 [3]", "model, epoll", "model, ring"].map(str::to_owned));
    let (packets, _) = wire(subject, &ASSUMED, Style::KeepAlive, SMALL);
    let (limit, rate) = first(subject, 64, SMALL);
    *page += &row(&[
        "requests a second, small objects".to_owned(),
        format!("{} to {} p", thousands(GRAVITON.requests[0]), thousands(GRAVITON.requests[1])),
        format!("{} e, {}", rounded(rate), limit.name()),
        by_ring(subject, 64, SMALL),
    ]);
    *page += &row(&[
        "packets a second in each direction at that rate".to_owned(),
        format!("{} p, the limit of the interface", thousands(GRAVITON.packets)),
        format!("{} e", rounded(rate * packets)),
        "—".to_owned(),
    ]);
    let same = format!("{} e, packets", rounded(GRAVITON.packets / packets));
    *page +=
        &row(&["requests a second with that limit of packets".to_owned(), "as above".to_owned(), same.clone(), same]);
    let (limit, rate) = first(subject, 64, LARGE);
    let data = format!("{} Gbit/s e, {}", rounded(rate * 30_000.0 * 8.0 / 1e9), limit.name());
    *page +=
        &row(&["data, objects of 30 kB".to_owned(), format!("{} Gbit/s p", GRAVITON.gigabits), data.clone(), data]);
    *page += &row(&[
        "latency that the proxy adds".to_owned(),
        format!("at most {} µs p, saturated", GRAVITON.added_micros),
        "not modelled".to_owned(),
        "not modelled".to_owned(),
    ]);
    page.push('\n');
    assumptions(page, packets, first(subject, 64, SMALL).1 * packets);
}

/// Writes the assumptions. `packets`: those of a request; `rate`: those a second in one direction.
fn assumptions(page: &mut String, packets: f64, rate: f64) {
    let needed = GRAVITON.gigabits * 1e9 / 8.0 / ASSUMED.segment;
    let limit = if rate > GRAVITON.packets {
        "The published limit of packets is reached before the model's cores run out: such a machine carries what its interface does, \
         whatever the calls cost."
    } else {
        "The model's cores run out before the published limit of packets is reached."
    };
    *page += &paragraph(&format!(
        "The assumptions of the model's columns: a core of that machine costs as much as one here; each doubling of the cores keeps {} a \
         of their work; {} packets a second a take a core; the objects have {SMALL} bytes, since the published size is not known; a request is \
         {} packets e in each direction. {limit} At {} Gbit/s, packets of {:.0} bytes would be {} a second e, so those of that machine were \
         larger. Queues make up the latency of a saturated machine, and the model has none: see the measured latencies in \
         [performance.md](performance.md).",
        ASSUMED.doubling,
        thousands(ASSUMED.packets),
        thousands(packets),
        GRAVITON.gigabits,
        ASSUMED.segment,
        rounded(needed)
    ));
}

/// Returns the rate with a ring, from the least saving to the most.
fn by_ring(subject: &Costs, cores: u32, size: u64) -> String {
    let [least, most] = ASSUMED.ring_saves.map(|share| first(&with_ring(subject, share), cores, size));
    if rounded(least.1) == rounded(most.1) {
        return format!("{} e, {}", rounded(least.1), least.0.name());
    }
    format!("{} to {} e, {}", rounded(least.1), rounded(most.1), most.0.name())
}

/// Returns the costs with a ring that saves this share of a small request.
pub fn with_ring(costs: &Costs, share: f64) -> Costs {
    let saved = costs.request(SMALL) * share;
    Costs { by_size: costs.by_size.iter().map(|(size, cost)| (*size, cost - saved)).collect(), ..costs.clone() }
}

/// Returns the resource that runs out first, and the rate. Descriptors are a setting.
fn first(costs: &Costs, cores: u32, size: u64) -> (Limit, f64) {
    let case = Case { cores, link: LINK, size, style: Style::KeepAlive };
    let all = limits(costs, &ASSUMED, &case);
    let first = all.into_iter().find(|(limit, _)| *limit != Limit::Descriptors);
    first.unwrap_or((Limit::Cpu, 0.0))
}
