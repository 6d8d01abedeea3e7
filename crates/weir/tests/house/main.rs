//! The house's own rules, as tests over its files: layering, `unsafe`, file heads, the lengths of files and functions,
//! `unwrap`, circles of modules, and what the documents may say. Must never build or run anything.

mod circles;
mod documents;
mod functions;
mod layers;
mod product;
mod settings;
mod source;
mod tree;
