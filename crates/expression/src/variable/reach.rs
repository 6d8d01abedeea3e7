//! The variable stores in scope of an evaluation. Must never change one beyond its limits.

use super::store::Store;
use super::{Scope, SessionStore, StoredValue, Variable, VariableLimits};
use crate::sample::{Context, Value};
use std::cell::RefCell;
use std::sync::RwLock;

/// The variables of a stream in scope in addition to those of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// `req`: the response has not been processed yet.
    #[default]
    Request,
    /// `res`: a response is processed, or the log line.
    Response,
    /// `check` only: there is no stream.
    Check,
}

/// The variable stores in scope of an evaluation.
#[derive(Clone, Copy, Default)]
pub struct Variables<'a> {
    pub process: Option<&'a RwLock<Store>>,
    pub session: Option<&'a SessionStore>,
    /// The variables of transaction, request and response; or those of a health check.
    pub stream: Option<&'a RefCell<Store>>,
    /// Selects among the variables of the stream.
    pub phase: Phase,
    /// The memory limits.
    pub limits: Option<&'a VariableLimits>,
}

impl Variables<'_> {
    /// Whether variables of that scope are available.
    pub fn reaches(&self, scope: Scope) -> bool {
        match scope {
            Scope::Process => self.process.is_some(),
            Scope::Session => self.session.is_some(),
            Scope::Transaction => self.stream.is_some() && self.phase != Phase::Check,
            Scope::Request => self.stream.is_some() && self.phase == Phase::Request,
            Scope::Response => self.stream.is_some() && self.phase == Phase::Response,
            Scope::Check => self.stream.is_some() && self.phase == Phase::Check,
            Scope::Parent => false,
        }
    }

    /// Calls `with` with the store of that scope; `None` if it is out of scope, or was never used.
    pub(super) fn read<T>(&self, scope: Scope, with: impl FnOnce(&Store) -> T) -> Option<T> {
        match scope {
            _ if !self.reaches(scope) => None,
            Scope::Process => self.process?.read().ok().map(|store| with(&store)),
            Scope::Session => self.session?.get()?.try_borrow().ok().map(|store| with(&store)),
            _ => self.stream?.try_borrow().ok().map(|store| with(&store)),
        }
    }

    fn write<T>(&self, scope: Scope, with: impl FnOnce(&mut Store) -> T) -> Option<T> {
        match scope {
            _ if !self.reaches(scope) => None,
            Scope::Process => self.process?.write().ok().map(|mut store| with(&mut store)),
            Scope::Session => self.session?.get_or_make().try_borrow_mut().ok().map(|mut store| with(&mut store)),
            _ => self.stream?.try_borrow_mut().ok().map(|mut store| with(&mut store)),
        }
    }

    /// Returns a copy of a variable's value.
    pub fn get<'a>(&self, context: &Context<'a>, variable: &Variable) -> Option<Value<'a>> {
        let (scope, name) = (variable.scope, variable.name);
        self.read(scope, |store| store.get(scope, name).and_then(|stored| StoredValue::load(stored, context)))?
    }

    /// Passes the value of a variable, which may exceed the limit of copies. `None`: it is out of scope.
    pub fn lend<T>(&self, variable: &Variable, with: impl FnOnce(Option<Value<'_>>) -> T) -> Option<T> {
        let (scope, name) = (variable.scope, variable.name);
        self.read(scope, |store| with(store.get(scope, name).map(StoredValue::value)))
    }

    /// Whether it has a value.
    pub fn is_set(&self, variable: &Variable) -> bool {
        let (scope, name) = (variable.scope, variable.name);
        self.read(scope, |store| store.get(scope, name).is_some()).unwrap_or(false)
    }

    /// Sets a variable; false if it is out of scope or exceeds a limit; then it keeps its value.
    pub fn set(&self, variable: &Variable, value: Value<'_>) -> bool {
        let (scope, name) = (variable.scope, variable.name);
        let others = self.limits.map_or(0, |_| self.others(scope));
        let set = |store: &mut Store| {
            let has_room = self.limits.is_none_or(|limits| has_room(limits, store, variable, value, others));
            if has_room {
                store.set(scope, name, value);
            }
            has_room
        };
        self.write(scope, set).unwrap_or(false)
    }

    /// Bytes of the session outside the store of that scope.
    fn others(&self, scope: Scope) -> usize {
        if scope == Scope::Session {
            return self.stream.and_then(|store| store.try_borrow().ok()).map_or(0, |store| store.bytes());
        }
        self.session
            .and_then(SessionStore::get)
            .and_then(|store| store.try_borrow().ok())
            .map_or(0, |store| store.bytes())
    }

    pub fn unset(&self, variable: &Variable) {
        self.write(variable.scope, |store| store.unset(variable.scope, variable.name));
    }
}

/// Whether a variable may have that value; if so, its bytes are charged to the process.
fn has_room(limits: &VariableLimits, store: &mut Store, variable: &Variable, value: Value<'_>, others: usize) -> bool {
    let scope = variable.scope;
    if scope == Scope::Response {
        // They are out of scope for good.
        store.clear_scope(Scope::Request);
    }
    let (more, _) = store.change(scope, variable.name, value);
    if more == 0 {
        return true;
    }
    let fits = |limit: Option<usize>, taken: usize| limit.is_none_or(|limit| taken.saturating_add(more) <= limit);
    let (in_message, in_transaction) = match scope {
        Scope::Request | Scope::Response => (fits(limits.message, store.bytes_of(scope)), true),
        Scope::Check => (fits(limits.check, store.bytes()), false),
        other => (true, other == Scope::Transaction),
    };
    let fits = in_message
        && (!in_transaction || fits(limits.transaction, store.bytes()))
        && (matches!(scope, Scope::Process | Scope::Check) || fits(limits.session, store.bytes() + others));
    let Some(ledger) = limits.process.as_ref().filter(|_| fits) else { return fits };
    store.join(ledger);
    ledger.take(more)
}

#[cfg(test)]
mod tests {
    use super::super::store::OVERHEAD;
    use super::*;
    use crate::variable::Ledger;
    use std::sync::Arc;

    fn variable(text: &str) -> Variable {
        Variable::parse(text).expect("a variable")
    }

    #[test]
    fn coarse_limits_count_the_finer_scopes_in() {
        let ledger = Arc::new(Ledger::new(5 * OVERHEAD));
        let limits = VariableLimits {
            session: Some(4 * OVERHEAD),
            transaction: Some(3 * OVERHEAD),
            message: Some(2 * OVERHEAD),
            process: Some(Arc::clone(&ledger)),
            ..VariableLimits::default()
        };
        let (process, session, stream) = (RwLock::default(), SessionStore::default(), RefCell::default());
        let all = Variables {
            process: Some(&process),
            session: Some(&session),
            stream: Some(&stream),
            limits: Some(&limits),
            phase: Phase::Request,
        };
        let set = |variables: &Variables<'_>, name: &str| variables.set(&variable(name), Value::Int(1));
        let rows = [
            ("req.a", true),
            ("req.b", true),
            ("req.c", false),
            ("txn.a", true),
            ("txn.b", false),
            ("sess.a", true),
            ("sess.b", false),
            ("proc.a", true),
            ("proc.b", false),
        ];
        for (name, expected) in rows {
            assert_eq!(set(&all, name), expected, "{name}");
        }
        assert_eq!(ledger.taken(), 5 * OVERHEAD);
        // The variables of a request are released after it.
        let answer = Variables { phase: Phase::Response, ..all };
        assert!(set(&answer, "res.a") && set(&answer, "res.b") && !set(&answer, "res.c"));
        all.unset(&variable("sess.a"));
        assert!(!all.set(&variable("proc.b"), Value::Str(b"1")) && set(&all, "proc.b"));
        drop((stream, session));
        assert_eq!(ledger.taken(), 2 * OVERHEAD);
    }

    #[test]
    fn scopes_are_in_reach_in_their_phase() {
        let (session, stream) = (SessionStore::default(), RefCell::default());
        let variables =
            |phase| Variables { session: Some(&session), stream: Some(&stream), phase, ..Variables::default() };
        let reached = |phase| {
            let scopes = ["proc", "sess", "txn", "req", "res", "check", "psess", "ptxn", "preq", "pres"];
            let reached = |scope: &&str| variables(phase).set(&variable(&format!("{scope}.a")), Value::Int(1));
            scopes.into_iter().filter(reached).collect::<Vec<_>>()
        };
        assert_eq!(reached(Phase::Request), ["sess", "txn", "req"]);
        assert_eq!(reached(Phase::Response), ["sess", "txn", "res"]);
        assert_eq!(reached(Phase::Check), ["sess", "check"]);
        assert!(!variables(Phase::Response).is_set(&variable("req.a")));
    }
}
