//! QUIC on listening sockets (section 5.1): its options, and what a line with QUIC addresses needs. Must never open a
//! socket.

use super::{BindContext, BindDraft, BindOption, supported, tuning};
use crate::diagnostic::Diagnostic;
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::keyword::report::Report;
use crate::span::Spanned;
use crate::spec::{AddressSpec, QuicCongestion};
use crate::units;
use std::ops::RangeInclusive;

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(
        Arity::One,
        "quic-cc-algo",
        "{ cubic | newreno | bbr | nocc }[(<max window>)]",
        "Congestion control of QUIC connections, and their maximum window in bytes.",
        congestion,
    ),
    supported(
        Arity::None,
        "quic-force-retry",
        "",
        "Validates the address of every QUIC client by a Retry packet.",
        force_retry,
    ),
    tuning(
        Arity::One,
        "quic-socket",
        "{ connection | listener }",
        "Whether every QUIC connection gets a socket of its own; Weir has one for each thread.",
    ),
    supported(Arity::None, "webtransport", "", "Weir's own: accepts WebTransport sessions over HTTP/3.", webtransport),
];

/// The protocol of QUIC in ALPN.
const PROTOCOL: &str = "h3";

/// Limits of a congestion window in bytes.
pub(crate) const WINDOWS: RangeInclusive<u64> = 10 << 10..=4 << 30;

/// A congestion control algorithm as written, and its maximum window in bytes.
pub(crate) struct Congestion {
    pub(crate) algorithm: QuicCongestion,
    pub(crate) max_window: Option<u64>,
}

impl Congestion {
    /// Message if the argument is missing.
    pub(crate) const MISSING: &str = "'quic-cc-algo' : missing control congestion algorithm";

    /// Parses the argument of `quic-cc-algo`.
    ///
    /// # Errors
    /// The message.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, arguments) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(arguments) => (name, Some(arguments)),
                None => return Err(format!("'quic-cc-algo' : missing closing parenthesis in '{text}'")),
            },
        };
        let algorithm = match name {
            "cubic" => QuicCongestion::Cubic,
            "newreno" => QuicCongestion::NewReno,
            "bbr" => QuicCongestion::Bbr,
            "nocc" => QuicCongestion::Unlimited,
            other => return Err(format!("'{other}' : unknown control congestion algorithm")),
        };
        let mut arguments = arguments.unwrap_or_default().split(',');
        let max_window = match arguments.next().unwrap_or_default() {
            "" => None,
            text => match units::size(text, *WINDOWS.end()).ok().filter(|window| WINDOWS.contains(window)) {
                Some(window) => Some(window),
                None => {
                    return Err(format!("'quic-cc-algo' : the maximum window is between 10k and 4g, found '{text}'"));
                }
            },
        };
        match arguments.next() {
            Some(more) => Err(format!("'quic-cc-algo' : unexpected argument '{more}' of algorithm '{name}'")),
            None => Ok(Self { algorithm, max_window }),
        }
    }
}

fn congestion(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else { return context.error(keyword.span, Congestion::MISSING) };
    match Congestion::parse(&word.text) {
        Ok(Congestion { algorithm, max_window }) => {
            let quic = &mut context.draft.listening.quic;
            (quic.congestion, quic.max_window) = (Some(algorithm), max_window);
        }
        Err(message) => context.error(word.span, message),
    }
}

fn force_retry(context: &mut BindContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.listening.quic.force_retry = Some(keyword.span);
}

fn webtransport(context: &mut BindContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.listening.quic.webtransport = Some(keyword.span);
}

/// The QUIC addresses of a line, and the line's name in messages.
pub(super) struct QuicLine<'a> {
    /// The word with the addresses.
    pub(super) word: &'a Word,
    /// Start of messages about the line: `'bind :443' in section 'frontend'`.
    pub(super) head: &'a str,
}

impl QuicLine<'_> {
    /// Checks the options of a line that has QUIC addresses.
    pub(super) fn check(&self, draft: &BindDraft, addresses: &[(AddressSpec, String)], report: &mut Report<'_>) {
        let head = self.head;
        let Some((_, text)) = addresses.iter().find(|(address, _)| address.is_quic()) else {
            if let Some(span) = draft.listening.quic.webtransport {
                let mut found = Diagnostic::alert(span, format!("{head} : 'webtransport' needs a QUIC address."));
                found.hint = Some("write 'bind quic4@<address>:<port> ssl crt <certificate> webtransport'".to_owned());
                report.push(found);
            }
            for name in unused_options(draft) {
                report.diag(self.word.span, format!("{head} : '{name}' has no effect without a QUIC address."));
            }
            return;
        };
        let is_quic_alone = addresses.iter().all(|(address, _)| address.is_quic());
        if let Some(alpn) = &draft.tls.common.alpn {
            self.check_protocols(alpn, is_quic_alone, report);
        }
        if !draft.tls.ssl {
            let mut found =
                Diagnostic::alert(self.word.span, format!("{head} : QUIC needs TLS, but 'ssl' is missing."));
            found.hint = Some(format!("write 'bind {text} ssl crt <certificate>'"));
            report.push(found);
        }
        if draft.listening.accept_proxy {
            let message = format!("{head} : 'accept-proxy' is not possible over QUIC.");
            report.push(Diagnostic::alert(self.word.span, message));
        }
        if is_quic_alone {
            ignored_options(draft).for_each(|name| {
                report.diag(self.word.span, format!("{head} : '{name}' has no effect on QUIC."));
            });
        }
    }
}

impl QuicLine<'_> {
    /// Checks the protocols of `alpn`: `h3` is the only one of QUIC.
    fn check_protocols(&self, alpn: &Spanned<Vec<String>>, is_quic_alone: bool, report: &mut Report<'_>) {
        let head = self.head;
        if alpn.value.iter().any(|name| name == PROTOCOL) {
            for name in alpn.value.iter().filter(|name| is_quic_alone && *name != PROTOCOL) {
                report.diag(alpn.span, format!("{head} : 'alpn' : '{name}' is not offered over QUIC."));
            }
            return;
        }
        let message = match alpn.value.as_slice() {
            [] => format!("{head} : QUIC needs ALPN."),
            [name] => format!("{head} : 'alpn' : '{name}' is not possible over QUIC."),
            names => format!("{head} : 'alpn' : none of '{}' is possible over QUIC.", names.join(",")),
        };
        let mut found = Diagnostic::alert(alpn.span, message);
        found.hint = Some("write 'alpn h3', the default for QUIC addresses".to_owned());
        report.push(found);
    }
}

/// Returns the options of QUIC among those of a line.
fn unused_options(draft: &BindDraft) -> impl Iterator<Item = &'static str> {
    let quic = &draft.listening.quic;
    let written = [("quic-cc-algo", quic.congestion.is_some()), ("quic-force-retry", quic.force_retry.is_some())];
    written.into_iter().filter(|(_, is_written)| *is_written).map(|(name, _)| name)
}

/// Returns the options of TCP sockets among those of a line.
fn ignored_options(draft: &BindDraft) -> impl Iterator<Item = &'static str> {
    let listening = &draft.listening;
    let written = [
        ("accept-netscaler-cip", listening.netscaler_cip.is_some()),
        ("defer-accept", draft.defer_accept),
        ("tfo", listening.fast_open),
        ("mss", listening.mss.is_some()),
        ("tcp-ut", listening.user_timeout.is_some()),
        ("tcp-md5sig", listening.md5_password.is_some()),
        ("tcp-ss", listening.save_syn.is_some()),
        ("cc", listening.congestion_control.is_some()),
        ("idle-ping", listening.idle_ping.is_some()),
        ("shards", draft.shards.is_some()),
    ];
    written.into_iter().filter(|(_, is_written)| *is_written).map(|(name, _)| name)
}
