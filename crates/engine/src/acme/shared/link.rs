//! Commands to the store for shared certificates. Must never interpret what is stored.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::program::SharedAcme;
use tls::account::base64url;
use wire::resp::OwnedReply;

use super::records::{CHANGES, NODES, PROOFS, SEEN};
use super::scripts;
use crate::acme::reason::Reason;
use crate::store::{Client, Failure, Stores};
use crate::worker::Worker;

/// Nodes that have looked within this number of seconds have to see proofs before the ACME server validates them.
const PRESENT: &str = "3";
/// Maximum time to wait for them.
const LONGEST_LAG: Duration = Duration::from_secs(10);
/// Interval of these questions.
const LAG_INTERVAL: Duration = Duration::from_millis(200);

/// The store over which nodes share certificates.
pub(in crate::acme) struct Link<'a> {
    pub worker: &'a Rc<Worker>,
    pub shared: &'a SharedAcme,
    client: Arc<Client>,
    /// Proofs that were published, by domain, encrypted.
    published: RefCell<Vec<(String, Vec<u8>)>>,
}

fn malformed() -> Reason {
    "the store has answered with another type".into()
}

impl<'a> Link<'a> {
    /// Returns the link to the store of an `acme` section.
    ///
    /// # Errors
    /// There is no such store.
    pub(super) fn new(worker: &'a Rc<Worker>, shared: &'a SharedAcme) -> Result<Self, Reason> {
        let client = worker.process.service::<Stores>().all().get(shared.store).ok_or("there is no store")?;
        Ok(Self { worker, shared, client: Arc::clone(client), published: RefCell::default() })
    }

    /// Whether the store can be used.
    pub(super) fn is_ready(&self) -> bool {
        self.client.is_ready()
    }

    /// Sends a command.
    async fn command(&self, arguments: &[&[u8]]) -> Result<OwnedReply, Reason> {
        match self.client.command(arguments).await {
            Ok(OwnedReply::Error(text)) => {
                Err(format!("the store has answered '{}'", String::from_utf8_lossy(&text).escape_debug()).into())
            }
            Ok(reply) => Ok(reply),
            Err(Failure::Full) => Err("too many commands wait for the store".into()),
            Err(Failure::Lost) => {
                let fault = self.client.fault().map_or_else(String::new, |fault| format!(": {fault}"));
                Err(format!("the store cannot be used{fault}").into())
            }
        }
    }

    /// Executes a script.
    async fn run(&self, script: &'static str, keys: &[&str], arguments: &[&[u8]]) -> Result<OwnedReply, Reason> {
        let count = keys.len().to_string();
        let keys: Vec<_> = keys.iter().map(|key| self.client.key(key.as_bytes())).collect();
        let mut command: Vec<&[u8]> = vec![b"EVAL", script.as_bytes(), count.as_bytes()];
        command.extend(keys.iter().map(|key| &**key));
        command.extend(arguments);
        self.command(&command).await
    }

    /// Executes a script that returns a number.
    pub(super) async fn number(&self, script: &'static str, keys: &[&str], arguments: &[&[u8]]) -> Result<u64, Reason> {
        match self.run(script, keys, arguments).await? {
            OwnedReply::Integer(number) => u64::try_from(number).map_err(|_| malformed()),
            _ => Err(malformed()),
        }
    }

    /// Executes a script that returns two numbers; the second one is 0 if it is negative.
    pub(super) async fn numbers(
        &self,
        script: &'static str,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<[u64; 2], Reason> {
        let OwnedReply::Array(both) = self.run(script, keys, arguments).await? else { return Err(malformed()) };
        let [OwnedReply::Integer(first), OwnedReply::Integer(second)] = both[..] else { return Err(malformed()) };
        Ok([u64::try_from(first).map_err(|_| malformed())?, u64::try_from(second).unwrap_or(0)])
    }

    /// Returns the secret under a key, decrypted; `None`: there is none.
    ///
    /// # Errors
    /// The store cannot be used, or the value was encrypted with another secret.
    pub(super) async fn secret(&self, key: &str) -> Result<Option<Vec<u8>>, Reason> {
        match self.command(&[b"GET", &self.client.key(key.as_bytes())]).await? {
            OwnedReply::Nil => Ok(None),
            OwnedReply::Bulk(sealed) => self.open(key, &sealed).map(Some),
            _ => Err(malformed()),
        }
    }

    /// Stores a secret, encrypted, unless there is one.
    pub(super) async fn put_new_secret(&self, key: &str, text: &[u8]) -> Result<(), Reason> {
        let sealed = self.seal(key, text)?;
        self.command(&[b"SET", &self.client.key(key.as_bytes()), &sealed, b"NX"]).await.map(|_| ())
    }

    /// Returns the values of fields of a hash.
    pub(super) async fn fields(&self, key: &str, fields: &[&str]) -> Result<Vec<Option<Vec<u8>>>, Reason> {
        let key = self.client.key(key.as_bytes());
        let mut arguments: Vec<&[u8]> = vec![b"HMGET", &key];
        arguments.extend(fields.iter().map(|field| field.as_bytes()));
        let OwnedReply::Array(values) = self.command(&arguments).await? else { return Err(malformed()) };
        if values.len() != fields.len() {
            return Err(malformed());
        }
        let value = |value| match value {
            OwnedReply::Nil => Ok(None),
            OwnedReply::Bulk(bytes) => Ok(Some(bytes.into())),
            _ => Err(malformed()),
        };
        values.into_iter().map(value).collect()
    }

    pub(super) fn seal(&self, key: &str, text: &[u8]) -> Result<Vec<u8>, Reason> {
        self.shared.sealing.seal(key, text).map_err(Reason::from)
    }

    pub(super) fn open(&self, key: &str, sealed: &[u8]) -> Result<Vec<u8>, Reason> {
        let other = || format!("'{key}' in the store was encrypted with another 'cluster-secret'").into();
        self.shared.sealing.open(key, sealed).ok_or_else(other)
    }

    /// Publishes proofs of `tls-alpn-01`, and waits until the nodes that are running have them.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(in crate::acme) async fn publish_proofs(&self, digests: &[(String, [u8; 32])]) -> Result<(), Reason> {
        let mut proofs = Vec::new();
        for (domain, digest) in digests {
            proofs.push((domain.clone(), self.seal(&proof_name(domain), digest)?));
        }
        self.published.borrow_mut().clone_from(&proofs);
        let change = self.number(scripts::PROVE, &[PROOFS, CHANGES], &pairs(&proofs)).await?;
        let deadline = rt::now() + LONGEST_LAG;
        while self.number(scripts::LAG, &[NODES, SEEN], &[change.to_string().as_bytes(), PRESENT.as_bytes()]).await? > 0
        {
            if rt::now() >= deadline {
                break;
            }
            rt::sleep(LAG_INTERVAL).await;
        }
        Ok(())
    }

    /// Removes the proofs that were published from the store, unless other ones have replaced them.
    pub(super) async fn remove_proofs(&self) -> Result<(), Reason> {
        let proofs = self.published.take();
        if proofs.is_empty() {
            return Ok(());
        }
        self.number(scripts::FORGET, &[PROOFS, CHANGES], &pairs(&proofs)).await.map(|_| ())
    }

    /// Whether the store returns values of that many bytes.
    pub(super) fn is_stored(&self, size: usize) -> bool {
        /// Maximum size of the other parts of an answer.
        const OTHER: usize = 64;
        size.saturating_add(OTHER) <= self.client.plan.answer_size
    }
}

/// Returns domains and proofs, alternately.
fn pairs(proofs: &[(String, Vec<u8>)]) -> Vec<&[u8]> {
    proofs.iter().flat_map(|(domain, proof)| [domain.as_bytes(), &proof[..]]).collect()
}

/// Returns the name under which a domain's proof is encrypted.
pub(super) fn proof_name(domain: &str) -> String {
    format!("{PROOFS}:{domain}")
}

/// Returns a fresh random text.
pub(super) fn random_text() -> String {
    base64url(&[rt::random().to_be_bytes(), rt::random().to_be_bytes()].concat())
}
