//! Sections that speak with each other over pipes of bytes, on a virtual clock.

mod hostile;
mod mesh;
mod net;
