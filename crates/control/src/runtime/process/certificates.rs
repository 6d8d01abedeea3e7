//! Certificates: shows them and changes them while in use (management manual, section 9.3, `ssl cert`). Must never read
//! a file: certificates are received as payloads.

use std::fmt::Write as _;
use std::sync::Arc;

use config::spec::RuntimeLevel;
use engine::certificate_parts::Part;
use engine::certificates::Certificates;
use engine::certificates::{CertificateState, used};
use engine::worker::Worker;
use expression::key::TokenCertificate;
use live::timeline::Author;
use policy::program::Program;
use tls::certificate::{Certificate, Draft, Error, Files, Usage};
use tls::ocsp::{Answer, CertId, describe};
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

/// Returns the file name argument of a command; answers with `expected` if there is none.
fn file(call: &mut Call<'_, Worker>, expected: &str) -> Option<String> {
    let name = call.word(3).to_owned();
    if name.is_empty() {
        call.refuse(expected);
        return None;
    }
    Some(name)
}

/// File name extensions of the parts.
const PARTS: [(&str, Part); 4] =
    [(".key", Part::Key), (".ocsp", Part::Ocsp), (".issuer", Part::Issuer), (".sctl", Part::Timestamps)];

/// Returns the certificate and the part that a file name refers to: unless it is a known certificate, the name without
/// the part's extension, or with `.crt` instead (`ssl-load-extra-del-ext`).
fn part(held: &CertificateState, program: &Program, name: &str) -> (String, Part) {
    let (all, is_changed) =
        (used(program), |name: &str| held.change.as_ref().is_some_and(|change| *change.name == *name));
    let tokens = program.keys.tokens();
    let is_known = |name: &str| {
        all.contains_key(name)
            || held.kept.contains_key(name)
            || is_changed(name)
            || tokens.known(name.as_bytes()).is_some()
    };
    if is_known(name) {
        return (name.to_owned(), Part::Text);
    }
    let parts = PARTS.iter().filter_map(|(end, part)| Some((name.strip_suffix(end)?, *part)));
    let mut owners = parts.flat_map(|(stem, part)| [(stem.to_owned(), part), (format!("{stem}.crt"), part)]);
    owners.find(|(name, _)| is_known(name)).unwrap_or((name.to_owned(), Part::Text))
}

fn set(call: &mut Call<'_, Worker>) {
    let written = call.word(3).to_owned();
    let Some(payload) = call.payload.filter(|payload| !written.is_empty() && !payload.is_empty()) else {
        call.refuse("'set ssl cert' expects a filename and a certificate as a payload");
        return;
    };
    let program = &call.generation.program;
    let mut held = call.state.process.service::<Certificates>().lock();
    let (name, part) = part(&held, program, &written);
    let name = name.as_str();
    let keyless = program.keys.tokens().known(name.as_bytes());
    let is_known = held.kept.contains_key(name) || used(program).contains_key(name) || keyless.is_some();
    let refused = match &held.change {
        Some(change) if *change.name != *name => {
            Some(format!("The ongoing transaction is about '{}' but you are trying to set '{name}'\n", change.name))
        }
        _ if !is_known => {
            Some("Can't replace a certificate which is not referenced by the configuration!\n".to_owned())
        }
        _ => None,
    };
    let done = if held.change.is_some() { "updated" } else { "created" };
    let refused = refused.or_else(|| {
        let mut draft = match held.change.take() {
            Some(draft) => draft,
            None => held.find(program, name).map_or_else(|| empty(name, keyless.as_ref()), |former| Draft::of(&former)),
        };
        let outcome = part.put(&mut draft, payload);
        // After an error, the open transaction is unchanged.
        if outcome.is_ok() || done == "updated" {
            held.change = Some(draft);
        }
        outcome.err().map(|why| format!("{why}Can't load the payload\n"))
    });
    drop(held);
    match refused {
        Some(why) => call.refuse(&format!("{why}Can't update {written}!\n")),
        None => call.inform(&format!("Transaction {done} for certificate {name}!")),
    }
}

/// A change of a certificate that has no key, or no content at all.
fn empty(name: &str, keyless: Option<&TokenCertificate>) -> Draft {
    let mut draft = Draft::empty(name);
    if let Some(keyless) = keyless {
        // It was read before.
        let _ = draft.set_text(to_pem(keyless).as_bytes());
        draft.files.certificate = keyless.file.as_deref().map(str::to_owned);
    }
    draft
}

fn to_pem(keyless: &TokenCertificate) -> String {
    keyless.chain.iter().map(|der| tls::pem::encode_certificate(der)).collect()
}

/// Commits a certificate without a key: it is for tokens alone.
fn commit_keyless(held: &mut CertificateState, program: &Program, draft: &Draft) -> Option<String> {
    let (tokens, name) = (program.keys.tokens(), draft.name.as_bytes());
    if !tokens.allows(name) || used(program).contains_key(&*draft.name) {
        return None;
    }
    let mut keys = TokenCertificate::new(draft.der(), &[])?;
    keys.chain = std::iter::once(draft.der()).chain(draft.chain()).map(<[u8]>::to_vec).collect();
    keys.file = draft.files.certificate.as_deref().map(Into::into);
    tokens.allow(name, keys);
    if let Some(kept) = held.kept.get_mut(&*draft.name) {
        *kept = None;
    }
    Some(format!("Committing {}\nSuccess!\n", draft.name))
}

fn commit(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'commit ssl cert' expects a filename") else { return };
    let mut held = call.state.process.service::<Certificates>().lock();
    let draft = match held.change.take() {
        Some(draft) if *draft.name == *name => draft,
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
    let (answer, is_done) = match draft.finish(rt::wall().seconds) {
        Err(Error::NoKey) => match commit_keyless(&mut held, &call.generation.program, &draft) {
            Some(done) => (done, true),
            None => {
                let why = format!("unable to load SSL private key into SSL Context '{name}': passed a null parameter.");
                (format!("Committing {name}\n{why}\nFailed!\n"), false)
            }
        },
        Err(why) => {
            held.change = Some(draft);
            (format!("{}.\nCan't commit {name}!\n", why.sentence(&name)), false)
        }
        Ok((certificate, ignored)) => match put(&mut held, &call.generation.program, &Arc::new(certificate)) {
            Ok(places) => {
                let told = ignored.map_or_else(String::new, |why| {
                    format!("Loading: {}. Content will be ignored.\n", why.sentence().trim_end_matches('.'))
                });
                (format!("Committing {name}{}\n{told}Success!\n", ".".repeat(places)), true)
            }
            // The transaction can be corrected and committed again.
            Err(why) => {
                held.change = Some(draft);
                (format!("Committing {name}\n{why}\nFailed!\n"), false)
            }
        },
    };
    drop(held);
    if is_done {
        engine::timeline::certificate(&call.state.process, &name, Author::Cli, rt::wall());
        engine::ocsp::look_again(&call.state.process);
        call.inform(&answer);
    } else {
        call.refuse(&answer);
    }
}

/// Puts a certificate in its place; one that had no key before is kept from now on.
fn put(held: &mut CertificateState, program: &Program, certificate: &Arc<Certificate>) -> Result<usize, String> {
    let name = &*certificate.name;
    if !held.kept.contains_key(name) && program.keys.tokens().known(name.as_bytes()).is_some() {
        held.kept.insert(name.to_owned(), None);
    }
    held.put(program, certificate)
}

fn abort(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'abort ssl cert' expects a filename") else { return };
    let mut held = call.state.process.service::<Certificates>().lock();
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

/// Maximum number of added names: each uses memory.
const MOST_ADDED: usize = 10_000;

fn new(call: &mut Call<'_, Worker>) {
    let Some(name) = file(call, "'new ssl cert' expects a filename") else { return };
    let mut held = call.state.process.service::<Certificates>().lock();
    let program = &call.generation.program;
    let is_keyless = program.keys.tokens().known(name.as_bytes()).is_some();
    let exists = held.kept.contains_key(&name) || used(program).contains_key(&name) || is_keyless;
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
    let mut held = call.state.process.service::<Certificates>().lock();
    let tokens = call.generation.program.keys.tokens();
    let refused = if tokens.allows(name.as_bytes()) {
        Some(format!("certificate '{name}' in use for JWT validation, can't be deleted!"))
    } else if used(&call.generation.program).contains_key(&name) {
        Some(format!("certificate '{name}' in use, can't be deleted!"))
    } else if held.change.as_ref().is_some_and(|change| *change.name == *name) {
        Some(format!("ongoing transaction for the certificate '{name}'"))
    } else if held.kept.remove(&name).is_none() && tokens.known(name.as_bytes()).is_none() {
        Some(format!("certificate '{name}' doesn't exist!"))
    } else {
        tokens.forget(name.as_bytes());
        None
    };
    drop(held);
    match refused {
        Some(why) => call.refuse(&format!("Can't remove the certificate: {why}")),
        None => call.inform(&format!("Certificate '{name}' deleted!")),
    }
}

/// Returns the key that verifies and decrypts tokens with a certificate.
pub(super) fn token_keys(certificate: &Certificate) -> Option<TokenCertificate> {
    TokenCertificate::new(certificate.der(), certificate.private_der())
}

/// The certificate that a command about tokens means: one that is committed, has no key, or no content yet. With it, what
/// verifies tokens by it.
fn of_tokens(call: &mut Call<'_, Worker>, expected: &str) -> Option<(String, Option<TokenCertificate>)> {
    let name = file(call, expected)?;
    let found = match find(call, &name).filter(|_| !name.starts_with('*')) {
        Some(CertificateLookup::Here(certificate, _)) => token_keys(&certificate).map(Some),
        Some(CertificateLookup::Keyless(keys)) => Some(Some(keys)),
        Some(CertificateLookup::Empty) => Some(None),
        None => None,
    };
    if found.is_none() {
        call.refuse(NOT_FOUND);
    }
    found.map(|keys| (name, keys))
}

fn allow_tokens(call: &mut Call<'_, Worker>) {
    // The message is HAProxy's.
    let Some((name, keys)) = of_tokens(call, "'add ssl cert' expects a filename") else { return };
    let tokens = call.generation.program.keys.tokens();
    match keys {
        Some(keys) => tokens.allow(name.as_bytes(), keys),
        None => tokens.allow_empty(name.as_bytes()),
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

/// The certificate of a name, and its usage.
enum CertificateLookup {
    Empty,
    /// Without a key: it verifies tokens.
    Keyless(TokenCertificate),
    Here(Arc<Certificate>, &'static str),
}

fn find(call: &Call<'_, Worker>, name: &str) -> Option<CertificateLookup> {
    if let Some(certificate) = used(&call.generation.program).remove(name) {
        return Some(CertificateLookup::Here(certificate, "Used"));
    }
    let held = call.state.process.service::<Certificates>().lock();
    let kept = held.kept.get(name);
    if let Some(Some(certificate)) = kept {
        return Some(CertificateLookup::Here(Arc::clone(certificate), "Unused"));
    }
    let keyless = call.generation.program.keys.tokens().known(name.as_bytes());
    keyless.map(CertificateLookup::Keyless).or_else(|| kept.map(|_| CertificateLookup::Empty))
}

/// Returns the OCSP response for a name with that extension. `None`: unknown certificate.
#[expect(clippy::option_option, reason = "a certificate without an answer is there")]
fn answer(call: &Call<'_, Worker>, name: &str) -> Option<Option<Vec<u8>>> {
    let name = name.strip_suffix(".ocsp")?;
    if let Some(name) = name.strip_prefix('*') {
        let held = call.state.process.service::<Certificates>().lock();
        let change = held.change.as_ref().filter(|change| *change.name == *name)?;
        return Some(change.answer().map(<[u8]>::to_vec));
    }
    match find(call, name)? {
        CertificateLookup::Empty | CertificateLookup::Keyless(_) => Some(None),
        CertificateLookup::Here(certificate, _) => Some(certificate.ocsp().map(|answer| answer.der.clone())),
    }
}

const NOT_FOUND: &str = "Can't display the certificate: Not found or the certificate is a bundle!";

fn show(call: &mut Call<'_, Worker>) {
    let name = call.word(3).to_owned();
    if name.is_empty() {
        let held = call.state.process.service::<Certificates>().lock();
        let mut text =
            held.change.as_ref().map_or_else(String::new, |change| format!("# transaction\n*{}\n", change.name));
        text.push_str("# filename\n");
        let mut names: Vec<String> = used(&call.generation.program).into_keys().collect();
        names.extend(held.kept.keys().cloned());
        let of_tokens = call.generation.program.keys.tokens().names();
        names.extend(of_tokens.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
        drop(held);
        names.sort();
        names.dedup();
        names.iter().for_each(|name| text.extend([name, "\n"]));
        call.answer.push(text);
        return;
    }
    if let Some(text) = details(call, &name) {
        call.answer.push(text);
    } else if let Some(answer) = answer(call, &name) {
        // An uncommitted response may be invalid.
        call.answer.push(answer.and_then(|der| describe(&der)).unwrap_or_default());
    } else {
        call.refuse(NOT_FOUND);
    }
}

/// Returns the description of a certificate, or of a transaction. `None`: unknown.
fn details(call: &Call<'_, Worker>, name: &str) -> Option<String> {
    if let Some(changed) = name.strip_prefix('*') {
        let held = call.state.process.service::<Certificates>().lock();
        let draft = held.change.as_ref().filter(|change| *change.name == *changed)?;
        let shown = CertificateDetails {
            der: draft.der(),
            chain: draft.chain().collect(),
            files: Some(&draft.files),
            usage: draft.usage,
            id: draft.answer().and_then(|der| Answer::parse(der).ok()).map(|answer| answer.id),
        };
        return Some(lines(name, &shown, "Uncommitted", false));
    }
    let is_for_tokens = call.generation.program.keys.tokens().allows(name.as_bytes());
    match find(call, name)? {
        CertificateLookup::Empty => Some(lines(name, &CertificateDetails::default(), "Empty", is_for_tokens)),
        CertificateLookup::Keyless(keys) => {
            let files = Files { certificate: keys.file.as_deref().map(str::to_owned), ..Files::default() };
            let der = keys.chain.first().map_or(&[][..], Vec::as_slice);
            let chain = keys.chain.iter().skip(1).map(Vec::as_slice).collect();
            let shown = CertificateDetails { der, chain, files: Some(&files), ..CertificateDetails::default() };
            Some(lines(name, &shown, "Unused", is_for_tokens))
        }
        CertificateLookup::Here(certificate, status) => {
            let program = &call.generation.program;
            let is_updated = certificate.usage.ocsp_update.unwrap_or(program.ocsp.is_usual);
            let is_asked = status == "Used" && is_updated && certificate.responder().is_some();
            let id = certificate.ocsp_id().filter(|_| is_asked || certificate.ocsp().is_some());
            let shown = CertificateDetails {
                der: certificate.der(),
                chain: certificate.chain().collect(),
                files: Some(&certificate.files),
                usage: certificate.usage,
                id,
            };
            Some(lines(name, &shown, status, is_for_tokens))
        }
    }
}

/// The properties of a certificate to show.
#[derive(Default)]
struct CertificateDetails<'a> {
    /// DER encoding; empty: missing.
    der: &'a [u8],
    chain: Vec<&'a [u8]>,
    files: Option<&'a Files>,
    usage: Usage,
    /// The id of its OCSP response.
    id: Option<CertId>,
}

/// Returns the lines about a certificate.
fn lines(name: &str, shown: &CertificateDetails<'_>, status: &str, for_tokens: bool) -> String {
    let mut text = format!("Filename: {name}\n");
    if let Some(files) = shown.files {
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
    let switch = |is_on: bool| if is_on { "on" } else { "off" };
    let (update, jwt) = (switch(shown.usage.ocsp_update == Some(true)), switch(for_tokens));
    let told = if for_tokens && status != "Empty" { "Used for JWT verification" } else { status };
    let _ = write!(text, "Option: ocsp-update {update}\nOption: jwt {jwt}\nStatus: {told}\n");
    if let Some(chain) = shown.files.and_then(|files| files.chain.as_ref()) {
        let _ = writeln!(text, "Chain Filename: {chain}");
    }
    if let Some(own) = x509::details(shown.der) {
        let _ = write!(text, "Serial: {}\nnotBefore: {}\nnotAfter: {}\n", own.serial, own.not_before, own.not_after);
        if let Some(names) = &own.alternative_names {
            let _ = writeln!(text, "Subject Alternative Name: {names}");
        }
        let print = x509::fingerprint(shown.der);
        let _ = write!(
            text,
            "Algorithm: {}\nSHA1 FingerPrint: {print}\nSubject: {}\nIssuer: {}\n",
            own.algorithm, own.subject, own.issuer
        );
        for behind in shown.chain.iter().filter_map(|der| x509::details(der)) {
            let _ = write!(text, "Chain Subject: {}\nChain Issuer: {}\n", behind.subject, behind.issuer);
        }
    }
    let id = shown.id.as_ref().map(CertId::to_der);
    let key = base::hex::encode_lower(id.as_deref().unwrap_or_default());
    let _ = writeln!(text, "OCSP Response Key: {key}");
    text
}

fn dump(call: &mut Call<'_, Worker>) {
    let name = call.word(3).to_owned();
    match find(call, &name) {
        Some(CertificateLookup::Here(certificate, _)) => call.answer.push(certificate.to_pem()),
        Some(CertificateLookup::Keyless(keys)) => call.answer.push(to_pem(&keys)),
        _ => call.refuse(NOT_FOUND),
    }
}
