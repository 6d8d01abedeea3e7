//! Persistence cookies (configuration manual, section 4.2, `cookie`): parsed in requests and removed from them, added
//! to responses. Must never select a server or read a clock.

mod date;
mod dynamic;
mod freshness;
mod rdp;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod values;

pub use dynamic::value as dynamic_value;
pub use rdp::server as rdp_server;
pub use response::Answering;
pub use values::{CookieInputs, CookieValues};

use config::spec::{CookieMode, CookieSpec};
use config::text;

/// A compiled `cookie` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie {
    pub name: Box<[u8]>,
    /// The mode; `None`: the cookie is only read, never set.
    pub mode: Option<CookieMode>,
    /// `indirect`: removed from requests, and not sent again to clients that have it.
    pub indirect: bool,
    /// `nocache`: responses that set it are not cacheable.
    pub nocache: bool,
    /// `postonly`: only responses to POST requests set it.
    pub postonly: bool,
    /// `preserve`: a cookie set by the server is kept.
    pub preserve: bool,
    /// `dynamic`.
    pub dynamic: bool,
    /// `maxidle` in seconds.
    max_idle: Option<u64>,
    /// `maxlife` in seconds.
    max_life: Option<u64>,
    /// The attributes after its value: from the path on.
    tail: Box<[u8]>,
}

impl Cookie {
    /// Compiles a `cookie` line.
    pub fn new(spec: &CookieSpec) -> Self {
        let mut tail = b"; path=/".to_vec();
        for domain in &spec.domains {
            tail.extend_from_slice(b"; domain=");
            tail.extend_from_slice(&text::to_bytes(domain));
        }
        if spec.httponly {
            tail.extend_from_slice(b"; HttpOnly");
        }
        if spec.secure {
            tail.extend_from_slice(b"; Secure");
        }
        for attribute in &spec.attributes {
            tail.extend_from_slice(b"; ");
            tail.extend_from_slice(&text::to_bytes(attribute));
        }
        let seconds = |written: u32| Some(u64::from(written)).filter(|seconds| *seconds > 0);
        Self {
            name: text::to_bytes(&spec.name).into(),
            mode: spec.mode,
            indirect: spec.indirect,
            nocache: spec.nocache,
            postonly: spec.postonly,
            preserve: spec.preserve,
            dynamic: spec.dynamic,
            max_idle: seconds(spec.max_idle),
            max_life: seconds(spec.max_life),
            tail: tail.into(),
        }
    }

    /// Whether the log reports it (`%tsc`): not without a mode.
    pub fn is_told(&self) -> bool {
        self.mode.is_some() || self.indirect
    }

    /// Whether its values contain dates.
    fn is_dated(&self) -> bool {
        !matches!(self.mode, Some(CookieMode::Rewrite | CookieMode::Prefix))
    }
}

/// The persistence settings of a backend, besides its rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistencePlan {
    /// `cookie`.
    pub cookie: Option<Cookie>,
    /// The value of each server at the start of the process.
    pub values: CookieValues,
    /// `dynamic-cookie-key`.
    pub dynamic_key: Option<Box<[u8]>>,
    /// `persist rdp-cookie`.
    pub rdp_cookie: Option<Box<[u8]>>,
}

/// The state of the cookies in a request: the third letter of the termination state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestCookieState {
    /// No cookie.
    #[default]
    None,
    /// No server has its value.
    Invalid,
    /// Its server is down.
    Down,
    /// It selected a server.
    Valid,
    /// Idle for too long (`maxidle`).
    Expired,
    /// Too old (`maxlife`).
    Old,
    /// The server was selected otherwise.
    Unused,
}

impl RequestCookieState {
    pub const fn letter(self) -> u8 {
        match self {
            Self::None => b'N',
            Self::Invalid => b'I',
            Self::Down => b'D',
            Self::Valid => b'V',
            Self::Expired => b'E',
            Self::Old => b'O',
            Self::Unused => b'U',
        }
    }
}

/// The state of the cookie in a response: the fourth letter of the termination state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Returned {
    /// No cookie.
    #[default]
    None,
    /// Inserted.
    Inserted,
    /// Inserted with new dates.
    Updated,
    /// The server's, unchanged.
    Provided,
    /// The server's, with another value.
    Rewritten,
    /// The server's, deleted.
    Deleted,
}

impl Returned {
    pub const fn letter(self) -> u8 {
        match self {
            Self::None => b'N',
            Self::Inserted => b'I',
            Self::Updated => b'U',
            Self::Provided => b'P',
            Self::Rewritten => b'R',
            Self::Deleted => b'D',
        }
    }
}

/// Resolves cookie values to servers.
pub trait Lookup {
    /// Returns the server of a value. It may later turn out to be down.
    fn find(&self, value: &[u8]) -> CookieServer;

    /// Whether a found server can be used; called only if several cookies match servers.
    fn is_usable(&self, server: usize) -> bool;
}

/// The server of a cookie's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieServer {
    /// No server.
    Unknown,
    /// A server that is down.
    Down,
    /// This server; it is down, but must be used.
    Forced(usize),
    /// This server.
    Server(usize),
}

/// The persistence state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Persistence {
    /// The state of the cookies in the request.
    pub presented: RequestCookieState,
    /// The state of the cookie in the response.
    pub returned: Returned,
    /// The server selected by a cookie or a rule.
    pub server: Option<usize>,
    /// The server was selected by a cookie or a rule, not by load balancing.
    pub direct: bool,
    /// A rule disables persistence.
    pub ignored: bool,
    /// The client's last visit in seconds since 1970, by its cookie.
    last: Option<u64>,
    /// The client's first visit, likewise.
    first: Option<u64>,
}

impl Persistence {
    /// Records that a rule selected the server; cookies are ignored.
    pub fn overrule(&mut self, server: usize) {
        if matches!(self.presented, RequestCookieState::Valid | RequestCookieState::Down | RequestCookieState::Invalid)
        {
            self.presented = RequestCookieState::Unused;
        }
        (self.server, self.direct) = (Some(server), true);
    }

    /// Records the server of a stick table, if nothing else selected one.
    pub fn recall(&mut self, server: Option<usize>) {
        if server.is_some() {
            (self.server, self.direct) = (server, true);
        }
    }

    /// Records the server that gets the request.
    #[inline]
    pub fn meet(&mut self, server: Option<usize>) {
        if self.direct && self.server != server {
            self.leave_server();
        }
    }

    /// Records that the server is down or unreachable, and another one is selected.
    fn leave_server(&mut self) {
        (self.server, self.direct) = (None, false);
        if self.presented == RequestCookieState::Valid {
            self.presented = RequestCookieState::Down;
        }
    }
}
