//! The page of a new key: its programs work with this key alone, and its form makes one key.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use grabd_tests::harness::TestApp;
use grabd_tests::programs;

use super::users::{first_team, ids, shown_key};
use super::visitor::{PageResponse, Visitor, start_app};

/// A program of the page, as a reader copies it.
fn program(page: &PageResponse, language: &str) -> Result<String> {
    let start = format!("<figcaption>{language}</figcaption><pre tabindex=\"0\"><code>");
    let code = page.body.split(&start).nth(1).and_then(|rest| rest.split("</code>").next());
    let code = code.with_context(|| format!("{language}: {}", page.body))?.to_owned();
    let entities = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    Ok(entities.into_iter().fold(code, |code, (entity, text)| code.replace(entity, text)))
}

/// Sends the form of the page for a key with these scopes.
async fn create(
    visitor: &mut Visitor<'_>,
    path: &str,
    once: &str,
    name: &str,
    scopes: &[&str],
) -> Result<PageResponse> {
    let form_token = visitor.get(path).await?.hidden_field("form_token")?;
    let mut form = vec![("form_token", &*form_token), ("once", once), ("name", name), ("environment", "test")];
    form.extend(scopes.iter().map(|scope| ("scopes", *scope)));
    visitor.post(path, &form).await
}

/// The ids of the keys in the list.
async fn keys(visitor: &mut Visitor<'_>, path: &str) -> Result<Vec<String>> {
    Ok(ids(&visitor.get(path).await?, "id=\"revoke-"))
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_a_new_key_have_it_and_need_only_its_scopes() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let path = format!("{}/keys", first_team(&mut ada).await?);
    for (scopes, expected) in [
        (&["read", "create", "manage"][..], "\"image_url\""),
        (&["create"], "\"status\""),
        (&["read"], "\"credits\""),
        (&["read", "manage"], "\"credits\""),
        (&["manage"], "\"data\""),
    ] {
        let page = create(&mut ada, &path, "", "A key", scopes).await?;
        assert_eq!(page.status, 200, "{scopes:?}: {}", page.body);
        let key = shown_key(&page)?;
        assert!(page.body.contains(&format!("export GRAB_API_KEY={key}")), "{}", page.body);
        assert!(page.body.contains(&format!("export GRAB_BASE_URL={}/v1", app.service.public_url())), "{}", page.body);
        for language in ["Go", "Rust", "PHP"] {
            assert!(program(&page, language)?.contains(&key), "{language}");
        }
        let output = run(&program(&page, "curl")?).await?;
        assert!(output.contains(expected) && !output.contains("\"error\":{"), "{scopes:?}: {output}");
    }
    app.finish().await
}

/// Runs a program for a shell, without the variables of this process.
async fn run(code: &str) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let file: PathBuf = directory.path().join("program.sh");
    std::fs::write(&file, code)?;
    let arguments = ["-u", "GRAB_API_KEY", "sh", &*file.to_string_lossy()].map(str::to_owned);
    let (succeeded, output) = programs::run(Path::new("env"), &arguments).await?;
    anyhow::ensure!(succeeded, "{output}\n{code}");
    Ok(output)
}

#[tokio::test(flavor = "multi_thread")]
async fn key_form_that_is_sent_again_makes_no_second_key() -> Result<()> {
    let app: TestApp = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let path = format!("{}/keys", first_team(&mut ada).await?);
    let once = ada.get(&path).await?.hidden_field("once")?;
    assert_ne!(ada.get(&path).await?.hidden_field("once")?, once);

    // A form that was refused can be corrected and sent again.
    assert_eq!(create(&mut ada, &path, &once, "", &["read"]).await?.status, 422);
    let first = create(&mut ada, &path, &once, "build server", &["read"]).await?;
    assert_eq!(first.status, 200, "{}", first.body);
    let made = keys(&mut ada, &path).await?;
    assert_eq!(made.len(), 1);
    let key = shown_key(&first)?;

    // The answer to the same form lists the key, and does not show it again.
    let again = create(&mut ada, &path, &once, "build server", &["read"]).await?;
    assert_eq!(again.status, 409, "{}", again.body);
    assert!(again.body.contains("This key was already created") && !again.body.contains(&key), "{}", again.body);
    assert_eq!((keys(&mut ada, &path).await?, ids(&again, "id=\"revoke-")), (made.clone(), made));

    // The form of that page, and that of another user with the same id, make keys.
    let next = again.hidden_field("once")?;
    assert_eq!(create(&mut ada, &path, &next, "another", &["read"]).await?.status, 200);
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let hers = format!("{}/keys", first_team(&mut eve).await?);
    assert_eq!(create(&mut eve, &hers, &once, "hers", &["read"]).await?.status, 200);
    app.finish().await
}
