//! OCSP responses at run time (management manual, section 9.3, `ocsp-response`, `ocsp-updates`). Must never accept a
//! response for a certificate that is not in use.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use base::base64;
use base::moment::WallTime;
use config::spec::RuntimeLevel;
use engine::certificates::used;
use engine::ocsp::{put, update, updated_responses};
use engine::worker::Worker;
use policy::program::Program;
use tls::certificate::Certificate;
use tls::ocsp::{Answer, CertId, describe};
use wire::date::Date;

use super::super::{Call, Command, Pending, Run};

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("set ssl ocsp-response", "set ssl ocsp-response <resp|payload>", "update a certificate's OCSP Response from a base64-encode DER", Run::Now(set)).at(RuntimeLevel::Admin),
    Command::new("show ssl ocsp-response", "show ssl ocsp-response [[text|base64] id]", "display the IDs of the OCSP responses used in memory, or the details of a single OCSP response (in text or base64 format)", Run::Now(show)).at(RuntimeLevel::Admin),
    Command::new("show ssl ocsp-updates", "show ssl ocsp-updates", "display information about the next 'nb' ocsp responses that will be updated automatically", Run::Now(show_updates)).at(RuntimeLevel::Admin),
    Command::new("update ssl ocsp-response", "update ssl ocsp-response <certfile>", "send ocsp request and update stored ocsp response", Run::Gradual(fetch)).at(RuntimeLevel::Admin),
];

fn hex(bytes: &[u8], upper: bool) -> String {
    if upper { base::hex::encode_upper(bytes) } else { base::hex::encode_lower(bytes) }
}

/// Returns the certificates that have a response or automatic updates, by OCSP certificate id.
fn certificates_by_id(program: &Program) -> BTreeMap<CertId, Arc<Certificate>> {
    let mut all = updated_responses(program);
    for certificate in used(program).into_values().filter(|certificate| certificate.ocsp().is_some()) {
        if let Some(id) = certificate.ocsp_id() {
            all.entry(id).or_insert(certificate);
        }
    }
    all
}

fn set(call: &mut Call<'_, Worker>) {
    let text = match call.payload.filter(|payload| !payload.is_empty()) {
        Some(payload) => String::from_utf8_lossy(payload).into_owned(),
        None => call.word(3).to_owned(),
    };
    let letters: String = text.chars().filter(|found| !found.is_ascii_whitespace()).collect();
    if letters.is_empty() {
        call.refuse("'set ssl ocsp-response' expects response in base64 encoding.");
        return;
    }
    let Some(der) = base64::decoded_strictly(letters.as_bytes()) else {
        call.refuse("'set ssl ocsp-response' received invalid base64 encoded response.");
        return;
    };
    let program = &call.generation.program;
    let read = Answer::parse(&der).and_then(|answer| Answer::read(&der, &answer.id, rt::wall().seconds));
    match read {
        Err(why) => call.refuse(&format!("{}.", why.sentence().trim_end_matches('.'))),
        Ok(answer) => match put(program, &Arc::new(answer)) {
            0 => call.refuse("OCSP single response: Certificate ID does not match any certificate or issuer."),
            _ => call.inform("OCSP Response updated!"),
        },
    }
}

fn show(call: &mut Call<'_, Worker>) {
    let all = certificates_by_id(&call.generation.program);
    let (first, second) = (call.word(3).to_owned(), call.word(4).to_owned());
    if first.is_empty() {
        let mut text = "# Certificate IDs\n".to_owned();
        for (id, certificate) in &all {
            let serial = id.serial.strip_prefix(&[0]).filter(|rest| !rest.is_empty()).unwrap_or(&id.serial);
            let _ = write!(
                text,
                "Certificate ID key : {}\nCertificate path : {}\n Certificate ID:\n   Issuer Name Hash: {}\n   Issuer Key \
                 Hash: {}\n   Serial Number: {}\n",
                hex(&id.to_der(), false),
                certificate.name,
                hex(&id.issuer_name, true),
                hex(&id.issuer_key, true),
                hex(serial, true)
            );
        }
        return call.answer.push(text);
    }
    let has_format = matches!(first.as_str(), "text" | "base64");
    if has_format && second.is_empty() {
        call.refuse("'show ssl ocsp-response [text|base64]' expects a valid certid.");
        return;
    }
    let wanted = if has_format { second } else { first.clone() };
    let is_wanted = |(id, certificate): &(&CertId, &Arc<Certificate>)| {
        hex(&id.to_der(), false).eq_ignore_ascii_case(&wanted) || *certificate.name == *wanted
    };
    let Some((_, certificate)) = all.iter().find(is_wanted) else {
        let is_id = wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) || wanted.contains('/');
        return call.refuse(match is_id {
            true => "Certificate ID or path does not match any certificate.",
            false => "'show ssl ocsp-response' expects a valid certid or certificate path.",
        });
    };
    // A response that is being updated may be missing.
    let Some(answer) = certificate.ocsp() else { return };
    if first == "base64" {
        call.answer.push(base64::encoded(&answer.der));
    } else {
        call.answer.push(describe(&answer.der).unwrap_or_default());
    }
}

/// Formats a time as `24/Nov/2026:15:44:43 +0000`.
fn date(moment: Option<WallTime>) -> String {
    let Some(moment) = moment else { return "-".to_owned() };
    let date = Date::since_epoch(moment.seconds);
    let month = String::from_utf8_lossy(date.month_name()).into_owned();
    format!("{:02}/{month}/{}:{:02}:{:02}:{:02} +0000", date.day, date.year, date.hour, date.minute, date.second)
}

fn show_updates(call: &mut Call<'_, Worker>) {
    let mut text = "OCSP Certid | Path | Next Update | Last Update | Successes | Failures | Last Update Status | Last \
                    Update Status (str)\n"
        .to_owned();
    let kept = updated_responses(&call.generation.program);
    for (id, record) in call.state.process.upkeep.ocsp.records().into_iter().filter(|(id, _)| kept.contains_key(id)) {
        let _ = writeln!(
            text,
            "{} | {} | {} | {} | {} | {} | {} | {}",
            hex(&id.to_der(), false),
            record.path,
            date(record.next),
            date(record.last),
            record.successes,
            record.failures,
            record.outcome.outcome.number(),
            record.outcome
        );
    }
    call.answer.push(text);
}

fn fetch<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let name = call.word(3).to_owned();
        if name.is_empty() {
            call.refuse("'update ssl ocsp-response' expects a filename");
            return Ok(());
        }
        let found = used(&call.generation.program).remove(&name);
        let Some(certificate) = found else {
            let why = "Unknown certificate! 'update ssl ocsp-response' expects an already known certificate file name.";
            call.refuse(&format!("{why}\nCan't send ocsp request for {name}!"));
            return Ok(());
        };
        if certificate.ocsp_id().is_none() || certificate.responder().is_none() {
            let why = "'update ssl ocsp-response' only works on certificates that already have a known OCSP response.";
            call.refuse(&format!("{why}\nCan't send ocsp request for {name}!"));
            return Ok(());
        }
        let Some(worker) = rt::local::<Worker>() else { return Ok(()) };
        match update(&Rc::clone(&worker), &certificate).await {
            Ok(answer) => call.answer.push(describe(&answer.der).unwrap_or_default()),
            Err(failure) => call.refuse(&format!("{failure}.\nCan't update the OCSP response of {name}!")),
        }
        Ok(())
    })
}
