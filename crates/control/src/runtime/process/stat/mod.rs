//! `show stat` and `clear counters` (management manual, sections 9.1 to 9.3). Must never buffer more than a few lines
//! of a long answer.

mod dump;

use config::spec::RuntimeLevel;
use policy::program::Program;

use super::super::{Call, Command, Pending, Run};
use crate::field::Form;
use crate::statistics::{JSON_SCHEMA, Object, StatisticsQuery, begin, end, kinds, line};
use engine::count_exchange;
use engine::resolve::Resolving;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "show stat",
        "show stat [desc|json|no-maint|typed|up]*",
        "report counters for each proxy and server",
        Run::Gradual(show_stat),
    ),
    Command::new("dump stats-file", "dump stats-file", "dump stats for restore", Run::Gradual(dump::dump)),
    Command::new("show schema json", "show schema json", "report schema used for stats", Run::Now(show_schema)),
    Command::new(
        "clear counters",
        "clear counters [all|server <bk>/<srv> [force]]",
        "clear max statistics counters (or all, or one server's)",
        Run::Gradual(clear_counters),
    )
    .at(RuntimeLevel::Operator),
];

/// Parses the words after `show stat`, without the domain. Three leading words select a proxy, a set of kinds and an
/// object.
fn read(words: &[String], program: &Program) -> Result<StatisticsQuery, &'static str> {
    let mut wish = StatisticsQuery::all(Form::Plain);
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

/// Splits `domain <name>` off the words. True: the domain of name servers.
fn read_domain(words: &[String]) -> Result<(bool, &[String]), &'static str> {
    match words {
        [domain, name, rest @ ..] if domain == "domain" => match name.as_str() {
            "proxy" => Ok((false, rest)),
            "resolvers" => Ok((true, rest)),
            _ => Err("Invalid statistics domain."),
        },
        [domain] if domain == "domain" => Err("Invalid statistics domain."),
        words => Ok((false, words)),
    }
}

fn show_stat<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let program = &call.generation.program;
        let read = read_domain(&call.words[2..]).and_then(|(names, words)| Ok((names, read(words, program)?)));
        let (of_resolvers, wish) = match read {
            Ok(read) => read,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        if of_resolvers {
            return super::resolvers::statistics(call.state, call.generation, call.answer, wish.form, wish.desc).await;
        }
        begin(call.answer, wish.form);
        let wish = StatisticsQuery { legends: call.conversation.level > RuntimeLevel::User, ..wish };
        let mut first = true;
        for proxy in wish.proxies(program) {
            for kind in kinds(proxy, wish.kinds) {
                let object = Object::new(call.state, program, proxy, kind, wish.counts_servers());
                if wish.wants(&object) {
                    line(call.answer, &object, &wish, first);
                    first = false;
                }
                call.answer.relieve().await?;
            }
        }
        end(call.answer, wish.form);
        Ok(())
    })
}

fn show_schema(call: &mut Call<'_, Worker>) {
    call.answer.push(JSON_SCHEMA);
}

/// HAProxy's message when a server's counters are shared with other processes.
const SHARED: &str = "Server counters are stored in a shared-memory stats file; clearing them breaks monotonicity for \
                      monitoring tools and affects all attached processes. Append 'force' to clear anyway.";

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
            if call.word(4) != "force" && count_exchange::shares_server(shared, serial) {
                call.refuse(SHARED);
                return Ok(());
            }
            engine::on_every_worker(shared, move |worker| worker.counters().clear_server(serial)).await;
            count_exchange::clear(shared, Some(serial)).await;
            shared.live.proxies[place.0].clear_changes(Some(place.1));
            call.notice("Server counters cleared.");
            return Ok(());
        }
        let all = call.word(2) == "all";
        if !all || call.permits(RuntimeLevel::Admin) {
            let clear = move |worker: &std::rc::Rc<Worker>| {
                worker.counters().clear(all);
                super::activity::clear(worker);
            };
            engine::on_every_worker(shared, clear).await;
            if all {
                count_exchange::clear(shared, None).await;
                shared.live.proxies.iter().for_each(|proxy| proxy.clear_changes(None));
                shared.service::<Resolving>().counts.iter().flatten().for_each(engine::resolve::Counts::clear);
            }
        }
        Ok(())
    })
}

/// Returns the indexes and the serial number of the server that `clear counters server` names.
fn find_server(call: &Call<'_, Worker>) -> Result<((usize, usize), usize), &'static str> {
    if call.conversation.level < RuntimeLevel::Admin {
        return Err("Permission denied");
    }
    super::servers::find(&call.generation.program, call.word(3))
        .map(|(proxy, server)| ((proxy.index, server.index), server.serial))
}
