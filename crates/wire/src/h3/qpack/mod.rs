//! QPACK (RFC 9204): field sections, and the instructions that change or acknowledge a dynamic table. Owns the table of
//! a peer's encoder; must never interpret a field.

mod acknowledgments;
mod decode;
mod dynamic;
mod encode;
mod instructions;
mod prefix;
#[cfg(test)]
mod section_tests;
mod static_table;

pub use acknowledgments::AcknowledgmentReader;
pub use decode::{Decoder, Progress, SectionError, TableLimits};
pub(super) use encode::Writer;
