//! Settings of the tested server, and the events of a sequence.

/// Settings of a backend and of its server, by variant. `{agent}` is the port of the agent.
pub struct Variant {
    /// Lines of the backend.
    pub lines: &'static str,
    /// Options of the server.
    pub server: &'static str,
    /// What requests tell of the server, where that is observed.
    pub observed: Option<ObserveSettings>,
}

/// `observe` of a server.
#[derive(Clone, Copy)]
pub struct ObserveSettings {
    /// `error-limit`.
    pub limit: usize,
    /// Errors mark the server: HAProxy does not end a check that waits for its answer in that moment.
    pub marks: bool,
    /// Requests are refused: the server's address for them has no listener.
    pub refuses: bool,
}

const fn plain(lines: &'static str, server: &'static str) -> Variant {
    Variant { lines, server, observed: None }
}

const fn observed(server: &'static str, limit: usize, marks: bool, refuses: bool) -> Variant {
    let lines = "http-check disable-on-404";
    Variant { lines, server, observed: Some(ObserveSettings { limit, marks, refuses }) }
}

const AGENT: &str = " agent-check agent-port {agent} agent-inter 100ms";

pub const VARIANTS: &[Variant] = &[
    plain("http-check disable-on-404", "check rise 2 fall 3"),
    plain("http-check disable-on-404", "check rise 2 fall 3{a}"),
    plain("http-check disable-on-404", "check rise 1 fall 1{a}"),
    plain("", "check rise 2 fall 2{a}"),
    plain("http-check disable-on-404", "check rise 3 fall 2 slowstart 1h"),
    plain("http-check disable-on-404", "check rise 2 fall 2{a} init-state down"),
    plain("", "check rise 2 fall 3{a} init-state fully-down"),
    plain("http-check disable-on-404", "check rise 3 fall 1{a}"),
    plain("", "{a}"),
    observed("check rise 2 fall 3 observe layer7 error-limit 1 on-error mark-down", 1, true, false),
    observed("check rise 2 fall 3 observe layer7 error-limit 2", 2, true, false),
    observed("check rise 2 fall 3 observe layer7 error-limit 2 on-error sudden-death", 2, true, false),
    observed("check rise 1 fall 2 observe layer7 error-limit 1 on-error fail-check", 1, true, false),
    observed("check rise 2 fall 2 observe layer7 error-limit 2 on-error fastinter", 2, false, false),
    observed("check rise 2 fall 2 observe layer4 error-limit 1 on-error mark-down", 1, true, true),
    observed("check rise 2 fall 3 observe layer4 error-limit 2{a}", 2, true, true),
    observed("check rise 1 fall 1 observe layer7 error-limit 1 on-error mark-down{a}", 1, true, false),
    observed("check rise 3 fall 2 observe layer4 error-limit 1 on-error sudden-death", 1, false, false),
];

/// Those before observe nothing.
pub const PLAIN: usize = 9;

/// The options of a server, with its agent.
pub fn options(variant: usize, agent: u16) -> String {
    VARIANTS[variant].server.replace("{a}", AGENT).replace("{agent}", &agent.to_string())
}

const CHECKS: &[&str] = &["c200", "c200", "c200", "c404", "c404", "c500", "cclose"];

/// `_` is replaced by a blank.
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

/// Marsaglia's xorshift, 64 bits.
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 33) % bound as u64).expect("below a small bound")
    }

    /// A variant that observes nothing, or one that does.
    pub fn variant(&mut self, observes: bool) -> usize {
        if observes { PLAIN + self.below(VARIANTS.len() - PLAIN) } else { self.below(PLAIN) }
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// Returns a possible event if a check or an agent waits for its answer. Checks are neither enabled nor disabled
    /// during a maintenance: HAProxy then leaves them paused after it.
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

/// Requests to a server that is observed: `o` comes with the success of the check that is held, and up to the limit of errors.
const ERRORS: &[&str] = &["o500", "o500", "o503", "o404", "oclose", "ojunk"];
const OBSERVED: &[&str] = &["r200", "r200", "r404", "r501", "r500", "rclose", "rjunk"];

/// Whether an answer to a request is an error of the server for `observe layer7` (configuration manual, "observe").
pub fn is_error(event: &str) -> bool {
    !matches!(event, "r200" | "r404" | "r501")
}

impl Random {
    /// The same as [`Random::event`] for a server that is observed. `errors`: how many there were since the last success.
    pub fn observed(
        &mut self,
        held: [bool; 2],
        maintenance: bool,
        observed: ObserveSettings,
        errors: usize,
    ) -> &'static str {
        loop {
            let event = match self.below(10) {
                0..3 if held[0] => return self.one(ERRORS),
                3..6 => self.one(OBSERVED),
                _ => return self.event(held[0], held[1], maintenance),
            };
            let is_error = observed.refuses || is_error(event);
            // One that marks the server has to come while no check waits.
            if !(is_error && observed.marks && errors + 1 >= observed.limit) {
                return event;
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
