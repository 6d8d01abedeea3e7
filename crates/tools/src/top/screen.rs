//! Draws the state of the view. Must never change it, except for the scroll position of its table.

use super::app::{App, Mode};
use super::format::{duration, short};
use super::sample::Kind;
use super::view::{COLUMNS, Scope, TEXTS, cells};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table};

/// Minimum widths of columns; columns that do not fit are omitted from the right, except the first ones.
const WIDTHS: [u16; COLUMNS.len()] = [0, 8, 11, 6, 8, 6, 7, 7, 7, 7, 7, 6];
const NAME: u16 = 18;

const KEYS: &str = "\
Tab v     proxies or servers          s S   column to sort by, direction
Up Down   choose a row                /     filter, Esc clears it
d         drain the server            m     maintenance
e         make it ready               w     weight
Space     pause                       + -   interval
?         these keys                  q     end";

/// Draws everything.
pub fn draw(app: &mut App, frame: &mut Frame<'_>) {
    let [head, graph, body, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(if frame.area().height >= 16 { 3 } else { 0 }),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(app, frame, head);
    if graph.height > 0 {
        let history: Vec<u64> = app.history.iter().copied().collect();
        let from = history.len().saturating_sub(graph.width as usize);
        frame.render_widget(Sparkline::default().data(&history[from..]).style(Style::new().cyan()), graph);
    }
    draw_table(app, frame, body);
    draw_foot(app, frame, foot);
    match &app.mode {
        Mode::Help => popup(frame, "Keys", KEYS, Color::Cyan),
        Mode::Confirm(order) => {
            popup(frame, "Sure?", &format!("{}\n\ny yes   any other key no", order.words), Color::Yellow)
        }
        Mode::Weight(label, text) => {
            popup(frame, "Weight", &format!("Weight of {label}, 0 to 256 or percents:\n\n{text}_"), Color::Yellow);
        }
        Mode::Normal | Mode::Filter => {}
    }
}

fn draw_head(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let sample = app.sample.as_ref();
    let info = |name: &str| sample.map_or("", |sample| sample.info(name)).to_owned();
    let number = |name: &str| sample.map_or(0, |sample| sample.number(name));
    let node = Some(info("node")).filter(|node| !node.is_empty()).map_or(String::new(), |node| format!(" on {node}"));
    let name = Some(info("Name")).filter(|name| !name.is_empty()).unwrap_or_else(|| "…".to_owned());
    let busy = 100_u64.saturating_sub(number("Idle_pct"));
    let bold = |text: String| Span::styled(text, Style::new().add_modifier(Modifier::BOLD));
    let first = Line::from(vec![
        Span::styled(format!(" {name} "), Style::new().fg(Color::Black).bg(Color::Cyan).add_modifier(Modifier::BOLD)),
        Span::raw(format!(" {}{node}   pid {}   up ", info("Version"), number("Pid"))),
        bold(duration(number("Uptime_sec"))),
        Span::styled(if number("Stopping") > 0 { "   stopping" } else { "" }, Style::new().yellow()),
    ]);
    let second = Line::from(vec![
        Span::raw(" connections "),
        bold(number("CurrConns").to_string()),
        Span::raw(format!("/{}   requests/s ", number("Maxconn"))),
        bold(short(app.requests())),
        Span::raw("   errors/s "),
        Span::styled(
            short(app.errors()),
            if app.errors() > 0.0 { Style::new().red().bold() } else { Style::new().bold() },
        ),
        Span::raw("   out/s "),
        bold(short(app.sent())),
        Span::raw(format!("   {} threads ", number("Nbthread"))),
        bold(format!("{busy}% busy")),
    ]);
    frame.render_widget(Paragraph::new(vec![first, second]), area);
}

fn draw_table(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let mut columns = COLUMNS.len();
    let wide = |columns: usize| NAME + WIDTHS[1..columns].iter().map(|width| width + 1).sum::<u16>();
    while columns > TEXTS && wide(columns) > area.width {
        columns -= 1;
    }
    let aligned = |at: usize, text: String| {
        Cell::from(Line::from(text).alignment(if at < TEXTS { Alignment::Left } else { Alignment::Right }))
    };
    let titles = COLUMNS.iter().take(columns).enumerate().map(|(at, (title, key))| {
        let is_sorted = *key == Some(app.sort.0);
        let mark = if !is_sorted {
            ""
        } else if app.sort.1 {
            "^"
        } else {
            "v"
        };
        let style = if is_sorted { Style::new().cyan().bold() } else { Style::new().bold() };
        aligned(at, format!("{title}{mark}")).style(style)
    });
    let header = Row::new(titles.collect::<Vec<_>>()).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let rows = app.rows.iter().map(|shown| {
        let cells = cells(shown).into_iter().take(columns).enumerate().map(|(at, text)| {
            let style = match at {
                2 => Style::new().fg(color_of(&shown.row.status)).bold(),
                7 if shown.rates.errors > 0.0 => Style::new().red().bold(),
                1 => Style::new().dark_gray(),
                _ => Style::new(),
            };
            aligned(at, text).style(style)
        });
        let style = if shown.row.kind == Kind::Backend { Style::new().bold() } else { Style::new() };
        Row::new(cells.collect::<Vec<_>>()).style(style)
    });
    let widths = (0..columns).map(|at| if at == 0 { Constraint::Min(NAME) } else { Constraint::Length(WIDTHS[at]) });
    let table = Table::new(rows.collect::<Vec<_>>(), widths.collect::<Vec<_>>())
        .header(header)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut app.table);
}

/// Returns the colour of a status; its text is shown too.
fn color_of(status: &str) -> Color {
    match status {
        _ if status.starts_with("MAINT") => Color::Magenta,
        _ if status.starts_with("DRAIN") || status.starts_with("NOLB") => Color::Blue,
        _ if status.starts_with("no check") => Color::Gray,
        _ if status.contains('/') && !status.contains('(') => Color::Yellow,
        _ if status.starts_with("UP") || status == "OPEN" => Color::Green,
        _ if matches!(status, "WAITING" | "PAUSED" | "FULL") => Color::Yellow,
        _ => Color::Red,
    }
}

fn draw_foot(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let line = match (&app.mode, &app.message) {
        (Mode::Filter, _) => Line::from(format!(" filter: {}_", app.filter)).yellow(),
        (_, Some((text, is_bad))) if *is_bad => Line::from(format!(" {text}")).red().bold(),
        (_, Some((text, _))) => Line::from(format!(" {text}")).green(),
        _ => {
            let scope = if app.scope == Scope::Servers { "servers" } else { "proxies" };
            let filter = if app.filter.is_empty() { String::new() } else { format!("   filter '{}'", app.filter) };
            let paused = if app.paused { "   PAUSED" } else { "" };
            let count = app.rows.len();
            Line::from(format!(
                " {count} {scope}{filter}{paused}   Tab view  s sort  / filter  d m e w change  ? keys  q end"
            ))
            .dark_gray()
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn popup(frame: &mut Frame<'_>, title: &str, text: &str, color: Color) {
    let whole = frame.area();
    let width = text.lines().map(|line| line.chars().count()).max().unwrap_or(0) as u16 + 4;
    let height = text.lines().count() as u16 + 2;
    let (width, height) = (width.min(whole.width), height.min(whole.height));
    let area = Rect { x: (whole.width - width) / 2, y: (whole.height - height) / 2, width, height };
    let block = Block::bordered().title(format!(" {title} ")).border_style(Style::new().fg(color));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text.to_owned()).block(block), area);
}
