//! Encodes metrics (`opentelemetry/proto/metrics/v1/metrics.proto`): cumulative sums and gauges. Must never count
//! anything.

use super::message::Message;
use super::{Value, attribute};

/// The type of a metric's data points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The current value.
    Gauge,
    /// A cumulative sum since the start.
    Sum {
        /// The sum never decreases.
        is_monotonic: bool,
    },
}

/// A metric without its data points.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    pub name: &'a str,
    pub description: &'a str,
    /// Unit in UCUM notation; empty if none.
    pub unit: &'a str,
}

/// A data point. Times are in nanoseconds since the UNIX epoch.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Start of the interval of a sum.
    pub start: u64,
    /// Time of the measurement.
    pub time: u64,
    pub value: f64,
}

const CUMULATIVE: u64 = 2;

impl Metric<'_> {
    fn head(&self, metric: &mut Message<'_>) {
        metric.text(1, self.name.as_bytes());
        metric.text(2, self.description.as_bytes());
        metric.text(3, self.unit.as_bytes());
    }

    /// Encodes the metric with the data points that `points` adds with [`Message::point`].
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
    /// Appends a data point of a gauge or a sum, with the attributes that `attributes` adds with
    /// [`Message::point_attribute`]. Integral values are encoded as integers.
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

    /// Appends an attribute of a data point.
    pub fn point_attribute(&mut self, key: &str, value: Value<'_>) {
        attribute(self, 7, key, value);
    }
}
