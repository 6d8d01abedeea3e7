//! Answers to requests of other origins (the Fetch standard).

use std::fmt::Write as _;

use super::word::{Unwritable, format, name, quoted};
use crate::desired::Cors;

/// Appends the rules: a preflight is answered, and fields are added to answers of requests whose origin is accepted.
pub fn push(cors: &Cors, text: &mut String) -> Result<(), Unwritable> {
    let _ = writeln!(text, "    http-request set-var(txn.weir_origin) req.fhdr(origin)");
    for origin in &cors.origins {
        let _ = writeln!(
            text,
            "    http-request set-var(txn.weir_cors) bool(true) if {{ var(txn.weir_origin) {} }}",
            condition(origin)?
        );
    }
    let list = |values: &[String]| -> Result<String, Unwritable> {
        for value in values {
            name("a value of cors", value).or_else(|error| if value == "*" { Ok("*") } else { Err(error) })?;
        }
        Ok(values.join(", "))
    };
    let any = |values: &[String]| values.iter().any(|value| value == "*");
    let accepted = "{ var(txn.weir_cors) -m bool }";
    let mut preflight = String::from(" hdr access-control-allow-origin '%[var(txn.weir_origin)]'");
    if cors.credentials {
        preflight.push_str(" hdr access-control-allow-credentials true");
    }
    let methods =
        if any(&cors.methods) { "%[req.fhdr(access-control-request-method)]".to_owned() } else { list(&cors.methods)? };
    let headers = if any(&cors.headers) {
        "%[req.fhdr(access-control-request-headers)]".to_owned()
    } else {
        list(&cors.headers)?
    };
    for (field, value) in [("access-control-allow-methods", methods), ("access-control-allow-headers", headers)] {
        if !value.is_empty() {
            let _ = write!(preflight, " hdr {field} {}", quoted("a value of cors", &value)?);
        }
    }
    if !cors.expose_headers.is_empty() {
        let _ = write!(
            preflight,
            " hdr access-control-expose-headers {}",
            quoted("a value of cors", &list(&cors.expose_headers)?)?
        );
    }
    let is_preflight =
        "METH_OPTIONS { var(txn.weir_origin) -m found } { req.fhdr(access-control-request-method) -m found }";
    let _ = writeln!(
        text,
        "    http-request return status 204{preflight} hdr access-control-max-age {} hdr vary origin if {is_preflight} {accepted}\n    \
         http-request return status 204 hdr vary origin if {is_preflight}",
        cors.max_age
    );
    let _ = writeln!(
        text,
        "    http-response set-header access-control-allow-origin '%[var(txn.weir_origin)]' if {accepted}"
    );
    if cors.credentials {
        let _ = writeln!(text, "    http-response set-header access-control-allow-credentials true if {accepted}");
    }
    if !cors.expose_headers.is_empty() {
        let exposed = format("a value of cors", &list(&cors.expose_headers)?)?;
        let _ = writeln!(text, "    http-response set-header access-control-expose-headers {exposed} if {accepted}");
    }
    Ok(())
}

/// An origin may be `*`, or have a `*` for the first labels of its host.
fn condition(origin: &str) -> Result<String, Unwritable> {
    if origin == "*" {
        return Ok("-m found".into());
    }
    match origin.split_once('*') {
        None => Ok(format!("-m str -i -- {}", quoted("an origin", origin)?)),
        Some((front, back)) => {
            let escape = |part: &str| -> String {
                part.chars()
                    .flat_map(|letter| if letter.is_ascii_alphanumeric() { vec![letter] } else { vec!['\\', letter] })
                    .collect()
            };
            let regex = format!("^{}[a-z0-9.-]+{}$", escape(front), escape(back));
            Ok(format!("-m reg -i -- {}", quoted("an origin", &regex)?))
        }
    }
}
