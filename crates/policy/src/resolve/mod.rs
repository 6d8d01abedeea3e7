//! Applies DNS responses to servers: the selected address, the assignment of SRV targets, and how long results remain
//! valid (configuration manual, section 5.3). Must never query a name server.

mod addresses;
mod services;

pub use addresses::Addresses;
pub use services::{Move, Services, SrvTarget};

use crate::program::Hold;
use base::moment::Moment;
use wire::dns::{Fault, ResponseCode};

/// Why a resolution failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The name does not exist.
    NoSuchName,
    /// The name servers refused the query.
    Refused,
    /// No response within the timeout.
    Timeout,
    /// Anything else.
    Other,
}

impl Failure {
    /// Returns the failure for an unusable response.
    pub fn of(fault: Fault) -> Self {
        match fault {
            Fault::Code(ResponseCode::NoSuchName) => Self::NoSuchName,
            Fault::Code(ResponseCode::Refused) => Self::Refused,
            _ => Self::Other,
        }
    }

    /// Returns the text in the log about a server without an address.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoSuchName => "DNS NX status",
            Self::Refused => "DNS refused status",
            Self::Timeout => "DNS timeout status",
            Self::Other => "unspecified DNS error",
        }
    }

    /// Whether a result from time `valid` is still valid after this failure.
    pub fn is_outlived(self, hold: &Hold, valid: Moment, now: Moment) -> bool {
        let period = match self {
            Self::NoSuchName => hold.nx,
            Self::Refused => hold.refused,
            Self::Timeout => hold.timeout,
            Self::Other => hold.other,
        };
        now.saturating_since(valid) < period
    }
}
