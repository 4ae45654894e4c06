//! Links in the Markdown files of the repository lead to existing files and headings.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The Markdown files of a directory, and of the directories below it.
fn markdown_files(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            markdown_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The lines that are not in blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of the headings, as code hosts make them.
fn anchors(text: &str) -> HashSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_of_markdown_files_lead_to_files_and_headings() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the root of the repository")?;
    let mut files: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root.join(name)).into();
    markdown_files(&root.join("docs"), &mut files)?;
    let (mut broken, mut count) = (Vec::new(), 0);
    for file in files {
        let text = fs::read_to_string(&file)?;
        let links = prose(&text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !["http", "mailto:", "/"].iter().any(|prefix| link.starts_with(prefix))) {
            let (name, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if name.is_empty() { file.clone() } else { file.with_file_name(name) };
            let has_heading = || Ok::<_, anyhow::Error>(anchors(&fs::read_to_string(&target)?).contains(anchor));
            let is_markdown = target.extension().is_some_and(|extension| extension == "md");
            if !target.exists() || (is_markdown && !anchor.is_empty() && !has_heading()?) {
                broken.push(format!("{}: {link}", file.display()));
            }
            count += 1;
        }
    }
    ensure!(count > 200, "{count} links");
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}
