//! Access of scripts to proxies, servers and listeners. Changes are made by commands of the runtime API, except those
//! that are logged differently. Changes ordered during the start are executed when the first worker serves.

use std::sync::{Mutex, PoisonError};

use config::spec::Mode;
use engine::generation::Generation;
use engine::service::log::hostname;
use engine::service::session_shutdown::shut_sessions;
use engine::service::transitions::{Orderer, force};
use engine::stream_state::Cause;
use engine::worker::{Process, Worker};
use live::health::Operation;
use live::{Admin, Checker, ServerPlace};
use mlua::{IntoLua, Lua, LuaString, Table, Value};
use policy::program::{Proxy, Server, ServerAddress, ServerPort};

use crate::value::Plain;

/// The configuration and the process.
struct ProcessView {
    process: std::sync::Arc<Process>,
    generation: std::sync::Arc<Generation>,
}

impl ProcessView {
    fn now() -> Option<Self> {
        let process = crate::process()?;
        let generation = process.generation();
        Some(Self { process, generation })
    }

    fn proxy(&self, index: usize) -> Option<&Proxy> {
        self.generation.program.proxies.get(index).map(|proxy| &**proxy)
    }

    /// Returns a server that was not removed, and its proxy.
    fn server(&self, proxy: usize, index: usize) -> Option<(&Proxy, &Server)> {
        let proxy = self.proxy(proxy)?;
        let server = proxy.servers().find(|server| server.index == index)?;
        Some((proxy, server))
    }
}

fn places(places: impl IntoIterator<Item = ServerPlace>) -> Plain {
    let pair = |place: ServerPlace| {
        let number = |at: usize| Plain::Int(i64::try_from(at).unwrap_or(i64::MAX));
        Plain::Table(vec![(Plain::Int(1), number(place.proxy)), (Plain::Int(2), number(place.server))])
    };
    Plain::Table(places.into_iter().enumerate().map(|(at, place)| (Plain::Int(at as i64 + 1), pair(place))).collect())
}

fn named(rows: impl Iterator<Item = (String, i64)>) -> Plain {
    Plain::Table(rows.map(|(name, number)| (Plain::Text(name.into_bytes()), Plain::Int(number))).collect())
}

/// `(proxy, what)`
fn proxy_of(index: usize, what: &str) -> Option<Plain> {
    let known = ProcessView::now()?;
    let proxy = known.proxy(index)?;
    let state = known.process.live.proxies.get(index)?;
    let online = |backup: bool| {
        let all = proxy.servers().filter_map(|server| state.status(server.index));
        let usable = all.filter(|one| one.backup == backup && one.up && !one.stopping && one.admin == Admin::Ready);
        usable.filter(|one| one.weight > 0).count()
    };
    Some(match what {
        "cap" => Plain::from(match (proxy.frontend.is_some(), proxy.backend.is_some()) {
            (true, true) => "proxy",
            (true, false) => "frontend",
            _ => "backend",
        }),
        "mode" => Plain::from(match proxy.mode {
            Mode::Http => "http",
            Mode::Log => "syslog",
            Mode::Udp => "udp",
            Mode::Tcp => "tcp",
            _ => "unknown",
        }),
        "act" | "bck" => Plain::Int(online(what == "bck") as i64),
        "servers" => named(proxy.servers().map(|server| (server.name.to_string(), server.index as i64))),
        "listeners" => {
            let binds = proxy.frontend.iter().flat_map(|frontend| frontend.binds.iter());
            let name = |bind: &policy::program::Bind| match *bind.name == *bind.id.to_string() {
                true => format!("sock-{}", bind.id),
                false => bind.name.to_string(),
            };
            named(binds.filter(|bind| !bind.is_removed).map(|bind| (name(bind), bind.id.into())))
        }
        "table" => {
            let mut tables = known.generation.program.tables.iter();
            tables.find(|table| table.proxy == Some(index)).map_or(Plain::Nil, |table| Plain::from(&*table.name))
        }
        "mailers" => proxy.mail.as_ref().map_or(Plain::Nil, |mail| mailers(proxy, mail)),
        _ => return None,
    })
}

fn mailers(proxy: &Proxy, mail: &policy::program::MailAlert) -> Plain {
    let row = |name: &str, value: Plain| (Plain::from(name), value);
    let servers = mail.servers.iter().map(|server| row(&server.name, Plain::from(&*server.address.to_string())));
    let mut rows = vec![
        row("track_server_health", Plain::Bool(proxy.backend.as_ref().is_some_and(|backend| backend.check.log))),
        row("log_level", Plain::Int(mail.level as i64)),
        row("mailservers", Plain::Table(servers.collect())),
        row("mailservers_timeout", Plain::Int(i64::try_from(mail.timeout.as_millis()).unwrap_or(i64::MAX))),
        row("smtp_from", Plain::from(&*mail.from)),
        row("smtp_to", Plain::from(&*mail.to)),
    ];
    // Without a configured name HAProxy uses the host name here.
    let own = || crate::here().map_or_else(hostname, |worker| worker.logger.hostname().into());
    let name = mail.hostname.clone().unwrap_or_else(own);
    rows.push(row("smtp_hostname", Plain::from(&*name)));
    Plain::Table(rows)
}

fn shown(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Inet { ip, port: ServerPort::Exact(port) } => std::net::SocketAddr::new(*ip, *port).to_string(),
        ServerAddress::Inet { ip, port: ServerPort::Offset(offset) } if *offset == 0 => ip.to_string(),
        ServerAddress::Inet { ip, port: ServerPort::Offset(offset) } => format!("{ip}:{offset:+}"),
        ServerAddress::Unix(path) => path.display().to_string(),
        ServerAddress::Abstract(name) => format!("abns@{}", name.trim_ascii_end().escape_ascii()),
        _ => "<NULL>".to_owned(),
    }
}

/// `(proxy, server, what)`; nothing if the server was removed.
fn server_of(proxy: usize, index: usize, what: &str) -> Option<Plain> {
    let known = ProcessView::now()?;
    let (proxy, server) = known.server(proxy, index)?;
    let status = known.process.live.proxies.get(proxy.index)?.status(server.index)?;
    let limit = |most: u32| Plain::Int(if most == u32::MAX { 0 } else { most.into() });
    Some(match what {
        "name" => Plain::Text(server.name.to_string().into_bytes()),
        "puid" => Plain::Text(server.id.to_string().into_bytes()),
        "rid" => Plain::Int(known.process.events.revision(server).into()),
        "draining" => Plain::Bool(status.is_drained() || (status.weight == 0 && status.admin != Admin::Maintenance)),
        "backup" => Plain::Bool(server.backup),
        "dynamic" => Plain::Bool(known.process.events.is_added(server)),
        "cur" => Plain::Int(status.load.served.into()),
        "pend" => Plain::Int(status.load.queued.into()),
        "maxconn" => limit(status.full_limit),
        "weight" => Plain::Int(status.weight.into()),
        "addr" => Plain::from(&*shown(&known.process.outgoing.address(server))),
        "tracking" => server.tracking.leader.map_or(Plain::Nil, |leader| places([leader])),
        "trackers" => {
            let tracking = &server.tracking;
            places(tracking.followers.iter().chain(tracking.added.iter()).copied())
        }
        _ => return None,
    })
}

/// Returns numbers and texts of `show stat ... typed`, by name.
fn statistics(proxy: u32, kind: u32, number: u32) -> Option<Plain> {
    let words = ["show", "stat", &proxy.to_string(), &kind.to_string(), &number.to_string(), "typed"];
    let text = crate::run_command(&words.map(str::to_owned), None)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(4, ':');
        let (Some(place), Some(_), Some(form), Some(value)) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let Some(name) = place.split('.').nth(4) else { continue };
        let value = match (form, value.parse::<i64>()) {
            ("str", _) | (_, Err(_)) => Plain::from(value),
            (_, Ok(number)) => Plain::Int(number),
        };
        rows.push((Plain::from(name), value));
    }
    Some(Plain::Table(rows))
}

/// Adds the functions for proxies, servers and listeners.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set("proxy_of", lua.create_function(|_, (index, what): (usize, String)| Ok(proxy_of(index, &what)))?)?;
    native.set(
        "server_of",
        lua.create_function(|_, (proxy, index, what): (usize, usize, String)| Ok(server_of(proxy, index, &what)))?,
    )?;
    native.set(
        "statistics",
        lua.create_function(|_, (proxy, kind, number): (u32, u32, u32)| Ok(statistics(proxy, kind, number)))?,
    )?;
    native.set(
        "command",
        lua.create_function(|lua, (words, payload): (Vec<LuaString>, Option<LuaString>)| {
            let words: Vec<String> = words.iter().map(|word| config::text::from_bytes(&word.as_bytes())).collect();
            command(lua, words, payload.map(|payload| payload.as_bytes().to_vec()))
        })?,
    )?;
    native.set(
        "force",
        lua.create_function(|_, (proxy, server, checker, operation): (usize, usize, String, String)| {
            force_server(ServerPlace { proxy, server }, &checker, &operation);
            Ok(())
        })?,
    )?;
    native.set(
        "challenge_ready",
        lua.create_function(|_, (name, domain): (String, String)| {
            Ok(crate::process().and_then(|process| process.upkeep.acme.set_record(&name, &domain)))
        })?,
    )?;
    native.set(
        "shut_sessions",
        lua.create_function(|_, (proxy, server): (usize, usize)| {
            if let Some(process) = crate::here().map(|worker| worker.process.clone()) {
                rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
                    shut_sessions(&process, ServerPlace { proxy, server }, Cause::Killed).await;
                });
            }
            Ok(())
        })?,
    )
}

/// Whether a check can be overridden: not the health check of a server that tracks another one, nor a disabled agent
/// check.
fn is_checked(known: &ProcessView, proxy: &Proxy, server: &Server, checker: Checker) -> bool {
    let state = known.process.live.proxies.get(proxy.index);
    match checker {
        Checker::Health => server.tracking.leader.is_none(),
        Checker::Agent => {
            state.and_then(|state| state.health(server.index, checker)).is_some_and(|own| own.is_enabled())
        }
    }
}

/// Sets the operational state of a server, as if reported by one of its checks.
fn force_server(place: ServerPlace, checker: &str, operation: &str) {
    let checker = if checker == "health" { Checker::Health } else { Checker::Agent };
    let operation = match operation {
        "up" => Operation::Up,
        "stopping" => Operation::Stopping,
        _ => Operation::Down,
    };
    match crate::here() {
        None => order(Order::Force(place, checker, operation)),
        Some(worker) => force_at(&worker, place, checker, operation),
    }
}

fn force_at(worker: &Worker, place: ServerPlace, checker: Checker, operation: Operation) {
    if let Some(known) = ProcessView::now()
        && let Some((proxy, server)) = known.server(place.proxy, place.server)
        && is_checked(&known, proxy, server, checker)
    {
        force(worker, proxy, server, checker, operation, Orderer::Script);
    }
}

/// A change that a script orders before the process serves.
enum Order {
    /// A command of the runtime API, with its payload.
    Command(Vec<String>, Option<Vec<u8>>),
    /// A state for a server.
    Force(ServerPlace, Checker, Operation),
}

/// Changes to be executed by the first worker; `None`: done.
static ORDERS: Mutex<Option<Vec<Order>>> = Mutex::new(Some(Vec::new()));

fn order(order: Order) {
    if let Some(orders) = &mut *ORDERS.lock().unwrap_or_else(PoisonError::into_inner) {
        orders.push(order);
    }
}

/// Executes the changes ordered before the process serves. The first worker does so; the others wait until it has
/// finished.
pub(crate) fn perform_orders() {
    let mut orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner);
    for order in orders.take().into_iter().flatten() {
        match order {
            Order::Command(words, payload) => {
                let answer = crate::run_command(&words, payload.as_deref()).unwrap_or_default();
                let answer = String::from_utf8_lossy(answer.trim_ascii());
                if !answer.is_empty() {
                    let words = words.join(" ");
                    crate::script_messages::log(
                        None,
                        i64::from(config::spec::LogLevel::Notice as u8),
                        &format!("Lua init: {words}: {answer}"),
                    );
                }
            }
            Order::Force(place, checker, operation) => {
                if let Some(worker) = crate::here() {
                    force_at(&worker, place, checker, operation);
                }
            }
        }
    }
}

/// Returns the answer of a command, without the last line end; nil if it cannot be executed now.
fn command(lua: &Lua, words: Vec<String>, payload: Option<Vec<u8>>) -> mlua::Result<Value> {
    if crate::here().is_none() && crate::process().is_some() {
        order(Order::Command(words, payload));
        return lua.create_string("")?.into_lua(lua);
    }
    let Some(answer) = crate::run_command(&words, payload.as_deref()) else { return Ok(Value::Nil) };
    lua.create_string(answer.trim_ascii_end())?.into_lua(lua)
}
