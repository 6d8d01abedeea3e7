//! Compiles session resumption: `tls-ticket-keys`, `no-tls-tickets`, `tune.ssl.cachesize`, `tune.ssl.lifetime`. Must
//! never generate a key.

use super::line::Line;
use super::located;
use crate::compile::Compiler;
use base::base64;
use config::span::Spanned;
use config::spec::{BindTlsSpec, GlobalTlsSpec};
use std::sync::Arc;
use tls::resumption::{CACHE_SIZE, Resumption, SessionStore, Tickets};
use tls::ticket_keys::TicketKeys;

impl Compiler<'_> {
    /// Compiles the session resumption of an address. `None` if an error was reported.
    pub(super) fn resumption(
        &mut self,
        written: &BindTlsSpec,
        above: &BindTlsSpec,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Resumption> {
        let has_tickets = written.common.tickets.or(above.common.tickets).unwrap_or(true);
        let keys = match &written.ticket_keys {
            Some(path) => Some(self.ticket_keys(path, written.common.folder.as_deref(), line)?),
            None => None,
        };
        let tickets = match (has_tickets, keys) {
            (false, _) => Tickets::None,
            (true, None) => Tickets::Own,
            (true, Some(keys)) => Tickets::Keys(keys),
        };
        let lifetime = global.lifetime.unwrap_or(Resumption::default().lifetime);
        let capacity = global.cache_size.map_or(CACHE_SIZE, |size| size as usize);
        let store = self.tls.sessions.get_or_insert_with(|| Arc::new(SessionStore::new(capacity)));
        Some(Resumption { tickets, lifetime, store: Arc::clone(store) })
    }

    /// Returns the keys of a file, shared by all addresses that refer to it.
    fn ticket_keys(&mut self, path: &Spanned<String>, folder: Option<&str>, line: &Line) -> Option<Arc<TicketKeys>> {
        let name = located(&path.value, None, folder);
        if let Some(known) = self.tls.ticket_keys.iter().find(|known| *known.name == *name) {
            return Some(Arc::clone(known));
        }
        let why = match (self.resolver.file_reader())(&name) {
            Err(_) => "unable to load ssl tickets keys file".to_owned(),
            Ok(text) => {
                let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
                let lines: Vec<_> = lines.collect();
                // The last line ends with the file.
                let filled = lines.len() - usize::from(lines.last().is_some_and(|last| last.is_empty()));
                match TicketKeys::new(&name, lines[..filled].iter().map(|line| base64::decoded(line))) {
                    Ok(keys) => {
                        let keys = Arc::new(keys);
                        self.tls.ticket_keys.push(Arc::clone(&keys));
                        return Some(keys);
                    }
                    Err(why) => why.to_string(),
                }
            }
        };
        self.alert(path.span, line.form, format!("{}'{name}' : {why}", line.head));
        None
    }
}
