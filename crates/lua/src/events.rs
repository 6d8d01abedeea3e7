//! Event subscriptions of scripts: events are delivered to the subscribing worker, one after the other for each
//! function. Must never queue more than a bounded number of events.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use engine::service::events::{Checked, Event, ServerEventKind};
use engine::worker::Process;
use expression::pattern::ListEvent;
use live::health::{Operation, Verdict};
use live::{Admin, ServerPlace, ServerStatus, Transition};
use mlua::{Function, IntoLua, Lua, Table, Value};

use crate::machine::Machine;
use crate::run::{Answer, Run, RunTerms};
use crate::script_messages;
use crate::value::Plain;

/// The event types, by their bits, with the family of each.
pub(crate) const KINDS: [(&str, &str); 15] = [
    ("SERVER_ADD", "SERVER"),
    ("SERVER_DEL", "SERVER"),
    ("SERVER_DOWN", "SERVER"),
    ("SERVER_UP", "SERVER"),
    ("SERVER_STATE", "SERVER"),
    ("SERVER_ADMIN", "SERVER"),
    ("SERVER_CHECK", "SERVER"),
    ("ACME_DEPLOY", "ACME"),
    ("ACME_NEWCERT", "ACME"),
    ("PAT_REF_ADD", "PAT_REF"),
    ("PAT_REF_DEL", "PAT_REF"),
    ("PAT_REF_SET", "PAT_REF"),
    ("PAT_REF_CLEAR", "PAT_REF"),
    ("PAT_REF_COMMIT", "PAT_REF"),
    // HAProxy has this type; its manual does not list it.
    ("SERVER_INETADDR", "SERVER"),
];

const ADD: usize = 0;
const DEL: usize = 1;
const DOWN: usize = 2;
const UP: usize = 3;
const STATE: usize = 4;
const ADMIN: usize = 5;
const CHECK: usize = 6;
const DEPLOY: usize = 7;
const NEW: usize = 8;
/// The first type of list events, in the order of [`ListEvent`].
const LISTS: usize = 9;
const MOVED: usize = 14;

/// Maximum number of queued events per function; further ones are dropped.
const MOST_WAITING: usize = 1_000;

/// The scope of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    /// All events.
    All,
    /// Events of this server.
    Server(ServerPlace),
    /// Events of the list of that name.
    List(String),
}

/// A queued event.
struct QueuedEvent {
    kind: usize,
    /// `None`: the type says everything.
    event: Option<Arc<Event>>,
    /// Seconds since the Unix epoch.
    when: u64,
}

/// A subscribed function.
struct Subscription {
    number: u64,
    machine: Arc<Machine>,
    function: Function,
    /// Bit set of event types.
    kinds: u32,
    scope: Scope,
    worker: rt::WorkerId,
    waiting: Mutex<Waiting>,
    /// The subscription was cancelled.
    over: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<QueuedEvent>,
    /// A task delivers the events.
    is_served: bool,
    /// Events were dropped.
    is_full: bool,
}

static ALL: Mutex<Vec<Arc<Subscription>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the delivery of the process's events.
pub(crate) fn listen(process: &Process) {
    process.events.listen(Box::new(publish));
}

fn publish(event: &Event) {
    let kinds = kinds_of(event);
    let place = match event {
        Event::Server(event) => Some(event.place),
        Event::Certificate(_) => None,
    };
    let wants = |own: &&Arc<Subscription>| {
        let is_near = match &own.scope {
            Scope::All => true,
            Scope::Server(own) => place == Some(*own),
            Scope::List(_) => false,
        };
        is_near && kinds.iter().any(|kind| own.kinds & (1 << kind) != 0)
    };
    let wanted: Vec<Arc<Subscription>> = lock(&ALL).iter().filter(wants).cloned().collect();
    if wanted.is_empty() {
        return;
    }
    let (event, when) = (Arc::new(event.clone()), rt::clock::since_epoch().as_secs());
    for own in wanted {
        let told = kinds.iter().filter(|kind| own.kinds & (1 << **kind) != 0);
        let told = told.map(|kind| QueuedEvent { kind: *kind, event: Some(Arc::clone(&event)), when });
        own.add(told);
    }
}

/// Delivers an event of a list.
pub(crate) fn tell_of_list(name: &str, event: ListEvent) {
    let kind = LISTS + event as usize;
    let wants = |own: &&Arc<Subscription>| {
        own.kinds & (1 << kind) != 0 && matches!(&own.scope, Scope::List(list) if list == name)
    };
    let wanted: Vec<Arc<Subscription>> = lock(&ALL).iter().filter(wants).cloned().collect();
    let when = rt::clock::since_epoch().as_secs();
    for own in wanted {
        own.add([QueuedEvent { kind, event: None, when }].into_iter());
    }
}

/// Starts the delivery of events from before this worker served.
pub(crate) fn begin(worker: rt::WorkerId) {
    let own = |one: &&Arc<Subscription>| one.worker == worker;
    let all: Vec<Arc<Subscription>> = lock(&ALL).iter().filter(own).cloned().collect();
    for own in all {
        let mut waiting = lock(&own.waiting);
        if !waiting.events.is_empty() && !std::mem::replace(&mut waiting.is_served, true) {
            Arc::clone(&own).serve();
        }
    }
}

/// Returns the types of an event, in order of delivery.
fn kinds_of(event: &Event) -> Vec<usize> {
    let event = match event {
        Event::Certificate(event) => return vec![if event.record.is_some() { DEPLOY } else { NEW }],
        Event::Server(event) => event,
    };
    let Transition { before, after } = match &event.what {
        ServerEventKind::Added => return vec![ADD],
        ServerEventKind::Removed => return vec![DEL],
        ServerEventKind::Moved => return vec![MOVED],
        ServerEventKind::Checked(_) => return vec![CHECK],
        ServerEventKind::Changed(transition, ..) => transition,
    };
    let mut kinds = Vec::new();
    if admin(before) != admin(after) {
        kinds.push(ADMIN);
    }
    let (was, is) = (state(before), state(after));
    if was != is {
        match (was == "STOPPED", is == "STOPPED") {
            (false, true) => kinds.push(DOWN),
            (true, false) => kinds.push(UP),
            _ => {}
        }
        kinds.push(STATE);
    }
    kinds
}

fn is_out(status: &ServerStatus) -> bool {
    status.admin == Admin::Maintenance || !status.resolved
}

fn state(status: &ServerStatus) -> &'static str {
    match status.operation() {
        _ if is_out(status) => "STOPPED",
        Operation::Down => "STOPPED",
        Operation::Stopping => "STOPPING",
        Operation::Up if status.throttle < 100 => "STARTING",
        Operation::Up => "RUNNING",
    }
}

/// Returns the administrative state of a server, by the names of HAProxy's manual.
fn admin(status: &ServerStatus) -> [(&'static str, bool); 8] {
    let (forced, inherited) = (status.forced, status.inherited);
    [
        ("MAINT", is_out(status)),
        ("FMAINT", forced == Admin::Maintenance),
        ("IMAINT", inherited.maintenance),
        ("RMAINT", !status.resolved),
        ("CMAINT", false),
        ("DRAIN", status.is_drained()),
        ("FDRAIN", forced == Admin::Drain),
        ("IDRAIN", inherited.drain),
    ]
}

impl Subscription {
    fn add(self: &Arc<Self>, told: impl Iterator<Item = QueuedEvent>) {
        let mut waiting = lock(&self.waiting);
        for one in told {
            if waiting.events.len() >= MOST_WAITING {
                if !std::mem::replace(&mut waiting.is_full, true) {
                    script_messages::failed(None, "Lua event_hdl: the queue of events is full, events will be missed.");
                }
                break;
            }
            waiting.events.push_back(one);
        }
        // Events from before the workers serve are delivered by `begin`.
        if crate::here().is_some() && !std::mem::replace(&mut waiting.is_served, true) {
            let own = Arc::clone(self);
            rt::post(self.worker, Box::new(move || own.serve()));
        }
    }

    /// Delivers queued events on the subscribing worker.
    fn serve(self: Arc<Self>) {
        rt::spawn(rt::Class::Normal, u64::MAX, async move {
            while let Some(told) = self.next() {
                if let Err(why) = self.call(&told).await {
                    script_messages::failed(None, &why);
                }
            }
        });
    }

    fn next(&self) -> Option<QueuedEvent> {
        let mut waiting = lock(&self.waiting);
        if self.over.load(Ordering::Relaxed) {
            waiting.events.clear();
        }
        let next = waiting.events.pop_front();
        waiting.is_served = next.is_some();
        waiting.is_full &= next.is_some();
        next
    }

    async fn call(&self, told: &QueuedEvent) -> Result<(), String> {
        let machine = &self.machine;
        let what: Arc<str> = "event_hdl".into();
        let arguments = machine.with(|lua| arguments(lua, told)).map_err(|error| format!("Lua {what}: {error}"))?;
        let terms = RunTerms { what, limit: machine.limits.task, yields: true };
        let mut run = Run::new(machine, self.function.clone(), arguments, terms)?;
        std::future::poll_fn(|cx| match run.poll(cx, None, &mut |_, _, _| Answer::Unknown) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| ())),
        })
        .await
    }
}

/// Returns the arguments of a function: type, data, time.
fn arguments(lua: &Lua, told: &QueuedEvent) -> mlua::Result<Vec<Value>> {
    let kind = KINDS[told.kind].0.into_lua(lua)?;
    let Some(event) = &told.event else {
        // HAProxy passes no data here, not even nil.
        return Ok(vec![kind, Value::Boolean(false), told.when.into_lua(lua)?]);
    };
    let data = match &**event {
        Event::Server(event) => {
            let data: Table = lua.create_table_from([
                ("name", Plain::from(&*event.name)),
                ("puid", Plain::Int(event.id.into())),
                ("rid", Plain::Int(event.revision.into())),
                ("proxy_name", Plain::from(&*event.proxy)),
                ("proxy_uuid", Plain::Int(event.proxy_id.into())),
            ])?;
            if told.kind != DEL {
                let make = crate::prelude::native(lua, "server_reference")?;
                data.set("reference", make.call::<Value>((event.place.proxy, event.place.server))?)?;
            }
            match &event.what {
                ServerEventKind::Checked(check) => data.set("check", shown_check(check))?,
                ServerEventKind::Changed(transition, ..) if told.kind == ADMIN => {
                    data.set("admin", shown_admin(transition))?
                }
                ServerEventKind::Changed(transition, check, why) if told.kind == STATE => {
                    data.set("state", shown_state(transition, check.as_ref(), why))?;
                }
                _ => {}
            }
            data
        }
        Event::Certificate(event) => {
            let data = lua.create_table_from([("crtname", Plain::from(&*event.name))])?;
            if let Some(record) = &event.record {
                data.set("domain", &*record.domain)?;
                data.set("thumbprint", &*record.thumbprint)?;
                data.set("dns_record", &*record.value)?;
                data.set("provider", record.provider.as_deref())?;
                data.set("vars", record.variables.as_deref())?;
            }
            data
        }
    };
    Ok(vec![kind, Value::Table(data), told.when.into_lua(lua)?])
}

fn row(name: &str, value: Plain) -> (Plain, Plain) {
    (Plain::from(name), value)
}

fn shown_check(check: &Checked) -> Plain {
    let report = &check.report;
    let result = match report.status.verdict() {
        Some(Verdict::Passed) => "PASSED",
        Some(Verdict::Conditional) => "CONDPASS",
        _ => "FAILED",
    };
    let mut reason =
        vec![row("short", Plain::from(report.status.name())), row("desc", Plain::from(report.status.description()))];
    if let Some(code) = report.code.filter(|_| report.status.is_application()) {
        reason.push(row("code", Plain::Int(code)));
    }
    let counts = [("cur", check.level), ("rise", check.rise), ("fall", check.fall)];
    Plain::Table(vec![
        row("agent", Plain::Bool(check.agent)),
        row("result", Plain::from(result)),
        row("duration", Plain::Int(i64::try_from(report.took.as_millis()).unwrap_or(i64::MAX))),
        row("reason", Plain::Table(reason)),
        row("health", Plain::Table(counts.map(|(name, count)| row(name, Plain::Int(count.into()))).into())),
    ])
}

fn requeued(transition: &Transition) -> Plain {
    let (was, is) = (is_out(&transition.before), is_out(&transition.after));
    Plain::Int(if is && !was || !transition.after.up { transition.before.load.queued.into() } else { 0 })
}

fn shown_admin(transition: &Transition) -> Plain {
    let flags = |status| Plain::Table(admin(status).map(|(name, is_set)| row(name, Plain::Bool(is_set))).into());
    Plain::Table(vec![
        row("cause", Plain::from("")),
        row("old_admin", flags(&transition.before)),
        row("new_admin", flags(&transition.after)),
        row("requeued", requeued(transition)),
    ])
}

fn shown_state(transition: &Transition, check: Option<&Checked>, why: &str) -> Plain {
    let by_order = admin(&transition.before) != admin(&transition.after);
    let mut rows = vec![
        row("admin", Plain::Bool(by_order)),
        row("cause", Plain::from(if by_order { "" } else { why })),
        row("old_state", Plain::from(state(&transition.before))),
        row("new_state", Plain::from(state(&transition.after))),
        row("requeued", requeued(transition)),
    ];
    rows.extend(check.map(|check| row("check", shown_check(check))));
    Plain::Table(rows)
}

/// Adds the functions for events.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    let kinds = KINDS.iter().enumerate().map(|(bit, (name, _))| (*name, 1_u32 << bit));
    let families = ["SERVER", "ACME", "PAT_REF"].map(|family| {
        let own = KINDS.iter().enumerate().filter(|(_, (_, other))| *other == family);
        (family, own.map(|(bit, _)| 1_u32 << bit).sum())
    });
    native.set("event_kinds", lua.create_table_from(kinds.chain(families))?)?;
    type Arguments = (u32, Function, Option<usize>, Option<usize>, Option<String>);
    native.set(
        "subscribe",
        lua.create_function(|lua, (kinds, function, proxy, server, list): Arguments| {
            let scope = match (list, proxy.zip(server)) {
                (Some(list), _) => Scope::List(list),
                (None, Some((proxy, server))) => Scope::Server(ServerPlace { proxy, server }),
                (None, None) => Scope::All,
            };
            subscribe(lua, kinds, function, scope)
        })?,
    )?;
    native.set(
        "unsubscribe",
        lua.create_function(|_, number: u64| {
            let mut all = lock(&ALL);
            all.iter().filter(|own| own.number == number).for_each(|own| own.over.store(true, Ordering::Relaxed));
            all.retain(|own| own.number != number);
            Ok(())
        })?,
    )
}

fn subscribe(lua: &Lua, kinds: u32, function: Function, scope: Scope) -> mlua::Result<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let Some(machine) = crate::task::own(lua) else { return Ok(number) };
    // A subscription from before the workers serve is delivered on the first worker of the state.
    let usual = rt::WorkerId::try_from(machine.number.saturating_sub(1)).unwrap_or(0);
    let worker = if crate::here().is_some() { rt::worker() } else { usual };
    let (waiting, over) = (Mutex::default(), AtomicBool::new(false));
    let own = Subscription { number, machine, function, kinds, scope, worker, waiting, over };
    lock(&ALL).push(Arc::new(own));
    Ok(number)
}
