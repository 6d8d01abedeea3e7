//! The configuration language: turns text into a [`document`], and the document into a [`spec::Spec`] and diagnostics.
//! Must never resolve a name, open a socket or decide about a request.

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
pub use load::{LoadOptions, LoadedConfiguration, load};
pub use options::{FEATURES, LANGUAGE_LEVEL, LanguageOptions};
