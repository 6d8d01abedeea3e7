//! The persistence cookies of a request: each is evaluated, prefixes are cut off, and hidden cookies are removed. Must
//! never modify another cookie, except for blanks around its equal sign.

use super::{Cookie, CookieServer, Lookup, Persistence, RequestCookieState, date};
use config::spec::CookieMode;
use wire::http::{Fields, Head};

/// Dates further in the future are invalid, in seconds.
const FUTURE: u64 = 86_400;

const FIELD: &[u8] = b"cookie";

/// The offsets of a cookie in a field's value: its start, the end of its name, its value, and the next delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) start: usize,
    pub(super) name_end: usize,
    pub(super) value: usize,
    pub(super) value_end: usize,
    /// The value's end, or the delimiter after it.
    pub(super) end: usize,
    /// It has an equal sign.
    pub(super) is_pair: bool,
}

impl Pair {
    /// Parses the cookie at `at` or after blanks there. Semicolons and commas end it, but not within double quotes of
    /// its value.
    pub(super) fn at(list: &[u8], at: usize) -> Self {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = at + list[at..].iter().take_while(|byte| blank(byte)).count();
        let is_end = |byte: &u8| matches!(byte, b';' | b',');
        let stop = list[start..].iter().position(|byte| *byte == b'=' || is_end(byte));
        let stop = stop.map_or(list.len(), |place| start + place);
        let trimmed = |from: usize, to: usize| to - list[from..to].iter().rev().take_while(|byte| blank(byte)).count();
        let name_end = trimmed(start, stop);
        if list.get(stop) != Some(&b'=') {
            return Self { start, name_end, value: stop, value_end: stop, end: stop, is_pair: false };
        }
        let value = stop + 1 + list[stop + 1..].iter().take_while(|byte| blank(byte)).count();
        let (mut quoted, mut escaped) = (false, false);
        let end = list[value..].iter().position(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => return !quoted && is_end(byte),
            }
            false
        });
        let end = end.map_or(list.len(), |place| value + place);
        Self { start, name_end, value, value_end: trimmed(value, end), end, is_pair: true }
    }

    /// Removes blanks around the equal sign from the field.
    pub(super) fn close_up(&mut self, fields: &mut Fields, index: usize) {
        let surplus = self.value.saturating_sub(self.name_end + 1);
        if self.is_pair && surplus > 0 {
            fields.splice_value(index, self.name_end..self.value, b"=");
            (self.value, self.value_end, self.end) =
                (self.value - surplus, self.value_end - surplus, self.end - surplus);
        }
    }
}

impl Cookie {
    /// Evaluates the cookies of a request; `now` is in seconds since 1970. `lookup` resolves values to servers.
    pub fn read(&self, head: &mut Head, now: u64, ignored: bool, lookup: &dyn Lookup) -> Persistence {
        let mut state = Persistence { ignored, ..Persistence::default() };
        let mut index = 0;
        while index < head.fields.len() {
            if head.fields.value_if(index, FIELD).is_some() && self.read_field(head, index, &mut state, now, lookup) {
                head.fields.remove(index);
            } else {
                index += 1;
            }
        }
        state
    }

    /// Evaluates one field. True: nothing of it remains.
    fn read_field(
        &self,
        head: &mut Head,
        index: usize,
        state: &mut Persistence,
        now: u64,
        lookup: &dyn Lookup,
    ) -> bool {
        let hides = self.indirect && self.mode == Some(CookieMode::Insert);
        let fields = &mut head.fields;
        // The delimiter before the current cookie; 0: none.
        let (mut before, mut at) = (0, 0);
        let mut hidden: Option<usize> = None;
        let (mut keeps, mut hid) = (false, false);
        loop {
            let list = fields.value_if(index, FIELD).unwrap_or_default();
            let mut pair = Pair::at(list, at);
            pair.close_up(fields, index);
            let list = fields.value_if(index, FIELD).unwrap_or_default();
            let name = &list[pair.start..pair.name_end];
            if pair.is_pair && name == &*self.name {
                let value = &list[pair.value..pair.value_end];
                let prefix = self.judge(value, state, now, lookup);
                if hides {
                    hidden.get_or_insert(before);
                    hid = true;
                } else {
                    fields.splice_value(index, pair.value..pair.value + prefix, b"");
                    pair.end -= prefix;
                    keeps = true;
                }
            } else if !pair.is_pair || !name.starts_with(b"$") {
                keeps = true;
                if let Some(from) = hidden.take() {
                    pair.end -= cut(fields, index, from, before);
                }
            }
            (before, at) = (pair.end, pair.end + 1);
            if at > fields.value_if(index, FIELD).map_or(0, <[u8]>::len) {
                break;
            }
        }
        match hidden {
            Some(_) if !keeps => return true,
            Some(from) => cut_tail(fields, index, from),
            None => {}
        }
        // A field of delimiters only is removed.
        hid && fields.value_if(index, FIELD).is_some_and(|left| left.trim_ascii().is_empty())
    }

    /// Evaluates one value. Returns the length of the prefix to be cut off.
    fn judge(&self, value: &[u8], state: &mut Persistence, now: u64, lookup: &dyn Lookup) -> usize {
        let (mut id, mut prefix) = (value, 0);
        if self.is_dated()
            && let Some(end) = value.iter().position(|byte| *byte == b'|')
        {
            id = &value[..end];
            if let Some(late) = self.read_dates(&value[end + 1..], state, now) {
                state.presented = late;
                return 0;
            }
        } else if self.mode == Some(CookieMode::Prefix) {
            if let Some(end) = value.iter().position(|byte| *byte == b'~') {
                (id, prefix) = (&value[..end], end + 1);
            }
        } else {
            // Another proxy may have added a date.
            id = value.split(|byte| *byte == b'|').next().unwrap_or_default();
        }
        match state.server {
            Some(server) if lookup.is_usable(server) => return prefix,
            // The server found before is no better than the one of this cookie.
            Some(_) => state.leave_server(),
            None => {}
        }
        if state.ignored {
            state.presented = RequestCookieState::Unused;
            return prefix;
        }
        match lookup.find(id) {
            CookieServer::Server(server) => {
                (state.presented, state.server, state.direct) = (RequestCookieState::Valid, Some(server), true);
            }
            CookieServer::Forced(server) => {
                (state.presented, state.server, state.direct) = (RequestCookieState::Down, Some(server), true);
            }
            CookieServer::Down if matches!(state.presented, RequestCookieState::None | RequestCookieState::Invalid) => {
                state.presented = RequestCookieState::Down;
            }
            CookieServer::Unknown if state.presented == RequestCookieState::None => {
                state.presented = RequestCookieState::Invalid
            }
            CookieServer::Down | CookieServer::Unknown => {}
        }
        prefix
    }

    /// Parses the dates after a value. Returns the state of an expired cookie, whose dates are ignored.
    fn read_dates(&self, dates: &[u8], state: &mut Persistence, now: u64) -> Option<RequestCookieState> {
        state.last = date::decode(dates);
        let first = dates.iter().position(|byte| *byte == b'|');
        state.first = first.and_then(|place| date::decode(&dates[place + 1..]));
        let is_over = |date: Option<u64>, limit: Option<u64>| match (date, limit) {
            (Some(date), Some(limit)) => now.saturating_sub(date) > limit || date.saturating_sub(now) > FUTURE,
            _ => false,
        };
        let late = match () {
            () if is_over(state.first, self.max_life) => RequestCookieState::Old,
            () if is_over(state.last, self.max_idle) => RequestCookieState::Expired,
            () => return None,
        };
        (state.last, state.first) = (None, None);
        Some(late)
    }
}

/// Removes the text between two delimiters: the one at `from` (0: the start) and the one at `to`. Returns the number of
/// bytes removed.
fn cut(fields: &mut Fields, index: usize, from: usize, to: usize) -> usize {
    let list = fields.value_if(index, FIELD).unwrap_or_default();
    let length = list.len();
    let rest = to + 1 + list[to + 1..].iter().take_while(|byte| **byte == b' ').count();
    if from == 0 {
        fields.splice_value(index, 0..rest, b"");
    } else {
        let delimiter = list[from];
        let start = from - list[..from].iter().rev().take_while(|byte| **byte == b' ').count();
        fields.splice_value(index, start..rest, &[delimiter, b' ']);
    }
    length - fields.value_if(index, FIELD).map_or(0, <[u8]>::len)
}

/// Removes the delimiter at `from` and all text after it.
fn cut_tail(fields: &mut Fields, index: usize, from: usize) {
    let list = fields.value_if(index, FIELD).unwrap_or_default();
    let start = from - list[..from].iter().rev().take_while(|byte| **byte == b' ').count();
    let length = list.len();
    fields.splice_value(index, start..length, b"");
}
