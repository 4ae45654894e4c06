//! Where a measurement was made: the machine, the versions of the programs, and what ran before.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use grabd_tests::programs;
use serde_json::Value;

use crate::measure::processor_seconds;

/// The packages whose versions matter.
const PACKAGES: [&str; 4] = ["puppeteer-core", "puppeteer-cluster", "playwright-core", "browserless"];

/// How long the load without the benchmark is measured.
const BEFORE: Duration = Duration::from_secs(3);

/// What the machine did before the benchmark.
pub(super) async fn describe_load() -> String {
    let (busy, total) = processor_seconds();
    tokio::time::sleep(BEFORE).await;
    let (busy_after, total_after) = processor_seconds();
    let share = 100.0 * (busy_after - busy) / (total_after - total).max(1.0);
    format!(
        "load average {}, processors {share:.0} % busy in the {} seconds before the run",
        load_average(),
        BEFORE.as_secs()
    )
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// One line for each fact, without those that cannot be found out.
pub(super) fn describe() -> Vec<(&'static str, String)> {
    let cpu = value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut facts = vec![("Processor", format!("{cpu}, {cores} threads for the benchmark"))];
    if let Some(memory) = value_of("/proc/meminfo", "MemTotal")
        && let Some(kib) = memory.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok())
    {
        facts.push(("Memory", format!("{:.0} GiB", kib / 1024.0 / 1024.0)));
    }
    if let Ok(kernel) = std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        facts.push(("Kernel", kernel.trim().to_owned()));
    }
    let profile = std::env::current_exe().ok();
    let profile = profile.as_deref().and_then(Path::parent).and_then(Path::file_name).unwrap_or_default();
    let commit = output("git", &["describe", "--always", "--dirty"]);
    let version = env!("CARGO_PKG_VERSION");
    facts.push((
        "grabd",
        format!(
            "{version}{}, cargo profile `{}`, default settings but for limits of requests",
            commit.map(|commit| format!(" ({commit})")).unwrap_or_default(),
            profile.to_string_lossy()
        ),
    ));
    facts.extend(output("chromium-headless-shell", &["--version"]).map(|version| ("Browser", version)));
    facts.extend(output(&programs::node().display().to_string(), &["--version"]).map(|version| ("Node.js", version)));
    let installed = programs::root().join("target/peers/node_modules");
    let versions = PACKAGES.iter().filter_map(|package| {
        let text = std::fs::read_to_string(installed.join(package).join("package.json")).ok()?;
        let json: Value = serde_json::from_str(&text).ok()?;
        Some(format!("{package} {}", json["version"].as_str()?))
    });
    facts.push(("Packages", versions.collect::<Vec<_>>().join(", ")));
    facts
}

/// The value of a line `name: value`.
fn value_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// What a program prints, if it succeeds.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(programs::root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
