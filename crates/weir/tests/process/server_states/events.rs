//! Settings of the server under test, and the events of a sequence.

/// Settings of a backend and of its server, by variant. `{agent}` is the port of the agent.
pub struct Variant {
    /// Lines of the backend.
    pub lines: &'static str,
    /// Options of the server.
    pub server: &'static str,
}

const AGENT: &str = " agent-check agent-port {agent} agent-inter 100ms";

pub const VARIANTS: &[Variant] = &[
    Variant { lines: "http-check disable-on-404", server: "check rise 2 fall 3" },
    Variant { lines: "http-check disable-on-404", server: "check rise 2 fall 3{a}" },
    Variant { lines: "http-check disable-on-404", server: "check rise 1 fall 1{a}" },
    Variant { lines: "", server: "check rise 2 fall 2{a}" },
    Variant { lines: "http-check disable-on-404", server: "check rise 3 fall 2 slowstart 1h" },
    Variant { lines: "http-check disable-on-404", server: "check rise 2 fall 2{a} init-state down" },
    Variant { lines: "", server: "check rise 2 fall 3{a} init-state fully-down" },
    Variant { lines: "http-check disable-on-404", server: "check rise 3 fall 1{a}" },
    Variant { lines: "", server: "{a}" },
];

/// The options of a server, with its agent.
pub fn options(variant: usize, agent: u16) -> String {
    VARIANTS[variant].server.replace("{a}", AGENT).replace("{agent}", &agent.to_string())
}

const CHECKS: &[&str] = &["c200", "c200", "c200", "c404", "c404", "c500", "cclose"];

/// `_` stands for a blank.
const ANSWERS: &[&str] = &[
    "a:up",
    "a:up",
    "a:down",
    "a:stopped",
    "a:fail",
    "a:drain",
    "a:maint",
    "a:ready",
    "a:ready",
    "a:50%",
    "a:0%",
    "a:100%",
    "a:ready_up",
    "a:up_75%",
    "a:drain_up",
    "a:maint_down",
    "a:ready_down",
    "a:nonsense",
];

const COMMANDS: &[&str] = &[
    "s:ready",
    "s:drain",
    "s:maint",
    "s:ready",
    "h:up",
    "h:stopping",
    "h:down",
    "g:up",
    "g:down",
    "eh",
    "dh",
    "ea",
    "da",
    "w:0%",
    "w:50%",
    "w:100%",
    "t:ready",
    "t:drain",
    "t:maint",
    "es",
    "ds",
];

const REQUESTS: &[&str] = &["r200"];

/// Marsaglia's xorshift, of 64 bits.
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 33) % bound as u64).expect("below a small bound")
    }

    pub fn variant(&mut self) -> usize {
        self.below(VARIANTS.len())
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// An event that is possible where a check or an agent waits for its answer.
    /// Checks are neither enabled nor disabled during a maintenance: HAProxy then leaves them paused after it.
    pub fn event(&mut self, check: bool, agent: bool, maintenance: bool) -> &'static str {
        loop {
            match self.below(10) {
                0..4 if check => return self.one(CHECKS),
                4..6 if agent => return self.one(ANSWERS),
                6..9 => match self.one(COMMANDS) {
                    "eh" | "dh" if maintenance => {}
                    command => return command,
                },
                9 => return self.one(REQUESTS),
                _ => {}
            }
        }
    }
}

/// The runtime command of an event, for the backend of that number.
pub fn command(event: &str, number: usize) -> String {
    match event.split_once(':') {
        Some(("s", state)) => format!("set server b{number}/a state {state}"),
        Some(("h", state)) => format!("set server b{number}/a health {state}"),
        Some(("g", state)) => format!("set server b{number}/a agent {state}"),
        Some(("w", weight)) => format!("set server b{number}/a weight {weight}"),
        Some(("t", state)) => format!("set server u{number}/t state {state}"),
        _ => match event {
            "eh" => format!("enable health b{number}/a"),
            "dh" => format!("disable health b{number}/a"),
            "ea" => format!("enable agent b{number}/a"),
            "da" => format!("disable agent b{number}/a"),
            "es" => format!("enable server b{number}/a"),
            "ds" => format!("disable server b{number}/a"),
            other => panic!("no such event: {other}"),
        },
    }
}
