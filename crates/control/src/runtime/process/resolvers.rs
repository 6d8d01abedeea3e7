//! `show resolvers`, and the statistics of name servers (management manual, sections 9.1 and 9.3). Must never query
//! one.

use std::fmt::Write as _;

use policy::program::{Nameserver, Resolvers};

use super::super::{Answer, Call, Command, Disconnected, Pending, Run};
use crate::field::{Field, Form, Value, describe, json_without_process};
use crate::statistics::NAME_SERVER_COUNTS;
use engine::generation::Generation;
use engine::resolve::Counts;
use engine::resolve::Resolving;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show resolvers",
    "show resolvers [id]",
    "dumps counters from all resolvers section and associated name servers",
    Run::Gradual(show),
)];

/// Returns every name server of a section with its counters.
fn nameservers<'a>(
    worker: &'a Worker,
    generation: &'a Generation,
    section: usize,
) -> impl Iterator<Item = (&'a Resolvers, &'a Nameserver, &'a Counts)> {
    let written = generation.program.resolvers.get(section);
    let counts = worker.process.service::<Resolving>().counts.get(section);
    written.zip(counts).into_iter().flat_map(|(written, counts)| {
        written.nameservers.iter().zip(counts).map(move |(nameserver, counts)| (written, nameserver, counts))
    })
}

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let wanted = call.word(2).to_owned();
        let sections = &call.generation.program.resolvers;
        if !wanted.is_empty() && !sections.iter().any(|section| *section.name == *wanted) {
            call.refuse("Can't find that resolvers section");
            return Ok(());
        }
        for (index, section) in sections.iter().enumerate() {
            if !wanted.is_empty() && *section.name != *wanted {
                continue;
            }
            let _ = writeln!(call.answer, "Resolvers section {}", section.name);
            for (_, nameserver, counts) in nameservers(call.state, call.generation, index) {
                let _ = writeln!(call.answer, " nameserver {}:", nameserver.name);
                for (_, name, count) in counts.rows() {
                    let _ = writeln!(call.answer, "  {:<13}{}", format!("{name}:"), count.value());
                }
                call.answer.relieve().await?;
            }
        }
        Ok(())
    })
}

/// `show stat domain resolvers`.
pub(super) async fn statistics(
    worker: &Worker,
    generation: &Generation,
    answer: &mut Answer,
    form: Form,
    desc: bool,
) -> Result<(), Disconnected> {
    match form {
        Form::Plain => {
            answer.push("# id,pid,");
            for (name, _, _) in Counts::default().rows() {
                answer.push(name);
                answer.push(",");
            }
            answer.push("\n");
        }
        Form::Json => answer.push("["),
        Form::Typed => {}
    }
    let mut comma = "";
    for section in 0..generation.program.resolvers.len() {
        for (written, nameserver, counts) in nameservers(worker, generation, section) {
            if form == Form::Json {
                answer.push(std::mem::replace(&mut comma, ","));
            }
            line(answer, written, nameserver, counts, form, desc);
            answer.relieve().await?;
        }
    }
    if form == Form::Json {
        answer.push("]\n");
    }
    Ok(())
}

fn line(answer: &mut Answer, section: &Resolvers, nameserver: &Nameserver, counts: &Counts, form: Form, desc: bool) {
    let named = [
        (Field { name: "id", tags: "CGPV", doc: "ID" }, Value::text(&*nameserver.name)),
        (Field { name: "pid", tags: "CGPV", doc: "Parent ID" }, Value::text(&*section.name)),
    ];
    let counted = counts
        .rows()
        .into_iter()
        .zip(NAME_SERVER_COUNTS)
        .map(|((name, _, count), doc)| (Field { name, tags: "MGPV", doc }, Value::U64(count.value())));
    let mut comma = if form == Form::Json { "[{" } else { "" };
    for (at, (field, value)) in named.into_iter().chain(counted).enumerate() {
        match form {
            Form::Plain => {
                let _ = write!(answer, "{value},");
            }
            Form::Typed => {
                let _ = write!(answer, "N.{at}.{}:{}:{}:{value}", field.name, field.tags, value.kind());
                describe(answer, &field, desc);
            }
            Form::Json => {
                answer.push(comma);
                json_without_process(answer, at, &field, &value);
                answer.push("}");
                comma = ",{";
            }
        }
    }
    match form {
        Form::Plain => answer.push("\n"),
        Form::Json => answer.push("]"),
        Form::Typed => {}
    }
}
