//! Targets: turns a URL and its options into a complete request. Must never send it.

mod request;
mod url;

pub use request::{Body, LARGEST_BODY, LARGEST_HEAD, Wording, check_field, check_method, read_body};
pub use url::{Resolve, Url, resolve};

use super::plan::Target;
use crate::Outcome;

/// One URL of the command line with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    pub url: Url,
    pub weight: u32,
    /// Method, fields and body.
    pub wording: Wording,
}

/// Builds a target: resolves the name, and builds the request.
///
/// # Errors
/// The name has no address, or the head is too large.
pub fn prepare(wanted: &Wanted, resolve: Resolve<'_>) -> Result<Target, Outcome> {
    let Wanted { url, weight, wording } = wanted;
    let cannot = |error| Outcome::Failed(format!("{}: cannot resolve '{}': {error}", url.written, url.host));
    Ok(Target {
        address: resolve(&url.host, url.port).map_err(cannot)?,
        url: url.written.clone(),
        secure: url.secure.then(|| url.host.clone()),
        weight: *weight,
        request: wording.request(url, false)?,
        last_request: wording.request(url, true)?,
        head_only: wording.method == "HEAD",
    })
}
