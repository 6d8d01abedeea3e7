//! The persistence cookie of a response: the server's is rewritten, deleted or kept, and one is inserted if the client
//! needs it. Must never modify a response if persistence is ignored.

use super::request::Pair;
use super::{Cookie, Persistence, Returned, date, freshness};
use config::spec::CookieMode;
use wire::http::{Head, Method};

const FIELD: &[u8] = b"set-cookie";

/// Deletes a client's cookie.
const FORGET: &[u8] = b"=; Expires=Thu, 01-Jan-1970 00:00:01 GMT";

/// The inputs of a response's cookie, besides the state of its request.
#[derive(Debug, Clone, Copy)]
pub struct Answering<'a> {
    /// The value of the server that responds; `None`: it has none.
    pub value: Option<&'a [u8]>,
    /// The request's method.
    pub method: Method,
    /// Seconds since 1970.
    pub now: u64,
}

impl Cookie {
    /// Applies the configured mode to a response head.
    pub fn answer(&self, head: &mut Head, state: &mut Persistence, answering: &Answering<'_>) {
        if state.ignored {
            return;
        }
        let provided = self.meet_server(head, state, answering.value);
        let now = answering.now;
        let is_stale = (self.max_idle.is_some() || state.last.is_some())
            && state.last.is_none_or(|last| last < now - now % date::STEP);
        let lacks_first = self.max_life.is_some() != state.first.is_some();
        let wants = !state.direct || is_stale || lacks_first;
        let may = !self.postonly || answering.method == Method::Post;
        if self.mode == Some(CookieMode::Insert) && wants && may && !(provided && self.preserve) {
            let is_fresh = self.nocache && freshness::is_cacheable(head, answering.method);
            self.insert(head, state, answering);
            if is_fresh {
                head.append(b"cache-control", b"private");
            }
        }
    }

    /// Processes a cookie set by the server. Returns whether the server set it.
    fn meet_server(&self, head: &mut Head, state: &mut Persistence, value: Option<&[u8]>) -> bool {
        let fields = &mut head.fields;
        let (mut index, mut provided) = (0, false);
        while index < fields.len() {
            let Some(list) = fields.value_if(index, FIELD) else {
                index += 1;
                continue;
            };
            let mut pair = Pair::at(list, 0);
            let is_ours = pair.is_pair && list[pair.start..pair.name_end] == *self.name;
            pair.close_up(fields, index);
            if !is_ours {
                index += 1;
                continue;
            }
            provided = true;
            let hides = self.mode == Some(CookieMode::Insert) || (self.indirect && state.direct);
            state.returned = match (self.mode, value) {
                _ if self.preserve => Returned::Provided,
                _ if hides => {
                    fields.remove(index);
                    state.returned = Returned::Deleted;
                    continue;
                }
                (Some(CookieMode::Rewrite), Some(value)) => {
                    fields.splice_value(index, pair.value..pair.value_end, value);
                    Returned::Rewritten
                }
                (Some(CookieMode::Prefix), Some(value)) => {
                    fields.splice_value(index, pair.value..pair.value, b"~");
                    fields.splice_value(index, pair.value..pair.value, value);
                    Returned::Rewritten
                }
                _ => Returned::Provided,
            };
            index += 1;
        }
        provided
    }

    fn insert(&self, head: &mut Head, state: &mut Persistence, answering: &Answering<'_>) {
        let Answering { value, now, .. } = *answering;
        let today = date::encode(now);
        let first = state.first.map_or(today, date::encode);
        let fields = &mut head.fields;
        match (value, self.max_idle.or(self.max_life), self.max_life) {
            (None, ..) => fields.append_parts(FIELD, &[&self.name, FORGET, &self.tail]),
            (Some(value), None, _) => fields.append_parts(FIELD, &[&self.name, b"=", value, &self.tail]),
            (Some(value), Some(_), None) => {
                fields.append_parts(FIELD, &[&self.name, b"=", value, b"|", &today, &self.tail]);
            }
            (Some(value), Some(_), Some(_)) => {
                fields.append_parts(FIELD, &[&self.name, b"=", value, b"|", &today, b"|", &first, &self.tail]);
            }
        }
        state.returned = if state.direct { Returned::Updated } else { Returned::Inserted };
    }
}
