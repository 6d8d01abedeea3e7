//! A column of the statistics: its name, which objects have it, and where its value comes from. Must never compute a value.

use super::object::{Kind, Object};
use crate::field::{Field, Value};

/// Which objects have a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Where {
    pub(crate) http: u8,
    pub(crate) tcp: u8,
}

impl Where {
    pub(crate) const fn both(kinds: u8) -> Self {
        Self { http: kinds, tcp: kinds }
    }

    pub(crate) const fn http(kinds: u8) -> Self {
        Self { http: kinds, tcp: 0 }
    }

    /// In any mode.
    pub(crate) const fn any(self) -> u8 {
        self.http | self.tcp
    }
}

/// One column.
pub(crate) struct Column {
    pub(crate) field: Field,
    pub(crate) at: Where,
    pub(crate) value: fn(&Object<'_>) -> Value,
}

pub(crate) const fn column(
    name: &'static str,
    tags: &'static str,
    doc: &'static str,
    at: Where,
    value: fn(&Object<'_>) -> Value,
) -> Column {
    Column { field: Field { name, tags, doc }, at, value }
}

impl Column {
    /// Name and kind as an object shows them: a backend's sums are metrics where a server's are states.
    pub(crate) fn field_of(&self, object: &Object<'_>) -> Field {
        let sums = matches!(object.kind, Kind::Backend) && matches!(self.field.name, "act" | "bck" | "rate_max");
        if sums { Field { tags: "MGPV", ..self.field } } else { self.field }
    }

    /// Its value for an object; none where the object has no such column.
    pub(crate) fn of(&self, object: &Object<'_>) -> Value {
        let kinds = if object.is_http() { self.at.http } else { self.at.tcp };
        if kinds & object.kind.bit() == 0 { Value::None } else { (self.value)(object) }
    }
}
