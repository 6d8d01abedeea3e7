//! The integrity of Retry packets (RFC 9001, section 5.8): a tag under a key that everyone knows.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::ConnectionId;

/// Size of the tag in bytes.
pub(super) const TAG: usize = 16;

const KEY: [u8; 16] = [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// Returns the tag of a packet without one. `None`: the cipher is missing.
pub(super) fn tag(original: &ConnectionId, parts: &[&[u8]]) -> Option<[u8; TAG]> {
    // No id is longer than 20 bytes.
    let mut pseudo = vec![original.len() as u8];
    pseudo.extend_from_slice(original);
    for part in parts {
        pseudo.extend_from_slice(part);
    }
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &KEY).ok()?);
    let nonce = Nonce::assume_unique_for_key(NONCE);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(pseudo), &mut []).ok()?;
    tag.as_ref().try_into().ok()
}

/// Whether the tag at the end of a packet is valid.
pub(super) fn is_valid(original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
    match payload.split_last_chunk::<TAG>() {
        Some((token, found)) => tag(original, &[header, token]).as_ref() == Some(found),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9001, appendix A.4.
    #[test]
    fn the_tag_is_the_one_of_the_standard() {
        let original = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        let packet = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74, 0x6f, 0x6b,
            0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba,
        ];
        let (header, payload) = packet.split_at(15);
        assert_eq!(tag(&original, &[header, b"token"]).as_ref().map(|tag| &tag[..]), Some(&payload[5..]));
        assert!(is_valid(&original, header, payload));
        for at in 0..payload.len() {
            let mut changed = payload.to_vec();
            changed[at] ^= 1;
            assert!(!is_valid(&original, header, &changed), "byte {at}");
        }
        assert!(!is_valid(&original, header, &payload[..15]));
    }
}
