//! The algorithms that hash a key of the request: `source`, `uri`, `url_param`, `hdr` and `rdp-cookie`. This file maps
//! a hash to a server for `hash-type map-based`; for `consistent` see [`Ring`].

use super::ring::Ring;
use super::static_rr::StaticRr;
use super::{Candidate, Change, Loads, Pick, Row, State};
use config::spec::{BalanceSpec, HashMethod, HashSpec};

const fn row(name: &'static str, doc: &'static str, make: super::Make) -> Row {
    Row { name, doc, dynamic: false, hashes: true, make }
}

pub(super) const SOURCE: Row = row(
    "source",
    "The client's address: the same client always gets the same server as long as no server comes or \
         goes. Clients without an address are distributed in turn.",
    |spec, hash| matches!(spec, BalanceSpec::Source).then(|| state(hash)),
);

pub(super) const URI: Row = row(
    "uri",
    "The request's target up to the question mark: the same object always comes from the same \
         server, for caches. `whole` includes the query, `len` and `depth` use the beginning only, \
         `path-only` omits scheme and host. HTTP only.",
    |spec, hash| matches!(spec, BalanceSpec::Uri(_)).then(|| state(hash)),
);

pub(super) const URL_PARAM: Row = row(
    "url_param",
    "The value of a parameter of the query, or of a form in a POST request. Requests without it are \
         distributed in turn. HTTP only.",
    |spec, hash| matches!(spec, BalanceSpec::UrlParam { .. }).then(|| state(hash)),
);

pub(super) const EXPRESSION: Row =
    row("hash", "The value of an expression. Requests without a value are distributed in turn.", |spec, hash| {
        matches!(spec, BalanceSpec::Hash(_)).then(|| state(hash))
    });

pub(super) const HEADER: Row = row(
    "hdr",
    "The first value of a header field; with `use_domain_only` only the label before its last dot. \
         Requests without it are distributed in turn. HTTP only.",
    |spec, hash| matches!(spec, BalanceSpec::Header { .. }).then(|| state(hash)),
);

pub(super) const RDP_COOKIE: Row = row(
    "rdp-cookie",
    "The cookie in the first message of a Remote Desktop client. Clients without it are distributed \
         in turn.",
    |spec, hash| matches!(spec, BalanceSpec::RdpCookie { .. }).then(|| state(hash)),
);

pub(super) const LOG_HASH: Row = row(
    "log-hash",
    "The result of converters applied to a log line: lines with the same key go to the same server. \
         Only in `mode log`.",
    |spec, hash| matches!(spec, BalanceSpec::LogHash(_)).then(|| state(hash)),
);

fn state(hash: &HashSpec) -> State {
    match hash.method {
        HashMethod::MapBased => State::Mapped(Mapped::default()),
        HashMethod::Consistent => State::Ring(Ring::new(hash)),
    }
}

/// The map and cursor of `static-rr`, which is also used for requests without a hash.
#[derive(Debug, Default)]
pub(super) struct Mapped(StaticRr);

impl Mapped {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.0.rebuild(candidates, count);
    }

    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        match pick.hash {
            Some(hash) => self.0.map.at_hash(hash),
            None => self.0.pick(pick, loads),
        }
    }

    pub(super) fn on_load(&mut self, server: usize, change: Change) {
        self.0.on_load(server, change);
    }
}
