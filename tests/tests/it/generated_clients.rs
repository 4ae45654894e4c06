//! Clients that others generate from the OpenAPI document work at the first attempt, with the limits of a service by default.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use grabd_tests::harness::{REFUSED, TestApp};
use grabd_tests::programs::{node, root, run};

async fn start() -> Result<TestApp> {
    TestApp::start_without_browser(0, &[("limits.requests_per_minute", "60")]).await
}

/// A directory with the document and the program that uses the clients.
async fn prepare(app: &TestApp, files: &[&str]) -> Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    let document = app.client.get(format!("{}/openapi.json", app.base())).send().await?.error_for_status()?;
    std::fs::write(dir.path().join("openapi.json"), document.bytes().await?)?;
    for file in files {
        std::fs::copy(root().join("tests/clients/generated").join(file), dir.path().join(file))?;
    }
    Ok(dir)
}

fn generators() -> Result<PathBuf> {
    Ok(root().canonicalize()?.join("target/generators"))
}

/// Runs a program in the directory, with the address and the key of the service.
async fn run_in(app: &TestApp, dir: &Path, program: &Path, arguments: &[&str]) -> Result<String> {
    let mut all = vec![
        format!("--chdir={}", dir.display()),
        format!("BASE={}", app.base()),
        format!("KEY={}", app.test()),
        format!("REFUSED=http://{REFUSED}/"),
        program.display().to_string(),
    ];
    all.extend(arguments.iter().map(|&argument| argument.to_owned()));
    let (is_success, output) = run(Path::new("env"), &all).await?;
    ensure!(is_success, "{} {arguments:?}: {output}", program.display());
    Ok(output)
}

#[tokio::test(flavor = "multi_thread")]
async fn python_clients_of_two_generators_capture_wait_and_read_errors() -> Result<()> {
    let app = start().await?;
    let dir = prepare(&app, &["exercise.py"]).await?;
    let bin = generators()?.join("python/bin");
    let generate = ["generate", "--path", "openapi.json", "--output-path", ".", "--overwrite", "--meta", "none"];
    // Without its formatter, which is another package.
    std::fs::write(dir.path().join("config.yml"), "post_hooks: []\npackage_name_override: grabd_client\n")?;
    std::fs::create_dir(dir.path().join("grabd_client"))?;
    let generate: Vec<&str> = generate.iter().map(|&of| if of == "." { "grabd_client" } else { of }).collect();
    run_in(
        &app,
        dir.path(),
        &bin.join("openapi-python-client"),
        &[&generate[..], &["--config", "config.yml"]].concat(),
    )
    .await?;
    let models = ["--input", "openapi.json", "--input-file-type", "openapi", "--output", "models.py"];
    let models = [&models[..], &["--output-model-type", "pydantic_v2.BaseModel"]].concat();
    run_in(&app, dir.path(), &bin.join("datamodel-codegen"), &models).await?;
    let output = run_in(&app, dir.path(), &bin.join("python"), &["exercise.py"]).await?;
    for generator in ["openapi-python-client", "datamodel-code-generator"] {
        ensure!(output.contains(&format!("{generator}: all done")), "{output}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_clients_of_three_generators_capture_wait_and_read_errors() -> Result<()> {
    let app = start().await?;
    let dir = prepare(&app, &["exercise.ts", "tsconfig.json"]).await?;
    let modules = generators()?.join("node_modules");
    std::os::unix::fs::symlink(&modules, dir.path().join("node_modules"))?;
    let bin = modules.join(".bin");
    for (program, arguments) in [
        ("openapi-typescript", &["openapi.json", "-o", "schema.d.ts"][..]),
        ("openapi-ts", &["-i", "openapi.json", "-o", "hey", "-c", "@hey-api/client-fetch"]),
        ("orval", &["--input", "./openapi.json", "--output", "./orval.ts", "--client", "fetch"]),
        ("tsc", &["--project", "."]),
    ] {
        run_in(&app, dir.path(), &bin.join(program), arguments).await?;
    }
    let output = run_in(&app, dir.path(), &node(), &["out/exercise.js"]).await?;
    for generator in ["hey-api", "openapi-typescript", "orval"] {
        ensure!(output.contains(&format!("{generator}: all done")), "{output}");
    }
    app.finish().await
}
