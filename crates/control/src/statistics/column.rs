//! A column of the statistics: its name, the objects that have it, and the source of its value. Must never compute a
//! value.

use super::object::{Kind, Object};
use crate::field::{Field, Value};

/// The objects that have a column, by mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnObjects {
    pub(crate) http: u8,
    pub(crate) tcp: u8,
}

impl ColumnObjects {
    pub(crate) const fn both(kinds: u8) -> Self {
        Self { http: kinds, tcp: kinds }
    }

    pub(crate) const fn http(kinds: u8) -> Self {
        Self { http: kinds, tcp: 0 }
    }

    /// Returns the kinds that have it in any mode.
    pub(crate) const fn any(self) -> u8 {
        self.http | self.tcp
    }
}

pub(crate) struct Column {
    pub(crate) field: Field,
    pub(crate) at: ColumnObjects,
    pub(crate) value: fn(&Object<'_>) -> Value,
}

pub(crate) const fn column(
    name: &'static str,
    tags: &'static str,
    doc: &'static str,
    at: ColumnObjects,
    value: fn(&Object<'_>) -> Value,
) -> Column {
    Column { field: Field { name, tags, doc }, at, value }
}

impl Column {
    /// Returns name and tags for an object: in a backend's row, sums are metrics where a server's are states.
    pub(crate) fn field_of(&self, object: &Object<'_>) -> Field {
        let sums = matches!(object.kind, Kind::Backend) && matches!(self.field.name, "act" | "bck" | "rate_max");
        if sums { Field { tags: "MGPV", ..self.field } } else { self.field }
    }

    /// Returns the value for an object; `Value::None` if the object does not have the column.
    pub(crate) fn of(&self, object: &Object<'_>) -> Value {
        let kinds = if object.is_http() { self.at.http } else { self.at.tcp };
        if kinds & object.kind.bit() == 0 { Value::None } else { (self.value)(object) }
    }
}
