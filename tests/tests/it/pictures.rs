//! The right picture, through the whole service.

use anyhow::Result;
use grabd_tests::harness::Harness;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn formats_sizes_and_whole_pages() -> Result<()> {
    let harness = Harness::start(20, &[]).await?;
    for (format, magic) in [("png", &b"\x89PNG"[..]), ("jpeg", &b"\xff\xd8\xff"[..]), ("webp", &b"RIFF"[..])] {
        let (grab, image) = harness.capture("/article", json!({ "format": format, "width": 1000, "height": 500 })).await?;
        assert!(image.starts_with(magic), "{format}");
        let picture = image::load_from_memory(&image)?;
        assert_eq!((picture.width(), picture.height()), (1000, 500));
        assert_eq!((&grab["image_width"], &grab["image_height"]), (&json!(1000), &json!(500)));
        assert_eq!(grab["format"], json!(format));
    }
    let (grab, image) = harness.capture("/tall", json!({ "full_page": true, "width": 640, "format": "jpeg" })).await?;
    assert_eq!((&grab["height"], &grab["truncated"]), (&json!(3240), &json!(true)));
    assert_eq!(grab["image_height"], json!(16384));
    assert_eq!(image::load_from_memory(&image)?.height(), 16384);
    harness.finish().await
}
