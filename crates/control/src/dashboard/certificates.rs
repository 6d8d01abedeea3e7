//! Certificates in use, with the days that they are still valid: those that addresses and servers present, and those of CA
//! files. Must never show a private key.

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::program::Program;
use tls::certificate::Certificate;
use tls::trust::TrustFile;
use tls::x509::{self, Validity};

use super::answer::{Answer, put};
use super::json::{Commas, Quoted};
use super::request::DashboardRequest;

/// Default and maximum of `limit`: certificates per answer.
const USUAL: usize = 200;
const MOST: usize = 1000;
/// Maximum number of names, and of places of use, of a certificate in an answer.
const MOST_MEMBERS: usize = 100;
/// Maximum number of certificates of CA files that are read; further ones are left out.
const MOST_AUTHORITIES: usize = 10_000;
/// Seconds before its end in which a certificate is reported as expiring: 30 days.
const EXPIRING: i64 = 30 * DAY;
const DAY: i64 = 86_400;

/// Where a certificate or a CA file is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// A listening address of a section: kind and name of the section, the address.
    Bind(Box<str>, Box<str>, Box<str>),
    /// A server: its backend and its name.
    Server(Box<str>, Box<str>),
}

/// The DER encoding of a certificate, and where it comes from.
enum Source {
    Own(Arc<Certificate>),
    /// The certificate of a CA file at an index.
    Authority(Arc<TrustFile>, usize),
}

impl Source {
    fn der(&self) -> &[u8] {
        match self {
            Self::Own(certificate) => certificate.der(),
            Self::Authority(file, at) => file.content.certificates().get(*at).map_or(&[], |one| one.as_ref()),
        }
    }
}

/// A certificate of an answer.
struct Listed {
    validity: Validity,
    name: Box<str>,
    source: Source,
}

/// Certificates and CA files by name, with where they are used.
#[derive(Default)]
struct Inventory {
    certificates: BTreeMap<Box<str>, (Arc<Certificate>, Vec<Use>)>,
    files: BTreeMap<Box<str>, (Arc<TrustFile>, Vec<Use>)>,
}

impl Inventory {
    fn add(&mut self, certificates: Vec<Arc<Certificate>>, files: Vec<TrustFile>, place: &Use) {
        for certificate in certificates {
            let name = certificate.name.clone();
            self.certificates.entry(name).or_insert_with(|| (certificate, Vec::new())).1.push(place.clone());
        }
        for file in files {
            let name = file.name.clone();
            self.files.entry(name).or_insert_with(|| (Arc::new(file), Vec::new())).1.push(place.clone());
        }
    }

    /// Collects what a program uses; pauses between places if a time slice is used up.
    async fn of(program: &Program) -> Self {
        let mut inventory = Self::default();
        for listener in &program.tls.listeners {
            let (kind, section) = &listener.owner;
            let place = Use::Bind(kind.clone(), section.clone(), listener.text.clone());
            inventory.add(listener.server.certificates(), listener.server.trust_files(), &place);
            pause().await;
        }
        for proxy in &program.proxies {
            for server in proxy.servers() {
                let Some(tls) = &server.connecting.tls else { continue };
                let place = Use::Server((*proxy.name).into(), (*server.name).into());
                let own = tls.client.certificate().into_iter().collect();
                inventory.add(own, tls.client.trust_files(), &place);
                pause().await;
            }
        }
        inventory
    }

    fn uses(&self, listed: &Listed) -> &[Use] {
        match &listed.source {
            Source::Own(_) => self.certificates.get(&listed.name).map_or(&[], |(_, uses)| uses),
            Source::Authority(..) => self.files.get(&listed.name).map_or(&[], |(_, uses)| uses),
        }
    }
}

async fn pause() {
    if rt::slice_is_over() {
        rt::yield_now().await;
    }
}

/// `certificates`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    if !asked.shows_all() {
        return answer.refuse(403, "certificates are not shown with 'stats scope'");
    }
    let inventory = Inventory::of(&asked.generation.program).await;
    let mut listed = Vec::new();
    for (name, (certificate, _)) in &inventory.certificates {
        let source = Source::Own(Arc::clone(certificate));
        listed.extend(x509::validity(source.der()).map(|validity| Listed { validity, name: name.clone(), source }));
        pause().await;
    }
    if asked.target.parameter("authorities") != Some("0") {
        let all = inventory.files.iter().flat_map(|(name, (file, _))| {
            (0..file.content.certificates().len()).map(move |at| (name, Source::Authority(Arc::clone(file), at)))
        });
        for (name, source) in all.take(MOST_AUTHORITIES) {
            listed.extend(x509::validity(source.der()).map(|validity| Listed { validity, name: name.clone(), source }));
            pause().await;
        }
    }
    listed.sort_by_key(|one| one.validity.not_after);
    let most = asked.target.number("limit", USUAL, MOST);
    let now = rt::wall().seconds;
    answer.begin_json();
    answer.push("{\"certificates\":[");
    let mut commas = Commas::default();
    for one in listed.iter().take(most) {
        let mut text = commas.next().to_owned();
        write(one, inventory.uses(one), now, &mut text);
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push(&format!("],\"complete\":{}}}\n", listed.len() <= most));
}

/// Returns the state of a certificate.
const fn status(validity: Validity, now: i64) -> &'static str {
    if now > validity.not_after {
        "expired"
    } else if now < validity.not_before {
        "early"
    } else if validity.not_after - now < EXPIRING {
        "expiring"
    } else {
        "valid"
    }
}

fn write(one: &Listed, uses: &[Use], now: i64, out: &mut String) {
    let Validity { not_before, not_after } = one.validity;
    put(out, format_args!("{{\"name\":{}", Quoted(&one.name)));
    if let Some(details) = x509::details(one.source.der()) {
        for (name, text) in [("subject", &details.subject), ("issuer", &details.issuer), ("serial", &details.serial)] {
            put(out, format_args!(",\"{name}\":{}", Quoted(text)));
        }
    }
    match &one.source {
        Source::Own(certificate) => {
            out.push_str(",\"names\":[");
            let mut commas = Commas::default();
            for name in certificate.names.iter().take(MOST_MEMBERS) {
                put(out, format_args!("{}{}", commas.next(), Quoted(name)));
            }
            put(out, format_args!("],\"names_total\":{}", certificate.names.len()));
        }
        Source::Authority(..) => out.push_str(",\"authority\":true"),
    }
    let days = (not_after - now) as f64 / DAY as f64;
    put(
        out,
        format_args!(
            ",\"not_before\":{not_before},\"not_after\":{not_after},\"days_left\":{days:.1},\"status\":\"{}\",\"used\":[",
            status(one.validity, now)
        ),
    );
    let mut commas = Commas::default();
    for place in uses.iter().take(MOST_MEMBERS) {
        let comma = commas.next();
        match place {
            Use::Bind(kind, section, address) => put(
                out,
                format_args!(
                    "{comma}{{\"kind\":\"bind\",\"section\":{},\"proxy\":{},\"name\":{}}}",
                    Quoted(kind),
                    Quoted(section),
                    Quoted(address)
                ),
            ),
            Use::Server(backend, server) => put(
                out,
                format_args!(
                    "{comma}{{\"kind\":\"server\",\"proxy\":{},\"name\":{}}}",
                    Quoted(backend),
                    Quoted(server)
                ),
            ),
        }
    }
    put(out, format_args!("],\"used_total\":{}}}", uses.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_expires_after_its_last_second() {
        let validity = Validity { not_before: 100, not_after: 100 + 40 * DAY };
        for (now, wanted) in [
            (99, "early"),
            (100, "valid"),
            (100 + 10 * DAY, "valid"),
            (101 + 10 * DAY, "expiring"),
            (100 + 40 * DAY, "expiring"),
            (101 + 40 * DAY, "expired"),
        ] {
            assert_eq!(status(validity, now), wanted, "{now}");
        }
    }
}
