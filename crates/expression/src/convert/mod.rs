//! Converters of samples (configuration manual, section 7.3.1). Owns the type of their table rows and the list of
//! families; a family is a file with its functions and its rows. Must never fetch anything.

mod aes;
mod algorithm;
mod arithmetic;
mod base64;
mod bytes;
mod cipher;
pub mod date;
mod debug;
mod digest;
mod fix;
mod forwarded;
mod hash;
mod json;
mod json_path;
mod jwe;
mod jwt;
mod kept;
mod map;
mod mqtt;
mod network;
mod operand;
mod packet;
mod protobuf;
mod replace;
mod split;
mod strftime;
mod string;
mod unsupported;
mod url;
mod variable;
mod when;
mod x509;

pub use unsupported::NAMES as WAITING;
pub(crate) use unsupported::reason as waiting_reason;

use crate::rows::{Row, Rows};
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Check, Signature};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Converts a sample; `None`: the conversion failed, and the expression has no sample.
pub type Convert = for<'a> fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>>;

/// The function of a registered converter.
type OwnConvert = dyn for<'a> Fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync;

/// Owns the function of a registered converter.
struct RegisteredConverter(Box<OwnConvert>);

/// One converter.
#[derive(Clone)]
pub struct Converter {
    pub name: Cow<'static, str>,
    /// Its arguments.
    pub signature: Signature,
    /// The type that its input is cast to first.
    pub input: Type,
    /// The type of its output; [`Type::Any`]: known only at run time.
    pub output: Type,
    /// A description in one sentence.
    pub doc: &'static str,
    /// The conversion.
    pub eval: Convert,
    /// Checks and compiles its arguments.
    pub check: Option<Check>,
    /// The function of a registered converter: `eval` finds it after the arguments.
    own: Option<Arc<RegisteredConverter>>,
}

/// Calls the function of a registered converter.
fn call_own<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    (arguments.function::<RegisteredConverter>()?.0)(context, value, arguments)
}

impl Converter {
    /// Creates a row.
    pub const fn new(
        name: &'static str,
        signature: Signature,
        input: Type,
        output: Type,
        doc: &'static str,
        eval: Convert,
    ) -> Self {
        Self { name: Cow::Borrowed(name), signature, input, output, doc, eval, check: None, own: None }
    }

    /// Creates a registered row that owns its function.
    pub fn owned(
        name: impl Into<String>,
        signature: Signature,
        input: Type,
        output: Type,
        convert: impl for<'a> Fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync + 'static,
    ) -> Self {
        let row = Self::new("", signature, input, output, "", call_own);
        Self { name: Cow::Owned(name.into()), own: Some(Arc::new(RegisteredConverter(Box::new(convert)))), ..row }
    }

    /// The function that `eval` finds after the arguments.
    pub(crate) fn function(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(self.own.as_ref()?) as _)
    }

    /// Adds a check of the arguments.
    pub const fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }
}

/// Every family of this directory.
pub const FAMILIES: &[&[Converter]] = &[
    arithmetic::TABLE,
    base64::TABLE,
    bytes::TABLE,
    cipher::TABLE,
    date::TABLE,
    x509::TABLE,
    debug::TABLE,
    digest::TABLE,
    fix::TABLE,
    forwarded::TABLE,
    hash::TABLE,
    json::TABLE,
    jwe::TABLE,
    jwt::TABLE,
    kept::TABLE,
    map::TABLE,
    map::STR,
    map::BEG,
    map::SUB,
    map::DIR,
    map::DOM,
    map::END,
    map::REG,
    map::INT,
    map::IP,
    mqtt::TABLE,
    network::TABLE,
    packet::TABLE,
    protobuf::TABLE,
    replace::TABLE,
    split::TABLE,
    string::TABLE,
    url::TABLE,
    variable::TABLE,
    when::TABLE,
];

/// The rows of all families.
pub static ROWS: Rows<Converter> = Rows::new(&[FAMILIES], WAITING);

impl Row for Converter {
    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Converter({}{})", self.name, self.signature)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique_and_documented() {
        super::ROWS.assert_sound(|row| (row.doc, row.signature.required, row.signature.kinds.len()));
    }
}
