//! `set anon` and `show anon`: replaces names and addresses in answers by hashes (management manual, section 9.3). Must
//! never show a key without the required level.

use config::spec::RuntimeLevel;

use super::super::call::Anonymization;
use super::super::{Call, Command, Run};
use engine::host::AnonymousKey;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "set anon global-key",
        "set anon global-key <value>",
        "change the global anonymizing key",
        Run::Now(set_global_key),
    ),
    Command::new("set anon off", "set anon off", "deactivate the anonymized mode", Run::Now(set_off)),
    Command::new("set anon on", "set anon on [value]", "activate the anonymized mode", Run::Now(set_on)),
    Command::new("show anon", "show anon", "display the current state of anonymized mode", Run::Now(show_anon)),
];

fn set_global_key(call: &mut Call<'_, Worker>) {
    if !call.permits(RuntimeLevel::Admin) {
        return;
    }
    match call.word(3).parse::<u32>() {
        Ok(key) => call.state.process.service::<AnonymousKey>().set(key),
        Err(_) => call.refuse("Value out of range (0 to 4294967295 expected)."),
    }
}

fn set_off(call: &mut Call<'_, Worker>) {
    call.conversation.anonymous = Anonymization(None);
}

/// Without a key, uses the global key, or else a random one.
fn set_on(call: &mut Call<'_, Worker>) {
    let key = match call.word(3) {
        "" => match call.state.process.service::<AnonymousKey>().get() {
            0 => (rt::random() as u32).max(1),
            key => key,
        },
        word => match word.parse::<u32>() {
            Ok(key) if key > 0 => key,
            _ => {
                call.refuse("Value out of range (1 to 4294967295 expected).");
                return;
            }
        },
    };
    call.conversation.anonymous = Anonymization(Some(key));
}

fn show_anon(call: &mut Call<'_, Worker>) {
    match call.conversation.anonymous.0 {
        None => call.answer.push("Anonymized mode disabled\n"),
        Some(key) => {
            call.answer.push("Anonymized mode enabled\n");
            if call.conversation.level >= RuntimeLevel::Operator {
                call.answer.push(format!("Key : {key}\n"));
            }
        }
    }
}
