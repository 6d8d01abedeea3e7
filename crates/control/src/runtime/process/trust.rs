//! CA files and revocation lists: shows them and changes them while in use (management manual, section 9.3,
//! `ssl ca-file`, `ssl crl-file`). Must never read a file: contents are received as payloads.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;
use engine::certificates::Certificates;
use engine::certificates::{CertificateState, replace_trust, used_trust};
use engine::worker::Worker;
use live::timeline::Author;
use tls::trust::{TrustFile, Trusted};
use tls::{revocation, x509};

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
    row("abort ssl ca-file", "abort ssl ca-file <cafile>", "abort a transaction for a CA file", |call| abort(call, Kind::Ca)),
    row("abort ssl crl-file", "abort ssl crl-file <crlfile>", "abort a transaction for a CRL file", |call| abort(call, Kind::Crl)),
    row("add ssl ca-file", "add ssl ca-file <cafile> <payload>", "add a certificate into the CA file", |call| set(call, Kind::Ca, true)),
    row("commit ssl ca-file", "commit ssl ca-file <cafile>", "commit a CA file", |call| commit(call, Kind::Ca)),
    row("commit ssl crl-file", "commit ssl crl-file <crlfile>", "commit a CRL file", |call| commit(call, Kind::Crl)),
    row("del ssl ca-file", "del ssl ca-file <cafile>", "delete an unused CA file", |call| delete(call, Kind::Ca)),
    row("del ssl crl-file", "del ssl crl-file <crlfile>", "delete an unused CRL file", |call| delete(call, Kind::Crl)),
    row("new ssl ca-file", "new ssl ca-file <cafile>", "create a new CA file to be used in a crt-list", |call| new(call, Kind::Ca)),
    row("new ssl crl-file", "new ssl crl-file <crlfile>", "create a new CRL file to be used in a crt-list", |call| new(call, Kind::Crl)),
    row("set ssl ca-file", "set ssl ca-file <cafile> <payload>", "replace a CA file", |call| set(call, Kind::Ca, false)),
    row("set ssl crl-file", "set ssl crl-file <crlfile> <payload>", "replace a CRL file", |call| set(call, Kind::Crl, false)),
    row("show ssl ca-file", "show ssl ca-file [<cafile>[:<index>]]", "display the SSL CA files used in memory, or the details of a <cafile>, or a single certificate of index <index> of a CA file <cafile>", |call| show(call, Kind::Ca))
        .at(RuntimeLevel::Operator),
    row("show ssl crl-file", "show ssl crl-file [<crlfile[:<index>>]]", "display the SSL CRL files used in memory, or the details of a <crlfile>, or a single CRL of index <index> of CRL file <crlfile>", |call| show(call, Kind::Crl))
        .at(RuntimeLevel::Operator),
];

/// Types of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ca,
    Crl,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Ca => "CA",
            Self::Crl => "CRL",
        }
    }

    const fn keyword(self) -> &'static str {
        match self {
            Self::Ca => "ca-file",
            Self::Crl => "crl-file",
        }
    }

    /// Returns the open transaction for a file of this type.
    fn change(self, held: &mut CertificateState) -> &mut Option<TrustFile> {
        match self {
            Self::Ca => &mut held.authorities_change,
            Self::Crl => &mut held.lists_change,
        }
    }

    fn is_of(self, content: &Trusted) -> bool {
        matches!((self, content), (Self::Ca, Trusted::Certificates(_)) | (Self::Crl, Trusted::Lists(_)))
    }

    const fn empty(self) -> Trusted {
        match self {
            Self::Ca => Trusted::Certificates(Vec::new()),
            Self::Crl => Trusted::Lists(Vec::new()),
        }
    }

    fn read(self, payload: &[u8]) -> Option<Trusted> {
        match self {
            Self::Ca => Trusted::read_certificates(payload).ok(),
            Self::Crl => Trusted::read_lists(payload).ok().filter(|read| {
                // Valid lists must also be readable for `show`.
                read.lists().iter().all(|list| revocation::details(list).is_some())
            }),
        }
    }
}

/// Finds a file by its name. Unused ones are kept outside of the program.
fn find(call: &Call<'_, Worker>, held: &CertificateState, name: &str) -> Option<(Trusted, &'static str)> {
    if let Some(used) = used_trust(&call.generation.program).remove(name) {
        return Some((used, "Used"));
    }
    held.kept_trust.get(name).map(|content| (content.clone(), "Unused"))
}

fn file(call: &mut Call<'_, Worker>, expected: &str) -> Option<String> {
    let name = call.word(3).to_owned();
    if name.is_empty() {
        call.refuse(expected);
        return None;
    }
    Some(name)
}

fn new(call: &mut Call<'_, Worker>, kind: Kind) {
    let Some(name) = file(call, &format!("'new ssl {}' expects a filename", kind.keyword())) else { return };
    let kind_name = kind.name();
    let mut held = call.state.process.service::<Certificates>().lock();
    let exists = find(call, &held, &name).is_some();
    if !exists {
        held.kept_trust.insert(name.clone(), kind.empty());
    }
    drop(held);
    if exists {
        call.refuse(&format!("{kind_name} file '{name}' already exists!"));
    } else {
        call.notice(&format!("New {kind_name} file created '{name}'!"));
    }
}

/// `set`, or `add`, which keeps the existing certificates.
fn set(call: &mut Call<'_, Worker>, kind: Kind, adds: bool) {
    let (name, kind_name) = (call.word(3).to_owned(), kind.name());
    let Some(payload) = call.payload.filter(|payload| !name.is_empty() && !payload.is_empty()) else {
        let word = if adds { "add" } else { "set" };
        call.refuse(&format!("'{word} ssl {}' expects a filename and {kind_name}s as a payload", kind.keyword()));
        return;
    };
    let mut held = call.state.process.service::<Certificates>().lock();
    let answer = prepare(call, &mut held, kind, &name, payload, adds);
    drop(held);
    match answer {
        Ok(done) => call.notice(&format!("transaction {done} for {kind_name} {name}!")),
        Err(why) => call.refuse(&format!("{why}\nCan't update {name}!\n")),
    }
}

fn prepare(
    call: &Call<'_, Worker>,
    held: &mut CertificateState,
    kind: Kind,
    name: &str,
    payload: &[u8],
    adds: bool,
) -> Result<&'static str, String> {
    if let Some(change) = kind.change(held).as_ref().filter(|change| *change.name != *name) {
        return Err(format!("The ongoing transaction is about '{}' but you are trying to set '{name}'", change.name));
    }
    let former = find(call, held, name).filter(|(content, _)| kind.is_of(content));
    let Some((former, _)) = former else {
        let kind_name = kind.name();
        return Err(format!("Can't replace a {kind_name} file which is not referenced by the configuration!"));
    };
    let mut content = kind.read(payload).ok_or("Invalid payload")?;
    let under_way = kind.change(held).take();
    let done = if adds && under_way.is_some() { "updated" } else { "created" };
    if adds && let Trusted::Certificates(added) = &mut content {
        let before = under_way.map_or(former, |change| change.content);
        let fresh: Vec<_> = added.drain(..).filter(|one| !before.certificates().contains(one)).collect();
        added.extend(before.certificates().iter().cloned().chain(fresh));
    }
    *kind.change(held) = Some(TrustFile { name: name.into(), content });
    Ok(done)
}

fn commit(call: &mut Call<'_, Worker>, kind: Kind) {
    // HAProxy's message for both types.
    let Some(name) = file(call, "'commit ssl ca-file' expects a filename") else { return };
    let mut held = call.state.process.service::<Certificates>().lock();
    let change = match kind.change(&mut held).take() {
        Some(change) if *change.name == *name => change,
        other => {
            let why = match &other {
                None => "No ongoing transaction! !".to_owned(),
                Some(other) => {
                    format!("The ongoing transaction is about '{}' but you are trying to set '{name}'", other.name)
                }
            };
            *kind.change(&mut held) = other;
            drop(held);
            call.refuse(&format!("{why}\nCan't commit {name}!\n"));
            return;
        }
    };
    let done = replace_trust(&call.generation.program, &change);
    match &done {
        Ok(_) => {
            if let Some(kept) = held.kept_trust.get_mut(&name) {
                *kept = change.content;
            }
        }
        // The transaction can be corrected and committed again.
        Err(_) => *kind.change(&mut held) = Some(change),
    }
    drop(held);
    match done {
        Ok(places) => {
            engine::timeline::certificate(&call.state.process, &name, Author::Cli, rt::wall());
            call.notice(&format!("Committing {name}{}\nSuccess!\n", ".".repeat(places)));
        }
        Err(why) => call.refuse(&format!("Committing {name}\n{why}\nFailed!\n")),
    }
}

fn abort(call: &mut Call<'_, Worker>, kind: Kind) {
    let Some(name) = file(call, &format!("'abort ssl {}' expects a filename", kind.keyword())) else { return };
    let mut held = call.state.process.service::<Certificates>().lock();
    let change = kind.change(&mut held);
    let refused = match change {
        None => Some("No ongoing transaction!".to_owned()),
        Some(change) if *change.name != *name => Some(format!(
            "The ongoing transaction is about '{}' but you are trying to abort a transaction for '{name}'",
            change.name
        )),
        Some(_) => None,
    };
    if refused.is_none() {
        *change = None;
    }
    drop(held);
    match refused {
        Some(why) => call.refuse(&why),
        None => call.notice(&format!("Transaction aborted for certificate '{name}'!")),
    }
}

fn delete(call: &mut Call<'_, Worker>, kind: Kind) {
    let kind_name = kind.name();
    let expected = format!("'del ssl {}' expects a {kind_name} file name", kind.keyword());
    let Some(name) = file(call, &expected) else { return };
    let mut held = call.state.process.service::<Certificates>().lock();
    let found = find(call, &held, &name);
    let refused = if kind.change(&mut held).as_ref().is_some_and(|change| *change.name == *name) {
        Some(format!("ongoing transaction for the {kind_name} file '{name}'"))
    } else {
        match found {
            None => Some(format!("{kind_name} file '{name}' doesn't exist!")),
            Some((Trusted::Certificates(_), _)) if kind == Kind::Crl => {
                Some("'del ssl crl-file' does not work on CA files!".to_owned())
            }
            Some((_, "Used")) => Some(format!("{kind_name} file '{name}' in use, can't be deleted!")),
            Some(_) => None,
        }
    };
    if refused.is_none() {
        held.kept_trust.remove(&name);
    }
    drop(held);
    match refused {
        Some(why) => call.refuse(&format!("Can't remove the {kind_name} file: {why}")),
        None => call.notice(&format!("{kind_name} file '{name}' deleted!")),
    }
}

fn show(call: &mut Call<'_, Worker>, kind: Kind) {
    let written = call.word(3).to_owned();
    if written.is_empty() {
        list(call, kind);
        return;
    }
    let kind_name = kind.name();
    let (uncommitted, written) = match (written.strip_prefix('*'), written.strip_prefix("\\*")) {
        (Some(name), _) => (true, name.to_owned()),
        (None, Some(name)) => (false, format!("*{name}")),
        (None, None) => (false, written),
    };
    // A name may contain colons.
    let (name, index) = match written.rsplit_once(':') {
        Some((name, index)) => match index.parse::<usize>() {
            Ok(index @ 1..) => (name.to_owned(), Some(index)),
            _ => {
                call.refuse(&format!("wrong {kind_name} index after colons in '{written}'!"));
                return;
            }
        },
        None => (written, None),
    };
    let mut held = call.state.process.service::<Certificates>().lock();
    let found = if uncommitted {
        let change = kind.change(&mut held).as_ref().filter(|change| *change.name == *name);
        change.map(|change| (change.content.clone(), "Uncommitted"))
    } else {
        find(call, &held, &name).filter(|(content, _)| kind.is_of(content))
    };
    drop(held);
    let Some((content, status)) = found else {
        call.refuse(&format!("Can't display the {kind_name} file : Not found!"));
        return;
    };
    let star = if uncommitted { "*" } else { "" };
    let text = match &content {
        // HAProxy shows nothing for an empty CA file.
        Trusted::Certificates(all) if all.is_empty() => String::new(),
        Trusted::Lists(all) if all.is_empty() => format!("Filename: {name}\nStatus: Empty\n"),
        _ => details(&content, index, format!("Filename: {star}{name}\nStatus: {status}\n")),
    };
    call.answer.push(text);
}

fn details(content: &Trusted, index: Option<usize>, head: String) -> String {
    let is_wanted = |place: usize| index.is_none_or(|index| index == place + 1);
    let certificates = content.certificates().iter().enumerate().filter(|(place, _)| is_wanted(*place));
    let lists = content.lists().iter().enumerate().filter(|(place, _)| is_wanted(*place));
    let told = certificates
        .map(|(place, one)| certificate(place, one))
        .chain(lists.map(|(place, one)| list_details(place, one)));
    let told: String = told.collect();
    if told.is_empty() { told } else { head + &told }
}

fn certificate(place: usize, der: &[u8]) -> String {
    // A line with a blank: an empty line would end the answer.
    let mut text = format!(" \nCertificate #{}:\n", place + 1);
    if let Some(own) = x509::details(der) {
        let _ = write!(
            text,
            "Serial: {}\nnotBefore: {}\nnotAfter: {}\nSubject Alternative Name: {}\nAlgorithm: {}\nSHA1 FingerPrint: {}\nSubject: {}\nIssuer: {}\n",
            own.serial,
            own.not_before,
            own.not_after,
            own.alternative_names.unwrap_or_default(),
            own.algorithm,
            x509::fingerprint(der),
            own.subject,
            own.issuer
        );
    }
    text
}

fn list_details(place: usize, der: &[u8]) -> String {
    let mut text = format!(" \nCertificate Revocation List #{}:\n", place + 1);
    if let Some(own) = revocation::details(der) {
        let next = own.next_update.as_deref().unwrap_or("NONE");
        let _ = write!(
            text,
            "Version {}\nSignature Algorithm: {}\nIssuer: {}\nLast Update: {}\nNext Update: {next}\n",
            own.version, own.algorithm, own.issuer, own.last_update
        );
        text.push_str(if own.revoked.is_empty() { "No Revoked Certificates.\n" } else { "Revoked Certificates:\n" });
        for (serial, date) in &own.revoked {
            let _ = write!(text, "    Serial Number: {serial}\n        Revocation Date: {date}\n");
        }
    }
    text
}

/// Lists the names of all files of a type.
fn list(call: &mut Call<'_, Worker>, kind: Kind) {
    let count = |content: &Trusted| match kind {
        Kind::Ca => format!(" - {} certificate(s)", content.certificates().len()),
        Kind::Crl => String::new(),
    };
    let mut held = call.state.process.service::<Certificates>().lock();
    let mut text = match kind.change(&mut held) {
        Some(change) => format!("# transaction\n*{}{}\n", change.name, count(&change.content)),
        None => String::new(),
    };
    let mut all = held.kept_trust.clone();
    drop(held);
    all.extend(used_trust(&call.generation.program));
    text.push_str("# filename\n");
    for (name, content) in all.iter().filter(|(_, content)| kind.is_of(content)) {
        let _ = writeln!(text, "{name}{}", count(content));
    }
    call.answer.push(text);
}
