//! What keeps a client on its server: cookies (configuration manual, section 4.2, `cookie`, `dynamic-cookie-key`, `persist`)
//! and the options of `server` lines about them (section 5.2).

use crate::span::Spanned;

/// What a backend says about persistence beside its rules.
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
    /// Its name.
    pub name: String,
    /// Who sets it; `None`: only what clients bring is looked at.
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
    /// `domain`, in order.
    pub domains: Vec<String>,
    /// `maxidle` in seconds; 0: none.
    pub max_idle: u32,
    /// `maxlife` in seconds; 0: none.
    pub max_life: u32,
    /// `dynamic`.
    pub dynamic: bool,
    /// `attr`, in order.
    pub attributes: Vec<String>,
}

/// Who sets the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieMode {
    /// `rewrite`: the server; its value is replaced.
    Rewrite,
    /// `insert`: the proxy.
    Insert,
    /// `prefix`: the server; its value gets a prefix.
    Prefix,
}

/// What a `server` line says about persistence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerPersistenceSpec {
    /// `cookie`: the value that leads to this server.
    pub cookie: Option<String>,
    /// `non-stick`: no stick table remembers it.
    pub non_stick: bool,
}
