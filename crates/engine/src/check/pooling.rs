//! Checks that share the idle connections of their server (configuration manual, "check-reuse-pool"): which one a check
//! may take, and whether its connection is laid down behind it. Must never send anything, nor judge an answer.

use std::borrow::Cow;

use config::spec::HttpReuse;
use conn::link::Link;
use conn::pool_key::{OwnedPoolKey, PoolKey};
use conn::quota::Reservation;
use conn::transport::Transport;
use live::health::CheckStatus;
use policy::check::{Connect, Request};
use policy::program::ServerAddress;
use wire::h1::{ChunkDecoder, ChunkState};
use wire::http::{Fields, Framing, authentication};

use super::outcome::Outcome;
use super::run::Course;
use crate::stream::attaching::named;

/// What is known of the connection of a check besides its stream.
#[derive(Default)]
pub(super) struct Pooling {
    /// Where it came from; `None`: it is of no use to anybody else.
    origin: Option<Origin>,
    /// An idle connection has died under this check: it takes no other one.
    fresh: bool,
    /// Requests that were sent over it.
    requests: u32,
    /// The last of them lets the server keep it.
    keeps: bool,
    /// Whether the answer's body was read to its end; `None`: none of it was.
    pub(super) body: Option<bool>,
}

/// What a link is made of again.
struct Origin {
    answers: u32,
    glitches: u32,
    generation: u32,
    place: Option<Reservation>,
    pool_key: Option<Box<OwnedPoolKey>>,
}

impl<'a> Course<'a> {
    /// The name of the idle connections that are like the one which a step wants; empty: those without a name. `None`:
    /// no idle connection is.
    pub(super) fn pool_name(&self, connect: &Connect) -> Option<Cow<'a, [u8]>> {
        let name = self.own.reuse.as_deref().filter(|_| self.check.is_http)?;
        let special = connect.port.is_some() || connect.address.is_some() || connect.send_proxy || connect.via_socks4;
        let orders = self.worker.process.probing.check(self.server.serial);
        let elsewhere = orders.address.is_some() || orders.port.is_some();
        // What a client's request makes different, or another way to the server, is nothing that a check would make.
        let differs = self.server.connecting.varies || self.server.connecting.socks4.is_some();
        // Requests share what a server has opened, whatever that says.
        let is_reversed = self.server.address == ServerAddress::Reversed;
        let never = self.reuse() == HttpReuse::Never && !is_reversed;
        if special || elsewhere || differs || never {
            return None;
        }
        let tls = self.server.connecting.tls.as_deref().filter(|_| !is_reversed);
        // Where only checks are secured, or only requests, none of them may take a connection of the others.
        if tls.is_some_and(|tls| self.tls(connect).is_some() != tls.carries_traffic()) {
            return None;
        }
        // Connections that asked for different names are different.
        let asked = || self.server_name(connect, self.tls(connect)?).map(|name| named(name.as_bytes()));
        Some(match name.is_empty().then(asked).flatten() {
            Some(asked) => Cow::Owned(asked),
            None => Cow::Borrowed(name),
        })
    }

    fn reuse(&self) -> HttpReuse {
        self.proxy.backend.as_ref().map_or(HttpReuse::Never, |backend| backend.http_reuse)
    }

    /// A connection is wanted: takes an idle one, which then is the stream. False: there is none, and the one that is
    /// opened now may be laid down later, where idle ones are wanted at all.
    pub(super) fn take_idle(&mut self, connect: &Connect) -> bool {
        self.pooling = Pooling { fresh: self.pooling.fresh, ..Pooling::default() };
        let Some(name) = self.pool_name(connect) else { return false };
        let (pool, serial) = (&self.worker.process.pool, self.server.serial);
        // Each check is a session of its own, and this its first request.
        let proven = match self.reuse() {
            HttpReuse::Never | HttpReuse::Safe => None,
            HttpReuse::Aggressive => Some(true),
            HttpReuse::Always => Some(false),
        };
        let key = PoolKey::new(&name);
        let key = if name.is_empty() { PoolKey::COMMON } else { key };
        let taken = proven
            .filter(|_| !self.pooling.fresh)
            .and_then(|proven| self.worker.links.take_own(pool, serial, proven, key));
        let Some(link) = taken else {
            let (generation, pool_key) = (pool.generation(serial), key.keep(None));
            // A connection that is counted nowhere must not lie among those of which there may be only so many.
            if !self.server.strict_maxconn {
                self.pooling.origin = Some(Origin { answers: 0, glitches: 0, generation, place: None, pool_key });
            }
            return false;
        };
        let Link { carrier, answers, glitches, generation, place, pool_key, .. } = link;
        let Some(stream) = carrier.into_transport() else { return false };
        self.pooling.origin = Some(Origin { answers, glitches, generation, place, pool_key });
        self.spare = None;
        self.stream = Some(stream);
        true
    }

    /// The connection is of no use to anybody else.
    pub(super) fn keep_alone(&mut self) {
        self.pooling.origin = None;
    }

    /// Whether the connection may be laid down once the check is over.
    pub(super) fn is_shared(&self) -> bool {
        self.pooling.origin.is_some()
    }

    /// A request was sent whole, over a connection that it lets the server keep or not.
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
        self.pooling.keeps = stays && options.next().is_none() && *request.method != *b"CONNECT" && !logs_in;
        self.pooling.requests = self.pooling.requests.saturating_add(1);
        self.pooling.body = None;
    }

    /// Whether a check ends like that because an idle connection was closed by the server before it received the
    /// request: that says nothing about the server. Then the check may begin again, over a connection of its own.
    pub(super) fn begins_again(&mut self, outcome: &Outcome) -> bool {
        let reused = self.pooling.origin.as_ref().is_some_and(|origin| origin.answers > 0);
        let silent = self.head.is_none() && self.input.is_empty() && self.pooling.requests <= 1;
        let again = reused && silent && outcome.status == CheckStatus::SocketError && !self.pooling.fresh;
        self.pooling.fresh |= again;
        again
    }

    /// Lays the connection down for others, where nothing is left of the check on it. Gives the stream back where it has
    /// to be closed.
    pub(super) fn lay_down(&mut self, mut stream: Transport) -> Option<Transport> {
        let pooling = std::mem::take(&mut self.pooling);
        self.pooling.fresh = pooling.fresh;
        let Some(origin) = pooling.origin.filter(|_| pooling.keeps && pooling.requests == 1) else {
            return Some(stream);
        };
        if self.ended || !self.is_whole(pooling.body) || !stream.is_clean() {
            return Some(stream);
        }
        let Origin { answers, glitches, generation, place, pool_key } = origin;
        let worker = self.worker;
        let (shared, serial) = (&worker.process, self.server.serial);
        let answers = answers.saturating_add(1);
        // As with requests: where first ones may not take every idle connection, they leave one behind at most.
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

    /// Whether the answer is here to its end, and nothing behind it.
    fn is_whole(&mut self, body: Option<bool>) -> bool {
        let Some(head) = self.head.as_ref().filter(|head| head.keeps_alive() && head.status() != 101) else {
            return false;
        };
        if let Some(read) = body {
            return read && self.input.is_empty();
        }
        match head.framing {
            Framing::None => self.input.is_empty(),
            Framing::Length(length) => length == self.input.len() as u64,
            Framing::UntilClose => false,
            Framing::Chunked => {
                let length = self.input.len();
                let decoded = ChunkDecoder::new().decode_in_place(self.input.data_mut(), &mut Fields::new());
                decoded.is_ok_and(|decoded| decoded.state == ChunkState::End && decoded.consumed == length)
            }
        }
    }
}
