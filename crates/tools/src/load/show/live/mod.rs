//! The live view: the terminal is drawn anew each second. Must never leave a terminal otherwise than it was found.
//!
//! Plain control sequences that every terminal of the last decades knows; no key is read, so that its modes stay.

mod line;
mod picture;

use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::Plan;
use picture::Picture;
use rustix::termios::tcgetwinsize;
use std::time::Duration;

/// The other screen, without a cursor, empty.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// The cursor and the screen that was there before.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Where the size cannot be asked for.
const USUAL: (usize, usize) = (80, 24);

/// `--live`.
#[derive(Debug)]
pub struct Live {
    out: Sink,
    picture: Picture,
    /// Whether the terminal is ours at the moment.
    entered: bool,
}

impl Live {
    /// On that terminal.
    #[must_use]
    pub fn new(plan: &Plan, out: Sink) -> Self {
        Self { out, picture: Picture::new(plan), entered: false }
    }

    fn draw(&mut self) -> Result<(), Outcome> {
        let size = tcgetwinsize(std::io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let (width, height) = size.map_or(USUAL, |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        // Drawn over what is there, and shown at once where the terminal knows how (mode 2026): nothing flickers.
        let mut text = String::from("\x1b[?2026h\x1b[H");
        let lines = self.picture.lines(width);
        for (index, line) in lines.iter().take(height).enumerate() {
            text.push_str(if index > 0 { "\r\n" } else { "" });
            line.render(&mut text, width);
            text.push_str("\x1b[K");
        }
        text.push_str("\x1b[J\x1b[?2026l");
        self.out.write(&text)
    }

    fn leave(&mut self) -> Result<(), Outcome> {
        if std::mem::take(&mut self.entered) { self.out.write(LEAVE) } else { Ok(()) }
    }
}

impl Show for Live {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        self.entered = true;
        self.out.write(ENTER)?;
        self.draw()
    }

    fn second(&mut self, second: &Second, total: &Counters) -> Result<(), Outcome> {
        self.picture.take(second, total);
        self.draw()
    }

    fn end(&mut self, _: &Counters, _: Duration) -> Result<(), Outcome> {
        self.leave()
    }
}

/// However a run ends.
impl Drop for Live {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::plan::ReportSink;
    use crate::load::show::tests::{plan, second, total};

    /// A live view that draws into a file, and what is in the file when it is gone.
    fn drawn(name: &str, run: impl FnOnce(&mut Live)) -> String {
        let path = std::env::temp_dir().join(format!("weir-live-{name}-{}", std::process::id()));
        let sink = Sink::open(&ReportSink::File(path.clone())).expect("a file");
        let mut live = Live::new(&plan(&["-d", "10", "a"]), sink);
        run(&mut live);
        drop(live);
        let text = std::fs::read_to_string(&path).expect("text");
        std::fs::remove_file(&path).expect("it is there");
        text
    }

    #[test]
    fn the_terminal_is_given_back_at_the_end() {
        let text = drawn("end", |live| {
            live.begin(&plan(&["a"])).expect("written");
            live.second(&second(1), &total()).expect("written");
            live.end(&total(), Duration::from_secs(1)).expect("written");
        });
        assert!(text.starts_with(ENTER) && text.ends_with(LEAVE));
        assert_eq!((text.matches(ENTER).count(), text.matches(LEAVE).count()), (1, 1));
        assert_eq!(text.matches("\x1b[H").count(), 2, "at the beginning, and each second");
    }

    #[test]
    fn the_terminal_is_given_back_when_a_run_breaks_off() {
        let text = drawn("off", |live| live.begin(&plan(&["a"])).expect("written"));
        assert!(text.starts_with(ENTER) && text.ends_with(LEAVE));
        assert_eq!(drawn("unused", |_| ()), "", "a terminal that was not taken is not touched");
    }
}
