//! Assigns the targets of an SRV name to servers. Must never choose which server gets which target.

use std::rc::Rc;

use config::spec::LogLevel;
use live::ServerPlace;
use policy::resolve::{Move, SrvTarget};
use wire::dns::Name;

use super::Section;
use super::apply::{self, At};
use super::resolved_name::{Followed, Follower};
use crate::resolve::Resolving;
use crate::worker::Worker;

/// Updates every server that follows an SRV name to its current targets; each backend separately.
pub(super) fn follow(section: &Rc<Section>, worker: &Rc<Worker>, followed: &Followed) {
    let mut proxies: Vec<usize> = followed.followers.borrow().iter().map(|follower| follower.member.proxy).collect();
    proxies.dedup();
    for proxy in proxies {
        let mut followers: Vec<Follower> =
            followed.followers.borrow().iter().filter(|one| one.member.proxy == proxy).cloned().collect();
        let standing: Vec<Option<SrvTarget>> = followers.iter().map(|follower| follower.place.clone()).collect();
        let moves = followed.known.borrow().services.assign(&standing);
        for one in moves {
            match one {
                Move::Leave(index) => leave(section, worker, &mut followers[index]),
                Move::Join(index, place, weight, ip) => {
                    join(section, worker, &mut followers[index], place, ip);
                    weigh(worker, followers[index].member, weight);
                }
                Move::Stay(index, weight, ip) => {
                    stay(section, worker, &mut followers[index], ip);
                    weigh(worker, followers[index].member, weight);
                }
            }
        }
        for follower in followed.followers.borrow_mut().iter_mut().filter(|one| one.member.proxy == proxy) {
            if let Some(changed) = followers.iter().find(|changed| changed.member == follower.member) {
                *follower = changed.clone();
            }
        }
    }
}

fn leave(section: &Rc<Section>, worker: &Rc<Worker>, follower: &mut Follower) {
    let Some(at) = At::new(worker, follower.member) else { return };
    let Some(server) = at.server() else { return };
    let Some(place) = follower.place.take() else { return };
    unfollow(section, worker, follower, &place.host);
    apply::lose(worker, &at, "entry removed from SRV record");
    worker.process.service::<Resolving>().rename(server.serial, None, true);
    apply::set_port(worker, server, 0);
}

fn join(
    section: &Rc<Section>,
    worker: &Rc<Worker>,
    follower: &mut Follower,
    place: SrvTarget,
    ip: Option<std::net::IpAddr>,
) {
    let Some(at) = At::new(worker, follower.member) else { return };
    let Some(server) = at.server() else { return };
    let host = place.host.text();
    let port = server.resolving.as_ref().and_then(|resolving| resolving.srv_port).unwrap_or(place.port);
    follower.place = Some(place.clone());
    worker.process.service::<Resolving>().rename(server.serial, host.clone(), true);
    let text = format!(
        "{}/{} changed its FQDN from (null) to {} by 'SRV record'",
        at.proxy.name,
        server.name,
        host.unwrap_or_default()
    );
    match ip {
        Some(ip) => {
            apply::move_to(worker, &at, ip, Some(port), "DNS additional record");
            worker.logger.message(Some(at.proxy.index), LogLevel::Notice, &text);
        }
        None => {
            worker.logger.message(Some(at.proxy.index), LogLevel::Notice, &text);
            apply::set_port(worker, server, port);
            follow_host(section, worker, follower, &place.host);
        }
    }
}

fn stay(section: &Rc<Section>, worker: &Rc<Worker>, follower: &mut Follower, ip: Option<std::net::IpAddr>) {
    let Some(place) = follower.place.clone() else { return };
    match ip {
        Some(ip) => {
            unfollow(section, worker, follower, &place.host);
            if let Some(at) = At::new(worker, follower.member) {
                apply::move_to(worker, &at, ip, None, "DNS additional record");
            }
        }
        None => follow_host(section, worker, follower, &place.host),
    }
}

/// Resolves the host of a target whose address was not in the answer.
fn follow_host(section: &Rc<Section>, worker: &Rc<Worker>, follower: &mut Follower, host: &Name) {
    if follower.follows_host {
        return;
    }
    let Some(at) = At::new(worker, follower.member) else { return };
    let Some(resolving) = at.server().and_then(|server| server.resolving.as_ref()) else { return };
    follower.follows_host = true;
    section.attach(worker, follower.member, host, &resolving.choice);
}

fn unfollow(section: &Rc<Section>, worker: &Rc<Worker>, follower: &mut Follower, host: &Name) {
    let Some(at) = At::new(worker, follower.member) else { return };
    let Some(resolving) = at.server().and_then(|server| server.resolving.as_ref()) else { return };
    if std::mem::take(&mut follower.follows_host) {
        section.detach(follower.member, host, &resolving.choice);
    }
}

fn weigh(worker: &Worker, place: ServerPlace, weight: u32) {
    let Some(at) = At::new(worker, place) else { return };
    let Some(server) = at.server() else { return };
    if server.resolving.as_ref().is_some_and(|resolving| resolving.ignores_weight) {
        return;
    }
    let state = &worker.process.live.proxies[place.proxy];
    if state.setting(place.server).is_some_and(|setting| setting.weight != weight) {
        state.set_weight(place.server, weight);
    }
}
