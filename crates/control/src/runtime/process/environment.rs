//! `show env` (management manual, section 9.3). Must never show a variable that the configuration has removed.

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show env",
    "show env [var]",
    "dump environment variables known to the process",
    Run::Gradual(show_env),
)
.at(RuntimeLevel::Operator)];

fn show_env<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let name = call.word(2).to_owned();
        let variables = &call.state.process.host.environment;
        if !name.is_empty() {
            let found = variables.iter().find(|variable| variable.split('=').next() == Some(name.as_str()));
            match found {
                Some(variable) => call.answer.push(format!("{variable}\n")),
                None => call.refuse("Variable not found"),
            }
            return Ok(());
        }
        for variable in variables {
            call.answer.push(format!("{variable}\n"));
            call.answer.relieve().await?;
        }
        Ok(())
    })
}
