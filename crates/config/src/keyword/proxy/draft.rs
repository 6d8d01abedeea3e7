//! A proxy while it is read: its settings so far, and what it inherits. A `defaults` section is a draft as well;
//! inheriting from it means cloning it. Must never hold anything that a finished [`ProxySpec`] is not derived from.

use crate::keyword::log_line::Entry;
use crate::keyword::place::Section;
use crate::keyword::server::ServerDraft;
use crate::span::{Span, Spanned};
use crate::spec::{
    BalanceSpec, CheckSpec, CloseMode, ErrorFileSpec, GlobalSpec, HttpErrorsSpec, HttpReuse, HttpSpec, LogFormatSpec,
    LogSpec, Mode, OptionsSpec, ProxyKind, ProxySpec, RulesSpec, SectionsSpec, Shared, TimeoutsSpec,
};
use std::collections::{BTreeMap, HashMap};

/// A log format selected by an option, kept until the mode is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChosenFormat {
    pub(crate) format: LogFormatSpec,
    /// The option's name in HAProxy's warning: `httplog`, `httplog clf`.
    pub(crate) option: &'static str,
    pub(crate) span: Span,
}

/// Sources of a proxy's error pages, in the order of its lines: the last one for a status applies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pages {
    /// `errorfile` and `errorloc`.
    Own(ErrorFileSpec),
    /// `errorfiles`: all pages of that section, or those for these statuses.
    Section { name: Spanned<String>, statuses: Vec<u16> },
    /// `http-error`, by its index `at`.
    Described { status: u16, at: usize },
}

/// Settings that could not be read, so that no error is reported about their absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Gaps {
    pub(crate) mode: bool,
    pub(crate) bind: bool,
    pub(crate) log: bool,
    /// The `defaults` section named by the proxy.
    pub(crate) base: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProxyDraft {
    pub(crate) spec: ProxySpec,
    /// Initial values of `server` lines.
    pub(crate) default_server: ServerDraft,
    /// `default-server name`, in file order.
    pub(crate) named_servers: Vec<(String, ServerDraft)>,
    /// Inherited timeouts.
    pub(crate) inherited: TimeoutsSpec,
    /// `log` lines in order.
    pub(crate) logs: Vec<Entry>,
    pub(crate) format: Option<ChosenFormat>,
    pub(crate) pages: Vec<Pages>,
    /// Value of `id`, if written.
    pub(crate) id: Option<Spanned<u32>>,
    /// Line numbers of the servers, by name.
    pub(crate) server_names: HashMap<String, u32>,
    /// Servers with an explicit `id`.
    pub(crate) server_ids: HashMap<u32, Spanned<String>>,
    /// Every static target of a `use_backend`.
    pub(crate) targets: Vec<Spanned<String>>,
    pub(crate) gaps: Gaps,
    /// `mode` was written, here or in an inherited section.
    pub(crate) says_mode: bool,
    /// `mode haterm`: the test server answers its clients.
    pub(crate) haterm: bool,
}

/// Returns the manual's defaults of a proxy.
fn documented_spec() -> ProxySpec {
    ProxySpec {
        span: Span::default(),
        kind: ProxyKind::Listen,
        name: Spanned::default(),
        id: 0,
        id_is_written: false,
        mode: Mode::Tcp,
        upgrades: false,
        disabled: false,
        description: None,
        binds: Vec::new(),
        used_certificates: Vec::new(),
        servers: Vec::new(),
        maxconn: None,
        backlog: None,
        fullconn: None,
        limits: Shared::default(),
        balance: BalanceSpec::default(),
        hash: Shared::default(),
        allbackups: false,
        unpublished: false,
        default_servers: Vec::new(),
        added_defaults: None,
        added: Vec::new(),
        guid: None,
        default_backend: None,
        fcgi_app: None,
        rules: Shared::default(),
        filters: Shared::default(),
        compression: Shared::default(),
        captures: Shared::default(),
        timeouts: Shared::default(),
        retries: 3,
        http_reuse: HttpReuse::default(),
        close_mode: CloseMode::default(),
        forwardfor: None,
        http: Shared::default(),
        monitor_uri: None,
        stats: None,
        error_files: Vec::new(),
        error_answers: Vec::new(),
        options: OptionsSpec::default(),
        reception: Shared::default(),
        logs: Vec::new(),
        log_format: LogFormatSpec::Default,
        log_lines: Shared::default(),
        log_tag: None,
        otel: None,
        connecting: Shared::default(),
        check: Shared::default(),
        email_alert: Shared::default(),
        stick_table: None,
        persistence: Shared::default(),
        udp: None,
        state: Shared::default(),
    }
}

impl ProxyDraft {
    /// Returns the initial values of a `defaults` section without `from`: the manual's defaults.
    pub(crate) fn documented() -> Self {
        Self {
            spec: documented_spec(),
            default_server: ServerDraft::default(),
            named_servers: Vec::new(),
            inherited: TimeoutsSpec::default(),
            logs: Vec::new(),
            format: None,
            pages: Vec::new(),
            id: None,
            targets: Vec::new(),
            server_names: HashMap::new(),
            server_ids: HashMap::new(),
            gaps: Gaps::default(),
            says_mode: false,
            haterm: false,
        }
    }

    /// The draft as sections inherit it.
    pub(crate) fn heir(&self) -> Self {
        let mut draft = self.clone();
        draft.spec.rules.settle(RulesSpec::inherit);
        if let Some(page) = &mut draft.spec.stats {
            page.own = false;
        }
        draft.spec.error_answers.iter_mut().for_each(|answer| answer.line.inherited = true);
        draft.spec.check.settle(CheckSpec::inherit);
        draft.inherited = *self.spec.timeouts;
        draft
    }

    /// A proxy that starts from this, which is an [`ProxyDraft::heir`].
    pub(crate) fn begin(&self, section: Section, name: Spanned<String>, span: Span) -> Self {
        let mut draft = self.clone();
        draft.spec.kind = section.kind().unwrap_or(ProxyKind::Listen);
        draft.spec.name = name;
        draft.spec.span = span;
        draft.gaps.bind = false;
        draft.named_servers.clear();
        draft.server_names.clear();
        if draft.spec.kind == ProxyKind::Backend {
            // `default_backend` applies to frontends only: this backend may be the one that it names.
            draft.spec.default_backend = None;
        }
        draft
    }

    /// Whether the proxy has a log target.
    pub(crate) fn has_logs(&self, global: &GlobalSpec) -> bool {
        self.gaps.log
            || self.logs.iter().any(|entry| match entry {
                Entry::Own(_) => true,
                Entry::Global(span) => logs_above(global, *span).next().is_some(),
                Entry::Clear => false,
            })
    }

    /// Returns the finished proxy: settings of the other side are dropped, the global log targets are added.
    pub(crate) fn finish(mut self, global: &GlobalSpec, sections: &SectionsSpec) -> ProxySpec {
        self.choose_pages(&sections.http_errors);
        if self.spec.kind != ProxyKind::Frontend {
            let unnamed = Some(("", &self.default_server)).filter(|(_, draft)| draft.check.has_defaults);
            self.spec.added_defaults = self.default_server.for_added;
            let named = self.named_servers.iter().map(|(name, draft)| (name.as_str(), draft));
            self.spec.default_servers =
                unnamed.into_iter().chain(named).map(|(name, draft)| draft.template(name)).collect();
        }
        self.spec.logs = self
            .logs
            .iter()
            .flat_map(|entry| match entry {
                Entry::Own(log) => vec![LogSpec::clone(log)],
                Entry::Global(span) => logs_above(global, *span).cloned().collect(),
                Entry::Clear => Vec::new(),
            })
            .collect();
        if let Some(chosen) = self.format {
            self.spec.log_format = match (chosen.format, self.spec.mode) {
                (LogFormatSpec::Http | LogFormatSpec::Https, Mode::Tcp | Mode::Log | Mode::Spop | Mode::Udp) => {
                    LogFormatSpec::Tcp
                }
                (LogFormatSpec::HttpClf, Mode::Tcp | Mode::Log | Mode::Spop | Mode::Udp) => LogFormatSpec::TcpClf,
                (format, _) => format,
            };
        }
        if self.spec.mode != Mode::Http && !self.spec.upgrades {
            self.spec.forwardfor = None;
            self.spec.http.settle(|http| *http = HttpSpec::default());
            self.spec.monitor_uri = None;
        }
        if self.spec.mode != Mode::Http {
            self.spec.persistence.settle(|persistence| persistence.cookie = None);
            if self.spec.balance.needs_http() {
                self.spec.balance = BalanceSpec::RoundRobin;
            }
        }
        if self.spec.mode != Mode::Log && matches!(self.spec.balance, BalanceSpec::LogHash(_)) {
            self.spec.balance = BalanceSpec::RoundRobin;
        }
        self.spec.servers.shrink_to_fit();
        self.spec
    }

    /// Selects one page per status: the last one for it.
    fn choose_pages(&mut self, sections: &[HttpErrorsSpec]) {
        let mut files = BTreeMap::new();
        for pages in &self.pages {
            match pages {
                Pages::Own(file) => {
                    files.insert(file.status, Ok(file.clone()));
                }
                Pages::Section { name, statuses } => {
                    let found = sections.iter().filter(|section| section.name == name.value);
                    let wanted = |file: &&ErrorFileSpec| statuses.is_empty() || statuses.contains(&file.status);
                    let found = found.flat_map(|section| &section.files).filter(wanted);
                    files.extend(found.map(|file| (file.status, Ok(file.clone()))));
                }
                Pages::Described { status, at } => {
                    files.insert(*status, Err(*at));
                }
            }
        }
        for page in files.into_values() {
            match page {
                Ok(file) => self.spec.error_files.push(file),
                Err(at) => self.spec.error_answers[at].counts = true,
            }
        }
    }
}

/// Returns the targets that `log global` adds at that line: those of lines above it in the section `global`.
fn logs_above(global: &GlobalSpec, span: Span) -> impl Iterator<Item = &LogSpec> {
    global.logs.iter().filter(move |log| (log.span.file, log.span.line) < (span.file, span.line))
}
