//! Automata over bytes: determine in one pass over a text whether patterns match and where matches begin. States are
//! computed lazily, and every step of the computation is counted. Must never take more steps than allowed.

mod cache;
mod ends;
mod extent;
mod program;
mod required;
mod shape;
mod starts;
mod steps;

pub(super) use cache::Automaton;
pub(super) use extent::Extent;
pub(super) use program::ScanDirection;
pub(super) use required::Required;
pub(super) use shape::{Shape, relaxed, without_looks};
pub(super) use starts::Starts;
pub use steps::Steps;

#[cfg(test)]
mod tests;
