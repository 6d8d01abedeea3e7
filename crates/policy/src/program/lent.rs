//! The program and its live state as evaluations are lent them, by their own types: for rows and rules that know these.
//! Must never lend more than the evaluation was lent.

use super::{Program, Proxy, Server};
use config::spec::Mode;
use expression::capture::CapturePlan;
use expression::key::{Keys, TokenLimits};
use expression::sample::{Configuration, Context};
use live::Live;
use live::counters::Counters;
use live::table::Tracked;
use std::any::Any;
use std::cell::Ref;

impl Configuration for Program {
    fn keys(&self) -> &Keys {
        &self.keys
    }

    fn tokens(&self) -> &TokenLimits {
        &self.global.tokens
    }

    fn file(&self, number: u32) -> Option<&str> {
        self.files.get(number as usize).map(|name| &**name)
    }

    fn is_http(&self, frontend: usize) -> bool {
        self.proxies.get(frontend).is_none_or(|proxy| proxy.mode == Mode::Http)
    }

    fn captures(&self, frontend: usize) -> Option<&CapturePlan> {
        self.proxies.get(frontend)?.frontend.as_ref()?.captures.as_ref()
    }
}

/// What a [`Context`] has of the program and its live state.
pub trait Lent<'a> {
    /// The program; `None` while it is read.
    fn program(&self) -> Option<&'a Program>;

    /// Its live state.
    fn live(&self) -> Option<&'a Live>;

    /// What is counted.
    fn counters(&self) -> Option<&'a Counters>;

    /// What the stream tracks under that number, or else its session.
    fn tracked(&self, number: u8) -> Option<Ref<'a, Tracked>>;

    /// A proxy by its index.
    fn proxy(&self, index: usize) -> Option<&'a Proxy>;

    /// The frontend.
    fn frontend(&self) -> Option<&'a Proxy>;

    /// The backend; the frontend while there is none.
    fn backend(&self) -> Option<&'a Proxy>;

    /// The server.
    fn server(&self) -> Option<&'a Server>;
}

impl<'a> Lent<'a> for Context<'a> {
    #[inline]
    fn program(&self) -> Option<&'a Program> {
        let program: &dyn Any = self.program?;
        program.downcast_ref()
    }

    #[inline]
    fn live(&self) -> Option<&'a Live> {
        let live: &dyn Any = self.live?;
        live.downcast_ref()
    }

    fn counters(&self) -> Option<&'a Counters> {
        let counters: &dyn Any = self.probes.counters()?;
        counters.downcast_ref()
    }

    fn tracked(&self, number: u8) -> Option<Ref<'a, Tracked>> {
        let found = Ref::map(self.probes.tracked(number)?, |found| found as &dyn Any);
        Ref::filter_map(found, <dyn Any>::downcast_ref).ok()
    }

    fn proxy(&self, index: usize) -> Option<&'a Proxy> {
        self.program()?.proxies.get(index).map(|proxy| &**proxy)
    }

    fn frontend(&self) -> Option<&'a Proxy> {
        self.proxy(self.frontend?)
    }

    fn backend(&self) -> Option<&'a Proxy> {
        self.proxy(self.backend.or(self.frontend)?)
    }

    fn server(&self) -> Option<&'a Server> {
        self.proxy(self.backend?)?.backend.as_ref()?.servers.get(self.server?)
    }
}
