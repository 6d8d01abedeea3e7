//! Configurations with certificate files of the tests: loaded certificates, defaults, and messages.

use crate::compile::Resolver;
use crate::program::Program;
use base::moment::WallTime;
use config::spec::Family;
use expression::sample::{Probes, Transport, Value};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tls::certificate::Certificate;
use tls::ocsp::{Answer, Status};

const LEAF: &str = include_str!("../../../../tls/tests/ocsp/leaf.pem");
const LEAF_KEY: &str = include_str!("../../../tests/certificates/leaf.key");
const CA: &str = include_str!("../../../../tls/tests/ocsp/ca.pem");
const GOOD: &[u8] = include_bytes!("../../../../tls/tests/ocsp/good.der");
const REVOKED: &[u8] = include_bytes!("../../../../tls/tests/ocsp/revoked.der");
const UNKNOWN: &[u8] = include_bytes!("../../../../tls/tests/ocsp/unknown.der");
const RSA: &str = include_str!("../../../tests/certificates/site.rsa.crt");
const RSA_KEY: &str = include_str!("../../../tests/certificates/site.rsa.key");
const ECDSA: &str = include_str!("../../../tests/certificates/site.ecdsa.crt");
const ECDSA_KEY: &str = include_str!("../../../tests/certificates/site.ecdsa.key");
const SECRET: &str = include_str!("../../../tests/certificates/secret.crt");
const SECRET_KEY: &str = include_str!("../../../tests/certificates/site.key.secret");

/// The files that configurations refer to.
fn read_file(name: &str) -> io::Result<Vec<u8>> {
    let text = |parts: &[&str]| Ok(parts.concat().into_bytes());
    match name {
        "leaf.pem" | "stapled.pem" | "revoked.pem" | "unknown.pem" | "alone.pem" | "wrong.pem" | "bad.pem" => {
            text(&[LEAF, LEAF_KEY])
        }
        "full.pem" => text(&[LEAF, LEAF_KEY, CA]),
        "stapled.pem.ocsp" | "full.pem.ocsp" | "alone.pem.ocsp" | "wrong.pem.ocsp" | "/ocsp/good" => Ok(GOOD.to_vec()),
        "revoked.pem.ocsp" => Ok(REVOKED.to_vec()),
        "unknown.pem.ocsp" => Ok(UNKNOWN.to_vec()),
        "bad.pem.ocsp" => Ok(b"none".to_vec()),
        "stapled.pem.issuer" | "revoked.pem.issuer" | "unknown.pem.issuer" | "bad.pem.issuer" | "ca.pem" => text(&[CA]),
        "chains/ca.pem" | "chains/double.pem" => text(&[CA]),
        "chains/none" => text(&["none"]),
        "wrong.pem.issuer" => text(&[RSA]),
        "leaf.pem.sctl" => Ok(vec![0, 3, 0, 1, 9]),
        "rsa.pem" | "bundle.pem.rsa" | "folder/b.pem" => text(&[RSA, RSA_KEY]),
        "ecdsa.pem" | "bundle.pem.ecdsa" | "folder/a.pem" => text(&[ECDSA, ECDSA_KEY]),
        "rsa.crt" | "/base/rsa.crt" | "/base/x/rsa.crt" => text(&[RSA]),
        "ecdsa.crt" => text(&[ECDSA]),
        "rsa.key" | "rsa.crt.key" | "/keys/rsa.key" => text(&[RSA_KEY]),
        "secret.pem" => text(&[SECRET, SECRET_KEY]),
        "bundle.list" => text(&["bundle.pem\nleaf.pem\n"]),
        "wild.list" => text(&["rsa.pem *\nleaf.pem\n"]),
        "key.list" => text(&["rsa.crt [key rsa.key] x.example\n"]),
        "twice.list" => text(&["rsa.crt [key rsa.key]\nrsa.crt [key other.key]\n"]),
        "less.list" => text(&["rsa.crt [key rsa.key]\nrsa.crt\n"]),
        "off.list" => text(&["rsa.pem [ocsp-update off]\n"]),
        "alpn.list" => text(&["rsa.pem [alpn h2]\n"]),
        "store.list" => text(&["@s/x [alpn h2] x.example\n"]),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Those files, and a constant clock within the validity of the responses.
struct Files;

impl Probes for Files {
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    fn wall(&self) -> WallTime {
        let seconds = Answer::parse(GOOD).map_or(0, |answer| answer.this_update + 60);
        WallTime { seconds, nanos: 0 }
    }

    fn random(&self) -> u64 {
        0
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }
}

impl Resolver for Files {
    fn resolve(&mut self, _: &str, _: Family) -> Result<IpAddr, String> {
        Err("nothing".to_owned())
    }

    fn file_reader(&self) -> crate::compile::ReadFile {
        read_file
    }

    fn folder_reader(&self) -> crate::compile::ReadFolder {
        |name| {
            let names: &[&str] = match name {
                "folder" => &["b.pem", "a.pem", ".c", "a.pem.key"],
                "chains" => &["none", "double.pem", "ca.pem"],
                _ => return None,
            };
            Some(names.iter().map(|name| (*name).to_owned()).collect())
        }
    }

    fn file_names(&self) -> Vec<String> {
        vec!["x".to_owned()]
    }

    fn probes(&self) -> &dyn Probes {
        &Files
    }

    fn passphrase(&mut self, command: &[String]) -> Result<Vec<u8>, String> {
        match command.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["ask", "secret.pem", "please"] => Ok(b"secret\n".to_vec()),
            ["guess", _] => Ok(b"wrong".to_vec()),
            _ => Err("no such program".to_owned()),
        }
    }
}

/// Compiles a configuration whose frontend listens with the keywords `bind`; returns the program and the messages.
pub(in crate::compile) fn compile(before: &str, bind: &str) -> (Option<Program>, Vec<String>) {
    let times = "defaults\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";
    compile_text(&format!("{before}\n{times}frontend f\n bind :1 ssl {bind}\n"))
}

pub(in crate::compile) fn compile_text(text: &str) -> (Option<Program>, Vec<String>) {
    let file = config::InputFile { name: "x".into(), bytes: text.as_bytes().into() };
    let loaded = config::load(&[file], config::environment::Environment::new(), &config::LoadOptions::default());
    let mut found = loaded.diagnostics.clone();
    if found.iter().any(config::diagnostic::Diagnostic::is_alert) {
        return (None, found.into_iter().map(|found| found.message).collect());
    }
    let program = crate::compile(&loaded.spec, &mut Files, &crate::SystemLimits::default(), &mut found);
    (program, found.into_iter().map(|found| found.message).collect())
}

/// The certificates of the first frontend's first line.
fn certificates(program: &Program) -> Vec<Arc<Certificate>> {
    let frontend = program.proxies.iter().find_map(|proxy| proxy.frontend.as_ref()).expect("a frontend");
    frontend.binds[0].tls.as_ref().expect("TLS").certificates()
}

/// The certificates of a configuration without messages.
fn loaded(before: &str, bind: &str) -> Vec<Arc<Certificate>> {
    let (program, said) = compile(before, bind);
    assert_eq!(said, [""; 0], "{before} {bind}");
    certificates(&program.expect("no alert"))
}

fn names(before: &str, bind: &str) -> Vec<String> {
    loaded(before, bind).iter().map(|one| one.name.to_string()).collect()
}

#[test]
fn stores_have_names() {
    let rows = [
        ("crt-store\n load crt rsa.pem alias a", "crt @/a", "@/a"),
        ("crt-store\n load crt rsa.crt key rsa.key", "crt rsa.crt", "rsa.crt"),
        ("crt-store s\n load crt rsa.crt key rsa.key alias a", "crt @s/a", "@s/a"),
        ("crt-store s\n load crt rsa.pem\ncrt-store s\n load crt leaf.pem", "crt @s/rsa.pem", "@s/rsa.pem"),
        ("crt-store s\n load crt /base/rsa.crt key /keys/rsa.key", "crt @s/base/rsa.crt", "@s/base/rsa.crt"),
        (
            "crt-store\n crt-base /base\n key-base /keys\n load crt rsa.crt key rsa.key",
            "crt /base/rsa.crt",
            "/base/rsa.crt",
        ),
        (
            "global\n crt-base /base\n key-base /keys\ncrt-store\n load crt rsa.crt key rsa.key",
            "crt rsa.crt",
            "/base/rsa.crt",
        ),
        (
            "global\n crt-base /none\ncrt-store s\n crt-base /base/x/\n load crt rsa.crt key rsa.key",
            "crt @s/rsa.crt",
            "@s/rsa.crt",
        ),
        ("crt-store s\n load crt rsa.pem alias x", "crt-list store.list", "@s/x"),
    ];
    for (before, bind, name) in rows {
        assert_eq!(names(before, bind), [name], "{before}");
    }
}

/// CA files and revocation lists are read wherever they are referred to, used or not.
#[test]
fn trust_files_that_are_not_there_are_reported() {
    let missing = |keyword: &str| format!("'{keyword}' : unable to load none (entity not found)");
    let frontend = |line: &str| format!("frontend f\n bind :1 {line}\n");
    let server = |line: &str| format!("backend b\n server s 127.0.0.1:1 {line}\n");
    let rows = [
        (frontend("ssl crt rsa.pem crl-file none"), Some(missing("crl-file"))),
        (frontend("ssl crt rsa.pem verify required ca-verify-file ca.pem crl-file none"), Some(missing("crl-file"))),
        (frontend("ssl crt rsa.pem ca-file none"), Some(missing("ca-file"))),
        (frontend("ssl crt rsa.pem ca-verify-file none"), Some(missing("ca-verify-file"))),
        (frontend("ca-file none"), Some(missing("ca-file"))),
        (server("ssl verify none crl-file none"), Some(missing("crl-file"))),
        (server("crl-file none"), Some(missing("crl-file"))),
        (frontend("ssl crt rsa.pem verify required ca-verify-file ca.pem"), None),
    ];
    let times = "defaults\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";
    for (text, expected) in rows {
        let (program, said) = compile_text(&format!("{times}{text}"));
        let found = said.iter().any(|line| expected.as_ref().is_some_and(|expected| line.ends_with(expected)));
        assert_eq!(found, expected.is_some(), "{text} {said:?}");
        assert_eq!(program.is_none(), expected.is_some(), "{text} {said:?}");
    }
}

#[test]
fn what_is_wrong_with_a_store_is_said() {
    let rows = [
        (
            "crt-store s\n load crt rsa.pem alias a",
            "crt @s/rsa.pem",
            "'bind :1' in section 'frontend' : unable to stat SSL certificate from file '@s/rsa.pem' : ",
        ),
        (
            "crt-store\n load crt rsa.pem\n load crt rsa.pem",
            "crt rsa.pem",
            "parsing [x:3] : 'load' in section 'crt-store': store 'rsa.pem' was already defined.",
        ),
        (
            "crt-store\n load crt none.pem",
            "crt rsa.pem",
            "cannot open the file 'none.pem'.\n'none.pem' cannot be read or parsed.",
        ),
        ("crt-store\n load crt rsa.crt key none.key", "crt rsa.pem", " 'none.key' cannot be read or parsed."),
        (
            "crt-store\n load crt rsa.crt",
            "crt rsa.crt",
            "'bind :1' in section 'frontend' : unable to load SSL private key into SSL Context 'rsa.crt': passed a null parameter.",
        ),
        (
            "crt-store\n load crt ecdsa.crt key rsa.key",
            "crt ecdsa.crt",
            "'bind :1' in section 'frontend' : inconsistencies between private key and certificate loaded 'ecdsa.crt'.",
        ),
        ("crt-store\n load crt leaf.pem issuer rsa.crt", "crt leaf.pem", " 'rsa.crt' is not an issuer'."),
        (
            "crt-store\n load crt leaf.pem ocsp none",
            "crt leaf.pem",
            "Error opening OCSP response file 'none' cannot be read or parsed.",
        ),
        ("crt-store\n load crt leaf.pem sctl ca.pem", "crt leaf.pem", " 'ca.pem' cannot be read or parsed."),
        (
            "crt-store\n load crt none.pem acme LE keytype RSA",
            "crt none.pem",
            "keyword 'keytype', 'bits' and 'curves' require 'generate-dummy' set to 'on'\n 'none.pem' cannot be read or parsed.",
        ),
        (
            "crt-store\n load crt none.pem generate-dummy on keytype DSA",
            "crt none.pem",
            "keyword 'keytype' requires either 'RSA' or 'ECDSA'. 'none.pem' cannot be read or parsed.",
        ),
        (
            "crt-store\n load crt none.pem generate-dummy on keytype ECDSA curves P-1",
            "crt none.pem",
            "unsupported curves 'P-1'. 'none.pem' cannot be read or parsed.",
        ),
        (
            "crt-store\n load crt none.pem generate-dummy on bits 512",
            "crt none.pem",
            "'bits 512': RSA keys are made with",
        ),
        ("crt-store\n load crt none.pem generate-dummy off", "crt none.pem", "cannot open the file 'none.pem'."),
        (
            "crt-store\n load crt none.pem acme LE domains a.example",
            "crt none.pem",
            "acme 'LE' was used on a crt line [x:2], but no 'LE' section exists!",
        ),
        (
            "global\n expose-experimental-directives\nacme LE\n directory http://a/\n map virt@none\n\
             crt-store\n load crt none.pem acme LE domains a.example",
            "crt none.pem",
            "acme section 'LE' line [x:3] has the map 'virt@none' configured, but this map doesn't exist",
        ),
    ];
    for (before, bind, message) in rows {
        let (program, said) = compile(before, bind);
        assert!(program.is_none() && said.iter().any(|said| said.starts_with(message)), "{before}\n{said:?}");
    }
}

#[test]
fn a_definition_is_written_before_its_use() {
    let late = "frontend f\n bind :1 ssl crt rsa.pem\ncrt-store\n load crt rsa.pem\n";
    let (program, said) = compile_text(late);
    assert!(
        program.is_none() && said.iter().any(|said| said.ends_with("store 'rsa.pem' was already defined.")),
        "{said:?}"
    );
    let (_, said) = compile_text("frontend f\n bind :1 ssl crt @s/a\ncrt-store s\n load crt rsa.pem alias a\n");
    let alerts: Vec<_> = said.iter().filter(|said| said.contains("@s/a")).collect();
    assert!(alerts.len() == 1 && alerts[0].contains("unable to stat"), "{said:?}");
}

#[test]
fn one_certificate_has_one_definition() {
    let is_defined = "is already defined with incompatible parameters:\n";
    let other = "- different parameter 'key' : previously 'rsa.key' vs ";
    let without = "Can't use the certificate previously defined with keywords without these keywords:\n";
    let rows = [
        (
            "",
            "crt-list twice.list",
            format!(
                "'bind :1' in section 'frontend' : \n'crt-list' : 'rsa.crt' in crt-list 'twice.list' line 2, {is_defined}{other}'other.key'"
            ),
        ),
        (
            "",
            "crt-list less.list",
            format!(
                "'bind :1' in section 'frontend' : \n'crt-list' : 'rsa.crt' in crt-list 'less.list' line 2, {is_defined}{without}{other}'(null)'"
            ),
        ),
        (
            "",
            "crt-list key.list crt rsa.crt",
            format!("'bind :1' in section 'frontend' : \nCan't load 'rsa.crt', {is_defined}{without}{other}'(null)'"),
        ),
        (
            "",
            "crt rsa.pem\n ssl-f-use crt rsa.crt key rsa.key\n ssl-f-use crt rsa.crt key other.key",
            format!("'rsa.crt' in crt-list 'x' line 9, {is_defined}{other}'other.key'"),
        ),
    ];
    for (before, bind, message) in rows {
        let (program, said) = compile(before, bind);
        assert!(program.is_none() && said.contains(&message), "{bind}\n{said:?}\n{message}");
    }
    assert_eq!(names("crt-store\n load crt rsa.crt key rsa.key", "crt rsa.crt crt-list key.list"), ["rsa.crt"; 2]);
}

#[test]
fn certificates_without_a_file_are_made() {
    for (options, algorithm) in [
        ("generate-dummy on", "RSA2048"),
        ("generate-dummy on keytype RSA bits 3072", "RSA3072"),
        ("generate-dummy on keytype ECDSA", "EC384"),
        ("generate-dummy on keytype ECDSA curves P-256", "EC256"),
    ] {
        let all = loaded(&format!("crt-store\n load crt none.pem {options}"), "crt none.pem");
        assert_eq!(tls::x509::details(all[0].der()).unwrap().algorithm, algorithm, "{options}");
    }
    // An existing file takes precedence.
    let all = loaded("crt-store\n load crt rsa.pem generate-dummy on", "crt rsa.pem");
    assert_eq!(all[0].der(), loaded("", "crt rsa.pem")[0].der());
}

#[test]
fn certificates_are_obtained_for_what_their_lines_say() {
    let section =
        "global\n expose-experimental-directives\nacme A\n directory http://a/\nacme B\n directory http://b/\n";
    let stores = "crt-store\n load crt none.pem acme B domains A.example,*.b.example ips 192.0.2.1,::1 jwt on\n \
                  load crt other.pem acme A alias x";
    let (program, said) =
        compile(&format!("{section}{stores}"), "crt none.pem\n ssl-f-use crt rsa.pem acme A domains r.example");
    let notice = |name: &str| {
        format!(
            "No certificate available for '{name}', generating a temporary key pair before getting the ACME certificate"
        )
    };
    assert_eq!(said, [notice("none.pem"), notice("other.pem")]);
    let program = program.unwrap();
    let asked = program.acme.certificates.iter().map(|one| {
        let section = &program.acme.sections[one.section].name;
        format!("{} {section} {} {}", one.name, one.domains.join(","), one.ips.len())
    });
    assert_eq!(asked.collect::<Vec<_>>(), ["none.pem B a.example,*.b.example 2", "@/x A  0", "rsa.pem A r.example 0"]);
    // A temporary certificate, which has expired.
    let temporary = &certificates(&program)[0];
    assert!(tls::x509::validity(temporary.der()).unwrap().not_after < 1_000_000_000);
    assert!(temporary.usage.jwt && program.keys.tokens().allows(b"none.pem"));
    assert_eq!(program.tls.stored.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["@/x", "none.pem"]);
}

#[test]
fn tokens_are_verified_by_certificates_that_are_allowed() {
    let lines = "crt rsa.pem\n ssl-f-use crt ecdsa.pem jwt on\n http-request set-header a \
                 %[str(a),jwt_verify_cert(RS256,full.pem)] if { str(a),jwt_decrypt_cert(@/x) -m found }";
    let stores = "crt-store\n load crt rsa.crt key rsa.key jwt on alias x\n load crt ca.pem jwt on";
    let (program, said) = compile(&format!("defaults d\n mode http\n{stores}"), lines);
    let program = program.unwrap_or_else(|| panic!("{said:?}"));
    let told = ["@/x", "ecdsa.pem", "full.pem", "ca.pem", "rsa.pem", "none.pem"].map(|name| {
        let found = program.keys.tokens().find(name.as_bytes());
        found.map(|_| ()).err()
    });
    use expression::key::Unusable::{Unavailable, Unknown};
    assert_eq!(told, [None, None, None, None, Some(Unavailable), Some(Unknown)]);
}

#[test]
fn updates_of_answers_need_the_issuer() {
    let warning = |name: &str| {
        let why = "has an OCSP auto-update set to 'on' but an error occurred (maybe the OCSP URI or the issuer could not be found)'.";
        vec![format!("'bind :1' in section 'frontend' :  '{name}' {why}")]
    };
    let quiet = Vec::<String>::new;
    let mode = "global\n ocsp-update.mode on\n ssl-load-extra-files issuer";
    let rows = [
        (mode.to_owned(), "crt stapled.pem", quiet()),
        (mode.to_owned(), "crt leaf.pem", warning("leaf.pem")),
        (format!("{mode}\n ocsp-update.disable on"), "crt leaf.pem", quiet()),
        // The certificate contains no responder.
        (mode.to_owned(), "crt rsa.pem", quiet()),
        ("global\n ssl-load-extra-files issuer".to_owned(), "crt leaf.pem", quiet()),
    ];
    for (before, bind, expected) in rows {
        let (program, said) = compile(&before, bind);
        assert!(program.is_some() && said == expected, "{before} {bind}: {said:?}");
    }
    let (program, said) = compile(mode, "crt rsa.pem crt-list off.list");
    let different = "- different parameter 'ocsp-update' : previously 'default' (ocsp-update.mode on) vs 'off'";
    assert!(program.is_none() && said[0].ends_with(different), "{said:?}");
    let (_, said) = compile("global\n ocsp-update.httpproxy localhost", "crt rsa.pem");
    assert!(said.iter().any(|said| said.contains("ocsp-update")), "{said:?}");
}

#[test]
fn answers_are_stapled_where_they_hold() {
    let stapled = |before: &str, bind: &str| {
        let (program, said) = compile(before, bind);
        let all = certificates(&program.expect("no alert"));
        (all[0].ocsp().map(|answer| answer.status), said)
    };
    let quiet = || Vec::<String>::new();
    let ignored = |why: &str| vec![format!("Loading: {why}. Content will be ignored.")];
    let no_issuer = |head: &str, name: &str| {
        vec![format!(
            "{head} '{name}.ocsp' is present and activates OCSP but it is impossible to compute the OCSP certificate ID (maybe \
             the issuer could not be found)'."
        )]
    };
    let rows = [
        ("", "crt stapled.pem", Some(Status::Good), quiet()),
        ("", "crt full.pem", Some(Status::Good), quiet()),
        ("", "crt revoked.pem", Some(Status::Revoked), quiet()),
        ("", "crt unknown.pem", None, ignored("OCSP single response: certificate status is unknown")),
        ("", "crt bad.pem", None, ignored("Unable to parse OCSP response")),
        ("", "crt alone.pem", None, no_issuer("'bind :1' in section 'frontend' : ", "alone.pem")),
        ("global\n ssl-load-extra-files key", "crt stapled.pem", None, quiet()),
        (
            "global\n ssl-load-extra-files ocsp",
            "crt stapled.pem",
            None,
            no_issuer("'bind :1' in section 'frontend' : ", "stapled.pem"),
        ),
        ("crt-store\n load crt leaf.pem ocsp /ocsp/good issuer ca.pem", "crt leaf.pem", Some(Status::Good), quiet()),
        ("crt-store\n load crt stapled.pem", "crt stapled.pem", None, quiet()),
    ];
    for (before, bind, status, said) in rows {
        assert_eq!(stapled(before, bind), (status, said), "{before} {bind}");
    }
    let (program, said) = compile("", "crt wrong.pem");
    assert!(program.is_none() && said[0].ends_with(" 'wrong.pem.issuer' is not an issuer'."), "{said:?}");
}

#[test]
fn chains_are_completed_and_cut() {
    let path = "global\n issuers-chain-path chains";
    let (program, said) = compile(path, "crt stapled.pem");
    assert_eq!(
        said,
        [
            "duplicate issuers-chain chains/double.pem: chains/ca.pem already in store",
            "unable to load issuers-chain chains/none : pem certificate not found.",
        ]
    );
    let all = certificates(&program.unwrap());
    assert_eq!((all[0].files.chain.as_deref(), all[0].chain().count()), (Some("chains/ca.pem"), 1));
    assert!(all[0].ocsp().is_some());
    let (program, said) = compile("global\n issuers-chain-path none", "crt leaf.pem");
    assert!(program.is_none() && said[0].starts_with("global statement 'issuers-chain-path' expects"), "{said:?}");
    // Omitted certificates of the chain still identify the issuer.
    let all = loaded("global\n ssl-skip-self-issued-ca", "crt full.pem");
    assert!(all[0].ocsp().is_some() && all[0].shown_chain().count() == 0);
    assert_eq!(loaded("", "crt full.pem")[0].shown_chain().count(), 1);
}

#[test]
fn files_are_found_beside_a_certificate() {
    let key = |before: &str, bind: &str| loaded(before, bind)[0].files.key.clone();
    assert_eq!(key("", "crt rsa.crt").as_deref(), Some("rsa.crt.key"));
    assert_eq!(key("global\n ssl-load-extra-del-ext", "crt rsa.crt").as_deref(), Some("rsa.key"));
    assert_eq!(names("", "crt bundle.pem"), ["bundle.pem.ecdsa", "bundle.pem.rsa"]);
    assert_eq!(names("", "crt folder"), ["folder/a.pem", "folder/b.pem"]);
    let rows = [
        ("global\n ssl-load-extra-files none", "crt rsa.crt", "No Private Key found in 'rsa.crt'."),
        (
            "global\n ssl-load-extra-files ocsp key",
            "crt bundle.pem",
            "unable to stat SSL certificate from file 'bundle.pem' : entity not found.",
        ),
    ];
    for (before, bind, message) in rows {
        let (program, said) = compile(before, bind);
        assert!(program.is_none() && said[0].ends_with(message), "{said:?}");
    }
    let (program, said) = compile("", "crt leaf.pem");
    assert!(program.is_some() && said.len() == 1 && said[0].starts_with("Weir checks lists of signed"), "{said:?}");
}

#[test]
fn keys_are_opened_by_what_a_program_prints() {
    let asked = "global\n ssl-passphrase-cmd ask please";
    assert_eq!(names(asked, "crt secret.pem"), ["secret.pem"]);
    let rows = [
        (
            "",
            "unable to load private key from file 'secret.pem': Trying to load a passphrase-protected private key without an 'ssl-passphrase-cmd' defined.",
        ),
        ("global\n ssl-passphrase-cmd guess", "unable to load private key from file 'secret.pem': "),
        ("global\n ssl-passphrase-cmd none", "unable to load private key from file 'secret.pem': no such program."),
    ];
    for (before, message) in rows {
        let (program, said) = compile(before, "crt secret.pem");
        assert!(program.is_none() && said[0].contains(message), "{said:?}");
    }
}

/// The indices of default certificates.
fn defaults(bind: &str) -> Vec<usize> {
    let (program, _) = compile("", bind);
    let program = program.unwrap_or_else(|| panic!("{bind}"));
    let frontend = program.proxies[0].frontend.as_ref().unwrap();
    let entries = frontend.binds[0].tls.as_ref().unwrap().rows();
    let is_default = |row: &tls::names::Row| row.is_default || row.names.iter().any(|name| &**name == "*");
    entries.iter().enumerate().filter(|(_, row)| is_default(row)).map(|(place, _)| place).collect()
}

#[test]
fn the_first_certificate_is_a_default() {
    let rows: &[(&str, &[usize])] = &[
        ("crt rsa.pem crt full.pem", &[0]),
        ("crt rsa.pem default-crt ecdsa.pem", &[0, 1]),
        ("default-crt rsa.pem default-crt ecdsa.pem crt full.pem", &[0, 1]),
        ("crt full.pem default-crt rsa.pem default-crt ecdsa.pem", &[0, 1, 2]),
        ("crt bundle.pem crt full.pem", &[0, 1]),
        ("crt full.pem crt bundle.pem", &[0]),
        ("crt folder", &[0]),
        ("crt-list bundle.list", &[0]),
        ("crt-list wild.list", &[0]),
        ("crt full.pem crt-list wild.list", &[0, 1]),
        ("\n ssl-f-use crt rsa.pem\n ssl-f-use crt full.pem", &[0]),
        ("crt rsa.pem\n ssl-f-use crt full.pem", &[0]),
    ];
    for (bind, expected) in rows {
        assert_eq!(defaults(bind), *expected, "{bind}");
    }
}

#[test]
fn an_authority_signs_what_is_generated() {
    let rows = [
        ("", "crt rsa.pem generate-certificates ca-sign-file rsa.pem", ""),
        ("", "crt rsa.pem generate-certificates ca-sign-file secret.pem ca-sign-pass secret", ""),
        ("", "crt rsa.pem ca-sign-file none", ""),
        (
            "",
            "crt rsa.pem generate-certificates",
            "Proxy 'f': cannot enable certificate generation, no CA certificate File configured at [x:7].",
        ),
        (
            "",
            "crt rsa.pem generate-certificates ca-sign-file none",
            "Proxy 'f': Failed to read CA certificate file 'none' at [x:7]. Chain loading failed: cannot open the file 'none'.",
        ),
        (
            "",
            "crt rsa.pem generate-certificates ca-sign-file ca.pem",
            "Proxy 'f': Failed to read CA certificate file 'ca.pem' at [x:7]. Chain loading failed: No Private Key found in 'ca.pem.key'.",
        ),
        (
            "",
            "crt rsa.pem generate-certificates ca-sign-file rsa.key",
            "Proxy 'f': Failed to read CA certificate file 'rsa.key' at [x:7]. Chain loading failed: unable to load certificate from file 'rsa.key': no start line.",
        ),
        (
            "",
            "crt rsa.pem generate-certificates ca-sign-file secret.pem",
            "Proxy 'f': Failed to read CA certificate file 'secret.pem' at [x:7]. Chain loading failed: unable to load private key from file 'secret.pem': it is encrypted, and there is no 'ca-sign-pass'.",
        ),
        (
            "",
            "strict-sni generate-certificates ca-sign-file rsa.pem",
            "Proxy 'f': no SSL certificate specified for bind ':1' at [x:7] (use 'crt').",
        ),
    ];
    for (before, bind, message) in rows {
        let (program, said) = compile(before, bind);
        assert_eq!(said, if message.is_empty() { vec![] } else { vec![message] }, "{bind}");
        assert_eq!(program.is_some(), message.is_empty(), "{bind}");
    }
}
