//! The browser and its filter lists.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use grabd_browser::{BrowserUser, Chromium, FilterLists, FrameMode, ListReport, find_executable};
use grabd_egress::{ClientTls, Guard};
use grabd_memory::MemoryBudget;

use crate::config::Config;
use crate::program_cache::program_cache;
use crate::run_dir::{RunDirRecord, instance, run_dir};

/// The directory of the filter lists.
pub fn filter_lists_dir(config: &Config) -> PathBuf {
    match config.browser.filter_lists.as_os_str().is_empty() {
        true => config.data_dir.join("lists"),
        false => config.browser.filter_lists.clone(),
    }
}

/// Reads the filter lists, and logs what is used. Without them, captures that need them are rejected.
pub fn filter_lists(config: &Config) -> FilterLists {
    let (lists, reports) = FilterLists::read(&filter_lists_dir(config));
    for ListReport { path, content, outcome } in reports {
        let (path, content) = (path.display(), content.as_str());
        match outcome {
            None => tracing::debug!(%path, content, "there is no filter list"),
            Some(Ok(rules)) => tracing::info!(%path, content, rules, "a filter list is used"),
            Some(Err(error)) => {
                tracing::error!(%path, content, %error, "a filter list cannot be used, so its content is not blocked");
            }
        }
    }
    lists
}

/// The browser settings, without filter lists.
pub fn browser_options(config: &Config, memory: MemoryBudget, launcher: Option<&Path>) -> grabd_browser::Options {
    let browser = &config.browser;
    let slots = config.slots();
    grabd_browser::Options {
        executable: executable(config),
        program_cache: program_cache(config),
        slots,
        frames: browser.frame,
        spare_contexts: match browser.frame {
            FrameMode::OnDemand => 2,
            FrameMode::Timer => slots + 2,
        },
        run_dir: run_dir(config),
        former_run_dirs: Vec::new(),
        instance: instance(config),
        user: browser_user(config),
        network_jail: browser.network_jail,
        launcher: launcher.map(Path::to_owned),
        settle_budget: config.settle(),
        full_page_max_height: config.capture.full_page_max_height_px,
        image_max_bytes: config.capture.image_max_megabytes << 20,
        memory,
        recycle_after: browser.recycle_grabs,
        recycle_age: Duration::from_secs(browser.recycle_seconds),
        recycle_rss_bytes: browser.recycle_megabytes << 20,
        memory_limit_bytes: browser.memory_limit_megabytes << 20,
        process_limit: browser.process_limit,
        user_agent_token: browser.user_agent.trim().to_owned(),
        respect_opt_out: config.abuse.respect_opt_out,
        lists: Arc::default(),
        proxy_tls: ClientTls::default(),
    }
}

/// TLS with proxies of teams.
fn proxy_tls(config: &Config) -> anyhow::Result<ClientTls> {
    let ca_file = &config.proxies.ca_file;
    if ca_file.as_os_str().is_empty() {
        return Ok(ClientTls::default());
    }
    let read = || format!("proxies.ca_file {}", ca_file.display());
    ClientTls::new(&std::fs::read(ca_file).with_context(read)?).with_context(read)
}

/// The configured browser program, or the first one found. `None` leaves the error message to the browser crate.
fn executable(config: &Config) -> Option<PathBuf> {
    let named = &config.browser.executable;
    if !named.as_os_str().is_empty() {
        return Some(named.clone());
    }
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    find_executable(None, &search_path.to_string_lossy())
}

/// The user that browsers run as. Ignored unless the service runs as root.
pub fn browser_user(config: &Config) -> Option<BrowserUser> {
    (!config.browser.user.is_empty()).then(|| BrowserUser::Named(config.browser.user.clone()))
}

/// Starts the browser, and runs the self-test.
///
/// # Errors
/// When the browser does not start, or when the self-test fails.
pub async fn browser(
    config: &Config,
    guard: Guard,
    memory: MemoryBudget,
    lists: FilterLists,
    launcher: Option<&Path>,
) -> anyhow::Result<Chromium> {
    let policy = guard.policy().clone();
    let mut options = browser_options(config, memory, launcher);
    let (record, earlier) = RunDirRecord::begin(&config.data_dir, &options.run_dir)?;
    options.former_run_dirs = earlier;
    options.lists = Arc::new(lists);
    options.proxy_tls = proxy_tls(config)?;
    let chromium =
        Chromium::start(options, guard).await.context("the browser cannot start; `grabd doctor` says more")?;
    if let Err(error) = record.commit() {
        tracing::warn!(
            error = format!("{error:#}"),
            "the record of run directories was not updated; the next start checks cleared directories again"
        );
    }
    match chromium.self_test(&policy).await {
        Ok(report) => {
            tracing::info!("{report}");
            Ok(chromium)
        }
        Err(error) => {
            chromium.shutdown().await;
            Err(error).context("no page is rendered on this machine")
        }
    }
}
