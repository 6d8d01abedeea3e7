//! `show sess` (management manual, section 9.3): the current streams of each worker. Must never block a worker: its
//! sessions are read in batches.

use std::fmt::Write as _;
use std::rc::Rc;

use base::Key;
use config::spec::{Mode, RuntimeLevel};
use config::units;
use policy::program::Program;

use super::super::call::Anonymization;
use super::super::{Call, Command, Disconnected, Pending, Run};
use super::servers::{find, find_backend};
use engine::service::session_shutdown;
use engine::session::task::StreamTask;
use engine::stream_state::Cause;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "show sess",
        "show sess [help|<id>|all] [opts...]",
        "report the list of current streams or dump this exact stream",
        Run::Gradual(show_sess),
    )
    .at(RuntimeLevel::Operator),
    Command::new("shutdown session", "shutdown session [id]", "kill a specific session", Run::Gradual(shut_one))
        .at(RuntimeLevel::Admin),
    Command::new(
        "shutdown sessions server",
        "shutdown sessions server <bk>/<srv>",
        "kill sessions on a server",
        Run::Gradual(shut_at_server),
    )
    .at(RuntimeLevel::Admin),
];

/// Sessions per batch.
const BATCH: usize = 100;

const HELP: &str = "Usage: show sess [<id> | all | help] [<options>*]
Dumps active streams (formerly called 'sessions'). Available selectors:
   <id>         dump only this stream identifier (0x...)
   all          dump all matching streams in large format
   help         show this message
   susp         report streams considered suspicious
Available options: 
   show-uri     also display the transaction URI, if available
   older <age>  only display streams older than <age> seconds
   server <b/s> only show streams attached to this backend+server
   backend <b>  only show streams attached to this backend
   frontend <f> only show streams attached to this frontend
Without any argument, all streams are dumped in a shorter format.
";

/// The arguments of the command.
#[derive(Debug, Clone, Default)]
struct SessionsQuery {
    id: Option<u64>,
    large: bool,
    uri: bool,
    /// Minimum age in milliseconds.
    older: Option<u64>,
    frontend: Option<String>,
    backend: Option<String>,
    server: Option<String>,
    /// Only streams that appear to be stuck.
    suspicious: bool,
    hiding: Anonymization,
}

impl SessionsQuery {
    /// Whether it selects a stream with that age in milliseconds and these names of its proxies and its server.
    fn admits(&self, id: u64, age: u64, frontend: &str, backend: Option<&str>, server: Option<&str>) -> bool {
        let named = |wanted: &Option<String>, name: Option<&str>| wanted.as_deref().is_none_or(|one| name == Some(one));
        // No session is suspicious: each has a timeout or a running task.
        !self.suspicious
            && self.id.is_none_or(|wanted| wanted == id)
            && self.older.is_none_or(|older| age >= older)
            && named(&self.frontend, Some(frontend))
            && named(&self.backend, backend)
            && named(&self.server, server)
    }

    fn read(program: &Program, words: &[String]) -> Result<Self, String> {
        let is_frontend = |name: &str| program.proxies.iter().any(|one| one.frontend.is_some() && *one.name == *name);
        let mut wish = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut name = |missing: &str| words.next().cloned().ok_or_else(|| missing.to_owned());
            match word.as_str() {
                "all" => wish.large = true,
                "show-uri" => wish.uri = true,
                "older" => {
                    let age = name("Expects a minimum age (in seconds by default).")?;
                    let seconds = age.parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1_000));
                    let age = seconds.or_else(|| units::milliseconds(&age).ok().map(|time| time.value));
                    wish.older = Some(age.ok_or("Invalid age.")?);
                }
                "susp" => wish.suspicious = true,
                "frontend" => {
                    let name = name("Missing frontend name.")?;
                    if !is_frontend(&name) {
                        return Err("No such frontend.".to_owned());
                    }
                    wish.frontend = Some(name);
                }
                "backend" => {
                    let proxy = find_backend(program, &name("Missing backend name.")?)?;
                    wish.backend = Some(proxy.name.to_string());
                }
                "server" => {
                    let (proxy, server) = find(program, &name("Missing server name (<backend>/<server>).")?)?;
                    wish.server = Some(format!("{}/{}", proxy.name, server.name));
                }
                id if id.starts_with("0x") => match u64::from_str_radix(&id[2..], 16) {
                    Ok(number) => (wish.id, wish.large) = (Some(number), true),
                    Err(_) => return Err("Session not found.".to_owned()),
                },
                "help" => return Err(HELP.to_owned()),
                other => return Err(format!("Unsupported option '{other}', try 'help' for more info.")),
            }
        }
        Ok(wish)
    }
}

fn show_sess<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let wish = match SessionsQuery::read(&call.generation.program, &call.words[2..]) {
            Ok(wish) => SessionsQuery { hiding: call.conversation.anonymous, ..wish },
            Err(sentence) => {
                call.refuse(&sentence);
                return Ok(());
            }
        };
        let mut found = false;
        for worker in 0..call.state.process.workers() {
            found |= show_worker(call, worker, &wish).await?;
        }
        if wish.id.is_some() && !found {
            call.answer.push("Session not found.\n");
        }
        Ok(())
    })
}

/// Shows the streams of a worker. Returns true if there were any.
async fn show_worker(call: &mut Call<'_, Worker>, number: usize, wish: &SessionsQuery) -> Result<bool, Disconnected> {
    let mut from = None;
    let mut found = false;
    loop {
        let wish = wish.clone();
        let batch = engine::on_one_worker(number, move |worker| describe(worker, &wish, from)).await;
        let Some((text, last)) = batch else { return Ok(found) };
        found |= !text.is_empty();
        call.answer.push(text);
        call.answer.relieve().await?;
        match last {
            Some(last) => from = Some(last),
            None => return Ok(found),
        }
    }
}

/// Returns the lines of a batch of sessions after `from`, and the key to continue after.
fn describe(worker: &Rc<Worker>, wish: &SessionsQuery, from: Option<u64>) -> (String, Option<u64>) {
    let mut text = String::new();
    let sessions = worker.tasks_behind(from, BATCH);
    let last = if sessions.len() < BATCH { None } else { sessions.last().map(|(key, _)| key.to_bits()) };
    for (key, session) in sessions {
        line(&session, key, wish, &mut text);
    }
    (text, last)
}

/// Number of bits for the session's key in an id; the bits above hold its worker's number, from 1.
const OWN_BITS: u32 = 48;

/// Returns the id of a session, unique over all workers.
pub(crate) fn id_of(worker: usize, key: Key) -> u64 {
    ((worker as u64 + 1) << OWN_BITS) | own_bits(key.to_bits())
}

const fn own_bits(bits: u64) -> u64 {
    bits & ((1 << OWN_BITS) - 1)
}

fn shut_one<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let id = call.word(2).strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let Some(id) = id else {
            call.refuse("Session pointer expected (use 'show sess').");
            return Ok(());
        };
        let number = (id >> OWN_BITS).checked_sub(1).and_then(|number| usize::try_from(number).ok());
        let killed = match number.filter(|number| *number < call.state.process.workers()) {
            Some(number) => engine::on_one_worker(number, move |worker| kill(worker, own_bits(id))).await,
            None => None,
        };
        if killed != Some(true) {
            call.refuse("No such session (use 'show sess').");
        }
        Ok(())
    })
}

fn shut_at_server<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let place = match super::servers::find(&call.generation.program, call.word(3)) {
            Ok((proxy, server)) => proxy.place_of(server),
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        session_shutdown::shut_sessions(&call.state.process, place, Cause::Killed).await;
        Ok(())
    })
}

/// Kills the session with this key. False: there is none, or it has no stream.
fn kill(worker: &Rc<Worker>, bits: u64) -> bool {
    let place = bits as u32;
    let found = worker.tasks_behind(place.checked_sub(1).map(u64::from), 1).pop();
    found.is_some_and(|(key, session)| own_bits(key.to_bits()) == bits && session.kill(Cause::Killed))
}

fn line(session: &StreamTask, key: Key, wish: &SessionsQuery, text: &mut String) {
    let worker = &session.worker;
    let Some(facts) = session.current() else { return };
    let Ok(facts) = facts.try_borrow() else { return };
    let id = id_of(worker.id, key);
    let backend = facts.route.backend.map(|index| session.proxy_at(index));
    let server = backend.and_then(|proxy| proxy.backend.as_ref()).zip(facts.route.server);
    let server = server.and_then(|(backend, server)| backend.servers.get(server));
    let age = rt::now().millis_since(facts.timings.start);
    let frontend = session.proxy();
    let full = backend.zip(server).map(|(backend, server)| format!("{}/{}", backend.name, server.name));
    if !wish.admits(id, age, &frontend.name, backend.map(|backend| &*backend.name), full.as_deref()) {
        return;
    }
    let (protocol, source) = match facts.client(session) {
        Some(client) if client.is_ipv6() => ("tcpv6", client.to_string()),
        Some(client) => ("tcpv4", client.to_string()),
        None => ("unix_stream", format!("unix:{}", session.bind().map_or(0, |bind| bind.id))),
    };
    let hide = |name| wish.hiding.name(name);
    let source = if source.starts_with("unix:") { source.into() } else { wish.hiding.address(&source) };
    let (back, own) =
        (backend.map_or("<NONE>".into(), |one| hide(&one.name)), server.map_or("<none>".into(), |one| hide(&one.name)));
    let front = hide(&frontend.name);
    let mode = |mode: Mode| if mode == Mode::Http { "http" } else { "tcp" };
    if wish.large {
        let mut date = Vec::new();
        let start = facts.info.start_date;
        expression::log_format::date_with_millis(&mut date, start, rt::local_offset(start.seconds));
        let bind = session.bind();
        let _ = write!(
            text,
            "{id:#x}: [{}] id={} proto={protocol} source={source}\n  flags=0x0, conn_retries={}, in={} out={} \
             age={}s\n  frontend={front} (id={} mode={}), listener={} (id={})\n  backend={back} (id={} mode={})\n  \
             server={own} (id={})\n",
            String::from_utf8_lossy(&date),
            key.to_bits() & 0xffff_ffff,
            facts.attempts.retries,
            facts.accounting.bytes.bytes_in,
            facts.accounting.bytes.bytes_out,
            age / 1_000,
            frontend.id,
            mode(frontend.mode),
            bind.map_or("?".into(), |bind| hide(&bind.name)),
            bind.map_or(0, |bind| bind.id),
            backend.map_or(-1, |one| i64::from(one.id)),
            backend.map_or("-", |one| mode(one.mode)),
            server.map_or(-1, |one| i64::from(one.id)),
        );
    } else {
        let _ = write!(
            text,
            "{id:#x}: proto={protocol} src={source} fe={front} be={back} srv={own} ts=00 epoch=0 age={}s calls=0 rate=0 \
             cpu=0 lat=0 rq[f=000000h,i={},an=00h,ax=] rp[f=000000h,i={},an=00h,ax=] rc={}",
            age / 1_000,
            facts.accounting.bytes.bytes_in,
            facts.accounting.bytes.bytes_out,
            facts.attempts.retries,
        );
    }
    if wish.uri && facts.info.has_request {
        let uri = facts.request.target().escape_ascii().to_string();
        let _ = write!(text, " uri=\"{}\"", hide(&uri));
    }
    if !wish.large {
        text.push('\n');
    }
}
