//! The page, in Chromium, of programs that run: `cargo xtask browser` runs these tests.

#[path = "browser/driver.rs"]
mod driver;
#[path = "browser/programs.rs"]
mod programs;

use crate::{driver::drive, programs::Program};

#[test]
fn the_overview_shows_the_program_and_its_actors() {
    drive("overview", async |page| {
        let house = Program::house();
        page.open(house.url()).await;
        page.until_live().await;
        assert_eq!(page.text("header h1").await, "house");
        let pid = format!("pid {}", house.pid());
        page.until_text("header", &pid).await;
        // The house, its clock, its rooms, the cook and the guest, and the graph's own.
        let actors = page.fact("actors").await.replace(',', "");
        assert!(actors.parse::<u32>().unwrap() > 253, "{actors}");
    });
}
