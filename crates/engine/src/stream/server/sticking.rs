//! `stick` rules of a stream: a server is looked up for a request, and stored once it is known. Must never take a server's
//! slot.

use expression::sample::{Bytes, Context, Direction};
use live::table::{Table, TableKey};
use policy::program::{Backend, Proxy};
use policy::rule::{MOST_STORES, PersistOrder, Remembered, SelectedServer, ServerRef, StickRule, StickStore, recall};

use crate::session::Session;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::cost;
use crate::stream_state::StreamState;

/// Returns the server that the stored entries of request rules select, unless the request is already bound. The entries to be
/// stored later are added to `stores`.
pub fn request(
    view: EvalContext<'_>,
    proxy: &Proxy,
    backend: &Backend,
    order: Option<PersistOrder>,
    bound: Option<SelectedServer>,
    stores: &mut Vec<StickStore>,
) -> Option<SelectedServer> {
    let rules = backend.choice.stick.iter().enumerate().filter(|(_, rule)| !rule.on_response);
    let mut laps = cost::laps(view.session, &backend.choice.stick);
    view.lend(|context| {
        let mut found = bound;
        for (at, rule) in rules {
            let taken = each(view.session, context, rule, stores, |table, key| {
                if rule.matches
                    && found.is_none()
                    && let Some(recalled) = recall(context, table, key)
                {
                    found = server_of(view.session, proxy, backend, table, recalled, order);
                }
            });
            cost::lap(&mut laps, at, taken);
        }
        found
    })
}

/// Evaluates a rule's key, passes it to `look`, and adds it to `stores` if the rule stores. Returns whether there is a key.
fn each(
    session: &Session,
    context: &Context<'_>,
    rule: &StickRule,
    stores: &mut Vec<StickStore>,
    mut look: impl FnMut(&Table, &TableKey<'_>),
) -> bool {
    // Only one rule per table is applied.
    if stores.iter().any(|store| store.table == rule.table) {
        return false;
    }
    let Some(table) = session.worker.process.live.tables.get(rule.table) else { return false };
    let Some(key) = rule.key(context, table) else { return false };
    look(table, &key);
    if rule.stores && stores.len() < MOST_STORES {
        stores.push(StickStore { table: rule.table, key: key.bytes().into() });
    }
    true
}

/// Returns the server of a stored entry, if it may be used.
fn server_of(
    session: &Session,
    proxy: &Proxy,
    backend: &Backend,
    table: &Table,
    recalled: Remembered,
    order: Option<PersistOrder>,
) -> Option<SelectedServer> {
    let mut servers = backend.servers.iter();
    let server = servers.find(|server| recalled.is(table, &known(session, server)))?;
    let bound = backend.choice.bound(server.index, order);
    (bound.forced || session.worker.proxy_state(proxy.index).is_usable(server.index)).then_some(bound)
}

fn known<'s>(session: &Session, server: &'s policy::program::Server) -> ServerRef<'s> {
    let address = session.worker.process.outgoing.address(server).inet();
    ServerRef { id: server.id, name: &server.name, address }
}

/// Stores the entries of request rules once the server of the stream is known.
#[inline]
pub fn remember(session: &Session, state: &StreamState) {
    if !state.route.stores.is_empty() {
        store(session, state, &state.route.stores);
    }
}

#[cold]
fn store(session: &Session, state: &StreamState, stores: &[StickStore]) {
    let backend = state.route.backend.and_then(|index| session.proxy_at(index).backend.as_ref());
    let server = backend.zip(state.route.server).and_then(|(backend, index)| backend.servers.get(index));
    let Some(server) = server.filter(|server| !server.non_stick) else { return };
    let known = known(session, server);
    stores.iter().for_each(|one| one.perform(&session.worker.process.live.tables, &known, rt::now()));
}

/// Applies the response rules, and stores their entries at once.
#[inline]
pub fn answer(session: &Session, state: &StreamState) {
    if backend_of(session, state).is_some_and(|backend| !backend.choice.stick.is_empty()) {
        note_answer(EvalContext::response(session, state, &state.response));
    }
}

/// Like [`answer`], in TCP mode: `data` are the bytes that the response rules have waited for, or none.
#[inline]
pub fn answer_bytes(session: &Session, state: &StreamState, data: &[u8]) {
    if backend_of(session, state).is_some_and(|backend| !backend.choice.stick.is_empty()) {
        let bytes = Bytes::new(data, true);
        note_answer(EvalContext { bytes, direction: Direction::Response, ..EvalContext::request(session, state) });
    }
}

fn backend_of<'s>(session: &'s Session, state: &StreamState) -> Option<&'s Backend> {
    session.proxy_at(state.route.backend?).backend.as_ref()
}

fn note_answer(view: EvalContext<'_>) {
    let EvalContext { session, state, .. } = view;
    let Some(backend) = backend_of(session, state) else { return };
    let mut stores = Vec::new();
    let rules = backend.choice.stick.iter().enumerate().filter(|(_, rule)| rule.on_response);
    let mut laps = cost::laps(session, &backend.choice.stick);
    view.lend(|context| {
        for (at, rule) in rules {
            let taken = each(session, context, rule, &mut stores, |_, _| {});
            cost::lap(&mut laps, at, taken);
        }
    });
    store(session, state, &stores);
}
