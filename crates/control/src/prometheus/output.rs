//! The text of the metrics, piece by piece (Prometheus text format 0.0.4). Owns the position of an answer. Must never
//! visit more than a bounded number of objects per piece.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::certificates::used;
use engine::generation::Generation;
use engine::resolve::Resolving;
use engine::worker::Worker;
use live::ServerPlace;
use live::lease::LimitCounts;
use policy::program::Proxy;
use tls::certificate::Certificate;
use tls::x509;

use super::bgp::{self, BgpPosition};
use super::datagrams;
use super::decisions;
use super::metric::{METRICS, Metric, PROCESS, Shape, TABLES, Type};
use super::sample::{Samples, labels_of, number};
use super::selection::{SCOPES, Scope, Selection};
use super::stores::{self, Part};
use super::text::{Labels, PIECE, begin};
use crate::field::Value;
use crate::statistics::process::{ProcessInfo, ROWS};
use crate::statistics::{B, Column, F, Kind, L, NAME_SERVER_COUNTS, Object, S, columns, module_columns};

/// Maximum bytes of cached labels: those of some 25,000 servers.
const MOST_LABELS: usize = 1 << 20;

/// The position of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ScrapePosition {
    /// Index in [`SCOPES`].
    scope: usize,
    metric: usize,
    /// Index of a proxy, or of a section of name servers.
    group: usize,
    /// Index of an object in the group, of a table, or of a name server.
    object: usize,
    /// The metric whose header lines are written.
    begun: Option<&'static str>,
}

impl ScrapePosition {
    fn next_scope(self) -> Self {
        Self { scope: self.scope + 1, ..Self::default() }
    }

    fn next_metric(self) -> Self {
        Self { metric: self.metric + 1, group: 0, object: 0, ..self }
    }
}

/// Cached labels of servers, in the order in which each metric visits them: they are formatted once for all metrics.
#[derive(Debug, Default)]
pub(super) struct KeptLabels {
    text: String,
    /// The place of a server, and the end of its labels in `text`.
    ends: Vec<(ServerPlace, usize)>,
    /// The next server to visit.
    next: usize,
    /// The certificates in use; collected when the first one is written.
    certificates: Vec<Arc<Certificate>>,
    /// The numbers of limits, by their index; collected before the first of them is written.
    limits: Vec<LimitCounts>,
}

impl KeptLabels {
    /// Returns the labels of a server; `None`: they are not cached and cannot be appended.
    fn of(&mut self, place: ServerPlace, object: &Object<'_>, descriptions: bool) -> Option<&str> {
        // Skips servers that had an earlier metric but not this one.
        while self.ends.get(self.next).is_some_and(|(known, _)| *known < place) {
            self.next += 1;
        }
        let start = self.next.checked_sub(1).map_or(0, |before| self.ends[before].1);
        if self.next == self.ends.len() {
            if self.text.len() >= MOST_LABELS || self.ends.last().is_some_and(|(last, _)| *last >= place) {
                return None;
            }
            labels_of(object, descriptions, &mut self.text);
            self.ends.push((place, self.text.len()));
        }
        let (known, end) = self.ends[self.next];
        if known != place {
            return None;
        }
        self.next += 1;
        self.text.get(start..end)
    }
}

/// The inputs of an answer.
pub(super) struct Output<'a> {
    pub(super) worker: &'a Worker,
    pub(super) generation: &'a Generation,
    pub(super) selection: &'a Selection,
    /// By worker: number of tasks, and bytes of buffers.
    pub(super) here: &'a [(u64, u64)],
}

/// A metric of an object: a row of the table, or a counter of a protocol.
#[derive(Clone, Copy)]
enum Row {
    Own(&'static Metric),
    Module,
}

impl Output<'_> {
    /// Writes a piece from `place` on. Returns the next position; `None`: the end.
    pub(super) fn write(
        &self,
        place: ScrapePosition,
        kept: &mut KeptLabels,
        out: &mut String,
    ) -> Option<ScrapePosition> {
        let (scope, name) = SCOPES.get(place.scope)?;
        if !self.selection.has(place.scope) {
            return Some(place.next_scope());
        }
        Some(match scope {
            Scope::Global => {
                self.process(out);
                place.next_scope()
            }
            Scope::Frontend => self.objects(place, name, F, kept, out),
            Scope::Listener => self.objects(place, name, L, kept, out),
            Scope::Backend => self.objects(place, name, B, kept, out),
            Scope::Server => self.objects(place, name, S, kept, out),
            Scope::StickTable => self.tables(place, out),
            Scope::Resolver => self.resolvers(place, out),
            Scope::Certificate => self.certificates(place, kept, out),
            Scope::Store => self.stores(place, kept, out),
            Scope::Bgp => self.bgp(place, out),
            Scope::Udp => self.datagrams(place, out),
            Scope::AuthCache => match decisions::write(self.generation, self.selection, place.metric, out) {
                true => place.next_metric(),
                false => place.next_scope(),
            },
        })
    }

    fn process(&self, out: &mut String) {
        let info = ProcessInfo::gather(self.worker, &self.generation.program, self.here, false);
        let description = info.description().filter(|_| self.selection.descriptions);
        for metric in PROCESS {
            let name = format!("haproxy_process_{}", metric.name);
            let row = ROWS.iter().find(|row| row.field.name == metric.value).filter(|_| self.selection.wants(&name));
            let Some((row, value)) = row.map(|row| (row, (row.value)(&info))) else { continue };
            if value == Value::None {
                continue;
            }
            begin(out, &name, metric.kind, row.field.doc);
            let text = if let Value::Text(text) = &value { Some((metric.label, text.as_str())) } else { None };
            let described = description.map(|text| ("desc", text)).filter(|_| metric.label != "desc");
            let labels: Vec<(&str, &str)> = text.into_iter().chain(described).collect();
            let shown = if text.is_some() { "1".to_owned() } else { number(&value) };
            let _ = writeln!(out, "{name}{} {shown}", Labels(&labels));
        }
    }

    /// Returns the metric at a position, with its name and its column; `None`: the end.
    fn metric(&self, place: ScrapePosition) -> Option<(Row, &'static str, &'static Column)> {
        if let Some(metric) = METRICS.get(place.metric) {
            let column = columns().find(|column| column.field.name == metric.column)?;
            return Some((Row::Own(metric), metric.name, column));
        }
        let column = module_columns().nth(place.metric - METRICS.len()).filter(|_| self.selection.extra)?;
        Some((Row::Module, column.field.name, column))
    }

    fn objects(
        &self,
        place: ScrapePosition,
        scope: &str,
        kinds: u8,
        kept: &mut KeptLabels,
        out: &mut String,
    ) -> ScrapePosition {
        let Some((row, name, column)) = self.metric(place) else { return place.next_scope() };
        let of = if let Row::Own(metric) = row { metric.kinds } else { u8::MAX };
        let whole = format!("haproxy_{scope}_{name}");
        if column.at.any() & of & kinds == 0 || !self.selection.wants(&whole) {
            return place.next_metric();
        }
        let proxies = &self.generation.program.proxies;
        if (place.group, place.object) == (0, 0) {
            kept.next = 0;
        }
        let mut place = place;
        for _ in 0..PIECE {
            if place.group >= proxies.places() {
                return place.next_metric();
            }
            let proxy = proxies.get(place.group).filter(|proxy| proxies.is_present(place.group) && !proxy.disabled);
            let Some((proxy, kind)) = proxy.and_then(|proxy| Some((proxy, find(proxy, kinds, place.object)?))) else {
                (place.group, place.object) = (place.group + 1, 0);
                continue;
            };
            place.object += 1;
            let Some(kind) = kind else { continue };
            let object = Object::new(self.worker, &self.generation.program, proxy, kind, false);
            if self.selection.no_maint && object.is_in_maintenance() {
                continue;
            }
            let descriptions = self.selection.descriptions;
            let labels = match kind {
                Kind::Server(server) => kept.of(proxy.place_of(server), &object, descriptions),
                Kind::Frontend | Kind::Backend | Kind::Listener(_) => None,
            };
            let samples = Samples { object: &object, column, name: &whole, labels, descriptions };
            let before = out.len();
            if place.begun != Some(name) {
                let (kind, help) = match row {
                    Row::Own(metric) => (metric.kind, metric.help.unwrap_or(column.field.doc)),
                    Row::Module => (Type::Counter, column.field.doc),
                };
                begin(out, &whole, kind, help);
            }
            let written = match row {
                Row::Own(metric) => samples.write(metric.shape, out),
                Row::Module => samples.write_module(out),
            };
            if written {
                place.begun = Some(name);
            } else {
                out.truncate(before);
            }
            // These visit every server of the backend.
            if matches!(row, Row::Own(Metric { shape: Shape::Servers | Shape::Results, .. })) {
                break;
            }
        }
        place
    }

    fn tables(&self, place: ScrapePosition, out: &mut String) -> ScrapePosition {
        let Some((name, help)) = TABLES.get(place.metric) else { return place.next_scope() };
        let whole = format!("haproxy_sticktable_{name}");
        if !self.selection.wants(&whole) {
            return place.next_metric();
        }
        // In reverse order of declaration, as in HAProxy.
        let mut tables = self.worker.process.live.tables.iter().rev().skip(place.object);
        for table in tables.by_ref().take(PIECE) {
            if place.object == 0 && out.is_empty() {
                begin(out, &whole, Type::Gauge, help);
            }
            let value = match place.metric {
                0 => table.plan.size,
                1 => table.used(),
                _ => table.last_update(),
            };
            let labels = [("name", &*table.plan.name), ("type", table.plan.key.name())];
            let _ = writeln!(out, "{whole}{} {value}", Labels(&labels));
        }
        if tables.next().is_some() {
            ScrapePosition { object: place.object + PIECE, ..place }
        } else {
            place.next_metric()
        }
    }

    fn resolvers(&self, place: ScrapePosition, out: &mut String) -> ScrapePosition {
        let first = self.worker.process.service::<Resolving>().counts.iter().flatten().next();
        let Some((key, ..)) = first.and_then(|counts| counts.rows().into_iter().nth(place.metric)) else {
            return place.next_scope();
        };
        let whole = format!("haproxy_resolver_{key}");
        if !self.selection.wants(&whole) {
            return place.next_metric();
        }
        let sections = self.generation.program.resolvers.iter().zip(&self.worker.process.service::<Resolving>().counts);
        let Some((section, counts)) = sections.into_iter().nth(place.group) else { return place.next_metric() };
        if place.group == 0 {
            begin(out, &whole, Type::Gauge, NAME_SERVER_COUNTS[place.metric]);
        }
        for (nameserver, counts) in section.nameservers.iter().zip(counts) {
            let labels = [("resolver", &*section.name), ("nameserver", &*nameserver.name)];
            let value = counts.rows()[place.metric].2.value();
            let _ = writeln!(out, "{whole}{} {value}", Labels(&labels));
        }
        ScrapePosition { group: place.group + 1, ..place }
    }

    /// Writes the seconds until the ends of certificates: Weir's own metric.
    fn certificates(&self, place: ScrapePosition, kept: &mut KeptLabels, out: &mut String) -> ScrapePosition {
        const NAME: &str = "weir_certificate_seconds_left";
        if !self.selection.wants(NAME) {
            return place.next_scope();
        }
        if place.object == 0 {
            kept.certificates = used(&self.generation.program).into_values().collect();
        }
        let now = rt::wall().seconds;
        for certificate in kept.certificates.iter().skip(place.object).take(PIECE) {
            let Some(validity) = x509::validity(certificate.der()) else { continue };
            if place.object == 0 && out.is_empty() {
                begin(out, NAME, Type::Gauge, "Seconds until a certificate in use expires; below 0: it has expired");
            }
            let _ =
                writeln!(out, "{NAME}{} {}", Labels(&[("certificate", &certificate.name)]), validity.not_after - now);
        }
        if place.object + PIECE < kept.certificates.len() {
            ScrapePosition { object: place.object + PIECE, ..place }
        } else {
            place.next_scope()
        }
    }

    /// Writes the metrics of stores and limits: Weir's own. The numbers of a limit are sums over its keys: one limit per piece.
    fn stores(&self, place: ScrapePosition, kept: &mut KeptLabels, out: &mut String) -> ScrapePosition {
        if let Some(limit) = self.worker.process.live.limits.get(kept.limits.len()) {
            kept.limits.push(limit.counts());
            return place;
        }
        let (worker, selection) = (self.worker, self.selection);
        let part = Part { worker, selection, metric: place.metric, object: place.object };
        match stores::write(&part, &kept.limits, out) {
            None => place.next_scope(),
            Some(false) => place.next_metric(),
            Some(true) => ScrapePosition { object: place.object + PIECE, ..place },
        }
    }

    /// Writes the metrics of sections `bgp`: Weir's own.
    fn bgp(&self, place: ScrapePosition, out: &mut String) -> ScrapePosition {
        let at = BgpPosition { metric: place.metric, section: place.group, route: place.object };
        bgp::write(&self.worker.process, &self.generation.program, self.selection, at, out).map_or_else(
            || place.next_scope(),
            |next| ScrapePosition { metric: next.metric, group: next.section, object: next.route, ..place },
        )
    }

    /// Writes the metrics of `udp-lb` sections: Weir's own.
    fn datagrams(&self, place: ScrapePosition, out: &mut String) -> ScrapePosition {
        let (process, program) = (&self.worker.process, &self.generation.program);
        match datagrams::write(process, program, self.selection, place.metric, place.object, out) {
            None => place.next_scope(),
            Some(false) => place.next_metric(),
            Some(true) => ScrapePosition { object: place.object + PIECE, ..place },
        }
    }
}

/// Returns the object of a proxy at an index; `Some(None)`: removed; `None`: beyond the last.
fn find(proxy: &Proxy, kinds: u8, place: usize) -> Option<Option<Kind<'_>>> {
    match kinds {
        F => proxy.frontend.as_ref().filter(|_| place == 0).map(|_| Some(Kind::Frontend)),
        B => proxy.backend.as_ref().filter(|_| place == 0).map(|_| Some(Kind::Backend)),
        L => {
            let front = proxy.frontend.as_ref().filter(|front| front.reception.socket_stats)?;
            front.binds.get(place).map(|bind| (!bind.is_removed).then_some(Kind::Listener(bind)))
        }
        _ => {
            let servers = &proxy.backend.as_ref()?.servers;
            let server = servers.get(place)?;
            Some(servers.is_present(place).then_some(Kind::Server(server)))
        }
    }
}
