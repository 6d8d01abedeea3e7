//! Prints an OCSP response in the format of `openssl ocsp -text`. Must never judge one.

use base::hex::encode_upper;
use std::fmt::Write as _;

use x509_parser::asn1_rs::{Class, Oid};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use super::{OcspError, Parts, sequence, time};
use crate::distinguished_name::spaced;
use crate::x509::long_moment;

/// Formats a name as OpenSSL does: `C = FR, O = Example`.
fn name(der: &[u8]) -> Result<String, OcspError> {
    let (_, name) = X509Name::from_der(der).map_err(|_| OcspError::Unreadable)?;
    Ok(spaced(&name))
}

/// Returns the name of an algorithm by its OID, given without its tag.
fn algorithm(number: &[u8]) -> String {
    let number = Oid::new(number.into()).to_id_string();
    let known = match number.as_str() {
        "1.2.840.113549.1.1.5" => "sha1WithRSAEncryption",
        "1.2.840.113549.1.1.11" => "sha256WithRSAEncryption",
        "1.2.840.113549.1.1.12" => "sha384WithRSAEncryption",
        "1.2.840.113549.1.1.13" => "sha512WithRSAEncryption",
        "1.2.840.10045.4.3.2" => "ecdsa-with-SHA256",
        "1.2.840.10045.4.3.3" => "ecdsa-with-SHA384",
        "1.2.840.10045.4.3.4" => "ecdsa-with-SHA512",
        "1.3.101.112" => "ED25519",
        _ => return number,
    };
    known.to_owned()
}

/// Describes a response, except for its extensions and certificates. `None`: it cannot be parsed.
pub fn describe(der: &[u8]) -> Option<String> {
    text(der).ok()
}

fn text(der: &[u8]) -> Result<String, OcspError> {
    let (mut answer, _) = sequence(der)?;
    answer.next(Class::Universal, 10)?;
    let (mut bytes, _) = sequence(answer.next(Class::ContextSpecific, 0)?)?;
    bytes.next(Class::Universal, 6)?;
    let (mut basic, _) = sequence(bytes.next(Class::Universal, 4)?)?;
    let mut data = Parts(basic.next(Class::Universal, 16)?);
    data.skip(Class::ContextSpecific, 0)?;
    let responder = match data.next(Class::ContextSpecific, 1) {
        Ok(content) => name(content)?,
        Err(_) => encode_upper(Parts(data.next(Class::ContextSpecific, 2)?).next(Class::Universal, 4)?),
    };
    let produced = time(data.0)?;
    data.next(Class::Universal, 24)?;
    let mut out = format!(
        "OCSP Response Data:\n    OCSP Response Status: successful (0x0)\n    Response Type: Basic OCSP Response\n    \
         Version: 1 (0x0)\n    Responder Id: {responder}\n    Produced At: {}\n    Responses:\n",
        long_moment(produced)
    );
    let mut all = Parts(data.next(Class::Universal, 16)?);
    while !all.0.is_empty() {
        let before = all.0;
        all.next(Class::Universal, 16)?;
        single(&before[..before.len() - all.0.len()], &mut out)?;
    }
    if let Some(nonce) = nonce(&data) {
        let _ = write!(out, "    Response Extensions:\n        OCSP Nonce: \n            {}\n", encode_upper(nonce));
    }
    let (mut signed_by, _) = (Parts(basic.next(Class::Universal, 16)?), ());
    let _ = writeln!(out, "    Signature Algorithm: {}", algorithm(signed_by.next(Class::Universal, 6)?));
    out.push_str("    Signature Value:");
    for line in basic.next(Class::Universal, 3)?.get(1..).unwrap_or_default().chunks(18) {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = write!(out, "\n        {}:", bytes.join(":"));
    }
    out.truncate(out.trim_end_matches(':').len());
    out.push('\n');
    Ok(out)
}

/// id-pkix-ocsp-nonce, without its tag and length.
const NONCE: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 2];

/// Returns the value of the nonce in the extensions at the end of a response's data (RFC 8954), in DER.
fn nonce<'a>(data: &Parts<'a>) -> Option<&'a [u8]> {
    let (mut extensions, _) = sequence(Parts(data.0).next(Class::ContextSpecific, 1).ok()?).ok()?;
    while !extensions.0.is_empty() {
        let mut extension = Parts(extensions.next(Class::Universal, 16).ok()?);
        let number = extension.next(Class::Universal, 6).ok()?;
        // The `critical` flag.
        extension.skip(Class::Universal, 1).ok()?;
        let value = extension.next(Class::Universal, 4).ok()?;
        if number == NONCE {
            return Some(value);
        }
    }
    None
}

fn single(der: &[u8], out: &mut String) -> Result<(), OcspError> {
    let (mut single, _) = sequence(der)?;
    let mut id = Parts(single.next(Class::Universal, 16)?);
    let (mut hash, _) = (Parts(id.next(Class::Universal, 16)?), ());
    let hash = match Oid::new(hash.next(Class::Universal, 6)?.into()).to_id_string().as_str() {
        "1.3.14.3.2.26" => "sha1".to_owned(),
        "2.16.840.1.101.3.4.2.1" => "sha256".to_owned(),
        other => other.to_owned(),
    };
    let (issuer, key) = (encode_upper(id.next(Class::Universal, 4)?), encode_upper(id.next(Class::Universal, 4)?));
    let serial = id.next(Class::Universal, 2)?;
    let serial = encode_upper(serial.strip_prefix(&[0]).filter(|rest| !rest.is_empty()).unwrap_or(serial));
    let _ = writeln!(
        out,
        "    Certificate ID:\n      Hash Algorithm: {hash}\n      Issuer Name Hash: {issuer}\n      Issuer Key Hash: \
         {key}\n      Serial Number: {serial}"
    );
    let status = single.any()?;
    match status.tag().0 {
        0 => out.push_str("    Cert Status: good\n"),
        1 => {
            let _ = writeln!(out, "    Cert Status: revoked\n    Revocation Time: {}", long_moment(time(status.data)?));
        }
        _ => out.push_str("    Cert Status: unknown\n"),
    }
    let _ = writeln!(out, "    This Update: {}", long_moment(time(single.0)?));
    single.next(Class::Universal, 24)?;
    if let Ok(next) = single.next(Class::ContextSpecific, 0) {
        let _ = writeln!(out, "    Next Update: {}", long_moment(time(next)?));
    }
    // An empty line would end a response of the runtime API.
    out.push_str(" \n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Parts, describe, nonce};

    /// The output of `openssl ocsp -respin good.der -text -noverify`, up to the signature.
    #[test]
    fn a_nonce_is_shown() {
        let extensions =
            b"\xa1\x15\x30\x13\x30\x11\x06\x09\x2b\x06\x01\x05\x05\x07\x30\x01\x02\x04\x04\x04\x02\xab\xcd";
        assert_eq!(nonce(&Parts(extensions)), Some(&b"\x04\x02\xab\xcd"[..]));
        for length in 0..extensions.len() {
            assert_eq!(nonce(&Parts(&extensions[..length])), None, "{length}");
        }
    }

    #[test]
    fn answers_are_described_as_openssl_does() {
        let text = describe(include_bytes!("../../tests/ocsp/good.der")).unwrap();
        let begin =
            "OCSP Response Data:\n    OCSP Response Status: successful (0x0)\n    Response Type: Basic OCSP Response\n";
        assert!(text.starts_with(begin), "{text}");
        for line in
            ["\n    Cert Status: good\n", "\n      Hash Algorithm: sha1\n", "\n    Next Update: ", "    Responder Id: "]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
        let revoked = describe(include_bytes!("../../tests/ocsp/revoked.der")).unwrap();
        assert!(revoked.contains("\n    Cert Status: revoked\n    Revocation Time: "), "{revoked}");
        assert_eq!(describe(b"x"), None);
    }
}
