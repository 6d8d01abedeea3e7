//! HTTP requests of the process itself (configuration manual, section 3.4): resolves names and retries failed connections; `conn`
//! reads and writes the messages. Must never send a request twice that may have reached a server.

use std::net::SocketAddr;
use std::time::Duration;

use base::Moment;

use conn::client::{Answer, Destination, Exchange, Message, Timeouts, Uri};
use policy::program::HttpClient;
use rt::net::Address;
use wire::dns::Name;

use crate::resolve::lookup;
use crate::worker::Worker;

pub use conn::client;

/// Delay between two attempts, as for servers (configuration manual, "retries").
const PAUSE: Duration = Duration::from_secs(1);
/// Default time limit from the first attempt to the end of the response.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

/// A request of the process itself.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Target URI.
    pub uri: Uri,
    /// Fields other than `host` and `content-length`, in their order.
    pub fields: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// Proxy that receives the absolute URI in place of the server; for `http` only.
    pub proxy: Option<SocketAddr>,
    /// Time limit from the first attempt to the end of the response.
    pub timeout: Duration,
    /// Maximum inactivity of the server; if set, it replaces `timeout` once the connection is established.
    pub silence: Option<Duration>,
}

/// Reason of a failed request.
#[derive(Debug)]
pub enum Failure {
    /// The request cannot be encoded: its method, target or a field is invalid in HTTP.
    Malformed,
    /// The host name could not be resolved.
    Unresolved,
    /// `https` without CA certificates to verify the server.
    NoTls,
    /// The exchange failed.
    Exchange(client::Failure),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed => f.write_str("malformed request"),
            Self::Unresolved => f.write_str("host could not be resolved"),
            Self::NoTls => f.write_str("no CA certificates to verify the server with"),
            Self::Exchange(failure) => failure.fmt(f),
        }
    }
}

impl Request {
    /// Creates a request without a body.
    pub fn new(method: &str, uri: Uri) -> Self {
        let usual = [("accept", "*/*"), ("user-agent", "HAProxy")];
        let fields = usual.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Self { method: method.to_owned(), uri, fields, body: None, proxy: None, timeout: USUAL_TIMEOUT, silence: None }
    }

    /// Returns the timeouts of the exchange, which ends at `deadline` unless inactivity is limited instead.
    pub fn patience(&self, deadline: Moment) -> Timeouts {
        self.silence.map_or(Timeouts::Until(deadline), Timeouts::Silence)
    }

    fn message(&self) -> Option<Message> {
        let fields: Vec<(&str, &str)> =
            self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let absolute = self.proxy.map(|_| format!("http://{}{}", self.uri.authority, self.uri.target));
        let target = absolute.as_deref().unwrap_or(&self.uri.target);
        Message::new(&self.method, target, &self.uri.authority, &fields, self.body.as_deref())
    }
}

/// Sends a request, and reads the head of the response. Dropping the future or the result closes the connection.
///
/// # Errors
/// The reason of the failure.
pub async fn begin(worker: &Worker, request: &Request) -> Result<Exchange, Failure> {
    let client = worker.generation().program.http_client.clone();
    let message = request.message().ok_or(Failure::Malformed)?;
    let deadline = rt::now() + request.timeout;
    let tls = match (request.uri.is_secure, &client.tls) {
        (false, _) => None,
        (true, Some(tls)) if request.proxy.is_none() => Some((tls.clone(), request.uri.host.clone())),
        (true, _) => return Err(Failure::NoTls),
    };
    let mut left = client.retries;
    loop {
        let address = match request.proxy {
            Some(proxy) => Some(proxy),
            None => find(worker, &client, &request.uri).await,
        };
        let outcome = match address {
            None => Err(Failure::Unresolved),
            Some(address) => {
                let to = Destination { address: Address::Inet(address), tls: tls.clone() };
                let connect_by = client.connect.map_or(deadline, |time| rt::now() + time).min(deadline);
                let patience = request.patience(deadline);
                Exchange::begin(&to, &message, connect_by, patience).await.map_err(Failure::Exchange)
            }
        };
        match outcome {
            Err(Failure::Exchange(failure)) if failure.is_of_connecting() && left > 0 => left -= 1,
            outcome => return outcome,
        }
        let next = rt::now() + client.connect.map_or(PAUSE, |time| time.min(PAUSE));
        if next >= deadline {
            return Err(Failure::Exchange(client::Failure::Expired));
        }
        rt::sleep_until(next).await;
    }
}

/// Sends a request, and reads the whole response, with a body of at most `most` bytes.
///
/// # Errors
/// As for [`begin`], and if the response is incomplete or too long.
pub async fn send(worker: &Worker, request: &Request, most: usize) -> Result<Answer, Failure> {
    begin(worker, request).await?.whole(most).await.map_err(Failure::Exchange)
}

/// Returns the address of a URI's host, resolving it if it is a name.
async fn find(worker: &Worker, client: &HttpClient, uri: &Uri) -> Option<SocketAddr> {
    let ip = match uri.ip() {
        Some(ip) => ip,
        None => {
            let name = Name::parse(&uri.host)?;
            lookup(worker, client.section?, name, Some(client.prefers_ipv4), true).await?
        }
    };
    Some(SocketAddr::new(ip, uri.port))
}
