//! The examples of the documentation for callers run as they are written, with the limits that a service has by default.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;
use grabd_tests::programs::{node, root, run};

use crate::crash_recovery::service::grabd_binary;

/// The pages with examples for callers.
const PAGES: [&str; 17] = [
    "README.md",
    "docs/BLOCKING.md",
    "docs/EVIDENCE.md",
    "docs/FILES.md",
    "docs/LINKS.md",
    "docs/MONITORS.md",
    "docs/PROXIES.md",
    "docs/RATES.md",
    "docs/SITES.md",
    "docs/WEBHOOKS.md",
    "docs/guide/AUTOMATION.md",
    "docs/guide/CAPTURES.md",
    "docs/guide/ERRORS.md",
    "docs/guide/PICTURE.md",
    "docs/guide/QUICKSTART.md",
    "docs/guide/RETRIES.md",
    "sdk/skill/grabd/SKILL.md",
];

/// Examples that are not run here, by what is in them, and why.
const NOT_RUN: [(&str, &str); 11] = [
    ("script/run", "builds and starts a service"),
    ("admin user create", "a command of the operator, which other tests run"),
    ("export GRAB_API_KEY=", "sets the key by hand"),
    ("export GRAB_BASE_URL=", "sets the variables by hand; the programs of its page are run"),
    ("grab --from tests/", "the command line client's own tests run it"),
    ("grab verify page", "evidence of a test key proves nothing; the command line client's own tests verify another"),
    ("tail -c 32 key.der", "runs in the directory of the example before it"),
    ("openssl ts -verify", "needs the certificates of an authority"),
    ("grab site https://", "requests pages of a public site; the command line client's own tests capture one"),
    ("int(one[\"phash\"], 16)", "a line within a program"),
    ("app.post(", "a part of a server, which the tests of webhooks verify with the same library"),
];

struct Example {
    page: &'static str,
    language: String,
    code: String,
}

/// The examples of a page in the languages that are run.
fn examples(page: &'static str) -> Result<Vec<Example>> {
    let text = std::fs::read_to_string(root().join(page))?;
    let mut found = Vec::new();
    for block in text.split("\n```").collect::<Vec<_>>().chunks(2).filter_map(|pair| pair.get(1)) {
        let (language, code) = block.split_once('\n').unwrap_or_default();
        if ["sh", "python", "js"].contains(&language) && !NOT_RUN.iter().any(|(part, _)| code.contains(part)) {
            found.push(Example { page, language: language.to_owned(), code: code.to_owned() });
        }
    }
    Ok(found)
}

/// A directory with a `curl` that fails for responses of failure. The client `grab` of this build is in the path as well.
fn failing_curl(dir: &Path) -> Result<String> {
    let path = dir.join("curl");
    std::fs::write(&path, "#!/bin/sh\nexec /usr/bin/curl --fail-with-body \"$@\"\n")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    let programs = grabd_binary()?.with_file_name("");
    let system = std::env::var_os("PATH").unwrap_or_default();
    Ok(format!("PATH={}:{}:{}", dir.display(), programs.display(), system.to_string_lossy()))
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_for_callers_run_as_they_are_written_at_the_default_limits() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for list in ["ads.txt", "trackers.txt"] {
        std::fs::write(dir.path().join(list), "||ads.example^\n")?;
    }
    let lists = dir.path().display().to_string();
    let overlay = [("limits.requests_per_minute", "60"), ("browser.filter_lists", &*lists)];
    let app = TestApp::start_without_browser(0, &overlay).await?;
    let path = failing_curl(dir.path())?;
    let sdk = format!("PYTHONPATH={}", root().join("sdk/python/src").display());
    let (mut count, mut reader) = (0, None);
    for example in PAGES.into_iter().map(examples).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
        let Example { page, language, code } = example;
        // Each page has a reader of its own, with the limits of one. A test key gets placeholders, so that nothing depends on
        // other sites.
        let key = match reader.take() {
            Some((of, key)) if of == page => key,
            _ => accounts::create_team(app.service.store(), page, 0, Clock::system().now()).await?.test,
        };
        let variables = [
            format!("GRAB_BASE_URL={}", app.base()),
            format!("GRAB_API_KEY={}", key.expose()),
            "GRAB_LINK_KEY=lk_0123456789abcdef".to_owned(),
            "GRAB_LINK_SECRET=gls_secret".to_owned(),
        ];
        reader = Some((page, key));
        let code = code.replace("http://127.0.0.1:8080", app.service.public_url());
        let (program, extension) = match &*language {
            "sh" => ("/bin/sh".to_owned(), "sh"),
            "python" => (root().join("target/python/bin/python").display().to_string(), "py"),
            _ => (node().display().to_string(), "mjs"),
        };
        let file = dir.path().join(format!("example{count}.{extension}"));
        std::fs::write(&file, &code)?;
        let chdir = format!("--chdir={}", dir.path().display());
        let mut arguments = vec![chdir, path.clone(), sdk.clone()];
        arguments.extend(variables);
        arguments.extend([program, file.display().to_string()]);
        let (is_success, output) = run(Path::new("env"), &arguments).await.context(page)?;
        ensure!(is_success, "{page}: {code}\n{output}");
        count += 1;
    }
    ensure!(count >= 15, "{count} examples were run");
    app.finish().await
}

/// An exception that no page needs any more is removed.
#[test]
fn exceptions_are_needed() -> Result<()> {
    let texts: Vec<String> =
        PAGES.iter().map(|page| std::fs::read_to_string(root().join(page))).collect::<Result<_, _>>()?;
    for (part, why) in NOT_RUN {
        ensure!(texts.iter().any(|text| text.contains(part)), "{part} ({why}) is in no page");
    }
    Ok(())
}
