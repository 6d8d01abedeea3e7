//! Certificate lists and the names that select a certificate (management manual, section 9.3, `ssl crt-list`,
//! `show ssl sni`). Must never read a file: certificates are already loaded.

use std::fmt::Write as _;
use std::sync::Arc;

use config::spec::RuntimeLevel;
use config::units::{self, TimeError, TimeUnit};
use engine::certificates::Certificates;
use engine::worker::Worker;
use policy::compile::{AddError, AddedLine, add_to_list};
use policy::program::{CrtLine, CrtList, Program, TlsListener};
use tls::certificate::{Certificate, Kind};
use tls::server::Entry;
use tls::x509;

use super::super::{Call, Command, Run};
use super::certificates::token_keys;

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
    row("add ssl crt-list", "add ssl crt-list <list> <cert> [opts]*", "add to crt-list file <list> a line <cert> or a payload", add),
    row("del ssl crt-list", "del ssl crt-list <list> <cert[:line]>", "delete a line <cert> from crt-list file <list>", delete),
    row("show ssl crt-list", "show ssl crt-list [-n] [<list>]", "show the list of crt-lists or the content of a crt-list file <list>", show)
        .at(RuntimeLevel::Admin),
    row("show ssl providers", "show ssl providers", "show loaded SSL providers", providers).at(RuntimeLevel::User),
    row("show ssl sni", "show ssl sni [-f <frontend>] [-A]", "display the list of SNI and their corresponding filename", names)
        .at(RuntimeLevel::User),
];

/// Finds a list by its name; trailing slashes of a folder are ignored.
fn find<'p>(program: &'p Program, name: &str) -> Option<&'p Arc<CrtList>> {
    let name = name.trim_end_matches('/');
    program.tls.lists.iter().find(|list| *list.name == *name)
}

/// Returns the listeners that use a list.
fn users<'p>(program: &'p Program, list: &'p CrtList) -> impl Iterator<Item = &'p TlsListener> {
    program.tls.listeners.iter().filter(|listener| listener.lists.contains(&list.name))
}

fn add(call: &mut Call<'_, Worker>) {
    let (name, word) = (call.word(3).to_owned(), call.word(4).to_owned());
    let payload = call.payload.map(|payload| String::from_utf8_lossy(payload).into_owned());
    let text = payload.filter(|text| !text.is_empty()).unwrap_or(word);
    if name.is_empty() || text.is_empty() {
        call.refuse("'add ssl crtlist' expects a filename and a certificate name");
        return;
    }
    let Some(list) = find(&call.generation.program, &name).cloned() else {
        call.refuse(&format!("Can't edit the crt-list: crt-list '{name}' does not exist!"));
        return;
    };
    let known = call.state.process.service::<Certificates>().known(&call.generation.program);
    let (serial, number) = {
        let lines = list.lock();
        (lines.next_serial, lines.last_number + 1)
    };
    let added = {
        let written = call.generation.written();
        let Some(spec) = written.as_ref() else {
            drop(written);
            call.refuse("Can't edit the crt-list: lines cannot be added to this process.");
            return;
        };
        add_to_list(spec, &call.generation.program, &list, serial, text.trim_matches('\n'), known)
    };
    let head = |certificate: &str, places: usize| {
        format!("Inserting certificate '{certificate}' in crt-list '{}'{}\n", list.name, ".".repeat(places))
    };
    match added {
        Err(AddError::Refused(why)) => call.refuse(&format!("Can't edit the crt-list: {why}")),
        Err(AddError::Failed { place, certificate, why }) => {
            call.refuse(&format!("{}{why}\nFailed!\n", head(&certificate, place + 1)));
        }
        Ok(line) => {
            let places = line.entries.len();
            let text = match insert(&list, number, &line) {
                Ok(()) => {
                    let certificate = line.entries.first().map(|(_, entry)| &entry.certificate);
                    let keys = certificate.filter(|one| one.usage.jwt).and_then(|one| token_keys(one));
                    if let Some(keys) = keys {
                        call.generation.program.keys.tokens().allow(line.certificate.as_bytes(), keys);
                    }
                    engine::ocsp::look_again(&call.state.process);
                    format!("{}Success!\n", head(&line.certificate, places))
                }
                Err(why) => format!("{}{why}\nFailed!\n", head(&line.certificate, places)),
            };
            call.answer.push(text);
        }
    }
}

/// Adds a line to every listener that uses the list; if one rejects it, to none.
fn insert(list: &CrtList, number: usize, line: &AddedLine) -> Result<(), String> {
    let serial = list.lock().push(number, &line.certificate, &line.options, &line.names);
    for (server, entry) in &line.entries {
        if let Err(why) = server.add(vec![entry.clone()]) {
            line.entries.iter().for_each(|(server, _)| server.remove(&list.line(serial)));
            list.lock().lines.retain(|line| line.serial != serial);
            return Err(why);
        }
    }
    list.lock().last_number = number;
    Ok(())
}

fn delete(call: &mut Call<'_, Worker>) {
    let (name, written) = (call.word(3).to_owned(), call.word(4).to_owned());
    if name.is_empty() || written.is_empty() {
        call.refuse("'del ssl crtlist' expects a filename and a certificate name");
        return;
    }
    match remove(call, &name, &written) {
        Ok(sentence) => call.notice(&sentence),
        Err(why) => call.refuse(&format!("Can't delete the entry: {why}")),
    }
}

fn remove(call: &Call<'_, Worker>, name: &str, written: &str) -> Result<String, String> {
    let program = &call.generation.program;
    let list = find(program, name).ok_or_else(|| format!("crt-list '{name}' does not exist!"))?;
    let (certificate, number) = match written.rsplit_once(':') {
        Some((certificate, number)) => {
            let wrong = || format!("wrong line number after colons in '{written}'!");
            (certificate, Some(number.parse::<usize>().ok().filter(|number| *number > 0).ok_or_else(wrong)?))
        }
        None => (written, None),
    };
    let mut held = call.state.process.service::<Certificates>().lock();
    held.keep(program);
    match held.kept.get(certificate) {
        None => return Err(format!("certificate '{certificate}' does not exist!")),
        Some(None) => return Err(format!("certificate '{certificate}' is empty!")),
        Some(Some(_)) => {}
    }
    let line = choose(&list.lock().lines, certificate, &list.name, number)?;
    let of_line = list.line(line.serial);
    let is_default = |user: &&TlsListener| !user.server.is_strict() && user.server.has_default_of(&of_line);
    let defaults: String =
        users(program, list).filter(is_default).map(|user| format!("\t- {}\n", user.place)).collect();
    if !defaults.is_empty() {
        return Err(format!(
            "certificate '{certificate}' cannot be deleted, it is used as default certificate by the following frontends:\n{defaults}"
        ));
    }
    users(program, list).for_each(|user| user.server.remove(&of_line));
    list.lock().lines.retain(|one| one.serial != line.serial);
    Ok(format!("Entry '{certificate}' deleted in crtlist '{}'!", list.name))
}

/// Selects the line of a certificate, by its number if there are several.
fn choose(lines: &[CrtLine], certificate: &str, list: &str, number: Option<usize>) -> Result<CrtLine, String> {
    let found: Vec<_> = lines.iter().filter(|line| *line.certificate == *certificate).collect();
    let numbers = || found.iter().map(|line| line.number.to_string()).collect::<Vec<_>>().join(", ");
    match (number, found.as_slice()) {
        (_, []) => Err(format!("certificate '{certificate}' can't be found in crt-list '{list}'!")),
        (None, [one]) => Ok((*one).clone()),
        (None, _) => Err(format!(
            "found the certificate '{certificate}' in several entries, please specify a line number preceded by colons ({})!",
            numbers()
        )),
        (Some(number), _) => {
            let wanted = found.iter().find(|line| number == line.number);
            wanted.map(|line| (*line).clone()).ok_or_else(|| {
                format!(
                    "found a certificate '{certificate}' but the line number is incorrect, please specify a correct line number preceded by colons ({})!",
                    numbers()
                )
            })
        }
    }
}

fn show(call: &mut Call<'_, Worker>) {
    let numbered = call.word(3) == "-n";
    let name = call.word(if numbered { 4 } else { 3 }).to_owned();
    if name.is_empty() {
        if numbered {
            call.refuse("'show ssl crt-list -n' expects a filename or a directory");
            return;
        }
        let mut names: Vec<_> =
            call.generation.program.tls.lists.iter().map(|list| format!("{}\n", list.name)).collect();
        names.sort();
        call.answer.push(names.concat());
        return;
    }
    let Some(list) = find(&call.generation.program, &name) else {
        call.refuse("didn't find the specified filename");
        return;
    };
    let mut text = format!("# {}\n", list.name);
    for line in &list.lock().lines {
        text.push_str(&line.certificate);
        if numbered {
            let _ = write!(text, ":{}", line.number);
        }
        if !line.options.is_empty() {
            let _ = write!(text, " [{}]", line.options);
        }
        if !line.names.is_empty() {
            let _ = write!(text, " {}", line.names);
        }
        text.push('\n');
    }
    call.answer.push(text);
}

fn providers(call: &mut Call<'_, Worker>) {
    call.answer.push("Loaded providers : \n\t- aws-lc\n");
}

/// The arguments of `show ssl sni`.
#[derive(Default)]
struct SniQuery {
    frontend: Option<String>,
    /// Only expired certificates.
    expired: bool,
    /// Seconds added to the current time for the expiry check.
    offset: i64,
}

impl SniQuery {
    fn read(words: &[String], is_frontend: impl Fn(&str) -> bool) -> Result<Self, String> {
        let mut wanted = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-A" => wanted.expired = true,
                "-f" => {
                    let name = words.next().ok_or("'-f' requires a frontend name!")?;
                    if !is_frontend(name) {
                        return Err("Couldn't find the specified frontend!".to_owned());
                    }
                    wanted.frontend = Some(name.clone());
                }
                "-t" => wanted.offset = offset(words.next().ok_or("'-t' requires an offset argument!")?)?,
                _ => {
                    let known = "'show ssl sni' only supports '-f', '-A' or '-t' options!";
                    return Err(format!("Invalid parameters, {known}"));
                }
            }
        }
        Ok(wanted)
    }
}

fn offset(text: &str) -> Result<i64, String> {
    match units::time(text, TimeUnit::Seconds) {
        Ok(time) if time.value <= i64::from(i32::MAX) as u64 => Ok(time.value as i64),
        Err(TimeError::Unexpected(found)) => Err(format!("'-t {text}' : unexpected character '{found}'")),
        _ => Err(format!("offset overflow '{text}' (maximum value is 2147483647s or ~24855 days)")),
    }
}

fn names(call: &mut Call<'_, Worker>) {
    let program = &call.generation.program;
    let is_frontend = |name: &str| program.proxies.iter().any(|proxy| proxy.frontend.is_some() && *proxy.name == *name);
    let wanted = match SniQuery::read(call.words.get(3..).unwrap_or_default(), is_frontend) {
        Ok(wanted) => wanted,
        Err(why) => {
            call.refuse(&why);
            return;
        }
    };
    let now = rt::wall().seconds + wanted.offset;
    let mut text = "# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n".to_owned();
    for listener in &program.tls.listeners {
        let (_, owner) = &listener.owner;
        if !is_frontend(owner) || wanted.frontend.as_ref().is_some_and(|name| **name != **owner) {
            continue;
        }
        for (name, entry) in sorted(&listener.server.entries()) {
            let certificate = &entry.certificate;
            let Some((begin, end)) = x509::valid_between(certificate.der()) else { continue };
            if wanted.expired && end >= now {
                continue;
            }
            text.push_str(&sni_line(listener, &name, entry, begin, end));
        }
    }
    call.answer.push(text);
}

fn sni_line(listener: &TlsListener, name: &str, entry: &Entry, begin: i64, end: i64) -> String {
    let ((_, owner), place) = (&listener.owner, &listener.place);
    let negative = match name.starts_with('*') && !entry.row.excluded.is_empty() {
        // HAProxy lists them in reverse order.
        true => entry.row.excluded.iter().rev().map(|name| format!("!{name} ")).collect(),
        false => "-".to_owned(),
    };
    let Certificate { kind, name: file, .. } = &*entry.certificate;
    let kind = if *kind == Kind::Rsa { "rsa" } else { "ecdsa" };
    let (end, begin) = (x509::long_moment(end), x509::long_moment(begin));
    format!("{owner}/{place}\t{name}\t{negative}\t{kind}\t{file}\t{end}\t{begin}\n")
}

/// Returns names with their certificates: exact names sorted, then wildcards; `*` is the default.
fn sorted(entries: &[Entry]) -> Vec<(Box<str>, &Entry)> {
    let mut all: Vec<(Box<str>, &Entry)> = Vec::new();
    for entry in entries {
        all.extend(entry.row.names.iter().map(|name| (name.clone(), entry)));
        // A default that is named `*` is listed once.
        if entry.row.is_default && !entry.row.names.iter().any(|name| &**name == "*") {
            all.push(("*".into(), entry));
        }
    }
    all.sort_by(|(one, _), (other, _)| (one.starts_with('*'), one).cmp(&(other.starts_with('*'), other)));
    all
}
