//! Messages of the ACME protocol (RFC 8555): JSON objects are parsed and serialized. Values of a server that the client
//! repeats elsewhere are validated. Must never sign, send or wait.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

/// Maximum number of authorizations followed per order: one per identifier, and no CA permits more than a hundred.
const MOST_AUTHORIZATIONS: usize = 100;

/// The directory resource: URLs of a server's endpoints (RFC 8555, section 7.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// URL that issues fresh nonces.
    pub new_nonce: String,
    /// URL that creates accounts.
    pub new_account: String,
    /// URL that creates orders.
    pub new_order: String,
    /// Whether a new account requires an external account binding (`externalAccountRequired`).
    pub needs_binding: bool,
}

/// The status of an order, an authorization or a challenge (RFC 8555, section 7.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The client has to act first.
    Pending,
    /// The order can be finalized.
    Ready,
    /// The server is processing the request.
    Processing,
    /// Completed successfully.
    Valid,
    /// Failed, expired, revoked or deactivated.
    Invalid,
}

/// An order (RFC 8555, section 7.1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub status: Status,
    /// URLs of the authorizations to complete.
    pub authorizations: Vec<String>,
    /// URL that takes the certificate signing request.
    pub finalize: String,
    /// URL of the certificate, once it is issued.
    pub certificate: Option<String>,
    /// The reason for a failure.
    pub error: Option<Problem>,
}

/// An authorization: an identifier whose control has to be proved (RFC 8555, section 7.1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    pub status: Status,
    /// The domain or address, without the `*.` of a wildcard.
    pub identifier: String,
    /// Challenges that the server offers, any of which is sufficient.
    pub challenges: Vec<Challenge>,
}

/// A challenge (RFC 8555, section 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Challenge type, such as `http-01`.
    pub kind: String,
    /// URL to which the client announces that it is ready for validation.
    pub url: String,
    /// Token in base64url; empty for challenge types that have none.
    pub token: String,
    /// Value of a persistent DNS record (draft-ietf-acme-dns-persist, section 3): the first issuer's name and the
    /// account. Empty for other challenge types.
    pub record: String,
    pub status: Status,
    /// The reason for a failure.
    pub error: Option<Problem>,
}

/// A problem document (RFC 7807).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// Problem type, such as `urn:ietf:params:acme:error:badNonce`.
    pub kind: String,
    /// Human-readable explanation.
    pub detail: String,
}

impl Problem {
    /// Parses a problem document; both fields are empty if `body` is none.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).map_or_else(|_| Self::default(), |value| Self::of(&value))
    }

    fn of(value: &Value) -> Self {
        let text = |name: &str| printable(value.get(name).and_then(Value::as_str).unwrap_or_default());
        // Of several subproblems the first one is reported, unless the document has a detail of its own.
        match value.get("subproblems").and_then(Value::as_array).and_then(|all| all.first()) {
            Some(first) if text("detail").is_empty() => Self::of_flat(first),
            _ => Self { kind: text("type"), detail: text("detail") },
        }
    }

    fn of_flat(value: &Value) -> Self {
        let text = |name: &str| printable(value.get(name).and_then(Value::as_str).unwrap_or_default());
        Self { kind: text("type"), detail: text("detail") }
    }

    /// Whether the request can be repeated with another nonce (RFC 8555, section 6.5).
    pub fn is_bad_nonce(&self) -> bool {
        self.kind == "urn:ietf:params:acme:error:badNonce"
    }

    /// Whether the server limits the rate of requests.
    pub fn is_rate_limit(&self) -> bool {
        self.kind == "urn:ietf:params:acme:error:rateLimited"
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind.as_str(), self.detail.as_str()) {
            ("", "") => f.write_str("no problem document"),
            (kind, detail) => write!(f, "\"{detail}\" ({kind})"),
        }
    }
}

/// Sanitizes a server's text for a log line: at most 512 characters, control characters replaced.
fn printable(text: &str) -> String {
    text.chars().take(512).map(|found| if found.is_control() { '?' } else { found }).collect()
}

fn object(body: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Value>(body).ok().filter(Value::is_object)
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn status(value: &Value) -> Option<Status> {
    Some(match value.get("status")?.as_str()? {
        "pending" => Status::Pending,
        "ready" => Status::Ready,
        "processing" => Status::Processing,
        "valid" => Status::Valid,
        "invalid" | "deactivated" | "expired" | "revoked" => Status::Invalid,
        _ => return None,
    })
}

fn problem(value: &Value) -> Option<Problem> {
    value.get("error").filter(|error| error.is_object()).map(Problem::of)
}

/// Parses a directory.
pub fn directory(body: &[u8]) -> Option<Directory> {
    let value = object(body)?;
    let needs_binding = value
        .get("meta")
        .and_then(|meta| meta.get("externalAccountRequired"))
        .and_then(Value::as_bool)
        .unwrap_or(false);
    Some(Directory {
        new_nonce: text(&value, "newNonce")?,
        new_account: text(&value, "newAccount")?,
        new_order: text(&value, "newOrder")?,
        needs_binding,
    })
}

/// Parses an order.
pub fn order(body: &[u8]) -> Option<Order> {
    let value = object(body)?;
    let authorizations = value.get("authorizations")?.as_array()?;
    if authorizations.len() > MOST_AUTHORIZATIONS {
        return None;
    }
    Some(Order {
        status: status(&value)?,
        authorizations: authorizations.iter().map(|url| url.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        finalize: text(&value, "finalize")?,
        certificate: text(&value, "certificate"),
        error: problem(&value),
    })
}

/// Parses an authorization.
pub fn authorization(body: &[u8]) -> Option<Authorization> {
    let value = object(body)?;
    let challenges = value.get("challenges")?.as_array()?.iter().filter_map(challenge);
    Some(Authorization {
        status: status(&value)?,
        identifier: value.get("identifier")?.get("value")?.as_str()?.to_owned(),
        challenges: challenges.collect(),
    })
}

/// Parses a challenge. Returns `None` if a member is missing or the token contains a character outside of base64url.
fn challenge(value: &Value) -> Option<Challenge> {
    let token = text(value, "token").unwrap_or_default();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if token.len() > 256 || !token.bytes().all(is_letter) {
        return None;
    }
    Some(Challenge {
        kind: text(value, "type")?,
        url: text(value, "url")?,
        token,
        record: record(value).unwrap_or_default(),
        status: status(value)?,
        error: problem(value),
    })
}

fn record(value: &Value) -> Option<String> {
    let issuer = value.get("issuer-domain-names")?.as_array()?.first()?.as_str()?;
    let account = value.get("accounturi")?.as_str()?;
    Some(printable(&format!("{issuer}; accounturi={account}")))
}

/// Builds the payload of newAccount (RFC 8555, section 7.3). `binding` is the member `externalAccountBinding`, as JSON.
pub fn new_account(contact: Option<&str>, binding: Option<&str>) -> String {
    let mut value = Map::new();
    value.insert("termsOfServiceAgreed".to_owned(), json!(true));
    if let Some(contact) = contact {
        value.insert("contact".to_owned(), json!([format!("mailto:{contact}")]));
    }
    if let Some(binding) = binding.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        value.insert("externalAccountBinding".to_owned(), binding);
    }
    Value::Object(value).to_string()
}

/// Builds the payload of newOrder (RFC 8555, section 7.4; RFC 8738 for IP addresses).
pub fn new_order(domains: &[Box<str>], ips: &[IpAddr], profile: Option<&str>) -> String {
    let domains = domains.iter().map(|name| json!({"type": "dns", "value": name}));
    let ips = ips.iter().map(|ip| json!({"type": "ip", "value": ip.to_string()}));
    let mut value = json!({"identifiers": domains.chain(ips).collect::<Vec<_>>()});
    if let (Some(profile), Some(members)) = (profile, value.as_object_mut()) {
        members.insert("profile".to_owned(), json!(profile));
    }
    value.to_string()
}

/// Builds the payload that finalizes an order; `request` is the CSR in base64url (RFC 8555, section 7.4).
pub fn finalize(request: &str) -> String {
    json!({"csr": request}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_read() {
        let body = br#"{"newNonce":"n","newAccount":"a","newOrder":"o","meta":{"externalAccountRequired":true},"x":1}"#;
        let found = directory(body).unwrap();
        assert_eq!((found.new_order.as_str(), found.needs_binding), ("o", true));
        let body = br#"{"status":"invalid","authorizations":["u","v"],"finalize":"f",
            "error":{"type":"urn:ietf:params:acme:error:unauthorized","detail":"no\nway"}}"#;
        let found = order(body).unwrap();
        assert_eq!((found.status, found.authorizations.len(), found.certificate), (Status::Invalid, 2, None));
        assert_eq!(found.error.unwrap().to_string(), "\"no?way\" (urn:ietf:params:acme:error:unauthorized)");
        let body = br#"{"status":"pending","identifier":{"type":"dns","value":"a.example"},"challenges":[
            {"type":"http-01","url":"u","token":"ab-_","status":"pending"},
            {"type":"dns-persist-01","url":"v","status":"pending","accounturi":"https://c/1","issuer-domain-names":["ca.example"]},
            {"type":"http-01","url":"u","token":"../x","status":"pending"},
            {"type":"odd"}]}"#;
        let found = authorization(body).unwrap();
        assert_eq!(found.challenges[1].record, "ca.example; accounturi=https://c/1");
        let kinds: Vec<_> = found.challenges.iter().map(|one| (one.kind.as_str(), one.token.as_str())).collect();
        assert_eq!(
            (found.identifier.as_str(), kinds),
            ("a.example", vec![("http-01", "ab-_"), ("dns-persist-01", "")])
        );
    }

    #[test]
    fn what_is_no_such_object_is_none() {
        for body in ["", "[]", "{}", "{", r#"{"status":"odd","authorizations":[],"finalize":"f"}"#, "\"x\"", "1e999"] {
            assert_eq!((directory(body.as_bytes()), order(body.as_bytes())), (None, None), "{body}");
            assert_eq!(authorization(body.as_bytes()), None, "{body}");
        }
        let many = format!(r#"{{"status":"ready","authorizations":[{}"u"],"finalize":"f"}}"#, "\"u\",".repeat(100));
        assert_eq!(order(many.as_bytes()), None);
        assert_eq!(directory("[".repeat(100_000).as_bytes()), None);
    }

    #[test]
    fn what_is_asked_for_is_written() {
        assert_eq!(new_account(None, None), r#"{"termsOfServiceAgreed":true}"#);
        let bound = new_account(Some("a@b.c"), Some(r#"{"payload":"x"}"#));
        let expected =
            r#"{"contact":["mailto:a@b.c"],"externalAccountBinding":{"payload":"x"},"termsOfServiceAgreed":true}"#;
        assert_eq!(bound, expected);
        let order = new_order(&["a.example".into()], &["::1".parse().unwrap()], Some("shortlived"));
        let expected = r#"{"identifiers":[{"type":"dns","value":"a.example"},{"type":"ip","value":"::1"}],"profile":"shortlived"}"#;
        assert_eq!(order, expected);
        assert_eq!(finalize("abc"), r#"{"csr":"abc"}"#);
    }

    #[test]
    fn problems_are_told_in_one_line() {
        assert_eq!(Problem::read(b"<html>").to_string(), "no problem document");
        assert!(Problem::read(br#"{"type":"urn:ietf:params:acme:error:badNonce"}"#).is_bad_nonce());
        let several = br#"{"type":"compound","subproblems":[{"type":"urn:ietf:params:acme:error:caa","detail":"d"}]}"#;
        assert_eq!(Problem::read(several).to_string(), "\"d\" (urn:ietf:params:acme:error:caa)");
    }
}
