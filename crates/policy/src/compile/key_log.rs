//! Compiles `tune.ssl.keylog`. Must never write a secret.

use super::Compiler;
use config::spec::Spec;
use tls::details::DetailSet;

impl Compiler<'_> {
    /// `tune.ssl.keylog`: enables recording of handshake secrets.
    pub(super) fn key_log(&mut self, spec: &Spec) {
        if spec.global.tls.keylog {
            self.shared.wanted.add(DetailSet::SECRETS);
        }
    }
}
