//! The bound of the work for one field section, whatever its size. Must never depend on a table.

use super::field::{Capacity, HeaderField};

/// The factor by which the fields of a section may exceed the capacity of a message, in bytes and in number. A byte of a
/// section may refer to an entry as large as the table: each is copied, so that the work for a section must have a bound
/// of its own.
pub(crate) const EXPANSION: usize = 4;

/// Overhead of each field beyond its text (RFC 7541, section 4.1; RFC 9114, section 4.2.2).
const OVERHEAD: usize = 32;

/// The remaining bound of one section.
pub(crate) struct Budget {
    bytes: usize,
    fields: usize,
}

impl Budget {
    /// Returns the bound for a message whose fields have a capacity.
    pub(crate) fn of(capacity: Capacity) -> Self {
        Self { bytes: EXPANSION * capacity.bytes, fields: capacity.fields.saturating_mul(EXPANSION) }
    }

    /// Accounts for a field; `None` if the section exceeds its bound.
    #[inline]
    pub(crate) fn take(&mut self, field: &HeaderField<'_>) -> Option<()> {
        self.bytes = self.bytes.checked_sub(field.name.len() + field.value.len() + OVERHEAD)?;
        // Clients send cookies in as many pieces as they like.
        self.fields = self.fields.checked_sub(usize::from(field.name != b"cookie"))?;
        Some(())
    }
}
