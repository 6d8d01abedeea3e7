//! `show stat` and `clear counters` (management manual, sections 9.1 to 9.3). Owns which objects are shown and in which
//! form; the columns are tables. Must never hold more than a few lines of a long answer.

mod detail;
mod dump;
mod load;
mod modules;
mod object;
mod protocol;

use std::fmt::Write as _;

use config::spec::RuntimeLevel;
use policy::program::{Program, Proxy};

use self::object::{B, Column, F, Kind, L, Object, S};
use super::super::{Answer, Call, Command, Pending, Run};
use super::field::{Form, Value, json, typed};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "show stat",
        "show stat [desc|json|no-maint|typed|up]*",
        "report counters for each proxy and server",
        Run::Gradual(show_stat),
    ),
    Command::new("dump stats-file", "dump stats-file", "dump stats for restore", Run::Gradual(dump::dump)),
    Command::new(
        "clear counters",
        "clear counters [all|server <bk>/<srv> [force]]",
        "clear max statistics counters (or all, or one server's)",
        Run::Gradual(clear_counters),
    )
    .at(RuntimeLevel::Operator),
];

/// All columns in their order.
fn columns() -> impl Iterator<Item = &'static Column> {
    [load::COLUMNS, detail::COLUMNS, protocol::COLUMNS, modules::COLUMNS].into_iter().flatten()
}

/// Columns before those of the modules.
const OWN: usize = load::COLUMNS.len() + detail::COLUMNS.len() + protocol::COLUMNS.len();

/// What is asked for.
struct Wish {
    form: Form,
    desc: bool,
    up: bool,
    no_maint: bool,
    /// Name servers, not proxies.
    of_resolvers: bool,
    /// The number of a proxy; `None` for all.
    proxy: Option<u32>,
    kinds: u8,
    /// The number of a server or a listening address; `None` for all.
    id: Option<u32>,
}

impl Wish {
    /// From the words behind `show stat`.
    fn read(words: &[String], program: &Program) -> Result<Self, &'static str> {
        let (mut words, mut of_resolvers) = (words, false);
        if let Some((_, rest)) = words.split_first().filter(|(first, _)| *first == "domain") {
            match rest.split_first() {
                Some((domain, rest)) if domain == "proxy" => words = rest,
                Some((domain, rest)) if domain == "resolvers" => (words, of_resolvers) = (rest, true),
                _ => return Err("Invalid statistics domain."),
            }
        }
        let mut wish = Self {
            form: Form::Plain,
            desc: false,
            of_resolvers,
            up: false,
            no_maint: false,
            proxy: None,
            kinds: u8::MAX,
            id: None,
        };
        if let [proxy, kinds, id, ..] = words {
            match proxy.parse::<i64>() {
                Ok(number) => wish.proxy = u32::try_from(number).ok(),
                Err(_) => {
                    let named = program.proxies.iter().find(|one| *one.name == **proxy);
                    wish.proxy = Some(named.ok_or("No such proxy.")?.id);
                }
            }
            wish.kinds = kinds.parse::<i64>().unwrap_or(0) as u8;
            wish.id = id.parse::<i64>().ok().and_then(|number| u32::try_from(number).ok());
        }
        for word in words {
            match word.as_str() {
                "typed" => wish.form = Form::Typed,
                "json" => wish.form = Form::Json,
                "desc" => wish.desc = true,
                "up" => wish.up = true,
                "no-maint" => wish.no_maint = true,
                _ => {}
            }
        }
        Ok(wish)
    }

    fn wants(&self, object: &Object<'_>) -> bool {
        let named = matches!(object.kind, Kind::Frontend | Kind::Backend) || self.id.is_none_or(|id| id == object.id());
        let is_hidden = (self.up || self.no_maint) && object.is_in_maintenance() || self.up && object.is_down();
        named && !is_hidden
    }
}

fn show_stat<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let program = &call.generation.program;
        let wish = match Wish::read(&call.words[2..], program) {
            Ok(wish) => wish,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        if wish.of_resolvers {
            return super::resolvers::statistics((call.state, call.generation), call.answer, wish.form, wish.desc)
                .await;
        }
        begin(call.answer, wish.form);
        let mut first = true;
        for proxy in program.proxies.iter().filter(|proxy| wish.proxy.is_none_or(|id| id == proxy.id)) {
            for kind in kinds(proxy, wish.kinds) {
                let object = Object::new(call, proxy, kind, wish.up || wish.no_maint);
                if wish.wants(&object) {
                    line(call.answer, &object, &wish, first);
                    first = false;
                }
                call.answer.relieve().await?;
            }
        }
        if wish.form == Form::Json {
            call.answer.push("]\n");
        }
        Ok(())
    })
}

/// What a proxy shows, in its order.
fn kinds(proxy: &Proxy, wanted: u8) -> impl Iterator<Item = Kind<'_>> {
    let front = proxy.frontend.as_ref();
    let back = proxy.backend.as_ref();
    let binds = front.filter(|front| wanted & L != 0 && front.reception.socket_stats);
    let frontend = front.filter(|_| wanted & F != 0).map(|_| Kind::Frontend);
    let listeners = binds.into_iter().flat_map(|front| front.binds.iter().map(Kind::Listener));
    let servers = back.filter(|_| wanted & S != 0).into_iter().flat_map(|back| back.servers.iter().map(Kind::Server));
    let backend = back.filter(|_| wanted & B != 0).map(|_| Kind::Backend);
    let shown = !proxy.disabled;
    frontend.into_iter().chain(listeners).chain(servers).chain(backend).filter(move |_| shown)
}

fn begin(answer: &mut Answer, form: Form) {
    match form {
        Form::Plain => {
            answer.push("# ");
            for (at, column) in columns().enumerate() {
                if at == OWN {
                    answer.push("-,");
                }
                answer.push(column.field.name);
                answer.push(",");
            }
            answer.push("\n");
        }
        Form::Json => answer.push("["),
        Form::Typed => {}
    }
}

fn line(answer: &mut Answer, object: &Object<'_>, wish: &Wish, first: bool) {
    let values = columns().enumerate().map(|(at, column)| (at, column.field_of(object), column.of(object)));
    let (letter, name) = object.kind.names();
    let (proxy, id) = (object.proxy.id, object.id());
    match wish.form {
        Form::Plain => {
            for (at, _, value) in values {
                if at == OWN {
                    answer.push("-,");
                }
                cell(answer, &value);
            }
            answer.push("\n");
        }
        Form::Typed => {
            let prefix = format!("{letter}.{proxy}.{id}.");
            for (at, field, value) in values.filter(|(_, _, value)| *value != Value::None) {
                typed(answer, &prefix, at, &field, &value, wish.desc);
            }
        }
        Form::Json => {
            answer.push(if first { "[" } else { ",[" });
            let mut comma = "";
            for (at, field, value) in values.filter(|(_, _, value)| *value != Value::None) {
                let _ = write!(answer, "{comma}{{\"objType\":\"{name}\",\"proxyId\":{proxy},\"id\":{id},");
                json(answer, at, &field, &value);
                answer.push("}");
                comma = ",";
            }
            answer.push("]");
        }
    }
}

/// A value of a CSV line and the comma behind it; text that would break the line stands between quotes.
fn cell(answer: &mut Answer, value: &Value) {
    match value {
        Value::Text(text) if text.contains([',', '"', '\n', '\r']) => {
            answer.push("\"");
            answer.push(text.replace('"', "\"\""));
            answer.push("\",");
        }
        value => {
            let _ = write!(answer, "{value},");
        }
    }
}

/// Every worker clears its own cells.
fn clear_counters<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let shared = &call.state.process;
        if call.word(2) == "server" {
            let found = match find_server(call) {
                Ok(serial) => serial,
                Err(sentence) => {
                    call.refuse(sentence);
                    return Ok(());
                }
            };
            let (place, serial) = found;
            engine::on_every_worker(shared, move |worker| worker.tallies().clear_server(serial)).await;
            shared.live.proxies[place.0].clear_changes(Some(place.1));
            call.notice("Server counters cleared.");
            return Ok(());
        }
        let all = call.word(2) == "all";
        if !all || call.permits(RuntimeLevel::Admin) {
            let clear = move |worker: &std::rc::Rc<Worker>| {
                worker.tallies().clear(all);
                super::activity::clear(worker);
            };
            engine::on_every_worker(shared, clear).await;
            if all {
                shared.live.proxies.iter().for_each(|proxy| proxy.clear_changes(None));
                shared.resolving.counts.iter().flatten().for_each(engine::resolve::Counts::clear);
            }
        }
        Ok(())
    })
}

/// The place and the serial of the server that `clear counters server` names.
fn find_server(call: &Call<'_, Worker>) -> Result<((usize, usize), usize), &'static str> {
    if call.conversation.level < RuntimeLevel::Admin {
        return Err("Permission denied");
    }
    super::servers::find(&call.generation.program, call.word(3))
        .map(|(proxy, server)| ((proxy.index, server.index), server.serial))
}
