//! Styles of the view. Colours mean that something is wrong, and are chosen to be legible on light and dark
//! backgrounds: a coloured foreground is red or magenta, any other colour is a background with a foreground of its own.
//! Must never be the only sign of a state.

use super::condition::Severity;
use ratatui::style::{Color, Modifier, Style};
use std::ffi::OsStr;

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    has_colours: bool,
}

impl Palette {
    /// Creates the palette for the values of the variables `NO_COLOR` and `TERM`.
    pub fn of(no_color: Option<&OsStr>, terminal: Option<&OsStr>) -> Self {
        let is_refused = no_color.is_some_and(|value| !value.is_empty());
        let is_plain = terminal.is_some_and(|name| name == "dumb" || name.to_string_lossy().ends_with("-m"));
        Self { has_colours: !is_refused && !is_plain }
    }

    fn style(self, foreground: Option<Color>, background: Option<Color>) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        let colours = Style { fg: foreground, bg: background, ..Style::new() };
        if self.has_colours { style.patch(colours) } else { style }
    }

    /// Returns the style of a state.
    pub fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Down if self.has_colours => self.style(Some(Color::White), Some(Color::Red)),
            Severity::Down => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Severity::Degraded => self.style(Some(Color::Black), Some(Color::Yellow)),
            Severity::Planned => self.style(Some(Color::Magenta), None),
            Severity::Fine => Style::new(),
        }
    }

    /// Returns the style of a number that needs attention, and of error messages.
    pub fn alarm(self) -> Style {
        self.style(Some(Color::Red), None)
    }

    /// Returns the style of the program's name.
    pub fn badge(self) -> Style {
        match self.has_colours {
            true => self.style(Some(Color::Black), Some(Color::Cyan)),
            false => Style::new().add_modifier(Modifier::REVERSED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVERITIES: [Severity; 4] = [Severity::Down, Severity::Degraded, Severity::Planned, Severity::Fine];

    #[test]
    fn colours_are_legible_on_every_background() {
        let palette = Palette::of(None, Some("xterm".as_ref()));
        for style in
            SEVERITIES.map(|severity| palette.severity(severity)).into_iter().chain([palette.badge(), palette.alarm()])
        {
            match (style.fg, style.bg) {
                (None, None) | (Some(Color::Red | Color::Magenta), None) => {}
                (foreground, background) => assert!(foreground.is_some() && background.is_some(), "{style:?}"),
            }
        }
    }

    #[test]
    fn no_color_means_none() {
        for (no_color, terminal, expected) in
            [(None, "xterm", true), (Some(""), "xterm", true), (Some("1"), "xterm", false), (None, "dumb", false)]
        {
            let palette = Palette::of(no_color.map(OsStr::new), Some(terminal.as_ref()));
            let styles = SEVERITIES.map(|severity| palette.severity(severity));
            let has = styles
                .iter()
                .chain([&palette.badge(), &palette.alarm()])
                .any(|one| one.fg.is_some() || one.bg.is_some());
            assert_eq!(has, expected, "{no_color:?} {terminal}");
            assert_ne!(styles[0], styles[3]);
        }
    }
}
