//! The folders of built sites, and the pages and modes in which they are captured.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

/// Names the pages of a site, in its folder: a path and, optionally, modes in each line.
const PAGES_FILE: &str = "pages.txt";

/// How a page is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// The first screen of a desktop window.
    View,
    /// The whole page.
    Full,
    /// The first screen of a phone.
    Phone,
    /// The first screen in the dark design.
    Dark,
    /// A large element.
    Element,
}

impl Mode {
    pub(super) const ALL: [Self; 5] = [Self::View, Self::Full, Self::Phone, Self::Dark, Self::Element];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Full => "full",
            Self::Phone => "phone",
            Self::Dark => "dark",
            Self::Element => "element",
        }
    }

    pub(super) fn parse(name: &str) -> anyhow::Result<Self> {
        let known = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .with_context(|| format!("unknown mode `{name}`; known are {known}"))
    }

    /// Device pixels per CSS pixel.
    pub(super) const fn scale(self) -> u32 {
        match self {
            Self::Phone => 3,
            Self::View | Self::Full | Self::Dark | Self::Element => 1,
        }
    }
}

/// A page of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The folder of the site.
    pub(super) folder: PathBuf,
    /// The path on the site, with a slash at its start.
    pub(super) path: String,
    pub(super) modes: Vec<Mode>,
}

impl Entry {
    /// The name of the folder, and the path: `shop/index.html`.
    pub(super) fn name(&self) -> String {
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{folder}{}", self.path)
    }

    /// The name as that of one file.
    pub(super) fn file_name(&self) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        self.name().chars().map(|c| if allowed(c) { c } else { '+' }).take(180).collect()
    }
}

/// The pages below these directories: each is a site, or contains sites.
pub(super) fn entries(directories: &[PathBuf], modes: &[Mode], pages: usize) -> anyhow::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for directory in directories {
        ensure!(directory.is_dir(), "{} is no directory", directory.display());
        let own = site(directory, modes, pages)?;
        if !own.is_empty() {
            found.extend(own);
            continue;
        }
        let mut folders: Vec<PathBuf> = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        folders.sort();
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            found.extend(site(folder, modes, pages)?);
        }
    }
    Ok(found)
}

/// The pages of one site. Empty if the folder is none.
fn site(folder: &Path, modes: &[Mode], pages: usize) -> anyhow::Result<Vec<Entry>> {
    let listed = folder.join(PAGES_FILE);
    let mut found = if listed.is_file() {
        let text = fs::read_to_string(&listed)?;
        parse(folder, &text).with_context(|| listed.display().to_string())?
    } else if folder.join("index.html").is_file() {
        vec![Entry { folder: folder.to_owned(), path: "/".into(), modes: Mode::ALL.to_vec() }]
    } else {
        Vec::new()
    };
    found.truncate(pages);
    for entry in &mut found {
        entry.modes.retain(|mode| modes.contains(mode));
    }
    found.retain(|entry| !entry.modes.is_empty());
    Ok(found)
}

fn parse(folder: &Path, text: &str) -> anyhow::Result<Vec<Entry>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let Some(path) = words.next() else { bail!("an empty line") };
            let mut modes = words.map(Mode::parse).collect::<anyhow::Result<Vec<_>>>()?;
            if modes.is_empty() {
                modes = Mode::ALL.to_vec();
            }
            Ok(Entry { folder: folder.to_owned(), path: format!("/{}", path.trim_start_matches('/')), modes })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_listed_with_modes_or_are_the_index() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let (one, two) = (directory.path().join("one"), directory.path().join("two"));
        for folder in [&one, &two, &directory.path().join("three")] {
            fs::create_dir(folder)?;
        }
        fs::write(one.join("index.html"), "<p>One")?;
        fs::write(two.join(PAGES_FILE), "# what is shown\na/b.html view dark\n\n/c.html#top\n/d.html\n")?;
        let found = entries(&[directory.path().to_owned()], &[Mode::View, Mode::Full], 2)?;
        let seen: Vec<_> = found.iter().map(|entry| (entry.name(), entry.modes.clone())).collect();
        let expected = [
            ("one/", vec![Mode::View, Mode::Full]),
            ("two/a/b.html", vec![Mode::View]),
            ("two/c.html#top", vec![Mode::View, Mode::Full]),
        ];
        assert_eq!(seen, expected.map(|(name, modes)| (name.to_owned(), modes)));
        assert_eq!(found[2].file_name(), "two+c.html+top");
        assert_eq!(entries(&[one], &Mode::ALL, 3)?.len(), 1, "a site itself");

        fs::write(two.join(PAGES_FILE), "/a.html print")?;
        let error = entries(&[two], &Mode::ALL, 3).map(drop).unwrap_err();
        assert!(format!("{error:#}").contains("unknown mode `print`; known are view, full"), "{error:#}");
        Ok(())
    }
}
