//! Sections that communicate over in-memory pipes, on a virtual clock.

mod hostile;
mod mesh;
mod net;
mod sums;
mod thousand;
