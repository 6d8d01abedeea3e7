//! Random certificates and chains, from one seed, compared with the program `openssl`: serial numbers, distinguished
//! names, and the first error of a chain. If that program is missing, a message is printed and nothing is compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PublicKeyData, RevokedCertParams,
    SerialNumber, SigningKey, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use weir_tls::certificate::Certificate;
use weir_tls::server::{Settings, Verify};
use weir_tls::verify::{Authorities, ClientTerms};
use weir_tls::x509::{self, Part};
use weir_tls::{Client, client, pem};

use crate::pair::{Authority, name, server, shake};

const SEED: u64 = 0x2545_f491_4f6c_dd1d;
const NAMES: usize = 80;
const CHAINS: usize = 120;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A folder that is removed with the test. `None`: there is no `openssl`.
struct Folder(PathBuf);

impl Folder {
    #[allow(clippy::print_stderr, reason = "the output says what was left out")]
    fn new(what: &str) -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("SKIPPED: openssl is not installed");
            return None;
        }
        let path = std::env::temp_dir().join(format!("weir-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Some(Self(path))
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.0.join(file);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn openssl(words: &[&str]) -> String {
    let output = Command::new("openssl").args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    match content.len() {
        0..128 => [&[tag, length[1]], content].concat(),
        128..256 => [&[tag, 0x81, length[1]], content].concat(),
        _ => [&[tag, 0x82], &length[..], content].concat(),
    }
}

/// Encodes an object identifier in DER.
fn number(dotted: &str) -> Vec<u8> {
    let parts: Vec<u32> = dotted.split('.').map(|part| part.parse().unwrap()).collect();
    let mut bytes = Vec::new();
    for part in [parts[0] * 40 + parts[1]].iter().chain(&parts[2..]) {
        let mut groups = vec![(part & 0x7f) as u8];
        let mut rest = part >> 7;
        while rest > 0 {
            groups.push(0x80 | (rest & 0x7f) as u8);
            rest >>= 7;
        }
        bytes.extend(groups.iter().rev());
    }
    element(6, &bytes)
}

const KINDS: [&str; 24] = [
    "2.5.4.3",
    "2.5.4.4",
    "2.5.4.5",
    "2.5.4.6",
    "2.5.4.7",
    "2.5.4.8",
    "2.5.4.9",
    "2.5.4.10",
    "2.5.4.11",
    "2.5.4.12",
    "2.5.4.13",
    "2.5.4.17",
    "2.5.4.42",
    "2.5.4.65",
    "2.5.4.97",
    "0.9.2342.19200300.100.1.1",
    "0.9.2342.19200300.100.1.25",
    "0.9.2342.19200300.100.1.3",
    "1.2.840.113549.1.9.1",
    "1.2.840.113549.1.9.2",
    "1.3.6.1.4.1.311.60.2.1.3",
    "1.2.643.100.1",
    "1.2.3.4.5",
    "2.999.1",
];

/// Returns a random value of a random string type: letters, special characters, blanks at its ends, control characters,
/// letters beyond ASCII.
fn value(random: &mut Random) -> Vec<u8> {
    const LETTERS: [char; 20] = [
        'a',
        'Z',
        '0',
        ' ',
        ' ',
        ',',
        '+',
        '"',
        '\\',
        '<',
        '>',
        ';',
        '#',
        '=',
        '/',
        '\n',
        '\u{7f}',
        '\u{e9}',
        '\u{20ac}',
        '\u{1f600}',
    ];
    let tag = *random.pick(&[12_u8, 12, 12, 19, 20, 22, 28, 30]);
    // The letters that a string of that type can contain.
    let most = match tag {
        19 | 22 => 17,
        20 => 18,
        30 => 19,
        _ => 20,
    };
    let letters: Vec<char> = (0..=random.below(8)).map(|_| LETTERS[random.below(most)]).collect();
    let content: Vec<u8> = match tag {
        30 => letters.iter().flat_map(|letter| (u32::from(*letter) as u16).to_be_bytes()).collect(),
        28 => letters.iter().flat_map(|letter| u32::from(*letter).to_be_bytes()).collect(),
        20 => letters.iter().map(|letter| u32::from(*letter) as u8).collect(),
        _ => letters.iter().collect::<String>().into_bytes(),
    };
    element(tag, &content)
}

/// Returns a random name of one to five parts, some of which have several attributes.
fn distinguished_name(random: &mut Random) -> Vec<u8> {
    let mut sets = Vec::new();
    for _ in 0..=random.below(5) {
        let count = if random.once_in(4) { 2 } else { 1 };
        let attribute =
            |random: &mut Random| element(0x30, &[number(KINDS[random.below(KINDS.len())]), value(random)].concat());
        let mut attributes: Vec<_> = (0..count).map(|_| attribute(random)).collect();
        attributes.sort();
        attributes.dedup();
        sets.extend(element(0x31, &attributes.concat()));
    }
    element(0x30, &sets)
}

/// Builds a certificate with that serial number and name, which is in its subjectAltName as well.
fn certificate(key: &KeyPair, serial: &[u8], subject: &[u8]) -> Vec<u8> {
    let algorithm = element(0x30, &number("1.2.840.10045.4.3.2"));
    let time = |text: &[u8]| element(0x17, text);
    let validity = element(0x30, &[time(b"200101000000Z"), time(b"491231235959Z")].concat());
    let alternative = element(0x30, &element(0xa4, subject));
    let extension = element(0x30, &[number("2.5.29.17"), element(4, &alternative)].concat());
    let body = [
        element(0xa0, &element(2, &[2])),
        element(2, serial),
        algorithm.clone(),
        subject.to_vec(),
        validity,
        subject.to_vec(),
        key.subject_public_key_info(),
        element(0xa3, &element(0x30, &extension)),
    ];
    let body = element(0x30, &body.concat());
    let signature = key.sign(&body).unwrap();
    element(0x30, &[body, algorithm, element(3, &[&[0], &signature[..]].concat())].concat())
}

#[test]
fn names_and_serial_numbers_are_those_of_openssl() {
    let Some(folder) = Folder::new("names") else { return };
    let (mut random, key) = (Random(SEED), KeyPair::generate().unwrap());
    let mut wrong = Vec::new();
    for place in 0..NAMES {
        let mut serial: Vec<u8> = (0..=random.below(20)).map(|_| random.next() as u8).collect();
        // The shortest form of a number.
        if serial.len() > 1 && matches!((serial[0], serial[1] & 0x80), (0, 0) | (0xff, 0x80)) {
            serial[0] ^= 0x40;
        }
        let der = certificate(&key, &serial, &distinguished_name(&mut random));
        let file = folder.write("one.pem", &pem::encode_certificate(&der));
        let backwards = place % 2 == 0;
        let option = if backwards { "RFC2253" } else { "oneline" };
        let file = file.to_str().unwrap();
        let output = openssl(&["x509", "-in", file, "-noout", "-serial", "-subject", "-nameopt", option]);
        let field = |key: &str| output.lines().find_map(|line| line.strip_prefix(key)).unwrap_or(&output).to_owned();
        let own_serial: String =
            x509::part(&der, Part::Serial).unwrap().iter().map(|byte| format!("{byte:02X}")).collect();
        let own_name = match backwards {
            true => String::from_utf8(x509::rfc2253(&der, Part::Subject).unwrap()).unwrap(),
            false => x509::alternative_names(&der).unwrap().strip_prefix("DirName:").unwrap().to_owned(),
        };
        for (own, theirs) in [(own_serial, field("serial=").replace('-', "")), (own_name, field("subject="))] {
            if own != theirs {
                wrong.push(format!("{own}   openssl: {theirs}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {NAMES}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A generated certificate, with its key.
struct GeneratedCertificate {
    der: Vec<u8>,
    params: CertificateParams,
    key: KeyPair,
}

impl GeneratedCertificate {
    fn pem(&self) -> String {
        pem::encode_certificate(&self.der)
    }

    fn list(&self, revoked: Option<&Self>, random: &mut Random) -> CertificateRevocationListDer<'static> {
        let revoked = revoked.and_then(|one| one.params.serial_number.clone()).map(|serial_number| RevokedCertParams {
            serial_number,
            revocation_time: date_time_ymd(2021, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(if random.once_in(8) { 2022 } else { 2100 }, 1, 1),
            crl_number: SerialNumber::from(vec![1]),
            issuing_distribution_point: None,
            revoked_certs: revoked.into_iter().collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        // Whether it may sign lists is checked by their readers.
        let mut issuer = self.params.clone();
        issuer.key_usages.clear();
        params.signed_by(&Issuer::from_params(&issuer, &self.key)).unwrap().der().clone()
    }
}

/// Generates a certificate with some of the possible errors.
fn made(
    random: &mut Random,
    common: &str,
    issuer: Option<&GeneratedCertificate>,
    is_authority: bool,
    count: usize,
) -> GeneratedCertificate {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    params.serial_number = Some(SerialNumber::from(vec![1, count as u8]));
    let (begin, end) = match random.below(12) {
        0 => (2020, 2022),
        1 => (2090, 2100),
        _ => (2020, 2100),
    };
    (params.not_before, params.not_after) = (date_time_ymd(begin, 1, 1), date_time_ymd(end, 1, 1));
    params.use_authority_key_identifier_extension = !random.once_in(3);
    params.is_ca = match (is_authority, random.below(12)) {
        (true, 0) => IsCa::ExplicitNoCa,
        (true, 1) => IsCa::NoCa,
        (true, 2..5) => IsCa::Ca(BasicConstraints::Constrained(random.below(2) as u8)),
        (true, _) => IsCa::Ca(BasicConstraints::Unconstrained),
        (false, 0) => IsCa::Ca(BasicConstraints::Unconstrained),
        (false, 1..6) => IsCa::ExplicitNoCa,
        (false, _) => IsCa::NoCa,
    };
    params.key_usages = match random.below(10) {
        0 => vec![KeyUsagePurpose::DigitalSignature],
        1 => vec![KeyUsagePurpose::KeyEncipherment],
        2 => vec![KeyUsagePurpose::KeyCertSign],
        3 => vec![KeyUsagePurpose::CrlSign, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature],
        _ => Vec::new(),
    };
    params.extended_key_usages = match random.below(14) {
        0 => vec![ExtendedKeyUsagePurpose::ServerAuth],
        1 => vec![ExtendedKeyUsagePurpose::ClientAuth],
        2 => vec![ExtendedKeyUsagePurpose::Any],
        3 => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
        _ => Vec::new(),
    };
    let signed = match issuer {
        Some(issuer) => params.signed_by(&key, &Issuer::from_params(&issuer.params, &issuer.key)),
        None => params.self_signed(&key),
    };
    let mut der = signed.unwrap().der().to_vec();
    if random.once_in(14) {
        *der.last_mut().unwrap() ^= 1;
    }
    GeneratedCertificate { der, params, key }
}

/// Returns the first error that `openssl verify` reports: its code and depth. `None`: the chain is valid.
fn verified(output: &str) -> Option<(u8, u8)> {
    let line = output.lines().find(|line| line.starts_with("error ") && line.contains(" depth lookup"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    Some((words[1].parse().unwrap(), words[3].parse().unwrap()))
}

/// Returns the error for which a client is rejected; `None`: it is accepted.
fn refused(chain: &str, key: &KeyPair, authorities: Authorities) -> Option<(u8, u8)> {
    let shown =
        Arc::new(Certificate::read("case.pem", (chain.to_owned() + &key.serialize_pem()).as_bytes(), None).unwrap());
    let terms = ClientTerms { is_required: true, authorities: Arc::new(authorities), ..ClientTerms::default() };
    let settings = Settings { verify: Verify::Asked(terms), ..Settings::default() };
    let server = server(&[Authority::new().certificate(&["a.example"])], settings, false);
    let settings = client::Settings { certificate: Some(shown), ..client::Settings::default() };
    let (_, mut far) = shake(&server, &Client::new(settings).unwrap(), name("a.example"), 100_000);
    if far.connection.is_open() {
        return None;
    }
    let fault = far.connection.take_handshake_info().and_then(|info| info.faults.last().copied());
    Some(fault.map_or((1, 0), |fault| (fault.code, fault.depth)))
}

#[test]
fn chains_are_judged_as_openssl_does() {
    let Some(folder) = Folder::new("chains") else { return };
    let mut random = Random(SEED);
    let (mut wrong, mut good, mut codes) = (Vec::new(), 0, std::collections::BTreeSet::new());
    for case in 0..CHAINS {
        let root = made(&mut random, "root", None, true, 0);
        // Some have another authority as their issuer, or the same name.
        let names = ["first", "second", if random.once_in(3) { "first" } else { "third" }];
        let mut line = vec![root];
        for count in 0..random.below(4) {
            let next = made(&mut random, names[count % 3], line.last(), true, count + 1);
            line.push(next);
        }
        let leaf = made(&mut random, "leaf", line.last(), false, 9);
        let mut believed: Vec<&GeneratedCertificate> = line.iter().take(1).collect();
        let mut sent: Vec<&GeneratedCertificate> = line.iter().skip(1).collect();
        match random.below(8) {
            0 => drop(sent.pop()),
            1 => believed = line.iter().skip(1).take(1).collect(),
            2 => sent.push(&line[0]),
            3 => believed.extend(line.iter().skip(1)),
            _ => {}
        }
        if believed.is_empty() {
            believed.push(&leaf);
        }
        if random.once_in(2) {
            sent.reverse();
        }
        let mut lists = Vec::new();
        if random.once_in(3) {
            for (place, issuer) in line.iter().enumerate().filter(|_| !random.once_in(8)).collect::<Vec<_>>() {
                let next = line.get(place + 1).unwrap_or(&leaf);
                let revoked = random.once_in(6).then_some(next);
                lists.push(issuer.list(revoked, &mut random));
            }
        }
        let join = |all: &[&GeneratedCertificate]| all.iter().map(|one| one.pem()).collect::<String>();
        let (ca, chain, own) = (join(&believed), join(&sent), leaf.pem());
        let roots = believed.iter().map(|one| CertificateDer::from(one.der.clone())).collect();
        let crl_file = (!lists.is_empty()).then(|| "crl".into());
        let authorities = Authorities { roots, revoked: lists.clone(), crl_file, ..Authorities::default() };
        let theirs = openssl_verdict(&folder, [&ca, &chain, &own], &lists);
        let ours = refused(&(own + &chain), &leaf.key, authorities);
        good += usize::from(ours.is_none());
        codes.extend(theirs.map(|(code, _)| code));
        if ours != theirs {
            wrong.push(format!("{case}: {ours:?}, openssl: {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {CHAINS}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(good > 5 && codes.len() > 8, "{good} good, numbers {codes:?}");
}

fn openssl_verdict(
    folder: &Folder,
    [ca, chain, own]: [&str; 3],
    lists: &[CertificateRevocationListDer<'_>],
) -> Option<(u8, u8)> {
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (ca, own) = (path(&folder.write("ca.pem", ca)), path(&folder.write("own.pem", own)));
    let mut words = ["verify", "-no-CApath", "-no-CAstore", "-purpose", "sslclient", "-auth_level", "2", "-CAfile"]
        .map(str::to_owned)
        .to_vec();
    words.push(ca);
    if !chain.is_empty() {
        words.extend(["-untrusted".to_owned(), path(&folder.write("chain.pem", chain))]);
    }
    if !lists.is_empty() {
        let text: String = lists.iter().map(|list| encode_list(list)).collect();
        words.extend(["-crl_check_all", "-crl_check", "-CRLfile"].map(str::to_owned));
        words.push(path(&folder.write("crl.pem", &text)));
    }
    words.push(own);
    verified(&openssl(&words.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn encode_list(der: &[u8]) -> String {
    pem::encode_certificate(der).replace("CERTIFICATE", "X509 CRL")
}
