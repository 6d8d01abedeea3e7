//! Challenge responses while an ACME server validates names (RFC 8555, section 8; RFC 8737): tokens in maps and HTTP responses,
//! certificates in handshakes, DNS records that an operator sets. They are removed when a [`Proofs`] is dropped. Must never send
//! a request to an ACME server.

use std::rc::Rc;
use std::sync::Arc;

use config::spec::LogLevel;
use expression::pattern::{EntrySelector, ListName};
use expression::sample::Sink;
use policy::program::{AcmeCertificate, AcmeSection, Challenge, PROVISIONING_RING};
use tls::account::{AccountKey, base64url, sha256};
use tls::issue::proof;
use wire::dns::Name;

use super::messages::log_message;
use super::reason::Reason;
use super::shared::Link;
use crate::certificates::offer_proof;
use crate::resolve::texts;
use crate::service::events;
use crate::worker::Worker;

/// The `resolvers` section that is queried for TXT records (configuration manual, "challenge-ready").
const RESOLVERS: &str = "default";

/// Challenge responses for one certificate.
pub(super) struct Proofs<'a> {
    worker: &'a Rc<Worker>,
    own: &'a AcmeCertificate,
    section: &'a AcmeSection,
    /// The store over which all nodes offer the responses.
    link: Option<&'a Link<'a>>,
    /// Tokens or domains that are offered.
    offered: Vec<String>,
    /// Domains and digests of `tls-alpn-01`.
    digests: Vec<(String, [u8; 32])>,
    /// Expected TXT values by domain; `None`: any value, which the operator chooses.
    records: Vec<(String, Option<String>)>,
}

impl<'a> Proofs<'a> {
    pub(super) fn new(
        worker: &'a Rc<Worker>,
        own: &'a AcmeCertificate,
        section: &'a AcmeSection,
        link: Option<&'a Link<'a>>,
    ) -> Self {
        Self { worker, own, section, link, offered: Vec::new(), digests: Vec::new(), records: Vec::new() }
    }

    /// Waits until all nodes offer the responses.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(super) async fn publish(&self) -> Result<(), Reason> {
        let Some(link) = self.link.filter(|_| !self.digests.is_empty()) else { return Ok(()) };
        link.publish_proofs(&self.digests).await
    }

    fn challenge(&self) -> Challenge {
        self.own.challenge(self.section)
    }

    /// Name of the challenge type in the protocol.
    pub(super) fn kind(&self) -> &'static str {
        self.challenge().name()
    }

    /// Provides the challenge response for a name.
    ///
    /// # Errors
    /// The response cannot be provided.
    pub(super) fn offer(
        &mut self,
        name: &str,
        challenge: &wire::acme::Challenge,
        key: &AccountKey,
        authorized: &[u8],
    ) -> Result<(), Reason> {
        let (token, thumbprint) = (challenge.token.as_str(), key.thumbprint());
        let authorization = format!("{token}.{thumbprint}");
        match self.challenge() {
            Challenge::Http01 => {
                if let Some(map) = &self.section.map {
                    self.offered.push(token.to_owned());
                    self.with_map(map, |change| change.add(None, token.as_bytes(), thumbprint.as_bytes()).is_ok());
                }
            }
            // All nodes answer each token of a shared account.
            Challenge::OwnHttp01 if self.link.is_some() => {}
            Challenge::OwnHttp01 => {
                self.offered.push(token.to_owned());
                self.worker.process.upkeep.acme.add_token(token, &authorization);
            }
            Challenge::TlsAlpn01 => {
                let digest = sha256(authorization.as_bytes());
                let certificate = Arc::new(proof(name, &digest)?);
                self.offered.push(name.to_owned());
                self.digests.push((name.to_owned(), digest));
                offer_proof(&self.worker.generation().program, name, Some(&certificate))?;
            }
            Challenge::Dns01 => {
                let record = base64url(&sha256(authorization.as_bytes()));
                let place = format!("_acme-challenge.{name}");
                self.ask_for("dns-01", &place, &record, name);
                events::certificate(&self.worker.process, &self.own.name, || {
                    let (provider, variables) = (self.section.provider.clone(), self.section.variables.clone());
                    let (domain, value) = (name.into(), record.as_str().into());
                    let thumbprint = thumbprint.as_str().into();
                    Some(events::WantedRecord { domain, thumbprint, value, provider, variables })
                });
                self.deploy(&thumbprint, &format!("dns-01-record \"{record}\"\n"), authorized);
                self.records.push((place, Some(record)));
            }
            Challenge::DnsPersist01 => {
                let place = format!("_validation-persist.{name}");
                self.ask_for("dns-persist-01", &place, &challenge.record, name);
                self.deploy(&thumbprint, "", authorized);
                self.records.push((place, None));
            }
        }
        Ok(())
    }

    /// Logs which record an operator has to set.
    fn ask_for(&self, kind: &str, place: &str, record: &str, name: &str) {
        let command = match self.section.ready.cli {
            true => {
                format!(" and use the \"acme challenge_ready {} domain {name}\" command over the CLI", self.own.name)
            }
            false => String::new(),
        };
        let text = format!("{kind} requires to set the \"{place}\" TXT record to \"{record}\"{command}");
        log_message(self.worker, LogLevel::Notice, &self.own.name, &text);
    }

    /// Sends the record to programs that set DNS records (configuration manual, "provider-name", "acme-vars").
    fn deploy(&self, thumbprint: &str, record: &str, authorized: &[u8]) {
        let mut text = format!("acme deploy {} thumbprint {thumbprint}\n", self.own.name);
        for (name, value) in [("provider-name", &self.section.provider), ("acme-vars", &self.section.variables)] {
            if let Some(value) = value {
                text += &format!("{name} \"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\""));
            }
        }
        let text = [text.as_bytes(), record.as_bytes(), authorized.trim_ascii_end(), b"\n"].concat();
        self.worker.process.log_targets.tell(Sink::Ring(PROVISIONING_RING), &text);
    }

    fn with_map(&self, map: &str, change: impl FnOnce(&mut expression::pattern::Change) -> bool) {
        let generation = self.worker.generation();
        let list = generation.program.lists.find(ListName::parse(map).reference());
        if let Some(state) = list.and_then(|list| generation.lists.get(list)) {
            state.write(|own, _| change(own));
        }
    }

    /// Whether every record resolves to its expected value.
    async fn are_resolved(&self) -> bool {
        let program = Arc::clone(&self.worker.generation().program);
        let Some(section) = program.resolvers.iter().position(|section| &*section.name == RESOLVERS) else {
            return false;
        };
        for (name, expected) in &self.records {
            let Some(name) = Name::parse(name) else { return false };
            let found = texts(self.worker, section, name).await;
            let is_right = match expected {
                None => !found.is_empty(),
                Some(expected) => found.iter().any(|text| text == expected.as_bytes()),
            };
            if !is_right {
                return false;
            }
        }
        true
    }
}

impl Drop for Proofs<'_> {
    fn drop(&mut self) {
        for offered in &self.offered {
            match self.challenge() {
                Challenge::Http01 => {
                    if let Some(map) = &self.section.map {
                        self.with_map(map, |change| {
                            change.remove(EntrySelector::Key(offered.as_bytes()), &mut Vec::new())
                        });
                    }
                }
                Challenge::OwnHttp01 => self.worker.process.upkeep.acme.remove_token(offered),
                Challenge::TlsAlpn01 => {
                    // Removing a challenge certificate never fails: no certificate is built.
                    let _ = offer_proof(&self.worker.generation().program, offered, None);
                }
                Challenge::Dns01 | Challenge::DnsPersist01 => {}
            }
        }
    }
}

/// Waits until the server can validate (configuration manual, "challenge-ready").
pub(super) async fn ready(
    proofs: &Proofs<'_>,
    own: &AcmeCertificate,
    section: &AcmeSection,
    names: &[Box<str>],
) -> Result<(), Reason> {
    let challenge = proofs.challenge();
    if !matches!(challenge, Challenge::Dns01 | Challenge::DnsPersist01) || names.is_empty() {
        return Ok(());
    }
    // A persistent record usually exists already.
    if challenge == Challenge::DnsPersist01 && proofs.are_resolved().await {
        return Ok(());
    }
    if section.ready.cli {
        proofs.worker.process.upkeep.acme.records(&own.name, names).await;
    }
    if section.ready.delay {
        let text = format!("{}: waiting {}s", challenge.name(), section.dns_delay.as_secs());
        log_message(proofs.worker, LogLevel::Notice, &own.name, &text);
        rt::sleep(section.dns_delay).await;
    }
    if section.ready.dns {
        let last = rt::now() + section.dns_timeout;
        while !proofs.are_resolved().await {
            if rt::now() + section.dns_delay > last {
                return Err("the TXT records were not found in time".into());
            }
            rt::sleep(section.dns_delay).await;
        }
    }
    Ok(())
}
