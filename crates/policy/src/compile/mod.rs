//! Turns a specification into a [`Program`]: names become indices, addresses are looked up through a [`Resolver`],
//! limits are worked out. Must never open anything, and must not repeat what the configuration language checks itself.

mod address;
mod backend;
mod connecting;
mod errors;
mod frontend;
mod http;
mod limits;
mod listening;
mod log;
#[cfg(test)]
pub(crate) mod tests;

pub use limits::Limits;

use crate::program::{Global, Options, Program, Proxy, Ring, SocketBuffers, Timeouts};
use config::diagnostic::{Diagnostic, Form};
use config::span::Span;
use config::spec::{Family, GlobalSpec, OptionsSpec, ProxyKind, ProxySpec, Spec, SpliceSpec, TimeoutsSpec};
use config::text;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::h1::Spelling;

/// Looks names up.
pub trait Resolver {
    /// The first address of `host` in the family asked for. The error is a reason for the log.
    ///
    /// # Errors
    /// Why there is none.
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, String>;

    /// The number of a user of the system; `None` when there is no such user.
    fn user(&mut self, _name: &str) -> Option<u32> {
        None
    }

    /// The number of a group of the system; `None` when there is no such group.
    fn group(&mut self, _name: &str) -> Option<u32> {
        None
    }

    /// Whether there is a network namespace of that name which may be opened.
    fn has_namespace(&mut self, name: &str) -> bool {
        let _ = name;
        true
    }
}

/// Compiles a specification. `None` when that added an alert to `out`.
pub fn compile(
    spec: &Spec,
    resolver: &mut dyn Resolver,
    limits: &Limits,
    out: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let mut compiler =
        Compiler { resolver, out, guids: listening::Guids::written(spec), failed: false, rings: Vec::new() };
    compiler.rings(&spec.sections.rings, &spec.global);
    let namespaces = compiler.namespaces(spec);
    let global = compiler.global(spec, limits);
    let spelling = http::spelling(&spec.global);
    let mut servers = 0;
    let mut proxies: Vec<Proxy> = spec
        .proxies
        .iter()
        .enumerate()
        .map(|(index, proxy)| compiler.proxy(spec, index, proxy, &global, spelling.as_ref()))
        .collect();
    for proxy in &mut proxies {
        for server in proxy.backend.iter_mut().flat_map(|backend| &mut backend.servers) {
            server.serial = servers;
            servers += 1;
        }
    }
    backend::fill_in_fullconn(spec, &mut proxies);
    let runtime = compiler.runtime(&spec.global, global.nbthread);
    let (failed, rings) = (compiler.failed, compiler.rings);
    let program =
        Program { global, proxies: proxies.into_iter().map(Arc::new).collect(), rings, namespaces, servers, runtime };
    (!failed).then_some(program)
}

/// What compiling needs at hand.
struct Compiler<'a> {
    resolver: &'a mut dyn Resolver,
    out: &'a mut Vec<Diagnostic>,
    /// Identifiers and who has them.
    guids: listening::Guids,
    failed: bool,
    /// Rings so far: the sections, in order, then those of `log tcp@…`.
    rings: Vec<Ring>,
}

impl Compiler<'_> {
    /// Reports an error, unless one was reported about the same words before.
    fn alert(&mut self, span: Span, form: Form, message: String) {
        self.alert_with_hint(span, form, message, None);
    }

    fn alert_with_hint(&mut self, span: Span, form: Form, message: String, hint: Option<String>) {
        self.failed = true;
        if !self.out.iter().any(|known| known.is_alert() && known.span == Some(span)) {
            let mut diagnostic = Diagnostic::alert(span, message).with_form(form);
            diagnostic.hint = hint;
            self.out.push(diagnostic);
        }
    }

    fn global(&mut self, spec: &Spec, limits: &Limits) -> Global {
        let written = &spec.global;
        let tune = &written.tune;
        let worked_out = limits.work_out(spec);
        // HAProxy rounds up to multiples of 16 on 64-bit machines.
        let bufsize = (tune.bufsize.unwrap_or(16_384) as usize).next_multiple_of(16);
        let share = |percent: u32| worked_out.descriptors * u64::from(percent) / 100;
        Global {
            maxconn: worked_out.maxconn,
            maxconn_is_automatic: worked_out.is_automatic,
            rates: written.rates,
            maxpipes: written.maxpipes.unwrap_or(worked_out.maxconn / 4) as usize,
            descriptors: written.ulimit_n.unwrap_or(worked_out.descriptors),
            strict_limits: written.strict_limits.unwrap_or(true),
            nbthread: limits.threads(written),
            bufsize,
            maxrewrite: (tune.maxrewrite.unwrap_or(1_024) as usize).min(bufsize / 2),
            maxhdr: tune.http_maxhdr.unwrap_or(101) as usize,
            logurilen: tune.http_logurilen.unwrap_or(1_024) as usize,
            http: http::global(written),
            maxaccept: usize::try_from(tune.maxaccept.unwrap_or(4)).unwrap_or(usize::MAX),
            multi_queue: tune.listener.multi_queue,
            maxpollevents: tune.maxpollevents.unwrap_or(200) as usize,
            idle_pool_shared: tune.idle_pool_shared.unwrap_or(true),
            pool_low_descriptors: share(tune.pool_low_fd_ratio.unwrap_or(20)),
            pool_high_descriptors: share(tune.pool_high_fd_ratio.unwrap_or(25)),
            client_buffers: SocketBuffers {
                receive: tune.rcvbuf_client,
                send: tune.sndbuf_client,
                unsent: written.machine.unsent_client.filter(|bytes| *bytes > 0),
            },
            server_buffers: SocketBuffers {
                receive: tune.rcvbuf_server,
                send: tune.sndbuf_server,
                unsent: written.machine.unsent_server.filter(|bytes| *bytes > 0),
            },
            datagram_send_buffer: tune.sndbuf_backend,
            pipesize: tune.pipesize,
            nosplice: written.nosplice,
            reject_privileged_ports: written.machine.reject_privileged_ports,
            hard_stop_after: written.hard_stop_after.map(Duration::from_millis),
            grace: written.grace.map(Duration::from_millis),
            close_spread: written.lifetime.close_spread,
            logs: self.logs(&written.logs, written),
            log_tag: written.log_tag.as_deref().map(Into::into),
            log_send_hostname: written.log_send_hostname.as_ref().map(|name| name.as_deref().map(Into::into)),
            node: written.node.as_deref().map(Into::into),
        }
    }

    fn proxy(
        &mut self,
        spec: &Spec,
        index: usize,
        written: &ProxySpec,
        global: &Global,
        spelling: Option<&Arc<Spelling>>,
    ) -> Proxy {
        let is_front = written.kind != ProxyKind::Backend;
        let is_back = written.kind != ProxyKind::Frontend;
        Proxy {
            index,
            name: written.name.value.as_str().into(),
            id: written.id,
            kind: written.kind,
            mode: written.mode,
            disabled: written.disabled,
            frontend: is_front.then(|| self.frontend(spec, index, written, global)),
            backend: is_back.then(|| self.backend(written)),
            timeouts: timeouts(&written.timeouts),
            options: options(&written.options, &spec.global),
            close_mode: written.close_mode,
            http: http::http(written, spelling),
            monitor_uri: written.monitor_uri.as_ref().map(|uri| text::to_bytes(uri).into()),
            errors: errors::pages(&written.error_files),
            logs: self.logs(&written.logs, &spec.global),
            log_lines: self.log_lines(written),
            log_tag: written.log_tag.as_deref().map(Into::into),
        }
    }
}

/// Zero means "no limit", like a timeout that is not written.
fn timeouts(written: &TimeoutsSpec) -> Timeouts {
    let duration = |millis: Option<u64>| millis.filter(|millis| *millis > 0).map(Duration::from_millis);
    Timeouts {
        client: duration(written.client),
        client_fin: duration(written.client_fin),
        client_hs: duration(written.client_hs),
        connect: duration(written.connect),
        http_request: duration(written.http_request),
        http_keep_alive: duration(written.http_keep_alive),
        queue: duration(written.queue),
        server: duration(written.server),
        server_fin: duration(written.server_fin),
        tarpit: duration(written.tarpit),
        tunnel: duration(written.tunnel),
        check: duration(written.check),
    }
}

fn options(written: &OptionsSpec, global: &GlobalSpec) -> Options {
    Options {
        dontlognull: written.dontlognull,
        splice: if global.nosplice { SpliceSpec::default() } else { written.splice },
        clitcpka: written.clitcpka,
        srvtcpka: written.srvtcpka,
        nolinger: written.nolinger,
        idle_close_on_response: written.idle_close_on_response,
        independent_streams: written.independent_streams,
    }
}
