//! Weir's own: a BGP speaker that announces addresses while conditions hold. Must never compile a condition.

mod prefix;
mod values;

use self::values::{Fault, as_number, community, digits, hold_time};
use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Word};
use crate::keyword::is_name_character;
use crate::span::Spanned;
use crate::spec::{BgpAnnounceSpec, BgpNeighborSpec, BgpSpec};
use crate::suggest;
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of neighbors of a section.
const MOST_NEIGHBORS: usize = 64;
/// Maximum number of `announce` lines of a section.
const MOST_ANNOUNCEMENTS: usize = 1_024;
/// Maximum number of communities of a line.
const MOST_COMMUNITIES: usize = 255;

/// The port of BGP.
const PORT: u16 = 179;
/// Default of `hold-time`, in seconds.
const HOLD_TIME: u16 = 9;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("acl", "<name> <criterion> ...", "Weir's own: an ACL for the conditions of the section.", acl),
    supported(
        "announce",
        "<prefix> [<option>...] [{ if | unless } <condition>]",
        "Weir's own: a prefix that is announced while a condition holds.",
        announce,
    ),
    supported("local-as", "<number>", "Weir's own: AS number of this speaker.", local_as),
    supported(
        "neighbor",
        "<name> <address> as <number> [<option>...]",
        "Weir's own: a router that gets the announcements.",
        neighbor,
    ),
    supported("router-id", "<address>", "Weir's own: BGP identifier of this speaker.", router_id),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    if context.report.too_many(line, 2, "bgp") {
        return false;
    }
    let name = line.text(1);
    if name.is_empty() {
        return false;
    }
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        context.report.alert(line.span(1), format!("character '{bad}' is not permitted in 'bgp' name '{name}'."));
        return false;
    }
    if let Some(other) = context.content.bgp.iter().find(|other| other.name == name) {
        let place = context.around.place(other.span);
        context.report.alert(line.span(1), format!("bgp section '{name}' already exists ({place})."));
        return false;
    }
    context.content.bgp.push(BgpSpec {
        span: line.whole(),
        name: name.to_owned(),
        local_as: None,
        router_id: None,
        neighbors: Vec::new(),
        acls: Vec::new(),
        announcements: Vec::new(),
    });
    true
}

/// Reports an error with what is allowed.
fn refuse(context: &mut SectionContext<'_>, line: &Line, at: usize, message: String, allowed: &str) {
    context.report.push(Diagnostic::alert(line.span(at), message).with_hint(allowed.to_owned()));
}

const AS_NUMBERS: &str = "allowed: a number from 1 to 4294967294, or two from 0 to 65535 as in '64512.1'";

fn local_as(context: &mut SectionContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "local-as") {
        return;
    }
    let Some(number) = as_number(line.text(1)) else {
        return refuse(context, line, 1, format!("'local-as' : invalid AS number '{}'.", line.text(1)), AS_NUMBERS);
    };
    if let Some(section) = context.content.bgp.last_mut() {
        section.local_as = Some(Spanned::new(number, line.span(1)));
    }
}

fn router_id(context: &mut SectionContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "router-id") {
        return;
    }
    match line.text(1).parse::<Ipv4Addr>() {
        Ok(id) if !id.is_unspecified() => {
            if let Some(section) = context.content.bgp.last_mut() {
                section.router_id = Some(id);
            }
        }
        _ => {
            let message = format!("'router-id' : invalid identifier '{}'.", line.text(1));
            refuse(context, line, 1, message, "allowed: an IPv4 address other than 0.0.0.0");
        }
    }
}

fn acl(context: &mut SectionContext<'_>, line: &Line) {
    if line.words.len() < 3 {
        return refuse(context, line, line.words.len(), "'acl' expects a name and a criterion.".to_owned(), ACL);
    }
    let written = context.around.rule_line(line, 1);
    if let Some(section) = context.content.bgp.last_mut() {
        section.acls.push(written);
    }
}

const ACL: &str = "write for example 'acl has_servers nbsrv(app) ge 1'";

const NEIGHBOR_OPTIONS: [&str; 6] = ["as", "hold-time", "multihop", "password-file", "port", "source"];

fn neighbor(context: &mut SectionContext<'_>, line: &Line) {
    let usage = "write 'neighbor <name> <address> as <number> [<option>...]'";
    let name = line.text(1);
    let found = name.chars().find(|&found| !is_name_character(found));
    if name.is_empty() || found.is_some() {
        return refuse(context, line, 1, format!("'neighbor' : invalid name '{name}'."), usage);
    }
    let head = format!("'neighbor {name}' :");
    let Ok(address) = line.text(2).parse::<IpAddr>() else {
        let message = format!("{head} invalid address '{}'.", line.text(2));
        return refuse(context, line, 2, message, "allowed: an IPv4 or IPv6 address without a port");
    };
    let mut open = BgpNeighborSpec {
        name: Spanned::new(name.to_owned(), line.span(1)),
        address,
        number: 0,
        port: PORT,
        source: None,
        hold_time: HOLD_TIME,
        password_file: None,
        multihop: None,
    };
    let mut at = 3;
    while at < line.words.len() {
        if let Err((message, allowed)) = neighbor_option(&mut open, line, at) {
            let wrong = if NEIGHBOR_OPTIONS.contains(&line.text(at)) { at + 1 } else { at };
            return refuse(context, line, wrong, format!("{head} {message}"), &allowed);
        }
        at += 2;
    }
    if open.number == 0 {
        return refuse(context, line, line.words.len(), format!("{head} its AS number is missing."), usage);
    }
    let Some(section) = context.content.bgp.last_mut() else { return };
    if section.neighbors.iter().any(|other| other.name.value == name) {
        return context.report.alert(line.span(1), format!("{head} the section has a neighbor of that name."));
    }
    if section.neighbors.iter().any(|other| (other.address, other.port) == (address, open.port)) {
        return context.report.alert(line.span(2), format!("{head} the section has a neighbor with that address."));
    }
    if section.neighbors.len() == MOST_NEIGHBORS {
        let message = format!("{head} a section has at most {MOST_NEIGHBORS} neighbors.");
        return context.report.alert(line.span(0), message);
    }
    section.neighbors.push(open);
}

/// Parses an option of a neighbor with its value.
fn neighbor_option(open: &mut BgpNeighborSpec, line: &Line, at: usize) -> Result<(), Fault> {
    let (name, text) = (line.text(at), line.text(at + 1));
    let invalid = |allowed: &str| (format!("invalid value '{text}' of '{name}'."), format!("allowed: {allowed}"));
    match name {
        "as" => {
            let known = as_number(text).ok_or_else(|| (format!("invalid AS number '{text}'."), AS_NUMBERS.to_owned()));
            open.number = known?;
        }
        "port" => {
            let port = digits(text).filter(|port| *port > 0);
            open.port = port.ok_or_else(|| invalid("a number from 1 to 65535"))?;
        }
        "source" => {
            let source: IpAddr = text.parse().map_err(|_| invalid("an address without a port"))?;
            if source.is_ipv4() != open.address.is_ipv4() {
                return Err(invalid("an address of the same family as that of the neighbor"));
            }
            open.source = Some(source);
        }
        "hold-time" => open.hold_time = hold_time(text).ok_or_else(|| invalid("whole seconds from 3s to 65535s"))?,
        "password-file" if text.is_empty() => return Err(invalid("the name of a file")),
        "password-file" => open.password_file = Some(Spanned::new(text.to_owned(), line.span(at + 1))),
        "multihop" => {
            let ttl = digits(text).filter(|ttl| *ttl > 0);
            open.multihop = Some(ttl.ok_or_else(|| invalid("a number of hops from 1 to 255"))?);
        }
        _ => return Err(unknown(name, &NEIGHBOR_OPTIONS)),
    }
    Ok(())
}

/// Returns the error about an option that does not exist.
fn unknown(name: &str, known: &[&str]) -> Fault {
    let allowed = match suggest::nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'? Allowed: {}", known.join(", ")),
        None => format!("allowed: {}", known.join(", ")),
    };
    (format!("unknown option '{name}'."), allowed)
}

const ANNOUNCE_OPTIONS: [&str; 4] = ["community", "local-preference", "med", "next-hop"];

fn announce(context: &mut SectionContext<'_>, line: &Line) {
    let usage = "write 'announce <prefix> [<option>...] [if <condition>]'";
    let prefix = match prefix::parse(line.text(1)) {
        Ok(prefix) => Spanned::new(prefix, line.span(1)),
        Err((message, allowed)) => return refuse(context, line, 1, format!("'announce' : {message}"), &allowed),
    };
    let mut open = BgpAnnounceSpec {
        prefix,
        next_hop: None,
        med: None,
        local_preference: None,
        communities: Vec::new(),
        condition: context.around.rule_line(line, line.words.len()),
    };
    let head = format!("'announce {}' :", line.text(1));
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        if matches!(word.text.as_str(), "if" | "unless") {
            if line.words.len() == at + 1 {
                return refuse(context, line, at + 1, format!("{head} the condition is missing."), usage);
            }
            open.condition = context.around.rule_line(line, at);
            break;
        }
        if let Err((message, allowed)) = announce_option(&mut open, word, line, at) {
            let wrong = if ANNOUNCE_OPTIONS.contains(&line.text(at)) { at + 1 } else { at };
            return refuse(context, line, wrong, format!("{head} {message}"), &allowed);
        }
        at += 2;
    }
    let Some(section) = context.content.bgp.last_mut() else { return };
    if section.announcements.len() == MOST_ANNOUNCEMENTS {
        let message = format!("{head} a section has at most {MOST_ANNOUNCEMENTS} lines 'announce'.");
        return context.report.alert(line.span(0), message);
    }
    section.announcements.push(open);
}

/// Parses an option of an announcement with its value.
fn announce_option(open: &mut BgpAnnounceSpec, word: &Word, line: &Line, at: usize) -> Result<(), Fault> {
    let (name, text, span) = (word.text.as_str(), line.text(at + 1), line.span(at + 1));
    let invalid = |allowed: &str| (format!("invalid value '{text}' of '{name}'."), format!("allowed: {allowed}"));
    let number = || digits(text).ok_or_else(|| invalid("a number from 0 to 4294967295"));
    match name {
        "next-hop" => {
            let is_ipv4 = open.prefix.value.address.is_ipv4();
            let address = text.parse().ok().filter(|address: &IpAddr| is_usable(address, is_ipv4));
            let allowed = if is_ipv4 { "the IPv4 address of a host" } else { "the global IPv6 address of a host" };
            open.next_hop = Some(Spanned::new(address.ok_or_else(|| invalid(allowed))?, span));
        }
        "med" => open.med = Some(number()?),
        "local-preference" => open.local_preference = Some(Spanned::new(number()?, span)),
        "community" => {
            let allowed = "up to 255 of <number>:<number>, separated by commas, or no-export, no-advertise, \
                           no-export-subconfed, graceful-shutdown, blackhole";
            let listed = text.split(',').take(MOST_COMMUNITIES + 1).map(community).collect::<Option<Vec<u32>>>();
            let listed = listed.filter(|listed| listed.len() <= MOST_COMMUNITIES);
            open.communities = listed.ok_or_else(|| invalid(allowed))?;
        }
        _ => return Err(unknown(name, &["community", "local-preference", "med", "next-hop", "if", "unless"])),
    }
    Ok(())
}

/// Whether an address can be a next hop for that family.
fn is_usable(address: &IpAddr, is_ipv4: bool) -> bool {
    let is_link_local = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    address.is_ipv4() == is_ipv4 && !address.is_unspecified() && !address.is_multicast() && !is_link_local
}
