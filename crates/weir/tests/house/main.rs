//! Rules of this project, as tests of its files: layering, `unsafe`, file headers, lengths of files and functions,
//! `unwrap`, import cycles, and contents of documents. Must never build or run anything.

mod circles;
mod documents;
mod functions;
mod layers;
mod product;
mod settings;
mod source;
mod tree;
