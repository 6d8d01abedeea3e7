//! Draws the state of the view. Must never change it, except for the scroll position of its table.

use super::app::{App, Mode, Problems};
use super::columns::{ColumnWidth, GAP, Shape, cut_end, is_alarming, pad};
use super::condition::Severity;
use super::detail::lines;
use super::format::{duration, short};
use super::palette::Palette;
use super::view::{SortKey, ViewRow};
use super::{columns, sample::Kind};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline};

const KEYS: &str = "\
Tab v     proxies, servers or all     s S   column to sort by, direction
Up Down   choose a row                < >   previous and next column
Enter     details of the row          /     filter, Esc clears it
d         drain the server            m     maintenance
e         make it ready               w     weight
p         measure percentiles         + -   interval
Space     pause                       q     end";

/// Height of the screen from which the curve is shown beside the pane with details.
const TALL: u16 = 36;
/// Height of the curve.
const CURVE: u16 = 3;
/// Lines of the table that the pane leaves.
const LEAST_TABLE: u16 = 5;
/// Width of titles in the pane.
const TITLE: usize = 12;

/// Draws everything.
pub fn draw(app: &mut App, palette: Palette, frame: &mut Frame<'_>) {
    let topics = app.topics();
    let height = frame.area().height;
    let has_curve = height >= if topics.is_some() { TALL } else { 16 };
    let pane = topics.map(|topics| lines(&topics, (frame.area().width as usize).saturating_sub(TITLE + 4)));
    let wanted = pane.as_ref().map_or(0, |lines| u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2));
    let [head, curve, body, details, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(if has_curve { CURVE } else { 0 }),
        Constraint::Min(LEAST_TABLE),
        Constraint::Length(wanted.min(height.saturating_sub(3 + LEAST_TABLE))),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(app, palette, frame, head);
    if has_curve {
        let history: Vec<u64> = app.history.iter().copied().collect();
        let from = history.len().saturating_sub(curve.width as usize);
        frame.render_widget(Sparkline::default().data(&history[from..]), curve);
    }
    draw_table(app, palette, frame, body);
    if let (Some(pane), Some(chosen)) = (pane, app.chosen()) {
        draw_pane(chosen, &pane, frame, details);
    }
    draw_foot(app, palette, frame, foot);
    match &app.mode {
        Mode::Help => popup(frame, "Keys", KEYS),
        Mode::Confirm(order) => popup(frame, "Sure?", &format!("{}\n\ny yes   any other key no", order.words)),
        Mode::Weight(label, text) => {
            popup(frame, "Weight", &format!("Weight of {label}, 0 to 256 or percents:\n\n{text}_"));
        }
        Mode::Normal | Mode::Filter => {}
    }
}

/// Returns the numbers of objects that are not fine, as labels.
fn problem_labels(problems: Problems, palette: Palette) -> Vec<Span<'static>> {
    let Problems { proxies_down, servers_down, degraded } = problems;
    let plural = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let down = [(proxies_down, "proxy", "proxies"), (servers_down, "server", "servers")];
    let down: Vec<String> =
        down.iter().filter(|(count, ..)| *count > 0).map(|(count, one, more)| plural(*count, one, more)).collect();
    let mut labels = Vec::new();
    if !down.is_empty() {
        labels.push(Span::styled(format!(" DOWN: {} ", down.join(", ")), palette.severity(Severity::Down)));
    }
    if degraded > 0 {
        let text = format!(" {} degraded ", plural(degraded, "proxy", "proxies"));
        labels.push(Span::styled(text, palette.severity(Severity::Degraded)));
    }
    labels
}

fn draw_head(app: &App, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let sample = app.sample.as_ref();
    let info = |name: &str| sample.map_or("", |sample| sample.info(name)).to_owned();
    let number = |name: &str| sample.map_or(0, |sample| sample.number(name));
    let node = Some(info("node")).filter(|node| !node.is_empty()).map_or(String::new(), |node| format!(" on {node}"));
    let name = Some(info("Name")).filter(|name| !name.is_empty()).unwrap_or_else(|| "…".to_owned());
    let busy = 100_u64.saturating_sub(number("Idle_pct"));
    let bold = |text: String| Span::styled(text, Style::new().add_modifier(Modifier::BOLD));
    let mut first = vec![Span::styled(format!(" {name} "), palette.badge())];
    for label in problem_labels(app.problems(), palette) {
        first.extend([Span::raw(" "), label]);
    }
    if number("Stopping") > 0 {
        first.push(Span::styled("  stopping", palette.alarm()));
    }
    first.push(Span::raw("  up "));
    first.push(bold(duration(number("Uptime_sec"))));
    first.push(Span::raw(format!("   pid {}   {}{node}", number("Pid"), info("Version"))));
    let errors = if app.errors() > 0.0 { palette.alarm() } else { Style::new().bold() };
    let second = Line::from(vec![
        Span::raw(" conn "),
        bold(number("CurrConns").to_string()),
        Span::raw(format!("/{}   req/s ", number("Maxconn"))),
        bold(short(app.requests())),
        Span::raw("   err/s "),
        Span::styled(short(app.errors()), errors),
        Span::raw("   out/s "),
        bold(short(app.sent())),
        Span::raw("   "),
        bold(format!("{busy}%")),
        Span::raw(format!(" of {} threads busy", number("Nbthread"))),
    ]);
    frame.render_widget(Paragraph::new(vec![Line::from(first), second]), area);
}

fn draw_table(app: &mut App, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let visible = (area.height as usize).saturating_sub(1);
    app.selection.scroll(visible, app.rows.len());
    let columns = app.widths.fit(area.width as usize);
    let mut lines = vec![titles(app, &columns)];
    for (at, shown) in app.rows.iter().enumerate().skip(app.selection.first).take(visible) {
        let line = row(shown, &columns, palette);
        lines.push(if at == app.selection.at { line.patch_style(Modifier::REVERSED) } else { line });
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn titles(app: &App, columns: &[ColumnWidth]) -> Line<'static> {
    let mut spans = Vec::new();
    for ColumnWidth { column, width } in columns {
        let is_sorted = column.sort == Some(app.order.key);
        let mark = match (is_sorted, app.order.reversed) {
            (false, _) => "",
            (true, false) => "v",
            (true, true) => "^",
        };
        let style = Style::new().bold().underlined();
        spans.push(Span::styled(pad(column, &format!("{}{mark}", column.title), *width), style));
        spans.push(Span::raw(" ".repeat(GAP)));
    }
    Line::from(spans)
}

fn row(shown: &ViewRow, columns: &[ColumnWidth], palette: Palette) -> Line<'static> {
    let mut spans = Vec::new();
    for ColumnWidth { column, width } in columns {
        let text = pad(column, &(column.cell)(shown), *width);
        let style = match column.sort {
            Some(SortKey::Status) => palette.severity(shown.condition.severity),
            Some(SortKey::Name) if shown.row.kind == Kind::Backend => Style::new().bold(),
            _ if is_alarming(column, shown) => palette.alarm(),
            _ if column.shape == Shape::Rest && shown.condition.severity == Severity::Down => Style::new().bold(),
            _ => Style::new(),
        };
        spans.push(Span::styled(text, style));
        spans.push(Span::raw(" ".repeat(GAP)));
    }
    Line::from(spans)
}

fn draw_pane(chosen: &ViewRow, lines: &[super::detail::Line], frame: &mut Frame<'_>, area: Rect) {
    let width = (area.width as usize).saturating_sub(TITLE + 4);
    let text = lines.iter().map(|(title, text)| {
        let title = Span::styled(format!(" {title:<TITLE$}"), Style::new().bold());
        Line::from(vec![title, Span::raw(cut_end(text, width + 1))])
    });
    let name = columns::cut_name(&chosen.row.label(), (area.width as usize).saturating_sub(16));
    let block = Block::bordered().title(format!(" {} {name} ", chosen.row.kind.name()));
    frame.render_widget(Paragraph::new(text.collect::<Vec<_>>()).block(block), area);
}

fn draw_foot(app: &App, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let line = match (&app.mode, &app.message) {
        (Mode::Filter, _) => Line::from(format!(" filter: {}_", app.filter)).bold(),
        (_, Some((text, is_bad))) if *is_bad => Line::styled(format!(" {text}"), palette.alarm()),
        (_, Some((text, _))) => Line::from(format!(" {text}")).bold(),
        _ => {
            let filter = if app.filter.is_empty() { String::new() } else { format!(" with '{}'", app.filter) };
            let paused = if app.paused { "   PAUSED" } else { "" };
            let (count, key) = (app.rows.len(), app.order.key.name());
            let scope = app.scope.rows(count);
            Line::from(format!(
                " {count} {scope}{filter} by {key}{paused}   Enter details  Tab view  s sort  / filter  ? keys  q end"
            ))
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn popup(frame: &mut Frame<'_>, title: &str, text: &str) {
    let whole = frame.area();
    let width = text.lines().map(|line| line.chars().count()).max().unwrap_or(0) as u16 + 4;
    let height = text.lines().count() as u16 + 2;
    let (width, height) = (width.min(whole.width), height.min(whole.height));
    let area = Rect { x: (whole.width - width) / 2, y: (whole.height - height) / 2, width, height };
    let block = Block::bordered().title(format!(" {title} "));
    frame.render_widget(Clear, area);
    let text: Vec<Line<'_>> = text.lines().map(|line| Line::from(format!(" {line}"))).collect();
    frame.render_widget(Paragraph::new(text).block(block), area);
}
