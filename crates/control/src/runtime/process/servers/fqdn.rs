//! `set server <backend>/<server> fqdn` (management manual, section 9.3). Must never change an address.

use wire::dns::Name;

use super::super::super::{Call, Pending};
use engine::resolve;
use engine::resolve::Resolving;
use engine::worker::Worker;

/// `set server <backend>/<server> fqdn <name>`: the server's `resolvers` section resolves the name from now on.
pub(super) fn change<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        const BY: &str = "by 'stats socket command'";
        let shared = std::sync::Arc::clone(&call.state.process);
        let (proxy, server) = match super::find(&call.generation.program, call.word(2)) {
            Ok(found) => found,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        let written = call.word(4).to_owned();
        if written.is_empty() {
            call.refuse("set server <b>/<s> fqdn requires a FQDN.");
            return Ok(());
        }
        if resolve::service(server).is_some() {
            call.refuse("set server <b>/<s> fqdn failed because SRV resolution is configured.");
            return Ok(());
        }
        let Some(resolving) = &server.resolving else {
            call.refuse("set server <b>/<s> fqdn failed because no resolution is configured.");
            return Ok(());
        };
        let place = proxy.place_of(server);
        let of_worker = resolving.section % shared.workers();
        let Some(name) = Name::parse(&written).filter(|name| !name.is_service()) else {
            let sentence = match written.len() {
                // The length is valid, the name is not.
                ..=253 => format!("could not update {}/{} FQDN {BY}", proxy.name, server.name),
                _ => format!("invalid fqdn '{written}' {BY}"),
            };
            call.refuse(&sentence);
            return Ok(());
        };
        let before = shared.service::<Resolving>().named(server.serial).host.unwrap_or_else(|| "(null)".to_owned());
        let changed = engine::on_one_worker(of_worker, move |worker| resolve::rename(worker, place, &name)).await;
        match changed {
            Some(true) => {
                let text = format!("{}/{} changed its FQDN from {before} to {written} {BY}", proxy.name, server.name);
                call.state.logger.message(Some(proxy.index), config::spec::LogLevel::Notice, &text);
                call.inform(&text);
            }
            _ => call.refuse(&format!("no need to change the FDQN {BY}")),
        }
        Ok(())
    })
}
