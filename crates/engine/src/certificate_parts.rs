//! The parts that a certificate is made of, as payloads have them, and what puts them into a certificate that is in use. Must
//! never read a file.

use std::sync::Arc;

use base64ct::{Base64, Encoding as _};
use policy::program::Program;
use tls::certificate::{Draft, Error};
use tls::timestamps;

use crate::certificates::{Certificates, used};

/// The part of a certificate that a payload has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The certificate, its chain and its key.
    Text,
    /// The key.
    Key,
    /// An OCSP answer, in base64.
    Ocsp,
    /// The certificate of the OCSP answer's issuer.
    Issuer,
    /// Timestamps of certificate transparency, in base64.
    Timestamps,
}

impl Part {
    /// Puts this part into a draft.
    ///
    /// # Errors
    /// HAProxy's sentence, with a line feed; empty where it has none.
    pub fn put(self, draft: &mut Draft, payload: &[u8]) -> Result<(), String> {
        let name = draft.name.clone();
        let said = |why: Error| format!("{}.\n", why.sentence(&name));
        let decoded = || {
            let letters: String =
                payload.iter().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| char::from(*byte)).collect();
            Base64::decode_vec(&letters).map_err(|_| String::new())
        };
        match self {
            Self::Text => draft.set_text(payload).map_err(said),
            Self::Key => draft.set_key(payload).map_err(said),
            Self::Issuer => draft.set_issuer(payload).map_err(|_| format!("'{name}' cannot be read or parsed'.\n")),
            Self::Ocsp => {
                draft.set_answer(decoded()?);
                Ok(())
            }
            // They are checked, and not sent.
            Self::Timestamps if timestamps::is_list(&decoded()?) => Ok(()),
            Self::Timestamps => Err(String::new()),
        }
    }
}

/// Puts parts into the certificate of that name, wherever it is used or kept; each part has the name that errors show. `now`:
/// seconds since 1970. A change that the runtime API has begun is not touched.
///
/// # Errors
/// HAProxy's sentence; then nothing has changed.
pub fn update(
    certificates: &Certificates,
    program: &Program,
    (name, now): (&str, i64),
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
