//! Statistics of proxies, listeners and servers (management manual, section 9.1). Owns the list of objects and columns
//! and the output formats; the columns are tables. Must never depend on its readers.

mod column;
mod detail;
mod flows;
mod http1_columns;
mod load;
mod modules;
mod object;
pub(crate) mod process;
mod protocol;
mod quic_columns;
mod standing;
mod status;

use std::fmt::Write;

use policy::program::{Program, Proxy};

use crate::field::{Form, Value, json, typed};
pub(crate) use column::Column;
pub(crate) use flows::counts as flow_counts;
pub(crate) use object::{B, F, Kind, L, Object, S};

/// The schema of the JSON form (management manual, "show schema json").
pub(crate) const JSON_SCHEMA: &str = include_str!("schema.json");

/// Returns all columns in order.
pub(crate) fn columns() -> impl Iterator<Item = &'static Column> {
    [load::COLUMNS, detail::COLUMNS, protocol::COLUMNS].into_iter().flatten().chain(module_columns())
}

/// Returns the columns of protocol counters.
pub(crate) fn module_columns() -> impl Iterator<Item = &'static Column> {
    [modules::COLUMNS, quic_columns::COLUMNS, http1_columns::COLUMNS].into_iter().flatten()
}

/// Number of columns before those of the modules.
pub(crate) const OWN: usize = load::COLUMNS.len() + detail::COLUMNS.len() + protocol::COLUMNS.len();

/// Descriptions of a name server's counters, in the order of [`engine::resolve::Counts::rows`].
pub(crate) const NAME_SERVER_COUNTS: [&str; 15] = [
    "Sent",
    "Send error",
    "Valid",
    "Update",
    "CNAME",
    "CNAME error",
    "Any errors",
    "NX",
    "Timeout",
    "Refused",
    "Other",
    "Invalid",
    "Too big",
    "Truncated",
    "Outdated",
];

/// A selection of objects and the output format.
#[derive(Debug, Clone)]
pub(crate) struct StatisticsQuery {
    pub(crate) form: Form,
    /// Include descriptions of the columns, in the typed form.
    pub(crate) desc: bool,
    /// Exclude servers that are down or in maintenance.
    pub(crate) up: bool,
    /// Exclude servers in maintenance.
    pub(crate) no_maint: bool,
    /// The id of a proxy; `None` for all.
    pub(crate) proxy: Option<u32>,
    /// A bit set of kinds.
    pub(crate) kinds: u8,
    /// The id of a server or a listener; `None` for all.
    pub(crate) id: Option<u32>,
    /// Include addresses, cookies and algorithms, which the page shows only with `stats show-legends`.
    pub(crate) legends: bool,
}

impl StatisticsQuery {
    /// Selects everything, in that form.
    pub(crate) fn all(form: Form) -> Self {
        Self { form, desc: false, up: false, no_maint: false, proxy: None, kinds: u8::MAX, id: None, legends: true }
    }

    /// Whether a backend's status includes the number of its usable servers.
    pub(crate) fn counts_servers(&self) -> bool {
        self.up || self.no_maint
    }

    /// Whether an object is selected.
    pub(crate) fn wants(&self, object: &Object<'_>) -> bool {
        let named = matches!(object.kind, Kind::Frontend | Kind::Backend) || self.id.is_none_or(|id| id == object.id());
        let is_hidden = (self.up || self.no_maint) && object.is_in_maintenance() || self.up && object.is_down();
        named && !is_hidden
    }

    /// Returns the selected proxies.
    pub(crate) fn proxies<'p>(&self, program: &'p Program) -> impl Iterator<Item = &'p Proxy> + use<'p> {
        let wanted = self.proxy;
        program.proxies.iter().map(|proxy| &**proxy).filter(move |proxy| wanted.is_none_or(|id| id == proxy.id))
    }
}

/// Returns the objects of a proxy, in order.
pub(crate) fn kinds(proxy: &Proxy, wanted: u8) -> impl Iterator<Item = Kind<'_>> {
    let front = proxy.frontend.as_ref();
    let back = proxy.backend.as_ref();
    let binds = front.filter(|front| wanted & L != 0 && front.reception.socket_stats);
    let frontend = front.filter(|_| wanted & F != 0).map(|_| Kind::Frontend);
    let open = binds.into_iter().flat_map(|front| &front.binds).filter(|bind| !bind.is_removed);
    let listeners = open.map(Kind::Listener);
    let servers = back.filter(|_| wanted & S != 0).into_iter().flat_map(|back| back.servers.iter().map(Kind::Server));
    let backend = back.filter(|_| wanted & B != 0).map(|_| Kind::Backend);
    let shown = !proxy.disabled;
    frontend.into_iter().chain(listeners).chain(servers).chain(backend).filter(move |_| shown)
}

/// Writes the part before the first object.
pub(crate) fn begin(out: &mut impl Write, form: Form) {
    let _ = match form {
        Form::Plain => {
            let _ = out.write_str("# ");
            for (at, column) in columns().enumerate() {
                if at == OWN {
                    let _ = out.write_str("-,");
                }
                let _ = write!(out, "{},", column.field.name);
            }
            out.write_char('\n')
        }
        Form::Json => out.write_char('['),
        Form::Typed => Ok(()),
    };
}

/// Writes an object. `first`: no object was written before.
pub(crate) fn line(out: &mut impl Write, object: &Object<'_>, wish: &StatisticsQuery, first: bool) {
    let value = |column: &Column| match column.field.name {
        "addr" | "cookie" | "algo" if !wish.legends => Value::None,
        _ => column.of(object),
    };
    let values = columns().enumerate().map(|(at, column)| (at, column.field_of(object), value(column)));
    let (letter, name) = object.kind.names();
    let (proxy, id) = (object.proxy.id, object.id());
    match wish.form {
        Form::Plain => {
            for (at, _, value) in values {
                if at == OWN {
                    let _ = out.write_str("-,");
                }
                cell(out, &value);
            }
            let _ = out.write_char('\n');
        }
        Form::Typed => {
            let prefix = format!("{letter}.{proxy}.{id}.");
            for (at, field, value) in values.filter(|(_, _, value)| *value != Value::None) {
                typed(out, &prefix, at, &field, &value, wish.desc);
            }
        }
        Form::Json => {
            let _ = out.write_str(if first { "[" } else { ",[" });
            let mut comma = "";
            for (at, field, value) in values.filter(|(_, _, value)| *value != Value::None) {
                let _ = write!(out, "{comma}{{\"objType\":\"{name}\",\"proxyId\":{proxy},\"id\":{id},");
                json(out, at, &field, &value);
                let _ = out.write_char('}');
                comma = ",";
            }
            let _ = out.write_char(']');
        }
    }
}

/// Writes the part after the last object.
pub(crate) fn end(out: &mut impl Write, form: Form) {
    if form == Form::Json {
        let _ = out.write_str("]\n");
    }
}

/// Writes a CSV value and its comma; a value with special characters is quoted.
fn cell(out: &mut impl Write, value: &Value) {
    let _ = match value {
        Value::Text(text) if text.contains([',', '"', '\n', '\r']) => {
            write!(out, "\"{}\",", text.replace('"', "\"\""))
        }
        value => write!(out, "{value},"),
    };
}
