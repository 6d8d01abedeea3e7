//! Persistence by cookies (configuration manual, section 4.2, `cookie`, `dynamic-cookie-key`, `persist`)
//! and the related options of `server` lines (section 5.2).

use crate::span::Spanned;

/// Persistence settings of a backend, other than rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistenceSpec {
    /// `cookie`.
    pub cookie: Option<Spanned<CookieSpec>>,
    /// `dynamic-cookie-key`.
    pub dynamic_key: Option<String>,
    /// `persist rdp-cookie`: the cookie's name.
    pub rdp_cookie: Option<String>,
}

/// `cookie`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CookieSpec {
    pub name: String,
    /// Origin of the cookie; `None`: cookies of clients are only read.
    pub mode: Option<CookieMode>,
    /// `indirect`.
    pub indirect: bool,
    /// `nocache`.
    pub nocache: bool,
    /// `postonly`.
    pub postonly: bool,
    /// `preserve`.
    pub preserve: bool,
    /// `httponly`.
    pub httponly: bool,
    /// `secure`.
    pub secure: bool,
    /// `domain`, in file order.
    pub domains: Vec<String>,
    /// `maxidle` in seconds; 0: none.
    pub max_idle: u32,
    /// `maxlife` in seconds; 0: none.
    pub max_life: u32,
    /// `dynamic`.
    pub dynamic: bool,
    /// `attr`, in file order.
    pub attributes: Vec<String>,
}

/// Origin of the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieMode {
    /// `rewrite`: set by the server; its value is replaced.
    Rewrite,
    /// `insert`: set by the proxy.
    Insert,
    /// `prefix`: set by the server; its value is prefixed.
    Prefix,
}

/// Persistence settings of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerPersistenceSpec {
    /// `cookie`: the value that selects this server.
    pub cookie: Option<String>,
    /// `non-stick`: stick tables do not store this server.
    pub non_stick: bool,
}
