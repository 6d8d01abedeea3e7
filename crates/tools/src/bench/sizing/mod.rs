//! The sizing page: what machines would carry, computed from what was measured on one. Must never mix the two: each figure
//! on the page is marked as measured, assumed, extrapolated or published.

mod costs;
mod model;
mod page;
mod published;
#[cfg(test)]
mod tests;

use super::results::Results;

/// The page of these results, Markdown. The same results give the same page, to the byte.
///
/// # Errors
///
/// When none of them has the cost of a keep-alive request, from which everything else starts.
pub fn document(results: &[Results]) -> Result<String, String> {
    let costs = costs::gather(results);
    let subject = costs.iter().find(|costs| costs.proxy == "weir").or_else(|| costs.first());
    let Some(subject) = subject else {
        return Err("none of these results has the CPU of a keep-alive request: run the scenario size-sweep".to_owned());
    };
    Ok(page::write(results, &costs, subject))
}
