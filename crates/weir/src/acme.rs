//! Prepares ACME before privileges are dropped: creates account keys and opens the folder of certificates. Must never
//! send a request to a server, and does nothing for `-c`.

use crate::files::reason;
use crate::messages::{Messages, ReportedError};
use crate::rights::Rights;
use policy::program::{AcmeSection, Program};
use rt::{FileOwner, Folder};
use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use tls::account::AccountKey;
use tls::issue::Key;

/// Prepares a program. Returns the folder of certificates, if configured.
///
/// # Errors
/// A file or the folder cannot be created; reported through `messages`.
pub fn prepare(
    program: &mut Program,
    rights: &Rights,
    messages: &mut Messages,
) -> Result<Option<Arc<Folder>>, ReportedError> {
    let folder = match &program.acme.folder {
        None => None,
        Some(path) => match Folder::open(Path::new(&**path), FileOwner { user: rights.user, group: rights.group }) {
            Ok(folder) => Some(Arc::new(folder)),
            Err(error) => {
                messages.alert(&format!("acme: cannot open the folder '{path}' : {}", reason(&error)));
                return Err(ReportedError);
            }
        },
    };
    // Several sections may use the same account.
    let mut made: HashMap<Box<str>, Arc<AccountKey>> = HashMap::new();
    for section in program.acme.sections.iter_mut().filter(|section| section.key.is_none() && !section.is_shared) {
        if let Some(key) = made.get(&section.key_file) {
            section.key = Some(Arc::clone(key));
            continue;
        }
        let (file, name) = (&section.key_file, &section.name);
        messages.notice(&format!("acme: generate account key '{file}' for acme section '{name}'."));
        match make(section) {
            Ok(key) => {
                let key = Arc::new(key);
                made.insert(section.key_file.clone(), Arc::clone(&key));
                section.key = Some(key);
            }
            Err(why) => {
                messages.alert(&format!("acme: {why}"));
                return Err(ReportedError);
            }
        }
    }
    Ok(folder)
}

/// Creates the key of an account and writes it to its file.
fn make(section: &AcmeSection) -> Result<AccountKey, String> {
    let (file, text) = (&section.key_file, Key::generate(section.key_kind)?.to_pem());
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&**file);
    let written = options.and_then(|mut open| open.write_all(text.as_bytes()).and_then(|()| open.sync_all()));
    written.map_err(|_| format!("cannot create the file '{file}', check your permissions."))?;
    AccountKey::read(text.as_bytes())
}
