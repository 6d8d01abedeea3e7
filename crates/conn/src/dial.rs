//! Opens connections that carry no request: to peers, log servers and name servers. Must never wait by itself: callers
//! poll it within their own deadlines.

use std::io;

use rt::net::{Address, ConnectOptions};
use tls::{Client, Connection, asked_name};

use crate::transport::{self, Insecure, Transport};

/// How a connection is secured by TLS.
#[derive(Debug, Clone, Copy)]
pub struct Security<'a> {
    /// The client configuration: versions, ciphers, verification of the server.
    pub client: &'a Client,
    /// The server name sent in the handshake (RFC 6066, section 3).
    pub name: Option<&'a str>,
}

/// Why the connection failed.
#[derive(Debug)]
pub enum Failure {
    /// An error of the operating system.
    System(io::Error),
    /// The connection was established, and the TLS handshake failed.
    Insecure(Insecure),
}

/// Connects, and completes the TLS handshake if the connection is to be secured.
///
/// # Errors
/// The connection is closed.
pub async fn dial(
    to: &Address,
    options: &ConnectOptions,
    security: Option<Security<'_>>,
) -> Result<Transport, Failure> {
    let stream = transport::connect(to, options).map_err(Failure::System)?.await.map_err(Failure::System)?;
    let Some(Security { client, name }) = security else { return Ok(stream) };
    let asked = asked_name(name, to.inet().map(|address| address.ip()));
    let broken = |failure| Failure::Insecure(Insecure::Handshake(failure));
    let mut stream = stream.with_tls(Connection::of_client(client, asked, None).map_err(broken)?);
    stream.begin_tls(&[]);
    std::future::poll_fn(|cx| stream.poll_handshake(cx)).await.map_err(Failure::Insecure)?;
    Ok(stream)
}
