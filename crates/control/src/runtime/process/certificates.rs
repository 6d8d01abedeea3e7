//! Certificates: what there is of them, and changes while they are in use (management manual, section 9.3, `ssl cert`). Must never
//! read a file: certificates come as payloads.

use std::fmt::Write as _;
use std::sync::Arc;

use config::spec::RuntimeLevel;
use engine::certificates::{replace, used};
use engine::worker::Worker;
use expression::key::TokenCertificate;
use tls::certificate::Certificate;
use tls::x509;

use super::super::{Call, Command, Run};

const fn row(
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    run: fn(&mut Call<'_, Worker>),
) -> Command<Worker> {
    Command::new(name, usage, doc, Run::Now(run)).at(RuntimeLevel::Admin)
}

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    row("add ssl jwt", "add ssl jwt <certfile>", "add certificate to list of certificates used for JWT validation", allow_tokens),
    row("del ssl jwt", "del ssl jwt <certfile>", "remove certificate from list of certificates used for JWT validation", refuse_tokens),
    row("show ssl jwt", "show ssl jwt", "show list of certificates used for JWT validation", show_tokens).at(RuntimeLevel::Operator),
    row("abort ssl cert", "abort ssl cert <certfile>", "abort a transaction for a certificate file", abort),
    row("commit ssl cert", "commit ssl cert <certfile>", "commit a certificate file", commit),
    row("del ssl cert", "del ssl cert <certfile>", "delete an unused certificate file", delete),
    row("dump ssl cert", "dump ssl cert <certfile>", "dump the SSL certificates in PEM format", dump),
    row("new ssl cert", "new ssl cert <certfile>", "create a new certificate file to be used in a crt-list or a directory", new),
    row("set ssl cert", "set ssl cert <certfile> <payload>", "replace a certificate file", set),
    row("show ssl cert", "show ssl cert [<certfile>]", "display the SSL certificates used in memory, or the details of a file", show)
        .at(RuntimeLevel::Operator),
];

/// The file that a command is about; says what is expected where none is named.
fn file(call: &mut Call<'_, Worker>, expected: &str) -> Option<String> {
    let name = call.word(3).to_owned();
    if name.is_empty() {
        call.refuse(expected);
        return None;
    }
    Some(name)
}

fn set(call: &mut Call<'_, Worker>) {
    let name = call.word(3).to_owned();
    let Some(payload) = call.payload.filter(|payload| !name.is_empty() && !payload.is_empty()) else {
        call.refuse("'set ssl cert' expects a filename and a certificate as a payload");
        return;
    };
    let mut held = call.state.process.certificates.lock();
    let refused = match &held.change {
        Some(change) if *change.name != *name => Some(format!(
            "The ongoing transaction is about '{}' but you are trying to set '{name}'\nCan't update {name}!\n",
            change.name
        )),
        _ if !held.kept.contains_key(&name) && !used(&call.generation.program).contains_key(&name) => {
            let why = "Can't replace a certificate which is not referenced by the configuration!";
            Some(format!("{why}\nCan't update {name}!\n"))
        }
        _ => None,
    };
    let refused = refused.or_else(|| match Certificate::read(&name, payload, None) {
        Ok(certificate) => {
            held.change = Some(Arc::new(certificate));
            None
        }
        Err(why) => Some(format!("{}.\nCan't load the payload\nCan't update {name}!\n", why.sentence(&name))),
    });
    drop(held);
    match refused {
        Some(why) => call.refuse(&why),
        None => call.inform(&format!("Transaction created for certificate {name}!")),
    }
}

fn commit(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'commit ssl cert' expects a filename") else { return };
    let mut held = call.state.process.certificates.lock();
    let change = match held.change.take() {
        Some(change) if *change.name == *name => change,
        other => {
            let why = match &other {
                None => "No ongoing transaction! !".to_owned(),
                Some(other) => {
                    format!("The ongoing transaction is about '{}' but you are trying to set '{name}'", other.name)
                }
            };
            held.change = other;
            drop(held);
            call.refuse(&format!("{why}\nCan't commit {name}!\n"));
            return;
        }
    };
    let done = replace(&call.generation.program, &change);
    match &done {
        Ok(_) => {
            let tokens = call.generation.program.keys.tokens();
            if let Some(keys) = token_keys(&change).filter(|_| tokens.allows(name.as_bytes())) {
                tokens.allow(name.as_bytes(), keys);
            }
            if let Some(kept) = held.kept.get_mut(&name) {
                *kept = Some(change);
            }
        }
        // It can be put right and committed again.
        Err(_) => held.change = Some(change),
    }
    drop(held);
    match done {
        Ok(places) => {
            let dots = ".".repeat(places);
            call.inform(&format!("Committing {name}{dots}\nSuccess!\n"));
        }
        Err(why) => call.refuse(&format!("Committing {name}\n{why}\nFailed!\n")),
    }
}

fn abort(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'abort ssl cert' expects a filename") else { return };
    let mut held = call.state.process.certificates.lock();
    let refused = match &held.change {
        None => Some("No ongoing transaction!".to_owned()),
        Some(change) if *change.name != *name => Some(format!(
            "The ongoing transaction is about '{}' but you are trying to abort a transaction for '{name}'",
            change.name
        )),
        Some(_) => None,
    };
    if refused.is_none() {
        held.change = None;
    }
    drop(held);
    match refused {
        Some(why) => call.refuse(&why),
        None => call.inform(&format!("Transaction aborted for certificate '{name}'!")),
    }
}

/// Names that may be added: a day's work needs no more, and each costs memory.
const MOST_ADDED: usize = 10_000;

fn new(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'new ssl cert' expects a filename") else { return };
    let mut held = call.state.process.certificates.lock();
    let exists = held.kept.contains_key(&name) || used(&call.generation.program).contains_key(&name);
    let is_full = held.kept.len() >= MOST_ADDED;
    if !exists && !is_full {
        held.kept.insert(name.clone(), None);
    }
    drop(held);
    match (exists, is_full) {
        (true, _) => call.refuse(&format!("Certificate '{name}' already exists!")),
        (false, true) => call.refuse("Too many certificates were added already!"),
        (false, false) => call.inform(&format!("New empty certificate store '{name}'!")),
    }
}

fn delete(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'del ssl cert' expects a certificate name") else { return };
    let mut held = call.state.process.certificates.lock();
    let refused = if used(&call.generation.program).contains_key(&name) {
        Some(format!("certificate '{name}' in use, can't be deleted!"))
    } else if held.change.as_ref().is_some_and(|change| *change.name == *name) {
        Some(format!("ongoing transaction for the certificate '{name}'"))
    } else if call.generation.program.keys.tokens().allows(name.as_bytes()) {
        Some(format!("certificate '{name}' in use for JWT validation, can't be deleted!"))
    } else if held.kept.remove(&name).is_none() {
        Some(format!("certificate '{name}' doesn't exist!"))
    } else {
        call.generation.program.keys.tokens().forget(name.as_bytes());
        None
    };
    drop(held);
    match refused {
        Some(why) => call.refuse(&format!("Can't remove the certificate: {why}")),
        None => call.inform(&format!("Certificate '{name}' deleted!")),
    }
}

/// What verifies and decrypts tokens by a certificate.
fn token_keys(certificate: &Certificate) -> Option<TokenCertificate> {
    TokenCertificate::new(certificate.der(), certificate.private_der())
}

/// The certificate that a command about tokens means: one that is committed.
fn of_tokens(call: &mut Call<'_, Worker>, expected: &str) -> Option<(String, Arc<Certificate>)> {
    let name = file(call, expected)?;
    match find(call, &name).filter(|_| !name.starts_with('*')) {
        Some(Found::Here(certificate, _)) => Some((name, certificate)),
        Some(Found::Empty) | None => {
            call.refuse(NOT_FOUND);
            None
        }
    }
}

fn allow_tokens(call: &mut Call<'_, Worker>) {
    // HAProxy says so.
    let Some((name, certificate)) = of_tokens(call, "'add ssl cert' expects a filename") else { return };
    match token_keys(&certificate) {
        Some(keys) => call.generation.program.keys.tokens().allow(name.as_bytes(), keys),
        None => call.refuse(NOT_FOUND),
    }
}

fn refuse_tokens(call: &mut Call<'_, Worker>) {
    let Some((name, _)) = of_tokens(call, "'del ssl cert' expects a filename") else { return };
    call.generation.program.keys.tokens().refuse(name.as_bytes());
}

fn show_tokens(call: &mut Call<'_, Worker>) {
    let names = call.generation.program.keys.tokens().allowed();
    let lines = names.iter().map(|name| format!("{}\n", String::from_utf8_lossy(name)));
    call.answer.push(format!("# filename\n{}", lines.collect::<String>()));
}

/// What a name stands for, and how it is used.
enum Found {
    Empty,
    Here(Arc<Certificate>, &'static str),
}

fn find(call: &Call<'_, Worker>, name: &str) -> Option<Found> {
    let held = call.state.process.certificates.lock();
    if let Some(name) = name.strip_prefix('*') {
        let change = held.change.as_ref().filter(|change| *change.name == *name)?;
        return Some(Found::Here(Arc::clone(change), "Uncommitted"));
    }
    if let Some(certificate) = used(&call.generation.program).remove(name) {
        return Some(Found::Here(certificate, "Used"));
    }
    Some(match held.kept.get(name)? {
        None => Found::Empty,
        Some(certificate) => Found::Here(Arc::clone(certificate), "Unused"),
    })
}

const NOT_FOUND: &str = "Can't display the certificate: Not found or the certificate is a bundle!";

fn show(call: &mut Call<'_, Worker>) {
    let name = call.word(3).to_owned();
    if name.is_empty() {
        let held = call.state.process.certificates.lock();
        let mut text =
            held.change.as_ref().map_or_else(String::new, |change| format!("# transaction\n*{}\n", change.name));
        text.push_str("# filename\n");
        let mut names: Vec<String> = used(&call.generation.program).into_keys().collect();
        names.extend(held.kept.keys().cloned());
        drop(held);
        names.sort();
        names.dedup();
        names.iter().for_each(|name| text.extend([name, "\n"]));
        call.answer.push(text);
        return;
    }
    match find(call, &name) {
        None => call.refuse(NOT_FOUND),
        Some(Found::Empty) => call.answer.push(lines(&name, None, ("Empty", false))),
        Some(Found::Here(certificate, status)) => {
            let for_tokens = call.generation.program.keys.tokens().allows(name.as_bytes());
            call.answer.push(lines(&name, Some(&certificate), (status, for_tokens)));
        }
    }
}

/// What is told of one certificate.
fn lines(name: &str, certificate: Option<&Certificate>, (status, for_tokens): (&str, bool)) -> String {
    let mut text = format!("Filename: {name}\n");
    if let Some(certificate) = certificate.filter(|_| status == "Used") {
        let files = &certificate.files;
        let named = [
            ("Crt", &files.certificate),
            ("Key", &files.key),
            ("OCSP", &files.ocsp),
            ("OCSP Issuer", &files.issuer),
            ("SCTL", &files.timestamps),
        ];
        for (kind, file) in named {
            if let Some(file) = file {
                let _ = writeln!(text, "{kind} filename: {file}");
            }
        }
    }
    let usage = certificate.map(|certificate| certificate.usage).unwrap_or_default();
    let switch = |is_on: bool| if is_on { "on" } else { "off" };
    let (update, jwt) = (switch(usage.ocsp_update == Some(true)), switch(usage.jwt || for_tokens));
    let told = if for_tokens { "Used for JWT verification" } else { status };
    let _ = write!(text, "Option: ocsp-update {update}\nOption: jwt {jwt}\nStatus: {told}\n");
    if let Some(chain) = certificate.and_then(|certificate| certificate.files.chain.as_ref()) {
        let _ = writeln!(text, "Chain Filename: {chain}");
    }
    if let Some((certificate, own)) = certificate.and_then(|one| Some((one, x509::details(one.der())?))) {
        let _ = write!(text, "Serial: {}\nnotBefore: {}\nnotAfter: {}\n", own.serial, own.not_before, own.not_after);
        if let Some(names) = &own.alternative_names {
            let _ = writeln!(text, "Subject Alternative Name: {names}");
        }
        let print = x509::fingerprint(certificate.der());
        let _ = write!(
            text,
            "Algorithm: {}\nSHA1 FingerPrint: {print}\nSubject: {}\nIssuer: {}\n",
            own.algorithm, own.subject, own.issuer
        );
        for behind in certificate.chain().filter_map(x509::details) {
            let _ = write!(text, "Chain Subject: {}\nChain Issuer: {}\n", behind.subject, behind.issuer);
        }
    }
    let id = certificate.and_then(|certificate| certificate.ocsp()).map(|answer| answer.id.to_der());
    let key: String = id.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    let _ = writeln!(text, "OCSP Response Key: {key}");
    text
}

fn dump(call: &mut Call<'_, Worker>) {
    let name = call.word(3).to_owned();
    match find(call, &name) {
        Some(Found::Here(certificate, _)) => call.answer.push(certificate.to_pem()),
        _ => call.refuse(NOT_FOUND),
    }
}
