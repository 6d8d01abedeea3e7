//! The terminal and the thread that queries the process. Must never interpret a key.

use super::app::{App, Effect, TaskResult};
use super::detail::ProxyDetails;
use super::options::Options;
use super::palette::Palette;
use super::sample::{QUESTION, QUESTION_WITH_LATENCY, Sample};
use super::{screen, socket};
use crate::Outcome;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rt::clock::moment;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Task of the querying thread.
enum Job {
    /// Query the statistics.
    Look {
        latency: bool,
    },
    /// Query the details of a proxy.
    Details {
        proxy: String,
        has_flows: bool,
    },
    Do(String),
}

/// Queries the statistics.
fn look(options: &Options, latency: bool) -> Result<Sample, String> {
    let question = if latency { QUESTION_WITH_LATENCY } else { QUESTION };
    socket::ask(&options.socket, question).and_then(|text| Sample::parse(&text))
}

/// Queries the process until the channel is closed.
fn ask(options: &Options, jobs: &Receiver<Job>, news: &Sender<TaskResult>) {
    for job in jobs {
        let found = match job {
            Job::Look { latency } => match look(options, latency) {
                Ok(sample) => TaskResult::Sample(Box::new(sample)),
                Err(why) => TaskResult::Failed(format!("{}: {why}", options.socket.shown())),
            },
            // The details are additional: a process that refuses them is shown without.
            Job::Details { proxy, has_flows } => {
                match socket::ask(&options.socket, &ProxyDetails::question(&proxy, has_flows)) {
                    Ok(text) => TaskResult::Details(Box::new(ProxyDetails::parse(&proxy, &text))),
                    Err(_) => continue,
                }
            }
            Job::Do(command) => match socket::ask(&options.socket, &command) {
                Ok(answer) => TaskResult::Done(answer),
                Err(why) => TaskResult::Failed(why),
            },
        };
        if news.send(found).is_err() {
            return;
        }
    }
}

/// Shows the view until a key ends it.
pub fn run(options: Options) -> Outcome {
    // A process that cannot be queried is reported before the terminal is switched.
    let first = match look(&options, true) {
        Ok(sample) => sample,
        Err(why) => return options.failure(&why),
    };
    let mut app = App::new(&options);
    app.take(first);
    let ((jobs, queue), (sender, news)) = (channel(), channel());
    std::thread::spawn(move || ask(&options, &queue, &sender));
    let terminal = ratatui::try_init();
    let result = terminal.and_then(|mut terminal| {
        let result = show(&mut app, &mut terminal, &jobs, &news);
        ratatui::try_restore().and(result)
    });
    match result {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::Failed(format!("the terminal: {error}")),
    }
}

fn show(
    app: &mut App,
    terminal: &mut ratatui::DefaultTerminal,
    jobs: &Sender<Job>,
    news: &Receiver<TaskResult>,
) -> std::io::Result<()> {
    const TICK: Duration = Duration::from_millis(100);
    let palette = Palette::of(std::env::var_os("NO_COLOR").as_deref(), std::env::var_os("TERM").as_deref());
    let (mut due, mut waits) = (moment() + app.interval, false);
    let mut detailed = None;
    loop {
        for found in news.try_iter() {
            waits &= !matches!(found, TaskResult::Sample(_) | TaskResult::Failed(_));
            app.hear(found);
        }
        terminal.draw(|frame| screen::draw(app, palette, frame))?;
        let is_due = !app.paused && !waits && moment() >= due;
        if is_due {
            waits = jobs.send(Job::Look { latency: app.asks_latency() }).is_ok();
            due = moment() + app.interval;
        }
        let proxy = app.detailed_proxy().map(str::to_owned);
        if let Some(proxy) = proxy.clone().filter(|_| is_due || proxy != detailed) {
            let _ = jobs.send(Job::Details { proxy, has_flows: app.has_flows() });
        }
        detailed = proxy;
        if !event::poll(TICK.min(due.saturating_since(moment()).max(Duration::from_millis(10))))? {
            continue;
        }
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            match app.key(key) {
                Effect::None => {}
                Effect::End => return Ok(()),
                Effect::Do(command) => {
                    let _ = jobs.send(Job::Do(command));
                    due = moment();
                }
            }
        }
    }
}
