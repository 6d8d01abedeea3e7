//! The dashboard and the JSON API below the statistics page (`stats dashboard`, Weir's own): routing and the service
//! that answers. Must never change a server without the admin level, and never show a proxy outside of `stats scope`.

mod action;
mod answer;
mod configuration;
mod document;
mod events;
mod json;
mod objects;
mod overview;
mod route;
mod rules;
mod sessions;
mod tables;
mod topology;

use std::rc::Rc;
use std::sync::Arc;

use conn::service::Service;
use engine::generation::Generation;
use engine::service::registry::PageRequest;
use engine::session::Session;
use engine::worker::Worker;
use policy::program::{Proxy, StatsPage};

use answer::{Answer, Api};
use route::{Route, Target};

/// The context of a request.
pub(crate) struct Asked {
    pub(super) worker: Rc<Worker>,
    pub(super) generation: Arc<Generation>,
    request: PageRequest,
    /// The rest of the address: names in the path, and the query.
    target: Target,
}

impl Asked {
    /// The statistics page above this address; `None`: there is none.
    pub(super) fn page(&self) -> Option<&StatsPage> {
        self.generation.proxy(self.request.proxy).stats.as_deref()
    }

    /// Whether the client may change servers.
    pub(super) fn admin(&self) -> bool {
        self.request.admin
    }

    /// Whether `stats scope` includes a proxy.
    pub(super) fn shows(&self, proxy: &Proxy) -> bool {
        let is_visible = !proxy.disabled && (proxy.frontend.is_some() || proxy.backend.is_some());
        is_visible && self.shows_name(&proxy.name)
    }

    /// Whether `stats scope` includes a proxy of that name.
    pub(super) fn shows_name(&self, name: &str) -> bool {
        self.page().is_some_and(|page| page.shows(name))
    }

    /// Whether `stats scope` includes all proxies.
    pub(super) fn shows_all(&self) -> bool {
        self.page().is_some_and(|page| page.scope.is_empty())
    }
}

/// Creates the service for a request below the page; `None`: the request is for the page itself.
pub(crate) fn start(session: &Session, request: PageRequest, target: &[u8]) -> Option<Box<dyn Service>> {
    let generation = session.shared_generation();
    let page = generation.proxy(request.proxy).stats.as_deref().filter(|page| page.dashboard)?;
    let (route, target) = route::find(target, &page.uri)?;
    let limit = generation.program.global.bufsize.saturating_sub(generation.program.global.maxrewrite);
    let asked = Asked { worker: Rc::clone(&session.worker), generation: Arc::clone(&generation), request, target };
    Some(Box::new(Api::new(limit, move |answer, entry| Box::pin(serve(asked, route, answer, entry)))))
}

/// Answers one request.
async fn serve(asked: Asked, route: Option<&'static Route>, mut answer: Answer, head: answer::RequestHead) {
    let Some(route) = route else { return answer.refuse(404, "there is no such address") };
    if head.is_post != Some(route.is_post) {
        return answer.refuse_method(if route.is_post { "POST" } else { "GET, HEAD" });
    }
    if route.is_post && !(asked.admin() && head.is_from_the_page) {
        return answer.refuse(403, "no admin level, or a request of another site");
    }
    (route.run)(asked, answer).await;
}
