//! Keywords of an SPOE file's agent section (SPOE.txt).

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("groups", "<group>...", "Groups that rules may send."),
    not_yet("log", "{ global | <target> ... }", "Where log lines go."),
    not_yet("max-frame-size", "<number>", "Largest frame."),
    not_yet("max-waiting-frames", "<number>", "Frames without an answer on a connection."),
    not_yet("maxconnrate", "<number>", "New connections a second."),
    not_yet("maxerrrate", "<number>", "Errors a second before a pause."),
    not_yet("messages", "<message>...", "Messages sent on their events."),
    not_yet("option async", "", "Answers may come on another connection."),
    not_yet("option continue-on-error", "", "Goes on after an error."),
    not_yet("option dontlog-normal", "", "Logs failures only."),
    not_yet("option force-set-var", "", "Sets variables nobody reads."),
    not_yet("option pipelining", "", "Several frames without an answer."),
    not_yet("option send-frag-payload", "", "Splits large frames."),
    not_yet("option set-on-error", "<variable>", "Variable that tells an error."),
    not_yet("option set-process-time", "<variable>", "Variable that tells the time of the last event."),
    not_yet("option set-total-time", "<variable>", "Variable that tells the time of all events."),
    not_yet("option var-prefix", "<prefix>", "Prefix of variables."),
    not_yet("register-var-names", "<name>...", "Variables that the agent may set."),
    not_yet("timeout hello", "<time>", "Time for the greeting."),
    not_yet("timeout idle", "<time>", "Idle time of a connection."),
    not_yet("timeout processing", "<time>", "Time for an event."),
    not_yet("use-backend", "<backend>", "Backend of agents."),
];
