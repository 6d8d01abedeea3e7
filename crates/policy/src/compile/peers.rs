//! Compiles `peers` sections: resolves addresses, and finds the tables that are synchronized through each. Must never
//! look at an entry.

use super::Compiler;
use crate::program::{BindAddress, Connecting, Peer, Peers, ServerAddress, ServerPort, SharedTable};
use config::diagnostic::Form;
use config::spec::{PeerSpec, PeersSpec, Spec};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// Default of `tune.peers.max-updates-at-once`.
const MAX_UPDATES: u32 = 200;

impl Compiler<'_> {
    /// Compiles all sections. `threads` is the number of threads that serve their addresses.
    pub(super) fn peers(&mut self, spec: &Spec, threads: u32) -> Vec<Arc<Peers>> {
        let sections = spec.sections.peers.iter().enumerate();
        sections.map(|(index, written)| Arc::new(self.peers_section(spec, index, written, threads))).collect()
    }

    fn peers_section(&mut self, spec: &Spec, index: usize, written: &PeersSpec, threads: u32) -> Peers {
        let name = &written.name.value;
        let bind = written.bind.as_ref().and_then(|bind| self.peers_bind(bind, name, spec, threads));
        let remotes = written.peers.iter().filter_map(|peer| self.peer(spec, written, peer));
        let remotes = remotes.collect();
        let own_tls = written.local.and_then(|local| {
            let head = format!("'server {0}/{0}' : ", written.local_name);
            self.link_tls(written.local_tls.as_deref(), name, &written.local_name, local, spec, &head)
        });
        Peers {
            index,
            name: name.as_str().into(),
            disabled: written.disabled,
            local: written.local.map(|_| written.local_name.as_str().into()),
            own_address: bind.as_ref().and_then(|bind| reachable(&bind.address)),
            bind,
            own_tls,
            local_at: written.local.map_or(0, |local| {
                let before = |peer: &&PeerSpec| (peer.span.file, peer.span.line) < (local.file, local.line);
                written.peers.iter().filter(before).count()
            }),
            remotes,
            shards: written.shards,
            tables: self.shared_tables(spec, written),
            max_updates: spec.global.tune.peers_max_updates.unwrap_or(MAX_UPDATES).max(1) as usize,
            logs: self.logs(&written.logs, spec),
        }
    }

    fn peer(&mut self, spec: &Spec, section: &PeersSpec, written: &PeerSpec) -> Option<Peer> {
        let (name, local) = (&written.name.value, section.local.map_or("(null)", |_| &section.local_name));
        let head = format!("'server {local}/{name}' : ");
        let address = match self.server_address(&written.address.value) {
            Ok(address) => address,
            Err(host) => {
                let text = super::address::written(&written.address.value);
                let message = format!("{head}invalid address: '{host}' in '{text}'");
                self.alert(written.address.span, Form::Placed, message);
                return None;
            }
        };
        let way = &written.connecting;
        let millis = way.user_timeout.filter(|millis| *millis > 0);
        let connecting = Connecting {
            source: way.source.as_ref().and_then(|source| self.source(source, written.span, &head)),
            user_timeout: millis.map(|millis| Duration::from_millis(millis.into())),
            md5_password: way.md5_password.as_deref().map(Into::into),
            congestion_control: way.congestion_control.as_deref().map(Into::into),
            ..Connecting::default()
        };
        let tls = self.link_tls(written.tls.as_deref(), &section.name.value, name, written.span, spec, &head);
        Some(Peer { name: name.as_str().into(), address, shard: written.shard, connecting, tls })
    }

    /// Returns the tables that are synchronized through a section: its own, then those of proxies.
    fn shared_tables(&self, spec: &Spec, section: &PeersSpec) -> Vec<SharedTable> {
        let tables = self.shared.tables.borrow();
        let place = |name: &str| self.shared.indexes.tables.find(&tables, name, |table| Some(&table.name));
        let own = section.tables.iter().filter_map(|table| {
            let bare = &table.name.value;
            Some(SharedTable { table: place(&global_name(section, bare))?, name: format!("/{bare}").into() })
        });
        let of_proxies = spec.proxies.iter().filter(|proxy| !proxy.disabled).filter_map(|proxy| {
            let through = proxy.stick_table.as_ref()?.peers.as_ref()?;
            let name = proxy.name.value.as_str();
            (through.value == section.name.value).then_some(())?;
            Some(SharedTable { table: place(name)?, name: name.into() })
        });
        own.chain(of_proxies).collect()
    }
}

/// Returns the global name of a section's table.
pub(super) fn global_name(section: &PeersSpec, name: &str) -> String {
    format!("{}/{name}", section.name.value)
}

/// Whether tables are synchronized through a section at all.
pub(super) fn shares(section: &PeersSpec) -> bool {
    !section.disabled && section.local.is_some()
}

/// Returns the address at which a process on the same machine reaches a listening address.
fn reachable(address: &BindAddress) -> Option<ServerAddress> {
    Some(match address {
        BindAddress::Inet(at) => {
            let ip = match at.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
                ip => ip,
            };
            ServerAddress::Inet { ip, port: ServerPort::Exact(at.port()) }
        }
        BindAddress::Unix(path) => ServerAddress::Unix(path.clone()),
        BindAddress::Abstract(name) => ServerAddress::Abstract(name.clone()),
        BindAddress::Quic(_) | BindAddress::Udp(_) | BindAddress::Descriptor { .. } | BindAddress::Reverse { .. } => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::program::{Connecting, Program, ServerAddress, ServerPort};
    use std::time::Duration;

    /// Compiles a configuration; returns the program and the messages.
    fn compile(text: &str) -> (Option<Program>, Vec<String>) {
        let file = config::InputFile { name: "x".into(), bytes: text.as_bytes().into() };
        let options = config::LoadOptions { local_peer: "me".into(), ..config::LoadOptions::default() };
        let loaded = config::load(&[file], config::environment::Environment::new(), &options);
        let mut found = loaded.diagnostics.clone();
        let limits = crate::SystemLimits::default();
        let program = crate::compile(&loaded.spec, &mut crate::compile::tests::Names, &limits, &mut found);
        (program, found.into_iter().map(|found| found.message).collect())
    }

    const REST: &str = "backend b\n stick-table type ip size 10 peers p\nbackend c\n stick-table type ip size 10\n";

    #[test]
    fn a_section_knows_its_peers_and_the_tables_that_it_shares() {
        let text = format!(
            "peers p\n shards 2\n peer me :7\n peer o 192.0.2.1:8 shard 2 source 192.0.2.9 interface lo tcp-ut 3s cc reno tcp-md5sig x\n peer u /run/u\n \
             table t type ip size 10 write-to p/u\n table u type ip size 10\n{REST}"
        );
        let (program, said) = compile(&text);
        assert_eq!(said, Vec::<String>::new());
        let program = program.unwrap();
        let [section] = program.peers.as_slice() else { panic!("{:?}", program.peers) };
        assert!(section.is_active());
        assert_eq!(section.local.as_deref(), Some("me"));
        let own = ServerAddress::Inet { ip: "127.0.0.1".parse().unwrap(), port: ServerPort::Exact(7) };
        assert_eq!(section.own_address, Some(own), "an older process connects to the machine itself");
        let remotes: Vec<_> = section.remotes.iter().map(|peer| (&*peer.name, peer.shard)).collect();
        assert_eq!((section.shards, remotes), (2, vec![("o", 2), ("u", 0)]));
        let way = &section.remotes[0].connecting;
        let source = way.source.as_ref().map(|source| (source.address, source.interface.as_deref()));
        assert_eq!(source, Some(("192.0.2.9:0".parse().unwrap(), Some("lo"))));
        assert_eq!((way.user_timeout, way.congestion_control.as_deref()), (Some(Duration::from_secs(3)), Some("reno")));
        assert_eq!((way.md5_password.as_deref(), &section.remotes[1].connecting), (Some("x"), &Connecting::default()));
        let shared: Vec<_> = section.tables.iter().map(|one| (&*program.tables[one.table].name, &*one.name)).collect();
        assert_eq!(shared, [("p/t", "/t"), ("p/u", "/u"), ("b", "b")]);
        let tables: Vec<_> = program.tables.iter().map(|table| (&*table.name, table.shared, table.write_to)).collect();
        assert_eq!(tables, [("p/t", true, Some(1)), ("p/u", true, None), ("b", true, None), ("c", false, None)]);
    }

    #[test]
    fn a_section_that_is_off_or_without_this_instance_shares_nothing() {
        for lines in ["disabled\n peer me :7", "peer o :8", "bind :7\n server o :8"] {
            let (program, _) = compile(&format!("peers p\n {lines}\n table t type ip size 10\n{REST}"));
            let program = program.unwrap();
            assert!(!program.peers[0].is_active(), "{lines}");
            assert_eq!(program.tables.len(), 3);
            assert!(program.tables.iter().all(|table| !table.shared), "{lines}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let rows = [
            ("peer o nowhere.invalid:8", "'server me/o' : invalid address: 'nowhere.invalid' in 'nowhere.invalid:8'"),
            (
                "table t type ip size 10 write-to x",
                "failed to initialize 'p/t' stick-table: write-to: table 'x' doesn't exist.",
            ),
            (
                "table t type ip size 10 write-to p/u\n table u type string size 10",
                "failed to initialize 'p/t' stick-table: write-to: cannot mix table types ('p/u' has 'string' type and \
                 'p/t' has 'ip' type).",
            ),
        ];
        for (lines, expected) in rows {
            let (program, said) = compile(&format!("peers p\n peer me :7\n {lines}\n{REST}"));
            assert!(program.is_none());
            assert_eq!(said, [expected]);
        }
    }
}
