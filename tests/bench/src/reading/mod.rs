//! Measures how well the text and the Markdown of a capture are the main content of a page, beside other tools, and whether
//! elements have the right names, with public sets of pages.

mod names;
mod page_site;
mod readers;
mod scores;
mod sets;
mod structure;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use futures::{StreamExt, stream};
use grabd_tests::dns::Dns;
use grabd_tests::harness::ALLOWED;
use page_site::PageSite;
use readers::Reader;
use scores::Scores;
use serde_json::json;
use sets::{Page, Set};

use crate::service::Service;

/// Options of the measurement.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder with checkouts of the sets: `article-extraction-benchmark`, `trafilatura`, `defuddle` and
    /// `playwright`. Those that are missing are left out.
    #[arg(long, value_name = "DIR")]
    sets: PathBuf,
    /// Only these sets.
    #[arg(long, value_delimiter = ',', value_name = "SET")]
    only: Vec<String>,
    /// Only pages whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    page: Option<String>,
    /// Captures at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    at_a_time: u16,
    /// Without other tools.
    #[arg(long)]
    alone: bool,
    /// Write what was read of each page to this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Captures the pages of all sets, and prints the score of each set for its even and odd half and for all of it.
pub(crate) async fn measure(args: &Args) -> anyhow::Result<()> {
    for name in &args.only {
        let known = Set::ALL.map(Set::name);
        anyhow::ensure!(
            known.contains(&name.as_str()) || name == names::NAME,
            "unknown set `{name}`; known are {}, {}",
            known.join(", "),
            names::NAME
        );
    }
    let is_asked = |set: &str| args.only.is_empty() || args.only.iter().any(|name| name == set);
    let mut found = Vec::new();
    for set in Set::ALL {
        if is_asked(set.name()) && args.sets.join(set.folder()).is_dir() {
            let mut pages = set.pages(&args.sets.join(set.folder()))?;
            pages.retain(|page| args.page.as_ref().is_none_or(|part| page.name.contains(part)));
            found.push((set, pages));
        }
    }
    let tests_of_names = args.sets.join(names::FOLDER);
    let has_names = is_asked(names::NAME) && tests_of_names.is_dir();
    anyhow::ensure!(has_names || !found.is_empty(), "{} has none of the sets", args.sets.display());

    // No name exists, so that requests to other hosts fail for all pages in the same way.
    let dns = Dns::start_empty().await?;
    let dns_address = dns.address.to_string();
    let settings = [("GRABD_EGRESS__DNS", dns_address.as_str()), ("GRABD_RETENTION__MIN_FREE_PERCENT", "0")];
    let service = Service::start_with(&settings).await?;
    if has_names {
        names::measure(&service, &tests_of_names).await?;
    }
    println!(
        "{:<32}{:<14}{:<6}{:>7}{:>11}{:>9}{:>9}{:>8}",
        "set", "tool", "half", "pages", "precision", "recall", "F1", "failed"
    );
    for (set, pages) in &found {
        let site = PageSite::start(ALLOWED, pages).await?;
        let captures = pages.iter().enumerate().map(|(at, page)| read(&service, *set, page, site.url(at)));
        let read: Vec<Option<String>> = stream::iter(captures).buffered(usize::from(args.at_a_time)).collect().await;
        let mut tools = vec![("grabd", read)];
        for reader in Reader::of_kind(set.file_kind()).filter(|_| !args.alone) {
            tools.push((reader.name, reader.read(set.file_kind(), pages).await?));
        }
        for (tool, read) in &tools {
            if let Some(directory) = &args.keep {
                keep(&directory.join(set.name()).join(tool), pages, read)?;
            }
            print_scores(*set, tool, pages, read);
        }
    }
    service.stop().await
}

fn keep(directory: &Path, pages: &[Page], read: &[Option<String>]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (page, text) in pages.iter().zip(read) {
        fs::write(directory.join(page.name.replace('/', "-")), text.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

fn print_scores(set: Set, tool: &str, pages: &[Page], read: &[Option<String>]) {
    let mut halves = [("even", Scores::default()), ("odd", Scores::default()), ("all", Scores::default())];
    let mut structure = structure::Counts::default();
    let [even, odd, all] = &mut halves;
    for (at, (page, text)) in pages.iter().zip(read).enumerate() {
        let half = if at % 2 == 0 { &mut even.1 } else { &mut odd.1 };
        for scores in [half, &mut all.1] {
            scores.add(&page.expected, text.as_deref());
        }
        if let sets::Expected::Markdown(expected) = &page.expected {
            structure.add(expected, text.as_deref().unwrap_or_default());
        }
    }
    for (half, scores) in &halves {
        let (precision, recall, f1) = scores.figures();
        let (name, pages, failed) = (set.folder(), scores.pages, scores.failed);
        println!("{name:<32}{tool:<14}{half:<6}{pages:>7}{precision:>11.3}{recall:>9.3}{f1:>9.3}{failed:>8}");
    }
    structure.print();
}

/// What was read of a page. `None` if its capture failed, which is printed.
async fn read(service: &Service, set: Set, page: &Page, url: String) -> Option<String> {
    match try_read(service, set, &url).await {
        Ok(text) => Some(text),
        Err(error) => {
            eprintln!("{}: {error:#}", page.name);
            None
        }
    }
}

async fn try_read(service: &Service, set: Set, url: &str) -> anyhow::Result<String> {
    let kind = set.file_kind();
    let (status, grab) = service.capture(&json!({ "url": url, "also": [kind] })).await?;
    anyhow::ensure!(status == 200, "{status}: {grab}");
    let files = grab["files"].as_array().into_iter().flatten();
    let file = files.filter(|file| file["kind"] == json!(kind)).find_map(|file| file["url"].as_str());
    let content = service.image(file.context("a done grab has its files")?).await?;
    if let Some(id) = grab["id"].as_str() {
        // Thousands of images would fill the disk.
        service.delete(id).await?;
    }
    Ok(String::from_utf8(content)?)
}
