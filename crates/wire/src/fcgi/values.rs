//! The application's limits (`FCGI_GET_VALUES_RESULT`; specification, section 4.1). Holds one such record. Must never
//! judge a limit.

use super::encode::lengths_of;

/// Maximum number of bytes kept of a record; longer ones contain values that were not requested.
const MOST: usize = 256;

/// The content of one record, received in parts.
#[derive(Debug, Clone, Default)]
pub struct Values {
    content: Vec<u8>,
    is_whole: bool,
}

impl Values {
    /// Appends a part of the record; `whole` marks the last one. Later parts are ignored.
    pub fn take(&mut self, data: &[u8], whole: bool) {
        if !self.is_whole {
            let room = MOST.saturating_sub(self.content.len());
            self.content.extend_from_slice(&data[..data.len().min(room)]);
            self.is_whole = whole;
        }
    }

    /// Whether the record is complete.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the application multiplexes requests on one connection (`FCGI_MPXS_CONNS`). `None` if not specified.
    pub fn shares_connections(&self) -> Option<bool> {
        self.number(b"FCGI_MPXS_CONNS").map(|number| number > 0)
    }

    /// Maximum number of concurrent requests (`FCGI_MAX_REQS`). `None` if not specified.
    pub fn max_requests(&self) -> Option<u32> {
        self.number(b"FCGI_MAX_REQS")
    }

    fn number(&self, wanted: &[u8]) -> Option<u32> {
        let value = parameter(&self.content, wanted)?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    }
}

/// Returns the value of a name among name-value pairs (specification, section 3.4).
pub fn parameter<'c>(mut content: &'c [u8], wanted: &[u8]) -> Option<&'c [u8]> {
    while let Some((name_length, value_length, used)) = lengths_of(content) {
        let (name, rest) = content.get(used..)?.split_at_checked(name_length)?;
        let (value, rest) = rest.split_at_checked(value_length)?;
        if name == wanted {
            return Some(value);
        }
        content = rest;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_names() {
        let rows: &[(&[u8], Option<u32>, Option<bool>)] = &[
            (b"", None, None),
            (b"\x0d\x02FCGI_MAX_REQS50\x0f\x01FCGI_MPXS_CONNS1", Some(50), Some(true)),
            (b"\x0f\x01FCGI_MPXS_CONNS0", None, Some(false)),
            (b"\x80\0\0\x0d\x80\0\0\x01FCGI_MAX_REQS7", Some(7), None),
            (b"\x0d\x02FCGI_MAX_REQSxx", None, None),
            (b"\x0d\x02FCGI_MAX_REQS5", None, None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", None, None),
            (b"\x0d", None, None),
        ];
        for (content, requests, shares) in rows {
            for cut in 0..=content.len() {
                let mut values = Values::default();
                values.take(&content[..cut], false);
                assert!(!values.is_whole());
                values.take(&content[cut..], true);
                values.take(b"more", false);
                assert_eq!((values.max_requests(), values.shares_connections()), (*requests, *shares), "{content:?}");
            }
        }
    }
}
