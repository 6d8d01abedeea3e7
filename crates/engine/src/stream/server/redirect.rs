//! Redirects to a server (`redir`, configuration manual, section 5.2). Must never choose the server.

use conn::h1::prepared_answer;
use policy::program::Server;
use wire::http::Head;

/// Returns the redirect response to `server`; `None`: the request or the server has no location for one.
pub fn page(server: &Server, request: &Head) -> Option<Vec<u8>> {
    let prefix = server.redirect.as_deref()?;
    let path = path(request.target())?;
    Some(prepared_answer::redirect(prefix, path))
}

/// Returns the path of a target: starting with "/", or empty. `None`: it has no path.
pub fn path(target: &[u8]) -> Option<&[u8]> {
    wire::http::target::path(target).map(|at| &target[at..])
}
