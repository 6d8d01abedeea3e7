//! `acme ...`: the state of automated certificates, and commands for them (management manual, section 9.3). Must never
//! send a request to an ACME server.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;
use engine::acme_state::State;
use engine::certificates::Certificates;
use engine::worker::Worker;
use tls::x509;
use wire::date::Date;

use super::super::{Call, Command, Run};

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("acme challenge_ready", "acme challenge_ready <certfile> domain <domain>", "notify HAProxy that the ACME challenge is ready", Run::Now(ready)).at(RuntimeLevel::Admin),
    Command::new("acme renew", "acme renew <certfile>", "renew a certificate using the ACME protocol", Run::Now(renew)).at(RuntimeLevel::Admin),
    Command::new("acme status", "acme status", "show status of certificates configured with ACME", Run::Now(status)).at(RuntimeLevel::Admin),
];

fn ready(call: &mut Call<'_, Worker>) {
    let (name, domain) = (call.word(2).to_owned(), call.word(4).to_owned());
    if name.is_empty() || call.word(3) != "domain" || domain.is_empty() {
        call.refuse("Not enough parameters: \"acme challenge_ready <certfile> domain <domain>\"");
        return;
    }
    match call.state.process.upkeep.acme.set_record(&name, &domain) {
        None => call
            .refuse(&format!("Couldn't find an ACME task using crt \"{name}\" and dns \"{domain}\" to set as ready!")),
        Some(0) => {
            call.inform(&format!("'{name}' challenges ready! All challenges ready, starting challenges validation!"));
        }
        Some(left) => {
            call.inform(&format!("'{name}' challenge(s) ready! Remaining challenges to deploy: {left}"));
        }
    }
}

fn renew(call: &mut Call<'_, Worker>) {
    let name = call.word(2).to_owned();
    if name.is_empty() {
        call.refuse(": not enough parameters");
        return;
    }
    let program = &call.generation.program;
    let own = program.acme.certificates.iter().find(|one| *one.name == *name);
    let is_known = own.is_some() || call.state.process.service::<Certificates>().lock().find(program, &name).is_some();
    if !is_known {
        call.refuse(&format!("Can't find the certificate '{name}'."));
    } else if own.is_none() {
        call.refuse(&format!("No ACME configuration defined for file '{name}'."));
    } else if own.is_some_and(|own| own.domains.is_empty() && own.ips.is_empty()) {
        call.refuse("No 'domains' or 'ips' were configured for certificate. Can't start the ACME client.");
    } else if !call.state.process.upkeep.acme.order(&name) {
        call.refuse(&format!("Task already exists for '{name}' certificate.\nCan't start the ACME client."));
    }
}

fn status(call: &mut Call<'_, Worker>) {
    let now = rt::wall().seconds;
    let mut text = "# certificate\tsection\tstate\texpiration date (UTC)\texpires in\tscheduled date (UTC)\t\
                    scheduled in\n"
        .to_owned();
    let acme = &call.generation.program.acme;
    for own in &acme.certificates {
        let section = acme.sections.get(own.section).map_or("", |section| &section.name);
        let standing = call.state.process.upkeep.acme.standing(&own.name);
        let state = match standing.state {
            State::Running => "Running",
            State::Scheduled => "Scheduled",
            State::Stopped => "Stopped",
        };
        let _ = write!(text, "{}\t{section}\t{state}", own.name);
        let certificate = call.state.process.service::<Certificates>().lock().find(&call.generation.program, &own.name);
        let validity = certificate.and_then(|one| x509::validity(one.der()));
        let due = standing.due.filter(|_| standing.state == State::Scheduled).map(|due| due.seconds);
        for moment in [validity.map(|validity| validity.not_after), due] {
            let _ = match moment {
                None => write!(text, "\t-\t-"),
                Some(moment) => write!(text, "\t{}\t{}", date(moment), span(moment - now)),
            };
        }
        text.push('\n');
    }
    call.answer.push(text);
}

/// Formats a time as `2026-11-23T15:15:01Z`.
fn date(seconds: i64) -> String {
    let Date { year, month, day, hour, minute, second, .. } = Date::since_epoch(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Formats a duration as `89d 23h01m13s`; a negative one as zero.
fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    format!("{}d {}h{:02}m{:02}s", seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::{date, span};

    #[test]
    fn moments_and_spans() {
        assert_eq!(date(1_795_446_901), "2026-11-23T15:15:01Z");
        assert_eq!(span(89 * 86_400 + 23 * 3_600 + 73), "89d 23h01m13s");
        assert_eq!(span(-5), "0d 0h00m00s");
    }
}
