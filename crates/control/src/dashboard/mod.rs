//! The dashboard and the JSON API below the statistics page (`stats dashboard`, Weir's own): routing and the service
//! that answers. Must never change a server without the admin level, and never show a proxy outside of `stats scope`.

mod action;
mod answer;
mod certificates;
mod configuration;
mod document;
mod errors;
mod events;
mod history;
mod json;
mod objects;
mod overview;
mod request;
mod route;
mod rules;
mod sessions;
mod tables;
mod timeline;
mod top_keys;
mod topology;

use std::rc::Rc;
use std::sync::Arc;

use conn::service::Service;
use engine::service::registry::PageRequest;
use engine::session::Session;

use answer::{Answer, Api};
use request::DashboardRequest;
use route::Route;

/// Creates the service for a request below the page; `None`: the request is for the page itself.
pub(crate) fn start(session: &Session, request: PageRequest, target: &[u8]) -> Option<Box<dyn Service>> {
    let generation = session.shared_generation();
    let page = generation.proxy(request.proxy).stats.as_deref().filter(|page| page.dashboard)?;
    let (route, target) = route::find(target, &page.uri)?;
    let limit = generation.program.global.bufsize.saturating_sub(generation.program.global.maxrewrite);
    let asked =
        DashboardRequest { worker: Rc::clone(&session.worker), generation: Arc::clone(&generation), request, target };
    Some(Box::new(Api::new(limit, move |answer, entry| Box::pin(serve(asked, route, answer, entry)))))
}

/// Answers one request.
async fn serve(asked: DashboardRequest, route: Option<&'static Route>, mut answer: Answer, head: answer::RequestHead) {
    let Some(route) = route else { return answer.refuse(404, "there is no such address") };
    if head.is_post != Some(route.is_post) {
        return answer.refuse_method(if route.is_post { "POST" } else { "GET, HEAD" });
    }
    if route.is_post && !(asked.admin() && head.is_from_the_page) {
        return answer.refuse(403, "no admin level, or a request of another site");
    }
    (route.run)(asked, answer).await;
}
