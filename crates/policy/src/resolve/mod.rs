//! What the answers of name servers mean for servers: which address one takes, which service one stands for, how long
//! what is known outlives what has come (configuration manual, section 5.3). Must never ask anybody.

mod addresses;
mod services;

pub use addresses::Addresses;
pub use services::{Move, Services, SrvTarget};

use crate::program::Hold;
use base::moment::Moment;
use wire::dns::{Fault, ResponseCode};

/// Why a resolution came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// There is no such name.
    NoSuchName,
    /// The name servers refused.
    Refused,
    /// No answer came in time.
    Timeout,
    /// Anything else.
    Other,
}

impl Failure {
    /// What the fault of an answer comes to.
    pub fn of(fault: Fault) -> Self {
        match fault {
            Fault::Code(ResponseCode::NoSuchName) => Self::NoSuchName,
            Fault::Code(ResponseCode::Refused) => Self::Refused,
            _ => Self::Other,
        }
    }

    /// What the log says of a server that has no address because of it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoSuchName => "DNS NX status",
            Self::Refused => "DNS refused status",
            Self::Timeout => "DNS timeout status",
            Self::Other => "unspecified DNS error",
        }
    }

    /// Whether what was known at `valid` still holds now that this has come.
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
