//! The PROXY header that the connection of a check begins with (`check-send-proxy`). Must never describe a client: a check has
//! none.

use super::running::RunningCheck;
use wire::proxy_protocol::{EncoderV2, Ends, encode_v1};

impl RunningCheck<'_> {
    /// Builds the header. Version 1 contains the connection's own addresses; version 2 has the command LOCAL without addresses,
    /// unless `pp2-never-send-local` is set.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut buffer = rt::buffer();
        let written = match self.server.connecting.header.as_ref().filter(|header| header.binary) {
            None => encode_v1(self.ends(), &mut buffer),
            Some(header) => {
                let global = &self.generation.program.global;
                let mut encoder = EncoderV2::begin(self.ends().filter(|_| global.checks_are_proxied), &mut buffer);
                let mut value = Vec::new();
                for field in &header.fields {
                    value.clear();
                    self.lend(&[], |context| field.format.render_in(context, &mut value));
                    encoder.field(field.kind, &value);
                }
                encoder.finish(header.checksum, |_| {})
            }
        };
        if written.is_ok() { buffer.data().to_vec() } else { Vec::new() }
    }

    fn ends(&self) -> Ends {
        let stream = self.connection.stream.as_ref()?;
        Some((stream.local_address().ok()?.inet()?, stream.peer_address().ok()?.inet()?))
    }
}
