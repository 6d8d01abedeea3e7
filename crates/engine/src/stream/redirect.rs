//! Answers that send a client to a server itself (`redir`, configuration manual, section 5.2). Must never decide which
//! server that is.

use policy::program::Server;
use wire::http::Head;

/// The answer that sends the client to `server`, as a page; `None`: its request or the server has no place for one.
pub fn page(server: &Server, request: &Head) -> Option<Vec<u8>> {
    let prefix = server.redirect.as_deref()?;
    let path = path(request.target())?;
    let mut page = Vec::with_capacity(128 + prefix.len() + path.len());
    page.extend_from_slice(b"HTTP/1.1 302 Found\r\ncache-control: no-cache\r\ncontent-length: 0\r\nlocation: ");
    page.extend_from_slice(prefix);
    // Of a target without a path the path is empty, and written as "/".
    page.extend_from_slice(if path.is_empty() { b"/" } else { path });
    page.extend_from_slice(b"\r\n\r\n");
    Some(page)
}

/// What of a target stands behind its authority: with "/" in front, or empty. `None`: it names no path.
pub fn path(target: &[u8]) -> Option<&[u8]> {
    wire::http::target::path(target).map(|at| &target[at..])
}
