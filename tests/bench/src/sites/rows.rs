//! The result of each picture, kept in a file while a comparison runs, and what users found by looking.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::corpus::Mode;

/// Whether a picture is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Correctness {
    Right,
    /// Too much of the page moves or is random.
    Restless,
    Wrong,
    /// There is no picture.
    Failed,
}

impl Correctness {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Restless => "restless",
            Self::Wrong => "wrong",
            Self::Failed => "failed",
        }
    }
}

/// What one tool made of a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Capture {
    pub(super) verdict: Correctness,
    /// Differing blocks of 8 by 8 CSS pixels, and their part of all.
    pub(super) differing: usize,
    pub(super) ratio: f64,
    /// Part of the blocks that is restless.
    pub(super) restless: f64,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) ms: f64,
    pub(super) error: Option<String>,
}

/// One picture: a page in a mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) page: String,
    pub(super) mode: Mode,
    pub(super) grabd: Capture,
    pub(super) settled_by: String,
    pub(super) warnings: Vec<String>,
    pub(super) playwright: Option<Capture>,
    pub(super) reference_height: u32,
    /// The height of what a box scrolls in place of the document, or 0.
    pub(super) scroller: u32,
    /// Of the element.
    pub(super) selector: Option<String>,
    /// What a user found.
    #[serde(default, skip_deserializing)]
    pub(super) judged: Option<Judgement>,
}

/// What a user found by looking at a pair of pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Judgement {
    pub(super) right: bool,
    pub(super) note: String,
}

impl Row {
    /// The verdict, in which a user's judgement wins.
    pub(super) fn verdict(&self) -> Correctness {
        match &self.judged {
            Some(judgement) if self.grabd.verdict != Correctness::Failed => {
                if judgement.right {
                    Correctness::Right
                } else {
                    Correctness::Wrong
                }
            }
            Some(_) | None => self.grabd.verdict,
        }
    }

    /// Whether grabd said that something may be missing. A failed capture says so.
    pub(super) fn is_warned(&self) -> bool {
        self.grabd.verdict == Correctness::Failed || self.settled_by == "deadline" || !self.warnings.is_empty()
    }
}

/// The rows of a run, in a file to which each is added at once.
pub(super) struct Rows {
    pub(super) all: Vec<Row>,
    path: PathBuf,
}

impl Rows {
    /// Begins anew, or goes on with what is there.
    pub(super) fn open(path: PathBuf, resume: bool) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        if resume && path.is_file() {
            for line in fs::read_to_string(&path)?.lines() {
                all.push(serde_json::from_str(line).with_context(|| path.display().to_string())?);
            }
        } else {
            fs::write(&path, "")?;
        }
        Ok(Self { all, path })
    }

    pub(super) fn contains(&self, page: &str, mode: Mode) -> bool {
        self.all.iter().any(|row| row.page == page && row.mode == mode)
    }

    pub(super) fn add(&mut self, row: Row) -> anyhow::Result<()> {
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        writeln!(file, "{}", serde_json::to_string(&row)?)?;
        self.all.push(row);
        Ok(())
    }

    /// Adds the judgements of a file with lines of page, mode, `right` or `wrong`, and a note, separated by tabs.
    pub(super) fn judge(&mut self, file: &Path) -> anyhow::Result<()> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let judgements = parse_judgements(&text).with_context(|| file.display().to_string())?;
        for row in &mut self.all {
            row.judged = judgements.get(&(row.page.clone(), row.mode)).cloned();
        }
        Ok(())
    }

    /// The rows as tab-separated values, one picture per line.
    pub(super) fn tsv(&self) -> String {
        let head = "page\tmode\tverdict\tby_rule\twarned\tdiffering\tratio\trestless\theight\treference_height\t\
                    scroller\tsettled_by\twarnings\tms\tplaywright\tplaywright_ratio\tplaywright_ms\tselector\terror\tnote\n";
        let mut text = head.to_owned();
        for row in &self.all {
            let (grabd, other) = (&row.grabd, row.playwright.as_ref());
            let cells = [
                row.page.clone(),
                row.mode.name().to_owned(),
                row.verdict().name().to_owned(),
                grabd.verdict.name().to_owned(),
                row.is_warned().to_string(),
                grabd.differing.to_string(),
                format!("{:.4}", grabd.ratio),
                format!("{:.4}", grabd.restless),
                grabd.height.to_string(),
                row.reference_height.to_string(),
                row.scroller.to_string(),
                row.settled_by.clone(),
                row.warnings.join(" "),
                format!("{:.0}", grabd.ms),
                other.map(|other| other.verdict.name().to_owned()).unwrap_or_default(),
                other.map(|other| format!("{:.4}", other.ratio)).unwrap_or_default(),
                other.map(|other| format!("{:.0}", other.ms)).unwrap_or_default(),
                row.selector.clone().unwrap_or_default(),
                grabd.error.clone().unwrap_or_default(),
                row.judged.as_ref().map(|judged| judged.note.clone()).unwrap_or_default(),
            ];
            text.push_str(&cells.map(|cell| cell.replace(['\t', '\n', '\r'], " ")).join("\t"));
            text.push('\n');
        }
        text
    }
}

fn parse_judgements(text: &str) -> anyhow::Result<BTreeMap<(String, Mode), Judgement>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            let mut cells = line.splitn(4, '\t').map(str::trim);
            let mut next = || cells.next().unwrap_or_default();
            let (page, mode, found, note) = (next().to_owned(), next(), next(), next().to_owned());
            let mode = Mode::parse(mode).with_context(|| format!("line {}", number + 1))?;
            let right = match found {
                "right" => true,
                "wrong" => false,
                other => anyhow::bail!("line {}: `{other}` is neither `right` nor `wrong`", number + 1),
            };
            Ok(((page, mode), Judgement { right, note }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(page: &str, verdict: Correctness) -> Row {
        let grabd = Capture {
            verdict,
            differing: 50,
            ratio: 0.25,
            restless: 0.0,
            width: 1280,
            height: 720,
            ms: 812.4,
            error: None,
        };
        Row {
            page: page.into(),
            mode: Mode::View,
            grabd,
            settled_by: "quiet".into(),
            warnings: Vec::new(),
            playwright: None,
            reference_height: 720,
            scroller: 0,
            selector: None,
            judged: None,
        }
    }

    #[test]
    fn judgement_wins_over_the_rule_but_makes_no_picture() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let mut rows = Rows::open(directory.path().join("rows.jsonl"), false)?;
        for (page, verdict) in [
            ("a/", Correctness::Wrong),
            ("b/", Correctness::Right),
            ("c/", Correctness::Failed),
            ("d/", Correctness::Wrong),
        ] {
            rows.add(row(page, verdict))?;
        }
        let judged = directory.path().join("judged.tsv");
        fs::write(
            &judged,
            "# by eye\na/\tview\tright\trandom quote\nb/\tview\twrong\na/\tfull\twrong\nc/\tview\tright\n",
        )?;
        let mut rows = Rows::open(directory.path().join("rows.jsonl"), true)?;
        rows.judge(&judged)?;
        let verdicts: Vec<Correctness> = rows.all.iter().map(Row::verdict).collect();
        assert_eq!(verdicts, [Correctness::Right, Correctness::Wrong, Correctness::Failed, Correctness::Wrong]);
        assert!(rows.contains("a/", Mode::View) && !rows.contains("a/", Mode::Full));
        let tsv = rows.tsv();
        let line: Vec<&str> = tsv.lines().nth(1).unwrap_or_default().split('\t').collect();
        assert_eq!(line[..7], ["a/", "view", "right", "wrong", "false", "50", "0.2500"]);
        assert_eq!((line.len(), line[19]), (20, "random quote"));

        for (text, error) in
            [("a/\tview\tgood", "neither `right` nor `wrong`"), ("a/\tscreen\tright", "unknown mode `screen`")]
        {
            let shown = parse_judgements(text).map(drop).map_err(|found| format!("{found:#}")).unwrap_err();
            assert!(shown.contains(error), "{shown}");
        }
        Ok(())
    }

    #[test]
    fn failed_captures_deadlines_and_warnings_are_warned() {
        let quiet = row("a/", Correctness::Wrong);
        assert!(!quiet.is_warned());
        assert!(Row { settled_by: "deadline".into(), ..quiet.clone() }.is_warned());
        assert!(Row { warnings: vec!["images_failed:1".into()], ..quiet }.is_warned());
        assert!(row("a/", Correctness::Failed).is_warned());
    }
}
