//! Backends in `mode log`: the choice of the server for a line (configuration manual, section 4.2 "mode" and "balance"). Must
//! never send a line.

use std::sync::{Arc, Mutex, PoisonError};

use balance::Recogniser;
use base::AppendOnlyVec;
use bumpalo::Bump;
use expression::Conversion;
use expression::pattern::ListStates;
use expression::sample::Value;
use live::{Live, PickContext};
use policy::program::{Program, Proxy};

use crate::generation::Generation;
use crate::routes::sinks::{LogSink, LogSinks, OpenPhase};
use crate::service::program_probes;

/// A backend of log lines.
#[derive(Debug)]
pub struct Balance {
    live: Arc<Live>,
    /// Index of its proxy.
    proxy: usize,
    /// Evaluates the hash key of a line.
    key: Option<Key>,
    /// Sink of each server; `None`: it was removed.
    sinks: AppendOnlyVec<Mutex<Option<Arc<LogSink>>>>,
}

/// Hash key expression, with the configuration that it is evaluated in: the one the backend was created by.
#[derive(Debug)]
struct Key {
    conversion: Conversion,
    recogniser: Recogniser,
    program: Arc<Program>,
    lists: Arc<ListStates>,
}

impl Balance {
    /// Creates a backend; its servers become sinks.
    pub(super) fn new(
        generation: &Generation,
        live: &Arc<Live>,
        proxy: &Proxy,
        opened: &LogSinks,
        when: OpenPhase,
    ) -> Self {
        let key = proxy.backend.as_ref().and_then(|backend| {
            let (conversion, recogniser) = (backend.log_key.clone()?, backend.recogniser.clone()?);
            let (program, lists) = (Arc::clone(&generation.program), Arc::clone(&generation.lists));
            Some(Key { conversion, recogniser, program, lists })
        });
        let sinks = proxy.servers().map(|server| Mutex::new(Some(opened.server(server, when)))).collect();
        Self { live: Arc::clone(live), proxy: proxy.index, key, sinks }
    }

    /// Adds a server's sink at its index: the next one, or that of a removed server. Returns false if there is no capacity.
    pub(super) fn add(&self, server: usize, sink: Arc<LogSink>) -> bool {
        match self.sinks.get(server) {
            Some(vacant) => {
                *vacant.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink);
                true
            }
            None => self.sinks.push(|_| Mutex::new(Some(sink))) == Ok(server),
        }
    }

    /// Removes the sink of a removed server.
    pub(super) fn forget(&self, server: usize) {
        let sink = self.sinks.get(server).and_then(|sink| sink.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(sink);
    }

    /// Returns the sink of a server, by its index.
    pub(super) fn sink(&self, server: usize) -> Option<Arc<LogSink>> {
        self.sinks.get(server)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Chooses the sink for a line. `None`: no server is available, or the line has no key.
    pub(super) fn choose(&self, line: &[u8], arena: &mut Bump) -> Option<Arc<LogSink>> {
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
        self.sink(server)
    }

    fn hash(&self, key: &Key, line: &[u8], arena: &Bump) -> Option<u32> {
        program_probes::lend(&key.program, &key.lists, &self.live, arena, |context| {
            let line = Value::Str(context.copy(line)?);
            let made = key.conversion.convert(context, line)?;
            context.as_text(made).map(|made| key.recogniser.of_key(made))
        })
    }
}
