//! Answers that send a client to a server itself (`redir`, configuration manual, section 5.2). Must never decide which
//! server that is.

use conn::h1::prepared;
use policy::program::Server;
use wire::http::Head;

/// The answer that sends the client to `server`, as a page; `None`: its request or the server has no place for one.
pub fn page(server: &Server, request: &Head) -> Option<Vec<u8>> {
    let prefix = server.redirect.as_deref()?;
    let path = path(request.target())?;
    Some(prepared::redirect(prefix, path))
}

/// What of a target stands behind its authority: with "/" in front, or empty. `None`: it names no path.
pub fn path(target: &[u8]) -> Option<&[u8]> {
    wire::http::target::path(target).map(|at| &target[at..])
}
