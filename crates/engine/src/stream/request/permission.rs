//! The permission of a server for a request (`auth-request`): its effect on the request, and its reuse for requests with the same key
//! (`cache`). Must never ask a server, and never reuse anything but a permission.

use std::sync::Arc;

use base::Moment;
use live::decisions::{DecisionCache, Epoch};
use policy::rule::{AuthRequest, Change};
use wire::http::{Fields, Head};

use crate::session::Session;
use crate::stream::cache::freshness::has_directive;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::StreamState;

/// Removes what an answer has to give: fields of the client, and values of former requests.
pub(super) fn withdraw(session: &Session, state: &mut StreamState, rule: &AuthRequest) {
    state.request.fields.retain(|name, _| !rule.is_copied(name));
    EvalContext::request(session, state).lend(|context| rule.set_variables(context, |_| None));
}

/// Copies fields of the answer to the request, and sets the variables. Returns false if the request has no room for them.
pub(super) fn admit(session: &Session, state: &mut StreamState, rule: &AuthRequest, answer: &Fields) -> bool {
    let room = session.generation().program.global.bufsize;
    for name in rule.copies() {
        for value in answer.all(name) {
            if Change::Add(name, value).apply(&mut state.request, room).is_err() {
                return false;
            }
        }
    }
    EvalContext::request(session, state).lend(|context| rule.set_variables(context, |name| answer.first(name)));
    true
}

/// Whether a permission that was stored allows the request; it is then applied. `key` is a buffer.
pub(super) fn is_known(session: &Session, state: &mut StreamState, rule: &AuthRequest, key: &mut Vec<u8>) -> bool {
    let Some(cache) = cache(session, state, rule, key) else { return false };
    let Some(found) = cache.find(key, rt::now()) else { return false };
    // The server is asked about the request as it was.
    let before = rule.copies().any(|name| state.request.contains(name)).then(|| state.request.clone());
    withdraw(session, state, rule);
    let is_admitted = admit(session, state, rule, &found);
    if !is_admitted {
        match before {
            Some(before) => state.request = before,
            None => withdraw(session, state, rule),
        }
    }
    is_admitted
}

/// Returns the cache of a rule, and renders the key of the request. `None`: the rule has no cache, or the request has no key.
fn cache<'s>(
    session: &'s Session,
    state: &StreamState,
    rule: &AuthRequest,
    key: &mut Vec<u8>,
) -> Option<&'s Arc<DecisionCache>> {
    let caching = rule.caching.as_ref()?;
    let cache = session.generation().decisions.get(caching.place)?;
    let has_key = EvalContext::request(session, state).lend(|context| caching.render_key(context, key));
    append_credentials(state, key);
    has_key.then_some(cache)
}

/// Appends the credentials of the request, which a server may decide by whatever the configured key is.
fn append_credentials(state: &StreamState, key: &mut Vec<u8>) {
    for name in [&b"authorization"[..], b"proxy-authorization"] {
        for value in state.request.fields.all(name) {
            key.extend_from_slice(&(value.len() as u64).to_le_bytes());
            key.extend_from_slice(value);
        }
        // The end of the list: no value is that long.
        key.extend_from_slice(&u64::MAX.to_le_bytes());
    }
}

/// A permission that is stored once the server has given it.
pub(super) struct Storing {
    cache: Arc<DecisionCache>,
    key: Vec<u8>,
    until: Moment,
    epoch: Epoch,
}

impl Storing {
    /// Begins before the server is asked, and before fields of the client are removed. `None`: the permission is not stored.
    pub(super) fn begin(session: &Session, state: &StreamState, rule: &AuthRequest) -> Option<Self> {
        let time = rule.caching.as_ref()?.time;
        let mut key = Vec::new();
        let cache = Arc::clone(cache(session, state, rule, &mut key)?);
        let epoch = cache.epoch();
        Some(Self { cache, key, until: rt::now() + time, epoch })
    }

    /// Stores the fields that the rule uses, unless the answer forbids that.
    pub(super) fn store(self, rule: &AuthRequest, answer: &Head) {
        if [&b"no-store"[..], b"no-cache"].into_iter().any(|name| has_directive(answer, b"cache-control", name)) {
            return;
        }
        let mut fields = Fields::new();
        for name in rule.uses().filter(|name| !name.eq_ignore_ascii_case(b"set-cookie")) {
            if !fields.contains(name) {
                answer.all(name).for_each(|value| fields.append(name, value));
            }
        }
        // A cookie is for one answer.
        if rule.uses().any(|name| name == b"set-cookie") && answer.contains(b"set-cookie") {
            return;
        }
        fields.shrink_to(0);
        self.cache.store(&self.key, fields, self.until, self.epoch, rt::now());
    }
}
