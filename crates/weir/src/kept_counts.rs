//! Reads the configured `stats-file` at the start, with HAProxy's messages. Must never be used once connections are
//! accepted.

use crate::messages::Messages;
use config::spec::Spec;
use control::saved_state::Owners;
use live::counters::{CounterLine, KeptCounts};
use policy::program::Program;
use std::io::Read;

/// Maximum number of bytes that are read.
const MOST: u64 = 64 << 20;

/// Returns the saved counters.
pub fn read(spec: &Spec, program: &Program, messages: &mut Messages) -> Vec<CounterLine> {
    let Some(path) = &spec.global.kept.stats_file else { return Vec::new() };
    let Ok(file) = std::fs::File::open(path) else {
        messages.warning(&format!("config: Can't load stats-file '{path}': cannot open file."));
        return Vec::new();
    };
    let mut text = Vec::new();
    // After a read error, the bytes read so far are used: a folder counts as empty.
    let _ = file.take(MOST).read_to_end(&mut text);
    let owners = Owners::of(program);
    let found = KeptCounts::read(&text, |side, guid| owners.is_known(side, guid));
    for line in &found.ignored {
        messages.warning(&format!("config: Ignored stats-file line {line} in file '{path}'."));
    }
    if found.is_invalid {
        messages.warning(&format!("config: Invalid stats-file format in file '{path}'."));
    }
    found.lines
}
