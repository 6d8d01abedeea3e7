//! Checks that share the idle connections of their server (configuration manual, "check-reuse-pool"): which one a check may take,
//! and whether its connection is put back afterwards. Must never send anything, nor judge a response.

use std::borrow::Cow;

use config::spec::HttpReuse;
use conn::link::Link;
use conn::pool_key::PoolKey;
use conn::transport::Transport;
use live::health::CheckStatus;
use policy::check::{Connect, Request};
use policy::program::ServerAddress;
use wire::h1::{ChunkDecoder, ChunkState};
use wire::http::{Fields, Framing, authentication};

use super::running::{Origin, Outcome, Pooling, RunningCheck};
use crate::session::attached_server::key_of_name;

impl<'a> RunningCheck<'a> {
    /// Returns the pool name of connections that fit a step; empty: those without a name. `None`: no pooled connection fits.
    pub(super) fn pool_name(&self, connect: &Connect) -> Option<Cow<'a, [u8]>> {
        let name = self.own.reuse.as_deref().filter(|_| self.check.is_http)?;
        let special = connect.port.is_some() || connect.address.is_some() || connect.send_proxy || connect.via_socks4;
        let orders = self.worker.process.checks.targets.check(self.server.serial);
        let elsewhere = orders.address.is_some() || orders.port.is_some();
        // Checks do not connect with properties that depend on a client's request, nor through a SOCKS4 proxy.
        let differs = self.server.connecting.varies || self.server.connecting.socks4.is_some();
        // Connections that a server has opened are shared, regardless of `http-reuse`.
        let is_reversed = self.server.address == ServerAddress::Reversed;
        let never = self.reuse() == HttpReuse::Never && !is_reversed;
        if special || elsewhere || differs || never {
            return None;
        }
        let tls = self.server.connecting.tls.as_deref().filter(|_| !is_reversed);
        // If only checks or only requests are encrypted, neither may take a connection of the other.
        if tls.is_some_and(|tls| self.tls(connect).is_some() != tls.carries_traffic()) {
            return None;
        }
        // Connections with different SNIs are not interchangeable.
        let asked = || self.server_name(connect, self.tls(connect)?).map(|name| key_of_name(name.as_bytes()));
        Some(match name.is_empty().then(asked).flatten() {
            Some(asked) => Cow::Owned(asked),
            None => Cow::Borrowed(name),
        })
    }

    fn reuse(&self) -> HttpReuse {
        self.proxy.backend.as_ref().map_or(HttpReuse::Never, |backend| backend.http_reuse)
    }

    /// Takes an idle connection as the check's stream. Returns false if there is none; the one that is opened then may be pooled
    /// later, if allowed.
    pub(super) fn take_idle(&mut self, connect: &Connect) -> bool {
        self.connection.pooling = Pooling { fresh: self.connection.pooling.fresh, ..Pooling::default() };
        let Some(name) = self.pool_name(connect) else { return false };
        let (pool, serial) = (&self.worker.process.pool, self.server.serial);
        // Each check is a session of its own, and this is its first request.
        let proven = match self.reuse() {
            HttpReuse::Never | HttpReuse::Safe => None,
            HttpReuse::Aggressive => Some(true),
            HttpReuse::Always => Some(false),
        };
        let key = PoolKey::new(&name);
        let key = if name.is_empty() { PoolKey::COMMON } else { key };
        let taken = proven
            .filter(|_| !self.connection.pooling.fresh)
            .and_then(|proven| self.worker.links.take_own(pool, serial, proven, key));
        let Some(link) = taken else {
            let (generation, pool_key) = (pool.generation(serial), key.keep(None));
            // A connection that is not counted must not be put among those that `strict-maxconn` limits.
            if !self.server.strict_maxconn {
                self.connection.pooling.origin =
                    Some(Origin { answers: 0, glitches: 0, generation, place: None, pool_key });
            }
            return false;
        };
        let Link { carrier, answers, glitches, generation, place, pool_key, .. } = link;
        let Some(stream) = carrier.into_transport() else { return false };
        self.connection.pooling.origin = Some(Origin { answers, glitches, generation, place, pool_key });
        self.connection.spare = None;
        self.connection.stream = Some(stream);
        true
    }

    /// Excludes the connection from pooling.
    pub(super) fn keep_alone(&mut self) {
        self.connection.pooling.origin = None;
    }

    /// Whether the connection may be put in the pool after the check.
    pub(super) fn is_shared(&self) -> bool {
        self.connection.pooling.origin.is_some()
    }

    /// Records that a request was sent completely, and whether it lets the server keep the connection open.
    pub(super) fn note_request(&mut self, request: &Request, bytes: &[u8]) {
        if !self.is_shared() {
            return;
        }
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes, |end| &bytes[..end]);
        let mut options = head.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            line[..colon].eq_ignore_ascii_case(b"connection").then(|| line[colon + 1..].trim_ascii())
        });
        let says = options.next();
        let stays = match says {
            None => *request.version == *b"HTTP/1.1",
            Some(value) => value.eq_ignore_ascii_case(b"keep-alive"),
        };
        let logs_in = head.split(|byte| *byte == b'\n').any(authentication::logs_connection_in);
        self.connection.pooling.keeps = stays && options.next().is_none() && *request.method != *b"CONNECT" && !logs_in;
        self.connection.pooling.requests = self.connection.pooling.requests.saturating_add(1);
        self.connection.pooling.body = None;
    }

    /// Whether the check failed because the server closed an idle connection before it received the request: that is no failure
    /// of the server. The check may then start again, over a new connection.
    pub(super) fn begins_again(&mut self, outcome: &Outcome) -> bool {
        let reused = self.connection.pooling.origin.as_ref().is_some_and(|origin| origin.answers > 0);
        let silent =
            self.answer.head.is_none() && self.connection.input.is_empty() && self.connection.pooling.requests <= 1;
        let again = reused && silent && outcome.status == CheckStatus::SocketError && !self.connection.pooling.fresh;
        self.connection.pooling.fresh |= again;
        again
    }

    /// Puts the connection in the pool, if nothing of the check is left on it. Otherwise returns the stream, which has to be
    /// closed.
    pub(super) fn lay_down(&mut self, mut stream: Transport) -> Option<Transport> {
        let pooling = std::mem::take(&mut self.connection.pooling);
        self.connection.pooling.fresh = pooling.fresh;
        let Some(origin) = pooling.origin.filter(|_| pooling.keeps && pooling.requests == 1) else {
            return Some(stream);
        };
        if self.connection.ended || !self.is_whole(pooling.body) || !stream.is_clean() {
            return Some(stream);
        }
        let Origin { answers, glitches, generation, place, pool_key } = origin;
        let worker = self.worker;
        let (shared, serial) = (&worker.process, self.server.serial);
        let answers = answers.saturating_add(1);
        // As with requests: unless first requests may take every idle connection, one that served a single request is pooled
        // only if no other is idle.
        let crowded = self.reuse() != HttpReuse::Always && answers == 1 && shared.pool.idle_of(serial, worker.id) > 0;
        let too_high = u64::try_from(stream.number())
            .is_ok_and(|number| number >= self.generation.program.global.pool_low_descriptors);
        if crowded || too_high || self.server.max_reuse.is_some_and(|most| answers > most) {
            return Some(stream);
        }
        let link = Link { answers, glitches, generation, place, pool_key, ..Link::new(stream) };
        worker.links.put(&shared.pool, serial, link);
        None
    }

    /// Whether the response was received completely, with no bytes after it.
    fn is_whole(&mut self, body: Option<bool>) -> bool {
        let Some(head) = self.answer.head.as_ref().filter(|head| head.keeps_alive() && head.status() != 101) else {
            return false;
        };
        if let Some(read) = body {
            return read && self.connection.input.is_empty();
        }
        match head.framing {
            Framing::None => self.connection.input.is_empty(),
            Framing::Length(length) => length == self.connection.input.len() as u64,
            Framing::UntilClose => false,
            Framing::Chunked => {
                let length = self.connection.input.len();
                let decoded = ChunkDecoder::new().decode_in_place(self.connection.input.data_mut(), &mut Fields::new());
                decoded.is_ok_and(|decoded| decoded.state == ChunkState::End && decoded.consumed == length)
            }
        }
    }
}
