//! The configuration language: text becomes a [`document`], the document a [`spec::Spec`] and diagnostics. Must never
//! resolve a name, open a socket or decide what a request gets.

pub mod address;
pub mod condition;
pub mod diagnostic;
pub mod document;
pub mod environment;
pub mod keyword;
pub mod language;
pub mod lexer;
pub mod load;
pub mod options;
pub mod span;
pub mod spec;
pub mod suggest;
pub mod text;
pub mod units;

pub use keyword::crt_list;
pub use language::InputFile;
pub use load::{LoadOptions, Loaded, load};
pub use options::{FEATURES, LANGUAGE_LEVEL, LanguageOptions};
