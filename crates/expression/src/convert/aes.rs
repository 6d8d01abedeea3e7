//! AES (FIPS 197) in the modes GCM (NIST SP 800-38D), with nonces of any length, and CBC with PKCS#7 padding. Owns the
//! modes; the block cipher and GHASH are a library's. Must never compare a tag in a time that depends on its contents.

use super::algorithm::is_same;
use crate::sample::Context;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;

const BLOCK: usize = 16;

/// AES with one of its three key lengths.
pub(super) enum Cipher {
    Short(Aes128),
    Middle(Aes192),
    Long(Aes256),
}

impl Cipher {
    /// Creates the cipher for a key of that many bits; `None` when the key has another length.
    pub(super) fn new(bits: i64, key: &[u8]) -> Option<Self> {
        match bits {
            128 => Aes128::new_from_slice(key).ok().map(Self::Short),
            192 => Aes192::new_from_slice(key).ok().map(Self::Middle),
            256 => Aes256::new_from_slice(key).ok().map(Self::Long),
            _ => None,
        }
    }

    fn encrypt_block(&self, block: &mut [u8; BLOCK]) {
        match self {
            Self::Short(cipher) => cipher.encrypt_block(block.into()),
            Self::Middle(cipher) => cipher.encrypt_block(block.into()),
            Self::Long(cipher) => cipher.encrypt_block(block.into()),
        }
    }

    /// Decrypts one block without a mode.
    pub(super) fn decrypt_block(&self, block: &mut [u8; BLOCK]) {
        match self {
            Self::Short(cipher) => cipher.decrypt_block(block.into()),
            Self::Middle(cipher) => cipher.decrypt_block(block.into()),
            Self::Long(cipher) => cipher.decrypt_block(block.into()),
        }
    }

    /// Encrypts with CBC after padding.
    pub(super) fn encrypt_cbc<'a>(&self, context: &Context<'a>, nonce: &[u8], plain: &[u8]) -> Option<&'a [u8]> {
        let mut last: [u8; BLOCK] = *nonce.first_chunk()?;
        let mut text = context.text(plain.len() + BLOCK);
        let (blocks, rest) = plain.as_chunks::<BLOCK>();
        let mut padded = [(BLOCK - rest.len()) as u8; BLOCK];
        padded[..rest.len()].copy_from_slice(rest);
        for block in blocks.iter().chain([&padded]) {
            xor(&mut last, block);
            self.encrypt_block(&mut last);
            text.extend(&last);
        }
        text.finish()
    }

    /// Decrypts CBC; `None` when the padding is invalid.
    pub(super) fn decrypt_cbc<'a>(&self, context: &Context<'a>, nonce: &[u8], coded: &[u8]) -> Option<&'a [u8]> {
        let mut last: &[u8; BLOCK] = nonce.first_chunk()?;
        let (blocks, []) = coded.as_chunks::<BLOCK>() else {
            return None;
        };
        let mut text = context.text(coded.len());
        for block in blocks {
            let mut plain = *block;
            self.decrypt_block(&mut plain);
            xor(&mut plain, last);
            text.extend(&plain);
            last = block;
        }
        let plain = text.finish()?;
        let padding = usize::from(*plain.last()?);
        let (plain, tail) = plain.split_at_checked(plain.len().checked_sub(padding)?)?;
        let is_padded = (1..=BLOCK).contains(&padding) && tail.iter().all(|byte| usize::from(*byte) == padding);
        is_padded.then_some(plain)
    }

    /// Unwraps a key (RFC 3394); `None` when it was not wrapped by this one.
    pub(super) fn unwrap(&self, wrapped: &[u8]) -> Option<Vec<u8>> {
        let (halves, []) = wrapped.as_chunks::<8>() else { return None };
        let [first, rest @ ..] = halves else { return None };
        if rest.len() < 2 {
            return None;
        }
        let (mut check, mut key) = (u64::from_be_bytes(*first), rest.to_vec());
        for step in (1..=6 * key.len()).rev() {
            let at = (step - 1) % key.len();
            let mut block = [0; BLOCK];
            block[..8].copy_from_slice(&(check ^ step as u64).to_be_bytes());
            block[8..].copy_from_slice(&key[at]);
            self.decrypt_block(&mut block);
            let (left, right) = block.split_at(8);
            check = u64::from_be_bytes(*left.first_chunk()?);
            key[at] = *right.first_chunk()?;
        }
        is_same(&check.to_be_bytes(), &[0xa6; 8]).then(|| key.concat())
    }

    /// Encrypts with GCM and returns the tag as well.
    pub(super) fn encrypt_gcm<'a>(
        &self,
        context: &Context<'a>,
        nonce: &[u8],
        plain: &[u8],
        extra: &[u8],
    ) -> Option<(&'a [u8], [u8; BLOCK])> {
        let (hash, first) = self.start_gcm(nonce)?;
        let coded = self.count(context, first, plain)?;
        Some((coded, self.tag(hash, first, coded, extra)))
    }

    /// Decrypts GCM; `None` when the tag does not match.
    pub(super) fn decrypt_gcm<'a>(
        &self,
        context: &Context<'a>,
        nonce: &[u8],
        coded: &[u8],
        extra: &[u8],
        tag: &[u8],
    ) -> Option<&'a [u8]> {
        let (hash, first) = self.start_gcm(nonce)?;
        let right = self.tag(hash, first, coded, extra);
        if !is_same(&right, tag) {
            return None;
        }
        self.count(context, first, coded)
    }

    /// GHASH under this key, and the first counter block.
    fn start_gcm(&self, nonce: &[u8]) -> Option<(GHash, [u8; BLOCK])> {
        let mut key = [0; BLOCK];
        self.encrypt_block(&mut key);
        let hash = GHash::new(&key.into());
        let mut first = [0; BLOCK];
        match nonce.len() {
            0 => return None,
            12 => {
                first[..12].copy_from_slice(nonce);
                first[15] = 1;
            }
            length => {
                let mut of_nonce = hash.clone();
                of_nonce.update_padded(nonce);
                let mut lengths = [0; BLOCK];
                lengths[8..].copy_from_slice(&(length as u64 * 8).to_be_bytes());
                of_nonce.update(&[lengths.into()]);
                first = of_nonce.finalize().into();
            }
        }
        Some((hash, first))
    }

    fn tag(&self, mut hash: GHash, first: [u8; BLOCK], coded: &[u8], extra: &[u8]) -> [u8; BLOCK] {
        hash.update_padded(extra);
        hash.update_padded(coded);
        let mut lengths = [0; BLOCK];
        lengths[..8].copy_from_slice(&(extra.len() as u64 * 8).to_be_bytes());
        lengths[8..].copy_from_slice(&(coded.len() as u64 * 8).to_be_bytes());
        hash.update(&[lengths.into()]);
        let mut tag: [u8; BLOCK] = hash.finalize().into();
        let mut mask = first;
        self.encrypt_block(&mut mask);
        xor(&mut tag, &mask);
        tag
    }

    /// Applies the key stream of the counters after the first one.
    fn count<'a>(&self, context: &Context<'a>, first: [u8; BLOCK], bytes: &[u8]) -> Option<&'a [u8]> {
        let mut text = context.text(bytes.len());
        let mut counter = u128::from_be_bytes(first);
        for chunk in bytes.chunks(BLOCK) {
            let low = (counter as u32).wrapping_add(1);
            counter = counter >> 32 << 32 | u128::from(low);
            let mut stream = counter.to_be_bytes();
            self.encrypt_block(&mut stream);
            chunk.iter().zip(stream).for_each(|(byte, mask)| text.push(byte ^ mask));
        }
        text.finish()
    }
}

fn xor(block: &mut [u8; BLOCK], with: &[u8; BLOCK]) {
    block.iter_mut().zip(with).for_each(|(byte, mask)| *byte ^= mask);
}
