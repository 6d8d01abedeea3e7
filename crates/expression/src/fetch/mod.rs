//! Fetches: where samples come from (configuration manual, sections 7.3.2 to 7.3.7). Owns the form of their tables and
//! the list of families; a family is a file with its functions and its rows. Must never convert what it fetches.

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

/// Fetches the one sample.
pub type SampleOf = for<'a> fn(&Context<'a>, &'a Arguments) -> Option<Value<'a>>;

/// Hands every sample to the function until that has enough, and tells whether it had.
pub type Each = for<'a> fn(&Context<'a>, &'a Arguments, &mut dyn FnMut(Value<'a>) -> bool) -> bool;

/// What fetches the one sample of a registered row.
type OwnSample = dyn for<'a> Fn(&Context<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync;

/// The function of a registered row.
struct Own(Box<OwnSample>);

/// One row.
#[derive(Clone)]
pub struct Fetch {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it takes.
    pub signature: Signature,
    /// What it gives.
    pub output: Type,
    /// Where it may stand.
    pub places: Places,
    /// What it fetches, in a sentence.
    pub doc: &'static str,
    /// How.
    pub eval: SampleOf,
    /// How all samples are had, where there may be several.
    pub each: Option<Each>,
    /// Looks at its arguments.
    pub check: Option<Check>,
    /// What it needs in HAProxy's words, where its places do not tell.
    pub needs: Option<&'static str>,
    /// Only the end of the stream makes it complete: a line that tells it waits for that.
    pub at_end: bool,
    /// It asks for what the kernel knows of a connection, which is gone when a line of the log is written.
    pub asks_kernel: bool,
    /// Its function, where the row is registered: `eval` finds it behind the arguments.
    own: Option<Arc<Own>>,
}

/// Calls the function of a registered row.
fn call_own<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    (arguments.function::<Own>()?.0)(context, arguments)
}

impl Fetch {
    /// A row that works.
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

    /// A row that is registered, with a function that it owns.
    pub fn owned(
        name: impl Into<String>,
        signature: Signature,
        output: Type,
        places: Places,
        sample: impl for<'a> Fn(&Context<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync + 'static,
    ) -> Self {
        let row = Self::new("", signature, output, places, "", call_own);
        Self { name: Cow::Owned(name.into()), own: Some(Arc::new(Own(Box::new(sample)))), ..row }
    }

    /// What `eval` finds behind the arguments.
    pub(crate) fn function(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(self.own.as_ref()?) as _)
    }

    /// The same where several samples may be found.
    pub const fn each(mut self, each: Each) -> Self {
        self.each = Some(each);
        self
    }

    /// The same with a look at the arguments.
    pub const fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// The same with HAProxy's words for what it needs.
    pub const fn needing(mut self, needs: &'static str) -> Self {
        self.needs = Some(needs);
        self
    }

    /// The same, complete at the end of the stream.
    pub const fn at_end(mut self) -> Self {
        self.at_end = true;
        self
    }

    /// The same, about what the kernel knows.
    pub const fn of_kernel(mut self) -> Self {
        self.asks_kernel = true;
        self
    }

    /// Whether it reads the bytes of a message below HTTP.
    pub fn is_layer6(&self) -> bool {
        let mut rows = payload::TABLE.iter().chain(hello::TABLE);
        !self.places.has(EvalPlace::Connection) && rows.any(|row| row.name == self.name)
    }

    /// What it needs, in HAProxy's words.
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

    /// HAProxy's sentence when it may not stand at that place.
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

/// A row without arguments.
pub const fn plain(name: &'static str, output: Type, places: Places, doc: &'static str, sample: SampleOf) -> Fetch {
    Fetch::new(name, Signature::NONE, output, places, doc, sample)
}

/// Every family that stands here.
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

/// Every row of them.
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
