//! The commands of the protocol itself, which every command set has. Must never touch the state of the process.

use std::marker::PhantomData;
use std::time::Duration;

use config::spec::{RuntimeLevel, SeverityOutput};
use config::units;

use super::super::call::{Conversation, Prompt};
use super::super::{Call, Disconnected, help};
use super::{Command, CommandTarget, Condition, Pending, Run};

/// Holds the table for a type of state.
pub(super) struct Basic<S>(PhantomData<S>);

impl<S: CommandTarget> Basic<S> {
    pub(super) const TABLE: &'static [Command<S>] = &[
        Command::new("echo", "echo <text>", "print text to the output", Run::Now(echo)),
        Command::new("experimental-mode", "", "allow commands that may still change", Run::Now(experimental_mode))
            .at(RuntimeLevel::Admin),
        Command::new("expert-mode", "", "allow commands that can do harm", Run::Now(expert_mode))
            .at(RuntimeLevel::Admin),
        Command::new("help", "help [<command>]", "list matching or all commands", Run::Now(help::help)),
        Command::new(
            "operator",
            "operator",
            "lower the level of the current CLI session to operator",
            Run::Now(operator),
        )
        .at(RuntimeLevel::Operator),
        Command::new(
            "prompt",
            "prompt [help | n | i | p | timed ]*",
            "toggle interactive mode with prompt",
            Run::Now(prompt),
        ),
        Command::new("quit", "quit", "disconnect", Run::Now(quit)),
        Command::new(
            "set severity-output",
            "set severity-output [none|number|string]",
            "set presence of severity level in feedback information",
            Run::Now(set_severity_output),
        ),
        Command::new("set timeout", "set timeout [cli] <delay>", "change a timeout setting", Run::Now(set_timeout)),
        Command::new(
            "show cli level",
            "show cli level",
            "display the level of the current CLI session",
            Run::Now(show_cli_level),
        ),
        Command::new("show version", "show version", "show version of the current process", Run::Now(show_version)),
        Command::new("user", "user", "lower the level of the current CLI session to user", Run::Now(user)),
        Command::new(
            "wait",
            "wait {-h|<delay_ms>} cond [args...]",
            "wait the specified delay or condition (-h to see list)",
            Run::Gradual(wait),
        )
        .at(RuntimeLevel::Admin),
    ];
}

fn echo<S: CommandTarget>(call: &mut Call<'_, S>) {
    let text = call.words[1..].join(" ");
    call.inform(&text);
}

fn switch<S: CommandTarget>(call: &mut Call<'_, S>, name: &str, of: fn(&mut Conversation) -> &mut bool) {
    if call.words.len() < 2 {
        let state = if *of(call.conversation) { "ON" } else { "OFF" };
        call.inform(&format!("{name} is {state}"));
    } else {
        *of(call.conversation) = call.word(1) == "on";
    }
}

fn experimental_mode<S: CommandTarget>(call: &mut Call<'_, S>) {
    switch(call, "experimental-mode", |conversation| &mut conversation.experimental);
}

fn expert_mode<S: CommandTarget>(call: &mut Call<'_, S>) {
    switch(call, "expert-mode", |conversation| &mut conversation.expert);
}

fn lower<S: CommandTarget>(call: &mut Call<'_, S>, level: RuntimeLevel) {
    call.conversation.level = call.conversation.level.min(level);
}

fn operator<S: CommandTarget>(call: &mut Call<'_, S>) {
    lower(call, RuntimeLevel::Operator);
}

fn user<S: CommandTarget>(call: &mut Call<'_, S>) {
    lower(call, RuntimeLevel::User);
}

fn quit<S: CommandTarget>(call: &mut Call<'_, S>) {
    call.conversation.leaving = true;
}

const PROMPT_HELP: &str = "Usage: prompt [help | n | i | p | timed]*
Changes the default prompt and interactive mode. Available options:
  help    display this help
  n       set to single-command mode (no prompt, single command)
  i       set to interactive mode only (no prompt, multi-command)
  p       set to prompt+interactive mode (prompt + multi-command)
  timed   toggle displaying the current date in the prompt
Without any argument, toggles between n/i->p, p->n.
";

/// The same for sockets without single-command mode.
const PROMPT_HELP_INTERACTIVE: &str = "Usage: prompt [help | i | p | timed]*
Changes the default prompt and interactive mode. Available options:
  help    display this help
  i       set to interactive mode only (no prompt, multi-command)
  p       set to prompt+interactive mode (prompt + multi-command)
  timed   toggle displaying the current date in the prompt
Without any argument, toggles between i<->p.
";

fn prompt<S: CommandTarget>(call: &mut Call<'_, S>) {
    let is_interactive = call.state.is_interactive();
    if call.words.len() < 2 {
        let shown = call.conversation.prompt == Prompt::Shown;
        let other = if is_interactive { Prompt::Silent } else { Prompt::Single };
        call.conversation.prompt = if shown { other } else { Prompt::Shown };
    }
    for at in 1..call.words.len() {
        match call.word(at) {
            "n" if !is_interactive => call.conversation.prompt = Prompt::Single,
            "i" => call.conversation.prompt = Prompt::Silent,
            "p" => call.conversation.prompt = Prompt::Shown,
            "timed" => {
                call.conversation.prompt = Prompt::Shown;
                call.conversation.timed = !call.conversation.timed;
            }
            _ => {
                call.refuse(if is_interactive { PROMPT_HELP_INTERACTIVE } else { PROMPT_HELP });
                return;
            }
        }
    }
}

fn set_severity_output<S: CommandTarget>(call: &mut Call<'_, S>) {
    match SeverityOutput::from_name(call.word(2)) {
        Some(output) => call.conversation.severity_output = output,
        None => call.refuse("one of 'none', 'number', 'string' is a required argument"),
    }
}

/// HAProxy's timeouts are signed 32-bit numbers of milliseconds.
const LONGEST_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

fn set_timeout<S: CommandTarget>(call: &mut Call<'_, S>) {
    if call.word(2) != "cli" {
        call.refuse("'set timeout' only supports 'cli'.");
        return;
    }
    // Without a unit, the number is in seconds.
    let written = call.word(3);
    let seconds = written.parse().ok().map(Duration::from_secs);
    let time = seconds.or_else(|| units::milliseconds(written).ok().map(|time| Duration::from_millis(time.value)));
    match time {
        _ if written.is_empty() => call.refuse("Expects an integer value."),
        Some(time) if !time.is_zero() && time <= LONGEST_TIMEOUT => call.conversation.timeout = time,
        _ => call.refuse("Invalid timeout value."),
    }
}

fn show_cli_level<S: CommandTarget>(call: &mut Call<'_, S>) {
    call.inform(call.conversation.level.name());
}

fn show_version<S: CommandTarget>(call: &mut Call<'_, S>) {
    let version = call.state.version().to_owned();
    call.inform(&version);
}

const WAIT_HELP: &str = "Usage: wait {-h|<duration>} [condition [args...]]
  - '-h' displays this help
  - <duration> is the maximum wait time, optionally suffixed by the unit among
    'us', 'ms', 's', 'm', 'h', and 'd'. ; the default unit is milliseconds.
  - <condition> indicates what to wait for, no longer than the specified
    duration. Supported conditions are:
    - <none> : by default, just sleep for the specified duration.
";

/// Polling interval of a condition.
const LOOK: Duration = Duration::from_millis(10);

/// Returns the help of `wait`.
fn wait_help<S: CommandTarget>(state: &S) -> String {
    let conditions = state.conditions().iter();
    WAIT_HELP.to_owned() + &conditions.map(|(form, doc)| format!("    - {form} : {doc}\n")).collect::<String>()
}

fn wait<'a, S: CommandTarget>(call: &'a mut Call<'_, S>) -> Pending<'a> {
    let time = match (call.word(1), call.word(2)) {
        ("-h", _) | (_, "-h") => Err(wait_help(call.state)),
        ("", _) => Err("Expects a duration in milliseconds.".to_owned()),
        (written, condition) => match units::milliseconds(written) {
            Ok(time) if time.value == 0 => Err("Invalid duration.".to_owned()),
            Err(_) => Err("Invalid duration.".to_owned()),
            Ok(_) if !condition.is_empty() && call.state.condition(condition, call.word(3)).is_none() => {
                Err(wait_help(call.state))
            }
            Ok(time) => Ok(Duration::from_millis(time.value)),
        },
    };
    Box::pin(async move {
        match time {
            Ok(time) => wait_until(call, time).await,
            Err(sentence) => {
                call.refuse(&sentence);
                Ok(())
            }
        }
    })
}

async fn wait_until<S: CommandTarget>(call: &mut Call<'_, S>, most: Duration) -> Result<(), Disconnected> {
    let deadline = rt::now() + most;
    loop {
        let left = deadline.saturating_since(rt::now());
        match call.state.condition(call.word(2), call.word(3)) {
            None => {
                call.answer.pause(most).await?;
                call.inform("Done.");
            }
            Some(Condition::Met) => call.inform("Done."),
            Some(Condition::Refused(sentence)) => call.refuse(&sentence),
            Some(Condition::Failed(sentence)) => call.refuse(&format!("Failed. {sentence}")),
            Some(Condition::Unmet(why)) if left.is_zero() => call.refuse(&format!("Wait delay expired. {why}")),
            Some(Condition::Unmet(_)) => {
                call.answer.pause(LOOK.min(left)).await?;
                continue;
            }
        }
        return Ok(());
    }
}
