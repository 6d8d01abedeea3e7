//! Error pages as answers within a session. Must never decide which error it is.

use policy::program::Proxy;
use wire::h1::{self, ConnectionLine, Edits, Limits, Parse, RequestContext, Scan};
use wire::http::{Framing, Head, Method, Version};

/// The whole answer with that status to a request that was understood: head and body of the proxy's page, with the
/// connection lines that this client needs. Empty where the page is: the connection then just ends.
pub fn answer(proxy: &Proxy, request: &Head, status: u16, keep: bool) -> Vec<u8> {
    let page = proxy.errors.page(status);
    compose(page, request, keep).unwrap_or_else(|| page.to_vec())
}

/// `None`: the page is no HTTP answer, so it can only be sent as it is.
fn compose(page: &[u8], request: &Head, keep: bool) -> Option<Vec<u8>> {
    let limits = Limits { max_head: page.len(), ..Limits::default() };
    let mut head = Head::new();
    let parsed = h1::parse_response(page, &limits, &RequestContext::default(), &mut Scan::default(), &mut head);
    let Ok(Parse::Complete { consumed }) = parsed else { return None };
    let body = &page[consumed..];
    let connection = match (keep, request.version()) {
        (true, Version::Http11) => ConnectionLine::Nothing,
        (true, Version::Http10) => ConnectionLine::KeepAlive,
        (false, _) => ConnectionLine::Close,
    };
    let framing = Framing::Length(body.len() as u64);
    let mut out = rt::large_buffer();
    h1::encode_response(&head, &Edits { connection, framing, version: Version::Http11 }, &mut out).ok()?;
    let mut answer = out.data().to_vec();
    if request.known_method() != Method::Head {
        answer.extend_from_slice(body);
    }
    Some(answer)
}
