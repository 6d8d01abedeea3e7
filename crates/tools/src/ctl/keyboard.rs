//! The keyboard while a command of the prompt runs: Ctrl-C interrupts the command, not the program. Must never keep the
//! terminal's mode changed after it was dropped.

use rt::clock::Point;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::time::Duration;

/// Time after the beginning of a command in which typed keys are left for the next prompt.
const TYPED_AHEAD: Duration = Duration::from_millis(500);
/// Ctrl-C.
const INTERRUPT: u8 = 3;

/// Takes the terminal from its line mode; dropped, gives it back.
#[derive(Debug)]
pub struct Keyboard {
    before: Termios,
    begun: Point,
}

impl Keyboard {
    /// Changes the mode of the terminal of standard input. `None`: it is none, or it cannot be changed.
    pub fn begin() -> Option<Self> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut mode = before.clone();
        mode.local_modes.remove(LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO);
        // A read returns at once.
        mode.special_codes[SpecialCodeIndex::VMIN] = 0;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(std::io::stdin(), OptionalActions::Now, &mode).ok()?;
        Some(Self { before, begun: Point::now() })
    }

    /// Reads what was typed. True if it contains Ctrl-C; everything else is lost.
    pub fn is_interrupted(&self) -> bool {
        if self.begun.elapsed() < TYPED_AHEAD {
            return false;
        }
        let mut typed = [0; 64];
        rustix::io::read(std::io::stdin(), &mut typed).is_ok_and(|count| typed[..count].contains(&INTERRUPT))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}
