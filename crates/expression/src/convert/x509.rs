//! OpenSSL's names of certificate verification results. Must never verify a certificate.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Signature};
use std::fmt::Write as _;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[Converter::new(
    "x509_v_err_str",
    Signature::NONE,
    Type::Int,
    Type::Str,
    "OpenSSL's name of a verification result; the number if it has none.",
    name,
)];

fn name<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let Value::Int(number) = value else { return None };
    match u8::try_from(number).ok().and_then(tls::faults::name) {
        Some(name) => Some(Value::Str(name.as_bytes())),
        None => {
            let mut text = context.text(20);
            let _ = write!(text, "{number}");
            text.finish().map(Value::Str)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn numbers_have_names() {
        let rows = [
            ("int(0),x509_v_err_str", "X509_V_OK"),
            ("int(10),x509_v_err_str", "X509_V_ERR_CERT_HAS_EXPIRED"),
            ("str(23),x509_v_err_str", "X509_V_ERR_CERT_REVOKED"),
            ("int(4000),x509_v_err_str", "4000"),
            ("int(-1),x509_v_err_str", "-1"),
        ];
        check_rows(&Scene::default(), &rows);
    }
}
