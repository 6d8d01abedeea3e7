//! The files of one certificate, and the certificate that is assembled from them. Must never read a file that no line
//! and no option refers to.

use super::super::{Line, located};
use crate::compile::Compiler;
use config::diagnostic::{Diagnostic, Form, Severity};
use config::span::{Span, Spanned};
use config::spec::{BindTlsSpec, ExtraFilesSpec, GlobalTlsSpec, LoadSpec};
use std::io;
use std::sync::Arc;
use tls::certificate::{Certificate, Error, Files, Key, Parts, Usage};
use tls::ocsp::{Answer, responder};
use tls::passphrase::EncryptedKey;
use tls::pem::{self, PrivateKey};
use tls::{timestamps, x509};

/// Maximum length of a passphrase in bytes: OpenSSL's limit.
const LONGEST_PASSPHRASE: usize = 1024;

/// A chain of `issuers-chain-path`, the issuer first.
pub(super) struct Chain {
    file: String,
    certificates: Vec<pem::CertificateDer>,
}

/// The files of a certificate's parts.
pub(super) struct Paths {
    certificate: String,
    /// `Ok`: the file is required; `Err`: it is optional.
    key: Option<Result<String, String>>,
    ocsp: Option<Result<String, String>>,
    issuer: Option<Result<String, String>>,
    timestamps: Option<Result<String, String>>,
    /// The message about a missing key.
    without_key: String,
}

impl Paths {
    /// Returns the files that a line specifies. `base` is the base directory, `key_base` that of the key.
    pub(super) fn written(load: &LoadSpec, certificate: String, base: Option<&str>, key_base: Option<&str>) -> Self {
        let path = |file: &Option<Spanned<String>>, base: Option<&str>| {
            file.as_ref().map(|file| Ok(located(&file.value, base, load.folder.as_deref())))
        };
        Self {
            key: path(&load.key, key_base),
            ocsp: path(&load.ocsp, base),
            issuer: path(&load.issuer, base),
            timestamps: path(&load.sctl, base),
            without_key: format!(
                "unable to load SSL private key into SSL Context '{certificate}': passed a null parameter"
            ),
            certificate,
        }
    }

    /// The file of the certificate itself.
    pub(super) fn file(&self) -> &str {
        &self.certificate
    }

    /// Returns the files next to a certificate's file.
    pub(super) fn beside(certificate: &str, extra: ExtraFilesSpec) -> Self {
        let stem = match certificate.strip_suffix(".crt") {
            Some(stem) if extra.replaces_extension => stem,
            _ => certificate,
        };
        let path = |wanted: bool, end: &str| wanted.then(|| Err(format!("{stem}{end}")));
        let missing = if extra.key { format!("{stem}.key") } else { stem.to_owned() };
        Self {
            certificate: certificate.to_owned(),
            key: path(extra.key, ".key"),
            ocsp: path(extra.ocsp, ".ocsp"),
            issuer: path(extra.issuer, ".issuer"),
            timestamps: path(extra.sctl, ".sctl"),
            without_key: format!("No Private Key found in '{missing}'"),
        }
    }
}

/// Returns the name of a required or optional file.
fn name(path: &Option<Result<String, String>>) -> Option<&str> {
    path.as_ref().map(|path| path.as_deref().unwrap_or_else(|path| path))
}

impl Compiler<'_> {
    /// Assembles a certificate. `Some(Err)`: it cannot be used, for that reason; `None` if an error was reported.
    pub(super) fn load(
        &mut self,
        called: &str,
        paths: &Paths,
        load: &LoadSpec,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Result<Arc<Certificate>, String>> {
        let read = self.resolver.file_reader();
        let file = &paths.certificate;
        let text = match read(file) {
            Ok(text) => text,
            Err(_) => {
                let message = format!("cannot open the file '{file}'.\n'{file}' cannot be read or parsed.");
                self.alert(line.span, line.form, format!("{}{message}", line.head));
                return None;
            }
        };
        let chain = match pem::certificates(&text) {
            Ok(chain) => chain,
            Err(why) => return Some(Err(Error::NoCertificate(why).sentence(called))),
        };
        let found = match self.key(&text, paths, global, line)? {
            Ok(found) => found,
            Err(why) => return Some(Err(why)),
        };
        let Some((key, key_file)) = found else { return Some(Err(paths.without_key.clone())) };
        let mut parts = Parts {
            name: called.to_owned(),
            files: Files {
                certificate: Some(file.clone()),
                key: Some(key_file).filter(|key| paths.key.is_some() || key != file),
                ocsp: name(&paths.ocsp).map(str::to_owned),
                timestamps: name(&paths.timestamps).map(str::to_owned),
                ..Files::default()
            },
            chain,
            key,
            issuer: None,
            skips_self_issued: global.skips_self_issued,
            usage: Usage { ocsp_update: load.ocsp_update, jwt: load.jwt == Some(true) },
        };
        self.complete(&mut parts);
        let ocsp = self.part(&paths.ocsp, line, |path| {
            format!("Error opening OCSP response file '{path}' cannot be read or parsed.")
        })?;
        let is_updated = load.ocsp_update.unwrap_or(global.ocsp.is_usual) && !global.ocsp.is_disabled;
        let is_updated = is_updated && parts.chain.first().is_some_and(|own| responder(own).is_some());
        let is_wanted = ocsp.is_some() || is_updated || matches!(paths.issuer, Some(Ok(_)));
        if is_wanted && !parts.chain.iter().skip(1).any(|one| x509::is_issuer(one, &parts.chain[0])) {
            self.issuer(&mut parts, paths, line)?;
        }
        self.timestamps(paths, line)?;
        match Certificate::assemble(parts) {
            Ok(certificate) => {
                if let Some(answer) = ocsp {
                    self.staple(&certificate, &answer, line);
                } else if is_updated && certificate.responder().is_some() && certificate.ocsp_id().is_none() {
                    let message = format!(
                        "{} '{called}' has an OCSP auto-update set to 'on' but an error occurred (maybe the OCSP URI or the issuer \
                         could not be found)'.",
                        line.head
                    );
                    self.out.push(Diagnostic::warning(line.span, message).with_form(line.form));
                }
                Some(Ok(Arc::new(certificate)))
            }
            Err(why) => Some(Err(why.sentence(called))),
        }
    }

    /// Reads a required or optional file. `None` if an error was reported.
    #[expect(clippy::option_option, reason = "a file that is not there is no failure")]
    fn part(
        &mut self,
        path: &Option<Result<String, String>>,
        line: &Line,
        sentence: impl Fn(&str) -> String,
    ) -> Option<Option<Vec<u8>>> {
        let read = self.resolver.file_reader();
        match path {
            None => Some(None),
            Some(Err(path)) => Some(read(path).ok()),
            Some(Ok(path)) => match read(path) {
                Ok(content) => Some(Some(content)),
                Err(_) => {
                    self.alert(line.span, line.form, format!("{}{}", line.head, sentence(path)));
                    None
                }
            },
        }
    }

    /// Returns the key and its file: a specified file takes precedence, else that of the certificate.
    fn key(
        &mut self,
        text: &[u8],
        paths: &Paths,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Result<Option<(PrivateKey, String)>, String>> {
        let own = || Some((paths.certificate.clone(), Key::find(text)));
        let beside = match &paths.key {
            Some(Err(_)) if !matches!(Key::find(text), Ok(None)) => None,
            path => {
                let content = self.part(path, line, |path| format!(" '{path}' cannot be read or parsed."))?;
                content.map(|content| (name(path).unwrap_or_default().to_owned(), Key::find(&content)))
            }
        };
        let Some((file, found)) = beside.or_else(own) else { return Some(Ok(None)) };
        Some(match found {
            Ok(Some(Key::Plain(key))) => Ok(Some((key, file))),
            Ok(Some(Key::Encrypted(key))) => self.open(&key, &file, global).map(|key| Some((key, file))),
            // A specified key file must contain a key.
            Ok(None) if matches!(paths.key, Some(Ok(_))) => Err(format!(" '{file}' cannot be read or parsed")),
            Ok(None) => Ok(None),
            Err(why) => Err(why.sentence(&file)),
        })
    }

    /// Decrypts a key: with a known passphrase, else with the output of `ssl-passphrase-cmd`.
    fn open(&mut self, key: &EncryptedKey, file: &str, global: &GlobalTlsSpec) -> Result<PrivateKey, String> {
        if let Some(key) = self.tls.passphrases.iter().find_map(|known| key.open(known).ok()) {
            return Ok(key);
        }
        let Some((program, arguments)) = global.passphrase_command.split_first() else {
            return Err(format!(
                "unable to load private key from file '{file}': Trying to load a passphrase-protected private key without \
                 an 'ssl-passphrase-cmd' defined"
            ));
        };
        let words: Vec<String> =
            [program.clone(), file.to_owned()].into_iter().chain(arguments.iter().cloned()).collect();
        let asked = self.resolver.passphrase(&words);
        let opened = asked.and_then(|mut passphrase| {
            passphrase.truncate(LONGEST_PASSPHRASE);
            let opened = match key.open(&passphrase) {
                // `echo` appends a line feed.
                Err(_) if passphrase.ends_with(b"\n") => {
                    passphrase.pop();
                    key.open(&passphrase)?
                }
                opened => opened?,
            };
            self.tls.passphrases.push(passphrase);
            Ok(opened)
        });
        opened.map_err(|why| format!("unable to load private key from file '{file}': {why}"))
    }

    /// Returns the CA that signs generated certificates (`ca-sign-file`). `None` if an error was reported.
    pub(in crate::compile::tls) fn signing_authority(
        &mut self,
        written: &BindTlsSpec,
        proxy: &str,
        global: &GlobalTlsSpec,
        span: Span,
    ) -> Option<Arc<Certificate>> {
        let place = self.place(span);
        let Some(path) = &written.ca_sign_file else {
            let message = format!(
                "Proxy '{proxy}': cannot enable certificate generation, no CA certificate File configured at [{place}]."
            );
            self.alert(span, Form::Bare, message);
            return None;
        };
        let file = located(&path.value, global.ca_base.as_deref(), written.common.folder.as_deref());
        let read = self.resolver.file_reader();
        let assembled = match read(&file) {
            Err(_) => Err(format!("cannot open the file '{file}'")),
            Ok(text) => {
                let beside = read(&format!("{file}.key")).ok();
                let texts = [Some(text.as_slice()), beside.as_deref()];
                authority(&file, texts, written.ca_sign_pass.as_deref())
            }
        };
        match assembled {
            Ok(certificate) => Some(Arc::new(certificate)),
            Err(why) => {
                let message = format!(
                    "Proxy '{proxy}': Failed to read CA certificate file '{}' at [{place}]. Chain loading failed: {why}.",
                    path.value
                );
                self.alert(span, Form::Bare, message);
                None
            }
        }
    }

    /// Appends the chain of its issuer to a certificate without a chain.
    fn complete(&self, parts: &mut Parts) {
        let [own] = parts.chain.as_slice() else { return };
        let is_of_issuer = |chain: &&Chain| chain.certificates.first().is_some_and(|first| x509::is_issuer(first, own));
        if let Some(chain) = self.tls.chains.iter().find(is_of_issuer) {
            parts.files.chain = Some(chain.file.clone());
            parts.chain.extend(chain.certificates.iter().cloned());
        }
    }

    /// Reads `issuers-chain-path`.
    pub(super) fn load_chains(&mut self, global: &GlobalTlsSpec) {
        let Some(folder) = &global.issuers_chain else { return };
        let (read, stem) = (self.resolver.file_reader(), folder.value.trim_end_matches('/'));
        let Some(mut names) = (self.resolver.folder_reader())(&folder.value) else {
            let message = "global statement 'issuers-chain-path' expects a directory path as an argument.";
            self.alert(folder.span, Form::Parsing, message.to_owned());
            return;
        };
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        let mut chains: Vec<Chain> = Vec::new();
        for file in names.iter().map(|name| format!("{stem}/{name}")) {
            let certificates = match read(&file).map(|text| pem::certificates(&text)) {
                Ok(Ok(certificates)) => certificates,
                // A subdirectory.
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => continue,
                _ => {
                    let message = format!("unable to load issuers-chain {file} : pem certificate not found.");
                    self.out.push(Diagnostic::warning(folder.span, message).with_form(Form::Config));
                    continue;
                }
            };
            match chains.iter().find(|known| known.certificates.first() == certificates.first()) {
                Some(known) => {
                    let message = format!("duplicate issuers-chain {file}: {} already in store", known.file);
                    self.out.push(Diagnostic::warning(folder.span, message).with_form(Form::Config));
                }
                None => chains.push(Chain { file, certificates }),
            }
        }
        self.tls.chains = chains;
    }

    /// Reads the issuer's certificate from its own file. `None` if an error was reported.
    fn issuer(&mut self, parts: &mut Parts, paths: &Paths, line: &Line) -> Option<()> {
        let sentence = |path: &str| format!(" '{path}' cannot be read or parsed.");
        let Some(content) = self.part(&paths.issuer, line, sentence)? else { return Some(()) };
        let file = name(&paths.issuer).unwrap_or_default();
        let why = match pem::certificates(&content).map(|all| all.into_iter().next()) {
            Ok(Some(issuer)) if x509::is_issuer(&issuer, &parts.chain[0]) => {
                parts.issuer = Some(issuer);
                parts.files.issuer = Some(file.to_owned());
                return Some(());
            }
            Ok(_) => format!(" '{file}' is not an issuer'."),
            Err(_) => sentence(file),
        };
        self.alert(line.span, line.form, format!("{}{why}", line.head));
        None
    }

    /// Validates a list of certificate timestamps, which is not sent. `None` if an error was reported.
    fn timestamps(&mut self, paths: &Paths, line: &Line) -> Option<()> {
        let content = self.part(&paths.timestamps, line, |path| format!(" '{path}' cannot be read or parsed."))?;
        let Some(content) = content else { return Some(()) };
        if !timestamps::is_list(&content) {
            let why = match &paths.timestamps {
                Some(Err(path)) => format!(" '{path}.sctl' is present but cannot be read or parsed'."),
                path => format!(" '{}' cannot be read or parsed.", name(path).unwrap_or_default()),
            };
            self.alert(line.span, line.form, format!("{}{why}", line.head));
            return None;
        }
        let message = "Weir checks lists of signed certificate timestamps (sctl) and does not send them: certificates and \
                       OCSP answers can hold their own.";
        if !self.out.iter().any(|known| known.message == message) {
            self.out.push(Diagnostic::new(Severity::Notice, line.span, message));
        }
        Some(())
    }

    /// Staples an OCSP response if it is usable.
    fn staple(&mut self, certificate: &Certificate, answer: &[u8], line: &Line) {
        let Some(id) = certificate.ocsp_id() else {
            let message = format!(
                "{} '{}.ocsp' is present and activates OCSP but it is impossible to compute the OCSP certificate ID (maybe \
                 the issuer could not be found)'.",
                line.head, certificate.name
            );
            self.out.push(Diagnostic::warning(line.span, message).with_form(line.form));
            return;
        };
        // An empty file announces a later update.
        if answer.is_empty() {
            return;
        }
        match Answer::read(answer, &id, self.resolver.probes().wall().seconds) {
            Ok(answer) => certificate.staple(Some(Arc::new(answer))),
            Err(why) => {
                let message = format!("Loading: {}. Content will be ignored.", why.sentence().trim_end_matches('.'));
                self.out.push(Diagnostic::warning(line.span, message).with_form(Form::Config));
            }
        }
    }
}

/// Returns a certificate with the first key of these texts, the first of which contains the certificate.
fn authority(file: &str, texts: [Option<&[u8]>; 2], passphrase: Option<&str>) -> Result<Certificate, String> {
    let own = texts[0].unwrap_or_default();
    let chain = pem::certificates(own).map_err(|why| Error::NoCertificate(why).sentence(file))?;
    let mut found = None;
    for text in texts.into_iter().flatten() {
        found = Key::find(text).map_err(|why| why.sentence(file))?;
        if found.is_some() {
            break;
        }
    }
    let key = match (found, passphrase) {
        (None, _) => return Err(Error::NoKey.sentence(file)),
        (Some(Key::Plain(key)), _) => key,
        (Some(Key::Encrypted(key)), Some(passphrase)) => key.open(passphrase.as_bytes())?,
        (Some(Key::Encrypted(_)), None) => {
            return Err(format!("{}, and there is no 'ca-sign-pass'", Error::EncryptedKey.sentence(file)));
        }
    };
    let parts = Parts {
        name: file.to_owned(),
        chain,
        key,
        issuer: None,
        skips_self_issued: false,
        files: Files::default(),
        usage: Usage::default(),
    };
    Certificate::assemble(parts).map_err(|why| why.sentence(file))
}
