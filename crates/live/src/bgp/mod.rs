//! BGP sessions as state machines, and the routes that they announce (RFC 4271). The caller passes bytes, points in time and
//! random numbers. Must never connect, listen, or learn a route.

mod backoff;
mod end;
mod link;
mod plan;
mod routes;
mod session;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub use end::End;
pub use plan::{Announcement, RoutePlan, SessionPlan};
pub use routes::Routes;
pub use session::{OUTPUT, Output, Session};
pub use state::State;
pub use status::{MessageCounts, SessionStatus};
pub use wire::bgp::{Family, HEADER, LONGEST, Notification, Prefix};
