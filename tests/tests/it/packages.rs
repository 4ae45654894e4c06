//! The packages for machines. `script/assemble` makes them of the programs of this build, as `script/package` does of those of a
//! release.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use grabd_tests::programs::{root, run};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
use tokio::time::timeout;

use crate::crash_recovery::service::{grabd_binary, lines};

/// Time limit for a start and an exit. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// The packages of the client libraries that the service of the package offers: their content does not matter here.
const CLIENT_PACKAGE: &str = "grabd-0.2.0.tgz";
/// The package of the node for n8n, whose name begins otherwise.
const N8N_PACKAGE: &str = "n8n-nodes-grabd-0.2.0.tgz";

/// The packages, and what they were made of.
struct Packages {
    dir: tempfile::TempDir,
}

impl Packages {
    async fn build() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        // The browser's user must be able to traverse the directory.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        for name in ["programs", "parts", "parts/packages"] {
            std::fs::create_dir(dir.path().join(name))?;
        }
        let built = grabd_binary()?;
        for name in ["grabd", "grab"] {
            // Most of a program of this build are names for debuggers.
            let [program, copy] = [built.with_file_name(name), dir.path().join("programs").join(name)];
            ensure!(program.is_file(), "no {}: cargo build --workspace", program.display());
            run_ok("strip", &["-o", &text(&copy), &text(&program)]).await?;
            std::fs::write(dir.path().join("parts").join(format!("{name}.cdx.json")), "{}")?;
        }
        for name in [CLIENT_PACKAGE, N8N_PACKAGE] {
            std::fs::write(dir.path().join("parts/packages").join(name), "a package")?;
        }
        let [programs, parts, out] = ["programs", "parts", "out"].map(|name| text(&dir.path().join(name)));
        run_ok(&text(&root().join("script/assemble")), &["--fast", &programs, &parts, &out]).await?;
        Ok(Self { dir })
    }

    /// The only package whose name begins and ends so.
    fn file(&self, start: &str, end: &str) -> Result<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.dir.path().join("out"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(start) && name.ends_with(end) {
                found.push(entry.path());
            }
        }
        ensure!(found.len() == 1, "one file is {start}…{end}: {found:?}");
        Ok(found.remove(0))
    }

    /// Unpacks a Debian package. Returns the directory.
    async fn unpack(&self, name: &str) -> Result<PathBuf> {
        let (package, tree) = (self.file(&format!("{name}_"), ".deb")?, self.dir.path().join(name));
        run_ok("dpkg-deb", &["--raw-extract", &text(&package), &text(&tree)]).await?;
        Ok(tree)
    }
}

async fn run_ok(program: &str, arguments: &[&str]) -> Result<String> {
    let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
    let (success, output) = run(Path::new(program), &arguments).await?;
    ensure!(success, "{program} {arguments:?} output: {output}");
    Ok(output)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The files of a tree with their modes, but for those that describe it.
fn files(tree: &Path) -> Result<BTreeMap<String, u32>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![tree.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            if metadata.is_dir() {
                directories.push(path);
            } else {
                found.insert(text(path.strip_prefix(tree)?), metadata.permissions().mode() & 0o7777);
            }
        }
    }
    found.retain(|path, _| !path.starts_with("DEBIAN/"));
    Ok(found)
}

/// Checks a program's man page and completions.
async fn check_documentation(tree: &Path, program: &str) -> Result<()> {
    let page = std::fs::File::open(tree.join(format!("usr/share/man/man1/{program}.1.gz")))?;
    let mut manual = String::new();
    GzDecoder::new(page).read_to_string(&mut manual)?;
    ensure!(manual.contains(&format!(".TH {program} 1")) && manual.contains("\\-\\-"), "{manual}");
    let completions = tree.join(format!("usr/share/bash-completion/completions/{program}"));
    run_ok("bash", &["-n", &text(&completions)]).await?;
    let completions = std::fs::read_to_string(tree.join(format!("usr/share/zsh/vendor-completions/_{program}")))?;
    ensure!(completions.starts_with(&format!("#compdef {program}")), "{completions}");
    Ok(())
}

/// The value of a field of a package's control file.
async fn field(package: &Path, name: &str) -> Result<String> {
    Ok(run_ok("dpkg-deb", &["--field", &text(package), name]).await?.trim().to_owned())
}

/// The program of a tree, with settings of the test.
fn grabd(tree: &Path, data_dir: &Path) -> Command {
    let mut command = Command::new(tree.join("usr/bin/grabd"));
    for name in ["HTTP", "GRPC", "METRICS"] {
        command.env(format!("GRABD_{name}__LISTEN"), "127.0.0.1:0");
    }
    command.env("GRABD_DATA_DIR", data_dir).arg("--config").arg(tree.join("etc/grabd/grabd.toml"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Starts the service of a tree, and checks that it offers the packages of the client libraries that are in the tree.
async fn check_service(tree: &Path, data_dir: &Path) -> Result<()> {
    let mut service = grabd(tree, data_dir).arg("serve").spawn()?;
    let mut output = lines(service.stdout.take().context("stdout")?);
    let log = lines(service.stderr.take().context("stderr")?);
    let address = |line: &String| line.trim().strip_prefix("REST ").map(|address| address.trim().to_owned());
    let started = timeout(WAIT_LIMIT, output.wait_for(|lines| lines.iter().any(|line| address(line).is_some()))).await;
    let base = started.context("the service did not start in time")?.ok();
    let base = base.and_then(|lines| lines.iter().find_map(address));
    let base = base.with_context(|| format!("the service ended: {:?}", log.borrow()))?;
    let origin = base.strip_suffix("/v1").context("the API root ends in /v1")?;
    let url = format!("{origin}/docs/packages/{CLIENT_PACKAGE}");
    let response = grabd_tests::client::client().build()?.get(&url).send().await?.error_for_status()?;
    assert_eq!(response.text().await?, "a package");
    let pid = service.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).context("a process")?;
    kill_process(pid, Signal::TERM)?;
    let status = timeout(WAIT_LIMIT, service.wait()).await.context("the service did not stop in time")??;
    ensure!(status.success(), "{status}: {:?}", log.borrow());
    Ok(())
}

async fn check_server_package(packages: &Packages) -> Result<()> {
    let (package, tree) = (packages.file("grabd_", ".deb")?, packages.unpack("grabd").await?);
    let modes = files(&tree)?;
    for (path, mode) in [
        ("etc/grabd/grabd.toml", 0o640),
        ("usr/bin/grab", 0o755),
        ("usr/bin/grabd", 0o755),
        ("usr/lib/systemd/system/grabd.service", 0o644),
        ("usr/share/doc/grabd/copyright", 0o644),
        ("usr/share/doc/grabd/grabd.cdx.json", 0o644),
        ("usr/share/grabd/packages/grabd-0.2.0.tgz", 0o644),
        ("usr/share/grabd/packages/n8n-nodes-grabd-0.2.0.tgz", 0o644),
        ("usr/share/man/man1/grabd.1.gz", 0o644),
    ] {
        assert_eq!(modes.get(path), Some(&mode), "{path}");
    }
    for program in ["grabd", "grab"] {
        check_documentation(&tree, program).await?;
    }
    // All files but settings have checksums, and settings are kept by an upgrade.
    run_ok("env", &["--chdir", &text(&tree), "md5sum", "--check", "--quiet", "DEBIAN/md5sums"]).await?;
    let sums = std::fs::read_to_string(tree.join("DEBIAN/md5sums"))?;
    assert_eq!(sums.lines().count() + 1, modes.len(), "{sums}");
    assert_eq!(std::fs::read_to_string(tree.join("DEBIAN/conffiles"))?, "/etc/grabd/grabd.toml\n");
    for script in ["postinst", "prerm", "postrm"] {
        run_ok("sh", &["-n", &text(&tree.join("DEBIAN").join(script))]).await?;
    }
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(field(&package, "Version").await?, format!("{version}-1"));
    let depends = field(&package, "Depends").await?;
    ensure!(depends.starts_with("libc6 (>= 2.") && depends.contains("adduser"), "{depends}");
    // It may be installed beside the package of the client, and wins.
    assert_eq!(field(&package, "Replaces").await?, "grabd-client");

    // The unit starts a program, with settings, that are in the package.
    let unit = std::fs::read_to_string(tree.join("usr/lib/systemd/system/grabd.service"))?;
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).context("a command")?;
    let paths: Vec<&str> = start.split(' ').filter_map(|word| word.strip_prefix('/')).collect();
    assert_eq!(paths, ["usr/bin/grabd", "etc/grabd/grabd.toml"], "{start}");

    let program = text(&tree.join("usr/bin/grabd"));
    assert_eq!(run_ok(&program, &["--version"]).await?.trim(), format!("grabd {version}"));
    assert_eq!(run_ok(&program, &["config"]).await?, grabd::config::DEFAULT);
    let data_dir = packages.dir.path().join("data");
    std::fs::create_dir(&data_dir)?;
    let doctor = grabd(&tree, &data_dir).arg("doctor").output().await?;
    let report = String::from_utf8_lossy(&doctor.stdout).into_owned();
    ensure!(doctor.status.success() && report.contains("database"), "{report}");
    check_service(&tree, &data_dir).await
}

/// The package of npm is installed without a registry, and its program is run as npx runs it.
async fn check_npm_package(packages: &Packages) -> Result<()> {
    let (package, dir) = (packages.file("grabd-cli-", ".tgz")?, text(&packages.dir.path().join("npm")));
    let nowhere = "npm_config_registry=http://127.0.0.1:9";
    run_ok("env", &[nowhere, "npm", "install", "--no-audit", "--no-fund", "--prefix", &dir, &text(&package)]).await?;
    let output = run_ok("env", &["--chdir", &dir, nowhere, "npx", "--no", "grab", "--", "--version"]).await?;
    assert_eq!(output.trim(), format!("grab {}", env!("CARGO_PKG_VERSION")));
    Ok(())
}

async fn check_client_package(packages: &Packages) -> Result<()> {
    let (package, tree) = (packages.file("grabd-client_", ".deb")?, packages.unpack("grabd-client").await?);
    let expected = [
        "usr/bin/grab",
        "usr/share/bash-completion/completions/grab",
        "usr/share/doc/grabd-client/copyright",
        "usr/share/doc/grabd-client/grab.cdx.json",
        "usr/share/man/man1/grab.1.gz",
        "usr/share/zsh/vendor-completions/_grab",
    ];
    assert_eq!(files(&tree)?.into_keys().collect::<Vec<_>>(), expected);
    check_documentation(&tree, "grab").await?;
    let version = env!("CARGO_PKG_VERSION");
    let program = text(&tree.join("usr/bin/grab"));
    assert_eq!(run_ok(&program, &["--version"]).await?.trim(), format!("grab {version}"));
    let depends = field(&package, "Depends").await?;
    ensure!(depends.ends_with(", ca-certificates") && !depends.contains("adduser"), "{depends}");
    Ok(())
}

/// The installer accepts the packages of the server, and only with their checksum.
async fn check_installer(packages: &Packages) -> Result<()> {
    let out = text(&packages.dir.path().join("out"));
    let installer = text(&root().canonicalize()?.join("deploy/install.sh"));
    for (start, end) in [("grabd_", ".deb"), ("grabd-", ".tar.gz"), ("grabd-client_", ".deb")] {
        let file = packages.file(start, end)?;
        let sums = packages.file(start, &format!("{end}.sha256"))?;
        run_ok("env", &["--chdir", &out, "sha256sum", "--check", "--quiet", &text(&sums)]).await?;
        let sum = std::fs::read_to_string(&sums)?;
        let sum = sum.split(' ').next().context("a checksum")?;
        let file = text(&file);
        let planned = run_ok("sh", &[&installer, "--dry-run", "--sha256", sum, &file]).await;
        match start {
            "grabd-client_" => {
                ensure!(format!("{:?}", planned.err()).contains("is the package grabd-client, and not grabd"));
            }
            _ => ensure!(planned?.contains("would run: "), "{file}"),
        }
        let wrong = "0".repeat(64);
        ensure!(run_ok("sh", &[&installer, "--dry-run", "--sha256", &wrong, &file]).await.is_err(), "{file}");
    }
    // The archive has the packages of the client libraries where the installed program looks for them.
    let file = text(&packages.file("grabd-", ".tar.gz")?);
    let list = run_ok("tar", &["--list", "--gzip", "--file", &file]).await?;
    ensure!(list.contains("/share/grabd/packages/grabd-cli-linux-"), "{list}");
    for path in ["/bin/grabd", "/bin/grab", "/grabd.service", &format!("/share/grabd/packages/{CLIENT_PACKAGE}")] {
        ensure!(list.lines().any(|line| line.ends_with(path)), "{path}: {list}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_have_what_a_machine_needs() -> Result<()> {
    let packages = Packages::build().await?;
    tokio::try_join!(
        check_server_package(&packages),
        check_client_package(&packages),
        check_npm_package(&packages),
        check_installer(&packages)
    )?;
    Ok(())
}

/// What n8n requires of the package of a node: its name, a keyword, the files of nodes and credentials, and no dependencies.
fn check_n8n_package(package: &serde_json::Value) -> Result<()> {
    assert_eq!(package["name"], "n8n-nodes-grabd");
    let keywords = package["keywords"].as_array().context("keywords")?;
    ensure!(keywords.contains(&"n8n-community-node-package".into()), "{keywords:?}");
    assert_eq!(package["n8n"]["nodes"], serde_json::json!(["dist/nodes/Grabd/Grabd.node.js"]));
    assert_eq!(package["n8n"]["credentials"], serde_json::json!(["dist/credentials/GrabdApi.credentials.js"]));
    assert_eq!((package.get("dependencies"), &package["license"]), (None, &"Apache-2.0".into()));
    // n8n has this module, and npm is not to download another one.
    assert_eq!(package["peerDependencies"], serde_json::json!({ "n8n-workflow": "*" }));
    assert_eq!(package["peerDependenciesMeta"]["n8n-workflow"]["optional"], true);
    Ok(())
}

/// What registries refuse, and what a release must not forget.
#[test]
fn descriptions_for_registries_have_the_version_and_are_short_enough() -> Result<()> {
    let read = |path: &str| std::fs::read_to_string(root().join(path));
    let server: serde_json::Value = serde_json::from_str(&read("deploy/mcp/server.json")?)?;
    assert_eq!(server["version"], env!("CARGO_PKG_VERSION"));
    ensure!(server["description"].as_str().is_some_and(|text| text.chars().count() <= 100), "{server}");
    assert_eq!(server["remotes"][0]["url"], "https://{host}/mcp");

    let skill = read("sdk/skill/grabd/SKILL.md")?;
    let (front, _) = skill.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).context("front matter")?;
    let value = |name: &str| front.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap_or_default();
    // It must be the name of the directory.
    assert_eq!(value("name"), "grabd");
    ensure!((1..=1024).contains(&value("description").len()), "{front}");

    let package: serde_json::Value = serde_json::from_str(&read("sdk/typescript/package.json")?)?;
    let tools: Vec<&String> = package["devDependencies"].as_object().context("tools")?.keys().collect();
    assert_eq!(tools, ["@types/node", "typescript"], "what `npm install` in its directory downloads");
    assert_eq!(package.get("dependencies"), None);
    assert_eq!((&package["type"], &package["license"]), (&"module".into(), &"Apache-2.0".into()));
    check_n8n_package(&serde_json::from_str(&read("sdk/n8n/package.json")?)?)
}
