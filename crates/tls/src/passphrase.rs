//! Private keys encrypted with a passphrase: PKCS#8 (RFC 8018) and OpenSSL's traditional PEM format, which has its
//! cipher in a header (RFC 1421's `DEK-Info`). Must never print a key or a passphrase.

use aes::{Aes128, Aes192, Aes256};
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherDecrypt, BlockModeDecrypt as _, InnerIvInit, KeyInit, KeyIvInit as _};
use data_encoding::{BASE64, HEXUPPER_PERMISSIVE};
use des::{Des, TdesEde3};
use md5::{Digest as _, Md5};
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::PrivateKeyDer;

/// Maximum size of a key in bytes: no real one is as long.
const LONGEST: usize = 64 * 1024;

/// A private key that needs its passphrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedKey(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    /// `ENCRYPTED PRIVATE KEY`.
    Pkcs8(Vec<u8>),
    /// `RSA PRIVATE KEY` or `EC PRIVATE KEY` with headers.
    Traditional { is_rsa: bool, cipher: Cipher, iv: Vec<u8>, data: Vec<u8> },
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pkcs8(_) => "Pkcs8",
            Self::Traditional { .. } => "Traditional",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    Des,
    TripleDes,
}

impl Cipher {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "AES-128-CBC" => Self::Aes128,
            "AES-192-CBC" => Self::Aes192,
            "AES-256-CBC" => Self::Aes256,
            "DES-CBC" => Self::Des,
            "DES-EDE3-CBC" => Self::TripleDes,
            _ => return None,
        })
    }

    /// Returns the size of its key in bytes.
    fn key_size(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::TripleDes => 24,
            Self::Aes256 => 32,
            Self::Des => 8,
        }
    }
}

impl EncryptedKey {
    /// Finds the first encrypted private key in a text. `None`: there is none.
    ///
    /// # Errors
    /// It is invalid, or its encryption is not supported.
    pub fn find(text: &[u8]) -> Option<Result<Self, String>> {
        let text = String::from_utf8_lossy(text);
        let mut rest = &*text;
        while let Some(start) = rest.find("-----BEGIN ") {
            let behind = &rest[start + "-----BEGIN ".len()..];
            let (label, body) = behind.split_once("-----")?;
            let end = format!("-----END {label}-----");
            let (body, following) = body.split_once(end.as_str())?;
            rest = following;
            if label == "ENCRYPTED PRIVATE KEY" {
                return Some(decode(body).map(|der| Self(Form::Pkcs8(der))));
            }
            let is_rsa = label == "RSA PRIVATE KEY";
            if (is_rsa || label == "EC PRIVATE KEY") && body.contains("Proc-Type: 4,ENCRYPTED") {
                return Some(traditional(is_rsa, body));
            }
        }
        None
    }

    /// Decrypts the key.
    ///
    /// # Errors
    /// The passphrase is wrong, or the content is not a key.
    pub fn open(&self, passphrase: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
        match &self.0 {
            Form::Pkcs8(der) => {
                let info = EncryptedPrivateKeyInfoRef::try_from(der.as_slice()).map_err(|error| error.to_string())?;
                let plain = info.decrypt(passphrase).map_err(|error| error.to_string())?;
                Ok(PrivateKeyDer::Pkcs8(plain.as_bytes().to_vec().into()))
            }
            Form::Traditional { is_rsa, cipher, iv, data } => {
                let key = derive(passphrase, iv, cipher.key_size());
                let plain = match cipher {
                    Cipher::Aes128 => decrypt::<Aes128>(&key, iv, data),
                    Cipher::Aes192 => decrypt::<Aes192>(&key, iv, data),
                    Cipher::Aes256 => decrypt::<Aes256>(&key, iv, data),
                    Cipher::Des => decrypt::<Des>(&key, iv, data),
                    Cipher::TripleDes => decrypt::<TdesEde3>(&key, iv, data),
                };
                let plain = plain.filter(|plain| plain.first() == Some(&0x30)).ok_or("bad decrypt")?;
                Ok(if *is_rsa { PrivateKeyDer::Pkcs1(plain.into()) } else { PrivateKeyDer::Sec1(plain.into()) })
            }
        }
    }
}

/// Decodes lines of Base64.
fn decode(lines: &str) -> Result<Vec<u8>, String> {
    let letters: String = lines.split_ascii_whitespace().collect();
    if letters.len() > LONGEST {
        return Err("too long".to_owned());
    }
    BASE64.decode(letters.as_bytes()).map_err(|error| error.to_string())
}

fn traditional(is_rsa: bool, body: &str) -> Result<EncryptedKey, String> {
    let (headers, lines): (Vec<_>, Vec<_>) = body.lines().partition(|line| line.contains(':'));
    let info = headers.iter().find_map(|line| line.strip_prefix("DEK-Info:")).ok_or("no DEK-Info")?;
    let (name, iv) = info.trim().split_once(',').ok_or("bad DEK-Info")?;
    let cipher = Cipher::named(name.trim()).ok_or_else(|| format!("unsupported cipher {name}"))?;
    let iv = HEXUPPER_PERMISSIVE.decode(iv.trim().as_bytes()).map_err(|error| error.to_string())?;
    let expected = if matches!(cipher, Cipher::Des | Cipher::TripleDes) { 8 } else { 16 };
    if iv.len() != expected {
        return Err("bad DEK-Info".to_owned());
    }
    Ok(EncryptedKey(Form::Traditional { is_rsa, cipher, iv, data: decode(&lines.join("\n"))? }))
}

/// OpenSSL's EVP_BytesToKey with MD5 and one round; the salt is the first part of the initialisation vector.
fn derive(passphrase: &[u8], iv: &[u8], size: usize) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    while key.len() < size {
        let mut digest = Md5::new();
        digest.update(&last);
        digest.update(passphrase);
        digest.update(&iv[..8]);
        last = digest.finalize().to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(size);
    key
}

fn decrypt<C: BlockCipherDecrypt + KeyInit>(key: &[u8], iv: &[u8], data: &[u8]) -> Option<Vec<u8>>
where
    Decryptor<C>: InnerIvInit<Inner = C>,
{
    Decryptor::<C>::new_from_slices(key, iv).ok()?.decrypt_padded_vec::<Pkcs7>(data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An EC key in each format that OpenSSL writes, all with the passphrase `secret`.
    const KEYS: [(&str, &str); 6] = [
        ("pkcs8 aes", include_str!("../tests/keys/pkcs8-aes256.pem")),
        ("pkcs8 des", include_str!("../tests/keys/pkcs8-des3.pem")),
        ("aes128", include_str!("../tests/keys/traditional-aes128.pem")),
        ("aes192", include_str!("../tests/keys/traditional-aes192.pem")),
        ("aes256", include_str!("../tests/keys/traditional-aes256.pem")),
        ("des3", include_str!("../tests/keys/traditional-des3.pem")),
    ];

    #[test]
    fn keys_open_with_their_passphrase_alone() {
        for (name, text) in KEYS {
            let key = EncryptedKey::find(text.as_bytes()).unwrap().unwrap();
            let plain = key.open(b"secret").unwrap();
            assert!(rustls::crypto::aws_lc_rs::sign::any_supported_type(&plain).is_ok(), "{name}");
            let usable =
                |plain: PrivateKeyDer<'static>| rustls::crypto::aws_lc_rs::sign::any_supported_type(&plain).is_ok();
            assert!(!key.open(b"wrong").is_ok_and(usable), "{name}");
        }
    }

    #[test]
    fn what_is_no_encrypted_key_is_refused() {
        assert_eq!(EncryptedKey::find(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), None);
        let with = |header: &str| {
            let head = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
            format!("{head}{header}\n\nAAAA\n-----END RSA PRIVATE KEY-----\n")
        };
        for header in ["X: y", "DEK-Info: AES-256-CBC", "DEK-Info: RC2-CBC,00", "DEK-Info: AES-256-CBC,0011"] {
            assert!(EncryptedKey::find(with(header).as_bytes()).unwrap().is_err(), "{header}");
        }
        let iv = "DEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF";
        assert!(EncryptedKey::find(with(iv).as_bytes()).unwrap().unwrap().open(b"x").is_err());
    }
}
