//! State of the view, and the effects of keys. Must never wait: a separate thread queries the process.

use super::columns::NaturalWidths;
use super::condition::Severity;
use super::detail::{ProxyDetails, Topic, topics};
use super::options::Options;
use super::sample::{Kind, LatencyAnswer, Sample, is_word, printable};
use super::view::{Scope, SortOrder, ViewRow, choose, with_rates};
use base::Moment;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rt::clock::moment;
use std::collections::VecDeque;
use std::time::Duration;

/// Number of seconds of the curve.
const HISTORY: usize = 600;
/// Duration for which a message is shown.
const MESSAGE: Duration = Duration::from_secs(4);
/// Rows that a page key moves.
const PAGE: usize = 10;

/// A change that requires confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Text for the user.
    pub words: String,
    /// Command for the process.
    command: String,
}

/// Meaning of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Normal,
    Filter,
    Help,
    Confirm(Order),
    /// The server, and the weight as typed so far.
    Weight(String, String),
}

/// Result of a task.
pub enum TaskResult {
    Sample(Box<Sample>),
    Details(Box<ProxyDetails>),
    Done(String),
    Failed(String),
}

/// Effect of a key other than a change of the state.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    End,
    Do(String),
}

/// Numbers of objects that are not fine, over all scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Problems {
    pub proxies_down: usize,
    pub servers_down: usize,
    pub degraded: usize,
}

/// The rows on the screen.
#[derive(Debug, Default)]
pub struct Selection {
    /// Index of the selected row.
    pub at: usize,
    /// Index of the first row on the screen.
    pub first: usize,
}

impl Selection {
    /// Moves the first row so that the selected one is on a screen of this height.
    pub fn scroll(&mut self, height: usize, rows: usize) {
        self.at = self.at.min(rows.saturating_sub(1));
        let least = (self.at + 1).saturating_sub(height);
        self.first = self.first.clamp(least, self.at.max(least)).min(rows.saturating_sub(height.min(rows)));
    }
}

pub struct App {
    pub sample: Option<Sample>,
    all: Vec<ViewRow>,
    pub rows: Vec<ViewRow>,
    pub widths: NaturalWidths,
    pub history: VecDeque<u64>,
    pub scope: Scope,
    pub order: SortOrder,
    pub filter: String,
    pub mode: Mode,
    pub selection: Selection,
    /// Whether the pane with details is open.
    pub has_pane: bool,
    details: Option<ProxyDetails>,
    pub paused: bool,
    /// A text, and whether it is an error.
    pub message: Option<(String, bool)>,
    said: Moment,
    pub interval: Duration,
}

impl App {
    pub fn new(options: &Options) -> Self {
        Self {
            sample: None,
            all: Vec::new(),
            rows: Vec::new(),
            widths: NaturalWidths::default(),
            history: VecDeque::new(),
            scope: options.scope.unwrap_or(Scope::Proxies),
            order: SortOrder { key: options.sort, reversed: false },
            filter: options.filter.clone(),
            mode: Mode::Normal,
            selection: Selection::default(),
            has_pane: false,
            details: None,
            paused: false,
            message: None,
            said: moment(),
            interval: options.interval,
        }
    }

    fn sum(&self, of: impl Fn(&ViewRow) -> f64) -> f64 {
        self.all.iter().filter(|one| one.row.kind == Kind::Frontend).map(of).sum()
    }

    /// Returns the requests per second of all frontends.
    pub fn requests(&self) -> f64 {
        self.sum(|one| one.rates.requests)
    }

    pub fn errors(&self) -> f64 {
        self.sum(|one| one.rates.errors)
    }

    pub fn sent(&self) -> f64 {
        self.sum(|one| one.rates.sent)
    }

    /// Counts the objects that are not fine.
    pub fn problems(&self) -> Problems {
        let count = |of: &dyn Fn(&ViewRow) -> bool| self.all.iter().filter(|one| of(one)).count();
        let is_server = |one: &ViewRow| one.row.kind == Kind::Server;
        let is_down = |one: &ViewRow| one.condition.severity == Severity::Down;
        Problems {
            proxies_down: count(&|one| is_down(one) && Scope::Proxies.has(one.row.kind)),
            servers_down: count(&|one| is_down(one) && is_server(one)),
            degraded: count(&|one| one.condition.severity == Severity::Degraded && Scope::Proxies.has(one.row.kind)),
        }
    }

    /// Whether the process knows `show latency`.
    pub fn asks_latency(&self) -> bool {
        self.sample.as_ref().is_some_and(|sample| sample.latency != LatencyAnswer::Unknown)
    }

    /// Returns the proxy whose details are shown.
    pub fn detailed_proxy(&self) -> Option<&str> {
        let chosen = self.chosen().filter(|_| self.has_pane)?;
        Some(&*chosen.row.proxy).filter(|name| is_word(name))
    }

    /// Whether the selected row belongs to a `udp-lb` section.
    pub fn has_flows(&self) -> bool {
        let mode =
            self.sample.as_ref().zip(self.chosen()).map(|(sample, chosen)| sample.fields(&chosen.row).text("mode"));
        mode.is_some_and(|mode| mode == "udp")
    }

    /// Returns the details of the selected row, if the pane is open.
    pub fn topics(&self) -> Option<Vec<Topic>> {
        let chosen = self.chosen().filter(|_| self.has_pane)?;
        Some(topics(self.sample.as_ref()?, chosen, self.details.as_ref()))
    }

    /// Stores the next sample.
    pub fn take(&mut self, sample: Sample) {
        self.all = with_rates(&sample, self.sample.as_ref());
        if self.sample.is_some() {
            self.history.push_back(self.requests() as u64);
            if self.history.len() > HISTORY {
                self.history.pop_front();
            }
        }
        self.sample = Some(sample);
        self.arrange();
    }

    /// Selects and sorts the rows; the selection is kept.
    fn arrange(&mut self) {
        let chosen = self.chosen().map(|one| (one.row.kind, one.row.label()));
        self.rows = choose(&self.all, self.scope, self.order, &self.filter);
        let place = self.rows.iter().position(|one| chosen == Some((one.row.kind, one.row.label())));
        self.select(place.unwrap_or(self.selection.at));
        self.widths = NaturalWidths::of(&self.rows, self.order.key);
    }

    fn select(&mut self, at: usize) {
        self.selection.at = at.min(self.rows.len().saturating_sub(1));
    }

    /// Returns the selected row.
    pub fn chosen(&self) -> Option<&ViewRow> {
        self.rows.get(self.selection.at)
    }

    pub fn say(&mut self, text: &str, is_bad: bool) {
        self.message = Some((printable(text), is_bad));
        self.said = moment();
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Effect {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Effect::End;
        }
        match std::mem::replace(&mut self.mode, Mode::Normal) {
            Mode::Normal => return self.normal(key.code),
            Mode::Filter => self.edit_filter(key.code),
            Mode::Help => {}
            Mode::Confirm(order) if matches!(key.code, KeyCode::Char('y' | 'Y')) => return Effect::Do(order.command),
            Mode::Confirm(_) => self.say("nothing was changed", false),
            Mode::Weight(label, text) => self.edit_weight(key.code, label, text),
        }
        Effect::None
    }

    fn normal(&mut self, key: KeyCode) -> Effect {
        match key {
            KeyCode::Char('q') => return Effect::End,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Enter => self.has_pane = !self.has_pane,
            KeyCode::Esc if self.has_pane => self.has_pane = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('+') => self.interval = (self.interval * 2).min(Duration::from_secs(60)),
            KeyCode::Char('-') => self.interval = (self.interval / 2).max(Duration::from_millis(250)),
            KeyCode::Char('d') => self.ask("drain", "Drain"),
            KeyCode::Char('m') => self.ask("maint", "Put into maintenance:"),
            KeyCode::Char('e') => self.ask("ready", "Make ready:"),
            KeyCode::Char('p') => self.ask_to_measure(),
            KeyCode::Char('w') => match self.server() {
                Some(label) => self.mode = Mode::Weight(label, String::new()),
                None => self.say("choose a server first: Tab shows them", true),
            },
            key => self.move_to(key),
        }
        self.arrange();
        Effect::None
    }

    /// Handles the keys that change what is shown.
    fn move_to(&mut self, key: KeyCode) {
        let at = self.selection.at;
        match key {
            KeyCode::Tab | KeyCode::Char('v') => self.scope = self.scope.next(),
            KeyCode::BackTab => self.scope = self.scope.previous(),
            KeyCode::Char('s' | '>') => self.order.key = self.order.key.step(1),
            KeyCode::Char('<') => self.order.key = self.order.key.previous(),
            KeyCode::Char('S') => self.order.reversed = !self.order.reversed,
            KeyCode::Up | KeyCode::Char('k') => self.select(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(at + 1),
            KeyCode::PageUp => self.select(at.saturating_sub(PAGE)),
            KeyCode::PageDown => self.select(at + PAGE),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(usize::MAX),
            _ => {}
        }
    }

    /// Returns the selected server.
    fn server(&self) -> Option<String> {
        self.chosen().and_then(target)
    }

    fn ask(&mut self, state: &str, words: &str) {
        match self.server() {
            Some(label) => {
                let command = format!("set server {label} state {state}");
                self.mode = Mode::Confirm(Order { words: format!("{words} {label}?"), command });
            }
            None => self.say("choose a server first: Tab shows them", true),
        }
    }

    fn ask_to_measure(&mut self) {
        match self.sample.as_ref().map(|sample| sample.latency) {
            Some(LatencyAnswer::Off) => {
                self.mode = Mode::Confirm(Order {
                    words: "Measure the latency of all requests from now on?".to_owned(),
                    command: "set profiling latency on".to_owned(),
                });
            }
            Some(LatencyAnswer::Measured) => self.say("percentiles are measured", false),
            _ => self.say("this process has no percentiles", true),
        }
    }

    fn edit_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => {
                self.filter.clear();
                return self.arrange();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.len() < 100 => self.filter.push(letter),
            _ => {}
        }
        self.mode = Mode::Filter;
        self.arrange();
    }

    fn edit_weight(&mut self, key: KeyCode, label: String, mut text: String) {
        match key {
            KeyCode::Enter if !text.is_empty() => {
                let words = format!("Set the weight of {label} to {text}?");
                let command = format!("set server {label} weight {text}");
                self.mode = Mode::Confirm(Order { words, command });
                return;
            }
            KeyCode::Enter | KeyCode::Esc => return,
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(letter) if text.len() < 5 && (letter.is_ascii_digit() || letter == '%') => text.push(letter),
            _ => {}
        }
        self.mode = Mode::Weight(label, text);
    }

    pub fn hear(&mut self, news: TaskResult) {
        match news {
            TaskResult::Sample(sample) => self.take(*sample),
            TaskResult::Details(details) => self.details = Some(*details),
            TaskResult::Done(answer) => {
                let answer = answer.trim();
                if answer.is_empty() {
                    self.say("done", false);
                } else {
                    self.say(answer, true);
                }
            }
            TaskResult::Failed(why) => self.say(&why, true),
        }
        if self.message.is_some() && moment().saturating_since(self.said) > MESSAGE {
            self.message = None;
        }
    }
}

/// Returns the server's name in commands, for rows that commands can change.
fn target(shown: &ViewRow) -> Option<String> {
    let label = shown.row.label();
    (shown.row.kind == Kind::Server && is_word(&label)).then_some(label)
}

#[cfg(test)]
pub mod tests {
    use super::super::options::{TopTask, parse};
    use super::super::palette::Palette;
    use super::super::sample::tests::{ANSWER, LATENCY};
    use super::super::screen;
    use super::super::view::SortKey;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::sync::Arc;

    /// The view after two answers, a second apart; `more` follows each of them.
    pub fn app_after(more: &str) -> App {
        let Ok(TopTask::Run(options)) = parse(&["/x".into()]) else { panic!("a run") };
        let mut app = App::new(&options);
        let first = Sample::parse(&format!("{ANSWER}{more}")).expect("an answer");
        let mut second = first.clone();
        second.at = first.at + Duration::from_secs(1);
        let front = Arc::make_mut(&mut second.rows[0]);
        front.requests += 1234;
        front.errors += 3;
        app.take(first);
        app.take(second);
        app
    }

    fn app() -> App {
        app_after("")
    }

    pub fn press(app: &mut App, keys: &str) -> Effect {
        let mut last = Effect::None;
        for letter in keys.chars() {
            let code = match letter {
                '\t' => KeyCode::Tab,
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                '↓' => KeyCode::Down,
                '↑' => KeyCode::Up,
                other => KeyCode::Char(other),
            };
            last = app.key(code.into());
        }
        last
    }

    pub fn drawn(app: &mut App, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let palette = Palette::of(None, None);
        terminal.draw(|frame| screen::draw(app, palette, frame)).expect("drawn");
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_server_is_changed_after_a_question() {
        let mut app = app();
        assert_eq!(press(&mut app, "↓d"), Effect::None);
        assert!(app.message.as_ref().is_some_and(|(text, bad)| *bad && text.contains("choose a server")));
        press(&mut app, "\t↑d");
        assert!(drawn(&mut app, 100, 20).contains("Drain app/s2?"));
        assert_eq!(press(&mut app, "n"), Effect::None);
        assert_eq!(app.mode, Mode::Normal);
        assert_eq!(press(&mut app, "dy"), Effect::Do("set server app/s2 state drain".to_owned()));
        assert_eq!(press(&mut app, "my"), Effect::Do("set server app/s2 state maint".to_owned()));
        assert_eq!(press(&mut app, "ey"), Effect::Do("set server app/s2 state ready".to_owned()));
        assert_eq!(press(&mut app, "wx5;0%\n"), Effect::None);
        assert!(drawn(&mut app, 100, 20).contains("Set the weight of app/s2 to 50%?"));
        assert_eq!(press(&mut app, "y"), Effect::Do("set server app/s2 weight 50%".to_owned()));
        app.hear(TaskResult::Done("Permission denied\n\n".to_owned()));
        assert_eq!(app.message, Some(("Permission denied".to_owned(), true)));
    }

    #[test]
    fn names_cannot_add_commands() {
        let text = ANSWER.replace("app,s2", "app,s2;quit");
        let mut app = app();
        app.take(Sample::parse(&text).expect("an answer"));
        press(&mut app, "\td");
        assert_eq!((app.rows[0].row.name.as_str(), app.mode.clone()), ("s2;quit", Mode::Normal));
        app.take(Sample::parse(&ANSWER.replace("\napp,", "\na b,")).expect("an answer"));
        press(&mut app, "\n");
        assert_eq!((app.has_pane, app.detailed_proxy()), (true, None));
    }

    #[test]
    fn rows_are_filtered_and_the_chosen_one_stays() {
        let mut app = app();
        press(&mut app, "\t↓");
        assert_eq!(app.chosen().map(|one| one.row.label()).as_deref(), Some("app/s1"));
        press(&mut app, "sss");
        assert_eq!(app.order.key, SortKey::Sessions);
        assert_eq!((app.rows[0].row.label().as_str(), app.selection.at), ("app/s2", 1));
        press(&mut app, "<S");
        assert_eq!((app.order.key, app.order.reversed), (SortKey::Since, true));
        press(&mut app, "/s1");
        assert_eq!((app.rows.len(), app.filter.as_str()), (1, "s1"));
        assert!(drawn(&mut app, 100, 20).contains("filter: s1_"));
        press(&mut app, "\u{8}\n");
        assert_eq!((app.rows.len(), app.mode.clone()), (2, Mode::Normal));
        press(&mut app, "\u{1b}?");
        assert!(drawn(&mut app, 100, 20).contains("make it ready"));
        assert_eq!(press(&mut app, "xq"), Effect::End);
    }

    #[test]
    fn the_pane_follows_the_selection() {
        let mut app = app();
        assert!(app.topics().is_none() && app.detailed_proxy().is_none());
        press(&mut app, "\t\n");
        assert_eq!(app.detailed_proxy(), Some("app"));
        assert!(drawn(&mut app, 80, 24).contains(" server app/s2 "));
        press(&mut app, "↓");
        assert!(drawn(&mut app, 80, 24).contains(" server app/s1 "));
        press(&mut app, "/s2\n");
        assert!(drawn(&mut app, 80, 24).contains(" server app/s2 "));
        // Escape closes the pane first, then it removes the filter.
        press(&mut app, "\u{1b}");
        assert_eq!((app.has_pane, app.filter.as_str()), (false, "s2"));
        press(&mut app, "\u{1b}");
        assert_eq!(app.filter, "");
    }

    #[test]
    fn percentiles_are_measured_after_a_question() {
        let mut app = app();
        assert!(!app.asks_latency());
        press(&mut app, "p");
        assert_eq!(app.message, Some(("this process has no percentiles".to_owned(), true)));
        let mut app = app_after("Latency is not measured: x\n\n");
        assert!(app.asks_latency());
        assert_eq!(press(&mut app, "py"), Effect::Do("set profiling latency on".to_owned()));
        let mut app = app_after(LATENCY);
        assert!(app.asks_latency());
        press(&mut app, "p");
        assert_eq!(app.message, Some(("percentiles are measured".to_owned(), false)));
    }

    #[test]
    fn the_selected_row_is_on_the_screen() {
        let mut selection = Selection::default();
        for (at, height, rows, first) in [
            (0, 5, 20, 0),
            (4, 5, 20, 0),
            (5, 5, 20, 1),
            (19, 5, 20, 15),
            (14, 5, 20, 14),
            (18, 50, 20, 0),
            (3, 5, 2, 0),
            (0, 0, 0, 0),
        ] {
            selection.at = at;
            selection.scroll(height, rows);
            assert_eq!(selection.first, first, "{at} {height} {rows}");
        }
    }
}
