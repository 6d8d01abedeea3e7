//! Changes of a server: its administrative state and its weight. Must never be called without the admin level.

use engine::service::transitions::{Orderer, set_admin};
use engine::service::weight;
use live::Admin;
use policy::program::{Proxy, Server};

use super::answer::Answer;
use super::objects::{self, Columns};
use super::request::{DashboardRequest, pairs};
use crate::statistics::{Kind, Object};

/// Values of `state`.
const STATES: [(&str, Admin); 3] = [("ready", Admin::Ready), ("drain", Admin::Drain), ("maint", Admin::Maintenance)];

/// The changes that a form requests.
#[derive(Debug, PartialEq)]
struct Order {
    state: Option<Admin>,
    weight: Option<String>,
}

impl Order {
    fn read(text: &[u8]) -> Result<Self, &'static str> {
        let mut order = Self { state: None, weight: None };
        for (name, value) in pairs(text) {
            match name.as_str() {
                "state" => {
                    let known = STATES.iter().find(|(word, _)| *word == value).map(|(_, state)| *state);
                    order.state = Some(known.ok_or("'state' is ready, drain or maint")?);
                }
                "weight" => order.weight = Some(value),
                _ => return Err("a form has 'state', 'weight', or both"),
            }
        }
        if order.state.is_none() && order.weight.is_none() {
            return Err("a form has 'state', 'weight', or both");
        }
        Ok(order)
    }
}

/// `POST servers/{backend}/{server}`: a form with `state`, `weight`, or both.
pub(super) async fn change(asked: DashboardRequest, mut answer: Answer) {
    let Some(text) = answer.payload().await else { return answer.refuse(413, "the form is too long") };
    let [backend, server] = asked.target.names.as_slice() else { return answer.refuse(404, "there is no such server") };
    let shown = asked.generation.program.proxies.iter().filter(|proxy| asked.shows(proxy));
    let found = shown.into_iter().find(|proxy| proxy.backend.is_some() && *proxy.name == **backend);
    let Some((proxy, server)) =
        found.and_then(|proxy| Some((proxy, proxy.servers().find(|one| *one.name == **server)?)))
    else {
        return answer.refuse(404, "there is no such server");
    };
    match Order::read(&text).and_then(|order| apply(&asked, proxy, server, &order)) {
        Err(why) => answer.refuse(400, why),
        Ok(()) => {
            let object = Object::new(&asked.worker, &asked.generation.program, proxy, Kind::Server(server), false);
            let mut text = String::new();
            objects::write(&object, &Columns::all(), &mut text);
            text.push('\n');
            answer.begin_json();
            answer.push(&text);
        }
    }
}

/// Applies all changes, or none if one of them is invalid.
fn apply(asked: &DashboardRequest, proxy: &Proxy, server: &Server, order: &Order) -> Result<(), &'static str> {
    let wanted = order.weight.as_deref().map(|text| weight::parse(text, server.weight)).transpose()?;
    let live = &asked.worker.process.live.proxies[proxy.index];
    if wanted.is_some_and(|wanted| wanted != 0 && wanted != server.weight && !live.heeds_weights()) {
        return Err("Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.");
    }
    if let Some(wanted) = wanted {
        weight::set(&asked.worker, proxy, server, wanted, Orderer::Dashboard);
    }
    if let Some(state) = order.state {
        set_admin(&asked.worker, proxy, server, state, Orderer::Dashboard);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() {
        let order = |state, weight: Option<&str>| Ok(Order { state, weight: weight.map(str::to_owned) });
        for (text, wanted) in [
            ("state=drain", order(Some(Admin::Drain), None)),
            ("state=ready&weight=50%25", order(Some(Admin::Ready), Some("50%"))),
            ("weight=7", order(None, Some("7"))),
            ("state=up", Err("'state' is ready, drain or maint")),
            ("", Err("a form has 'state', 'weight', or both")),
            ("state=ready&s=x", Err("a form has 'state', 'weight', or both")),
        ] {
            assert_eq!(Order::read(text.as_bytes()), wanted, "{text}");
        }
    }
}
