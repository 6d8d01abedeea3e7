//! Fetches of samples (configuration manual, sections 7.3.2 to 7.3.7). Owns the type of their table rows and the list
//! of families; a family is a file with its functions and its rows. Must never convert a sample.

mod acl;
mod body;
mod capture;
mod connection;
mod constant;
mod cookie;
mod cost;
mod distcc;
mod ending;
mod grpc;
mod header;
mod hello;
mod layers;
mod link;
mod parameter;
mod payload;
mod process;
mod request;
mod route;
mod side;
mod stream;
mod tls;
mod tls_details;
mod tls_hello;
mod transaction;
mod transport;
mod unsupported;
mod valueless;

pub use unsupported::NAMES as WAITING;
pub(crate) use unsupported::reason as waiting_reason;
pub(crate) use valueless::reason as valueless_reason;

use crate::rows::{Row, Rows};
use crate::sample::{Context, EvalPlace, Places, Type, Value};
use crate::{Arguments, Check, Signature};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Fetches a single sample.
pub type SampleOf = for<'a> fn(&Context<'a>, &'a Arguments) -> Option<Value<'a>>;

/// Calls the function with every sample until it returns true, and returns whether it did.
pub type SampleVisitor = for<'a> fn(&Context<'a>, &'a Arguments, &mut dyn FnMut(Value<'a>) -> bool) -> bool;

/// The function of a registered fetch.
type OwnSample = dyn for<'a> Fn(&Context<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync;

/// Owns the function of a registered fetch.
struct RegisteredFetch(Box<OwnSample>);

/// One fetch.
#[derive(Clone)]
pub struct Fetch {
    pub name: Cow<'static, str>,
    /// Its arguments.
    pub signature: Signature,
    /// The type of its sample.
    pub output: Type,
    /// The places where it is available.
    pub places: Places,
    /// A description in one sentence.
    pub doc: &'static str,
    /// Fetches a single sample.
    pub eval: SampleOf,
    /// Fetches all samples, if there may be several.
    pub each: Option<SampleVisitor>,
    /// Checks and compiles its arguments.
    pub check: Option<Check>,
    /// HAProxy's name of the data that it needs, if its places do not determine it.
    pub needs: Option<&'static str>,
    /// Complete only at the end of the stream: a log line that contains it is written then.
    pub at_end: bool,
    /// It queries the kernel's state of a connection, which is closed when a log line is written.
    pub asks_kernel: bool,
    /// The function of a registered fetch: `eval` finds it after the arguments.
    own: Option<Arc<RegisteredFetch>>,
}

/// Calls the function of a registered fetch.
fn call_own<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    (arguments.function::<RegisteredFetch>()?.0)(context, arguments)
}

impl Fetch {
    /// Creates a row.
    pub const fn new(
        name: &'static str,
        signature: Signature,
        output: Type,
        places: Places,
        doc: &'static str,
        sample: SampleOf,
    ) -> Self {
        let (each, check, needs) = (None, None, None);
        Self {
            name: Cow::Borrowed(name),
            signature,
            output,
            places,
            doc,
            eval: sample,
            each,
            check,
            needs,
            at_end: false,
            asks_kernel: false,
            own: None,
        }
    }

    /// Creates a registered row that owns its function.
    pub fn owned(
        name: impl Into<String>,
        signature: Signature,
        output: Type,
        places: Places,
        sample: impl for<'a> Fn(&Context<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync + 'static,
    ) -> Self {
        let row = Self::new("", signature, output, places, "", call_own);
        Self { name: Cow::Owned(name.into()), own: Some(Arc::new(RegisteredFetch(Box::new(sample)))), ..row }
    }

    /// The function that `eval` finds after the arguments.
    pub(crate) fn function(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(self.own.as_ref()?) as _)
    }

    /// Adds a function that fetches several samples.
    pub const fn each(mut self, each: SampleVisitor) -> Self {
        self.each = Some(each);
        self
    }

    /// Adds a check of the arguments.
    pub const fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Sets HAProxy's name of the data that it needs.
    pub const fn needing(mut self, needs: &'static str) -> Self {
        self.needs = Some(needs);
        self
    }

    /// Marks the fetch as complete only at the end of the stream.
    pub const fn at_end(mut self) -> Self {
        self.at_end = true;
        self
    }

    /// Marks the fetch as a query of the kernel.
    pub const fn of_kernel(mut self) -> Self {
        self.asks_kernel = true;
        self
    }

    /// Whether it reads the bytes of a message below HTTP.
    pub fn is_layer6(&self) -> bool {
        let mut rows = payload::TABLE.iter().chain(hello::TABLE);
        !self.places.has(EvalPlace::Connection) && rows.any(|row| row.name == self.name)
    }

    /// HAProxy's name of the data that it needs.
    pub fn wanted(&self) -> &'static str {
        match (self.needs, self.places.needs()) {
            (Some(needs), _) => needs,
            (None, "HTTP request headers") if self.is_layer6() => "request buffer",
            (None, "HTTP response headers") if self.is_layer6() => "response buffer",
            (None, "HTTP request headers,HTTP response headers") if self.is_layer6() => {
                "request buffer,response buffer"
            }
            (None, needs) => needs,
        }
    }

    /// Returns HAProxy's message when it is not available at that place.
    pub fn refusal(&self, place: EvalPlace) -> Option<String> {
        (!self.places.has(place)).then(|| {
            format!(
                "sample fetch <{}> may not be reliably used here because it needs '{}' which is not available here",
                self.name,
                self.wanted()
            )
        })
    }
}

/// Creates a row without arguments.
pub const fn plain(name: &'static str, output: Type, places: Places, doc: &'static str, sample: SampleOf) -> Fetch {
    Fetch::new(name, Signature::NONE, output, places, doc, sample)
}

/// Every family of this directory.
pub const FAMILIES: &[&[Fetch]] = &[
    acl::TABLE,
    body::TABLE,
    capture::TABLE,
    connection::TABLE,
    constant::TABLE,
    cookie::TABLE,
    cost::TABLE,
    distcc::TABLE,
    ending::TABLE,
    grpc::TABLE,
    header::TABLE,
    hello::TABLE,
    layers::TABLE,
    link::TABLE,
    parameter::TABLE,
    payload::TABLE,
    process::TABLE,
    request::TABLE,
    route::TABLE,
    stream::TABLE,
    tls::TABLE,
    tls_details::CLIENTS,
    tls_details::FINGERPRINTS,
    tls_details::SERVERS,
    valueless::TABLE,
    tls_hello::TABLE,
    transaction::TABLE,
    transport::TABLE,
];

/// The rows of all families.
pub static ROWS: Rows<Fetch> = Rows::new(&[FAMILIES], WAITING);

impl Row for Fetch {
    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetch({}{})", self.name, self.signature)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique_and_documented() {
        super::ROWS.assert_sound(|row| (row.doc, row.signature.required, row.signature.kinds.len()));
    }
}
