//! Backends in `mode log`: which of its servers a line goes to (configuration manual, section 4.2 "mode" and "balance").
//! Must never send a line.

use std::sync::Arc;

use balance::Recogniser;
use bumpalo::Bump;
use expression::Conversion;
use expression::pattern::ListStates;
use expression::sample::Value;
use live::{Live, PickContext};
use policy::program::{LogServer, Program, Proxy};
use rt::net::Address;

use super::targets::{LineTarget, Places};
use crate::generation::Generation;
use crate::service::bare;

/// A backend of log lines.
#[derive(Debug)]
pub struct Balance {
    program: Arc<Program>,
    lists: Arc<ListStates>,
    live: Arc<Live>,
    /// Its index among the proxies.
    proxy: usize,
    /// What the key of a line is made by.
    key: Option<(Conversion, Recogniser)>,
    /// Each server's place.
    places: Box<[usize]>,
}

impl Balance {
    /// The backend that a proxy is; its servers become places.
    pub(super) fn new(generation: &Generation, live: &Arc<Live>, proxy: &Proxy, places: &mut Places) -> Self {
        let backend = proxy.backend.as_ref();
        let place = |server: &policy::program::Server| match server.log {
            Some(LogServer::Ring(ring)) => LineTarget::Ring(ring),
            // The program has resolved every address that lines can go to.
            Some(LogServer::Datagrams) | None => {
                LineTarget::server(server.serial, server.address.of_syslog().map_or(Address::Unnamed, Address::Inet))
            }
        };
        let key = backend.and_then(|backend| Some((backend.log_key.clone()?, backend.recogniser.clone()?)));
        Self {
            program: Arc::clone(&generation.program),
            lists: Arc::clone(&generation.lists),
            live: Arc::clone(live),
            proxy: proxy.index,
            key,
            places: proxy.servers().map(|server| places.add(place(server))).collect(),
        }
    }

    /// The place that a line goes to. `None`: no server takes part, or the line has no key.
    pub(super) fn choose(&self, line: &[u8], arena: &mut Bump) -> Option<usize> {
        let hash = match &self.key {
            Some(key) => {
                let hash = self.hash(key, line, arena);
                arena.reset();
                Some(hash?)
            }
            None => None,
        };
        let state = self.live.proxies.get(self.proxy)?;
        let server = state.choose(&PickContext { hash, random: rt::random(), ..PickContext::default() })?;
        self.places.get(server).copied()
    }

    fn hash(&self, (conversion, recogniser): &(Conversion, Recogniser), line: &[u8], arena: &Bump) -> Option<u32> {
        bare::lend((&self.program, &self.lists), &self.live, arena, |context| {
            let line = Value::Str(context.copy(line)?);
            let key = conversion.convert(context, line)?;
            context.as_text(key).map(|key| recogniser.of_key(key))
        })
    }
}
