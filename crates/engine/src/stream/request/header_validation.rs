//! Checks of a request before it is forwarded: the names of its fields (`option http-restrict-req-hdr-names`), and whether its
//! body has to be received first (`option http-buffer-request`). Must never add a field.

use config::spec::RestrictNames;
use policy::program::{Backend, Proxy};
use wire::http::Head;

use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Checks the names of a request's fields for one proxy. `before`: the proxy that has already checked them.
///
/// # Errors
/// The request is rejected.
#[inline]
pub fn screen(state: &SharedStreamState, proxy: &Proxy, before: Option<&Proxy>) -> Result<(), Failure> {
    let rule = proxy.http.restrict_names;
    if rule == RestrictNames::Preserve || before.is_some_and(|before| before.index == proxy.index) {
        return Ok(());
    }
    let state = &mut *state.borrow_mut();
    if restrict_names(rule, &mut state.request) {
        return Ok(());
    }
    state.rules.denied = true;
    Err(Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status: 403, page: true })
}

/// Whether a proxy has to wait for the body of a request. `before`: the proxy that may already have waited for it.
#[inline]
pub fn awaits_body(state: &SharedStreamState, proxy: &Proxy, before: Option<&Proxy>) -> bool {
    let request = &state.borrow().request;
    request.framing.has_body()
        && (proxy.http.buffer_request || balances_by_body(proxy, request))
        && !before.is_some_and(|before| before.index == proxy.index || before.http.buffer_request)
}

/// Whether the load balancing key may be in the request's body (`balance url_param … check_post`).
fn balances_by_body(proxy: &Proxy, request: &Head) -> bool {
    proxy.backend.as_ref().is_some_and(Backend::checks_post) && request.method() == b"POST"
}

/// Applies the rule to the names. Returns false if the request must be rejected.
fn restrict_names(rule: RestrictNames, request: &mut Head) -> bool {
    let is_plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    match rule {
        RestrictNames::Preserve => true,
        RestrictNames::Reject => request.fields().all(|(name, _)| is_plain(name)),
        RestrictNames::Delete => {
            request.fields.retain(|name, _| is_plain(name));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_of_letters_digits_and_dashes() {
        let head = || {
            let mut head = Head::new();
            for name in [&b"x_a"[..], b"x-b1", b"x.c", b"host"] {
                head.append(name, b"1");
            }
            head
        };
        let mut plain = Head::new();
        plain.append(b"x-b1", b"1");
        let mut request = head();
        assert!(restrict_names(RestrictNames::Preserve, &mut request) && request.field_count() == 4);
        assert!(!restrict_names(RestrictNames::Reject, &mut request));
        assert!(restrict_names(RestrictNames::Reject, &mut plain));
        assert!(restrict_names(RestrictNames::Delete, &mut request));
        let left: Vec<&[u8]> = request.fields().map(|(name, _)| name).collect();
        assert_eq!(left, [&b"x-b1"[..], b"host"]);
    }
}
