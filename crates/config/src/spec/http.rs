//! HTTP options of proxies and of the process (configuration manual, sections 3.1 and 4) that are not
//! part of another module. Must never hold a message.

use super::{ErrorFileSpec, RuleLineSpec};
use crate::span::{Span, Spanned};
use std::net::IpAddr;

/// `option originalto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalToSpec {
    /// `except`: network and prefix length.
    pub except: Option<(IpAddr, u8)>,
    /// `header`: the field's name; default `x-original-to`.
    pub header: Option<String>,
}

/// `option forwarded`: the parameters of RFC 7239 that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForwardedSpec {
    pub proto: bool,
    pub host: bool,
    pub by: bool,
    pub by_port: bool,
    /// `for`.
    pub r#for: bool,
    pub for_port: bool,
}

/// A parameter of `option forwarded` that an expression can define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardedPart {
    Host,
    By,
    ByPort,
    For,
    ForPort,
}

impl ForwardedPart {
    /// Number of parameters.
    pub const COUNT: usize = 5;
}

/// `option forwarded … by-expr` and related arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardedExpressionSpec {
    pub part: ForwardedPart,
    /// The expression, as one word.
    pub line: RuleLineSpec,
}

/// `option http-restrict-req-hdr-names`: treatment of requests with header names that contain characters other than
/// letters, digits and dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestrictNames {
    /// The fields are kept.
    #[default]
    Preserve,
    /// The fields are removed.
    Delete,
    /// The request is rejected with 403.
    Reject,
}

/// HTTP options of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpSpec {
    /// `option originalto`.
    pub originalto: Option<OriginalToSpec>,
    /// `option forwarded`.
    pub forwarded: Option<ForwardedSpec>,
    /// Expressions of `option forwarded`, in file order.
    pub forwarded_expressions: Vec<ForwardedExpressionSpec>,
    /// `http-send-name-header`.
    pub send_name_header: Option<String>,
    /// `option http-restrict-req-hdr-names`.
    pub restrict_names: Option<RestrictNames>,
    /// `option http-buffer-request`.
    pub buffer_request: bool,
    /// `option http-drop-request-trailers`.
    pub drop_request_trailers: bool,
    /// `option http-drop-response-trailers`.
    pub drop_response_trailers: bool,
    /// `option http-ignore-probes`.
    pub ignore_probes: bool,
    /// `option http-no-delay`: no effect, since Weir never delays.
    pub no_delay: bool,
    /// `option accept-unsafe-violations-in-http-request`.
    pub accept_unsafe_request: bool,
    /// `option accept-unsafe-violations-in-http-response`.
    pub accept_unsafe_response: bool,
    /// `option http-use-proxy-header`.
    pub use_proxy_header: bool,
    /// `option checkcache`.
    pub check_cache: bool,
    /// `option http-pretend-keepalive`.
    pub pretend_keepalive: bool,
    /// `option disable-h2-upgrade`.
    pub disable_h2_upgrade: bool,
    /// `option h1-case-adjust-bogus-client`.
    pub adjust_case_client: bool,
    /// `option h1-case-adjust-bogus-server`.
    pub adjust_case_server: bool,
}

/// `http-errors`: pages that proxies refer to by name (section 12.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpErrorsSpec {
    /// Its first line.
    pub span: Span,
    pub name: String,
    /// `errorfile`, one per status.
    pub files: Vec<ErrorFileSpec>,
}

/// HTTP settings of the `global` section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GlobalHttpSpec {
    /// `http-err-codes`; `None`: 400 to 499.
    pub err_codes: Option<StatusCodes>,
    /// `http-fail-codes`; `None`: 500 to 599 except 501 and 505.
    pub fail_codes: Option<StatusCodes>,
    /// `h1-case-adjust` and the file of `h1-case-adjust-file`: names in lower case, and their spelling in messages.
    pub case_adjust: Vec<(String, String)>,
    /// `h1-case-adjust-file`: the last one.
    pub case_adjust_file: Option<Spanned<String>>,
    /// `h1-accept-payload-with-any-method`.
    pub accept_payload_with_any_method: bool,
    /// `h1-do-not-close-on-insecure-transfer-encoding`.
    pub keep_insecure_transfer_encoding: bool,
}

/// A set of status codes from 100 to 599.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusCodes {
    bits: [u64; 8],
}

impl StatusCodes {
    /// The lowest code of a set.
    pub const FIRST: u16 = 100;
    /// The highest code of a set.
    pub const LAST: u16 = 599;

    /// Returns the client errors by default, without `http-err-codes`.
    pub fn errors() -> Self {
        let mut codes = Self::default();
        codes.set(400, 499, true);
        codes
    }

    /// Returns the server failures by default, without `http-fail-codes`.
    pub fn failures() -> Self {
        let mut codes = Self::default();
        codes.set(500, 599, true);
        codes.set(501, 501, false);
        codes.set(505, 505, false);
        codes
    }

    /// Whether a status is in the set.
    #[inline]
    pub fn contains(&self, status: u16) -> bool {
        let Some(at) = status.checked_sub(Self::FIRST).map(usize::from) else { return false };
        self.bits.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    /// Adds or removes the codes from `low` to `high`; codes outside of the valid range are ignored.
    pub fn set(&mut self, low: u16, high: u16, inside: bool) {
        for status in low.max(Self::FIRST)..=high.min(Self::LAST) {
            let at = usize::from(status - Self::FIRST);
            let bit = 1 << (at % 64);
            if inside {
                self.bits[at / 64] |= bit;
            } else {
                self.bits[at / 64] &= !bit;
            }
        }
    }

    /// Returns the ranges of codes in the set, in ascending order.
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for status in (Self::FIRST..=Self::LAST).filter(|status| self.contains(*status)) {
            match ranges.last_mut() {
                Some(last) if last.1 + 1 == status => last.1 = status,
                _ => ranges.push((status, status)),
            }
        }
        ranges
    }
}

impl std::fmt::Debug for StatusCodes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (low, high)) in self.ranges().into_iter().enumerate() {
            write!(formatter, "{}{low}-{high}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_codes() {
        assert_eq!(format!("{:?}", StatusCodes::errors()), "400-499");
        assert_eq!(format!("{:?}", StatusCodes::failures()), "500-500,502-504,506-599");
        let mut codes = StatusCodes::errors();
        codes.set(450, 450, false);
        codes.set(500, 500, true);
        assert_eq!(codes.ranges(), [(400, 449), (451, 500)]);
        for (status, inside) in [(0, false), (99, false), (400, true), (450, false), (500, true), (611, false)] {
            assert_eq!(codes.contains(status), inside, "{status}");
        }
        codes.set(0, u16::MAX, true);
        assert_eq!(codes.ranges(), [(100, 599)]);
        assert!(!codes.contains(600) && !codes.contains(u16::MAX));
    }
}
