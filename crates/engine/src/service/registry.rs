//! The registry of services that answer requests inside the process. Must never answer a request itself.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::AppendOnlyVec;
use conn::service::{ByteService, Service};
use policy::registry::Registry;

use crate::filter::{RulePosition, ScriptFilter};
use crate::script::{Action, ActionFactory};
use crate::session::Session;
use crate::telemetry::Channel;
use crate::worker::{SharedStreamState, Worker};

/// Creates the service that answers one request, on the worker of the request.
pub type Factory = Arc<dyn Fn(&Session, &SharedStreamState) -> Box<dyn Service> + Send + Sync>;

/// Creates the service that serves the bytes of one session, on the worker of the session.
pub type ByteFactory = Arc<dyn Fn(&Session, &SharedStreamState) -> Box<dyn ByteService> + Send + Sync>;

/// A request for the statistics page of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Index of the proxy whose page is requested.
    pub proxy: usize,
    /// The client may change servers.
    pub admin: bool,
}

/// Creates the service that answers one request for a statistics page, from path and query of the request.
pub type PageFactory = Arc<dyn Fn(&Session, PageRequest, &[u8]) -> Box<dyn Service> + Send + Sync>;

/// Creates the service that answers one call of a command, from all its words, on the worker that serves the runtime API.
pub type CommandFactory = Arc<dyn Fn(&[String]) -> Box<dyn ByteService> + Send + Sync>;

/// Creates the filter of one stream from the indices of the proxy and of the filter in its list; `None`: the filter does not
/// apply.
pub type FilterFactory =
    Arc<dyn Fn(&Session, &SharedStreamState, RulePosition) -> Option<Box<dyn ScriptFilter>> + Send + Sync>;

/// A command of the runtime API that a script registered.
pub struct ScriptCommand {
    /// The words of the command.
    pub words: Box<[Box<str>]>,
    /// Its line in the help.
    pub usage: Box<str>,
    /// Starts a call.
    pub factory: CommandFactory,
}

/// A task that exports metrics.
pub type MetricsTask = Pin<Box<dyn Future<Output = ()>>>;

/// Creates the task that exports metrics through a channel while the newest configuration has that channel.
pub type MetricsFactory = Arc<dyn Fn(Rc<Worker>, Arc<Channel>) -> MetricsTask + Send + Sync>;

/// The services of the process. They are registered before the configuration is compiled, which refers to them by number.
#[derive(Default)]
pub struct Services {
    registry: Registry,
    factories: Vec<Option<Factory>>,
    of_bytes: BTreeMap<usize, ByteFactory>,
    actions: Vec<ActionFactory>,
    commands: AppendOnlyVec<ScriptCommand>,
    filters: Vec<FilterFactory>,
    /// Number of script function calls that failed or were aborted.
    failures: AtomicU64,
    page: Option<PageFactory>,
    metrics: Option<MetricsFactory>,
}

impl Services {
    /// Registers a service. With `ruled`, `http-response` rules and filters process its responses, as they do a server's.
    pub fn register(&mut self, name: &str, ruled: bool, factory: Factory) {
        self.registry.services.register(name, ruled);
        self.factories.push(Some(factory));
    }

    /// Registers a service that log lines show under another name, which is written verbatim.
    pub fn register_shown(&mut self, name: &str, shown: &str, ruled: bool, factory: Factory) {
        self.registry.services.register_shown(name, shown, ruled);
        self.factories.push(Some(factory));
    }

    /// Registers a service of bytes.
    pub fn register_of_bytes(&mut self, name: &str, factory: ByteFactory) {
        let number = self.registry.services.register_of_bytes(name);
        self.factories.push(None);
        self.of_bytes.insert(number, factory);
    }

    /// Starts the service of that number for the bytes of one session.
    pub(crate) fn start_of_bytes(
        &self,
        number: usize,
        session: &Session,
        state: &SharedStreamState,
    ) -> Option<Box<dyn ByteService>> {
        self.of_bytes.get(&number).map(|factory| factory(session, state))
    }

    /// Returns the names of the services.
    pub fn names(&self) -> &policy::services::Services {
        &self.registry.services
    }

    /// Returns the registry for the compiler.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the registry for additions.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Adds the factory of a script action, and returns the number by which rules refer to it.
    pub fn add_action(&mut self, factory: ActionFactory) -> usize {
        self.actions.push(factory);
        self.actions.len() - 1
    }

    /// Starts a run of the action of that number.
    pub(crate) fn begin_action(&self, number: usize, arguments: &Arc<[Box<str>]>) -> Option<Box<dyn Action>> {
        self.actions.get(number).map(|factory| factory(Arc::clone(arguments)))
    }

    /// Adds a filter for `filter` lines. Returns false if the name is taken.
    pub fn add_filter(&mut self, name: &str, factory: FilterFactory) -> bool {
        let is_new = self.registry.filters.iter().all(|known| **known != *name);
        if is_new {
            self.registry.filters.push(name.into());
            self.filters.push(factory);
        }
        is_new
    }

    /// Creates the filter of that number for one stream.
    pub(crate) fn start_filter(
        &self,
        number: usize,
        session: &Session,
        state: &SharedStreamState,
        position: RulePosition,
    ) -> Option<Box<dyn ScriptFilter>> {
        self.filters.get(number).and_then(|factory| factory(session, state, position))
    }

    /// Adds a command of the runtime API. Returns false if its words are taken.
    pub fn add_command(&self, command: ScriptCommand) -> bool {
        let is_new = self.commands.iter().all(|known| known.words != command.words);
        is_new && self.commands.push(|_| command).is_ok()
    }

    /// Returns the commands of the runtime API that scripts registered.
    pub fn commands(&self) -> &AppendOnlyVec<ScriptCommand> {
        &self.commands
    }

    /// Counts a script function call that failed or was aborted.
    pub fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of script function calls that failed or were aborted.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Sets the factory of statistics pages.
    pub fn set_page(&mut self, factory: PageFactory) {
        self.page = Some(factory);
    }

    /// Sets the factory of metrics exports.
    pub fn set_metrics(&mut self, factory: MetricsFactory) {
        self.metrics = Some(factory);
    }

    /// Creates the task that exports metrics through a channel; `None`: the process has no factory.
    pub(crate) fn metrics(&self, worker: &Rc<Worker>, channel: &Arc<Channel>) -> Option<MetricsTask> {
        self.metrics.as_ref().map(|factory| factory(Rc::clone(worker), Arc::clone(channel)))
    }

    /// Starts the service for one request for a statistics page; `None`: the process has no factory.
    pub(crate) fn start_page(
        &self,
        session: &Session,
        request: PageRequest,
        target: &[u8],
    ) -> Option<Box<dyn Service>> {
        self.page.as_ref().map(|factory| factory(session, request, target))
    }

    /// Starts the service of that number for one request.
    pub(crate) fn start(
        &self,
        number: usize,
        session: &Session,
        state: &SharedStreamState,
    ) -> Option<Box<dyn Service>> {
        self.factories.get(number)?.as_ref().map(|factory| factory(session, state))
    }
}
