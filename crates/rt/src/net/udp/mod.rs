//! UDP in batches: many datagrams for a system call, each with its addresses and ECN bits.
//!
//! Nothing here may know a protocol above UDP, except the position of QUIC's connection IDs.

mod ecn;
mod kept;
mod kept_datagrams;
mod open;
mod receive_batch;
mod receive_space;
mod rejection;
mod reports;
mod socket;
mod steering;
mod transmit;

pub use ecn::Ecn;
pub use kept::KEPT_SOCKETS;
pub use receive_batch::ReceiveBatch;
pub use receive_space::Datagrams;
pub use rejection::Rejection;
pub use socket::{DatagramCounts, DatagramSocket, PeerRejected};
pub use steering::{steer_by_connection_id, steered_index};
pub use transmit::Transmit;

pub(crate) use kept_datagrams::KeptDatagrams;
pub(crate) use receive_space::{ReceiveSpace, ReceiveSpaces};
