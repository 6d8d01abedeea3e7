//! Features that depend on the machine: listed by `-vv` and tested by conditions. Must never be called twice where time
//! matters: each call costs system calls.

use config::LanguageOptions;
use rt::net::{Address, BindOptions, ListeningSocket};
use std::net::{Ipv4Addr, SocketAddr};

/// Returns HAProxy's names of such features, and whether this machine has them.
#[must_use]
pub fn features() -> Vec<(&'static str, bool)> {
    vec![("HAVE_WORKING_TCP_MD5SIG", signs_segments())]
}

/// Returns the language options of the program and the machine.
#[must_use]
pub fn options() -> LanguageOptions {
    let mut options = LanguageOptions::default();
    options.features.extend(features());
    options
}

/// Whether the kernel supports TCP MD5 signatures (RFC 2385), tested with a temporary socket.
fn signs_segments() -> bool {
    let nowhere = Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let options = BindOptions { md5_password: Some(b"secret".to_vec()), ..BindOptions::default() };
    ListeningSocket::bind(&nowhere, &options).is_ok()
}
