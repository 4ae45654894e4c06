//! The report of a comparison of many pages: a web page with the images of each, in a directory that can be moved.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::api::{Api, Grab, difference_image};
use crate::capture::download;
use crate::failure::Failure;
use crate::html::{self, escaped};

/// A report that is being made.
pub(crate) struct Report {
    directory: PathBuf,
    /// Pages that changed too much, pages that failed, those that the baseline does not have, and all others.
    sections: [Vec<String>; 4],
}

impl Report {
    /// Begins a report in a directory, which is created.
    pub(crate) fn create(directory: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(directory).map_err(Failure::file(directory))?;
        Ok(Self { directory: directory.to_owned(), sections: Default::default() })
    }

    /// Adds a page: its later capture, or why there is none. Downloads the images.
    pub(crate) async fn add(
        &mut self,
        api: &Api,
        url: &str,
        earlier: &Grab,
        later: Result<&Grab, String>,
        is_over: impl Fn(&Grab) -> bool,
    ) -> Result<(), Failure> {
        let number = self.sections.iter().map(Vec::len).sum::<usize>() + 1;
        let (section, tag, text) = match &later {
            Ok(later) => {
                let ratio = later.fields.difference.as_ref().map_or(0.0, |difference| difference.ratio);
                let text = format!("{:.2} % changed", ratio * 100.0);
                if is_over(later) { (0, "changed", text) } else { (3, "same", text) }
            }
            Err(message) => (1, "failed", message.clone()),
        };
        let mut html = format!(
            "<section><h2><span class=\"tag {tag}\">{}</span>{}</h2>\n<div class=\"images\">\n",
            escaped(&text),
            escaped(url)
        );
        let difference = later.as_ref().ok().and_then(|later| difference_image(api, later.fields.difference.as_ref()?));
        let images = [
            ("Before", earlier.image(api)),
            ("Now", later.as_ref().ok().and_then(|later| later.image(api))),
            ("Difference", difference),
        ];
        for (label, image) in images {
            let Some(image) = image else { continue };
            let extension = image
                .path()
                .rsplit('.')
                .next()
                .filter(|of| ["png", "jpg", "jpeg", "webp"].contains(of))
                .unwrap_or("png");
            let name = format!("{number}-{}.{extension}", label.to_lowercase());
            // An image of the baseline may have been deleted since.
            let shown = match download::save(api, &image, &self.directory.join(&name)).await {
                Ok(()) => format!("<a href=\"{name}\"><img src=\"{name}\" alt=\"{label}\" loading=\"lazy\"></a>"),
                Err(failure) => escaped(&failure.message()),
            };
            let _ = writeln!(html, "<figure><figcaption>{label}</figcaption>{shown}</figure>");
        }
        html.push_str("</div></section>\n");
        self.sections[section].push(html);
        Ok(())
    }

    /// Adds a page that the baseline does not have, and that was not captured.
    pub(crate) fn add_new(&mut self, url: &str) {
        let tag = "<span class=\"tag new\">not in the baseline</span>";
        self.sections[2].push(format!("<section><h2>{tag}{}</h2></section>\n", escaped(url)));
    }

    fn title(&self) -> String {
        let [changed, failed, unknown, same] = self.sections.each_ref().map(Vec::len);
        let unknown = if unknown > 0 { format!(", {unknown} not in the baseline") } else { String::new() };
        format!("{changed} changed, {failed} failed{unknown}, {same} as before")
    }

    /// Writes the page and returns its path.
    pub(crate) fn write(&self) -> Result<PathBuf, Failure> {
        let title = self.title();
        let body: String = self.sections.iter().flatten().map(String::as_str).collect();
        let page = html::page(&title, &body);
        let path = self.directory.join("index.html");
        download::write(&path, page.as_bytes())?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_the_baseline_lacks_are_in_the_report() {
        let mut report = Report { directory: PathBuf::new(), sections: Default::default() };
        assert_eq!(report.title(), "0 changed, 0 failed, 0 as before");
        report.add_new("https://a.example/?a=1&b=2");
        assert_eq!(report.title(), "0 changed, 0 failed, 1 not in the baseline, 0 as before");
        assert!(report.sections[2][0].contains("not in the baseline</span>https://a.example/?a=1&amp;b=2</h2>"));
    }
}
