//! Backends in `mode log`: which of its servers a line goes to (configuration manual, section 4.2 "mode" and "balance").
//! Must never send a line.

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
use crate::service::bare;

/// A backend of log lines.
#[derive(Debug)]
pub struct Balance {
    live: Arc<Live>,
    /// Its index among the proxies.
    proxy: usize,
    /// What the key of a line is made by.
    key: Option<Key>,
    /// Each server's sink; `None`: it was removed.
    sinks: AppendOnlyVec<Mutex<Option<Arc<LogSink>>>>,
}

/// The configuration that a backend came with is what its key is evaluated in.
#[derive(Debug)]
struct Key {
    conversion: Conversion,
    recogniser: Recogniser,
    program: Arc<Program>,
    lists: Arc<ListStates>,
}

impl Balance {
    /// The backend that a proxy is; its servers become sinks.
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

    /// Gives a server that is added its sink, by its index: the next one, or that of one that was removed. False: there is no room.
    pub(super) fn add(&self, server: usize, sink: Arc<LogSink>) -> bool {
        match self.sinks.get(server) {
            Some(vacant) => {
                *vacant.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink);
                true
            }
            None => self.sinks.push(|_| Mutex::new(Some(sink))) == Ok(server),
        }
    }

    /// A server that was removed gets nothing more.
    pub(super) fn forget(&self, server: usize) {
        let sink = self.sinks.get(server).and_then(|sink| sink.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(sink);
    }

    /// Where the lines of a server go, by its index.
    pub(super) fn sink(&self, server: usize) -> Option<Arc<LogSink>> {
        self.sinks.get(server)?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The sink that a line goes to. `None`: no server takes part, or the line has no key.
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
        bare::lend((&key.program, &key.lists), &self.live, arena, |context| {
            let line = Value::Str(context.copy(line)?);
            let made = key.conversion.convert(context, line)?;
            context.as_text(made).map(|made| key.recogniser.of_key(made))
        })
    }
}
