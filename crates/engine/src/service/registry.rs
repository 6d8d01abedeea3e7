//! The services that answer requests inside the process. Owns which there are; must never answer itself.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::AppendOnlyVec;
use conn::service::{ByteService, Service};
use policy::registry::Registry;

use crate::session::Session;
use crate::stream::filter::Filter;
use crate::stream::script::{Action, ActionFactory};
use crate::telemetry::Channel;
use crate::worker::{SharedStreamState, Worker};

/// Makes the service that answers one request, on the worker of the request.
pub type Factory = Arc<dyn Fn(&Session, &SharedStreamState) -> Box<dyn Service> + Send + Sync>;

/// Makes the service that serves the bytes of one session, on the worker of the session.
pub type ByteFactory = Arc<dyn Fn(&Session, &SharedStreamState) -> Box<dyn ByteService> + Send + Sync>;

/// A request for the statistics page of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Index of the proxy, which has a page.
    pub proxy: usize,
    /// The client may change servers.
    pub admin: bool,
}

/// Makes the service that answers one request for a statistics page; the bytes are path and query of the request.
pub type PageFactory = Arc<dyn Fn(&Session, PageRequest, &[u8]) -> Box<dyn Service> + Send + Sync>;

/// Makes what answers one call of a command, which is given all its words, on the worker that serves the runtime API.
pub type CommandFactory = Arc<dyn Fn(&[String]) -> Box<dyn ByteService> + Send + Sync>;

/// Makes the filter of one stream: the one of that place in the list of that proxy; `None`: it has none.
pub type FilterFactory =
    Arc<dyn Fn(&Session, &SharedStreamState, (usize, usize)) -> Option<Box<dyn Filter>> + Send + Sync>;

/// A command of the runtime API that a script registered.
pub struct ScriptCommand {
    /// The words that call it.
    pub words: Box<[Box<str>]>,
    /// The line that help shows for it.
    pub usage: Box<str>,
    /// Begins a call.
    pub factory: CommandFactory,
}

/// A task that sends metrics.
pub type MetricsTask = Pin<Box<dyn Future<Output = ()>>>;

/// Makes the task that sends metrics through a channel for as long as the newest configuration has that.
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
    /// Calls of functions of scripts that failed or were ended.
    failures: AtomicU64,
    page: Option<PageFactory>,
    metrics: Option<MetricsFactory>,
}

impl Services {
    /// Registers one more. With `ruled`, `http-response` rules and filters see its answers, as they see a server's.
    pub fn register(&mut self, name: &str, ruled: bool, factory: Factory) {
        self.registry.services.register(name, ruled);
        self.factories.push(Some(factory));
    }

    /// The same for one that log lines know by another name, which is written as it is.
    pub fn register_shown(&mut self, (name, shown): (&str, &str), ruled: bool, factory: Factory) {
        self.registry.services.register_shown(name, shown, ruled);
        self.factories.push(Some(factory));
    }

    /// Registers one that serves bytes.
    pub fn register_of_bytes(&mut self, name: &str, factory: ByteFactory) {
        let number = self.registry.services.register_of_bytes(name);
        self.factories.push(None);
        self.of_bytes.insert(number, factory);
    }

    /// The service of that number for the bytes of one session.
    pub(crate) fn start_of_bytes(
        &self,
        number: usize,
        session: &Session,
        state: &SharedStreamState,
    ) -> Option<Box<dyn ByteService>> {
        self.of_bytes.get(&number).map(|factory| factory(session, state))
    }

    /// Their names.
    pub fn names(&self) -> &policy::services::Services {
        &self.registry.services
    }

    /// What the compiler may refer to.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The same, for rows that are added.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Adds what runs an action of a script, and returns the number by which a rule refers to it.
    pub fn add_action(&mut self, factory: ActionFactory) -> usize {
        self.actions.push(factory);
        self.actions.len() - 1
    }

    /// Begins a run of the action of that number.
    pub(crate) fn begin_action(&self, number: usize, arguments: &Arc<[Box<str>]>) -> Option<Box<dyn Action>> {
        self.actions.get(number).map(|factory| factory(Arc::clone(arguments)))
    }

    /// Adds a filter that a `filter` line may name; false: that name is taken.
    pub fn add_filter(&mut self, name: &str, factory: FilterFactory) -> bool {
        let is_new = self.registry.filters.iter().all(|known| **known != *name);
        if is_new {
            self.registry.filters.push(name.into());
            self.filters.push(factory);
        }
        is_new
    }

    /// Makes the filter of that number for one stream.
    pub(crate) fn start_filter(
        &self,
        number: usize,
        session: &Session,
        state: &SharedStreamState,
        place: (usize, usize),
    ) -> Option<Box<dyn Filter>> {
        self.filters.get(number).and_then(|factory| factory(session, state, place))
    }

    /// Adds a command of the runtime API; false: those words call another one.
    pub fn add_command(&self, command: ScriptCommand) -> bool {
        let is_new = self.commands.iter().all(|known| known.words != command.words);
        is_new && self.commands.push(|_| command).is_ok()
    }

    /// The commands of the runtime API that scripts registered.
    pub fn commands(&self) -> &AppendOnlyVec<ScriptCommand> {
        &self.commands
    }

    /// Counts a call of a script's function that has failed or was ended.
    pub fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls of functions of scripts that failed or were ended.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Sets what answers requests for statistics pages.
    pub fn set_page(&mut self, factory: PageFactory) {
        self.page = Some(factory);
    }

    /// Sets what sends metrics.
    pub fn set_metrics(&mut self, factory: MetricsFactory) {
        self.metrics = Some(factory);
    }

    /// The task that sends metrics through a channel; `None`: the process has none.
    pub(crate) fn metrics(&self, worker: &Rc<Worker>, channel: &Arc<Channel>) -> Option<MetricsTask> {
        self.metrics.as_ref().map(|factory| factory(Rc::clone(worker), Arc::clone(channel)))
    }

    /// The service for one request for a statistics page; `None`: the process has none.
    pub(crate) fn start_page(
        &self,
        session: &Session,
        request: PageRequest,
        target: &[u8],
    ) -> Option<Box<dyn Service>> {
        self.page.as_ref().map(|factory| factory(session, request, target))
    }

    /// The service of that number for one request.
    pub(crate) fn start(
        &self,
        number: usize,
        session: &Session,
        state: &SharedStreamState,
    ) -> Option<Box<dyn Service>> {
        self.factories.get(number)?.as_ref().map(|factory| factory(session, state))
    }
}
