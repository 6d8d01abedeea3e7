//! The live view: redraws the terminal each second. Must never leave a terminal in a different state.
//!
//! Uses only control sequences that every common terminal supports; no key is read, so that the terminal's modes are
//! unchanged.

mod line;
mod picture;

use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::Plan;
use picture::Picture;
use rustix::termios::tcgetwinsize;
use std::time::Duration;

/// Switches to the alternate screen, hides the cursor, clears the screen.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// Restores the cursor and the previous screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Size if it cannot be determined.
const USUAL: (usize, usize) = (80, 24);

/// `--live`.
#[derive(Debug)]
pub struct Live {
    out: Sink,
    picture: Picture,
    /// Whether the alternate screen is active.
    entered: bool,
}

impl Live {
    /// Creates the view on a terminal.
    #[must_use]
    pub fn new(plan: &Plan, out: Sink) -> Self {
        Self { out, picture: Picture::new(plan), entered: false }
    }

    fn draw(&mut self) -> Result<(), Outcome> {
        let size = tcgetwinsize(std::io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let (width, height) = size.map_or(USUAL, |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        // Drawn over the previous content, and shown atomically if the terminal supports synchronized output (mode
        // 2026): no flicker.
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

/// Leaves the alternate screen, however the run ends.
impl Drop for Live {
    fn drop(&mut self) {
        // An error of a closed terminal is ignored.
        let _ = self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::plan::ReportSink;
    use crate::load::show::tests::{plan, second, total};

    /// Runs a live view that draws into a file; returns the content of the file afterwards.
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
