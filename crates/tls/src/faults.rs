//! Verification errors of client certificates, by OpenSSL's codes and names, and which of them are ignored
//! (`crt-ignore-err`, `ca-ignore-err`). Must never verify a certificate itself.

use std::sync::Arc;

use rustls::{CertificateError, Error, OtherError};

/// Error codes and their names (`X509_STORE_CTX_get_error(3)`), by code.
#[rustfmt::skip]
const NAMES: &[(u8, &str)] = &[
    (0, "X509_V_OK"), (1, "X509_V_ERR_UNSPECIFIED"), (2, "X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT"),
    (3, "X509_V_ERR_UNABLE_TO_GET_CRL"), (4, "X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE"),
    (5, "X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE"), (6, "X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY"),
    (7, "X509_V_ERR_CERT_SIGNATURE_FAILURE"), (8, "X509_V_ERR_CRL_SIGNATURE_FAILURE"), (9, "X509_V_ERR_CERT_NOT_YET_VALID"),
    (10, "X509_V_ERR_CERT_HAS_EXPIRED"), (11, "X509_V_ERR_CRL_NOT_YET_VALID"), (12, "X509_V_ERR_CRL_HAS_EXPIRED"),
    (13, "X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD"), (14, "X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD"),
    (15, "X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD"), (16, "X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD"),
    (17, "X509_V_ERR_OUT_OF_MEM"), (18, "X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT"), (19, "X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN"),
    (20, "X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY"), (21, "X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
    (22, "X509_V_ERR_CERT_CHAIN_TOO_LONG"), (23, "X509_V_ERR_CERT_REVOKED"), (24, "X509_V_ERR_NO_ISSUER_PUBLIC_KEY"),
    (25, "X509_V_ERR_PATH_LENGTH_EXCEEDED"), (26, "X509_V_ERR_INVALID_PURPOSE"), (27, "X509_V_ERR_CERT_UNTRUSTED"),
    (28, "X509_V_ERR_CERT_REJECTED"), (29, "X509_V_ERR_SUBJECT_ISSUER_MISMATCH"), (30, "X509_V_ERR_AKID_SKID_MISMATCH"),
    (31, "X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH"), (32, "X509_V_ERR_KEYUSAGE_NO_CERTSIGN"),
    (33, "X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER"), (34, "X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION"),
    (35, "X509_V_ERR_KEYUSAGE_NO_CRL_SIGN"), (36, "X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION"),
    (37, "X509_V_ERR_INVALID_NON_CA"), (38, "X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED"),
    (39, "X509_V_ERR_KEYUSAGE_NO_DIGITAL_SIGNATURE"), (40, "X509_V_ERR_PROXY_CERTIFICATES_NOT_ALLOWED"),
    (41, "X509_V_ERR_INVALID_EXTENSION"), (42, "X509_V_ERR_INVALID_POLICY_EXTENSION"), (43, "X509_V_ERR_NO_EXPLICIT_POLICY"),
    (44, "X509_V_ERR_DIFFERENT_CRL_SCOPE"), (45, "X509_V_ERR_UNSUPPORTED_EXTENSION_FEATURE"),
    (46, "X509_V_ERR_UNNESTED_RESOURCE"), (47, "X509_V_ERR_PERMITTED_VIOLATION"), (48, "X509_V_ERR_EXCLUDED_VIOLATION"),
    (49, "X509_V_ERR_SUBTREE_MINMAX"), (50, "X509_V_ERR_APPLICATION_VERIFICATION"),
    (51, "X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE"), (52, "X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX"),
    (53, "X509_V_ERR_UNSUPPORTED_NAME_SYNTAX"), (54, "X509_V_ERR_CRL_PATH_VALIDATION_ERROR"), (55, "X509_V_ERR_PATH_LOOP"),
    (56, "X509_V_ERR_SUITE_B_INVALID_VERSION"), (57, "X509_V_ERR_SUITE_B_INVALID_ALGORITHM"),
    (58, "X509_V_ERR_SUITE_B_INVALID_CURVE"), (59, "X509_V_ERR_SUITE_B_INVALID_SIGNATURE_ALGORITHM"),
    (60, "X509_V_ERR_SUITE_B_LOS_NOT_ALLOWED"), (61, "X509_V_ERR_SUITE_B_CANNOT_SIGN_P_384_WITH_P_256"),
    (62, "X509_V_ERR_HOSTNAME_MISMATCH"), (63, "X509_V_ERR_EMAIL_MISMATCH"), (64, "X509_V_ERR_IP_ADDRESS_MISMATCH"),
    (65, "X509_V_ERR_DANE_NO_MATCH"), (66, "X509_V_ERR_EE_KEY_TOO_SMALL"), (67, "X509_V_ERR_CA_KEY_TOO_SMALL"),
    (68, "X509_V_ERR_CA_MD_TOO_WEAK"), (69, "X509_V_ERR_INVALID_CALL"), (70, "X509_V_ERR_STORE_LOOKUP"),
    (71, "X509_V_ERR_NO_VALID_SCTS"), (72, "X509_V_ERR_PROXY_SUBJECT_NAME_VIOLATION"),
    (76, "X509_V_ERR_UNSUPPORTED_SIGNATURE_ALGORITHM"), (77, "X509_V_ERR_SIGNATURE_ALGORITHM_MISMATCH"),
    (78, "X509_V_ERR_SIGNATURE_ALGORITHM_INCONSISTENCY"), (79, "X509_V_ERR_INVALID_CA"),
    (80, "X509_V_ERR_PATHLEN_INVALID_FOR_NON_CA"), (81, "X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN"),
    (82, "X509_V_ERR_KU_KEY_CERT_SIGN_INVALID_FOR_NON_CA"), (83, "X509_V_ERR_ISSUER_NAME_EMPTY"),
    (84, "X509_V_ERR_SUBJECT_NAME_EMPTY"), (85, "X509_V_ERR_MISSING_AUTHORITY_KEY_IDENTIFIER"),
    (86, "X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER"), (87, "X509_V_ERR_EMPTY_SUBJECT_ALT_NAME"),
    (88, "X509_V_ERR_EMPTY_SUBJECT_SAN_NOT_CRITICAL"), (89, "X509_V_ERR_CA_BCONS_NOT_CRITICAL"),
    (90, "X509_V_ERR_AUTHORITY_KEY_IDENTIFIER_CRITICAL"), (91, "X509_V_ERR_SUBJECT_KEY_IDENTIFIER_CRITICAL"),
    (92, "X509_V_ERR_CA_CERT_MISSING_KEY_USAGE"), (93, "X509_V_ERR_EXTENSIONS_REQUIRE_VERSION_3"),
    (94, "X509_V_ERR_EC_KEY_EXPLICIT_PARAMS"),
];

/// The highest code.
const LAST: u8 = 94;

/// A verification error of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// OpenSSL's error code.
    pub code: u8,
    /// The depth in the chain: 0 is the client's own certificate.
    pub depth: u8,
}

/// Returns the name of a code; `None`: it has none.
pub fn name(code: u8) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
}

/// Returns the rustls error for a verification error: the one whose alert OpenSSL sends for that code.
pub(crate) fn error_of(fault: Fault) -> Error {
    Error::InvalidCertificate(match fault.code {
        3 => CertificateError::UnknownRevocationStatus,
        2 | 18..=22 | 25 | 79 => CertificateError::UnknownIssuer,
        7 | 8 => CertificateError::BadSignature,
        10 | 12 => CertificateError::Expired,
        // Not yet valid, or too weak: bad_certificate.
        9 | 11 | 66..=68 | 94 => CertificateError::BadEncoding,
        23 => CertificateError::Revoked,
        26 => CertificateError::InvalidPurpose,
        _ => CertificateError::Other(OtherError(Arc::new(RejectedCertificate(fault)))),
    })
}

/// A certificate rejected for a reason that has no variant in rustls.
#[derive(Debug)]
struct RejectedCertificate(Fault);

impl std::fmt::Display for RejectedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at depth {}", name(self.0.code).unwrap_or("unknown error"), self.0.depth)
    }
}

impl std::error::Error for RejectedCertificate {}

/// The set of ignored errors, by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored(u128);

/// The error of an invalid list of errors, with HAProxy's message.
pub type WrongList = String;

impl Ignored {
    /// A bit for each number.
    pub(crate) fn bits(self) -> u128 {
        self.0
    }

    /// Reads a list: `all`, or numbers and names between commas.
    ///
    /// # Errors
    /// An element is neither.
    pub fn parse(list: &str) -> Result<Self, WrongList> {
        if list == "all" {
            return Ok(Self(u128::MAX));
        }
        let mut ignored = 0;
        for item in list.split(',').filter(|item| !item.is_empty()) {
            let digits = item.bytes().take_while(u8::is_ascii_digit).count();
            let code = match item[..digits].parse::<u32>() {
                Ok(number) => {
                    let code = u8::try_from(number).ok().filter(|code| (1..=LAST).contains(code));
                    code.ok_or_else(|| format!("ID '{number}' out of range (1..{LAST}) in error IDs list '{list}'"))?
                }
                Err(_) => {
                    let known = NAMES.iter().find(|(_, name)| *name == item).map(|(code, _)| *code);
                    known.ok_or_else(|| format!("error constant '{item}' unknown in error IDs list '{list}'"))?
                }
            };
            ignored |= 1 << code;
        }
        Ok(Self(ignored))
    }

    /// Whether no error is ignored.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a code is ignored. Codes from 32 to 63 never are, as in HAProxy: unsupported critical extensions, name
    /// constraints, and missing key usages.
    pub fn has(self, code: u8) -> bool {
        code < 128 && !(32..64).contains(&code) && self.0 & (1 << code) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let rows: &[(&str, Result<&[u8], &str>)] = &[
            ("", Ok(&[])),
            ("10,,5", Ok(&[10, 5])),
            ("10foo", Ok(&[10])),
            ("X509_V_ERR_CERT_REVOKED,94", Ok(&[23, 94])),
            ("foo", Err("error constant 'foo' unknown in error IDs list 'foo'")),
            ("10,all", Err("error constant 'all' unknown in error IDs list '10,all'")),
            ("95", Err("ID '95' out of range (1..94) in error IDs list '95'")),
            ("-3", Err("error constant '-3' unknown in error IDs list '-3'")),
            ("99999999999", Err("error constant '99999999999' unknown in error IDs list '99999999999'")),
        ];
        for (list, expected) in rows {
            let read = Ignored::parse(list);
            let found = read.as_ref().map(|read| (0..=127).filter(|code| read.has(*code)).collect::<Vec<_>>());
            let expected = expected.map(|codes| {
                let mut codes = codes.to_vec();
                codes.sort_unstable();
                codes
            });
            assert_eq!(found.map_err(String::as_str), expected, "{list}");
        }
        let all = Ignored::parse("all").unwrap();
        assert!((0..=127).all(|code| all.has(code) != (32..64).contains(&code)) && !all.is_empty());
        assert!(!Ignored::parse("34").unwrap().has(34));
    }

    #[test]
    fn numbers_have_names() {
        assert_eq!(name(0), Some("X509_V_OK"));
        assert_eq!(name(10), Some("X509_V_ERR_CERT_HAS_EXPIRED"));
        assert_eq!(name(200), None);
    }
}
