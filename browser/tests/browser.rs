//! The page, in Chromium, of programs that run: `cargo xtask browser` runs these tests.

#[path = "browser/driver.rs"]
mod driver;
#[path = "browser/programs.rs"]
mod programs;

use serde_json::json;

use crate::{
    driver::{Page, drive},
    programs::Program,
};

/// All views of the list, and their keys.
const VIEWS: [(&str, &str); 11] = [
    ("2", "actors"),
    ("3", "tree"),
    ("4", "timers"),
    ("5", "jobs"),
    ("6", "graphs"),
    ("7", "events"),
    ("8", "workers"),
    ("9", "deadletters"),
    ("a", "asks"),
    ("t", "timeline"),
    ("1", "overview"),
];

/// The views of which there are pictures, where they are, and what shows that they are complete.
const PICTURES: [(&str, &str, &str); 9] = [
    ("overview", "overview", "/s"),
    ("actors", "actors?sort=rate", "/s"),
    ("actor", "actor?path=/user/house/clock", "/s"),
    ("tree", "tree?at=/user/house", "/s"),
    ("timers", "timers", "/s"),
    ("graph", "graph?name=robot-cell", "/s"),
    ("events", "events", "/user/house/ghost"),
    ("workers", "workers", "/s"),
    ("timeline", "timeline", "look"),
];

/// The page of a program, as soon as it is live.
async fn look_at(page: &Page, program: &Program) {
    page.open(program.url()).await;
    page.until_live().await;
}

/// A number as the page writes it, without its unit and marks; `None` if it is unknown.
fn number(text: &str) -> Option<f64> {
    let text = text.replace(',', "");
    text.split([' ', '~', '%', '/']).next()?.parse().ok()
}

#[test]
fn the_overview_shows_the_program_and_its_actors() {
    drive("overview", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        assert_eq!(page.text("h1").await, "house");
        page.until_text("#program", &format!("pid {}", house.pid())).await;
        // The house, its clock, its rooms, the cook, the guest, and those of the system.
        let actors = page.fact("actors").await;
        assert!(number(&actors).unwrap() > 253.0, "{actors}");
        // The charts draw, in pixels, and say their last value.
        let drawn = "const charts = [...document.querySelectorAll('figure canvas')];
            const isDrawn = (canvas) => canvas.getContext('2d')
                .getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0);
            return charts.length === 2 && charts.every(isDrawn) &&
                /[0-9]/.test(document.querySelector('figcaption b').innerText)";
        page.until("the charts are drawn", drawn).await;
        let label = page.eval("return document.querySelector('figure [role=img]').ariaLabel").await;
        assert!(label.as_str().unwrap().starts_with("messages per second, now "), "{label}");
    });
}

#[test]
fn the_sick_actor_is_the_first_row_and_the_first_finding() {
    drive("sick", async |page| {
        let shop = Program::shop("mailbox");
        look_at(page, &shop).await;
        let is_named = |rows: &[Vec<String>]| {
            rows.first().is_some_and(|row| row[0] == "S03" && row[1].contains("/user/shop/ledger"))
        };
        page.until_rows("the worst first", is_named).await;
        page.until_text(".findings", "! S03 /user/shop/ledger").await;
        page.go("actors?sort=depth").await;
        let is_first = |rows: &[Vec<String>]| {
            let depth = |row: &Vec<String>| number(&row[2]).unwrap_or_default();
            rows.first().is_some_and(|row| row[0] == "/user/shop/ledger" && depth(row) > 500.0)
        };
        page.until_rows("actors", is_first).await;
        page.choose("dark").await;
        page.go("overview").await;
        page.until_rows("the worst first", is_named).await;
        // A picture for readers: with a part of a minute in its charts.
        let is_known = "const points = [...document.querySelectorAll('figcaption b')];
            window.since ??= performance.now();
            return performance.now() - window.since > 8000 &&
                points.every((one) => one.innerText !== '-')";
        page.until("the charts have something", is_known).await;
        page.until_rows("the worst first", is_named).await;
        page.picture("shop-dark").await;
    });
}

#[test]
fn actors_are_filtered_sorted_paged_and_opened() {
    drive("actors", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        // By keyboard: the view, the filter, the text, and what submits it.
        page.press("2").await;
        page.until("the actors", "return Boolean(document.querySelector('#filter'))").await;
        page.press("/").await;
        page.press("room-00\n").await;
        let rows = page.until_rows("10 match", |rows| rows.len() == 10).await;
        assert!(rows.iter().all(|row| row[0].starts_with("/user/house/room-00")), "{rows:?}");

        page.go("actors?filter=room-").await;
        page.until_rows("250 match", |rows| rows.len() == 200).await;
        page.click("a[rel=next]").await;
        page.until_rows("250 match", |rows| rows.len() == 50).await;
        page.until_text(".pages", "page 2").await;
        page.click("a[rel=prev]").await;
        page.until_rows("250 match", |rows| rows.len() == 200).await;

        page.go("actors?filter=%2Fuser%2Fhouse&sort=restarts").await;
        page.eval("document.querySelector('select[name=sort]').value = 'rate'").await;
        page.click("form button").await;
        // The clock ticks a hundred times per second; nobody else gets as many messages.
        let is_sorted = |rows: &[Vec<String>]| {
            let rate = |row: &Vec<String>| number(&row[3]).unwrap_or_default();
            rows.first().is_some_and(|row| row[0] == "/user/house/clock" && rate(row) > 20.0)
        };
        page.until_rows("match", is_sorted).await;
        page.click("tbody a").await;
        page.until_text("h2", "/user/house/clock").await;
        let mailbox = page.fact("mailbox").await;
        let come = mailbox.split(", ").nth(1).and_then(number);
        assert!(come.unwrap() > 10.0, "{mailbox}");

        page.go("actor?path=/user/house/guest").await;
        let asks = page.until_rows("without an answer", |rows| rows.len() == 1).await;
        assert_eq!(asks[0][..2], ["/user/house/guest", "/user/house/cook"]);
    });
}

#[test]
fn tree_timers_events_and_asks_show_what_the_program_does() {
    drive("views", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        page.go("tree?at=/user").await;
        // The clock, the cook, the guest and the rooms; no ghost lives long.
        let is_house = |rows: &[Vec<String>]| {
            rows.iter().any(|row| row[0] == "/user/house" && row[4] == "253")
        };
        page.until_rows("children of /user", is_house).await;
        page.click("tbody a").await;
        page.until_rows("children of /user/house", |rows| rows.len() == 200).await;
        page.click(".up a").await;
        page.until_rows("children of /user", is_house).await;

        page.go("timers").await;
        let fires = "const names = [...document.querySelectorAll('main dt')];
            const fired = names.find((dt) => dt.innerText === 'fired').nextElementSibling;
            const inUse = document.querySelector('.heat .on');
            return parseFloat(fired.innerText) > 20 && inUse !== null";
        page.until("timers fire, and a slot is in use", fires).await;

        page.go("asks").await;
        let asks = page.until_rows("asks", |rows| rows.len() == 1).await;
        assert_eq!(asks, [["/user/house/guest", "/user/house/cook", "no"]]);

        page.go("events").await;
        let is_dead =
            |row: &Vec<String>| row[2] == "dead-letter" && row[3].starts_with("/user/house/ghost-");
        page.until_rows("newest first", |rows| rows.iter().filter(|row| is_dead(row)).count() > 1)
            .await;
        page.click("input[name=failure]").await;
        page.until_rows("newest first", |rows| rows.is_empty()).await;
        page.click("input[name=dead-letter]").await;
        let rows = page.until_rows("newest first", |rows| rows.len() > 1).await;
        assert!(rows.iter().all(is_dead), "{rows:?}");
        // The newest first, without a gap.
        let numbers: Vec<f64> = rows.iter().filter_map(|row| number(&row[0])).collect();
        // They were kept while other views were looked at.
        page.press("1").await;
        page.until("the overview", "return Boolean(document.querySelector('figure'))").await;
        page.press("7").await;
        let kept = page.until_rows("newest first", |again| again.len() >= rows.len()).await;
        assert!(kept.iter().any(|row| number(&row[0]) == numbers.last().copied()), "{kept:?}");
        assert!(numbers.windows(2).all(|pair| pair[0] > pair[1]), "{numbers:?}");

        page.go("deadletters").await;
        let is_ghost = |row: &Vec<String>| row[0].starts_with("/user/house/ghost-");
        page.until_rows("groups", |rows| !rows.is_empty() && rows.iter().all(is_ghost)).await;

        page.eval("location.hash = '#/nothing'").await;
        page.until_text("main", "there is no view nothing").await;
        page.eval("location.hash = '#/actor?path=/user/nobody'").await;
        page.until_text("main", "there is nothing of this name").await;
    });
}

#[test]
fn a_graph_is_drawn_with_its_live_rates() {
    drive("graph", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        page.press("6").await;
        page.click("tbody a").await;
        // 14 edges and 13 components, as `examples/robot-cell.yaml` has; the control lane ticks a
        // hundred times per second.
        let is_live = |rows: &[Vec<String>]| {
            let wanted = rows.iter().find(|row| row[0] == "wanted");
            wanted.is_some_and(|row| {
                number(&row[1]).is_some_and(|rate| (20.0..130.0).contains(&rate))
            })
        };
        let edges = page.until_rows("edges", is_live).await;
        assert_eq!(edges.len(), 14);
        assert_eq!(page.rows("components").await.len(), 13);
        assert_eq!(
            page.eval("return document.querySelectorAll('.drawing .node').length").await,
            13
        );
        let label = "const label = [...document.querySelectorAll('.drawing text.label')]
                .find((text) => text.textContent.startsWith('wanted'));
            return /[0-9] .s$/.test(label?.querySelector('.rate').textContent)";
        page.until("the drawing has the rate", label).await;
        // A row leads to its edge.
        page.eval(
            "const rows = [...document.querySelectorAll('main tbody tr')];
             rows.find((row) => row.cells[0].innerText === 'wanted')
                 .dispatchEvent(new MouseEvent('mouseenter'))",
        )
        .await;
        page.until_text(".drawing .pointed", "wanted").await;
    });
}

#[test]
fn the_timeline_shows_the_polls_of_the_workers_and_zooms_by_a_brush() {
    drive("timeline", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        page.go("timeline").await;
        page.choose("dark").await;
        page.click("#look").await;
        let rows = page.until_rows("the longest of", |rows| rows.len() == 20).await;
        assert!(rows.iter().all(|row| row[0].contains("worker")), "{rows:?}");
        let takes: Vec<&str> = rows.iter().map(|row| row[3].as_str()).collect();
        assert!(takes.iter().all(|time| number(time).is_some()), "{takes:?}");
        // The text of the picture: what part it shows, of how much.
        let all = page.text("#window").await;
        assert!(all.starts_with("0 ns to "), "{all}");
        page.picture("timeline-looked-dark").await;
        page.brush("canvas.timeline", 0.5, 0.6).await;
        let is_part = "return !document.querySelector('#window').innerText.startsWith('0 ns')";
        page.until("a part is shown", is_part).await;
        page.eval("document.querySelector('canvas.timeline').focus()").await;
        page.press("\u{e00c}").await;
        page.until_text("#window", &all).await;
        // The clock ticks a hundred times per second, and each tick is a poll.
        let polls = "const [done] = arguments;
            const headers = { authorization: `Bearer ${sessionStorage.getItem('token')}` };
            fetch('/v1/timeline?ms=500', { headers }).then((answer) => answer.json())
                .then(({ traceEvents }) => done(traceEvents.filter((event) =>
                    event.ph === 'X' && event.name.includes('/user/house/clock')).length))";
        let polls = page.eval_async(polls).await.as_u64().unwrap();
        assert!((10..=100).contains(&polls), "{polls} polls of the clock");
    });
}

#[test]
fn a_program_that_was_killed_and_started_again_is_shown_again() {
    drive("again", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        page.until_text("#program", &format!("pid {}", house.pid())).await;
        let port = house.port();
        drop(house);
        page.until_text("#state", "program ended").await;
        let actors = page.fact("actors").await;
        assert!(number(&actors).is_some(), "what has come stays: {actors}");
        let house = Program::house_at(port);
        page.until_text("#program", &format!("pid {}", house.pid())).await;
        page.until_live().await;
        page.until_text("#program", "up 00:00:0").await;
    });
}

#[test]
fn a_page_that_is_paused_shows_each_view_once_and_stays_paused() {
    drive("paused", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        page.press("p").await;
        page.until_text("#state", "paused").await;
        page.go("events").await;
        let rows = page.until_rows("newest first", |rows| !rows.is_empty()).await;
        assert_eq!(page.text("#state").await, "paused");
        page.press("1").await;
        page.until("the overview", "return Boolean(document.querySelector('figure'))").await;
        page.press("7").await;
        page.until_rows("newest first", |again| again.len() > rows.len()).await;
        page.press("p").await;
        page.until_live().await;
    });
}

#[test]
fn every_view_is_reached_by_keyboard_only() {
    drive("keyboard", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        for (key, view) in VIEWS {
            page.press(key).await;
            let main = format!(
                "return Boolean(document.querySelector('#view-{view} :is(table, dl, form)'))"
            );
            page.until(&format!("{view} is shown"), &main).await;
            let current = page.text("[aria-current=page]").await;
            assert!(current.starts_with(key), "{view}: {current}");
        }
        // By the list of views: tab to the link of the actors, and enter.
        let focused =
            |what: &str| format!("return document.activeElement?.matches({})", json!(what));
        page.eval("document.activeElement.blur()").await;
        for _ in 0..20 {
            page.press("\u{e004}").await;
            if page.eval(&focused("[href='#/actors']")).await == json!(true) {
                break;
            }
        }
        page.press("\u{e007}").await;
        page.until("actors", "return Boolean(document.querySelector('#view-actors table'))").await;
        // All that can be done has a place in the order of the tab key.
        let mut seen = Vec::new();
        for _ in 0..40 {
            page.press("\u{e004}").await;
            seen.push(page.eval("return document.activeElement.id").await);
        }
        for id in ["pause", "colours", "help", "filter"] {
            assert!(seen.contains(&json!(id)), "{id}: {seen:?}");
        }
        // The keys are listed, and the list closes.
        page.eval("document.activeElement.blur()").await;
        page.press("?").await;
        page.until("the keys", "return document.querySelector('dialog').open").await;
        page.press("\u{e00c}").await;
        page.until("no keys", "return !document.querySelector('dialog').open").await;
        // With a modifier a key is the browser's.
        page.press("\u{e009}p").await;
        page.press("\u{e009}3").await;
        assert_eq!(page.text("#state").await, "live");
        assert_eq!(page.eval("return location.hash").await, "#/actors");
    });
}

#[test]
fn colours_are_those_of_the_system_or_those_that_were_chosen() {
    drive("colours", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        let is = |scheme: &str| {
            // The sum of red, green and blue of the paper.
            let sign = if scheme == "dark" { '<' } else { '>' };
            format!(
                "const [, ...parts] = /(\\d+), (\\d+), (\\d+)/.exec(
                     getComputedStyle(document.body).backgroundColor);
                 return parts.reduce((sum, part) => sum + Number(part), 0) {sign} 380"
            )
        };
        for scheme in ["dark", "light"] {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            page.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
            page.until(&format!("{scheme} as the system"), &is(scheme)).await;
        }
        page.choose("dark").await;
        page.until("dark by choice", &is("dark")).await;
        page.reload().await;
        page.until_live().await;
        page.until("the choice was kept", &is("dark")).await;
        assert_eq!(page.text("#colours").await, "colours: dark");
    });
}

#[test]
fn every_view_is_drawn_in_dark_and_light_for_everybody_and_asks_no_other_host() {
    drive("pictures", async |page| {
        let house = Program::house();
        look_at(page, &house).await;
        let mut violations = Vec::new();
        for theme in ["light", "dark"] {
            page.choose(theme).await;
            for (name, place, part) in PICTURES {
                page.go(place).await;
                page.until_text("main", part).await;
                page.picture(&format!("{name}-{theme}")).await;
                violations.extend(page.axe().await.into_iter().map(|one| format!("{name}: {one}")));
            }
        }
        assert!(violations.is_empty(), "{violations:#?}");
        // All requests of this browser, as its protocol for tools has seen them.
        let mut asked = 0;
        for entry in page.log("performance").await {
            let message = entry["message"].as_str().expect("an entry has a message");
            let message: serde_json::Value = serde_json::from_str(message).expect("it is JSON");
            if message["message"]["method"] == "Network.requestWillBeSent" {
                let url = message["message"]["params"]["request"]["url"].as_str().unwrap();
                // What is part of the page or of the browser goes over no network.
                let is_ours = url.starts_with(&house.origin());
                let is_inside = ["data:", "chrome:"].iter().any(|scheme| url.starts_with(scheme));
                assert!(is_ours || is_inside, "{url}");
                asked += u32::from(is_ours);
            }
        }
        assert!(asked > 15, "{asked} requests");
        // What a policy refuses is an entry here.
        let complaints = page.log("browser").await;
        assert!(complaints.is_empty(), "{complaints:#?}");
    });
}
