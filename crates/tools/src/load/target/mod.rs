//! What is asked for: a URL and what goes with it become a request that is whole. Must never send it.

mod request;
mod url;

pub use request::{Body, LARGEST_BODY, LARGEST_HEAD, Wording, check_field, check_method, read_body};
pub use url::{Resolve, Url, resolve};

use super::plan::Target;
use crate::Outcome;

/// One URL of the command line with the options that hold for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Where.
    pub url: Url,
    /// Its share.
    pub weight: u32,
    /// How it is asked.
    pub wording: Wording,
}

/// Makes it whole: its name becomes an address, its request bytes.
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
