//! Free space around payload in buffers, for the framing that may be added there. Must never write it.

/// Space kept in front of chunked data, so that the chunk's size line is written without moving the data: CR LF of the
/// previous chunk, then eight hexadecimal digits, CR, LF.
pub(super) const HEADROOM: usize = 2 + 10;

/// Space kept after chunked data for its CR LF, the last chunk and an empty trailer section.
pub(super) const TAILROOM: usize = 2 + 5;
