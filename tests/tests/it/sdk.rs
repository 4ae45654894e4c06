//! The client libraries in `sdk`: built and installed as their users do, and run against the service.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::{ALLOWED, REFUSED, TestApp};
use grabd_tests::programs::{node, root, run};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Set to write the generated files instead of checking them.
const UPDATE: &str = "GRABD_UPDATE_SDK";

/// Runs a program that must succeed. Returns its output.
async fn run_ok(program: impl AsRef<Path>, arguments: &[&str]) -> Result<String> {
    let program = program.as_ref();
    let (success, output) = run(program, &arguments.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).await?;
    ensure!(success, "{} {arguments:?} output: {output}", program.display());
    Ok(output)
}

/// The Python with the packages of `tests/requirements.txt`.
fn python() -> PathBuf {
    root().join("target/python/bin/python")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Builds the packages as `script/package` does, in a directory of their own. Returns it.
async fn build_packages(dir: &Path) -> Result<String> {
    let packages = text(&dir.join("packages"));
    run_ok(root().join("script/sdk"), &[&packages]).await?;
    Ok(packages)
}

/// The command on the service's page of client libraries that begins so.
async fn shown_command(app: &TestApp, start: &str) -> Result<String> {
    let url = format!("{}/docs/sdks.md", app.service.public_url());
    let page = app.client.get(url).send().await?.error_for_status()?.text().await?;
    let command = page.lines().find(|line| line.starts_with(start)).map(str::to_owned);
    command.with_context(|| format!("no command begins with {start}: {page}"))
}

/// Runs a command of the page in a directory, as a user does, with these variables.
async fn run_command(dir: &Path, variables: &[&str], command: &str) -> Result<()> {
    let dir = text(dir);
    let arguments = [&["--chdir", &dir][..], variables, &["sh", "-c", command]].concat();
    run_ok("env", &arguments).await.map(drop)
}

/// The only file in a directory whose name begins and ends so.
fn file_named(dir: &Path, start: &str, end: &str) -> Result<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(start) && name.ends_with(end) {
            found.push(text(&entry.path()));
        }
    }
    ensure!(found.len() == 1, "one file is {start}…{end}: {found:?}");
    Ok(found.remove(0))
}

/// A service that offers these packages, and delivers webhooks to receivers on [`ALLOWED`].
async fn start(packages: &str) -> Result<TestApp> {
    TestApp::start(20, &[("webhooks.allow_http", "true"), ("service.packages_dir", packages)]).await
}

/// Installs the package that a service offers into a directory. npm can download nothing else.
async fn install_typescript(app: &TestApp, dir: &Path) -> Result<()> {
    let command = shown_command(app, "npm install ").await?;
    let nowhere = "npm_config_registry=http://127.0.0.1:9";
    run_command(dir, &["npm_config_audit=false", "npm_config_fund=false", nowhere], &command).await
}

/// What an exercise needs: the service, its keys, and pages to capture.
fn task(app: &TestApp, dir: &Path) -> Value {
    json!({
        "base_url": app.base(),
        "live_key": app.live(),
        "test_key": app.test(),
        "page": app.site.url("/tiny"),
        "slow_page": app.site.url("/slow/700"),
        "failing_page": app.site.url("/nocontent"),
        "refused_page": format!("http://{REFUSED}/"),
        "receiver": ALLOWED.to_string(),
        "dir": text(dir),
    })
}

/// Writes the examples of a README, with a page that the service may capture, to files. Returns their paths.
fn write_examples(app: &TestApp, readme: &str, language: &str, dir: &Path, end: &str) -> Result<Vec<String>> {
    let readme = std::fs::read_to_string(root().join(readme))?;
    let mut paths = Vec::new();
    for (number, rest) in readme.split(&format!("```{language}\n")).skip(1).enumerate() {
        let (example, _) = rest.split_once("```").context("the example ends")?;
        let path = dir.join(format!("example{number}{end}"));
        std::fs::write(&path, example.replace("https://example.com/", &app.site.url("/tiny")))?;
        paths.push(text(&path));
    }
    ensure!(paths.len() >= 5, "the README has {} examples", paths.len());
    Ok(paths)
}

/// Runs the examples of a README in their directory, with the settings of their users.
async fn run_examples(app: &TestApp, program: &Path, dir: &Path, examples: &[String]) -> Result<()> {
    let settings = [format!("GRAB_BASE_URL={}", app.base()), format!("GRAB_API_KEY={}", app.live())];
    let (dir_path, program) = (text(dir), text(program));
    let runs = examples.iter().map(async |example| {
        run_ok("env", &["--chdir", &dir_path, &settings[0], &settings[1], &program, example]).await
    });
    futures::future::try_join_all(runs).await?;
    ensure!(dir.join("example.webp").exists(), "the first example saves the image");
    Ok(())
}

/// Checks what the exercise did on the service's side: its repeated create was charged once.
async fn check_charges(app: &TestApp, output: &str) -> Result<()> {
    let (_, usage) = app.get("/usage", app.live()).await?;
    let expected = format!("all checks passed; {} credits left", usage["credits"]["total"]);
    ensure!(output.contains(&expected), "{expected:?} is missing: {output}");
    // Captured, created asynchronously, watched, and repeated with one key; failed captures are free.
    ensure!(usage["credits"]["total"] == json!(16) && usage["credits"]["held"] == json!(0), "{usage}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_package_installs_and_works_with_the_service() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let app = start(&build_packages(dir.path()).await?).await?;
    let (path, sdk) = (text(dir.path()), root().join("sdk/typescript"));
    install_typescript(&app, dir.path()).await?;
    for name in ["exercise.mts", "tsconfig.json"] {
        std::fs::copy(sdk.join("e2e").join(name), dir.path().join(name))?;
    }
    let examples = write_examples(&app, "sdk/typescript/README.md", "ts", dir.path(), ".mts")?;
    let types = text(&root().canonicalize()?.join("node_modules/@types"));
    run_ok(root().join("node_modules/.bin/tsc"), &["--project", &path, "--typeRoots", &types]).await?;
    let exercise = text(&dir.path().join("exercise.mts"));
    let output = run_ok(node(), &[&exercise, &task(&app, dir.path()).to_string()]).await?;
    check_charges(&app, &output).await?;
    run_examples(&app, &node(), dir.path(), &examples).await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn python_package_installs_and_works_with_the_service() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let app = start(&build_packages(dir.path()).await?).await?;
    let environment = dir.path().join("environment");
    run_ok(python(), &["-m", "venv", "--without-pip", &text(&environment)]).await?;
    let fresh = environment.join("bin/python");
    // pip is not in the fresh environment, and the dependencies are on this machine.
    let target = root().canonicalize()?.join("target/python");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = format!("PATH={}:{}", target.join("bin").display(), path.to_string_lossy());
    let links = format!("PIP_FIND_LINKS={}", target.join("wheels").display());
    let interpreter = format!("PIP_PYTHON={}", text(&fresh));
    let variables = [&*path, &*interpreter, &*links, "PIP_NO_INDEX=1"];
    let command = shown_command(&app, "pip install ").await?;
    run_command(dir.path(), &variables, &command).await?;
    // A package with another content is refused.
    let (url, sum) = command.rsplit_once("#sha256=").context("a checksum")?;
    let wrong = sum.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
    let other = format!("{} --force-reinstall --no-deps", [url, &wrong].join("#sha256="));
    assert!(run_command(dir.path(), &variables, &other).await.is_err(), "{other}");
    let exercise = dir.path().join("exercise.py");
    std::fs::copy(root().join("sdk/python/e2e/exercise.py"), &exercise)?;
    let examples = write_examples(&app, "sdk/python/README.md", "python", dir.path(), ".py")?;
    let cache = text(&dir.path().join("cache"));
    let check = ["-m", "mypy", "--strict", "--cache-dir", &cache, "--python-executable", &text(&fresh)];
    let sources: Vec<&str> = examples.iter().map(String::as_str).collect();
    let (exercise, task) = (text(&exercise), task(&app, dir.path()).to_string());
    let check = [&check[..], &[&exercise], &sources].concat();
    let run = [exercise.as_str(), &task];
    let (_, output) = tokio::try_join!(run_ok(python(), &check), run_ok(&fresh, &run))?;
    check_charges(&app, &output).await?;
    run_examples(&app, &fresh, dir.path(), &examples).await?;
    app.finish().await
}

/// The node of the package that a service offers, in the directory where n8n looks for it.
#[tokio::test(flavor = "multi_thread")]
async fn n8n_node_installs_and_works_with_the_service() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let app = start(&build_packages(dir.path()).await?).await?;
    let command = shown_command(&app, "npm install --prefix ").await?;
    let home = format!("HOME={}", text(dir.path()));
    let nowhere = "npm_config_registry=http://127.0.0.1:9";
    run_command(dir.path(), &[&home, "npm_config_audit=false", "npm_config_fund=false", nowhere], &command).await?;
    let e2e = root().canonicalize()?.join("sdk/n8n/e2e");
    let exercise = text(&e2e.join("exercise.mjs"));
    let task = task(&app, &dir.path().join(".n8n/nodes")).to_string();
    // Nodes find the modules of n8n in this way too.
    let modules = format!("NODE_PATH={}", text(&e2e));
    let output = run_ok("env", &[&modules, &text(&node()), &exercise, &task]).await?;
    ensure!(output.contains("all checks passed"), "{output}");
    let (_, usage) = app.get("/usage", app.live()).await?;
    // Captured once although the item was repeated, queued, and with a long time limit; failed captures are free.
    ensure!(usage["credits"]["total"] == json!(17) && usage["credits"]["held"] == json!(0), "{usage}");
    app.finish().await
}

#[tokio::test]
async fn n8n_node_passes_its_unit_tests() -> Result<()> {
    run_ok(root().join("node_modules/.bin/tsc"), &["--project", "sdk/n8n"]).await?;
    let modules = format!("NODE_PATH={}", text(&root().canonicalize()?.join("sdk/n8n/e2e")));
    // The system's Node.js, because it is the oldest that the node supports.
    let output = run_ok("env", &[&modules, "node", "--test", "sdk/n8n/test/node.test.mjs"]).await?;
    ensure!(output.contains("fail 0") && !output.contains("pass 0"), "{output}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_offers_its_packages_and_nothing_else() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let packages = build_packages(dir.path()).await?;
    std::fs::write(dir.path().join("packages/notes.txt"), "x")?;
    let app = TestApp::start_without_browser(0, &[("service.packages_dir", &packages)]).await?;
    let docs = format!("{}/docs", app.service.public_url());
    let page = app.client.get(format!("{docs}/sdks")).send().await?.error_for_status()?.text().await?;
    for (start, end, media_type) in [
        ("grabd-", ".whl", "application/zip"),
        ("grabd-", ".tgz", "application/gzip"),
        ("n8n-nodes-grabd-", ".tgz", "application/gzip"),
        ("grabd-protos", ".tar.gz", "application/gzip"),
        ("grabd-skill", ".tar.gz", "application/gzip"),
    ] {
        let file = file_named(Path::new(&packages), start, end)?;
        let name = Path::new(&file).file_name().context("a name")?.to_string_lossy().into_owned();
        let url = format!("{docs}/packages/{name}");
        let response = app.client.get(&url).send().await?.error_for_status()?;
        assert_eq!(response.headers()["content-type"], media_type, "{name}");
        assert_eq!(response.headers()["cache-control"], "public, max-age=300", "{name}");
        let tag = response.headers()["etag"].clone();
        let content = response.bytes().await?;
        ensure!(content == std::fs::read(&file)?, "{name} is another file");
        let sum = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        ensure!(page.contains(&format!("href=\"{url}\"")) && page.contains(&sum), "{name}: {page}");
        assert_eq!(app.client.get(&url).header("if-none-match", tag).send().await?.status(), 304, "{name}");
        let head = app.client.head(&url).send().await?;
        assert_eq!(head.headers()["content-length"], content.len().to_string(), "{name}");
    }
    for name in ["notes.txt", "grabd-9.9.9.tgz", "..%2Fgrabd.db", "%2Fetc%2Fpasswd"] {
        assert_eq!(app.client.get(format!("{docs}/packages/{name}")).send().await?.status(), 404, "{name}");
    }
    // The pages of the libraries and of the node name the file that exists.
    for library in ["python", "typescript", "n8n"] {
        let page = app.client.get(format!("{docs}/{library}.md")).send().await?.error_for_status()?.text().await?;
        let url = page.split_whitespace().find(|word| word.contains("/docs/packages/")).context("a package")?;
        app.client.get(url).send().await?.error_for_status()?;
    }
    // The contract compiles as it was downloaded.
    let command = shown_command(&app, "curl ").await?;
    run_command(dir.path(), &[], &command).await?;
    run_ok(root().join("node_modules/.bin/buf"), &["build", &text(&dir.path().join("proto"))]).await?;
    ensure!(!dir.path().join("proto/grabd/internal").exists(), "the protocol of renderers is not for callers");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn service_without_packages_says_how_they_are_built() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let command = shown_command(&app, "script/").await?;
    ensure!(command == "script/sdk" && root().join(&command).is_file(), "{command}");
    app.finish().await
}

/// A service with the limits of requests that it has by default, and what the scripts need that queue fifty pages.
async fn start_with_default_limits(packages: &str) -> Result<(TestApp, String)> {
    let settings = [("limits.requests_per_minute", "60"), ("service.packages_dir", packages)];
    let app = TestApp::start(50, &settings).await?;
    let mut task = json!({ "base_url": app.base(), "key": app.live(), "page": app.site.url("/tiny") });
    for name in ["other_key", "third_key"] {
        let team = accounts::create_team(app.service.store(), name, 50, Clock::system().now()).await?;
        task[name] = team.live.expose().into();
    }
    Ok((app, task.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn python_waits_for_fifty_queued_pages_at_the_default_limits() -> Result<()> {
    let (app, task) = start_with_default_limits("").await?;
    let (sources, script) = (root().join("sdk/python/src"), root().join("sdk/python/e2e/queue_many.py"));
    let path = format!("PYTHONPATH={}", text(&sources));
    let output = run_ok("env", &[&path, &text(&python()), &text(&script), &task]).await?;
    ensure!(output.contains("all fifty arrived, three times"), "{output}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_waits_for_fifty_queued_pages_at_the_default_limits() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (app, task) = start_with_default_limits(&build_packages(dir.path()).await?).await?;
    let (path, sdk) = (text(dir.path()), root().join("sdk/typescript"));
    install_typescript(&app, dir.path()).await?;
    for name in ["queue_many.mts", "tsconfig.json"] {
        std::fs::copy(sdk.join("e2e").join(name), dir.path().join(name))?;
    }
    let types = text(&root().canonicalize()?.join("node_modules/@types"));
    run_ok(root().join("node_modules/.bin/tsc"), &["--project", &path, "--typeRoots", &types]).await?;
    let output = run_ok(node(), &[&text(&dir.path().join("queue_many.mts")), &task]).await?;
    ensure!(output.contains("all fifty arrived, three times"), "{output}");
    app.finish().await
}

#[tokio::test]
async fn typescript_unit_tests_pass() -> Result<()> {
    run_ok(root().join("node_modules/.bin/tsc"), &["--project", "sdk/typescript/test"]).await?;
    // The system's Node.js, because it is the oldest that the library supports.
    let mut arguments = vec!["--test".to_owned()];
    for entry in std::fs::read_dir(root().join("sdk/typescript/build/test"))? {
        arguments.extend(Some(text(&entry?.path())).filter(|path| path.ends_with(".test.js")));
    }
    ensure!(arguments.len() > 1, "no compiled tests");
    let output = run_ok("node", &arguments.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    ensure!(output.contains("fail 0") && !output.contains("pass 0"), "{output}");
    Ok(())
}

#[tokio::test]
async fn python_unit_tests_pass() -> Result<()> {
    let output = run_ok(python(), &["-m", "unittest", "discover", "--start-directory", "sdk/python/tests"]).await?;
    ensure!(output.contains("OK") && !output.contains("Ran 0 tests"), "{output}");
    Ok(())
}

#[tokio::test]
async fn python_sources_pass_the_type_checker() -> Result<()> {
    let settings = ["-m", "mypy", "--config-file", "sdk/python/pyproject.toml"];
    run_ok(python(), &[&settings[..], &["sdk/python/src", "sdk/python/tests"]].concat()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_types_match_the_openapi_document() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let document = format!("{}/openapi.json", app.base());
    let mode: &[&str] = if std::env::var_os(UPDATE).is_some() { &[] } else { &["--check"] };
    run_ok(python(), &[&["sdk/generate.py", &document], mode].concat()).await?;
    app.finish().await
}
