//! Backends in `mode log`: which of its servers a line goes to (configuration manual, section 4.2 "mode" and "balance").
//! Must never send a line.

use std::sync::Arc;

use balance::Recogniser;
use base::AppendOnlyVec;
use bumpalo::Bump;
use expression::Conversion;
use expression::pattern::ListStates;
use expression::sample::Value;
use live::{Live, PickContext};
use policy::program::{LogServer, Program, Proxy, Server};
use rt::net::Address;

use super::targets::LineTarget;
use crate::generation::Generation;
use crate::service::bare;

/// A backend of log lines.
#[derive(Debug)]
pub struct Balance {
    live: Arc<Live>,
    /// Its index among the proxies.
    proxy: usize,
    /// What the key of a line is made by.
    key: Option<Key>,
    /// Each server's place; `None`: there was no room for it.
    places: AppendOnlyVec<Option<usize>>,
}

/// The configuration that a backend came with is what its key is evaluated in.
#[derive(Debug)]
struct Key {
    conversion: Conversion,
    recogniser: Recogniser,
    program: Arc<Program>,
    lists: Arc<ListStates>,
}

/// What a server of log lines is.
pub(super) fn place(server: &Server) -> LineTarget {
    match server.log {
        Some(LogServer::Ring(ring)) => LineTarget::Ring(ring),
        // The program has resolved every address that lines can go to.
        Some(LogServer::Datagrams) | None => {
            LineTarget::server(server.serial, server.address.of_syslog().map_or(Address::Unnamed, Address::Inet))
        }
    }
}

impl Balance {
    /// The backend that a proxy is; its servers become places.
    pub(super) fn new(
        generation: &Generation,
        live: &Arc<Live>,
        proxy: &Proxy,
        add: &mut dyn FnMut(LineTarget) -> Option<usize>,
    ) -> Self {
        let key = proxy.backend.as_ref().and_then(|backend| {
            let (conversion, recogniser) = (backend.log_key.clone()?, backend.recogniser.clone()?);
            let (program, lists) = (Arc::clone(&generation.program), Arc::clone(&generation.lists));
            Some(Key { conversion, recogniser, program, lists })
        });
        let places = proxy.servers().map(|server| add(place(server))).collect();
        Self { live: Arc::clone(live), proxy: proxy.index, key, places }
    }

    /// Gives a server that is added its place. False: it is not the next one, or there is no room.
    pub(super) fn add(&self, server: &Server, place: usize) -> bool {
        self.places.push(|_| Some(place)) == Ok(server.index)
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
        self.places.get(server).copied().flatten()
    }

    fn hash(&self, key: &Key, line: &[u8], arena: &Bump) -> Option<u32> {
        bare::lend((&key.program, &key.lists), &self.live, arena, |context| {
            let line = Value::Str(context.copy(line)?);
            let made = key.conversion.convert(context, line)?;
            context.as_text(made).map(|made| key.recogniser.of_key(made))
        })
    }
}
