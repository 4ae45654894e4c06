//! Checks everything the service needs. Prints one line for each check, with a remedy if it fails.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use grabd_domain::identity::DIRECTORY_PATH;
use grabd_domain::target::TargetHost;
use grabd_engine::evidence::keys::can_decrypt_key;
use grabd_engine::identity::can_decrypt_keys;
use grabd_engine::vault::Vault;
use grabd_engine::webhooks::can_decrypt_secrets;
use grabd_images::{Images, Location, SignedUploads};
use grabd_store::Store;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::commands_store;
use crate::config::Config;
use crate::output::print_line;
use crate::wiring;

struct Finding {
    name: &'static str,
    ok: bool,
    detail: String,
    /// Empty if there is nothing to do.
    remedy: &'static str,
}

impl Finding {
    fn new(name: &'static str, result: Result<String, String>, remedy: &'static str) -> Self {
        match result {
            Ok(detail) => Self { name, ok: true, detail, remedy: "" },
            Err(detail) => Self { name, ok: false, detail, remedy },
        }
    }
}

/// Runs all checks and prints the findings. Returns whether the service can run. `launcher` is as in
/// [`Service::start`](crate::serve::Service::start).
pub async fn run(config: &Config, launcher: Option<&Path>) -> bool {
    let mut findings = browser(config, launcher).await;
    findings.push(data_dir(config));
    findings.push(database(config).await);
    findings.push(images(config).await);
    findings.push(secrets(config).await);
    findings.push(identity(config).await);
    findings.push(evidence(config).await);
    findings.extend(environment(config));
    findings.push(pricing(config));
    findings.extend(selling(config));
    findings.extend(filter_lists(config));
    findings.extend(egress(config).await);
    for (name, address, remedy) in [
        ("HTTP port", config.http.listen, "Set GRABD_HTTP__LISTEN to an address of this machine"),
        ("gRPC port", config.grpc.listen, "Set GRABD_GRPC__LISTEN to an address of this machine"),
        ("metrics", config.metrics.listen, "Set GRABD_METRICS__LISTEN to an address of this machine"),
    ] {
        findings.push(check_port(name, address, remedy).await);
    }

    for Finding { name, ok, detail, remedy } in &findings {
        let mark = match (*ok, remedy.is_empty()) {
            (true, true) => "ok  ",
            // A recommendation: the service can run.
            (true, false) => "warn",
            (false, _) => "FAIL",
        };
        match remedy.is_empty() {
            true => print_line!("{mark}  {name:<10} {detail}"),
            false => print_line!("{mark}  {name:<10} {detail}. {remedy}"),
        }
    }
    findings.iter().all(|finding| finding.ok)
}

async fn browser(config: &Config, launcher: Option<&Path>) -> Vec<Finding> {
    match wiring::guard(config) {
        Ok(guard) => {
            grabd_browser::probe(&wiring::browser_options(config, wiring::image_memory(config), launcher), guard)
                .await
                .into_iter()
                .map(|grabd_browser::Finding { name, ok, detail, remedy }| Finding { name, ok, detail, remedy })
                .collect()
        }
        // The egress check reports the error.
        Err(_) => Vec::new(),
    }
}

fn data_dir(config: &Config) -> Finding {
    let dir = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    // Nothing is created, which might then belong to another user than that of the service.
    let nearest = dir.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(&dir);
    let writable = access(nearest, Access::WRITE_OK | Access::EXEC_OK);
    let owner = std::fs::metadata(nearest).map(|metadata| metadata.uid()).unwrap_or_default();
    let result = match writable {
        Err(error) => Err(format!("{}: {error}", nearest.display())),
        Ok(()) if nearest != dir => Ok(format!("{} will be created at the first start", dir.display())),
        Ok(()) if geteuid().is_root() && owner != 0 => Ok(format!("{} belongs to user {owner}", dir.display())),
        Ok(()) => Ok(format!("{} is writable", dir.display())),
    };
    Finding::new("data dir", result, "Set GRABD_DATA_DIR to a directory that this user may write")
}

async fn database(config: &Config) -> Finding {
    let missing = commands_store::missing_file(config);
    if let Ok(Some(file)) = &missing {
        return Finding::new("database", Ok(format!("{} will be created at the first start", file.display())), "");
    }
    let result = match wiring::open_store(config).await {
        Ok(store) => {
            let current = store.schema_is_current().await;
            store.close().await;
            match current {
                Ok(true) => Ok(format!("{} responds, its schema is current", wiring::describe_database(config))),
                Ok(false) => {
                    Ok(format!("{} responds; `serve` brings its schema up to date", wiring::describe_database(config)))
                }
                Err(error) => Err(error.to_string()),
            }
        }
        Err(error) => Err(format!("{error:#}")),
    };
    Finding::new("database", result, "Check GRABD_DATABASE__URL and that the server runs")
}

/// Writes, reads and deletes an object. A running service is not disturbed.
async fn images(config: &Config) -> Finding {
    let result = async {
        let is_bucket = |location: Option<Location>| matches!(location, Some(Location::Bucket { .. }));
        let places = wiring::describe_images(config);
        if !is_bucket(config.images.location()) && !is_bucket(config.images.fallback()) {
            // Creates no directories, which might then belong to another user than that of the service.
            return Ok(format!("are in {places}"));
        }
        let images = Images::attach(&wiring::image_options(config)?, "doctor-")?;
        wiring::check_images(config, &images).await?;
        let uploads = match wiring::signed_uploads(config, &images).await? {
            None => String::new(),
            Some(Ok(SignedUploads::Refused)) => {
                "; uploads of renderers are refused, so images pass through the cores".into()
            }
            Some(Ok(_)) => "; uploads of renderers are accepted".to_owned(),
            Some(Err(error)) => format!("; uploads of renderers do not work: {error}"),
        };
        Ok::<_, anyhow::Error>(format!("{places}: an object was written, read and deleted{uploads}"))
    }
    .await;
    let remedy = "Check GRABD_IMAGES__URL, GRABD_IMAGES__ENDPOINT and the credentials (docs/IMAGES.md)";
    Finding::new("images", result.map_err(|error| format!("{error:#}")), remedy)
}

/// Does not create the key, which is done by the first start new the service.
async fn secrets(config: &Config) -> Finding {
    let key_file = wiring::key_file(config);
    let mut remedy =
        "Restore the key file that belongs to this database; if it is lost, every webhook secret must be rotated";
    let result = async {
        if commands_store::missing_file(config)?.is_some() {
            return Ok(match key_file.exists() {
                true => format!("{} exists", key_file.display()),
                false => format!("{} will be created at the first start", key_file.display()),
            });
        }
        let Ok(store) = wiring::open_store(config).await else {
            remedy = "Correct what the line `database` names first";
            anyhow::bail!("{} cannot be checked without the database", key_file.display());
        };
        // Before the first start there is no table.
        let used = store.schema_is_current().await? && store.webhooks().newest_secret().await?.is_some();
        let finding = match (key_file.exists(), used) {
            (false, false) => Ok(format!("{} will be created at the first start", key_file.display())),
            (false, true) => Err(anyhow::anyhow!("{} is missing, and webhooks need it", key_file.display())),
            (true, _) => match !used || can_decrypt_secrets(&wiring::open_vault(config)?, &store).await? {
                true => Ok(format!("{} decrypts the webhook secrets", key_file.display())),
                false => Err(anyhow::anyhow!("{} does not decrypt the webhook secrets", key_file.display())),
            },
        };
        store.close().await;
        finding
    }
    .await;
    Finding::new("secrets", result.map_err(|error| format!("{error:#}")), remedy)
}

/// The database, and the vault if there is a key file, for checks of stored keys. Creates neither. `None` if the database is not
/// there or has another schema: the line `database` reports that.
async fn stored_keys(config: &Config) -> anyhow::Result<Option<(Store, Option<Vault>)>> {
    if commands_store::missing_file(config)?.is_some() {
        return Ok(None);
    }
    let Ok(store) = wiring::open_store(config).await else { return Ok(None) };
    if !store.schema_is_current().await? {
        store.close().await;
        return Ok(None);
    }
    let vault = match wiring::key_file(config).exists() {
        true => Some(wiring::open_vault(config)?),
        false => None,
    };
    Ok(Some((store, vault)))
}

/// Does not request the directory, because the service may not run.
async fn identity(config: &Config) -> Finding {
    let Some(agent) = config.agent() else {
        return Finding::new("identity", Ok("requests to sites are not signed".to_owned()), "");
    };
    let signed =
        format!("requests for documents are signed; sites look up the keys at {}{DIRECTORY_PATH}", agent.as_str());
    let result = async {
        let Some((store, vault)) = stored_keys(config).await? else { return Ok(signed) };
        let can_decrypt = match &vault {
            Some(vault) => can_decrypt_keys(&store, vault).await?,
            None => store.identity().list_keys().await?.is_empty(),
        };
        store.close().await;
        match can_decrypt {
            true => anyhow::Ok(signed),
            false => {
                anyhow::bail!("{} does not decrypt the keys that sign requests", wiring::key_file(config).display())
            }
        }
    }
    .await;
    let remedy = "Restore the key file that belongs to this database, or run `grabd admin identity rotate --at-once`";
    Finding::new("identity", result.map_err(|error| format!("{error:#}")), remedy)
}

async fn evidence(config: &Config) -> Finding {
    let result = async {
        let missing = "the key that signs evidence is made with the first evidence".to_owned();
        let Some((store, vault)) = stored_keys(config).await? else { return Ok(missing) };
        let can_decrypt = can_decrypt_key(&store, vault.as_ref()).await?;
        store.close().await;
        let key_file = wiring::key_file(config);
        match can_decrypt {
            None => anyhow::Ok(missing),
            Some(true) => Ok(format!("{} decrypts the key that signs evidence", key_file.display())),
            Some(false) => anyhow::bail!("{} does not decrypt the key that signs evidence", key_file.display()),
        }
    }
    .await;
    let remedy = "Restore the key file that belongs to this database, or run `grabd admin evidence rotate`";
    Finding::new("evidence", result.map_err(|error| format!("{error:#}")), remedy)
}

/// Variables that no setting is named after. They do not prevent the start, so this is a recommendation.
fn environment(config: &Config) -> Option<Finding> {
    let foreign = &config.foreign_variables;
    (!foreign.is_empty()).then(|| Finding {
        name: "variables",
        ok: true,
        detail: format!("{} are no settings, and are ignored", foreign.join(", ")),
        remedy: "If one was meant to be a setting, `grabd config` prints all of them",
    })
}

fn pricing(config: &Config) -> Finding {
    let result =
        wiring::pricing(config).map(|_| "the price list is valid".to_owned()).map_err(|error| format!("{error:#}"));
    Finding::new("pricing", result, "Correct the file, or leave GRABD_PRICING__FILE empty for the embedded price list")
}

/// A recommendation for a service that sells credits: buyers look for these.
fn selling(config: &Config) -> Option<Finding> {
    let missing = config.service.missing_to_sell();
    let sells = !config.billing.stripe_secret_key.expose().is_empty() || !config.billing.top_up.is_empty();
    (sells && !missing.is_empty()).then(|| Finding {
        name: "selling",
        ok: true,
        detail: format!("credits are sold, and these settings are empty: {}", missing.join(", ")),
        remedy: "Set them, so that buyers find your terms and whom to write to",
    })
}

/// A broken list does not prevent the start, so it is a recommendation.
fn filter_lists(config: &Config) -> Vec<Finding> {
    let (_, reports) = grabd_browser::FilterLists::read(&wiring::filter_lists_dir(config));
    let finding = |report: grabd_browser::ListReport| {
        let (path, content) = (report.path.display(), report.content.as_str());
        let (detail, remedy) = match report.outcome {
            None => (format!("{path} does not exist: captures that block {content} are rejected"), ""),
            Some(Ok(rules)) => (format!("{path} has {rules} rules"), ""),
            Some(Err(error)) => (format!("{path}: {error}"), "Download it again (docs/operating/browser.md)"),
        };
        Finding { name: "lists", ok: true, detail, remedy }
    };
    reports.into_iter().map(finding).collect()
}

/// A private address must be refused. That public names resolve is a recommendation: URLs with addresses work without.
async fn egress(config: &Config) -> Vec<Finding> {
    let guard = match wiring::guard(config) {
        Ok(guard) => guard,
        Err(error) => {
            let remedy = "Let the service open netlink sockets (systemd: AF_NETLINK among RestrictAddressFamilies)";
            return vec![Finding::new("egress", Err(format!("{error:#}")), remedy)];
        }
    };
    let result = async {
        let private = TargetHost::Address(std::net::Ipv4Addr::new(169, 254, 169, 254).into());
        match guard.resolve(&private).await {
            Err(refusal) if refusal.is_refused() => {}
            Ok(_) | Err(_) => return Err("a cloud metadata address is allowed".to_owned()),
        }
        let mut detail = "private addresses are refused".to_owned();
        if !config.egress.allow_cidrs.is_empty() {
            let allowed: Vec<String> = config.egress.allow_cidrs.iter().map(ToString::to_string).collect();
            detail += &format!("; ATTENTION: {} may be reached by configuration", allowed.join(", "));
        }
        Ok(detail)
    }
    .await;
    let names = match guard.resolve(&TargetHost::Name("example.com".to_owned())).await {
        Ok(_) => Finding::new("names", Ok("resolve".to_owned()), ""),
        Err(_) => Finding {
            name: "names",
            ok: true,
            detail: "do not resolve, so only URLs with IP addresses can be captured".to_owned(),
            remedy: "Set GRABD_EGRESS__DNS to a DNS server that this machine reaches",
        },
    };
    vec![Finding::new("egress", result, "Remove that address from GRABD_EGRESS__ALLOW_CIDRS"), names]
}

async fn check_port(name: &'static str, address: SocketAddr, remedy: &'static str) -> Finding {
    let result = match tokio::net::TcpListener::bind(address).await {
        Ok(_) => Ok(format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Ok(format!("{address} is in use (a running grabd?)"))
        }
        Err(error) => Err(format!("{address}: {error}")),
    };
    Finding::new(name, result, remedy)
}
