//! Cookies that keep clients on their servers (configuration manual, section 4.2, `cookie`): what requests bring is read
//! and taken out, what answers need is put in. Must never choose a server or read a clock.

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
pub use values::{CookieValues, Placed};

use config::spec::{CookieMode, CookieSpec};
use config::text;

/// `cookie`, ready to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie {
    /// Its name.
    pub name: Box<[u8]>,
    /// What sets it; `None`: it is not set, only what clients send is read.
    pub mode: Option<CookieMode>,
    /// Servers do not see it, and clients that have it do not get it again.
    pub indirect: bool,
    /// Answers that set it are not cached.
    pub nocache: bool,
    /// Only answers to POST requests set it.
    pub postonly: bool,
    /// What a server sets itself stays.
    pub preserve: bool,
    /// `dynamic`.
    pub dynamic: bool,
    /// `maxidle`, seconds.
    max_idle: Option<u64>,
    /// `maxlife`, seconds.
    max_life: Option<u64>,
    /// What stands behind its value: from the path on.
    tail: Box<[u8]>,
}

impl Cookie {
    /// What a configuration asks for.
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

    /// Whether the log tells of it (`%tsc`): not where it has no mode.
    pub fn is_told(&self) -> bool {
        self.mode.is_some() || self.indirect
    }

    /// Whether its values carry dates.
    fn is_dated(&self) -> bool {
        !matches!(self.mode, Some(CookieMode::Rewrite | CookieMode::Prefix))
    }
}

/// What a backend says about persistence beside its rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistencePlan {
    /// `cookie`.
    pub cookie: Option<Cookie>,
    /// The value of each server, as the process starts.
    pub values: CookieValues,
    /// `dynamic-cookie-key`.
    pub dynamic_key: Option<Box<[u8]>>,
    /// `persist rdp-cookie`.
    pub rdp_cookie: Option<Box<[u8]>>,
}

/// What became of the cookies that a client brought: the third letter of the termination state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presented {
    /// There was none.
    #[default]
    None,
    /// It leads to no server.
    Invalid,
    /// Its server is down.
    Down,
    /// It leads to a server.
    Valid,
    /// It was not used for too long.
    Expired,
    /// It is too old.
    Old,
    /// Something else chooses the server.
    Unused,
}

impl Presented {
    /// The letter.
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

/// What became of the cookie of an answer: the fourth letter of the termination state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Returned {
    /// There is none.
    #[default]
    None,
    /// It was put in.
    Inserted,
    /// It was put in with new dates.
    Updated,
    /// The server's is left as it is.
    Provided,
    /// The server's has another value now.
    Rewritten,
    /// The server's is gone.
    Deleted,
}

impl Returned {
    /// The letter.
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

/// Who knows where values lead.
pub trait Lookup {
    /// Where one leads. A server may turn out to be down when its place is asked for.
    fn find(&self, value: &[u8]) -> Found;

    /// Whether a server that was found gets the request; asked only where several cookies lead to servers.
    fn is_usable(&self, server: usize) -> bool;
}

/// Where a cookie's value leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nowhere.
    Unknown,
    /// To a server that gets nothing.
    Down,
    /// To this server; it is down, and gets the request all the same.
    Forced(usize),
    /// To this server.
    Server(usize),
}

/// What is known of a request's persistence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Persistence {
    /// What its client brought.
    pub presented: Presented,
    /// What became of the answer's cookie.
    pub returned: Returned,
    /// The server that a cookie leads to, or a rule.
    pub server: Option<usize>,
    /// Something beside the balance has chosen the server: a cookie or a rule.
    pub direct: bool,
    /// A rule wants persistence left alone.
    pub ignored: bool,
    /// When its client was last seen, in seconds since 1970, by its cookie.
    last: Option<u64>,
    /// When its client was first seen.
    first: Option<u64>,
}

impl Persistence {
    /// A rule has chosen the server; no cookie counts.
    pub fn overrule(&mut self, server: usize) {
        if matches!(self.presented, Presented::Valid | Presented::Down | Presented::Invalid) {
            self.presented = Presented::Unused;
        }
        (self.server, self.direct) = (Some(server), true);
    }

    /// A stick table has chosen the server, where nothing else had.
    pub fn recall(&mut self, server: Option<usize>) {
        if server.is_some() {
            (self.server, self.direct) = (server, true);
        }
    }

    /// This server gets the request.
    #[inline]
    pub fn meet(&mut self, server: Option<usize>) {
        if self.direct && self.server != server {
            self.leave_server();
        }
    }

    /// The server is down or could not be reached, and another one is chosen.
    fn leave_server(&mut self) {
        (self.server, self.direct) = (None, false);
        if self.presented == Presented::Valid {
            self.presented = Presented::Down;
        }
    }
}
