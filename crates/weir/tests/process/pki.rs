//! Certificates for tests, created by `openssl`: authorities, certificates and revocation lists.

use crate::support::{Folder, run};
use std::process::Command;

/// A CA in its own folder, which contains the database of `openssl ca`.
pub struct Authority {
    folder: Folder,
}

/// Properties of a certificate that differ from a regular one.
#[derive(Clone, Copy)]
pub struct CertificateOptions<'a> {
    /// Subject.
    pub subject: &'a str,
    /// Names, in the syntax of `subjectAltName`.
    pub names: &'a str,
    /// Key, in the syntax of `openssl req -newkey`.
    pub key: &'a str,
    /// End of validity, as `YYMMDDHHMMSSZ`.
    pub until: &'a str,
    /// Key usage.
    pub usage: &'a str,
}

impl Default for CertificateOptions<'_> {
    fn default() -> Self {
        Self {
            subject: "/CN=example.test",
            names: "DNS:example.test",
            key: "ec:P-256",
            until: "491231235959Z",
            usage: "serverAuth,clientAuth",
        }
    }
}

/// Whether `openssl` is installed; if not, this is printed.
pub fn is_there() -> bool {
    let there = Command::new("openssl").arg("version").output().is_ok();
    if !there {
        eprintln!("SKIPPED: openssl is not installed");
    }
    there
}

const SETTINGS: &str = "[req]\ndistinguished_name=dn\n[dn]\n[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\nnew_certs_dir=.\n\
    certificate=ca.pem\nprivate_key=ca.key\nserial=serial\ncrlnumber=crlnumber\ndefault_md=sha256\npolicy=any\nunique_subject=no\n\
    default_days=3650\ndefault_crl_days=3650\n[any]\ncommonName=optional\n\
    [authority]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n";

impl Authority {
    /// Creates a self-signed root CA.
    pub fn root() -> Self {
        let own = Self::blank();
        own.openssl(
            "req -new -x509 -config settings -extensions authority -days 3650 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
             -keyout ca.key -out ca.pem -subj /CN=Root",
        );
        own
    }

    fn blank() -> Self {
        let own = Self { folder: Folder::new() };
        for (name, content) in [("settings", SETTINGS), ("index.txt", ""), ("serial", "1000\n"), ("crlnumber", "01\n")]
        {
            own.folder.write(name, content);
        }
        own
    }

    /// Creates an intermediate CA; its certificate is `ca.pem` in its folder.
    pub fn intermediate(&self) -> Self {
        let own = Self::blank();
        own.openssl(
            "req -new -config settings -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout ca.key -out ca.csr -subj /CN=Intermediate",
        );
        let (request, certificate) = (own.path("ca.csr"), own.path("ca.pem"));
        self.openssl(&format!(
            "ca -batch -config settings -notext -extensions authority -in {request} -out {certificate}"
        ));
        own
    }

    /// Returns the path of a file of the CA.
    pub fn path(&self, name: &str) -> String {
        self.folder.path(name).to_str().expect("text").to_owned()
    }

    /// Returns the contents of a file of the CA.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path(name)).expect("a file")
    }

    /// Writes a file into the CA's folder.
    pub fn write(&self, name: &str, content: &str) -> String {
        self.folder.write(name, content)
    }

    /// Issues a certificate, `NAME.crt`, with its key; returns the path of a file with both.
    pub fn issue(&self, name: &str, wanted: CertificateOptions<'_>) -> String {
        let CertificateOptions { subject, names, key, until, usage } = wanted;
        let key = match key.split_once(':') {
            Some(("ec", curve)) => format!("ec -pkeyopt ec_paramgen_curve:{curve}"),
            _ => key.to_owned(),
        };
        self.openssl(&format!(
            "req -new -config settings -nodes -newkey {key} -keyout {name}.key -out {name}.csr -subj {subject}"
        ));
        self.folder.write(
            &format!("{name}.ext"),
            &format!("basicConstraints=CA:FALSE\nsubjectAltName={names}\nextendedKeyUsage={usage}\nauthorityKeyIdentifier=keyid\n"),
        );
        self.openssl(&format!(
            "ca -batch -config settings -notext -startdate 200101000000Z -enddate {until} -extfile {name}.ext -in {name}.csr -out {name}.crt"
        ));
        let both = format!("{}{}", self.read(&format!("{name}.crt")), self.read(&format!("{name}.key")));
        self.folder.write(&format!("{name}.pem"), &both)
    }

    /// Revokes a certificate and returns the path of the revocation list.
    pub fn revoke(&self, name: &str) -> String {
        self.openssl(&format!("ca -config settings -revoke {name}.crt"));
        self.openssl("ca -config settings -gencrl -out crl.pem");
        self.path("crl.pem")
    }

    fn openssl(&self, arguments: &str) {
        let done = run(Command::new("openssl").current_dir(self.folder.text()).args(arguments.split_whitespace()));
        assert_eq!(done.code(), Some(0), "openssl {arguments}: {}", done.stderr);
    }
}
