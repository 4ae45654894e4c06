//! Checks everything the service needs: one line each, and for what is wrong, what to do.

use std::net::SocketAddr;
use std::path::Path;

use grabd_domain::target::TargetHost;

use crate::config::Config;
use crate::wiring;

struct Finding {
    name: &'static str,
    ok: bool,
    detail: String,
    /// Empty when there is nothing to do.
    remedy: &'static str,
}

impl Finding {
    fn of(name: &'static str, result: Result<String, String>, remedy: &'static str) -> Self {
        match result {
            Ok(detail) => Self { name, ok: true, detail, remedy: "" },
            Err(detail) => Self { name, ok: false, detail, remedy },
        }
    }
}

/// Prints every finding; `true` when the service can run. `launcher` is as in
/// [`Service::start`](crate::serve::Service::start).
pub async fn run(config: &Config, launcher: Option<&Path>) -> bool {
    let mut findings = browser(config, launcher).await;
    findings.push(data_dir(config));
    findings.push(database(config).await);
    findings.push(secrets(config).await);
    findings.push(pricing(config));
    findings.push(egress(config).await);
    for (name, address, remedy) in [
        ("HTTP port", config.http.listen, "Set GRABD_HTTP__LISTEN to an address of this machine"),
        ("gRPC port", config.grpc.listen, "Set GRABD_GRPC__LISTEN to an address of this machine"),
        ("metrics", config.metrics.listen, "Set GRABD_METRICS__LISTEN to an address of this machine"),
    ] {
        findings.push(listen(name, address, remedy).await);
    }

    for Finding { name, ok, detail, remedy } in &findings {
        let mark = match (*ok, remedy.is_empty()) {
            (true, true) => "ok  ",
            // The service runs, and would run better.
            (true, false) => "warn",
            (false, _) => "FAIL",
        };
        match remedy.is_empty() {
            true => println!("{mark}  {name:<10} {detail}"),
            false => println!("{mark}  {name:<10} {detail}. {remedy}"),
        }
    }
    findings.iter().all(|finding| finding.ok)
}

async fn browser(config: &Config, launcher: Option<&Path>) -> Vec<Finding> {
    match wiring::guard(config) {
        Ok(guard) => grabd_browser::probe(&wiring::browser_options(config, launcher), guard)
            .await
            .into_iter()
            .map(|grabd_browser::Finding { name, ok, detail, remedy }| Finding { name, ok, detail, remedy })
            .collect(),
        // The egress line says what is wrong.
        Err(_) => Vec::new(),
    }
}

fn data_dir(config: &Config) -> Finding {
    let dir = &config.data_dir;
    let try_it = || -> std::io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let probe = dir.join(".doctor");
        std::fs::write(&probe, b"x")?;
        std::fs::remove_file(probe)
    };
    let result =
        try_it().map(|()| format!("{} is writable", dir.display())).map_err(|e| format!("{}: {e}", dir.display()));
    Finding::of("data dir", result, "Set GRABD_DATA_DIR to a directory that this user may write")
}

async fn database(config: &Config) -> Finding {
    let result = match wiring::open_store(config).await {
        Ok(store) => {
            let current = store.schema_is_current().await;
            store.close().await;
            match current {
                Ok(true) => Ok(format!("{} answers, its schema is current", wiring::describe_database(config))),
                Ok(false) => {
                    Ok(format!("{} answers; `serve` brings its schema up to date", wiring::describe_database(config)))
                }
                Err(error) => Err(error.to_string()),
            }
        }
        Err(error) => Err(format!("{error:#}")),
    };
    Finding::of("database", result, "Check GRABD_DATABASE__URL and that the server runs")
}

/// Looks without making the key, which is the service's first start to do.
async fn secrets(config: &Config) -> Finding {
    let key_file = wiring::key_file(config);
    let result = async {
        let store = wiring::open_store(config).await?;
        // Before the first start there is no table either.
        let used = store.schema_is_current().await? && store.newest_secret().await?.is_some();
        let answer = match (key_file.exists(), used) {
            (false, false) => Ok(format!("{} will be made at the first start", key_file.display())),
            (false, true) => Err(anyhow::anyhow!("{} is missing, and webhooks need it", key_file.display())),
            (true, _) => match !used || wiring::webhooks(config)?.secrets_open(&store).await? {
                true => Ok(format!("{} opens what is encrypted", key_file.display())),
                false => Err(anyhow::anyhow!("{} does not open the webhooks' secrets", key_file.display())),
            },
        };
        store.close().await;
        answer
    }
    .await;
    let remedy =
        "Put back the key file that belongs to this database; if it is lost, have every webhook's secret rotated";
    Finding::of("secrets", result.map_err(|error| format!("{error:#}")), remedy)
}

fn pricing(config: &Config) -> Finding {
    let result =
        wiring::pricing(config).map(|_| "the packet is valid".to_owned()).map_err(|error| format!("{error:#}"));
    Finding::of("pricing", result, "Correct the file, or leave GRABD_PRICING__FILE empty for the embedded packet")
}

/// A public name must resolve or be unknown, and a private address must be refused.
async fn egress(config: &Config) -> Finding {
    let guard = match wiring::guard(config) {
        Ok(guard) => guard,
        Err(error) => {
            let remedy = "Let the service open netlink sockets (systemd: AF_NETLINK among RestrictAddressFamilies)";
            return Finding::of("egress", Err(format!("{error:#}")), remedy);
        }
    };
    let result = async {
        let private = TargetHost::Address(std::net::Ipv4Addr::new(169, 254, 169, 254).into());
        match guard.resolve(&private).await {
            Err(refusal) if refusal.is_refused() => {}
            Ok(_) | Err(_) => return Err("a cloud metadata address would be let through".to_owned()),
        }
        let mut detail = "private addresses are refused".to_owned();
        match guard.resolve(&TargetHost::Name("example.com".to_owned())).await {
            Ok(_) => detail += ", names resolve",
            Err(_) => detail += "; names do not resolve (see GRABD_EGRESS__DNS), so only literals can be captured",
        }
        if !config.egress.allow_cidrs.is_empty() {
            let allowed: Vec<String> = config.egress.allow_cidrs.iter().map(ToString::to_string).collect();
            detail += &format!("; ATTENTION: {} may be reached by configuration", allowed.join(", "));
        }
        Ok(detail)
    }
    .await;
    Finding::of("egress", result, "Remove that address from GRABD_EGRESS__ALLOW_CIDRS")
}

async fn listen(name: &'static str, address: SocketAddr, remedy: &'static str) -> Finding {
    let result = match tokio::net::TcpListener::bind(address).await {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Ok(format!("{address} is in use (a running grabd?)"))
        }
        Err(error) => Err(format!("{address}: {error}")),
    };
    Finding::of(name, result, remedy)
}
