//! Rules of this project, as tests of its files: layering, `unsafe`, file headers, lengths of files and functions,
//! `unwrap`, import cycles, paths and contents of documents. Must never build or run anything.

mod circles;
mod documents;
mod functions;
mod imports;
mod layers;
mod parameters;
mod paths;
mod product;
mod prose;
mod settings;
mod shrinking;
mod source;
mod structs;
mod traits;
mod tree;
