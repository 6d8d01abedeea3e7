//! `show bgp` (Weir's own): the sessions with routers, and the routes that are announced. Must never change one.

use std::fmt::Write as _;
use std::time::Duration;

use base::moment::Moment;
use engine::worker::Worker;
use live::bgp::{Routes, SessionStatus};
use policy::program::{BgpNeighbor, BgpSpeaker};

use super::super::{Call, Command, Pending, Run};
use crate::bgp::Speakers;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show bgp",
    "show bgp [section]",
    "report the sessions with routers and the announced routes",
    Run::Gradual(show),
)];

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let wanted = call.word(2).to_owned();
        let generation = call.generation;
        let mut is_known = wanted.is_empty();
        for (section, speaker) in generation.program.bgp.iter().enumerate() {
            if !wanted.is_empty() && *speaker.name != *wanted {
                continue;
            }
            is_known = true;
            let speakers = call.state.process.service::<Speakers>();
            let text = speakers.lock(section).map(|state| {
                let statuses: Vec<_> = state.sessions.iter().map(live::bgp::Session::status).collect();
                describe(speaker, &statuses, &state.routes, rt::now())
            });
            call.answer.push(text.unwrap_or_default());
            call.answer.relieve().await?;
        }
        if !is_known {
            call.refuse("No such bgp section.");
        }
        Ok(())
    })
}

/// Returns one line for the section, one for each neighbor and one for each route.
fn describe(speaker: &BgpSpeaker, sessions: &[SessionStatus], routes: &Routes, now: Moment) -> String {
    let mut text = String::new();
    let own = speaker.neighbors.first().map(|neighbor| &neighbor.session);
    let _ = write!(text, "bgp {}", speaker.name);
    if let Some(own) = own {
        let _ = write!(text, " local-as={} router-id={}", own.local_as, own.router_id);
    }
    text.push('\n');
    for (neighbor, status) in speaker.neighbors.iter().zip(sessions) {
        describe_neighbor(&mut text, neighbor, status, now);
    }
    for (number, (plan, conditions)) in speaker.routes.iter().zip(&speaker.conditions).enumerate() {
        let (changed, changes) = routes.changes(number);
        let _ = write!(text, "route {}", plan.prefix);
        let conditions = match routes.current(number) {
            Some(current) => {
                let _ = write!(text, " state=announced announcement={}/{}", current + 1, conditions.len());
                conditions.get(current..=current).unwrap_or_default()
            }
            None => {
                let _ = write!(text, " state=withdrawn announcement=-/{}", conditions.len());
                conditions
            }
        };
        let written = conditions.iter().map(|condition| &*condition.text).collect::<Vec<_>>().join("; ");
        let since = changed.map(|changed| now.saturating_since(changed));
        let _ = writeln!(text, " changes={changes} for={} condition=\"{}\"", seconds(since), written.escape_debug());
    }
    text
}

fn describe_neighbor(text: &mut String, neighbor: &BgpNeighbor, status: &SessionStatus, now: Moment) {
    let ahead = status.next_attempt.map(|next| next.saturating_since(now));
    let _ = write!(
        text,
        "neighbor {} address={} as={} state={} for={} hold_time={} router_id={} announced={} established={} sent={} \
         received={} updates_sent={} updates_received={} routes_dropped={} malformed={} next_attempt={} last_end=",
        neighbor.name,
        neighbor.address,
        neighbor.session.peer_as,
        status.state.name(),
        seconds(Some(now.saturating_since(status.since))),
        seconds(status.hold_time),
        status.router_id.map_or("-".to_owned(), |id| id.to_string()),
        status.announced,
        status.established,
        status.sent.all,
        status.received.all,
        status.sent.updates,
        status.received.updates,
        status.dropped,
        status.faulty,
        seconds(ahead),
    );
    let _ = match &status.last_end {
        // Its text is escaped.
        Some(end) => writeln!(text, "\"{end}\""),
        None => writeln!(text, "-"),
    };
}

/// Writes a duration in seconds.
fn seconds(duration: Option<Duration>) -> String {
    duration.map_or("-".to_owned(), |duration| format!("{}s", duration.as_secs()))
}
