//! Compiles `bgp` sections: conditions, passwords, next hops. Must never connect to a router.

use super::Compiler;
use super::names::{Reach, SpecNames};
use crate::program::{BgpCondition, BgpNeighbor, BgpSpeaker};
use config::diagnostic::{Diagnostic, Form};
use config::spec::{BgpAnnounceSpec, BgpNeighborSpec, BgpSpec, Spec};
use expression::condition::Condition;
use expression::sample::EvalPlace;
use live::bgp::{Announcement, Prefix, RoutePlan, SessionPlan};
use std::net::Ipv4Addr;

/// Maximum length of a password in bytes (`TCP_MD5SIG_MAXKEYLEN`).
const LONGEST_PASSWORD: usize = 80;

impl Compiler<'_> {
    /// Compiles all sections.
    pub(super) fn bgp(&mut self, spec: &Spec) -> Vec<BgpSpeaker> {
        spec.sections.bgp.iter().filter_map(|written| self.bgp_speaker(spec, written)).collect()
    }

    fn bgp_speaker(&mut self, spec: &Spec, written: &BgpSpec) -> Option<BgpSpeaker> {
        let mut speaker = BgpSpeaker {
            name: written.name.as_str().into(),
            neighbors: Vec::new(),
            routes: [].into(),
            conditions: Vec::new(),
        };
        let names = self.names(spec, None);
        let reach = self.acls(&written.acls, &names);
        let mut routes: Vec<(RoutePlan, Vec<Announcement>)> = Vec::new();
        for announcement in &written.announcements {
            let condition = self.bgp_condition(announcement, &reach, &names);
            self.check_announcement(written, announcement);
            let prefix = prefix_of(announcement);
            let place = routes.iter().position(|route| route.0.prefix == prefix).unwrap_or_else(|| {
                routes.push((RoutePlan { prefix, announcements: Box::default() }, Vec::new()));
                speaker.conditions.push(Vec::new());
                routes.len() - 1
            });
            if speaker.conditions[place].last().is_some_and(|earlier| earlier.text.is_empty()) {
                let message = format!("'announce {prefix}' : an earlier line without a condition always applies.");
                self.warn(Diagnostic::warning(announcement.prefix.span, message));
            }
            routes[place].1.push(attributes_of(announcement));
            let words = announcement.condition.words.iter().map(|word| word.text.as_str());
            let text = words.collect::<Vec<_>>().join(" ").into();
            speaker.conditions[place].push(BgpCondition { condition, text });
        }
        let routes = routes.into_iter().map(|(route, list)| RoutePlan { announcements: list.into(), ..route });
        speaker.routes = routes.collect();
        let missing = match (&written.local_as, written.router_id) {
            (None, _) => Some("'local-as <number>'"),
            (_, None) => Some("'router-id <address>'"),
            _ if written.neighbors.is_empty() => Some("a line 'neighbor <name> <address> as <number>'"),
            _ => None,
        };
        if let Some(missing) = missing {
            let message = format!("bgp section '{}' : {missing} is missing.", written.name);
            self.alert(written.span, Form::Parsing, message);
            return None;
        }
        let (local_as, router_id) = (written.local_as.as_ref()?.value, written.router_id?);
        for neighbor in &written.neighbors {
            let compiled = self.bgp_neighbor(neighbor, local_as, router_id)?;
            speaker.neighbors.push(compiled);
        }
        Some(speaker)
    }

    fn bgp_neighbor(&mut self, written: &BgpNeighborSpec, local_as: u32, router_id: Ipv4Addr) -> Option<BgpNeighbor> {
        let session = SessionPlan { local_as, router_id, peer_as: written.number, hold_time: written.hold_time };
        // A router of another AS is a direct neighbor unless more hops are allowed.
        let hop_limit = written.multihop.or((!session.is_internal()).then_some(1));
        let password = match &written.password_file {
            Some(file) => match self.bgp_password(&written.name.value, &file.value) {
                Ok(password) => Some(password),
                Err(message) => {
                    self.alert(file.span, Form::Parsing, message);
                    return None;
                }
            },
            None => None,
        };
        Some(BgpNeighbor {
            name: written.name.value.as_str().into(),
            address: (written.address, written.port).into(),
            source: written.source,
            hop_limit,
            password,
            session,
        })
    }

    /// Returns the first line of a file.
    fn bgp_password(&self, neighbor: &str, file: &str) -> Result<Box<str>, String> {
        let head = format!("'neighbor {neighbor}' : password file '{file}'");
        let content = (self.resolver.file_reader())(file).map_err(|error| {
            let reason = error.to_string();
            format!("{head} cannot be read : {}.", reason.split(" (os error").next().unwrap_or(&reason))
        })?;
        let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let password = std::str::from_utf8(line).map_err(|_| format!("{head} is not text in UTF-8."))?;
        match password.len() {
            0 => Err(format!("{head} : its first line is empty.")),
            length if length > LONGEST_PASSWORD => {
                Err(format!("{head} : its first line is longer than {LONGEST_PASSWORD} bytes."))
            }
            _ => Ok(password.into()),
        }
    }

    fn bgp_condition(&mut self, written: &BgpAnnounceSpec, reach: &Reach, names: &SpecNames<'_>) -> Option<Condition> {
        let (line, prefix) = (&written.condition, prefix_of(written));
        let what = format!("'announce {prefix}' : error detected in its condition");
        let condition = self.bare_condition(line, &line.words, reach, names, &what)?;
        let needs_stream = condition.unavailable(EvalPlace::Runtime).map(|keyword| (keyword, "which needs a stream"));
        let needs_name =
            || Some((condition.of_current_proxy()?, "whose argument is missing: there is no current proxy"));
        let Some((keyword, fault)) = needs_stream.or_else(needs_name) else { return Some(condition) };
        let message = format!("'announce {prefix}' : its condition uses '{keyword}', {fault}.");
        let hint = "allowed: samples of the process and of named proxies and servers, such as nbsrv(backend), \
                    be_conn_free(backend), srv_is_up(backend/server), connslots(backend)";
        let word = line.words.iter().find(|word| word.text.starts_with(keyword));
        self.alert_with_hint(word.map_or(line.span, |word| word.span), Form::Parsing, message, Some(hint.to_owned()));
        None
    }

    /// Reports an announcement that no neighbor can get, or that some neighbors cannot.
    fn check_announcement(&mut self, section: &BgpSpec, written: &BgpAnnounceSpec) {
        let prefix = prefix_of(written);
        let is_ipv4 = prefix.address.is_ipv4();
        let other = section.neighbors.iter().find(|neighbor| neighbor.address.is_ipv4() != is_ipv4);
        if let (Some(other), None) = (other, &written.next_hop) {
            let message = format!(
                "'announce {prefix}' : a next hop is needed, since the address of neighbor '{}' is of the other family.",
                other.name.value
            );
            let family = if is_ipv4 { "IPv4" } else { "IPv6" };
            let hint = format!("add 'next-hop <address>' with an {family} address of this machine");
            self.alert_with_hint(written.prefix.span, Form::Parsing, message, Some(hint));
        }
        let local_as = section.local_as.as_ref().map(|number| number.value);
        let is_internal = section.neighbors.iter().any(|neighbor| Some(neighbor.number) == local_as);
        if let Some(preference) = written.local_preference.as_ref().filter(|_| !is_internal) {
            let message = format!(
                "'announce {prefix}' : 'local-preference' has no effect, since no neighbor is in the AS of 'local-as'."
            );
            self.warn(Diagnostic::warning(preference.span, message));
        }
    }
}

fn prefix_of(written: &BgpAnnounceSpec) -> Prefix {
    Prefix { address: written.prefix.value.address, length: written.prefix.value.length }
}

fn attributes_of(written: &BgpAnnounceSpec) -> Announcement {
    Announcement {
        next_hop: written.next_hop.as_ref().map(|hop| hop.value),
        med: written.med,
        local_preference: written.local_preference.as_ref().map(|preference| preference.value),
        communities: written.communities.as_slice().into(),
    }
}
