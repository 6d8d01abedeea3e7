//! Converters: what may be made of a sample (configuration manual, section 7.3.1). Owns the form of their tables and the
//! list of families; a family is a file with its functions and its rows. Must never fetch anything.

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

/// Converts a sample; `None`: it cannot be, and there is no sample any more.
pub type Convert = for<'a> fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>>;

/// What a registered row makes of a sample.
type OwnConvert = dyn for<'a> Fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync;

/// The function of a registered row.
struct Own(Box<OwnConvert>);

/// One row.
#[derive(Clone)]
pub struct Converter {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it takes.
    pub signature: Signature,
    /// What its input is cast to before.
    pub input: Type,
    /// What it gives; [`Type::Any`]: that shows when it is there.
    pub output: Type,
    /// What it makes, in a sentence.
    pub doc: &'static str,
    /// How.
    pub eval: Convert,
    /// Looks at its arguments.
    pub check: Option<Check>,
    /// Its function, where the row is registered: `eval` finds it behind the arguments.
    own: Option<Arc<Own>>,
}

/// Calls the function of a registered row.
fn call_own<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    (arguments.function::<Own>()?.0)(context, value, arguments)
}

impl Converter {
    /// A row.
    pub const fn new(
        name: &'static str,
        signature: Signature,
        (input, output): (Type, Type),
        doc: &'static str,
        eval: Convert,
    ) -> Self {
        Self { name: Cow::Borrowed(name), signature, input, output, doc, eval, check: None, own: None }
    }

    /// A row that is registered, with a function that it owns.
    pub fn owned(
        name: impl Into<String>,
        signature: Signature,
        (input, output): (Type, Type),
        convert: impl for<'a> Fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>> + Send + Sync + 'static,
    ) -> Self {
        let row = Self::new("", signature, (input, output), "", call_own);
        Self { name: Cow::Owned(name.into()), own: Some(Arc::new(Own(Box::new(convert)))), ..row }
    }

    /// What `eval` finds behind the arguments.
    pub(crate) fn function(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(self.own.as_ref()?) as _)
    }

    /// The same with a look at the arguments.
    pub const fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }
}

/// Every family that stands here.
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

/// Every row of them.
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
