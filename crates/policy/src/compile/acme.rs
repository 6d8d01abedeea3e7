//! Certificates from ACME servers: `acme` sections and `acme` on `bind` lines. Accounts' keys are read where they are there;
//! keys that are not are made by the caller, at a start alone. Must never ask a server.

use super::Compiler;
use super::tls::located;
use crate::program::{Acme, AcmeCertificate, AcmeSection, Challenge, Kept, OcspUpdates};
use config::diagnostic::{Diagnostic, Form, Severity};
use config::span::{Span, Spanned};
use config::spec::{
    AcmeChallenge, AcmeMac, AcmeReady, AcmeSpec, AddressSpec, GlobalSpec, GlobalTlsSpec, HostSpec, LoadSpec, Mode,
    PortSpec, ProxySpec, Spec,
};
use expression::pattern::ListName;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tls::account::{AccountKey, Binding, MacAlgorithm};
use tls::certificate::{Certificate, Usage};
use tls::issue::{Key, KeyKind};

/// The section that `bind ... acme` uses.
const OWN: &str = "default";
/// The server that it asks unless the section is written.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The port of HTTP.
const HTTP: u16 = 80;
/// Where its certificates are kept unless `acme.state-dir` is written.
const FOLDER: &str = "/var/lib/weir/acme";

/// A certificate, and the section that a line names for it; `None`: the one of `bind ... acme`.
pub(super) type Asked = (AcmeCertificate, Option<Spanned<String>>);

impl Compiler<'_> {
    /// A certificate of the storage that is obtained, where its line says so.
    pub(super) fn asked(&mut self, certificate: &Certificate, load: &LoadSpec) {
        let Some(section) = &load.acme else { return };
        if self.acme.iter().any(|(other, _)| other.name == certificate.name) {
            return;
        }
        let domains: Vec<Box<str>> = load.domains.iter().map(|name| name.to_ascii_lowercase().into()).collect();
        let ips: Vec<_> = load.ips.iter().filter_map(|ip| ip.parse().ok()).collect();
        if ips.len() < load.ips.len() {
            let message = format!("'ips' : invalid address in '{}'.", load.ips.join(","));
            self.alert(load.span, Form::Parsing, message);
        }
        let asked = AcmeCertificate { name: certificate.name.clone(), section: 0, domains, ips, kept: None };
        self.acme.push((asked, Some(section.clone())));
    }

    /// The certificate of a `load` line whose file is not there: a temporary one until it is obtained (`acme`), or for good
    /// (`generate-dummy`). `None`: the line asks for neither; `Some(None)`: what is wrong has been told.
    #[expect(clippy::option_option, reason = "nothing to make is no failure")]
    pub(super) fn stand_in(
        &mut self,
        (name, file): (&str, &str),
        load: &LoadSpec,
    ) -> Option<Option<Result<Arc<Certificate>, String>>> {
        let is_dummy = load.generate_dummy == Some(true);
        let is_kind_written = load.keytype.is_some() || load.bits.is_some() || load.curves.is_some();
        if load.acme.is_none() && !is_dummy && !is_kind_written {
            return None;
        }
        let kind = match dummy_kind(load) {
            _ if is_kind_written && !is_dummy => {
                Err("keyword 'keytype', 'bits' and 'curves' require 'generate-dummy' set to 'on'\n".to_owned())
            }
            // No client believes it: the cheaper one.
            _ if !is_dummy => Ok(KeyKind::P256),
            kind => kind,
        };
        let kind = match kind {
            Ok(kind) => kind,
            Err(why) => {
                self.alert(load.span, Form::Parsing, format!("{why} '{file}' cannot be read or parsed."));
                return Some(None);
            }
        };
        if !is_dummy {
            let message = format!(
                "No certificate available for '{file}', generating a temporary key pair before getting the ACME certificate"
            );
            self.out.push(Diagnostic::new(Severity::Notice, load.span, message).with_form(Form::Config));
        }
        let domains: Vec<Box<str>> = match load.domains.is_empty() {
            true => vec![file.rsplit('/').next().unwrap_or(file).into()],
            false => load.domains.iter().map(|name| name.as_str().into()).collect(),
        };
        let ips: Vec<_> = load.ips.iter().filter_map(|ip| ip.parse().ok()).collect();
        let made = match load.acme {
            // It is due.
            Some(_) => Key::generate(kind).and_then(|key| read(name, &key, &key.expired(&domains, &ips)?)),
            None => self_signed(name, kind, &domains, &ips),
        };
        let made = made.map(|mut certificate| {
            certificate.files.certificate = Some(file.to_owned());
            certificate.usage = Usage { ocsp_update: load.ocsp_update, jwt: load.jwt == Some(true) };
            Arc::new(certificate)
        });
        Some(Some(made))
    }

    /// How OCSP answers are kept fresh.
    pub(super) fn ocsp(&mut self, global: &GlobalTlsSpec) -> OcspUpdates {
        let written = &global.ocsp;
        let proxy = written.proxy.as_ref().and_then(|proxy| match &proxy.value {
            AddressSpec::Inet { host: HostSpec::Ip(ip), port, .. } => {
                let port = if let PortSpec::Exact(port) = port { *port } else { 0 };
                Some((*ip, if port == 0 { HTTP } else { port }).into())
            }
            _ => None,
        });
        if let Some(written) = written.proxy.as_ref().filter(|_| proxy.is_none()) {
            self.alert(written.span, Form::Parsing, "'ocsp-update.httpproxy' : an IP address is expected.".to_owned());
        }
        OcspUpdates {
            is_usual: written.is_usual,
            is_disabled: written.is_disabled,
            least: Duration::from_secs(written.least.into()),
            most: Duration::from_secs(written.most.into()),
            proxy,
        }
    }

    /// The certificates of `bind ... acme`. `None`: what is wrong with one has been told.
    pub(super) fn own_certificates(
        &mut self,
        written: &[Spanned<Vec<String>>],
        global: &GlobalTlsSpec,
    ) -> Option<Vec<Arc<Certificate>>> {
        let all: Vec<_> = written.iter().map(|names| self.own_certificate(names, global)).collect();
        all.into_iter().collect()
    }

    /// The certificate of `bind ... acme`: what was obtained before, else a temporary one. `None`: what is wrong has been told.
    fn own_certificate(&mut self, written: &Spanned<Vec<String>>, global: &GlobalTlsSpec) -> Option<Arc<Certificate>> {
        let mut certificate =
            AcmeCertificate { name: "".into(), section: 0, domains: Vec::new(), ips: Vec::new(), kept: None };
        for word in &written.value {
            match word.parse() {
                Ok(ip) => certificate.ips.push(ip),
                Err(_) if word.starts_with("*.") => {
                    let why = "wildcards are proved by DNS, which takes an 'acme' section and a 'crt-store'";
                    self.alert(
                        written.span,
                        Form::Parsing,
                        format!("'acme' : '{word}' cannot be obtained here: {why}."),
                    );
                    return None;
                }
                Err(_) if is_domain(word) => certificate.domains.push(word.to_ascii_lowercase().into()),
                Err(_) => {
                    self.alert(written.span, Form::Parsing, format!("'acme' : '{word}' is no domain name."));
                    return None;
                }
            }
        }
        let first = written.value.first()?.to_ascii_lowercase().replace(':', "_");
        let file = format!("{first}.pem");
        let name = format!("{}/{file}", folder(global).trim_end_matches('/'));
        certificate.name = name.as_str().into();
        certificate.kept = Some(Kept { file: file.into(), challenge: Challenge::TlsAlpn01 });
        match self.acme.iter().map(|(other, _)| other).find(|other| other.name == certificate.name) {
            Some(other) if *other != certificate => {
                let message = format!("'acme' : another line asks for '{first}' with other names.");
                self.alert(written.span, Form::Parsing, message);
                return None;
            }
            Some(_) => {}
            None => self.acme.push((certificate.clone(), None)),
        }
        if let Some(known) = self.tls.usable(&name) {
            return Some(known);
        }
        let kept = (self.resolver.file_reader())(&name).ok();
        let kept = kept.and_then(|text| Certificate::read(&name, &text, None).ok());
        let made = match kept {
            Some(kept) => Ok(kept),
            None => temporary(&certificate),
        };
        match made {
            Ok(made) => {
                let made = Arc::new(made);
                self.tls.know_certificate(Arc::clone(&made));
                Some(made)
            }
            Err(why) => {
                self.alert(written.span, Form::Parsing, format!("'acme' : {why}."));
                None
            }
        }
    }

    /// Warns of what the section of `bind ... acme` says in vain: those names are proved without rules and name servers.
    fn warn_of_keywords_without_effect(&mut self, written: &AcmeSpec) {
        let is_plain = written.challenge == AcmeChallenge::default()
            && written.ready.is_none()
            && written.map.is_none()
            && written.provider.is_none()
            && written.variables.is_none();
        if !is_plain {
            let message = format!(
                "acme section '{}': 'challenge', 'challenge-ready', 'map', 'provider-name' and 'acme-vars' have no effect on 'acme' of \
                 'bind' lines.",
                written.name
            );
            self.out.push(Diagnostic::warning(written.span, message).with_form(Form::ParsingTight));
        }
    }

    /// A map that is given tokens has to be one that a rule asks.
    fn find_map(&mut self, written: &AcmeSpec) {
        let Some(map) = &written.map else { return };
        if !self.shared.lists.borrow().has(ListName::parse(map).reference()) {
            let (name, place) = (&written.name, self.place(written.span));
            let message = format!(
                "acme section '{name}' line [{place}] has the map '{map}' configured, but this map doesn't exist"
            );
            self.failed = true;
            self.out.push(Diagnostic::alert(written.span, message).with_form(Form::Bare));
        }
    }

    /// All that the configuration says about ACME, once its lines were compiled.
    pub(super) fn acme(&mut self, spec: &Spec) -> Acme {
        let mut sections = Vec::new();
        for written in &spec.sections.acme {
            self.find_map(written);
            sections.extend(self.acme_section(written, &spec.global));
        }
        let mut certificates = Vec::new();
        for (mut certificate, section) in std::mem::take(&mut self.acme) {
            if let Some(name) = section {
                match spec.sections.acme.iter().position(|section| section.name == name.value) {
                    Some(at) => certificate.section = at,
                    None => {
                        let (name, place) = (&name.value, self.place(name.span));
                        let message =
                            format!("acme '{name}' was used on a crt line [{place}], but no '{name}' section exists!");
                        self.failed = true;
                        self.out.push(Diagnostic::alert(Span::default(), message).with_form(Form::Bare));
                        continue;
                    }
                }
            }
            certificates.push(certificate);
        }
        let is_own = certificates.iter().any(|one| one.kept.is_some());
        let folder = is_own.then(|| folder(&spec.global.tls));
        if let Some(folder) = &folder {
            let at = match sections.iter().position(|section| &*section.name == OWN) {
                Some(at) => {
                    if let Some(written) = spec.sections.acme.iter().find(|section| section.name == OWN) {
                        self.warn_of_keywords_without_effect(written);
                    }
                    at
                }
                None => {
                    let key_file = format!("{}/{OWN}.account.key", folder.trim_end_matches('/'));
                    let written = AcmeSpec {
                        directory: Some(Spanned::new(LETS_ENCRYPT.to_owned(), Span::default())),
                        account_key: Some(Spanned::new(key_file, Span::default())),
                        ..AcmeSpec::new(Span::default(), OWN)
                    };
                    sections.extend(self.acme_section(&written, &spec.global));
                    sections.len().saturating_sub(1)
                }
            };
            let over_http = spec.proxies.iter().any(hears_http);
            for one in &mut certificates {
                if let Some(kept) = &mut one.kept {
                    one.section = at;
                    // What the section says about proofs needs rules or a name server.
                    kept.challenge = if over_http { Challenge::OwnHttp01 } else { Challenge::TlsAlpn01 };
                }
            }
        }
        let schedules = !spec.global.tls.acme.schedules_nothing;
        Acme { schedules, sections, certificates, folder: folder.map(Into::into) }
    }

    fn acme_section(&mut self, written: &AcmeSpec, global: &GlobalSpec) -> Option<AcmeSection> {
        let name = &written.name;
        let bare = |message: String| Diagnostic::alert(written.span, message).with_form(Form::Bare);
        let Some(directory) = &written.directory else {
            self.failed = true;
            self.out.push(bare(format!("acme: No directory defined in ACME section '{name}'.")));
            return None;
        };
        let kind = if written.is_rsa { KeyKind::rsa(written.bits) } else { KeyKind::ecdsa(&written.curve) };
        let Some(key_kind) = kind else {
            self.failed = true;
            let known = "RSA keys are made with 2048, 3072 or 4096 bits";
            self.out.push(bare(format!("acme: section '{name}': 'bits {}' : {known}.", written.bits)));
            return None;
        };
        let key_file =
            written.account_key.as_ref().map_or_else(|| format!("{name}.account.key"), |file| file.value.clone());
        let key_file = located(&key_file, global.tls.crt_base.as_deref(), None);
        let key = match (self.resolver.file_reader())(&key_file) {
            // It is made at the start.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                self.failed = true;
                let why = super::tls::reason(&error);
                self.out.push(bare(format!("acme: section '{name}': unable to load account key '{key_file}': {why}.")));
                return None;
            }
            Ok(text) => match AccountKey::read(&text) {
                Ok(key) => Some(Arc::new(key)),
                Err(why) => {
                    self.failed = true;
                    let message = format!("acme: section '{name}': unable to load account key '{key_file}': {why}.");
                    self.out.push(bare(message));
                    return None;
                }
            },
        };
        let challenge = match written.challenge {
            AcmeChallenge::Http01 => Challenge::Http01,
            AcmeChallenge::Dns01 => Challenge::Dns01,
            AcmeChallenge::DnsPersist01 => Challenge::DnsPersist01,
        };
        let usual = match challenge {
            Challenge::Dns01 => AcmeReady { cli: true, ..AcmeReady::default() },
            Challenge::DnsPersist01 => AcmeReady { dns: true, delay: true, ..AcmeReady::default() },
            _ => AcmeReady::default(),
        };
        Some(AcmeSection {
            name: name.as_str().into(),
            directory: directory.value.as_str().into(),
            contact: written.contact.as_deref().map(Into::into),
            key_file: key_file.into(),
            key,
            key_kind,
            challenge,
            ready: written.ready.unwrap_or(usual),
            dns_delay: Duration::from_millis(written.dns_delay),
            dns_timeout: Duration::from_millis(written.dns_timeout),
            map: written.map.as_deref().map(Into::into),
            profile: written.profile.as_deref().map(Into::into),
            reuses_key: written.reuses_key,
            binding: self.binding(written)?,
            provider: written.provider.as_deref().map(Into::into),
            variables: written.variables.as_deref().map(Into::into),
        })
    }

    /// What binds an account: `Some(None)` where nothing does. `None`: what is wrong has been told.
    #[expect(clippy::option_option, reason = "nothing to bind with is no failure")]
    fn binding(&mut self, written: &AcmeSpec) -> Option<Option<Binding>> {
        let name = &written.name;
        let why = match (&written.eab_key_id, &written.eab_mac_key) {
            (None, None) => return Some(None),
            (Some(id), Some(key)) => {
                let read = self.resolver.file_reader();
                let text = |file: &Spanned<String>| {
                    let content =
                        read(&file.value).map_err(|error| format!("cannot open '{}': {error}", file.value))?;
                    let text = String::from_utf8(content).map_err(|_| format!("'{}' is no text", file.value))?;
                    Ok::<_, String>(text.strip_suffix('\n').unwrap_or(&text).to_owned())
                };
                let algorithm = match written.eab_mac_algorithm {
                    AcmeMac::Hs256 => MacAlgorithm::Hs256,
                    AcmeMac::Hs384 => MacAlgorithm::Hs384,
                    AcmeMac::Hs512 => MacAlgorithm::Hs512,
                };
                match (text(id), text(key)) {
                    // They were needed for the first account alone.
                    (Ok(id), Ok(key)) if id.is_empty() && key.is_empty() => return Some(None),
                    (Ok(id), Ok(key)) => match Binding::read(&id, &key, algorithm) {
                        Some(binding) => return Some(Some(binding)),
                        None => "the EAB MAC key is not in base64url".to_owned(),
                    },
                    (Err(why), _) | (_, Err(why)) => why,
                }
            }
            _ => "EAB MAC key and key id are mutually dependent, specify both or neither".to_owned(),
        };
        self.failed = true;
        let message = format!("acme: section '{name}': {why}.");
        self.out.push(Diagnostic::alert(written.span, message).with_form(Form::Bare));
        None
    }
}

fn folder(global: &GlobalTlsSpec) -> String {
    global.acme.folder.as_ref().map_or(FOLDER, |folder| folder.value.as_str()).to_owned()
}

/// Whether a server that looks at port 80 is answered by rules of HTTP.
fn hears_http(proxy: &ProxySpec) -> bool {
    let is_plain = |bind: &config::spec::BindSpec| bind.tls.as_ref().is_none_or(|tls| !tls.ssl);
    let is_port_80 = |address: &AddressSpec| matches!(address, AddressSpec::Inet { port: PortSpec::Exact(HTTP), .. });
    !proxy.disabled
        && proxy.mode == Mode::Http
        && proxy.binds.iter().any(|bind| is_plain(bind) && is_port_80(&bind.address))
}

/// The key of a generated certificate (configuration manual, section 12.7.1).
///
/// # Errors
/// HAProxy's sentence about a kind that is not made.
fn dummy_kind(load: &LoadSpec) -> Result<KeyKind, String> {
    match load.keytype.as_ref().map(|kind| kind.value.as_str()) {
        None | Some("RSA") => {
            let bits = load.bits.as_ref().map_or(2_048, |bits| bits.value);
            KeyKind::rsa(bits).ok_or_else(|| format!("'bits {bits}': RSA keys are made with 2048, 3072 or 4096 bits."))
        }
        Some("ECDSA") => {
            let curve = load.curves.as_ref().map_or("P-384", |curve| curve.value.as_str());
            KeyKind::ecdsa(curve).ok_or_else(|| format!("unsupported curves '{curve}'."))
        }
        Some(_) => Err("keyword 'keytype' requires either 'RSA' or 'ECDSA'.".to_owned()),
    }
}

fn temporary(certificate: &AcmeCertificate) -> Result<Certificate, String> {
    self_signed(&certificate.name, KeyKind::P256, &certificate.domains, &certificate.ips)
}

fn self_signed(name: &str, kind: KeyKind, domains: &[Box<str>], ips: &[IpAddr]) -> Result<Certificate, String> {
    let key = Key::generate(kind)?;
    read(name, &key, &key.self_signed(domains, ips)?)
}

fn read(name: &str, key: &Key, certificate: &str) -> Result<Certificate, String> {
    let text = key.to_pem() + certificate;
    Certificate::read(name, text.as_bytes(), None).map_err(|error| error.sentence(name))
}

/// Whether a word is a name of a host with more than one label (RFC 1034, section 3.5).
fn is_domain(word: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    word.len() <= 253 && word.contains('.') && word.split('.').all(is_label)
}
