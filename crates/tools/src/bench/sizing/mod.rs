//! The sizing page: capacities of machines, computed from measurements on one. Must never mix the two: each figure
//! on the page is marked as measured, assumed, extrapolated or published.

mod costs;
mod drivers;
mod model;
mod page;
mod published;
#[cfg(test)]
mod tests;
mod wrap;

use super::results::Results;

/// Returns the page of these results, in Markdown. The same results give the same page, to the byte.
///
/// # Errors
///
/// None of the results has the cost of a keep-alive request, which all other figures depend on.
pub fn document(results: &[Results]) -> Result<String, String> {
    let costs = costs::gather(results);
    let subject = costs.iter().find(|costs| costs.proxy == "weir").or_else(|| costs.first());
    let Some(subject) = subject else {
        return Err("none of these results has the CPU of a keep-alive request: run the scenario size-sweep".to_owned());
    };
    Ok(page::write(results, &costs, subject))
}
