//! `show events`: lists ring buffers and their contents (management manual, section 9.3). Must never hold a ring's lock
//! while it waits for the peer to read.

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Disconnected, Run};
use engine::worker::Worker;

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("show events", "show events [<sink>] [-w] [-n] [-0]", "show event sink state", Run::Gradual(|call| Box::pin(show(call)))),
];

/// Approximate size of a piece of the answer in bytes.
const PIECE: usize = 16 * 1024;

/// The arguments after the ring's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct EventsOptions {
    /// `-w`: continue with new lines.
    waits: bool,
    /// `-n`: skip existing lines.
    only_new: bool,
    /// `-0`: end each line with a NUL byte.
    nul: bool,
}

impl EventsOptions {
    /// Parses the arguments. `None`: invalid.
    fn parse(words: &[String]) -> Option<Self> {
        let mut wanted = Self::default();
        for word in words.iter().filter(|word| !word.is_empty()) {
            for letter in word.strip_prefix('-').filter(|letters| !letters.is_empty())?.chars() {
                match letter {
                    'w' => wanted.waits = true,
                    'n' => wanted.only_new = true,
                    '0' => wanted.nul = true,
                    _ => return None,
                }
            }
        }
        Some(wanted)
    }
}

async fn show(call: &mut Call<'_, Worker>) -> Result<(), Disconnected> {
    let targets = &call.state.process.log_targets;
    let name = call.word(2).to_owned();
    if name.is_empty() {
        let mut list = "Supported events sinks are listed below. Add -0(zero), -w(wait), -n(new). Any key to stop.\n\
                        \x20   stdout     : type=fd, 0 dropped, standard output (fd#1)\n\
                        \x20   stderr     : type=fd, 0 dropped, standard output (fd#2)\n"
            .to_owned();
        for ring in targets.named_rings() {
            let (name, dropped, description) = (ring.name(), ring.dropped(), ring.description());
            list.push_str(&format!("    {name:<10} : type=buffer, {dropped} dropped, {description}\n"));
        }
        call.answer.push(list);
        return Ok(());
    }
    // Any level may list the rings; their contents require operator level.
    if !call.permits(RuntimeLevel::Operator) {
        return Ok(());
    }
    if matches!(name.as_str(), "stdout" | "stderr") {
        call.inform("Nothing to report for this sink");
        return Ok(());
    }
    let Some(ring) = targets.named_rings().find(|ring| ring.name() == name) else {
        call.refuse("No such event sink");
        return Ok(());
    };
    let Some(wanted) = EventsOptions::parse(call.words.get(3..).unwrap_or_default()) else {
        call.refuse("unknown option");
        return Ok(());
    };
    let end = if wanted.nul { b'\0' } else { b'\n' };
    let mut place = if wanted.only_new { ring.end() } else { ring.start() };
    loop {
        let mut piece = Vec::new();
        place = ring.read(place, PIECE, end, &mut piece);
        if !piece.is_empty() {
            call.answer.push(piece);
            call.answer.relieve().await?;
        } else if !wanted.waits || !call.answer.watch(|cx| ring.poll_lines_behind(place, cx)).await? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventsOptions;

    #[test]
    fn options_stand_together_or_apart() {
        let all = EventsOptions { waits: true, only_new: true, nul: true };
        let rows = [
            ("", Some(EventsOptions::default())),
            ("-w", Some(EventsOptions { waits: true, ..EventsOptions::default() })),
            ("-n -0", Some(EventsOptions { waits: false, ..all })),
            ("-wn0", Some(all)),
            ("-nw -0", Some(all)),
            ("-x", None),
            ("-", None),
            ("w", None),
        ];
        for (text, expected) in rows {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(EventsOptions::parse(&words), expected, "{text}");
        }
    }
}
