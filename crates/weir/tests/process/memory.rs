//! A process with limited memory: clients that would exceed it wait, and all are served eventually.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Condvar, Mutex};
use std::thread;

/// Clients that each leave a buffer's worth of a body incomplete: together, twice the available memory.
const CLIENTS: usize = 300;
const BUFFER: usize = 256 << 10;
const BODY: usize = BUFFER - 8192;
/// Clients of answers that end with their connection, at each of two moments.
const ENDS: usize = 10;
/// The length of such an answer: more than sockets hold.
const ANSWER: usize = 8 << 20;
/// Memory limit in megabytes.
const LIMIT: usize = 64;

/// A barrier that opens once for all waiting threads.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let mut open = self.0.lock().expect("no panic");
        while !*open {
            open = self.1.wait(open).expect("no panic");
        }
    }
}

/// Runs a server that answers every request once its body is complete.
fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(mut stream: TcpStream) {
    let (mut head, mut body) = (Vec::new(), vec![0; BODY]);
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        head.push(byte[0]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        if head.starts_with(b"GET /end ") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").and_then(|()| stream.write_all(&vec![b'e'; ANSWER]));
            return;
        }
        let has_body = head.starts_with(b"POST");
        head.clear();
        if (has_body && stream.read_exact(&mut body).is_err())
            || stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err()
        {
            return;
        }
    }
}

/// Asks for an answer that ends with its connection, and reads once the gate is open: returns the length of the body.
fn read_to_end(port: u16, gate: &Gate) -> std::io::Result<usize> {
    let mut stream = connect(port);
    stream.write_all(b"GET /end HTTP/1.1\r\nhost: a\r\n\r\n")?;
    gate.wait();
    let mut all = Vec::new();
    // A reset is an error.
    stream.read_to_end(&mut all)?;
    Ok(all.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |end| all.len() - end - 4))
}

/// Runs it with that limit: by its own flag, or by that of the system.
fn starved(by_flag: bool) {
    let folder = Folder::new();
    let port = free_port();
    let text = format!(
        "global\n    nbthread 1\n    maxconn 1000\n    log stdout format raw local0\n    tune.bufsize {BUFFER}\n{DEFAULTS}    option \
         http-buffer-request\nlisten l\n    bind 127.0.0.1:{port}\n    server s1 127.0.0.1:{}\n",
        origin()
    );
    let file = folder.write("memory.cfg", &text);
    let mut command = Command::new(crate::support::WEIR);
    command.args(["-db", "-f", &file]);
    if by_flag {
        command.args(["-m", &LIMIT.to_string()]);
    } else {
        limit_data(&mut command);
    }
    let mut running = Running::start(&mut command);
    let mut before = connect(port);
    assert_eq!(exchange(&mut before, &get("/")).0, 200);
    let gate = Gate::default();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = connect(port);
                    let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY}\r\n\r\n");
                    let mut message = head.into_bytes();
                    message.resize(message.len() + BODY, b'x');
                    let (last, most) = message.split_last().expect("not empty");
                    stream.write_all(most)?;
                    gate.wait();
                    stream.write_all(&[*last])?;
                    let mut answer = [0; 15];
                    stream.read_exact(&mut answer)?;
                    Ok::<_, std::io::Error>(answer)
                })
            })
            .collect();
        let ends = || (0..ENDS).map(|_| scope.spawn(|| read_to_end(port, &gate))).collect::<Vec<_>>();
        let early = ends();
        running.wait_for_line(|line| line.contains("Memory is scarce"));
        let late = ends();
        gate.open();
        // Neither the scarcity nor its end cuts an answer.
        for client in early.into_iter().chain(late) {
            let length = client.join().expect("no panic");
            assert_eq!(length.map_err(|error| error.to_string()), Ok(ANSWER));
        }
        for client in clients {
            let answer = client.join().expect("no panic");
            assert_eq!(answer.as_ref().map_err(ToString::to_string), Ok(b"HTTP/1.1 200 OK"));
        }
    });
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 200, "and it goes on");
    assert_eq!(running.try_status(), None, "it lives");
}

/// Starts the program with a limit.
fn limit_data(command: &mut Command) {
    let limited = format!("ulimit -d {} && exec \"$0\" \"$@\"", LIMIT << 10);
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(limited).arg(command.get_program()).args(command.get_args());
    *command = shell;
}

#[test]
fn clients_wait_where_the_process_is_limited() {
    starved(true);
}

#[test]
fn clients_wait_where_the_system_limits_the_process() {
    starved(false);
}
