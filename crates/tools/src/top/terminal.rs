//! The terminal and the thread that queries the process. Must never interpret a key.

use super::app::{App, Effect, TaskResult};
use super::options::Options;
use super::sample::{self, Sample};
use super::{screen, socket};
use crate::Outcome;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rt::clock::moment;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Task of the querying thread.
enum Job {
    Look,
    Do(String),
}

/// Queries the process until the channel is closed.
fn ask(options: &Options, jobs: &Receiver<Job>, news: &Sender<TaskResult>) {
    for job in jobs {
        let found = match job {
            Job::Look => match socket::ask(&options.socket, sample::QUESTION).and_then(|text| Sample::parse(&text)) {
                Ok(sample) => TaskResult::Sample(Box::new(sample)),
                Err(why) => TaskResult::Failed(format!("{}: {why}", options.socket.shown())),
            },
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
    let first = socket::ask(&options.socket, sample::QUESTION).and_then(|text| Sample::parse(&text));
    let first = match first {
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
    let (mut due, mut waits) = (moment() + app.interval, false);
    loop {
        for found in news.try_iter() {
            waits &= !matches!(found, TaskResult::Sample(_) | TaskResult::Failed(_));
            app.hear(found);
        }
        terminal.draw(|frame| screen::draw(app, frame))?;
        if !app.paused && !waits && moment() >= due {
            waits = jobs.send(Job::Look).is_ok();
            due = moment() + app.interval;
        }
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
