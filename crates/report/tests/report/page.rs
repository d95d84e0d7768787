//! The page's structure, without a browser.

use lagometer_report::page;

use crate::synthetic::{LANES, document, failed_lane, full};

#[test]
fn the_page_is_written() {
    std::fs::write(
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("full.html"),
        page(&[full()]),
    )
    .expect("the target directory is writable");
    let mut small = document(&LANES[2..6], 60, &[1, 2, 3]);
    small.lanes.push(failed_lane(
        "udt",
        "udt owns its sockets and runs in emu and net only",
    ));
    std::fs::write(
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("two.html"),
        page(&[small, full()]),
    )
    .expect("the target directory is writable");
}
