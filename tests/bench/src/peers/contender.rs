//! What is compared: grabd, the bare browser and other tools, each with browsers of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use grabd_tests::process_tree::ProcessTree;
use serde_json::json;

use super::node_tool::NodeTool;
use super::page::{ImageSize, Page, VIEWPORT};
use crate::baseline::Baseline;
use crate::service::Service;

/// The tools from npm, by their names in `tests/peers/tools.mjs`.
const TOOLS: [&str; 4] = ["puppeteer-load", "puppeteer-cluster", "playwright", "browserless"];

pub(super) enum Contender {
    Grabd(Box<Service>),
    Bare(Box<Baseline>),
    Tool(Box<NodeTool>),
}

impl Contender {
    /// Starts all of them. grabd is the first.
    pub(super) async fn start_all() -> anyhow::Result<Vec<Self>> {
        let mut all = vec![
            Self::Grabd(Box::new(Service::start().await.context("the service")?)),
            Self::Bare(Box::new(Baseline::start().await.context("the bare browser")?)),
        ];
        for name in TOOLS {
            all.push(Self::Tool(Box::new(NodeTool::start(name).with_context(|| name.to_owned())?)));
        }
        Ok(all)
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Grabd(_) => "grabd",
            Self::Bare(_) => "bare DevTools",
            Self::Tool(tool) => tool.name,
        }
    }

    pub(super) fn tree(&self) -> ProcessTree {
        match self {
            Self::Grabd(service) => service.tree(),
            Self::Bare(bare) => bare.tree(),
            Self::Tool(tool) => tool.tree(),
        }
    }

    /// Captures a page. Returns when the next capture may begin: the time until the caller had the image, and its size.
    pub(super) async fn capture(&self, url: &str, page: Page) -> anyhow::Result<(Duration, ImageSize)> {
        let (took, image) = match self {
            Self::Grabd(service) => by_service(service, url, page.full_page).await?,
            Self::Bare(bare) => by_baseline(bare, url, page.full_page).await?,
            Self::Tool(tool) => return tool.capture(url, page.full_page, None).await,
        };
        Ok((took, ImageSize::of_png(&image)?))
    }

    /// Captures the visible part of a page. Returns the time until the caller had the image, and the image. `file` is written
    /// by tools that are processes of their own, after that time.
    pub(super) async fn image(&self, url: &str, file: &Path) -> anyhow::Result<(Duration, Vec<u8>)> {
        match self {
            Self::Grabd(service) => by_service(service, url, false).await,
            Self::Bare(bare) => by_baseline(bare, url, false).await,
            Self::Tool(tool) => {
                let (took, _) = tool.capture(url, false, Some(file)).await?;
                Ok((took, std::fs::read(file)?))
            }
        }
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Grabd(service) => service.stop().await,
            Self::Bare(bare) => bare.stop().await,
            Self::Tool(tool) => tool.stop().await,
        }
    }
}

async fn by_service(service: &Service, url: &str, full_page: bool) -> anyhow::Result<(Duration, Vec<u8>)> {
    let (width, height) = VIEWPORT;
    let body = json!({ "url": url, "full_page": full_page, "width": width, "height": height, "format": "png" });
    let began = Instant::now();
    let (status, grab) = service.capture(&body).await?;
    anyhow::ensure!(status == 200, "{status}: {}", grab["error"]["message"]);
    let image = service.image(grab["image_url"].as_str().context("an image_url")?).await?;
    Ok((began.elapsed(), image))
}

async fn by_baseline(bare: &Baseline, url: &str, full_page: bool) -> anyhow::Result<(Duration, Vec<u8>)> {
    let prepared = bare.prepare().await?;
    let began = Instant::now();
    let image = bare.grab(&prepared, url, full_page).await;
    let took = began.elapsed();
    bare.dispose(prepared).await?;
    Ok((took, image?))
}
