//! The ACL keywords that combine a fetch with a matching method, and the predefined ACLs (configuration manual,
//! sections 7.3 and 7.4).

use crate::pattern::Method;

/// An ACL keyword that combines a fetch with a matching method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shorthand {
    /// The keyword, such as `hdr_beg`.
    pub name: &'static str,
    /// The fetch, such as `req.hdr`.
    pub fetch: &'static str,
    /// The matching method.
    pub method: Method,
}

impl Shorthand {
    /// Whether the keyword's method has no effect, because `-m` names another one or because converters follow. HAProxy
    /// does not report this for keywords named like their fetch, except two of them.
    pub(super) fn is_overwritten(&self, explicit: Option<Method>, is_used: bool) -> bool {
        let is_asked_for = match self.method {
            Method::Str => matches!(self.name, "method" | "http_auth_group"),
            Method::Int | Method::Dotted | Method::Bin => false,
            _ => true,
        };
        match explicit {
            Some(explicit) => is_asked_for && (explicit != self.method || self.method == Method::Str),
            None => is_asked_for && !is_used,
        }
    }
}

const fn row(name: &'static str, fetch: &'static str, method: Method) -> Shorthand {
    Shorthand { name, fetch, method }
}

#[rustfmt::skip]
const SHORTHANDS: &[Shorthand] = &[
    row("base", "base", Method::Str),
    row("base_beg", "base", Method::Beg),
    row("base_dir", "base", Method::Dir),
    row("base_dom", "base", Method::Dom),
    row("base_end", "base", Method::End),
    row("base_len", "base", Method::Len),
    row("base_reg", "base", Method::Reg),
    row("base_sub", "base", Method::Sub),
    row("cook", "req.cook", Method::Str),
    row("cook_beg", "req.cook", Method::Beg),
    row("cook_dir", "req.cook", Method::Dir),
    row("cook_dom", "req.cook", Method::Dom),
    row("cook_end", "req.cook", Method::End),
    row("cook_len", "req.cook", Method::Len),
    row("cook_reg", "req.cook", Method::Reg),
    row("cook_sub", "req.cook", Method::Sub),
    row("hdr", "req.hdr", Method::Str),
    row("hdr_beg", "req.hdr", Method::Beg),
    row("hdr_dir", "req.hdr", Method::Dir),
    row("hdr_dom", "req.hdr", Method::Dom),
    row("hdr_end", "req.hdr", Method::End),
    row("hdr_len", "req.hdr", Method::Len),
    row("hdr_reg", "req.hdr", Method::Reg),
    row("hdr_sub", "req.hdr", Method::Sub),
    row("http_auth_group", "http_auth_group", Method::Str),
    row("method", "method", Method::Str),
    row("path", "path", Method::Str),
    row("path_beg", "path", Method::Beg),
    row("path_dir", "path", Method::Dir),
    row("path_dom", "path", Method::Dom),
    row("path_end", "path", Method::End),
    row("path_len", "path", Method::Len),
    row("path_reg", "path", Method::Reg),
    row("path_sub", "path", Method::Sub),
    row("payload", "req.payload", Method::Bin),
    row("payload_lv", "req.payload_lv", Method::Bin),
    row("req.ssl_ver", "req.ssl_ver", Method::Dotted),
    row("req_rdp_cookie", "req.rdp_cookie", Method::Str),
    row("req_rdp_cookie_cnt", "req.rdp_cookie_cnt", Method::Int),
    row("req_ssl_sni", "req.ssl_sni", Method::Str),
    row("req_ssl_ver", "req.ssl_ver", Method::Dotted),
    row("req_ver", "req.ver", Method::Str),
    row("resp_ver", "res.ver", Method::Str),
    row("scook", "res.cook", Method::Str),
    row("scook_beg", "res.cook", Method::Beg),
    row("scook_dir", "res.cook", Method::Dir),
    row("scook_dom", "res.cook", Method::Dom),
    row("scook_end", "res.cook", Method::End),
    row("scook_len", "res.cook", Method::Len),
    row("scook_reg", "res.cook", Method::Reg),
    row("scook_sub", "res.cook", Method::Sub),
    row("shdr", "res.hdr", Method::Str),
    row("shdr_beg", "res.hdr", Method::Beg),
    row("shdr_dir", "res.hdr", Method::Dir),
    row("shdr_dom", "res.hdr", Method::Dom),
    row("shdr_end", "res.hdr", Method::End),
    row("shdr_len", "res.hdr", Method::Len),
    row("shdr_reg", "res.hdr", Method::Reg),
    row("shdr_sub", "res.hdr", Method::Sub),
    row("ssl_fc_sni_end", "ssl_fc_sni", Method::End),
    row("ssl_fc_sni_reg", "ssl_fc_sni", Method::Reg),
    row("url", "url", Method::Str),
    row("url_beg", "url", Method::Beg),
    row("url_dir", "url", Method::Dir),
    row("url_dom", "url", Method::Dom),
    row("url_end", "url", Method::End),
    row("url_len", "url", Method::Len),
    row("url_reg", "url", Method::Reg),
    row("url_sub", "url", Method::Sub),
    row("urlp", "urlp", Method::Str),
    row("urlp_beg", "urlp", Method::Beg),
    row("urlp_dir", "urlp", Method::Dir),
    row("urlp_dom", "urlp", Method::Dom),
    row("urlp_end", "urlp", Method::End),
    row("urlp_len", "urlp", Method::Len),
    row("urlp_reg", "urlp", Method::Reg),
    row("urlp_sub", "urlp", Method::Sub),
];

/// Returns all shorthands.
pub fn shorthands() -> &'static [Shorthand] {
    SHORTHANDS
}

/// Returns the shorthand of that name.
pub(super) fn find(name: &str) -> Option<&'static Shorthand> {
    SHORTHANDS.iter().find(|row| row.name == name)
}

/// The predefined ACLs: their names and the equivalent tests.
pub const PREDEFINED: &[(&str, &[&str])] = &[
    ("FALSE", &["always_false"]),
    ("HTTP", &["req.proto_http"]),
    ("HTTP_1.0", &["req.ver", "1.0"]),
    ("HTTP_1.1", &["req.ver", "1.1"]),
    ("HTTP_2.0", &["req.ver", "2.0"]),
    ("HTTP_3.0", &["req.ver", "3.0"]),
    ("HTTP_CONTENT", &["req.hdr_val(content-length)", "gt", "0"]),
    ("HTTP_URL_ABS", &["url_reg", "^[^/:]*://"]),
    ("HTTP_URL_SLASH", &["url_beg", "/"]),
    ("HTTP_URL_STAR", &["url", "*"]),
    ("LOCALHOST", &["src", "127.0.0.1/8", "::1"]),
    ("METH_CONNECT", &["method", "CONNECT"]),
    ("METH_DELETE", &["method", "DELETE"]),
    ("METH_GET", &["method", "GET", "HEAD"]),
    ("METH_HEAD", &["method", "HEAD"]),
    ("METH_OPTIONS", &["method", "OPTIONS"]),
    ("METH_POST", &["method", "POST"]),
    ("METH_PUT", &["method", "PUT"]),
    ("METH_TRACE", &["method", "TRACE"]),
    ("RDP_COOKIE", &["req.rdp_cookie_cnt", "gt", "0"]),
    ("REQ_CONTENT", &["req.len", "gt", "0"]),
    ("TRUE", &["always_true"]),
    ("WAIT_END", &["wait_end"]),
];
