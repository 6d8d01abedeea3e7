//! The requests for which every expression is evaluated.

/// Requests without the field that names the expression, and without their end.
pub const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a.b\r\n",
    "GET /a/b/c.gif?k=1&a=x%20y&b HTTP/1.1\r\nHost: www.Example.com:8080\r\nUser-Agent: Agent/1.0 (X)\r\n",
    "HEAD /x?a=b HTTP/1.1\r\nHost: h\r\nX-List: 1, 2,\"3,4\"\r\nx-list: 5\r\nCookie: a=1; b=\"2\"; k=v\r\n",
    "GET http://host.name/p?q HTTP/1.1\r\nHost: host.name\r\nCookie: a\r\nCookie: k=z; a=9\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nAccept-Language: de;q=0.8, en\r\nAuthorization: Basic dXNlcjpwYXNz\r\n",
    "DELETE //a//b HTTP/1.1\r\nHost:\r\nX-List:\r\nContent-Length: 0\r\n",
];
