//! One-shots.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    time::Instant,
};

use clockjack_rt::sched::{FireContext, HandlerError, SchedulerTask};

use crate::{ANY, LONG, busy_pool, calm_pool, ms};

#[test]
fn line_01_each_of_two_one_shots_runs_once_and_not_before_its_time() {
    let (pool, _calm) = calm_pool();
    let (told, heard) = mpsc::channel();
    let begun = Instant::now();
    for name in ["first", "second"] {
        let told = told.clone();
        pool.scheduler().schedule_once_fn(ms(1_000), ANY, move |_| told.send(name)).unwrap();
    }
    assert_eq!(heard.recv_timeout(ms(100)), Err(RecvTimeoutError::Timeout));
    let mut names = [(); 2].map(|()| heard.recv_timeout(LONG).unwrap());
    assert!(begun.elapsed() >= ms(1_000));
    names.sort_unstable();
    assert_eq!(names, ["first", "second"]);
    // The sender that is left is this test's own.
    assert_eq!(heard.recv_timeout(ms(2_000)), Err(RecvTimeoutError::Timeout));
    drop(told);
    assert_eq!(heard.recv(), Err(mpsc::RecvError));
}

struct Told(mpsc::Sender<&'static str>);

impl SchedulerTask for Told {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Ok(self.0.send("run")?)
    }

    fn cancelled(&mut self) {
        self.0.send("cancelled").unwrap();
    }
}

#[test]
fn line_04_a_cancel_tells_the_task() {
    let (pool, _calm) = calm_pool();
    let (told, heard) = mpsc::channel();
    let job = pool.scheduler().schedule_once_task(LONG / 2, ANY, Told(told)).unwrap();
    let begun = Instant::now();
    assert!(job.cancel());
    assert_eq!(heard.recv_timeout(LONG), Ok("cancelled"));
    assert!(begun.elapsed() < LONG / 2, "it was told only after {:?}", begun.elapsed());
    assert_eq!(heard.recv(), Err(mpsc::RecvError), "and is gone");
}

#[test]
fn line_06_none_of_many_one_shots_is_premature() {
    let (pool, _calm) = calm_pool();
    let (told, heard) = mpsc::channel();
    let begun = Instant::now();
    for _ in 0..300 {
        let (told, scheduled) = (told.clone(), Instant::now());
        let run = move |_: &FireContext| told.send(scheduled.elapsed());
        pool.scheduler().schedule_once_fn(ms(20), ANY, run).unwrap();
        std::thread::sleep(ms(5));
    }
    drop(told);
    let runs: Vec<_> = heard.iter().collect();
    assert!(begun.elapsed() < LONG);
    assert_eq!(runs.len(), 300);
    assert!(runs.iter().all(|took| *took >= ms(20)), "{:?}", runs.iter().min());
}

#[test]
fn line_08_all_of_a_hundred_thousand_one_shots_run() {
    let (pool, _alone) = busy_pool();
    let (told, heard) = mpsc::channel();
    let n_jobs = 100_000;
    let begun = Instant::now();
    // A multiplier without a common divisor goes through all delays.
    for i in 0..n_jobs {
        let (told, delay) = (told.clone(), ms(i * 1_237 % 3_000));
        let scheduled = Instant::now();
        let run = move |_: &FireContext| told.send(scheduled.elapsed() >= delay);
        pool.scheduler().schedule_once_fn(delay, ANY, run).unwrap();
    }
    drop(told);
    let runs: Vec<_> = heard.iter().collect();
    assert_eq!(runs.len() as u64, n_jobs);
    assert!(runs.iter().all(|is_not_early| *is_not_early));
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}
