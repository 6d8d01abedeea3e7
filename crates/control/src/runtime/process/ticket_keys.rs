//! Session ticket keys from files (management manual, section 9.3, `tls-keys`, `ssl tls-key`). Must never print a key
//! without admin level.

use std::fmt::Write as _;

use base::base64;
use config::spec::RuntimeLevel;
use engine::worker::Worker;
use policy::program::Program;
use tls::ticket_keys::TicketKeys;

use super::super::{Call, Command, Run};

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("set ssl tls-key", "set ssl tls-key [id|file] <key>", "set the next TLS key for the <id> or <file> listener to <key>", Run::Now(set)).at(RuntimeLevel::Admin),
    Command::new("show tls-keys", "show tls-keys [id|*]", "show tls keys references or dump tls ticket keys when id specified", Run::Now(show)).at(RuntimeLevel::Admin),
];

/// Finds the keys of a file: by `#` and its number, or by its name.
fn find<'p>(program: &'p Program, written: &str) -> Option<(usize, &'p TicketKeys)> {
    let all = program.tls.ticket_keys.iter().enumerate();
    let mut found = all.filter(|(id, keys)| match written.strip_prefix('#') {
        Some(number) => number.parse() == Ok(*id),
        None => *keys.name == *written,
    });
    found.next().map(|(id, keys)| (id, &**keys))
}

fn show(call: &mut Call<'_, Worker>) {
    let program = &call.generation.program;
    let wanted = call.word(2);
    if wanted.is_empty() {
        let mut text = "# id (file)\n".to_owned();
        for (id, keys) in program.tls.ticket_keys.iter().enumerate() {
            let _ = writeln!(text, "{id} ({})", keys.name);
        }
        call.answer.push(text);
        return;
    }
    let found: Vec<_> = match wanted {
        "*" => program.tls.ticket_keys.iter().map(|keys| &**keys).enumerate().collect(),
        wanted => find(program, wanted).into_iter().collect(),
    };
    if found.is_empty() && wanted != "*" {
        call.refuse("'show tls-keys' unable to locate referenced filename");
        return;
    }
    let mut text = "# id secret\n".to_owned();
    for (id, keys) in found {
        let _ = writeln!(text, "# {id} ({})", keys.name);
        for (place, key) in keys.secrets().iter().enumerate() {
            let mut encoded = Vec::new();
            base64::encode(key, |byte| encoded.push(byte));
            let _ = writeln!(text, "{id}.{place} {}", String::from_utf8_lossy(&encoded));
        }
    }
    call.answer.push(text);
}

fn set(call: &mut Call<'_, Worker>) {
    let (name, key) = (call.word(3), call.word(4));
    if name.is_empty() || key.is_empty() {
        call.refuse("'set ssl tls-key' expects a filename and the new TLS key in base64 encoding.");
        return;
    }
    let found = find(&call.generation.program, name);
    let refused = match (found, base64::decoded(key.as_bytes())) {
        (None, _) => Some("'set ssl tls-key' unable to locate referenced filename"),
        (_, None) => Some("'set ssl tls-key' received invalid base64 encoded TLS key."),
        (Some((_, keys)), Some(key)) if !keys.rotate(&key) => Some("'set ssl tls-key' received a key of wrong size."),
        _ => None,
    };
    match refused {
        Some(why) => call.refuse(why),
        None => call.inform("TLS ticket key updated!"),
    }
}
