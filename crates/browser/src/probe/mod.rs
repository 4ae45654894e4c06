//! Checks whether browsers can run on this machine, and what to do if not.

mod memory;

use std::fs;
use std::path::Path;

use grabd_egress::Guard;

use crate::jail::Jail;
use crate::process::{Owner, find_executable};
use crate::supervisor::StartError;
use crate::{Chromium, Options, SelfTestError, SelfTestReport, writing_systems};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check: `program`, `user`, `sandbox`, `fonts`, `shared_memory`, `memory`, `browser`, `jail`, `guard`, `glyphs`.
    pub name: &'static str,
    /// Whether the check passed.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do. Empty if nothing. For a passed check, a recommendation.
    pub remedy: &'static str,
}

impl Finding {
    fn new(name: &'static str, seen: Result<String, String>, remedy: &'static str) -> Self {
        match seen {
            Ok(detail) => Self { name, ok: true, detail, remedy: "" },
            Err(detail) => Self { name, ok: false, detail, remedy },
        }
    }
}

/// Runs all checks, and starts one browser in its own directory below `options.run_dir`. Does not touch browsers of a
/// running service.
pub async fn probe(options: &Options, guard: Guard) -> Vec<Finding> {
    let mut findings = vec![program(options), user(options), sandbox(), fonts(), shared_memory()];
    // Small pages are no failure.
    findings.push(Finding::new("memory", Ok(memory::describe(Path::new(memory::SETTINGS))), ""));
    findings.extend(browser(options, guard).await);
    findings
}

fn program(options: &Options) -> Finding {
    let found = find_executable(options.executable.as_deref(), "").map(|path| path.display().to_string());
    let missing = || match &options.executable {
        Some(path) => format!("{} cannot be executed", path.display()),
        None => "chromium-headless-shell was not found".to_owned(),
    };
    Finding::new(
        "program",
        found.ok_or_else(missing),
        "Install Debian's chromium-headless-shell, or name the program's path.",
    )
}

fn user(options: &Options) -> Finding {
    let owner = Owner::find(options.user.as_ref()).map_err(|error| error.to_string());
    let detail = owner.map(|owner| match owner {
        Owner::Ourselves => "the service's own user".to_owned(),
        Owner::Other { uid, gid } => format!("uid {uid}, gid {gid}"),
    });
    Finding::new("user", detail, "Run the service as a user of its own, or create a system user `grabd`.")
}

/// Whether the kernel allows the namespaces of the sandbox, or Debian's setuid helper replaces them.
fn sandbox() -> Finding {
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let forbidden = [
        ("/proc/sys/kernel/unprivileged_userns_clone", 0),
        ("/proc/sys/user/max_user_namespaces", 0),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1),
    ];
    let forbids = forbidden.into_iter().find(|(path, value)| number(path) == Some(*value)).map(|(path, _)| path);
    let seen = match forbids {
        None => Ok("user namespaces are allowed".to_owned()),
        Some(_) if Path::new("/usr/lib/chromium/chrome-sandbox").exists() => {
            Ok("the setuid helper is installed".to_owned())
        }
        Some(path) => Err(format!("{path} forbids user namespaces to users")),
    };
    Finding::new("sandbox", seen, "Allow unprivileged user namespaces, or install chromium-sandbox.")
}

fn fonts() -> Finding {
    let directories = ["/usr/share/fonts", "/usr/local/share/fonts"];
    let count: usize = directories.into_iter().map(|directory| font_files(Path::new(directory), 6)).sum();
    let seen = match count {
        0 => Err("no font files".to_owned()),
        count => Ok(format!("{count} font files")),
    };
    Finding::new(
        "fonts",
        seen,
        "Install fonts, for example fonts-noto-core and fonts-noto-cjk: text is drawn as boxes without.",
    )
}

fn font_files(directory: &Path, depth: u32) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => font_files(&entry.path(), depth - 1),
            Ok(_) => {
                let ending = entry.path().extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
                usize::from(ending.is_some_and(|e| ["ttf", "otf", "ttc", "pfb", "woff2"].contains(&e.as_str())))
            }
            Err(_) => 0,
        })
        .sum()
}

fn shared_memory() -> Finding {
    let seen = rustix::fs::statvfs("/dev/shm")
        .map(|data| {
            format!("{} MB in /dev/shm, which browsers are told not to use", (data.f_blocks * data.f_frsize) >> 20)
        })
        .map_err(|error| format!("/dev/shm: {error}"));
    Finding::new("shared_memory", seen, "Mount a tmpfs on /dev/shm.")
}

/// Starts a browser, and runs the self-test in it.
async fn browser(options: &Options, guard: Guard) -> Vec<Finding> {
    let (parent, name) = (options.run_dir.clone(), format!("probe-{}", std::process::id()));
    let (run_dir, had_parent) = (parent.join(&name), parent.exists());
    // A copy of the program would remain, and belong to whoever runs the checks.
    let program_cache = None;
    let options = Options {
        run_dir: run_dir.clone(),
        instance: name,
        spare_contexts: 1,
        slots: 1,
        program_cache,
        ..options.clone()
    };
    let policy = guard.policy().clone();
    let (version, jail, report, glyphs) = match Chromium::start(options, guard).await {
        Ok(chromium) => {
            let report = chromium.self_test(&policy).await;
            let glyphs = chromium.systems_without_glyphs().await.map(|lacking| glyphs(&lacking));
            let version = chromium.health().version.unwrap_or_default();
            let jail = jailed(chromium.jail());
            chromium.shutdown().await;
            (Ok(version), Some(jail), Some(report), glyphs)
        }
        Err(StartError::Jail(why)) => {
            return vec![Finding::new("jail", Err(format!("required, and not to be had: {why}")), Jail::REMEDY)];
        }
        Err(error) => (Err(error.to_string()), None, None, None),
    };
    // Empty by now. If it is not, the next start of the service clears it.
    let _ = fs::remove_dir(&run_dir);
    if !had_parent {
        let _ = fs::remove_dir(&parent);
    }
    let guarded = |report: Result<SelfTestReport, SelfTestError>| {
        let seen = report.map(|report| report.to_string()).map_err(|error| error.to_string());
        Finding::new("guard", seen, "Use an unchanged chromium-headless-shell; the service does not start like this.")
    };
    let browser = Finding::new("browser", version, "The text says what stands in the way.");
    [browser].into_iter().chain(jail).chain(report.map(guarded)).chain(glyphs).collect()
}

/// Pages in other writing systems are captured without glyphs, so missing fonts do not prevent the start.
fn glyphs(lacking: &[&'static str]) -> Finding {
    let count = writing_systems::COUNT;
    let (detail, remedy) = match lacking {
        [] => (format!("fonts have letters of all {count} writing systems in use"), ""),
        lacking => (
            format!("no font has letters of {} of {count} writing systems: {}", lacking.len(), lacking.join(", ")),
            "Install Debian's fonts-noto-core, fonts-noto-cjk and fonts-noto-color-emoji, unless no page uses them.",
        ),
    };
    Finding { name: "glyphs", ok: true, detail, remedy }
}

/// Unless the jail is required, a browser runs without one, with weaker isolation.
fn jailed(jail: &Jail) -> Finding {
    let remedy = match jail {
        Jail::Jailed | Jail::Disabled => "",
        Jail::Unavailable { .. } => Jail::REMEDY,
    };
    Finding { name: "jail", ok: true, detail: jail.to_string(), remedy }
}
