//! A file as its reader gets it. Must never read one.

/// One configuration file whose text was read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// The name for messages: the path as given with `-f`, or as found in a directory.
    pub name: String,
    pub bytes: Vec<u8>,
}
