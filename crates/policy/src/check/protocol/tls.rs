//! The SSLv3 hello, and the server's record that answers it (configuration manual, "option ssl-hello-chk"). Must never
//! negotiate anything.

use super::Judgement;
use live::health::CheckStatus;

/// Returns a ClientHello of version 3.0 that offers every old cipher suite.
pub(super) fn hello() -> Vec<u8> {
    let mut hello = vec![0x16, 3, 0, 0, 0x79, 1, 0, 0, 0x75, 3, 0];
    // The random bytes can be constant: no keys are derived from them.
    hello.extend_from_slice(b"WEIRSSLHELLOCHECKWEIRSSLHELLOCHE");
    hello.extend_from_slice(&[0, 0, 0x4e]);
    for cipher in (1..=0x1b).chain(0x2f..=0x3a) {
        hello.extend_from_slice(&[0, cipher]);
    }
    hello.extend_from_slice(&[1, 0]);
    hello
}

/// Evaluates the response: a handshake or alert record passes.
pub(super) fn judge(received: &[u8], complete: bool) -> Judgement {
    let refused = Judgement::Failed { status: CheckStatus::L6Response, code: 0, info: String::new() };
    match received {
        [0x15 | 0x16, 3, _, _, _, ..] => Judgement::Passed { code: 0, info: Some(String::new()) },
        [] if complete => Judgement::Nothing,
        [] | [0x15 | 0x16] | [0x15 | 0x16, 3] | [0x15 | 0x16, 3, _] | [0x15 | 0x16, 3, _, _] if !complete => {
            Judgement::Wait
        }
        _ => refused,
    }
}
