//! The parts of a certificate as payloads contain them, and replacing them in a certificate in use. Must never read a file.

use std::sync::Arc;

use base::base64;
use policy::program::Program;
use tls::certificate::{Draft, Error};
use tls::timestamps;

use crate::certificates::{Certificates, used};

/// The part of a certificate that a payload contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Certificate, chain and private key.
    Text,
    /// Private key.
    Key,
    /// OCSP response, in base64.
    Ocsp,
    /// Certificate of the OCSP response's issuer.
    Issuer,
    /// Signed Certificate Timestamps (SCT list), in base64.
    Timestamps,
}

impl Part {
    /// Puts this part into a draft.
    ///
    /// # Errors
    /// HAProxy's message, with a line feed; empty if HAProxy has none.
    pub fn put(self, draft: &mut Draft, payload: &[u8]) -> Result<(), String> {
        let name = draft.name.clone();
        let said = |why: Error| format!("{}.\n", why.sentence(&name));
        let decoded = || {
            let letters: Vec<u8> = payload.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            base64::decoded_strictly(&letters).ok_or_else(String::new)
        };
        match self {
            Self::Text => draft.set_text(payload).map_err(said),
            Self::Key => draft.set_key(payload).map_err(said),
            Self::Issuer => draft.set_issuer(payload).map_err(|_| format!("'{name}' cannot be read or parsed'.\n")),
            Self::Ocsp => {
                draft.set_answer(decoded()?);
                Ok(())
            }
            // SCT lists are validated, but not sent.
            Self::Timestamps if timestamps::is_list(&decoded()?) => Ok(()),
            Self::Timestamps => Err(String::new()),
        }
    }
}

/// Replaces parts of the certificate of that name, in use or kept. `parts`: each with the name that errors show. `now`: seconds
/// since 1970. An uncommitted change of the runtime API is not affected.
///
/// # Errors
/// HAProxy's message; nothing was changed.
pub fn update(
    certificates: &Certificates,
    program: &Program,
    name: &str,
    now: i64,
    parts: &[(Part, &str, &[u8])],
) -> Result<(), String> {
    let mut held = certificates.lock();
    if !held.kept.contains_key(name) && !used(program).contains_key(name) {
        return Err("Can't replace a certificate which is not referenced by the configuration!".to_owned());
    }
    let mut draft = held.find(program, name).map_or_else(|| Draft::empty(name), |former| Draft::of(&former));
    for (part, shown, payload) in parts {
        part.put(&mut draft, payload).map_err(|why| format!("{why}Can't load the payload for '{shown}'"))?;
    }
    let (certificate, _) = draft.finish(now).map_err(|why| match why {
        Error::NoKey => {
            format!("unable to load SSL private key into SSL Context '{name}': passed a null parameter.\n")
        }
        why => format!("{}.\n", why.sentence(name)),
    })?;
    held.put(program, &Arc::new(certificate)).map(|_| ())
}
