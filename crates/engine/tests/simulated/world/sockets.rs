//! The sockets of a simulated process: those of proxies, of the runtime API and of peers.

use std::sync::Arc;

use control::peers::PeerSocket;
use control::runtime::Opened;
use engine::datagram_sockets::{DatagramListening, SocketGroup};
use engine::listener::Listening;
use policy::program::{BindAddress, Program};
use rt::net::{Address, BindOptions, DatagramSocket, ListeningSocket, steer_by_connection_id};

/// Opens the addresses of a program: these, or all.
pub(super) fn open(program: &Program, places: Option<&[(usize, usize)]>) -> Vec<Listening> {
    let mut sockets = Vec::new();
    for proxy in program.proxies.iter().filter(|proxy| !proxy.disabled) {
        for bind in proxy.frontend.iter().flat_map(|frontend| &frontend.binds) {
            let is_meant = places.is_none_or(|places| places.contains(&(proxy.index, bind.index)));
            if !is_meant
                || matches!(bind.address, BindAddress::Reverse { .. } | BindAddress::Quic(_) | BindAddress::Udp(_))
            {
                continue;
            }
            let BindAddress::Inet(address) = &bind.address else { panic!("{} is not simulated", bind.text) };
            let options = BindOptions { backlog: i32::try_from(bind.backlog).unwrap(), ..BindOptions::default() };
            let socket = Arc::new(ListeningSocket::bind(&Address::Inet(*address), &options).unwrap());
            let workers = bind.listening.threads.as_deref().map(Arc::from);
            sockets.push(Listening {
                frontend: proxy.index,
                bind: bind.index,
                socket,
                workers,
                closed: Arc::default(),
            });
        }
    }
    sockets
}

/// Opens the QUIC addresses of a program; `steers`: the kernel chooses among their sockets by connection ids.
pub(super) fn open_datagrams(program: &Program, workers: usize, steers: bool) -> Vec<DatagramListening> {
    let mut opened = Vec::new();
    for proxy in program.proxies.iter().filter(|proxy| !proxy.disabled) {
        for bind in proxy.frontend.iter().flat_map(|frontend| &frontend.binds) {
            let (BindAddress::Quic(address) | BindAddress::Udp(address)) = &bind.address else { continue };
            let group: Vec<usize> = match bind.listening.threads.as_deref() {
                Some(threads) => threads.to_vec(),
                None => (0..workers).collect(),
            };
            let sockets = DatagramSocket::bind_group(*address, &BindOptions::default(), group.len()).unwrap();
            if steers && bind.listening.quic.is_some() {
                steer_by_connection_id(&sockets).unwrap();
            }
            opened.extend(SocketGroup::listening(proxy.index, bind.index, &group, sockets));
        }
    }
    opened
}

pub(super) fn open_runtime(program: &Program) -> Vec<Opened> {
    let sockets = program.runtime.sockets.iter().enumerate();
    let sockets = sockets.map(|(index, socket)| {
        let BindAddress::Inet(address) = &socket.bind.address else { panic!("{} is not simulated", socket.bind.text) };
        let socket = ListeningSocket::bind(&Address::Inet(*address), &BindOptions::default()).unwrap();
        Opened { index, socket: Arc::new(socket) }
    });
    sockets.collect()
}

pub(super) fn open_peers(program: &Program) -> Vec<PeerSocket> {
    let sections = program.peers.iter().filter_map(|section| Some((section.index, section.bind.as_ref()?)));
    let sockets = sections.map(|(section, bind)| {
        let BindAddress::Inet(address) = &bind.address else { panic!("{} is not simulated", bind.text) };
        let socket = ListeningSocket::bind(&Address::Inet(*address), &BindOptions::default()).unwrap();
        PeerSocket { section, socket: Arc::new(socket) }
    });
    sockets.collect()
}
