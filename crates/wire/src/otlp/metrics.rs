//! Metrics (`opentelemetry/proto/metrics/v1/metrics.proto`): cumulative sums and gauges. Must never count anything.

use super::message::Message;
use super::{Value, attribute};

/// What the points of a metric mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A value now.
    Gauge,
    /// A sum since the beginning.
    Sum {
        /// It only grows.
        is_monotonic: bool,
    },
}

/// A metric without its points.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    /// The name.
    pub name: &'a str,
    /// What it means.
    pub description: &'a str,
    /// Its unit (UCUM); empty: none.
    pub unit: &'a str,
}

/// One value of a metric. Times are nanoseconds since the UNIX epoch.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Since when a sum counts.
    pub start: u64,
    /// When it was taken.
    pub time: u64,
    /// The value.
    pub value: f64,
}

const CUMULATIVE: u64 = 2;

impl Metric<'_> {
    fn head(&self, metric: &mut Message<'_>) {
        metric.text(1, self.name.as_bytes());
        metric.text(2, self.description.as_bytes());
        metric.text(3, self.unit.as_bytes());
    }

    /// Writes it with the points that `points` adds by [`Message::point`].
    pub fn write(&self, out: &mut Vec<u8>, shape: Shape, points: impl FnOnce(&mut Message<'_>)) {
        let mut metric = Message::new(out);
        self.head(&mut metric);
        match shape {
            Shape::Gauge => metric.nested(5, points),
            Shape::Sum { is_monotonic } => metric.nested(7, |sum| {
                points(sum);
                sum.number(2, CUMULATIVE);
                sum.number(3, u64::from(is_monotonic));
            }),
        }
    }
}

impl Message<'_> {
    /// A point of a gauge or a sum, with the attributes that `attributes` adds by [`Message::point_attribute`]. Whole numbers are
    /// written as such.
    pub fn point(&mut self, point: &Point, attributes: impl FnOnce(&mut Message<'_>)) {
        self.nested(1, |written| {
            written.fixed64(2, point.start);
            written.fixed64(3, point.time);
            if point.value.fract() == 0.0 && point.value.abs() < 9e15 {
                written.present_fixed64(6, point.value as i64 as u64);
            } else {
                written.present_fixed64(4, point.value.to_bits());
            }
            attributes(written);
        });
    }

    /// An attribute of a point.
    pub fn point_attribute(&mut self, key: &str, value: Value<'_>) {
        attribute(self, 7, key, value);
    }
}
