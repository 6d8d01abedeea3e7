//! The program `weir-gateway`.

use std::io::Write;
use std::process::ExitCode;

use gateway::arguments::{self, Arguments, Command, HELP};
use gateway::cluster::{self, LeaseName, Options, log};
use gateway::translate::Settings;
use gateway::weir::Driver;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    match arguments::parse(std::env::args().skip(1)) {
        Ok(Command::Run(arguments)) => match run(*arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                log(&error);
                ExitCode::FAILURE
            }
        },
        Ok(Command::Version) => print(&format!("weir-gateway {}\n", env!("CARGO_PKG_VERSION"))),
        Ok(Command::Help) => print(HELP),
        Err(error) => {
            log(&format!("{error} (see weir-gateway --help)"));
            ExitCode::from(2)
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    // One thread: the work is that of few changes.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no event loop: {error}"))?;
    runtime.block_on(control(arguments))
}

async fn control(arguments: Arguments) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| format!("no signal handler: {error}"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| format!("no signal handler: {error}"))?;
    let config = credentials(&arguments).await?;
    let namespace = arguments.lease_namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|error| format!("the credentials cannot be used: {error}"))?;
    let options = Options {
        settings: Settings {
            controller_name: arguments.controller_name.clone(),
            addresses: arguments.addresses.clone(),
        },
        classes: arguments.classes.clone(),
        namespaces: arguments.namespaces.clone(),
        lease: LeaseName { namespace, name: arguments.lease.clone() },
        identity: identity(),
        election: cluster::Election::default(),
        backoff: cluster::Backoff::default(),
    };
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let mut driver = Driver::new(arguments.state, arguments.socket);
    driver.prepare()?;
    cluster::run(client, options, driver, stop).await;
    Ok(())
}

async fn credentials(arguments: &Arguments) -> Result<Config, String> {
    let Some(path) = &arguments.kubeconfig else {
        return Config::incluster()
            .map_err(|error| format!("no credentials of a pod ({error}): --kubeconfig FILE names others"));
    };
    let file = Kubeconfig::read_from(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the name of this replica: that of the pod, and a number that a restarted container does not have.
fn identity() -> String {
    use std::hash::{BuildHasher, RandomState};

    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{:016x}", host.trim(), RandomState::new().hash_one(std::process::id()))
}
