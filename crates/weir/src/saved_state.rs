//! The configured server state files: read at the start, with HAProxy's messages, and applied before the process serves
//! (configuration manual, "load-server-state-from-file"). Must never be used once connections are accepted.

use crate::files::reason;
use crate::messages::Messages;
use base::moment::Moment;
use config::diagnostic::Severity;
use config::spec::{ProxyKind, ProxySpec, Spec, StateSource};
use control::saved_state::{SavedServer, resume};
use live::Live;
use live::saved_state::{Entry, FileError, entries};
use policy::program::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;

/// Maximum number of bytes that are read from a file: more servers than one process can have.
const MOST: u64 = 64 << 20;
/// Maximum number of reported lines per file.
const MOST_COMPLAINTS: usize = 100;

/// The contents of all files.
#[derive(Default)]
pub struct SavedStates {
    /// Messages to report before those of backends.
    said: Vec<(Severity, String)>,
    /// By the name of the backend.
    backends: BTreeMap<String, OfBackend>,
}

/// The contents for one backend.
#[derive(Default)]
struct OfBackend {
    said: Vec<(Severity, String)>,
    /// The first line of each server, by the server's name.
    servers: BTreeMap<String, Entry>,
    /// Servers in the backend's own file that the backend does not have.
    strangers: Vec<String>,
}

/// The file that messages refer to.
struct Source<'a> {
    path: &'a str,
    /// The backend, for a backend's own file.
    proxy: Option<&'a str>,
}

impl Source<'_> {
    fn head(&self) -> String {
        self.proxy.map_or_else(|| "config: ".to_owned(), |name| format!("Proxy '{name}': "))
    }

    fn kind(&self) -> &'static str {
        if self.proxy.is_some() { "server state file" } else { "global server state file" }
    }

    fn cannot_open(&self, error: &std::io::Error) -> (Severity, String) {
        let severity = match error.kind() {
            std::io::ErrorKind::NotFound => Severity::Notice,
            _ => Severity::Warning,
        };
        let dot = if self.proxy.is_some() { "." } else { "" };
        let (head, kind, path) = (self.head(), self.kind(), self.path);
        (severity, format!("{head}Can't open {kind} '{path}': {}{dot}", reason(error)))
    }

    fn flawed(&self, flaw: FileError) -> (Severity, String) {
        let (head, kind, path) = (self.head(), self.kind(), self.path);
        match flaw {
            FileError::Empty => (Severity::Notice, format!("{head}Empty {kind} '{path}'.")),
            FileError::Version => (Severity::Warning, format!("{head}Can't get version of the {kind} '{path}'.")),
            FileError::Corrupted(line) => {
                (Severity::Warning, format!("{head}corrupted {kind} '{path}' at line {line}."))
            }
        }
    }

    /// Returns the lines that `wanted` selects, or a message.
    fn entries(&self, wanted: impl FnMut(&str, &str) -> bool) -> Result<Vec<Entry>, (Severity, String)> {
        let file = std::fs::File::open(self.path).map_err(|error| self.cannot_open(&error))?;
        let mut text = Vec::new();
        // After a read error, the bytes read so far are used: a folder counts as empty.
        let _ = file.take(MOST).read_to_end(&mut text);
        entries(&text, wanted).map_err(|flaw| self.flawed(flaw))
    }
}

/// Returns the path of a file, relative to the base folder of state files if configured.
fn path(base: Option<&str>, name: &str) -> String {
    match base {
        Some(base) if !name.starts_with('/') => format!("{}/{name}", base.strip_suffix('/').unwrap_or(base)),
        _ => name.to_owned(),
    }
}

impl SavedStates {
    /// Reads all files that the configuration names.
    pub fn read(spec: &Spec) -> Self {
        let mut found = Self::default();
        let base = spec.global.kept.state_base.as_deref();
        let backends = || spec.proxies.iter().filter(|proxy| proxy.kind != ProxyKind::Frontend && !proxy.disabled);
        if let Some(name) = &spec.global.kept.state_file {
            found.read_global(&path(base, name), backends().filter(|one| one.state.source == StateSource::Global));
        }
        for proxy in backends() {
            let name = &proxy.name.value;
            match proxy.state.source {
                StateSource::Local if !proxy.servers.is_empty() => {
                    let file = path(base, proxy.state.file.as_ref().unwrap_or(name));
                    found.backends.insert(name.clone(), read_local(&file, proxy));
                }
                StateSource::Global if spec.global.kept.state_file.is_none() => {
                    let text = format!(
                        "backend '{name}' configured to load server state file from global section \
                         'server-state-file' directive. Unfortunately, 'server-state-file' is not set!"
                    );
                    found.backends.entry(name.clone()).or_default().said.push((Severity::Warning, text));
                }
                StateSource::Local | StateSource::Global | StateSource::None => {}
            }
        }
        found
    }

    fn read_global<'a>(&mut self, path: &str, backends: impl Iterator<Item = &'a ProxySpec>) {
        let servers = |proxy: &'a ProxySpec| proxy.servers.iter().map(|server| server.name.value.as_str());
        let known: BTreeMap<&str, BTreeSet<&str>> =
            backends.map(|proxy| (proxy.name.value.as_str(), servers(proxy).collect())).collect();
        let wanted = |backend: &str, server: &str| known.get(backend).is_some_and(|known| known.contains(server));
        match (Source { path, proxy: None }).entries(wanted) {
            Err(said) => self.said.push(said),
            Ok(entries) => {
                for entry in entries {
                    let backend = self.backends.entry(entry.backend().to_owned()).or_default();
                    backend.servers.entry(entry.server().to_owned()).or_insert(entry);
                }
            }
        }
    }

    /// Whether the state of any server is known.
    pub fn is_asked_for(&self) -> bool {
        self.backends.values().any(|of| !of.servers.is_empty())
    }

    /// Returns the last addresses of servers.
    pub fn addresses(&self) -> BTreeMap<(String, String), IpAddr> {
        let servers = self.backends.iter().flat_map(|(backend, of)| of.servers.iter().map(move |one| (backend, one)));
        let known = servers
            .filter_map(|(backend, (server, entry))| Some(((backend.clone(), server.clone()), entry.address()?)));
        known.collect()
    }

    /// Restores servers as far as the live state is concerned; the rest is left to [`control::saved_state::direct`].
    pub fn take_over(
        mut self,
        program: &Program,
        live: Option<&Live>,
        now: Moment,
        messages: &mut Messages,
    ) -> Vec<SavedServer> {
        report(std::mem::take(&mut self.said), messages);
        let mut taken = Vec::new();
        for proxy in &program.proxies {
            let Some(mut own) = self.backends.remove(&*proxy.name).filter(|_| proxy.backend.is_some()) else {
                continue;
            };
            report(std::mem::take(&mut own.said), messages);
            for server in proxy.servers() {
                let Some(entry) = own.servers.get(&*server.name) else { continue };
                match entry.state() {
                    Err(why) => messages.warning(&format!(
                        "server-state application failed for server '{}/{}', {why}",
                        proxy.name, server.name
                    )),
                    Ok(state) => {
                        let Some(saved) = SavedServer::new(program, proxy.place_of(server), state) else {
                            continue;
                        };
                        let said = live.map_or_else(Vec::new, |live| resume(program, live, &saved, now));
                        said.iter().for_each(|text| messages.warning(text));
                        taken.push(saved);
                    }
                }
            }
            for stranger in &own.strangers {
                let text = format!("Proxy '{0}': can't find server '{stranger}' in backend '{0}'", proxy.name);
                messages.warning(&text);
            }
        }
        taken
    }
}

/// Reads a backend's own file.
fn read_local(path: &str, proxy: &ProxySpec) -> OfBackend {
    let name = proxy.name.value.as_str();
    let known: BTreeSet<&str> = proxy.servers.iter().map(|server| server.name.value.as_str()).collect();
    let mut own = OfBackend::default();
    let (mut others, mut strangers) = (Vec::new(), BTreeSet::new());
    let wanted = |backend: &str, server: &str| {
        if backend != name {
            if others.len() < MOST_COMPLAINTS {
                others.push(format!(
                    "Proxy '{name}': backend name mismatch: from server state file: '{backend}', from running config \
                     '{name}'"
                ));
            }
            return false;
        }
        if !known.contains(server) && strangers.len() < MOST_COMPLAINTS {
            strangers.insert(server.to_owned());
        }
        known.contains(server)
    };
    match (Source { path, proxy: Some(name) }).entries(wanted) {
        Err(said) => own.said.push(said),
        Ok(entries) => {
            own.said.extend(others.into_iter().map(|text| (Severity::Warning, text)));
            own.strangers = strangers.into_iter().collect();
            for entry in entries {
                own.servers.entry(entry.server().to_owned()).or_insert(entry);
            }
        }
    }
    own
}

fn report(said: Vec<(Severity, String)>, messages: &mut Messages) {
    for (severity, text) in said {
        match severity {
            Severity::Notice => messages.notice(&text),
            _ => messages.warning(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn names_that_are_not_absolute_are_in_the_folder() {
        let rows = [
            (None, "b", "b"),
            (None, "/x/b", "/x/b"),
            (Some("/s"), "b", "/s/b"),
            (Some("/s/"), "b", "/s/b"),
            (Some("s"), "/x/b", "/x/b"),
        ];
        for (base, name, expected) in rows {
            assert_eq!(path(base, name), expected);
        }
    }
}
