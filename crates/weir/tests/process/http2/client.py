"""Clients of Python for the tests of Weir: httpx, and h2, which tells every frame."""

import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings
import httpx

PORT = int(sys.argv[1])


class Connection:
    """A connection of HTTP/2 by TLS."""

    def __init__(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", PORT), 60))
        assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration())
        self.h2.initiate_connection()
        self.events = []
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def wait(self, wanted):
        """The next event that is wanted; those before it are forgotten. What comes is credited."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    self.flush()
                if wanted(event):
                    return event
            data = self.socket.recv(65536)
            assert data, "the connection ended"
            self.events = self.h2.receive_data(data)
            self.flush()

    def begin(self, method, path, *more, end=False):
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", "a"), (":path", path), *more]
        self.h2.send_headers(stream, head, end_stream=end)
        self.flush()
        return stream

    def send(self, stream, data, end=False):
        self.h2.send_data(stream, data, end_stream=end)
        self.flush()

    def status(self, stream):
        event = self.wait(lambda event: isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream)
        return dict(event.headers)[b":status"]

    def body(self, stream):
        """The payload up to the end, and the trailers."""
        payload, trailers = b"", None
        while True:
            event = self.wait(lambda event: getattr(event, "stream_id", None) == stream)
            if isinstance(event, h2.events.DataReceived):
                payload += event.data
            elif isinstance(event, h2.events.TrailersReceived):
                trailers = dict(event.headers)
            elif isinstance(event, h2.events.StreamEnded):
                return payload, trailers
            else:
                assert not isinstance(event, h2.events.StreamReset), event


def by_httpx():
    with httpx.Client(http2=True, verify=False, timeout=60) as client:
        for size in (0, 1, 100_000, 1_000_000):
            answer = client.post(f"https://127.0.0.1:{PORT}/echo", content=b"x" * size)
            assert answer.http_version == "HTTP/2" and answer.status_code == 200, answer
            assert answer.content == b"x" * size, len(answer.content)


def by_reset():
    """A request that its client takes back harms no other one on the connection."""
    connection = Connection()
    first = connection.begin("POST", "/echo")
    connection.send(first, b"some")
    assert connection.status(first) == b"200"
    connection.h2.reset_stream(first)
    connection.flush()
    second = connection.begin("POST", "/echo", ("trailer", "x-said"))
    connection.send(second, b"more")
    connection.h2.send_headers(second, [("x-said", "behind")], end_stream=True)
    connection.flush()
    assert connection.status(second) == b"200"
    payload, trailers = connection.body(second)
    assert payload == b"more" and trailers[b"x-sum"] == b"4 behind", (payload, trailers)


def by_ping():
    connection = Connection()
    connection.h2.ping(b"12345678")
    connection.flush()
    answered = connection.wait(lambda event: isinstance(event, h2.events.PingAckReceived))
    assert answered.ping_data == b"12345678"


def by_websocket():
    """A web socket on a stream (RFC 8441)."""
    connection = Connection()
    connection.wait(lambda event: isinstance(event, h2.events.RemoteSettingsChanged))
    assert connection.h2.remote_settings.enable_connect_protocol == 1
    stream = connection.begin("CONNECT", "/ws", (":protocol", "websocket"), ("sec-websocket-version", "13"))
    assert connection.status(stream) == b"200"
    for word in (b"one", b"two" * 5_000):
        connection.send(stream, word)
        got = b""
        while len(got) < len(word):
            got += connection.wait(lambda event: isinstance(event, h2.events.DataReceived)).data
        assert got == word


def stop():
    """The process stops in the middle of a request: it says so, and the request is answered whole."""
    # The library takes a connection for closed after GOAWAY, where open streams go on (RFC 9113, section 6.8).
    machine, opened = h2.connection.H2ConnectionStateMachine, h2.connection.ConnectionState.CLIENT_OPEN
    machine._transitions[(opened, h2.connection.ConnectionInputs.RECV_GOAWAY)] = (None, opened)
    connection = Connection()
    stream = connection.begin("POST", "/echo")
    connection.send(stream, b"before ")
    assert connection.status(stream) == b"200"
    print("asked", flush=True)
    gone = connection.wait(lambda event: isinstance(event, h2.events.ConnectionTerminated))
    assert gone.error_code == 0 and gone.last_stream_id >= stream, gone
    print("goaway", flush=True)
    connection.send(stream, b"after", end=True)
    payload, _ = connection.body(stream)
    assert payload.endswith(b"after"), payload


if sys.argv[2] == "stop":
    stop()
else:
    for name, case in (("httpx", by_httpx), ("reset", by_reset), ("ping", by_ping), ("websocket", by_websocket)):
        case()
        print("ok", name, flush=True)
