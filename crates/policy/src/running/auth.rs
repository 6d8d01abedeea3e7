//! Fetches of a request's credentials (section 7.3.6). Must never write a password to a log.

use crate::program::{ProgramContext, User};
use base::base64;
use expression::crypt::PasswordHash;
use expression::fetch::{Fetch, plain};
use expression::sample::{Context, Direction, Places, Type, Value};
use expression::{Argument, Arguments, Kind, Signature};
use wire::http::Head;

const LIST: Signature = Signature::new(1, &[Kind::Userlist]);

/// The fetches of this family.
pub const TABLE: &[Fetch] = &[
    Fetch::new(
        "http_auth",
        LIST,
        Type::Bool,
        Places::REQUEST,
        "Whether the credentials of the request belong to a user of the list.",
        |context, arguments| {
            basic(context)?;
            Some(Value::Bool(user(context, arguments).is_some()))
        },
    ),
    Fetch::new(
        "http_auth_group",
        LIST,
        Type::Str,
        Places::REQUEST,
        "Name of the authenticated user; in ACLs, the groups of that user.",
        |context, arguments| user(context, arguments).and_then(|_| basic(context)).map(|(name, _)| Value::Str(name)),
    )
    .each(|context, arguments, visit| {
        user(context, arguments).is_some_and(|user| user.groups.iter().any(|group| visit(Value::Str(group))))
    }),
    Fetch::new(
        "http_auth_bearer",
        NAME,
        Type::Str,
        Places::REQUEST,
        "The token of the Bearer scheme.",
        http_auth_bearer,
    ),
    plain("http_auth_pass", Type::Str, Places::REQUEST, "The password of the Basic scheme.", |context, _| {
        basic(context).map(|(_, password)| Value::Str(password))
    }),
    plain("http_auth_type", Type::Str, Places::REQUEST, "The scheme of the credentials: Basic or Bearer.", scheme),
    plain("http_auth_user", Type::Str, Places::REQUEST, "The user name of the Basic scheme.", |context, _| {
        basic(context).map(|(name, _)| Value::Str(name))
    }),
];

const NAME: Signature = Signature::new(0, &[Kind::Str]);
const AUTHORIZATION: &[u8] = b"authorization";

/// Returns the authenticated user of the request. Password hashes were compared before.
fn user<'a>(context: &Context<'a>, arguments: &Arguments) -> Option<&'a User> {
    let Argument::Userlist(index) = arguments.get(0) else { return None };
    let list = context.program()?.userlists.get(*index)?;
    let (name, password) = basic(context)?;
    let user = list.find(name)?;
    let proved = |hidden: &PasswordHash| {
        context.live().is_some_and(|live| live.passwords.has(&live.passwords.proof(hidden, password)))
    };
    user.password.as_ref()?.is(password, proved).then_some(user)
}

/// Returns the request's head, if requests are being evaluated.
fn request<'a>(context: &Context<'a>) -> Option<&'a Head> {
    if context.direction == Direction::Request { context.request_head() } else { None }
}

/// Returns the scheme and the credentials after it (RFC 9110, section 11.4).
fn credentials<'a>(context: &Context<'a>, field: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let value = request(context)?.first(field)?.trim_ascii();
    let end = memchr::memchr(b' ', value)?;
    Some((&value[..end], value[end..].trim_ascii()))
}

/// Returns the name of the credentials field, which depends on whether Weir is used as a proxy (`option
/// http-use-proxy-header`).
fn credentials_field(context: &Context<'_>) -> &'static [u8] {
    let http = context.frontend().map(|frontend| &frontend.http);
    http.zip(context.request).map_or(AUTHORIZATION, |(http, request)| http.credentials_field(request))
}

/// Returns name and password (RFC 7617, section 2).
fn basic<'a>(context: &Context<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let (scheme, coded) = credentials(context, credentials_field(context))?;
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let mut text = context.text(coded.len() / 4 * 3);
    base64::decode(coded, |bytes| text.extend(bytes))?;
    let pair = text.finish()?;
    let colon = memchr::memchr(b':', pair)?;
    Some((&pair[..colon], &pair[colon + 1..]))
}

/// Returns the token (RFC 6750, section 2.1).
fn bearer<'a>(context: &Context<'a>, field: &[u8]) -> Option<&'a [u8]> {
    let (scheme, token) = credentials(context, field)?;
    scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
}

fn http_auth_bearer<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let Some(field) = arguments.text(0).filter(|name| !name.is_empty()) else {
        return bearer(context, credentials_field(context)).map(Value::Str);
    };
    // Another field may be absent, or contain only the scheme: the token is empty then, as in HAProxy.
    let value = request(context)?.first(field).unwrap_or(b"Bearer").trim_ascii();
    let end = memchr::memchr(b' ', value).unwrap_or(value.len());
    value[..end].eq_ignore_ascii_case(b"bearer").then(|| Value::Str(value[end..].trim_ascii()))
}

fn scheme<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    if basic(context).is_some() {
        return Some(Value::Str(b"Basic"));
    }
    bearer(context, credentials_field(context)).map(|_| Value::Str(b"Bearer"))
}

#[cfg(test)]
mod tests {
    use crate::running::tests::{Scene, check_rows};

    #[test]
    fn credentials_are_told_as_they_come() {
        let names = ["http_auth_type", "http_auth_user", "http_auth_pass", "http_auth_bearer", "http_auth_bearer(x-b)"];
        let rows: &[(&str, [&str; 5])] = &[
            ("Basic dXNlcjpwYTpzcw==", ["Basic", "user", "pa:ss", "<none>", "tok"]),
            ("basic   dXNlcjpw", ["Basic", "user", "p", "<none>", "tok"]),
            ("Basic dXNlcg==", ["<none>", "<none>", "<none>", "<none>", "tok"]),
            ("Basic !!", ["<none>", "<none>", "<none>", "<none>", "tok"]),
            ("Basic", ["<none>", "<none>", "<none>", "<none>", "tok"]),
            ("Basic OnA=", ["Basic", "", "p", "<none>", "tok"]),
            ("bearer  abc def ", ["Bearer", "<none>", "<none>", "abc def", "tok"]),
            ("Digest a=b", ["<none>", "<none>", "<none>", "<none>", "tok"]),
        ];
        for (field, expected) in rows {
            let scene = Scene::request("GET", "/", &[("authorization", field), ("x-b", "Bearer tok")]);
            for (name, expected) in names.iter().zip(expected) {
                assert_eq!(scene.eval(name), *expected, "{name} of {field}");
            }
        }
        check_rows(&Scene::request("GET", "/", &[]), &[("http_auth_type", "<none>"), ("http_auth_bearer", "<none>")]);
    }
}
