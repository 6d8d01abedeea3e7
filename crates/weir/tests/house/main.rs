//! The house's own rules, as tests over its files: layering, `unsafe`, file heads and lengths, `unwrap`, and what the
//! documents may say. Must never build or run anything.

mod documents;
mod layers;
mod source;
mod tree;
