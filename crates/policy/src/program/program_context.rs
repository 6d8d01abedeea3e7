//! Typed access to the program and its live state in an evaluation context, for fetches and rules that know their
//! types. Must never give access to more than the context contains.

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

/// The program and live state of a [`Context`].
pub trait ProgramContext<'a> {
    /// Returns the program; `None` while it is being compiled.
    fn program(&self) -> Option<&'a Program>;

    /// Returns the live state.
    fn live(&self) -> Option<&'a Live>;

    /// Returns the counters.
    fn counters(&self) -> Option<&'a Counters>;

    /// Returns the stick-table entry that the stream tracks under that number, or else its session.
    fn tracked(&self, number: u8) -> Option<Ref<'a, Tracked>>;

    /// Returns the proxy at an index.
    fn proxy(&self, index: usize) -> Option<&'a Proxy>;

    fn frontend(&self) -> Option<&'a Proxy>;

    /// Returns the backend; the frontend if none is selected yet.
    fn backend(&self) -> Option<&'a Proxy>;

    fn server(&self) -> Option<&'a Server>;
}

impl<'a> ProgramContext<'a> for Context<'a> {
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
