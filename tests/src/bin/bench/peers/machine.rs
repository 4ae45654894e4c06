//! Where a measurement was made: the machine, the versions of the programs, and what else ran.

use std::path::Path;
use std::process::Command;

use grabd_tests::process_tree::ProcessTree;
use grabd_tests::programs;
use serde_json::Value;

/// The packages whose versions matter.
const PACKAGES: [&str; 4] = ["puppeteer-core", "puppeteer-cluster", "playwright-core", "browserless"];
/// Clock ticks per second, see [`ProcessTree`].
const TICKS: f64 = 100.0;

/// Measures how much of the processors other programs used.
pub(super) struct OtherPrograms {
    load_before: String,
    busy: f64,
    total: f64,
    own: f64,
}

impl OtherPrograms {
    pub(super) fn start() -> Self {
        let (busy, total) = processor_seconds();
        Self { load_before: load(), busy, total, own: own_seconds() }
    }

    /// The load before, and the share of the processors that other programs used since.
    pub(super) fn describe(&self) -> String {
        let (busy, total) = processor_seconds();
        let others = (busy - self.busy) - (own_seconds() - self.own);
        let share = 100.0 * others.max(0.0) / (total - self.total).max(1.0);
        format!(
            "load average before the run {}; other programs used {share:.0} % of the processors during the run",
            self.load_before
        )
    }
}

/// The seconds that all processors were busy, and those that passed, from the first line of `/proc/stat`, see proc(5).
fn processor_seconds() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal; what follows is included in user and nice.
    let times: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|time| time.parse().ok()).collect();
    let total: f64 = times.iter().sum();
    let idle: f64 = times.iter().skip(3).take(2).sum();
    ((total - idle) / TICKS, total / TICKS)
}

/// Processor time of the benchmark with everything that it has started.
fn own_seconds() -> f64 {
    ProcessTree(std::process::id()).cpu().as_secs_f64()
}

fn load() -> String {
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
