//! `show servers conn` (management manual, section 9.3): the numbers of used and idle connections to each server. Must
//! never block a worker: each is queried once for its multiplexed connections.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use engine::worker::Worker;
use policy::program::{Proxy, Server};

use super::super::super::call::Anonymization;
use super::super::super::{Answer, Call, Pending};
use super::{backends, live, place};

/// Counts of multiplexed connections in use, by the serial numbers of their servers.
type Shared = HashMap<usize, Busy>;

/// A server's multiplexed connections that carry requests, and the number of these requests.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    connections: u64,
    requests: u64,
}

pub(super) fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let found = match backends(&call.generation.program, call.word(3)) {
            Ok(found) => found,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        let workers = call.state.process.workers();
        let mut shared = Shared::new();
        for worker in 0..workers {
            for (server, requests) in engine::on_one_worker(worker, busy).await.unwrap_or_default() {
                let busy = shared.entry(server).or_default();
                (busy.connections, busy.requests) = (busy.connections + 1, busy.requests + requests);
            }
        }
        let _ = writeln!(
            call.answer,
            "# bkname/svname bkid/svid addr port - purge_delay served used_cur used_max need_est idle_sess unsafe_nb \
             safe_nb idle_lim idle_cur idle_per_thr[{workers}]"
        );
        for proxy in found {
            for server in proxy.backend.iter().flat_map(|backend| &backend.servers) {
                let busy = shared.get(&server.serial).copied().unwrap_or_default();
                write(call.answer, call.state, proxy, server, busy, call.conversation.anonymous);
                call.answer.relieve().await?;
            }
        }
        Ok(())
    })
}

/// Returns the server and the number of requests of each multiplexed connection of a worker that carries any.
fn busy(worker: &Rc<Worker>) -> Vec<(usize, u64)> {
    let shared = worker.links.shared_connections().into_iter();
    shared.map(|(server, requests)| (server, requests.open() as u64)).filter(|(_, open)| *open > 0).collect()
}

fn write(answer: &mut Answer, worker: &Worker, proxy: &Proxy, server: &Server, busy: Busy, hiding: Anonymization) {
    let served = live(worker, proxy).counts(Some(server.index)).srv_conn;
    // Saturates: requests begin and end while the workers are queried.
    let used = u64::from(served).saturating_sub(busy.requests) + busy.connections;
    let most = worker
        .process
        .counters
        .of(|counters| counters.known_server(server.serial))
        .peak(|counters| &counters.most_sessions);
    let pool = &worker.process.pool;
    let idle = pool.idle_connections(server.serial);
    let limit = server.pool_max_conn.map_or_else(|| "-1".to_owned(), |most| most.to_string());
    let (address, port) = place(worker, server);
    let address = hiding.address(&address);
    let _ = write!(
        answer,
        "{}/{} {}/{} {address} {port} - {} {served} {used} {most} {used} 0 0 {idle} {limit} {idle}",
        hiding.name(&proxy.name),
        hiding.name(&server.name),
        proxy.id,
        server.id,
        server.pool_purge_delay.as_millis(),
    );
    for number in 0..worker.process.workers() {
        let _ = write!(answer, " {}", pool.idle_connections_of(server.serial, number));
    }
    answer.push("\n");
}
